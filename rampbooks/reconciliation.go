package rampbooks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
)

// A Reconciliation compares the orders of a period with the events of their tokens: see
// [Reconciler.Reconcile]. The same orders and the same chain give the same books. Go can read
// their JSON back.
type Reconciliation struct {
	About About `json:"about"`

	// From and To are what the totals count: the orders that ended, and the events of the
	// blocks that were mined, from From up to but without To. Totals of books that go on where others
	// ended add up: see [Total].Late. To is at least two minutes ago.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// FindingsFrom is the time from which findings are listed. If these books go on where others ended,
	// it is [Overlap] before From, so a finding can be in both. Otherwise it is From.
	FindingsFrom time.Time `json:"findings_from"`

	// Stalled says why To is hours before the node's newest block. What happened since To is then not
	// judged. It is empty if To is recent.
	Stalled string `json:"stalled,omitempty"`

	// The first and the last block that were read. The first one is 13 hours and 15 minutes before From.
	FirstBlock uint64 `json:"first_block"`
	LastBlock  uint64 `json:"last_block"`

	Totals []Total      `json:"totals"` // of the orders that ended, by product and direction
	Chain  []ChainTotal `json:"chain"`  // of the events, by token and direction

	// Open counts what is not judged yet: events whose order waits, but not yet for 13
	// hours, and orders whose transaction is in a block that is not final.
	Open int `json:"open"`

	// Witnesses counts the orders whose events the node listed. Without any, nothing shows that the
	// node lists what happened, so an order without an event proves nothing.
	Witnesses int `json:"witnesses"`

	// WaitingMints and WaitingBurns count the orders that had waited for 13 hours at To and
	// wait still, also those that are no findings any more and those of other projects in the
	// store.
	WaitingMints int `json:"waiting_mints"`
	WaitingBurns int `json:"waiting_burns"`

	// Elsewhere counts the transactions in the blocks of the period that orders of other databases have
	// claimed; see [ramp.Claims]. The books of those databases judge them. OneDatabase reports whether the
	// store has no claims: an event without an order may then have one in another database that sells its
	// token.
	Elsewhere   int  `json:"elsewhere"`
	OneDatabase bool `json:"one_database,omitzero"`

	// Fitting counts the findings that are marked as [Finding].Fitting.
	Fitting int `json:"fitting"`

	// Counts has how many findings of each kind there are, also of kinds without any. Findings
	// lists, oldest first, up to 1,000 of each kind, direction and token: the largest, by their
	// number of tokens.
	Counts   map[FindingKind]int `json:"counts"`
	Findings []Finding           `json:"findings"`

	// Decided are the findings that a person has ended, which are not counted, and Decisions what
	// persons decided in the period; see [Reconciler.Decide].
	Decided   []Finding     `json:"decided"`
	Decisions []DecisionRow `json:"decisions"`

	waiting waitingTransactions
	newest  []uuid.UUID // the orders that ended in the last hour
}

// About says what books are about. Books of something else cannot go on where these end.
type About struct {
	ChainID  uint64           `json:"chain_id"`
	Network  ramp.Network     `json:"network,omitempty"`
	Projects []string         `json:"projects,omitempty"` // empty for every project in the store
	Tokens   []common.Address `json:"tokens"`             // sorted
}

// String describes it for a person.
func (a About) String() string {
	tokens := make([]string, len(a.Tokens))
	for i, token := range a.Tokens {
		tokens[i] = token.Hex()
	}
	return fmt.Sprintf("chain %d, network %s, project %s, tokens %s", a.ChainID,
		cmp.Or(string(a.Network), "any"), console.Quote(cmp.Or(strings.Join(a.Projects, " "), "any")),
		strings.Join(tokens, " "))
}

// waitingTransactions has the transactions that the books have found for orders that wait, so that the next
// books can report them again: otherwise, an order whose result is refused for days, or never
// comes, would be seen on the first day only.
type waitingTransactions map[uuid.UUID][]common.Hash

// Total adds up the orders of a product and a direction that ended in a period.
type Total struct {
	// the name of the product, or the address of the token if the orders are of no product
	Product   string         `json:"product"`
	Token     common.Address `json:"token"`
	Decimals  int            `json:"decimals"` // of the token
	Direction ramp.Direction `json:"direction"`

	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Abandoned int `json:"abandoned"`

	// Late counts those of these orders that ended in the last hour before From, but were stored only after
	// the books of that hour had been made. Books that go on where others ended count them, so that the
	// totals of all periods have each order once.
	Late int `json:"late"`

	// What the game moved, by asset; Taken when the orders were accepted.
	Taken     map[string]Amount `json:"taken"`
	GivenBack map[string]Amount `json:"given_back"`
	Granted   map[string]Amount `json:"granted"`

	// What a person settled in another way, instead of giving it back or granting it.
	Settled map[string]Amount `json:"settled"`

	// What waiting mints had taken: InFlightBefore when the period began, InFlight when it ended.
	// What was taken in the period is Taken plus InFlight minus InFlightBefore.
	InFlightBefore map[string]Amount `json:"in_flight_before"`
	InFlight       map[string]Amount `json:"in_flight"`

	// Tokens of the orders that succeeded: Ordered is Moved plus Fees plus Unmatched.
	Ordered   Amount `json:"ordered"`   // before the fee
	Moved     Amount `json:"moved"`     // that their events minted for the users, or burned
	Fees      Amount `json:"fees"`      // of mints whose event fits
	Unmatched Amount `json:"unmatched"` // of orders whose event is not known, not judged yet, or does not fit
}

// ChainTotal adds up the events of a token and a direction in the blocks of a period,
// whether or not they have an order.
type ChainTotal struct {
	Token     common.Address `json:"token"`
	Direction ramp.Direction `json:"direction"`
	Events    int            `json:"events"`
	Tokens    Amount         `json:"tokens"`
	Decimals  int            `json:"decimals"`
}

// findingCount returns how many findings there are.
func (b *Reconciliation) findingCount() (n int) {
	for _, count := range b.Counts {
		n += count
	}
	return n
}

// isEmpty reports whether nothing was compared.
func (b *Reconciliation) isEmpty() bool {
	ended := slices.ContainsFunc(b.Totals, func(t Total) bool { return t.Succeeded+t.Failed+t.Abandoned > 0 })
	return !ended && len(b.Chain)+len(b.Findings)+len(b.Decided) == 0
}
