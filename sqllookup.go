package ramp

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// OrderPage selects a page of a list of orders. The zero value is the first page.
type OrderPage struct {
	// After is the last order of the page before; the list continues after it. Only
	// its UUID and AcceptedAt are used, or FinishedAt if the list is sorted by it. The
	// zero Order means the beginning.
	After Order

	// Limit is the maximum number of orders on the page. The default is 100.
	Limit int
}

// Order returns the order that is stored under a UUID. If there is none, the error
// wraps [ErrOrderUnknown]. Like all lookups it locks nothing, so the order may
// change a moment later.
func (s *SQLStore) Order(ctx context.Context, id uuid.UUID) (Order, error) {
	return s.one(ctx, "order "+id.String(), "WHERE uuid = ?", id.String())
}

// OrderByTransaction returns the order that has ended by a transaction. If there is
// none, the error wraps [ErrOrderUnknown].
func (s *SQLStore) OrderByTransaction(ctx context.Context, hash common.Hash) (Order, error) {
	return s.one(ctx, "order of transaction "+hash.String(), "WHERE tx_hash = ?", hash.String())
}

// one returns the only order that matches.
func (s *SQLStore) one(ctx context.Context, what, where, arg string) (Order, error) {
	query, args := s.bind(selectOrders+where, arg)
	row, err := readOrder(s.config.DB.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrOrderUnknown
	}
	if err != nil {
		return Order{}, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return row.Order, nil
}

// SessionOrders lists the orders of a session, newest first.
//
// A row that is not a valid order, because it was changed by hand, does not hide
// the others. It is listed without digest, intent, direction and assets, and the
// returned error names it. Other pages may follow.
func (s *SQLStore) SessionOrders(ctx context.Context, sessionID string, page OrderPage) ([]Order, error) {
	sessionID = strings.TrimSpace(sessionID)
	return s.newest(ctx, "session_id", page, sessionID, sessionID, sessionID)
}

// UserOrders lists the orders of a wallet, newest first. It finds an address in lower
// case and with its checksum, whichever is given, and any other text as it is given. A
// row that is not a valid order is listed as by [SQLStore.SessionOrders].
func (s *SQLStore) UserOrders(ctx context.Context, address string, page OrderPage) ([]Order, error) {
	other := address
	if common.IsHexAddress(address) {
		other = common.HexToAddress(address).Hex()
	}
	return s.newest(ctx, "user_address", page, address, strings.ToLower(address), other)
}

// newest lists the orders with one of three values in a column, newest first.
func (s *SQLStore) newest(ctx context.Context, column string, page OrderPage, values ...string) ([]Order, error) {
	var p problems
	p.requireStorable(values[0], column, maxOrderText)
	if err := p.err(); err != nil {
		return nil, err
	}
	from := int64(math.MaxInt64)
	if !page.After.AcceptedAt.IsZero() {
		from = page.After.AcceptedAt.UnixMilli()
	}
	return s.list(ctx, "orders by "+column, page.Limit,
		"WHERE "+column+" IN (?, ?, ?) AND accepted_at <= ? AND (accepted_at < ? OR uuid < ?)"+
			" ORDER BY accepted_at DESC, uuid DESC",
		values[0], values[1], values[2], from, from, page.After.UUID.String())
}

// Ended lists the orders that ended, by a result or by hand, from one time up to but
// without another, in the order of their ends. Only UUID and FinishedAt of page.After
// are used. A row that is not a valid order is listed as by [SQLStore.SessionOrders].
func (s *SQLStore) Ended(ctx context.Context, from, to time.Time, page OrderPage) ([]Order, error) {
	first := max(from.UnixMilli(), page.After.FinishedAt.UnixMilli())
	return s.list(ctx, "ended orders", page.Limit,
		"WHERE finished_at >= ? AND finished_at < ? AND (finished_at <> ? OR uuid > ?) ORDER BY finished_at, uuid",
		first, to.UnixMilli(), page.After.FinishedAt.UnixMilli(), page.After.UUID.String())
}

// Waiting lists the orders of a direction that were accepted before a time and have
// no result, oldest first. Redelivery can take 12 hours (interface 8). Check mints
// first: they have taken assets, but an unfinished burn has moved nothing.
//
// A row that is not a valid order is listed as by [SQLStore.SessionOrders].
func (s *SQLStore) Waiting(ctx context.Context, d Direction, before time.Time, page OrderPage) ([]Order, error) {
	if err := requireDirection(d); err != nil {
		return nil, err
	}
	from := page.After.AcceptedAt.UnixMilli()
	return s.list(ctx, "waiting orders", page.Limit,
		whereWaiting+" AND accepted_at >= ? AND (accepted_at > ? OR uuid > ?) ORDER BY accepted_at, uuid",
		string(d), before.UnixMilli(), from, from, page.After.UUID.String())
}

const whereWaiting = "WHERE state = 'accepted' AND direction = ? AND accepted_at < ?"

func requireDirection(d Direction) error {
	if d != Mint && d != Burn {
		return invalid("direction", "must be Mint or Burn")
	}
	return nil
}

// CountWaiting counts the orders that [SQLStore.Waiting] lists, and returns when
// the oldest was accepted, or the zero time if there is none. It is meant for
// monitoring.
func (s *SQLStore) CountWaiting(ctx context.Context, d Direction, before time.Time) (n int, oldest time.Time, err error) {
	if err := requireDirection(d); err != nil {
		return 0, time.Time{}, err
	}
	var first sql.NullInt64
	query, args := s.bind("SELECT COUNT(*), MIN(accepted_at) FROM ramp_orders "+whereWaiting, string(d), before.UnixMilli())
	if err := s.config.DB.QueryRowContext(ctx, query, args...).Scan(&n, &first); err != nil {
		return 0, time.Time{}, fmt.Errorf("ramp: count waiting orders: %w", err)
	}
	if first.Valid {
		oldest = time.UnixMilli(first.Int64).UTC()
	}
	return n, oldest, nil
}

// list returns the orders of a page.
func (s *SQLStore) list(ctx context.Context, what string, limit int, where string, args ...any) (orders []Order, err error) {
	switch {
	case limit < 0:
		return nil, invalid("OrderPage.Limit", "must not be negative")
	case limit == 0:
		limit = 100
	}
	query, args := s.bind(selectOrders+where+" LIMIT ?", append(args, limit)...)
	rows, err := s.config.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("ramp: %s: %w", what, err)
	}
	defer rows.Close()
	var damaged error
	for rows.Next() {
		row, err := readOrder(rows)
		if err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("ramp: %s: %w", what, err))
		}
		if row != nil {
			orders = append(orders, row.Order)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return orders, damaged
}

const (
	maxDeleted    = 1000
	minDeletedAge = 7 * 24 * time.Hour
)

// DeleteFinished deletes up to 1,000 orders of a direction that were finished
// before a time, which must be at least 7 days ago, and returns how many it
// deleted. Call it until that is 0. It is the only function that needs the DELETE
// privilege. Waiting orders are never deleted.
//
// A deleted order is unknown: a result for it is answered with 500, and the same
// validate call opens it anew. A mint could only take assets again. But a
// successful burn would be granted again, if both its validate and its result came
// a second time, from the service or from someone who has recorded them: they carry
// no time, and stay valid as long as their HMAC key. So delete burns only after the
// key of their time was removed from [HandlerConfig].Key.
func (s *SQLStore) DeleteFinished(ctx context.Context, d Direction, before time.Time) (int, error) {
	if err := requireDirection(d); err != nil {
		return 0, err
	}
	if time.Since(before) < minDeletedAge {
		return 0, invalid("before", "must be at least 7 days ago")
	}
	var old []Order
	var err error
	// One by one, so that every planner uses the index.
	for _, state := range []OrderState{OrderSucceeded, OrderFailed, OrderAbandoned} {
		old, err = s.list(ctx, "delete finished orders", maxDeleted,
			"WHERE state = ? AND direction = ? AND accepted_at < ? AND finished_at < ? ORDER BY accepted_at",
			string(state), string(d), before.UnixMilli(), before.UnixMilli())
		if len(old) > 0 || err != nil {
			break
		}
	}
	if len(old) == 0 { // otherwise err names damaged rows, which are deleted too
		return 0, err
	}
	var ids []any
	for _, o := range old {
		ids = append(ids, o.UUID.String())
	}
	// By primary key, so that InnoDB does not lock the gaps where new orders are
	// inserted.
	marks := strings.Repeat(", ?", len(ids)-1)
	query, args := s.bind("DELETE FROM ramp_orders WHERE state <> 'accepted' AND uuid IN (?"+marks+")", ids...)
	return s.change(ctx, "delete finished orders", query, args)
}

// EraseSession replaces the session and the user address of every order of a session
// that was finished before a time, which must be at least 7 days ago, and returns how
// many it changed. The replacement is random, and the same for all of them, so the
// books stay complete but lead to no player. Amounts and transaction hashes are kept;
// on the chain, the hash leads to the user's wallet. A later delivery for such an order
// is a conflict. Waiting orders keep their session, because their result needs it: call
// EraseSession again after they have ended.
func (s *SQLStore) EraseSession(ctx context.Context, sessionID string, before time.Time) (int, error) {
	sessionID = strings.TrimSpace(sessionID)
	var p problems
	p.requireStorable(sessionID, "session_id", maxOrderText)
	if time.Since(before) < minDeletedAge {
		p.add("before", "must be at least 7 days ago")
	}
	if err := p.err(); err != nil {
		return 0, err
	}
	erased := "erased-" + rand.Text()
	query, args := s.bind("UPDATE ramp_orders SET session_id = ?, user_address = ?"+
		" WHERE session_id = ? AND state <> 'accepted' AND finished_at < ?",
		erased, erased, sessionID, before.UnixMilli())
	return s.change(ctx, "erase a session", query, args)
}

// change runs a statement and returns the number of its rows.
func (s *SQLStore) change(ctx context.Context, what, query string, args []any) (int, error) {
	done, err := s.config.DB.ExecContext(ctx, query, args...)
	var n int64
	if err == nil {
		n, err = done.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return int(n), nil
}
