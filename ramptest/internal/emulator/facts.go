package emulator

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Progress is the progress of an order.
type Progress struct {
	order.Progress
	Done bool      // nothing more is planned
	Due  time.Time // when the next step is planned; zero if it is in progress
}

// Progress returns the progress of an order.
func (s *Orders) Progress(o *order.Order) Progress {
	jobs, busy := s.jobs.Of(o) // read before the delivery, which may plan a job when it ends
	p := Progress{Progress: o.Delivery.Now()}
	switch {
	case p.Sending > 0:
	case p.State.Over():
		p.Done = !busy // which may send the result again
	case len(jobs) == 0:
		p.Due = p.Next // the answer has arrived, but the retry is not on the agenda yet
		p.Done = p.Due.IsZero()
	case !busy && s.can(&jobs[0]):
		p.Due = jobs[0].Due
	default:
		p.Done = !busy // until the chain goes on
	}
	return p
}

// This file collects what the chain, the calls and the books know, for package verdict.

// Verdict returns what there is to say about an order.
func (s *Orders) Verdict(o *order.Order) verdict.Verdict { return verdict.Of(s.Known(o).Facts) }

// Known is what is known about an order, with the balances of its player.
type known struct {
	verdict.Facts
	before, now tally.Assets // nil if unknown
}

// Known collects what is known about an order.
func (s *Orders) Known(o *order.Order) known {
	k := known{Facts: verdict.Facts{
		Mint:     o.Trade().Mint,
		Tokens:   trade.Tokens(o.Token().Amount.Rat()),
		Received: trade.Tokens(s.received(o)),
		Player:   s.Player(o),
		Chain:    s.chainOf(o),
		Calls:    s.callsOf(o),
	}}
	entered := o.Entered()
	acc := s.Audit.Account(entered)
	k.Books.Why = knows(acc, s.config.Mode)
	for _, found := range s.Audit.About(o.UUID) {
		if len(found.Orders) > 1 {
			k.Books.Shared = append(k.Books.Shared, found.Problem)
		} else {
			k.Books.Findings = append(k.Books.Findings, found.Problem)
		}
	}
	if k.Books.Why == verdict.Unread {
		r, _ := s.Game.Read(o.Session)
		k.Books.Problem, k.Books.Rejected = r.Problem(), acc == nil || o.NoSession
	}
	if k.Books.Sum, k.Books.Aside = s.Audit.Judged(entered.Sum); acc == nil {
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
func knows(a *audit.Account, mode Mode) verdict.Why {
	switch {
	case mode == Off:
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
func (s *Orders) chainOf(o *order.Order) verdict.Chain {
	c := verdict.Chain{Stays: o.Script.Pending, Stands: s.waits(o), Less: o.BurnsLess()}
	if p := o.Partner.Load(); p != nil {
		// what a mint brings and a burn takes may cancel out, and prove neither
		c.Shared = p.Delivery.Now().State == order.Confirmed || p.Trade().Mint != o.Trade().Mint
	}
	switch outcome, mined := s.Chains.Outcome(o); {
	case !mined:
		c.WithNext = o.Waits()
		c.Block = s.Chains[o.Network].NextBlock()
	case outcome == order.Succeeded:
		c.End = verdict.Succeeded
	default:
		c.End = verdict.Reverted
		if amount := o.Token().Amount.Rat(); !o.Trade().Mint && o.HeldBefore != nil &&
			amount.Cmp(o.HeldBefore) > 0 {
			c.Short = tally.Grouped(o.HeldBefore)
		}
	}
	return c
}

// callsOf returns how the game answered the results of an order.
func (s *Orders) callsOf(o *order.Order) verdict.Calls {
	d := o.Delivery.Now()
	return verdict.Calls{
		Progress: map[order.State]verdict.Progress{order.Confirmed: verdict.Confirmed,
			order.Rejected: verdict.TurnedDown,
			order.GivenUp:  verdict.GivenUp}[d.State],
		Attempts: d.Attempts, Sending: d.Sending > 0,
		Status: d.Status, Wrong: d.Wrong, Lost: d.Lost, Contrary: d.Contrary,
		Next: d.Next, Of: fmt.Sprintf("%d of %d", d.Retries+1, len(s.config.Schedule)+1),
		Never: o.Script.Never, Held: o.Script.Held, Refused: o.Refused,
	}
}

// disputeOf returns how the results of an order contradict each other or the chain, or
// nil if they do not.
func disputeOf(o *tally.Tally) *verdict.Dispute {
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

// Player returns the name of an order's player, as the game last reported it.
func (s *Orders) Player(o *order.Order) string {
	_, name := s.Audit.Who(o.Session.ID)
	return cmp.Or(name, "the player")
}

// named returns the name of an order in a finding, such as "alice's mint 7b0f9a1e".
func (s *Orders) named(o *order.Order) string { return s.nameOf(o.Session, o.Trade().Mint, o.UUID) }

func (s *Orders) nameOf(session ramp.Session, mint bool, id uuid.UUID) string {
	_, owner := s.Audit.Who(session.ID)
	if owner == "" {
		owner = fmt.Sprintf("session %q", session.ID)
	}
	direction := ramp.Burn
	if mint {
		direction = ramp.Mint
	}
	return fmt.Sprintf("%s's %s %s", redact.Isolate(owner), direction, text.Short(id))
}

// received returns what the wallet receives if the transaction of an order succeeds. It
// is negative for a burn.
func (s *Orders) received(o *order.Order) *big.Rat {
	sum := new(big.Int)
	if o.Tx != nil { // which may be that of another order, too
		moves := s.config.Rules.Moves(&o.Request.Intent, o.Fee, o.Address(), o.BurnsLess())
		for _, m := range moves {
			if m.To == o.Address() {
				sum.Add(sum, m.Amount)
			}
			if m.From == o.Address() {
				sum.Sub(sum, m.Amount)
			}
		}
	}
	return chain.Tokens(sum, s.config.Rules.Decimals)
}

// Rows compares what an order moved with what is due, and has the player's balances beside it. others are
// the assets that the order is not about.
func (s *Orders) Rows(o *order.Order) (rows []verdict.Row, others []ramp.Asset) {
	k := s.Known(o)
	moved := new(big.Rat)
	if k.Chain.End == verdict.Succeeded {
		moved = s.received(o)
	}
	held := s.Chains[o.Network].TokenBalance(o.Token().Contract(), o.Address())
	rows = verdict.Rows(k.Facts, k.before, k.now)
	for _, id := range slices.Sorted(maps.Keys(k.now)) {
		if !slices.ContainsFunc(rows, func(r verdict.Row) bool { return r.ID == id }) {
			others = append(others, ramp.Asset{ID: id, Balance: trade.AmountOf(k.now[id])})
		}
	}
	rank := func(r verdict.Row) int { // what is wrong is first
		return slices.Index([]verdict.Tone{verdict.Bad, verdict.Unclear, verdict.Wait, verdict.Good}, r.Tone)
	}
	slices.SortStableFunc(rows, func(a, b verdict.Row) int { return rank(a) - rank(b) })
	end := k.Chain.End
	if o.Refused != "" { // it has no transaction
		end = verdict.Reverted
	}
	fee := ""
	if o.Fee.Sign() > 0 {
		fee = tally.Decimal(new(big.Rat).Quo(o.Fee.Rat(), big.NewRat(100, 1))) + "%"
	}
	return append([]verdict.Row{verdict.Tokens(end, o.HeldBefore, held, moved, fee)}, rows...), others
}
