package rampproof_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence/movetest"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/internal/test/thief"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

var (
	proofToken = common.HexToAddress(testToken)
	rampBridge = common.HexToAddress("0xb41d")
)

// named are who takes part in the transactions of tests, besides the players.
var named = map[string]common.Address{"ramp": rampBridge, "token": proofToken, "friend": common.HexToAddress("0x5713"),
	"zero": {}}

// The settings that docs/security.md compares, from the weakest to the strongest.
var settings = []setting{
	{"no Confirm", func(*heist, *ramp.HandlerConfig) {}},
	{"Confirmed", func(h *heist, c *ramp.HandlerConfig) { c.Confirm = rampproof.Confirmed(h.chain, 1) }},
	{"Proof and AnyWallet", func(h *heist, c *ramp.HandlerConfig) { c.Confirm, c.Wallet = h.proof(), ramp.AnyWallet }},
	{"Proof and Wallet", func(h *heist, c *ramp.HandlerConfig) { c.Confirm, c.Wallet = h.proof(), h.bind }},
}

// setting is a way to configure a handler.
type setting struct {
	name string
	set  func(*heist, *ramp.HandlerConfig)
}

// heist is a game with an honest player and a thief, who has the HMAC key.
type heist struct {
	config  ramp.HandlerConfig
	t       *testing.T
	service *ramptest.Service
	client  *ramp.Client
	handler *ramp.Handler
	chain   *ramp.RPC
	vault   *oneorder.Vault
	node    *editedNode
	wallets sync.Map // the player of each wallet
	answer  []byte   // to the last validate call of the thief's
	outcome string   // of an attack that wins no gold
}

func newHeist(t *testing.T, s setting) *heist {
	h := &heist{t: t, service: ramptest.Start(t, ramptest.Config{Key: testKey(t), Validator: testSigner(t).Address(),
		Handler: http.NotFoundHandler(), Audit: ramptest.AuditOff})} // the thief makes calls, too
	h.node = &editedNode{base: h.service.Client().Transport, edited: map[common.Hash]edited{}}
	h.vault = &oneorder.Vault{Gold: map[string]int64{}}
	h.chain = must.Get(ramp.NewRPC(ramp.RPCConfig{URL: h.service.RPCURL(ramp.Testnet), ChainID: 7002,
		HTTPClient: &http.Client{Transport: h.node}, Retries: -1}))(t)
	config := ramp.HandlerConfig{Terms: anyTerms, Players: noPlayers{}, Store: &ramp.MemoryStore{Apply: h.vault.Apply},
		Key: testKey(t), Signer: testSigner(t), Now: h.service.Now, Logger: quiet}
	s.set(h, &config)
	h.config = config
	h.handler = must.Get(ramp.NewHandler(config))(t)
	h.vault.Gold["honest"], h.vault.Gold["thief"] = 1000, 1000
	h.service.SetHandler(h.handler)
	h.client = must.Get(ramp.NewClient(ramp.ClientConfig{URL: h.service.URL(), Key: testKey(t),
		HTTPClient: h.service.Client()}))(t)
	return h
}

// proof returns one of a studio that knows the account and the contract of its ramp.
func (h *heist) proof(change ...func(*rampproof.Config)) *rampproof.Proof {
	config := rampproof.Config{Chain: h.chain,
		Payers: []common.Address{h.service.Payer()}, Contracts: []common.Address{proofToken, rampBridge},
		Decimals: map[common.Address]int{proofToken: 18}, Network: ramp.Testnet,
		MintFeeBps: map[common.Address]int{proofToken: 100}, Logger: quiet}
	for _, c := range change {
		c(&config)
	}
	return must.Get(rampproof.New(config))(h.t)
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
	base   http.RoundTripper
	edited map[common.Hash]edited
	hides  common.Hash // a transaction whose receipt it does not have

	requests int
}

// edited is what the node says of a transaction, and in its receipt, instead of the truth.
type edited struct {
	at     ramp.Quantity // its block
	logs   []ramp.Log    // of the receipt
	fields map[string]any
}

func (n *editedNode) RoundTrip(r *http.Request) (*http.Response, error) {
	n.requests++
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(asked))
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
	n.list(asked, answer)
	text, err := json.Marshal(answer)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return response, err
}

// edit edits the receipts and transactions of an answer, or of each of a batch.
func (n *editedNode) edit(answer any) {
	switch v := answer.(type) {
	case []any:
		for _, one := range v {
			n.edit(one)
		}
	case map[string]any:
		n.edit(v["result"])
		if r, ok := v["result"].(map[string]any); ok && r["transactionHash"] == n.hides.Hex() {
			v["result"] = nil
		}
		for _, name := range []string{"transactionHash", "hash"} {
			if e, edited := n.edited[common.HexToHash(fmt.Sprint(v[name]))]; edited {
				v["logs"] = e.logs
				maps.Copy(v, e.fields)
			}
		}
	}
}

// list adds events to the lists of an answer. The emulator answers the calls of a batch in their order.
func (n *editedNode) list(asked []byte, answer any) {
	answers, _ := answer.([]any)
	calls, _, _ := jsonrpc.Read(asked)
	for i, a := range answers {
		if calls[i].Method != "eth_getLogs" {
			continue
		}
		var filter struct {
			FromBlock, ToBlock ramp.Quantity
			Topics             [][]common.Hash
		}
		_ = json.Unmarshal(calls[i].Params[0], &filter)
		from, _ := filter.FromBlock.Uint64()
		to, _ := filter.ToBlock.Uint64()
		for hash, e := range n.edited {
			block, _ := e.at.Uint64()
			for i, l := range e.logs {
				matches := from <= block && block <= to && !l.Removed && l.Address == proofToken
				for i, topics := range filter.Topics {
					matches = matches && (len(topics) == 0 || slices.Contains(topics, l.Topics[i]))
				}
				if matches {
					l.TransactionHash, l.BlockNumber, l.LogIndex = hash, e.at, ramp.NewQuantity(uint64(i))
					list := a.(map[string]any)
					list["result"] = append(list["result"].([]any), l)
				}
			}
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
func (h *heist) order(place placer, player string, faults ...ramptest.Fault) *ramptest.PlacedOrder {
	h.t.Helper()
	price := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	request := ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project-1",
		Token: testToken, MintFeeBps: 100, Materials: price, Outputs: price}}
	started := must.Get(h.client.Initialize(h.t.Context(), request))(h.t)
	faults = append([]ramptest.Fault{ramptest.TransactionType(7)}, faults...)
	order, err := place(h.t.Context(), started.UUID, session(player), ramp.NewAmount(1), faults...)
	if err != nil {
		require.ErrorContains(h.t, err, "INVALID_USER")
		return nil
	}
	h.service.Advance(time.Minute)
	return order
}

// mined makes a transaction with some events, in which the wallets of the thief and of the
// honest player can take part, and the account of the service.
func (h *heist) mined(list string) common.Hash {
	h.vault.Gold["anybody"] += 100
	order := h.order(h.service.Mint, "anybody", ramptest.StaysPending())
	transaction := must.Get(thief.Play(h.t.Context(), h.service, order, thief.SelfTransfer))(h.t)
	at := must.Get(h.chain.Receipt(h.t.Context(), transaction))(h.t).BlockNumber
	h.node.edited[transaction] = edited{at, movetest.Logs(proofToken, list, h.named()), map[string]any{}}
	return transaction
}

// twice is mined, and the node lists each event twice.
func (h *heist) twice(list string) common.Hash {
	transaction := h.mined(list)
	e := h.node.edited[transaction]
	for n := range e.logs {
		e.logs[n].LogIndex = ramp.NewQuantity(uint64(n))
	}
	e.logs = append(e.logs, e.logs...)
	h.node.edited[transaction] = e
	return transaction
}

func (h *heist) named() map[string]common.Address {
	who := maps.Clone(named)
	who["thief"], who["honest"], who["account"] = h.wallet("thief"), h.wallet("honest"), h.service.Payer()
	return who
}

// validate makes a validate call of the thief's own, for one token and 100 gold.
func (h *heist) validate(
	direction ramp.Direction, wallet string, change ...func(*ramp.ValidateRequest),
) *ramp.ValidateRequest {
	gold := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}}
	token := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: testToken, Amount: ramp.NewAmount(1)}}
	r := &ramp.ValidateRequest{UserSig: "0xaa", UserAddress: wallet, ProjectID: "project-1",
		Digest: ramp.Digest{1}, UUID: uuid.New(),
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: gold, To: token}}
	if direction == ramp.Burn {
		r.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: token, To: gold}
	}
	for _, c := range change {
		c(r)
	}
	body := must.Get(json.Marshal(r))(h.t)
	header := signed(h.t, body)
	header.Set(ramp.HeaderAuthorization, "Bearer token-thief")
	header.Set(ramp.HeaderSession, "thief")
	h.answer = h.handler.Answer(h.t.Context(), http.MethodPost, ramp.PathValidate, header, body).Body
	return r
}

// forge delivers a result for an order that names a transaction, and returns the status of
// the answer.
func (h *heist) forge(r *ramp.ValidateRequest, transaction common.Hash, status uint64) int {
	intent := must.Get(json.Marshal(r.Intent))(h.t)
	body := fmt.Appendf(nil, `{"uuid":"%s","tx_hash":"%s","receipt":{"status":"0x%x"},"intent":%s}`, r.UUID,
		transaction, status, intent)
	return h.handler.Answer(h.t.Context(), http.MethodPost, ramp.PathResult, signed(h.t, body), body).Status
}

// strands reports that the mint of another player succeeded, with a transaction that moves
// something to that player, and notes whether the player loses what the mint took: its own
// transaction fails, as the service reports afterwards.
func (h *heist) strands(list string) {
	mint := h.order(h.service.Mint, "honest", ramptest.StaysPending())
	h.forge(&mint.Request, h.mined(list), 1)
	_ = h.service.Deliver(h.t.Context(), mint, ramptest.Failed)
	h.outcome = map[int64]string{900: "strands", 1000: "nothing"}[h.vault.Gold["honest"]]
}

// signs asks for a signature of a digest of the thief's choice, with an order that is worth
// next to nothing.
func (h *heist) signs() {
	digest := ramp.Digest(common.HexToHash("0xbad"))
	h.outcome = "nothing"
	h.validate(ramp.Burn, h.wallet("thief").Hex(), func(r *ramp.ValidateRequest) {
		r.Digest = digest
		r.Intent.From[0].Amount = must.Get(ramp.ParseAmount("0.01"))(h.t)
		r.Intent.To[0].Amount = ramp.NewAmount(1)
	})
	var reply ramp.Response[ramp.Approval]
	require.NoError(h.t, json.Unmarshal(h.answer, &reply))
	if reply.Success && must.Get(ramp.Recover(digest, reply.Data.ValidatorSig))(h.t) == testSigner(h.t).Address() {
		h.outcome = "signs"
	}
}

// claims reports a burn of one token from a wallet with a transaction. Both calls are the thief's.
func (h *heist) claims(wallet common.Address, transaction common.Hash) {
	h.forge(h.validate(ramp.Burn, wallet.Hex()), transaction, 1)
}

// anotherDatabase lets the game's calls go to a handler of another database, with claims or without.
func (h *heist) anotherDatabase(claims *rig.Claims) *ramp.Handler {
	memory := &ramp.MemoryStore{Apply: h.vault.Apply}
	h.config.Store = memory
	if claims != nil {
		h.config.Store = rig.Claiming{MemoryStore: memory, Shared: claims}
	}
	h.handler = must.Get(ramp.NewHandler(h.config))(h.t)
	h.service.SetHandler(h.handler)
	return h.handler
}

// burnBy reports a burn that did not happen, with a trick.
func burnBy(trick thief.Trick) func(*heist) {
	return func(h *heist) {
		burn := h.order(h.service.Burn, "thief", ramptest.StaysPending())
		h.claims(h.wallet("thief"), must.Get(thief.Play(h.t.Context(), h.service, burn, trick))(h.t))
	}
}

// failureBy reports a mint that succeeded as failed, with a trick.
func failureBy(trick thief.Trick) func(*heist) {
	return func(h *heist) {
		mint := h.order(h.service.Mint, "thief", ramptest.ResultNever())
		h.forge(&mint.Request, must.Get(thief.Play(h.t.Context(), h.service, mint, trick))(h.t), 0)
	}
}

// burnWith reports a burn with a transaction that the thief makes.
func burnWith(list string) func(*heist) {
	return func(h *heist) { h.claims(h.wallet("thief"), h.mined(list)) }
}

// burnFrom reports a burn with a transaction in which somebody who is no player burns.
func burnFrom(who string) func(*heist) {
	return func(h *heist) { h.claims(h.named()[who], h.mined(who+">zero 1, "+who+">ramp 1")) }
}

type placer = func(
	ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount, faults ...ramptest.Fault,
) (*ramptest.PlacedOrder, error)

// theft is an attack, and the row of docs/security.md that it belongs to.
type theft struct {
	row  string
	cost int64 // of the thief's own orders
	play func(h *heist)
}

// A game gets HandlerConfig.Wallet while a burn of the honest player waits. The thief names the
// wallet of that player, and reports the burn as their own.
func TestAWalletThatIsBoundWhileOrdersWait(t *testing.T) {
	for _, c := range []struct {
		name   string
		filled bool // the table, from the orders that wait
		wins   int64
	}{{"the table of wallets is empty", false, 100}, {"it has the wallets of orders that wait", true, 0}} {
		inBubble(t, c.name, func(t *testing.T) {
			bound := false
			h := newHeist(t, setting{"Proof", func(h *heist, config *ramp.HandlerConfig) {
				config.Confirm = h.proof()
				config.Wallet = func(ctx context.Context, s ramp.Session, wallet common.Address) error {
					if bound {
						return h.bind(ctx, s, wallet)
					}
					return nil
				}
			}})
			burn := h.order(h.service.Burn, "honest", ramptest.ResultNever())
			bound = true
			if c.filled {
				require.NoError(t, h.bind(t.Context(), session("honest"), h.wallet("honest")))
			}
			before := h.vault.Gold["thief"]
			h.claims(h.wallet("honest"), burn.TxHash)
			assert.Equal(t, c.wins, h.vault.Gold["thief"]-before)
		})
	}
}

// thefts are the attacks. The thief makes the validate calls, and so chooses the wallet.
func thefts() map[string]theft {
	const (
		another  = "a burn that somebody else made, or an approval of their own beside it"
		beside   = "a burn that somebody else made, with a transfer of their own in the same transaction"
		victim   = "the same, and names that player's wallet"
		ofRamp   = "a burn by the ramp's contract or account"
		nobodys  = "a burn by the zero address or the token, which no order may have as its wallet"
		noBurn   = "a transfer from a friend or to oneself, or an approval, as a burn"
		transfer = "a transfer to a friend, as a burn"
		goOn     = "a burn whose tokens go on to a friend, or come back"
		called   = "a burn of the smallest unit of a token that the order calls an NFT, " +
			"or of an NFT whose ID is read as an amount"
		unpaid = "the same, with a failed transaction that the ramp did not pay for"
		second = "a second order, with a transaction that ended another in the same database"
		apart  = "the same, in another database that sells the same token"
		shared = "the same, if both databases have the same `Claims`"

		tiny    = "the same, after the thief has ended a forged order of next to nothing by that mint"
		early   = "the same, before the mint is in a block"
		keyless = "nothing, and no key is needed: the player copies the ramp's call and sends it first, " +
			"so the ramp's own transaction fails"
		removed     = "a burn that a reorganization removed"
		twice       = "a burn of half, which the node lists twice"
		bridge      = "tokens that cross a bridge (burned here), as a burn"
		bridgeToken = "the same, if the bridge is the token itself, and `Contracts` has it"
		stranded    = "another player's failed mint, as succeeded, with a mint of somebody else, " +
			"or a friend's transfer of nothing beside it"
		bribed = "the same; the thief sends that player tokens as false evidence"
		signs  = "an order of next to nothing, with a digest of the thief's choice"
	)
	silent := ramptest.ResultNever()
	return map[string]theft{
		"a burn in no block": {"a burn that never happened", 0, func(h *heist) {
			h.claims(h.wallet("thief"), common.MaxHash)
		}},
		"the burn of another wallet": {another, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			h.claims(h.wallet("thief"), genuine.TxHash)
		}},
		"the burn of another wallet, beside a transfer": {beside, 0, burnWith("thief>friend 1, honest>zero 1")},
		"the burn of another wallet, beside an approval": {another, 0,
			burnWith("thief>friend 1 approval, honest>zero 1")},
		"the burn of another wallet, which the UUID gets afterwards": {another, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			burn := h.validate(ramp.Burn, h.wallet("thief").Hex())
			again := h.validate(ramp.Burn, h.wallet("honest").Hex(),
				func(r *ramp.ValidateRequest) { r.UUID = burn.UUID })
			h.forge(again, genuine.TxHash, 1)
		}},
		"the wallet of a player who burns": {victim, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			h.claims(h.wallet("honest"), genuine.TxHash)
		}},
		"the wallet in another case": {victim, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			h.forge(h.validate(ramp.Burn, strings.ToLower(h.wallet("honest").Hex())), genuine.TxHash, 1)
		}},
		"the wallet before its player names it": {victim, 0, func(h *heist) {
			burn := h.validate(ramp.Burn, h.wallet("honest").Hex())
			if genuine := h.order(h.service.Burn, "honest", silent); genuine != nil {
				h.forge(burn, genuine.TxHash, 1)
			}
		}},
		"a contract":       {ofRamp, 0, burnFrom("ramp")},
		"the token":        {nobodys, 0, burnFrom("token")},
		"an account":       {ofRamp, 0, burnFrom("account")},
		"the zero address": {nobodys, 0, burnFrom("zero")},
		"a mint": {"a mint of their own, as a burn", 100,
			func(h *heist) { h.claims(h.wallet("thief"), h.order(h.service.Mint, "thief", silent).TxHash) }},
		"a transfer to a friend":         {transfer, 0, burnBy(thief.SignedTransfer)},
		"a transfer from a friend":       {noBurn, 0, burnBy(thief.FriendsTransfer)},
		"a transfer to oneself":          {noBurn, 0, burnBy(thief.SelfTransfer)},
		"an approval":                    {noBurn, 0, burnBy(thief.Approval)},
		"the ramp sends tokens on":       {goOn, 0, burnWith("thief>ramp 1, ramp>friend 1")},
		"a friend sends tokens back":     {goOn, 0, burnWith("thief>ramp 1, ramp>friend 1, friend>thief 1")},
		"tokens are minted again":        {goOn, 0, burnWith("thief>zero 1, zero>friend 1")},
		"a fee is taken from the amount": {goOn, 0, burnWith("thief>ramp 0.999999999999999999, thief>friend 1u")},
		"a reorganization":               {removed, 0, burnWith("thief>zero 1 removed")},
		"a double": {twice, 0, func(h *heist) {
			h.claims(h.wallet("thief"), h.twice("thief>zero 0.5"))
		}},
		"a bridge": {bridge, 0, func(h *heist) {
			burn := h.mined("thief>zero 1")
			h.node.edited[burn].fields["to"] = common.HexToAddress("0xb21d6e")
			h.claims(h.wallet("thief"), burn)
		}},
		"a bridge of the token":        {bridgeToken, 0, burnWith("thief>zero 1")},
		"a unit from a stranger":       {bribed, 0, func(h *heist) { h.strands("friend>honest 1u") }},
		"tokens that a friend sells":   {bribed, 0, func(h *heist) { h.strands("friend>honest 1") }},
		"a mint of little":             {bribed, 0, func(h *heist) { h.strands("zero>honest 1u") }},
		"a transfer of nothing":        {stranded, 0, func(h *heist) { h.strands("friend>honest 0, zero>thief 1") }},
		"a mint to somebody else":      {stranded, 0, func(h *heist) { h.strands("zero>thief 1") }},
		"a digest that nobody expects": {signs, 0, (*heist).signs},
		"a unit of an ERC-20 token": {called, 0, func(h *heist) {
			burn := h.validate(ramp.Burn, h.wallet("thief").Hex(),
				func(r *ramp.ValidateRequest) { r.Intent.From[0].Type = ramp.TypeNFT })
			h.forge(burn, h.mined("thief>zero 1u"), 1)
		}},
		"a piece of a token that is counted": {called, 0, burnWith("thief>zero #1000000000000000000")},
		"no transaction": {"a mint that succeeded, as failed, without a transaction", 100, func(h *heist) {
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(&mint.Request, common.MaxHash, 0)
		}},
		"the failed burn of somebody else": {unpaid, 100, func(h *heist) {
			byItsSender := ramptest.TransactionType(2)
			failed := h.order(h.service.Burn, "honest", silent, ramptest.TransactionFails(), byItsSender)
			mint := h.order(h.service.Mint, "thief", silent)
			h.forge(&mint.Request, failed.TxHash, 0)
		}},
		"a failed call":     {unpaid, 100, failureBy(thief.FailedCall)},
		"a failed creation": {unpaid, 100, failureBy(thief.FailedCreation)},
		"a failed burn of the thief's": {"the same, with one that the ramp paid for and that has ended no order", 100,
			func(h *heist) {
				// Its result has not arrived yet.
				failed := h.order(h.service.Burn, "thief", silent, ramptest.TransactionFails())
				mint := h.order(h.service.Mint, "thief", silent)
				h.forge(&mint.Request, failed.TxHash, 0)
			}},
		"a failed burn of the thief's, and a tiny order that the mint ended": {tiny, 101, func(h *heist) {
			mint := h.order(h.service.Mint, "thief", silent)
			little := h.validate(ramp.Mint, h.wallet("thief").Hex(), func(r *ramp.ValidateRequest) {
				r.Intent.From[0].Amount = ramp.NewAmount(1)
				r.Intent.To[0].Amount = must.Get(ramp.ParseAmount("0.01"))(h.t)
			})
			assert.Equal(h.t, http.StatusOK, h.forge(little, mint.TxHash, 1))
			failed := h.order(h.service.Burn, "thief", silent, ramptest.TransactionFails())
			h.forge(&mint.Request, failed.TxHash, 0)
		}},
		"a failed burn of the thief's, early": {early, 100, func(h *heist) {
			failed := h.order(h.service.Burn, "thief", silent, ramptest.TransactionFails())
			mint := h.order(h.service.Mint, "thief", ramptest.StaysPending())
			h.forge(&mint.Request, failed.TxHash, 0)
		}},
		"a copy of the ramp's call": {keyless, 100, func(h *heist) {
			mint := h.order(h.service.Mint, "thief", ramptest.StaysPending())
			h.mined("zero>thief 1")
			_ = h.service.Deliver(h.t.Context(), mint, ramptest.Failed)
		}},
		"two burns": {second, -100, func(h *heist) {
			genuine := h.order(h.service.Burn, "thief")
			h.claims(h.wallet("thief"), genuine.TxHash)
		}},
		"two databases": {apart, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "thief")
			h.vault.Gold["thief"] -= 100 // which is right
			h.anotherDatabase(nil)
			h.claims(h.wallet("thief"), genuine.TxHash)
		}},
		"two databases with claims": {shared, 0, func(h *heist) {
			claims := new(rig.Claims)
			h.anotherDatabase(claims)
			genuine := h.order(h.service.Burn, "thief")
			h.vault.Gold["thief"] -= 100 // which is right
			h.anotherDatabase(claims)
			h.claims(h.wallet("thief"), genuine.TxHash)
		}},
		"two databases with claims, and the thief is first": {shared, 0, func(h *heist) {
			claims := new(rig.Claims)
			first := h.anotherDatabase(claims)
			genuine := h.order(h.service.Burn, "thief", silent)
			h.anotherDatabase(claims)
			h.claims(h.wallet("thief"), genuine.TxHash)
			h.service.SetHandler(first)
			_ = h.service.Deliver(h.t.Context(), genuine, ramptest.Succeeded)
			h.vault.Gold["thief"] -= 100 // which is right, whichever of them paid
		}},
		"another session of the thief's": {second, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest") // which the thief has, too
			h.claims(h.wallet("thief"), genuine.TxHash)
		}},
	}
}

// docs/security.md has a table of what somebody with the HMAC key can do. Each cell is
// played, and nothing that is not there.
func TestWhatAThiefWithTheHMACKeyCanDo(t *testing.T) {
	cells, played := map[string][]string{}, map[string]bool{}
	for _, row := range table(t, "the thief reports", 1+len(settings)) {
		cells[row[0]] = row[1:]
	}
	for name, attack := range thefts() {
		require.Contains(t, cells, attack.row)
		played[attack.row] = true
		for n, cell := range cells[attack.row] {
			inBubble(t, name+", "+settings[n].name, func(t *testing.T) {
				h := newHeist(t, settings[n])
				attack.play(h)
				won := h.vault.Gold["thief"] - 1000 + attack.cost
				wins, known := map[string]int64{"pays": 100, "gives back": 100, "nothing": 0}[strings.Trim(cell, "*")]
				if h.outcome != "" {
					assert.Equal(t, h.outcome, strings.Trim(cell, "*"))
					assert.Zero(t, won)
					return
				}
				require.True(t, known, cell)
				assert.Equal(t, wins, won)
			})
		}
	}
	assert.Len(t, played, len(cells), "rows that nothing plays")
}

// What is proven pays all the same: nobody loses because of the settings.
func TestAnHonestBurnIsPaidUnderEverySetting(t *testing.T) {
	for _, s := range settings {
		asked := 0 // of the node, without claims
		for _, claims := range []*rig.Claims{nil, new(rig.Claims)} {
			inBubble(t, fmt.Sprintf("%s, claims: %v", s.name, claims != nil), func(t *testing.T) {
				h := newHeist(t, s)
				h.anotherDatabase(claims)
				for range 2 { // the wallet is the player's already
					require.NotNil(t, h.order(h.service.Burn, "honest"))
				}
				assert.EqualValues(t, 1200, h.vault.Gold["honest"])
				if claims == nil {
					asked = h.node.requests
				}
				assert.Equal(t, asked, h.node.requests)
			})
		}
	}
}

// A mint that fails is given back under every setting, also as the first order of a store.
func TestAnHonestFailureGivesBackUnderEverySetting(t *testing.T) {
	for _, s := range settings {
		for _, claims := range []*rig.Claims{nil, new(rig.Claims)} {
			inBubble(t, fmt.Sprintf("%s, claims: %v", s.name, claims != nil), func(t *testing.T) {
				h := newHeist(t, s)
				h.anotherDatabase(claims)
				for n := range 2 {
					h.order(h.service.Mint, "honest", ramptest.TransactionFails())
					assert.EqualValues(t, 1000-100*n, h.vault.Gold["honest"])
					require.NotNil(t, h.order(h.service.Mint, "honest"))
				}
			})
		}
	}
}
