package verdict

import (
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Facts is what is known about an order.
type Facts struct {
	Mint     bool   // false for a burn
	Tokens   string // what is minted or burned, such as "3 tokens"
	Received string // what the wallet receives if a mint succeeds, such as "2.94 tokens"
	Player   string // the name of the player
	Chain    Chain
	Calls    Calls
	Books    Books
}

// Chain is what the chain knows about the transaction of an order.
type Chain struct {
	End      End
	Stays    bool // it is pending on purpose
	WithNext bool // it waits for the next order, which will have the same one
	Shared   bool // a person may have to end the order, because another one has the same transaction
	// what is next needs a block, and the chain makes none, on purpose
	Stands bool
	Block  time.Time // when the next block comes
	Short  string    // the tokens that the wallet held, if a burn failed because it needs more; otherwise ""

	// Less says that it burns less than the order is about, so it pays for nothing, and the game
	// need not confirm it.
	Less bool
}

// End is how a transaction ended.
type End int

// The ends of a transaction.
const (
	Pending End = iota
	Succeeded
	Reverted
)

func (e End) String() string { return [...]string{"pending", "succeeded", "failed"}[e] }

// Calls is how the game answered the results of an order.
type Calls struct {
	Progress Progress
	Attempts int       // how many results were sent
	Sending  bool      // a result is being sent
	Status   int       // the HTTP status of the last answer; 0 if there was none
	Wrong    string    // what is wrong with an answer after which no result is sent again by itself
	Lost     bool      // the last answer was lost on purpose, or with a Status, the store failed on purpose
	Contrary bool      // the last result contradicted the chain on purpose, and was not confirmed
	Next     time.Time // when the next result is sent; zero if none is planned
	Of       string    // which attempt that is, such as "2 of 20"
	Never    bool      // no result comes, on purpose
	Held     bool      // the result waits for that of another order, on purpose
	Refused  string    // how the game did not approve the order, which has no transaction; "" if it did
}

// Progress is how far the delivery of a result is.
type Progress int

// The progress of a delivery.
const (
	Open       Progress = iota
	Confirmed           // the game answered HTTP 200
	TurnedDown          // the game answered with a status after which it is not sent again
	GivenUp             // no attempt is left
)

// Books is what the books know about an order.
type Books struct {
	Why      Why
	Problem  string       // for Unread: why the game's answer could not be read
	Rejected bool         // for Unread: the game rejected the session, or was not asked
	Sum      tally.Assets // what the order moves if the transaction succeeds, of what is judged
	Aside    []string     // the assets of the order that are not judged, because they move by themselves
	Moved    tally.Assets // what the game has moved so far
	Took     tally.Assets // what it had moved at some time, if that was not nothing
	Vague    bool         // it may have moved more than Took says
	Findings []string     // what the books have found about the order
	Shared   []string     // what they have found about several orders, without knowing which is wrong
	Dispute  *Dispute     // nil if there is none
}

// hidden reports whether a game that did not approve an order may have moved something. It
// may reject who it does not know, and does not list their assets either.
func (b *Books) hidden() bool { return b.Why == Overlap || b.Why == Unread && !b.Rejected }

// Why is why the books do not know what the game moved.
type Why int

// The reasons. Known means that the books know.
const (
	Known   Why = iota
	Off         // the books are off
	Unread      // the game did not report what the player owns
	Overlap     // calls overlapped, or assets moved at the same time for another reason
	Twins       // the game approved two orders under one UUID
)

// Dispute describes results that stated another outcome than the chain, or two outcomes.
type Dispute struct {
	First  End // the outcome that the first result stated
	Stands End // the first outcome that the game confirmed; Pending if it confirmed none

	// Other is the answer to the results that stated the outcome that does not stand; if none
	// stands, to those after the first.
	Other Statement
}

// Statement is how the game answered the results that stated one outcome.
type Statement = tally.Results

// unpaid reports whether the transaction succeeded, and does not pay for the order.
func (o *Facts) unpaid() bool { return o.Chain.Less && o.Chain.End == Succeeded }

// excused reports whether the game may leave the order to a person, and has.
func (o *Facts) excused() bool { return o.Chain.Shared && o.Calls.Progress != Confirmed }

// over reports whether no result is sent any more by itself.
func (o *Facts) over() bool { return o.Calls.Progress != Open || o.Calls.Refused != "" }

// failing reports whether the last answer is not a confirmation, and that is the game's
// own doing.
func (o *Facts) failing() bool {
	c := o.Calls
	switch d := o.Books.Dispute; {
	case c.Contrary || o.unpaid() || d != nil && d.Stands != Pending: // it may reject what contradicts
		return false
	case o.excused():
		return false
	case c.Wrong != "":
		return true
	case c.Sending:
		return !c.Lost && c.Status != 0 && !c.confirms() // 0 may mean that there was no answer yet
	}
	return !c.Lost && c.Attempts > 0 && !c.confirms()
}

// confirms reports whether the last answer is a confirmation as the interface has it.
func (c *Calls) confirms() bool { return c.Status == 200 && c.Wrong == "" }

// unknown is why, with what was wrong with the game's answer.
func (o *Facts) unknown() string {
	if o.Books.Why == Unread {
		return join(o.why(), o.Books.Problem)
	}
	return o.why()
}

// why describes why it is unknown what the game moved.
func (o *Facts) why() string {
	switch o.Books.Why {
	case Off:
		return "The books are off, so the game's assets were not checked."
	case Overlap:
		return "What the game moved is unknown, because it cannot be told apart from other movements of " +
			"this player's assets."
	case Twins:
		return "What the game moved is unknown, because it approved two orders under one UUID."
	case Unread:
		return "What the game moved is unknown, because it did not report what the player owns."
	default:
		return ""
	}
}

// end returns the outcome that decides what is due, and whether it is known.
func (o *Facts) end() (end End, ok bool) {
	if d := o.Books.Dispute; d != nil {
		return d.Stands, d.Stands != Pending
	}
	return o.Chain.End, true
}
