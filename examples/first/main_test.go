package main

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

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
				ramp.Must(store.Update(t.Context(), r.UUID, ramp.Finish(result, time.Now())))
			}
			if !maps.Equal(g.items, c.after) {
				t.Errorf("the player has %v, expected %v", g.items, c.after)
			}
		})
	}
}
