package pgxstore

import (
	"bytes"
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
	"github.com/jackc/pgx/v5/pgxpool"
	ramp "github.com/token-ramp/ramp-go"
)

// The tests in this file interrupt calls: the game server is killed, or the answer is
// lost. The service repeats the call, and every order must take effect once.

var kills = flag.Int("kills", 3, "how often TestKill kills the game server")

const (
	envServe = "RAMP_TEST_SERVE" // the database; if set, the process is a game server
	hmacText = "a key of these tests"
	started  = 1_000_000 // of gold, for each player
	own      = 10        // of an asset that only one order uses
)

func TestMain(m *testing.M) {
	if address := os.Getenv(envServe); address != "" {
		serve(address)
	}
	os.Exit(m.Run())
}

// serve runs the game server. It inherits a listener that outlives it.
func serve(address string) {
	pool := must(pgxpool.New(context.Background(), address))
	handler := must(ramp.NewHandler(ramp.HandlerConfig{
		Terms: ramp.AnyTerms, Players: known{players{pool: pool}}, Store: &Store{Pool: pool}, Key: must(ramp.TextKey(hmacText)), Logger: slog.New(slog.DiscardHandler),
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
	pool   *pgxpool.Pool
	client *http.Client
	key    ramp.HMACKey

	listener *os.File
	address  string
	server   *exec.Cmd

	quit           func()        // lets the orders in progress end
	answers        chan struct{} // one for each answer
	cut, committed atomic.Int64  // calls without an answer, and how many of them had stored their step

	mu     sync.Mutex
	orders []order
}

// order is an order of the service, and what must happen to it.
type order struct {
	session  string
	request  *ramp.ValidateRequest
	result   *ramp.Result
	accepted int64 // what it must have moved before its result
	moved    int64 // what it must have moved after its result
	state    ramp.OrderState
}

func start(t *testing.T, transport *http.Transport) *load {
	t.Helper()
	pool, _ := place(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, listener.Close()) })
	l := &load{t: t, pool: pool, client: &http.Client{Transport: transport, Timeout: 20 * time.Second},
		address: listener.Addr().String(), answers: make(chan struct{})}
	l.key, err = ramp.TextKey(hmacText)
	check(t, err)
	l.listener, err = listener.(*net.TCPListener).File()
	check(t, err)
	t.Cleanup(func() { check(t, l.listener.Close()) })
	l.serve()
	t.Cleanup(l.kill)
	t.Cleanup(transport.CloseIdleConnections)

	var wg sync.WaitGroup
	var stopped atomic.Bool
	for range 4 {
		session := uuid.NewString()
		check(t, give(t.Context(), pool, session, "gold", started))
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

// serve starts the game server.
func (l *load) serve() {
	l.server = exec.Command(os.Args[0])
	l.server.Env = append(os.Environ(), "GORACE=halt_on_error=1", envServe+"="+l.pool.Config().ConnString())
	l.server.Stderr = os.Stderr
	l.server.ExtraFiles = []*os.File{l.listener}
	_, err := l.server.StdinPipe() // ends with this process
	check(l.t, err)
	check(l.t, l.server.Start())
}

// kill sends SIGKILL.
func (l *load) kill() {
	_ = l.server.Process.Kill()
	_ = l.server.Wait()
	if l.server.ProcessState.Exited() {
		l.t.Error("the game server ended before it was killed")
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
	o := order{session: session, accepted: -n, state: ramp.OrderFailed}
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
	if err := give(l.t.Context(), l.pool, session, id.String(), own); err != nil {
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
func (l *load) call(path string, o order, message any, state ramp.OrderState) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		answer, err := l.post(path, o.session, body)
		if err == nil {
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

func (l *load) post(path, session string, body []byte) (answer string, err error) {
	request, err := http.NewRequest(http.MethodPost, "http://"+l.address+path, bytes.NewReader(body))
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
func (l *load) state(o order) (ramp.OrderState, error) {
	step, err := (&Store{Pool: l.pool}).Update(context.Background(), o.request.UUID, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, ramp.ErrOrderUnknown
		}
		return ramp.Step{Order: *stored}, nil
	})
	return step.Order.State, err
}

// expect checks the state of an order and what it has moved.
func (l *load) expect(o order, state ramp.OrderState, moved int64) error {
	stored, err := l.state(o)
	n, err2 := balance(context.Background(), l.pool, o.session, o.request.UUID.String())
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
		if n, err := balance(l.t.Context(), l.pool, session, "gold"); err != nil || n != started+moved {
			l.t.Errorf("a player has %d gold instead of %d, %v", n, started+moved, err)
		}
	}
	l.t.Logf("%d orders, %d calls without an answer, %d of which had stored their step", len(l.orders), l.cut.Load(), l.committed.Load())
	if l.committed.Load() == 0 {
		l.t.Error("no call lost its answer after its step was stored, so the test proves nothing")
	}
}

func TestKill(t *testing.T) {
	l := start(t, &http.Transport{})
	n := 0 // exceeds *kills until some step was stored without an answer
	for ; n < *kills || l.committed.Load() == 0 && n < *kills+100; n++ {
		l.wait(1 + rand.IntN(20))
		l.kill()
		l.serve()
	}
	l.wait(1)
	l.finish()
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
