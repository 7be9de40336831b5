// Package pgxstore lets a game that uses pgx, or sqlc's code for pgx, move its assets in
// the transaction of a [ramp.SQLStore], on the game's own pool. Copy it.
//
//	store, err := pgxstore.New(pool, func(ctx context.Context, tx pgx.Tx, step ramp.Step) error {
//		return move(ctx, queries.WithTx(tx), step)
//	})
//	err = store.Check(ctx)
//
// The orders are the rows of [ramp.Dialect.Schema], so lookups, books and commands work.
package pgxstore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
)

// Apply applies the effect of a step, as that of a [ramp.SQLStoreConfig] does. It must
// return every error of tx, and must not end it.
type Apply func(ctx context.Context, tx pgx.Tx, step ramp.Step) error

// Store is a [ramp.SQLStore] whose Update calls an Apply for pgx.
type Store struct {
	*ramp.SQLStore
	db    *sql.DB
	apply Apply
}

// New returns a store on a pool.
func New(pool *pgxpool.Pool, apply Apply) (*Store, error) {
	db := stdlib.OpenDBFromPool(pool)
	unused := func(context.Context, *sql.Tx, ramp.Step) error { return errors.ErrUnsupported }
	orders, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: unused})
	return &Store{orders, db, apply}, err
}

// Update implements [ramp.Store]. It repeats a transaction that PostgreSQL aborted.
func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	for delay := 10 * time.Millisecond; ; delay *= 2 {
		step, err := s.transact(ctx, id, next)
		var failed *pgconn.PgError
		if delay > 40*time.Millisecond || !errors.As(err, &failed) || failed.Code != "40001" && failed.Code != "40P01" {
			return step, s.named(ctx, err)
		}
		time.Sleep(rand.N(delay)) // 70 ms together, at most
	}
}

func (s *Store) transact(ctx context.Context, id uuid.UUID, next ramp.Transition) (step ramp.Step, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return step, err
	}
	defer conn.Close()
	sqlTx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return step, err
	}
	defer func() { _ = sqlTx.Rollback() }()
	if step, err = s.UpdateTx(ctx, sqlTx, id, next); err != nil || !step.New {
		return step, err
	}
	if err = inside(conn, func(tx pgx.Tx) error { return s.apply(ctx, tx, step) }); err == nil {
		err = sqlTx.Commit()
	}
	if err != nil {
		return ramp.Step{}, err
	}
	return step, nil
}

// inside calls do with the transaction that is open on conn. Neither a panic nor an error
// of do may reach Raw: it would close the connection, and to do so wait for the end of the
// transaction, which only its own caller can end.
func inside(conn *sql.Conn, do func(pgx.Tx) error) error {
	var failed error
	var panicked any
	err := conn.Raw(func(driver any) error {
		defer func() { panicked = recover() }()
		failed = do(tx{driver.(*stdlib.Conn).Conn()})
		return nil
	})
	if panicked != nil {
		panic(panicked)
	}
	return errors.Join(err, failed)
}

// named adds the order that a transaction has ended to a conflict: PostgreSQL does not
// tell after an error inside of a transaction.
func (s *Store) named(ctx context.Context, err error) error {
	var conflict *ramp.ConflictError
	if errors.As(err, &conflict) && conflict.Other != nil {
		hash := common.HexToHash(conflict.Other.TxHash)
		if other, unknown := s.OrderByTransaction(ctx, hash); unknown == nil {
			conflict.Other = &other
		}
	}
	return err
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
