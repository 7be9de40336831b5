package ramptest

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// progress is the progress of an order.
type progress struct {
	standing
	done bool      // nothing more is planned
	next time.Time // when the next step is planned; zero if it is in progress
}

func (s *orders) progress(o *Order) progress {
	jobs, busy := s.agenda.of(o) // read before the delivery, which may plan a job when it ends
	p := progress{standing: o.delivery.now()}
	switch {
	case p.sending > 0:
	case p.State.over():
		p.done = !busy // which may send the result again
	case len(jobs) == 0:
		p.next = p.Next // the answer has arrived, but the retry is not on the agenda yet
		p.done = p.next.IsZero()
	case !busy:
		p.next = jobs[0].due
	}
	return p
}

// This file collects what the chain, the calls and the books know, for package verdict.

// verdict returns what there is to say about an order.
func (s *orders) verdict(o *Order) verdict.Verdict { return verdict.Of(s.known(o).Facts) }

// known is what is known about an order, with the balances of its player.
type known struct {
	verdict.Facts
	before, now books.Assets // nil if unknown
}

// known collects what is known about an order.
func (s *orders) known(o *Order) known {
	k := known{Facts: verdict.Facts{
		Mint:     o.trade().mint,
		Tokens:   tokens(o.token().Amount.Rat()),
		Received: tokens(s.received(o)),
		Player:   s.player(o),
		Chain:    s.chainOf(o),
		Calls:    s.callsOf(o),
	}}
	entered := o.entered()
	acc := s.audit.Account(entered)
	k.Books.Why = knows(acc, s.config.Books)
	for _, found := range s.audit.About(o.UUID) {
		if len(found.Orders) > 1 {
			k.Books.Shared = append(k.Books.Shared, found.Problem)
		} else {
			k.Books.Findings = append(k.Books.Findings, found.Problem)
		}
	}
	if k.Books.Why == verdict.Unread {
		r, _ := s.game.readings.of(o.Session)
		k.Books.Problem, k.Books.Rejected = r.problem(), acc == nil || o.noSession
	}
	if k.Books.Sum, k.Books.Aside = s.audit.Judged(entered.Sum); acc == nil {
		return k
	}
	k.before, k.now = acc.Before, acc.Last
	k.Books.Took, k.Books.Vague, k.Books.Dispute = acc.Took, acc.Vague, disputeOf(&acc.Tally)
	if k.Books.Why == verdict.Known {
		k.Books.Moved = acc.Totals[0]
	}
	return k
}

// knows reports whether the books know what the game moved for an order, and if not, why.
func knows(a *audit.Account, mode Books) verdict.Why {
	switch {
	case mode == BooksOff:
		return verdict.Off
	case a == nil || a.Unread:
		return verdict.Unread
	case a.Twins:
		return verdict.Twins
	case a.Mixed || a.Guess || len(a.Totals) != 1:
		return verdict.Overlap
	default:
		return verdict.Known
	}
}

// chainOf returns what the chain knows about the transaction of an order.
func (s *orders) chainOf(o *Order) verdict.Chain {
	c := verdict.Chain{Stays: o.script.pending, Less: o.burnsLess()}
	switch outcome, mined := s.outcome(o); {
	case !mined:
		c.Block = s.chains[o.Network].NextBlock()
	case outcome == Succeeded:
		c.End = verdict.Succeeded
	default:
		c.End = verdict.Reverted
		if amount := o.token().Amount.Rat(); !o.trade().mint && o.heldBefore != nil &&
			amount.Cmp(o.heldBefore) > 0 {
			c.Short = books.Grouped(o.heldBefore)
		}
	}
	return c
}

// callsOf returns how the game answered the results of an order.
func (s *orders) callsOf(o *Order) verdict.Calls {
	d := o.delivery.now()
	return verdict.Calls{
		Progress: map[State]verdict.Progress{Confirmed: verdict.Confirmed, Rejected: verdict.TurnedDown,
			GivenUp: verdict.GivenUp}[d.State],
		Attempts: d.Attempts, Sending: d.sending > 0,
		Status: d.Status, Wrong: d.Wrong, Lost: d.Lost, Contrary: d.Contrary,
		Next: d.Next, Of: fmt.Sprintf("%d of %d", d.Retries+1, len(s.config.Schedule)+1),
		Never: o.script.never, Held: o.script.held, Refused: o.refused,
	}
}

// disputeOf returns how the results of an order contradict each other or the chain, or
// nil if they do not.
func disputeOf(o *books.Tally) *verdict.Dispute {
	if !o.Disputed {
		return nil
	}
	end := map[bool]verdict.End{true: verdict.Succeeded, false: verdict.Reverted}
	stands, other := o.Success, o.Failure
	if !o.Succeeded {
		stands, other = other, stands
	}
	d := &verdict.Dispute{First: end[o.First], Other: other}
	if stands.Confirmed {
		d.Stands = end[o.Succeeded]
	}
	return d
}

// player returns the name of an order's player, as the game last reported it.
func (s *orders) player(o *Order) string {
	_, name := s.audit.Who(o.Session.ID)
	return cmp.Or(name, unnamed)
}

// received returns what the wallet receives if the transaction of an order succeeds. It
// is negative for a burn.
func (s *orders) received(o *Order) *big.Rat {
	sum := new(big.Int)
	if o.tx != nil {
		for _, m := range o.tx.Moves {
			if m.To == o.address() {
				sum.Add(sum, m.Amount)
			}
			if m.From == o.address() {
				sum.Sub(sum, m.Amount)
			}
		}
	}
	return chain.Tokens(sum, s.config.Decimals)
}

// rows compares what an order moved with what is due, and has the player's balances beside it. others are
// the assets that the order is not about.
func (s *orders) rows(o *Order) (rows []verdict.Row, others []ramp.Asset) {
	k := s.known(o)
	moved := new(big.Rat)
	if k.Chain.End == verdict.Succeeded {
		moved = s.received(o)
	}
	held := s.chains[o.Network].TokenBalance(o.token().contract(), o.address())
	rows = verdict.Rows(k.Facts, k.before, k.now)
	for _, id := range slices.Sorted(maps.Keys(k.now)) {
		if !slices.ContainsFunc(rows, func(r verdict.Row) bool { return r.ID == id }) {
			others = append(others, ramp.Asset{ID: id, Balance: amountOf(k.now[id])})
		}
	}
	rank := func(r verdict.Row) int { // what is wrong is first
		return slices.Index([]verdict.Tone{verdict.Bad, verdict.Unclear, verdict.Wait, verdict.Good}, r.Tone)
	}
	slices.SortStableFunc(rows, func(a, b verdict.Row) int { return rank(a) - rank(b) })
	end := k.Chain.End
	if o.refused != "" { // it has no transaction
		end = verdict.Reverted
	}
	fee := ""
	if o.fee.Sign() > 0 {
		fee = books.Decimal(new(big.Rat).Quo(o.fee.Rat(), big.NewRat(100, 1))) + "%"
	}
	return append([]verdict.Row{verdict.Tokens(end, o.heldBefore, held, moved, fee)}, rows...), others
}

// outcome returns the outcome on the chain; ok reports whether there is one.
func (s *orders) outcome(o *Order) (outcome Outcome, ok bool) {
	if o.tx == nil {
		return 0, false
	}
	succeeded, mined := s.chains[o.Network].Outcome(o.tx)
	if succeeded {
		return Succeeded, mined
	}
	return Failed, mined
}

// onChain returns an event with what the chain knows about an order's transaction.
func (s *orders) onChain(o *Order) control.Event {
	outcome, mined := s.outcome(o)
	if !mined {
		return control.Event{Network: o.Network, TxHash: o.TxHash, Status: control.TxSubmitted}
	}
	receipt := s.chains[o.Network].Receipt(o.tx, outcome == Succeeded)
	return receiptEvent(o.Network, &receipt, outcome)
}

// receipt returns the receipt of an order's transaction with an outcome, which may
// differ from the one on the chain. For an order that was made by hand, it makes up
// a transaction that is not on the chain.
func (s *orders) receipt(o *Order, outcome Outcome) ramp.Receipt {
	if o.tx != nil {
		return s.chains[o.Network].Receipt(o.tx, outcome == Succeeded)
	}
	tx := chain.Transaction{GasUsed: chain.GasOfCall, Kind: 2, Moves: s.config.moves(o, o.address()),
		Hash: crypto.Keccak256Hash([]byte("transaction"), o.UUID[:], o.Request.Digest[:])}
	return s.chains[slices.Min(slices.Collect(maps.Keys(s.chains)))].Receipt(&tx, outcome == Succeeded)
}

// receiptEvent returns an event with what a receipt says about a transaction.
func receiptEvent(network ramp.Network, r *ramp.Receipt, outcome Outcome) control.Event {
	e := control.Event{Network: network, TxHash: r.TransactionHash, Status: control.TxFailed}
	if outcome == Succeeded {
		e.Status = control.TxSucceeded
	}
	e.Block, _ = r.BlockNumber.Uint64()
	return e
}
