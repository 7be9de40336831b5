package evidence_test

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/evidence/movetest"
)

var (
	proofToken  = common.HexToAddress("0x70c3")
	proofUser   = common.HexToAddress("0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb")
	rampAccount = common.HexToAddress("0xa11ce")
	rampBridge  = common.HexToAddress("0xb41d")
	stranger    = common.HexToAddress("0x5713")
	otherPlayer = common.HexToAddress("0x9ea2")
	nobody      common.Address
)

// named are who takes part in the transactions of tests.
var named = map[string]common.Address{"user": proofUser, "zero": nobody, "ramp": rampBridge, "account": rampAccount,
	"token": proofToken, "friend": stranger, "player": otherPlayer}

// orderOf returns an order of tokens for gold.
func orderOf(d ramp.Direction, tokens int64) ramp.Order {
	order := ramp.Order{UUID: uuid.New(), State: ramp.OrderAccepted, UserAddress: proofUser.Hex(), Direction: d}
	gold := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}}
	token := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: proofToken.Hex(), Amount: ramp.NewAmount(tokens)}}
	order.Intent = ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: gold, To: token}
	if d == ramp.Burn {
		order.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: token, To: gold}
	}
	return order
}

func TestWhatATransactionProves(t *testing.T) {
	complete := evidence.Config{Contracts: []common.Address{rampBridge}, Payers: []common.Address{rampAccount},
		Decimals: map[common.Address]int{proofToken: 18}}
	anyFailure := complete
	anyFailure.AnyFailure = true
	withoutDecimals, withoutUnits := complete, complete
	withoutDecimals.Decimals, withoutUnits.Decimals = nil, map[common.Address]int{proofToken: 0}
	sent := func(from, payer common.Address, to *common.Address) *ramp.Transaction {
		return &ramp.Transaction{From: from, FeePayer: payer, To: to}
	}
	byRamp := sent(rampAccount, nobody, &rampBridge)
	passedOn := " of the token " + proofToken.Hex() + " of the user " + proofUser.Hex() +
		": tokens were passed on to " + stranger.Hex()

	for name, tt := range map[string]struct {
		burn, nft, failed bool
		user              string            // "user" by default
		proof             *evidence.Config  // complete by default
		sent              *ramp.Transaction // by the ramp by default
		logs              string            // see moves
		want              string            // what is missing; empty if nothing
	}{
		"a burn to the zero address":       {burn: true, logs: "user>zero 10"},
		"a burn to a contract of the ramp": {burn: true, logs: "user>ramp 10, ramp>zero 10"},
		"a burn in two parts":              {burn: true, logs: "user>zero 4, user>zero 6"},
		"a burn of too little":             {burn: true, logs: "user>zero 9", want: "burns 9000000000000000000 of 10"},
		"a burn that is paid back": {burn: true, logs: "user>ramp 10, ramp>user 1",
			want: "burns 9000000000000000000 of 10"},
		"a transfer to a friend": {burn: true, logs: "user>friend 10",
			want: "burns 0 of 10000000000000000000 units" + passedOn},
		"a transfer from a friend": {burn: true, logs: "friend>user 10", want: "burns -10000000000000000000 of 10"},
		"a transfer to oneself":    {burn: true, logs: "user>user 10", want: "burns 0 of 10"},
		"a burn of another token":  {burn: true, logs: "user>zero 10 other", want: "burns 0 of 10"},
		"an approval":              {burn: true, logs: "user>zero 10 approval", want: "burns 0 of 10"},
		"a mint instead of a burn": {burn: true, logs: "zero>user 10", want: "burns -10000000000000000000 of 10"},
		"a burn without decimals": {burn: true, proof: &withoutDecimals, logs: "user>zero 10",
			want: "the decimals of the token are not known"},

		// Tokens must stay where they are burned.
		"a burn that is passed on to a friend": {burn: true, logs: "user>ramp 10, ramp>friend 10",
			want: "passed on to " + stranger.Hex()},
		"a burn that a friend sends back": {burn: true, logs: "user>zero 10, friend>user 10", want: "burns 0 of 10"},
		"a burn that is minted again": {burn: true, logs: "user>zero 10, zero>friend 10",
			want: "passed on to " + stranger.Hex()},
		"a transfer beside the burn of a player": {burn: true, logs: "user>friend 10, player>zero 10",
			want: "passed on to " + stranger.Hex()},
		"a burn through somebody else": {burn: true, logs: "user>friend 10, friend>zero 10"},
		"a burn of which a fee is taken": {burn: true, logs: "user>ramp 9, user>friend 1",
			want: "burns 9000000000000000000 of 10"},
		"a burn with a fee on top": {burn: true, logs: "user>ramp 10, user>friend 1"},
		"the burns of two players": {burn: true, logs: "user>zero 10, player>zero 5"},
		"a burn beside the mint of a player": {burn: true, logs: "user>zero 10, zero>player 9",
			want: "burns 1000000000000000000 of 10"},
		"a burn whose log was removed": {burn: true, logs: "user>zero 10 removed", want: "burns 0 of 10"},

		// The ramp is no player.
		"a burn by the zero address": {burn: true, user: "zero", logs: "zero>ramp 10", want: "a user that is not"},
		"a burn by a contract of the ramp": {burn: true, user: "ramp", logs: "ramp>zero 10",
			want: "a user that is not"},
		"a burn by an account of the ramp": {burn: true, user: "account", logs: "account>zero 10",
			want: "a user that is not"},

		"a burn by the token": {burn: true, user: "token", logs: "token>zero 10",
			want: "a user that is not"},
		"a mint to a contract of the ramp":  {user: "ramp", logs: "zero>ramp 10", want: "a user that is not"},
		"a failed mint of the zero address": {user: "zero", failed: true, want: "a user that is not"},
		// An entry in Decimals counts units, whatever the order calls the token.
		"a burn of ten pieces": {burn: true, nft: true, proof: &withoutDecimals,
			logs: "user>zero #0-9"},
		"a burn of ten pieces, with 0 decimals": {burn: true, proof: &withoutUnits, logs: "user>zero #0-9"},
		"a burn of ten pieces, with decimals": {burn: true, nft: true, logs: "user>zero #0-9",
			want: "burns 10 of 10000000000000000000 units"},
		"a burn of one piece of ten": {burn: true, nft: true, proof: &withoutDecimals,
			logs: "user>zero #1000000000000000000", want: "burns 1 of 10"},
		"a burn of tokens called NFT": {burn: true, nft: true, logs: "user>zero 10"},
		"a burn of tokens called NFT, without decimals": {burn: true, nft: true, proof: &withoutDecimals,
			logs: "user>zero 10", want: "the decimals of the token are not known"},
		"a burn of tokens with 0 decimals": {burn: true, proof: &withoutUnits, logs: "user>zero 10u"},
		"a burn of five pieces and some units": {burn: true, nft: true, proof: &withoutDecimals,
			logs: "user>zero #0-4, user>zero 10", want: "burns 5 of 10 pieces"},
		"pieces that are passed on": {burn: true, nft: true, proof: &withoutDecimals,
			logs: "user>ramp #0-9, ramp>friend #0-9",
			want: "burns 0 of 10 pieces (the decimals of the token are not known)" + passedOn},
		"pieces for which the ramp gives others": {burn: true, nft: true, proof: &withoutDecimals,
			logs: "user>ramp #0-9, ramp>friend #10-19",
			want: "burns 0 of 10 units" + passedOn},
		"pieces that others burn": {burn: true, nft: true, proof: &withoutDecimals,
			logs: "user>friend #0-9, friend>zero #10-19", want: "burns 0 of 10"},

		"a mint":                  {logs: "zero>user 9"}, // net of fees
		"a mint from a treasury":  {logs: "friend>user 9"},
		"a mint of a piece":       {nft: true, proof: &withoutDecimals, logs: "zero>user #7"},
		"a piece from a treasury": {nft: true, proof: &withoutDecimals, logs: "friend>user #7"},
		"a mint of a piece to a friend": {nft: true, proof: &withoutDecimals, logs: "zero>friend #7",
			want: "transfers no token"},
		"a mint that is passed on":       {logs: "zero>user 9, user>friend 9", want: "transfers no token"},
		"a mint to somebody else":        {logs: "zero>friend 9", want: "transfers no token"},
		"a burn instead of a mint":       {logs: "user>zero 9", want: "transfers no token"},
		"a success that moves no tokens": {want: "transfers no token"},

		"a failure of the ramp":            {failed: true},
		"a failure that the ramp paid for": {sent: sent(proofUser, rampAccount, &rampBridge), failed: true},
		"a failure of the player": {sent: sent(proofUser, nobody, &rampBridge), failed: true,
			want: "is one of Config.Payers"},
		"a failure of the ramp elsewhere": {sent: sent(rampAccount, nobody, &stranger), failed: true,
			want: "none of Config.Contracts"},
		"a failed creation by the ramp": {sent: sent(rampAccount, nobody, nil), failed: true,
			want: "none of Config.Contracts"},
		"a failure of anybody, if any will do": {proof: &anyFailure, sent: sent(stranger, nobody, nil), failed: true},
		"a failure of the ramp, contracts not known": {proof: &evidence.Config{Payers: []common.Address{rampAccount}},
			sent: sent(rampAccount, nobody, nil), failed: true},
		"a failure without a payer, who is not listed": {proof: &evidence.Config{Payers: []common.Address{nobody}},
			sent: sent(proofUser, nobody, &rampBridge), failed: true, want: "is one of Config.Payers"},
	} {
		t.Run(name, func(t *testing.T) {
			order := orderOf(ramp.Mint, 10)
			if tt.burn {
				order = orderOf(ramp.Burn, 10)
			}
			order.UserAddress = named[cmp.Or(tt.user, "user")].Hex()
			if tt.nft {
				evidence.TokensOf(&order)[0].Type = ramp.TypeNFT
			}
			status := uint64(1)
			if tt.failed {
				status = 0
			}
			receipt := &ramp.Receipt{Status: ramp.NewQuantity(status), Logs: movetest.Logs(proofToken, tt.logs, named)}
			prover := evidence.NewProver(*cmp.Or(tt.proof, &complete))
			shown, err := prover.Check(&order, cmp.Or(tt.sent, byRamp), receipt)
			assert.Equal(t, !tt.failed, shown.Succeeded)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorIs(t, err, evidence.ErrNotProven)
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
			for direction, units := range map[ramp.Direction]string{ramp.Mint: tt.mint, ramp.Burn: tt.burn} {
				order := orderOf(direction, 10)
				sent := &ramp.Transaction{From: rampAccount, FeePayer: stranger, To: &rampBridge}
				receipt := ramp.Receipt{Status: ramp.NewQuantity(1), Logs: movetest.Logs(proofToken, tt.logs, named)}
				ofRamp := &evidence.Config{Contracts: []common.Address{rampBridge}}
				got := ofRamp.Shown(&order, sent, &receipt)
				assert.Equal(t, units, fmt.Sprint(got.Units, got.TokenIDs), direction)
				got.Units, got.TokenIDs = nil, nil
				want := ramp.Evidence{Succeeded: true, From: sent.From, FeePayer: sent.FeePayer, To: sent.To}
				assert.Equal(t, want, got)

				got = new(evidence.Config).Shown(&order, sent, &receipt)
				if direction == ramp.Burn {
					assert.Equal(t, tt.alone, fmt.Sprint(got.TokenIDs))
				}
				receipt.Status = ramp.NewQuantity(0)
				got = ofRamp.Shown(&order, sent, &receipt)
				want.Succeeded = false
				assert.Equal(t, want, got, "a failure moves nothing")
			}
		})
	}
}

// However tokens go around in a transaction, a proven burn costs the player and a friend,
// whoever that is, at least the amount, and what is burned stays where burned tokens go.
func TestAProvenBurnCostsThePlayerAndAnyFriend(t *testing.T) {
	const amount = 3
	proof := evidence.Config{Contracts: []common.Address{rampBridge}, AnyFailure: true}
	holders := []common.Address{proofUser, stranger, otherPlayer, nobody, rampBridge}
	order := orderOf(ramp.Burn, amount)
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
				logs = append(logs, movetest.Transfer(proofToken, from, to))
				logs[len(logs)-1].Data = common.BigToHash(big.NewInt(n)).Bytes()
			} else {
				if holder, moved := at[n]; moved {
					from = holder // nobody else can send it
				}
				piece := movetest.Transfer(proofToken, from, to)
				piece.Data, piece.Topics = nil, append(piece.Topics, common.BigToHash(big.NewInt(n)))
				logs, at[n], n = append(logs, piece), to, 1
			}
			gained[from] -= n
			gained[to] += n
		}
		receipt := &ramp.Receipt{Status: ramp.NewQuantity(1), Logs: logs}
		got, err := evidence.NewProver(proof).Check(&order, new(ramp.Transaction), receipt)
		if err != nil {
			continue
		}
		proven[pieces]++
		for _, friend := range []common.Address{stranger, otherPlayer} {
			require.LessOrEqual(t, gained[proofUser]+max(0, gained[friend]), int64(-amount), "%v", logs)
		}
		require.GreaterOrEqual(t, gained[nobody]+gained[rampBridge], int64(amount), "%v", logs)
		for _, id := range got.TokenIDs {
			require.Contains(t, holders[3:], at[id.Int64()])
		}
	}
	assert.Greater(t, proven[false], 100)
	assert.Greater(t, proven[true], 100)
}
