package ramp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The settings that docs/security.md compares, from the weakest to the strongest.
const (
	noChain = iota
	onlyChain
	chainAndProof
)

// heist is a game with an honest player and a thief, who has the HMAC key.
type heist struct {
	t       *testing.T
	service *ramptest.Service
	client  *ramp.Client
	handler *ramp.Handler
	vault   *vault
}

func newHeist(t *testing.T, setting int) *heist {
	h := &heist{t: t, service: ramptest.Start(t, ramptest.Config{Key: testKey(t), Validator: testSigner(t).Address(), Handler: http.NotFoundHandler(),
		Books: ramptest.BooksOff})} // the thief makes the calls, and not the service
	game, v := newVault(t, func(c *ramp.HandlerConfig) {
		c.Now, c.Logger = h.service.Now, slog.New(slog.DiscardHandler)
		if setting >= onlyChain {
			chain, err := ramp.NewRPC(ramp.RPCConfig{URL: h.service.RPCURL(ramp.Testnet), ChainID: 7002, HTTPClient: h.service.Client(), Retries: -1})
			require.NoError(t, err)
			c.Chain = chain
		}
		if setting >= chainAndProof {
			c.Proof = &ramp.Proof{Payers: []common.Address{h.service.Payer()}, Decimals: map[common.Address]int{common.HexToAddress(testToken): 18}}
		}
	})
	v.gold["honest"] = 1000
	h.vault, h.handler = v, game.handler
	h.service.SetHandler(game.handler)
	var err error
	h.client, err = ramp.NewClient(ramp.ClientConfig{URL: h.service.URL(), Key: testKey(t), HTTPClient: h.service.Client()})
	require.NoError(t, err)
	return h
}

// order places an order of one token, and lets its transaction end.
func (h *heist) order(place placer, session string, faults ...ramptest.Fault) *ramptest.Order {
	h.t.Helper()
	request := testRequest()
	request.Intent.Outputs = request.Intent.Materials
	started, err := h.client.Initialize(h.t.Context(), request)
	require.NoError(h.t, err)
	order, err := place(h.t.Context(), started.UUID, ramp.Session{ID: session, Token: ramp.NewAccessToken("token-" + session)}, ramp.NewAmount(1),
		append([]ramptest.Fault{ramptest.TransactionType(7)}, faults...)...)
	require.NoError(h.t, err)
	h.service.Advance(time.Minute)
	return order
}

// forge delivers a result for an order that names a transaction, signed with the stolen
// key, and reports whether it was confirmed.
func (h *heist) forge(order *ramptest.Order, transaction common.Hash, status uint64) bool {
	h.t.Helper()
	intent, err := json.Marshal(order.Request.Intent)
	require.NoError(h.t, err)
	body := fmt.Appendf(nil, `{"uuid":"%s","tx_hash":"%s","receipt":{"status":"0x%x"},"intent":%s}`, order.UUID, transaction, status, intent)
	reply := h.handler.AnswerResult(h.t.Context(), http.Header{ramp.HeaderHMAC: {testKey(h.t).Sign(body)}}, body)
	return reply.Status == http.StatusOK
}

// burnBy reports a burn that did not happen, with a trick.
func burnBy(trick ramptest.Trick) func(*heist) {
	return func(h *heist) {
		burn := h.order(h.service.Burn, "thief", ramptest.StaysPending())
		transaction, err := h.service.Cheat(h.t.Context(), burn, trick)
		require.NoError(h.t, err)
		h.forge(burn, transaction, 1)
	}
}

// failureBy reports a mint that succeeded as failed, with a trick.
func failureBy(trick ramptest.Trick) func(*heist) {
	return func(h *heist) {
		mint := h.order(h.service.Mint, "thief", ramptest.ResultNever())
		transaction, err := h.service.Cheat(h.t.Context(), mint, trick)
		require.NoError(h.t, err)
		h.forge(mint, transaction, 0)
	}
}

type placer = func(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount, faults ...ramptest.Fault) (*ramptest.Order, error)

// docs/security.md has this table: what somebody with the HMAC key can do.
func TestWhatAThiefWithTheHMACKeyCanDo(t *testing.T) {
	silent := ramptest.ResultNever()
	for name, attack := range map[string]struct {
		play    func(h *heist)
		granted [3]int64 // the thief's gold, for each setting
	}{
		"a burn that never happened": {func(h *heist) {
			burn := h.order(h.service.Burn, "thief", ramptest.StaysPending())
			h.forge(burn, common.MaxHash, 1)
		}, [3]int64{100, 0, 0}},
		"a burn with the burn of somebody else": {func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			burn := h.order(h.service.Burn, "thief", ramptest.StaysPending())
			h.forge(burn, genuine.TxHash, 1)
		}, [3]int64{100, 100, 0}},
		"a burn with a mint of the thief's own": {func(h *heist) {
			mint := h.order(h.service.Mint, "thief", silent) // costs 100
			burn := h.order(h.service.Burn, "thief", ramptest.StaysPending())
			h.forge(burn, mint.TxHash, 1)
		}, [3]int64{0, 0, -100}},
		"a mint that succeeded, given back without a transaction": {func(h *heist) {
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(mint, common.MaxHash, 0)
		}, [3]int64{0, -100, -100}},
		"a mint that succeeded, given back by the failed burn of somebody else": {func(h *heist) {
			failed := h.order(h.service.Burn, "honest", silent, ramptest.TransactionFails(), ramptest.TransactionType(2)) // paid by its sender
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(mint, failed.TxHash, 0)
		}, [3]int64{0, 0, -100}},
		"a mint that succeeded, given back by a failed burn that the ramp paid for": {func(h *heist) {
			failed := h.order(h.service.Burn, "thief", silent, ramptest.TransactionFails()) // its result has not arrived yet
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(mint, failed.TxHash, 0)
		}, [3]int64{0, 0, 0}},
		"a mint that succeeded, given back by a failed call of the thief's": {failureBy(ramptest.FailedCall), [3]int64{0, 0, -100}},
		"a mint that succeeded, given back by a failed creation":            {failureBy(ramptest.FailedCreation), [3]int64{0, 0, -100}},
		"a burn with a transfer to a friend":                                {burnBy(ramptest.SignedTransfer), [3]int64{100, 100, 0}},
		"a burn with a transfer from a friend":                              {burnBy(ramptest.FriendsTransfer), [3]int64{100, 100, 0}},
		"a burn with a transfer to oneself":                                 {burnBy(ramptest.SelfTransfer), [3]int64{100, 100, 0}},
		"a burn with an approval":                                           {burnBy(ramptest.Approval), [3]int64{100, 100, 0}},
		"two burns with one transaction": {func(h *heist) {
			genuine := h.order(h.service.Burn, "thief")
			again := h.order(h.service.Burn, "thief", ramptest.StaysPending())
			h.forge(again, genuine.TxHash, 1)
		}, [3]int64{100, 100, 100}},
		"the burn of another session of the thief's": {func(h *heist) {
			genuine := h.order(h.service.Burn, "honest") // which the thief has, too
			again := h.order(h.service.Burn, "thief", ramptest.StaysPending())
			h.forge(again, genuine.TxHash, 1)
		}, [3]int64{0, 0, 0}},
	} {
		for setting, granted := range attack.granted {
			t.Run(name+[]string{", without a chain", ", with a chain", ", with a chain and proof"}[setting], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHeist(t, setting)
					h.vault.gold["thief"] = 1000
					attack.play(h)
					assert.Equal(t, granted, h.vault.gold["thief"]-1000)
				})
			})
		}
	}
}
