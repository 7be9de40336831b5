package players

import (
	"context"
	"database/sql"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// Every order moves its gold once, in whatever order the statements of two servers reach the
// database. Each of them has a memory of its own.
func TestEveryInterleaving(t *testing.T) {
	address, db := database(t)
	storetest.TestInterleavings(t, storetest.Interleavings{
		Connector: must(storetest.Connector("pgx", address))(t),
		Dialect:   rampsql.PostgreSQL,
		Open:      func(db *sql.DB) (ramp.Store, error) { return newStore(db, New(db)) },
		Assets:    []string{"gold"},
		Give: func(ctx context.Context, session, _ string, n int64) error {
			_, err := db.ExecContext(ctx, "INSERT INTO players (id, gold) VALUES ($1, $2)", session, n)
			return err
		},
		Balance: func(ctx context.Context, session, _ string) (n int64, err error) {
			err = db.QueryRowContext(ctx, "SELECT COALESCE(SUM(gold), 0) FROM players WHERE id = $1", session).Scan(&n)
			return n, err
		},
		NoFaults: true, // with them it takes minutes
	})
}
