package rampsql

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// Order is [Store.Order] in every database.
func (s *Shards) Order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	if err := s.made(); err != nil {
		return ramp.Order{}, err
	}
	_, at, err := s.findOrder(ctx, s.all(), id)
	if err != nil {
		return ramp.Order{}, err
	}
	return s.config.Stores[at].Order(ctx, id)
}

// OrderByTransaction is [Store.OrderByTransaction] in every database.
func (s *Shards) OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error) {
	if err := s.made(); err != nil {
		return ramp.Order{}, err
	}
	return s.findTransaction(ctx, hash)
}

// NewestSuccess is [Store.NewestSuccess] in every database. While one does not answer, it is the newest of
// the others, which is as good a witness.
func (s *Shards) NewestSuccess(ctx context.Context, network ramp.Network) (newest ramp.Order, err error) {
	if err := s.made(); err != nil {
		return ramp.Order{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var unknown, silent error
	for _, a := range ask(ctx, s, s.all(), func(ctx context.Context, store *Store) (ramp.Order, error) {
		return store.NewestSuccess(ctx, network)
	}) {
		switch {
		case errors.Is(a.err, ramp.ErrOrderUnknown):
			unknown = a.err
		case a.err != nil:
			silent = a.err
		case a.value.FinishedAt.After(newest.FinishedAt):
			newest = a.value
		}
	}
	if newest.State != "" {
		return newest, nil
	}
	return ramp.Order{}, cmp.Or(silent, unknown)
}

// SessionOrders is [Store.SessionOrders] in every database. It fails if one does not answer.
func (s *Shards) SessionOrders(
	ctx context.Context, sessionID string, page ramp.OrderPage,
) ([]ramp.Order, error) {
	return s.list(ctx, page, newestFirst, func(ctx context.Context, store *Store) ([]ramp.Order, error) {
		return store.SessionOrders(ctx, sessionID, page)
	})
}

// UserOrders is [Store.UserOrders] in every database. It fails if one does not answer.
func (s *Shards) UserOrders(ctx context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error) {
	return s.list(ctx, page, newestFirst, func(ctx context.Context, store *Store) ([]ramp.Order, error) {
		return store.UserOrders(ctx, address, page)
	})
}

// Ended is [Store.Ended] in every database. It fails if one does not answer.
func (s *Shards) Ended(ctx context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	return s.list(ctx, page, byEnd, func(ctx context.Context, store *Store) ([]ramp.Order, error) {
		return store.Ended(ctx, from, to, page)
	})
}

// Waiting is [Store.Waiting] in every database. It fails if one does not answer.
func (s *Shards) Waiting(
	ctx context.Context, d ramp.Direction, before time.Time, page ramp.OrderPage,
) ([]ramp.Order, error) {
	return s.list(ctx, page, oldestFirst, func(ctx context.Context, store *Store) ([]ramp.Order, error) {
		return store.Waiting(ctx, d, before, page)
	})
}

// The orders of the lists.
func newestFirst(a, b ramp.Order) int { return -oldestFirst(a, b) }

func oldestFirst(a, b ramp.Order) int {
	return cmp.Or(a.AcceptedAt.Compare(b.AcceptedAt), cmp.Compare(a.UUID.String(), b.UUID.String()))
}

func byEnd(a, b ramp.Order) int {
	return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), cmp.Compare(a.UUID.String(), b.UUID.String()))
}

// list returns a page of the lists of every database.
func (s *Shards) list(
	ctx context.Context, page ramp.OrderPage, compare func(a, b ramp.Order) int,
	question func(context.Context, *Store) ([]ramp.Order, error),
) (orders []ramp.Order, err error) {
	if err := s.made(); err != nil {
		return nil, err
	}
	damaged := func(o ramp.Order) bool { return orderlist.IsDamaged(&o) }
	for _, a := range ask(ctx, s, s.all(), question) {
		if a.err != nil && !slices.ContainsFunc(a.value, damaged) {
			return nil, a.err
		}
		orders, err = append(orders, a.value...), errors.Join(err, a.err)
	}
	slices.SortFunc(orders, compare)
	return orders[:min(len(orders), cmp.Or(page.Limit, defaultLimit))], err
}

// CountWaiting is [Store.CountWaiting], for all databases.
func (s *Shards) CountWaiting(
	ctx context.Context, d ramp.Direction, before time.Time,
) (n int, oldest time.Time, err error) {
	return s.count(ctx, func(ctx context.Context, store *Store) (int, time.Time, error) {
		return store.CountWaiting(ctx, d, before)
	})
}

// CountRefused is [Store.CountRefused], for all databases.
func (s *Shards) CountRefused(ctx context.Context, d ramp.Direction) (n int, first time.Time, err error) {
	return s.count(ctx, func(ctx context.Context, store *Store) (int, time.Time, error) {
		return store.CountRefused(ctx, d)
	})
}

// count adds up what the databases count. first is the earliest of their times, or zero.
func (s *Shards) count(
	ctx context.Context, question func(context.Context, *Store) (int, time.Time, error),
) (n int, first time.Time, err error) {
	if err := s.made(); err != nil {
		return 0, time.Time{}, err
	}
	type counted struct {
		n     int
		first time.Time
	}
	for _, a := range ask(ctx, s, s.all(), func(ctx context.Context, store *Store) (counted, error) {
		n, first, err := question(ctx, store)
		return counted{n, first}, err
	}) {
		if a.err != nil {
			return 0, time.Time{}, a.err
		}
		n += a.value.n
		if at := a.value.first; !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return n, first, nil
}

// Refusals is [Store.Refusals], for all databases.
func (s *Shards) Refusals(ctx context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error) {
	if err := s.made(); err != nil {
		return nil, err
	}
	all := map[uuid.UUID]ramp.Refusal{}
	for _, a := range ask(ctx, s, s.all(), func(ctx context.Context, store *Store) (
		map[uuid.UUID]ramp.Refusal, error,
	) {
		return store.Refusals(ctx, orders...)
	}) {
		if a.err != nil {
			return nil, a.err
		}
		maps.Copy(all, a.value)
	}
	return all, nil
}

// EraseSession is [Store.EraseSession], for all databases. After an error, call it again.
func (s *Shards) EraseSession(ctx context.Context, sessionID string, before time.Time) (n int, err error) {
	if err := s.made(); err != nil {
		return 0, err
	}
	for _, a := range ask(ctx, s, s.all(), func(ctx context.Context, store *Store) (int, error) {
		return store.EraseSession(ctx, sessionID, before)
	}) {
		n, err = n+a.value, errors.Join(err, a.err)
	}
	return n, err
}
