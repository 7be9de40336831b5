package rampbooks

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

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

// WriteLinesCSV writes lines of the books as rows, with columns as [Reconciliation.WriteTotalsCSV]
// has them.
func (b *Reconciliation) WriteLinesCSV(out io.Writer, sign DecimalSign, lines []Line) error {
	w, err := newTable(out, sign, "chain_id", "network", "project", "from", "to",
		"source", "order", "state", "product", "token", "direction", "accepted_at", "finished_at",
		"tx_hash", "block", "log_index", "time", "matched_by",
		"ordered", "ordered_units", "decimals", "moved", "moved_units", "fee", "fee_units", "late")
	if err != nil {
		return err
	}
	for _, l := range lines {
		w.about(b)
		w.text(l.Source)
		w.text(console.EmptyUnless(l.Order != uuid.Nil, l.Order.String()))
		w.text(string(l.State))
		w.text(l.Product)
		w.token(l.Token)
		w.text(string(l.Direction))
		w.time(l.Accepted)
		w.time(l.Finished)
		known := l.TxHash != common.Hash{}
		w.text(console.EmptyUnless(known, l.TxHash.Hex()))
		w.number(console.EmptyUnless(known, strconv.FormatUint(l.Block, 10)))
		w.number(console.EmptyUnless(known, strconv.FormatUint(l.LogIndex, 10)))
		w.time(l.Time)
		w.text(l.By)
		w.tokens(&l.Ordered, l.Decimals)
		for _, amount := range []Amount{l.Moved, l.Fee} {
			units, _ := amount.Units(l.Decimals) // it came from units
			w.number(amount.String())
			w.number(units.String())
		}
		w.text(console.EmptyUnless(l.Late, "late"))
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
	w.text(strings.Join(b.About.Projects, " "))
	w.time(b.From)
	w.time(b.To)
}
