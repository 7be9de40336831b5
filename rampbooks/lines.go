package rampbooks

import (
	"cmp"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/trade"
)

// Line is one order that ended in a period, with its event, or one event of the blocks of the
// period: what the totals add up. An order and its event are two lines, because they may be in
// different periods.
type Line struct {
	Source    string          `json:"source"` // orders or chain
	Order     uuid.UUID       `json:"order,omitzero"`
	State     ramp.OrderState `json:"state,omitempty"`
	Product   string          `json:"product,omitempty"`
	Token     common.Address  `json:"token"`
	Decimals  int             `json:"decimals"`
	Direction ramp.Direction  `json:"direction"`

	Accepted time.Time `json:"accepted_at,omitzero"`
	Finished time.Time `json:"finished_at,omitzero"`

	// The event. For an order, it is the one that belongs to it, found as By says; it is empty if
	// none is known.
	TxHash   common.Hash `json:"tx_hash,omitzero"`
	Block    uint64      `json:"block,omitzero"`
	LogIndex uint64      `json:"log_index"`
	Time     time.Time   `json:"time,omitzero"` // of the block
	By       string      `json:"by,omitempty"`  // how they belong together: [ByTransaction] or [ByAmount]

	// Ordered, Moved and Fee are those of [Total], for an order that succeeded; of an event, Moved
	// is what it moved.
	Ordered Amount `json:"ordered"`
	Moved   Amount `json:"moved"`
	Fee     Amount `json:"fee"`
}

// lines collects the lines of books. A nil one collects none.
type lines struct {
	assets *trade.Catalog
	all    []Line
	at     map[uuid.UUID]int // where the line of an order is
}

func newLines(a *trade.Catalog) *lines { return &lines{assets: a, at: map[uuid.UUID]int{}} }

func (l *lines) order(o *trade.Order) {
	if l == nil {
		return
	}
	line := Line{Source: "orders", Order: o.UUID, State: o.State, Product: o.Product(), Token: o.Token,
		Decimals: l.assets.Decimals[o.Token], Direction: o.Direction,
		Accepted: o.AcceptedAt, Finished: o.FinishedAt}
	if o.State == ramp.OrderSucceeded {
		line.Ordered = amountOf(l.assets, o.Token, o.Units)
	}
	l.at[o.UUID] = len(l.all)
	l.all = append(l.all, line)
}

func (l *lines) moved(o *trade.Order, e *ChainEvent, share, fee *big.Int, by string) {
	if l == nil {
		return
	}
	at, counted := l.at[o.UUID]
	if !counted {
		return
	}
	line := &l.all[at]
	line.setEvent(e)
	line.By = by
	line.Moved, line.Fee = amountOf(l.assets, o.Token, share), amountOf(l.assets, o.Token, fee)
}

func (l *lines) event(e *ChainEvent) {
	if l == nil {
		return
	}
	line := Line{Source: "chain", Token: e.Token, Decimals: l.assets.Decimals[e.Token],
		Direction: e.Direction, Moved: amountOf(l.assets, e.Token, e.units)}
	line.setEvent(e)
	l.all = append(l.all, line)
}

func (l *Line) setEvent(e *ChainEvent) {
	l.TxHash, l.Block, l.LogIndex, l.Time = e.TxHash, e.Block, e.LogIndex, e.Time
}

// sorted returns the orders by their end, and then the events in the order of the chain.
func (l *lines) sorted() []Line {
	if l == nil {
		return nil
	}
	slices.SortFunc(l.all, func(x, y Line) int {
		if c := cmp.Or(cmp.Compare(y.Source, x.Source), x.Finished.Compare(y.Finished)); c != 0 {
			return c
		}
		if x.Source == "orders" {
			return strings.Compare(x.Order.String(), y.Order.String())
		}
		return cmp.Or(cmp.Compare(x.Block, y.Block), cmp.Compare(x.LogIndex, y.LogIndex))
	})
	return l.all
}

// WriteLinesCSV writes lines of the books as rows, with columns as [Reconciliation.WriteTotalsCSV]
// has them.
func (b *Reconciliation) WriteLinesCSV(out io.Writer, sign DecimalSign, lines []Line) error {
	w, err := newTable(out, sign, "chain_id", "network", "project", "from", "to",
		"source", "order", "state", "product", "token", "direction", "accepted_at", "finished_at",
		"tx_hash", "block", "log_index", "time", "matched_by",
		"ordered", "ordered_units", "decimals", "moved", "moved_units", "fee", "fee_units")
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
		w.end()
	}
	return w.flush()
}
