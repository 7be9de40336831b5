package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	_ "modernc.org/sqlite"
)

const (
	hmacSecret   = "my_secret_salt_value_!@#$%^&*"
	validatorKey = "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
)

// These structs are the baseline: a studio would write them to read a call with
// encoding/json. They have only the fields that affect the outcome, skip all others,
// and check nothing. That makes them hard to beat, on purpose: reading hashes, logs
// and the Bloom filter, keeping unknown values, and reporting problems must not cost
// more than not doing so. Do not add fields to make the SDK look better.
type (
	plainResult struct {
		UUID    string  `json:"uuid"`
		Receipt receipt `json:"receipt"`
		Intent  intent  `json:"intent"`
	}
	plainValidate struct {
		UserSig string `json:"user_sig"`
		Digest  string `json:"digest"`
		UUID    string `json:"uuid"`
		Intent  intent `json:"intent"`
	}
)

// wholeResult has the fields of the interface, in the types of go-ethereum: what a studio would write
// that looks at the events of a result too. It reads no exact amounts, and keeps no unknown fields.
type (
	wholeResult struct {
		SessionID string       `json:"session_id"`
		UUID      uuid.UUID    `json:"uuid"`
		TxHash    string       `json:"tx_hash"`
		Receipt   wholeReceipt `json:"receipt"`
		Intent    intent       `json:"intent"`
	}
	wholeReceipt struct {
		Type              *hexutil.Big   `json:"type"`
		Root              hexutil.Bytes  `json:"root"`
		Status            *hexutil.Big   `json:"status"`
		CumulativeGasUsed *hexutil.Big   `json:"cumulativeGasUsed"`
		LogsBloom         hexutil.Bytes  `json:"logsBloom"`
		Logs              []wholeLog     `json:"logs"`
		TransactionHash   common.Hash    `json:"transactionHash"`
		ContractAddress   common.Address `json:"contractAddress"`
		GasUsed           *hexutil.Big   `json:"gasUsed"`
		EffectiveGasPrice *hexutil.Big   `json:"effectiveGasPrice"`
		BlockHash         common.Hash    `json:"blockHash"`
		BlockNumber       *hexutil.Big   `json:"blockNumber"`
		TransactionIndex  *hexutil.Big   `json:"transactionIndex"`
	}
	wholeLog struct {
		Address          common.Address `json:"address"`
		Topics           []common.Hash  `json:"topics"`
		Data             hexutil.Bytes  `json:"data"`
		BlockNumber      *hexutil.Big   `json:"blockNumber"`
		TransactionHash  common.Hash    `json:"transactionHash"`
		TransactionIndex *hexutil.Big   `json:"transactionIndex"`
		BlockHash        common.Hash    `json:"blockHash"`
		BlockTimestamp   json.Number    `json:"blockTimestamp"`
		LogIndex         *hexutil.Big   `json:"logIndex"`
		Removed          bool           `json:"removed"`
	}
)

const plainStruct, sameFields = "json.Unmarshal, plain struct", "json.Unmarshal, the same fields"

func parseComparisons() []comparison {
	one, twenty, receipt := resultBody(1), resultBody(20), []byte(nodeReceipt())
	return []comparison{
		parseComparison[plainResult]("ParseResult, 1 log", plainStruct, one, ramp.ParseResult, bounds{0.50, 1.00, 25}),
		parseComparison[wholeResult]("ParseResult, 1 log", sameFields, one, ramp.ParseResult, bounds{}),
		parseComparison[plainResult]("ParseResult, 20 logs", plainStruct, twenty, ramp.ParseResult,
			bounds{0.45, 1.40, 0}),
		parseComparison[wholeResult]("ParseResult, 20 logs", sameFields, twenty, ramp.ParseResult, bounds{}),
		parseComparison[plainValidate]("ParseValidate", plainStruct, []byte(validateBody), ramp.ParseValidate,
			bounds{0.50, 1.00, 17}),
		parseComparison[types.Receipt]("Receipt", "go-ethereum", receipt,
			func(text []byte) (r *ramp.Receipt, err error) {
				r = new(ramp.Receipt)
				return r, r.UnmarshalJSON(text)
			}, bounds{0.25, 0.45, 0}),
	}
}

func parseComparison[Theirs, Ours any](subject, rival string, body []byte, parse func([]byte) (*Ours, error),
	most bounds) comparison {
	return comparison{subject: subject, rival: rival, bounds: most,
		setup: func(testing.TB) (ours, theirs func() error) {
			return func() error { _, err := parse(body); return err },
				func() error { return json.Unmarshal(body, new(Theirs)) }
		}}
}

// handlerComparisons serve signed calls without connections, so that only the handlers are
// measured.
func handlerComparisons(t testing.TB) []comparison {
	key := must.Get(crypto.HexToECDSA(validatorKey))(t)
	compare := func(subject, path string, body []byte, most bounds, byHand http.HandlerFunc) comparison {
		return comparison{subject: subject, rival: "barest handler by hand", bounds: most,
			setup: func(t testing.TB) (ours, theirs func() error) {
				return serve(t, newHandler(t, approvingGame{}), path, body), serve(t, byHand, path, body)
			}}
	}
	return []comparison{
		// Version 2: 0.93 to 1.09, and 0.92 to 1.08, for the same code.
		compare("validate call", ramp.PathValidate, []byte(validateBody), bounds{1.05, 1.10, 0},
			barest(func(c *plainValidate) (any, error) { return approve(key, c.UserSig, c.Digest) })),
		compare("result call, 1 log", ramp.PathResult, resultBody(1), bounds{0.75, 1.05, 0},
			barest(func(*plainResult) (any, error) { return nil, nil })),
	}
}

// barest returns the smallest handler that a careful studio would write. It checks neither
// the session nor the form of the values.
func barest[Call any](run func(*Call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var c Call
		var data any
		err := readSigned(w, r, []byte(hmacSecret), &c)
		if err == nil {
			data, err = run(&c)
		}
		answer(w, data, err)
	}
}

// playersAndStore is a game with its store.
type playersAndStore interface {
	ramp.Players
	ramp.Store
}

func newHandler(t testing.TB, g playersAndStore) *ramp.Handler {
	return must.Get(ramp.NewHandler(ramp.HandlerConfig{
		Terms:   must.Get(ramp.NewTerms(ramp.TermsConfig{Any: true}))(t),
		Players: g,
		Store:   g,
		Key:     must.Get(ramp.TextKey(hmacSecret))(t),
		Signer:  must.Get(ramp.NewKeySigner("0x" + validatorKey))(t),
		Logger:  slog.New(slog.DiscardHandler),
	}))(t)
}

// approvingGame has no database, so that only the handler is measured.
type approvingGame struct{}

func (approvingGame) Authenticate(context.Context, ramp.Session) error { return nil }
func (approvingGame) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

func (approvingGame) Update(_ context.Context, _ uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	step, err := next(nil)
	if errors.Is(err, ramp.ErrOrderUnknown) { // a result
		return ramp.Step{}, nil
	}
	return step, err
}

// serve returns a call of the handler with a signed body (interface 4.3), which it must
// approve.
func serve(t testing.TB, handler http.Handler, path string, body []byte) (call func() error) {
	send := signed(t, path, body)
	return func() error {
		request, err := send()
		if err != nil {
			return err
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			return errors.New(answer.Body.String())
		}
		return nil
	}
}

// signed returns a function that returns a request with a body and its signature.
func signed(t testing.TB, path string, body []byte) func() (*http.Request, error) {
	header := http.Header{"Content-Type": {"application/json"}, ramp.HeaderAuthorization: {"Bearer token-of-a-session"},
		ramp.HeaderSession: {"hero-4821"}, ramp.HeaderHMAC: {must.Get(ramp.TextKey(hmacSecret))(t).Sign(body)}}
	return func() (*http.Request, error) {
		r, err := http.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header = header
		return r, nil
	}
}

const (
	batchSize         = 100
	blockTransactions = 200
)

// rpcComparisons make the same calls to a fake node with canned answers, which has no
// connections, so that only the clients are measured.
func rpcComparisons() []comparison {
	ctx, hash := context.Background(), common.HexToHash(transactionHash)
	compare := func(subject, result string, most bounds, ours func(*ramp.RPC) (int, error),
		theirs func(*ethclient.Client) (int, error)) comparison {
		return comparison{subject: "JSON-RPC, " + subject, rival: "go-ethereum's ethclient", bounds: most,
			setup: func(t testing.TB) (_, _ func() error) {
				const url = "http://127.0.0.1"
				client := &http.Client{Transport: node(result)}
				rpcClient := must.Get(rpc.DialOptions(ctx, url, rpc.WithHTTPClient(client)))(t)
				t.Cleanup(rpcClient.Close)
				own, other := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: url, HTTPClient: client}))(t),
					ethclient.NewClient(rpcClient)
				want := must.Get(theirs(other))(t)
				counted := func(n int, err error) error {
					if err == nil && n != want {
						err = fmt.Errorf("got %d, not %d", n, want)
					}
					return err
				}
				return func() error { return counted(ours(own)) }, func() error { return counted(theirs(other)) }
			}}
	}
	return []comparison{
		compare("one receipt", nodeReceipt(), bounds{0.35, 0.65, 110},
			func(c *ramp.RPC) (int, error) { _, err := c.Receipt(ctx, hash); return 1, err },
			func(c *ethclient.Client) (int, error) { _, err := c.TransactionReceipt(ctx, hash); return 1, err }),
		compare("batch of 100 receipts", nodeReceipt(), bounds{0.35, 0.42, 1400},
			func(c *ramp.RPC) (int, error) {
				calls, got := make([]ramp.BatchCall, batchSize), make([]ramp.Receipt, batchSize)
				for i := range calls {
					calls[i] = ramp.BatchCall{Method: "eth_getTransactionReceipt", Params: []any{hash}, Into: &got[i]}
				}
				err := c.Batch(ctx, calls)
				return len(got[batchSize-1].Logs), cmp.Or(err, calls[batchSize-1].Err)
			},
			func(c *ethclient.Client) (int, error) {
				calls, got := make([]rpc.BatchElem, batchSize), make([]types.Receipt, batchSize)
				for i := range calls {
					calls[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{hash}, Result: &got[i]}
				}
				err := c.Client().BatchCallContext(ctx, calls)
				return len(got[batchSize-1].Logs), cmp.Or(err, calls[batchSize-1].Error)
			}),
		compare("block with 200 transactions", nodeBlock(), bounds{0.35, 0.35, 0},
			func(c *ramp.RPC) (int, error) {
				block, err := c.BlockByNumber(ctx, ramp.Latest, true)
				if err != nil {
					return 0, err
				}
				return len(block.Transactions), nil
			},
			func(c *ethclient.Client) (int, error) {
				block, err := c.BlockByNumber(ctx, nil)
				if err != nil {
					return 0, err
				}
				return len(block.Transactions()), nil
			}),
	}
}

// node answers every call, also in a batch, with the same result.
type node string

func (result node) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	separator := ""
	for calls := body; ; separator = "," {
		_, after, found := bytes.Cut(calls, []byte(`"id":`))
		if !found {
			break
		}
		id := after[:bytes.IndexAny(after, ",}")]
		out.WriteString(separator + `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + string(result) + `}`)
		calls = after
	}
	if body[0] == '[' {
		out = *bytes.NewBufferString("[" + out.String() + "]")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(out.Len()), Body: io.NopCloser(&out), Request: request}, nil
}

// orderComparison accepts and finishes a burn that fails, each step in one transaction, and
// each side in a database of its own. In-process SQLite is the cheapest database: it has no
// network and does not wait for the disk here.
var orderComparison = comparison{subject: "an order on SQLite, accept and finish",
	rival: "the same statements by hand, unchecked", wall: true,
	bounds: bounds{1.33, 1.33, 0}, setup: func(t testing.TB) (ours, theirs func() error) {
		store := must.Get(rampsql.New(rampsql.Config{DB: openGame(t), Dialect: rampsql.SQLite, Apply: applyGame}))(t)
		byHand, ctx := newGame(openGame(t), false), context.Background()
		ours = func() error {
			c := newCall("hero-4821", true, true)
			burn := ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble,
				From: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: tokenAddress, Amount: ramp.NewAmount(1)}},
				To:   []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: item, Amount: ramp.NewAmount(goldOfOrder)}}}
			id := uuid.MustParse(c.UUID)
			digest, err := ramp.ParseDigest(c.Digest)
			if err != nil {
				return err
			}
			if _, err := store.Update(ctx, id, ramp.Accept(ramp.Session{ID: "hero-4821"}, &ramp.ValidateRequest{
				UserAddress: c.UserAddress, ProjectID: c.ProjectID, Digest: digest,
				UUID:   id,
				Intent: burn,
			}, time.Now())); err != nil {
				return err
			}
			_, err = store.Update(ctx, id,
				ramp.Finish(&ramp.Result{SessionID: "hero-4821", UUID: id, TxHash: c.TxHash, Intent: burn,
					Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}}, time.Now()))
			return err
		}
		theirs = func() error {
			c := newCall("hero-4821", true, true)
			return errors.Join(byHand.accept(ctx, "hero-4821", c), byHand.end(ctx, c))
		}
		return ours, theirs
	}}

// openGame returns a database with orders and the tables of a game, in which one player has a session.
func openGame(t testing.TB) *sql.DB {
	db := openSQLite(t)
	must.Get(db.Exec(`CREATE TABLE sessions (id TEXT PRIMARY KEY, player TEXT NOT NULL);
		CREATE TABLE inventory (player TEXT, item TEXT, balance INTEGER NOT NULL, PRIMARY KEY (player, item));
		INSERT INTO sessions VALUES ('hero-4821', 'hero');
		INSERT INTO inventory VALUES ('hero', ?, 1000000)`, item))(t)
	return db
}

// applyGame moves assets with the statement of the rival by hand.
func applyGame(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	for _, moved := range step.Effect.Assets {
		delta, err := step.Effect.Delta(moved).Int64()
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, moveItem, delta, step.Order.SessionID, moved.ID, max(0, -delta), int64(1)<<62)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return cmp.Or(err, errRejected)
		}
	}
	return nil
}

func applyNothing(context.Context, *sql.Tx, ramp.Step) error { return nil }

func openSQLite(t testing.TB) *sql.DB {
	db := must.Get(sql.Open("sqlite",
		"file:"+filepath.Join(t.TempDir(), "orders.db")+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_txlock=immediate"))(t)
	t.Cleanup(func() { _ = db.Close() })
	must.Get(db.Exec(rampsql.SQLite.Schema()))(t)
	return db
}

const (
	transactionHash = "0xab059a62e22e230fe0f56d8555340a29b2e9532360368f810595453f6fdd213b"
	blockHash       = "0x5d9a2f5f3e30f5d7ca3ee30bdcbf18d3ae6e0d8d3bb8ec0a7e7b0c1f7e5d9a2f"
	playerAddress   = "0x1be31a94361a391bbafb2a4ccd704f57dc04d4bb"
	tokenAddress    = "0x13345c94929a47a35a4dcd36e2574b8123fe190d"

	mintIntent = `{"method":"mint","type":"assemble","from":[{"type":"asset","id":"gold","amount":100}],` +
		`"to":[{"type":"ERC20","id":"` + tokenAddress +
		`","amount":10}],"target_candidate":{},"fee_rate":2000,"actual":"8"}`

	validateBody = `{"user_sig":"0xa9c5cc5e7b594f1b1e82f7907303e007adb6f05573e984e7fc8baa80995d90b72bbf5b42` +
		`97ea75d36ba5672b3e49f305edaea0c2bb6d02e1babc67e1340554561b",` +
		`"user_address":"` + playerAddress + `","project_id":"project-1",` +
		`"digest":"0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85",` +
		`"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","intent":` + mintIntent + `}`
)

// bloom is a Bloom filter of 256 bytes.
var bloom = "0x" + strings.Repeat("00", 256)

// transferLogs returns events of token transfers, each with three topics and one word
// of data. The webhook sends the timestamp as a number, and a node sends it as hex.
func transferLogs(count int, timestamp string) string {
	logs := make([]string, count)
	for i := range logs {
		logs[i] = fmt.Sprintf(
			`{"address":"%s","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",`+
				`"0x0000000000000000000000001be31a94361a391bbafb2a4ccd704f57dc04d4bb",`+
				`"0x0000000000000000000000008f2a55949038a9610f50fb23b5883af3b4ecb3c3"],`+
				`"data":"0x0000000000000000000000000000000000000000000000000de0b6b3a7640000",`+
				`"blockNumber":"0x12d687","transactionHash":"%s",`+
				`"transactionIndex":"0x3","blockHash":"%s","blockTimestamp":%s,"logIndex":"%#x","removed":false}`,
			tokenAddress, transactionHash, blockHash, timestamp, i)
	}
	return "[" + strings.Join(logs, ",") + "]"
}

// resultBody is a successful mint as the result webhook reports it (interface 6).
func resultBody(logs int) []byte {
	return fmt.Appendf(nil,
		`{"session_id":"hero-4821","uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","tx_hash":"%[1]s",`+
			`"receipt":{"type":"0x7","root":"0x","status":"0x1","cumulativeGasUsed":"0x5b8d80","logsBloom":"%[2]s",`+
			`"logs":%[3]s,`+
			`"transactionHash":"%[1]s","contractAddress":"0x0000000000000000000000000000000000000000",`+
			`"gasUsed":"0x1e8480",`+
			`"effectiveGasPrice":"0x3b9aca00","blockHash":"%[4]s","blockNumber":"0x12d687","transactionIndex":"0x3"},`+
			`"intent":%[5]s}`,
		transactionHash, bloom, transferLogs(logs, "0"), blockHash, mintIntent)
}

// nodeReceipt is the receipt of a token transfer as a node reports it.
func nodeReceipt() string {
	return fmt.Sprintf(
		`{"blockHash":"%[1]s","blockNumber":"0x12d687","contractAddress":null,"cumulativeGasUsed":"0x33bc",`+
			`"effectiveGasPrice":"0x4a817c800","from":"%[2]s","gasUsed":"0x4dc","logs":%[3]s,"logsBloom":"%[4]s",`+
			`"status":"0x1",`+
			`"to":"%[5]s","transactionHash":"%[6]s","transactionIndex":"0x3","type":"0x2"}`,
		blockHash, playerAddress, transferLogs(1, nodeTimestamp), bloom, tokenAddress, transactionHash)
}

const nodeTimestamp = `"0x55ba467c"`

// nodeBlock is a block of token transfers as a node reports it.
func nodeBlock() string {
	transfer := `{"type":"0x2","chainId":"0x1","nonce":"0x0","to":"` + tokenAddress +
		`","gas":"0xea60","maxPriorityFeePerGas":"0x1",` +
		`"maxFeePerGas":"0x3b9aca00","value":"0x0","input":"0xa9059cbb` + strings.Repeat("00", 64) +
		`","accessList":[],"v":"0x0","yParity":"0x0",` +
		`"r":"` + transactionHash + `","s":"0x1","hash":"` + transactionHash + `","blockHash":"` + blockHash +
		`","blockNumber":"0x12d687",` +
		`"from":"` + playerAddress + `","transactionIndex":"0x1"}`
	return fmt.Sprintf(
		`{"parentHash":"%[1]s","sha3Uncles":"%[2]s","miner":"%[3]s","stateRoot":"%[1]s","transactionsRoot":"%[1]s",`+
			`"receiptsRoot":"%[1]s",`+
			`"logsBloom":"%[4]s","difficulty":"0x0","number":"0x12d687","gasLimit":"0x1c9c380","gasUsed":"0x989680",`+
			`"timestamp":%[5]s,"extraData":"0x",`+
			`"mixHash":"%[1]s","nonce":"0x0000000000000000","baseFeePerGas":"0x7","hash":"%[1]s","size":"0xabcd",`+
			`"uncles":[],"transactions":[%[6]s]}`,
		blockHash, types.EmptyUncleHash, playerAddress, bloom, nodeTimestamp,
		transfer+strings.Repeat(","+transfer, blockTransactions-1))
}
