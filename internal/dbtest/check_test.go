package dbtest

import (
	"fmt"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
)

// Check finds the problems of a database at startup, before the first order.

func TestCheckOfAGoodDatabase(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		check(t, newStore(t, p, applyNothing).Check(t.Context()))
	})
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		migration string
		want      string // part of the database's own message
	}{
		"table":  {"DROP TABLE ramp_orders;", "ramp_orders"},
		"column": {"ALTER TABLE ramp_orders RENAME COLUMN reason TO why;", "reason"},
	} {
		for _, d := range databases {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				err := newStore(t, newPlace(t, d, d.modes[0], c.migration), applyNothing).Check(t.Context())
				t.Log(err)
				expectText(t, err, "ramp: check: table ramp_orders, which Dialect.Schema creates, is unusable", c.want)
			})
		}
	}
}

// Without its unique index, one transaction ends two orders. Another index does not help.
func TestCheckNamesTheMissingIndex(t *testing.T) {
	const twoColumns = "CREATE UNIQUE INDEX other ON ramp_orders (tx_hash, state);"
	for dialect, drop := range map[ramp.Dialect]string{
		ramp.PostgreSQL: "DROP INDEX ramp_orders_tx_hash;", ramp.SQLite: "DROP INDEX ramp_orders_tx_hash;", ramp.MySQL: "DROP INDEX ramp_orders_tx_hash ON ramp_orders;",
	} {
		d := databaseOf(t, dialect)
		for migration, missing := range map[string]bool{
			drop:              true,
			drop + twoColumns: true,
			drop + "CREATE INDEX other ON ramp_orders (tx_hash);":                     true,
			drop + twoColumns + "CREATE UNIQUE INDEX third ON ramp_orders (tx_hash);": false,
			drop + "CREATE UNIQUE INDEX ours ON ramp_orders (tx_hash);":               false,
			"CREATE UNIQUE INDEX twice ON ramp_orders (tx_hash);":                     false,
		} {
			t.Run(d.name+"/"+migration, func(t *testing.T) {
				err := newStore(t, newPlace(t, d, d.modes[0], migration), applyNothing).Check(t.Context())
				if !missing {
					check(t, err)
					return
				}
				expectText(t, err, "ramp: check: table ramp_orders has no unique index of tx_hash alone")
			})
		}
	}
}

// Such columns show at the first order otherwise, or at its end.
func TestCheckNamesAColumnOfAnotherType(t *testing.T) {
	for _, c := range []struct {
		dialect               ramp.Dialect
		column, is, migration string
	}{
		{ramp.PostgreSQL, "accepted_at", "timestamp with time zone", "ALTER TABLE ramp_orders ALTER accepted_at TYPE timestamptz USING now();"},
		{ramp.PostgreSQL, "finished_at", "integer", "ALTER TABLE ramp_orders ALTER finished_at TYPE integer;"},
		{ramp.PostgreSQL, "intent", "jsonb", "ALTER TABLE ramp_orders ALTER intent TYPE jsonb USING intent::jsonb;"},
		{ramp.MySQL, "accepted_at", "datetime", "ALTER TABLE ramp_orders MODIFY accepted_at DATETIME NOT NULL;"},
		{ramp.MySQL, "finished_at", "int", "ALTER TABLE ramp_orders MODIFY finished_at INT NULL;"},
		{ramp.MySQL, "uuid", "binary", "ALTER TABLE ramp_orders MODIFY uuid BINARY(36) NOT NULL;"},
		{ramp.SQLite, "accepted_at", "TIMESTAMP", strings.ReplaceAll("DROP TABLE ramp_orders; "+
			strings.ReplaceAll(ramp.SQLite.Schema(), ") STRICT", ")"), "accepted_at  INTEGER", "accepted_at TIMESTAMP")},
	} {
		d := databaseOf(t, c.dialect)
		t.Run(d.name+"/"+c.column, func(t *testing.T) {
			err := newStore(t, newPlace(t, d, d.modes[0], c.migration), applyNothing).Check(t.Context())
			expectText(t, err, "ramp: check: column "+c.column+" of table ramp_orders is of type "+c.is+", or narrower")
		})
	}
}

// Each right that the store needs is missing once. SQLite has none.
func TestCheckNamesAMissingRight(t *testing.T) {
	for _, right := range []string{"SELECT", "INSERT", "UPDATE"} {
		for dialect, revoke := range map[ramp.Dialect]string{
			ramp.PostgreSQL: "REVOKE %[1]s ON %[2]s.ramp_orders FROM %[2]s",
			ramp.MySQL:      "REVOKE %[1]s ON %[2]s.* FROM %[2]s@'%%', %[2]s@localhost",
		} {
			d := databaseOf(t, dialect)
			t.Run(d.name+"/"+right, func(t *testing.T) {
				p := newPlace(t, d, d.modes[0])
				run(t, p.admin, fmt.Sprintf(revoke, right, p.schema))
				err := newStore(t, p, applyNothing).Check(t.Context())
				expectText(t, err, "ramp: check: table ramp_orders, which Dialect.Schema creates, is unusable for "+right, "denied")
			})
		}
	}
}

// A read-only user and a read-only replica cannot store orders.
func TestCheckOfADatabaseThatIsReadOnly(t *testing.T) {
	for dialect, statement := range map[ramp.Dialect]string{
		ramp.SQLite:     "PRAGMA query_only = 1",
		ramp.PostgreSQL: "SET default_transaction_read_only = on", // as on a standby
		ramp.MySQL:      "SET SESSION TRANSACTION READ ONLY",
	} {
		d := databaseOf(t, dialect)
		t.Run(d.name, func(t *testing.T) {
			p := newPlace(t, d, d.modes[0])
			if p.tidb {
				t.Skip("TiDB has no read-only transactions: error 1235")
			}
			p.db.SetMaxOpenConns(1)
			run(t, p.db, statement)
			err := newStore(t, p, applyNothing).Check(t.Context())
			t.Log(err)
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), "read") {
				t.Errorf("of a database that is read-only: %v", err)
			}
		})
	}
}

// A database that is not strict truncates what a narrow column cannot hold. The claim
// of a new order would then look like that of another call, and a mint would be signed
// as a repeat, but neither stored nor taken.
func TestAColumnThatIsTooNarrow(t *testing.T) {
	for _, c := range []struct {
		dialect ramp.Dialect
		column  string
		narrow  string // the migration
		mode    mode
	}{
		{ramp.MySQL, "claim", "ALTER TABLE ramp_orders MODIFY claim VARCHAR(25) NOT NULL;", mode{params: "&sql_mode=''"}},
		{ramp.MySQL, "session_id", "ALTER TABLE ramp_orders MODIFY session_id VARCHAR(255) NOT NULL;", mode{}},
		{ramp.MySQL, "intent", "ALTER TABLE ramp_orders MODIFY intent VARCHAR(4000) NOT NULL;", mode{}},
		{ramp.PostgreSQL, "claim", "ALTER TABLE ramp_orders ALTER claim TYPE varchar(25);", mode{}},
	} {
		d := databaseOf(t, c.dialect)
		t.Run(d.name+"/"+c.column, func(t *testing.T) {
			w := newWorld(t, newPlace(t, d, c.mode, c.narrow), nil)
			err := w.store.Check(t.Context())
			expectText(t, err, "ramp: check: column "+c.column+" of table ramp_orders is of type ", "or narrower than Dialect.Schema creates it")
			if c.column != "claim" {
				return
			}
			w.give("alice", "gold", 100)
			o := newOrder("alice", mint("gold", 5))
			for range 2 {
				w.expect(w.validate(o), "500 INTERNAL_ERROR")
			}
			w.books(moves{})
		})
	}
}
