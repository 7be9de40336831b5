package rampproof_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
)

const (
	testUUID   = oneorder.UUID
	testToken  = oneorder.Token
	testWallet = oneorder.Wallet
)

var blockA, blockB = oneorder.BlockA, oneorder.BlockB

var quiet = slog.New(slog.DiscardHandler)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

func testKey(t testing.TB) ramp.HMACKey {
	return must.Get(ramp.TextKey("my_secret_salt_value_!@#$%^&*"))(t)
}

func testSigner(t testing.TB) *ramp.Signer {
	return must.Get(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))(t)
}

type noPlayers struct{}

func (noPlayers) Authenticate(context.Context, ramp.Session) error           { return nil }
func (noPlayers) Assets(context.Context, ramp.Session) (*ramp.Player, error) { return nil, nil }

// webhookResult is the result of a burn as the service sends it.
func webhookResult() oneorder.Object {
	receipt := oneorder.OnChain().Without("from").Without("to").Without("feePayer").
		With("contractAddress", common.Address{}.Hex()).With("root", "0x").
		With("gasUsed", 0x5208).With("logs.0.blockTimestamp", 0)
	return oneorder.Object{"session_id": "session-1", "uuid": testUUID, "tx_hash": common.MaxHash.Hex(),
		"receipt": map[string]any(receipt), "intent": oneorder.Burn()}
}

// stored returns the order of an intent, which waits.
func stored(t testing.TB, intent map[string]any) *ramp.Order {
	request := must.Get(ramp.ParseValidate(oneorder.Validate(intent).Bytes(t)))(t)
	accept := ramp.Accept(ramp.Session{ID: "session-1"}, request, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	order := must.Get(accept(nil))(t).Order
	return &order
}

// keeping returns a store that has an order.
func keeping(t testing.TB, order *ramp.Order) *ramp.MemoryStore {
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	must.Get(store.Update(t.Context(), order.UUID,
		func(*ramp.Order) (ramp.Step, error) { return ramp.Step{Order: *order, New: true}, nil }))(t)
	return store
}

// pinned returns a client that accepts only chain 1112.
func pinned(t testing.TB, node http.RoundTripper) *ramp.RPC { return rpcOver(t, node, 1112) }

func rpcOver(t testing.TB, network http.RoundTripper, chainID uint64) *ramp.RPC {
	return must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", ChainID: chainID, Retries: -1,
		HTTPClient: &http.Client{Transport: network}}))(t)
}

// signed are the headers of a call whose HMAC is right.
func signed(t testing.TB, body []byte) http.Header {
	return http.Header{ramp.HeaderHMAC: {testKey(t).Sign(body)}}
}

// inBubble runs a subtest in a bubble, whose time passes by itself.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// as returns the error of a type within err.
func as[E error](t testing.TB, err error) (found E) {
	t.Helper()
	require.ErrorAs(t, err, &found)
	return found
}
