package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

const foreignToken = "0x000000000000000000000000000000000000bad1"

// The intent of an initialize call comes from the flags, whatever a player sends.
func TestAPlayerDecidesNothing(t *testing.T) {
	asked := make(chan ramp.InitializeRequest, 1)
	ramps := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request ramp.InitializeRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		asked <- request
		_, _ = io.WriteString(w, `{"code":200,"message":"OK","data":{"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71"}}`)
	}))
	t.Cleanup(ramps.Close)
	database := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	env := append(real(), "RAMP_API_URL="+ramps.URL, "RAMP_FRONTEND_URL="+ramps.URL)
	p := newProcess(t, database, env, []string{"-token", token, "-network", "mainnet", "-project", "ours"})
	s := login(t, p.url, "alice")
	var view struct{ URL string }
	if status := call(t, p.url+"/exchange",
		map[string]any{"sessionId": s.ID, "accessToken": s.Token.Reveal(), "token": foreignToken, "network": 1,
			"projectId": "theirs", "materials": []any{}, "recipe": "item_gold=1"}, &view); status != http.StatusOK ||
		!strings.Contains(view.URL, "network=mainnet") {
		t.Fatalf("/exchange answered %d: %s", status, view.URL)
	}
	intent := (<-asked).Intent
	if intent.Token != token || intent.Network != ramp.Mainnet || intent.ProjectID != "ours" {
		t.Errorf("the service was asked for %+v", intent)
	}
	for _, side := range [][]ramp.Item{intent.Materials, intent.Outputs} {
		if len(side) != 2 || side[0].ID != "item_gold" || side[0].Amount != ramp.NewAmount(100) ||
			side[1].ID != "item_gem" || side[1].Amount != ramp.NewAmount(1) {
			t.Errorf("the service was told %+v", side)
		}
	}
}

func amount(t *testing.T, text string) ramp.Amount {
	t.Helper()
	return must(ramp.ParseAmount(text))(t)
}

func countOrders(t *testing.T, address string) (n int) {
	t.Helper()
	db := handle(t, address)
	check(t, db.QueryRow("SELECT count(*) FROM ramp_orders").Scan(&n))
	return n
}

// An initialize call does not approve an order: all of these have a UUID. The judge tries
// every other price.
func TestAnOrderIsForAProductAtItsPrice(t *testing.T) {
	one := []ramp.AssetAmount{item(t, "item_gold", "100"), item(t, "item_gem", "1")}
	for _, c := range []struct {
		flag, token, tokens string
		items               []ramp.AssetAmount
		owns                string // after a mint; "" if it is rejected
	}{
		{"", token, "1", one, "999900/9999"},
		{"", strings.ToUpper(token[2:]), "7", []ramp.AssetAmount{item(t, "item_gem", "7"), item(t, "item_gold", "700")},
			"999300/9993"},
		{"", token, "2", []ramp.AssetAmount{item(t, "item_gem", "20")}, "1000000/9980"},
		{"", token, "2", one, ""},
		{"", foreignToken, "1", one, ""},
		{"-any-rate", token, "0.5", []ramp.AssetAmount{item(t, "item_gold", "3")}, "999997/10000"},
		{"-any-rate", foreignToken, "1", one, ""},
	} {
		t.Run(c.flag+c.token+"/"+c.tokens, func(t *testing.T) {
			address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
			p := deploy(t, address, strings.Fields(c.flag)...)
			service, client := serviceOf(t, p.url)
			s := login(t, p.url, "alice")
			contract := "0x" + strings.TrimPrefix(c.token, "0x")
			_, err := service.Mint(t.Context(), initializeFor(t, client, contract, c.items...), s, amount(t, c.tokens))
			if c.owns == "" && (codeOf(err) != "INVALID_MESSAGE" || countOrders(t, address) > 0) {
				t.Errorf("not rejected: %v", err)
			}
			if c.token == foreignToken {
				_, err := service.Burn(t.Context(), initializeFor(t, client, contract, c.items...), s,
					amount(t, c.tokens))
				equal(t, "a burn of a foreign token", codeOf(err), "INVALID_MESSAGE")
			}
			owns(t, service, s, cmp.Or(c.owns, "1000000/10000"))
			service.Advance(time.Minute)
		})
	}
}

// The price of gold changes while servers are replaced one by one, as docs/operations.md says. Whichever
// server answers, nobody can mint at one price and burn at a better one. Without the steps, they can.
func TestAPriceChangesServerByServer(t *testing.T) {
	price := func(gold int64) []ramp.Product {
		items := []ramp.Item{{ID: itemGold, Amount: ramp.NewAmount(gold), IconURL: "https://example.com/icon.png"}}
		return []ramp.Product{{Name: "gold", Token: token, MintFeeBps: 100, Materials: items, Outputs: items}}
	}
	type version []int64 // the first price of a server, and what replaces it

	game, store := open(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"))
	game.anyPage = true
	key, signer := must(ramp.TextKey(hmacKey))(t), must(ramp.NewKeySigner(validatorKey))(t)
	var current atomic.Pointer[ramp.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		current.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	service, _ := serviceOf(t, server.URL)
	alice := loggedIn(t, game, "alice")
	terms := func(v version) *ramp.Terms {
		config := ramp.TermsConfig{ProjectID: "project", Network: ramp.Testnet, Products: price(v[0])}
		terms := must(ramp.NewTerms(config))(t)
		for _, gold := range v[1:] {
			check(t, terms.Replace(price(gold), 24*time.Hour))
		}
		return terms
	}
	log := ramptest.Logger(t)
	// accepts returns the prices that a server accepts.
	accepts := func(v version) (mints, burns []int64) {
		config := ramp.HandlerConfig{Players: game, Store: store, Terms: terms(v), Key: key, Signer: signer,
			Logger: log}
		current.Store(must(ramp.NewHandler(config))(t))
		for _, gold := range []int64{100, 200} {
			for d, accepted := range map[ramp.Direction]*[]int64{ramp.Mint: &mints, ramp.Burn: &burns} {
				config := ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms(version{gold})}
				client := must(ramp.NewClient(config))(t)
				started := must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
				order := service.Mint
				if d == ramp.Burn {
					order = service.Burn
				}
				if _, err := order(t.Context(), started.UUID, alice, ramp.NewAmount(1)); err == nil {
					*accepted = append(*accepted, gold)
				} else {
					equal(t, "declined", codeOf(err), "INVALID_MESSAGE")
				}
				service.Advance(time.Minute)
			}
		}
		return mints, burns
	}
	for name, test := range map[string]struct {
		before, after int64
		mints, burns  int64 // what counts meanwhile
	}{
		"it rises": {100, 200, 200, 100},
		"it falls": {200, 100, 200, 100},
	} {
		t.Run(name, func(t *testing.T) {
			old, changing, last := version{test.before}, version{test.before, test.after}, version{test.after}
			mints, burns := accepts(changing)
			equal(t, "mints", fmt.Sprint(mints), fmt.Sprint([]int64{test.mints}))
			equal(t, "burns", fmt.Sprint(burns), fmt.Sprint([]int64{test.burns}))
			for _, step := range [][]version{{old, changing}, {changing, last}} {
				for _, mint := range step {
					for _, burn := range step {
						mints, _ := accepts(mint)
						_, burns := accepts(burn)
						if slices.Max(burns) > slices.Min(mints) {
							t.Errorf("a mint at one of %v, a burn at one of %v", mints, burns)
						}
					}
				}
			}
			cheap, dear := old, last // as after a rollback of both steps at once
			if test.before > test.after {
				cheap, dear = last, old
			}
			mints, _ = accepts(cheap)
			_, burns = accepts(dear)
			equal(t, "a burn pays more than a mint costs", slices.Max(burns) > slices.Min(mints), true)
		})
	}
}
