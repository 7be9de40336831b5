package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"testing"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// Property 8: the load of these tests finds faults.

// storm is the load: for one order after another, it makes equal validate calls
// concurrently, and then equal result calls. It returns the correct moves.
func storm(t *testing.T, w *world) moves {
	t.Helper()
	want := moves{}
	for range 5 {
		o := newOrder("alice", mint("gold", 5))
		atOnce(50, func() answer { return w.validate(o) })
		w.expect(w.validate(o), "200")
		atOnce(50, func() answer { return w.result(o, failure) })
		w.expect(w.result(o, failure), "200")
		want[o.id] = []string{"take alice -5 gold", "give back alice +5 gold"}
	}
	return want
}

func TestStorm(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 1_000_000)
		w.books(storm(t, w))
	})
}

func TestCheckThenActDoesNotSurviveTheStorm(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, &game{ramp.HandlerConfig{Terms: anyTerms, Game: checkThenAct{studio{db: p.db, dialect: p.dialect}}}})
		w.give("alice", "gold", 1_000_000)
		want := moves{}
		for round := range 20 { // on an idle machine, one storm may find no fault
			maps.Copy(want, storm(t, w))
			if wrong := w.audit(want); len(wrong) > 0 {
				t.Logf("%d faults in round %d, the first: %s", len(wrong), round+1, wrong[0])
				return
			}
		}
		t.Error("code that checks first and then acts has passed: the storm is blind")
	})
}

// checkThenAct is the naive implementation: it checks whether the step was done, does
// it, and records that it was done.
type checkThenAct struct{ studio }

func (g checkThenAct) Validate(ctx context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
	effect, err := r.Intent.Effect(ramp.OrderAccepted)
	if err != nil {
		return err
	}
	return g.once(ctx, r.UUID, "accepted", func() error { return g.apply(ctx, r.UUID, s.ID, effect) })
}

func (g checkThenAct) Result(ctx context.Context, s ramp.Session, r *ramp.Result) error {
	effect, err := r.Intent.Effect(r.Outcome())
	if err != nil {
		return err
	}
	return g.once(ctx, r.UUID, "finished", func() error { return g.apply(ctx, r.UUID, s.ID, effect) })
}

func (g checkThenAct) once(ctx context.Context, id uuid.UUID, state string, act func() error) error {
	var found int
	err := g.db.QueryRowContext(ctx, bind(g.dialect, "SELECT 1 FROM naive_orders WHERE uuid = ? AND state = ?"), id.String(), state).Scan(&found)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	_, err = g.db.ExecContext(ctx, bind(g.dialect, "INSERT INTO naive_orders (uuid, state) VALUES (?, ?)"), id.String(), state)
	return err
}

func (g checkThenAct) apply(ctx context.Context, id uuid.UUID, session string, effect ramp.Effect) error {
	for _, a := range effect.Assets {
		delta, err := effect.Delta(a).Int64()
		if err != nil {
			return err
		}
		if err := g.move(ctx, g.db, id, session, effect.Kind, a.ID, delta); err != nil {
			return err
		}
	}
	return nil
}
