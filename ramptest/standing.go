package ramptest

import (
	"fmt"
	"net/http"
	"time"

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

// over reports whether the schedule of deliveries has ended.
func (s State) over() bool { return s == Confirmed || s == Rejected || s == GivenUp }

// standing is the progress of an order's result: its state and its schedule.
type standing struct {
	State    State
	Attempts int       // deliveries so far
	Retries  int       `json:",omitzero"` // how many of them are retries of the schedule
	Next     time.Time `json:",omitzero"` // when the next delivery is planned; zero if none is
	Status   int       `json:",omitzero"` // HTTP status of the last answer; 0 if there was none
	// what is wrong with an answer, although a result is sent again only on purpose after it
	Wrong    string `json:",omitzero"`
	Lost     bool   `json:",omitzero"` // the last answer was lost by a fault, or the store failed by one
	Contrary bool   `json:",omitzero"` // the last result contradicted the chain, and was not confirmed

	sending int // deliveries in progress
}

// delivery guards the progress of an order's result.
type delivery struct {
	mu locks.Mutex
	standing
	body []byte // of the first delivery

	// What of the script has happened.
	scripted    bool // the first deliveries were made as it says, not by hand
	reorganized bool // the block of the transaction was replaced
	failed      bool // the store has failed
}

func newDelivery(s standing) delivery { return delivery{mu: locks.At(locks.Delivery), standing: s} }

// note records what has happened.
func (d *delivery) note(happened func(*delivery)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	happened(d)
}

// first returns the body of the first delivery.
func (d *delivery) first(body []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.body == nil {
		d.body = body
	}
	return d.body
}

func (d *delivery) now() standing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.standing
}

func (d *delivery) begun() bool { return d.now().Attempts > 0 }

// mined records that the transaction is in a block.
func (d *delivery) mined() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.State == Pending {
		d.State = Delivering
	}
}

// planned sets when the next delivery is due; the zero time cancels it. It reports
// whether a delivery is still wanted and whether it would be the first.
func (d *delivery) planned(at time.Time) (wanted, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Next = at
	return !d.State.over(), d.Attempts == 0
}

// byHand is the fault of a delivery that somebody makes now.
const byHand = "by hand"

// begin counts one more attempt. If it is made only because a fault says so, the answer before it
// would have been the last.
func (d *delivery) begin(fault string) (attempt int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.State == Rejected && fault != byHand && d.Wrong == "" {
		d.Wrong = fmt.Sprintf("HTTP %d%s", d.Status, notSentAgain)
	}
	d.Attempts++
	d.sending++
	return d.Attempts
}

// reply is what a delivery has brought.
type reply struct {
	status   int    // HTTP status of the answer; 0 if none arrived
	wrong    string // what is wrong with the answer; see wrongAnswer
	lost     bool   // the answer was lost by a fault, or the store failed by one
	contrary bool   // the result contradicts the chain
	fault    string // of the delivery
	once     bool   // the result is never sent again
}

// retries reports whether a result is sent again by itself if the game does not confirm it.
func (s *standing) retries(config *Config) bool {
	if !s.Next.IsZero() { // planned, unless the game has ended it since
		return !s.State.over()
	}
	return s.State != Confirmed && s.Retries < len(config.Schedule)
}

// conclude applies the status of an answer to the order (interface 6): HTTP 200
// confirms; no answer and the statuses of Config.Retry are retried, and so is a result that
// contradicts the chain, which the game may reject. It returns when the next delivery is
// due, and whether the caller must plan it.
func (d *delivery) conclude(r reply, config *Config, now time.Time) (next time.Time, plan bool) {
	retried := r.status == 0 || config.Retry(r.status)
	contrary := r.contrary && r.status != http.StatusOK
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sending--
	if !contrary || d.State != Confirmed {
		d.Status, d.Lost, d.Contrary = r.status, r.lost, contrary
		if r.fault == byHand || d.Wrong == "" {
			d.Wrong = r.wrong
		}
	}
	switch {
	case d.State == Confirmed || r.status == http.StatusOK:
		d.State = Confirmed
	case !retried && !contrary:
		d.State = Rejected
	case r.once, !d.Next.IsZero(): // never retried, or already planned
	case !d.retries(config):
		d.State = GivenUp
	default:
		d.State = Delivering
		d.Next = now.Add(config.Schedule[d.Retries])
		d.Retries++
		return d.Next, true
	}
	if d.State.over() {
		return time.Time{}, false
	}
	return d.Next, false
}
