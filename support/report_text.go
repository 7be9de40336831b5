package support

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Text writes the report for a person, as several lines.
func (r *Report) Text() (text string) {
	out := new(strings.Builder)
	o := r.Order
	refused := map[uuid.UUID]ramp.Refusal{}
	if r.Refusal != nil {
		refused[o.UUID] = *r.Refusal
	}
	fmt.Fprintf(out, "%s\nproject   %s\nby hand   %s\n",
		ordersTable([]ramp.Order{o}, refused), console.Quote(o.ProjectID),
		console.Quote(console.ByHand(o.Reason, o.Settled)))
	defer func() {
		text += fmt.Sprintf("next      %s\ntell      %s\n", r.Advice.Do, r.Advice.Tell)
	}()
	if r.Unread != "" {
		fmt.Fprintf(out, "chain     not read: %s\n", console.Quote(r.Unread))
		return out.String()
	}
	fmt.Fprintf(out, "chain     blocks %d to %d, until %s; transactions that may be the order's own: %d\n",
		r.FirstBlock, r.LastBlock, r.LastTime.Format(time.RFC3339), len(r.Candidates))
	if r.Incomplete != "" {
		fmt.Fprintf(out, "          there may be others: %s\n", console.Quote(r.Incomplete))
	}
	if r.ChainHours != nil {
		fmt.Fprintf(out, "          hours since the order in which the chain made a block: %d, and an "+
			"abandon needs %d\n", *r.ChainHours, evidence.MaxDelayHours)
	}
	if r.Dust > 0 {
		fmt.Fprintf(out, "          not listed, because they moved less than a hundredth of its amount: %d\n",
			r.Dust)
	}
	for _, c := range r.Candidates {
		fmt.Fprintf(out, "  %s  block %d  %s\n", c.Hash, c.Block, c.Time.Format(time.RFC3339))
		if c.Hidden == "" {
			payer, to := cmp.Or(c.Evidence.FeePayer, c.Evidence.From), "a new contract"
			if c.Evidence.To != nil {
				to = c.Evidence.To.Hex()
			}
			fmt.Fprintf(out, "    sent by %s, paid by %s, to %s\n", c.Evidence.From, payer, to)
		}
		for _, t := range c.Transfers {
			fmt.Fprintf(out, "    moved %s from %s to %s\n", r.amount(&t), t.From, t.To)
		}
		if c.Claimed {
			fmt.Fprintf(out, "    order %s has claimed it, perhaps in another database\n", c.EndedOther)
		} else if c.EndedOther != nil {
			fmt.Fprintf(out, "    it has ended order %s\n", c.EndedOther)
		}
		if c.Equal {
			fmt.Fprintln(out, "    which is equal to this order: it does not matter whose it is")
		}
		if c.Batch {
			fmt.Fprintln(out, "    it moved enough for this order, too: it settles several")
		}
		fmt.Fprintf(out, "    %s\n", cmp.Or(c.Unproven, "proves that the order has ended so"))
		if c.OtherAmount {
			fmt.Fprintln(out, "    it moved another amount than the order is about")
		}
		for _, other := range c.AlsoProves {
			fmt.Fprintf(out,
				"    it would also prove the end of order %s: ask the service whose it is\n", other)
		}
		if c.OtherDeleted {
			fmt.Fprintln(out, "    an order that it has ended may have been deleted: ask the service")
		}
		if c.Objection != "" {
			fmt.Fprintf(out, "    abandoning the order fails: %s\n", c.Objection)
		}
	}
	return out.String()
}

// amount describes what a transfer moved, in tokens if their decimals are known.
func (r *Report) amount(t *ramp.Transfer) string {
	decimals, known := r.Decimals[t.Token]
	switch {
	case t.TokenID != nil:
		return fmt.Sprintf("piece %s of %s", t.TokenID, t.Token)
	case !known:
		return fmt.Sprintf("%s units of %s", t.Value, t.Token)
	default:
		amount, _ := ramp.AmountOfUnits(t.Value, decimals) // 256 bits have few enough digits
		return fmt.Sprintf("%s of %s", amount, t.Token)
	}
}

// ordersTable writes orders for a person, one a line below a heading, with why they were refused.
func ordersTable(orders []ramp.Order, refusals map[uuid.UUID]ramp.Refusal) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, console.OrderColumns+"\tREFUSED")
	for _, o := range orders {
		why := ""
		if r, ok := refusals[o.UUID]; ok {
			why = console.Refused(&r)
		}
		fmt.Fprintf(table, "%s\t%s\n", console.OrderRow(&o), console.Quote(why))
	}
	_ = table.Flush() // into memory
	return text.String()
}
