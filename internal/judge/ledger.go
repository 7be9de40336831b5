package judge

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// event is something to which the server agreed and that may affect what a player owns.
type event struct {
	kind  eventKind
	order order
}

type eventKind string

// The kinds of events. The first approval of an order is not an event, because the
// interface leaves open whether a mint takes its assets at validate or at its result.
const (
	mintSucceeded   eventKind = "mint succeeded"
	mintFailed      eventKind = "mint failed"
	burnSucceeded   eventKind = "burn succeeded"
	burnFailed      eventKind = "burn failed"
	validateAgain   eventKind = "validate again"
	resultContrary  eventKind = "another outcome"
	resultOfUnknown eventKind = "result of an unknown order"
)

// ledger records what the server agreed to in a trial. It is safe for concurrent use.
type ledger struct {
	layered atomic.Bool  // something before the handler answered a call
	last    atomic.Value // when the last call that may have an effect ended, a [time.Time]

	mu     sync.Mutex
	events []event
	orders map[string]*record // by uuid
}

// record is what a trial knows of an order.
type record struct {
	order    order     // as last requested
	open     bool      // it has not ended
	approved bool      // at least once
	at       time.Time // when it was first approved
	ended    string    // the first status that was confirmed, or ""
	sig      string    // the first validatorSig, or ""
}

// of returns the record of an order. The caller holds the lock.
func (l *ledger) of(o order) *record {
	if l.orders == nil {
		l.orders = make(map[string]*record)
	}
	if l.orders[o.uuid()] == nil {
		l.orders[o.uuid()] = new(record)
	}
	return l.orders[o.uuid()]
}

// known returns a copy of the record of an order.
func (l *ledger) known(o order) record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.of(o)
}

// called records that a call that may have an effect has ended.
func (l *ledger) called() { l.last.Store(time.Now()) }

func (l *ledger) lastCall() time.Time {
	last, _ := l.last.Load().(time.Time)
	return last
}

// asks records an order that was created, or the form in which it was approved. A faulty
// server may keep an order open even if it rejected it.
func (l *ledger) asks(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(o)
	r.order, r.open = o, true
}

// approved records the approval of an order.
func (l *ledger) approved(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(o)
	if r.approved {
		l.events = append(l.events, event{validateAgain, o})
	} else {
		r.at = time.Now()
	}
	r.order, r.open, r.approved = o, true, true
}

// confirmed records that the server confirmed a result.
func (l *ledger) confirmed(o order, status string) {
	kind := l.kind(o, status)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{kind, o})
	r := l.of(o)
	r.ended, r.open = cmp.Or(r.ended, status), false
}

// kind returns the kind of event that the confirmation of a result would be.
func (l *ledger) kind(o order, status string) eventKind {
	switch kind, known := kindOf(o, status), l.known(o); {
	case !known.approved:
		return resultOfUnknown
	case known.ended != "" && known.ended != status:
		return resultContrary
	case known.ended != "":
		return kind + " again"
	default:
		return kind
	}
}

// repeats records the validatorSig of an approval and reports whether it is that of an
// earlier one under the same uuid, which commits to nothing new.
func (l *ledger) repeats(o order, sig string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(o)
	again := r.sig == sig
	r.sig = cmp.Or(r.sig, sig)
	return again
}

func kindOf(o order, status string) eventKind {
	kinds := map[string]eventKind{success: mintSucceeded, failure: mintFailed}
	if o.burns() {
		kinds = map[string]eventKind{success: burnSucceeded, failure: burnFailed}
	}
	return kinds[status]
}

// statusOf reads the outcome of a result in any form of its status.
func statusOf(result object) string {
	receipt, _ := result["receipt"].(object)
	if strings.TrimLeft(strings.TrimPrefix(fmt.Sprint(receipt["status"]), "0x"), "0") == "1" {
		return success
	}
	return failure
}

// unfinished returns the orders that may still be open.
func (l *ledger) unfinished() []order {
	l.mu.Lock()
	defer l.mu.Unlock()
	var orders []order
	for id, r := range l.orders {
		if r.open && id != "" {
			orders = append(orders, r.order)
		}
	}
	return orders
}

// taking returns what the open mints of a player take, and when the last one was approved.
func (l *ledger) taking(s ramp.Session) (taken difference, approved time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken = make(difference)
	for _, r := range l.orders {
		if !r.approved || !r.open || r.order.owner.ID != s.ID || r.order.burns() {
			continue
		}
		for id, amount := range r.order.assets() {
			taken.add(id, new(big.Rat).Neg(amount))
		}
		if r.at.After(approved) {
			approved = r.at
		}
	}
	return taken, approved
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

// since returns the events of a player's orders after the first n events.
func (l *ledger) since(s ramp.Session, n int) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var events []event
	for _, e := range l.events[n:] {
		if e.order.owner.ID == s.ID {
			events = append(events, e)
		}
	}
	return events
}

// lastKind returns the kind of the last event of a player's orders, or "".
func (l *ledger) lastKind(s ramp.Session) eventKind {
	if events := l.since(s, 0); len(events) > 0 {
		return events[len(events)-1].kind
	}
	return ""
}

// effect returns what an order moves of its owner's assets when it ends with a status.
func (o order) effect(status string) difference {
	moved, sign := make(difference), big.NewRat(-1, 1)
	if o.burns() {
		sign.Neg(sign)
	}
	if status == success {
		for id, amount := range o.assets() {
			moved.add(id, product(amount, sign))
		}
	}
	return moved
}

// fault is the effect of a broken ability on balances.
type fault struct {
	ability  string // the ID of its case, or of that at its root
	kind     eventKind
	perUnit  *big.Rat   // for each unit of an asset that the order is about
	perEvent difference // for each event, of assets that the order is not about
}

// like reports whether two faults have the same effect on different events, as one bug
// has: on every event, or on both outcomes of the same sort of order.
func (f fault) like(other fault) bool {
	oneSort := f.kind[:4] == other.kind[:4] && !strings.HasSuffix(string(other.kind), "again")
	return (f.perUnit.Sign() == 0 || oneSort) && f.perUnit.Cmp(other.perUnit) == 0 &&
		f.perEvent.equal(other.perEvent)
}

// predicts returns the effect of a fault on an event.
func (f fault) predicts(e event) difference {
	d := make(difference)
	if e.kind != f.kind {
		return d
	}
	about := e.order.assets()
	for id, amount := range about {
		d.add(id, product(amount, f.perUnit))
	}
	for id, by := range f.perEvent {
		if about[id] == nil {
			d.add(id, by)
		}
	}
	return d
}

// snapshot is what a player owned at some time during a case.
type snapshot struct {
	owner  ramp.Session
	assets map[string]*big.Rat
	events int       // number of events before the snapshot
	at     time.Time // zero for the beginning of a case
}

func (s snapshot) of(id string) *big.Rat { return difference(s.assets).of(id) }

// lateOrder is an order of the opening, whose result comes late, or late once more. If it was
// left open, it has what its player owned before it.
type lateOrder struct {
	order
	before snapshot
	at     time.Time // of its approval
	name   string    // of its [ending]
	status string    // with which it ends
}
