package support

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
)

type (
	action = console.Action[*Orders]
	call   = console.Call[*Orders]
)

// evidenceFlags adds the flags for the two risks of giving back or granting twice.
func evidenceFlags(flags *flag.FlagSet, d *Decision) {
	flags.BoolVar(&d.AgainstEvidence, "against-evidence", false,
		"although the chain shows something else, which you have looked at; this may pay twice")
	flags.BoolVar(&d.WithoutEvidence, "without-evidence", false,
		"although the chain could not show that nothing happened; this may pay twice")
	flags.StringVar(&d.Settled, "settled", "",
		"`how` the assets were settled in another way, such as by mail: the game then moves nothing; "+
			"needs -against-evidence")
}

func newDecision(flags *flag.FlagSet) *Decision {
	d := new(Decision)
	flags.StringVar(&d.Who, "who", "", "`name` of the person who decides; required")
	flags.StringVar(&d.Reason, "reason", "", "why the result cannot arrive; required")
	return d
}

// printOrders prints orders as JSON, in the form of [Report].
func printOrders(out io.Writer, orders []ramp.Order) error {
	return json.NewEncoder(out).Encode(each(orders, func(o ramp.Order) orderForm { return formOf(&o) }))
}

// printStep says what was moved, so that nobody moves it again by hand.
func printStep(out io.Writer, step ramp.Step, err error) error {
	if err != nil {
		return err
	}
	moved := "the game has moved: " + step.Effect.String()
	switch {
	case step.Settled():
		moved = "the game has moved nothing, because it was settled in another way: " + step.Order.Settled
	case !step.New:
		before, at := step.Order.Moved()
		moved = fmt.Sprintf("it was so before, and nothing was moved now; at %s, the game had moved: %s",
			at.Format(time.RFC3339), before)
	}
	_, err = fmt.Fprintf(out, "%s is %s; %s\n", step.Order.UUID, step.Order.State, console.Quote(moved))
	return err
}
