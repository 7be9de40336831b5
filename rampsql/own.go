package rampsql

import (
	"strconv"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// ours stands in a statement for the condition that an order is one of the Store's own, after every
// placeholder of the statement. Every statement has it, except those of Update and those that look one
// order up: a transaction ends one order of all projects together.
const ours = "{ours}"

// bind returns a statement and its arguments as they are sent.
func (s *Store) bind(statement string, args ...any) (string, []any) {
	if strings.Contains(statement, ours) {
		var own string
		own, args = s.own(args)
		statement = strings.ReplaceAll(statement, ours, own)
	}
	return s.dialect.bind(statement, args...)
}

// own returns the condition for ours, and adds its arguments.
func (s *Store) own(args []any) (string, []any) {
	in := func(column string, values ...string) string {
		var placeholders []string
		for _, value := range values {
			args = append(args, value)
			placeholders = append(placeholders, "$"+strconv.Itoa(len(args)))
		}
		return column + " IN (" + strings.Join(placeholders, ", ") + ")"
	}
	var conditions []string
	if len(s.config.Projects) > 0 {
		conditions = append(conditions, in("project_id", s.config.Projects...))
	}
	if s.config.Network != "" {
		conditions = append(conditions, in("network", string(s.config.Network), ""))
	}
	if len(conditions) == 0 {
		return "1 = 1", args
	}
	// In a CASE, so that no planner takes it for a reason to choose another index, or to sort.
	return "CASE WHEN " + strings.Join(conditions, " AND ") + " THEN 1 END IS NOT NULL", args
}

// requireOwn returns an error unless the Store knows whose orders are its own: what is erased or deleted
// could be those of another game.
func (s *Store) requireOwn() error {
	var p invalid.Fields
	p.Require(len(s.config.Projects) > 0, "Config.Projects", "are required to erase or delete orders")
	p.Require(s.config.Network != "", "Config.Network", "is required to erase or delete orders")
	return p.Err()
}

// owns returns an error that wraps [ramp.ErrOrderForeign] if an order is not one of the Store's own.
func (s *Store) owns(order *ramp.Order) error {
	nothing := func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, nil }
	_, err := ramp.OnlyOf(s.config.Projects, s.config.Network, nothing)(order)
	return err
}
