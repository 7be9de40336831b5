package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A game ends as docs/many-games.md says: a last mint, a last burn, then the orders that wait, the books, and the
// keys. Each step is tried before its time, too, and what it would have cost is seen.
func TestTheEndOfAGame(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	game, store := open(t, address)
	game.anyPage = true
	var current atomic.Pointer[ramp.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := current.Load(); handler != nil {
			handler.ServeHTTP(w, r)
			return
		}
		panic(http.ErrAbortHandler) // the server is gone
	}))
	t.Cleanup(server.Close)
	service, client := serviceWith(t, hmacKey, validatorKey, ramptest.Config{Game: server.URL, PerOrder: true,
		Networks: map[ramp.Network]uint64{ramp.Testnet: 1112}, Audit: ramptest.AuditReport})
	node := map[string]string{"RAMP_RPC_URL": service.RPCURL(ramp.Testnet)}
	flags := []string{"-db", address, "-chain-id", "1112", "-decimals", "18", "-payers", service.Payer().Hex(),
		"-contracts", token, "-project", "project", "-token", token, "-network", "testnet"}
	operator := func(command string, args ...string) (string, error) {
		t.Helper()
		printed, _, err := desk(t, node, slices.Concat([]string{command}, flags, args)...)
		return printed, err
	}
	waits := func(want string) {
		t.Helper()
		printed := must(operator("count"))(t)
		if !regexp.MustCompile(`(?m)^0s +` + want + `$`).MatchString(printed) {
			t.Errorf("the mints and burns that wait are not %s:\n%s", want, printed)
		}
	}
	gems := []ramp.Item{{ID: itemGem, Amount: ramp.NewAmount(10), IconURL: "https://example.com/icons/gem.png"}}
	deploy := func(product ramp.Product) {
		product.Name, product.Token, product.Outputs = "gems", token, gems
		config := ramp.TermsConfig{ProjectID: "project", Network: ramp.Testnet, Products: []ramp.Product{product}}
		current.Store(must(ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: store,
			Terms: must(ramp.NewTerms(config))(t), Wallet: game.bindWallet, Logger: ramptest.Logger(t),
			Key: must(ramp.TextKey(hmacKey))(t), Signer: must(ramp.NewKeySigner(validatorKey))(t)}))(t))
	}
	alice := loggedIn(t, game, "alice")
	trade := func(d ramp.Direction, faults ...ramptest.Fault) (*ramptest.PlacedOrder, error) {
		t.Helper()
		order := service.Mint
		if d == ramp.Burn {
			order = service.Burn
		}
		return order(t.Context(), initialize(t, client, item(t, itemGem, "10")), alice, ramp.NewAmount(1), faults...)
	}

	deploy(ramp.Product{Materials: gems})
	for range 3 {
		must(trade(ramp.Mint))(t)
	}
	service.Advance(time.Minute)
	begun := initialize(t, client, item(t, itemGem, "10")) // her page is open at the last mint
	late := must(trade(ramp.Mint, ramptest.TransactionFails(), ramptest.TransactionType(7),
		ramptest.ResultLate(20*time.Minute)))(t)
	never := must(trade(ramp.Mint, ramptest.ResultNever()))(t)

	// The last mint: burns go on, and what was accepted ends.
	deploy(ramp.Product{})
	_, err := trade(ramp.Mint)
	equal(t, "a mint after the last one", codeOf(err), "INVALID_MESSAGE")
	_, err = service.Mint(t.Context(), begun, alice, ramp.NewAmount(1))
	equal(t, "a mint on a page of before", codeOf(err), "INVALID_MESSAGE")
	owns(t, service, alice, "1000000/9950")
	burnt := must(trade(ramp.Burn))(t)
	service.Advance(time.Minute)
	confirmed(t, service, burnt)
	owns(t, service, alice, "1000000/9960")
	waiting := must(trade(ramp.Burn, ramptest.ResultLate(20*time.Minute)))(t)

	// The last burn: the shop is closed, and results are taken.
	turn(t, "close", address)
	if _, err := trade(ramp.Burn); !declined(err) {
		t.Errorf("a burn after the last one: %v", err)
	}
	waits("2 +1")
	served := current.Swap(nil) // too early: what comes meanwhile gets no answer, and still waits
	service.Advance(21 * time.Minute)
	waits("2 +1")
	current.Store(served)
	service.Advance(time.Hour)
	confirmed(t, service, waiting)
	owns(t, service, alice, "1000000/9980") // the burn that waited, and the mint that failed
	waits("1 +0")
	says(t, must(operator("list", "-older", "0s"))(t), never.UUID.String())
	finish := []string{"-who", "alice", "-reason", "the game ends", "-tx", never.TxHash.Hex(), never.UUID.String()}
	_, err = operator("finish", finish...)
	says(t, fmt.Sprint(err), "it fits order "+late.UUID.String()+", too, which has ended as failed: ask the service")
	says(t, must(operator("finish", append([]string{"-against-evidence"}, finish...)...))(t), "is succeeded")
	waits("0 +0")
	owns(t, service, alice, "1000000/9980")
	equal(t, "the state of the mint that failed", service.State(late), ramptest.Confirmed)

	// The books of the last period judge the mints by the product that had materials.
	backdate(t, address)
	chain := must(ramp.NewRPC(ramp.RPCConfig{URL: service.RPCURL(ramp.Testnet), ChainID: 1112}))(t)
	proof := must(rampproof.New(rampproof.Config{Chain: chain, Network: ramp.Testnet, AnyFailure: true}))(t)
	now := time.Now()
	without := ramp.Product{Name: "gems", Token: token, Outputs: gems}
	with := without
	with.Materials = gems
	for kept, named := range map[bool]bool{true: true, false: false} {
		offers := []rampbooks.Offer{{Product: without, From: now.Add(-time.Minute)}}
		if kept {
			offers = append(offers, rampbooks.Offer{Product: with, To: now.Add(-time.Minute)})
		}
		books := must(must(rampbooks.New(rampbooks.Config{Store: store, Proof: proof, Products: offers}))(t).Reconcile(
			t.Context(), now.Add(-time.Hour), now.Add(-3*time.Minute)))(t)
		for _, f := range books.Findings {
			t.Errorf("a finding: %s", f.Detail)
		}
		mints := func(sum rampbooks.Total) bool {
			return sum.Direction == ramp.Mint && sum.Product == "gems" && sum.Succeeded == 4
		}
		equal(t, "the totals of mints have the product", slices.ContainsFunc(books.Totals, mints), named)
	}

	// The server and its keys are gone. Nothing waited, so nothing is lost.
	current.Store(nil)
	_, err = trade(ramp.Burn)
	var rejected *ramptest.Rejection
	if err == nil || errors.As(err, &rejected) {
		t.Errorf("a call after the end is answered: %v", err)
	}
	service.Advance(13 * time.Hour)
	waits("0 +0")
}
