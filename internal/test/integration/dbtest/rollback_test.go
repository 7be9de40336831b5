package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Property 9: a database may roll back a whole transaction because one statement failed.
// A studio that continues despite the error moves nothing twice and loses nothing.

const statistics = `
CREATE TABLE statistics (name VARCHAR(64) NOT NULL PRIMARY KEY, n BIGINT NOT NULL, note TEXT);
INSERT INTO statistics (name, n) VALUES ('orders', 0);
`

// careless is a studio that counts its orders and ignores errors of the count.
type careless struct {
	studio
	t     *testing.T
	count miscount // may be nil
	last  bool     // whether it counts after the moves
	blind bool     // whether it ignores every other error too
}

// miscount is a count that fails, which Apply ignores. It returns an error only if it did
// not fail in the expected way.
type miscount func(ctx context.Context, tx *sql.Tx, step ramp.Step) error

func (s *careless) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	count := s.count
	s.count = nil // once is enough
	counts := func(last bool) {
		if count == nil || last != s.last {
			return
		}
		if err := count(ctx, tx, step); err != nil {
			s.t.Error(err)
		}
	}
	counts(false)
	err := s.studio.Apply(ctx, tx, step)
	counts(true)
	if s.blind {
		return nil
	}
	return err
}

// newCarelessWorld serves a game of a careless studio.
func newCarelessWorld(t *testing.T, d database) (*world, *careless) {
	t.Helper()
	p := newPlace(t, d, d.modes[0], statistics)
	s := &careless{t: t, studio: studio{db: p.db, dialect: p.dialect}}
	return newWorld(t, p, newStore(t, p, s.Apply)), s
}

// carelessSteps are the steps of an order that move something.
var carelessSteps = []struct {
	name   string
	intent ramp.Intent
	before []string // what the order has moved before the step
	after  []string // and after it
	take   func(w *world, o order) answer
}{
	{"validate of a mint", mint("gold", 5), nil, []string{"take alice -5 gold"},
		func(w *world, o order) answer { return w.validate(o) }},
	{"result of a mint", mint("gold", 5), []string{"take alice -5 gold"},
		[]string{"take alice -5 gold", "give back alice +5 gold"},
		func(w *world, o order) answer { return w.result(o, failure) }},
	{"result of a burn", burn("gold", 5), nil, []string{"grant alice +5 gold"},
		func(w *world, o order) answer { return w.result(o, success) }},
	{"abandoned mint", mint("gold", 5), []string{"take alice -5 gold"},
		[]string{"take alice -5 gold", "give back alice +5 gold"},
		func(w *world, o order) answer {
			if _, err := w.store.Update(context.Background(), o.id, ramp.Abandon("case 17", time.Now())); err != nil {
				return answer{status: 500, code: "INTERNAL_ERROR"}
			}
			return answer{status: 200}
		}},
}

// eachCarelessStep runs every step with a count that fails, before the moves and after
// them. count is called once.
func eachCarelessStep(t *testing.T, dialect rampsql.Dialect, blind bool, count func(w *world) miscount) {
	for _, step := range carelessSteps {
		for _, last := range []bool{false, true} {
			name := step.name + ", counted first"
			if last {
				name = step.name + ", counted last"
			}
			t.Run(name, func(t *testing.T) {
				w, s := newCarelessWorld(t, databaseOf(t, dialect))
				w.give("alice", "gold", 100)
				o := newOrder("alice", step.intent)
				if !strings.HasPrefix(step.name, "validate") {
					w.expect(w.validate(o), "200")
				}
				want := moves{o.id: step.before}
				w.assertMoves(want)
				s.count, s.last, s.blind = count(w), last, blind
				w.expect(step.take(w, o), "500 INTERNAL_ERROR")
				w.assertMoves(want)
				w.expect(step.take(w, o), "200")
				w.expect(step.take(w, o), "200")
				want[o.id] = step.after
				w.assertMoves(want)
				w.expectAutocommit()
			})
		}
	}
}

// expectAutocommit fails the test if a connection of the pool was left in another mode
// than its original one.
func (w *world) expectAutocommit() {
	w.t.Helper()
	if w.autocommit == "" {
		return
	}
	ctx := context.Background()
	for range w.db.Stats().OpenConnections {
		conn := must.Get(w.db.Conn(ctx))(w.t)
		defer conn.Close() // keep all open, so that each is a different one
		var on bool
		check(w.t, conn.QueryRowContext(ctx, w.autocommit).Scan(&on))
		if !on {
			w.t.Error("a connection went back to the pool with autocommit off")
		}
	}
}

// deadlock is a miscount that is the victim of a deadlock on MySQL.
func (w *world) deadlock(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	_, err := w.victim(ctx, tx, step)
	return err
}

// victim makes the transaction of Apply the victim of a deadlock on MySQL and returns the
// error of tx. It returns after the rival has ended.
func (w *world) victim(ctx context.Context, tx *sql.Tx, step ramp.Step) (lost, err error) {
	rival, err := w.db.Begin()
	if err != nil {
		return nil, err
	}
	for range 50 { // the lighter transaction is the victim
		if _, err := rival.Exec("INSERT INTO steps (uuid, state) VALUES ('of the rival', 'none')"); err != nil {
			return nil, errors.Join(err, rival.Rollback())
		}
	}
	if _, err := rival.Exec("UPDATE statistics SET n = n + 100"); err != nil {
		return nil, errors.Join(err, rival.Rollback())
	}
	gone := make(chan error, 1)
	go func() {
		var one int
		err := rival.QueryRow("SELECT 1 FROM ramp_orders WHERE uuid = ? FOR UPDATE",
			step.Order.UUID.String()).Scan(&one)
		if errors.Is(err, sql.ErrNoRows) { // it was rolled back
			err = nil
		}
		gone <- errors.Join(err, rival.Rollback())
	}()
	for n := int64(0); n == 0; time.Sleep(time.Millisecond) {
		if n, err = w.waiting(); err != nil {
			return nil, err
		}
	}
	_, lost = tx.ExecContext(ctx, "UPDATE statistics SET n = n + 1")
	var cause *mysql.MySQLError
	if !errors.As(lost, &cause) || cause.Number != 1213 {
		return nil, errors.Join(fmt.Errorf("no deadlock, but %w", lost), <-gone)
	}
	return lost, <-gone
}

// While Apply continues without its transaction, another machine receives and stores the
// same result. The row then has the state that Apply was called for, but from the other
// machine.
func TestADeadlockThatAnotherDeliveryOutruns(t *testing.T) {
	w, s := newCarelessWorld(t, databaseOf(t, rampsql.MySQL))
	w.give("alice", "gold", 100)
	o := newOrder("alice", burn("gold", 5))
	w.expect(w.validate(o), "200")
	machine := newWorld(t, w.place, newStore(t, w.place, s.studio.Apply))
	s.count = func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		err := w.deadlock(ctx, tx, step)
		if other := machine.result(o, success); other.String() != "200" {
			return fmt.Errorf("the other delivery was answered %q", other)
		}
		return err
	}
	w.expect(w.result(o, success), "500 INTERNAL_ERROR")
	w.assertMoves(moves{o.id: {"grant alice +5 gold"}})
	w.expect(w.result(o, success), "200")
	w.assertMoves(moves{o.id: {"grant alice +5 gold"}})
}

// A caller may give up at any time, and database/sql then rolls back by itself. Turning
// autocommit on again must not commit the open transaction, and no connection may return
// to the pool in the wrong mode.
func TestACallThatIsCanceledInApply(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w, s := newCarelessWorld(t, p.database)
		w.give("alice", "gold", 100)
		for _, last := range []bool{false, true} {
			o := newOrder("alice", mint("gold", 5))
			ctx, cancel := context.WithCancel(context.Background())
			s.last, s.blind = last, true
			s.count = func(context.Context, *sql.Tx, ramp.Step) error { cancel(); return nil }
			_, err := w.store.Update(ctx, o.id, o.accept())
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a canceled call ended with %v", err)
			}
			expectText(t, err,
				"ramp: order "+o.id.String()+
					": not committed, because its context had ended when Apply returned: context canceled")
			w.assertMoves(moves{})
			w.expectAutocommit()
		}
	})
}

// After a canceled call, database/sql rolls back in the background. Until the database has confirmed
// that, nobody may turn autocommit on, which would commit. Here the rollback must wait, because Apply
// holds rows, and would come too late.
func TestAutocommitIsNotTurnedOnBeforeTheRollback(t *testing.T) {
	p := newPlace(t, databaseOf(t, rampsql.MySQL), mode{})
	turnedOn := make(chan struct{}, 1)
	lossy(t, p).onExec = func(query string) {
		if query == "SET autocommit = 1" {
			turnedOn <- struct{}{}
		}
	}
	w := newWorld(t, p, nil)
	w.give("alice", "gold", 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	holding := make(chan *sql.Rows, 1)
	store := newStore(t, p, func(applied context.Context, tx *sql.Tx, step ramp.Step) error {
		check(t, studio{db: p.db, dialect: p.dialect}.Apply(applied, tx, step))
		held := must.Get(tx.QueryContext(context.WithoutCancel(applied), "SELECT 'text'"))(t)
		defer func() { holding <- held }()
		var text sql.RawBytes // holds the rows, and they hold the transaction
		if !held.Next() {
			return held.Err()
		}
		check(t, held.Scan(&text))
		cancel()
		for !errors.Is(tx.Commit(), sql.ErrTxDone) { // until database/sql has begun to roll back
			runtime.Gosched()
		}
		return nil
	})
	o := newOrder("alice", mint("gold", 5))
	ended := make(chan error)
	go func() {
		_, err := store.Update(ctx, o.id, o.accept())
		ended <- err
	}()
	for len(turnedOn) == 0 && !strings.Contains(stacks(), "database/sql.(*Conn).close(") {
		time.Sleep(time.Millisecond) // until the store turns autocommit on, or discards the connection
	}
	check(t, (<-holding).Close())
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call ended with %v", err)
	}
	equal(t, "how often autocommit was turned on", len(turnedOn), 0)
	w.assertMoves(moves{})
	w.expectAutocommit()
}

// stacks returns what all goroutines do.
func stacks() string {
	all := make([]byte, 1<<20)
	return string(all[:runtime.Stack(all, true)])
}

// full makes SQLite run out of space, like a full disk.
func full(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
	if _, err := tx.ExecContext(ctx, "PRAGMA max_page_count = 1"); err != nil { // SQLite raises it to the current size
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO statistics (name, n, note) VALUES ('large', 0, hex(zeroblob(1000000)))")
	if err == nil || !strings.Contains(err.Error(), "full") {
		return fmt.Errorf("not full, but %w", err)
	}
	_, err = tx.ExecContext(ctx, "PRAGMA max_page_count = 1000000")
	return err
}

// rejected is a miscount whose statement fails: by an error after which PostgreSQL rejects
// all later statements and the commit, or with the connection, and with it the transaction.
func rejected(statement string) miscount {
	return func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
		if _, err := tx.ExecContext(ctx, statement); err == nil {
			return errors.New("the statement did not fail: " + statement)
		}
		return nil
	}
}

func TestAnErrorThatApplyIgnores(t *testing.T) {
	for name, c := range map[string]struct {
		dialect rampsql.Dialect
		blind   bool
		count   func(*world) miscount
	}{
		"a deadlock": {rampsql.MySQL, false, func(w *world) miscount { return w.deadlock }},
		"a connection that dies": {rampsql.MySQL, true,
			func(*world) miscount { return rejected("KILL CONNECTION_ID()") }},
		"one error of PostgreSQL": {rampsql.PostgreSQL, false,
			func(*world) miscount { return rejected("UPDATE statistics SET n = n / 0") }},
		"and every one that comes after": {rampsql.PostgreSQL, true,
			func(*world) miscount { return rejected("UPDATE statistics SET n = n / 0") }},
		"a full SQLite": {rampsql.SQLite, false, func(*world) miscount { return full }},
	} {
		t.Run(name, func(t *testing.T) { eachCarelessStep(t, c.dialect, c.blind, c.count) })
	}
}

// ends is a miscount that sends a statement and expects no error.
func ends(statement string) miscount {
	return func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	}
}

// An Apply that ends its transaction is told so, by the call of the service and in a test
// with ramptest, although there the second attempt finds an order as after a repeat.
func TestAnApplyThatEndsItsTransaction(t *testing.T) {
	const named = "Apply ended the transaction"
	sends := func(statement string) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			_, err := tx.Exec(statement)
			return err
		}
	}
	pg, mysql, lite := rampsql.PostgreSQL, rampsql.MySQL, rampsql.SQLite
	for _, c := range []struct {
		name  string
		on    []rampsql.Dialect
		end   func(tx *sql.Tx) error
		calls bool // whether calls name it too, not only tests
	}{
		{"Commit", []rampsql.Dialect{pg, mysql, lite}, (*sql.Tx).Commit, true},
		{"Rollback", []rampsql.Dialect{pg, mysql, lite}, (*sql.Tx).Rollback, true},
		{"Rollback after an error", []rampsql.Dialect{pg, mysql, lite}, func(tx *sql.Tx) error {
			check(t, tx.Rollback())
			return ramp.Reject("INVALID_BALANCE")
		}, true},
		{"COMMIT", []rampsql.Dialect{pg, lite}, sends("COMMIT"), true},
		{"COMMIT", []rampsql.Dialect{mysql}, sends("COMMIT"), false},
		{"ROLLBACK", []rampsql.Dialect{pg}, sends("ROLLBACK"), true},
		{"CREATE TABLE", []rampsql.Dialect{mysql},
			sends("CREATE TEMPORARY TABLE t (n INT); CREATE TABLE u (n INT)"), false},
		{"START TRANSACTION", []rampsql.Dialect{mysql}, sends("START TRANSACTION"), false},
		{"LOCK TABLES", []rampsql.Dialect{mysql}, sends("LOCK TABLES ramp_orders WRITE, holdings WRITE"), false},
	} {
		for _, dialect := range c.on {
			d := databaseOf(t, dialect)
			for _, inTest := range []bool{true, false} {
				if !inTest && !c.calls {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/in a test %v", d.name, c.name, inTest), func(t *testing.T) {
					p := newPlace(t, d,
						mode{params: d.manyAtOnce})
					if d.manyAtOnce != "" {
						p.may(t, "CREATE, CREATE TEMPORARY TABLES, LOCK TABLES")
					}
					store := newStore(t, p, func(_ context.Context, tx *sql.Tx, _ ramp.Step) error { return c.end(tx) })
					o := newOrder("alice", mint("gold", 5))
					ctx := t.Context()
					if inTest {
						ctx = rollback.Ask(ctx)
					}
					step, err := store.Update(ctx, o.id, o.accept())
					t.Log(err)
					expectText(t, err, "ramp: order "+o.id.String(), named)
					equal(t, "whether it is a step", step.New, false)
				})
			}
		}
	}
}

// A burn's grant is tried in a savepoint, which shows also in production that a statement of
// Apply has ended the transaction: nothing is signed.
func TestABurnWhoseApplyEndsItsTransactionIsNotSigned(t *testing.T) {
	for _, c := range []struct {
		dialect   rampsql.Dialect
		statement string
	}{
		{rampsql.PostgreSQL, "COMMIT"},
		{rampsql.PostgreSQL, "ROLLBACK"},
		{rampsql.MySQL, "COMMIT"},
		{rampsql.MySQL, "ROLLBACK"},
		{rampsql.MySQL, "START TRANSACTION"},
		{rampsql.MySQL, "CREATE TABLE IF NOT EXISTS t (n INT)"},
		{rampsql.SQLite, "COMMIT"},
	} {
		t.Run(string(c.dialect)+"/"+c.statement, func(t *testing.T) {
			p := placeOn(t, c.dialect)
			if strings.HasPrefix(c.statement, "CREATE") {
				p.may(t, "CREATE")
			}
			store := newStore(t, p, ends(c.statement))
			o := newOrder("alice", burn("gold", 5))
			_, err := store.Update(t.Context(), o.id, o.accept())
			t.Log(err)
			expectText(t, err, "ramp: order "+o.id.String(), "Apply ended the transaction")
		})
	}
}

// Rows that stay open make a connection unusable for what follows, but the error of a driver
// does not say so. On SQLite they do not, and PostgreSQL closes them before a commit.
func TestAnApplyThatLeavesRowsOpen(t *testing.T) {
	const named = "driver: bad connection (the connection was lost, or Apply left rows open: close them"
	for _, c := range []struct {
		dialect        rampsql.Dialect
		returns, sends string
	}{
		{rampsql.SQLite, "", ""},
		{rampsql.PostgreSQL, "", "Apply (accepted): " + named},
		{rampsql.MySQL, "commit: " + named, "Apply (accepted): " + named},
	} {
		p := placeOn(t, c.dialect)
		run(t, p.db,
			"INSERT INTO holdings (session_id, asset, amount) VALUES ('a', 'x', 1), ('a', 'y', 1), ('a', 'z', 1)")
		for next, want := range map[string]string{"": c.returns, "UPDATE holdings SET amount = 2": c.sends} {
			store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
				rows, err := tx.QueryContext(ctx, "SELECT a.asset FROM holdings a, holdings b, holdings c")
				check(t, err)
				rows.Next()
				if next == "" {
					return nil
				}
				_, err = tx.Exec(next)
				return err
			})
			o := newOrder("alice", mint("gold", 5))
			_, err := store.Update(t.Context(), o.id, o.accept())
			if want == "" {
				check(t, err)
			} else {
				expectText(t, err, want)
			}
		}
	}
}

// A statement of Apply that ends the transaction must not leave a signature without an order. On
// PostgreSQL, COMMIT succeeds outside of a transaction, whatever the driver.
func TestARollbackInApply(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect rampsql.Dialect
		open    func(t *testing.T, p *place) *sql.DB // nil for the driver of the place
	}{
		{"MySQL", rampsql.MySQL, nil},
		{"SQLite", rampsql.SQLite, nil},
		{"pgx", rampsql.PostgreSQL, nil},
		{"lib/pq", rampsql.PostgreSQL, func(t *testing.T, p *place) *sql.DB { return open(t, "postgres", p.dsn) }},
		{"a driver that wraps pgx", rampsql.PostgreSQL, openWrapped},
	} {
		d := databaseOf(t, c.dialect)
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, d, d.modes[0])
			if c.open != nil {
				p.db = c.open(t, p)
			}
			s := &careless{t: t, studio: studio{db: p.db, dialect: p.dialect}}
			w := newWorld(t, p, newStore(t, p, s.Apply))
			w.give("alice", "gold", 100)
			for _, last := range []bool{false, true} { // before the moves, which then commit, or after them
				o := newOrder("alice", mint("gold", 5))
				s.count, s.last = ends("ROLLBACK"), last
				answer := w.validate(o)
				equal(t, "the answer", answer.String(), "500 INTERNAL_ERROR")
				equal(t, "the signature", answer.signature, "")
				var stored int
				check(t, w.db.QueryRow("SELECT count(*) FROM ramp_orders").Scan(&stored))
				equal(t, "rows that are stored", stored, 0)
			}
			run(t, w.db, "UPDATE holdings SET amount = 100")
			run(t, w.db, "UPDATE moves SET amount = 0")
			o := newOrder("alice", mint("gold", 5))
			w.expect(w.validate(o), "200")
			w.expectAutocommit()
		})
	}
}

// openWrapped opens a database with a driver that hides the one below, as those that trace do.
func openWrapped(t *testing.T, p *place) *sql.DB {
	t.Helper()
	config := must.Get(pgx.ParseConfig(p.dsn))(t)
	db := sql.OpenDB(wrappedConnector{stdlib.GetConnector(*config)})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

type wrappedConnector struct{ driver.Connector }

func (c wrappedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return wrappedConn{conn.(pgxConn)}, nil
}

// pgxConn is what database/sql uses of a connection.
type pgxConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
}

type wrappedConn struct{ pgxConn }
