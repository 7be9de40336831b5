package support

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/token-ramp/ramp-go"
)

// Text writes the report for a person, as several lines.
func (r *Report) Text() string {
	out := new(strings.Builder)
	o := r.Order
	fmt.Fprintf(out, "%s\nproject   %s\nby hand   %s\n",
		Table([]ramp.Order{o}), shown(o.ProjectID), shown(o.Reason))
	if r.Unread != "" {
		fmt.Fprintf(out, "chain     not read: %s\n", shown(r.Unread))
		return out.String()
	}
	fmt.Fprintf(out, "chain     blocks %d to %d, until %s; transactions that may be the order's own: %d\n",
		r.FirstBlock, r.LastBlock, r.LastTime.Format(time.RFC3339), len(r.Candidates))
	for _, c := range r.Candidates {
		fmt.Fprintf(out, "  %s  block %d  %s\n", c.Hash, c.Block, c.Time.Format(time.RFC3339))
		fmt.Fprintf(out, "    sent by %s, paid by %s, to %s\n", c.Evidence.From, cmp.Or(c.Evidence.FeePayer, c.Evidence.From), c.Evidence.To)
		for _, t := range c.Transfers {
			fmt.Fprintf(out, "    moved %s of %s from %s to %s\n", cmp.Or(t.Value, t.TokenID), t.Token, t.From, t.To)
		}
		if c.EndedOther != nil {
			fmt.Fprintf(out, "    it has ended order %s\n", c.EndedOther)
		}
		fmt.Fprintf(out, "    %s\n", cmp.Or(c.Unproven, "proves that the order has ended so"))
		if c.OtherAmount {
			fmt.Fprintln(out, "    it moved another amount than the order is about")
		}
		for _, other := range c.AlsoProves {
			fmt.Fprintf(out, "    it also proves that order %s, which waits, has ended: ask the service whose it is\n", other)
		}
		if c.Objection != "" {
			fmt.Fprintf(out, "    abandoning the order fails: %s\n", c.Objection)
		}
	}
	return out.String()
}

// Table writes orders for a person, one a line below a heading.
func Table(orders []ramp.Order) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UUID\tORDER\tASSETS\tSTATE\tACCEPTED\tENDED\tTRANSACTION\tSESSION\tADDRESS\tBY HAND")
	none := newAssets(&Config{})
	for _, o := range orders {
		fmt.Fprintln(table, none.found(none.traded(o)).row())
	}
	_ = table.Flush() // into memory
	return text.String()
}

// row writes the order as a row of a table.
func (o FoundOrder) row() string {
	var assets []string
	for _, id := range slices.Sorted(maps.Keys(o.Assets)) {
		assets = append(assets, o.Assets[id].String()+" "+id)
	}
	ended := "-"
	if !o.FinishedAt.IsZero() {
		ended = o.FinishedAt.Format(time.RFC3339)
	}
	return strings.Join([]string{
		o.UUID.String(), string(cmp.Or(o.Direction, "unknown direction")), shown(strings.Join(assets, ", ")),
		string(o.State), o.AcceptedAt.Format(time.RFC3339), ended,
		shown(o.TxHash), shown(o.SessionID), shown(o.UserAddress), shown(o.Reason)}, "\t")
}

// shown quotes foreign text, so that it cannot move the cursor or fake a line.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1 : len(quoted)-1]
}
