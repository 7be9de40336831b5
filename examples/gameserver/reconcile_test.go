package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The server and the command compare the same books: those of the day until now, and
// later those since the last ones.
func TestTheBooksAreComparedWithTheChain(t *testing.T) {
	key, err := ramp.TextKey(hmacKey)
	check(t, err)
	signer, err := ramp.NewKeySigner(validatorKey)
	check(t, err)
	var game atomic.Pointer[httputil.ReverseProxy] // set below, because the game needs the chain's URL first
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { game.Load().ServeHTTP(w, r) }))
	defer proxy.Close()
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Game: proxy.URL, BlockTime: time.Second / 2,
		Networks: map[ramp.Network]uint64{ramp.Testnet: 1112}})
	dir := t.TempDir()
	address, position := "sqlite:"+filepath.Join(dir, "game.db"), filepath.Join(dir, "position")
	sells := []string{"-db", address, "-chain-id", "1112", "-any-failure", "-project", "project", "-token", token, "-network", "testnet"}
	env := append(real(), "RAMP_RPC_URL="+service.RPCURL(ramp.Testnet))
	migrated(t, address)
	p := &process{t: t, args: append([]string{"-addr", "127.0.0.1:0"}, sells...), env: env}
	p.start()
	t.Cleanup(p.kill)
	to, err := url.Parse(p.url)
	check(t, err)
	game.Store(httputil.NewSingleHostReverseProxy(to))
	terms, err := (&settings{project: "project", network: "testnet", token: common.HexToAddress(token)}).terms()
	check(t, err)
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms})
	check(t, err)
	s := login(t, p.url, "alice")
	mint := func(faults ...ramptest.Fault) {
		started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"})
		check(t, err)
		_, err = service.Mint(t.Context(), started.UUID, s, ramp.NewAmount(1), faults...)
		check(t, err)
		service.Advance(time.Minute)
	}
	var log bytes.Buffer
	books := func(args ...string) (string, error) {
		var out bytes.Buffer
		log.Reset()
		err := run(t.Context(), append(append([]string{"reconcile"}, sells...), args...), func(name string) string {
			return map[string]string{"RAMP_RPC_URL": service.RPCURL(ramp.Testnet)}[name]
		}, &out, &log)
		return out.String(), err
	}

	mint()
	printed, err := books("-position", position, "-format", "totals")
	check(t, err)
	rows, err := csv.NewReader(strings.NewReader(printed)).ReadAll()
	check(t, err)
	if !strings.Contains(printed, "orders,gold,mint,taken,item_gold,100\n") || !strings.Contains(printed, "chain,"+token+",mint,moved,tokens,1\n") {
		t.Errorf("the totals are\n%v", rows)
	}

	if _, err = books("-to", "2100-01-01"); err != nil || !strings.Contains(log.String(), "the books end before -to") {
		t.Errorf("books of a time that is not over: %v, logged\n%s", err, &log)
	}
	if _, err = books("-to", rows[1][1]); err != nil || log.Len() > 0 {
		t.Errorf("books of a time that is over: %v, logged\n%s", err, &log)
	}

	mint(ramptest.MintedByStranger())
	for _, format := range []string{"text", "json"} {
		printed, err = books("-format", format)
		if err == nil || err.Error() != "orders and chain disagree; findings: 1" || !strings.Contains(printed, "event_without_order") {
			t.Errorf("as %s: %v\n%s", format, err, printed)
		}
	}
	var last struct{ To time.Time }
	text, err := os.ReadFile(position)
	check(t, err)
	check(t, json.Unmarshal(text, &last))
	if _, err := books("-position", position); err == nil || !strings.Contains(err.Error(), "findings: 1") {
		t.Errorf("since the last books: %v", err)
	}
	p.kill()
	p.args = append(p.args, "-books", position)
	p.start()
	p.log.find(t, `"(ramp: the books do not close)","kind":"event_without_order"`)
}
