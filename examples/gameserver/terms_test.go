package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

const foreignToken = "0x000000000000000000000000000000000000bad1"

// one returns the assets that one token is worth by default.
func one(t *testing.T) []ramp.AssetAmount {
	return []ramp.AssetAmount{item(t, "item_gold", "100"), item(t, "item_gem", "1")}
}

// An initialize call does not approve an order: all of these have a UUID.
func TestAnOrderOutsideTheTermsMovesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := deploy(t, address)
		service, client := serviceOf(t, p.url)
		s := login(t, p.url, "alice")
		for name, c := range map[string]struct {
			token  string
			tokens string
			items  []ramp.AssetAmount
			want   ramp.Code
		}{
			"a sliver of a worthless token": {foreignToken, "1e-18", []ramp.AssetAmount{item(t, "item_gold", "300")}, "INVALID_MESSAGE"},
			"a foreign token at our rate":   {foreignToken, "1", one(t), "INVALID_MESSAGE"},
			"a sliver of our token":         {token, "1e-18", one(t), "INVALID_MESSAGE"},
			"99 gold":                       {token, "1", []ramp.AssetAmount{item(t, "item_gold", "99"), item(t, "item_gem", "1")}, "INVALID_MESSAGE"},
			"101 gold":                      {token, "1", []ramp.AssetAmount{item(t, "item_gold", "101"), item(t, "item_gem", "1")}, "INVALID_MESSAGE"},
			"one token for the price of two": {token, "1",
				[]ramp.AssetAmount{item(t, "item_gold", "200"), item(t, "item_gem", "2")}, "INVALID_MESSAGE"},
			"two tokens for the price of one": {token, "2", one(t), "INVALID_MESSAGE"},
			"one and a half tokens": {token, "1.5",
				[]ramp.AssetAmount{item(t, "item_gold", "150"), item(t, "item_gem", "1.5")}, "INVALID_MESSAGE"},
			"no gems":         {token, "1", []ramp.AssetAmount{item(t, "item_gold", "100")}, "INVALID_MESSAGE"},
			"a sword as well": {token, "1", append(one(t), item(t, "item_sword", "1")), "INVALID_MESSAGE"},
			"a sword instead": {token, "1", []ramp.AssetAmount{item(t, "item_gold", "100"), item(t, "item_sword", "1")}, "INVALID_MESSAGE"},
		} {
			place := func(kind string, order func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)) {
				t.Helper()
				placed, err := order(t.Context(), initializeFor(t, client, c.token, c.items...), s, amount(t, c.tokens))
				var rejected *ramptest.Rejection
				if !errors.As(err, &rejected) || rejected.Code != c.want || rejected.Status != http.StatusOK {
					t.Errorf("%s, a %s: %v instead of %s", name, kind, err, c.want)
				}
				if err == nil {
					check(t, service.Deliver(t.Context(), placed, ramptest.Succeeded))
				}
			}
			place("mint", service.Mint)
			place("burn", service.Burn)
			if got := owned(t, service, s); got != "1000000/10000" {
				t.Fatalf("%s: the player owns %s", name, got)
			}
		}
		if n := countOrders(t, address); n != 0 {
			t.Errorf("%d orders are stored, but every one was rejected", n)
		}
	})
}

func TestAnOrderOnTheTermsIsExact(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := deploy(t, address)
		service, client := serviceOf(t, p.url)
		s := login(t, p.url, "alice")
		trade := func(order func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error),
			contract, tokens string, want string, items ...ramp.AssetAmount) {
			t.Helper()
			placed, err := order(t.Context(), initializeFor(t, client, contract, items...), s, amount(t, tokens))
			check(t, err)
			check(t, service.Deliver(t.Context(), placed, ramptest.Succeeded))
			if got := owned(t, service, s); got != want {
				t.Errorf("the player owns %s instead of %s", got, want)
			}
		}
		trade(service.Mint, token, "1", "999900/9999", one(t)...)
		trade(service.Mint, strings.Replace(strings.ToUpper(token), "X", "x", 1), "7", "999200/9992", // case is only a checksum
			item(t, "item_gem", "7"), item(t, "item_gold", "700"))
		trade(service.Burn, token, "2", "999400/9994", item(t, "item_gold", "200"), item(t, "item_gem", "2"))
		trade(service.Mint, token, "9994", "0/0", item(t, "item_gold", "999400"), item(t, "item_gem", "9994"))
	})
}

func TestAnotherProduct(t *testing.T) {
	p := deploy(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"))
	service, client := serviceOf(t, p.url)
	s := login(t, p.url, "alice")
	_, err := service.Mint(t.Context(), initialize(t, client, item(t, "item_gem", "20")), s, ramp.NewAmount(2))
	check(t, err)
	if got := owned(t, service, s); got != "1000000/9980" {
		t.Errorf("the player owns %s", got)
	}
}

// -any-rate approves every rate, but not every token.
func TestAnyRateWarnsAndStillKnowsItsToken(t *testing.T) {
	p := deploy(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), "-any-rate")
	service, client := serviceOf(t, p.url)
	s := login(t, p.url, "alice")
	_, err := service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "3")), s, amount(t, "0.5"))
	check(t, err)
	if got := owned(t, service, s); got != "999997/10000" {
		t.Errorf("the player owns %s", got)
	}
	_, err = service.Burn(t.Context(), initializeFor(t, client, foreignToken, item(t, "item_gold", "300")), s, amount(t, "1e-18"))
	var rejected *ramptest.Rejection
	if !errors.As(err, &rejected) || rejected.Code != "INVALID_MESSAGE" {
		t.Errorf("a foreign token: %v", err)
	}
	p.kill()
	if !strings.Contains(p.log.String(), `"level":"WARN"`) || !strings.Contains(p.log.String(), "-any-rate") {
		t.Errorf("no warning in %s", p.log)
	}

	p = deploy(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"))
	p.kill()
	if strings.Contains(p.log.String(), "-any-rate") {
		t.Errorf("a warning in %s", p.log)
	}
}

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
	for name, more := range map[string]map[string]any{
		"nothing more": {},
		"terms of the player's own": {"token": foreignToken, "network": "testnet", "projectId": "theirs",
			"materials": []any{}, "recipe": "item_gold=1"},
		"terms of another type": {"token": 1, "network": nil, "projectId": []int{}},
	} {
		body := map[string]any{"sessionId": s.ID, "accessToken": s.Token.Reveal()}
		for key, value := range more {
			body[key] = value
		}
		var view struct{ URL string }
		if status := call(t, p.url+"/exchange", body, &view); status != http.StatusOK {
			t.Fatalf("%s: /exchange answered %d", name, status)
		}
		intent := (<-asked).Intent
		if intent.Token != token || intent.Network != ramp.Mainnet || intent.ProjectID != "ours" {
			t.Errorf("%s: the service was asked for %+v", name, intent)
		}
		for _, side := range [][]ramp.Item{intent.Materials, intent.Outputs} {
			if len(side) != 2 || side[0].ID != "item_gold" || side[0].Amount != ramp.NewAmount(100) ||
				side[1].ID != "item_gem" || side[1].Amount != ramp.NewAmount(1) {
				t.Errorf("%s: the service was told %+v", name, side)
			}
		}
		page, err := url.Parse(view.URL)
		check(t, err)
		if got := page.Query().Get("network"); got != "mainnet" {
			t.Errorf("%s: the page is of %q", name, got)
		}
	}
}

func TestTermsThatCannotBeAreSaidAtOnce(t *testing.T) {
	const ours = "0x00000000000000000000000000000000000070c3"
	for _, c := range []struct{ args, want string }{
		{"", "-token is required"},
		{"-network testnet", "-token is required"},
		{"-network testnet -token " + ours, "TermsConfig.ProjectID is required"},
		{"-token " + ours, "TermsConfig.Network must be mainnet or testnet"},
		{"-network Testnet -token " + ours, "TermsConfig.Network must be mainnet or testnet"},
		{"-network testnet -token 70c3", `invalid value "70c3" for flag -token`},
		{"-network testnet -token " + ours + "00", "for flag -token"},
		{"-network testnet -token " + ours[:40] + "zz", "for flag -token"},
		{"-network testnet -token " + ours + " -sword-token " + ours[:40], "for flag -sword-token"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out bytes.Buffer
			args := append([]string{"-db", "sqlite:" + filepath.Join(t.TempDir(), "game.db"), "-addr", "127.0.0.1:0"}, strings.Fields(c.args)...)
			env := map[string]string{"RAMP_HMAC_KEY": hmacKey, "RAMP_VALIDATOR_KEY": validatorKey}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a server that starts by mistake stops at once
			err := run(ctx, args, func(name string) string { return env[name] }, &out, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
				t.Errorf("%v, having printed %q", err, &out)
			}
		})
	}
}

func amount(t *testing.T, text string) ramp.Amount {
	t.Helper()
	a, err := ramp.ParseAmount(text)
	check(t, err)
	return a
}

func countOrders(t *testing.T, address string) (n int) {
	t.Helper()
	db, _, err := openDatabase(address, 20)
	check(t, err)
	defer db.Close()
	check(t, db.QueryRow("SELECT count(*) FROM ramp_orders").Scan(&n))
	return n
}
