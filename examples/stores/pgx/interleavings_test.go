package pgxstore

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// Every order moves its assets once, in whatever order the statements of two servers reach the
// database. The walk sees all that Apply sends as one statement, because Apply uses pgx and not
// database/sql; whether it waits for a lock, the walk learns from the database.
func TestEveryInterleaving(t *testing.T) {
	pool, _ := place(t)
	queries := &Queries{db: pool}
	storetest.TestInterleavings(t, storetest.Interleavings{
		Connector: must(storetest.Connector("pgx", stdlib.RegisterConnConfig(pool.Config().ConnConfig)))(t),
		Dialect:   rampsql.PostgreSQL,
		Open: func(db *sql.DB) (ramp.Store, error) {
			return New(configOf(db), func(ctx context.Context, tx pgx.Tx, step ramp.Step) error {
				return move(ctx, queries.WithTx(tx), step)
			})
		},
		Assets:   []string{"gold"},
		Give:     queries.Set,
		Balance:  queries.Balance,
		NoFaults: true, // with them it takes minutes
	})
}
