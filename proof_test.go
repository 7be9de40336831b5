package ramp_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

var (
	proofToken  = common.HexToAddress(testToken)
	proofUser   = common.HexToAddress("0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb")
	rampAccount = common.HexToAddress("0x00000000000000000000000000000000000a11ce")
	rampBridge  = common.HexToAddress("0x000000000000000000000000000000000000b41d")
	stranger    = common.HexToAddress("0x0000000000000000000000000000000000005713")
	nobody      common.Address
)

// transferLog is the event of a transfer of whole tokens with 18 decimals.
func transferLog(token, from, to common.Address, tokens int64) ramp.Log {
	units := new(big.Int).Mul(big.NewInt(tokens), big.NewInt(1e18))
	return ramp.Log{Address: token, Data: common.BigToHash(units).Bytes(), Topics: []common.Hash{
		common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),
		common.BytesToHash(from[:]), common.BytesToHash(to[:])}}
}

// pieceLog is the event of a transfer of one piece of an NFT.
func pieceLog(token, from, to common.Address, id int64) ramp.Log {
	l := transferLog(token, from, to, 0)
	l.Topics, l.Data = append(l.Topics, common.BigToHash(big.NewInt(id))), nil
	return l
}

func TestWhatATransactionProves(t *testing.T) {
	approval := transferLog(proofToken, proofUser, nobody, 10)
	approval.Topics[0] = common.HexToHash("0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925")
	complete := ramp.Proof{Contracts: []common.Address{rampBridge}, Payers: []common.Address{rampAccount},
		Decimals: map[common.Address]int{proofToken: 18}}
	anyFailure := complete
	anyFailure.AnyFailure = true
	sent := func(from, payer common.Address, to *common.Address) ramp.Transaction {
		return ramp.Transaction{From: from, FeePayer: payer, To: to}
	}
	byRamp := sent(rampAccount, nobody, &rampBridge)

	for name, tt := range map[string]struct {
		burn        bool
		nft         bool
		proof       ramp.Proof
		transaction ramp.Transaction
		failed      bool
		logs        []ramp.Log
		want        string // what is missing; empty if nothing
	}{
		"a burn to the zero address":       {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, nobody, 10)}},
		"a burn to a contract of the ramp": {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, rampBridge, 10), transferLog(proofToken, rampBridge, nobody, 10)}},
		"a burn in two parts":              {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, nobody, 4), transferLog(proofToken, proofUser, nobody, 6)}},
		"a burn of too little":             {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, nobody, 9)}, want: "burns 9000000000000000000 units"},
		"a burn that is paid back":         {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, rampBridge, 10), transferLog(proofToken, rampBridge, proofUser, 1)}, want: "burns 9000000000000000000 units"},
		"a transfer to a friend":           {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, stranger, 10)}, want: "burns 0 units"},
		"a transfer from a friend":         {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, stranger, proofUser, 10)}, want: "burns 0 units"},
		"a transfer to oneself":            {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, proofUser, 10)}, want: "burns 0 units"},
		"a burn by somebody else":          {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, stranger, nobody, 10)}, want: "burns 0 units"},
		"a burn of another token":          {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(stranger, proofUser, nobody, 10)}, want: "burns 0 units"},
		"an approval":                      {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{approval}, want: "burns 0 units"},
		"a mint instead of a burn":         {burn: true, proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, nobody, proofUser, 10)}, want: "burns -10000000000000000000 units"},
		"a burn without decimals":          {burn: true, proof: ramp.Proof{AnyFailure: true}, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, nobody, 10)}, want: "Proof.Decimals has no entry"},
		"a burn of ten pieces": {burn: true, nft: true, proof: ramp.Proof{AnyFailure: true}, transaction: byRamp, logs: func() (logs []ramp.Log) {
			for id := range int64(10) {
				logs = append(logs, pieceLog(proofToken, proofUser, nobody, id))
			}
			return logs
		}()},
		"a burn of one piece of ten": {burn: true, nft: true, proof: complete, transaction: byRamp, logs: []ramp.Log{pieceLog(proofToken, proofUser, nobody, 1e18)}, want: "burns 1 units"},

		"a mint":                         {proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, nobody, proofUser, 9)}}, // net of fees
		"a mint to somebody else":        {proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, nobody, stranger, 9)}, want: "transfers no token"},
		"a burn instead of a mint":       {proof: complete, transaction: byRamp, logs: []ramp.Log{transferLog(proofToken, proofUser, nobody, 9)}, want: "transfers no token"},
		"a success that moves no tokens": {proof: complete, transaction: byRamp, want: "transfers no token"},

		"a failure of the ramp":                        {proof: complete, transaction: byRamp, failed: true},
		"a failure that the ramp paid for":             {proof: complete, transaction: sent(proofUser, rampAccount, &rampBridge), failed: true},
		"a failure of the player":                      {proof: complete, transaction: sent(proofUser, nobody, &rampBridge), failed: true, want: "neither its sender"},
		"a failure of the ramp elsewhere":              {proof: complete, transaction: sent(rampAccount, nobody, &stranger), failed: true, want: "no contract of the ramp"},
		"a failed creation by the ramp":                {proof: complete, transaction: sent(rampAccount, nobody, nil), failed: true, want: "no contract of the ramp"},
		"a failure of anybody, if any will do":         {proof: anyFailure, transaction: sent(stranger, nobody, nil), failed: true},
		"a failure of the ramp, contracts not known":   {proof: ramp.Proof{Payers: []common.Address{rampAccount}}, transaction: sent(rampAccount, nobody, nil), failed: true},
		"a failure without a payer, who is not listed": {proof: ramp.Proof{Payers: []common.Address{nobody}}, transaction: sent(proofUser, nobody, &rampBridge), failed: true, want: "neither its sender"},
	} {
		t.Run(name, func(t *testing.T) {
			request := mintRequest(t)
			if tt.burn {
				request = burnRequest(t)
			}
			order := accepted(t, request)
			order.UserAddress = proofUser.Hex()
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
			receipt := &ramp.Receipt{Status: ramp.NewQuantity(status), Logs: tt.logs}
			evidence, err := tt.proof.Check(&order, &tt.transaction, receipt)
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
