package ramptest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

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
	acc := s.audit.account(o)
	k.Books.Why = acc.knows(s.audit.config.Books)
	for _, found := range s.audit.about(o.UUID) {
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
	if k.Books.Sum = tallyOf(o).Sum; acc == nil {
		return k
	}
	k.before, k.now = acc.order.Before, acc.last
	k.Books.Took, k.Books.Vague, k.Books.Dispute = acc.order.Took, acc.order.Vague, disputeOf(&acc.order)
	if k.Books.Why == verdict.Known {
		k.Books.Moved = acc.order.Totals[0]
	}
	return k
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
		if amount := o.token().Amount.Rat(); !o.trade().mint && o.heldBefore != nil && amount.Cmp(o.heldBefore) > 0 {
			c.Short = books.Grouped(o.heldBefore)
		}
	}
	return c
}

// callsOf returns how the game answered the results of an order.
func (s *orders) callsOf(o *Order) verdict.Calls {
	d := o.delivery.now()
	return verdict.Calls{
		Progress: map[State]verdict.Progress{Confirmed: verdict.Confirmed, Rejected: verdict.TurnedDown, GivenUp: verdict.GivenUp}[d.State],
		Attempts: d.Attempts, Sending: d.sending > 0, Status: d.Status, Lost: d.Lost, Contrary: d.Contrary,
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
	_, name := s.audit.who(o.Session.ID)
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

// tokens returns a number of tokens in words.
func tokens(n *big.Rat) string {
	if text := books.Grouped(n); text != "1" {
		return text + " tokens"
	}
	return "1 token"
}

// rows compares the player's balances with what is expected. others are the assets
// that the order is not about.
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
	return append([]verdict.Row{verdict.Tokens(end, o.heldBefore, held, moved)}, rows...), others
}

// The faults of further validate calls, as the record names them.
const (
	askedAtOnce     = "at once"
	withOtherDigest = "with another digest"
	withOtherAmount = "with another amount"
	offTheTerms     = "off the terms"
)

// verdictOn returns what there is to say about a call to the game.
func (c *call) verdictOn(a *answer, err error, retry func(int) bool) verdict.Verdict {
	v := verdict.Call{Kind: map[Kind]verdict.Kind{KindAssets: verdict.Assets, KindValidate: verdict.Validate, KindResult: verdict.Result}[c.kind],
		Fault: c.fault, Lacks: c.lacks}
	switch {
	case c.forged:
		v.Trap = verdict.Forged
	case c.opposite:
		v.Trap = verdict.Opposite
	case c.kind == KindValidate:
		v.Trap = map[string]verdict.Trap{askedAtOnce: verdict.AtOnce, withOtherDigest: verdict.Digest, withOtherAmount: verdict.Amount, offTheTerms: verdict.OffTerms}[c.fault]
	}
	if a != nil {
		v.Status = a.status
		v.Retried = retry(a.status)
	}
	switch rejected := rejectionOf(err); {
	case errors.Is(err, errCanceled):
		v.Canceled = true
	case errors.Is(err, ErrLostAnswer):
		v.Lost = true
	case rejected != nil:
		v.Code = string(rejected.Code)
	case c.forged:
		v.Success = errors.Is(err, ErrForged)
	case err != nil:
		v.Problem = said(err)
		for _, prefix := range []string{"the game did not answer: ", "the game's answer breaks the interface: "} {
			v.Problem = strings.TrimPrefix(v.Problem, prefix)
		}
	default:
		v.Success = true
	}
	return verdict.OfCall(v)
}
