package dbtest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// A backup of MariaDB blocks commits until it ends. The call fails at the deadline of the commit,
// and a repeat finds out what was stored.
func TestABackupThatBlocksCommits(t *testing.T) {
	p := placeOn(t, rampsql.MySQL)
	if p.tidb {
		t.Skip("TiDB has no such lock: error 1105")
	}
	backup, err := open(t, "mysql", addressOf(t, "RAMP_TEST_MYSQL")).Conn(t.Context())
	check(t, err)
	defer backup.Close()
	lock := func(statement string) { // of all databases, so no other test may run beside this one
		_, err := backup.ExecContext(t.Context(), statement)
		check(t, err)
	}
	begins := true
	store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error {
		if begins {
			lock("FLUSH TABLES WITH READ LOCK")
		}
		return nil
	})
	o := newOrder("alice", mint("gold", 5))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := store.Update(ctx, o.id, o.accept())
		failed <- err
	}()
	select {
	case err := <-failed:
		expectText(t, err, "commit", "deadline exceeded")
	case <-time.After(20 * time.Second):
		t.Error("the call is not answered while the backup runs")
		lock("UNLOCK TABLES")
		<-failed
	}
	begins = false
	lock("UNLOCK TABLES")
	step, err := store.Update(t.Context(), o.id, o.accept())
	check(t, err)
	equal(t, "the state that the repeat finds", step.Order.State, ramp.OrderAccepted)
}
