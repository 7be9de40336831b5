package ramp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
	"github.com/token-ramp/ramp-go/rampproof"
)

// These tests are about results that no answer of ours may lose: the service delivers one again
// only after HTTP 500 or no answer.

// mounts are the ways in which a call reaches a handler.
var mounts = map[string]func(h *ramp.Handler, method, path string, header http.Header) (ramp.Reply, http.Header){
	"ServeHTTP": func(h *ramp.Handler, method, path string, header http.Header) (ramp.Reply, http.Header) {
		r := &http.Request{Method: method, URL: &url.URL{Path: path}, Header: header, Body: http.NoBody}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return ramp.Reply{Status: w.Code, Body: w.Body.Bytes()}, w.Header()
	},
	"Answer": func(h *ramp.Handler, method, path string, header http.Header) (ramp.Reply, http.Header) {
		reply := h.Answer(context.Background(), method, path, header, nil)
		return reply, reply.Header()
	},
}

func TestACallThatIsNoneOfTheThree(t *testing.T) {
	well := strings.Repeat("0", 64) // formed, but wrong
	upper := strings.ToUpper(testKey(t).Sign(nil))
	const unlogged = ""
	type call struct {
		method, path string
		hmac         []string
		status       int
		code, allow  string
		logged       string // the endpoint of its record
	}
	paths := []call{
		{"GET", ramp.PathResult, []string{well}, 500, "METHOD_NOT_ALLOWED", "POST", "result"}, // after a redirect
		{"HEAD", ramp.PathResult, []string{well}, 500, "METHOD_NOT_ALLOWED", "POST", "result"},
		{"GET", ramp.PathValidate, []string{well}, 500, "METHOD_NOT_ALLOWED", "POST", "validate"},
		{"POST", ramp.PathAssets, []string{well}, 500, "METHOD_NOT_ALLOWED", "GET", "assets"},
		{"GET", ramp.PathResult, nil, 405, "METHOD_NOT_ALLOWED", "POST", unlogged},
		{"PUT", ramp.PathValidate, nil, 405, "METHOD_NOT_ALLOWED", "POST", unlogged},
		{"POST", ramp.PathAssets, nil, 405, "METHOD_NOT_ALLOWED", "GET", unlogged},
		{"", ramp.PathResult, nil, 405, "METHOD_NOT_ALLOWED", "POST", unlogged},

		{"POST", "/ramp/api/result/", nil, 500, "NOT_FOUND", "", "result"},
		{"POST", "/RESULT", nil, 500, "NOT_FOUND", "", "result"},
		{"GET", "/ramp/api/result", nil, 404, "NOT_FOUND", "", unlogged},
		{"POST", "/ramp/api/validate", nil, 404, "NOT_FOUND", "", "validate"},
		{"GET", "/assets", nil, 404, "NOT_FOUND", "", "assets"},
		{"GET", "/", nil, 404, "NOT_FOUND", "", unlogged},
		{"POST", "/.env", nil, 404, "NOT_FOUND", "", unlogged},
		{"POST", "/wp-login.php", []string{"ab"}, 404, "NOT_FOUND", "", unlogged},
		{"POST", "/wp-login.php", []string{strings.Repeat("z", 64)}, 404, "NOT_FOUND", "", unlogged},
		{"POST", "/wp-login.php", []string{}, 404, "NOT_FOUND", "", unlogged},
		{"POST", "/ramp/api/validate", []string{well}, 500, "NOT_FOUND", "", "validate"},
		{"GET", "/wherever", []string{well}, 500, "NOT_FOUND", "", "result"},
		{"POST", "/wherever", []string{"ab", " " + upper + "\t"}, 500, "NOT_FOUND", "", "result"},
	}
	// What people write into the console.
	for _, path := range []string{"/api/result ", "/api/result\n", "/api/result\u200b", "/api/results",
		"/api/result.json", "/api/result;v=1", "/api/result/v1", "/api/callback", "/", "//api/result", "", "*"} {
		paths = append(paths, call{"POST", path, []string{well}, 500, "NOT_FOUND", "", "result"})
	}
	for name, send := range mounts {
		for _, c := range paths {
			t.Run(fmt.Sprintf("%s/%s %q %q", name, c.method, c.path, c.hmac), func(t *testing.T) {
				var log bytes.Buffer
				var seen []ramp.Operation
				game := &recorder{}
				see := func(_ context.Context, op ramp.Operation) { seen = append(seen, op) }
				handler := newHandler(t, ramp.HandlerConfig{Players: game, Store: game,
					Observer: ramp.Observer{End: see},
					Logger:   slog.New(slog.NewJSONHandler(&log, nil))})
				header := http.Header{}
				if c.hmac != nil {
					header["x-hmac-signature"] = c.hmac
				}
				reply, headers := send(handler, c.method, c.path, header)
				assert.Equal(t, c.status, reply.Status)
				assert.Equal(t, rejection(c.code), string(reply.Body))
				assert.Equal(t, c.allow, headers.Get("Allow"))
				assert.Equal(t, "application/json", headers.Get("Content-Type"))
				assert.Equal(t, "no-store", headers.Get("Cache-Control"))
				assert.Empty(t, game.calls)
				if c.logged == unlogged {
					assert.Empty(t, log.String())
					assert.Empty(t, seen)
					return
				}
				require.Len(t, seen, 1)
				assert.Equal(t, []any{c.logged, c.status, ramp.Code(c.code), true},
					[]any{seen[0].Name, seen[0].Status, seen[0].Code, seen[0].Unverified})
				var record map[string]any
				require.NoError(t, json.Unmarshal(log.Bytes(), &record))
				assert.Equal(t, []any{"WARN", true}, []any{record["level"], record["unverified"]})
				assert.Contains(t, record["error"], fmt.Sprintf("the handler got %s %q, but ", c.method, c.path))
			})
		}
	}
}

// The methods of a handler are mounted on paths of the studio's own.
func TestOwnPathsKeepTheRules(t *testing.T) {
	game := &recorder{}
	handler := newHandler(t, ramp.HandlerConfig{Players: game, Store: game})
	mux := http.NewServeMux()
	mux.HandleFunc("/hooks/owned", handler.Assets)
	mux.HandleFunc("/hooks/order", handler.Validate)
	mux.HandleFunc("/hooks/done", handler.Result)
	validate, result := validateCall().Bytes(t), resultCall().Bytes(t)
	for _, c := range []struct {
		method, path string
		header       http.Header
		body         []byte
		want         int
		calls        []string
	}{
		{"GET", "/hooks/owned", signed(t, nil), nil, 200, []string{"authenticate", "assets"}},
		{"POST", "/hooks/order", signed(t, validate), validate, 200, []string{"authenticate", "validate"}},
		{"POST", "/hooks/done", signed(t, result), result, 200, []string{"result"}},
		{"POST", "/hooks/owned", signed(t, result), result, 500, nil},
		{"POST", "/hooks/order", signed(t, result), result, 500, nil},
		{"GET", "/hooks/done", signed(t, result), nil, 500, nil},
		{"GET", "/hooks/done", nil, nil, 405, nil},
		{"PUT", "/hooks/owned", nil, nil, 405, nil},
	} {
		game.calls = nil
		r := httptest.NewRequest(c.method, c.path, bytes.NewReader(c.body))
		maps.Copy(r.Header, c.header)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		assert.Equal(t, c.want, w.Code, "%s %s", c.method, c.path)
		assert.Equal(t, c.calls, game.calls, "%s %s", c.method, c.path)
	}
}

// The console has swapped the addresses. A result is not processed where it is not expected, but
// it comes again.
func TestAResultAtTheAddressOfValidateCalls(t *testing.T) {
	for name, body := range map[string]oneorder.Object{
		"a result":                      resultCall(),
		"its unreadable intent":         resultCall().With("intent", 7),
		"with fields of a validate":     resultCall().With("project_id", "project-1").With("user_sig", "0x"),
		"of an order that nobody knows": resultCall().With("uuid", uuid.NewString()),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t)
			status, answer := s.post(t, ramp.PathValidate, body.Bytes(t))
			assert.Equal(t, 500, status)
			assert.Contains(t, answer, `{"success":false,"errorCode":"INVALID_`)
			assert.Empty(t, s.game.calls)
			var record map[string]any
			require.NoError(t, json.Unmarshal(s.log.Bytes(), &record))
			got := []any{record["level"], record["uuid"], record["unverified"]}
			assert.Equal(t, []any{"ERROR", body["uuid"], nil}, got)
		})
	}
	s := newStudio(t)
	status, _ := s.post(t, ramp.PathValidate, validateCall().With("digest", "0x").Bytes(t))
	assert.Equal(t, 400, status, "a malformed validate call stays one")
	status, _ = s.post(t, ramp.PathValidate, validateCall().With("receipt", map[string]any{"status": "0x1"}).Bytes(t))
	assert.Equal(t, 200, status, "what is both is a validate call here")
}

func TestABodyWithAByteOrderMark(t *testing.T) {
	var seen ramp.Operation
	s := newStudioWith(t,
		ramp.HandlerConfig{Observer: ramp.Observer{End: func(_ context.Context, op ramp.Operation) { seen = op }}})
	marked := func(o oneorder.Object) []byte { return append([]byte("\ufeff"), o.Bytes(t)...) }
	status, answer := s.post(t, ramp.PathValidate, marked(validateCall()))
	assert.Equal(t, 200, status)
	assert.Equal(t, approved, answer)
	status, answer = s.post(t, ramp.PathResult, marked(resultCall()))
	assert.Equal(t, 200, status)
	assert.Equal(t, confirmed, answer)
	assert.Equal(t, []any{testUUID, resultCall()["tx_hash"]}, []any{seen.UUID.String(), seen.TxHash})
}

// A 301 or 302 turns a POST into a GET without a body, in the sender's client.
func TestAResultThatIsRedirectedComesAgain(t *testing.T) {
	game := &recorder{}
	handler := newHandler(t, ramp.HandlerConfig{Players: game, Store: game})
	for status, want := range map[int]int{301: 500, 302: 500, 303: 500, 307: 200, 308: 200} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/old/") {
				http.Redirect(w, r, strings.TrimPrefix(r.URL.Path, "/old"), status)
				return
			}
			handler.ServeHTTP(w, r)
		}))
		body := resultCall().Bytes(t)
		request := must.Get(http.NewRequest(http.MethodPost, server.URL+"/old"+ramp.PathResult,
			bytes.NewReader(body)))(t)
		request.Header.Set("X-HMAC-SIGNATURE", testKey(t).Sign(body))
		response := must.Get(server.Client().Do(request))(t)
		response.Body.Close()
		assert.Equal(t, want, response.StatusCode, status)
		server.Close()
	}
	assert.Equal(t, []string{"result", "result"}, game.calls)
}

// An error of Apply is not a conflict of the call, whatever it wraps: the order has not ended.
func TestAnErrorOfApplyThatWrapsAConflict(t *testing.T) {
	order := accepted(t, mintRequest(t))
	another := order
	another.UUID = uuid.New()
	for name, failure := range map[string]error{
		"of another order":       &ramp.ConflictError{Order: another, Field: "receipt.status"},
		"of this order":          &ramp.ConflictError{Order: order, Field: "receipt.status"},
		"of two orders":          &ramp.ConflictError{Order: another, Field: "tx_hash", Other: &order},
		"of none":                &ramp.ConflictError{},
		"the sentinel":           ramp.ErrOrderConflict,
		"of an order that ended": ramp.ErrOrderFinished,
	} {
		t.Run(name, func(t *testing.T) {
			var seen []ramp.Operation
			game, v := newVault(t, func(c *ramp.HandlerConfig) {
				c.Observer.End = func(_ context.Context, op ramp.Operation) { seen = append(seen, op) }
				c.OnConflict = func(context.Context, *ramp.ConflictError, *ramp.Result) error {
					t.Error("the call contradicts nothing")
					return nil
				}
			})
			require.NoError(t, game.Validate(t, t.Context(), player, mintRequest(t)))
			v.Fail = func() error { return fmt.Errorf("grant: %w", failure) }
			assert.Equal(t, "500", answerTo(game.Result(t, t.Context(), player, reported(order, 0))))
			refused := mintRequest(t)
			refused.UUID = uuid.New()
			assert.Equal(t, "500", answerTo(game.Validate(t, t.Context(), player, refused)))
			for _, op := range seen {
				assert.Nil(t, op.Conflict)
			}
			v.Fail = nil
			assert.NoError(t, game.Result(t, t.Context(), player, reported(order, 0)), "the next delivery ends it")
			assert.EqualValues(t, 1000, v.Gold["session-1"])
		})
	}
}

// panic(nil) is invisible to recover in programs that are built without a go.mod.
func TestAPanicWithoutAValueIsNoSuccess(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	func() {
		defer func() { require.Nil(t, recover(), "the setting has an effect") }()
		panic(nil)
	}()
	game, v := newVault(t, nil)
	require.NoError(t, game.Validate(t, t.Context(), player, mintRequest(t)))
	v.Fail = func() error { panic(nil) }
	order := accepted(t, mintRequest(t))
	assert.Equal(t, "500", answerTo(game.Result(t, t.Context(), player, reported(order, 0))))
	assert.EqualValues(t, 900, v.Gold["session-1"])
	v.Fail = nil
	assert.NoError(t, game.Result(t, t.Context(), player, reported(order, 0)))
	assert.EqualValues(t, 1000, v.Gold["session-1"])
}

// hurried is a handler behind an HTTP server, with a failed mint whose sender goes while Apply runs.
type hurried struct {
	*oneorder.Vault
	server  *httptest.Server
	begun   chan struct{} // is closed when Apply of the result begins
	gone    chan struct{} // is closed when the server knows that the sender has gone
	release chan struct{} // lets Apply go on
}

func newHurried(t *testing.T, serve func(*httptest.Server)) *hurried {
	t.Helper()
	h := &hurried{Vault: &oneorder.Vault{Gold: map[string]int64{"session-1": 1000}},
		begun: make(chan struct{}), gone: make(chan struct{}), release: make(chan struct{})}
	store := &ramp.MemoryStore{Apply: func(ctx context.Context, step ramp.Step) error {
		if step.Order.State != ramp.OrderAccepted {
			close(h.begun)
			<-h.gone
			<-h.release
			if err := ctx.Err(); err != nil {
				return err // as a transaction would
			}
		}
		return h.Apply(ctx, step)
	}}
	handler := newHandler(t, ramp.HandlerConfig{Players: noPlayers{}, Store: store})
	require.NoError(t, caller{handler}.Validate(t, t.Context(), player, mintRequest(t)))
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			<-r.Context().Done()
			close(h.gone)
		}()
		handler.ServeHTTP(w, r)
	}))
	serve(h.server)
	t.Cleanup(h.server.Close)
	return h
}

func (h *hurried) balance() int64 {
	h.Lock()
	defer h.Unlock()
	return h.Gold["session-1"]
}

// leaves delivers the result, and gives up while Apply runs.
func (h *hurried) leaves(t *testing.T) {
	t.Helper()
	body := resultCall().With("receipt.status", "0x0").Bytes(t)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-h.begun
		giveUp()
	}()
	address := h.server.URL + ramp.PathResult
	request := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body)))(t)
	request.Header = signed(t, body)
	_, err := h.server.Client().Do(request)
	require.ErrorIs(t, err, context.Canceled)
	<-h.gone
}

func TestASenderThatGivesUpStopsNoResult(t *testing.T) {
	h := newHurried(t, (*httptest.Server).Start)
	h.leaves(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, h.server.Config.Shutdown(ctx), context.DeadlineExceeded, "it waits for the result")
	close(h.release)
	require.NoError(t, h.server.Config.Shutdown(within(t, time.Minute)))
	assert.EqualValues(t, 1000, h.balance())
}

// On HTTP/2, Shutdown does not wait for a call that its sender has reset (docs/operations.md). The
// result goes on while the process lives. If it does not, that is a kill, which loses nothing.
func TestASenderThatResetsAStreamStopsNoResult(t *testing.T) {
	h := newHurried(t, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() })
	h.leaves(t)
	require.NoError(t, h.server.Config.Shutdown(within(t, time.Minute)))
	assert.EqualValues(t, 900, h.balance(), "Shutdown has not waited")
	close(h.release)
	assert.Eventually(t, func() bool { return h.balance() == 1000 }, time.Minute, time.Millisecond)
}

// A client that closes its writing side after a request still reads the answer (golang/go 18527).
func TestASenderThatClosesItsWritingSideStopsNoResult(t *testing.T) {
	h := newHurried(t, (*httptest.Server).Start)
	close(h.release)
	conn := must.Get(net.Dial("tcp", h.server.Listener.Addr().String()))(t)
	defer conn.Close()
	body := resultCall().With("receipt.status", "0x0").Bytes(t)
	head := "POST " + ramp.PathResult + " HTTP/1.1\r\nHost: game\r\nX-HMAC-SIGNATURE: " + testKey(t).Sign(body)
	must.Get(fmt.Fprintf(conn, "%s\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body))(t)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	answer := string(must.Get(io.ReadAll(conn))(t))
	assert.True(t, strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n"), answer)
	assert.True(t, strings.HasSuffix(answer, confirmed), answer)
	assert.EqualValues(t, 1000, h.balance())
}

type trace struct{}

// A result runs with the values and the deadline of its context, and without its cancellation. A
// validate call is canceled, because nobody would read its signature.
func TestWhatEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got context.Context
		var traced any
		game, _ := newVault(t, func(c *ramp.HandlerConfig) {
			c.Policy = func(ctx context.Context, _ ramp.Session, _ *ramp.ValidateRequest) error { return ctx.Err() }
			apply := func(ctx context.Context, _ ramp.Step) error {
				got, traced = ctx, ctx.Value(trace{})
				return ctx.Err()
			}
			c.Store = &ramp.MemoryStore{Apply: apply}
		})
		canceled, cancel := context.WithCancel(context.WithValue(t.Context(), trace{}, "4711"))
		cancel()
		err := game.Validate(t, canceled, player, mintRequest(t))
		assert.ErrorIs(t, err, context.Canceled)
		require.NoError(t, game.Validate(t, t.Context(), player, mintRequest(t)))

		late, cancel := context.WithDeadline(canceled, time.Now().Add(-time.Second))
		defer cancel()
		order := accepted(t, mintRequest(t))
		err = game.Result(t, late, player, reported(order, 0))
		assert.Equal(t, "500", answerTo(err), "a deadline ends it")
		assert.ErrorIs(t, err, context.DeadlineExceeded)

		begun := time.Now()
		require.NoError(t, game.Result(t, canceled, player, reported(order, 0)))
		assert.Equal(t, "4711", traced)
		deadline, ok := got.Deadline()
		assert.True(t, ok)
		assert.Equal(t, 30*time.Second, deadline.Sub(begun), "without a deadline")
		assert.Error(t, got.Err(), "nothing of the call goes on")

		second := mintRequest(t)
		second.UUID = uuid.New()
		require.NoError(t, game.Validate(t, t.Context(), player, second))
		ended := reported(accepted(t, second), 1)
		ended.TxHash = "0x" + strings.Repeat("cd", 32)
		own, cancel := context.WithTimeout(canceled, time.Hour)
		defer cancel()
		require.NoError(t, game.Result(t, own, player, ended))
		deadline, _ = got.Deadline()
		want, _ := own.Deadline()
		assert.Equal(t, want.Add(-1200*time.Millisecond), deadline)
	})
}

// recycled is the context of a framework that uses it again for the next call.
type recycled struct {
	context.Context
	t    *testing.T
	over bool
}

func (r *recycled) use() context.Context {
	if r.over {
		r.t.Error("the context was used after the call")
	}
	return r.Context
}

func (r *recycled) Deadline() (time.Time, bool) { return r.use().Deadline() }
func (r *recycled) Done() <-chan struct{}       { return r.use().Done() }
func (r *recycled) Err() error                  { return r.use().Err() }
func (r *recycled) Value(key any) any           { return r.use().Value(key) }

func TestNobodyUsesAContextAfterItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		game, _ := newVault(t, func(c *ramp.HandlerConfig) {
			chain := &oneorder.Chain{Receipt: string(oneorder.OnChain().Bytes(t)), Head: 10}
			c.Confirm = rampproof.Confirmed(pinned(t, chain, ramp.RPCConfig{}), 1)
		})
		for range 2 {
			ctx := &recycled{Context: t.Context(), t: t}
			require.NoError(t, game.Validate(t, ctx, player, mintRequest(t)))
			ctx.over = true
		}
		ctx := &recycled{Context: t.Context(), t: t}
		body := resultCall().Bytes(t)
		_ = toResult(game.handler)(ctx, signed(t, body), body)
		ctx.over = true
		time.Sleep(time.Hour)
	})
}

// hanging is a game of which one part does not return before it is released, whatever its context says.
type hanging struct {
	part     string
	release  chan struct{}
	obedient bool // it returns at the end of its context
}

func (h *hanging) at(ctx context.Context, part string) error {
	if part != h.part {
		return nil
	}
	ended := ctx.Done()
	if !h.obedient {
		ended = nil
	}
	select {
	case <-h.release:
		return nil
	case <-ended:
		return ctx.Err()
	}
}

func (h *hanging) Authenticate(ctx context.Context, _ ramp.Session) error {
	return h.at(ctx, "Players.Authenticate")
}

func (h *hanging) Assets(ctx context.Context, _ ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, h.at(ctx, "Players.Assets")
}

func (h *hanging) Confirm(ctx context.Context, _ ramp.Store, _ *ramp.Result, finish ramp.Transition) (
	ramp.Transition, error) {
	return finish, h.at(ctx, "HandlerConfig.Confirm")
}

func (h *hanging) CheckConfig(*ramp.HandlerConfig) error            { return nil }
func (h *hanging) Check(context.Context, *ramp.HandlerConfig) error { return nil }

// hangingStore hangs before it stores a step, and when it notes a refusal.
type hangingStore struct {
	ramp.Store
	*hanging
}

func (s hangingStore) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	if err := s.at(ctx, "HandlerConfig.Store"); err != nil {
		return ramp.Step{}, err
	}
	return s.Store.Update(context.WithoutCancel(ctx), id, next) // it commits, whatever became of the call
}

func (s hangingStore) Refused(ctx context.Context, id uuid.UUID, _ string) error {
	return s.at(ctx, "HandlerConfig.Store")
}

// Whatever hangs, a call is answered with HTTP 500 before its deadline, so that no gateway answers in its
// place. What was begun goes on: it is logged when it ends, and the repeat finds it.
func TestACallIsAnsweredBeforeItsDeadline(t *testing.T) {
	type call struct{ endpoint, part string }
	calls := []call{{"assets", "Players.Authenticate"}, {"assets", "Players.Assets"}}
	for _, part := range []string{"Players.Authenticate", "HandlerConfig.Policy", "HandlerConfig.Wallet", "the signer",
		"HandlerConfig.Store"} {
		calls = append(calls, call{"validate", part})
	}
	for _, part := range []string{"HandlerConfig.Confirm", "HandlerConfig.Store"} {
		calls = append(calls, call{"result", part})
	}
	for _, hangs := range calls {
		for _, obedient := range []bool{false, true} {
			inBubble(t, fmt.Sprint(hangs.endpoint, " ", hangs.part, " ", obedient), func(t *testing.T) {
				part := &hanging{release: make(chan struct{}), obedient: obedient}
				log := new(bytes.Buffer)
				memory := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
				key := testSigner(t)
				sign := func(ctx context.Context, digest []byte) ([]byte, error) {
					if err := part.at(ctx, "the signer"); err != nil {
						return nil, err
					}
					signature, err := key.Sign(ctx, ramp.Digest(digest))
					return signature[:], err
				}
				signer := must.Get(ramp.NewFuncSigner(vectorAddress, sign))(t)
				handler := newHandler(t, ramp.HandlerConfig{
					Players: part, Store: hangingStore{memory, part}, Signer: signer, Confirm: part,
					SignTimeout: time.Hour, SendTime: 300 * time.Millisecond,
					Policy: func(ctx context.Context, _ ramp.Session, _ *ramp.ValidateRequest) error {
						return part.at(ctx, "HandlerConfig.Policy")
					},
					Wallet: func(ctx context.Context, _ ramp.Session, _ common.Address) error {
						return part.at(ctx, "HandlerConfig.Wallet")
					},
					Logger: slog.New(slog.NewJSONHandler(log, nil)),
				})
				validate, result := validateCall().Bytes(t), resultCall().Bytes(t)
				do := func(endpoint string) ramp.Reply {
					ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
					defer cancel()
					switch endpoint {
					case "validate":
						return handler.Answer(ctx, http.MethodPost, ramp.PathValidate, signed(t, validate), validate)
					case "result":
						return handler.Answer(ctx, http.MethodPost, ramp.PathResult, signed(t, result), result)
					default:
						return handler.Answer(ctx, http.MethodGet, ramp.PathAssets, signed(t, nil), nil)
					}
				}
				if hangs.endpoint == "result" {
					require.NoError(t, do("validate").Err)
				}
				part.part = hangs.part
				begun := time.Now()
				reply := do(hangs.endpoint)
				took := time.Since(begun)
				assert.Equal(t, http.StatusInternalServerError, reply.Status)
				assert.ErrorIs(t, reply.Err, context.DeadlineExceeded)
				assert.LessOrEqual(t, took, 7700*time.Millisecond)
				late := !obedient && hangs.part != "the signer" // which is called in a goroutine of its own
				if late {
					assert.ErrorContains(t, reply.Err, hangs.part+" has not returned")
				}

				close(part.release)
				synctest.Wait()
				assert.Equal(t, late, strings.Contains(log.String(), `"late":true`))
				assert.NoError(t, do(hangs.endpoint).Err, "the repeat")
				steps := map[string]int{"assets": 0, "validate": 1, "result": 2}[hangs.endpoint]
				assert.Equal(t, steps, strings.Count(log.String(), `"new":true`), "each step is logged as new once")
			})
		}
	}
}

// What ServeMux answers by itself, no handler behind it can change: docs/frameworks.md.
func TestWhatAServeMuxAnswersForTheHandler(t *testing.T) {
	const moved = "moved"
	answers := func(mux http.Handler, path string) string {
		body := resultCall().Bytes(t)
		r := httptest.NewRequest(http.MethodPost, "http://game.example"+path, bytes.NewReader(body))
		r.Header = signed(t, body)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if slices.Contains([]int{301, 307}, w.Code) {
			return moved
		}
		return fmt.Sprint(w.Code)
	}
	handler := newHandler(t, ramp.HandlerConfig{})
	on := func(patterns ...string) http.Handler {
		mux := http.NewServeMux()
		for _, pattern := range patterns {
			mux.Handle(pattern, handler)
		}
		return mux
	}
	for name, c := range map[string]struct {
		front http.Handler
		want  [6]string // for the paths below
	}{
		"the handler itself":         {handler, [6]string{"200", "500", "500", "500", "500", "500"}},
		"the root of a mux":          {on("/"), [6]string{"200", moved, "500", "500", "500", moved}},
		"a prefix":                   {on("/api/"), [6]string{"200", moved, "500", "500", "404", moved}},
		"a pattern for each path":    {on(ramp.PathResult), [6]string{"200", moved, "404", "404", "404", moved}},
		"each path with its method":  {on("POST /api/result"), [6]string{"200", moved, "404", "404", "404", moved}},
		"each path as a prefix, too": {on("/api/result/"), [6]string{moved, moved, "500", "404", "404", moved}},
	} {
		var got [6]string
		paths := []string{"/api/result", "//api/result", "/api/result/", "/api/results", "/callback", "/api/./result"}
		for i, path := range paths {
			got[i] = answers(c.front, path)
		}
		assert.Equal(t, c.want, got, name)
	}
}
