package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/racedetector"
)

// The test compares the cost of UpdateTx with that of the same statements written by
// hand, which neither check nor compare what they read. Both accept and finish a mint,
// each step in one transaction. They take turns order by order, and the medians are
// compared. Update, which guards its transactions, is measured too.
func TestThroughput(t *testing.T) {
	if racedetector.On || os.Getenv("RAMP_TEST_TIMES") == "" {
		t.Skip("bounds on times need a quiet machine, without the race detector: set RAMP_TEST_TIMES")
	}
	const (
		rounds = 600
		least  = 0.85

		leastGame = 0.75 // on MySQL, its guard costs two round trips per step
	)
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		accept := func(ctx context.Context, tx *sql.Tx, o order) error {
			_, err := store.UpdateTx(ctx, tx, o.id, o.accept())
			return err
		}
		finish := func(ctx context.Context, tx *sql.Tx, o order) error {
			_, err := store.UpdateTx(ctx, tx, o.id, o.finish(success))
			return err
		}
		hand := newByHand(p.dialect)
		game := newGame(studio{db: p.db, dialect: p.dialect}, store)
		var ours, theirs, games []time.Duration
		for range rounds {
			ours = append(ours, p.time(t, accept, finish))
			theirs = append(theirs, p.time(t, hand.accept, hand.finish))
			games = append(games, timeGame(t, game))
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		slices.Sort(games)
		ratio := float64(theirs[rounds/2]) / float64(ours[rounds/2])
		gameRatio := float64(theirs[rounds/2]) / float64(games[rounds/2])
		t.Logf("accept and finish: %v an order, by hand %v, throughput %.2f of it; Update %v, %.2f of it", ours[rounds/2], theirs[rounds/2], ratio,
			games[rounds/2], gameRatio)
		if ratio < least {
			t.Errorf("the throughput is %.2f of that by hand, not %.2f", ratio, least)
		}
		if gameRatio < leastGame {
			t.Errorf("the throughput of Update is %.2f of that by hand, not %.2f", gameRatio, leastGame)
		}
	})
}

// time measures both steps of a new order.
func (p *place) time(t *testing.T, steps ...func(context.Context, *sql.Tx, order) error) time.Duration {
	t.Helper()
	ctx := context.Background()
	o := newOrder("alice", mint("gold", 5, "gem", 1))
	start := time.Now()
	for _, step := range steps {
		tx, err := p.db.BeginTx(ctx, nil)
		check(t, err)
		check(t, step(ctx, tx, o))
		check(t, tx.Commit())
	}
	return time.Since(start)
}

// timeGame measures both steps of a new order through Update.
func timeGame(t *testing.T, game *game) time.Duration {
	t.Helper()
	ctx := context.Background()
	o := newOrder("alice", mint("gold", 5, "gem", 1))
	session, accept, finish := ramp.Session{ID: o.session}, o.validateRequest(), o.report(success)
	start := time.Now()
	check(t, game.Validate(ctx, session, accept))
	check(t, game.Result(ctx, finish))
	return time.Since(start)
}

// byHand does the same work with handwritten statements.
type byHand struct {
	insert, lock, update string
	reads                bool // whether the insert also reads the row
}

func newByHand(d ramp.Dialect) byHand {
	const columns = "uuid, claim, state, project_id, session_id, user_address, digest, intent, tx_hash, reason, accepted_at, finished_at"
	h := byHand{
		insert: "INSERT INTO ramp_orders (direction, " + columns + ") VALUES ('mint', ?, ?, 'accepted', ?, ?, ?, ?, ?, NULL, '', ?, NULL)",
		reads:  d != ramp.MySQL,
		lock:   "SELECT " + columns + " FROM ramp_orders WHERE uuid = ? FOR UPDATE",
		update: "UPDATE ramp_orders SET state = ?, tx_hash = ?, reason = ?, finished_at = ? WHERE uuid = ? AND state = 'accepted'",
	}
	switch d {
	case ramp.MySQL:
		h.insert += " ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid"
	case ramp.SQLite:
		h.lock = "UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING " + columns
		fallthrough
	default:
		h.insert += " ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING " + columns
	}
	h.insert, h.lock, h.update = bind(d, h.insert), bind(d, h.lock), bind(d, h.update)
	return h
}

func (h byHand) accept(ctx context.Context, tx *sql.Tx, o order) error {
	intent, err := json.Marshal(o.intent)
	if err != nil {
		return err
	}
	args := []any{o.id.String(), rand.Text(), "project", o.session, o.user, o.digest.String(), string(intent), time.Now().UnixMilli()}
	if h.reads {
		return h.read(tx.QueryRowContext(ctx, h.insert, args...))
	}
	if _, err := tx.ExecContext(ctx, h.insert, args...); err != nil {
		return err
	}
	return h.read(tx.QueryRowContext(ctx, h.lock, o.id.String()))
}

func (h byHand) finish(ctx context.Context, tx *sql.Tx, o order) error {
	if err := h.read(tx.QueryRowContext(ctx, h.lock, o.id.String())); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, h.update, "succeeded", txHashOf(o.id), "", time.Now().UnixMilli(), o.id.String())
	return err
}

func (h byHand) read(row *sql.Row) error {
	var s [10]sql.NullString
	var acceptedAt int64
	var finishedAt sql.NullInt64
	if err := row.Scan(&s[0], &s[1], &s[2], &s[3], &s[4], &s[5], &s[6], &s[7], &s[8], &s[9],
		&acceptedAt, &finishedAt); err != nil {
		return err
	}
	var intent ramp.Intent
	return json.NewDecoder(strings.NewReader(s[7].String)).Decode(&intent)
}
