package pairs

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampsql"
)

// orders are what a store of one database and one of several have.
type orders interface {
	ramp.Store
	rampbooks.OrderLister
	Refused(ctx context.Context, id uuid.UUID, reason string) error
	Refusals(ctx context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error)
	CountRefused(ctx context.Context, d ramp.Direction) (n int, first time.Time, err error)
	NewestSuccess(ctx context.Context, network ramp.Network) (ramp.Order, error)
	EraseSession(ctx context.Context, session string, before time.Time) (int, error)
}

// open makes the stores of all databases.
func (s *store) open() {
	s.shards = nil
	var claims *rampsql.Claims
	if len(s.w.dbs) > 1 {
		claims = must.Get(rampsql.NewClaims(rampsql.ClaimsConfig{DB: s.w.dbs[0], Dialect: s.w.data.dialect,
			Network: ramp.Testnet}))(s.w.t)
	}
	for _, db := range s.w.dbs {
		s.shards = append(s.shards, must.Get(rampsql.New(rampsql.Config{DB: db, Dialect: s.w.data.dialect,
			Apply: s.w.apply, Projects: s.w.game.projects, Network: ramp.Testnet, Claims: claims,
			Logger: slog.New(slog.NewJSONHandler(s.w.log, nil))}))(s.w.t))
	}
	s.orders = s.shards[0]
	if len(s.shards) > 1 {
		s.orders = must.Get(rampsql.NewShards(rampsql.ShardsConfig{Stores: s.shards, Place: s.w.place}))(s.w.t)
	}
}

// place is where a player is.
func (w *world) place(_ context.Context, session string) (rampsql.Place, error) {
	if w.game.accounts[session] != "alice" {
		return rampsql.Place{}, nil
	}
	return w.game.place, nil
}

// oneDatabase reports whether all players are in one database.
func (w *world) oneDatabase() bool { return len(w.dbs) == 1 }

// movesAway: she moves to another database, as docs/players-and-items.md says.
func (w *world) movesAway() {
	w.open(nil)
	db := w.dbs[1]
	for session, player := range w.game.accounts {
		w.execOn(db, "INSERT INTO sessions (session, player) VALUES (?, ?)", session, player)
	}
	w.game.place.Moving = true
	w.store.open()
	w.sleep(12 * time.Second) // for which a call that found her here may last
	w.execOn(db, "INSERT INTO balances (player, gold) VALUES (?, 0)", "alice")
	w.game.place = rampsql.Place{Shard: 1, Former: []int{0}}
	w.delivers()
}

// delivers takes what she has where she was to where she is.
func (w *world) delivers() {
	if w.game.place.Shard == 0 {
		return
	}
	w.taking <- true // one message is taken there once
	defer func() { <-w.taking }()
	var n int64
	w.check(w.dbs[0].QueryRow("SELECT coalesce(sum(gold), 0) FROM balances WHERE player = 'alice'").Scan(&n))
	for i, query := range []string{"DELETE FROM balances WHERE player = 'alice' AND gold = ?",
		"UPDATE balances SET gold = gold + ? WHERE player = 'alice'"} {
		_, err := w.dbs[i].Exec(w.data.bind(query), n)
		w.check(err)
	}
}

// sum adds up a number of all databases.
func (w *world) sum(query string, args ...any) (all int64) {
	for _, db := range w.dbs {
		var n int64
		w.check(db.QueryRow(w.data.bind(query), args...).Scan(&n))
		all += n
	}
	return all
}

// exec writes to the game's own tables of all databases.
func (w *world) exec(query string, args ...any) (changed int64) {
	for _, db := range w.dbs {
		changed += w.execOn(db, query, args...)
	}
	return changed
}

func (w *world) execOn(db *sql.DB, query string, args ...any) int64 {
	w.taking <- true
	defer func() { <-w.taking }()
	done, err := db.Exec(w.data.bind(query), args...)
	w.check(err)
	changed, _ := done.RowsAffected()
	return changed
}
