// Package pgxstore lets a game that uses pgx, or sqlc's code for pgx, move its assets in
// the transaction of a [rampsql.Store], on the game's own pool. Copy it.
//
//	db := stdlib.OpenDBFromPool(pool)
//	config := rampsql.Config{DB: db, Projects: []string{"project-1"}, Network: ramp.Testnet}
//	store, err := pgxstore.New(config, func(ctx context.Context, tx pgx.Tx, step ramp.Step) error {
//		return move(ctx, queries.WithTx(tx), step)
//	})
//	err = store.Check(ctx, "")
package pgxstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Apply applies the effect of a step, as that of a [rampsql.Config] does. It must
// return every error of tx, and must not end it.
type Apply func(ctx context.Context, tx pgx.Tx, step ramp.Step) error

// New returns a store on a database of pgx, such as stdlib.OpenDBFromPool returns for a pool. The dialect
// and Apply of the config are set by New.
func New(config rampsql.Config, apply Apply) (*rampsql.Store, error) {
	config.Dialect = rampsql.PostgreSQL
	config.Apply = func(ctx context.Context, sqlTx *sql.Tx, step ramp.Step) error {
		in := inside{apply: func(conn *pgx.Conn) error { return apply(ctx, tx{conn}, step) }}
		if _, err := sqlTx.ExecContext(ctx, "", &in); !in.called {
			return err
		}
		return in.err
	}
	return rampsql.New(config)
}

// inside is an argument of a statement to which pgx passes the connection. Until it
// returns, database/sql does not use the connection, so that even a context that ends
// cannot end the transaction meanwhile. [sql.Conn.Raw] would also pass the connection, but
// not in a transaction that the store began.
type inside struct {
	apply  func(*pgx.Conn) error
	called bool
	err    error
}

var errDone = errors.New("the statement is not sent")

func (in *inside) RewriteQuery(_ context.Context, conn *pgx.Conn, _ string, _ []any) (string, []any, error) {
	in.called = true
	in.err = in.apply(conn)
	return "", nil, errDone
}

// native is a connection whose name does not hide the method Conn.
type native = pgx.Conn

// tx is a [pgx.Tx] that somebody else ends.
type tx struct{ *native }

func (t tx) Conn() *pgx.Conn                       { return t.native }
func (t tx) Begin(context.Context) (pgx.Tx, error) { return nil, errors.ErrUnsupported }
func (t tx) Commit(context.Context) error          { return errors.ErrUnsupported }
func (t tx) Rollback(context.Context) error        { return errors.ErrUnsupported }
func (t tx) LargeObjects() pgx.LargeObjects        { panic(errors.ErrUnsupported) }
