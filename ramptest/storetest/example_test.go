package storetest_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// wallet holds the balances of a game in memory.
type wallet struct {
	mu   sync.Mutex
	gold map[[2]string]int64 // by session and asset
}

func (w *wallet) give(_ context.Context, session, asset string, balance int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gold[[2]string{session, asset}] = balance
	return nil
}

func (w *wallet) balance(_ context.Context, session, asset string) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gold[[2]string{session, asset}], nil
}

// apply moves all assets of a step, if check agrees.
func (w *wallet) apply(step ramp.Step, check func(ramp.Step) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	after, err := w.after(step)
	if err != nil {
		return err
	}
	if grant, ok := step.Rehearse(); ok { // a burn whose grant would fail must not be signed
		if _, err := w.after(grant); err != nil {
			return err
		}
	}
	if err := check(step); err != nil {
		return err
	}
	for id, balance := range after {
		w.gold[id] = balance
	}
	return nil
}

// after returns the balances that a step changes, and moves nothing.
func (w *wallet) after(step ramp.Step) (map[[2]string]int64, error) {
	after := make(map[[2]string]int64)
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return nil, ramp.Reject("INVALID_AMOUNT") // a coin cannot be divided
		}
		id := [2]string{step.Order.SessionID, asset.ID}
		after[id] = w.gold[id] + delta
		switch {
		case step.Effect.Kind == ramp.Take && after[id] < 0: // only a mint may be refused
			return nil, ramp.Reject("INVALID_BALANCE")
		case delta > 0 && after[id] < w.gold[id]: // it does not fit
			return nil, ramp.Reject("INVALID_BALANCE")
		}
	}
	return after, nil
}

// A store of your own is tested in a test of yours. Here it is a MemoryStore.
func ExampleTestStore() {
	t := new(testing.T) // that of your test
	storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Fixture {
		w := &wallet{gold: make(map[[2]string]int64)}
		store := &ramp.MemoryStore{
			Apply: func(_ context.Context, step ramp.Step) error { return w.apply(step, check) }}
		return storetest.Fixture{Stores: []ramp.Store{store}, Give: w.give, Balance: w.balance}
	})
}

// A game on SQLite, whose Apply is tested in every order in which two calls can meet. The file has the
// tables, and each order moves gold and gems.
func ExampleTestInterleavings() {
	t := new(testing.T) // that of your test
	file := "file:game.db?_txlock=immediate&_pragma=journal_mode(wal)"
	connector, err := storetest.Connector("sqlite", file)
	if err != nil {
		return // t.Fatal(err)
	}
	admin := sql.OpenDB(connector)
	storetest.TestInterleavings(t, storetest.Interleavings{
		Connector: connector,
		Dialect:   rampsql.SQLite,
		Assets:    []string{"gold", "gem"},
		Open: func(db *sql.DB) (ramp.Store, error) {
			game := &sqlGame{db: db}
			return rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite, Apply: game.Apply})
		},
		Give: func(ctx context.Context, session, asset string, balance int64) error {
			_, err := admin.ExecContext(ctx,
				"INSERT INTO balances (player, asset, amount) VALUES ($1, $2, $3)", session, asset, balance)
			return err
		},
		Balance: func(ctx context.Context, session, asset string) (amount int64, err error) {
			err = admin.QueryRowContext(ctx, "SELECT COALESCE(SUM(amount), 0) FROM balances "+
				"WHERE player = $1 AND asset = $2", session, asset).Scan(&amount)
			return amount, err
		},
		NoFaults: testing.Short(),
	})
}

// sqlGame is your game.
type sqlGame struct{ db *sql.DB }

func (*sqlGame) Apply(context.Context, *sql.Tx, ramp.Step) error { return nil }
