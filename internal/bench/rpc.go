package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"strconv"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	ramp "github.com/token-ramp/ramp-go"
)

const (
	batchSize         = 100
	blockTransactions = 200
	logCount          = 1000
)

// rpcComparisons make the same calls to a fake node with canned answers.
func rpcComparisons() []comparison {
	ctx, hash := context.Background(), common.HexToHash(transactionHash)
	compare := func(subject string, result func() string,
		ours func(*ramp.RPC) error, theirs func(*ethclient.Client) error) comparison {
		return comparison{subject: "JSON-RPC, " + subject, rival: "go-ethereum's ethclient", setup: func() sides {
			url, stop := canned(result())
			oursClient, theirsClient := newRPC(url), must(ethclient.Dial(url))
			return sides{
				ours:   func() error { return ours(oursClient) },
				theirs: func() error { return theirs(theirsClient) },
				close:  func() { theirsClient.Close(); stop() },
			}
		}}
	}
	return []comparison{
		compare("eth_blockNumber", func() string { return `"0x12d687"` },
			func(c *ramp.RPC) error { _, err := c.BlockNumber(ctx); return err },
			func(c *ethclient.Client) error { _, err := c.BlockNumber(ctx); return err }),
		compare("one receipt", nodeReceipt,
			func(c *ramp.RPC) error { _, err := c.Receipt(ctx, hash); return err },
			func(c *ethclient.Client) error { _, err := c.TransactionReceipt(ctx, hash); return err }),
		compare("batch of 100 receipts", nodeReceipt,
			func(c *ramp.RPC) error {
				calls, got := make([]ramp.BatchCall, batchSize), make([]ramp.Receipt, batchSize)
				for i := range calls {
					calls[i] = ramp.BatchCall{Method: "eth_getTransactionReceipt", Params: []any{hash}, Into: &got[i]}
				}
				if err := c.Batch(ctx, calls); err != nil {
					return err
				}
				return calls[batchSize-1].Err
			},
			func(c *ethclient.Client) error {
				calls, got := make([]rpc.BatchElem, batchSize), make([]types.Receipt, batchSize)
				for i := range calls {
					calls[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{hash}, Result: &got[i]}
				}
				if err := c.Client().BatchCallContext(ctx, calls); err != nil {
					return err
				}
				return calls[batchSize-1].Error
			}),
		compare("block with 200 transactions", nodeBlock,
			func(c *ramp.RPC) error {
				block, err := c.BlockByNumber(ctx, ramp.Latest, true)
				if err == nil && len(block.Transactions) != blockTransactions {
					err = fmt.Errorf("got %d transactions", len(block.Transactions))
				}
				return err
			},
			func(c *ethclient.Client) error {
				block, err := c.BlockByNumber(ctx, nil)
				if err == nil && len(block.Transactions()) != blockTransactions {
					err = fmt.Errorf("got %d transactions", len(block.Transactions()))
				}
				return err
			}),
		compare("eth_getLogs, 1,000 logs", func() string { return transferLogs(logCount, nodeTimestamp) },
			func(c *ramp.RPC) error {
				logs, err := c.Logs(ctx, ramp.LogFilter{})
				if err == nil && len(logs) != logCount {
					err = fmt.Errorf("got %d logs", len(logs))
				}
				return err
			},
			func(c *ethclient.Client) error {
				logs, err := c.FilterLogs(ctx, ethereum.FilterQuery{})
				if err == nil && len(logs) != logCount {
					err = fmt.Errorf("got %d logs", len(logs))
				}
				return err
			}),
	}
}

func newRPC(url string) *ramp.RPC { return must(ramp.NewRPC(ramp.RPCConfig{URL: url})) }

// nodeBlock is a block of signed token transfers as a node reports it.
func nodeBlock() string {
	key := must(crypto.HexToECDSA(validatorKey))
	chain, token := big.NewInt(1), common.HexToAddress(tokenAddress)
	header := &types.Header{
		UncleHash: types.EmptyUncleHash, TxHash: common.HexToHash(transactionHash), Difficulty: new(big.Int),
		Number: big.NewInt(0x12d687), GasLimit: 30_000_000, GasUsed: 10_000_000, Time: 0x55ba467c, BaseFee: big.NewInt(7),
	}
	transactions := make([]map[string]any, blockTransactions)
	for i := range transactions {
		signed := must(types.SignNewTx(key, types.LatestSignerForChainID(chain), &types.DynamicFeeTx{
			ChainID: chain, Nonce: uint64(i), GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1_000_000_000), Gas: 60_000, To: &token,
			// transfer(address,uint256)
			Data: common.FromHex("0xa9059cbb0000000000000000000000008f2a55949038a9610f50fb23b5883af3b4ecb3c30000000000000000000000000000000000000000000000000de0b6b3a7640000"),
		}))
		transactions[i] = fields(signed, map[string]any{
			"blockHash": header.Hash(), "blockNumber": "0x12d687", "from": playerAddress, "transactionIndex": fmt.Sprintf("%#x", i),
		})
	}
	return string(must(json.Marshal(fields(header, map[string]any{
		"size": "0xabcd", "uncles": []string{}, "transactions": transactions,
	}))))
}

// fields returns the members of a value's JSON, plus more.
func fields(value any, more map[string]any) map[string]any {
	if err := json.Unmarshal(must(json.Marshal(value)), &more); err != nil {
		panic(err)
	}
	return more
}

// canned starts a fake node that answers every call with the same result over a real
// connection. Once its buffers have grown, it does not allocate, so that only the
// client's allocations are counted.
func canned(result string) (url string, stop func()) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAll(connection, []byte(result))
		}
	}()
	return "http://" + listener.Addr().String(), func() { _ = listener.Close() }
}

func answerAll(connection net.Conn, result []byte) {
	defer connection.Close()
	in, body, out := make([]byte, 256<<10), make([]byte, 0, 1<<20), make([]byte, 0, 1<<20)
	have := 0
	for {
		head, whole := messageLength(in[:have])
		for whole == 0 || have < whole {
			n, err := connection.Read(in[have:])
			if err != nil {
				return
			}
			have += n
			head, whole = messageLength(in[:have])
		}
		body = appendAnswers(body[:0], in[head:whole], result)
		out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(body)), 10)
		out = append(out, headEnd...)
		out = append(out, body...)
		if _, err := connection.Write(out); err != nil {
			return
		}
		have = copy(in, in[whole:have])
	}
}

// appendAnswers appends the answer to a request, which may be a batch.
func appendAnswers(to, request, result []byte) []byte {
	batch := request[0] == '['
	if batch {
		to = append(to, '[')
	}
	for first := true; ; first = false {
		_, after, found := bytes.Cut(request, []byte(`"id":`))
		if !found {
			break
		}
		request = after
		if !first {
			to = append(to, ',')
		}
		to = append(to, `{"jsonrpc":"2.0","id":`...)
		to = append(to, request[:bytes.IndexByte(request, ',')]...)
		to = append(to, `,"result":`...)
		to = append(to, result...)
		to = append(to, '}')
	}
	if batch {
		to = append(to, ']')
	}
	return to
}
