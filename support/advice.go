package support

import (
	"fmt"
	"slices"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

const (
	tellWaits = "Your order is being checked. Nothing is lost: its assets are kept until it is " +
		"known how it " +
		"ended."
	tellBurn = "Your order has not moved anything in the game yet. If your tokens are gone, it is being " +
		"checked."
)

// Advise returns what to do next with the order of a report of [Orders.Show], at a time. It reads nothing
// but the report, and decides nothing: a person does. docs/on-call.md has its reasons.
func Advise(r *Report, now time.Time) Advice {
	o := &r.Order
	if o.State != ramp.OrderAccepted {
		return Advice{Next: NextNothing, Do: "The order has ended.", Tell: ended(o)}
	}
	tell := tellWaits
	if o.Direction == ramp.Burn {
		tell = tellBurn
	}
	refused := ""
	if r.Refusal != nil {
		refused = fmt.Sprintf("Its end was refused, %d times, the last time because: %s. ",
			r.Refusal.Count, console.Quote(r.Refusal.Reason))
	}
	next := func(step NextStep, c *Candidate, do string) Advice {
		a := Advice{Next: step, Do: refused + do, Tell: tell}
		if c != nil {
			a.Tx = &c.Hash
		}
		return a
	}
	if refused != "" && now.Sub(o.AcceptedAt) < maxDelay {
		return next(NextCorrect, nil,
			"Correct the cause. The next delivery ends the order, for 12 hours after the first.")
	}
	if now.Sub(o.AcceptedAt) < maxDelay {
		return next(NextWait, nil,
			"Results come for 12 hours. The order has waited since "+o.AcceptedAt.Format(time.RFC3339)+".")
	}
	if r.Unread != "" {
		return next(NextAskNode, nil, "The chain was not read: "+console.Quote(r.Unread)+".")
	}
	first := func(is func(c *Candidate) bool) *Candidate {
		i := slices.IndexFunc(r.Candidates, func(c Candidate) bool { return is(&c) })
		if i < 0 {
			return nil
		}
		return &r.Candidates[i]
	}
	older := func(c *Candidate) bool { return c.Time.Before(o.AcceptedAt.Add(-skew)) }
	proves := func(c *Candidate) bool {
		return c.Hidden == "" && c.Unproven == "" && c.EndedOther == nil && !older(c)
	}
	if c := first(func(c *Candidate) bool { return c.Hidden != "" }); c != nil {
		return next(NextAskNode, c, "The node lists this transaction and does not return it.")
	}
	if c := first(proves); c != nil {
		doubtful := c.OtherAmount || len(c.AlsoProves) > 0 || c.OtherDeleted ||
			first(func(other *Candidate) bool { return proves(other) && other.Hash != c.Hash }) != nil
		if doubtful {
			return next(NextAskService, c, "More than one transaction, amount or order fits, or one fitted "+
				"and was deleted. Ask which transaction is the order's, and finish it with that: "+
				"against the evidence, if it may be another order's.")
		}
		if refused != "" {
			return next(NextCorrect, c, "Correct the cause. Then finish the order with this transaction, "+
				"which proves how it ended, or settle it in another way.")
		}
		only := ""
		if r.OneDatabase {
			only = " of this database"
		}
		return next(NextFinish, c, "This transaction proves how the order ended, and fits no other"+only+".")
	}
	if c := first(older); c != nil {
		return next(NextCompareClocks, c, "The transaction is older than the order: "+evidence.ClocksDiffer+
			". Compare both with the time, and set that of the server if it is wrong. "+
			"Finish the order against the evidence only if the service says that the transaction is "+
			"its own.")
	}
	if c := first(func(c *Candidate) bool { return c.Batch && c.Unproven == "" }); c != nil {
		if len(c.AlsoProves) > 0 {
			return next(NextAskService, c, "This transaction settles several orders, and more wait than it "+
				"covers. Ask whether it is this order's, and finish the order with it as a batch.")
		}
		return next(NextBatch, c, fmt.Sprintf("This transaction has ended order %s, and moved enough for "+
			"both: it settles several orders. Finish this one with it, too, as a batch.", c.EndedOther))
	}
	if c := first(func(c *Candidate) bool { return c.Claimed }); c != nil {
		return next(NextOtherOrder, c, fmt.Sprintf("Order %s has claimed this transaction. Look at it: "+
			"it has ended by the transaction, or it waits. It may be in another database.", c.EndedOther))
	}
	if c := first(func(c *Candidate) bool { return c.EndedOther != nil && !c.Batch && !c.Equal }); c != nil {
		return next(NextOtherOrder, c, fmt.Sprintf("This transaction has ended order %s. "+
			"It is not this order's, or that one was ended wrongly.", c.EndedOther))
	}
	if c := first(func(c *Candidate) bool { return c.Unproven != "" && !c.Equal }); c != nil {
		return next(NextAskService, c, "This transaction may be the order's, and does not prove it: "+
			console.Quote(c.Unproven)+
			". Ask the service. Abandon the order against the evidence only if it is another's.")
	}
	if r.Incomplete != "" {
		return next(NextAskNode, nil, "There may be others: "+console.Quote(r.Incomplete)+".")
	}
	if stood := r.stoodStill(); stood != "" {
		return next(NextWait, nil, "Wait: "+stood+".")
	}
	if c := first(func(c *Candidate) bool { return c.Equal }); c != nil {
		return next(NextAbandon, c, fmt.Sprintf("This transaction has ended order %s, which is equal to "+
			"this one: it does not matter whose it is, and there is no other. Ask the service whether the "+
			"signature of either order can still be used. If not, abandon this one.", c.EndedOther))
	}
	return next(NextAbandon, nil, "No transaction is the order's. "+
		"Ask the service whether its signature can still be used. If not, abandon the order.")
}

// ended says what a player may be told of an order that has ended.
func ended(o *ramp.Order) string {
	switch {
	case o.Settled != "":
		return "Your order was settled in another way: " + console.Quote(o.Settled) + "."
	case o.Direction == ramp.Mint && o.State == ramp.OrderSucceeded:
		by := ""
		if o.TxHash != "" {
			by = ", by transaction " + o.TxHash
		}
		return "Your tokens were sent to " + o.UserAddress + by + "."
	case o.Direction == ramp.Mint:
		return "Your order failed, and what it had taken is back in the game. Look into the mailbox, too."
	case o.State == ramp.OrderSucceeded:
		return "Your tokens were taken, and you have what they are worth in the game. " +
			"Look into the mailbox, too."
	case o.State == ramp.OrderFailed:
		return "Your order failed. Your tokens were not taken, and nothing moved in the game."
	default:
		return "Your order was ended without a transaction, and nothing moved in the game."
	}
}
