package interleaving

import (
	"database/sql/driver"
	"maps"
	"slices"
	"strings"
)

// Rows are what a statement reads, writes or locks: the rows of single orders, or coarser names.
// Where it is not known, the name is a coarser one, which costs runs and misses nothing.
type Rows map[string]bool

const (
	everything = "everything"
	allOrders  = "orders"
	game       = "game" // every row of the game
)

func (r Rows) meets(other Rows) bool {
	if len(r) == 0 || len(other) == 0 {
		return false
	}
	if r[everything] || other[everything] {
		return true
	}
	for one := range r {
		if other[one] {
			return true
		}
	}
	return false
}

func (r Rows) and(other Rows) Rows {
	all := maps.Clone(r)
	maps.Copy(all, other)
	return all
}

const begin, commit, rollback = "BEGIN", "COMMIT", "ROLLBACK"

// commits is how a store on MySQL commits: it turns autocommit on.
const commits = "SET autocommit = IF("

// reads are what is known where a statement is sent.
type reads struct {
	dialect   *Dialect
	names     map[string]string // of order and transaction IDs
	inTx      bool
	snapshots bool // whether a transaction reads what was committed at its first statement
	held      Rows // what the transaction has touched
}

// rows returns what a statement touches.
func (c reads) rows(text string, args []driver.NamedValue) Rows {
	upper := strings.ToUpper(strings.TrimSpace(text))
	starts := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(upper, w) })
	}
	locks := strings.Contains(upper, " FOR ") || strings.Contains(upper, " LOCK ")
	switch {
	case c.dialect.file, c.dialect.snapshotAlways && c.snapshots,
		c.dialect.snapshotOfRead && c.inTx && starts("SELECT") && !locks:
		return Rows{everything: true}
	case strings.HasPrefix(text, commits), starts(commit, rollback):
		return c.held
	case starts("SAVEPOINT", "RELEASE", "SET "):
		return Rows{}
	case !strings.Contains(text, "ramp_orders"):
		return Rows{game: true}
	case c.dialect.gaps:
		return Rows{allOrders: true}
	}
	rows := Rows{}
	for _, arg := range args {
		if id, ok := arg.Value.(string); ok && c.names[id] != "" {
			rows[c.names[id]] = true
		}
	}
	if len(rows) == 0 {
		return Rows{everything: true}
	}
	return rows
}
