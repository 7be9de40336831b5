package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// open opens the database of a server.
func open(t *testing.T, address string) (*game, *rampsql.Store) {
	t.Helper()
	game, store, err := (&settings{database: address}).open(t.Context(), true)
	check(t, err)
	t.Cleanup(func() { check(t, game.db.Close()) })
	return game, store
}

func loggedIn(t *testing.T, g *game, player string) ramp.Session {
	t.Helper()
	return ramp.Must(g.login(t.Context(), player))
}

// binds reports whether a session may use a wallet.
func binds(t *testing.T, g *game, s ramp.Session, wallet common.Address) bool {
	t.Helper()
	err := g.bindWallet(t.Context(), s, wallet)
	var rejection *ramp.Rejection
	if err != nil && (!errors.As(err, &rejection) || rejection.Code != "INVALID_USER") {
		t.Fatal(err)
	}
	return err == nil
}

func TestAWalletBelongsToThePlayerWhoNamesItFirst(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		game, _ := open(t, address)
		alice, again, bob := loggedIn(t, game, "alice"), loggedIn(t, game, "alice"), loggedIn(t, game, "bob")
		first, second := common.HexToAddress("0xA1"), common.HexToAddress("0xA2")
		for n, step := range []struct {
			session ramp.Session
			wallet  common.Address
			may     bool
		}{
			{alice, first, true}, {alice, first, true}, {again, first, true}, {bob, first, false},
			{alice, second, true}, {bob, second, false}, {bob, common.HexToAddress("0xB1"), true}, {alice, first, true},
		} {
			if n == 0 {
				equal(t, "whether looking binds a wallet", ramp.Must(game.ownsWallet(t.Context(), bob.ID, first)), false)
			}
			equal(t, fmt.Sprint("step ", n), binds(t, game, step.session, step.wallet), step.may)
			owns := ramp.Must(game.ownsWallet(t.Context(), step.session.ID, step.wallet))
			equal(t, fmt.Sprint("what a look says after step ", n), owns, step.may)
		}
		for _, wallet := range []common.Address{first, common.HexToAddress("0xC1")} {
			if game.bindWallet(t.Context(), ramp.Session{ID: "unknown"}, wallet) == nil {
				t.Error("an unknown session has a wallet")
			}
		}
	})
}

// Servers that bind a wallet at the same time agree whose it is.
func TestServersThatBindAWalletTogetherAgree(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		const players, wallets = 4, 20
		var games []*game
		var sessions []ramp.Session
		for n := range players {
			game, _ := open(t, address)
			games, sessions = append(games, game), append(sessions, loggedIn(t, game, fmt.Sprint("player ", n)))
		}
		for n := range wallets {
			wallet := common.BigToAddress(common.Big1)
			wallet[0] = byte(n)
			ended := make(chan error, players)
			for i := range players {
				go func() { ended <- games[i].bindWallet(t.Context(), sessions[i], wallet) }()
			}
			owners := 0
			for range players {
				var rejection *ramp.Rejection
				if err := <-ended; err == nil {
					owners++
				} else if !errors.As(err, &rejection) {
					t.Error(err)
				}
			}
			equal(t, "owners of one wallet", owners, 1)
		}
	})
}
