package dbtest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/racedetector"
	"github.com/token-ramp/ramp-go/support"
)

// The books of a month are compared with a chain. RAMP_TEST_BOOKS is the number of
// orders, 10,000 by default; with 1,000,000 it takes minutes.
const envBooks = "RAMP_TEST_BOOKS"

var (
	bookToken = common.HexToAddress("0x70c3")
	fees      = common.HexToAddress("0xfee5") // receives the fee of each mint
	transfer  = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
	month     = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
)

const (
	monthLasts = 30 * 24 * time.Hour
	mintFee    = 250
	planted    = 200
)

func product() ramp.Product {
	items := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	return ramp.Product{Name: "gold", Token: bookToken.Hex(), MintFeeBps: mintFee, Materials: items, Outputs: items}
}

// deal is the n-th order of the month, and its event. It follows from n, so that the node
// keeps nothing.
type deal struct {
	n          int
	kind       support.FindingKind // what is planted, or ""
	by         string
	burn       bool
	tokens     int64
	user       common.Address
	state      ramp.OrderState
	hash       string // of the order, or ""
	accepted   time.Time
	finished   time.Time
	mined      time.Time // of the event; zero if there is none
	moved      int64     // tokens of the event
	receiver   common.Address
	hasNoOrder bool
}

// books are the deals of a month.
type books struct {
	count int
	every int // the distance of two planted deals
}

func newBooks(count int) books { return books{count, count / (planted + 1)} }

var plants = []struct {
	kind support.FindingKind
	by   string
}{
	{support.EventWithoutOrder, ""}, {support.OrderWithoutEvent, ""}, {support.EndedOtherwise, support.ByTransaction}, {support.EndedOtherwise, support.ByAmount},
	{support.WaitsWithEvent, support.ByAmount}, {support.WaitsWithoutEvent, ""}, {support.Differs, "amount"}, {support.Differs, "user"}, {support.Ambiguous, support.ByAmount},
}

// planted returns the number of the plant at a place, or -1.
func (b books) plantAt(n int) int {
	if n > 0 && n%b.every == 0 && n/b.every <= planted {
		return n/b.every - 1
	}
	return -1
}

func txOf(n int) common.Hash {
	var hash common.Hash
	hash[0] = 1
	binary.BigEndian.PutUint64(hash[24:], uint64(n))
	return hash
}

// accepted returns when the n-th order was accepted. The last ones end before the month.
func (b books) accepted(n int) time.Time {
	const lasts = monthLasts - 48*time.Hour
	return month.Add(14 * time.Hour).Add(lasts / time.Duration(b.count) * time.Duration(n)).Truncate(time.Second)
}

func (b books) deal(n int) deal {
	random := rand.New(rand.NewPCG(7, uint64(n)))
	d := deal{n: n, burn: n%2 == 1, tokens: 1 + random.Int64N(50), state: ramp.OrderSucceeded}
	d.accepted = b.accepted(n)
	binary.BigEndian.PutUint32(d.user[4:], 1+random.Uint32N(50_000))
	d.mined = d.accepted.Add(10 * time.Second) // the events are in the order of n
	d.finished = d.mined.Add(time.Duration(1+random.Int64N(60)) * time.Second)
	if random.IntN(200) == 0 { // most deliveries arrive soon
		d.finished = d.mined.Add(time.Duration(random.Int64N(int64(12 * time.Hour)))).Truncate(time.Millisecond)
	}
	d.hash = txOf(n).Hex()
	switch random.IntN(100) {
	case 0, 1, 2, 3, 4:
		d.state, d.mined = ramp.OrderFailed, time.Time{}
	case 5:
		d.state, d.mined, d.hash, d.finished = ramp.OrderAbandoned, time.Time{}, "", d.accepted.Add(14*time.Hour)
	}
	if b.plantAt(n-1) >= 0 && plants[b.plantAt(n-1)%len(plants)].kind == support.Ambiguous { // the other order that fits
		first := b.deal(n - 1)
		d.burn, d.tokens, d.user, d.state, d.hash, d.mined = first.burn, first.tokens, first.user, ramp.OrderAbandoned, "", time.Time{}
		d.finished = d.accepted.Add(20 * time.Hour)
	}
	if at := b.plantAt(n); at >= 0 {
		b.plant(&d, plants[at%len(plants)].kind, plants[at%len(plants)].by)
	}
	d.moved, d.receiver = d.tokens, d.user
	if d.by == "amount" {
		d.moved++
	}
	if d.by == "user" {
		d.receiver[0]++
	}
	return d
}

// plant makes a deal wrong. Its user has no other deals.
func (b books) plant(d *deal, kind support.FindingKind, by string) {
	d.kind, d.by = kind, by
	d.user = common.BigToAddress(big.NewInt(int64(d.n)))
	d.user[0] = 0x99
	d.state, d.hash = ramp.OrderSucceeded, txOf(d.n).Hex()
	d.mined = d.accepted.Add(10 * time.Second)
	d.finished = d.mined.Add(time.Minute)
	switch {
	case kind == support.EventWithoutOrder:
		d.hasNoOrder = true
	case kind == support.OrderWithoutEvent:
		d.mined = time.Time{}
	case kind == support.EndedOtherwise && by == support.ByTransaction:
		d.state = ramp.OrderFailed
	case kind == support.EndedOtherwise, kind == support.Ambiguous:
		d.state, d.hash, d.finished = ramp.OrderAbandoned, "", d.accepted.Add(15*time.Hour)
	case kind == support.WaitsWithEvent:
		d.state, d.hash, d.finished = ramp.OrderAccepted, "", time.Time{}
	case kind == support.WaitsWithoutEvent:
		d.state, d.hash, d.finished, d.mined = ramp.OrderAccepted, "", time.Time{}, time.Time{}
	}
}

// logs returns the logs of a deal: a mint has a second one, of the fee.
func (d *deal) logs(mints, burns bool) (logs []ramp.Log) {
	if d.mined.IsZero() || d.burn && !burns || !d.burn && !mints {
		return nil
	}
	user := common.BytesToHash(d.receiver[:])
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(14), nil) // of which a token has 10,000
	add := func(from, to common.Hash, units int64, index uint64) {
		logs = append(logs, ramp.Log{Address: bookToken, Topics: []common.Hash{transfer, from, to}, Data: common.BigToHash(new(big.Int).Mul(unit, big.NewInt(units))).Bytes(),
			BlockNumber: ramp.NewQuantity(blockAt(d.mined)), TransactionHash: txOf(d.n), BlockTimestamp: ramp.NewQuantity(uint64(d.mined.Unix())),
			LogIndex: ramp.NewQuantity(uint64(4*(d.n%1000)) + index)})
	}
	if d.burn {
		add(user, common.Hash{}, d.moved*10_000, 0)
	} else {
		add(common.Hash{}, user, d.moved*(10_000-mintFee), 0)
		add(common.Hash{}, common.BytesToHash(fees[:]), d.moved*mintFee, 1)
	}
	return logs
}

// One block a second.
func blockAt(t time.Time) uint64 { return uint64(t.Sub(month)/time.Second) + 1 }

// from returns the first deal whose event is not before a block.
func (b books) from(block uint64) int {
	at := month.Add(time.Duration(block-min(block, 1)) * time.Second)
	return sort.Search(b.count, func(n int) bool { return !b.accepted(n).Add(10 * time.Second).Before(at) })
}

// ServeHTTP is a node that takes at most 10,000 blocks and 10,000 logs at once.
func (b books) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type request struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	var body json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&body)
	var many []request
	batch := json.Unmarshal(body, &many) == nil
	if !batch {
		many = make([]request, 1)
		_ = json.Unmarshal(body, &many[0])
	}
	var answers []map[string]any
	for _, one := range many {
		result, err := b.answer(one.Method, one.Params)
		a := map[string]any{"jsonrpc": "2.0", "id": one.ID, "result": result}
		if err != nil {
			delete(a, "result")
			a["error"] = map[string]any{"code": -32005, "message": err.Error()}
		}
		answers = append(answers, a)
	}
	w.Header().Set("Content-Type", "application/json")
	if batch {
		_ = json.NewEncoder(w).Encode(answers)
	} else {
		_ = json.NewEncoder(w).Encode(answers[0])
	}
}

func (b books) answer(method string, params []json.RawMessage) (any, error) {
	const limit = 10_000
	newest := blockAt(month.Add(monthLasts))
	switch method {
	case "eth_blockNumber":
		return hexutil.Uint64(newest), nil
	case "eth_getBlockByNumber":
		var n hexutil.Uint64
		if err := json.Unmarshal(params[0], &n); err != nil || uint64(n) > newest {
			return nil, err
		}
		return map[string]any{"number": n, "timestamp": hexutil.Uint64(uint64(month.Unix()) + uint64(n) - 1)}, nil
	case "eth_getLogs":
		var filter struct {
			FromBlock, ToBlock hexutil.Uint64
			Topics             [][]common.Hash
		}
		if err := json.Unmarshal(params[0], &filter); err != nil {
			return nil, err
		}
		if filter.ToBlock-filter.FromBlock >= limit {
			return nil, errors.New("block range is too wide")
		}
		zero := func(i int) bool { return len(filter.Topics) > i && slices.Equal(filter.Topics[i], []common.Hash{{}}) }
		logs := []ramp.Log{}
		for n := b.from(uint64(filter.FromBlock)); n < b.count; n++ {
			d := b.deal(n)
			if blockAt(d.accepted.Add(10*time.Second)) > uint64(filter.ToBlock) {
				break
			}
			for _, log := range d.logs(zero(1), zero(2)) {
				user := log.Topics[2]
				if zero(2) {
					user = log.Topics[1]
				}
				if wanted := slices.Concat(filter.Topics[1:]...); len(wanted) <= 1 || slices.Contains(wanted, user) {
					logs = append(logs, log)
				}
			}
			if len(logs) > limit {
				return nil, errors.New("query returned more than 10000 results")
			}
		}
		return logs, nil
	case "eth_getTransactionReceipt":
		return nil, nil // the transactions of the orders without events do not exist
	default:
		return nil, fmt.Errorf("the method %s does not exist", method)
	}
}

// store inserts the orders of the month.
func (b books) store(t *testing.T, p *place) {
	t.Helper()
	const perInsert = 500
	if p.dialect == ramp.SQLite { // a million rows are inserted faster without them
		var indexes []string
		rows, err := p.db.Query("SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'ramp_orders_%'")
		check(t, err)
		for rows.Next() {
			var name string
			check(t, rows.Scan(&name))
			indexes = append(indexes, "DROP INDEX "+name+";")
		}
		check(t, rows.Close())
		run(t, p.db, strings.Join(indexes, ""))
	}
	tx, err := p.db.Begin()
	check(t, err)
	defer tx.Rollback()
	var args []any
	insert := func() {
		if len(args) == 0 {
			return
		}
		row := "(" + strings.TrimSuffix(strings.Repeat("?,", 14), ",") + "),"
		rows := strings.TrimSuffix(strings.Repeat(row, len(args)/14), ",")
		_, err := tx.Exec(bind(p.dialect, "INSERT INTO ramp_orders (uuid, claim, state, direction, network, project_id, session_id, user_address, digest, intent,"+
			" tx_hash, reason, accepted_at, finished_at) VALUES "+rows), args...)
		check(t, err)
		args = args[:0]
	}
	for n := range b.count {
		d := b.deal(n)
		if d.hasNoOrder {
			continue
		}
		var id uuid.UUID
		binary.BigEndian.PutUint64(id[8:], uint64(n)*0x9E3779B97F4A7C15) // not in the order of time
		items := ramp.IntentAsset{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100 * d.tokens)}
		tokens := ramp.IntentAsset{Type: ramp.TypeERC20, ID: bookToken.Hex(), Amount: ramp.NewAmount(d.tokens)}
		intent, direction := ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: []ramp.IntentAsset{items}, To: []ramp.IntentAsset{tokens}}, ramp.Mint
		if d.burn {
			intent, direction = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: []ramp.IntentAsset{tokens}, To: []ramp.IntentAsset{items}}, ramp.Burn
		}
		text, err := json.Marshal(intent)
		check(t, err)
		var hash, finished any
		if d.hash != "" {
			hash = d.hash
		}
		if !d.finished.IsZero() {
			finished = d.finished.UnixMilli()
		}
		args = append(args, id.String(), "claim", string(d.state), string(direction), "testnet", "project-1", "session-"+strconv.Itoa(n%50_000), d.user.Hex(),
			ramp.Digest{1}.String(), string(text), hash, "", d.accepted.UnixMilli(), finished)
		if len(args) == 14*perInsert {
			insert()
		}
	}
	insert()
	check(t, tx.Commit())
	if p.dialect == ramp.SQLite {
		run(t, p.db, p.dialect.Schema())
	}
	p.analyze(t)
}

// want returns the findings that are planted: kind and transaction or user.
func (b books) want() (want []string) {
	for n := range b.count {
		if d := b.deal(n); d.kind != "" {
			want = append(want, string(d.kind)+" "+d.user.Hex())
		}
	}
	slices.Sort(want)
	return want
}

func found(b *support.Books) (found []string) {
	for _, f := range b.Findings {
		user := ""
		if len(f.Orders) > 0 {
			user = f.Orders[0].UserAddress
		} else {
			user = f.Events[0].User.Hex()
		}
		found = append(found, string(f.Kind)+" "+user)
	}
	slices.Sort(found)
	return found
}

func TestTheBooksOfAMonth(t *testing.T) {
	if racedetector.On {
		t.Skip("it takes minutes with the race detector, and runs without")
	}
	count := 10_000
	if text := os.Getenv(envBooks); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		check(t, err)
	}
	b := newBooks(count)
	node := httptest.NewServer(b)
	t.Cleanup(node.Close)
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: node.URL})
	check(t, err)
	eachDatabase(t, func(t *testing.T, p *place) {
		b.store(t, p)
		orders, err := support.New(support.Config{Store: newStore(t, p, applyNothing), Chain: chain, Confirmations: 2, Products: []ramp.Product{product()},
			Proof: &ramp.Proof{AnyFailure: true, Decimals: map[common.Address]int{bookToken: 18}}})
		check(t, err)
		peak := peakOfMemory(t)
		begun := time.Now()
		got, err := orders.Reconcile(t.Context(), month.Add(13*time.Hour), month.Add(monthLasts))
		check(t, err)
		if found, want := found(got), b.want(); len(want) != planted || !slices.Equal(found, want) {
			t.Errorf("of %d planted findings, these differ: found %v, want %v", len(want), minus(found, want), minus(want, found))
		}
		most := peak()
		t.Logf("%d orders: %v, %d MB", b.count, time.Since(begun), most>>20)
		if most > 100<<20 {
			t.Errorf("the books took %d MB", most>>20)
		}
	})
}

// peakOfMemory returns what ends its measurement, and returns the largest heap.
func peakOfMemory(t *testing.T) (end func() uint64) {
	t.Helper()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(10 * time.Millisecond):
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapInuse)
			}
		}
	}()
	return func() uint64 { close(stop); return <-peak }
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
