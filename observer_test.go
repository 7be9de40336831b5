package ramp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampproof"
)

// watcher records what an observer is called with, one text per event.
type watcher struct {
	mu     sync.Mutex
	events []string
	ended  []ramp.Operation
}

// path is the key of a context value: the operations that it is within.
type path struct{}

func (w *watcher) observer() ramp.Observer {
	return ramp.Observer{
		Start: func(ctx context.Context, op ramp.Operation) context.Context {
			w.note("start " + string(op.Kind) + " " + op.Name)
			outer, _ := ctx.Value(path{}).(string)
			return context.WithValue(ctx, path{}, outer+"/"+op.Name)
		},
		End: func(_ context.Context, op ramp.Operation) {
			event := "end " + string(op.Kind) + " " + op.Name
			if op.Step != nil {
				event += ": " + string(op.Step.Order.State) + map[bool]string{true: " new",
					false: " repeat"}[op.Step.New]
			}
			w.note(event)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ended = append(w.ended, op)
		},
	}
}

func (w *watcher) note(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

// take returns and clears the events so far.
func (w *watcher) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := strings.Join(w.events, ", ")
	w.events = nil
	return events
}

// last is the end of the last operation.
func (w *watcher) last() ramp.Operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[len(w.ended)-1]
}

// watchedStudio is a handler with a store and an observer.
type watchedStudio struct {
	*watcher
	handler *ramp.Handler
	key     ramp.HMACKey
	log     bytes.Buffer
}

func newWatchedStudio(t *testing.T, observer func(*watcher) ramp.Observer) *watchedStudio {
	t.Helper()
	s := &watchedStudio{watcher: &watcher{}, key: testKey(t)}
	game, _ := newVault(t, func(c *ramp.HandlerConfig) {
		c.Observer = observer(s.watcher)
		c.OnConflict = func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }
		c.Logger = slog.New(slog.NewJSONHandler(&s.log, nil))
	})
	s.handler = game.handler
	return s
}

func (s *watchedStudio) call(t *testing.T, answer answering, body oneorder.Object) ramp.Reply {
	t.Helper()
	return answer(t.Context(), signed(t, body.Bytes(t)), body.Bytes(t))
}

// record is the last record of the log.
func (s *watchedStudio) record(t *testing.T) map[string]any {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(s.log.Bytes()), []byte("\n"))
	var record map[string]any
	require.NoError(t, json.Unmarshal(lines[len(lines)-1], &record))
	return record
}

// The log and a metric have what a person on call needs to know.
func TestAnObserverAndTheLogSeeEveryStepOfAnOrder(t *testing.T) {
	s := newWatchedStudio(t, (*watcher).observer)
	failed := resultCall().With("receipt.status", "0x0")
	hash := resultCall()["tx_hash"]
	for _, c := range []struct {
		name   string
		answer answering
		body   oneorder.Object
		events string
		want   map[string]any // of the record; nil is absent
		seen   func(ramp.Operation) bool
	}{
		{"a mint", toValidate(s.handler), validateCall(),
			"start webhook validate, end webhook validate: accepted new",
			map[string]any{"level": "INFO", "endpoint": "validate", "uuid": testUUID, "direction": "mint", "new": true,
				"signed": true, "signer": testSigner(t).Address().Hex(),
				"tx_hash": nil, "conflict": nil, "outcome": "success"},
			func(op ramp.Operation) bool {
				return op.Err == nil && op.Code == "" && op.Status == 200 && op.Conflict == nil
			}},
		{"again", toValidate(s.handler), validateCall(),
			"start webhook validate, end webhook validate: accepted repeat",
			map[string]any{"new": false, "signed": true}, nil},
		{"with another digest", toValidate(s.handler), validateCall().With("digest", hash),
			"start webhook validate, end webhook validate",
			map[string]any{"level": "WARN", "new": nil, "conflict": "digest", "direction": "mint",
				"outcome": "ORDER_CONFLICT"},
			func(op ramp.Operation) bool {
				return op.Code == "ORDER_CONFLICT" && op.Conflict.Field == "digest" &&
					errors.Is(op.Err, ramp.ErrOrderConflict)
			}},
		{"its failure, whose intent cannot be read", toResult(s.handler), failed.With("intent", 7),
			"start webhook result, end webhook result: failed new",
			map[string]any{"level": "WARN", "new": true, "direction": "mint", "tx_hash": hash}, nil},
		{"again", toResult(s.handler), failed,
			"start webhook result, end webhook result: failed repeat",
			map[string]any{"level": "INFO", "new": false, "tx_hash": hash, "conflict": nil}, nil},
		{"under another tx_hash", toResult(s.handler), failed.With("tx_hash", "0x"+strings.Repeat("ab", 32)),
			"start webhook result, end webhook result: failed repeat",
			map[string]any{"level": "WARN", "new": false, "signed": nil, "signer": nil,
				"conflict": "tx_hash", "outcome": "success"},
			func(op ramp.Operation) bool {
				return op.Err == nil && op.Status == 200 && op.Conflict.Field == "tx_hash"
			}},
		{"a success after it", toResult(s.handler), resultCall().With("tx_hash", "a secret?"),
			"start webhook result, end webhook result",
			map[string]any{"level": "WARN", "new": nil, "conflict": "receipt.status", "tx_hash": nil,
				"outcome": string(ramp.CodeOrderConflict)},
			func(op ramp.Operation) bool {
				return op.Code == ramp.CodeOrderConflict && op.Status == 400 && op.TxHash == ""
			}},
	} {
		s.call(t, c.answer, c.body)
		assert.Equal(t, c.events, s.take(), c.name)
		record := s.record(t)
		for attribute, want := range c.want {
			assert.Equal(t, want, record[attribute], "%s: %s", c.name, attribute)
		}
		op := s.last()
		assert.Equal(t, uuid.MustParse(testUUID), op.UUID, c.name)
		assert.Equal(t, ramp.Mint, op.Direction, c.name)
		assert.Positive(t, op.Duration, c.name)
		assert.True(t, c.seen == nil || c.seen(op), "%s: %+v", c.name, op)
	}
	assert.Equal(t, ramp.Take, s.ended[0].Step.Effect.Kind)
	assert.Equal(t, ramp.GiveBack, s.ended[3].Step.Effect.Kind)
}

// The span of a webhook call is the parent of everything that is done within it.
func TestTheContextOfAnObserverReachesWhatIsWithin(t *testing.T) {
	var w watcher
	var within []string
	see := func(ctx context.Context) { within = append(within, ctx.Value(path{}).(string)) }
	node := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", ChainID: 1112, Observer: w.observer(),
		HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			see(r.Context())
			return (&oneorder.Chain{Receipt: string(oneorder.OnChain().Bytes(t)), Head: 10}).RoundTrip(r)
		})}}))(t)
	store := &ramp.MemoryStore{Apply: func(ctx context.Context, step ramp.Step) error {
		if step.Order.State != ramp.OrderAccepted {
			see(ctx)
		}
		return nil
	}}
	handler := newHandler(t, ramp.HandlerConfig{Players: noPlayers{}, Store: store,
		Confirm: rampproof.Confirmed(node, 1), Observer: w.observer()})
	order, body := validateCall().With("intent", oneorder.Burn()).Bytes(t),
		resultCall().With("intent", oneorder.Burn()).Bytes(t)
	require.Equal(t, 200, toValidate(handler)(t.Context(), signed(t, order), order).Status)
	w.take()
	require.Equal(t, 200, toResult(handler)(t.Context(), signed(t, body), body).Status)
	assert.Equal(t, []string{"/result/wait/batch", "/result"}, within)
	assert.Equal(t, "start webhook result, start rpc wait, start attempt batch, "+
		"end attempt batch, end rpc wait, end webhook result: succeeded new", w.take())
}

func TestAnObserverSeesEveryAttemptOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watcher
		client := &http.Client{Transport: &script{steps: steps{disconnect, status(503, nil, ""),
			status(200, nil, okAnswer)}}}
		api := must.Get(ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(t),
			HTTPClient: client, Observer: w.observer()}))(t)
		must.Get(api.Initialize(t.Context(), testRequest()))(t)
		const attempt = "start attempt initialize, end attempt initialize, "
		assert.Equal(t, "start initialize initialize, "+attempt+attempt+attempt+"end initialize initialize", w.take())
		var rejected *ramp.APIError
		assert.Error(t, w.ended[0].Err)
		assert.ErrorAs(t, w.ended[1].Err, &rejected)
		assert.NoError(t, w.ended[2].Err)
		assert.NotZero(t, w.ended[3].UUID)
		assert.Greater(t, w.ended[3].Duration, 250*time.Millisecond, "with its delays")

		client = &http.Client{Transport: &script{steps: steps{status(503, nil, ""), disconnect}}}
		node := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", HTTPClient: client, Retries: 1,
			Observer: w.observer()}))(t)
		require.Error(t, node.Batch(t.Context(), []ramp.BatchCall{{Method: "eth_blockNumber"}}))
		const batch = "start attempt batch, end attempt batch, "
		assert.Equal(t, "start rpc batch, "+batch+batch+"end rpc batch", w.take())
		assert.Error(t, w.last().Err)
	})
}

// A hook that panics must not cost a player anything. What it panics with may be nil: recover then returns
// nil, if the main package says so.
func TestAnObserverThatPanicsChangesNothing(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	observers := map[string]ramp.Observer{
		"a context that is nil": {Start: func(context.Context, ramp.Operation) context.Context { return nil }},
	}
	for _, cause := range []any{"a nil map", nil} {
		observers[fmt.Sprint("panic=", cause)] = ramp.Observer{
			Start: func(context.Context, ramp.Operation) context.Context { panic(cause) },
			End:   func(context.Context, ramp.Operation) { panic(cause) },
		}
	}
	for name, observer := range observers {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			before := slog.Default()
			defer slog.SetDefault(before)
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			s := newWatchedStudio(t, func(*watcher) ramp.Observer { return observer })
			assert.Equal(t, 200, s.call(t, toValidate(s.handler), validateCall()).Status)
			assert.Equal(t, 200, s.call(t, toResult(s.handler), resultCall()).Status)
			node := rpcOver(t, &oneorder.Chain{Head: 7}, ramp.RPCConfig{Observer: observer})
			_, err := node.BlockNumber(t.Context())
			assert.NoError(t, err)
			const panicked = `msg="ramp: hook panicked" function=`
			if observer.End == nil {
				assert.NotContains(t, log.String(), panicked)
				return
			}
			assert.Contains(t, log.String(), panicked+"Start")
			assert.Contains(t, log.String(), panicked+"End")
		})
	}
}

// panicking is a logger's handler that panics after a call was answered.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("the disk is full") }

// The order is stored when the call is logged, so a panic there must not cost the player
// the signature.
func TestALoggerThatPanicsCostsNobodyASignature(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(panicking{slog.DiscardHandler}))
	for _, logger := range []*slog.Logger{slog.Default(), nil} {
		s := newWatchedStudio(t, (*watcher).observer)
		config := inMemory(ramp.HandlerConfig{Terms: anyTerms, Key: testKey(t), Signer: testSigner(t), Logger: logger})
		handler := must.Get(ramp.NewHandler(config))(t)
		assert.Equal(t, 200, s.call(t, toValidate(handler), validateCall()).Status)
		assert.Equal(t, 500, s.call(t, toResult(handler), resultCall().Without("uuid")).Status)
	}
}

// Anybody can make calls without a valid HMAC, so they must neither fill the log, nor
// hide each other, nor look like a failing server. An observer hears of each.
func TestCallsWithoutAValidHMACAreLoggedOnceASecond(t *testing.T) {
	forged := http.Header{ramp.HeaderHMAC: {strings.Repeat("0", 64)}}
	wrongPath := httptest.NewRequest(http.MethodPost, "/ramp/result", nil)
	for code, send := range map[ramp.Code]func(h *ramp.Handler){
		ramp.CodeHMACMissing:  func(h *ramp.Handler) { toResult(h)(t.Context(), nil, []byte("{}")) },
		ramp.CodeHMACInvalid:  func(h *ramp.Handler) { toResult(h)(t.Context(), forged, []byte("{}")) },
		ramp.CodeBodyTooLarge: func(h *ramp.Handler) { toValidate(h)(t.Context(), forged, make([]byte, 101)) },
		ramp.CodeNotFound:     func(h *ramp.Handler) { h.ServeHTTP(httptest.NewRecorder(), wrongPath) },
		ramp.CodeInternal: func(h *ramp.Handler) {
			cut := httptest.NewRequest(http.MethodPost, ramp.PathResult, iotest.ErrReader(io.ErrUnexpectedEOF))
			cut.Header = forged
			h.ServeHTTP(httptest.NewRecorder(), cut)
		},
	} {
		t.Run(string(code), func(t *testing.T) {
			var log bytes.Buffer
			var seen []ramp.Operation
			synctest.Test(t, func(t *testing.T) {
				handler := must.Get(
					ramp.NewHandler(inMemory(ramp.HandlerConfig{Terms: anyTerms, Key: testKey(t), Signer: testSigner(t),
						MaxBody: 100, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
						Observer: ramp.Observer{End: func(_ context.Context,
							op ramp.Operation) {
							seen = append(seen, op)
						}}})))(t)
				for range 3 {
					for range 100 {
						send(handler)
					}
					body := []byte("{}") // genuine trouble in the same second
					toResult(handler)(t.Context(), http.Header{ramp.HeaderHMAC: {testKey(t).Sign(body)}}, body)
					time.Sleep(time.Second)
				}
			})
			var records []string
			for line := range strings.Lines(log.String()) {
				var r struct {
					Level, Outcome string
					Unverified     bool
					Suppressed     int
				}
				require.NoError(t, json.Unmarshal([]byte(line), &r))
				records = append(records, fmt.Sprint(r.Level, " ", r.Outcome, " ", r.Unverified, " ", r.Suppressed))
			}
			first, again := "WARN "+string(code)+" true 0", "WARN "+string(code)+" true 99"
			genuine := "ERROR INVALID_UUID false 0"
			assert.Equal(t, []string{first, genuine, again, genuine, again, genuine}, records)
			require.Len(t, seen, 303)
			for n, op := range seen {
				assert.Equal(t, n%101 != 100, op.Unverified)
			}
		})
	}
}

// The session of a result's body is signed, and that of its header is not.
func TestASessionThatContradictsTheSignedBodyIsLogged(t *testing.T) {
	s := newWatchedStudio(t, (*watcher).observer)
	s.call(t, toValidate(s.handler), validateCall())
	body := resultCall().Bytes(t)
	header := signed(t, body)
	header["x-dapp-sessionid"] = []string{"session-2"}
	assert.Equal(t, 200, toResult(s.handler)(t.Context(), header, body).Status)
	record := s.record(t)
	assert.Equal(t, []any{"WARN", "session-1", "session-2", "success"},
		[]any{record["level"], record["session_id"], record["header_session_id"], record["outcome"]})
}

// During a rotation, the log tells when the last call with an older key came.
func TestACallWithAPreviousKeyIsLogged(t *testing.T) {
	newest := must.Get(ramp.TextKey("the newest key"))(t)
	other := must.Get(ramp.TextKey("another older key"))(t)
	for _, c := range []struct {
		key  ramp.HMACKey
		want any
	}{
		{testKey(t), nil},
		{newest.WithPrevious(testKey(t)), 1.0},
		{newest.WithPrevious(other, testKey(t)), 2.0},
	} {
		var log bytes.Buffer
		handler := must.Get(
			ramp.NewHandler(inMemory(ramp.HandlerConfig{Terms: anyTerms, Key: c.key, Signer: testSigner(t),
				Logger: slog.New(slog.NewJSONHandler(&log, nil))})))(t)
		body := validateCall().Bytes(t)
		toValidate(handler)(t.Context(), signed(t, body), body)
		var record map[string]any
		require.NoError(t, json.Unmarshal(log.Bytes(), &record))
		assert.Equal(t, c.want, record["previous_key"], log.String())
	}
}

// No observer, no cost.
func TestTheZeroObserverAllocatesNothing(t *testing.T) {
	if racedetector.On {
		t.Skip("the race detector allocates")
	}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { ramp.ObserveNothing(t.Context()) }))

	handler := func(observer ramp.Observer) *ramp.Handler {
		return newHandler(t, ramp.HandlerConfig{Players: noPlayers{}, Store: yes{}, Observer: observer})
	}
	body := resultCall().Bytes(t)
	header := signed(t, body)
	cost := func(h *ramp.Handler) float64 {
		return testing.AllocsPerRun(200, func() { toResult(h)(t.Context(), header, body) })
	}
	quiet := ramp.Observer{
		Start: func(ctx context.Context, _ ramp.Operation) context.Context { return ctx },
		End:   func(context.Context, ramp.Operation) {},
	}
	assert.Equal(t, cost(handler(ramp.Observer{})), cost(handler(quiet)), "nor does one that does nothing")
}

// yes is a store that takes every call for a repeat.
type yes struct{}

func (yes) Update(context.Context, uuid.UUID, ramp.Transition) (ramp.Step, error) {
	return ramp.Step{}, nil
}

// Whoever reads the log of a game and that of the other side sees whether both have one key.
func TestACallOfAnotherKeyIsLoggedWithTheFingerprintOfOurs(t *testing.T) {
	s := newWatchedStudio(t, func(*watcher) ramp.Observer { return ramp.Observer{} })
	body := golden(t, "2.5-validate-mint.json")
	for _, key := range []ramp.HMACKey{must.Get(ramp.TextKey("another key"))(t), s.key} {
		s.log.Reset()
		r := httptest.NewRequest(http.MethodPost, ramp.PathValidate, bytes.NewReader(body))
		r.Header.Set(ramp.HeaderHMAC, key.Sign(body))
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
		logged := strings.Contains(s.log.String(), `"hmac_key":"`+s.key.Fingerprint()+`"`)
		assert.Equal(t, key.Fingerprint() != s.key.Fingerprint(), logged, s.log.String())
	}
}
