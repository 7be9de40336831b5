package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

func TestAResultCountsOnlyIfTheChainSaysTheSame(t *testing.T) {
	key, err := ramp.TextKey(hmacKey)
	check(t, err)
	signer, err := ramp.NewKeySigner(validatorKey)
	check(t, err)
	var game atomic.Pointer[httputil.ReverseProxy] // set below, because the game needs the chain's URL first
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { game.Load().ServeHTTP(w, r) }))
	defer proxy.Close()
	service := ramptest.Start(t, ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(), Game: proxy.URL,
		Networks: map[ramp.Network]uint64{ramp.Testnet: 1112}, Books: ramptest.BooksReport}) // a result that is not confirmed is wanted
	p := &process{t: t, args: []string{"-addr", "127.0.0.1:0", "-db", ready(t), "-chain-id", "1112",
		"-payers", service.Payer().Hex(), "-project", "project", "-token", token, "-network", "testnet", "-any-rate"},
		env: append(real(), "RAMP_RPC_URL="+service.RPCURL(ramp.Testnet))}
	p.start()
	t.Cleanup(p.kill)
	address, err := url.Parse(p.url)
	check(t, err)
	game.Store(httputil.NewSingleHostReverseProxy(address))
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key})
	check(t, err)

	s := login(t, p.url, "alice")
	sponsored := ramptest.TransactionType(7)
	_, err = service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "100")), s, ramp.NewAmount(1), ramptest.TransactionFails(), sponsored)
	check(t, err)
	if got := owned(t, service, s); got != "999900/10000" {
		t.Errorf("after validate the player owns %s", got)
	}
	service.FailRPC(-32601)
	service.Advance(time.Minute)
	if got := owned(t, service, s); got != "999900/10000" {
		t.Errorf("after a result that was not confirmed the player owns %s", got)
	}
	service.Advance(time.Hour)
	if got := owned(t, service, s); got != "1000000/10000" {
		t.Errorf("after the result the player owns %s", got)
	}

	// A failure that the ramp did not pay for waits for a person, and a burn is paid.
	_, err = service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "100")), s, ramp.NewAmount(1), ramptest.TransactionFails())
	check(t, err)
	_, err = service.Burn(t.Context(), initialize(t, client, item(t, "item_gem", "5")), s, ramp.NewAmount(1), sponsored)
	check(t, err)
	service.Advance(time.Hour)
	if got := owned(t, service, s); got != "999900/10005" {
		t.Errorf("after a failure without proof and a burn the player owns %s", got)
	}
	p.kill()
	if !strings.Contains(p.log.String(), ramp.ErrNotProven.Error()) {
		t.Error("the log does not say that the failure proves nothing")
	}
	if strings.Contains(p.log.String(), "unreachable") {
		t.Error(p.log)
	}
}

func TestAChainThatCannotBeTrustedIsSaidAtOnce(t *testing.T) {
	key, err := ramp.TextKey(hmacKey)
	check(t, err)
	signer, err := ramp.NewKeySigner(validatorKey)
	check(t, err)
	service := ramptest.Start(t, ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(), Game: "http://127.0.0.1:1", Networks: map[ramp.Network]uint64{ramp.Testnet: 1112}})
	for name, c := range map[string]struct {
		args []string
		url  string
		want string
	}{
		"no payers":      {args: []string{"-chain-id", "1112"}, url: service.RPCURL(ramp.Testnet), want: "Proof.Payers is required"},
		"wrong decimals": {args: []string{"-chain-id", "1112", "-any-failure", "-decimals", "6"}, url: service.RPCURL(ramp.Testnet), want: "Proof.Decimals is 6 for token " + token + ", but its contract says 18"},
		"nobody to ask":  {args: []string{"-chain-id", "1112", "-any-failure"}, url: "http://127.0.0.1:1", want: "set -decimals"},
		"not an address": {args: []string{"-payers", "0x1"}, want: `invalid value "0x1" for flag -payers`},
		"no chain ID":    {url: service.RPCURL(ramp.Testnet), want: "RAMP_RPC_URL and -chain-id need each other"},
		"no node":        {args: []string{"-chain-id", "1112"}, want: "RAMP_RPC_URL and -chain-id need each other"},
		"not a URL":      {args: []string{"-chain-id", "1112"}, url: "tiger", want: "RPCConfig.URL"},
		"wrong network":  {args: []string{"-chain-id", "1111"}, url: service.RPCURL(ramp.Testnet), want: "its chain ID is 1112, but RPCConfig.ChainID is 1111"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			args := append([]string{"-db", ready(t), "-addr", "127.0.0.1:0",
				"-project", "project", "-token", token, "-network", "testnet"}, c.args...)
			env := map[string]string{"RAMP_HMAC_KEY": hmacKey, "RAMP_VALIDATOR_KEY": validatorKey, "RAMP_RPC_URL": c.url}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // stops the server if it starts by mistake
			defer cancel()
			err := run(ctx, args, func(name string) string { return env[name] }, &out, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "tiger") || out.Len() > 0 {
				t.Errorf("%v, having printed %q", err, &out)
			}
		})
	}
}
