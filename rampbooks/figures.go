package rampbooks

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
)

// figure is one number of the books. Of count, items and tokens it has one.
type figure struct {
	source    string // orders, chain, decisions or books
	product   string
	token     common.Address
	direction ramp.Direction
	name      string
	asset     string // of items

	count    string
	items    string
	tokens   *Amount
	decimals int
}

// text returns the figure as a row of a table.
func (f *figure) text() string {
	token, amount := "", cmp.Or(f.count, f.items)
	if f.token != (common.Address{}) {
		token = f.token.Hex()
	}
	if f.tokens != nil {
		amount = f.tokens.String()
	}
	return strings.Join([]string{f.source, console.Quote(f.product), console.Quote(token),
		console.Quote(string(f.direction)), f.name, console.Quote(f.asset), amount}, "\t")
}

// figures returns each figure of the books.
func (b *Reconciliation) figures() (all []figure) {
	items := func(of figure, name string, sums map[string]Amount) {
		for _, id := range slices.Sorted(maps.Keys(sums)) {
			of.name, of.asset, of.items = name, id, sums[id].String()
			all = append(all, of)
		}
	}
	tokens := func(of figure, name string, amount Amount) {
		of.name, of.tokens = name, &amount
		all = append(all, of)
	}
	count := func(of figure, name string, n int) {
		of.name, of.count = name, strconv.Itoa(n)
		all = append(all, of)
	}
	for _, t := range b.Totals {
		of := figure{source: "orders", product: t.Product, token: t.Token, direction: t.Direction,
			decimals: t.Decimals}
		count(of, "orders_succeeded", t.Succeeded)
		count(of, "orders_failed", t.Failed)
		count(of, "orders_abandoned", t.Abandoned)
		count(of, "orders_late", t.Late)
		items(of, "items_taken", t.Taken)
		items(of, "items_given_back", t.GivenBack)
		items(of, "items_granted", t.Granted)
		items(of, "items_settled", t.Settled)
		items(of, "items_in_flight_before", t.InFlightBefore)
		items(of, "items_in_flight", t.InFlight)
		tokens(of, "tokens_ordered", t.Ordered)
		tokens(of, "tokens_moved", t.Moved)
		tokens(of, "tokens_fees", t.Fees)
		tokens(of, "tokens_unmatched", t.Unmatched)
	}
	for _, c := range b.Chain {
		of := figure{source: "chain", token: c.Token, direction: c.Direction, decimals: c.Decimals}
		count(of, "events", c.Events)
		tokens(of, "tokens_on_chain", c.Tokens)
	}
	for _, d := range b.Decisions {
		of := figure{source: "decisions", product: d.Product, token: d.Token, direction: d.Direction}
		count(of, "decisions", 1)
		items(of, "items_decided", d.Moved)
	}
	books := figure{source: "books"}
	for _, kind := range FindingKinds() {
		count(books, "findings_"+string(kind), b.Counts[kind])
	}
	count(books, "findings_decided", len(b.Decided))
	count(books, "not_judged", b.Open)
	for n, waiting := range []int{b.WaitingMints, b.WaitingBurns} {
		books.direction = []ramp.Direction{ramp.Mint, ramp.Burn}[n]
		count(books, "orders_waiting", waiting)
	}
	return all
}
