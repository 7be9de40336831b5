package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// listed are orders of one player that were accepted and ended in a time of their own, long ago, of which the
// data has no others.
type listed struct {
	player
	store   rampbooks.OrderLister
	from    time.Time // when the first of them was accepted
	to      time.Time // after all of them
	wallet  string
	orders  []*deal
	waiting map[ramp.Direction][]*deal
}

// list is a list of a store, and what it must have.
type list struct {
	name string
	page func(ramp.OrderPage) ([]ramp.Order, error)
	want []*deal
	at   func(*ramp.Order) time.Time // by which it is sorted
	last bool                        // the newest first
}

// orderLister tests the lists by which people find orders, and from which the books are made.
func (k *trial) orderLister() {
	l := &listed{player: k.player(1000), store: k.Stores[0].(rampbooks.OrderLister),
		waiting: map[ramp.Direction][]*deal{}}
	// Four days and a few hours: within one hour, and at one and the same millisecond, there are several.
	l.from = time.Date(1980+rand.IntN(40), 1, 1+rand.IntN(360), 0, 0, rand.IntN(80_000), 0, time.UTC)
	at := l.from
	l.wallet = common.BytesToAddress(l.unique()).Hex()
	for n, later := range []time.Duration{0, 0, 0, time.Millisecond, 0, time.Minute, 40 * time.Hour, 0,
		time.Millisecond, 30 * time.Hour, 0, 26 * time.Hour} {
		at = at.Add(later)
		for _, request := range []*ramp.ValidateRequest{mint(gold(1)), burn(gold(1))} {
			request.UserAddress = l.wallet
			d := l.deal(request)
			d.take("a validate", ramp.Accept(ramp.Session{ID: l.session}, request, at))
			l.orders = append(l.orders, d)
			if n%3 == 2 {
				direction := d.order.Direction
				l.waiting[direction] = append(l.waiting[direction], d)
				continue
			}
			result := &ramp.Result{SessionID: l.session, UUID: d.UUID, TxHash: txHash(d.UUID),
				Intent: d.Intent, Receipt: ramp.Receipt{Status: ramp.NewQuantity(uint64(n % 2))}}
			d.take("a result", ramp.Finish(result, at.Add(time.Second)))
		}
	}
	l.to = at.Add(time.Hour)

	l.lookups()
	for _, list := range l.lists() {
		for _, limit := range []int{1, 3, 5, 100, 0} {
			l.eventually(func() { l.read(&list, limit) })
		}
	}
	l.eventually(l.bounds)
	l.eventually(l.counts)
}

// unique are the bytes of an address that no other check uses.
func (l *listed) unique() []byte {
	id := uuid.New()
	return append([]byte{0xAB, 0xCD, 0xEF, 1}, id[:]...)
}

func acceptedAt(o *ramp.Order) time.Time { return o.AcceptedAt }
func finishedAt(o *ramp.Order) time.Time { return o.FinishedAt }

func (l *listed) lists() []list {
	waits := func(d *deal) bool { return d.order.State == ramp.OrderAccepted }
	ended := slices.DeleteFunc(slices.Clone(l.orders), waits)
	lists := []list{
		{"Ended", func(p ramp.OrderPage) ([]ramp.Order, error) {
			return l.store.Ended(l.ctx, l.from, l.to, p)
		}, ended, finishedAt, false},
		{"SessionOrders", func(p ramp.OrderPage) ([]ramp.Order, error) {
			return l.store.SessionOrders(l.ctx, l.session, p)
		}, l.orders, acceptedAt, true},
		{"UserOrders", func(p ramp.OrderPage) ([]ramp.Order, error) {
			return l.store.UserOrders(l.ctx, l.wallet, p)
		}, l.orders, acceptedAt, true},
		{"UserOrders with another case of the address", func(p ramp.OrderPage) ([]ramp.Order, error) {
			return l.store.UserOrders(l.ctx, strings.ToLower(l.wallet), p)
		}, l.orders, acceptedAt, true},
	}
	for _, direction := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		lists = append(lists, list{"Waiting", func(p ramp.OrderPage) ([]ramp.Order, error) {
			return l.store.Waiting(l.ctx, direction, l.to, p)
		}, l.waiting[direction], acceptedAt, false})
	}
	return lists
}

// read reads a list page by page.
func (l *listed) read(list *list, limit int) {
	var all []ramp.Order
	page := ramp.OrderPage{Limit: limit}
	for range 1000 {
		got, err := list.page(page)
		switch {
		case err != nil:
			l.fail("%s failed: %v", list.name, err)
		case limit > 0 && len(got) > limit:
			l.fail("%s returned %d orders on a page of %d", list.name, len(got), limit)
		}
		if len(got) == 0 {
			break
		}
		if page.After.UUID != uuid.Nil && slices.ContainsFunc(got, func(o ramp.Order) bool {
			return o.UUID == page.After.UUID
		}) {
			l.fail("%s repeats the order after which a page begins: a reader of all pages would not end, or "+
				"count it twice", list.name)
		}
		all = append(all, got...)
		page.After = got[len(got)-1]
	}
	// The data may have others, which wait.
	all = slices.DeleteFunc(all, func(o ramp.Order) bool { return o.SessionID != l.session })
	seen := map[uuid.UUID]int{}
	for i := range all {
		seen[all[i].UUID]++
		if before := max(0, i-1); list.last && list.at(&all[before]).Before(list.at(&all[i])) ||
			!list.last && list.at(&all[i]).Before(list.at(&all[before])) {
			l.fail("%s does not list the orders by their time", list.name)
		}
	}
	for _, d := range list.want {
		if n := seen[d.UUID]; n != 1 {
			l.fail("%s, read in pages of %d, has an order %d times, which was accepted at %s and "+
				"ended at %s: several can have one millisecond, and days can lie between two",
				list.name, limit, n, d.order.AcceptedAt, d.order.FinishedAt)
		}
	}
	if len(all) != len(list.want) {
		l.fail("%s has %d orders instead of %d", list.name, len(all), len(list.want))
	}
	for _, got := range all {
		for _, d := range list.want {
			if d.UUID == got.UUID && difference(got, *d.order) != "" {
				l.fail("%s returned another order than is stored: %s", list.name, difference(got, *d.order))
			}
		}
	}
}

// lookups look for one order.
func (l *listed) lookups() {
	for _, d := range l.orders {
		got, err := l.store.Order(l.ctx, d.UUID)
		if err != nil || difference(got, *d.order) != "" {
			l.fail("Order returned another order than is stored: %v, %s", err, difference(got, *d.order))
		}
	}
	if _, err := l.store.Order(l.ctx, uuid.New()); !errors.Is(err, ramp.ErrOrderUnknown) {
		l.fail("the error of Order for an unknown UUID does not wrap ErrOrderUnknown: %v", err)
	}
	_, err := l.store.OrderByTransaction(l.ctx, common.BytesToHash(l.unique()))
	if !errors.Is(err, ramp.ErrOrderUnknown) {
		l.fail("the error of OrderByTransaction for an unknown one does not wrap ErrOrderUnknown: %v", err)
	}
}

// bounds: a list begins with the first moment, and ends before the last.
func (l *listed) bounds() {
	first := l.orders[0].order
	end := first.FinishedAt
	has := func(orders []ramp.Order, err error) bool {
		if err != nil {
			l.fail("a list failed: %v", err)
		}
		return slices.ContainsFunc(orders, func(o ramp.Order) bool { return o.UUID == first.UUID })
	}
	if !has(l.store.Ended(l.ctx, end, end.Add(time.Millisecond), ramp.OrderPage{})) ||
		has(l.store.Ended(l.ctx, end.Add(-time.Hour), end, ramp.OrderPage{})) ||
		has(l.store.Ended(l.ctx, end.Add(time.Millisecond), l.to, ramp.OrderPage{})) {
		l.fail("Ended must begin with the orders that ended at its first moment, and end before its last one")
	}
	waits := l.waiting[ramp.Mint][0].order
	first, end = waits, waits.AcceptedAt
	before := ramp.OrderPage{Limit: 1000, After: ramp.Order{AcceptedAt: l.from.Add(-time.Millisecond)}}
	if !has(l.store.Waiting(l.ctx, ramp.Mint, end.Add(time.Millisecond), before)) ||
		has(l.store.Waiting(l.ctx, ramp.Mint, end, before)) {
		l.fail("Waiting must list the orders that were accepted before the time")
	}
}

// counts: how many wait, and since when.
func (l *listed) counts() {
	for _, direction := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		count := func(at time.Time) (int, time.Time) {
			n, oldest, err := l.store.CountWaiting(l.ctx, direction, at)
			if err != nil {
				l.fail("CountWaiting failed: %v", err)
			}
			return n, oldest
		}
		before, _ := count(l.from)
		after, oldest := count(l.to)
		listed, err := l.store.Waiting(l.ctx, direction, l.to,
			ramp.OrderPage{Limit: 1000, After: ramp.Order{AcceptedAt: l.from.Add(-time.Millisecond)}})
		if err != nil || after-before != len(listed) { // the data may have others of that time
			l.fail("CountWaiting counts %d orders of a time, and Waiting lists %d: %v",
				after-before, len(listed), err)
		}
		if at := l.waiting[direction][0].order.AcceptedAt; oldest.IsZero() || oldest.After(at) ||
			before == 0 && !oldest.Equal(at) {
			l.fail("CountWaiting says that the oldest order waits since %s, but it is %s", oldest, at)
		}
	}
}
