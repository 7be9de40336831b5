package ramptest_test

import (
	"bytes"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// What a dishonest player puts on the chain is there for everybody, also after a restart.
func TestTheTricksOfADishonestPlayerAreOnTheChain(t *testing.T) {
	c := newCounter(t, kept(t))
	order := c.mint(t, ramptest.StaysPending()) // of 10 tokens
	contract, player := common.HexToAddress(token), c.service.Wallet(c.session)
	friend := c.service.Wallet(ramp.Session{ID: "friend of session-1"})
	tokens := new(big.Int).Mul(big.NewInt(10), big.NewInt(1e18))
	moved := func(from, to common.Address, units *big.Int) []ramp.Transfer {
		return []ramp.Transfer{{Token: contract, From: from, To: to, Value: units, LogIndex: ramp.NewQuantity(0)}}
	}
	type shown struct {
		from      common.Address
		creates   bool
		succeeded bool
		signed    bool
		transfers []ramp.Transfer
		logs      int
	}
	want := map[ramptest.Trick]shown{
		ramptest.FailedCall:      {from: player, signed: true},
		ramptest.FailedCreation:  {from: player, creates: true, signed: true},
		ramptest.SignedTransfer:  {from: player, succeeded: true, signed: true, transfers: moved(player, friend, tokens), logs: 1},
		ramptest.FriendsTransfer: {from: friend, succeeded: true, signed: true, transfers: moved(friend, player, big.NewInt(1)), logs: 1},
		ramptest.SelfTransfer:    {from: player, succeeded: true, transfers: moved(player, player, tokens), logs: 1},
		ramptest.Approval:        {from: player, succeeded: true, logs: 1},
	}
	hashes := map[ramptest.Trick]common.Hash{}
	for _, trick := range ramptest.Tricks() {
		hash := ramp.Must(c.service.Cheat(t.Context(), order, trick))
		hashes[trick] = hash
		c.service.Advance(time.Second)
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			c.restart(t, c.handler)
		}
		chain := nodeOf(t, c.service)
		got := map[ramptest.Trick]shown{}
		for trick, hash := range hashes {
			sent := ramp.Must(chain.Transaction(t.Context(), hash))
			receipt := ramp.Must(chain.Receipt(t.Context(), hash))
			assert.Zero(t, sent.FeePayer, "the ramp pays for none")
			got[trick] = shown{sent.From, sent.To == nil, receipt.Succeeded(), bytes.Contains(sent.Input, order.Approval.ValidatorSig[:64]),
				receipt.Transfers(), len(receipt.Logs)}
		}
		assert.Equal(t, want, got)
		held := ramp.Must(chain.TokenBalance(t.Context(), contract, player, ramp.Latest))
		assert.Equal(t, new(big.Int).Add(new(big.Int).Mul(big.NewInt(990), big.NewInt(1e18)), big.NewInt(1)), held)
	}
	_, err := c.service.Cheat(t.Context(), order, "a trick of nobody")
	assert.EqualError(t, err, `ramptest: there is no trick "a trick of nobody"`)
	c.service.Close()
	_, err = c.service.Cheat(t.Context(), order, ramptest.Approval)
	assert.ErrorIs(t, err, ramptest.ErrClosed)
}
