package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"gopkg.in/yaml.v3"
)

// Each filter of the template counts what the functions log when that happens, and nothing else.
func TestTheFiltersCountWhatTheFunctionsLog(t *testing.T) {
	a, log := newAccount(t), new(records)
	c := newCloud(t, 10, a.env...)
	c.log = log
	gateway := httptest.NewServer(c)
	t.Cleanup(gateway.Close)
	service := ramptest.Start(t, ramptest.Config{Key: a.key, Validator: a.validator, Game: gateway.URL})
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: a.key, Terms: terms(t)}))(t)
	session := must(a.login(t.Context(), "alice", 1000))(t)
	order := must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
	must(service.Mint(t.Context(), order.UUID, session, ramp.NewAmount(1), ramptest.ValidateOtherAmount()))(t)
	service.Advance(time.Minute)
	log.want(t, map[string]int{"Approved": 1, "Conflicts": 1})

	send(t, a, gateway.URL) // of an unknown order
	log.want(t, map[string]int{"ResultsFail": 1})

	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(node.Close)
	books := newCloud(t, 1, append(a.env, "RAMP_FUNCTION=books", "RAMP_RPC_URL="+node.URL, "RAMP_CHAIN_ID=7002")...)
	books.log, books.limit = log, 20*time.Second
	if _, err := books.invoke("", []byte("{}")); err == nil {
		t.Error("the books were read without a node")
	}
	log.want(t, map[string]int{"Late": 2, "Findings": 1}) // one of each direction
}

// records is what was logged.
type records struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *records) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// want fails the test unless the filters of the template count so many records since the last call.
func (l *records) want(t *testing.T, want map[string]int) {
	t.Helper()
	var read template
	if err := yaml.Unmarshal(must(os.ReadFile("template.yaml"))(t), &read); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, r := range read.Resources {
		if r.Properties.FilterPattern == "" {
			continue
		}
		n := 0
		for line := range strings.Lines(l.text.String()) {
			var record map[string]any
			if json.Unmarshal([]byte(line), &record) == nil && matches(t, r.Properties.FilterPattern, record) {
				n++
			}
		}
		if n != want[name] {
			t.Errorf("%s counts %d records, not %d, of\n%s", name, n, want[name], &l.text)
		}
	}
	l.text.Reset()
}

// matches evaluates a filter pattern of CloudWatch, as far as the template uses it.
func matches(t *testing.T, pattern string, record map[string]any) bool {
	t.Helper()
	for part := range strings.SplitSeq(strings.Trim(pattern, "{ }"), " && ") {
		name, rest, _ := strings.Cut(strings.TrimPrefix(part, "$."), " ")
		value, has := record[name]
		switch text, equals := strings.CutPrefix(rest, "= "); {
		case rest == "NOT EXISTS":
			has = !has
		case rest == "IS TRUE":
			has = value == true
		case !equals:
			t.Fatalf("the test does not know %q", part)
		case strings.HasSuffix(text, `*"`):
			begin := strings.TrimSuffix(strings.TrimPrefix(text, `"`), `*"`)
			has = has && strings.HasPrefix(fmt.Sprint(value), begin)
		default:
			has = has && fmt.Sprint(value) == strings.Trim(text, `"`)
		}
		if !has {
			return false
		}
	}
	return true
}
