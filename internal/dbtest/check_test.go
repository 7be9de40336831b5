package dbtest

import (
	"errors"
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

func TestCheckNamesTheWrongDialect(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		for _, d := range databases {
			if d.dialect == p.dialect {
				continue
			}
			store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: p.db, Dialect: d.dialect, Apply: applyNothing})
			check(t, err)
			err = store.Check(t.Context())
			t.Log(err)
			expectText(t, err, "ramp: check: the dialect is "+d.name+", but the database does not answer like it")
		}
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

func TestCheckOfADatabaseThatIsDown(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		check(t, p.db.Close())
		err := store.Check(t.Context())
		if err == nil || strings.Contains(err.Error(), "dialect") || errors.Unwrap(err) == nil {
			t.Errorf("of a database that is closed: %v", err)
		}
	})
}
