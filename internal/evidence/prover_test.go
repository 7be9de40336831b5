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

// A thief would otherwise end anybody's mint of one sword by any transaction of the ramp.
func TestAFeeNeverLeavesNothingToProve(t *testing.T) {
	other := common.HexToAddress("0x07e4")
	for name, tt := range map[string]struct {
		d        ramp.Direction
		tokens   int64
		fees     map[common.Address]int
		decimals int
		logs     string
		proven   bool
	}{
		"one piece":             {d: ramp.Mint, tokens: 1, logs: "zero>user #1", proven: true},
		"one piece of a friend": {d: ramp.Mint, tokens: 1, logs: "zero>friend #1"},
		"three of four pieces": {d: ramp.Mint, tokens: 4,
			logs: "zero>user #1, zero>user #2, zero>user #3"},
		"one token of no decimal":           {d: ramp.Mint, tokens: 1, logs: "zero>user 1u", proven: true},
		"none of one":                       {d: ramp.Mint, tokens: 1, logs: "zero>friend 1u"},
		"the fee of one of 150, rounded up": {d: ramp.Mint, tokens: 150, logs: "zero>user 148u", proven: true},
		"more than that":                    {d: ramp.Mint, tokens: 150, logs: "zero>user 147u"},
		"the fee of another token": {d: ramp.Mint, tokens: 150, fees: map[common.Address]int{other: 100},
			logs: "zero>user 149u"},
		"no fee is known, and something comes": {d: ramp.Mint, tokens: 150,
			fees: map[common.Address]int{proofToken: -1}, logs: "zero>user 1u", proven: true},
		"no fee is known, and nothing comes": {d: ramp.Mint, tokens: 150,
			fees: map[common.Address]int{proofToken: -1}, logs: "zero>friend 1u"},
		"almost all of the smallest unit is the fee": {d: ramp.Mint, tokens: 1,
			fees: map[common.Address]int{proofToken: 9999}, logs: "zero>friend 1u"},
		"a mint of nothing":         {d: ramp.Mint, decimals: 18, logs: "zero>friend 1"},
		"a burn of nothing":         {d: ramp.Burn, decimals: 18, logs: "friend>zero 1"},
		"a burn of no piece":        {d: ramp.Burn, logs: "friend>zero #1"},
		"a burn of one of no piece": {d: ramp.Burn, logs: "user>zero #1", proven: true},
	} {
		t.Run(name, func(t *testing.T) {
			fees := tt.fees
			if fees == nil {
				fees = map[common.Address]int{proofToken: 100}
			}
			prover := evidence.NewProver(evidence.Config{Payers: []common.Address{rampAccount},
				Decimals: map[common.Address]int{proofToken: tt.decimals}, MintFeeBps: fees})
			order := orderOf(tt.d, tt.tokens)
			receipt := ramp.Receipt{Status: ramp.NewQuantity(1), Logs: movetest.Logs(proofToken, tt.logs, named)}
			_, err := prover.Check(&order, &ramp.Transaction{From: rampAccount, To: &proofToken}, &receipt)
			assert.Equal(t, tt.proven, err == nil, "%v", err)
		})
	}
}

func TestWhatATransactionProves(t *testing.T) {
	complete := evidence.Config{Contracts: []common.Address{rampBridge}, Payers: []common.Address{rampAccount},
		Decimals: map[common.Address]int{proofToken: 18}}
	anyFailure := complete
	anyFailure.AnyFailure = true
	withFee, oddFee, anyFee := complete, complete, complete
	withFee.MintFeeBps = map[common.Address]int{proofToken: 1000}
	oddFee.MintFeeBps = map[common.Address]int{proofToken: 1}
	anyFee.MintFeeBps = map[common.Address]int{proofToken: -1}
	unknown, onlyContracts, onlyPayers := complete, complete, complete
	onlyContracts.Payers, onlyContracts.AnyFailure, onlyPayers.Contracts = nil, true, nil
	unknown.Payers, unknown.Contracts, unknown.AnyFailure = nil, nil, true
	withoutDecimals, withoutUnits := complete, complete
	withoutDecimals.Decimals, withoutUnits.Decimals = nil, map[common.Address]int{proofToken: 0}
	piecesWithFee := withFee
	piecesWithFee.Decimals = map[common.Address]int{proofToken: 0}
	sent := func(from, payer common.Address, to *common.Address) *ramp.Transaction {
		return &ramp.Transaction{From: from, FeePayer: payer, To: to}
	}
	byRamp := sent(rampAccount, nobody, &rampBridge)
	passedOn := " of the contract " + proofToken.Hex() + " of the user " + proofUser.Hex() +
		": tokens were passed on to " + stranger.Hex()

	for name, tt := range map[string]struct {
		burn, nft, failed bool
		user              string            // "user" by default
		proof             *evidence.Config  // complete by default
		sent              *ramp.Transaction // by the ramp by default
		logs              string            // see movetest
		double, oneIndex  bool              // the logs are listed twice, or have one index
		unreadable        bool              // the last log could not be read
		want              string            // what is missing; empty if nothing
	}{
		"a burn to the zero address":       {burn: true, logs: "user>zero 10"},
		"a burn to a contract of the ramp": {burn: true, logs: "user>ramp 10, ramp>zero 10"},
		"a burn in two parts":              {burn: true, logs: "user>zero 4, user>zero 6"},
		"a burn of too little":             {burn: true, logs: "user>zero 9", want: "burns 9 of 10 tokens"},
		"a burn that is paid back": {burn: true, logs: "user>ramp 10, ramp>user 1",
			want: "burns 9 of 10 tokens"},
		"a transfer to a friend": {burn: true, logs: "user>friend 10",
			want: "burns 0 of 10 tokens" + passedOn},
		"a transfer from a friend": {burn: true, logs: "friend>user 10", want: ", who gains 10"},
		"a transfer to oneself":    {burn: true, logs: "user>user 10", want: "burns 0 of 10"},
		"a burn of another token":  {burn: true, logs: "user>zero 10 other", want: "burns 0 of 10"},
		"an approval":              {burn: true, logs: "user>zero 10 approval", want: "burns 0 of 10"},
		"a mint instead of a burn": {burn: true, logs: "zero>user 10", want: ", who gains 10"},
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
			want: "burns 9 of 10 tokens"},
		"a burn with a fee on top": {burn: true, logs: "user>ramp 10, user>friend 1"},
		"the burns of two players": {burn: true, logs: "user>zero 10, player>zero 5"},
		"a burn beside the mint of a player": {burn: true, logs: "user>zero 10, zero>player 9",
			want: "burns 1 of 10 tokens"},
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
			want: "burns 0.00000000000000001 of 10 tokens"},
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

		"a mint":                             {logs: "zero>user 10"},
		"a mint of all but the fee":          {proof: &withFee, logs: "zero>user 9"},
		"a mint of more":                     {proof: &withFee, logs: "zero>user 11"},
		"a mint from the ramp's treasury":    {logs: "ramp>user 10"},
		"a mint through another account":     {logs: "zero>friend 10, friend>user 10"},
		"a mint beside the burn of a player": {logs: "zero>user 10, player>zero 10"},
		"a mint of any amount":               {proof: &anyFee, logs: "zero>user 1u"},
		"a mint of any amount, without":      {proof: &anyFee, want: "mints none of the token"},
		"a mint of less":                     {logs: "zero>user 9", want: "mints 9 of 10 tokens"},
		"a mint of less than all but the fee": {proof: &withFee, logs: "zero>user 8.999999999999999999",
			want: "mints 8.999999999999999999 of 9 tokens"},
		"a mint of less, which a friend tops up": {logs: "zero>user 9, friend>user 1",
			want: "mints 9 of 10 tokens"},
		"a unit of a stranger's":           {logs: "friend>user 1u", want: "mints 0 of 10"},
		"tokens that a friend sells":       {logs: "friend>user 10", want: "mints 0 of 10"},
		"a mint of a fee that no unit has": {proof: &oddFee, logs: "zero>user 9.999"},
		"a mint without decimals": {proof: &withoutDecimals, logs: "zero>user 10",
			want: "the decimals of the token are not known"},

		"a mint of pieces":                {nft: true, proof: &withoutDecimals, logs: "zero>user #0-9"},
		"pieces from the ramp's treasury": {nft: true, proof: &withoutDecimals, logs: "ramp>user #0-9"},
		"pieces of a friend": {nft: true, proof: &withoutDecimals, logs: "friend>user #0-9",
			want: "mints 0 of 10 pieces"},
		"a mint of pieces to a friend": {nft: true, proof: &withoutDecimals, logs: "zero>friend #0-9",
			want: "mints 0 of 10"},
		"a mint of all pieces but the fee of another product": {nft: true, proof: &piecesWithFee,
			logs: "zero>user #0-8", want: "mints 9 of 10"},
		"a mint of fewer pieces": {nft: true, proof: &withoutDecimals, logs: "zero>user #0-8",
			want: "mints 9 of 10"},
		"a mint that is passed on": {logs: "zero>user 10, user>friend 10", want: "mints 0 of 10"},
		"a mint of which some goes on": {logs: "zero>user 10, user>friend 1",
			want: "mints 9 of 10 tokens"},
		"a mint to somebody else":        {logs: "zero>friend 10", want: "mints 0 of 10"},
		"a burn instead of a mint":       {logs: "user>zero 10", want: ", who loses 10"},
		"a success that moves no tokens": {want: "mints 0 of 10"},

		// Somebody else's transaction proves nothing, whatever it moves.
		"a mint by a player who called the ramp": {sent: sent(proofUser, nobody, &rampBridge), logs: "zero>user 10"},
		"a mint that the ramp paid for elsewhere": {sent: sent(proofUser, rampAccount, &stranger),
			logs: "zero>user 10"},
		"a mint that the ramp created a contract for": {sent: sent(rampAccount, nobody, nil), logs: "zero>user 10"},
		"a mint of somebody else's": {sent: sent(proofUser, stranger, &otherPlayer), logs: "zero>user 10",
			want: "the ramp took no part: Config.Payers has neither its sender nor its fee payer, and " +
				"Config.Contracts does not have where it went; " +
				"it was sent by " + proofUser.Hex() + ", paid for by " + stranger.Hex() +
				", and went to " + otherPlayer.Hex()},
		"a burn over a bridge": {burn: true, sent: sent(proofUser, nobody, &stranger), logs: "user>zero 10",
			want: "the ramp took no part"},
		"a burn in a creation": {burn: true, sent: sent(proofUser, nobody, nil), logs: "user>zero 10",
			want: "it was sent by " + proofUser.Hex() + ", paid for by " + proofUser.Hex() +
				", and went to a new contract"},
		"a burn of anybody's, if nobody is known": {burn: true, proof: &unknown,
			sent: sent(proofUser, nobody, &stranger), logs: "user>zero 10"},
		"a burn of anybody's, if contracts are known": {burn: true, proof: &onlyContracts,
			sent: sent(proofUser, nobody, &stranger), logs: "user>zero 10", want: "the ramp took no part"},
		"a burn by a call of the ramp, contracts known": {burn: true, proof: &onlyContracts,
			sent: sent(proofUser, nobody, &rampBridge), logs: "user>zero 10"},
		"a burn by a call of the ramp, only payers known": {burn: true, proof: &onlyPayers,
			sent: sent(proofUser, nobody, &rampBridge), logs: "user>zero 10", want: "the ramp took no part"},
		"a burn that the ramp paid for, only payers known": {burn: true, proof: &onlyPayers,
			sent: sent(proofUser, rampAccount, &stranger), logs: "user>zero 10"},

		// What a node lists twice, or a reorganization removed, counts once or not at all.
		"a burn that is listed twice": {burn: true, logs: "user>zero 5", double: true,
			want: "burns 5 of 10 tokens"},
		"a mint that is listed twice":   {logs: "zero>user 5", double: true, want: "mints 5 of 10 tokens"},
		"two burns with the same index": {burn: true, logs: "user>zero 4, user>zero 6", oneIndex: true},
		"two equal burns":               {burn: true, logs: "user>zero 5, user>zero 5"},

		// An event that could not be read may be the one that decides.
		"a burn beside an event that is not readable": {burn: true, logs: "user>zero 10, user>zero 1", unreadable: true,
			want: "event 1 of its receipt, of the contract " + proofToken.Hex() + ", could not be read"},
		"a mint beside a readable event": {logs: "zero>user 10, user>zero 1 other", unreadable: true},

		// Other forms of events are named.
		"a burn of ERC-1155": {burn: true, logs: "user>zero 10 single, user>zero 10 batch",
			want: "burns 0 of 10 tokens of the contract " + proofToken.Hex() +
				" of the user " + proofUser.Hex() + "; not supported, and not counted, are transfers of ERC-1155: 2"},
		"a mint whose arguments are not indexed": {logs: "zero>user 10 unindexed",
			want: "not supported, and not counted, are transfers whose arguments are not indexed: 1"},
		"other events of another token": {logs: "zero>user 10 other", want: "for the user " + proofUser.Hex()},

		"a failure of the ramp":            {failed: true},
		"a failure that the ramp paid for": {sent: sent(proofUser, rampAccount, &rampBridge), failed: true},
		"a failure of the player": {sent: sent(proofUser, nobody, &rampBridge), failed: true,
			want: "Config.Payers has neither its sender nor its fee payer"},
		"a failure of the ramp elsewhere": {sent: sent(rampAccount, nobody, &stranger), failed: true,
			want: "Config.Contracts does not have where it went"},
		"a failed creation by the ramp": {sent: sent(rampAccount, nobody, nil), failed: true,
			want: "Config.Contracts does not have where it went"},
		"a failure of anybody, if any will do": {proof: &anyFailure, sent: sent(stranger, nobody, nil), failed: true},
		"a failure of the ramp, contracts not known": {proof: &evidence.Config{Payers: []common.Address{rampAccount}},
			sent: sent(rampAccount, nobody, nil), failed: true},
		"a failure without a payer, who is not listed": {proof: &evidence.Config{Payers: []common.Address{nobody}},
			sent: sent(proofUser, nobody, &rampBridge), failed: true,
			want: "Config.Payers has neither its sender nor its fee payer"},
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
			for n := range receipt.Logs {
				receipt.Logs[n].LogIndex = ramp.NewQuantity(uint64(n))
				if tt.oneIndex {
					receipt.Logs[n].LogIndex = ramp.NewQuantity(0)
				}
			}
			if n := len(receipt.Logs); tt.unreadable {
				receipt.Logs[n-1].Unreadable, receipt.Logs[n-1].Topics = true, nil
			}
			if tt.double {
				receipt.Logs = append(receipt.Logs, receipt.Logs...)
			}
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
		"units to the user":              {"friend>user 7u", "0 []", "-7 []", "[]"},
		"units from the user":            {"user>zero 5u, user>ramp 2u, user>friend 4u", "-11 []", "7 []", "[]"},
		"pieces to the user":             {"zero>user #9, ramp>user #3, friend>user #4", "2 [9 3]", "-3 []", "[]"},
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

// However tokens go around in a transaction, a proven mint leaves the user with the amount, and
// at least as much came from outside.
func TestAProvenMintCameFromOutside(t *testing.T) {
	const amount = 3
	proof := evidence.Config{Contracts: []common.Address{rampBridge}, AnyFailure: true,
		Decimals: map[common.Address]int{proofToken: 0}}
	holders := []common.Address{proofUser, stranger, otherPlayer, nobody, rampBridge}
	order := orderOf(ramp.Mint, amount)
	random := rand.New(rand.NewPCG(1, 2))
	proven := 0
	for range 30_000 {
		var logs []ramp.Log
		var issued int64
		gained := map[common.Address]int64{}
		for range 1 + random.IntN(7) {
			n := 1 + random.Int64N(4)
			from, to := holders[random.IntN(len(holders))], holders[random.IntN(len(holders))]
			if random.IntN(2) == 0 { // many mints
				from, to = holders[3+random.IntN(2)], proofUser
			}
			logs = append(logs, movetest.Transfer(proofToken, from, to))
			logs[len(logs)-1].Data = common.BigToHash(big.NewInt(n)).Bytes()
			gained[from] -= n
			gained[to] += n
			if (from == nobody || from == rampBridge) && to != nobody && to != rampBridge {
				issued += n
			}
		}
		receipt := &ramp.Receipt{Status: ramp.NewQuantity(1), Logs: logs}
		if _, err := evidence.NewProver(proof).Check(&order, &ramp.Transaction{To: &rampBridge}, receipt); err != nil {
			continue
		}
		proven++
		require.GreaterOrEqual(t, gained[proofUser], int64(amount), "%v", logs)
		require.GreaterOrEqual(t, issued, int64(amount), "%v", logs)
	}
	assert.Greater(t, proven, 100)
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
		got, err := evidence.NewProver(proof).Check(&order, &ramp.Transaction{To: &rampBridge}, receipt)
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
