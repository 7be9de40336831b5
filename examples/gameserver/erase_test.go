package main

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// everyRow returns the rows of all tables, as text.
func everyRow(t *testing.T, address string) string {
	t.Helper()
	db := handle(t, address)
	var all strings.Builder
	tables := []string{"ramp_orders", "ramp_refusals"}
	for _, table := range regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`).FindAllStringSubmatch(schema+
		pagesSchema, -1) {
		tables = append(tables, table[1])
	}
	for _, table := range tables {
		rows := must(db.Query("SELECT * FROM " + table))(t)
		columns := must(rows.Columns())(t)
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			check(t, rows.Scan(into...))
			fmt.Fprintf(&all, "%s: %s\n", table, values)
		}
		check(t, rows.Err())
		check(t, rows.Close())
	}
	return all.String()
}

// After a player was erased, no row of any table has the name, a session or the wallet, and another
// player's rows are as before.
func TestAPlayerIsErased(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shop := openShop(t, address, 1000)
		shop.game.caps = caps{itemGold: {1e6, 1e6, 1e6, 1e6}}
		alice, again, bob := loggedIn(t, shop.game, "alice"), loggedIn(t, shop.game, "alice"),
			loggedIn(t, shop.game, "bob")
		check(t, shop.game.insertNew(t.Context(), shop.game.db,
			"wallets", "wallet, player", "0xa11ce", "alice"))
		must(shop.game.openPage(t.Context(), alice.ID))(t)
		for _, s := range []ramp.Session{alice, bob} {
			shop.end(shop.accept(s, ramp.Mint, 100), ramp.Mint)
			shop.end(shop.accept(s, ramp.Burn, 100), ramp.Burn) // which waits in the mailbox
		}
		erase := func(flags ...string) (string, error) {
			decision := []string{"erase", "-db", address, "-project", "project", "-network", "testnet",
				"-player", "alice", "-who", "bob", "-reason", "case 17"}
			printed, _, err := desk(t, nil, append(decision, flags...)...)
			return printed, err
		}
		_, err := erase()
		day := time.Now().UTC().Add(8 * 24 * time.Hour).Format(time.DateOnly)
		says(t, fmt.Sprint(err), "less than a week ago: try again on "+day)
		must(shop.game.db.Exec("UPDATE ramp_orders SET finished_at = finished_at - 700000000"))(t)
		waits := shop.accept(again, ramp.Mint, 100)
		_, err = erase()
		says(t, fmt.Sprint(err), waits.String()+" waits")
		shop.end(waits, ramp.Mint)
		must(shop.game.db.Exec("UPDATE ramp_orders SET finished_at = finished_at - 700000000"))(t)

		before := everyRow(t, address)
		says(t, before, "alice", alice.ID, again.ID, "0xa11ce")
		_, err = erase() // without a node
		says(t, fmt.Sprint(err), "nobody can tell whether a transaction on the chain belongs to order")
		equal(t, "rows after an error", everyRow(t, address), before)
		printed, err := erase("-without-evidence")
		check(t, err)
		equal(t, "printed", printed, "Orders made anonymous: 3. The rows of the player are deleted.\n")
		after := everyRow(t, address)
		for _, text := range []string{"alice", alice.ID, again.ID, "0xa11ce"} {
			if strings.Contains(after, text) {
				t.Errorf("%q is still there:\n%s", text, after)
			}
		}
		equal(t, "rows of bob", strings.Count(after, bob.ID), strings.Count(before, bob.ID))
		_, err = erase()
		says(t, fmt.Sprint(err), `there is no player "alice"`)
	})
}

// Two people erase a player at the same moment. The player's rows are gone, each order is counted once, and another
// player's rows are as before.
func TestTwoPeopleEraseAPlayerAtTheSameMoment(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shop := openShop(t, address, 1000)
		alice, bob := loggedIn(t, shop.game, "alice"), loggedIn(t, shop.game, "bob")
		must(shop.game.openPage(t.Context(), alice.ID))(t)
		for _, s := range []ramp.Session{alice, bob, alice} {
			shop.end(shop.accept(s, ramp.Mint, 100), ramp.Mint)
			shop.end(shop.accept(s, ramp.Burn, 100), ramp.Burn)
		}
		must(shop.game.db.Exec("UPDATE ramp_orders SET finished_at = finished_at - 700000000"))(t)
		before := everyRow(t, address)
		said, failed := make([]string, 2), make([]error, 2)
		var both sync.WaitGroup
		for n := range said {
			both.Go(func() {
				said[n], _, failed[n] = desk(t, nil, "erase", "-db", address, "-project", "project", "-network",
					"testnet", "-player", "alice", "-who", "bob", "-reason", "case 17", "-without-evidence")
			})
		}
		both.Wait()
		erased := 0
		for n, printed := range said {
			if failed[n] != nil { // it began after the other one had ended
				says(t, failed[n].Error(), `there is no player "alice"`)
				continue
			}
			var orders int
			must(fmt.Sscanf(printed, "Orders made anonymous: %d.", &orders))(t)
			erased += orders
		}
		equal(t, "orders made anonymous", erased, 4)
		after := everyRow(t, address)
		for _, text := range []string{"alice", alice.ID} {
			if strings.Contains(after, text) {
				t.Errorf("%q is still there:\n%s", text, after)
			}
		}
		equal(t, "rows of bob", strings.Count(after, bob.ID), strings.Count(before, bob.ID))
	})
}
