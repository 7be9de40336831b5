package ramptest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

func TestEveryExchangeIsRecorded(t *testing.T) {
	var recorded []control.Event
	epoch := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newCounter(t, func(c *ramptest.Config) {
		c.Epoch, c.Standalone.OnEvent = epoch, func(e control.Event) { recorded = append(recorded, e) }
	})
	must.Get(c.service.Assets(t.Context(), c.session))(t)
	c.shop.answers = []error{errors.New("away")}
	order := c.mint(t, ramptest.ResultTwice())
	c.service.Advance(time.Minute)
	c.rpc(t, "eth_blockNumber", "")

	events := c.service.Events()
	assert.Equal(t, events, recorded)
	var got []string
	for i, e := range events {
		assert.Equal(t, i+1, e.Number)
		got = append(got, fmt.Sprintf("%s #%d %s %q %v", e.Kind, e.Attempt, e.Outcome, e.Fault, e.Failed))
	}
	assert.Equal(t, []string{
		`assets #0 success "" false`,
		`initialize #0 OK "" false`,
		`assets #0 success "" false`,
		`validate #0 success "" false`,
		`assets #0 success "" false`,
		`books #0 took 100 item_gold "" false`,
		`chain #0 testnet transaction submitted "" false`,
		`chain #0 testnet transaction succeeded in block 1 "" false`,
		`assets #0 success "" false`,
		`result #1 INTERNAL_ERROR "" true`,
		`assets #0 success "" false`,
		`books #0 nothing moved "" false`,
		`assets #0 success "" false`,
		`result #2 success "again" false`,
		`assets #0 success "" false`,
		`books #0 nothing moved "" false`,
		`rpc #0 success "" false`,
	}, got)

	assert.Zero(t, events[0].UUID, "asked by hand")
	assert.Equal(t, order.UUID, events[2].UUID, "asked by the books")
	result := events[13]
	assert.Equal(t, order.UUID, result.UUID)
	assert.Equal(t, epoch.Add(time.Second), result.Time)
	assert.Equal(t, "POST", result.Request.Method)
	assert.Equal(t, "/api/result", result.Request.Path)
	assert.Equal(t, string(c.shop.results[1].Raw), result.Request.Body)
	assert.Equal(t, 200, result.Answer.Status)
	assert.Equal(t, `{"success":true,"errorCode":null,"data":null}`, result.Answer.Body)
}

// A careless server echoes a token in whatever form it has at hand.
func TestNoFormOfATokenIsRecorded(t *testing.T) {
	const token = `tök&en/1"+ <2>`
	inJSON := func(text string) string {
		b, _ := json.Marshal(text)
		return string(b)
	}
	for name, echo := range map[string]func(http.ResponseWriter, *http.Request){
		"a header": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Echo", token) },
		"JSON":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, inJSON(token)) },
		"JSON of PHP": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.ReplaceAll(inJSON(token), "/", `\/`))
		},
		"a query": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/?t="+url.QueryEscape(token), http.StatusTemporaryRedirect)
		},
		"a query in lower case": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.ToLower(url.QueryEscape(token)))
		},
		"a path": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location",
				"/"+url.PathEscape(token))
		},
		"a panic": func(http.ResponseWriter, *http.Request) { panic("unknown token " + token) },
		"an errorCode": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"success":false,"errorCode":`+inJSON("unknown "+token)+`,"data":null}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(t, func(c *ramptest.Config) { c.Handler = http.HandlerFunc(echo) })
			_, err := c.service.Assets(t.Context(), ramp.Session{ID: "session-1", Token: ramp.NewAccessToken(token)})
			require.Error(t, err)
			event := c.service.Events()[0]
			said := fmt.Sprint(err, event.Outcome, event.Answer, c.service.Timeline())
			assert.Contains(t, said, "[redacted]")
			for _, part := range []string{"tök", "t%C3%B6k", "t%c3%b6k", "2>", "2%3E", "2%3e", `2\u003e`} {
				assert.NotContains(t, said, part)
			}
		})
	}
}

func TestTheRecordHoldsNoSecret(t *testing.T) {
	const secret = "token-1" // which a careless server echoes
	c := newCounter(t, reporting, before(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		w.Header().Set("Set-Cookie", "session="+secret)
		inner.ServeHTTP(w, r)
		_, _ = io.WriteString(w, "\n"+fmt.Sprint(r.Header))
	}))
	_, err := c.service.Assets(t.Context(), c.session)
	require.Error(t, err)
	id := c.initialize(t)
	_, err = c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(1))
	require.Error(t, err)

	post := must.Get(http.NewRequest(http.MethodPost, c.service.RPCURL(ramp.Testnet), strings.NewReader("{}")))(t)
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Authorization", "Bearer "+secret)
	must.Get(c.service.Client().Do(post))(t)

	text := must.Get(json.Marshal(c.service.Events()))(t)
	for _, e := range c.service.Events() {
		if e.Request != nil && e.Kind == control.KindValidate {
			signature := c.key.Sign([]byte(e.Request.Body))
			assert.NotContains(t, string(text), signature)
			assert.Contains(t, fmt.Sprint(e.Request.Header), "x-hmac-signature:[[redacted]]")
		}
	}
	assert.NotContains(t, string(text), secret)
	assert.NotContains(t, c.service.Timeline(), secret)
	assert.Contains(t, string(text), "Bearer [redacted]")
}

// The page of a framework about an error lists its environment, and what others have sent.
func TestAPageThatListsEverythingTellsNoSecret(t *testing.T) {
	const (
		text, other, validator, opens = "a/key+of=the console", "token of bob", "0xf00dfeed", "control-token"
		password, basic               = "pass/word", "dXNlcjpwYXNzL3dvcmQ="
	)
	var printed strings.Builder
	broken := false
	game := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !broken {
			_, _ = io.WriteString(w, `{"success":true,"errorCode":null,"data":{"v1":{"assets":[]}}}`)
			return
		}
		w.Header().Set("X-Debug", text)
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "<h1>Error</h1>RAMP_HMAC_KEY=%s %s RAMP_VALIDATOR_KEY=%s %s %s %s %v", text,
			url.QueryEscape(text), validator, other, opens, url.PathEscape(password), r.Header)
	}))
	t.Cleanup(game.Close)
	at := strings.Replace(game.URL, "http://", "http://user:"+url.QueryEscape(password)+"@", 1)
	desk := ramptest.Standalone{Pages: pages.New(), ControlToken: opens, Secrets: []string{validator},
		OnEvent: func(e control.Event) { printed.Write(must.Get(json.Marshal(e))(t)) }}
	service := must.Get(ramptest.New(ramptest.Config{Key: must.Get(ramp.TextKey(text))(t), Game: at,
		Validator: common.HexToAddress("0x1"), Standalone: desk}))(t)
	defer service.Close()
	bob := ramp.Session{ID: "bob", Token: ramp.NewAccessToken(other)}
	_, err := service.Assets(t.Context(), bob)
	require.NoError(t, err)
	broken = true
	var shown []string
	show := func(said ...any) { shown = append(shown, fmt.Sprint(said...)) }
	_, err = service.Assets(t.Context(), session1)
	show(err)
	get := func(path string) string {
		asked := must.Get(http.NewRequest(http.MethodGet, service.URL()+path, nil))(t)
		asked.Header.Set("Authorization", "Bearer "+opens)
		answer := must.Get(service.Client().Do(asked))(t)
		defer answer.Body.Close()
		require.Equal(t, 200, answer.StatusCode)
		return string(must.Get(io.ReadAll(answer.Body))(t))
	}
	show(get("/calls"))
	show(get("/calls/2"))
	show(get("/control"))
	events := service.Events()
	show(string(must.Get(json.Marshal(events))(t)), service.Timeline(), printed.String())
	require.Equal(t, 500, events[len(events)-1].Answer.Status)
	for _, said := range shown {
		for _, secret := range []string{text, other, validator, opens, password, basic} {
			for _, escape := range []func(string) string{url.QueryEscape, url.PathEscape, html.EscapeString} {
				assert.NotContains(t, said, secret)
				assert.NotContains(t, said, escape(secret))
			}
		}
	}
	assert.Contains(t, shown[2], "[redacted]")
}

func TestATimelineIsReadable(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Epoch = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) })
	c.shop.answers = []error{errors.New("away")}
	order := c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Hour)
	c.rpc(t, "eth_blockNumber", "") // which nobody looks for
	c.rpc(t, "eth_mine", "")
	id := order.UUID.String()[:8]
	lines := strings.Split(c.service.Timeline(), "\n")
	for i, line := range lines {
		if body, shown := strings.CutPrefix(line, "              asked:    "); shown {
			assert.True(t, strings.HasPrefix(body, `{"session_id":"session-1"`))
			assert.Regexp(t, `"logsBloom":"0x[0-9a-f]{8}…"`, body, "nobody reads it, and the logs come after it")
			lines[i] = "asked"
		}
	}
	assert.Equal(t, []string{
		"what happened since 2030-01-02 03:04:05 UTC:",
		"         +0s  initialize  " + id + "       200  OK",
		"         +0s  validate    " + id + "       200  success",
		"         +0s  books       " + id + "            took 100 item_gold",
		"         +0s  chain       " + id + "            testnet transaction submitted",
		"         +1s  chain       " + id + "            testnet transaction failed in block 1",
		"         +1s  result      " + id + "  #1   500  INTERNAL_ERROR",
		"asked",
		`              answered: {"success":false,"errorCode":"INTERNAL_ERROR","data":null}`,
		"         +1s  books       " + id + "            nothing moved",
		"       +5m1s  result      " + id + "  #2   200  success",
		"       +5m1s  books       " + id + "            gave back 100 item_gold",
		"     +1h0m0s  rpc                        200  -32601 Method not found: eth_mine",
	}, lines)
}

func TestATestThatFailsShowsTheTimeline(t *testing.T) {
	key := must.Get(ramp.TextKey("key of the console"))(t)
	for _, failed := range []bool{true, false} {
		f := &judged{TB: t, failed: failed}
		service := ramptest.Start(f, ramptest.Config{Key: key, Validator: [20]byte{1}, Handler: http.NotFoundHandler()})
		_, err := service.Assets(t.Context(), ramp.Session{ID: "s", Token: ramp.NewAccessToken("token")})
		assert.Error(t, err)
		_, said := f.end()
		assert.Equal(t, failed, strings.Contains(said, "404 page not found"))
	}
}

// Two places that move assets, and an Apply on the database handle, are suspected only if assets moved
// exactly twice.
func TestAssetsThatMovedTwiceAreExplained(t *testing.T) {
	for by, twice := range map[int64]bool{-100: true, -50: false, 200: false} { // a mint takes 100
		f := &judged{TB: t}
		c := newCounter(f, func(c *ramptest.Config) { c.Settle = -1 })
		c.shop.also = map[string]int64{ramp.PathValidate: by}
		_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10))
		assert.ErrorContains(t, err, "the game must take 100 item_gold", by)
		failed, said := f.end()
		assert.True(t, failed, by)
		assert.Equal(t, twice, strings.Contains(said, "Apply must use tx"), said)
		assert.Equal(t, twice, strings.Contains(said, "the game moves them in two places"), said)
	}
}

func TestTheRecordOfALongRunIsBounded(t *testing.T) {
	racedetector.Skip(t)
	c := newCounter(t)
	for range 10_500 {
		_, _ = c.service.Client().Post(c.service.URL()+"/api/v2/initialize", "", nil)
	}
	events := c.service.Events()
	assert.LessOrEqual(t, len(events), 10_000)
	assert.Equal(t, 10_500, events[len(events)-1].Number)

	c = newCounter(t)
	order := c.mint(t)
	c.service.Advance(time.Minute)
	for range 1_500 {
		c.post(t, ramp.Testnet, `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}`)
	}
	events = c.service.Events()
	assert.LessOrEqual(t, len(events), 1_100)
	assert.True(t, slices.IsSortedFunc(events, func(a, b control.Event) int { return a.Number - b.Number }))
	of := func(e control.Event) bool { return e.UUID == order.UUID }
	assert.Equal(t, 7, len(events)-len(slices.DeleteFunc(slices.Clone(events), of)), "polls crowd nothing out")

	c.post(t, ramp.Testnet, "["+strings.Repeat("1,", 500_000)+"1]")
	events = c.service.Events()
	assert.LessOrEqual(t, len(events[len(events)-1].Request.Body), 64<<10+len("…"))
}
