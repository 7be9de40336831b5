package support

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/token-ramp/ramp-go/internal/console"
)

// Command is a command line for the people who decide about orders; see [NewCommand].
type Command func(ctx context.Context, o *Orders, args []string, out io.Writer) error

// NewCommand returns a command of this package for a program of yours, and adds the flags
// of the command to those of the program. Parse them, make an [Orders], and run the command
// with the arguments that are left. It prints to out. Package rampbooks has the commands for the books.
//
//	list            lists the orders that have waited for 13 hours, or those of a player, a
//	                session, a wallet or a time, and who has ended them by hand
//	count           counts the orders that wait, by their age
//	find TEXT       lists the orders of a UUID, a transaction, a wallet, a session or a player:
//	                [Orders.Find]
//	missing LOG...  lists what logs have and the store lacks: [Orders.Lost]
//	restore LOG...  stores it again, after a backup was restored: [Orders.Restore]
//	show UUID       shows an order and the transactions that may be its own: [Orders.Show]
//	finish UUID     ends an order as its transaction ended: [Orders.Finish]. With several UUIDs, or
//	                -file, it shows the orders that one transaction proves, and with -yes ends them
//	finish -fitting lists the orders that the books mark as fitting, and with -yes ends them:
//	                [Orders.FinishFitting]
//	abandon UUID    ends an order whose result will never come: [Orders.Abandon]. With several
//	                UUIDs, or -file, it shows what it would do, and with -yes does it
//
// Ask each for its flags with -help. What list, find and show print with -json is in the form of a [Report].
func NewCommand(name string, flags *flag.FlagSet) (Command, error) {
	define, known := map[string]func(*flag.FlagSet) action{
		"list": newList, "count": newCount, "find": newFind, "missing": newMissing,
		"restore": newRestore, "show": newShow, "finish": newFinish, "abandon": newAbandon,
	}[name]
	if !known {
		return nil,
			fmt.Errorf("there is no command %q: use list, count, find, missing, restore, show, "+
				"finish or abandon", name)
	}
	run := define(flags)
	return func(ctx context.Context, o *Orders, args []string, out io.Writer) error {
		if err := o.made(); err != nil {
			return err
		}
		if err := cmp.Or(console.Texts(flags), rules[name].Check(flags)); err != nil {
			return err
		}
		return run(ctx, call{On: o, Args: args, Out: out})
	}, nil
}

// rules are, for each command, which of its flags mean nothing beside others.
var rules = map[string]console.Rules{
	"list": {Alone: [][]string{
		{"player", "session", "address", "from", "older"}, {"player", "session", "address", "to", "older"},
		{"player", "session", "address", "from", "direction"},
		{"player", "session", "address", "to", "direction"},
	}},
	"finish": {
		Alone: [][]string{{"fitting", "tx"}, {"fitting", "file"}, {"fitting", "batch"},
			{"fitting", "settled"}, {"fitting", "against-evidence"}, {"fitting", "without-evidence"},
			{"file", "tx"}},
		With: map[string][]string{"from": {"fitting"}, "to": {"fitting"}},
	},
}
