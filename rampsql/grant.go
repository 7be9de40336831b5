package rampsql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
)

// rehearsals is what a process knows of the rehearsals of grants.
type rehearsals struct {
	*dialect
	apply     func(ctx context.Context, tx *sql.Tx, step *ramp.Step) error
	untouched []string // Config.UntouchedTables

	turn  chan struct{}             // is full while one runs that may be the first
	asked atomic.Bool               // the database has no table that a rollback leaves as it is
	seen  atomic.Bool               // one was rolled back
	kept  atomic.Pointer[keptError] // one was not: there is no other until the server starts again
}

// begin waits until a rehearsal may begin. They run one at a time until one was seen rolled back, so that
// only one can pay. Whoever waits has no connection yet.
func (r *rehearsals) begin(ctx context.Context) (end func(), err error) {
	end = func() {}
	if r.seen.Load() {
		return end, nil
	}
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }, nil
	case <-ctx.Done():
		return end, fmt.Errorf("wait for the first rehearsal of a grant: %w", ctx.Err())
	}
}

// keptError says that a rehearsed grant was not rolled back, and what to take back.
type keptError struct {
	grant ramp.Step
	why   string
}

func (e *keptError) Error() string {
	o := &e.grant.Order
	return fmt.Sprintf("ramp: order %s: its rehearsed grant was not rolled back, because %s: the player of "+
		"session %q may have kept it (%s): take that back, mend Apply and start the server again; until "+
		"then, no burn is accepted", o.UUID, e.why, o.SessionID, e.grant.Effect)
}

// tryGrant applies the grant of a burn that a step opens, and rolls it back. claim is what the step wrote.
func (r *rehearsals) tryGrant(ctx context.Context, t transaction, step *ramp.Step, claim string) error {
	grant, ok := step.Rehearse()
	if !ok {
		return nil
	}
	id := step.Order.UUID
	if kept := r.kept.Load(); kept != nil {
		return fmt.Errorf("ramp: order %s: the burn is not accepted: %w", id, error(kept))
	}
	if !r.asked.Load() {
		if err := r.checkRollback(ctx, t.tx()); err != nil {
			return fmt.Errorf("ramp: order %s: the burn is not accepted: %w", id, err)
		}
		r.asked.Store(true)
	}
	if _, err := t.tx().ExecContext(ctx, "SAVEPOINT ramp_rehearsal"); err != nil {
		return fmt.Errorf("ramp: order %s: rehearse the grant: %w", id, unusable(lost(err)))
	}
	refused := r.apply(ctx, t.tx(), &grant)
	why, err := r.takeBack(ctx, t, id, claim, refused == nil)
	switch {
	case why != "":
		kept := &keptError{grant, why}
		r.kept.Store(kept)
		return kept
	case refused != nil:
		return fmt.Errorf("the burn is not accepted, because its grant would fail: %w", refused)
	case err != nil:
		return fmt.Errorf("ramp: order %s: rehearse the grant: %w", id, unusable(lost(err)))
	}
	r.seen.Store(true)
	return nil
}

// takeBack rolls back to the savepoint. why says why the grant may have stayed, if it may. An error alone,
// such as that of a connection that broke, means that the database rolls back.
func (r *rehearsals) takeBack(
	ctx context.Context, t transaction, id uuid.UUID, claim string, granted bool,
) (why string, err error) {
	// On SQLite, SAVEPOINT may have begun a transaction: see commit.
	_, err = t.tx().ExecContext(ctx, "ROLLBACK TO SAVEPOINT ramp_rehearsal")
	if err == nil {
		return r.leftOver(ctx, t.tx())
	}
	if ctx.Err() != nil || !vanished(err) {
		return "", err
	}
	_, _ = t.connection().ExecContext(ctx, "ROLLBACK") // of what Apply may have begun; it may be nothing
	query, args := r.bind("SELECT COUNT(*) FROM ramp_orders WHERE uuid = $1 AND claim = $2",
		id.String(), claim)
	var committed int
	if asked := t.connection().QueryRowContext(ctx, query, args...).Scan(&committed); asked != nil {
		return "", errors.Join(err, asked)
	}
	// Otherwise Apply rolled back, or ignored an error that did. If autocommit is off, what followed is
	// rolled back, too.
	if committed > 0 || granted && r.autocommit == "" {
		why = "Apply ended the transaction, as COMMIT does, and on MySQL CREATE TABLE"
	}
	return why, err
}

// leftOver returns why a rollback to a savepoint has left something, or "".
func (r *rehearsals) leftOver(ctx context.Context, tx *sql.Tx) (why string, err error) {
	if r.warnings == "" {
		return "", nil
	}
	rows, err := tx.QueryContext(ctx, r.warnings)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var level, code, message string
		if err := rows.Scan(&level, &code, &message); err != nil {
			return "", err
		}
		if code == "1196" { // ER_WARNING_NOT_COMPLETE_ROLLBACK; others may be of an earlier statement
			why = "Apply writes to a table that no rollback changes, such as one of MyISAM"
		}
	}
	return why, rows.Err()
}

// checkRollback returns an error for a table to which Apply may write, and which no rollback changes.
func (r *rehearsals) checkRollback(ctx context.Context, on asker) error {
	tables, err := r.lastingTables(ctx, on)
	if err != nil {
		return fmt.Errorf("read what a rollback does not change: %w", err)
	}
	for _, t := range tables {
		if !slices.Contains(r.untouched, t.name) {
			return fmt.Errorf("table %s is %s: what is written there outlives a rollback, such as that of "+
				"an order, or of the rehearsal of a grant; change that, or name it in "+
				"Config.UntouchedTables if Apply never writes to it", t.name, t.kind)
		}
	}
	return nil
}

// lastingTable is a table that no rollback changes.
type lastingTable struct{ name, kind string }

func (r *rehearsals) lastingTables(ctx context.Context, on asker) (tables []lastingTable, err error) {
	rows, err := on.QueryContext(ctx, r.lasting)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t lastingTable
		if err := rows.Scan(&t.name, &t.kind); err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	// Those of the library first: without them there is no order at all.
	slices.SortFunc(tables, func(a, b lastingTable) int {
		ours := func(t lastingTable) int {
			if strings.HasPrefix(t.name, "ramp_") {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(ours(a), ours(b)), cmp.Compare(a.name, b.name))
	})
	return tables, rows.Err()
}
