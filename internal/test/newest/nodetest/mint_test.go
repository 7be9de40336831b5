package nodetest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// mintCode returns the code of a token with mint(bytes32 digest, bytes userSig, bytes
// validatorSig). If the validator has signed the digest, it mints one token of 18
// decimals for whoever made the user's signature, and otherwise it reverts.
func mintCode(validator common.Address) []byte {
	recovered := func(r, v, result string) string { // r, s and v are in the call data
		return v + "35 6000 1a 6020 52" + // v, the first byte of its word, to memory at 0x20
			"6040" + r + "6040 37" + // r and s to 0x40
			"6020" + result + "6080 6000 6001 5a fa 50" // ecrecover, which is contract 1, to result
	}
	return common.FromHex(strings.ReplaceAll(strings.Join([]string{
		"60a4 80 600b 6000 39 6000 f3", // to deploy the 164 bytes that follow
		"6004 35 6000 52",              // the digest to memory at 0
		recovered("610104", "610144", "6080"),
		"6080 51 73", hex.EncodeToString(validator[:]), "14 6045 57 6000 80 fd", // revert unless it is the validator
		"5b", recovered("6084", "60c4", "60a0"),
		"60a0 51 80 606e 57 6000 80 fd",                                    // revert unless somebody signed
		"5b 67 0de0b6b3a7640000 6000 52",                                   // 10^18 to memory at 0
		"6000 7f", hex.EncodeToString(transferTopic[:]), "6020 6000 a3 00", // Transfer from 0 to the user
	}, ""), " ", ""))
}

var transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))

// mintCall returns the input of the call.
func mintCall(t *testing.T, digest ramp.Digest, userSig string, validatorSig ramp.Signature) []byte {
	t.Helper()
	user := must.Get(hexutil.Decode(userSig))(t)
	word := func(n int64) []byte { return common.BigToHash(big.NewInt(n)).Bytes() }
	bytes := func(b []byte) []byte { return slices.Concat(word(int64(len(b))), b, make([]byte, 96-len(b))) }
	return slices.Concat(crypto.Keccak256([]byte("mint(bytes32,bytes,bytes)"))[:4], digest[:], word(0x60), word(0xe0),
		bytes(user), bytes(validatorSig[:]))
}

// A contract on a real node checks the signatures that the handler hands out. What its
// transaction shows ends the order, by a result and by hand.
func TestAContractThatChecksBothSignatures(t *testing.T) {
	onEveryNode(t, func(t *testing.T, n *node, r *ramp.RPC) {
		p := newPlayer(t, r) // plays the ramp, which sends the transactions
		validator, user := newSigner(t), newSigner(t)
		deployed := p.send(t, nil, nil, mintCode(validator.Address()))
		n.mine(t)
		receipt := must.Get(r.WaitReceipt(t.Context(), deployed, 1))(t)
		require.True(t, receipt.Succeeded())
		token := receipt.ContractAddress

		proof := rampproof.Config{Contracts: []common.Address{token}, Payers: []common.Address{p.address},
			Decimals: map[common.Address]int{token: 18}}
		g := newMintingGame(t, r, proof, validator)
		mint := func() (*ramp.ValidateRequest, *ramp.Approval) { return g.validate(t, token, user) }

		request, approval := mint()
		minted := p.send(t, &token, nil, mintCall(t, request.Digest, approval.UserSig, approval.ValidatorSig))
		n.mine(t)
		report := must.Get(g.desk.Show(t.Context(), request.UUID))(t)
		require.Len(t, report.Candidates, 1)
		c := report.Candidates[0]
		assert.Equal(t, minted, c.Hash)
		assert.Empty(t, c.Unproven)
		assert.Equal(t, ramp.Evidence{Succeeded: true, From: p.address, To: &token, Units: big.NewInt(1e18)},
			c.Evidence)
		assert.Equal(t, http.StatusOK, g.result(t, request, minted))
		report = must.Get(g.desk.Show(t.Context(), request.UUID))(t)
		assert.Equal(t, ramp.OrderSucceeded, report.Order.State)

		// The contract reverts if somebody else signed as the validator. The store of this game cannot
		// say which order a transaction has ended, so a person must decide without that evidence.
		request, approval = g.validate(t, token, newSigner(t))
		forged := must.Get(newSigner(t).Sign(t.Context(), request.Digest))(t)
		failed := p.send(t, &token, nil, mintCall(t, request.Digest, approval.UserSig, forged))
		n.mine(t)
		_, err := g.desk.Finish(t.Context(), request.UUID, failed, support.Decision{Who: "alice", Reason: "case 1"})
		assert.Error(t, err)
		step := must.Get(g.desk.Finish(t.Context(), request.UUID, failed,
			support.Decision{Who: "alice", Reason: "case 1", WithoutEvidence: true}))(t)
		assert.Equal(t, ramp.GiveBack, step.Effect.Kind)

		// It also reverts without the user's signature, and the mint of somebody else proves
		// nothing.
		request, approval = mint()
		failed = p.send(t, &token, nil,
			mintCall(t, request.Digest, hexutil.Encode(make([]byte, 65)), approval.ValidatorSig))
		other, signed := g.validate(t, token, newSigner(t))
		minted = p.send(t, &token, nil, mintCall(t, other.Digest, signed.UserSig, signed.ValidatorSig))
		n.mine(t)
		receipt = must.Get(r.WaitReceipt(t.Context(), failed, 1))(t)
		assert.False(t, receipt.Succeeded())
		_, err = g.desk.Finish(t.Context(), request.UUID, minted, support.Decision{Who: "alice", Reason: "case 2"})
		assert.ErrorIs(t, err, rampproof.ErrNotProven)
		assert.Equal(t, http.StatusInternalServerError, g.result(t, request, minted))
		assert.Equal(t, http.StatusOK, g.result(t, other, minted))
	})
}

func newSigner(t *testing.T) *ramp.Signer {
	t.Helper()
	return must.Get(ramp.NewCryptoSigner(must.Get(crypto.GenerateKey())(t)))(t)
}

// mintingGame is a game in memory that sells one gold for one token.
type mintingGame struct {
	*ramp.Handler
	chain *ramp.RPC
	store ramp.Store
	key   ramp.HMACKey
	desk  *support.Orders
}

func newMintingGame(t *testing.T, chain *ramp.RPC, proof rampproof.Config, validator *ramp.Signer) *mintingGame {
	t.Helper()
	key := must.Get(ramp.TextKey("a key of these tests"))(t)
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	head := must.Get(chain.BlockByNumber(t.Context(), ramp.Latest, false))(t)
	seconds := must.Get(head.Timestamp.Uint64())(t)
	now := func() time.Time { return time.Unix(int64(seconds), 0) } // a node in process has a clock of its own
	quiet := slog.New(slog.DiscardHandler)
	proof.Chain, proof.Network = chain, ramp.Testnet
	confirm := must.Get(rampproof.New(proof))(t)
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Players: everybody{}, Store: store, Terms: anyTerms,
		Key: key, Signer: validator,
		Confirm: confirm, Wallet: ramp.AnyWallet, Now: now, Logger: quiet}))(t)
	desk := must.Get(support.New(support.Config{Store: store, Proof: confirm, Now: now, Logger: quiet}))(t)
	return &mintingGame{handler, chain, store, key, desk}
}

// everybody may play.
type everybody struct{}

func (everybody) Authenticate(context.Context, ramp.Session) error { return nil }

func (everybody) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

// validate makes the validate call of a mint.
func (g *mintingGame) validate(t *testing.T, token common.Address, user *ramp.Signer) (*ramp.ValidateRequest,
	*ramp.Approval) {
	t.Helper()
	r := &ramp.ValidateRequest{UserAddress: user.Address().Hex(), ProjectID: "project", UUID: uuid.New(),
		Intent: ramp.Intent{
			Method: ramp.MethodMint, Type: ramp.Assemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(1)}},
			To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token.Hex(), Amount: ramp.NewAmount(1)}}}}
	r.Digest = ramp.Digest(crypto.Keccak256(r.UUID[:]))
	r.UserSig = must.Get(user.Sign(t.Context(), r.Digest))(t).String()
	body := must.Get(json.Marshal(r))(t)
	header := http.Header{ramp.HeaderHMAC: {g.key.Sign(body)}, ramp.HeaderSession: {"session"},
		ramp.HeaderAuthorization: {"Bearer token"}}
	reply := g.Answer(t.Context(), http.MethodPost, ramp.PathValidate, header, body)
	require.Equal(t, http.StatusOK, reply.Status, string(reply.Body))
	var answer ramp.Response[ramp.Approval]
	require.NoError(t, json.Unmarshal(reply.Body, &answer))
	require.NotNil(t, answer.Data)
	return r, answer.Data
}

// result delivers the result of an order, with the node's receipt of a transaction.
func (g *mintingGame) result(t *testing.T, r *ramp.ValidateRequest, transaction common.Hash) (status int) {
	t.Helper()
	receipt := must.Get(g.chain.Receipt(t.Context(), transaction))(t)
	body := must.Get(json.Marshal(ramp.Result{SessionID: "session", UUID: r.UUID, TxHash: transaction.Hex(),
		Receipt: *receipt, Intent: r.Intent}))(t)
	header := http.Header{ramp.HeaderHMAC: {g.key.Sign(body)}, ramp.HeaderSession: {"session"}}
	return g.Answer(t.Context(), http.MethodPost, ramp.PathResult, header, body).Status
}
