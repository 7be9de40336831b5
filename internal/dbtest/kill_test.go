package dbtest

import (
	"bufio"
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Property 5: whatever is interrupted, every effect happens exactly once.

const (
	envServe   = "RAMP_TEST_SERVE" // the driver; if set, the process is a game server
	envDSN     = "RAMP_TEST_SERVE_DSN"
	envDialect = "RAMP_TEST_SERVE_DIALECT"
)

// serve runs a game server in the child process until it is killed. It prints the
// server's address.
func serve() {
	db, err := sql.Open(os.Getenv(envServe), os.Getenv(envDSN))
	if err != nil {
		log.Fatal(err)
	}
	players := studio{db: db, dialect: ramp.Dialect(os.Getenv(envDialect))}
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: players.dialect, Apply: players.Apply})
	if err != nil {
		log.Fatal(err)
	}
	handler := newHandler(fatal{}, newGame(players, store))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		time.Sleep(rand.N(3 * time.Millisecond)) // simulate network latency
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	}))
	fmt.Println(server.URL)
	select {}
}

type fatal struct{}

func (fatal) Helper()        {}
func (fatal) Fatal(v ...any) { log.Fatal(v...) }

// child is a game server in a process of its own.
type child struct {
	t       *testing.T
	p       *place
	program string // the test binary that serves; this one if empty
	command *exec.Cmd
	url     atomic.Value // string
}

func (c *child) start() {
	c.t.Helper()
	c.command = exec.Command(cmp.Or(c.program, os.Args[0]))
	c.command.Env = append(os.Environ(), envServe+"="+c.p.driver, envDSN+"="+c.p.dsn, envDialect+"="+string(c.p.dialect))
	c.command.Stderr = os.Stderr
	out, err := c.command.StdoutPipe()
	check(c.t, err)
	check(c.t, c.command.Start())
	url, err := bufio.NewReader(out).ReadString('\n')
	check(c.t, err)
	c.url.Store(strings.TrimSpace(url))
}

// kill sends SIGKILL.
func (c *child) kill() {
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
}

// traffic plays a service that runs several orders concurrently and repeats every call
// until it is answered. When it stops, it completes the orders in progress.
type traffic struct {
	w    *world
	want moves
	mu   sync.Mutex
	wg   sync.WaitGroup
	stop chan struct{}

	answers chan struct{} // one for each answer
	cut     atomic.Int64  // calls that were interrupted or answered with 500
	results []func() answer

	told map[uuid.UUID]ramp.OrderState // the state of each order according to the answers
}

const players = 4

func (w *world) traffic(workers int) *traffic {
	for n := range players {
		w.give(fmt.Sprint("player", n), "gold", 1_000_000)
		w.give(fmt.Sprint("player", n), "gem", 1_000_000)
	}
	f := &traffic{w: w, want: moves{}, stop: make(chan struct{}), answers: make(chan struct{}), told: map[uuid.UUID]ramp.OrderState{}}
	for range workers {
		f.wg.Go(func() {
			for {
				select {
				case <-f.stop:
					return
				default:
					f.order()
				}
			}
		})
	}
	return f
}

// order runs one order from validate to result.
func (f *traffic) order() {
	player := fmt.Sprint("player", rand.N(players))
	status := uint64(rand.N(2))
	gold, gem := 1+rand.N(9), 1+rand.N(9)
	var o order
	var want []string
	if rand.N(2) == 0 {
		o = newOrder(player, mint("gold", gold, "gem", gem))
		want = []string{fmt.Sprintf("take %s -%d gold", player, gold), fmt.Sprintf("take %s -%d gem", player, gem)}
		if status == failure {
			want = append(want, fmt.Sprintf("give back %s +%d gold", player, gold), fmt.Sprintf("give back %s +%d gem", player, gem))
		}
	} else {
		o = newOrder(player, burn("gold", gold, "gem", gem))
		if status == success {
			want = []string{fmt.Sprintf("grant %s +%d gold", player, gold), fmt.Sprintf("grant %s +%d gem", player, gem)}
		}
	}
	deliver := func() answer { return f.w.result(o, status) }
	f.mu.Lock()
	f.want[o.id] = want
	f.results = append(f.results, deliver)
	f.mu.Unlock()
	f.untilAnswered(func() answer { return f.w.validate(o) })
	f.tell(o.id, ramp.OrderAccepted)
	f.untilAnswered(deliver)
	f.tell(o.id, map[uint64]ramp.OrderState{success: ramp.OrderSucceeded, failure: ramp.OrderFailed}[status])
}

func (f *traffic) tell(id uuid.UUID, state ramp.OrderState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[id] = state
}

// untold counts the steps that were committed but not answered. A repeat must not apply
// them again.
func (f *traffic) untold() (n int) {
	f.w.t.Helper()
	rows, err := f.w.db.Query("SELECT uuid, state FROM ramp_orders")
	check(f.w.t, err)
	defer rows.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for rows.Next() {
		var id uuid.UUID
		var state string
		check(f.w.t, rows.Scan(&id, &state))
		if f.told[id] != ramp.OrderState(state) {
			n++
		}
	}
	check(f.w.t, rows.Err())
	return n
}

func (f *traffic) untilAnswered(call func() answer) {
	for deadline := time.Now().Add(time.Minute); ; {
		a := call()
		if a.err == nil {
			select {
			case f.answers <- struct{}{}:
			default: // nobody waits
			}
		}
		if a.err == nil && a.status == http.StatusOK && a.code == "" {
			return
		}
		if !errors.Is(a.err, syscall.ECONNREFUSED) { // otherwise no server received the call
			f.cut.Add(1)
		}
		if a.err == nil && a.status != http.StatusInternalServerError || time.Now().After(deadline) {
			f.w.t.Errorf("answered %q, %v", a, a.err)
			return
		}
		time.Sleep(time.Millisecond) // the server is starting
	}
}

// wait waits for a number of answers.
func (f *traffic) wait(answers int) {
	f.w.t.Helper()
	timeout := time.After(time.Minute)
	for range answers {
		select {
		case <-f.answers:
		case <-timeout:
			f.w.t.Fatal("no answers for a minute")
		}
	}
}

// finish lets the orders in progress end, delivers every result once more without
// interruptions, and checks the books.
func (f *traffic) finish() {
	f.w.t.Helper()
	close(f.stop)
	f.wg.Wait()
	for _, deliver := range f.results {
		f.w.expect(deliver(), "200")
	}
	f.w.books(f.want)
	f.w.t.Logf("%d orders, %d calls cut off", len(f.results), f.cut.Load())
}

func TestKill(t *testing.T) { eachDatabase(t, testKill) }

func testKill(t *testing.T, p *place) {
	const kills = 20 // at least; more, if none of them came after a commit
	c := &child{t: t, p: p}
	c.start()
	t.Cleanup(c.kill)
	w := newWorld(t, p, nil)
	w.address = func() string { return c.url.Load().(string) }
	f := w.traffic(8)
	n, untold := 0, 0
	for ; n < kills || untold == 0 && n < 5*kills; n++ {
		f.wait(1 + rand.N(20))
		c.kill()
		untold += f.untold()
		c.start()
	}
	f.finish()
	t.Logf("%d kills, %d steps committed and not answered", n, untold)
	if f.cut.Load() < kills || untold == 0 {
		t.Errorf("%d kills cut off %d calls, %d of them after their commit: the moments prove nothing", n, f.cut.Load(), untold)
	}
}

// PostgreSQL itself crashes and recovers.
func TestCrashOfPostgreSQL(t *testing.T) {
	const crashes = 3
	s := newServer(t, "")
	p := placeOf(t, fmt.Sprintf("127.0.0.1:%d", s.port))
	run(t, p.db, p.dialect.Schema()+tables)
	f := newWorld(t, p, nil).traffic(8)
	for range crashes {
		f.wait(20 + rand.N(20))
		s.kill()
		s.start()
	}
	f.wait(20)
	f.finish()
	if f.cut.Load() < crashes {
		t.Errorf("%d crashes cut off %d calls", crashes, f.cut.Load())
	}
}

// The database commits, but its answer is lost.
func TestLostAnswerOfACommit(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		var lost atomic.Int64 // number of answers that are still to be lost
		p.db = lossy(t, p, &lost)
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		lost.Store(1)
		w.expect(w.validate(o), "500 INTERNAL_ERROR")
		w.books(moves{o.id: {"take alice -5 gold"}})
		w.expect(w.validate(o), "200")
		lost.Store(1)
		w.expect(w.result(o, failure), "500 INTERNAL_ERROR")
		w.expect(w.result(o, failure), "200")
		w.books(moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}})
		if lost.Load() != 0 {
			t.Error("no answer was lost")
		}
	})
}
