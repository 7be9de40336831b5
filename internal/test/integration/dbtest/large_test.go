package dbtest

import (
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// peak returns how much the live heap grows while something asks the node, in bytes. It collects garbage while the
// node answers, and nothing else runs: otherwise, what is allocated meanwhile would count.
func peak(chain *rig.Node, do func()) int64 {
	live := func() int64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	before, most := live(), int64(0)
	chain.Asked = func(*rig.Node) {
		if chain.Requests%10 == 0 {
			most = max(most, live())
		}
	}
	defer func() { chain.Asked = nil }()
	do()
	return max(most, live()) - before
}

var bookOrders = flag.Int("book-orders", 20_000, "`number` of orders of TestBooksNeedLittleMemoryForTheirPeriod")

// Orders and events leave memory once they are matched, but for some bytes of each order, as Reconcile says. The node
// gets as many requests for each day.
func TestBooksNeedLittleMemoryForTheirPeriod(t *testing.T) {
	p := placeOn(t, rampsql.SQLite)
	chain := fillMonth(t, p, *bookOrders)
	reconciler := booksOf(t, p, chain)
	measure := func(days int) (memory int64, requests int) {
		t.Helper()
		chain.Calls, chain.Requests = 0, 0
		begun := time.Now()
		var books *rampbooks.Reconciliation
		memory = peak(chain, func() {
			var err error
			books, err = reconciler.Reconcile(t.Context(), day0, day0.AddDate(0, 0, days))
			if err != nil {
				t.Error(err)
			}
		})
		if books == nil {
			t.FailNow()
		}
		ended := 0
		for _, of := range books.Totals {
			ended += of.Succeeded
		}
		if least := *bookOrders / 31 * days; ended < least {
			t.Errorf("the books have %d orders, and not %d", ended, least)
		}
		t.Logf("%d days with %d orders: %.1f MiB, %d calls to the node in %d requests, %v", days, ended,
			float64(memory)/(1<<20), chain.Calls, chain.Requests, time.Since(begun).Round(time.Millisecond))
		return memory, chain.Requests
	}
	few, requests := measure(6)
	many, all := measure(30)
	const slack, ofAnOrder = 1 << 20, 64
	if more := int64(*bookOrders) * 24 / 31 * ofAnOrder; many > few+more+slack {
		t.Errorf("a month needs %d bytes, and six days of it %d", many, few)
	}
	if most := requests * 5 * 5 / 4; all > most {
		t.Errorf("a month needs %d requests, and six days of it %d", all, requests)
	}
}

// booksOf returns the reconciler of the orders and the chain of fillMonth.
func booksOf(t *testing.T, p *place, chain *rig.Node) *rampbooks.Reconciler {
	t.Helper()
	items := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100)}}
	gold := ramp.Product{Name: "gold", Token: rig.Token.Hex(), MintFeeBps: 200, Materials: items, Outputs: items}
	return must.Get(rampbooks.New(rampbooks.Config{
		Store: newStore(t, p, applyNothing), Products: rampbooks.Always(gold),
		Logger: slog.New(slog.DiscardHandler),
		Proof: must.Get(rampproof.New(rampproof.Config{
			Chain: chain.RPC(t), Network: ramp.Mainnet, AnyFailure: true}))(t),
	}))(t)
}

var soak = flag.Duration("soak", 4*time.Second, "`how long` TestNothingGrows runs")

// A handler, its store, a Client, an RPC, a proof and the books live on, while one service after the other trades
// with them and ends. Neither goroutines nor the heap grow.
func TestNothingGrows(t *testing.T) {
	p := placeOn(t, rampsql.SQLite)
	s := studio{db: p.db, dialect: p.dialect}
	store := must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: s.Apply,
		Logger: slog.New(slog.DiscardHandler)}))(t)
	var current atomic.Pointer[ramptest.Service]
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(must.Get(url.Parse(current.Load().URL()))(t))
	}})
	defer proxy.Close()
	const chainID = 7
	chain := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: proxy.URL + "/rpc/testnet", ChainID: chainID}))(t)
	proof := must.Get(rampproof.New(rampproof.Config{Chain: chain, Network: ramp.Testnet, AnyFailure: true,
		MintFeeBps: map[common.Address]int{common.HexToAddress(token): 100}}))(t)
	items := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(10), IconURL: "https://example.com/gold.png"}}
	product := ramp.Product{Name: "gold", Token: token, MintFeeBps: 100, Materials: items, Outputs: items}
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project", Network: ramp.Testnet,
		Products: []ramp.Product{product}}))(t)
	key, signer := must.Get(ramp.TextKey(hmacText))(t), must.Get(ramp.NewKeySigner(validatorKey))(t)
	var failed strings.Builder
	failures := slog.New(slog.NewTextHandler(&failed, &slog.HandlerOptions{Level: slog.LevelError}))
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: terms, Players: s, Store: store, Key: key,
		Signer: signer, Confirm: proof, Wallet: ramp.AnyWallet, Logger: failures,
		Now: func() time.Time { return current.Load().Now() }}))(t)
	game := httptest.NewServer(handler)
	defer game.Close()
	defer func() {
		if t.Failed() {
			t.Log(failed.String())
		}
	}()
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: proxy.URL, Key: key, Terms: terms,
		Logger: slog.New(slog.DiscardHandler)}))(t)
	books := must.Get(rampbooks.New(rampbooks.Config{Store: store, Proof: proof, Products: rampbooks.Always(product),
		Logger: slog.New(slog.DiscardHandler)}))(t)
	alice := ramp.Session{ID: "alice", Token: ramp.NewAccessToken("token of alice")}
	run(t, p.db, "INSERT INTO holdings VALUES ('alice', 'gold', 1000000)")

	trades := 0
	round := func() {
		t.Helper()
		epoch := time.Now().Add(-24 * time.Hour)
		service := must.Get(ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Game: game.URL,
			Networks: map[ramp.Network]uint64{ramp.Testnet: chainID}, Epoch: epoch}))(t)
		defer service.Close()
		current.Store(service)
		for n, faults := range [][]ramptest.Fault{nil, nil, {ramptest.ValidateTwice(), ramptest.ResultTwice()},
			{ramptest.TransactionFails(), ramptest.TransactionType(7)}, nil, {ramptest.ResultTwice()}} {
			trade := service.Mint
			if n >= 4 {
				trade = service.Burn
			}
			started := must.Get(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
			must.Get(trade(t.Context(), started.UUID, alice, ramp.NewAmount(1), faults...))(t)
			service.Advance(time.Minute)
			must.Get(chain.BlockNumber(t.Context()))(t)
			trades++
		}
		service.Advance(time.Hour)
		check(t, service.Check())
		found := must.Get(books.Reconcile(t.Context(), epoch, service.Now().Add(-30*time.Minute)))(t)
		equal(t, "findings", len(found.Findings), 0)
		equal(t, "orders whose event was seen", found.Witnesses, 5)
		run(t, p.db, "DELETE FROM ramp_orders; DELETE FROM moves; DELETE FROM steps")
	}
	heaps, routines := make([]int, 0, 1<<14), make([]int, 0, 1<<14) // so that they do not grow
	measure := func() {
		runtime.GC()
		runtime.GC() // what finalizers kept
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heaps, routines = append(heaps, int(m.HeapAlloc)), append(routines, runtime.NumGoroutine())
	}
	for begun := time.Now(); len(heaps) < 12 || time.Since(begun) < *soak; {
		round()
		measure()
		if t.Failed() {
			return
		}
	}
	// The first quarter fills caches. The least of a quarter has nothing that was about to end.
	quarter := len(heaps) / 4
	least := func(of []int, n int) int { return slices.Min(of[n*quarter : (n+1)*quarter]) }
	say := fmt.Sprintf("%d trades in %d rounds: heap %d KiB, then %d KiB; goroutines %d, then %d", trades, len(heaps),
		least(heaps, 1)>>10, least(heaps, 3)>>10, least(routines, 1), least(routines, 3))
	t.Log(say)
	if least(heaps, 3) > least(heaps, 1)+512<<10 || least(routines, 3) > least(routines, 1) {
		t.Error(say)
	}
}
