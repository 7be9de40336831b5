package main

import (
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

var (
	player = common.HexToAddress("0x7b")
	gold   = common.HexToAddress("0x70c3") // a token of the emulated chain
)

// startLocal starts the emulated service, whose chain serves JSON-RPC and gives every
// account coins and tokens. You do not need it if you have a node.
func startLocal() (*ramptest.Service, error) {
	return ramptest.New(ramptest.Config{Key: ramp.Must(ramp.TextKey("local")),
		Validator: common.HexToAddress("0x1"), Game: "http://localhost"})
}

// transfer sends 5 tokens to the player and makes a block with the transaction. The
// node signs it.
func transfer(ctx context.Context, service *ramptest.Service, chain *ramp.RPC) (common.Hash, error) {
	five := ramp.Must(ramp.NewAmount(5).Units(18))
	// transfer(address,uint256)
	call := slices.Concat([]byte{0xa9, 0x05, 0x9c, 0xbb}, common.LeftPadBytes(player[:], 32),
		five.FillBytes(make([]byte, 32)))
	hash, err := chain.SendTransaction(ctx,
		ramp.TransactionRequest{From: common.HexToAddress("0x7a"), To: &gold, Value: new(big.Int),
			Data: call})
	service.Advance(time.Minute)
	return hash, err
}
