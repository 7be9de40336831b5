package items

import (
	"database/sql"
	"path/filepath"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// Every order moves its items once, in whatever order the statements of two servers reach the
// database of the orders.
func TestEveryInterleaving(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	b := newBank(nil)
	open(t, file, b) // creates the table
	storetest.TestInterleavings(t, storetest.Interleavings{
		Connector: connector{file: file},
		Dialect:   rampsql.SQLite,
		Open:      func(db *sql.DB) (ramp.Store, error) { return &Store{DB: db, Items: b}, nil },
		Assets:    []string{"gold", "gem"},
		Give:      b.give,
		Balance:   b.balance,
		NoFaults:  true, // with them it takes minutes
	})
}
