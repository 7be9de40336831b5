package ramptest_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// answer is what the control API says, whatever was asked.
type answer struct {
	shown
	Order      *shown
	Orders     []shown
	Total      int
	More       bool
	Calls      []control.Event
	Needing    int `json:"need_attention"`
	Now        time.Time
	Deliveries []control.Delivery
	Events     []control.Event
	Run        string
	Error      json.RawMessage
}

type shown = control.OrderReport

// problem is the error of an answer, as its code and its message.
func (a answer) problem() string {
	var e struct{ Code, Message string }
	if json.Unmarshal(a.Error, &e) != nil {
		return string(a.Error)
	}
	return e.Code + ": " + e.Message
}

// control calls the control API. headers are pairs.
func (c *counter) control(t *testing.T, method, path, body string, headers ...string) (status int, a answer) {
	t.Helper()
	if method == http.MethodPost {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	response := c.send(t, method, path, body, headers...)
	text := whole(t, response)
	require.NoError(t, json.Unmarshal([]byte(text), &a), text)
	assert.NotContains(t, text, "token-1", "no access token is shown")
	return response.StatusCode, a
}

const trading = `"terms":{"network":"testnet","project_id":"project-1",
		"token":"0x00000000000000000000000000000000000070c3",
	"materials":[{"id":"item_gold","amount":100}],"outputs":[{"id":"item_gold","amount":100}]}`

const player = `"session_id":"session-1","access_token":"token-1"`

// onWire makes the service listen.
func onWire(t *testing.T) func(*ramptest.Config) {
	listener := must.Get(loopback.Listen())(t)
	return func(c *ramptest.Config) { c.Standalone.Listener = listener }
}

// running lets the clock run so fast that a minute is nothing.
func running(c *ramptest.Config) { c.Standalone.Speed = 1000 }

func TestControlStartsAnOrderAndWaitsForItsEnd(t *testing.T) {
	c := newCounter(t, running)
	status, order := c.control(t, "POST", "/control/orders",
		`{"do":"mint",`+player+`,"amount":"10","wait":"30s",`+trading+`}`)
	require.Equal(t, 200, status, order.problem())
	assert.EqualValues(t, ramptest.Confirmed, order.Delivery)
	assert.True(t, order.Over)
	assert.False(t, order.Loss)
	assert.Equal(t, "succeeded", order.TxStatus)
	assert.NotZero(t, order.Block)
	assert.Equal(t, 1, order.Attempts)
	assert.Equal(t, 200, order.LastStatus)
	assert.Equal(t, "10", order.Amount)
	assert.Equal(t, map[string]string{"item_gold": "-100"}, order.Moved)
	assert.Equal(t, "session-1", order.SessionID)

	status, again := c.control(t, "POST", "/control/orders",
		`{"do":"burn","like":"`+
			order.UUID.String()[:8]+`","faults":["transaction-fails","lost-answer=result"],"wait":"30s"}`)
	require.Equal(t, 200, status, again.problem())
	assert.NotEqual(t, order.UUID, again.UUID)
	assert.Equal(t, "burn", again.Do)
	assert.Equal(t, "10", again.Amount, "as of the order that it is like")
	assert.Equal(t, []string{"transaction-fails", "lost-answer=result"}, again.Faults)
	assert.Equal(t, "failed", again.TxStatus)
	assert.Equal(t, map[string]string{}, again.Moved)
	assert.Equal(t, 2, again.Attempts)

	status, listed := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, 200, status)
	require.Len(t, listed.Orders, 2)
	assert.Equal(t, again.UUID, listed.Orders[0].UUID, "the newest is the first")
	_, listed = c.control(t, "GET", "/control/orders?limit=1&state=done&session_id=session-1", "")
	assert.Len(t, listed.Orders, 1)
	assert.Equal(t, 2, listed.Total)
	_, listed = c.control(t, "GET", "/control/orders?session_id=nobody", "")
	assert.Empty(t, listed.Orders)
}

func TestControlTakesTheUUIDOfTheGame(t *testing.T) {
	c := newCounter(t)
	id := c.initialize(t)
	body := `{"do":"mint",` + player + `,"uuid":"` + id.String() + `"}`
	status, order := c.control(t, "POST", "/control/orders", body)
	require.Equal(t, 200, status, order.problem())
	assert.Equal(t, id, order.UUID)
	assert.EqualValues(t, ramptest.Pending, order.Delivery)
	assert.False(t, order.Over)
	status, again := c.control(t, "POST", "/control/orders", body)
	assert.Equal(t, 200, status, "the same request is the same order")
	assert.Equal(t, order.UUID, again.UUID)
	_, again = c.control(t, "POST", "/control/orders", strings.Replace(body, "{", `{"faults":["result-twice"],`, 1))
	assert.Contains(t, again.problem(), "placed: ")
	other := c.initialize(t)
	status, known := c.control(t, "POST", "/control/orders",
		`{"do":"mint","session_id":"session-1","uuid":"`+other.String()+`"}`)
	assert.Equal(t, 200, status, "the token of a session that was seen need not be given: %s", known.problem())
}

// An answer that is lost on purpose is no failure of the game, but a failure beside it is.
func TestControlTellsWhatTheEmulatorDid(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Audit = ramptest.AuditReport })
	status, lost := c.control(t, "POST", "/control/orders",
		`{"do":"mint",`+player+`,"faults":["lost-answer=validate"],`+trading+`}`)
	assert.Equal(t, 409, status)
	assert.Contains(t, lost.problem(), "lost_answer: the answer was lost on purpose: start the same order again")
	var e struct{ UUID string }
	require.NoError(t, json.Unmarshal(lost.Error, &e))
	status, order := c.control(t, "POST", "/control/orders", `{"do":"mint",`+player+`,"uuid":"`+e.UUID+`"}`)
	assert.Equal(t, 200, status)
	assert.EqualValues(t, "waiting", order.State)

	c = newCounter(t, before(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if r.URL.Path == ramp.PathResult && r.Header.Get("X-Hmac-Signature") == "" {
			_, _ = io.WriteString(w, `{"success":true,"errorCode":null,"data":null}`)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	_, order = c.control(t, "POST", "/control/orders",
		`{"do":"mint",`+player+`,"faults":["lost-answer=result","missing-hmac=result"],`+trading+`}`)
	_, passed := c.control(t, "POST", "/control/advance", `{"by":"1m"}`)
	require.Len(t, passed.Deliveries, 1)
	assert.True(t, passed.Deliveries[0].Lost)
	assert.Contains(t, passed.Deliveries[0].Error, "accepted a call whose HMAC")
}

func TestControlLetsTimePass(t *testing.T) {
	c := newCounter(t)
	_, order := c.control(t, "POST", "/control/orders",
		`{"do":"mint",`+player+`,"faults":["lost-answer=result"],"wait":"1h",`+trading+`}`)
	assert.EqualValues(t, ramptest.Pending, order.Delivery,
		"nothing happens by itself while the clock stands still, so nobody waits")
	assert.False(t, order.Next.At.IsZero())
	path := "/control/orders/" + order.UUID.String()
	status, pending := c.control(t, "POST", path+"/send", `{}`)
	assert.Equal(t, 409, status)
	assert.Contains(t, pending.problem(), "pending: ")

	status, passed := c.control(t, "POST", "/control/advance", `{"by":"1m"}`)
	assert.Equal(t, 200, status)
	require.Len(t, passed.Deliveries, 1)
	assert.Equal(t, order.UUID, passed.Deliveries[0].UUID)
	assert.True(t, passed.Deliveries[0].Lost)
	assert.Empty(t, passed.Deliveries[0].Error, "it was lost on purpose")
	assert.Equal(t, c.service.Now().UTC(), passed.Now.UTC())
	_, order = c.control(t, "GET", path, "")
	assert.EqualValues(t, ramptest.Delivering, order.Delivery)
	assert.WithinDuration(t, c.service.Now().Add(4*time.Minute), order.Next.At, 2*time.Second)

	status, resent := c.control(t, "POST", path+"/send", `{}`)
	assert.Equal(t, 200, status)
	assert.Empty(t, resent.Error)
	assert.EqualValues(t, ramptest.Confirmed, resent.Order.Delivery)
	assert.True(t, resent.Order.Over, "the repetition that was planned is not made")

	_, order = c.control(t, "POST", "/control/orders",
		`{"do":"mint",`+player+`,"faults":["stays-pending"],"wait":"1h",`+trading+`}`)
	assert.True(t, order.Over, "nothing more happens by itself")
	_, ended := c.control(t, "POST", "/control/orders/"+order.UUID.String()+"/send", `{"outcome":"failed"}`)
	assert.Equal(t, "failed", ended.Order.TxStatus)
	assert.EqualValues(t, ramptest.Confirmed, ended.Order.Delivery)
}

func TestControlReportsALoss(t *testing.T) {
	c := newCounter(t, running, answering(ramp.PathResult, 200, confirmed), reporting)
	_, order := c.control(t, "POST", "/control/orders",
		`{"do":"mint",`+player+`,"faults":["transaction-fails"],"wait":"30s",`+trading+`}`)
	assert.True(t, order.Over)
	assert.True(t, order.Loss)
	require.Len(t, order.Imbalances, 1)
	assert.Contains(t, order.Imbalances[0].Problem, "must give back 100 item_gold")
	require.Len(t, order.Imbalances[0].Assets, 1)
	assert.Equal(t, "900", order.Imbalances[0].Assets[0].After)
	assert.Equal(t, "1000", order.Imbalances[0].Assets[0].Expected)
}

func TestControlListsAndStreamsEvents(t *testing.T) {
	c := newCounter(t, onWire(t))
	_, order := c.control(t, "POST", "/control/orders", `{"do":"mint",`+player+`,`+trading+`}`)
	_, listed := c.control(t, "GET", "/control/events?uuid="+order.UUID.String(), "")
	require.NotEmpty(t, listed.Events)
	chain := listed.Events[len(listed.Events)-1]
	assert.Equal(t, control.KindChain, chain.Kind)
	assert.Equal(t, control.TxSubmitted, chain.Status)
	assert.EqualValues(t, "testnet", chain.Network)
	assert.NotZero(t, chain.TxHash)

	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", c.service.URL()+"/control/events?after=0", nil))(t)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", strconv.Itoa(chain.Number))
	stream := must.Get(http.DefaultClient.Do(r))(t)
	defer stream.Body.Close()
	assert.Equal(t, "text/event-stream", stream.Header.Get("Content-Type"))
	c.service.Advance(time.Minute)
	var kinds []string
	for lines := bufio.NewScanner(stream.Body); len(kinds) < 3 && lines.Scan(); {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var e control.Event
			require.NoError(t, json.Unmarshal([]byte(data), &e))
			assert.Greater(t, e.Number, chain.Number, "the stream goes on where the caller was")
			if e.Kind != control.KindBooks {
				assert.Equal(t, control.TxSucceeded, e.Status)
				assert.NotZero(t, e.Block)
				assert.Equal(t, chain.TxHash, e.TxHash)
			}
		}
	}
	assert.Equal(t, []string{"chain", "result", "books"}, kinds)
}

func TestControlSaysWhatIsWrong(t *testing.T) {
	c := newCounter(t)
	expired := c.initialize(t)
	c.service.Advance(time.Hour)
	id := c.initialize(t).String()
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/control/orders", ``, 400, "do must be mint or burn"},
		{"POST", "/control/orders", ` `, 400, "invalid: the body must be a JSON object"},
		{"POST", "/control/orders", `{"do":"mint"}{}`, 400, "a JSON object"},
		{"POST", "/control/orders/" + id + "/send", `null`, 400, "must be a JSON object"},
		{"POST", "/control/advance", `{"by":"` + strings.Repeat("1", 1<<20) + `"}`, 400, "too large"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"like":"` + strings.Repeat("x", 10000) + `"}`, 404,
			"no such order"},
		{"POST", "/control/orders", `{"do":"steal"}`, 400, "do must be mint or burn"},
		{"POST", "/control/orders", `{"do":7}`, 400, "do must be a string"},
		{"POST", "/control/orders", `{"do":"mint","fault":"result-twice"}`, 400,
			`there is no member "fault"; there are access_token, amount, do, faults, like, session_id, terms, ` +
				`uuid, wait`},
		{"POST", "/control/orders", `{"do":"mint","Do":"burn"}`, 400, `there is no member "Do"`},
		{"POST", "/control/orders", `{"do":"mint","do":"burn"}`, 400, "the member do is given twice"},
		{"POST", "/control/orders", `{"do":"mint","terms":{"materials":[{"id":"a"},{"ID":"b"}]}}`, 400,
			`there is no member "terms.materials[1].ID"; there are amount, id`},
		{"POST", "/control/orders", `{"do":"mint","terms":[]}`, 400, "terms must be an object"},
		{"POST", "/control/orders", `{"do":"mint","faults":"result-twice"}`, 400, "faults must be a list"},
		{"POST", "/control/orders", `{"do":"mint","faults":[1]}`, 400, "faults[0] must be a string"},
		{"POST", "/control/orders", `{"do":"mint","amount":"many"}`, 400, "amount must be a number"},
		{"POST", "/control/orders", `{"do":"mint","terms":{"mint_fee_bps":0.5}}`, 400,
			"terms.mint_fee_bps must be a whole number"},
		{"POST", "/control/orders?wait=30s", `{"do":"mint"}`, 400, `there is no parameter "wait"; there are none`},
		{"POST", "/control/reset", `{"orders":true}`, 400, `there is no member "orders"; there are none`},
		{"GET", "/control/orders?session=session-1", ``, 400,
			`there is no parameter "session"; there are attention, before, limit, session_id, state`},
		{"GET", "/control/orders?state=done&state=loss", ``, 400, "the parameter state is given twice"},
		{"GET", "/control/orders?attention=maybe", ``, 400, "attention must be true or false"},
		{"GET", "/control/orders?before=" + id, ``, 404, "no order with this UUID"},
		{"GET", "/control/events?limit=many", ``, 400, "limit must be a whole number"},
		{"PUT", "/control/orders", ``, 405, "method: /control/orders has no method PUT, but GET, POST"},
		{"GET", "/control/advance", ``, 405, "method: /control/advance has no method GET, but POST"},
		{"POST", "/control/orders", `{"do":"mint","uuid":"` + id + `"}`, 400, "session_id is required"},
		{"POST", "/control/orders", `{"do":"mint","session_id":"s","uuid":"` + id + `"}`, 400,
			"access_token is required"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `}`, 400, "one of uuid, like and terms"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"uuid":"` + id + `",` + trading + `}`, 400,
			"one of uuid, like and terms"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"uuid":"x"}`, 400, "must be a UUID"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"uuid":"` + uuid.NewString() + `"}`, 404,
			"not_found: the service knows no such UUID"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"uuid":"` + expired.String() + `"}`, 410, "expired: "},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"amount":"0","uuid":"` + id + `"}`, 400, "above 0"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"amount":1e999999,"uuid":"` + id + `"}`, 400,
			"above 0"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"wait":"2h","uuid":"` + id + `"}`, 400, "at most 1h"},
		{"POST", "/control/orders",
			`{"do":"mint",` + player + `,"faults":["result-at-once=100000000"],"uuid":"` + id + `"}`, 400,
			"from 1 to 100"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"terms":{"network":"moon","project_id":"p"}}`, 400,
			"terms.network"},
		{"POST", "/control/orders", `{"do":"mint",` + player + `,"terms":{"network":"testnet"}}`, 400,
			"terms.project_id"},
		{"POST", "/control/orders",
			`{"do":"mint",` + player + `,"terms":{"network":"testnet","project_id":"p","token":"0x1"}}`, 400,
			"terms.token"},
		{"POST", "/control/orders",
			strings.Replace(`{"do":"mint",`+player+`,`+trading+`}`, `"materials":[{"id":"item_gold","amount":100}],`,
				``, 1), 400, "the terms have nothing for a mint"},
		{"POST", "/control/orders", strings.Replace(`{"do":"mint",`+player+`,`+trading+`}`, `100`, `1000000`, 1), 422,
			"rejected: the game rejected the call with HTTP 200 and \"INVALID_BALANCE\": the order takes 1,000,000 " +
				"item_gold; the player owned 1,000 item_gold"},
		{"GET", "/control/orders?limit=1001", ``, 400, "limit must be"},
		{"GET", "/control/orders?state=confirmed", ``, 400, "state must be"},
		{"GET", "/control/orders/x", ``, 404, "first 4 characters"},
		{"GET", "/control/orders/" + id, ``, 404, "no order with this UUID"},
		{"GET", "/control/events?after=x", ``, 400, "after must be"},
		{"GET", "/control/events?uuid=x", ``, 400, "uuid must be"},
		{"POST", "/control/advance", `{}`, 400, "by must be"},
		{"POST", "/control/advance", `{"by":"-1m"}`, 400, "by must be"},
		{"POST", "/control/advance", `{"by":"2000000h"}`, 400, "by must be"},
		{"POST", "/control/orders/" + id + "/send", `{}`, 404, "not_found"},
		{"POST", "/control/failures", `{"initialize":["bad luck"]}`, 400, "initialize has an unknown failure"},
		{"POST", "/control/node", `{"network":"moon","stands":true}`, 400, "network must be one of [mainnet testnet]"},
		{"POST", "/control/node", `{"network":"testnet","behind":-1}`, 400, "behind and max_logs must not be negative"},
		{"POST", "/control/node", `{"network":"testnet","forgets":"-1s"}`, 400, "forgets must be a time such as"},
		{"POST", "/control/node", `{"network":"testnet","stands":1}`, 400, "cannot be read"},
		{"POST", "/control/failures", `{"rpc":[100]}`, 400, "rpc has a number that is neither"},
		{"GET", "/control/what", ``, 404, "there is no path /control/what"},
	} {
		status, a := c.control(t, test.method, test.path, test.body)
		assert.Equal(t, test.status, status, test.body)
		assert.Contains(t, a.problem(), test.want, test.body)
	}
}

func TestControlListsAllOrdersAndEventsPageByPage(t *testing.T) {
	c := newCounter(t)
	var want []uuid.UUID
	for range 5 {
		want = append(want, c.mint(t).UUID)
	}
	slices.Reverse(want)
	var got []uuid.UUID
	for before, more := "", true; more; {
		_, page := c.control(t, "GET", "/control/orders?limit=2&before="+before, "")
		assert.Equal(t, 5, page.Total)
		for _, o := range page.Orders {
			got, before = append(got, o.UUID), o.UUID.String()
		}
		more = page.More
	}
	assert.Equal(t, want, got)

	_, all := c.control(t, "GET", "/control/events", "")
	assert.False(t, all.More)
	var events []control.Event
	for after, more := 0, true; more; {
		_, page := c.control(t, "GET", "/control/events?limit=7&after="+strconv.Itoa(after), "")
		events, more = append(events, page.Events...), page.More
		after = events[len(events)-1].Number
	}
	assert.Equal(t, all.Events, events)
}

func TestControlForgetsEverythingBetweenTests(t *testing.T) {
	epoch := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newCounter(t, kept(t), func(c *ramptest.Config) { c.Epoch, c.Audit = epoch, ramptest.AuditReport })
	wallet := c.service.Wallet(c.session)
	order := c.mint(t, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult))
	c.mint(t)
	c.service.Advance(time.Minute)
	status, _ := c.control(t, "POST", "/control/failures", `{"initialize":["invalid mac","unavailable"],"rpc":[503]}`)
	require.Equal(t, 200, status)
	_, err := c.client.Initialize(t.Context(), request())
	assert.ErrorContains(t, err, "invalid mac")

	status, a := c.control(t, "POST", "/control/reset", `{}`)
	require.Equal(t, 200, status, a.problem())
	assert.True(t, epoch.Equal(c.service.Now()), "the clock is where it began")
	assert.Empty(t, c.service.Events())
	assert.Empty(t, c.service.Imbalances())
	_, listed := c.control(t, "GET", "/control/orders", "")
	assert.Zero(t, listed.Total)
	status, _ = c.control(t, "GET", "/control/orders/"+order.UUID.String(), "")
	assert.Equal(t, 404, status)
	assert.Empty(t, c.service.Advance(time.Hour), "no result is due")
	c.initialize(t) // which no longer fails
	_, err = nodeOf(t, c.service).Receipt(t.Context(), order.TxHash)
	assert.ErrorIs(t, err, ramp.ErrNotFound)
	assert.Equal(t, wallet, c.service.Wallet(c.session))
	c.mint(t)
	assert.Len(t, c.service.Advance(time.Minute), 1, "a new order takes its way")

	c.control(t, "POST", "/control/reset", `{}`)
	c.restart(t, c.handler)
	_, listed = c.control(t, "GET", "/control/orders", "")
	assert.Zero(t, listed.Total)
	assert.Empty(t, c.service.Events())
	c.mint(t)
	assert.Len(t, c.service.Advance(time.Minute), 1)
}

func TestControlAsksForItsToken(t *testing.T) {
	c := newCounter(t, onWire(t), func(c *ramptest.Config) {
		c.Standalone.ControlToken, c.Standalone.PublicURL = "token of the desk", "https://desk.example"
	})
	direct := func(path string, headers ...string) int {
		return c.direct("GET", path, "", away, append([]string{"Host", "desk.example"}, headers...)...).Code
	}
	assert.Equal(t, 401, direct("/control"))
	assert.Equal(t, 401, direct("/control?token="))
	assert.Equal(t, 401, direct("/control", "Authorization", "Bearer wrong"))
	assert.Equal(t, 200, direct("/control?token=token+of+the+desk"))
	assert.Equal(t, 200, direct("/control", "Authorization", "Bearer token of the desk"))
	assert.Equal(t, 401, direct("/control", "Host", "attacker.example"),
		"a page of a name that was made to point here has no token")
	assert.Equal(t, 403, direct("/control?token=token+of+the+desk", "Origin", "https://attacker.example"))

	open := newCounter(t)
	assert.Equal(t, 200,
		open.direct("GET", "/control", "", here, "Host", "127.0.0.1", "Authorization", "Bearer x").Code,
		"it needs no token")
}

func TestControlEndsWithTheService(t *testing.T) {
	c := newCounter(t, onWire(t), func(c *ramptest.Config) { c.Standalone.Speed = 0.001 })
	waited := make(chan int, 1)
	_, order := c.control(t, "POST", "/control/orders", `{"do":"mint",`+player+`,`+trading+`}`)
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET",
		c.service.URL()+"/control/orders/"+order.UUID.String()+"?wait=1h", nil))(t)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		waited <- 0
	}()
	c.service.Close()
	select {
	case <-waited:
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on waiting")
	}
}

func TestAServiceForgetsFinishedOrdersIfAsked(t *testing.T) {
	three := func(c *ramptest.Config) { c.Standalone.KeepOrders = 3 }
	c := newCounter(t, kept(t), three, reporting)
	open := c.mint(t, ramptest.ResultNever())
	lost := c.mint(t, ramptest.TransactionFails())
	c.shop.done[lost.UUID] = true  // it gives nothing back
	c.service.Advance(time.Minute) // or the next order shares its block, which is kept then
	var first *ramptest.PlacedOrder
	for i := range 8 {
		minted := c.mint(t)
		first = cmp.Or(first, minted)
		c.service.Advance(time.Minute)
		if i == 6 {
			c.restart(t, c.handler, three, reporting)
		}
	}
	_, listed := c.control(t, "GET", "/control/orders", "")
	assert.LessOrEqual(t, listed.Total, 5, "3 that are finished, one more, and the open one")
	assert.GreaterOrEqual(t, listed.Total, 4)
	assert.Contains(t, c.page(t, "/"), "Needs attention 1", "a loss is forgotten last")
	status, _ := c.control(t, "GET", "/control/orders/"+open.UUID.String(), "")
	assert.Equal(t, 200, status, "an order that is not finished is kept")
	chain := nodeOf(t, c.service)
	_, err := chain.Receipt(t.Context(), first.TxHash)
	assert.ErrorIs(t, err, ramp.ErrNotFound)
	_, err = chain.Receipt(t.Context(), open.TxHash)
	assert.NoError(t, err)
	c.restart(t, c.handler, three, reporting)
	_, again := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, listed.Orders, again.Orders)

	for range 8 { // and if all of them are losses, the oldest
		c.shop.gold = 1000
		c.shop.done[c.mint(t, ramptest.TransactionFails()).UUID] = true
		c.service.Advance(time.Minute)
	}
	_, listed = c.control(t, "GET", "/control/orders", "")
	assert.LessOrEqual(t, listed.Total, 5)
}

func TestEachFaultIsReadAsItIsWritten(t *testing.T) {
	arguments := strings.NewReplacer("NUMBER", "0x7", "COUNT", "2", "DURATION", "10m0s", "CALL", "result")
	for _, form := range ramptest.FaultForms() {
		written := arguments.Replace(form[0])
		fault := must.Get(ramptest.ParseFault(written))(t)
		assert.Equal(t, written, fault.String())
		assert.NotEmpty(t, form[1])
	}
	for _, wrong := range []string{"", "bad-luck", "result-twice=2", "result-late", "result-late=soon",
		"result-late=-1m",
		"result-at-once=0", "lost-answer=assets", "slow-answer=result", "slow-answer=result:x", "transaction-type=x"} {
		_, err := ramptest.ParseFault(wrong)
		assert.Error(t, err, wrong)
	}
}

// A browser that leaves a page does not wait for what the game owns.
func TestACallThatItsCallerCancelsIsNoFailureOfTheGame(t *testing.T) {
	called := make(chan struct{})
	c := newCounter(t, onWire(t), before(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		close(called)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	_, err := c.service.Assets(ctx, c.session)
	assert.ErrorIs(t, err, context.Canceled)
	events := c.service.Events()
	require.Len(t, events, 1)
	assert.False(t, events[0].Failed)
	assert.Contains(t, events[0].Outcome, "canceled before the game answered")
}

// A caller who disconnects in the middle of an order has nevertheless placed it.
// Otherwise the game would have taken assets for an unknown order.
func TestAnOrderGoesOnIfItsCallerLeaves(t *testing.T) {
	for _, kind := range []string{"control API", "page"} {
		t.Run(kind, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			c := newCounter(t, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
				if r.URL.Path == ramp.PathValidate {
					leave()
				}
				game.ServeHTTP(w, r)
			}))
			id := c.initialize(t)
			body, media := `{"do":"mint",`+player+`,"uuid":"`+id.String()+`"}`, "application/json"
			path := "/control/orders"
			if kind == "page" {
				_, form := c.exchange(t)
				form.Set("uuid", id.String())
				path, body, media = "/exchange", form.Encode(), "application/x-www-form-urlencoded"
			}
			r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:4711"
			r.Header.Set("Content-Type", media)
			r.Header.Set("Origin", "http://localhost")
			c.service.ServeHTTP(httptest.NewRecorder(), r)
			require.Error(t, ctx.Err(), "the game was called")
			status, order := c.control(t, "GET", "/control/orders/"+id.String(), "")
			assert.Equal(t, 200, status, order.problem())
		})
	}
}

// A browser connects before it has anything to ask.
func TestAnIdleConnectionDoesNotKeepTheServiceOpen(t *testing.T) {
	c := newCounter(t, onWire(t))
	idle := must.Get(net.Dial("tcp", strings.TrimPrefix(c.service.URL(), "http://")))(t)
	defer idle.Close()
	status, _ := c.control(t, "GET", "/control/orders", "") // accepted after the idle one
	require.Equal(t, 200, status)
	began := time.Now()
	c.service.Close()
	assert.Less(t, time.Since(began), 3*time.Second)
}

// What a rejection is blamed on is what was seen: who calls, the key, or the UUID.
func TestARejectionBlamesNothingThatWasNotSeen(t *testing.T) {
	const uuids, login, key = "the game may accept only UUIDs of its own", "; log in to the game, and give the session",
		"so it is the HMAC key that it does not accept: the service's HMAC key has the fingerprint "
	for name, test := range map[string]struct {
		status     int
		code, want string
	}{
		"a policy":      {200, "UNKNOWN_ORDER", uuids},
		"a session":     {401, "INVALID_USER", login},
		"a session 200": {200, "SESSION_EXPIRED", login},
		"another key":   {401, "UNAUTHORIZED", key},
		"a balance":     {200, "INVALID_BALANCE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(t, reporting, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
				if r.URL.Path != ramp.PathValidate {
					game.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(test.status)
				fmt.Fprintf(w, `{"success":false,"errorCode":%q,"data":null}`, test.code)
			}))
			_, failed := c.control(t, "POST", "/control/orders", `{"do":"mint",`+player+`,`+trading+`}`)
			for _, blame := range []string{uuids, login, key} {
				assert.Equal(t, blame == test.want, strings.Contains(failed.problem(), blame), failed.problem())
			}
		})
	}
}

// A stream that goes on at an emulator that was started anew begins anew, and says of what run it is.
func TestAStreamOfAnotherRunBeginsAnew(t *testing.T) {
	c := newCounter(t)
	c.mint(t)
	_, first := c.control(t, "GET", "/control/events", "")
	last := first.Events[len(first.Events)-1].Number
	other := newCounter(t)
	other.initialize(t)
	for _, query := range []string{fmt.Sprint("after=", last), "after=1&run=" + first.Run} {
		_, anew := other.control(t, "GET", "/control/events?"+query, "")
		assert.Len(t, anew.Events, 1, query)
		assert.NotEqual(t, first.Run, anew.Run)
		_, rest := other.control(t, "GET", "/control/events?after=1&run="+anew.Run, "")
		assert.Empty(t, rest.Events)
	}

	kept := newCounter(t, kept(t))
	kept.initialize(t)
	_, before := kept.control(t, "GET", "/control/events", "")
	kept.restart(t, kept.handler)
	kept.initialize(t)
	_, after := kept.control(t, "GET", "/control/events?after=1&run="+before.Run, "")
	assert.Equal(t, before.Run, after.Run)
	require.Len(t, after.Events, 1)
	assert.Equal(t, 2, after.Events[0].Number, "a state file goes on")
}

// The network between game and service may fail at any call.
func TestCallsOfTheGameHangAndAreCutOff(t *testing.T) {
	for name, options := range map[string][]func(*ramptest.Config){"in memory": nil, "over HTTP": {onWire(t)}} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(t, append(options, reporting)...)
			status, _ := c.control(t, "POST", "/control/failures",
				`{"initialize":["no answer","cut off"],"rpc":[1000,1001],"assets":["lost answer","no answer",`+
					`"cut off"]}`)
			require.Equal(t, 200, status)
			http := c.service.Client()
			http.Timeout = 100 * time.Millisecond
			client := must.Get(ramp.NewClient(
				ramp.ClientConfig{URL: c.service.URL(), Key: c.key, HTTPClient: http, Retries: -1}))(t)
			node := must.Get(ramp.NewRPC(
				ramp.RPCConfig{URL: c.service.RPCURL(ramp.Testnet), HTTPClient: http, Retries: -1}))(t)
			for range 2 {
				_, err := client.Initialize(t.Context(), request())
				require.Error(t, err)
				_, err = node.BlockNumber(t.Context())
				require.Error(t, err)
			}
			for range 3 {
				_, err := c.service.Assets(t.Context(), c.session)
				require.ErrorIs(t, err, ramptest.ErrLostAnswer)
			}
			must.Get(client.Initialize(t.Context(), request()))(t)
			must.Get(node.BlockNumber(t.Context()))(t)
			must.Get(c.service.Assets(t.Context(), c.session))(t)
			var outcomes, assets []string
			for _, e := range c.service.Events() {
				if e.Kind == control.KindAssets {
					assets = append(assets, fmt.Sprint(e.Fault, " after ", e.Took >= control.Duration(10*time.Second),
						" whole ", json.Valid([]byte(e.Answer.Body))))
				}
				outcomes = append(outcomes, string(e.Kind)+" "+e.Outcome)
				assert.False(t, e.Failed, e.String())
			}
			assert.Equal(t, []string{"initialize no answer", "rpc no answer", "initialize cut off", "rpc cut off",
				"assets success, but the answer was lost on purpose",
				"assets success, but the answer was lost on purpose",
				"assets success, but the answer was lost on purpose", "initialize OK", "rpc success",
				"assets success"}, outcomes)
			assert.Equal(t, []string{"lost answer after false whole true", "no answer after true whole true",
				"cut off after false whole false", " after false whole true"}, assets)
			status, _ = c.control(t, "POST", "/control/failures", `{"assets":["cut"]}`)
			assert.Equal(t, 400, status)
		})
	}
}

// Pages, API and record say the same of a call that failed: what was seen, and what can be set.
func TestACallThatFailedSaysWhatWasSeen(t *testing.T) {
	answers := func(header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("Content-Encoding", header)
			}
			_, _ = io.WriteString(w, body)
		}
	}
	const assets = `{"success":true,"errorCode":null,"data":{"v1":{"assets":[]}}}`
	stopped := make(chan struct{}) // as in a debugger
	t.Cleanup(func() { close(stopped) })
	for name, test := range map[string]struct {
		game http.HandlerFunc
		tls  bool
		at   string // the scheme of the address
		want string
	}{
		"encoded": {answers("br", "x"), false, "http", `it is encoded as "br", for which nobody asked`},
		"a page":  {answers("", "<!doctype html>"), false, "http", "it is an HTML page"},
		"a mark":  {answers("", "\ufeff"+assets), false, "http", "it begins with a byte order mark"},
		"large": {answers("", `{"success":true,"errorCode":"`+strings.Repeat("x", 1_300_000)+`"}`), false, "http",
			"it has more than 1048576 bytes, and the service reads no more"},
		"stopped": {func(http.ResponseWriter, *http.Request) { <-stopped }, false, "http",
			"not within 200ms, which is Timeout of ramptest.Config, or -timeout of ramp emulate"},
		"its own certificate": {answers("", assets), true, "https", "from an authority that is not known here"},
		"https for http":      {answers("", assets), false, "https", "the address must begin with http://"},
		"http for https": {answers("", assets), true, "http",
			"the server speaks TLS, so its address must begin with https://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			game := httptest.NewUnstartedServer(test.game)
			game.Config.ErrorLog = log.New(io.Discard, "", 0)
			if test.tls {
				game.StartTLS()
			} else {
				game.Start()
			}
			t.Cleanup(game.CloseClientConnections)
			c := newCounter(t, reporting, func(c *ramptest.Config) {
				c.Game, c.Handler = test.at+"://"+game.Listener.Addr().String(), nil
				if name == "stopped" {
					c.Timeout = 200 * time.Millisecond
				}
			})
			_, err := c.service.Assets(t.Context(), c.session)
			require.ErrorContains(t, err, test.want)
			shown := html.UnescapeString(c.html(t, "/calls/1"))
			assert.Contains(t, shown, test.want)
			assert.NotContains(t, shown, "Config.Timeout")
		})
	}
}
