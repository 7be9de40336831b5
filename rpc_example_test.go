package ramp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	ramp "github.com/token-ramp/ramp-go"
)

// exampleNode answers each request with the next of some results.
func exampleNode(answers ...string) *httptest.Server {
	next := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, answers[next], next+1)
		next++
	}))
}

func ExampleNewRPC() {
	node := exampleNode(`{"jsonrpc":"2.0","id":%d,"result":"0x458"}`, `{"jsonrpc":"2.0","id":%d,"result":"0x1b4"}`)
	defer node.Close()

	chain, err := ramp.NewRPC(ramp.RPCConfig{
		URL:     node.URL + "/v3/the-key-of-a-provider",
		ChainID: 1112, // a node of another network is rejected with ErrWrongChain
	})
	if err != nil {
		log.Fatal(err)
	}
	number, err := chain.BlockNumber(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("block", number)
	fmt.Println("key shown:", strings.Contains(chain.String(), "the-key"))
	// Output:
	// block 436
	// key shown: false
}

func ExampleRPC_Balance() {
	node := exampleNode(`{"jsonrpc":"2.0","id":%d,"result":"0x14d1120d7b160000"}`)
	defer node.Close()

	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: node.URL})
	if err != nil {
		log.Fatal(err)
	}
	player := common.HexToAddress("0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb")
	wei, err := chain.Balance(context.Background(), player, ramp.Latest)
	if err != nil {
		log.Fatal(err)
	}
	coins := new(big.Rat).SetFrac(wei, big.NewInt(1e18))
	fmt.Println(coins.FloatString(2))
	// Output: 1.50
}

func ExampleRPC_CallContract() {
	node := exampleNode(`{"jsonrpc":"2.0","id":%d,"error":{"code":3,"message":"execution reverted: not enough gold","data":"0x"}}`)
	defer node.Close()

	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: node.URL})
	if err != nil {
		log.Fatal(err)
	}
	token := common.HexToAddress("0x70c3")
	_, err = chain.CallContract(context.Background(), ramp.TransactionRequest{To: &token, Data: hexutil.MustDecode("0x18160ddd")}, ramp.Latest)
	var failed *ramp.RPCError
	if errors.As(err, &failed) {
		fmt.Println("code", int(failed.Code), "because of:", failed.Message)
	}
	// Output: code 3 because of: execution reverted: not enough gold
}

func ExampleRPC_WaitReceipt() {
	node := exampleNode(
		`{"jsonrpc":"2.0","id":%d,"result":null}`, // not yet
		`{"jsonrpc":"2.0","id":%d,"result":{"status":"0x1","type":"0x7","blockNumber":"0x1b4",`+
			`"blockHash":"0x00000000000000000000000000000000000000000000000000000000000000aa",`+
			`"feePayer":"0x000000000000000000000000000000000000fEe0","logs":[]}}`)
	defer node.Close()

	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: node.URL, PollInterval: 10 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	receipt, err := chain.WaitReceipt(ctx, common.HexToHash("0x01"), 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("succeeded:", receipt.Succeeded(), "in block", receipt.BlockNumber, "gas paid by", receipt.FeePayer)
	// Output: succeeded: true in block 436 gas paid by 0x000000000000000000000000000000000000FEE0
}

func ExampleRPC_Call() {
	node := exampleNode(`{"jsonrpc":"2.0","id":%d,"result":"0x174876e800"}`)
	defer node.Close()

	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: node.URL})
	if err != nil {
		log.Fatal(err)
	}
	var price ramp.Quantity
	if err := chain.Call(context.Background(), &price, "eth_gasPrice"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(price, "wei for a unit of gas")
	// Output: 100000000000 wei for a unit of gas
}

func ExampleRPC_Batch() {
	node := exampleNode(`[{"jsonrpc":"2.0","id":2,"result":null},{"jsonrpc":"2.0","id":%d,"result":"0x10"}]`)
	defer node.Close()

	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: node.URL})
	if err != nil {
		log.Fatal(err)
	}
	var number ramp.Quantity
	var receipt ramp.Receipt
	calls := []ramp.BatchCall{
		{Method: "eth_blockNumber", Into: &number},
		{Method: "eth_getTransactionReceipt", Params: []any{common.HexToHash("0x01")}, Into: &receipt},
	}
	if err := chain.Batch(context.Background(), calls); err != nil {
		log.Fatal(err)
	}
	fmt.Println("block", number)
	fmt.Println("no receipt:", errors.Is(calls[1].Err, ramp.ErrNotFound))
	// Output:
	// block 16
	// no receipt: true
}
