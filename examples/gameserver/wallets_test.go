package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
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
	return must(g.login(t.Context(), player))(t)
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
				equal(t, "whether looking binds a wallet",
					must(game.ownsWallet(t.Context(), bob.ID, first))(t), false)
			}
			equal(t, fmt.Sprint("step ", n), binds(t, game, step.session, step.wallet), step.may)
			owns := must(game.ownsWallet(t.Context(), step.session.ID, step.wallet))(t)
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

// The document has the statement of the migration.
func TestTheDocumentHasTheStatementThatBindsWallets(t *testing.T) {
	if !strings.Contains(document(t, "security.md"), "```sql"+bindWaiting+"\n```") {
		t.Error("docs/security.md lacks", bindWaiting)
	}
}

// A server of a game that gets its table of wallets while orders wait: the thief, who has the HMAC
// key, names the wallet of a player whose burn waits, to report it as their own.
func TestAMigrationBindsTheWalletsOfOrdersThatWait(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		game, store := open(t, address)
		victim, other, thief := loggedIn(t, game, "victim"), loggedIn(t, game, "other"), loggedIn(t, game, "thief")
		begin := time.Now().Truncate(time.Millisecond)
		order := func(s ramp.Session, wallet common.Address, minutes int) ramp.Order {
			r := &ramp.ValidateRequest{UserSig: "0xaa", UserAddress: wallet.Hex(), ProjectID: "p", UUID: uuid.New(),
				Intent: ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble,
					From: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: wallet.Hex(), Amount: ramp.NewAmount(1)}},
					To:   []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: itemGold, Amount: ramp.NewAmount(1)}}}}
			at := begin.Add(time.Duration(minutes) * time.Minute)
			return must(store.Update(t.Context(), r.UUID, ramp.Accept(s, r, at)))(t).Order
		}
		wallet := func(n byte) common.Address { return common.Address{0: 0xAB, 19: n} }
		order(victim, wallet(1), 1) // waits
		order(thief, wallet(1), 2)  // so does that of the thief, who was later
		order(other, wallet(2), 3)
		ended := order(victim, wallet(3), 0)
		must(store.Update(t.Context(), ended.UUID, ramp.Abandon("test", begin)))(t)
		must(game.db.Exec("DELETE FROM wallets"))(t) // no server of before has known any
		check(t, game.bindWallet(t.Context(), victim, wallet(4)))

		open(t, address) // migrates
		open(t, address) // and again, which changes nothing
		for _, c := range []struct {
			what    string
			session ramp.Session
			wallet  byte
			may     bool
		}{
			{"the thief, of the victim's wallet", thief, 1, false},
			{"the victim", victim, 1, true},
			{"the thief, of another wallet", thief, 2, false},
			{"its player", other, 2, true},
			{"the thief, of a wallet that was bound before", thief, 4, false},
			{"anybody, of a wallet of no order that waits", other, 3, true},
		} {
			equal(t, c.what, binds(t, game, c.session, wallet(c.wallet)), c.may)
		}
	})
}
