package ramp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

var (
	proofToken  = common.HexToAddress(testToken)
	proofUser   = common.HexToAddress("0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb")
	rampAccount = common.HexToAddress("0x00000000000000000000000000000000000a11ce")
	rampBridge  = common.HexToAddress("0x000000000000000000000000000000000000b41d")
	stranger    = common.HexToAddress("0x0000000000000000000000000000000000005713")
	otherPlayer = common.HexToAddress("0x0000000000000000000000000000000000009ea2")
	nobody      common.Address
)

// named are who takes part in the transactions of tests.
var named = map[string]common.Address{"user": proofUser, "zero": nobody, "ramp": rampBridge, "account": rampAccount,
	"token": proofToken, "friend": stranger, "player": otherPlayer}

// moves are the events of transfers. "user>ramp 9, ramp>zero 7u, user>friend #3" moves nine
// tokens of 18 decimals, seven of the smallest units, and the piece with ID 3; #0-9 are ten
// pieces. A word after that says that it is an approval, of another token, or was removed
// by a reorganization.
func moves(list string, who map[string]common.Address) (logs []ramp.Log) {
	for entry := range strings.SplitSeq(list, ", ") {
		parts := append(strings.Fields(entry), "")
		if entry == "" {
			break
		}
		from, to, _ := strings.Cut(parts[0], ">")
		event := transfer(who[from], who[to])
		if who[from] == nobody && from != "zero" || who[to] == nobody && to != "zero" {
			panic("nobody is called " + parts[0])
		}
		switch parts[2] {
		case "approval":
			event.Topics[0] = common.HexToHash("0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925")
		case "other":
			event.Address = stranger
		case "removed":
			event.Removed = true
		}
		ids, pieces := strings.CutPrefix(parts[1], "#")
		if !pieces {
			units, exact := strings.CutSuffix(parts[1], "u")
			n := amount(units)
			if !exact {
				n = amount(units + "e18")
			}
			event.Data = common.BigToHash(ramp.Must(n.Int())).Bytes()
			logs = append(logs, event)
			continue
		}
		first, last, _ := strings.Cut(ids, "-")
		end := ramp.Must(amount(cmp.Or(last, first)).Int64())
		for id := ramp.Must(amount(first).Int64()); id <= end; id++ {
			piece := event
			piece.Topics = append(event.Topics[:3:3], common.BigToHash(big.NewInt(id)))
			logs = append(logs, piece)
		}
	}
	return logs
}

func transfer(from, to common.Address) ramp.Log {
	return ramp.Log{Address: proofToken, Topics: []common.Hash{transferTopic, common.BytesToHash(from[:]), common.BytesToHash(to[:])}}
}

func TestWhatATransactionProves(t *testing.T) {
	complete := ramp.Proof{Contracts: []common.Address{rampBridge}, Payers: []common.Address{rampAccount},
		Decimals: map[common.Address]int{proofToken: 18}}
	anyFailure := complete
	anyFailure.AnyFailure = true
	withoutDecimals, withoutUnits := complete, complete
	withoutDecimals.Decimals, withoutUnits.Decimals = nil, map[common.Address]int{proofToken: 0}
	sent := func(from, payer common.Address, to *common.Address) *ramp.Transaction {
		return &ramp.Transaction{From: from, FeePayer: payer, To: to}
	}
	byRamp := sent(rampAccount, nobody, &rampBridge)

	for name, tt := range map[string]struct {
		burn, nft, failed bool
		user              string            // "user" by default
		proof             *ramp.Proof       // complete by default
		sent              *ramp.Transaction // by the ramp by default
		logs              string            // see moves
		want              string            // what is missing; empty if nothing
	}{
		"a burn to the zero address":       {burn: true, logs: "user>zero 10"},
		"a burn to a contract of the ramp": {burn: true, logs: "user>ramp 10, ramp>zero 10"},
		"a burn in two parts":              {burn: true, logs: "user>zero 4, user>zero 6"},
		"a burn of too little":             {burn: true, logs: "user>zero 9", want: "burns 9000000000000000000 of 10"},
		"a burn that is paid back":         {burn: true, logs: "user>ramp 10, ramp>user 1", want: "burns 9000000000000000000 of 10"},
		"a transfer to a friend":           {burn: true, logs: "user>friend 10", want: "burns 0 of 10000000000000000000 units of the token " + proofToken.Hex() + " of the user " + proofUser.Hex() + ": tokens were passed on to " + stranger.Hex()},
		"a transfer from a friend":         {burn: true, logs: "friend>user 10", want: "burns -10000000000000000000 of 10"},
		"a transfer to oneself":            {burn: true, logs: "user>user 10", want: "burns 0 of 10"},
		"a burn of another token":          {burn: true, logs: "user>zero 10 other", want: "burns 0 of 10"},
		"an approval":                      {burn: true, logs: "user>zero 10 approval", want: "burns 0 of 10"},
		"a mint instead of a burn":         {burn: true, logs: "zero>user 10", want: "burns -10000000000000000000 of 10"},
		"a burn without decimals":          {burn: true, proof: &withoutDecimals, logs: "user>zero 10", want: "Proof.Decimals has no entry"},

		// Tokens must stay where they are burned.
		"a burn that is passed on to a friend":   {burn: true, logs: "user>ramp 10, ramp>friend 10", want: "passed on to " + stranger.Hex()},
		"a burn that a friend sends back":        {burn: true, logs: "user>zero 10, friend>user 10", want: "burns 0 of 10"},
		"a burn that is minted again":            {burn: true, logs: "user>zero 10, zero>friend 10", want: "passed on to " + stranger.Hex()},
		"a transfer beside the burn of a player": {burn: true, logs: "user>friend 10, player>zero 10", want: "passed on to " + stranger.Hex()},
		"a burn through somebody else":           {burn: true, logs: "user>friend 10, friend>zero 10"},
		"a burn of which a fee is taken":         {burn: true, logs: "user>ramp 9, user>friend 1", want: "burns 9000000000000000000 of 10"},
		"a burn with a fee on top":               {burn: true, logs: "user>ramp 10, user>friend 1"},
		"the burns of two players":               {burn: true, logs: "user>zero 10, player>zero 5"},
		"a burn beside the mint of a player":     {burn: true, logs: "user>zero 10, zero>player 9", want: "burns 1000000000000000000 of 10"},
		"a burn whose log was removed":           {burn: true, logs: "user>zero 10 removed", want: "burns 0 of 10"},

		// The ramp is no player.
		"a burn by the zero address":        {burn: true, user: "zero", logs: "zero>ramp 10", want: "a user that is not"},
		"a burn by a contract of the ramp":  {burn: true, user: "ramp", logs: "ramp>zero 10", want: "a user that is not"},
		"a burn by an account of the ramp":  {burn: true, user: "account", logs: "account>zero 10", want: "a user that is not"},
		"a burn by the token":               {burn: true, user: "token", logs: "token>zero 10", want: "a user that is not"},
		"a mint to a contract of the ramp":  {user: "ramp", logs: "zero>ramp 10", want: "a user that is not"},
		"a failed mint of the zero address": {user: "zero", failed: true, want: "a user that is not"},
		// An entry in Decimals counts units, whatever the order calls the token.
		"a burn of ten pieces":                          {burn: true, nft: true, proof: &withoutDecimals, logs: "user>zero #0-9"},
		"a burn of ten pieces, with 0 decimals":         {burn: true, proof: &withoutUnits, logs: "user>zero #0-9"},
		"a burn of ten pieces, with decimals":           {burn: true, nft: true, logs: "user>zero #0-9", want: "burns 10 of 10000000000000000000 units"},
		"a burn of one piece of ten":                    {burn: true, nft: true, proof: &withoutDecimals, logs: "user>zero #1000000000000000000", want: "burns 1 of 10"},
		"a burn of tokens called NFT":                   {burn: true, nft: true, logs: "user>zero 10"},
		"a burn of tokens called NFT, without decimals": {burn: true, nft: true, proof: &withoutDecimals, logs: "user>zero 10", want: "Proof.Decimals has no entry"},
		"a burn of tokens with 0 decimals":              {burn: true, proof: &withoutUnits, logs: "user>zero 10u"},
		"a burn of five pieces and some units":          {burn: true, nft: true, proof: &withoutDecimals, logs: "user>zero #0-4, user>zero 10", want: "burns 5 of 10 pieces"},
		"pieces that are passed on":                     {burn: true, nft: true, proof: &withoutDecimals, logs: "user>ramp #0-9, ramp>friend #0-9", want: "burns 0 of 10 pieces (Proof.Decimals has no entry) of the token " + proofToken.Hex() + " of the user " + proofUser.Hex() + ": tokens were passed on to " + stranger.Hex()},
		"pieces for which the ramp gives others":        {burn: true, nft: true, proof: &withoutDecimals, logs: "user>ramp #0-9, ramp>friend #10-19", want: "burns 0 of 10 units of the token " + proofToken.Hex() + " of the user " + proofUser.Hex() + ": tokens were passed on to " + stranger.Hex()},
		"pieces that others burn":                       {burn: true, nft: true, proof: &withoutDecimals, logs: "user>friend #0-9, friend>zero #10-19", want: "burns 0 of 10"},

		"a mint":                         {logs: "zero>user 9"}, // net of fees
		"a mint from a treasury":         {logs: "friend>user 9"},
		"a mint of a piece":              {nft: true, proof: &withoutDecimals, logs: "zero>user #7"},
		"a piece from a treasury":        {nft: true, proof: &withoutDecimals, logs: "friend>user #7"},
		"a mint of a piece to a friend":  {nft: true, proof: &withoutDecimals, logs: "zero>friend #7", want: "transfers no token"},
		"a mint that is passed on":       {logs: "zero>user 9, user>friend 9", want: "transfers no token"},
		"a mint to somebody else":        {logs: "zero>friend 9", want: "transfers no token"},
		"a burn instead of a mint":       {logs: "user>zero 9", want: "transfers no token"},
		"a success that moves no tokens": {want: "transfers no token"},

		"a failure of the ramp":                        {failed: true},
		"a failure that the ramp paid for":             {sent: sent(proofUser, rampAccount, &rampBridge), failed: true},
		"a failure of the player":                      {sent: sent(proofUser, nobody, &rampBridge), failed: true, want: "is one of Proof.Payers"},
		"a failure of the ramp elsewhere":              {sent: sent(rampAccount, nobody, &stranger), failed: true, want: "none of Proof.Contracts"},
		"a failed creation by the ramp":                {sent: sent(rampAccount, nobody, nil), failed: true, want: "none of Proof.Contracts"},
		"a failure of anybody, if any will do":         {proof: &anyFailure, sent: sent(stranger, nobody, nil), failed: true},
		"a failure of the ramp, contracts not known":   {proof: &ramp.Proof{Payers: []common.Address{rampAccount}}, sent: sent(rampAccount, nobody, nil), failed: true},
		"a failure without a payer, who is not listed": {proof: &ramp.Proof{Payers: []common.Address{nobody}}, sent: sent(proofUser, nobody, &rampBridge), failed: true, want: "is one of Proof.Payers"},
	} {
		t.Run(name, func(t *testing.T) {
			request := mintRequest()
			if tt.burn {
				request = burnRequest()
			}
			order := accepted(request)
			order.UserAddress = named[cmp.Or(tt.user, "user")].Hex()
			tokens := order.Intent.To
			if tt.burn {
				tokens = order.Intent.From
			}
			tokens[0].ID, tokens[0].Amount = proofToken.Hex(), ramp.NewAmount(10)
			if tt.nft {
				tokens[0].Type = ramp.TypeNFT
			}
			status := uint64(1)
			if tt.failed {
				status = 0
			}
			receipt := &ramp.Receipt{Status: ramp.NewQuantity(status), Logs: moves(tt.logs, named)}
			evidence, err := cmp.Or(tt.proof, &complete).Check(&order, cmp.Or(tt.sent, byRamp), receipt)
			assert.Equal(t, !tt.failed, evidence.Succeeded)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorIs(t, err, ramp.ErrNotProven)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, order.UUID.String())
		})
	}
}

// Apply learns from the evidence what moved, and reads no receipt.
func TestTheEvidenceOfAnOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		logs       string // see moves
		mint, burn string // the units and token IDs of an order of each direction, with the ramp's contract
		alone      string // the token IDs of a burn without Contracts
	}{
		"nothing":                        {"", "0 []", "0 []", "[]"},
		"units to the user":              {"friend>user 7u", "7 []", "-7 []", "[]"},
		"units from the user":            {"user>zero 5u, user>ramp 2u, user>friend 4u", "-11 []", "7 []", "[]"},
		"pieces to the user":             {"zero>user #9, ramp>user #3, friend>user #4", "3 [9 3]", "-3 []", "[]"},
		"a piece to somebody else":       {"zero>friend #9", "0 []", "-1 []", "[]"},
		"pieces from the user":           {"user>zero #9, user>ramp #3, user>friend #4", "-3 []", "2 [9 3]", "[9]"},
		"a piece by way of others":       {"user>friend #1, friend>ramp #1, ramp>zero #1", "-1 []", "1 [1]", "[1]"},
		"a piece there and back":         {"user>zero #1, zero>user #1", "0 []", "0 []", "[]"},
		"a piece of somebody else, lent": {"friend>user #1, user>zero #1", "0 []", "0 []", "[]"},
		"pieces and units":               {"user>zero #0, user>zero 5u", "-6 []", "6 [0]", "[0]"},
		"another token":                  {"user>zero #1 other, zero>user 1u other", "0 []", "0 []", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			for direction, want := range map[ramp.Direction]string{ramp.Mint: tt.mint, ramp.Burn: tt.burn} {
				request := mintRequest()
				tokens := request.Intent.To
				if direction == ramp.Burn {
					request = burnRequest()
					tokens = request.Intent.From
				}
				tokens[0].ID, request.UserAddress = proofToken.Hex(), proofUser.Hex()
				order := accepted(request)
				sent := &ramp.Transaction{From: rampAccount, FeePayer: stranger, To: &rampBridge}
				receipt := ramp.Receipt{Status: ramp.NewQuantity(1), Logs: moves(tt.logs, named)}
				got, _ := ramp.Proof{Contracts: []common.Address{rampBridge}}.Check(&order, sent, &receipt)
				assert.Equal(t, want, fmt.Sprint(got.Units, got.TokenIDs), direction)
				got.Units, got.TokenIDs = nil, nil
				assert.Equal(t, ramp.Evidence{Succeeded: true, From: sent.From, FeePayer: sent.FeePayer, To: sent.To}, got)

				// Without a proof and a chain.
				r := reported(order, 1)
				r.Receipt = receipt
				step := ramp.Must(ramp.Finish(r, atResult)(&order))
				assert.Zero(t, step.Evidence.From)
				if direction == ramp.Burn {
					assert.Equal(t, tt.alone, fmt.Sprint(step.Evidence.TokenIDs))
				}
				r.Receipt.Status = ramp.NewQuantity(0)
				assert.Zero(t, ramp.Must(ramp.Finish(r, atResult)(&order)).Evidence)
			}
		})
	}
}

// Without decimals, each burn of an ERC-20 token would wait for a person.
func TestAHandlerNeedsAProofWithWhichBurnsCanEnd(t *testing.T) {
	mintOnly := changed(goldProduct(), func(i *ramp.Product) { i.Outputs = nil })
	gold := common.HexToAddress(goldToken)
	without := []string{`HandlerConfig.Proof.Decimals must have the token of product "gold" (0 if it is an NFT): no burn of it could end`}
	for name, tt := range map[string]struct {
		products []ramp.Product
		decimals map[common.Address]int
		want     []string
	}{
		"the token of a burn":         {[]ramp.Product{swordProduct(), goldProduct()}, nil, without},
		"another token":               {[]ramp.Product{goldProduct()}, map[common.Address]int{stranger: 18}, without},
		"mints only":                  {[]ramp.Product{mintOnly}, nil, nil},
		"an item that is an NFT":      {[]ramp.Product{swordProduct()}, nil, nil},
		"an ERC-20 token":             {[]ramp.Product{goldProduct()}, map[common.Address]int{gold: 18}, nil},
		"an NFT for items that count": {[]ramp.Product{goldProduct()}, map[common.Address]int{gold: 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			terms := newTerms(tt.products...)
			store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
			chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com"}))
			config := ramp.HandlerConfig{Players: noPlayers{}, Store: store, Terms: terms, Key: testKey(), Signer: testSigner(), Chain: chain, AnyWallet: true}
			fill := func(decimals map[common.Address]int) error {
				config.Proof = &ramp.Proof{AnyFailure: true, Decimals: decimals}
				_, err := ramp.NewHandler(config)
				return err
			}
			if tt.want != nil {
				assertFields(t, fill(tt.decimals), tt.want...)
				require.NoError(t, fill(map[common.Address]int{gold: 18}))
				require.NoError(t, terms.Replace(tt.products, 0), "a handler that does not exist demands nothing")
				return
			}
			require.NoError(t, fill(tt.decimals))
			other := changed(goldProduct(), func(i *ramp.Product) { i.Token = foreignToken })
			assertFields(t, terms.Replace([]ramp.Product{other}, 0), without...)
			product, _, err := match(terms, mintOf(foreignToken+" 1", "gold 100, gem 1"))
			assert.Error(t, err, product)
			require.NoError(t, terms.Replace(tt.products, 0))
		})
	}
}

// However tokens go around in a transaction, a proven burn costs the player and a friend,
// whoever that is, at least the amount, and what is burned stays where burned tokens go.
func TestAProvenBurnCostsThePlayerAndAnyFriend(t *testing.T) {
	const amount = 3
	proof := ramp.Proof{Contracts: []common.Address{rampBridge}, AnyFailure: true}
	holders := []common.Address{proofUser, stranger, otherPlayer, nobody, rampBridge}
	request := burnRequest()
	request.UserAddress, request.Intent.From[0].ID = proofUser.Hex(), proofToken.Hex()
	request.Intent.From[0].Amount = ramp.NewAmount(amount)
	order := accepted(request)
	random := rand.New(rand.NewPCG(1, 2))
	proven := map[bool]int{}
	for range 30_000 {
		pieces := random.IntN(2) == 0
		proof.Decimals = map[common.Address]int{proofToken: 0}
		if pieces {
			proof.Decimals = nil
		}
		var logs []ramp.Log
		gained, at := map[common.Address]int64{}, map[int64]common.Address{}
		for range 1 + random.IntN(7) {
			from, to, n := holders[random.IntN(len(holders))], holders[random.IntN(len(holders))], 1+random.Int64N(4)
			if random.IntN(2) == 0 { // many burns
				from, to = proofUser, holders[3+random.IntN(2)]
			}
			if !pieces {
				logs = append(logs, transfer(from, to))
				logs[len(logs)-1].Data = common.BigToHash(big.NewInt(n)).Bytes()
			} else {
				if holder, moved := at[n]; moved {
					from = holder // nobody else can send it
				}
				piece := transfer(from, to)
				piece.Topics = append(piece.Topics, common.BigToHash(big.NewInt(n)))
				logs, at[n], n = append(logs, piece), to, 1
			}
			gained[from] -= n
			gained[to] += n
		}
		evidence, err := proof.Check(&order, new(ramp.Transaction), &ramp.Receipt{Status: ramp.NewQuantity(1), Logs: logs})
		if err != nil {
			continue
		}
		proven[pieces]++
		for _, friend := range []common.Address{stranger, otherPlayer} {
			require.LessOrEqual(t, gained[proofUser]+max(0, gained[friend]), int64(-amount), "%v", logs)
		}
		require.GreaterOrEqual(t, gained[nobody]+gained[rampBridge], int64(amount), "%v", logs)
		for _, id := range evidence.TokenIDs {
			require.Contains(t, holders[3:], at[id.Int64()])
		}
	}
	assert.Greater(t, proven[false], 100)
	assert.Greater(t, proven[true], 100)
}

// The settings that docs/security.md compares, from the weakest to the strongest.
const (
	noChain = iota
	onlyChain
	anyWallet
	ownWallet
)

var settings = []string{"no Chain", "Chain", "Proof and AnyWallet", "Proof and Wallet"}

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
	h := &heist{t: t, service: ramptest.Start(t, ramptest.Config{Key: testKey(), Validator: testSigner().Address(), Handler: http.NotFoundHandler(),
		Books: ramptest.BooksOff})} // the thief makes calls, too
	h.node = &editedNode{base: h.service.Client().Transport, logs: map[common.Hash][]ramp.Log{}}
	h.game, h.vault = newVault(t, func(c *ramp.HandlerConfig) {
		c.Now, c.Logger = h.service.Now, slog.New(slog.DiscardHandler)
		if setting >= onlyChain {
			c.Chain = ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: h.service.RPCURL(ramp.Testnet), ChainID: 7002,
				HTTPClient: &http.Client{Transport: h.node}, Retries: -1}))
		}
		if setting >= anyWallet {
			c.Proof = &ramp.Proof{Payers: []common.Address{h.service.Payer()}, Contracts: []common.Address{proofToken, rampBridge},
				Decimals: map[common.Address]int{proofToken: 18}}
			c.AnyWallet = setting == anyWallet
		}
		if setting == ownWallet {
			c.Wallet = h.bind
		}
	})
	h.vault.gold["honest"], h.vault.gold["thief"] = 1000, 1000
	h.service.SetHandler(h.game.handler)
	h.client = ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: h.service.URL(), Key: testKey(), HTTPClient: h.service.Client()}))
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
	started := ramp.Must(h.client.Initialize(h.t.Context(), request))
	order, err := place(h.t.Context(), started.UUID, session(player), ramp.NewAmount(1), append([]ramptest.Fault{ramptest.TransactionType(7)}, faults...)...)
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
	h.vault.gold["anybody"] += 100
	order := h.order(h.service.Mint, "anybody", ramptest.StaysPending())
	transaction := ramp.Must(h.service.Cheat(h.t.Context(), order, ramptest.SelfTransfer))
	h.node.logs[transaction] = moves(list, h.named())
	return transaction
}

func (h *heist) named() map[string]common.Address {
	who := maps.Clone(named)
	who["thief"], who["honest"], who["account"] = h.wallet("thief"), h.wallet("honest"), h.service.Payer()
	return who
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
	intent := ramp.Must(json.Marshal(r.Intent))
	body := fmt.Appendf(nil, `{"uuid":"%s","tx_hash":"%s","receipt":{"status":"0x%x"},"intent":%s}`, r.UUID, transaction, status, intent)
	toResult(h.game.handler)(h.t.Context(), http.Header{ramp.HeaderHMAC: {testKey().Sign(body)}}, body)
}

// claims reports a burn of one token from a wallet with a transaction. Both calls are the thief's.
func (h *heist) claims(wallet common.Address, transaction common.Hash) {
	h.forge(h.validate(ramp.Burn, wallet.Hex()), transaction, 1)
}

// burnBy reports a burn that did not happen, with a trick.
func burnBy(trick ramptest.Trick) func(*heist) {
	return func(h *heist) {
		burn := h.order(h.service.Burn, "thief", ramptest.StaysPending())
		h.claims(h.wallet("thief"), ramp.Must(h.service.Cheat(h.t.Context(), burn, trick)))
	}
}

// failureBy reports a mint that succeeded as failed, with a trick.
func failureBy(trick ramptest.Trick) func(*heist) {
	return func(h *heist) {
		mint := h.order(h.service.Mint, "thief", ramptest.ResultNever())
		h.forge(&mint.Request, ramp.Must(h.service.Cheat(h.t.Context(), mint, trick)), 0)
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
			h.claims(h.wallet("thief"), common.MaxHash)
		}},
		"the burn of another wallet": {another, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			h.claims(h.wallet("thief"), genuine.TxHash)
		}},
		"the burn of another wallet, beside a transfer": {another, 0, burnWith("thief>friend 1, honest>zero 1")},
		"the burn of another wallet, which the UUID gets afterwards": {another, 0, func(h *heist) {
			genuine := h.order(h.service.Burn, "honest", silent)
			burn := h.validate(ramp.Burn, h.wallet("thief").Hex())
			again := h.validate(ramp.Burn, h.wallet("honest").Hex(), func(r *ramp.ValidateRequest) { r.UUID = burn.UUID })
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
		"a contract":                     {ofRamp, 0, burnFrom("ramp")},
		"the token":                      {ofRamp, 0, burnFrom("token")},
		"an account":                     {ofRamp, 0, burnFrom("account")},
		"the zero address":               {"a burn by the zero address", 0, burnFrom("zero")},
		"a mint":                         {"a mint of their own, as a burn", 100, func(h *heist) { h.claims(h.wallet("thief"), h.order(h.service.Mint, "thief", silent).TxHash) }},
		"a transfer to a friend":         {transfer, 0, burnBy(ramptest.SignedTransfer)},
		"a transfer from a friend":       {transfer, 0, burnBy(ramptest.FriendsTransfer)},
		"a transfer to oneself":          {transfer, 0, burnBy(ramptest.SelfTransfer)},
		"an approval":                    {transfer, 0, burnBy(ramptest.Approval)},
		"the ramp sends tokens on":       {goOn, 0, burnWith("thief>ramp 1, ramp>friend 1")},
		"a friend sends tokens back":     {goOn, 0, burnWith("thief>ramp 1, ramp>friend 1, friend>thief 1")},
		"tokens are minted again":        {goOn, 0, burnWith("thief>zero 1, zero>friend 1")},
		"a fee is taken from the amount": {goOn, 0, burnWith("thief>ramp 0.999999999999999999, thief>friend 1u")},
		"a reorganization":               {goOn, 0, burnWith("thief>zero 1 removed")},
		"a unit of an ERC-20 token": {called, 0, func(h *heist) {
			burn := h.validate(ramp.Burn, h.wallet("thief").Hex(), func(r *ramp.ValidateRequest) { r.Intent.From[0].Type = ramp.TypeNFT })
			h.forge(burn, h.mined("thief>zero 1u"), 1)
		}},
		"a piece of a token that is counted": {called, 0, burnWith("thief>zero #1000000000000000000")},
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
			h.claims(h.wallet("thief"), genuine.TxHash)
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
	guide := ramp.Must(os.ReadFile("docs/security.md"))
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
			inBubble(t, name+", "+settings[setting], func(t *testing.T) {
				h := newHeist(t, setting)
				attack.play(h)
				won := h.vault.gold["thief"] - 1000 + attack.cost
				wins, known := map[string]int64{"pays": 100, "gives back": 100, "nothing": 0}[strings.Trim(cell, "*")]
				require.True(t, known, cell)
				assert.Equal(t, wins, won)
			})
		}
	}
	assert.Len(t, played, len(cells), "rows that nothing plays")
}

// What is proven pays all the same: nobody loses because of the settings.
func TestAnHonestBurnIsPaidUnderEverySetting(t *testing.T) {
	for setting, name := range settings {
		inBubble(t, name, func(t *testing.T) {
			h := newHeist(t, setting)
			for range 2 { // the wallet is the player's already
				require.NotNil(t, h.order(h.service.Burn, "honest"))
			}
			assert.EqualValues(t, 1200, h.vault.gold["honest"])
		})
	}
}
