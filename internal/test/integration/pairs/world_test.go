package pairs

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
)

// The rules of the world:
//
//   - A chain that lives mines what was signed within the hour, or never: the player has closed the page.
//   - The service repeats a result up to 20 times in 12 hours, until it hears 200 or 400. It answers a person who
//     asks: which transaction an order has, that it will have none, or to wait.
//   - Other players trade in both directions, and their orders end.
//   - A page shows the price of the moment when it is opened.

// world is all that is not the product: what happens, and what persons know.
type world struct {
	t     testing.TB
	now   func() time.Time
	sleep func(time.Duration)
	gap   time.Duration // between two calls

	chain   *chain
	data    database
	dbs     []*sql.DB // one, until a player moves
	closes  []func()
	store   *store
	game    game
	signer  *ramp.Signer
	service service
	servers []*server
	log     *buffer
	books   books
	backups []*backup
	orders  []*order
	again   func()    // the last call of the service
	traded  time.Time // when bob has last traded

	versions *versions

	inside map[string]func() // what happens once within the next call
	taking chan bool         // one transaction writes at a time; SQLite would wait outside of a bubble's clock

	calling   bool // what happens now does so within a call
	repriced  bool // the price has changed within the call that is in progress
	restores  bool // a backup will be restored
	restoring bool // what a backup lacks is stored again
	migrated  bool
	restored  bool
	deleted   int // orders that have ended
	conflicts []*order
	faults    []fault
	story     []string
	last      map[string]string // what persons last heard about the orders of a player
}

// fault is what is wrong: of two of the same kind, player and amount, one is the cause of both.
type fault struct {
	kind, player string
	amount       int64
	detail       string
}

func (f fault) String() string {
	return fmt.Sprintf("%s %s %+d", f.kind, f.player, f.amount)
}

func (w *world) fault(kind, player string, amount int64, detail string, args ...any) {
	w.faults = append(w.faults, fault{kind, player, amount, fmt.Sprintf(detail, args...)})
}

func (w *world) tell(text string, args ...any) { w.story = append(w.story, fmt.Sprintf(text, args...)) }

var ctx = context.Background()

// check ends the test if something fails that is not tested.
func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, strings.Join(w.story, "\n"))
	}
}

// buffer is a log.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *buffer) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *buffer) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// begin makes a world in which bob, long ago, has minted and burned: the node is known to list such events.
func begin(t testing.TB, data database, now func() time.Time, sleep func(time.Duration)) *world {
	w := &world{t: t, now: now, sleep: sleep, gap: 20 * time.Second, data: data, log: &buffer{},
		inside: map[string]func(){}, taking: make(chan bool, 1), last: map[string]string{},
		versions: new(versions),
		signer:   must.Get(ramp.NewKeySigner(strings.Repeat("12", 32)))(t)}
	w.open(nil)
	w.chain = &chain{now: now, begun: now().Add(-24 * time.Hour)}
	w.game = game{price: price{mint: 100, burn: 100}, key: "key", projects: []string{"p"},
		accounts: map[string]string{}, session: map[string]string{}}
	w.service = service{key: "key", validators: []common.Address{w.signer.Address()}}
	w.books.begun, w.books.closed = w.chain.begun, w.chain.begun
	w.books.sold = rampbooks.Always(w.product())
	w.store = newStore(w)
	w.servers = []*server{w.newServer(), w.newServer()}
	for _, player := range []string{"alice", "bob"} {
		w.game.accounts[player] = player
		w.exec("INSERT INTO balances (player, gold) VALUES (?, ?)", player, startGold)
		w.exec("INSERT INTO sessions (session, player) VALUES (?, ?)", player, player)
	}
	w.sleep(time.Minute)
	w.others()
	if len(w.faults) > 0 || !w.orders[0].heard || !w.orders[1].heard {
		t.Fatalf("bob's orders: %v\n%s", w.faults, w.log)
	}
	w.sleep(time.Hour)
	w.close()
	if w.books.ended != 2 || len(w.books.findings) > 0 {
		t.Fatalf("bob's orders: %d have ended, %v", w.books.ended, w.books.findings)
	}
	w.again = nil
	return w
}

// others: bob mints and burns, if he has not for a day.
func (w *world) others() {
	if w.now().Before(w.traded.Add(day)) {
		return
	}
	w.traded = w.now()
	for _, burn := range []bool{false, true} {
		o := w.page("bob", burn)
		w.validate(o)
		w.mined(o)
		w.deliver(o)
	}
}

// seed is a world after begin, with which others begin.
type seed struct {
	world   *world
	content content
	at      time.Time
}

// plant makes the seed in a bubble, in which the time begins anew.
func plant(t testing.TB, data database) *seed {
	w := begin(t, data, time.Now, time.Sleep)
	defer w.end()
	return &seed{w, w.dump().dbs[0], time.Now()}
}

// open opens another database, and fills it.
func (w *world) open(with content) {
	db, closes := w.data.open(w.t, len(w.dbs))
	w.dbs, w.closes = append(w.dbs, db), append(w.closes, closes)
	if w.migrated {
		w.migrate(db)
	}
	w.fill(db, with)
}

// end closes the databases, with the tables of this release.
func (w *world) end() {
	if w.migrated {
		of := ""
		if w.data.dialect == rampsql.MySQL {
			of = " ON ramp_orders"
		}
		w.exec("DROP INDEX ramp_orders_network" + of)
		w.exec("ALTER TABLE ramp_orders DROP COLUMN of_next_release")
	}
	for _, closes := range w.closes {
		closes()
	}
}

// grow makes a world from the seed.
func (s *seed) grow(t testing.TB) *world {
	time.Sleep(time.Until(s.at))
	w := new(world)
	*w = *s.world
	w.t, w.log, w.dbs, w.closes = t, &buffer{}, nil, nil
	_, _ = w.log.Write([]byte(s.world.log.String()))
	w.chain = &chain{now: time.Now, begun: w.chain.begun, txs: slices.Clone(w.chain.txs)}
	w.inside, w.taking, w.last = map[string]func(){}, make(chan bool, 1), map[string]string{}
	w.versions = new(versions)
	w.open(s.content)
	w.game.accounts, w.game.session = maps.Clone(w.game.accounts), map[string]string{}
	w.books.sold = slices.Clone(w.books.sold)
	w.orders = nil
	for _, o := range s.world.orders {
		own := *o
		w.orders = append(w.orders, &own)
	}
	w.store = newStore(w)
	w.servers = []*server{w.newServer(), w.newServer()}
	return w
}

// pass lets time pass. In an hour or more, what was signed is mined, and results come.
func (w *world) pass(d time.Duration) {
	end := w.now().Add(d)
	if d >= time.Hour {
		w.sleep(10 * time.Minute)
		for _, o := range w.orders {
			w.mined(o)
		}
		const between = 37 * time.Minute // 20 times in 12 hours
		for w.now().Add(between).Before(end) && w.deliverAll() {
			w.sleep(between)
		}
	}
	w.sleep(max(0, end.Sub(w.now())))
}

// any returns the first order of alice of which something is true.
func (w *world) any(is func(o *order) bool) *order {
	at := slices.IndexFunc(w.orders, func(o *order) bool { return o.player == "alice" && is(o) })
	if at < 0 {
		return nil
	}
	return w.orders[at]
}

// each does something to each order of alice of which something is true.
func (w *world) each(is func(o *order) bool, do func(o *order)) {
	for _, o := range slices.Clone(w.orders) {
		if o.player == "alice" && is(o) {
			do(o)
		}
	}
}

// both does two things at once.
func (w *world) both(one, other func()) {
	w.service.excused, w.service.busy = false, true
	done := make(chan bool)
	go func() { defer close(done); other() }()
	one()
	<-done
	w.service.busy = false
}

func (w *world) proof() *rampproof.Proof {
	chain := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "http://node.local", ChainID: 1112, Retries: -1,
		HTTPClient: &http.Client{Transport: w.chain}}))(w.t)
	return must.Get(rampproof.New(rampproof.Config{Chain: chain, Network: ramp.Testnet,
		Payers: []common.Address{payer}, Decimals: map[common.Address]int{token: 18},
		Logger: slog.New(slog.DiscardHandler)}))(w.t)
}
