package rampbooks

import (
	"context"
	"iter"
	"time"

	"github.com/token-ramp/ramp-go"
)

// merge reads both sides once, and pairs them by their transactions.
func (c *comparison) merge(ctx context.Context) error {
	begin := c.begin()
	next, stop := iter.Pull2(c.reader.between(ctx, nil, c.first, c.last))
	defer stop()
	events := stream[[]ChainEvent]{next: next}
	ended, stop := iter.Pull2(c.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order,
		error) {
		return c.config.Store.Ended(ctx, begin, c.to, page)
	}))
	defer stop()
	orders := stream[ramp.Order]{next: ended}
	for n := 1; ; n++ {
		e, err := events.peek()
		if err != nil {
			return err
		}
		o, err := orders.peek()
		if err != nil {
			return err
		}
		var now time.Time
		switch {
		case e == nil && o == nil:
			c.byTransaction.settle(time.Time{})
			if err := c.checkUnseen(ctx); err != nil {
				return err
			}
			return c.checkListed()
		case o == nil, e != nil && !o.FinishedAt.Before((*e)[0].Time):
			if now = (*e)[0].Time; !now.Before(begin) && now.Before(c.to) {
				if err := c.splitByJournal(ctx, *e); err != nil {
					return err
				}
				c.byTransaction.transaction(*e)
			}
			events.skip()
		default:
			now = o.FinishedAt
			c.byTransaction.order(*o)
			orders.skip()
		}
		if n%5000 == 0 {
			c.byTransaction.settle(now)
			if err := c.checkUnseen(ctx); err != nil { // events may have come in the place of undone ones
				return err
			}
			if err := c.matchUnclaimed(ctx); err != nil {
				return err
			}
		}
	}
}

// stream is a sequence of chunks that is read by element.
type stream[T any] struct {
	next func() (chunk []T, err error, more bool)
	head []T
}

// peek returns the next element, or nil at the end.
func (s *stream[T]) peek() (*T, error) {
	for len(s.head) == 0 {
		chunk, err, more := s.next()
		if !more || err != nil {
			return nil, err
		}
		s.head = chunk
	}
	return &s.head[0], nil
}

// skip removes the element that peek returned.
func (s *stream[T]) skip() { s.head = s.head[1:] }
