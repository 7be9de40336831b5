package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
)

// A caller that reads before it calls UpdateTx has a snapshot, which may be older than
// what another machine has committed. Accept and Finish must not use the snapshot.
func TestASnapshotThatIsTooOld(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		if p.mode.name == "immediate" || p.mode.name == "serializable" && p.dialect == ramp.MySQL {
			t.Skip("here a transaction that reads keeps all others from writing")
		}
		ctx := context.Background()
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		steps := []struct {
			meanwhile func() answer
			next      ramp.Transition
		}{
			{meanwhile: func() answer { return w.validate(o) }, next: o.accept()},
			{meanwhile: func() answer { return w.result(o, failure) }, next: o.finish(failure)},
		}
		for _, step := range steps {
			tx := ramp.Must(p.db.BeginTx(ctx, &sql.TxOptions{Isolation: p.mode.isolation}))
			var before int
			check(t, tx.QueryRow("SELECT count(*) FROM ramp_orders").Scan(&before))
			w.expect(step.meanwhile(), "200")
			took, err := w.store.UpdateTx(ctx, tx, o.id, step.next)
			if err == nil && p.mode.name == "optimistic" { // finds out at the commit
				took, err = ramp.Step{}, tx.Commit()
				if err == nil {
					t.Error("a step that another transaction has committed is committed again")
				}
			}
			if err == nil && (took.New || took.Effect.Kind != ramp.Nothing) {
				t.Errorf("a step that another transaction has committed is taken again: %+v", took)
			}
			if err != nil {
				t.Logf("the database ended it: %v", err)
			}
			if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
				check(t, err)
			}
		}
		w.books(moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}})
	})
}
