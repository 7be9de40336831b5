package dbtest

import (
	"context"
	"database/sql/driver"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// This file plays databases as tests of a studio get them; docs/testing.md says which work.

// Each worker has a copy of a template, which it empties for its next test.
func TestACopyOfATemplateIsADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	address := must.Get(url.Parse(addressOf(t, envPostgreSQL)))(t)
	admin := open(t, "pgx", address.String())
	named := func(name string) *place {
		p := &place{database: databaseOf(t, rampsql.PostgreSQL)}
		at := *address
		at.Path = "/" + name
		t.Cleanup(func() { run(t, admin, "DROP DATABASE "+name) })
		p.db = open(t, "pgx", at.String())
		return p
	}
	template := "ramp_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	run(t, admin, "CREATE DATABASE "+template)
	p := named(template)
	run(t, p.db, p.dialect.Schema()+tables)
	check(t, p.db.Close()) // otherwise nobody may copy it
	for _, worker := range []string{"_1", "_2"} {
		run(t, admin, "CREATE DATABASE "+template+worker+" TEMPLATE "+template)
		p := named(template + worker)
		s := studio{db: p.db, dialect: p.dialect}
		store := newStore(t, p, s.Apply)
		check(t, store.Check(t.Context(), ramp.Testnet))
		for range 2 {
			run(t, p.db, "DELETE FROM ramp_orders; DELETE FROM ramp_refusals; DELETE FROM holdings; "+
				"INSERT INTO holdings (session_id, asset, amount) VALUES ('alice', 'gold', 1000)")
			equal(t, "findings", len(play(t, newHandler(t, s, store), "alice", true)), 0)
			var gold int64
			check(t, p.db.QueryRow("SELECT amount FROM holdings").Scan(&gold))
			equal(t, "gold of the only player", gold, 900)
		}
	}
}

// A test that rolls back all that it did gives the store a connection that is in a transaction. No order would
// be committed.
func TestAStoreInATransactionOfATestIsNamed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		expectText(t, inOneTransaction(t, p).Check(t.Context(), ramp.Testnet), nested)
	})
}

// On MySQL, the store commits by autocommit. So the first order ends the transaction of the test.
func TestTheFirstOrderInATransactionOfATestIsNamed(t *testing.T) {
	t.Parallel()
	o := newOrder("alice", mint("gold", 5))
	_, err := inOneTransaction(t, placeOn(t, rampsql.MySQL)).Update(t.Context(), o.id, o.accept())
	expectText(t, err, nested)
}

const nested = "the connection is in a transaction already, such as one that a test rolls back at its end: " +
	"give each test a database of its own"

// inOneTransaction returns a store whose only connection is in a transaction.
func inOneTransaction(t *testing.T, p *place) *rampsql.Store {
	t.Helper()
	p.through(t, func(conn driver.Conn) driver.Conn {
		c := &inTransaction{conn.(sqliteConn)}
		check(t, c.exec("BEGIN"))
		return c
	})
	p.db.SetMaxOpenConns(1)
	return newStore(t, p, applyNothing)
}

// inTransaction is a connection whose transactions are savepoints, because it is in a transaction.
type inTransaction struct{ sqliteConn }

func (c *inTransaction) exec(statement string) error {
	_, err := c.ExecContext(context.Background(), statement, nil)
	return err
}

func (c *inTransaction) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return savepoint{c}, c.exec("SAVEPOINT of_test")
}

type savepoint struct{ c *inTransaction }

func (s savepoint) Commit() error   { return s.c.exec("RELEASE SAVEPOINT of_test") }
func (s savepoint) Rollback() error { return s.c.exec("ROLLBACK TO SAVEPOINT of_test") }
