package support

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Books compare the orders of a period with the events of their tokens: see
// [Orders.Reconcile]. The same orders and the same chain give the same books.
type Books struct {
	// From and To are what was compared: the orders that ended, and the events of the
	// blocks that were mined, from From up to but without To. To is earlier than that of
	// the Period if the blocks there are not final yet: begin the next period at To.
	From, To time.Time

	FirstBlock, LastBlock uint64 // the blocks that were read; they begin 13 hours before From

	Totals []Total      // of the orders that ended, by product and direction
	Chain  []ChainTotal // of the events, by token and direction

	// Open counts what is not judged yet: events whose order waits, but not yet for 13
	// hours, and orders whose transaction is in a block that is not final.
	Open int

	Findings []Finding // oldest first
}

// Total adds up the orders of a product and a direction that ended in a period.
type Total struct {
	Product   string // its name, or the address of the token if it is no product of the Period
	Direction ramp.Direction

	Succeeded, Failed, Abandoned int

	Taken, GivenBack, Granted []ramp.AssetAmount // what the game moved; Taken when the orders were accepted

	Ordered ramp.Amount // tokens of the orders that succeeded, before the fee
	Moved   ramp.Amount // tokens that their events minted for the users, or burned
	Fees    ramp.Amount // Ordered minus Moved for mints
}

// ChainTotal adds up the events of a token and a direction in the blocks of a period,
// whether or not they have an order.
type ChainTotal struct {
	Token     common.Address
	Direction ramp.Direction
	Events    int
	Tokens    ramp.Amount
}

// Event is what a transaction minted of a token for an account, or burned of it.
type Event struct {
	TxHash          common.Hash
	Block, LogIndex uint64    // of its first log
	Time            time.Time // of the block
	Token, User     common.Address
	Direction       ramp.Direction
	Units           *big.Int // in the token's smallest units, or in pieces of a non-fungible token
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

	// An order has waited for 13 hours, and its event exists. Its result never came.
	// Finish it with the transaction.
	WaitsWithEvent FindingKind = "waits_with_event"

	// An order has waited for 13 hours, and it has no event. Abandon it, as
	// docs/operations.md says.
	WaitsWithoutEvent FindingKind = "waits_without_event"

	// The event of an order has another amount, user, token or direction.
	Differs FindingKind = "differs"

	// Several orders may belong to an event, or several events to an order. Nothing is
	// guessed.
	Ambiguous FindingKind = "ambiguous"
)

// FindingKinds are all kinds.
func FindingKinds() []FindingKind {
	return []FindingKind{EventWithoutOrder, OrderWithoutEvent, EndedOtherwise, WaitsWithEvent, WaitsWithoutEvent, Differs, Ambiguous}
}

// The ways in which an order and an event belong together.
const (
	ByTransaction = "tx_hash"
	ByAmount      = "user, token, direction, amount and time"
)

// Finding is an order or an event that does not fit. Nothing has been corrected.
type Finding struct {
	Kind   FindingKind
	Detail string       // what is wrong, for a person
	By     string       // how Orders and Events belong together; empty if there is only one of them
	Orders []ramp.Order // one, or none for an EventWithoutOrder, or several for an Ambiguous one
	Events []Event      // likewise

	assets *assets
}

// Time is the time of the first event, or else the end of the first order, or else when
// it was accepted.
func (f *Finding) Time() time.Time {
	switch {
	case len(f.Events) > 0:
		return f.Events[0].Time
	case f.Orders[0].FinishedAt.IsZero():
		return f.Orders[0].AcceptedAt
	default:
		return f.Orders[0].FinishedAt
	}
}

// key is unique, so that findings have one order.
func (f *Finding) key() string {
	key := f.Time().UTC().Format("2006-01-02T15:04:05.000 ")
	for _, e := range f.Events {
		key += fmt.Sprintf("%012d %06d %s ", e.Block, e.LogIndex, e.TxHash)
	}
	for _, o := range f.Orders {
		key += o.UUID.String() + " "
	}
	return key + string(f.Kind)
}

// Counts returns how many findings of each kind there are, also of kinds without any, for
// metrics.
func (b *Books) Counts() map[FindingKind]int {
	counts := map[FindingKind]int{}
	for _, kind := range FindingKinds() {
		counts[kind] = 0
	}
	for _, f := range b.Findings {
		counts[f.Kind]++
	}
	return counts
}

// reportedOrder is an order of a finding in a report.
type reportedOrder struct {
	UUID       uuid.UUID       `json:"uuid"`
	State      ramp.OrderState `json:"state"`
	Direction  string          `json:"direction"`
	Product    string          `json:"product"`
	Tokens     string          `json:"tokens"`
	Assets     string          `json:"assets"`
	SessionID  string          `json:"session_id"`
	User       string          `json:"user_address"`
	TxHash     string          `json:"tx_hash,omitempty"`
	AcceptedAt time.Time       `json:"accepted_at"`
	FinishedAt time.Time       `json:"finished_at,omitzero"`
}

// reportedEvent is an event of a finding in a report.
type reportedEvent struct {
	TxHash    string    `json:"tx_hash"`
	Block     uint64    `json:"block"`
	LogIndex  uint64    `json:"log_index"`
	Time      time.Time `json:"time"`
	Direction string    `json:"direction"`
	Token     string    `json:"token"`
	User      string    `json:"user"`
	Tokens    string    `json:"tokens"`
}

type reportedFinding struct {
	Kind   FindingKind     `json:"kind"`
	Time   time.Time       `json:"time"`
	Detail string          `json:"detail"`
	By     string          `json:"by,omitempty"`
	Orders []reportedOrder `json:"orders"`
	Events []reportedEvent `json:"events"`
}

func (f *Finding) reported() reportedFinding {
	r := reportedFinding{f.Kind, f.Time(), f.Detail, f.By, []reportedOrder{}, []reportedEvent{}}
	for i := range f.Orders {
		o := f.assets.traded(f.Orders[i])
		r.Orders = append(r.Orders, reportedOrder{o.UUID, o.State, string(o.Direction), o.product(), f.assets.amount(o.token, o.units).String(),
			listOf(o.Assets), o.SessionID, o.UserAddress, o.TxHash, o.AcceptedAt, o.FinishedAt})
	}
	for _, e := range f.Events {
		r.Events = append(r.Events, reportedEvent{e.TxHash.Hex(), e.Block, e.LogIndex, e.Time, string(e.Direction), e.Token.Hex(), e.User.Hex(),
			f.assets.amount(e.Token, e.Units).String()})
	}
	return r
}

// listOf writes assets as "100 item_gold, 1 item_gem".
func listOf(assets []ramp.AssetAmount) string {
	var list []string
	for _, a := range assets {
		list = append(list, a.Amount.String()+" "+a.ID)
	}
	return strings.Join(list, ", ")
}

// MarshalJSON writes the books for tools, with amounts as decimal strings and times in
// RFC 3339.
func (b *Books) MarshalJSON() ([]byte, error) {
	type total struct {
		Product   string `json:"product"`
		Direction string `json:"direction"`
		Succeeded int    `json:"succeeded"`
		Failed    int    `json:"failed"`
		Abandoned int    `json:"abandoned"`
		Taken     string `json:"taken"`
		GivenBack string `json:"given_back"`
		Granted   string `json:"granted"`
		Ordered   string `json:"ordered"`
		Moved     string `json:"moved"`
		Fees      string `json:"fees"`
	}
	type chainTotal struct {
		Token     common.Address `json:"token"`
		Direction string         `json:"direction"`
		Events    int            `json:"events"`
		Tokens    string         `json:"tokens"`
	}
	shown := struct {
		From       time.Time           `json:"from"`
		To         time.Time           `json:"to"`
		FirstBlock uint64              `json:"first_block"`
		LastBlock  uint64              `json:"last_block"`
		Totals     []total             `json:"totals"`
		Chain      []chainTotal        `json:"chain"`
		Open       int                 `json:"open"`
		Counts     map[FindingKind]int `json:"counts"`
		Findings   []reportedFinding   `json:"findings"`
	}{b.From, b.To, b.FirstBlock, b.LastBlock, []total{}, []chainTotal{}, b.Open, b.Counts(), []reportedFinding{}}
	for _, t := range b.Totals {
		shown.Totals = append(shown.Totals, total{t.Product, string(t.Direction), t.Succeeded, t.Failed, t.Abandoned,
			listOf(t.Taken), listOf(t.GivenBack), listOf(t.Granted), t.Ordered.String(), t.Moved.String(), t.Fees.String()})
	}
	for _, c := range b.Chain {
		shown.Chain = append(shown.Chain, chainTotal{c.Token, string(c.Direction), c.Events, c.Tokens.String()})
	}
	for i := range b.Findings {
		shown.Findings = append(shown.Findings, b.Findings[i].reported())
	}
	return json.Marshal(shown)
}

// Text writes the books for a person, as several lines. Text of others is quoted, so that
// it cannot fake a line.
func (b *Books) Text() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "books from %s to %s, blocks %d to %d\n\n", b.From.Format(time.RFC3339), b.To.Format(time.RFC3339), b.FirstBlock, b.LastBlock)
	fmt.Fprintln(w, "PRODUCT\tDIRECTION\tSUCCEEDED\tFAILED\tABANDONED\tTAKEN\tGIVEN BACK\tGRANTED\tORDERED\tMOVED\tFEES")
	for _, t := range b.Totals {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", shown(t.Product), t.Direction, t.Succeeded, t.Failed, t.Abandoned,
			shown(listOf(t.Taken)), shown(listOf(t.GivenBack)), shown(listOf(t.Granted)), t.Ordered, t.Moved, t.Fees)
	}
	fmt.Fprintln(w, "\nTOKEN\tDIRECTION\tEVENTS\tTOKENS")
	for _, c := range b.Chain {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", c.Token, c.Direction, c.Events, c.Tokens)
	}
	fmt.Fprintf(w, "\nnot judged yet: %d\nfindings: %d\n", b.Open, len(b.Findings))
	for i := range b.Findings {
		f := b.Findings[i].reported()
		fmt.Fprintf(w, "\n%s  %s: %s\n", f.Time.Format(time.RFC3339), f.Kind, shown(f.Detail))
		if f.By != "" {
			fmt.Fprintf(w, "  matched by %s\n", f.By)
		}
		for _, o := range f.Orders {
			fmt.Fprintf(w, "  order %s (%s) %s of %s for %s tokens of %s, session %s, user %s, accepted %s", o.UUID, o.State, o.Direction, shown(o.Assets),
				o.Tokens, shown(o.Product), shown(o.SessionID), shown(o.User), o.AcceptedAt.Format(time.RFC3339))
			if !o.FinishedAt.IsZero() {
				fmt.Fprintf(w, ", ended %s", o.FinishedAt.Format(time.RFC3339))
			}
			fmt.Fprintf(w, ", tx_hash %s\n", shown(o.TxHash))
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
func (b *Books) WriteTotalsCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	row := func(source, product string, d ramp.Direction, figure, unit, amount string) {
		_ = w.Write([]string{b.From.Format(time.RFC3339), b.To.Format(time.RFC3339), source, cell(product), string(d), figure, cell(unit), amount})
	}
	_ = w.Write([]string{"from", "to", "source", "product", "direction", "figure", "unit", "amount"})
	for _, t := range b.Totals {
		for figure, n := range []int{t.Succeeded, t.Failed, t.Abandoned} {
			row("orders", t.Product, t.Direction, []string{"succeeded", "failed", "abandoned"}[figure], "orders", strconv.Itoa(n))
		}
		for figure, list := range [][]ramp.AssetAmount{t.Taken, t.GivenBack, t.Granted} {
			for _, a := range list {
				row("orders", t.Product, t.Direction, []string{"taken", "given back", "granted"}[figure], a.ID, a.Amount.String())
			}
		}
		for figure, n := range []ramp.Amount{t.Ordered, t.Moved, t.Fees} {
			row("orders", t.Product, t.Direction, []string{"ordered", "moved", "fees"}[figure], "tokens", n.String())
		}
	}
	for _, c := range b.Chain {
		row("chain", c.Token.Hex(), c.Direction, "events", "events", strconv.Itoa(c.Events))
		row("chain", c.Token.Hex(), c.Direction, "moved", "tokens", c.Tokens.String())
	}
	w.Flush()
	return w.Error()
}

// WriteCSV writes a row for each order and each event of the findings.
func (b *Books) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"finding", "kind", "detail", "matched_by", "what", "time", "uuid", "state", "direction", "product_or_token", "tokens", "assets", "session_id", "user",
		"tx_hash", "block", "log_index"})
	for i := range b.Findings {
		f := b.Findings[i].reported()
		row := func(cells ...string) {
			for i := range cells {
				cells[i] = cell(cells[i])
			}
			_ = w.Write(append([]string{strconv.Itoa(i + 1), string(f.Kind), cell(f.Detail), f.By}, cells...))
		}
		for _, o := range f.Orders {
			at := o.FinishedAt
			if at.IsZero() {
				at = o.AcceptedAt
			}
			row("order", at.Format(time.RFC3339), o.UUID.String(), string(o.State), o.Direction, o.Product, o.Tokens, o.Assets, o.SessionID, o.User, o.TxHash, "", "")
		}
		for _, e := range f.Events {
			row("event", e.Time.Format(time.RFC3339), "", "", e.Direction, e.Token, e.Tokens, "", "", e.User, e.TxHash, strconv.FormatUint(e.Block, 10), strconv.FormatUint(e.LogIndex, 10))
		}
	}
	w.Flush()
	return w.Error()
}

// cell keeps a spreadsheet from reading foreign text as a formula.
func cell(text string) string {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		return "'" + text
	}
	return text
}
