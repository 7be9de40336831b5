package dbtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// ledgerChain is a chain of a block every three seconds, with the transfers of one token.
type ledgerChain struct {
	begin  time.Time
	head   uint64
	events []transferOf // in the order of their blocks
	byHash map[common.Hash][]int
	calls  int // to the node
	posts  int // of one or more calls
	asked  func()
}

type transferOf struct {
	block    uint64
	hash     common.Hash
	from, to common.Address
	units    *big.Int
}

const blockTime = 3 * time.Second

var (
	goldToken     = common.HexToAddress("0x70c3")
	transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
)

func (c *ledgerChain) at(block uint64) int64 {
	return c.begin.Add(time.Duration(block) * blockTime).Unix()
}

// move transfers hundredths of a token.
func (c *ledgerChain) move(at time.Time, from, to common.Address, hundredths int64) common.Hash {
	hash := common.Hash{1}
	copy(hash[1:], strconv.AppendInt(nil, int64(len(c.events)), 16))
	units := new(big.Int).Mul(big.NewInt(hundredths), big.NewInt(1e16))
	c.events = append(c.events, transferOf{uint64(at.Sub(c.begin) / blockTime), hash, from, to, units})
	return hash
}

func (c *ledgerChain) ready() {
	slices.SortStableFunc(c.events, func(a, b transferOf) int { return int(a.block) - int(b.block) })
	c.byHash = map[common.Hash][]int{}
	for i, e := range c.events {
		c.byHash[e.hash] = append(c.byHash[e.hash], i)
	}
}

func (c *ledgerChain) log(i int) map[string]any {
	e := c.events[i]
	return map[string]any{
		"address":     goldToken,
		"topics":      []common.Hash{transferTopic, common.BytesToHash(e.from[:]), common.BytesToHash(e.to[:])},
		"data":        hexutil.Encode(common.BigToHash(e.units).Bytes()),
		"blockNumber": hexutil.Uint64(e.block), "blockHash": blockHash(e.block),
		"blockTimestamp":  hexutil.Uint64(c.at(e.block)),
		"transactionHash": e.hash, "transactionIndex": "0x0", "logIndex": hexutil.Uint64(i), "removed": false,
	}
}

func blockHash(number uint64) common.Hash {
	return common.BigToHash(new(big.Int).SetUint64(number + 1<<40))
}

func (c *ledgerChain) answer(method string, params []json.RawMessage) any {
	switch method {
	case "eth_chainId":
		return hexutil.Uint64(7)
	case "eth_call":
		return hexutil.Encode(common.LeftPadBytes([]byte{18}, 32))
	case "eth_blockNumber":
		return hexutil.Uint64(c.head)
	case "eth_getBlockByNumber":
		number := hexutil.Uint64(c.head)
		_ = json.Unmarshal(params[0], &number)
		at := hexutil.Uint64(c.at(uint64(number)))
		return map[string]any{"number": number, "hash": blockHash(uint64(number)), "timestamp": at}
	case "eth_getTransactionByHash", "eth_getTransactionReceipt":
		var hash common.Hash
		_ = json.Unmarshal(params[0], &hash)
		at, known := c.byHash[hash]
		if !known {
			return nil
		}
		logs := []any{}
		for _, i := range at {
			logs = append(logs, c.log(i))
		}
		block := c.events[at[0]].block
		return map[string]any{
			"hash": hash, "transactionHash": hash, "from": common.Address{9}, "to": goldToken, "input": "0x",
			"nonce": "0x0", "value": "0x0", "gas": "0x0", "type": "0x2", "status": "0x1", "logs": logs,
			"blockNumber": hexutil.Uint64(block), "blockHash": blockHash(block),
		}
	case "eth_getLogs":
		var filter struct {
			FromBlock, ToBlock hexutil.Uint64
			Topics             [][]common.Hash
		}
		_ = json.Unmarshal(params[0], &filter)
		logs := []any{}
		first, _ := slices.BinarySearchFunc(c.events, uint64(filter.FromBlock), func(e transferOf, block uint64) int {
			return int(e.block) - int(block)
		})
		for i := first; i < len(c.events) && c.events[i].block <= uint64(filter.ToBlock); i++ {
			e, matches := c.events[i], true
			for n, account := range []common.Address{e.from, e.to} {
				if n+1 < len(filter.Topics) {
					wanted := filter.Topics[n+1]
					matches = matches && (len(wanted) == 0 || slices.Contains(wanted, common.BytesToHash(account[:])))
				}
			}
			if matches {
				logs = append(logs, c.log(i))
			}
		}
		return logs
	}
	return nil
}

// RoundTrip answers without a network.
func (c *ledgerChain) RoundTrip(r *http.Request) (*http.Response, error) {
	c.posts++
	if c.asked != nil {
		c.asked()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	text, err := jsonrpc.Answer(body, func(call jsonrpc.Call) (any, string) {
		c.calls++
		return c.answer(call.Method, call.Params), ""
	})
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(bytes.NewReader(text))}, nil
}

// month is a month of a game's orders, which are right but for those that are planted.
type month struct {
	*rand.Rand
	chain *ledgerChain
	rows  []string
	mint  string // the intents, as they are stored
	burn  string
}

// order writes a row. It ends a minute after it was accepted.
func (m *month) order(user common.Address, d ramp.Direction, state ramp.OrderState, hash string, at time.Time) {
	intent, tx, finished := m.mint, "NULL", "NULL"
	if d == ramp.Burn {
		intent = m.burn
	}
	if hash != "" {
		tx = "'" + hash + "'"
	}
	if state != ramp.OrderAccepted {
		finished = strconv.FormatInt(at.Add(time.Minute).UnixMilli(), 10)
	}
	m.rows = append(m.rows,
		fmt.Sprintf("('%s', 'c', '%s', '%s', 'project', 'session', '%s', '0x%s', '%s', %s, '', %d, %s)",
			uuid.New(), state, d, user.Hex(), strings.Repeat("ab", 32), intent, tx, at.UnixMilli(), finished))
}

// moved moves what an order of five tokens moves, less the fee of a mint.
func (m *month) moved(user common.Address, d ramp.Direction, at time.Time) common.Hash {
	if d == ramp.Mint {
		return m.chain.move(at, common.Address{}, user, 490)
	}
	return m.chain.move(at, user, common.Address{}, 500)
}

// planted are the ways in which an order of a user is wrong.
var planted = map[rampbooks.FindingKind]func(m *month, user common.Address, d ramp.Direction, at time.Time){
	rampbooks.EventWithoutOrder: func(m *month, user common.Address, d ramp.Direction,
		at time.Time) {
		m.moved(user, d, at)
	},
	rampbooks.OrderWithoutEvent: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderSucceeded, "", at)
	},
	rampbooks.TransactionUndone: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderSucceeded, common.Hash{3, user[18], user[19]}.Hex(), at)
		if user[19]%3 == 0 { // another one came in its place
			m.moved(user, d, at.Add(5*time.Minute))
		}
	},
	rampbooks.EndedOtherwise: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAbandoned, "", at)
		m.moved(user, d, at.Add(5*time.Minute))
	},
	rampbooks.WaitsWithEvent: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAccepted, "", at)
		m.moved(user, d, at.Add(5*time.Minute))
	},
	rampbooks.WaitsWithoutEvent: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAccepted, "", at)
	},
	rampbooks.Differs: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		hash := m.chain.move(at.Add(30*time.Second), common.Address{}, user, 300)
		m.order(user, ramp.Mint, ramp.OrderSucceeded, hash.Hex(), at)
	},
	rampbooks.NotCompared: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		rows := len(m.rows)
		m.order(user, d, ramp.OrderSucceeded, common.Hash{4, user[18], user[19]}.Hex(), at)
		m.rows[rows] = strings.ReplaceAll(m.rows[rows], goldToken.Hex(), common.HexToAddress("0x01d").Hex())
	},
	rampbooks.Ambiguous: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		m.order(user, d, ramp.OrderAccepted, "", at)
		m.order(user, d, ramp.OrderAccepted, "", at.Add(time.Minute))
		m.moved(user, d, at.Add(5*time.Minute))
	},
	rampbooks.SharedTransaction: func(m *month, user common.Address, d ramp.Direction, at time.Time) {
		hash := m.moved(user, d, at.Add(30*time.Second)).Hex()
		m.order(user, d, ramp.OrderSucceeded, hash, at)
		m.order(user, d, ramp.OrderSucceeded, strings.ToUpper(hash), at.Add(time.Second))
	},
}

// fillMonth writes a month with so many orders of a thousand players, and plants 25 of each
// kind of finding.
func fillMonth(t *testing.T, p *place, orders int) *ledgerChain {
	t.Helper()
	const length = 30 * 24 * time.Hour
	m := &month{Rand: rand.New(rand.NewPCG(1, 2)), chain: &ledgerChain{begin: day0.Add(-48 * time.Hour)}}
	items := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(500)}}
	tokens := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: goldToken.Hex(), Amount: ramp.NewAmount(5)}}
	written := func(intent ramp.Intent) string { return string(must.Get(json.Marshal(intent))(t)) }
	m.mint = written(ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: items, To: tokens})
	m.burn = written(ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: tokens, To: items})
	directions := []ramp.Direction{ramp.Mint, ramp.Burn}
	for n := range orders {
		at := day0.Add(length / time.Duration(orders) * time.Duration(n)).Truncate(time.Second)
		user, d := common.BigToAddress(big.NewInt(int64(1<<20+m.IntN(1000)))), directions[n%2]
		m.order(user, d, ramp.OrderSucceeded, m.moved(user, d, at.Add(20*time.Second)).Hex(), at)
	}
	for k, kind := range rampbooks.FindingKinds() {
		for n := range 25 {
			user := common.BigToAddress(big.NewInt(int64(1<<30 + k*1000 + n)))
			at := day0.Add(24*time.Hour + time.Duration(m.Int64N(int64(length-72*time.Hour)))).Truncate(time.Second)
			planted[kind](m, user, directions[n%2], at)
		}
	}
	m.chain.head = uint64((length + 48*time.Hour) / blockTime)
	m.chain.ready()
	for part := range slices.Chunk(m.rows, 500) {
		run(t, p.db,
			"INSERT INTO ramp_orders (uuid, claim, state, direction, project_id, session_id, user_address, digest,"+
				" intent, tx_hash, reason, accepted_at, finished_at) VALUES "+strings.Join(part, ", "))
	}
	p.updateStatistics(t)
	return m.chain
}

// A month of books finds what was planted, each of it, and nothing else. To measure more
// orders, set RAMP_TEST_ROWS.
func TestAMonthOfBooksFindsWhatWasPlanted(t *testing.T) {
	orders := 2000
	if text := os.Getenv("RAMP_TEST_ROWS"); text != "" {
		orders = must.Get(strconv.Atoi(text))(t)
	}
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			p := placeOn(t, d.dialect)
			chain := fillMonth(t, p, orders)
			reconciler := booksOf(t, p, chain)
			for range 2 {
				chain.calls, chain.posts = 0, 0
				begun := time.Now()
				books := must.Get(reconciler.Reconcile(t.Context(), day0, day0.Add(30*24*time.Hour)))(t)
				t.Logf("%d orders in %v, calls to the node: %d in %d requests",
					orders, time.Since(begun).Round(time.Millisecond), chain.calls, chain.posts)
				for kind, n := range books.Counts {
					equal(t, "findings of "+string(kind), n, 25)
				}
			}
		})
	}
}
