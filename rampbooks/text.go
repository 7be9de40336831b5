package rampbooks

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/token-ramp/ramp-go/internal/console"
)

// Text writes the books for a person, as several lines. What others have written is quoted, so that
// it cannot fake a line.
func (b *Reconciliation) Text() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "books from %s to %s, blocks %d to %d\nabout %s\n\n",
		b.From.Format(time.RFC3339), b.To.Format(time.RFC3339), b.FirstBlock, b.LastBlock, b.About)
	fmt.Fprintln(w, "SOURCE\tPRODUCT\tTOKEN\tDIRECTION\tFIGURE\tASSET\tAMOUNT")
	for _, f := range b.figures() {
		if f.source != "books" {
			fmt.Fprintln(w, f.text())
		}
	}
	if !b.FindingsFrom.Equal(b.From) {
		fmt.Fprintf(w, "\nThe findings begin earlier, at %s.\n", b.FindingsFrom.Format(time.RFC3339))
	}
	if b.Stalled != "" {
		fmt.Fprintf(w, "\nThe books stand still: %s\n", b.Stalled)
	}
	if b.Witnesses == 0 {
		fmt.Fprintln(w,
			"\nThe node listed the event of no order, so nothing shows that it lists what happened.")
	}
	if b.Elsewhere > 0 {
		fmt.Fprintf(w, "\nclaimed by orders of other databases, and judged there: %d transactions\n",
			b.Elsewhere)
	}
	if b.OneDatabase && b.Counts[EventWithoutOrder] > 0 {
		fmt.Fprintln(w, "\nOnly this database was asked whose the events without an order are. "+
			"If another one sells a token of them, look there, and share Claims.")
	}
	fmt.Fprintf(w,
		"\nnot judged yet: %d, and all after %s\nwaiting for 13 hours: mints %d, burns %d\nfindings: %d, "+
			"listed: %d, fitting: %d\n",
		b.Open, b.To.Format(time.RFC3339), b.WaitingMints, b.WaitingBurns, b.findingCount(),
		len(b.Findings), b.Fitting)
	for _, f := range slices.Concat(b.Findings, b.Decided) {
		f.write(w)
	}
	_ = w.Flush() // into memory
	return text.String()
}

// write writes a finding for a person.
func (f *Finding) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s  %s: %s\n", f.Time.Format(time.RFC3339), f.Kind, console.Quote(f.Detail))
	if f.By != "" {
		fmt.Fprintf(w, "  matched by %s\n", f.By)
	}
	if f.Fitting {
		fmt.Fprintln(w, "  nothing else fits either of them: finish -fitting ends the order")
	}
	if d := f.Decided; d != nil {
		fmt.Fprintf(w, "  decided at %s by %s: %s (entry %s)\n",
			d.At.Format(time.RFC3339), console.Quote(d.Who), console.Quote(d.Reason), d.ID)
	}
	for _, o := range f.Orders {
		fmt.Fprintf(w, "  %s\ttokens: %s (%s)\n", o.row(), o.Tokens, console.Quote(o.Product))
		if o.Refusal != nil {
			fmt.Fprintf(w, "  refused %s\n", console.Quote(console.Refused(o.Refusal)))
		}
	}
	for _, e := range f.Events {
		fmt.Fprintf(w, "  event %s of %s tokens of %s, user %s, block %d, log %d, %s, tx_hash %s\n",
			e.Direction, e.Tokens, e.Token, e.User, e.Block, e.LogIndex,
			e.Time.Format(time.RFC3339), e.TxHash)
	}
}
