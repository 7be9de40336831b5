package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"flag"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

var faults = flag.Bool("faults", false, "let every single fault happen in TestEveryInterleaving; it takes minutes")

// Every order moves its items once, in whatever order the statements of two servers reach the
// database. Run it with -faults before you change how items move: then something goes wrong, too.
func TestEveryInterleaving(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shop := openShop(t, address, math.MaxInt64) // creates the tables
		db, dialect := shop.game.db, shop.game.dialect
		storetest.TestInterleavings(t, storetest.Interleavings{
			Connector: connect(t, address),
			Dialect:   dialect.sql,
			Open: func(db *sql.DB) (ramp.Store, error) {
				game := &game{database: database{db: db, dialect: dialect}, purse: math.MaxInt64}
				return rampsql.New(rampsql.Config{DB: db, Dialect: dialect.sql, Apply: game.Apply})
			},
			Assets: []string{itemGem, itemGold},
			Give: func(ctx context.Context, session, item string, balance int64) error {
				err := shop.game.insertNew(ctx, db, "sessions", "id, player, token_hash, expires_at", session,
					session, "", 0)
				if err == nil {
					err = shop.game.insertNew(ctx, db, "inventory", "player, item, balance", session, item, balance)
				}
				return err
			},
			Balance: func(ctx context.Context, session, item string) (balance int64, err error) {
				err = db.QueryRowContext(ctx, shop.game.bind(`SELECT
					(SELECT COALESCE(SUM(balance), 0) FROM inventory WHERE player = ? AND item = ?) +
					(SELECT COALESCE(SUM(amount), 0) FROM mailbox WHERE session_id = ? AND item = ? AND taken = 0)`),
					session, item, session, item).Scan(&balance)
				return balance, err
			},
			NoFaults: !*faults,
		})
	})
}

// connect returns the connector of a value of -db.
func connect(t *testing.T, address string) driver.Connector {
	t.Helper()
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		return must(storetest.Connector("sqlite", "file:"+url.PathEscape(rest)+"?_txlock=immediate"))(t)
	case "mysql":
		config := must(mysql.ParseDSN(rest))(t)
		config.Logger = &mysql.NopLogger{} // it would log every connection that breaks
		return must(mysql.NewConnector(config))(t)
	}
	return must(storetest.Connector("pgx", address))(t)
}
