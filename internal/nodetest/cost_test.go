package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// canned answers each call with the same result over a real connection. It does
// not allocate, so that what is counted is the client's.
func canned(tb testing.TB, result string) (url string) {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAll(connection, []byte(result))
		}
	}()
	return "http://" + listener.Addr().String()
}

func answerAll(connection net.Conn, result []byte) {
	defer connection.Close()
	in, body, out := make([]byte, 256<<10), make([]byte, 0, 1<<20), make([]byte, 0, 1<<20)
	have := 0
	for {
		head, length := -1, 0
		for head < 0 || have < head+length {
			n, err := connection.Read(in[have:])
			if err != nil {
				return
			}
			have += n
			if head = bytes.Index(in[:have], []byte("\r\n\r\n")); head >= 0 {
				head += 4
				at := bytes.Index(in[:head], []byte("Content-Length: ")) + len("Content-Length: ")
				for length = 0; in[at] >= '0' && in[at] <= '9'; at++ {
					length = 10*length + int(in[at]-'0')
				}
			}
		}
		request := in[head : head+length]
		many := request[0] == '['
		body = append(body[:0], ' ') // for a bracket, if there are many
		for {
			at := bytes.Index(request, []byte(`"id":`))
			if at < 0 {
				break
			}
			request = request[at+len(`"id":`):]
			id := request[:bytes.IndexByte(request, ',')]
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = append(body, `{"jsonrpc":"2.0","id":`...)
			body = append(body, id...)
			body = append(body, `,"result":`...)
			body = append(body, result...)
			body = append(body, '}')
		}
		if many {
			body[0] = '['
			body = append(body, ']')
		}
		out = append(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(body)), 10)
		out = append(out, "\r\n\r\n"...)
		out = append(out, body...)
		if _, err := connection.Write(out); err != nil {
			return
		}
		have = copy(in, in[head+length:have])
	}
}

// plainReceipt is a receipt as one would write it by hand.
type plainReceipt struct {
	BlockHash, BlockNumber, ContractAddress, CumulativeGasUsed, EffectiveGasPrice, From, GasUsed, LogsBloom, Status, To,
	TransactionHash, TransactionIndex, Type string

	Logs []struct {
		Address, Data, BlockNumber, TransactionHash, TransactionIndex, BlockHash, BlockTimestamp, LogIndex string

		Topics  []string
		Removed bool
	}
}

type plainRequest struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

type plainAnswer[T any] struct {
	ID     int
	Result T
	Error  *struct {
		Code    int
		Message string
	}
}

// plain is what one would write by hand: net/http and encoding/json.
func plain[T any](ctx context.Context, url string, request any) (answer T, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return answer, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}

const (
	batchSize = 100
	costHash  = "0xab059a62e22e230fe0f56d8555340a29b2e9532360368f810595453f6fdd213b"
)

// costReceipt is that of a token transfer: three topics and one word of data.
var costReceipt = fmt.Sprintf(`{"blockHash":"0x5d9a2f5f3e30f5d7ca3ee30bdcbf18d3ae6e0d8d3bb8ec0a7e7b0c1f7e5d9a2f","blockNumber":"0x1b4",`+
	`"contractAddress":null,"cumulativeGasUsed":"0x33bc","effectiveGasPrice":"0x4a817c800","from":"0x1be31a94361a391bbafb2a4ccd704f57dc04d4bb",`+
	`"gasUsed":"0x4dc","logs":[{"address":"0x1be31a94361a391bbafb2a4ccd704f57dc04d4bb","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",`+
	`"0x0000000000000000000000001be31a94361a391bbafb2a4ccd704f57dc04d4bb","0x0000000000000000000000001be31a94361a391bbafb2a4ccd704f57dc04d4bb"],`+
	`"data":"0x0000000000000000000000000000000000000000000000000de0b6b3a7640000","blockNumber":"0x1b4","transactionHash":"%[1]s","transactionIndex":"0x0",`+
	`"blockHash":"0x5d9a2f5f3e30f5d7ca3ee30bdcbf18d3ae6e0d8d3bb8ec0a7e7b0c1f7e5d9a2f","blockTimestamp":"0x55ba467c","logIndex":"0x0","removed":false}],`+
	`"logsBloom":"0x%[2]s","status":"0x1","to":"0x1be31a94361a391bbafb2a4ccd704f57dc04d4bb","transactionHash":"%[1]s","transactionIndex":"0x0","type":"0x2"}`,
	costHash, strings.Repeat("00", 256))

// costs are the same three calls by three clients.
func costs(tb testing.TB) map[string]map[string]func() error {
	tb.Helper()
	ctx, hash := context.Background(), common.HexToHash(costHash)
	numberURL, receiptURL := canned(tb, `"0x1b4"`), canned(tb, costReceipt)
	dial := func(url string) (*ramp.RPC, *ethclient.Client) {
		ours, err := ramp.NewRPC(ramp.RPCConfig{URL: url})
		require.NoError(tb, err)
		theirs, err := rpc.Dial(url)
		require.NoError(tb, err)
		tb.Cleanup(theirs.Close)
		return ours, ethclient.NewClient(theirs)
	}
	oursNumber, theirsNumber := dial(numberURL)
	oursReceipt, theirsReceipt := dial(receiptURL)
	return map[string]map[string]func() error{
		"number": {
			"ramp": func() error { _, err := oursNumber.BlockNumber(ctx); return err },
			"geth": func() error { _, err := theirsNumber.BlockNumber(ctx); return err },
			"plain": func() error {
				a, err := plain[plainAnswer[string]](ctx, numberURL, plainRequest{"2.0", 1, "eth_blockNumber", []any{}})
				if err != nil {
					return err
				}
				_, err = hexutil.DecodeUint64(a.Result)
				return err
			},
		},
		"receipt": {
			"ramp": func() error { _, err := oursReceipt.Receipt(ctx, hash); return err },
			"geth": func() error { _, err := theirsReceipt.TransactionReceipt(ctx, hash); return err },
			"plain": func() error {
				_, err := plain[plainAnswer[plainReceipt]](ctx, receiptURL, plainRequest{"2.0", 1, "eth_getTransactionReceipt", []any{hash}})
				return err
			},
		},
		"batch": {
			"ramp": func() error {
				calls, got := make([]ramp.BatchCall, batchSize), make([]ramp.Receipt, batchSize)
				for i := range calls {
					calls[i] = ramp.BatchCall{Method: "eth_getTransactionReceipt", Params: []any{hash}, Into: &got[i]}
				}
				if err := oursReceipt.Batch(ctx, calls); err != nil {
					return err
				}
				return calls[batchSize-1].Err
			},
			"geth": func() error {
				calls, got := make([]rpc.BatchElem, batchSize), make([]types.Receipt, batchSize)
				for i := range calls {
					calls[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{hash}, Result: &got[i]}
				}
				if err := theirsReceipt.Client().BatchCallContext(ctx, calls); err != nil {
					return err
				}
				return calls[batchSize-1].Error
			},
			"plain": func() error {
				calls := make([]plainRequest, batchSize)
				for i := range calls {
					calls[i] = plainRequest{"2.0", i + 1, "eth_getTransactionReceipt", []any{hash}}
				}
				_, err := plain[[]plainAnswer[plainReceipt]](ctx, receiptURL, calls)
				return err
			},
		},
	}
}

func TestAllocationsStayInTheirBounds(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates too; run this without it")
	}
	for name, most := range map[string]float64{"number": 80, "receipt": 110, "batch": 3500} {
		calls := costs(t)[name]
		allocations := map[string]float64{}
		for client, call := range calls {
			require.NoError(t, call()) // connects
			allocations[client] = testing.AllocsPerRun(100, func() { assert.NoError(t, call()) })
		}
		t.Logf("%s: %v allocations, %v at most", name, allocations, most)
		assert.LessOrEqual(t, allocations["ramp"], most, name)
		assert.Less(t, allocations["ramp"], allocations["geth"], name)
	}
}

// Clients take turns, and the best of many rounds is compared: what else the
// machine does then slows none of them more than the others. Rounds go on while
// a bound is broken, because more of them only come closer to the truth.
func TestTimesStayInTheirBounds(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector slows what it watches; run this without it")
	}
	for name, test := range map[string]struct {
		most  float64 // of go-ethereum's time
		calls int     // in a round
	}{"receipt": {1, 100}, "batch": {0.75, 5}} {
		calls, best := costs(t)[name], map[string]time.Duration{}
		ratio := func() float64 { return best["ramp"].Seconds() / best["geth"].Seconds() }
		for round := 0; round < 30 || round < 300 && ratio() > test.most; round++ {
			for client, call := range calls {
				begun := time.Now()
				for range test.calls {
					require.NoError(t, call())
				}
				if took := time.Since(begun) / time.Duration(test.calls); round == 0 || took < best[client] {
					best[client] = took
				}
			}
		}
		t.Logf("%s: %v, %.2f of go-ethereum's time, %.2f at most", name, best, ratio(), test.most)
		assert.LessOrEqual(t, ratio(), test.most, name)
	}
}

func BenchmarkClients(b *testing.B) {
	for _, name := range []string{"number", "receipt", "batch"} {
		for _, client := range []string{"ramp", "geth", "plain"} {
			b.Run(name+"/"+client, func(b *testing.B) {
				call := costs(b)[name][client]
				require.NoError(b, call())
				b.ReportAllocs()
				for b.Loop() {
					if err := call(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
