package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/regions"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// sharded is a game of examples/regions on two databases.
type sharded struct {
	*world
	places [2]*place
	game   *regions.Game
	store  *rampsql.Shards
}

func newSharded(t *testing.T) *sharded {
	t.Helper()
	s := &sharded{game: &regions.Game{}}
	var stores []*rampsql.Store
	for n, schema := range []string{regions.ShardSchema + regions.DirectorySchema, regions.ShardSchema} {
		s.places[n] = placeOn(t, rampsql.PostgreSQL, schema)
		s.places[n].may(t, "DELETE")
		s.game.Shards = append(s.game.Shards, s.places[n].db)
	}
	s.game.Directory = open(t, s.places[0].driver, s.places[0].dsn) // with connections of its own
	claims := must.Get(s.game.Claims(ramp.Testnet))(t)
	for _, p := range s.places {
		stores = append(stores, newClaimingStore(t, p, regions.Apply, claims))
	}
	s.store = must.Get(rampsql.NewShards(rampsql.ShardsConfig{Stores: stores, Place: s.game.Place}))(t)
	s.world = newWorld(t, s.places[0], stores[0])
	server := httptest.NewServer(newHandler(t, studio{}, s.store))
	t.Cleanup(server.Close)
	s.address = func() string { return server.URL }
	return s
}

// settle lets a player live in a database, with gold.
func (s *sharded) settle(player string, shard, gold int) {
	s.t.Helper()
	run(s.t, s.places[shard].db, fmt.Sprintf("INSERT INTO residents VALUES ('%[1]s');"+
		"INSERT INTO balances VALUES ('%[1]s', 'gold', %[2]d);", player, gold))
	run(s.t, s.game.Directory, fmt.Sprintf("INSERT INTO players VALUES ('%s', %d)", player, shard))
}

// gold returns what a player has in each database, and in parcels that have not arrived.
func (s *sharded) gold(player string) (here [2]int, parcels int) {
	s.t.Helper()
	arrived := map[string]bool{}
	for _, p := range s.places {
		rows := must.Get(p.db.Query("SELECT id FROM delivered"))(s.t)
		for rows.Next() {
			var id string
			check(s.t, rows.Scan(&id))
			arrived[id] = true
		}
		check(s.t, errors.Join(rows.Err(), rows.Close()))
	}
	for n, p := range s.places {
		check(s.t, p.db.QueryRow("SELECT COALESCE(SUM(amount), 0) FROM balances WHERE player = $1",
			player).Scan(&here[n]))
		rows := must.Get(p.db.Query("SELECT id, amount FROM parcels WHERE player = $1", player))(s.t)
		for rows.Next() {
			var id string
			var amount int
			check(s.t, rows.Scan(&id, &amount))
			if !arrived[id] {
				parcels += amount
			}
		}
		check(s.t, errors.Join(rows.Err(), rows.Close()))
	}
	return here, parcels
}

func (s *sharded) orders() (n [2]int) {
	s.t.Helper()
	for i, p := range s.places {
		check(s.t, p.db.QueryRow("SELECT count(*) FROM ramp_orders").Scan(&n[i]))
	}
	return n
}

// A player moves. The move is cut off at each statement and before and after each commit, every call is
// repeated there, and the move is made again. Nothing is taken, granted or given back twice, nothing is lost,
// and what comes back reaches the player.
func TestAPlayerMovesToAnotherDatabase(t *testing.T) {
	placeOn(t, rampsql.PostgreSQL) // or the test is skipped
	cut := 1
	for ; ; cut++ {
		finished := false
		t.Run(fmt.Sprintf("cut off at %d", cut), func(t *testing.T) { finished = moveCutOff(t, cut) })
		if finished || t.Failed() {
			break
		}
	}
	t.Logf("%d places at which a move can be cut off", cut-1)
}

// moveCutOff plays a move that is cut off after so many statements. It reports whether the move had fewer.
func moveCutOff(t *testing.T, cut int) (finished bool) {
	t.Helper()
	s := newSharded(t)
	s.settle("alice", 0, 100)
	sold, failed, bought := newOrder("alice", mint("gold", 10)), newOrder("alice", mint("gold", 20)),
		newOrder("alice", burn("gold", 30))
	comesBack, comes := newOrder("alice", mint("gold", 5)), newOrder("alice", burn("gold", 7))
	before := 100 - 10 + 30 - 5
	for _, o := range []order{sold, failed, bought, comesBack, comes} {
		s.expect(s.validate(o), "200")
	}
	s.expect(s.result(sold, success), "200")
	s.expect(s.result(failed, failure), "200")
	s.expect(s.result(bought, success), "200")

	accepted := 0 // of the orders that are tried meanwhile
	everyCall := func(waiting bool) {
		t.Helper()
		s.expect(s.result(sold, success), "200")
		s.expect(s.result(failed, failure), "200")
		s.expect(s.result(bought, success), "200")
		for _, o := range []order{sold, failed, bought} {
			equal(t, "the signature of an order that has ended", s.validate(o).signature, "")
		}
		if waiting {
			s.expect(s.validate(comesBack), "200")
			s.expect(s.validate(comes), "200")
		}
		next := newOrder("alice", mint("gold", 1))
		switch got := s.validate(next); got.String() {
		case "200":
			s.expect(s.validate(next), "200")
			s.expect(s.result(next, success), "200")
			accepted++
		case "200 PLAYER_MOVING":
			equal(t, "the signature", got.signature, "")
		default:
			t.Errorf("a new order: %s", got)
		}
	}
	balance := func(want int) {
		t.Helper()
		here, parcels := s.gold("alice")
		equal(t, "gold of alice", here[0]+here[1]+parcels, want-accepted)
	}

	w, cutOff := s.cutOff(cut)
	err := cutOff.Move(t.Context(), "alice", 1, time.Millisecond)
	if finished = w.left.Load() >= 0; !finished && err == nil {
		t.Error("a move that was cut off has no error")
	}
	everyCall(true)
	balance(before)
	came := 0
	if cut%2 == 0 { // otherwise afterwards
		s.expect(s.result(comesBack, failure), "200")
		s.expect(s.result(comes, success), "200")
		came = 5 + 7
		everyCall(false)
		balance(before + came)
	}
	check(t, s.game.Move(t.Context(), "alice", 1, time.Millisecond))
	everyCall(came == 0)
	for range 2 {
		s.expect(s.result(comesBack, failure), "200")
		s.expect(s.result(comes, success), "200")
	}
	check(t, s.game.Deliver(t.Context()))
	check(t, s.game.Deliver(t.Context()))
	everyCall(false)
	here, parcels := s.gold("alice")
	equal(t, "gold of alice", fmt.Sprint(here, parcels), fmt.Sprint([2]int{0, before + 5 + 7 - accepted}, 0))
	n := s.orders()
	equal(t, "orders", n[0]+n[1], 5+accepted)
	return finished
}

// A parcel is on its way when its player moves on, and is cut off at each statement. It follows, once.
func TestAParcelFollowsAPlayerWhoMovesOn(t *testing.T) {
	placeOn(t, rampsql.PostgreSQL) // or the test is skipped
	for cut, finished := 1, false; !finished && !t.Failed(); cut++ {
		t.Run(fmt.Sprintf("cut off at %d", cut), func(t *testing.T) {
			s := newSharded(t)
			s.settle("alice", 0, 100)
			o := newOrder("alice", mint("gold", 5))
			s.expect(s.validate(o), "200")
			check(t, s.game.Move(t.Context(), "alice", 1, time.Millisecond))
			s.expect(s.result(o, failure), "200")
			w, cutOff := s.cutOff(cut)
			err := cutOff.Deliver(t.Context())
			if finished = w.left.Load() >= 0; finished == (err != nil) {
				t.Errorf("a delivery that was cut off %t: %v", !finished, err)
			}
			check(t, s.game.Move(t.Context(), "alice", 0, time.Millisecond))
			for range 3 {
				check(t, s.game.Deliver(t.Context()))
			}
			here, parcels := s.gold("alice")
			equal(t, "gold of alice", fmt.Sprint(here, parcels), fmt.Sprint([2]int{100, 0}, 0))
		})
	}
}

// cutOff returns the game as somebody has it whose connections break after so many statements.
func (s *sharded) cutOff(after int) (*wire, *regions.Game) {
	s.t.Helper()
	w := &wire{}
	w.left.Store(int64(after))
	cutOff := &regions.Game{Directory: w.open(s.t, s.places[0])}
	for _, p := range s.places {
		cutOff.Shards = append(cutOff.Shards, w.open(s.t, p))
	}
	return w, cutOff
}

// wire lets so many statements, begins and commits of its databases pass. A commit counts twice: it can be cut
// off before it, and after it, when nobody learns that it succeeded.
type wire struct{ left atomic.Int64 }

func (w *wire) pass() error {
	if w.left.Add(-1) < 0 {
		return errLost
	}
	return nil
}

func (w *wire) open(t *testing.T, p *place) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connector{p.db.Driver(), p.dsn, func(conn driver.Conn) driver.Conn { return wired{conn, w} }})
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

type wired struct {
	driver.Conn
	wire *wire
}

func (c wired) Prepare(query string) (driver.Stmt, error) {
	if err := c.wire.pass(); err != nil {
		return nil, err
	}
	return c.Conn.Prepare(query)
}

func (c wired) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return wiredTx{tx, c.wire}, err
}

type wiredTx struct {
	driver.Tx
	wire *wire
}

func (t wiredTx) Commit() error {
	if err := t.wire.pass(); err != nil {
		return errors.Join(err, t.Rollback())
	}
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	return t.wire.pass()
}

// While a database does not answer, whoever has never been there trades, and the others wait.
func TestASilentDatabaseStopsOnlyItsPlayers(t *testing.T) {
	s := newSharded(t)
	s.settle("alice", 0, 100)
	s.settle("bob", 1, 100)
	check(t, s.game.Move(t.Context(), "alice", 1, time.Millisecond))
	waits := newOrder("bob", mint("gold", 5))
	s.expect(s.validate(waits), "200")

	// The directory, with the claims, still answers.
	s.places[0].db.SetMaxOpenConns(1)
	held := must.Get(s.places[0].db.Conn(t.Context()))(t)

	s.expect(s.result(waits, failure), "200")
	next := newOrder("bob", burn("gold", 5))
	s.expect(s.validate(next), "200")
	s.expect(s.result(next, success), "200")
	old := newOrder("alice", mint("gold", 5))
	s.expect(s.validate(old), "500 INTERNAL_ERROR") // its UUID may be there
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.store.Ended(ctx, time.Time{}, time.Now(), ramp.OrderPage{}) // no books without a database
	expectText(t, err, "shard 0")
	check(t, held.Close())
	s.expect(s.validate(old), "200")
}

// One transaction ends one order of a player, also if the player has moved in between.
func TestATransactionEndsOneOrderInAllDatabases(t *testing.T) {
	s := newSharded(t)
	s.settle("alice", 0, 100)
	first, second := newOrder("alice", burn("gold", 5)), newOrder("alice", burn("gold", 5))
	s.expect(s.validate(first), "200")
	s.expect(s.result(first, success), "200")
	check(t, s.game.Move(t.Context(), "alice", 1, time.Millisecond))
	s.expect(s.validate(second), "200")
	result := second.report(success)
	result.TxHash = txHashOf(first.id)
	_, err := s.store.Update(t.Context(), second.id, ramp.Finish(result, time.Now()))
	var conflict *ramp.ConflictError
	if !errors.As(err, &conflict) || conflict.Field != "tx_hash" || conflict.Other == nil ||
		conflict.Other.UUID != first.id {
		t.Errorf("a transaction that had ended another order: %v", err)
	}
	s.expect(s.result(second, success), "200")
	here, _ := s.gold("alice")
	equal(t, "gold of alice", fmt.Sprint(here), fmt.Sprint([2]int{0, 110}))
}

// Two burns of a player who has moved wait in two databases, and both results name one transaction, at the same
// moment. One of them is granted.
func TestATransactionEndsOneOfTwoOrdersAtTheSameMoment(t *testing.T) {
	s := newSharded(t)
	s.settle("alice", 0, 100)
	want := 100
	for n := range 10 {
		first, second := newOrder("alice", burn("gold", 5)), newOrder("alice", burn("gold", 5))
		s.expect(s.validate(first), "200")
		check(t, s.game.Move(t.Context(), "alice", 1-n%2, time.Millisecond))
		s.expect(s.validate(second), "200")
		var both sync.WaitGroup
		var failed [2]error
		for n, o := range []order{first, second} {
			result := o.report(success)
			result.TxHash = txHashOf(first.id)
			both.Go(func() { _, failed[n] = s.store.Update(t.Context(), o.id, ramp.Finish(result, time.Now())) })
		}
		both.Wait()
		loser, winner := 1, first
		if failed[0] != nil {
			loser, winner = 0, second
		}
		check(t, failed[1-loser])
		var conflict *ramp.ConflictError
		if !errors.As(failed[loser], &conflict) || conflict.Other == nil || conflict.Other.UUID != winner.id ||
			conflict.Other.SessionID != "alice" {
			t.Fatalf("the other of two orders: %v", failed[loser])
		}
		want += 5
		check(t, s.game.Deliver(t.Context()))
		here, parcels := s.gold("alice")
		equal(t, "gold of alice", here[0]+here[1]+parcels, want)
	}
}

// The lists of two databases are one list, in pages, and their counts are added up.
func TestTheListsOfShardsAreOneList(t *testing.T) {
	s := newSharded(t)
	s.settle("alice", 0, 100)
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	var ended, waiting []string // oldest first
	for n := range 9 {
		if n%3 == 2 {
			check(t, s.game.Move(t.Context(), "alice", 1-n/3%2, 0))
		}
		o := newOrder("alice", burn("gold", 5))
		take(t, s.store, o.id, acceptAt(o, at.Add(time.Duration(n)*time.Second)))
		if n%2 == 0 {
			take(t, s.store, o.id, ramp.Finish(o.report(success), at.Add(time.Duration(n)*time.Minute)))
			ended = append(ended, o.id.String())
			continue
		}
		waiting = append(waiting, o.id.String())
	}
	if n := s.orders(); n[0] == 0 || n[1] == 0 {
		t.Fatalf("orders in the databases: %v", n)
	}
	for name, c := range map[string]struct {
		page func(page ramp.OrderPage) ([]ramp.Order, error)
		want []string
	}{
		"ended": {func(page ramp.OrderPage) ([]ramp.Order, error) {
			return s.store.Ended(t.Context(), at.Add(-time.Hour), time.Now(), page)
		}, ended},
		"waiting": {func(page ramp.OrderPage) ([]ramp.Order, error) {
			return s.store.Waiting(t.Context(), ramp.Burn, time.Now(), page)
		}, waiting},
	} {
		var got []string
		page := ramp.OrderPage{Limit: 2}
		for {
			orders := must.Get(c.page(page))(t)
			if len(orders) == 0 {
				break
			}
			for _, o := range orders {
				got = append(got, o.UUID.String())
			}
			page.After = orders[len(orders)-1]
		}
		equal(t, name, fmt.Sprint(got), fmt.Sprint(c.want))
	}
	of := must.Get(s.store.SessionOrders(t.Context(), "alice", ramp.OrderPage{Limit: 4}))(t)
	for n := range of {
		equal(t, "accepted", of[n].AcceptedAt.Equal(at.Add(time.Duration(8-n)*time.Second)), true)
	}
	equal(t, "orders of a session", len(of), 4)
	n, oldest, err := s.store.CountWaiting(t.Context(), ramp.Burn, time.Now())
	check(t, err)
	equal(t, "waiting", n, len(waiting))
	equal(t, "the oldest", oldest.Equal(at.Add(time.Second)), true)
	newest := must.Get(s.store.NewestSuccess(t.Context(), ramp.Testnet))(t)
	equal(t, "the newest success", newest.UUID.String(), ended[len(ended)-1])
	check(t, s.store.Check(t.Context(), ramp.Testnet))
	run(t, s.places[1].admin, "SET search_path = "+s.places[1].schema+"; DROP INDEX ramp_orders_tx_hash")
	expectText(t, s.store.Check(t.Context(), ramp.Testnet), "shard 1", "no unique index of tx_hash")
}
