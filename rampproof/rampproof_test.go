package rampproof_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

var payer = common.HexToAddress("0xa11ce")

func TestAProofThatCannotWorkIsNotMade(t *testing.T) {
	node := new(oneorder.Chain)
	for name, tt := range map[string]struct {
		config rampproof.Config
		want   string
	}{
		"nothing": {rampproof.Config{}, "Config.Chain is required; Config.Network must be mainnet or testnet; " +
			"Config.Payers is required, " +
			"unless AnyFailure is set: every failed mint would wait for a person"},
		"a node of any chain": {rampproof.Config{Network: ramp.Testnet, Chain: rpcOver(t, node, 0), AnyFailure: true},
			"Config.Chain must have an RPCConfig.ChainID: a node of another chain would confirm what costs nothing"},
		"a fee of everything": {rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, node), AnyFailure: true,
			MintFeeBps: map[common.Address]int{{1}: 10_000, {2}: 9_999, {3}: -1, {4}: -2}},
			"Config.MintFeeBps must be -1 to 9999 for 0x0100000000000000000000000000000000000000; " +
				"Config.MintFeeBps must be -1 to 9999 for 0x0400000000000000000000000000000000000000"},
		"another network": {rampproof.Config{Network: "Testnet", Chain: pinned(t, node), AnyFailure: true},
			"Config.Network must be mainnet or testnet"},
		"payers that nobody can be": {rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, node),
			Payers: []common.Address{payer, {}, common.HexToAddress("0x9"), common.HexToAddress("0xdead")}},
			"Config.Payers has 0x0000000000000000000000000000000000000000, whose key nobody can have; " +
				"Config.Payers has 0x0000000000000000000000000000000000000009, whose key nobody can have; " +
				"Config.Payers has 0x000000000000000000000000000000000000dEaD, whose key nobody can have"},
		"decimals": {rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, node), Payers: []common.Address{payer},
			Decimals: map[common.Address]int{{1}: 256, {2}: -1, {3}: 255, {4}: 0}},
			"Config.Decimals must be 0 to 255 for 0x0100000000000000000000000000000000000000; " +
				"Config.Decimals must be 0 to 255 for 0x0200000000000000000000000000000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := rampproof.New(tt.config)
			assert.EqualError(t, err, "ramp: "+tt.want)
			assert.Nil(t, made)
		})
	}
}

// What a proof was made of does not change with the slices of its maker.
func TestAProofKeepsItsConfig(t *testing.T) {
	payers, decimals := []common.Address{payer}, map[common.Address]int{payer: 1}
	fees := map[common.Address]int{payer: 2}
	proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, new(oneorder.Chain)),
		Payers: payers, Contracts: payers, Decimals: decimals, MintFeeBps: fees}))(t)
	payers[0], decimals[payer], fees[payer] = common.Address{}, 2, 3
	config := proof.Config()
	assert.Equal(t, []common.Address{payer}, config.Payers)
	assert.Equal(t, []common.Address{payer}, config.Contracts)
	assert.Equal(t, map[common.Address]int{payer: 1}, config.Decimals)
	assert.Equal(t, map[common.Address]int{payer: 2}, config.MintFeeBps)
	assert.EqualValues(t, 1, config.Confirmations, "the default")
}

// What a handler sells must be what the proof can end.
func TestAProofIsOfTheNetworkAndTheFeesOfTheTerms(t *testing.T) {
	price := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Mainnet,
		Products: []ramp.Product{{Name: "gold", Token: testToken, MintFeeBps: 200, Materials: price}}}))(t)
	for name, tt := range map[string]struct {
		network ramp.Network
		fee     int
		want    string
	}{
		"the same":       {ramp.Mainnet, 200, ""},
		"a higher fee":   {ramp.Mainnet, 300, ""},
		"an unknown fee": {ramp.Mainnet, -1, ""},
		"a lower fee": {ramp.Mainnet, 199,
			`HandlerConfig.Terms have the product "gold" with a MintFeeBps of 200, above that of its token in the ` +
				`proof, 199: no mint of it could end`},
		"no fee": {ramp.Mainnet, 0,
			`HandlerConfig.Terms have the product "gold" with a MintFeeBps of 200, above that of its token in the ` +
				`proof, 0: no mint of it could end`},
		"the other network": {ramp.Testnet, 200,
			"HandlerConfig.Terms are of the mainnet, but the node of the proof is of the testnet"},
	} {
		t.Run(name, func(t *testing.T) {
			proof := must.Get(rampproof.New(rampproof.Config{Network: tt.network, Chain: pinned(t, new(oneorder.Chain)),
				AnyFailure: true, MintFeeBps: map[common.Address]int{common.HexToAddress(testToken): tt.fee}}))(t)
			config := configWith(t, proof, ramp.AnyWallet)
			config.Terms = terms
			_, err := ramp.NewHandler(config)
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, "ramp: "+tt.want)
		})
	}
}

// An order of the other network is not that of the node, whatever the terms say.
func TestAProofEndsNoOrderOfTheOtherNetwork(t *testing.T) {
	c := &oneorder.Chain{Receipt: string(oneorder.OnChain().Bytes(t))}
	proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, c), AnyFailure: true}))(t)
	order := stored(t, oneorder.Burn())
	order.Network = ramp.Mainnet
	store := keeping(t, order)
	r := must.Get(ramp.ParseResult(webhookResult().Bytes(t)))(t)
	next, err := proof.Confirm(t.Context(), store, r, ramp.Finish(r, time.Now()))
	require.NoError(t, err)
	_, err = store.Update(t.Context(), r.UUID, next)
	assert.ErrorIs(t, err, ramp.ErrOrderForeign)
}

func TestWhatAHandlerNeedsToConfirm(t *testing.T) {
	node := new(oneorder.Chain)
	proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, node),
		Payers: []common.Address{payer}}))(t)
	var none *rampproof.Proof
	for name, tt := range map[string]struct {
		confirm ramp.Confirmer
		wallet  func(context.Context, ramp.Session, common.Address) error
		want    string
	}{
		"no proof": {rampproof.Confirmed(pinned(t, node), 1), nil, ""},
		"a proof":  {proof, ramp.AnyWallet, ""},
		"a proof, no wallet": {proof, nil,
			"HandlerConfig.Wallet is required with a rampproof.Proof: a stolen HMAC key could claim the burns of " +
				"others; ramp.AnyWallet lets it"},
		"a nil proof": {none, nil, "HandlerConfig.Confirm must not be a nil *rampproof.Proof"},
		"no node":     {rampproof.Confirmed(nil, 1), nil, "HandlerConfig.Confirm: the node is required"},
		"a node of any chain": {rampproof.Confirmed(rpcOver(t, node, 0), 1), nil,
			"HandlerConfig.Confirm: the node must have an RPCConfig.ChainID: a node of another chain would confirm " +
				"what costs nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ramp.NewHandler(configWith(t, tt.confirm, tt.wallet))
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, "ramp: "+tt.want)
		})
	}
}

func configWith(t testing.TB,
	confirm ramp.Confirmer, wallet func(context.Context, ramp.Session, common.Address) error,
) ramp.HandlerConfig {
	return ramp.HandlerConfig{Players: noPlayers{}, Store: keeping(t, stored(t, oneorder.Burn())), Terms: anyTerms,
		Key: testKey(t), Signer: testSigner(t), Confirm: confirm, Wallet: wallet, Logger: quiet}
}

// Handlers come and go, and the terms of all of them stay the studio's own: what one of
// them knew must not decide what the studio sells.
func TestTermsOweNothingToAHandler(t *testing.T) {
	product := func(token string) []ramp.Product {
		price := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
		return []ramp.Product{{Name: "gold", Token: token, Materials: price, Outputs: price}}
	}
	const other = "0x0000000000000000000000000000000000000bad"
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: product(testToken)}))(t)
	for _, tokens := range [][]string{{testToken}, {testToken, other}} {
		decimals := map[common.Address]int{}
		for _, token := range tokens {
			decimals[common.HexToAddress(token)] = 18
		}
		proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, new(oneorder.Chain)),
			AnyFailure: true, Decimals: decimals}))(t)
		config := configWith(t, proof, ramp.AnyWallet)
		config.Terms = terms
		must.Get(ramp.NewHandler(config))(t)
	}
	require.NoError(t, terms.Replace(product(other), -1))
}

// The decimals of a token are asked of its contract once, unless they are configured, and again after a
// proof has failed.
func TestDecimalsAreAskedOfTheContract(t *testing.T) {
	word := func(n int64) string {
		return `"result":"` + common.BigToHash(must.Get(ramp.NewAmount(n).Int())(t)).Hex() + `"`
	}
	topics := []any{oneorder.TransferTopic, common.HexToHash(testWallet).Hex(), common.Hash{}.Hex()}
	burned := oneorder.OnChain().With("logs.0.topics", topics)
	sent := oneorder.Object{"hash": common.MaxHash.Hex(), "from": payer.Hex(), "to": testToken}
	for name, tt := range map[string]struct {
		says       string // the contract
		configured map[common.Address]int
		units      int64
		want       string // part of the error
		asked      int    // contract calls for two results
	}{
		"as much as ordered": {word(2), nil, 1000, "", 1},
		"less":               {word(2), nil, 999, "it burns 9.99 of 10 tokens", 2},
		"configured":         {word(2), map[common.Address]int{proofToken: 1}, 100, "", 0},
		"an NFT": {`"error":{"code":3,"message":"execution reverted"}`, nil, 1000,
			"it burns 0 of 10 pieces (the decimals of the token are not known)", 2},
		"an address of nobody": {`"result":"0x"`, nil, 1000, "it burns 0 of 10 pieces", 2},
	} {
		t.Run(name, func(t *testing.T) {
			units := must.Get(ramp.NewAmount(tt.units).Int())(t)
			receipt := burned.With("logs.0.data", common.BigToHash(units).Hex())
			c := &oneorder.Chain{Receipt: string(receipt.Bytes(t)), Transaction: string(sent.Bytes(t)),
				Say: map[string]string{"eth_call": tt.says}}
			proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, c),
				Payers: []common.Address{payer}, Decimals: tt.configured}))(t)
			for range 2 {
				store := keeping(t, stored(t, oneorder.Burn()))
				r := must.Get(ramp.ParseResult(webhookResult().Without("receipt.logs").Bytes(t)))(t)
				next, err := proof.Confirm(t.Context(), store, r, ramp.Finish(r, time.Now()))
				require.NoError(t, err)
				step, err := store.Update(t.Context(), r.UUID, next)
				if tt.want == "" {
					require.NoError(t, err)
					assert.Equal(t, fmt.Sprint(tt.units), step.Evidence.Units.String())
				} else {
					assert.ErrorIs(t, err, rampproof.ErrNotProven)
					assert.ErrorContains(t, err, tt.want)
				}
			}
			assert.Equal(t, tt.asked, strings.Count(strings.Join(c.Asked, " "), "eth_call"))
		})
	}
}

// A token may be of another chain, or have too few decimals for a price: a player who mints it has paid.
func TestCheckAsksForTheTokensOfTheTerms(t *testing.T) {
	says := func(n int64) string {
		return `"result":"` + common.BigToHash(must.Get(ramp.NewAmount(n).Int())(t)).Hex() + `"`
	}
	for name, tt := range map[string]struct {
		says, tokens, want string
	}{
		"a token": {says(18), "0.001", ""},
		"no contract": {`"result":"0x"`, "1", `product "gold": ramp: eth_call: ` + proofToken.Hex() +
			" answered with 0 bytes instead of a number: it is no token contract on this chain"},
		"too few decimals": {says(2), "0.001", `product "gold" sells 0.001 tokens of the contract ` +
			proofToken.Hex() + ", which has 2 decimals"},
		"an NFT":          {`"error":{"code":3,"message":"execution reverted"}`, "1", ""},
		"part of a piece": {`"error":{"code":3,"message":"execution reverted"}`, "0.5", "which has 0 decimals"},
		"no number":       {says(256), "1", "is not the number of decimals of a token"},
	} {
		t.Run(name, func(t *testing.T) {
			gold := ramp.Product{Name: "gold", Token: testToken, Tokens: must.Get(ramp.ParseAmount(tt.tokens))(t),
				Materials: []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100),
					IconURL: "https://example.com/gold.png"}}}
			terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
				PerOrder: true, Products: []ramp.Product{gold}}))(t)
			c := &oneorder.Chain{Say: map[string]string{"eth_call": tt.says}}
			proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, c),
				AnyFailure: true}))(t)
			for _, confirm := range []ramp.Confirmer{rampproof.Confirmed(pinned(t, c), 1), proof} {
				config := configWith(t, confirm, ramp.AnyWallet)
				config.Terms = terms
				err := must.Get(ramp.NewHandler(config))(t).Check(t.Context())
				if tt.want == "" {
					assert.NoError(t, err)
					continue
				}
				assert.ErrorContains(t, err, tt.want)
			}
		})
	}
}

// An account that is a contract can neither send a transaction nor pay for one, and a contract without code was
// perhaps mistyped.
func TestCheckAsksWhatIsBehindTheAccounts(t *testing.T) {
	for name, tt := range map[string]struct {
		code       string // of each address
		payer      bool
		want, warn string
	}{
		"an account":          {`"result":"0x"`, true, "", ""},
		"a delegated account": {`"result":"0xef0100` + strings.Repeat("11", 20) + `"`, true, "", ""},
		"a contract that pays": {`"result":"0x6001"`, true,
			"Config.Payers has " + payer.Hex() + ", which is a contract", ""},
		"a node that tells no":    {`"error":{"code":-32601,"message":"no such method"}`, true, "", ""},
		"a contract":              {`"result":"0x6001"`, false, "", ""},
		"a contract without code": {`"result":"0x"`, false, "", "has no code on this chain"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &oneorder.Chain{Say: map[string]string{"eth_getCode": tt.code,
				"eth_call": `"error":{"code":3,"message":"execution reverted"}`}}
			var log bytes.Buffer
			config := rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, c), AnyFailure: true,
				Logger: slog.New(slog.NewTextHandler(&log, nil))}
			if tt.payer {
				config.Payers = []common.Address{payer}
			} else {
				config.Contracts = []common.Address{rampBridge}
			}
			proof := must.Get(rampproof.New(config))(t)
			err := must.Get(ramp.NewHandler(configWith(t, proof, ramp.AnyWallet)))(t).Check(t.Context())
			if tt.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tt.want)
			}
			if tt.warn == "" {
				assert.NotContains(t, log.String(), "no code")
			} else {
				assert.Contains(t, log.String(), tt.warn)
				assert.Contains(t, log.String(), rampBridge.Hex())
			}
		})
	}
}

// A proxy may change the decimals of its token while the server runs. The proof fails once, and the next
// delivery asks again.
func TestDecimalsThatChangeAreAskedAgain(t *testing.T) {
	says := func(n int64) string {
		return `"result":"` + common.BigToHash(must.Get(ramp.NewAmount(n).Int())(t)).Hex() + `"`
	}
	units := must.Get(ramp.NewAmount(10).Units(6))(t)
	burned := oneorder.OnChain().With("logs.0.data", common.BigToHash(units).Hex())
	sent := oneorder.Object{"hash": common.MaxHash.Hex(), "from": payer.Hex(), "to": testToken}
	c := &oneorder.Chain{Receipt: string(burned.Bytes(t)), Transaction: string(sent.Bytes(t)),
		Say: map[string]string{"eth_call": says(18)}}
	proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, c),
		Payers: []common.Address{payer}}))(t)
	ends := func() error {
		store := keeping(t, stored(t, oneorder.Burn()))
		r := must.Get(ramp.ParseResult(webhookResult().Bytes(t)))(t)
		next, err := proof.Confirm(t.Context(), store, r, ramp.Finish(r, time.Now()))
		require.NoError(t, err)
		_, err = store.Update(t.Context(), r.UUID, next)
		return err
	}
	require.ErrorContains(t, ends(), "it burns 0.00000000001 of 10 tokens")
	c.Say["eth_call"] = says(6)
	require.NoError(t, ends())
}

func TestCheckComparesDecimalsWithTheContracts(t *testing.T) {
	says := func(n int64) string {
		return `"result":"` + common.BigToHash(must.Get(ramp.NewAmount(n).Int())(t)).Hex() + `"`
	}
	for name, tt := range map[string]struct {
		decimals int
		says     string
		want     []string
	}{
		"the same": {18, says(18), nil},
		"others": {6, says(18),
			[]string{"Config.Decimals is 6 for token " + proofToken.Hex() + ", but its contract says 18"}},
		"an NFT that is none": {0, says(18), []string{"Config.Decimals is 0", "its contract says 18"}},
		"an NFT":              {0, `"error":{"code":3,"message":"execution reverted"}`, nil},
		"no contract": {18, `"result":"0x"`,
			[]string{"check the decimals of token",
				"answered with 0 bytes instead of a number: it is no token contract on this chain"}},
		"no contract of an NFT": {0, `"result":"0x"`, []string{"it is no token contract on this chain"}},
		"what is no number":     {18, says(256), []string{"is not the number of decimals of a token"}},
		"what is longer": {18, `"result":"` + common.MaxHash.Hex() + `00"`,
			[]string{"answered with 33 bytes"}},
		"a node of another chain": {18, "", []string{"its chain ID is 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &oneorder.Chain{Say: map[string]string{"eth_call": tt.says}}
			if tt.says == "" {
				c.Say["eth_chainId"] = `"result":"0x1"`
			}
			proof := must.Get(rampproof.New(rampproof.Config{Network: ramp.Testnet, Chain: pinned(t, c),
				AnyFailure: true,
				Decimals:   map[common.Address]int{proofToken: tt.decimals}}))(t)
			handler := must.Get(ramp.NewHandler(configWith(t, proof, ramp.AnyWallet)))(t)
			err := handler.Check(t.Context())
			if tt.want == nil {
				assert.NoError(t, err)
			}
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

// What a result costs the node, all of it included. Only before a mint is given back does a proof
// ask more than Confirmed.
func TestAResultAsksTheNodeLittle(t *testing.T) {
	mint := func(h *heist) placer { return h.service.Mint }
	burn := func(h *heist) placer { return h.service.Burn }
	for _, tt := range []struct {
		name  string
		place func(*heist) placer
		fails bool
		waits time.Duration // before its result is reported
		most  int           // requests
	}{
		{"a mint", mint, false, 0, 1},
		{"a burn", burn, false, 0, 1},
		{"a burn that fails", burn, true, 0, 1},
		{"a mint that fails", mint, true, 0, 10},
		{"a mint that fails, reported after 12 hours", mint, true, 12 * time.Hour, 10},
	} {
		for name, setting := range map[string]setting{"Confirmed": settings[1], "Proof": settings[3]} {
			inBubble(t, tt.name+", "+name, func(t *testing.T) {
				h := newHeist(t, setting)
				h.order(h.service.Mint, "honest") // is the witness
				h.service.Advance(time.Hour)
				faults, outcome := []ramptest.Fault{ramptest.ResultNever()}, ramptest.Succeeded
				if tt.fails {
					faults, outcome = append(faults, ramptest.TransactionFails()), ramptest.Failed
				}
				order := h.order(tt.place(h), "honest", faults...)
				h.service.Advance(tt.waits)
				h.node.requests = 0
				require.NoError(t, h.service.Deliver(t.Context(), order, outcome))
				if name == "Confirmed" {
					assert.Equal(t, 1, h.node.requests)
				}
				assert.LessOrEqual(t, h.node.requests, tt.most)
			})
		}
	}
}

// failsOnce is a store whose next update fails, as after a deadlock.
type failsOnce struct {
	*ramp.MemoryStore
	fails bool
}

func (s *failsOnce) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	if s.fails {
		s.fails = false
		return ramp.Step{}, errors.New("deadlock detected")
	}
	return s.MemoryStore.Update(ctx, id, next)
}

// The order is read before a proof looks for another mint, and updated afterwards. If only the first fails, nothing is
// given back: the next delivery looks again.
func TestNothingIsGivenBackUnlessTheProofHasLooked(t *testing.T) {
	inBubble(t, "the store fails once", func(t *testing.T) {
		var store *failsOnce
		h := newHeist(t, setting{"", func(h *heist, c *ramp.HandlerConfig) {
			store = &failsOnce{MemoryStore: c.Store.(*ramp.MemoryStore)}
			c.Store, c.Confirm, c.Wallet = store, h.proof(), ramp.AnyWallet
		}})
		h.order(h.service.Mint, "honest") // is the witness
		h.service.Advance(time.Hour)
		order := h.order(h.service.Mint, "honest", ramptest.ResultNever(), ramptest.TransactionFails())
		h.mined("zero>honest 0.99") // the same signature, in a second transaction
		store.fails = true
		for range 2 {
			assert.ErrorContains(t, h.service.Deliver(t.Context(), order, ramptest.Failed), "500")
		}
		assert.EqualValues(t, 800, h.vault.Gold["honest"])
	})
}

// A store that cannot say which order a transaction has ended is refused, whatever the result is.
func TestAProofNeedsALedger(t *testing.T) {
	store := struct{ ramp.Store }{new(ramp.MemoryStore)}
	proof := must.Get(rampproof.New(rampproof.Config{Chain: pinned(t, new(oneorder.Chain)), Network: ramp.Testnet,
		AnyFailure: true}))(t)
	result := must.Get(ramp.ParseResult(webhookResult().Bytes(t)))(t)
	_, err := proof.Confirm(t.Context(), store, result, ramp.Finish(result, time.Now()))
	assert.ErrorContains(t, err, "the store must be a rampproof.OrderFinder")

	config := ramp.HandlerConfig{Terms: anyTerms, Players: noPlayers{}, Store: store, Key: testKey(t),
		Signer: testSigner(t), Confirm: proof, Wallet: ramp.AnyWallet}
	_, err = ramp.NewHandler(config)
	assert.ErrorContains(t, err, "HandlerConfig.Store must be a rampproof.OrderFinder")
}
