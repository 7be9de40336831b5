package rampbooks

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

const (
	maxDelay = evidence.MaxDelay
	maxAhead = evidence.MaxAhead
	skew     = evidence.Skew
)

// period is the time that books are about.
type period struct {
	from, to time.Time // of the findings
	counted  time.Time // where the totals begin: at from, or later if findings overlap earlier books

	// before has the orders that ended in the last hour of the books before; nil if they are not known.
	before map[uuid.UUID]bool

	// known are the transactions of earlier books for orders that wait still: they are judged again.
	known map[common.Hash]bool
}

// begin is where the events that are read begin: those of every order that ends in the
// period, or has then waited for 13 hours, but was accepted less than that before.
func (p *period) begin() time.Time { return p.from.Add(-maxDelay - skew) }

// within reports whether a time is in the period, and not in the 13 hours before it.
func (p *period) within(t time.Time) bool { return !t.Before(p.from) && t.Before(p.to) }

// judges reports whether what an event is about belongs into these books.
func (p *period) judges(e *ChainEvent) bool { return p.within(e.Time) || p.known[e.TxHash] }

// counts reports whether the totals have what happened at a time.
func (p *period) counts(t time.Time) bool { return !t.Before(p.counted) && t.Before(p.to) }

// maxLate is how long after its end an order may be stored, and still be in the next totals. The end is the
// time at which a result came, before it was confirmed and Apply was called.
const maxLate = time.Hour

// isLate reports whether the books before lack an order that ended in their last hour.
func (p *period) isLate(o *ramp.Order) bool {
	return p.before != nil && o.FinishedAt.Before(p.counted) &&
		!o.FinishedAt.Before(p.counted.Add(-maxLate)) && !p.before[o.UUID]
}

// countsOrder reports whether the totals have an order that ended.
func (p *period) countsOrder(o *ramp.Order) bool { return p.counts(o.FinishedAt) || p.isLate(o) }

// isOld reports whether the event of an order may be older than the events that are read.
func (p *period) isOld(o *ramp.Order) bool { return o.AcceptedAt.Add(-skew).Before(p.begin()) }

// isOpen reports whether the result of an order may come after the period.
func (p *period) isOpen(o ramp.Order) bool {
	return o.State == ramp.OrderAccepted && !p.waitsTooLong(&o) || !o.FinishedAt.Before(p.to)
}

// waitsTooLong reports whether the result of a waiting order will not come.
func (p *period) waitsTooLong(o *ramp.Order) bool {
	return o.State == ramp.OrderAccepted && o.AcceptedAt.Before(p.to.Add(-maxDelay))
}

// waitedNow reports whether it became so in the period.
func (p *period) waitedNow(o *ramp.Order) bool {
	return p.waitsTooLong(o) && !o.AcceptedAt.Before(p.from.Add(-maxDelay))
}
