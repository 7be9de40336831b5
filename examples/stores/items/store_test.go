package items

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

func TestMain(m *testing.M) {
	storetest.Serve(func(data string) (ramp.Store, error) { // in a process that is killed
		file, url, _ := strings.Cut(data, "\n")
		return &Store{DB: sql.OpenDB(connector{file: file}), Items: &Service{URL: url}}, nil
	})
	os.Exit(m.Run())
}

// open returns a store on a new file, with the table.
func open(t *testing.T, file string, i Items) *Store {
	t.Helper()
	db := openDB(t, connector{file: file})
	must(db.Exec(Schema))(t)
	return &Store{DB: db, Items: i}
}

func openDB(t *testing.T, c connector) *sql.DB {
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestStore(t *testing.T) {
	onDatabase := func(open func(t *testing.T) (one, two *sql.DB)) {
		storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Fixture {
			b := newBank(check)
			l := &lossy{bank: b}
			one, two := open(t)
			return storetest.Fixture{Stores: []ramp.Store{&Store{one, l}, &Store{two, l}},
				Give: b.give, Balance: b.balance, Crash: func() error { l.lost.Store(30); return nil }}
		})
	}
	onDatabase(func(t *testing.T) (one, two *sql.DB) {
		file := filepath.Join(t.TempDir(), "orders.db")
		return open(t, file, nil).DB, open(t, file, nil).DB
	})
	address := os.Getenv("RAMP_TEST_POSTGRESQL")
	if address == "" {
		t.Log("*** NOT TESTED on PostgreSQL: RAMP_TEST_POSTGRESQL is not set ***")
		return
	}
	onDatabase(func(t *testing.T) (one, two *sql.DB) {
		open := func() *sql.DB {
			db := must(sql.Open("pgx", address))(t)
			db.SetMaxOpenConns(10)
			t.Cleanup(func() { _ = db.Close() })
			must(db.Exec(Schema))(t)
			return db
		}
		return open(), open()
	})
}

// The service answers a request that comes late like the first one under its key.
func TestARequestThatComesLate(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Fixture {
		b, late := newBank(nil), &storetest.Late{}
		server := httptest.NewServer(b)
		t.Cleanup(server.Close)
		service := Service{URL: server.URL, Client: &http.Client{Transport: late}}
		asked := &approving{Service: service, check: check, refused: map[string]bool{}}
		store := open(t, filepath.Join(t.TempDir(), "orders.db"), asked)
		return storetest.Fixture{Stores: []ramp.Store{store}, Give: b.give, Balance: b.balance, Late: late}
	})
}

// approving is a service that asks the kit first. What the kit has refused under a key stays refused.
type approving struct {
	Service
	check   func(ramp.Step) error
	mu      sync.Mutex
	refused map[string]bool
}

func (a *approving) Apply(ctx context.Context, key string, step ramp.Step) error {
	if err := a.approve(key, step); err != nil {
		return errors.Join(ErrRefused, err)
	}
	return a.Service.Apply(ctx, key, step)
}

func (a *approving) approve(key string, step ramp.Step) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused[key] {
		return ErrRefused
	}
	a.refused[key] = true // also if check panics
	if err := a.check(step); err != nil {
		return err
	}
	delete(a.refused, key)
	return nil
}

// lossy loses the next calls of a service: in turn the call, which then has no effect, and its answer.
type lossy struct {
	*bank
	lost atomic.Int64
}

func (l *lossy) Apply(ctx context.Context, key string, step ramp.Step) error {
	n := l.lost.Add(-1)
	if n >= 0 && n%2 == 0 {
		return errOff
	}
	if err := l.bank.Apply(ctx, key, step); err != nil || n < 0 {
		return err
	}
	return errOff
}

// A server that was slow finds that another one has ended its step, and has begun the next.
func TestASlowServerEndsItsOwnStepOnly(t *testing.T) {
	file, b := filepath.Join(t.TempDir(), "orders.db"), newBank(nil)
	_ = b.give(t.Context(), "alice", "gold", 10)
	r := request(ramp.Mint)
	accept, finish := transitions(r, 0)
	dead := &lossy{bank: b}
	dead.lost.Store(1) // loses the next call
	other := open(t, file, b)
	slow := open(t, file, slowly{b, func() {
		if err := other.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Store{DB: other.DB, Items: dead}).Update(t.Context(), r.UUID, finish); !errors.Is(err, errOff) {
			t.Fatal(err)
		}
	}})
	if step, err := slow.Update(t.Context(), r.UUID, accept); err != nil || !step.New {
		t.Fatalf("the slow server: new %v, %v", step.New, err)
	}
	if under := must(other.UnderWay(t.Context()))(t); len(under) != 1 {
		t.Errorf("under way: %v, instead of the result", under)
	}
	if err := other.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	stored := must(other.read(t.Context(), "uuid", r.UUID.String()))(t)
	if gold, _ := b.balance(t.Context(), "alice", "gold"); gold != 10 || stored.order.State != ramp.OrderFailed {
		t.Errorf("%d gold, and the order is %s", gold, stored.order.State)
	}
}

// slowly is a service whose answer comes when something else has happened.
type slowly struct {
	*bank
	meanwhile func()
}

func (s slowly) Apply(ctx context.Context, key string, step ramp.Step) error {
	defer s.meanwhile()
	return s.bank.Apply(ctx, key, step)
}

// A step that stays under way is seen, and Settle says why.
func TestAServiceThatDoesNotAnswer(t *testing.T) {
	b := newBank(nil)
	dead := &lossy{bank: b}
	dead.lost.Store(1000)
	store := open(t, filepath.Join(t.TempDir(), "orders.db"), dead)
	r := request(ramp.Burn)
	accept, finish := transitions(r, 1)
	if _, err := store.Update(t.Context(), r.UUID, accept); !errors.Is(err, errOff) {
		t.Error(err)
	}
	if _, err := store.Update(t.Context(), r.UUID, finish); !errors.Is(err, ramp.ErrOrderUnknown) {
		t.Error(err) // nobody was told that it was accepted
	}
	if err := store.Settle(t.Context()); !errors.Is(err, errOff) || !strings.Contains(err.Error(), r.UUID.String()) {
		t.Error(err)
	}
	if under := must(store.UnderWay(t.Context()))(t); len(under) != 1 || under[0] != r.UUID.String() {
		t.Errorf("under way: %v", under)
	}
}

// The service's refusals and failures over HTTP.
func TestWhatTheServiceAnswers(t *testing.T) {
	const move = `k{"player":"alice","kind":"take","assets":[{"id":"gold","amount":4}]}`
	for status, want := range map[int]string{200: "", 422: "INVALID_BALANCE", 500: "unknown", 409: "unknown"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if got := r.Header.Get("Idempotency-Key") + string(body); got != move {
				t.Error(got)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":"INVALID_BALANCE"}`)
		}))
		accept, _ := transitions(request(ramp.Mint), 0)
		err := (&Service{URL: server.URL, Client: server.Client()}).Apply(t.Context(), "k", must(accept(nil))(t))
		server.Close()
		got := "unknown"
		var rejection *ramp.Rejection
		switch {
		case err == nil:
			got = ""
		case errors.Is(err, ErrRefused) && errors.As(err, &rejection):
			got = string(rejection.Code)
		}
		if got != want {
			t.Errorf("HTTP %d: %q, %v", status, got, err)
		}
	}
}

func TestKill(t *testing.T) {
	file, b := filepath.Join(t.TempDir(), "orders.db"), newBank(nil)
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	open(t, file, b)
	data := file + "\n" + server.URL
	storetest.TestKill(t, storetest.Fixture{Give: b.give, Balance: b.balance},
		storetest.Start(t, "", data), storetest.Start(t, "", data))
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
