package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/api"
	"github.com/token-ramp/ramp-go/ramptest/internal/report"
)

// emulator notes what it is asked, and gives set answers.
type emulator struct {
	asked  []any
	answer any
	err    error
}

func answered[A any](e *emulator, asked ...any) (answer A, err error) {
	e.asked = asked
	if e.err == nil {
		answer = e.answer.(A)
	}
	return answer, e.err
}

func (e *emulator) Describe(context.Context) (control.Description, error) {
	return answered[control.Description](e)
}

func (e *emulator) Start(_ context.Context, r control.StartRequest) (control.OrderReport, error) {
	return answered[control.OrderReport](e, r)
}

func (e *emulator) Orders(_ context.Context, q control.OrdersQuery) (control.OrderList, error) {
	return answered[control.OrderList](e, q)
}

func (e *emulator) Order(_ context.Context, id string, q control.OrderQuery) (control.OrderReport, error) {
	return answered[control.OrderReport](e, id, q)
}

func (e *emulator) Send(_ context.Context, id string, r control.SendRequest) (control.Sent, error) {
	return answered[control.Sent](e, id, r)
}

func (e *emulator) Advance(_ context.Context, r control.AdvanceRequest) (control.Advanced, error) {
	return answered[control.Advanced](e, r)
}

func (e *emulator) Fail(_ context.Context, r control.FailRequest) (control.Done, error) {
	return answered[control.Done](e, r)
}

func (e *emulator) SetNode(_ context.Context, r control.NodeRequest) (control.Done, error) {
	return answered[control.Done](e, r)
}

func (e *emulator) Events(_ context.Context, q control.EventsQuery) (control.EventList, error) {
	return answered[control.EventList](e, q)
}

func (e *emulator) Check(context.Context) (control.Checked, error) {
	return answered[control.Checked](e)
}

func (e *emulator) Reset(_ context.Context, r control.ResetRequest) (control.Done, error) {
	return answered[control.Done](e, r)
}

// dial returns a client of an emulator.
func dial(t *testing.T, e *emulator) *control.Client {
	server := httptest.NewServer(api.Handler(e, func(r *http.Request) *control.Error {
		if r.Header.Get("Authorization") != "Bearer a token" {
			return report.Errorf(control.CodeUnauthorized, "who is it?")
		}
		return nil
	}, 1<<20))
	t.Cleanup(server.Close)
	return &control.Client{URL: server.URL, Token: "a token"}
}

func anOrder() control.OrderReport {
	o := control.OrderReport{UUID: uuid.New(), Do: "burn", SessionID: "session-1", Amount: "3", Network: ramp.Testnet,
		Assets: []control.AssetAmount{{ID: "gold", Amount: "7"}}, Faults: []string{"result-twice"},
		Placed: time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC), TxHash: common.Hash{1}, Delivery: "confirmed", Attempts: 2,
		Over: true, Moved: map[string]string{"gold": "-7"}, Imbalances: []control.Imbalance{}}
	o.State, o.Attention, o.Said, o.Next.At = "waiting", true, "It <waits>.", o.Placed
	return o
}

// request is a request of the API, with what the emulator must then be asked, and its answer.
type request struct {
	call   func(context.Context, api.Emulator) (any, error)
	asked  []any
	answer any
}

// with returns a request with a query or a body, and of returns one that is about an order too.
func with[Q, A any](do func(api.Emulator, context.Context, Q) (A, error), asked Q, answer A) request {
	return request{func(ctx context.Context, e api.Emulator) (any, error) { return do(e, ctx, asked) },
		[]any{asked}, answer}
}

func of[Q, A any](do func(api.Emulator, context.Context, string, Q) (A, error), id string, asked Q, answer A) request {
	return request{func(ctx context.Context, e api.Emulator) (any, error) { return do(e, ctx, id, asked) },
		[]any{id, asked}, answer}
}

// A client is the emulator that it calls: each request and each answer arrives whole.
func TestAClientIsTheEmulator(t *testing.T) {
	id := uuid.NewString()
	order := anOrder()
	for name, test := range map[string]request{
		"describe": {func(ctx context.Context, e api.Emulator) (any, error) { return e.Describe(ctx) }, nil,
			control.Description{Speed: 60, Validator: common.Address{2},
				Chains: map[ramp.Network]control.Chain{ramp.Testnet: {URL: "u", ID: 7002}}}},
		"start": with(api.Emulator.Start,
			control.StartRequest{Do: "mint", SessionID: "s", Amount: "0.1", Faults: []string{"f"}, Wait: "1s",
				Terms: &control.Terms{Network: ramp.Mainnet, MintFeeBps: 5,
					Outputs: []control.Item{{ID: "i", Amount: "9007199254740993"}}}}, order),
		"orders": with(api.Emulator.Orders,
			control.OrdersQuery{SessionID: "a b&c", State: "done", Attention: true, Before: id, Limit: 7},
			control.OrderList{Orders: []control.OrderReport{order}, Total: 2, More: true}),
		"order": of(api.Emulator.Order, "58db", control.OrderQuery{Wait: "30s"}, order),
		"send": of(api.Emulator.Send, id, control.SendRequest{Outcome: "failed"},
			control.Sent{Order: order, Error: "no"}),
		"advance": with(api.Emulator.Advance, control.AdvanceRequest{By: "15m"},
			control.Advanced{Now: order.Placed, Deliveries: []control.Delivery{{UUID: order.UUID, Status: 200}}}),
		"fail": with(api.Emulator.Fail,
			control.FailRequest{Initialize: []string{"invalid mac"}, RPC: []int{429, -32005}}, control.Done{}),
		"node": with(api.Emulator.SetNode,
			control.NodeRequest{Network: ramp.Testnet, Stands: true, Behind: 5, MaxLogs: 1, Forgets: "1h"},
			control.Done{}),
		"events": with(api.Emulator.Events,
			control.EventsQuery{After: 10_000_000, UUID: id, Routine: true, Limit: 3, Wait: "1s"},
			control.EventList{Events: []control.Event{{Number: 12, Kind: control.KindChain, Outcome: "<a>"}}}),
		"check": {func(ctx context.Context, e api.Emulator) (any, error) { return e.Check(ctx) }, nil,
			control.Checked{Problems: []string{"it lists <a>"}}},
		"reset": with(api.Emulator.Reset, control.ResetRequest{}, control.Done{}),
	} {
		t.Run(name, func(t *testing.T) {
			e := &emulator{answer: test.answer}
			c := dial(t, e)
			answer := must.Get(test.call(t.Context(), c))(t)
			assert.Equal(t, test.asked, e.asked)
			assert.Equal(t, test.answer, answer)

			want := &control.Error{Code: control.CodeRejected, Message: "no", GameStatus: 200,
				ErrorCode: "INVALID_BALANCE"}
			e.err = errors.Join(want)
			_, err := test.call(t.Context(), c)
			assert.Equal(t, want, err)

			c.Token = ""
			_, err = test.call(t.Context(), c)
			assert.Equal(t, report.Errorf(control.CodeUnauthorized, "who is it?"), err)
		})
	}
}

// replaced is a transport of the program that does not lead to the emulator: a proxy, or a double for tests.
type replaced struct{}

func (replaced) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the transport of the program")
}

func TestOnlyAClientThatIsGivenOneUsesATransportOfTheProgram(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = replaced{}
	c := dial(t, &emulator{answer: control.Done{}})
	_, err := c.Fail(t.Context(), control.FailRequest{})
	require.NoError(t, err)
	c.HTTPClient = http.DefaultClient
	_, err = c.Fail(t.Context(), control.FailRequest{})
	assert.ErrorContains(t, err, "the transport of the program")
}

// The token must not reach another server.
func TestARedirectIsNotFollowed(t *testing.T) {
	emulator := dial(t, &emulator{answer: control.Done{}})
	moved := httptest.NewServer(http.RedirectHandler(emulator.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	emulator.URL = moved.URL
	_, err := emulator.Fail(t.Context(), control.FailRequest{})
	assert.ErrorIs(t, err, control.ErrNoEmulator)
}

func TestAServerOfSomethingElseIsNoEmulator(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"an object":        func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{}`)) },
		"a page":           func(w http.ResponseWriter) { _, _ = w.Write([]byte(`<html>`)) },
		"a page not found": func(w http.ResponseWriter) { w.WriteHeader(404) },
		"another error": func(w http.ResponseWriter) {
			w.WriteHeader(404)
			_,
				_ = w.Write([]byte(`{"error":{"code":"gone"}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
			defer server.Close()
			_, err := (&control.Client{URL: server.URL}).Describe(t.Context())
			assert.ErrorIs(t, err, control.ErrNoEmulator)
		})
	}
}

// The time that a call took is text, and a number of nanoseconds in state files of earlier releases.
func TestWhatACallTookIsText(t *testing.T) {
	for _, test := range []struct{ text, earlier string }{
		{`"took":"1.5s"`, `"took":1500000000`},
		{`"took":"1m30s"`, `"took":90000000000`},
		{`"took":"250µs"`, `"took":250000`},
	} {
		var event, read control.Event
		require.NoError(t, json.Unmarshal([]byte("{"+test.earlier+"}"), &event))
		text, err := json.Marshal(event)
		require.NoError(t, err)
		assert.Contains(t, string(text), test.text)
		require.NoError(t, json.Unmarshal(text, &read))
		assert.Equal(t, event.Took, read.Took)
	}
	text, err := json.Marshal(control.Event{})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "took")
}
