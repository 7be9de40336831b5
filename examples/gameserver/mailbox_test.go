package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// What happens between an approval and its result, hours later, does not keep a grant or a
// give-back from being applied.
func TestAGrantNeverFails(t *testing.T) {
	for _, c := range []struct {
		what      string
		purse     int64
		direction ramp.Direction
		before    string // a statement about the player
		owns      int64
		waits     []int64
	}{
		{"a burn of a player who is in debt", math.MaxInt64, ramp.Burn,
			"UPDATE inventory SET balance = -500 WHERE item = 'item_gold'", -400, nil},
		{"a failed mint of a player who is in debt", math.MaxInt64, ramp.Mint,
			"UPDATE inventory SET balance = -500 WHERE item = 'item_gold'", -400, nil},
		{"a burn of a player whose purse is full", 1000, ramp.Burn,
			"UPDATE inventory SET balance = 950 WHERE item = 'item_gold'", 950, []int64{100}},
		{"a failed mint of a player whose purse is full", 1000, ramp.Mint,
			"UPDATE inventory SET balance = 1000 WHERE item = 'item_gold'", 1000, []int64{100}},
		{"a burn of a player whose column is near its end", math.MaxInt64, ramp.Burn,
			"UPDATE inventory SET balance = 9223372036854775800 WHERE item = 'item_gold'", math.MaxInt64 - 7,
			[]int64{100}},
		{"a failed mint of a player without a purse", math.MaxInt64, ramp.Mint,
			"DELETE FROM inventory", 0, []int64{100}},
	} {
		t.Run(c.what, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, address string) {
				shop := openShop(t, address, c.purse)
				alice := must(shop.game.login(t.Context(), "alice"))(t)
				must(shop.game.db.Exec("UPDATE inventory SET balance = 850 WHERE item = 'item_gold'"))(t)
				order := shop.accept(alice, c.direction, 100)
				must(shop.game.db.Exec(c.before))(t)
				shop.end(order, c.direction)
				equal(t, "the gold that alice owns", shop.gold("alice"), c.owns)
				equal(t, "what waits for her", fmt.Sprint(shop.waiting(alice)), fmt.Sprint(c.waits))
			})
		})
	}
}

// A player who is deleted with the sessions gets nothing, and nothing is lost: it waits under
// the session of the order.
func TestWhatADeletedPlayerIsOwedWaits(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shop := openShop(t, address, math.MaxInt64)
		alice := must(shop.game.login(t.Context(), "alice"))(t)
		order := shop.accept(alice, ramp.Mint, 100)
		must(shop.game.db.Exec("DELETE FROM inventory"))(t)
		must(shop.game.db.Exec("DELETE FROM sessions"))(t)
		shop.end(order, ramp.Mint)
		var session string
		var amount int64
		check(t, shop.game.db.QueryRow("SELECT session_id, amount FROM mailbox").Scan(&session, &amount))
		equal(t, "the session", session, alice.ID)
		equal(t, "the gold", amount, int64(100))
	})
}

// Each of two burns fits when it is accepted, and both together do not. What waits is taken
// once, when there is room for it.
func TestWhatDoesNotFitIsTakenOnceLater(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		shop := openShop(t, address, 1000)
		alice := must(shop.game.login(t.Context(), "alice"))(t)
		must(shop.game.db.Exec("UPDATE inventory SET balance = 850 WHERE item = 'item_gold'"))(t)
		for _, order := range []uuid.UUID{shop.accept(alice, ramp.Burn, 100), shop.accept(alice, ramp.Burn, 100)} {
			shop.end(order, ramp.Burn)
		}
		equal(t, "the gold that alice owns", shop.gold("alice"), int64(950))
		left := must(shop.game.takeMail(t.Context(), alice.ID))(t)
		equal(t, "what waits while the purse is full", len(left), 1)

		must(shop.game.db.Exec("UPDATE inventory SET balance = 100 WHERE item = 'item_gold'"))(t)
		again := must(shop.game.login(t.Context(), "alice"))(t) // another session of the same player
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				if _, err := shop.game.takeMail(t.Context(), again.ID); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		equal(t, "the gold that alice owns", shop.gold("alice"), int64(200))
		equal(t, "what waits", len(shop.waiting(alice)), 0)
	})
}

// testShop is a game on a database, and its store.
type testShop struct {
	t     *testing.T
	game  *game
	store ramp.Store
	ended int
}

func openShop(t *testing.T, address string, purse int64) *testShop {
	t.Helper()
	settings := &settings{database: address}
	game, store, err := settings.open(t.Context(), true)
	check(t, err)
	t.Cleanup(func() { check(t, game.db.Close()) })
	game.purse = purse
	return &testShop{t: t, game: game, store: store}
}

// accept accepts an order for gold.
func (s *testShop) accept(session ramp.Session, direction ramp.Direction, gold int64) uuid.UUID {
	s.t.Helper()
	return s.acceptItem(session, direction, itemGold, gold)
}

func (s *testShop) acceptItem(session ramp.Session, direction ramp.Direction, item string, n int64) uuid.UUID {
	s.t.Helper()
	items := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: item, Amount: ramp.NewAmount(n)}}
	tokens := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}}
	intent := ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: items, To: tokens}
	if direction == ramp.Burn {
		intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: tokens, To: items}
	}
	order := &ramp.ValidateRequest{UUID: uuid.New(), UserAddress: token, ProjectID: "project", Intent: intent}
	must(s.store.Update(s.t.Context(), order.UUID, ramp.Accept(session, order, time.Now())))(s.t)
	return order.UUID
}

// end ends an order as its result does: a mint failed, or a burn succeeded.
func (s *testShop) end(order uuid.UUID, direction ramp.Direction) {
	s.t.Helper()
	s.ended++
	status := 0
	if direction == ramp.Burn {
		status = 1
	}
	result := must(ramp.ParseResult(fmt.Appendf(nil,
		`{"uuid":%q,"tx_hash":"0x%064x","receipt":{"status":"0x%d"}}`, order, s.ended, status)))(s.t)
	must(s.store.Update(s.t.Context(), order, ramp.Finish(result, time.Now())))(s.t)
}

// gold returns how much gold a player owns.
func (s *testShop) gold(player string) int64 {
	s.t.Helper()
	return s.owns(player, itemGold)
}

// owns returns how many of an item a player owns, or 0 without a row.
func (s *testShop) owns(player, item string) (n int64) {
	s.t.Helper()
	query := "SELECT COALESCE(MAX(balance), 0) FROM inventory WHERE item = '" + item + "' AND player = '" + player + "'"
	check(s.t, s.game.db.QueryRow(query).Scan(&n))
	return n
}

// waiting returns the amounts in the mailbox of a player.
func (s *testShop) waiting(session ramp.Session) (amounts []int64) {
	s.t.Helper()
	for _, m := range must(s.game.mailFor(s.t.Context(), session.ID))(s.t) {
		amounts = append(amounts, m.Amount)
	}
	slices.Sort(amounts)
	return amounts
}
