package order

import (
	"fmt"
	"net/http"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// State is the state of an order as the service sees it.
type State string

// The states of an order. The interface has no names for them (3).
const (
	Pending    State = "pending"    // its transaction is not in a block
	Delivering State = "delivering" // the game has not confirmed the result
	Confirmed  State = "confirmed"  // the game answered HTTP 200 (interface 6), even with success false
	// the game answered with another status, and the service does not retry it
	Rejected State = "rejected"
	GivenUp  State = "given up" // the schedule has ended without a confirmation
)

// Over reports whether the schedule of deliveries has ended.
func (s State) Over() bool { return s == Confirmed || s == Rejected || s == GivenUp }

// Progress is the progress of an order's result: its state and its schedule.
type Progress struct {
	State    State
	Attempts int       // deliveries so far
	Retries  int       `json:",omitzero"` // how many of them are retries of the schedule
	Next     time.Time `json:",omitzero"` // when the next delivery is planned; zero if none is
	Status   int       `json:",omitzero"` // HTTP status of the last answer; 0 if there was none
	// what is wrong with an answer, although a result is sent again only on purpose after it
	Wrong    string `json:",omitzero"`
	Lost     bool   `json:",omitzero"` // the last answer was lost by a fault, or the store failed by one
	Contrary bool   `json:",omitzero"` // the last result contradicted the chain, and was not confirmed

	Sending int `json:"-"` // deliveries in progress
}

// Delivery guards the progress of an order's result.
type Delivery struct {
	mu locks.Mutex
	Progress
	body []byte // of the first delivery

	// What of the script has happened.
	Scripted    bool // the first deliveries were made as it says, not by hand
	Reorganized bool // the block of the transaction was replaced
	Failed      bool // the store has failed
	LeftOut     bool // a result did not have the logs of its transaction
}

// NewDelivery returns a delivery that has progressed so far.
func NewDelivery(s Progress) Delivery { return Delivery{mu: locks.At(locks.Delivery), Progress: s} }

// Note records what has happened.
func (d *Delivery) Note(happened func(*Delivery)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	happened(d)
}

// First returns the body of the first delivery.
func (d *Delivery) First(body []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.body == nil {
		d.body = body
	}
	return d.body
}

// Now returns the progress.
func (d *Delivery) Now() Progress {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Progress
}

// Begun reports whether the result was delivered.
func (d *Delivery) Begun() bool { return d.Now().Attempts > 0 }

// Mined records that the transaction is in a block.
func (d *Delivery) Mined() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.State == Pending {
		d.State = Delivering
	}
}

// Planned sets when the next delivery is due; the zero time cancels it. It reports
// whether a delivery is still wanted and whether it would be the first.
func (d *Delivery) Planned(at time.Time) (wanted, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Next = at
	return !d.State.Over(), d.Attempts == 0
}

// Begin counts one more attempt. If it is made only because a fault says so, the answer before it
// would have been the last.
func (d *Delivery) Begin(name string) (attempt int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.State == Rejected && name != fault.ByHand && d.Wrong == "" {
		d.Wrong = fmt.Sprintf("HTTP %d%s", d.Status, NotSentAgain)
	}
	d.Attempts++
	d.Sending++
	return d.Attempts
}

// Reply is what a delivery has brought.
type Reply struct {
	Status   int    // HTTP status of the answer; 0 if none arrived
	Wrong    string // what is wrong with the answer; see wrongAnswer
	Lost     bool   // the answer was lost by a fault, or the store failed by one
	Contrary bool   // the result contradicts the chain
	Fault    string // of the delivery
	Once     bool   // the result is never sent again
}

// MayRetry reports whether a result is sent again by itself if the game does not confirm it.
func (s *Progress) MayRetry(waits []time.Duration) bool {
	if !s.Next.IsZero() { // planned, unless the game has ended it since
		return !s.State.Over()
	}
	return s.State != Confirmed && s.Retries < len(waits)
}

// Conclude applies the status of an answer to the order (interface 6): HTTP 200
// confirms; no answer and the statuses that retry names are retried, and so is a result that
// contradicts the chain, which the game may reject. It returns when the next delivery is
// due, and whether the caller must plan it.
func (d *Delivery) Conclude(r Reply, waits []time.Duration, retry func(status int) bool,
	now time.Time) (next time.Time, plan bool) {
	retried := r.Status == 0 || retry(r.Status)
	contrary := r.Contrary && r.Status != http.StatusOK
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Sending--
	if !contrary || d.State != Confirmed {
		d.Status, d.Lost, d.Contrary = r.Status, r.Lost, contrary
		if r.Fault == fault.ByHand || d.Wrong == "" {
			d.Wrong = r.Wrong
		}
	}
	switch {
	case d.State == Confirmed || r.Status == http.StatusOK:
		d.State = Confirmed
	case !retried && !contrary:
		d.State = Rejected
	case r.Once, !d.Next.IsZero(): // never retried, or already planned
	case !d.MayRetry(waits):
		d.State = GivenUp
	default:
		d.State = Delivering
		d.Next = now.Add(waits[d.Retries])
		d.Retries++
		return d.Next, true
	}
	if d.State.Over() {
		return time.Time{}, false
	}
	return d.Next, false
}
