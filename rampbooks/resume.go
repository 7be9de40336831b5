package rampbooks

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// reconcileSince reconciles from a time, or else from a position, until another time, or else now. Whoever
// gives the time decides what the books of a position are about from now on.
func (r *Reconciler) reconcileSince(
	ctx context.Context, p PositionStore, s span,
) (*Reconciliation, []Line, error) {
	if err := r.made(); err != nil {
		return nil, nil, err
	}
	last, err := readPosition(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if err := last.checkAbout(p, r.about(), !s.from.IsZero()); err != nil {
		return nil, nil, err
	}
	s.waiting = last.Waiting
	if !s.from.IsZero() {
		return r.reconcile(ctx, s)
	}
	if s.from = last.To; last.To.IsZero() {
		s.from = r.config.Now().Add(-24 * time.Hour)
		if p != nil {
			r.log().WarnContext(ctx, "ramp: the books have no position", "file", p.String(), "begin", s.from)
		}
		return r.reconcile(ctx, s)
	}
	s.overlap, s.before = Overlap, last.ended()
	restored, err := r.restored(ctx, last)
	if err != nil {
		return nil, nil, err
	}
	if restored {
		newest, err := r.newest(ctx, last.To)
		if err != nil {
			return nil, nil, err
		}
		s.from, s.overlap, s.before = newest.FinishedAt.Add(-Overlap), 0, nil
		if newest.UUID == uuid.Nil {
			s.from = last.To.Add(-longestSearch)
		}
		r.log().ErrorContext(ctx, "ramp: the books are newer than the store",
			"file", p.String(), "position", last.To, "uuid", last.Newest, "begin", s.from)
	}
	return r.reconcile(ctx, s)
}

// restored reports whether the store lacks the newest order of the last books, or its end.
func (r *Reconciler) restored(ctx context.Context, last booksEnd) (bool, error) {
	if last.Newest == uuid.Nil || r.config.Now().Sub(last.NewestEnded) >= orderlist.MinDeletedAge {
		return false, nil
	}
	order, err := r.order(ctx, last.Newest)
	switch {
	case errors.Is(err, ramp.ErrOrderUnknown):
		return true, nil
	case errors.Is(err, ramp.ErrOrderForeign):
		return false, nil
	}
	return err == nil && order.State == ramp.OrderAccepted, err
}

// longestSearch is how far back the newest order of a store is searched.
const longestSearch = 90 * 24 * time.Hour

// newest returns the order that ended last before a time, or an empty one.
func (r *Reconciler) newest(ctx context.Context, before time.Time) (newest ramp.Order, err error) {
	for _, back := range []time.Duration{time.Hour, 24 * time.Hour, longestSearch / 3, longestSearch} {
		if newest.UUID != uuid.Nil {
			break
		}
		all := r.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
			return r.config.Store.Ended(ctx, before.Add(-back), before, page)
		})
		for orders, err := range all {
			if err != nil {
				return ramp.Order{}, err
			}
			for _, order := range orders {
				if !order.FinishedAt.Before(newest.FinishedAt) {
					newest = order
				}
			}
		}
	}
	return newest, nil
}

// keepPosition stores the end of books that were reported. The
// position never moves backwards, and never past what no books are about.
func (r *Reconciler) keepPosition(ctx context.Context, p PositionStore, books *Reconciliation) error {
	read, err := readPosition(ctx, p)
	last := read.To
	if p == nil || err != nil || !last.IsZero() && (books.To.Before(last) || books.From.After(last)) {
		return err // what is between, no books are about
	}
	newest, err := r.newest(ctx, books.To)
	if err != nil {
		return err
	}
	text, err := json.Marshal(booksEnd{To: books.To, Newest: newest.UUID, NewestEnded: newest.FinishedAt,
		Ended: books.newest, Waiting: books.waiting, About: &books.About})
	if err != nil {
		return err
	}
	return p.Write(ctx, append(text, '\n'))
}
