package rampbooks

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
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

	// Late reports that the order ended before the period, and is in no earlier books: see [Total].
	Late bool `json:"late,omitempty"`

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
	catalog *catalog.Catalog
	all     []Line
	at      map[uuid.UUID]int // where the line of an order is
}

func newLines(c *catalog.Catalog) *lines {
	return &lines{catalog: c, at: map[uuid.UUID]int{}, all: []Line{}}
}

func (l *lines) order(o *catalog.Order, late bool) {
	if l == nil {
		return
	}
	line := Line{Source: "orders", Order: o.UUID, State: o.State, Product: o.Product(), Token: o.Token,
		Decimals: l.catalog.Decimals[o.Token], Direction: o.Direction,
		Accepted: o.AcceptedAt, Finished: o.FinishedAt, Late: late}
	if o.State == ramp.OrderSucceeded {
		line.Ordered = amountOf(l.catalog, o.Token, o.Units)
	}
	l.at[o.UUID] = len(l.all)
	l.all = append(l.all, line)
}

func (l *lines) moved(o *catalog.Order, e *ChainEvent, share, fee *big.Int, by string) {
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
	line.Moved, line.Fee = amountOf(l.catalog, o.Token, share), amountOf(l.catalog, o.Token, fee)
}

func (l *lines) event(e *ChainEvent) {
	if l == nil {
		return
	}
	line := Line{Source: "chain", Token: e.Token, Decimals: l.catalog.Decimals[e.Token],
		Direction: e.Direction, Moved: amountOf(l.catalog, e.Token, e.units)}
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
