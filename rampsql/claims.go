package rampsql

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// Claims is a [ramp.Claims] in one database, for the stores of all databases that sell the same tokens. Set
// it as Claims of each [Config]. Make one with [NewClaims]. It is safe for concurrent use.
//
// Its table is ramp_claims of [Dialect.Schema]. A row has a network, the hash of a transaction, the UUID of
// an order and a time, and nothing of the player. Delete none: a transaction never becomes too old to be
// named for another order. While the database does not answer, no order ends by a transaction, and the
// service sends the result again.
type Claims struct {
	config ClaimsConfig
	*dialect
}

// ClaimsConfig configures [Claims]. Every field is required.
type ClaimsConfig struct {
	// DB has the table ramp_claims of [Dialect.Schema]: the database of one of the stores, or another one. It
	// is only one: a copy in each region would be no claim.
	DB *sql.DB

	// Dialect is that of DB.
	Dialect Dialect

	// Network is that of the stores. Each network has claims of its own.
	Network ramp.Network
}

// NewClaims returns claims in a database. The error is a [*ramp.InvalidError].
func NewClaims(c ClaimsConfig) (*Claims, error) {
	var p invalid.Fields
	p.Require(c.DB != nil, "ClaimsConfig.DB", "is required")
	p.Require(c.Dialect.known(), "ClaimsConfig.Dialect", dialectRequired)
	p.Require(c.Network == ramp.Mainnet || c.Network == ramp.Testnet, "ClaimsConfig.Network",
		"is required and must be mainnet or testnet")
	if err := p.Err(); err != nil {
		return nil, err
	}
	return &Claims{c, c.Dialect.values()}, nil
}

// made returns an error for claims that NewClaims has not made, such as new(Claims).
func (c *Claims) made() error {
	if c.config.DB == nil {
		return errors.New("ramp: the rampsql.Claims were not made by rampsql.NewClaims")
	}
	return nil
}

// Claim implements [ramp.Claims] with one transaction, which is one statement on PostgreSQL and SQLite.
func (c *Claims) Claim(
	ctx context.Context, transaction common.Hash, place int, order uuid.UUID,
) (holder uuid.UUID, err error) {
	if err := c.made(); err != nil {
		return uuid.Nil, err
	}
	const retries = 3
	for n := 0; ; n++ {
		holder, err = c.attempt(ctx, transaction, place, order)
		if err == nil || !aborted(err) || n == retries || !wait(ctx, n) {
			break
		}
	}
	if err != nil {
		return uuid.Nil, fmt.Errorf("ramp: order %s: claim transaction %s: %w", order, transaction, err)
	}
	return holder, nil
}

// attempt makes one attempt of Claim. If the context has ended, PostgreSQL may have given up waiting for a
// standby, so that its success is an error then.
func (c *Claims) attempt(
	ctx context.Context, transaction common.Hash, place int, order uuid.UUID,
) (uuid.UUID, error) {
	if c.returning {
		holder, err := c.note(ctx, c.config.DB, transaction, place, order)
		return holder, cmp.Or(err, ctx.Err())
	}
	tx, err := c.config.DB.BeginTx(ctx, nil)
	if err != nil {
		return uuid.Nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	holder, err := c.note(ctx, tx, transaction, place, order)
	if err == nil {
		err = cmp.Or(tx.Commit(), ctx.Err())
	}
	return holder, err
}

// statements runs statements: a database, or a transaction.
type statements interface {
	asker
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// note writes a claim unless its place is taken, and returns whose it is.
func (c *Claims) note(
	ctx context.Context, db statements, transaction common.Hash, place int, order uuid.UUID,
) (holder uuid.UUID, err error) {
	at := []any{string(c.config.Network), transaction.Hex(), int64(place)}
	query, args := c.bind(c.claim, append(at, order.String(), time.Now().UnixMilli())...)
	if !c.returning {
		if _, err := db.ExecContext(ctx, query, args...); err != nil {
			return uuid.Nil, err
		}
		query, args = c.bind(c.holder, at...)
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return uuid.Nil, err
	}
	defer rows.Close()
	err = sql.ErrNoRows
	for rows.Next() { // to the end, because a statement that commits by itself may do so after its row
		err = rows.Scan(&holder)
	}
	return holder, cmp.Or(rows.Err(), err)
}

// Claimed implements [ramp.Claims].
func (c *Claims) Claimed(ctx context.Context, transaction common.Hash) (orders []uuid.UUID, err error) {
	if err := c.made(); err != nil {
		return nil, err
	}
	query, args := c.bind("SELECT uuid FROM ramp_claims WHERE network = $1 AND tx_hash = $2 ORDER BY place",
		string(c.config.Network), transaction.Hex())
	rows, err := c.config.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("ramp: claims of transaction %s: %w", transaction, err)
	}
	defer rows.Close()
	for rows.Next() {
		var order uuid.UUID
		if err := rows.Scan(&order); err != nil {
			return nil, fmt.Errorf("ramp: claims of transaction %s: %w", transaction, err)
		}
		orders = append(orders, order)
	}
	return orders, rows.Err()
}

// Check returns an error if a transaction could not be claimed, or by two orders. It claims one, and rolls
// that back. Check of a [Store] with these claims calls it.
func (c *Claims) Check(ctx context.Context) error {
	if err := c.made(); err != nil {
		return err
	}
	if err := c.rehearse(ctx); err != nil {
		return fmt.Errorf("ramp: check: table ramp_claims, which Dialect.Schema creates: %w", err)
	}
	return nil
}

// rehearse lets two orders claim a transaction.
func (c *Claims) rehearse(ctx context.Context) error {
	tx, err := c.config.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var transaction common.Hash
	rand.Read(transaction[:]) // never fails
	first := uuid.New()
	for _, order := range []uuid.UUID{first, uuid.New(), first} {
		holder, err := c.note(ctx, tx, transaction, 0, order)
		if err != nil {
			return err
		}
		if holder != first {
			return errors.New("two orders can claim one transaction: it lacks its primary key")
		}
	}
	query, args := c.bind("SELECT COUNT(*) FROM ramp_claims WHERE network = $1 AND tx_hash = $2",
		string(c.config.Network), transaction.Hex())
	var rows int
	err = tx.QueryRowContext(ctx, query, args...).Scan(&rows)
	if err == nil && rows != 1 {
		err = errors.New("two orders can claim one transaction: it lacks its primary key")
	}
	return err
}

// unclaimedError is the error of a step that ends an order by a transaction which the order has not claimed.
type unclaimedError struct {
	order  ramp.Order
	txHash string
}

func (e *unclaimedError) Error() string {
	return fmt.Sprintf("ramp: order %s: transaction %s is not claimed", e.order.UUID, e.txHash)
}

// onlyClaimed returns a transition that ends an order by no other transaction than the one that is claimed.
func onlyClaimed(next ramp.Transition, claimed *string) ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		ends := err == nil && stored != nil && step.New && step.Order.TxHash != ""
		if ends && step.Order.TxHash != *claimed {
			return ramp.Step{}, &unclaimedError{*stored, step.Order.TxHash}
		}
		return step, err
	}
}
