package rampsql

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/internal/storable"
)

// Order returns the order that is stored under a UUID, without locking it. If there is none, the error
// wraps [ramp.ErrOrderUnknown], and if it is of another project or network, [ramp.ErrOrderForeign].
func (s *Store) Order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	order, err := s.one(ctx, "order "+id.String(), "WHERE uuid = $1", id.String())
	if err == nil {
		err = s.own.check(&order)
	}
	if err != nil {
		return ramp.Order{}, err
	}
	return order, nil
}

// OrderByTransaction returns the order that has ended by a transaction, whatever its project. If there is
// none, the error wraps [ramp.ErrOrderUnknown].
func (s *Store) OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error) {
	return s.one(ctx, "order of transaction "+hash.String(), "WHERE tx_hash = $1", hash.String())
}

// NewestSuccess returns the last order that succeeded by a transaction, among the orders of a
// network and those that were stored without a network, whatever their project: it shows what the
// chain has. If there is none, the error wraps [ramp.ErrOrderUnknown].
func (s *Store) NewestSuccess(ctx context.Context, network ramp.Network) (ramp.Order, error) {
	var newest ramp.Order
	for _, of := range []ramp.Network{network, ""} { // one by one, so that every planner uses the index
		orders, err := s.list(ctx, "newest success", 1,
			"WHERE network = $1 AND state = 'succeeded' AND tx_hash IS NOT NULL AND finished_at <= $2"+
				" ORDER BY finished_at DESC, uuid DESC", string(of), int64(math.MaxInt64))
		if err != nil {
			return ramp.Order{}, err
		}
		if len(orders) > 0 && orders[0].FinishedAt.After(newest.FinishedAt) {
			newest = orders[0]
		}
	}
	if newest.State == "" {
		return ramp.Order{}, fmt.Errorf("ramp: newest success: %w", ramp.ErrOrderUnknown)
	}
	return newest, nil
}

// one returns the only order that matches.
func (s *Store) one(ctx context.Context, what, where, arg string) (ramp.Order, error) {
	if err := s.made(); err != nil {
		return ramp.Order{}, err
	}
	query, args := s.bind(s.orders+where, arg)
	row, err := readOrder(s.config.DB.QueryRowContext(ctx, query, args...), nil)
	if errors.Is(err, sql.ErrNoRows) {
		err = ramp.ErrOrderUnknown
	}
	if err != nil {
		return ramp.Order{}, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return row.Order, nil
}

// SessionOrders lists the orders of a session, newest first. A row that is not a valid
// order, because it was changed by hand, is listed without digest, intent, direction and
// assets, and the returned error names it. Other pages may follow.
func (s *Store) SessionOrders(
	ctx context.Context, sessionID string, page ramp.OrderPage,
) ([]ramp.Order, error) {
	sessionID = strings.TrimSpace(sessionID)
	return s.newest(ctx, "session_id", "session_id", page, sessionID, sessionID, sessionID)
}

// UserOrders lists the orders of a wallet, newest first, like [Store.SessionOrders].
// The case of an address is only a checksum, and is ignored.
func (s *Store) UserOrders(ctx context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error) {
	other := address
	if common.IsHexAddress(address) {
		other = common.HexToAddress(address).Hex()
	}
	return s.newest(ctx, "user_address", s.wallet, page, address, strings.ToLower(address), other)
}

// newest lists the orders with one of three values in a column, newest first. what names the
// column in errors.
func (s *Store) newest(
	ctx context.Context, what, column string, page ramp.OrderPage, values ...string,
) ([]ramp.Order, error) {
	if problem := storable.Problem(values[0], storable.MaxText); problem != "" {
		return nil, invalid.Field(what, problem)
	}
	from := int64(math.MaxInt64)
	if !page.After.AcceptedAt.IsZero() {
		from = page.After.AcceptedAt.UnixMilli()
	}
	return s.list(ctx, "orders by "+what, page.Limit,
		"WHERE "+column+" IN ($1, $2, $3) AND accepted_at <= $4 AND (accepted_at < $4 OR uuid < $5)"+
			" AND "+ours+" ORDER BY accepted_at DESC, uuid DESC",
		values[0], values[1], values[2], from, page.After.UUID.String())
}

// Ended lists the orders that ended, by a result or by hand, from a time to before
// another, in the order of their ends, like [Store.SessionOrders]. An order is stored after its end, up to
// two minutes later and more if a clock is behind: docs/orders.md says how to read all of them in turns.
func (s *Store) Ended(ctx context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	first := max(from.UnixMilli(), page.After.FinishedAt.UnixMilli())
	return s.list(ctx, "ended orders", page.Limit,
		"WHERE finished_at >= $1 AND finished_at < $2 AND (finished_at <> $3 OR uuid > $4)"+
			" AND "+ours+" ORDER BY finished_at, uuid",
		first, to.UnixMilli(), page.After.FinishedAt.UnixMilli(), page.After.UUID.String())
}

// Waiting lists the orders of a direction that were accepted before a time and have no
// result, oldest first, like [Store.SessionOrders]. Redelivery can take 12 hours
// (interface 8). Check mints first: they have taken assets, but an unfinished burn has
// moved nothing.
func (s *Store) Waiting(
	ctx context.Context, d ramp.Direction, before time.Time, page ramp.OrderPage,
) ([]ramp.Order, error) {
	if err := requireDirection(d); err != nil {
		return nil, err
	}
	from := page.After.AcceptedAt.UnixMilli()
	return s.list(ctx, "waiting orders", page.Limit,
		whereWaiting+" AND accepted_at >= $3 AND (accepted_at > $3 OR uuid > $4)"+
			" AND "+ours+" ORDER BY accepted_at, uuid",
		string(d), before.UnixMilli(), from, page.After.UUID.String())
}

const whereWaiting = "WHERE state = 'accepted' AND direction = $1 AND accepted_at < $2"

func requireDirection(d ramp.Direction) error {
	if d != ramp.Mint && d != ramp.Burn {
		return invalid.Field("direction", "must be Mint or Burn")
	}
	return nil
}

// CountWaiting counts the orders that [Store.Waiting] lists, and returns when the
// oldest was accepted, or the zero time.
func (s *Store) CountWaiting(
	ctx context.Context, d ramp.Direction, before time.Time,
) (n int, oldest time.Time, err error) {
	if err := cmp.Or(s.made(), requireDirection(d)); err != nil {
		return 0, time.Time{}, err
	}
	var first sql.NullInt64
	query, args := s.bind("SELECT COUNT(*), MIN(accepted_at) FROM ramp_orders "+whereWaiting+" AND "+ours,
		string(d), before.UnixMilli())
	if err := s.config.DB.QueryRowContext(ctx, query, args...).Scan(&n, &first); err != nil {
		return 0, time.Time{}, fmt.Errorf("ramp: count waiting orders: %w", err)
	}
	if first.Valid {
		oldest = time.UnixMilli(first.Int64).UTC()
	}
	return n, oldest, nil
}

const defaultLimit = 100 // of a page

// list returns the orders of a page.
func (s *Store) list(
	ctx context.Context, what string, limit int, where string, args ...any,
) (orders []ramp.Order, err error) {
	if limit < 0 {
		return nil, invalid.Field("OrderPage.Limit", "must not be negative")
	}
	if err := s.made(); err != nil {
		return nil, err
	}
	query, args := s.bind(s.orders+where+" LIMIT "+strconv.Itoa(cmp.Or(limit, defaultLimit)), args...)
	rows, err := s.config.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("ramp: %s: %w", what, err)
	}
	defer rows.Close()
	var damaged error
	for rows.Next() {
		row, err := readOrder(rows, nil)
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

const maxDeleted = 1000

// DeleteFinished deletes up to 1,000 orders of a direction that were finished before a
// time, which must be at least 7 days ago, and returns how many. Call it until that is 0.
// No other function needs the DELETE privilege. Projects and Network of [Config] are required.
//
// While an order of a wallet waits, what the wallet traded later in this direction is kept, from an hour
// before, and so is that of players who were erased: the order that waits would be ended by the transaction
// of one that was deleted.
//
// A deleted order is unknown: a result for it is answered with 500, and the same validate
// call opens it anew. If somebody who has recorded both calls of a burn repeats them, it
// is granted again. So delete burns only after the key of their time was removed from
// [ramp.HandlerConfig].Key.
func (s *Store) DeleteFinished(ctx context.Context, d ramp.Direction, before time.Time) (int, error) {
	if err := cmp.Or(s.made(), s.own.require(), requireDirection(d)); err != nil {
		return 0, err
	}
	if time.Since(before) < orderlist.MinDeletedAge {
		return 0, invalid.Field("before", "must be at least 7 days ago")
	}
	ids, err := s.deletable(ctx, d, before)
	if len(ids) == 0 { // otherwise err names damaged rows, which are deleted too
		return 0, err
	}
	// By primary key, so that InnoDB does not lock the gaps where new orders are
	// inserted.
	query, args := s.bind("DELETE FROM ramp_refusals WHERE uuid IN ("+marks(len(ids))+")", ids...)
	if _, err := s.change(ctx, "delete finished orders", query, args); err != nil {
		return 0, err
	}
	query, args = s.bind("DELETE FROM ramp_orders WHERE state <> 'accepted' AND uuid IN ("+
		marks(len(ids))+")", ids...)
	return s.change(ctx, "delete finished orders", query, args)
}

// deletable returns up to maxDeleted UUIDs of orders that DeleteFinished deletes. If there are none, none are
// left. Damaged rows come with an error.
func (s *Store) deletable(ctx context.Context, d ramp.Direction, before time.Time) (ids []any, err error) {
	waits, err := s.waitingWallets(ctx, d, before)
	if err != nil {
		return nil, err
	}
	// One by one, so that every planner uses the index.
	var damaged error
	for _, state := range []ramp.OrderState{ramp.OrderSucceeded, ramp.OrderFailed, ramp.OrderAbandoned} {
		var last ramp.Order
		from := int64(math.MinInt64)
		for found := maxDeleted; found == maxDeleted && len(ids) == 0; {
			old, err := s.list(ctx, "delete finished orders", maxDeleted,
				"WHERE state = $1 AND direction = $2 AND accepted_at < $3 AND finished_at < $3"+
					" AND accepted_at >= $4 AND (accepted_at > $4 OR uuid > $5) AND "+ours+
					" ORDER BY accepted_at, uuid",
				string(state), string(d), before.UnixMilli(), from, last.UUID.String())
			damaged = errors.Join(damaged, err)
			for _, last = range old {
				if since, waits := waits.since(last.UserAddress); !waits || last.FinishedAt.Before(since) {
					ids = append(ids, last.UUID.String())
				}
			}
			found, from = len(old), last.AcceptedAt.UnixMilli()
		}
		if len(ids) > 0 {
			break
		}
	}
	return ids, damaged
}

const erasedPrefix = "erased-" // of the session and the wallet of an order whose player was erased

// wallets have, for each with an order that waits, when its oldest one was accepted, less
// [orderlist.KeptBefore]. "" is the oldest of all.
type wallets map[string]time.Time

// since returns from when on a transaction of a wallet could end an order that waits. The wallet of an order
// whose player was erased can be any.
func (w wallets) since(wallet string) (at time.Time, waits bool) {
	if strings.HasPrefix(wallet, erasedPrefix) {
		wallet = ""
	}
	at, waits = w[strings.ToLower(wallet)]
	return at, waits
}

// waitingWallets returns the wallets whose orders wait, of whatever project.
func (s *Store) waitingWallets(ctx context.Context, d ramp.Direction, before time.Time) (wallets, error) {
	of := wallets{}
	var last ramp.Order
	for found := maxDeleted; found == maxDeleted; {
		waiting, err := s.list(ctx, "waiting orders", maxDeleted,
			whereWaiting+" AND accepted_at >= $3 AND (accepted_at > $3 OR uuid > $4)"+
				" ORDER BY accepted_at, uuid",
			string(d), before.Add(orderlist.KeptBefore).UnixMilli(), last.AcceptedAt.UnixMilli(),
			last.UUID.String())
		if err != nil && len(waiting) == 0 { // otherwise it names damaged rows, which have wallets, too
			return nil, err
		}
		for _, last = range waiting {
			for _, wallet := range []string{strings.ToLower(last.UserAddress), ""} {
				if _, known := of[wallet]; !known {
					of[wallet] = last.AcceptedAt.Add(-orderlist.KeptBefore)
				}
			}
		}
		found = len(waiting)
	}
	return of, nil
}

// EraseSession replaces the session and the user address of a session's orders that were
// finished before a time, which must be at least 7 days ago, by random ones, and returns
// how many orders it changed. Amounts and transaction hashes are kept, so the books stay
// complete; on the chain, a hash leads to the wallet. A later delivery for such an order
// is a conflict. Waiting orders keep their session: call EraseSession again after they
// have ended. Projects and Network of [Config] are required. EraseSession of package support keeps what the
// books need, and then calls this one.
func (s *Store) EraseSession(ctx context.Context, sessionID string, before time.Time) (int, error) {
	if err := cmp.Or(s.made(), s.own.require()); err != nil {
		return 0, err
	}
	sessionID = strings.TrimSpace(sessionID)
	var p invalid.Fields
	problem := storable.Problem(sessionID, storable.MaxText)
	p.Require(problem == "", "session_id", problem)
	p.Require(time.Since(before) >= orderlist.MinDeletedAge, "before", "must be at least 7 days ago")
	if err := p.Err(); err != nil {
		return 0, err
	}
	var args []any
	erased := erasedPrefix + rand.Text()
	for _, c := range columns {
		if c.class == ofPlayer {
			args = append(args, erased)
		}
	}
	query, args := s.bind(eraseOrders, append(args, sessionID, before.UnixMilli())...)
	return s.change(ctx, "erase a session", query, args)
}

// change runs a statement and returns the number of its rows.
func (s *Store) change(ctx context.Context, what, query string, args []any) (int, error) {
	if err := s.made(); err != nil {
		return 0, err
	}
	n, err := affected(s.config.DB.ExecContext(ctx, query, args...))
	if err != nil {
		return 0, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return int(n), nil
}
