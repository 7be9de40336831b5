package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// Store is a store in memory that lists its orders.
type Store struct {
	ramp.Store
	mu     sync.Mutex
	Orders map[uuid.UUID]ramp.Order

	Shared *Claims // with other databases, or nil

	Calls, Failing int // lists that were read; which of them fails, from 1, or 0
}

// NewStore returns a store, whose steps go to apply.
func NewStore(t *testing.T, apply func(context.Context, ramp.Step) error) *Store {
	return &Store{Orders: map[uuid.UUID]ramp.Order{}, Store: &ramp.MemoryStore{Apply: apply}}
}

// EraseSession is that of a rampsql.Store.
func (l *Store) EraseSession(_ context.Context, session string, before time.Time) (int, error) {
	return l.Erase(session, before), nil
}

// AbandonedAndMinted keeps a mint that was given back, and minted later.
func (l *Store) AbandonedAndMinted(t *testing.T, n *Node, at time.Time) ramp.Order {
	t.Helper()
	order := OrderOf(ramp.Mint, 5, at)
	order.State, order.FinishedAt, order.Reason = ramp.OrderAbandoned, at.Add(20*time.Hour), "alice: case 1"
	n.Send(at.Add(30*time.Hour), Tx{Transfers: []ramp.Transfer{Moved(common.Address{}, Player, 490)}})
	l.Keep(t, order)
	return order
}

// Keep stores orders as they are.
func (l *Store) Keep(t *testing.T, orders ...ramp.Order) {
	t.Helper()
	for _, o := range orders {
		must.Get(l.Update(t.Context(), o.UUID,
			func(*ramp.Order) (ramp.Step, error) { return ramp.Step{Order: o, New: true}, nil }))(t)
	}
}

// Witness keeps a mint and a burn of the stranger that ended half an hour ago, so that a search
// that finds nothing else is known to work.
func (l *Store) Witness(t *testing.T, n *Node) {
	t.Helper()
	at := Now.Add(-30 * time.Minute)
	for d, transfer := range map[ramp.Direction]ramp.Transfer{
		ramp.Mint: Moved(common.Address{}, Stranger, 98), ramp.Burn: Moved(Stranger, common.Address{}, 100),
	} {
		o := OrderOf(d, 1, at.Add(-time.Minute))
		o.UserAddress, o.SessionID = Stranger.Hex(), "session-2"
		hash := n.Send(at, Tx{From: Stranger, Payer: Payer, To: Vault, Transfers: []ramp.Transfer{transfer}})
		l.Keep(t, Ended(o, ramp.OrderSucceeded, hash, at.Add(time.Minute)))
	}
}

// MintOn keeps a mint of five tokens that was minted as so many hundredths of them.
func (l *Store) MintOn(t *testing.T, n *Node, token common.Address, at time.Time,
	hundredths int64) ramp.Order {
	t.Helper()
	order := OrderOf(ramp.Mint, 5, at)
	order.Intent.To[0].ID = token.Hex()
	transfer := Moved(common.Address{}, Player, hundredths)
	transfer.Token = token
	hash := n.Send(at.Add(time.Minute), Tx{Transfers: []ramp.Transfer{transfer}})
	order = Ended(order, ramp.OrderSucceeded, hash, at.Add(2*time.Minute))
	l.Keep(t, order)
	return order
}

// Erase makes the orders of a session anonymous, as EraseSession of a rampsql.Store does.
func (l *Store) Erase(session string, before time.Time) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, o := range l.Orders {
		if o.SessionID == session && o.State != ramp.OrderAccepted && o.FinishedAt.Before(before) {
			o.SessionID, o.UserAddress = "erased-1", "erased-1"
			l.Orders[id], n = o, n+1
		}
	}
	return n
}

// Update implements [ramp.Store].
func (l *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	take := func() (ramp.Step, error) { return l.Store.Update(ctx, id, next) }
	if l.Shared != nil {
		take = func() (ramp.Step, error) { return claimFirst(ctx, l.Shared, l.Store, id, next) }
	}
	step, err := take()
	if err == nil && step.New {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.Orders[id] = step.Order
	}
	return step, err
}

// Claims are those that the store shares, if it does.
func (l *Store) Claims() ramp.Claims {
	if l.Shared == nil {
		return nil
	}
	return l.Shared
}

// Lose forgets an order, or only its end, as a restore of a backup does.
func (l *Store) Lose(id uuid.UUID, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	order := l.Orders[id]
	delete(l.Orders, id)
	if waits {
		order.State, order.FinishedAt = ramp.OrderAccepted, time.Time{}
		l.Orders[id] = order
	}
}

func (l *Store) list(page ramp.OrderPage, at func(ramp.Order) time.Time,
	want func(ramp.Order) bool) (list []ramp.Order, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Calls++; l.Calls == l.Failing {
		return nil, errors.New("the database is down")
	}
	key := func(o ramp.Order) string {
		return at(o).UTC().Format("2006-01-02T15:04:05.000") + o.UUID.String()
	}
	for _, o := range l.Orders {
		if want(o) && (page.After.UUID == uuid.Nil || key(o) > key(page.After)) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b ramp.Order) int { return strings.Compare(key(a), key(b)) })
	return list[:min(len(list), cmp.Or(page.Limit, 100))], nil
}

func (l *Store) Order(_ context.Context, id uuid.UUID) (ramp.Order, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.Orders[id]; ok {
		return o, nil
	}
	return ramp.Order{}, fmt.Errorf("ramp: order %s: %w", id, ramp.ErrOrderUnknown)
}

func (l *Store) Ended(_ context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	at := func(o ramp.Order) time.Time { return o.FinishedAt }
	page.Limit = 3 // fewer than are asked for, so that the books need several pages
	return l.list(page, at, func(o ramp.Order) bool {
		return o.State != ramp.OrderAccepted && !at(o).Before(from) && at(o).Before(to)
	})
}

func acceptedAt(o ramp.Order) time.Time { return o.AcceptedAt }

func (l *Store) Waiting(_ context.Context, d ramp.Direction, before time.Time,
	page ramp.OrderPage) ([]ramp.Order, error) {
	return l.list(page, acceptedAt, func(o ramp.Order) bool {
		return o.State == ramp.OrderAccepted && o.Direction == d && o.AcceptedAt.Before(before)
	})
}

func (l *Store) CountWaiting(ctx context.Context, d ramp.Direction, before time.Time) (int, time.Time,
	error) {
	list, err := l.Waiting(ctx, d, before, ramp.OrderPage{Limit: 1 << 30})
	return len(list), time.Time{}, err
}

func (l *Store) UserOrders(_ context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error) {
	return l.newest(page, func(o ramp.Order) bool { return strings.EqualFold(o.UserAddress, address) })
}

func (l *Store) SessionOrders(_ context.Context, id string, page ramp.OrderPage) ([]ramp.Order, error) {
	return l.newest(page, func(o ramp.Order) bool { return o.SessionID == id })
}

func (l *Store) newest(page ramp.OrderPage, want func(ramp.Order) bool) ([]ramp.Order, error) {
	if page.After.UUID != uuid.Nil {
		return nil, nil
	}
	list, err := l.list(ramp.OrderPage{Limit: 1000}, acceptedAt, want)
	slices.Reverse(list)
	return list, err
}

func (l *Store) OrderByTransaction(_ context.Context, hash common.Hash) (ramp.Order, error) {
	list, err := l.list(ramp.OrderPage{}, acceptedAt,
		func(o ramp.Order) bool { return o.TxHash == hash.Hex() })
	if len(list) == 0 {
		return ramp.Order{}, cmp.Or(err, ramp.ErrOrderUnknown)
	}
	return list[0], err
}

// Change changes a row by hand.
func (l *Store) Change(id uuid.UUID, change func(*ramp.Order)) {
	o := l.Orders[id]
	change(&o)
	l.Orders[id] = o
}
