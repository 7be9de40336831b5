package main

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

const swordToken = "0x0000000000000000000000000000000000005b0d"

// swordsOf returns the IDs of the swords that a player can use.
func swordsOf(t *testing.T, db *sql.DB, player string) (ids []string) {
	t.Helper()
	rows := must(db.Query("SELECT id FROM swords WHERE order_id = '' AND player = '" + player + "' ORDER BY id"))(t)
	defer rows.Close()
	for rows.Next() {
		var id string
		check(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	check(t, rows.Err())
	return ids
}

// The interface has no ID of a single sword. The same sword comes back all the same, both
// when the mint fails and when the token that it became is burned.
func TestASwordIsSetAsideForItsOrder(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		listen := freeAddress(t)
		service, client := serviceWith(t, hmacKey, validatorKey,
			ramptest.Config{PerOrder: true, Game: "http://" + listen})
		p := newProcess(t, address, append(real(), "RAMP_RPC_URL="+service.RPCURL(ramp.Testnet)), []string{
			"-addr", listen, "-project", "project", "-token", token, "-network", "testnet", "-sword-token", swordToken,
			// only the chain knows which token a sword became
			"-chain-id", "7002", "-payers", service.Payer().Hex(), "-contracts", token + "," + swordToken})
		alice := login(t, p.url, "alice")
		db := handle(t, address)
		before := swordsOf(t, db, "alice")
		if len(before) != 2 {
			t.Fatalf("a new player owns %q", before)
		}
		start := func(n int64) uuid.UUID { // the amounts of this service are those of the whole order
			t.Helper()
			item := ramp.Item{ID: "item_sword", Amount: ramp.NewAmount(n), IsNonFungible: true,
				IconURL: "https://example.com/sword.png"}
			return must(client.Initialize(t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
				Network: ramp.Testnet, ProjectID: "project", Token: swordToken, Materials: []ramp.Item{item},
				Outputs: []ramp.Item{item}}}))(t).UUID
		}
		is := func(player string, want ...string) {
			t.Helper()
			if got := swordsOf(t, db, player); !slices.Equal(got, want) {
				t.Fatalf("%s owns %q instead of %q", player, got, want)
			}
		}

		order := must(service.Mint(t.Context(), start(1), alice, ramp.NewAmount(1), ramptest.ValidateOtherRate(),
			ramptest.TransactionFails(), ramptest.TransactionType(7)))(t)
		is("alice", before[1])
		check(t, service.Deliver(t.Context(), order, ramptest.Failed))
		check(t, service.Deliver(t.Context(), order, ramptest.Failed))
		is("alice", before...)

		order = must(service.Mint(t.Context(), start(2), alice, ramp.NewAmount(2)))(t)
		check(t, service.Deliver(t.Context(), order, ramptest.Succeeded))
		is("alice")
		var token string
		check(t, db.QueryRow("SELECT token_id FROM swords WHERE id = '"+before[0]+"'").Scan(&token))
		if token == "" {
			t.Error("the game does not know which token the sword is")
		}

		order = must(service.Burn(t.Context(), start(1), alice, ramp.NewAmount(1)))(t)
		check(t, service.Deliver(t.Context(), order, ramptest.Succeeded))
		is("alice", before[0])

		// Bob's wallet holds a token that this game did not mint.
		bob := login(t, p.url, "bob")
		order = must(service.Burn(t.Context(), start(1), bob, ramp.NewAmount(1)))(t)
		check(t, service.Deliver(t.Context(), order, ramptest.Succeeded))
		if got := swordsOf(t, db, "bob"); len(got) != 3 || !slices.Contains(got, order.UUID.String()+"/0") {
			t.Errorf("bob owns %q", got)
		}
		_, err := service.Mint(t.Context(), start(4), bob, ramp.NewAmount(4))
		if err == nil || countOrders(t, address) != 4 {
			t.Errorf("more swords than bob owns: %v", err)
		}
	})
}
