package support

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// A Reconciliation compares the orders of a period with the events of their tokens: see
// [Orders.Reconcile]. The same orders and the same chain give the same books. Go can read
// their JSON back.
type Reconciliation struct {
	// From and To are what was compared: the orders that ended, and the events of the
	// blocks that were mined, from From up to but without To. To is earlier than that of
	// the period if the blocks there are not final yet: begin the next period at To.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// Stalled says why To is hours before the node's newest block, or is empty: what happened since
	// is not judged.
	Stalled string `json:"stalled,omitempty"`

	FirstBlock uint64 `json:"first_block"` // of those that were read; they begin 13 hours and a quarter before From
	LastBlock  uint64 `json:"last_block"`

	Totals []Total      `json:"totals"` // of the orders that ended, by product and direction
	Chain  []ChainTotal `json:"chain"`  // of the events, by token and direction

	// Open counts what is not judged yet: events whose order waits, but not yet for 13
	// hours, and orders whose transaction is in a block that is not final.
	Open int `json:"open"`

	// Witnesses counts the orders whose events the node listed. Without any, nothing shows that it
	// lists what happened: that there was no event could not be checked.
	Witnesses int `json:"witnesses"`

	// WaitingMints and WaitingBurns count the orders that had waited for 13 hours at To and
	// wait still, also those that are no findings any more and those of other projects in the
	// store.
	WaitingMints int `json:"waiting_mints"`
	WaitingBurns int `json:"waiting_burns"`

	// Fitting counts the findings that are marked as [Finding].Fitting.
	Fitting int `json:"fitting"`

	// Counts has how many findings of each kind there are, also of kinds without any.
	// Findings lists, oldest first, up to 1,000 of each kind, direction and token: those
	// that are about most tokens.
	Counts   map[FindingKind]int `json:"counts"`
	Findings []Finding           `json:"findings"`

	waiting waiting
}

// waiting has the transactions that the books have found for orders that wait, so that the next
// books can report them again: otherwise, an order whose result is refused for days, or never
// comes, would be seen on the first day only.
type waiting map[uuid.UUID][]common.Hash

// Total adds up the orders of a product and a direction that ended in a period.
type Total struct {
	Product   string         `json:"product"` // its name, or the address of the token if it is no product of the Period
	Direction ramp.Direction `json:"direction"`

	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Abandoned int `json:"abandoned"`

	// What the game moved, by asset; Taken when the orders were accepted.
	Taken     map[string]Amount `json:"taken"`
	GivenBack map[string]Amount `json:"given_back"`
	Granted   map[string]Amount `json:"granted"`

	// What a person settled in another way, instead of giving it back or granting it.
	Settled map[string]Amount `json:"settled"`

	Ordered Amount `json:"ordered"` // tokens of the orders that succeeded, before the fee
	Moved   Amount `json:"moved"`   // tokens that their events minted for the users, or burned
	Fees    Amount `json:"fees"`    // Ordered minus Moved for mints
}

// ChainTotal adds up the events of a token and a direction in the blocks of a period,
// whether or not they have an order.
type ChainTotal struct {
	Token     common.Address `json:"token"`
	Direction ramp.Direction `json:"direction"`
	Events    int            `json:"events"`
	Tokens    Amount         `json:"tokens"`
}

// ChainEvent is what a transaction minted of a token for an account, or burned of it.
type ChainEvent struct {
	TxHash    common.Hash    `json:"tx_hash"`
	Block     uint64         `json:"block"`
	LogIndex  uint64         `json:"log_index"` // of its first log
	Time      time.Time      `json:"time"`      // of the block
	Token     common.Address `json:"token"`
	User      common.Address `json:"user"`
	Direction ramp.Direction `json:"direction"`
	Tokens    Amount         `json:"tokens"` // set in findings

	units *big.Int // in the token's smallest units, or in pieces of a non-fungible token
}

// FoundOrder is an order of a finding.
type FoundOrder struct {
	UUID        uuid.UUID         `json:"uuid"`
	State       ramp.OrderState   `json:"state"`
	Direction   ramp.Direction    `json:"direction"`
	Product     string            `json:"product"` // its name, or the address of the token
	Tokens      Amount            `json:"tokens"`  // 0 if they cannot be compared
	Assets      map[string]Amount `json:"assets"`
	SessionID   string            `json:"session_id"`
	UserAddress string            `json:"user_address"`
	TxHash      string            `json:"tx_hash,omitempty"`
	AcceptedAt  time.Time         `json:"accepted_at"`
	FinishedAt  time.Time         `json:"finished_at,omitzero"`
	Reason      string            `json:"reason,omitempty"`  // who ended it by hand, and why
	Settled     string            `json:"settled,omitempty"` // how its assets were settled without the game

	// Refusal is why its end was refused, while it waits. The store must know, as rampsql.Store does.
	Refusal *ramp.Refusal `json:"refusal,omitempty"`
}

// row writes the order as a row of a table.
func (o FoundOrder) row() string {
	var assets []string
	for _, id := range slices.Sorted(maps.Keys(o.Assets)) {
		assets = append(assets, o.Assets[id].String()+" "+id)
	}
	ended := "-"
	if !o.FinishedAt.IsZero() {
		ended = o.FinishedAt.Format(time.RFC3339)
	}
	return strings.Join([]string{
		o.UUID.String(), string(cmp.Or(o.Direction, "unknown direction")), shown(strings.Join(assets, ", ")),
		string(o.State), o.AcceptedAt.Format(time.RFC3339), ended,
		shown(o.TxHash), shown(o.SessionID), shown(o.UserAddress), shown(byHand(o.Reason, o.Settled))}, "\t")
}

// byHand says who ended an order, why, and what else that person did instead of the game.
func byHand(reason, settled string) string {
	if settled == "" {
		return reason
	}
	return reason + "; settled in another way: " + settled
}

// found returns an order for a finding.
func (a *assets) found(t *traded) FoundOrder {
	return FoundOrder{
		t.UUID, t.State, t.Direction, t.product(), a.amount(t.token, t.units),
		add(map[string]Amount{}, t.Assets), t.SessionID, t.UserAddress, t.TxHash,
		t.AcceptedAt, t.FinishedAt, t.Reason, t.Settled, nil}
}

// FindingKind is what is wrong with an order or an event.
type FindingKind string

// The kinds of findings.
const (
	// An event has no order. Somebody who has the validator key mints, or another game
	// uses the token.
	EventWithoutOrder FindingKind = "event_without_order"

	// An order succeeded, but its event does not exist. Its result was invented, or it
	// is on another chain or of another token.
	OrderWithoutEvent FindingKind = "order_without_event"

	// An order failed or was abandoned, but its event exists. A mint was given back and
	// minted; a burn was burned and not granted.
	EndedOtherwise FindingKind = "ended_otherwise"

	// An order has waited for 13 hours, and its event exists. Its result never came, or was
	// refused. Finish it with the transaction. It is a finding of the period in which it has
	// waited for 13 hours and, if the books have a position, of all later ones until it has ended.
	WaitsWithEvent FindingKind = "waits_with_event"

	// An order has waited for 13 hours, and it has no event. Abandon it, as
	// docs/on-call.md says. It is a finding of the period in which it has waited for 13 hours,
	// and is only counted in later ones.
	WaitsWithoutEvent FindingKind = "waits_without_event"

	// The event of an order has another amount, user, token or direction. If it fits other
	// orders of its user, which have lost it, they follow in Orders.
	Differs FindingKind = "differs"

	// Several orders may belong to an event, or several events to an order. Nothing is
	// guessed.
	Ambiguous FindingKind = "ambiguous"

	// Several orders ended by one transaction, which paid for one of them.
	SharedTransaction FindingKind = "shared_transaction"
)

// FindingKinds are all kinds.
func FindingKinds() []FindingKind {
	return []FindingKind{EventWithoutOrder, OrderWithoutEvent, EndedOtherwise, WaitsWithEvent, WaitsWithoutEvent, Differs, Ambiguous, SharedTransaction}
}

// The ways in which an order and an event belong together.
const (
	ByTransaction = "tx_hash"
	ByAmount      = "user, token, direction, amount and time"
)

// Finding is an order or an event that does not fit. Nothing has been corrected.
type Finding struct {
	Kind   FindingKind  `json:"kind"`
	Time   time.Time    `json:"time"`         // of the first event, or else of the first order's end, or else when it was accepted
	Detail string       `json:"detail"`       // what is wrong, for a person
	By     string       `json:"by,omitempty"` // how Orders and Events belong together; empty if there is only one of them
	Orders []FoundOrder `json:"orders"`       // often one, or none for an EventWithoutOrder
	Events []ChainEvent `json:"events"`       // likewise

	// Fitting marks an order that waits and its event if they fit each other and nothing else, so that
	// [Orders.FinishFitting] can end it: the deliveries of its result are over, its transaction is final
	// and proves its end, the node listed the event of another order, and the wallet is the player's.
	Fitting bool `json:"fitting,omitzero"`

	size *big.Int // units of the events, or else of the first order
}

// key is unique, so that findings have one order.
func (f *Finding) key() string {
	key := f.Time.UTC().Format("2006-01-02T15:04:05.000 ")
	for _, e := range f.Events {
		key += fmt.Sprintf("%012d %06d %s ", e.Block, e.LogIndex, e.TxHash)
	}
	for _, o := range f.Orders {
		key += o.UUID.String() + " "
	}
	return key + string(f.Kind)
}

// found returns how many findings there are.
func (b *Reconciliation) found() (n int) {
	for _, count := range b.Counts {
		n += count
	}
	return n
}

// Text writes the books for a person, as several lines. Text of others is quoted, so that
// it cannot fake a line.
func (b *Reconciliation) Text() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "books from %s to %s, blocks %d to %d\n\n", b.From.Format(time.RFC3339), b.To.Format(time.RFC3339), b.FirstBlock, b.LastBlock)
	fmt.Fprintln(w, "SOURCE\tPRODUCT\tDIRECTION\tFIGURE\tUNIT\tAMOUNT")
	for _, figure := range b.figures() {
		figure[1], figure[4] = shown(figure[1]), shown(figure[4])
		fmt.Fprintln(w, strings.Join(figure, "\t"))
	}
	if b.Stalled != "" {
		fmt.Fprintf(w, "\nThe books stand still: %s\n", b.Stalled)
	}
	if b.Witnesses == 0 {
		fmt.Fprintln(w, "\nThe node listed the event of no order, so nothing shows that it lists what happened.")
	}
	fmt.Fprintf(w, "\nnot judged yet: %d, and all after %s\nwaiting for 13 hours: mints %d, burns %d\nfindings: %d, listed: %d, fitting: %d\n",
		b.Open, b.To.Format(time.RFC3339), b.WaitingMints, b.WaitingBurns, b.found(), len(b.Findings), b.Fitting)
	for _, f := range b.Findings {
		fmt.Fprintf(w, "\n%s  %s: %s\n", f.Time.Format(time.RFC3339), f.Kind, shown(f.Detail))
		if f.By != "" {
			fmt.Fprintf(w, "  matched by %s\n", f.By)
		}
		if f.Fitting {
			fmt.Fprintln(w, "  nothing else fits either of them: finish -fitting ends the order")
		}
		for _, o := range f.Orders {
			fmt.Fprintf(w, "  %s\ttokens: %s (%s)\n", o.row(), o.Tokens, shown(o.Product))
			if o.Refusal != nil {
				fmt.Fprintf(w, "  refused %s\n", shown(refused(o.Refusal)))
			}
		}
		for _, e := range f.Events {
			fmt.Fprintf(w, "  event %s of %s tokens of %s, user %s, block %d, log %d, %s, tx_hash %s\n", e.Direction, e.Tokens, e.Token, e.User, e.Block, e.LogIndex,
				e.Time.Format(time.RFC3339), e.TxHash)
		}
	}
	_ = w.Flush() // into memory
	return text.String()
}

// WriteTotalsCSV writes each figure of Totals and Chain as a row, for accounting: from,
// to, source (orders or chain), product, direction, figure, unit and amount.
func (b *Reconciliation) WriteTotalsCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"from", "to", "source", "product", "direction", "figure", "unit", "amount"})
	for _, f := range b.figures() {
		f[1], f[4] = cell(f[1]), cell(f[4])
		_ = w.Write(append([]string{b.From.Format(time.RFC3339), b.To.Format(time.RFC3339)}, f...))
	}
	w.Flush()
	return w.Error()
}

// figures returns each figure of Totals and Chain as source, product, direction, figure,
// unit and amount.
func (b *Reconciliation) figures() (rows [][]string) {
	row := func(source, product string, d ramp.Direction, figure, unit, amount string) {
		rows = append(rows, []string{source, product, string(d), figure, unit, amount})
	}
	for _, t := range b.Totals {
		for figure, n := range []int{t.Succeeded, t.Failed, t.Abandoned} {
			row("orders", t.Product, t.Direction, []string{"succeeded", "failed", "abandoned"}[figure], "orders", strconv.Itoa(n))
		}
		figures := []string{"taken", "given back", "granted", "settled"}
		for figure, assets := range []map[string]Amount{t.Taken, t.GivenBack, t.Granted, t.Settled} {
			for _, id := range slices.Sorted(maps.Keys(assets)) {
				row("orders", t.Product, t.Direction, figures[figure], id, assets[id].String())
			}
		}
		for figure, n := range []Amount{t.Ordered, t.Moved, t.Fees} {
			row("orders", t.Product, t.Direction, []string{"ordered", "moved", "fees"}[figure], "tokens", n.String())
		}
	}
	for _, c := range b.Chain {
		row("chain", c.Token.Hex(), c.Direction, "events", "events", strconv.Itoa(c.Events))
		row("chain", c.Token.Hex(), c.Direction, "moved", "tokens", c.Tokens.String())
	}
	return rows
}

// cell keeps a spreadsheet from reading foreign text as a formula.
func cell(text string) string {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		return "'" + text
	}
	return text
}

// shown quotes foreign text, so that it cannot move the cursor or fake a line.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1 : len(quoted)-1]
}
