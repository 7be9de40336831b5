package ramp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
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
	anyWallet
	ownWallet
)

var settings = []string{"no Chain", "Chain", "Proof and AnyWallet", "Proof and Wallet"}

// bridge is a contract of the ramp.
var bridge = common.HexToAddress("0x000000000000000000000000000000000000b41d")

// heist is a game with an honest player and a thief, who has the HMAC key.
type heist struct {
	t       *testing.T
	service *ramptest.Service
	client  *ramp.Client
	game    caller
	vault   *vault
	node    *editedNode
	wallets sync.Map // the player of each wallet
}

func newHeist(t *testing.T, setting int) *heist {
	h := &heist{t: t, service: ramptest.Start(t, ramptest.Config{Key: testKey(t), Validator: testSigner(t).Address(), Handler: http.NotFoundHandler(),
		Books: ramptest.BooksOff})} // the thief makes calls, too
	h.node = &editedNode{base: h.service.Client().Transport, logs: map[common.Hash][]ramp.Log{}}
	h.game, h.vault = newVault(t, func(c *ramp.HandlerConfig) {
		c.Now, c.Logger = h.service.Now, slog.New(slog.DiscardHandler)
		if setting >= onlyChain {
			chain, err := ramp.NewRPC(ramp.RPCConfig{URL: h.service.RPCURL(ramp.Testnet), ChainID: 7002, HTTPClient: &http.Client{Transport: h.node}, Retries: -1})
			require.NoError(t, err)
			c.Chain = chain
		}
		if setting >= anyWallet {
			c.Proof = &ramp.Proof{Payers: []common.Address{h.service.Payer()}, Contracts: []common.Address{proofToken, bridge},
				Decimals: map[common.Address]int{proofToken: 18}}
			c.AnyWallet = setting == anyWallet
		}
		if setting == ownWallet {
			c.Wallet = h.bind
		}
	})
	h.vault.gold["honest"], h.vault.gold["thief"] = 1000, 1000
	h.service.SetHandler(h.game.handler)
	var err error
	h.client, err = ramp.NewClient(ramp.ClientConfig{URL: h.service.URL(), Key: testKey(t), HTTPClient: h.service.Client()})
	require.NoError(t, err)
	return h
}

// bind lets a wallet belong to the player who names it first.
func (h *heist) bind(_ context.Context, s ramp.Session, wallet common.Address) error {
	if player, _ := h.wallets.LoadOrStore(wallet, s.ID); player != s.ID {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// editedNode is the emulated node, with transactions that it cannot make.
type editedNode struct {
	base http.RoundTripper
	logs map[common.Hash][]ramp.Log // of the receipts of some transactions
}

func (n *editedNode) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	n.edit(answer)
	text, err := json.Marshal(answer)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return response, err
}

// edit edits the receipts of an answer, or of each of a batch.
func (n *editedNode) edit(answer any) {
	switch v := answer.(type) {
	case []any:
		for _, one := range v {
			n.edit(one)
		}
	case map[string]any:
		n.edit(v["result"])
		if logs, edited := n.logs[common.HexToHash(fmt.Sprint(v["transactionHash"]))]; edited {
			v["logs"] = logs
		}
	}
}

// wallet returns the wallet of a player.
func (h *heist) wallet(player string) common.Address { return h.service.Wallet(session(player)) }

func session(player string) ramp.Session {
	return ramp.Session{ID: player, Token: ramp.NewAccessToken("token-" + player)}
}

// order places an order of one token with the service, and lets its transaction end. It
// returns nil if the game rejects it.
func (h *heist) order(place placer, player string, faults ...ramptest.Fault) *ramptest.Order {
	h.t.Helper()
	request := testRequest()
	request.Intent.Outputs = request.Intent.Materials
	started, err := h.client.Initialize(h.t.Context(), request)
	require.NoError(h.t, err)
	order, err := place(h.t.Context(), started.UUID, session(player), ramp.NewAmount(1), append([]ramptest.Fault{ramptest.TransactionType(7)}, faults...)...)
	if err != nil {
		require.ErrorContains(h.t, err, "INVALID_USER")
		return nil
	}
	h.service.Advance(time.Minute)
	return order
}

// mined makes a transaction with these logs.
func (h *heist) mined(logs ...ramp.Log) common.Hash {
	h.t.Helper()
	h.vault.gold["anybody"] += 100
	order := h.order(h.service.Mint, "anybody", ramptest.StaysPending())
	transaction, err := h.service.Cheat(h.t.Context(), order, ramptest.SelfTransfer)
	require.NoError(h.t, err)
	h.node.logs[transaction] = logs
	return transaction
}

// validate makes a validate call of the thief's own, for one token and 100 gold.
func (h *heist) validate(direction ramp.Direction, wallet string, change ...func(*ramp.ValidateRequest)) *ramp.ValidateRequest {
	gold := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}}
	token := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: testToken, Amount: ramp.NewAmount(1)}}
	r := &ramp.ValidateRequest{UserSig: "0xaa", UserAddress: wallet, ProjectID: "project-1", Digest: ramp.Digest{1}, UUID: uuid.New(),
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: gold, To: token}}
	if direction == ramp.Burn {
		r.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: token, To: gold}
	}
	for _, c := range change {
		c(r)
	}
	_ = h.game.Validate(h.t.Context(), session("thief"), r)
	return r
}

// forge delivers a result for an order of the thief's that names a transaction.
func (h *heist) forge(r *ramp.ValidateRequest, transaction common.Hash, status uint64) {
	h.t.Helper()
	intent, err := json.Marshal(r.Intent)
	require.NoError(h.t, err)
	body := fmt.Appendf(nil, `{"uuid":"%s","tx_hash":"%s","receipt":{"status":"0x%x"},"intent":%s}`, r.UUID, transaction, status, intent)
	h.game.handler.AnswerResult(h.t.Context(), http.Header{ramp.HeaderHMAC: {testKey(h.t).Sign(body)}}, body)
}

// claims reports a burn of one token from a wallet with a transaction. Both calls are the thief's.
func (h *heist) claims(wallet string, transaction common.Hash) {
	h.forge(h.validate(ramp.Burn, wallet), transaction, 1)
}

// burnBy reports a burn that did not happen, with a trick.
func burnBy(trick ramptest.Trick) func(*heist) {
	return func(h *heist) {
		burn := h.order(h.service.Burn, "thief", ramptest.StaysPending())
		transaction, err := h.service.Cheat(h.t.Context(), burn, trick)
		require.NoError(h.t, err)
		h.claims(h.wallet("thief").Hex(), transaction)
	}
}

// failureBy reports a mint that succeeded as failed, with a trick.
func failureBy(trick ramptest.Trick) func(*heist) {
	return func(h *heist) {
		mint := h.order(h.service.Mint, "thief", ramptest.ResultNever())
		transaction, err := h.service.Cheat(h.t.Context(), mint, trick)
		require.NoError(h.t, err)
		h.forge(&mint.Request, transaction, 0)
	}
}

// burnWith reports a burn with a transaction that the thief makes.
func burnWith(logs func(thief common.Address) []ramp.Log) func(*heist) {
	return func(h *heist) { h.claims(h.wallet("thief").Hex(), h.mined(logs(h.wallet("thief"))...)) }
}

// burnFrom reports a burn with a transaction in which somebody who is no player burns.
func burnFrom(account func(*heist) common.Address) func(*heist) {
	return func(h *heist) {
		h.claims(account(h).Hex(), h.mined(transferLog(proofToken, account(h), nobody, 1), transferLog(proofToken, account(h), bridge, 1)))
	}
}

type placer = func(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount, faults ...ramptest.Fault) (*ramptest.Order, error)

// theft is an attack, and the row of docs/security.md that it belongs to.
type theft struct {
	row  string
	cost int64 // of the thief's own orders
	play func(h *heist)
}

// thefts are the attacks. The thief makes the validate calls, and so chooses the wallet.
func thefts() map[string]theft {
	const (
		another  = "a burn that somebody else made"
		victim   = "the same, and names that player's wallet"
		ofRamp   = "a burn by the ramp's contract or account, or by the token"
		transfer = "a transfer to or from a friend or oneself, or an approval, as a burn"
		goOn     = "a burn whose tokens go on to a friend, or come back"
		called   = "a burn of one unit, of a token that the order calls NFT"
		unpaid   = "the same, with a failed transaction that the ramp did not pay for"
		second   = "a second order, with a transaction that ended another"
	)
	silent := ramptest.ResultNever()
	return map[string]theft{
		"a burn in no block": {"a burn that never happened", 0, func(h *heist) {
			h.claims(h.wallet("thief").Hex(), common.MaxHash)
		}},
		"the burn of another wallet": {another, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			h.claims(h.wallet("thief").Hex(), genuine.TxHash)
		}},
		"the burn of another wallet, beside a transfer": {another, 0, func(h *heist) {
			h.claims(h.wallet("thief").Hex(), h.mined(transferLog(proofToken, h.wallet("thief"), stranger, 1), transferLog(proofToken, h.wallet("honest"), nobody, 1)))
		}},
		"the burn of another wallet, which the UUID gets afterwards": {another, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			burn := h.validate(ramp.Burn, h.wallet("thief").Hex())
			again := h.validate(ramp.Burn, h.wallet("honest").Hex(), func(r *ramp.ValidateRequest) { r.UUID = burn.UUID })
			h.forge(again, genuine.TxHash, 1)
		}},
		"the wallet of a player who burns": {victim, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			h.claims(h.wallet("honest").Hex(), genuine.TxHash)
		}},
		"the wallet in another case": {victim, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			h.claims(strings.ToLower(h.wallet("honest").Hex()), genuine.TxHash)
		}},
		"the wallet before its player names it": {victim, 0, func(h *heist) {
			burn := h.validate(ramp.Burn, h.wallet("honest").Hex())
			if genuine := h.order(h.service.Burn, "honest", silent); genuine != nil {
				h.forge(burn, genuine.TxHash, 1)
			}
		}},
		"a contract":               {ofRamp, 0, burnFrom(func(*heist) common.Address { return bridge })},
		"the token":                {ofRamp, 0, burnFrom(func(*heist) common.Address { return proofToken })},
		"an account":               {ofRamp, 0, burnFrom(func(h *heist) common.Address { return h.service.Payer() })},
		"the zero address":         {"a burn by the zero address", 0, burnFrom(func(*heist) common.Address { return nobody })},
		"a mint":                   {"a mint of their own, as a burn", 100, func(h *heist) { h.claims(h.wallet("thief").Hex(), h.order(h.service.Mint, "thief", silent).TxHash) }},
		"a transfer to a friend":   {transfer, 0, burnBy(ramptest.SignedTransfer)},
		"a transfer from a friend": {transfer, 0, burnBy(ramptest.FriendsTransfer)},
		"a transfer to oneself":    {transfer, 0, burnBy(ramptest.SelfTransfer)},
		"an approval":              {transfer, 0, burnBy(ramptest.Approval)},
		"the ramp sends tokens on": {goOn, 0, burnWith(func(thief common.Address) []ramp.Log {
			return []ramp.Log{transferLog(proofToken, thief, bridge, 1), transferLog(proofToken, bridge, stranger, 1)}
		})},
		"a friend sends tokens back": {goOn, 0, burnWith(func(thief common.Address) []ramp.Log {
			return []ramp.Log{transferLog(proofToken, thief, bridge, 1), transferLog(proofToken, bridge, stranger, 1), transferLog(proofToken, stranger, thief, 1)}
		})},
		"tokens are minted again": {goOn, 0, burnWith(func(thief common.Address) []ramp.Log {
			return []ramp.Log{transferLog(proofToken, thief, nobody, 1), transferLog(proofToken, nobody, stranger, 1)}
		})},
		"a fee is taken from the amount": {goOn, 0, burnWith(func(thief common.Address) []ramp.Log {
			return append(make([]ramp.Log, 0, 2), unitsLog(proofToken, thief, bridge, 1e18-1), unitsLog(proofToken, thief, stranger, 1))
		})},
		"a reorganization": {goOn, 0, burnWith(func(thief common.Address) []ramp.Log {
			return []ramp.Log{removed(transferLog(proofToken, thief, nobody, 1))}
		})},
		"a unit of an ERC-20 token": {called, 0, func(h *heist) {
			burn := h.validate(ramp.Burn, h.wallet("thief").Hex(), func(r *ramp.ValidateRequest) { r.Intent.From[0].Type = ramp.TypeNFT })
			h.forge(burn, h.mined(unitsLog(proofToken, h.wallet("thief"), nobody, 1)), 1)
		}},
		"a piece of a token that is counted": {called, 0, burnWith(func(thief common.Address) []ramp.Log {
			return []ramp.Log{pieceLog(proofToken, thief, nobody, 1e18)}
		})},
		"no transaction": {"a mint that succeeded, as failed, without a transaction", 100, func(h *heist) {
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(&mint.Request, common.MaxHash, 0)
		}},
		"the failed burn of somebody else": {unpaid, 100, func(h *heist) {
			failed := h.order(h.service.Burn, "honest", silent, ramptest.TransactionFails(), ramptest.TransactionType(2)) // paid by its sender
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(&mint.Request, failed.TxHash, 0)
		}},
		"a failed call":     {unpaid, 100, failureBy(ramptest.FailedCall)},
		"a failed creation": {unpaid, 100, failureBy(ramptest.FailedCreation)},
		"a failed burn of the thief's": {"the same, with one that the ramp paid for and that has ended no order", 100, func(h *heist) {
			failed := h.order(h.service.Burn, "thief", silent, ramptest.TransactionFails()) // its result has not arrived yet
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(&mint.Request, failed.TxHash, 0)
		}},
		"two burns": {second, -100, func(h *heist) {
			genuine := h.order(h.service.Burn, "thief")
			h.claims(h.wallet("thief").Hex(), genuine.TxHash)
		}},
		"another session of the thief's": {second, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest") // which the thief has, too
			h.claims(h.wallet("thief").Hex(), genuine.TxHash)
		}},
	}
}

// docs/security.md has a table of what somebody with the HMAC key can do. Each cell is
// played, and nothing that is not there.
func TestWhatAThiefWithTheHMACKeyCanDo(t *testing.T) {
	guide, err := os.ReadFile("docs/security.md")
	require.NoError(t, err)
	table := regexp.MustCompile(`(?m)^\| the thief reports \|.*\n\|[-|]+\|\n((?:\|.*\n)+)`).FindSubmatch(guide)
	require.NotNil(t, table)
	cells, played := map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(string(table[1])) {
		row := strings.Split(strings.Trim(line, "|\n "), " | ")
		require.Len(t, row, 1+len(settings))
		cells[row[0]] = row[1:]
	}
	for name, attack := range thefts() {
		require.Contains(t, cells, attack.row)
		played[attack.row] = true
		for setting, cell := range cells[attack.row] {
			t.Run(name+", "+settings[setting], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHeist(t, setting)
					attack.play(h)
					won := h.vault.gold["thief"] - 1000 + attack.cost
					wins, known := map[string]int64{"pays": 100, "gives back": 100, "nothing": 0}[strings.Trim(cell, "*")]
					require.True(t, known, cell)
					assert.Equal(t, wins, won)
				})
			})
		}
	}
	assert.Len(t, played, len(cells), "rows that nothing plays")
}

// What is proven pays all the same: nobody loses because of the settings.
func TestAnHonestBurnIsPaidUnderEverySetting(t *testing.T) {
	for setting, name := range settings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeist(t, setting)
				for range 2 { // the wallet is the player's already
					require.NotNil(t, h.order(h.service.Burn, "honest"))
				}
				assert.EqualValues(t, 1200, h.vault.gold["honest"])
			})
		})
	}
}
