package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The service delivers each result at least once. Here it does three times, and each effect happens once.
func TestFiveOrders(t *testing.T) {
	slog.SetDefault(ramptest.Logger(t)) // without a logger of their own, handlers and clients use the default
	g := newGame()
	key, err := ramp.TextKey("key of the console")
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	t.Cleanup(server.Close)
	service := ramptest.Start(t, ramptest.Config{
		Key: key, Validator: signer.Address(), Game: "http://" + server.Listener.Addr().String()})
	handler, client := g.connect(service.URL(), key, signer)
	server.Config.Handler = handler
	server.Start()

	owns := func() string { // as the service reads it
		player, err := service.Assets(t.Context(), g.alice)
		require.NoError(t, err)
		owned := map[string]string{}
		for _, asset := range player.Assets {
			owned[asset.ID] = asset.Balance.String()
		}
		return owned["gold"] + "/" + owned["gem"]
	}
	table := "What alice owns, as gold/gems:\n\n" +
		"order                    tokens before   validated result  again   again\n"
	for _, order := range []struct {
		name string
		play func(context.Context, uuid.UUID, ramp.Session, ramp.Amount,
			...ramptest.Fault) (*ramptest.PlacedOrder, error)
		tokens  int64
		outcome ramptest.Outcome
		// What alice owns: before, when the game has approved the order, and after each delivery of its result.
		before, validated, finished string
	}{
		{"mint", service.Mint, 1, ramptest.Succeeded, "1000/10", "900/9", "900/9"},
		{"mint, transaction fails", service.Mint, 2, ramptest.Failed, "900/9", "700/7", "900/9"},
		{"burn", service.Burn, 1, ramptest.Succeeded, "900/9", "900/9", "1000/10"},
		{"burn, transaction fails", service.Burn, 1, ramptest.Failed, "1000/10", "1000/10", "1000/10"},
		{"mint", service.Mint, 3, ramptest.Succeeded, "1000/10", "700/7", "700/7"},
	} {
		require.Equal(t, order.before, owns())
		started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "chest"})
		require.NoError(t, err)
		played, err := order.play(t.Context(), started.UUID, g.alice, ramp.NewAmount(order.tokens))
		require.NoError(t, err)
		require.Equal(t, order.validated, owns())
		row := fmt.Sprintf("%-24s %-6d %-8s %-9s", order.name, order.tokens, order.before, order.validated)
		for range 3 {
			require.NoError(t, service.Deliver(t.Context(), played, order.outcome))
			require.Equal(t, order.finished, owns())
			row += fmt.Sprintf(" %-7s", order.finished)
		}
		table += strings.TrimSpace(row) + "\n"
	}
	t.Log(table)
}

// Of two items, all are taken or none: the first one is not gone if the second is missing. A grant
// reduces a debt and needs no item that is there.
func TestApplyMovesAllItemsOrNone(t *testing.T) {
	asset := func(id string, amount int64) ramp.IntentAsset {
		return ramp.IntentAsset{Type: ramp.TypeAsset, ID: id, Amount: ramp.NewAmount(amount)}
	}
	price := []ramp.IntentAsset{asset("gold", 100), asset("gem", 1)}
	token := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: common.Address{1}.Hex(), Amount: ramp.NewAmount(1)}}
	for name, c := range map[string]struct {
		owned, after map[string]int64
		burn         bool
		code         ramp.Code
	}{
		"a mint without the second item": {
			owned: map[string]int64{"gold": 100, "gem": 0}, after: map[string]int64{"gold": 100, "gem": 0},
			code: "INVALID_BALANCE"},
		"a mint without the first item": {
			owned: map[string]int64{"gold": 99, "gem": 1}, after: map[string]int64{"gold": 99, "gem": 1},
			code: "INVALID_BALANCE"},
		"a mint of all": {
			owned: map[string]int64{"gold": 100, "gem": 1}, after: map[string]int64{"gold": 0, "gem": 0}},
		"a burn of a player in debt, who has no gem": {
			owned: map[string]int64{"gold": -500}, after: map[string]int64{"gold": -400, "gem": 1}, burn: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &game{items: maps.Clone(c.owned)}
			store := &ramp.MemoryStore{Apply: g.Apply}
			r := &ramp.ValidateRequest{UUID: uuid.New(), ProjectID: "project-1", UserAddress: common.Address{2}.Hex(),
				Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: price, To: token}}
			if c.burn {
				r.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: token, To: price}
			}
			_, err := store.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: "alice"}, r, time.Now()))
			var rejected *ramp.Rejection
			if c.code == "" && err != nil || c.code != "" && (!errors.As(err, &rejected) || rejected.Code != c.code) {
				t.Fatalf("got %v, expected %q", err, c.code)
			}
			if c.burn {
				result := &ramp.Result{UUID: r.UUID, TxHash: common.Hash{3}.Hex(),
					Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)}}
				must(store.Update(t.Context(), r.UUID, ramp.Finish(result, time.Now())))(t)
			}
			if !maps.Equal(g.items, c.after) {
				t.Errorf("the player has %v, expected %v", g.items, c.after)
			}
		})
	}
}

// must returns what a function returned, and ends the test if it returned an error: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
