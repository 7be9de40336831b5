package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// open opens the database of a server.
func open(t *testing.T, address string) (*game, *ramp.SQLStore) {
	t.Helper()
	game, store, err := (&settings{database: address}).open(t.Context(), true)
	check(t, err)
	t.Cleanup(func() { check(t, game.db.Close()) })
	return game, store
}

func loggedIn(t *testing.T, g *game, player string) ramp.Session {
	t.Helper()
	s, err := g.login(t.Context(), player)
	check(t, err)
	return s
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

// burnFrom accepts a burn as a server does that knows no wallets.
func burnFrom(t *testing.T, store *ramp.SQLStore, s ramp.Session, wallet string, at time.Time) uuid.UUID {
	t.Helper()
	r := &ramp.ValidateRequest{UserSig: "0xaa", UserAddress: wallet, ProjectID: "project-1", UUID: uuid.New(), Digest: ramp.Digest{1},
		Intent: ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}},
			To:   []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: itemGold, Amount: ramp.NewAmount(100)}}}}
	_, err := store.Update(t.Context(), r.UUID, ramp.Accept(s, r, at))
	check(t, err)
	return r.UUID
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
			if got := binds(t, game, step.session, step.wallet); got != step.may {
				t.Errorf("step %d: %t", n, got)
			}
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
			if owners != 1 {
				t.Errorf("%d players own one wallet", owners)
			}
		}
	})
}

// An order that an older server accepted waits with a wallet that is in no table.
// Otherwise a thief could name it, and be paid for the burn.
func TestTheWalletsOfOrdersThatWaitAreBound(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		game, store := open(t, address)
		alice, bob := loggedIn(t, game, "alice"), loggedIn(t, game, "bob")
		wallet, contested, ended := common.HexToAddress("0xabcdefabcdefabcdefabcdefabcdefabcdefabcd"), common.HexToAddress("0xA2"), common.HexToAddress("0xA3")
		now := time.Now()
		burnFrom(t, store, alice, wallet.Hex(), now)
		burnFrom(t, store, alice, strings.ToLower(wallet.Hex()), now)
		burnFrom(t, store, bob, contested.Hex(), now.Add(time.Second))
		burnFrom(t, store, alice, strings.ToLower(contested.Hex()), now)
		burnFrom(t, store, alice, strings.Repeat("0", 100), now)
		over := burnFrom(t, store, alice, ended.Hex(), now)
		_, err := store.Update(t.Context(), over, ramp.Abandon("over", now))
		check(t, err)

		for range 2 { // the second start adds nothing
			game, _ = open(t, address)
		}
		for wallet, may := range map[common.Address]bool{wallet: false, contested: false, ended: true} {
			if got := binds(t, game, bob, wallet); got != may {
				t.Errorf("%s: %t", wallet, got)
			}
		}
		if !binds(t, game, alice, wallet) || !binds(t, game, alice, contested) {
			t.Error("who waits does not own the wallet")
		}
	})
}

// A thief named the wallet first, and a person frees it as bindWallet says.
func TestAWalletIsFreed(t *testing.T) {
	address := "sqlite:" + t.TempDir() + "/game.db"
	game, store := open(t, address)
	thief, alice := loggedIn(t, game, "thief"), loggedIn(t, game, "alice")
	wallet := common.HexToAddress("0xA1")
	if !binds(t, game, thief, wallet) || binds(t, game, alice, wallet) {
		t.Fatal("the thief did not come first")
	}
	squat := burnFrom(t, store, thief, wallet.Hex(), time.Now())
	_, err := store.Update(context.Background(), squat, ramp.Abandon("alice: not your wallet", time.Now()))
	check(t, err)
	_, err = game.db.Exec("DELETE FROM wallets WHERE player = 'thief'")
	check(t, err)
	game, _ = open(t, address)
	if !binds(t, game, alice, wallet) || binds(t, game, thief, wallet) {
		t.Error("the wallet is not alice's")
	}
}
