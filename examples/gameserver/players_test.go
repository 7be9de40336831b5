package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// change is a change of players or items, made while alice owns 900 gold. She gets 100 gold twice, from a
// mint that fails and a burn that succeeds.
type change struct {
	row   string // of docs/players-and-items.md, which says what to do
	makes func(*testShop, *sql.Tx)

	player, item string // who owns what alice's gold has become, if it is not she, or not gold

	safe  int64   // what that player owns afterwards, if no order waited
	waits []int64 // what comes to the mailbox, if both orders waited
	after int64   // what the player owns then, after taking what the mailbox gives
}

var changes = []change{
	{row: "merge two players", makes: mergeIntoBob, player: "bob", safe: 2100, after: 2100},
	{row: "rename a player", makes: runs(ofEachTable("UPDATE TABLE SET player = 'alicia' WHERE player = 'alice'")...),
		player: "alicia", safe: 1100, after: 1100},
	{row: "rename an item", makes: runs("UPDATE inventory SET item = 'item_coin' WHERE item = 'item_gold'",
		"UPDATE mailbox SET item = 'item_coin' WHERE item = 'item_gold'"),
		item: "item_coin", safe: 1100, waits: []int64{100, 100}, after: 900},
	{row: "remove an item from the game", makes: runs("DELETE FROM inventory WHERE item = 'item_gold'",
		"UPDATE mailbox SET taken = 1 WHERE item = 'item_gold'"), waits: []int64{100, 100}},
	// 1,100 gold become 11,000. What comes back afterwards is too little.
	{row: "revalue an item", makes: runs("UPDATE inventory SET balance = balance * 10 WHERE item = 'item_gold'",
		"UPDATE mailbox SET amount = amount * 10 WHERE item = 'item_gold' AND taken = 0"), safe: 11_000, after: 9200},
	{row: "reset a season", makes: resetSeason, waits: []int64{100, 100}, after: 200},
}

// runs returns a change that runs statements.
func runs(statements ...string) func(*testShop, *sql.Tx) {
	return func(shop *testShop, tx *sql.Tx) {
		for _, statement := range statements {
			must(tx.Exec(statement))(shop.t)
		}
	}
}

// ofEachTable returns a statement for each table that names players.
func ofEachTable(statement string) (statements []string) {
	for _, table := range []string{"inventory", "swords", "wallets", "pages", "sessions"} {
		statements = append(statements, strings.Replace(statement, "TABLE", table, 1))
	}
	return statements
}

// mergeIntoBob adds what alice owns to what bob owns, and gives him all else that names her.
func mergeIntoBob(shop *testShop, tx *sql.Tx) {
	runs("UPDATE inventory SET balance = balance + (SELECT a.balance FROM inventory a"+
		" WHERE a.player = 'alice' AND a.item = inventory.item) WHERE player = 'bob'",
		"DELETE FROM inventory WHERE player = 'alice'")(shop, tx)
	runs(ofEachTable("UPDATE TABLE SET player = 'bob' WHERE player = 'alice'")...)(shop, tx)
}

// resetSeason lets all players begin with nothing. From now on, what an order of the old season brings
// back goes to the mailbox.
func resetSeason(shop *testShop, tx *sql.Tx) {
	runs("UPDATE inventory SET balance = 0", "UPDATE mailbox SET taken = 1")(shop, tx)
	began := time.Now()
	shop.store = must(rampsql.New(rampsql.Config{DB: shop.game.db, Dialect: shop.game.dialect.sql,
		Apply: func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if step.Effect.Kind == ramp.Take || !step.Order.AcceptedAt.Before(began) {
				return shop.game.Apply(ctx, tx, step)
			}
			for _, item := range step.Effect.Assets {
				err := shop.game.toMailbox(ctx, tx, step.Order, item.ID, must(item.Amount.Int64())(shop.t))
				if err != nil {
					return err
				}
			}
			return nil
		}}))(shop.t)
}

// Each change is made when no order waits, when something waits in the mailbox, and while orders wait.
func TestChangesOfPlayersAndItems(t *testing.T) {
	for _, c := range changes {
		says(t, document(t, "players-and-items.md"), "\n| "+c.row)
		for _, when := range []string{"no order waits", "the mailbox has it", "orders wait"} {
			t.Run(c.row+" while "+when, func(t *testing.T) {
				t.Parallel()
				c.test(t, when)
			})
		}
	}
}

func (c change) test(t *testing.T, when string) {
	shop := openShop(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), 1_000_000)
	alice, _ := loggedIn(t, shop.game, "alice"), loggedIn(t, shop.game, "bob")
	must(shop.game.db.Exec("UPDATE inventory SET balance = 1000"))(t)
	mint, burn := shop.accept(alice, ramp.Mint, 100), shop.accept(alice, ramp.Burn, 100)
	end := func() { shop.end(mint, ramp.Mint); shop.end(burn, ramp.Burn) }
	switch when {
	case "no order waits":
		end()
	case "the mailbox has it":
		shop.game.purse = 900
		end()
		shop.game.purse = 1_000_000
	}
	tx := must(shop.game.db.Begin())(t)
	c.makes(shop, tx)
	check(t, tx.Commit())
	want := c.safe
	if when == "orders wait" {
		want = c.after
		end()
		equal(t, "the mailbox", fmt.Sprint(shop.waiting(alice)), fmt.Sprint(c.waits))
	}
	_, err := shop.game.takeMail(t.Context(), alice.ID)
	check(t, err)
	equal(t, "what is owned", shop.owns(cmp.Or(c.player, "alice"), cmp.Or(c.item, itemGold)), want)
}

// A call that had begun when the shop was closed is approved after nothing waited. The command says until when.
func TestAClosedShopWaitsForTheCallsThatHadBegun(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	shop := openShop(t, address, 1000)
	alice := loggedIn(t, shop.game, "alice")
	wallet := common.HexToAddress("0xa11ce")
	_, query, _ := strings.Cut(document(t, "players-and-items.md"), "```sql\n")
	query, _, _ = strings.Cut(query, ";")
	waits := func() (n int) {
		t.Helper()
		check(t, shop.game.db.QueryRow(query).Scan(&n))
		return n
	}
	equal(t, "whether a call begins", binds(t, shop.game, alice, wallet), true)
	printed := turn(t, "close", address)
	equal(t, "orders that wait", waits(), 0)
	shop.accept(alice, ramp.Burn, 100) // as the call goes on
	equal(t, "orders that wait then", waits(), 1)
	_, until, _ := strings.Cut(strings.TrimSpace(printed), "The last signature leaves before ")
	end := must(time.Parse(time.RFC3339, strings.TrimSuffix(until, ".")))(t)
	if end.Before(time.Now().Add(callDeadline)) {
		t.Errorf("a call may last until %s, and the command says %s", time.Now().Add(callDeadline), end)
	}
	if err := shop.game.bindWallet(t.Context(), alice, wallet); err == nil {
		t.Error("another call begins")
	}
}

// What came back under the old name of an item is renamed as soon as no order waits.
func TestWhatCameBackUnderAnOldNameIsRenamed(t *testing.T) {
	shop := openShop(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), 1_000_000)
	alice := loggedIn(t, shop.game, "alice")
	must(shop.game.db.Exec("UPDATE inventory SET balance = 1000"))(t)
	order := shop.accept(alice, ramp.Mint, 100)
	must(shop.game.db.Exec("UPDATE inventory SET item = 'item_coin' WHERE item = 'item_gold'"))(t)
	shop.end(order, ramp.Mint)
	must(shop.game.db.Exec("UPDATE mailbox SET item = 'item_coin' WHERE item = 'item_gold'"))(t)
	left := must(shop.game.takeMail(t.Context(), alice.ID))(t)
	equal(t, "what waits", len(left), 0)
	equal(t, "the coins", shop.owns("alice", "item_coin"), 1000)
}

// Whoever stays after a merge has also the sword that an order had set aside, and the wallet.
func TestAMergeIsOfAllThatNamesAPlayer(t *testing.T) {
	shop := openShop(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), 1_000_000)
	alice, bob := loggedIn(t, shop.game, "alice"), loggedIn(t, shop.game, "bob")
	wallet := common.HexToAddress("0xa11ce")
	equal(t, "whether alice has the wallet", binds(t, shop.game, alice, wallet), true)
	order := shop.acceptItem(alice, ramp.Mint, itemSword, 1)
	tx := must(shop.game.db.Begin())(t)
	mergeIntoBob(shop, tx)
	check(t, tx.Commit())
	shop.end(order, ramp.Mint)
	equal(t, "the swords of both", len(swordsOf(t, shop.game.db, "bob")), 2*startingSwords)
	for _, s := range []ramp.Session{alice, bob} {
		equal(t, "whether the wallet is that of the session", binds(t, shop.game, s, wallet), true)
	}
}
