package ramptest_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The package's chain client must find on the scripted chain what the service reports:
// for both types of transaction that occur, and for an unknown type.
func TestTheChainConfirmsWhatTheServiceTells(t *testing.T) {
	for _, kind := range []uint64{0x2, 0x7, 0x63} {
		c := newCounter(t, reporting)
		chain := nodeOf(t, c.service)
		order := c.mint(t, ramptest.TransactionType(kind))
		c.service.Advance(20 * time.Second)
		_, _, err := chain.Confirm(t.Context(), c.shop.results[0], 10)
		require.NoError(t, err)
		block := ramp.Must(chain.BlockByNumber(t.Context(), ramp.AtBlock(1), true))
		require.Len(t, block.Transactions, 1)
		logs, err := chain.Logs(t.Context(), ramp.LogFilter{FromBlock: ramp.AtBlock(0), Addresses: []common.Address{common.HexToAddress(token)}})
		require.NoError(t, err)
		assert.Len(t, logs, 2)

		// The same transaction, reported as failed.
		require.NoError(t, c.service.Deliver(t.Context(), order, ramptest.Failed))
		var lie *ramp.MismatchError
		_, _, err = chain.Confirm(t.Context(), c.shop.results[1], 1)
		require.ErrorAs(t, err, &lie)
		assert.Equal(t, "receipt.status", lie.Field)
	}
}

// Whether the service reports the new block or delivers the same body again, an honest
// result is confirmed after its block was replaced.
func TestAResultIsConfirmedAfterItsBlockWasReplaced(t *testing.T) {
	for _, fault := range []ramptest.Fault{ramptest.Reorganized(), ramptest.ReorganizedUnnoticed()} {
		c := newCounter(t)
		chain := nodeOf(t, c.service)
		c.mint(t, fault)
		c.service.Advance(20 * time.Second)
		require.Len(t, c.shop.results, 2)
		same := c.shop.results[0].Receipt.BlockHash == c.shop.results[1].Receipt.BlockHash
		assert.Equal(t, fault.String() == "reorganized-unnoticed", same)
		receipt, _, err := chain.Confirm(t.Context(), c.shop.results[1], 1)
		require.NoError(t, err)
		assert.Equal(t, same, receipt.BlockHash != c.shop.results[1].Receipt.BlockHash)
	}
}
