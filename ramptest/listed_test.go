package ramptest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// named is a shop that knows its player by name.
type named struct {
	*shop
	name string
}

func (n *named) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	player, err := n.shop.Assets(ctx, s)
	player.Name, player.PlayerID = n.name, "player-1"
	return player, err
}

// After a restart, lists and pages show of an order what they showed before, its player's
// name, too, although the game was not asked since.
func TestAnEndedOrderIsShownAfterARestart(t *testing.T) {
	game := &named{newShop(), "alice"}
	c := newCounterOf(t, game, kept(t))
	c.shop = game.shop
	minted := c.mint(t)
	c.service.Advance(time.Second)
	c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	list, page := c.page(t, "/"), c.pageOf(t, minted)
	_, reported := c.control(t, "GET", "/control/orders", "")
	require.Len(t, reported.Orders, 2)
	require.Equal(t, "player-1", reported.Orders[0].PlayerID)
	orders := list[strings.Index(list, "All 2"):]
	require.Contains(t, orders, "Mint 10 tokens "+minted.UUID.String()[:8]+" −100 item_gold alice")

	c.restart(t, c.handler)
	assert.Contains(t, c.page(t, "/"), orders)
	assert.Contains(t, c.page(t, "/?q=alice+received"), "All 1 ")
	before, _, _ := strings.Cut(page, " Now: as reported by the game at") // the game was not asked since
	assert.True(t, strings.HasPrefix(c.pageOf(t, minted), before))
	_, again := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, reported.Orders, again.Orders)
}

// What happens after a restart changes the verdict on an order that had ended before.
func TestTheVerdictOnAnEndedOrderIsNotStale(t *testing.T) {
	game := &named{newShop(), "alice"}
	c := newCounterOf(t, game, kept(t), reporting)
	c.shop = game.shop
	order := c.mint(t)
	other := c.mint(t)
	c.service.Advance(time.Minute)
	done := func(name string) string {
		return "−100 item_gold " + name
	}
	require.Equal(t, 2, strings.Count(c.page(t, "/"), done("alice")))

	c.restart(t, c.handler, reporting)
	game.name = "bob"
	ramp.Must(c.service.Assets(t.Context(), c.session))
	assert.Equal(t, 2, strings.Count(c.page(t, "/"), done("bob")), "the player has another name")
	assert.Contains(t, c.page(t, "/?q=bob+received"), "All 2 ")

	c.restart(t, c.handler, reporting)
	require.NotContains(t, c.page(t, "/"), "Disputed.")
	status, _ := c.control(t, "POST", "/control/orders/"+order.UUID.String()+"/send", `{"outcome":"failed"}`)
	require.Equal(t, 200, status)
	for range 2 {
		list := c.page(t, "/")
		assert.Contains(t, list, "Disputed. The game confirmed two outcomes; the first of them stands: succeeded.")
		assert.Equal(t, 2, strings.Count(list, "−100 item_gold bob"))
		assert.Contains(t, list, "Needs attention 1 Waiting 0 Done 1", "the other order")
		c.restart(t, c.handler, reporting)
	}

	// A game that takes the assets of an ended order again.
	c.restart(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ramp.PathResult {
			c.shop.mu.Lock()
			c.shop.gold -= 100
			c.shop.mu.Unlock()
		}
		c.handler.ServeHTTP(w, r)
	}), reporting, func(c *ramptest.Config) { c.Settle = -1 })
	status, _ = c.control(t, "POST", "/control/orders/"+other.UUID.String()[:8]+"/send", `{}`)
	require.Equal(t, 200, status)
	for range 2 {
		assert.Contains(t, c.page(t, "/?show=attention"), "The game took 100 item_gold too much.")
		c.restart(t, c.handler, reporting)
	}
}

// An effect that comes during a call about another order is not forgotten by a restart.
func TestALateEffectIsKept(t *testing.T) {
	var failed *ramptest.Order
	c := newCounter(t, kept(t), reporting)
	game := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ramp.PathResult && failed != nil {
			c.shop.mu.Lock()
			if !c.shop.done[failed.UUID] {
				c.shop.done[failed.UUID] = true
				c.shop.gold += 100
			}
			c.shop.mu.Unlock()
		}
		c.handler.ServeHTTP(w, r)
	})
	c.restart(t, game, reporting)
	c.shop.answers = []error{errors.New("the database is unreachable")}
	order := c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	c.mint(t)
	failed = order
	c.service.Advance(2 * time.Second)
	require.Equal(t, int64(900), c.shop.owns())
	c.restart(t, game, reporting)
	c.service.Advance(time.Hour)
	assert.Empty(t, c.service.Imbalances())
	assert.Contains(t, c.pageOf(t, order), "The transaction failed. The game gave back 100 item_gold.")
}

// The terms of an ended order are there after a restart: for the same order again, for
// another like it, and for its contract.
func TestTheTermsOfAnEndedOrderAreKept(t *testing.T) {
	c := newCounter(t, kept(t))
	asked := request()
	asked.Intent.Token = swordToken
	asked.Intent.Materials[0].IsNonFungible = true
	started := ramp.Must(c.client.Initialize(t.Context(), asked))
	order := ramp.Must(c.service.Mint(t.Context(), started.UUID, c.session, ramp.NewAmount(2)))
	c.service.Advance(2 * time.Second)
	c.initialize(t) // the newest UUID
	holds := func() int64 {
		node := nodeOf(t, c.service)
		n := ramp.Must(node.TokenBalance(t.Context(), common.HexToAddress(swordToken), c.service.Wallet(c.session), ramp.Latest))
		return n.Int64()
	}
	require.Equal(t, int64(1002), holds(), "swords, and not fractions of them")

	c.restart(t, c.handler)
	assert.Equal(t, int64(1002), holds())
	same, err := c.service.Mint(t.Context(), order.UUID, c.session, ramp.NewAmount(2))
	require.NoError(t, err, "the same request is the same order")
	assert.Equal(t, order.TxHash, same.TxHash)

	c.restart(t, c.handler)
	c.shop.gold = 1000
	status, _ := c.control(t, "POST", "/control/orders", fmt.Sprintf(`{"do":"mint","like":%q}`, order.UUID))
	require.Equal(t, 200, status)
	c.service.Advance(2 * time.Second)
	assert.Greater(t, holds(), int64(1002))
}

func TestEndedOrdersAreForgottenAfterARestart(t *testing.T) {
	three := func(c *ramptest.Config) { c.Desk.KeepOrders = 3 }
	c := newCounter(t, kept(t), three)
	for range 2 {
		for range 3 {
			c.shop.gold = 1000
			c.mint(t)
			c.service.Advance(time.Minute)
		}
		c.restart(t, c.handler, three)
	}
	c.mint(t)
	c.service.Advance(time.Minute)
	c.initialize(t) // forgets
	_, before := c.control(t, "GET", "/control/orders", "")
	assert.LessOrEqual(t, before.Total, 4)
	c.restart(t, c.handler, three)
	_, after := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, before.Orders, after.Orders)
}
