package verdict

import (
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/books"
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
	End   End
	Stays bool      // it is pending on purpose
	Block time.Time // when the next block comes
	Short string    // the tokens that the wallet held, if a burn failed because it needs more; otherwise ""

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
	Wrong    string    // what is wrong with the last answer, if the game has confirmed
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
	Sum      books.Assets // what the order moves if the transaction succeeds, of what is judged
	Aside    []string     // the assets of the order that are not judged, because they move by themselves
	Moved    books.Assets // what the game has moved so far
	Took     books.Assets // what it had moved at some time, if that was not nothing
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
type Statement = books.Results
