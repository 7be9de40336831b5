package storetest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

var _ rampbooks.OrderLister = (*flawed)(nil)

// listFlaws are those of the lists of a store.
var listFlaws = []string{
	"lists the first day only",
	"loses an order of the same millisecond",
	"lists by the UUID",
	"ignores where a page begins",
	"repeats the last order of a page",
	"lists more than a page",
	"ends a list with its last moment",
	"lists waiting orders of both directions",
	"knows an address as it was written only",
	"counts what has ended",
	"does not know since when an order waits",
	"finds an order under every UUID",
}

func (f *flawed) Order(_ context.Context, id uuid.UUID) (ramp.Order, error) {
	o, err := f.read(id)
	switch {
	case err != nil:
		return ramp.Order{}, err
	case o == nil && f.flaw == "finds an order under every UUID":
		return ramp.Order{UUID: id}, nil
	case o == nil:
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	return *o, nil
}

// list returns a page of those orders that are wanted, sorted by a time.
func (f *flawed) list(
	page ramp.OrderPage, at func(*ramp.Order) time.Time, last bool, wanted func(*ramp.Order) bool,
) (list []ramp.Order, err error) {
	f.mu.Lock()
	all := slices.Collect(maps.Keys(f.orders))
	f.mu.Unlock()
	for _, id := range all {
		o, err := f.read(id)
		if err != nil {
			return nil, err
		}
		if wanted(o) {
			list = append(list, *o)
		}
	}
	order := func(a, b ramp.Order) int {
		byTime := at(&a).Compare(at(&b))
		if f.flaw == "lists by the UUID" {
			byTime = 0
		}
		order := cmp.Or(byTime, bytes.Compare(a.UUID[:], b.UUID[:]))
		if last {
			return -order
		}
		return order
	}
	slices.SortFunc(list, order)
	if f.flaw == "lists the first day only" && len(list) > 0 {
		first := list[0]
		list = slices.DeleteFunc(list, func(o ramp.Order) bool { return at(&o).Sub(at(&first)).Abs() > 24*time.Hour })
	}
	if page.After.UUID != uuid.Nil && f.flaw != "ignores where a page begins" {
		list = slices.DeleteFunc(list, func(o ramp.Order) bool {
			n := order(page.After, o)
			if f.flaw == "loses an order of the same millisecond" {
				n = at(&page.After).Compare(at(&o))
				if last {
					n = -n
				}
			}
			return n > 0 || n == 0 && f.flaw != "repeats the last order of a page"
		})
	}
	limit := cmp.Or(page.Limit, 100)
	if f.flaw == "lists more than a page" {
		limit++
	}
	return list[:min(limit, len(list))], nil
}

func (f *flawed) Ended(_ context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	if f.flaw == "ends a list with its last moment" {
		to = to.Add(time.Millisecond)
	}
	return f.list(page, finishedAt, false, func(o *ramp.Order) bool {
		return o.State != ramp.OrderAccepted && !o.FinishedAt.Before(from) && o.FinishedAt.Before(to)
	})
}

func (f *flawed) Waiting(
	_ context.Context, d ramp.Direction, before time.Time, page ramp.OrderPage,
) ([]ramp.Order, error) {
	return f.list(page, acceptedAt, false, func(o *ramp.Order) bool {
		return o.State == ramp.OrderAccepted && o.AcceptedAt.Before(before) &&
			(o.Direction == d || f.flaw == "lists waiting orders of both directions")
	})
}

func (f *flawed) SessionOrders(_ context.Context, session string, page ramp.OrderPage) ([]ramp.Order, error) {
	return f.list(page, acceptedAt, true, func(o *ramp.Order) bool { return o.SessionID == session })
}

func (f *flawed) UserOrders(_ context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error) {
	return f.list(page, acceptedAt, true, func(o *ramp.Order) bool {
		if f.flaw == "knows an address as it was written only" {
			return o.UserAddress == address
		}
		return strings.EqualFold(o.UserAddress, address)
	})
}

func (f *flawed) CountWaiting(
	ctx context.Context, d ramp.Direction, before time.Time,
) (n int, oldest time.Time, err error) {
	all, err := f.list(ramp.OrderPage{Limit: 1_000_000}, acceptedAt, false, func(o *ramp.Order) bool {
		return o.AcceptedAt.Before(before) && o.Direction == d &&
			(o.State == ramp.OrderAccepted || f.flaw == "counts what has ended")
	})
	if len(all) > 0 && f.flaw != "does not know since when an order waits" {
		oldest = all[0].AcceptedAt
	}
	return len(all), oldest, err
}
