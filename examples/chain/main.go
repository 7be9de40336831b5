// Chain reads a balance, a block, and a transaction with its token transfers from the
// node at -url. Without -url, it runs an emulated chain in its own process. It exits with status
// 1 if any of this fails. It handles no input from players.
//
//	go run .
//	go run . -url https://node.example.com -chain-id 1112 -address 0x… -token 0x… -tx 0x…
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
)

func main() {
	url := flag.String("url", "",
		"the node, such as {rpc_testnet_url}; if empty, runs a chain in this process")
	chainID := flag.Uint64("chain-id", 0, "the chain ID that the node must have; 0 accepts any")
	address := flag.String("address", "0x0000000000000000000000000000000000000000",
		"the address whose balance to show")
	token := flag.String("token", "", "an ERC-20 token whose balance to show")
	hash := flag.String("tx", "", "a transaction to wait for")
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	if *url != "" {
		err = show(ctx, *url, *chainID, common.HexToAddress(*address), *token, *hash)
	} else {
		err = showLocal(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// showLocal shows a transfer of tokens on a chain in this process.
func showLocal(ctx context.Context) error {
	service := ramp.Must(startLocal())
	defer service.Close()
	url := service.RPCURL(ramp.Testnet)
	chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: url}))
	hash := ramp.Must(transfer(ctx, service, chain))
	return show(ctx, url, 0, player, gold.Hex(), hash.Hex())
}

// show is the part to copy into your program.
func show(ctx context.Context, url string, chainID uint64, address common.Address, token, hash string) error {
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: url, ChainID: chainID})
	if err != nil {
		return err
	}
	if err := chain.Check(ctx); err != nil { // before anything depends on it
		return err
	}
	id, err := chain.ChainID(ctx)
	if err != nil {
		return err
	}
	if hash != "" {
		// 1 confirmation means that the transaction is in a block.
		receipt, err := chain.WaitReceipt(ctx, common.HexToHash(hash), 1)
		if err != nil {
			return err
		}
		fmt.Printf("transaction  %s\n  succeeded  %t, in block %s, for %s gas\n", receipt.TransactionHash,
			receipt.Succeeded(), receipt.BlockNumber, receipt.GasUsed)
		for _, t := range receipt.Transfers() { // of an ERC-721 token, TokenID is set instead of Value
			fmt.Printf("  transfer   %v of %s from %s to %s\n", t.Value, t.Token, t.From, t.To)
		}
	}
	block, err := chain.BlockByNumber(ctx, ramp.Latest, true)
	if err != nil {
		return err
	}
	fmt.Printf("chain        %s\nblock        %s with %d transactions\n", id, block.Number,
		len(block.Transactions))
	wei, err := chain.Balance(ctx, address, ramp.Latest)
	if err != nil {
		return err
	}
	coins := new(big.Rat).SetFrac(wei, big.NewInt(1e18))
	fmt.Printf("balance      %s of %s\n", coins.FloatString(4), address)
	if token != "" {
		if err := showToken(ctx, chain, common.HexToAddress(token), address); err != nil {
			return err
		}
	}

	// A missing block is reported as ErrNotFound.
	_, err = chain.BlockByNumber(ctx, ramp.AtBlock(math.MaxInt64), false)
	if !errors.Is(err, ramp.ErrNotFound) {
		return fmt.Errorf("a block that cannot exist: %w", err)
	}
	fmt.Println("not found    a block that cannot exist")
	return nil
}

// The first four bytes of the hash of a function's name and its arguments select it.
var (
	decimalsOf = []byte{0x31, 0x3c, 0xe5, 0x67} // decimals()
	balanceOf  = []byte{0x70, 0xa0, 0x82, 0x31} // balanceOf(address)
)

// showToken prints a balance of tokens as an exact decimal.
func showToken(ctx context.Context, chain *ramp.RPC, token, account common.Address) error {
	decimals, err := number(ctx, chain, token, decimalsOf)
	if err != nil {
		return err
	}
	units, err := number(ctx, chain, token, slices.Concat(balanceOf, common.LeftPadBytes(account[:], 32)))
	if err != nil {
		return err
	}
	amount, err := ramp.AmountOfUnits(units, int(decimals.Int64()))
	if err != nil {
		return err
	}
	fmt.Printf("tokens       %s of %s\n", amount, token)
	return nil
}

// number calls a function of a contract that returns a number.
func number(ctx context.Context, chain *ramp.RPC, contract common.Address, call []byte) (*big.Int, error) {
	returned, err := chain.CallContract(ctx, ramp.TransactionRequest{To: &contract, Data: call}, ramp.Latest)
	if err == nil && len(returned) != 32 { // nothing, from an address without a contract
		err = fmt.Errorf("%s answered with %d bytes: is it a token on this chain?", contract, len(returned))
	}
	return new(big.Int).SetBytes(returned), err
}
