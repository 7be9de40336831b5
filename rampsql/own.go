package rampsql

import (
	"slices"
	"strconv"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// ours stands in a statement for the condition that an order is one of the Store's own, after every
// placeholder of the statement. Every statement has it, except those of Update and those that look one
// order up: a transaction ends one order of all projects together.
const ours = "{ours}"

// own says whose orders are a Store's own: those of some projects on a network. None means any.
type own struct {
	projects []string
	network  ramp.Network
}

// condition returns that of ours, and adds its arguments.
func (o *own) condition(args []any) (string, []any) {
	in := func(column string, values ...string) string {
		var placeholders []string
		for _, value := range values {
			args = append(args, value)
			placeholders = append(placeholders, "$"+strconv.Itoa(len(args)))
		}
		return column + " IN (" + strings.Join(placeholders, ", ") + ")"
	}
	var conditions []string
	if len(o.projects) > 0 {
		conditions = append(conditions, in("project_id", o.projects...))
	}
	if o.network != "" {
		conditions = append(conditions, in("network", string(o.network), ""))
	}
	if len(conditions) == 0 {
		return "1 = 1", args
	}
	// In a CASE, so that no planner takes it for a reason to choose another index, or to sort.
	return "CASE WHEN " + strings.Join(conditions, " AND ") + " THEN 1 END IS NOT NULL", args
}

// sorted returns the projects, each once.
func (o *own) sorted() []string { return slices.Compact(slices.Sorted(slices.Values(o.projects))) }

// require returns an error unless the Store knows whose orders are its own: what is erased or deleted
// could be those of another game.
func (o *own) require() error {
	var p invalid.Fields
	p.Require(len(o.projects) > 0, "Config.Projects", "are required to erase or delete orders")
	p.Require(o.network != "", "Config.Network", "is required to erase or delete orders")
	return p.Err()
}

// check returns an error that wraps [ramp.ErrOrderForeign] if an order is not one of the Store's own.
func (o *own) check(order *ramp.Order) error {
	nothing := func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, nil }
	_, err := ramp.OnlyOf(o.projects, o.network, nothing)(order)
	return err
}
