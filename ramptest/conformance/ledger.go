package conformance

import (
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
	mu      sync.Mutex
	events  []event
	open    map[string]order  // by uuid: orders that have not ended, as last requested
	ended   map[string]string // by uuid: the first status that was confirmed
	known   map[string]bool   // by uuid: orders that were approved
	layered atomic.Bool       // something before the handler answered a call
	last    time.Time         // when the last call that may have an effect ended
	sigs    map[string]string // by uuid: the first validatorSig
}

func newLedger() *ledger {
	return &ledger{open: make(map[string]order), ended: make(map[string]string), known: make(map[string]bool), sigs: make(map[string]string)}
}

// called records that a call that may have an effect has ended.
func (l *ledger) called() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
}

func (l *ledger) lastCall() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// uuid returns the text of the uuid of an order, or "".
func (o order) uuid() string { return literalText(o.body.at("uuid")) }

// asks records an order that was created, or the form in which it was approved. A faulty
// server may keep an order open even if it rejected it.
func (l *ledger) asks(o order) {
	if id := o.uuid(); id != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[id] = o
	}
}

// approved records the approval of an order.
func (l *ledger) approved(o order) {
	l.asks(o)
	id := o.uuid()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[id] {
		l.events = append(l.events, event{validateAgain, o})
	}
	l.known[id] = true
}

// isKnown reports whether an order was approved.
func (l *ledger) isKnown(o order) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[o.uuid()]
}

// any reports whether an order was approved.
func (l *ledger) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known) > 0
}

// confirmed records that the server confirmed a result.
func (l *ledger) confirmed(o order, status string) {
	kind := l.kind(o, status)
	id := o.uuid()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{kind, o})
	if _, again := l.ended[id]; !again {
		l.ended[id] = status
	}
	delete(l.open, id)
}

// kind returns the kind of event that the confirmation of a result would be.
func (l *ledger) kind(o order, status string) eventKind {
	id := o.uuid()
	l.mu.Lock()
	defer l.mu.Unlock()
	first, again := l.ended[id]
	switch kind := kindOf(o, status); {
	case !l.known[id]:
		return resultOfUnknown
	case again && first != status:
		return resultContrary
	case again:
		return kind + " again"
	default:
		return kind
	}
}

// ends reports whether the server confirmed a result of an order.
func (l *ledger) ends(o order) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[o.uuid()] != ""
}

// repeats records the validatorSig of an approval and reports whether it is that of an
// earlier one under the same uuid, which commits to nothing new.
func (l *ledger) repeats(o order, sig string) bool {
	id := o.uuid()
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.sigs[id] == sig
	if l.sigs[id] == "" {
		l.sigs[id] = sig
	}
	return again
}

func kindOf(o order, status string) eventKind {
	switch burn := o.burns(); {
	case burn && status == success:
		return burnSucceeded
	case burn:
		return burnFailed
	case status == success:
		return mintSucceeded
	default:
		return mintFailed
	}
}

// statusOf reads the outcome of a result in any form of its status.
func statusOf(result object) string {
	receipt, _ := result["receipt"].(object)
	text, isText := receipt["status"].(string)
	if !isText {
		text = literal(receipt["status"])
	}
	if strings.TrimLeft(strings.TrimPrefix(text, "0x"), "0") == "1" {
		return success
	}
	return failure
}

// unfinished returns the orders that may still be open.
func (l *ledger) unfinished() []order {
	l.mu.Lock()
	defer l.mu.Unlock()
	var orders []order
	for _, o := range l.open {
		if _, ok := o.body.at("intent").(object); ok {
			orders = append(orders, o)
		}
	}
	return orders
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

// assets returns the sums of the game assets that an order is about.
func (o order) assets() map[string]*big.Rat {
	side := "from"
	if o.burns() {
		side = "to"
	}
	sums := make(map[string]*big.Rat)
	entries, _ := o.body.at("intent." + side).(list)
	for _, e := range entries {
		entry, _ := e.(object)
		id, _ := entry["id"].(string)
		amount, err := ramp.ParseAmount(literal(entry["amount"]))
		if entry["type"] != "asset" || err != nil {
			continue
		}
		if sums[id] == nil {
			sums[id] = new(big.Rat)
		}
		sums[id].Add(sums[id], amount.Rat())
	}
	return sums
}

// difference is how much more a player owns than expected, by asset. It has no entry for
// an asset that is as expected.
type difference map[string]*big.Rat

func (d difference) add(id string, by *big.Rat) {
	sum := new(big.Rat).Add(d.of(id), by)
	if d[id] = sum; sum.Sign() == 0 {
		delete(d, id)
	}
}

func (d difference) of(id string) *big.Rat {
	if r := d[id]; r != nil {
		return r
	}
	return new(big.Rat)
}

func (d difference) equal(other difference) bool {
	if len(d) != len(other) {
		return false
	}
	for id, r := range d {
		if r.Cmp(other.of(id)) != 0 {
			return false
		}
	}
	return true
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
	return (f.perUnit.Sign() == 0 || oneSort) && f.perUnit.Cmp(other.perUnit) == 0 && f.perEvent.equal(other.perEvent)
}

// predicts returns the effect of a fault on an event.
func (f fault) predicts(e event) difference {
	d := make(difference)
	if e.kind != f.kind {
		return d
	}
	about := e.order.assets()
	for id, amount := range about {
		d.add(id, new(big.Rat).Mul(amount, f.perUnit))
	}
	for id, by := range f.perEvent {
		if about[id] == nil {
			d.add(id, by)
		}
	}
	return d
}

// predict returns the total effect of the known faults on events.
func predict(faults []fault, events []event) difference {
	d := make(difference)
	for _, f := range faults {
		for _, e := range events {
			for id, by := range f.predicts(e) {
				d.add(id, by)
			}
		}
	}
	return d
}

func literal(value any) string {
	if n, ok := value.(interface{ String() string }); ok {
		return strings.TrimSpace(n.String())
	}
	return ""
}
