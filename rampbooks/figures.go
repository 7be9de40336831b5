package rampbooks

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
)

// DecimalSign is the sign before the decimals of a number in a CSV file, which must be that of the
// language in which a spreadsheet opens it.
type DecimalSign string

// The signs. With a comma, semicolons separate the columns.
const (
	DecimalPoint DecimalSign = "."
	DecimalComma DecimalSign = ","
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

// WriteTotalsCSV writes each figure of the books as a row, for accounting. Each row says what the books
// are about: chain_id, network, project, from and to. The column source is orders, chain, decisions or
// books, and the column figure names the figure. The columns product, token, direction and asset, if they
// are not empty, say what it is about. The number is in one of the columns count, items and tokens. If it
// is in tokens, the column units has it in the smallest unit of the token, and decimals says how many
// digits of units are behind the point.
//
// Texts are quoted, and numbers are not.
func (b *Reconciliation) WriteTotalsCSV(out io.Writer, sign DecimalSign) error {
	w, err := newTable(out, sign, "chain_id", "network", "project", "from", "to",
		"source", "product", "token", "direction", "figure", "asset",
		"count", "items", "tokens", "units", "decimals")
	if err != nil {
		return err
	}
	for _, f := range b.figures() {
		w.about(b)
		w.text(f.source)
		w.text(f.product)
		w.token(f.token)
		w.text(string(f.direction))
		w.text(f.name)
		w.text(f.asset)
		w.number(f.count)
		w.number(f.items)
		w.tokens(f.tokens, f.decimals)
		w.end()
	}
	return w.flush()
}

// table writes a CSV file. Its errors are those of flush.
type table struct {
	out       *bufio.Writer
	sign      DecimalSign
	separator string
	begun     bool // the row
}

func newTable(out io.Writer, sign DecimalSign, columns ...string) (*table, error) {
	w := &table{out: bufio.NewWriter(out), sign: sign, separator: ","}
	switch sign {
	case DecimalPoint:
	case DecimalComma:
		w.separator = ";"
	default:
		return nil, errors.New("ramp: the decimal sign must be a point or a comma")
	}
	for _, column := range columns {
		w.cell(column)
	}
	w.end()
	return w, nil
}

func (w *table) cell(text string) {
	if w.begun {
		_, _ = w.out.WriteString(w.separator)
	}
	w.begun = true
	_, _ = w.out.WriteString(text)
}

func (w *table) end() {
	_, _ = w.out.WriteString("\n")
	w.begun = false
}

func (w *table) flush() error { return w.out.Flush() }

// text writes a text, which a spreadsheet must not read as a formula.
func (w *table) text(text string) {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		text = "'" + text
	}
	w.cell(`"` + strings.ReplaceAll(text, `"`, `""`) + `"`)
}

func (w *table) number(text string) { w.cell(strings.ReplaceAll(text, ".", string(w.sign))) }

func (w *table) token(token common.Address) {
	if token == (common.Address{}) {
		w.text("")
		return
	}
	w.text(token.Hex())
}

func (w *table) time(at time.Time) {
	if at.IsZero() {
		w.text("")
		return
	}
	w.text(at.UTC().Format(time.RFC3339))
}

// tokens writes an amount, its smallest units and the number of its decimals, or three empty cells.
func (w *table) tokens(amount *Amount, decimals int) {
	if amount == nil {
		w.cell("")
		w.cell("")
		w.cell("")
		return
	}
	units, _ := amount.Units(decimals) // it came from units
	w.number(amount.String())
	w.number(units.String())
	w.number(strconv.Itoa(decimals))
}

// about writes what the books are about.
func (w *table) about(b *Reconciliation) {
	w.number(strconv.FormatUint(b.About.ChainID, 10))
	w.text(string(b.About.Network))
	w.text(b.About.ProjectID)
	w.time(b.From)
	w.time(b.To)
}
