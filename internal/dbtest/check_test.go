package dbtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/token-ramp/ramp-go/rampsql"
)

// Check finds the problems of a database at startup, before the first order.

func TestCheckOfAGoodDatabase(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		check(t, newStore(t, p, applyNothing).Check(t.Context()))
	})
}

// These show at the first order otherwise, or at its end. Without its unique index, one
// transaction ends two orders, and another index does not help.
func TestCheckNamesWhatIsWrongWithTheTable(t *testing.T) {
	const (
		unusable   = "ramp: check: table ramp_orders, which Dialect.Schema creates, is unusable"
		noIndex    = "ramp: check: table ramp_orders has no unique index of tx_hash alone"
		drop       = "DROP INDEX ramp_orders_tx_hash;"
		twoColumns = "CREATE UNIQUE INDEX other ON ramp_orders (tx_hash, state);"
	)
	column := func(name, kind string) string {
		return "ramp: check: column " + name + " of table ramp_orders is of type " + kind + ", or narrower than Dialect.Schema creates it"
	}
	for _, c := range []struct {
		dialect   rampsql.Dialect // or "" for all
		migration string
		want      string // "" if nothing is wrong
		part      string // of the database's own message
	}{
		{"", "DROP TABLE ramp_orders;", unusable, "ramp_orders"},
		{"", "ALTER TABLE ramp_orders RENAME COLUMN reason TO why;", unusable, "reason"},
		{"", drop, noIndex, ""},
		{"", drop + twoColumns, noIndex, ""},
		{"", drop + "CREATE INDEX other ON ramp_orders (tx_hash);", noIndex, ""},
		{"", drop + twoColumns + "CREATE UNIQUE INDEX third ON ramp_orders (tx_hash);", "", ""},
		{"", drop + "CREATE UNIQUE INDEX ours ON ramp_orders (tx_hash);", "", ""},
		{"", "CREATE UNIQUE INDEX twice ON ramp_orders (tx_hash);", "", ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER accepted_at TYPE timestamptz USING now();", column("accepted_at", "timestamp with time zone"), ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER finished_at TYPE integer;", column("finished_at", "integer"), ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER intent TYPE jsonb USING intent::jsonb;", column("intent", "jsonb"), ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER claim TYPE varchar(25);", column("claim", "character varying"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY accepted_at DATETIME NOT NULL;", column("accepted_at", "datetime"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY finished_at INT NULL;", column("finished_at", "int"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY uuid BINARY(36) NOT NULL;", column("uuid", "binary"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY claim VARCHAR(25) NOT NULL;", column("claim", "varchar"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY session_id VARCHAR(255) NOT NULL;", column("session_id", "varchar"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY intent VARCHAR(4000) NOT NULL;", column("intent", "varchar"), ""},
		{rampsql.SQLite, strings.ReplaceAll("DROP TABLE ramp_orders; "+strings.ReplaceAll(rampsql.SQLite.Schema(), ") STRICT", ")"),
			"accepted_at  INTEGER", "accepted_at TIMESTAMP"), column("accepted_at", "TIMESTAMP"), ""},
	} {
		for _, d := range databases {
			if c.dialect != "" && c.dialect != d.dialect {
				continue
			}
			t.Run(d.name+"/"+c.migration, func(t *testing.T) {
				migration := c.migration
				if d.dialect == rampsql.MySQL {
					migration = strings.Replace(migration, drop, "DROP INDEX ramp_orders_tx_hash ON ramp_orders;", 1)
				}
				err := newStore(t, newPlace(t, d, d.modes[0], migration), applyNothing).Check(t.Context())
				if c.want == "" {
					check(t, err)
					return
				}
				expectText(t, err, c.want, c.part)
			})
		}
	}
}

// Each right that the store needs is missing once. SQLite has none.
func TestCheckNamesAMissingRight(t *testing.T) {
	for _, right := range []string{"SELECT", "INSERT", "UPDATE"} {
		for dialect, revoke := range map[rampsql.Dialect]string{
			rampsql.PostgreSQL: "REVOKE %[1]s ON %[2]s.ramp_orders FROM %[2]s",
			rampsql.MySQL:      "REVOKE %[1]s ON %[2]s.* FROM %[2]s@'%%', %[2]s@localhost",
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
	eachDatabase(t, func(t *testing.T, p *place) {
		if p.tidb {
			t.Skip("TiDB has no read-only transactions: error 1235")
		}
		p.db.SetMaxOpenConns(1)
		run(t, p.db, map[rampsql.Dialect]string{
			rampsql.SQLite:     "PRAGMA query_only = 1",
			rampsql.PostgreSQL: "SET default_transaction_read_only = on", // as on a standby
			rampsql.MySQL:      "SET SESSION TRANSACTION READ ONLY",
		}[p.dialect])
		err := newStore(t, p, applyNothing).Check(t.Context())
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "read") {
			t.Errorf("of a database that is read-only: %v", err)
		}
	})
}

// A database that is not strict truncates what a narrow column cannot hold. The claim
// of a new order would then look like that of another call, and a mint would be signed
// as a repeat, but neither stored nor taken.
func TestAClaimThatIsTruncatedIsNoRepeat(t *testing.T) {
	for dialect, narrow := range map[rampsql.Dialect]string{
		rampsql.MySQL:      "ALTER TABLE ramp_orders MODIFY claim VARCHAR(25) NOT NULL;",
		rampsql.PostgreSQL: "ALTER TABLE ramp_orders ALTER claim TYPE varchar(25);",
	} {
		d, m := databaseOf(t, dialect), mode{}
		if dialect == rampsql.MySQL {
			m.params = "&sql_mode=''"
		}
		t.Run(d.name, func(t *testing.T) {
			w := newWorld(t, newPlace(t, d, m, narrow), nil)
			w.give("alice", "gold", 100)
			o := newOrder("alice", mint("gold", 5))
			for range 2 {
				w.expect(w.validate(o), "500 INTERNAL_ERROR")
			}
			w.books(moves{})
		})
	}
}
