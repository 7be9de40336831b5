package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	ramp "github.com/token-ramp/ramp-go"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true, ProjectID: "project-1"})

// The tests in this file interrupt calls: the game server is killed, or the answer is
// lost. The service repeats the call, and every order must take effect once.

var kills = flag.Int("kills", 3, "how often TestKill kills the game server")

const (
	envServe = "RAMP_TEST_SERVE" // if set, the process is a game server
	hmacText = "a key of these tests"
	started  = 1_000_000 // of gold, for each player
	own      = 10        // of an asset that only one order uses
)

func TestMain(m *testing.M) {
	if os.Getenv(envServe) != "" {
		serve()
	}
	os.Exit(m.Run())
}

// serve runs the game server. It inherits a listener that outlives it.
func serve() {
	options := must(redis.ParseURL(os.Getenv("RAMP_TEST_REDIS")))
	options.ContextTimeoutEnabled = true
	store := &Store{Client: redis.NewClient(options)}
	var orders ramp.Store = store
	if os.Getenv(envNext) != "" {
		orders = next{store}
	}
	handler := must(ramp.NewHandler(ramp.HandlerConfig{
		Terms: anyTerms, Players: known{players{store: store}}, Store: orders, Key: must(ramp.TextKey(hmacText)), Logger: slog.New(slog.DiscardHandler),
		Signer: must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")),
	}))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the test has ended
	}()
	log.Fatal(http.Serve(must(net.FileListener(os.NewFile(3, "listener"))), handler))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// known authenticates players by tokens that are the same in every process.
type known struct{ players }

func (known) Authenticate(_ context.Context, s ramp.Session) error {
	if s.Token.Reveal() != "token of "+s.ID {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// load plays the service: it runs many orders concurrently, from validate to result.
type load struct {
	t      *testing.T
	store  *Store
	client *http.Client
	key    ramp.HMACKey

	server *server
	route  func() *server // which server gets the next call; by default, there is only one

	quit           func()        // lets the orders in progress end
	answers        chan struct{} // one for each answer
	cut, committed atomic.Int64  // calls without an answer, and how many of them had stored their step

	mu     sync.Mutex
	orders []*order
}

// order is an order of the service, and what must happen to it.
type order struct {
	session  string
	request  *ramp.ValidateRequest
	result   *ramp.Result
	accepted int64 // what it must have moved before its result
	moved    int64 // what it must have moved after its result
	state    ramp.OrderState

	begun, ended *server // which answered the first validate call and the first result
}

func start(t *testing.T, transport *http.Transport, options ...func(*load)) *load {
	t.Helper()
	store := &Store{Client: connect(t)}
	l := &load{t: t, store: store, client: &http.Client{Transport: transport, Timeout: 20 * time.Second},
		answers: make(chan struct{})}
	for _, o := range options {
		o(l)
	}
	if l.route == nil {
		l.server = newServer(t, "")
		l.route = func() *server { return l.server }
	}
	var err error
	l.key, err = ramp.TextKey(hmacText)
	check(t, err)
	t.Cleanup(transport.CloseIdleConnections)

	var wg sync.WaitGroup
	var stopped atomic.Bool
	for range 4 {
		session := uuid.NewString()
		check(t, store.SetBalance(t.Context(), session, "gold", started))
		for range 2 {
			wg.Go(func() {
				for !stopped.Load() {
					if err := l.order(session); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	l.quit = func() { stopped.Store(true); wg.Wait() }
	t.Cleanup(l.quit)
	return l
}

// server is a game server in a process of its own. Its listener outlives it.
type server struct {
	t        *testing.T
	program  string // the test binary that serves; this one if empty
	env      []string
	listener *os.File
	address  string
	process  *exec.Cmd
}

func newServer(t *testing.T, program string, env ...string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, listener.Close()) })
	s := &server{t: t, program: program, env: env, address: listener.Addr().String()}
	s.listener, err = listener.(*net.TCPListener).File()
	check(t, err)
	t.Cleanup(func() { check(t, s.listener.Close()) })
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.process = exec.Command(cmp.Or(s.program, os.Args[0]))
	s.process.Env = append(os.Environ(), append(s.env, "GORACE=halt_on_error=1", envServe+"=1")...)
	s.process.Stderr = os.Stderr
	s.process.ExtraFiles = []*os.File{s.listener}
	_, err := s.process.StdinPipe() // ends with this process
	check(s.t, err)
	check(s.t, s.process.Start())
}

// kill sends SIGKILL.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	if s.process.ProcessState.Exited() {
		s.t.Error("the game server ended before it was killed")
	}
}

// wait waits for a number of answers.
func (l *load) wait(answers int) {
	l.t.Helper()
	timeout := time.After(time.Minute)
	for range answers {
		select {
		case <-l.answers:
		case <-timeout:
			l.t.Fatal("no answers for a minute")
		}
	}
}

// order runs one order from validate to result.
func (l *load) order(session string) error {
	id, n, success := uuid.New(), 1+rand.Int64N(own), rand.IntN(2) == 0
	assets := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(n)},
		{Type: ramp.TypeAsset, ID: id.String(), Amount: ramp.NewAmount(n)}}
	tokens := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000000aa", Amount: ramp.NewAmount(1)}}
	intent := ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: assets, To: tokens}
	o := &order{session: session, accepted: -n, state: ramp.OrderFailed}
	if rand.IntN(2) == 0 {
		intent = ramp.Intent{Method: ramp.MethodBurn, Type: ramp.Disassemble, From: tokens, To: assets}
		o.accepted = 0
	}
	o.request = &ramp.ValidateRequest{UserSig: "0xabcd", UserAddress: "0x00000000000000000000000000000000000000bb",
		ProjectID: "project-1", Digest: sha256.Sum256(id[:]), UUID: id, Intent: intent}
	o.result = &ramp.Result{SessionID: session, UUID: id, TxHash: fmt.Sprintf("0x%x", sha256.Sum256(id[:])),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}, Intent: intent}
	if success {
		o.result.Receipt.Status, o.state = ramp.NewQuantity(1), ramp.OrderSucceeded
		o.moved = o.accepted
		if o.accepted == 0 {
			o.moved = n
		}
	}
	l.mu.Lock()
	l.orders = append(l.orders, o)
	l.mu.Unlock()
	if err := l.store.SetBalance(l.t.Context(), session, id.String(), own); err != nil {
		return err
	}
	if err := l.call(ramp.PathValidate, o, o.request, ramp.OrderAccepted); err != nil {
		return err
	}
	if err := l.expect(o, ramp.OrderAccepted, o.accepted); err != nil {
		return err
	}
	return l.call(ramp.PathResult, o, o.result, o.state)
}

// call repeats a call until it is answered. The answer must be success.
func (l *load) call(path string, o *order, message any, state ramp.OrderState) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		by := l.route()
		answer, err := l.post(by.address+path, o.session, body)
		if err == nil {
			if o.begun == nil {
				o.begun = by
			} else if path == ramp.PathResult && o.ended == nil {
				o.ended = by
			}
			select {
			case l.answers <- struct{}{}:
			default: // nobody waits
			}
			if answer != "200 true" {
				err = fmt.Errorf("order %s: %s answered %s", o.request.UUID, path, answer)
			}
			return err
		}
		l.cut.Add(1)
		if stored, err := l.state(o); err == nil && stored == state {
			l.committed.Add(1)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("order %s: %s was not answered for a minute: %w", o.request.UUID, path, err)
		}
	}
}

func (l *load) post(url, session string, body []byte) (answer string, err error) {
	request, err := http.NewRequest(http.MethodPost, "http://"+url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set(ramp.HeaderHMAC, l.key.Sign(body))
	request.Header.Set(ramp.HeaderSession, session)
	request.Header.Set(ramp.HeaderAuthorization, "Bearer token of "+session)
	response, err := l.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var envelope struct{ Success bool }
	err = json.NewDecoder(response.Body).Decode(&envelope)
	return fmt.Sprint(response.StatusCode, " ", envelope.Success), err
}

// state returns the state of a stored order.
func (l *load) state(o *order) (ramp.OrderState, error) {
	step, err := l.store.Update(context.Background(), o.request.UUID, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, ramp.ErrOrderUnknown
		}
		return ramp.Step{Order: *stored}, nil
	})
	return step.Order.State, err
}

// expect checks the state of an order and what it has moved.
func (l *load) expect(o *order, state ramp.OrderState, moved int64) error {
	stored, err := l.state(o)
	n, err2 := l.store.Balance(context.Background(), o.session, o.request.UUID.String())
	if err := errors.Join(err, err2); err != nil || stored != state || n-own != moved {
		return fmt.Errorf("order %s, a %s, is %q and has moved %d instead of %q and %d, %v",
			o.request.UUID, o.request.Intent.Method, stored, n-own, state, moved, err)
	}
	return nil
}

// finish lets the orders in progress end, delivers every result once more, and checks
// all orders and balances.
func (l *load) finish() {
	l.t.Helper()
	l.quit()
	gold := map[string]int64{}
	for _, o := range l.orders {
		gold[o.session] += o.moved
		if err := l.call(ramp.PathResult, o, o.result, o.state); err != nil {
			l.t.Error(err)
		}
		if err := l.expect(o, o.state, o.moved); err != nil {
			l.t.Error(err)
		}
	}
	for session, moved := range gold {
		if n, err := l.store.Balance(l.t.Context(), session, "gold"); err != nil || n != started+moved {
			l.t.Errorf("a player has %d gold instead of %d, %v", n, started+moved, err)
		}
	}
	l.t.Logf("%d orders, %d calls without an answer, %d of which had stored their step", len(l.orders), l.cut.Load(), l.committed.Load())
}

// proves fails the test unless an answer was lost after its step was stored.
func (l *load) proves() {
	l.t.Helper()
	if l.committed.Load() == 0 {
		l.t.Error("no call lost its answer after its step was stored, so the test proves nothing")
	}
}

func TestKill(t *testing.T) {
	l := start(t, &http.Transport{})
	n := 0 // exceeds *kills until some step was stored without an answer
	for ; n < *kills || l.committed.Load() == 0 && n < *kills+100; n++ {
		l.wait(1 + rand.IntN(20))
		l.server.kill()
		l.server.start()
	}
	l.wait(1)
	l.finish()
	l.proves()
	t.Logf("%d kills", n)
}

// Half of the answers are lost: the client closes the connection before the answer
// arrives, or fails when it reads the answer.
func TestLostAnswers(t *testing.T) {
	l := start(t, &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return lossy{conn, rand.IntN(4)}, err
	}})
	l.wait(200)
	l.quit()
	l.client = &http.Client{Timeout: time.Minute}
	l.finish()
	l.proves()
}

// lossy is a connection that loses its answer: if how is 0, before it arrives, and if
// how is 1, when it is read.
type lossy struct {
	net.Conn
	how int
}

func (c lossy) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.how == 0 {
		_ = c.Close()
	}
	return n, err
}

func (c lossy) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.how == 1 && err == nil {
		return 0, errors.New("the connection broke")
	}
	return n, err
}
