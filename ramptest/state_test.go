package ramptest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

// kept keeps a service in a file.
func kept(t testing.TB) func(*ramptest.Config) {
	file := openState(t, filepath.Join(t.TempDir(), "state"))
	return func(c *ramptest.Config) { c.Desk.State = file }
}

func openState(t testing.TB, path string) *ramptest.StateFile {
	t.Helper()
	file := ramp.Must(ramptest.OpenState(path))
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// restart closes a service that is kept in a file, and starts another one from there.
func (c *counter) restart(t *testing.T, handler http.Handler, options ...func(*ramptest.Config)) {
	t.Helper()
	c.service.Close()
	require.NotNil(t, c.config.Desk.State)
	require.NoError(t, c.config.Desk.State.Err())
	config := ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: handler, Desk: ramptest.Desk{State: c.config.Desk.State, Pages: pages.New}}
	for _, o := range options {
		o(&config)
	}
	c.service = ramptest.Start(t, config)
	c.client = clientOf(t, c.service, c.key)
}

func TestAServiceGoesOnWhereAnotherOneWas(t *testing.T) {
	c := newCounter(t, kept(t))
	done := c.mint(t)
	failing := c.mint(t, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult), ramptest.LostAnswer(ramptest.OnResult))
	c.service.Advance(time.Minute)
	held := c.mint(t, ramptest.ResultAfterNext())
	c.service.Advance(2 * time.Second)
	unused := c.initialize(t)
	pending := c.mint(t, ramptest.TransactionFails())
	_, before := c.control(t, "GET", "/control/orders", "")
	shows := func() string { return text(t, c.browse(t, "GET", "/orders/"+failing.UUID.String(), nil)) }
	const tokens = "tokens ✓ nothing moved outside of this order: +16 1,000 1,016 1,016" // before, now, expected
	require.Contains(t, shows(), tokens)
	now, wallet := c.service.Now(), c.service.Wallet(c.session)
	chain := nodeOf(t, c.service)
	receipt := ramp.Must(chain.Receipt(t.Context(), done.TxHash))

	c.restart(t, c.handler)
	assert.True(t, now.Equal(c.service.Now()), "a clock that stands still has not moved")
	assert.Equal(t, wallet, c.service.Wallet(c.session))
	_, after := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, before.Orders, after.Orders)
	chain = nodeOf(t, c.service)
	again := ramp.Must(chain.Receipt(t.Context(), done.TxHash))
	assert.Equal(t, receipt, again)

	assert.Contains(t, shows(), tokens)
	assert.Equal(t, 200, c.browse(t, "GET", "/", nil).StatusCode)

	same, err := c.service.Mint(t.Context(), pending.UUID, c.session, ramp.NewAmount(10))
	require.NoError(t, err, "the same request is the same order")
	assert.Equal(t, pending.TxHash, same.TxHash)
	_, err = c.service.Mint(t.Context(), unused, c.session, ramp.NewAmount(10))
	require.NoError(t, err, "a UUID holds for its 5 minutes")

	attempts := make(map[string]int)
	for _, d := range c.service.Advance(time.Hour) {
		attempts[d.Order.UUID.String()] = d.Attempt
	}
	assert.Equal(t, 3, attempts[failing.UUID.String()], "one answer was lost before, and one after")
	assert.Equal(t, 1, attempts[held.UUID.String()])
	assert.Equal(t, 1, attempts[pending.UUID.String()])
	assert.Zero(t, attempts[done.UUID.String()])
	assert.EqualValues(t, 1000-3*100, c.shop.owns(), "two failed mints gave back, three took")
	_, after = c.control(t, "GET", "/control/orders?state=done", "")
	assert.Equal(t, 5, after.Total)
}

func TestAClockThatRunsAsOnTheWallGoesOnMeanwhile(t *testing.T) {
	c := newCounter(t, kept(t), func(c *ramptest.Config) { c.Desk.Speed = 1 })
	c.service.Advance(time.Hour)
	before, wall := c.service.Now(), time.Now()
	c.restart(t, c.handler, func(c *ramptest.Config) { c.Desk.Speed = 1 })
	assert.InDelta(t, time.Since(wall).Seconds(), c.service.Now().Sub(before).Seconds(), 0.5)
}

// A service may be killed at any byte that it writes. Whatever the file then holds is a
// service that goes on.
func TestAServiceSurvivesAKillAtAnyTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	file := openState(t, path)
	c := newCounter(t, func(c *ramptest.Config) { c.Desk.State = file })
	order := c.mint(t, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult))
	c.service.Advance(time.Minute)
	c.service.Close()
	require.NoError(t, file.Close())
	whole := ramp.Must(os.ReadFile(path))
	assert.Contains(t, string(whole), "token-1", "the next service must call for the player too")
	begins := bytes.Index(whole, []byte("\nspan/")) // before it, no service has started
	require.Positive(t, begins)
	cuts := 0
	for cut := len(whole); cut > begins; cut -= 797 { // a prime number
		cuts++
		killed := filepath.Join(t.TempDir(), "killed")
		require.NoError(t, os.WriteFile(killed, whole[:cut], 0o600))
		file := openState(t, killed)
		service, err := ramptest.New(ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: c.handler, Desk: ramptest.Desk{State: file}, Books: ramptest.BooksOff})
		require.NoError(t, err, "cut at %d of %d", cut, len(whole))
		sent := service.Advance(24 * time.Hour)
		if lines := whole[:bytes.LastIndexByte(whole[:cut], '\n')]; bytes.Contains(lines, []byte(`"State":"delivering"`)) {
			require.NotEmpty(t, sent)
			assert.Equal(t, order.UUID, sent[0].Order.UUID)
		}
		service.Close()
		require.NoError(t, file.Close())
	}
	assert.Greater(t, cuts, 10)
}

func TestWhatHappenedIsThereAfterARestart(t *testing.T) {
	c := newCounter(t, kept(t))
	var minted []*ramptest.Order
	for range 300 { // more events than keep their bodies in memory
		minted = append(minted, c.mint(t, ramptest.TransactionFails()))
		c.service.Advance(time.Minute)
	}
	before, timeline := c.service.Events(), c.service.Timeline()
	require.Greater(t, len(before), 1000)
	assert.NotEmpty(t, before[0].Request.Body, "an old body comes from the file")
	history := func() string {
		said := text(t, c.browse(t, "GET", "/orders/"+minted[0].UUID.String(), nil))
		return said[strings.LastIndex(said, "What happened "):]
	}
	shown := history()
	require.Contains(t, shown, "gave back 100 item_gold")
	c.restart(t, c.handler)
	after := c.service.Events()
	routine := func(e ramptest.Event) bool { return e.Routine() }
	want := ramp.Must(json.Marshal(slices.DeleteFunc(before, routine)))
	got := ramp.Must(json.Marshal(slices.DeleteFunc(after, routine)))
	assert.JSONEq(t, string(want), string(got))
	assert.Equal(t, shown, history())
	assert.True(t, strings.HasPrefix(c.service.Timeline(), strings.SplitAfter(timeline, "\n")[0]))
}

func TestAStateFileHasOneService(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	file := openState(t, path)
	require.NoError(t, file.SetNote("a key", "a value\n"))
	_, err := ramptest.OpenState(path)
	require.ErrorContains(t, err, "another program uses the file")
	require.NoError(t, file.Close())
	note := ramp.Must(openState(t, path).Note("a key"))
	assert.Equal(t, "a value\n", note)
}

func TestAStateThatIsNoneIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	file := openState(t, path)
	c := newCounter(t, func(c *ramptest.Config) { c.Desk.State = file })
	c.mint(t)
	c.service.Close()
	require.NoError(t, file.Close())
	state := ramp.Must(os.ReadFile(path))
	for name, broken := range map[string][]byte{
		"not a journal": []byte("secret"),
		"a version":     bytes.Replace(state, []byte(`note/version "6"`), []byte(`note/version "1"`), 1),
		"not JSON":      bytes.ReplaceAll(state, []byte(`"Terms"`), []byte(`{secret`)),
		"another net":   bytes.ReplaceAll(state, []byte(`"Network":"testnet"`), []byte(`"Network":"moon"`)),
		"no intent":     bytes.ReplaceAll(state, []byte(`"from":[`), []byte(`"from_":[`)),
		"no blocks":     bytes.ReplaceAll(state, []byte("\ntx/testnet/"), []byte("\ntx/mainnet/")),
	} {
		require.NoError(t, os.WriteFile(path, broken, 0o600))
		file, err := ramptest.OpenState(path)
		if err == nil {
			_, err = ramptest.New(ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: c.handler, Desk: ramptest.Desk{State: file}})
			require.NoError(t, file.Close())
		}
		require.ErrorContains(t, err, "ramptest: state: ", name)
		assert.NotContains(t, err.Error(), "secret", name)
		assert.NotContains(t, err.Error(), "token-1", name)
	}
}

// A service that is killed while it writes leaves the beginning of what it wrote.
func TestAStateThatWasCutOffIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	file := openState(t, path)
	c := newCounter(t, func(c *ramptest.Config) { c.Desk.State = file })
	pending := c.mint(t, ramptest.StaysPending())
	c.service.Advance(1300 * time.Millisecond)
	require.NoError(t, c.service.Deliver(t.Context(), pending, ramptest.Succeeded), "by a block between two others")
	c.service.Close()
	require.NoError(t, file.Close())
	state := ramp.Must(os.ReadFile(path))
	for at := range state {
		if state[at] != '\n' {
			continue
		}
		require.NoError(t, os.WriteFile(path, state[:at+1], 0o600))
		file := ramp.Must(ramptest.OpenState(path))
		service, err := ramptest.New(ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: c.handler, Desk: ramptest.Desk{State: file}})
		require.NoError(t, err, string(state[:at]))
		service.Close()
		require.NoError(t, file.Close())
	}
}

// named is a shop that knows its player by name.
type named struct {
	*shop
	name string
}

func (n *named) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	player, err := n.shop.Assets(ctx, s)
	player.Name, player.PlayerID = n.name, "player-1"
	return player, err
}

// After a restart, lists and pages show of an order what they showed before, its player's
// name, too, although the game was not asked since.
func TestAnEndedOrderIsShownAfterARestart(t *testing.T) {
	game := &named{newShop(), "alice"}
	c := newCounterOf(t, game, kept(t))
	c.shop = game.shop
	minted := c.mint(t)
	c.service.Advance(time.Second)
	c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	list, page := c.page(t, "/"), c.pageOf(t, minted)
	_, reported := c.control(t, "GET", "/control/orders", "")
	require.Len(t, reported.Orders, 2)
	require.Equal(t, "player-1", reported.Orders[0].PlayerID)
	orders := list[strings.Index(list, "All 2"):]
	require.Contains(t, orders, "Mint 10 tokens "+minted.UUID.String()[:8]+" −100 item_gold alice")

	c.restart(t, c.handler)
	assert.Contains(t, c.page(t, "/"), orders)
	assert.Contains(t, c.page(t, "/?q=alice+received"), "All 1 ")
	before, _, _ := strings.Cut(page, " Now: as reported by the game at") // the game was not asked since
	assert.True(t, strings.HasPrefix(c.pageOf(t, minted), before))
	_, again := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, reported.Orders, again.Orders)
}

// What happens after a restart changes the verdict on an order that had ended before.
func TestTheVerdictOnAnEndedOrderIsNotStale(t *testing.T) {
	game := &named{newShop(), "alice"}
	c := newCounterOf(t, game, kept(t), reporting)
	c.shop = game.shop
	order := c.mint(t)
	other := c.mint(t)
	c.service.Advance(time.Minute)
	done := func(name string) string {
		return "−100 item_gold " + name
	}
	require.Equal(t, 2, strings.Count(c.page(t, "/"), done("alice")))

	c.restart(t, c.handler, reporting)
	game.name = "bob"
	ramp.Must(c.service.Assets(t.Context(), c.session))
	assert.Equal(t, 2, strings.Count(c.page(t, "/"), done("bob")), "the player has another name")
	assert.Contains(t, c.page(t, "/?q=bob+received"), "All 2 ")

	c.restart(t, c.handler, reporting)
	require.NotContains(t, c.page(t, "/"), "Disputed.")
	status, _ := c.control(t, "POST", "/control/orders/"+order.UUID.String()+"/send", `{"outcome":"failed"}`)
	require.Equal(t, 200, status)
	for range 2 {
		list := c.page(t, "/")
		assert.Contains(t, list, "Disputed. The game confirmed two outcomes; the first of them stands: succeeded.")
		assert.Equal(t, 2, strings.Count(list, "−100 item_gold bob"))
		assert.Contains(t, list, "Needs attention 1 Waiting 0 Done 1", "the other order")
		c.restart(t, c.handler, reporting)
	}

	// A game that takes the assets of an ended order again.
	c.restart(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ramp.PathResult {
			c.shop.mu.Lock()
			c.shop.gold -= 100
			c.shop.mu.Unlock()
		}
		c.handler.ServeHTTP(w, r)
	}), reporting, func(c *ramptest.Config) { c.Settle = -1 })
	status, _ = c.control(t, "POST", "/control/orders/"+other.UUID.String()[:8]+"/send", `{}`)
	require.Equal(t, 200, status)
	for range 2 {
		assert.Contains(t, c.page(t, "/?show=attention"), "The game took 100 item_gold too much.")
		c.restart(t, c.handler, reporting)
	}
}

// An effect that comes during a call about another order is not forgotten by a restart.
func TestALateEffectIsKept(t *testing.T) {
	var failed *ramptest.Order
	c := newCounter(t, kept(t), reporting)
	game := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ramp.PathResult && failed != nil {
			c.shop.mu.Lock()
			if !c.shop.done[failed.UUID] {
				c.shop.done[failed.UUID] = true
				c.shop.gold += 100
			}
			c.shop.mu.Unlock()
		}
		c.handler.ServeHTTP(w, r)
	})
	c.restart(t, game, reporting)
	c.shop.answers = []error{errors.New("the database is unreachable")}
	order := c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	c.mint(t)
	failed = order
	c.service.Advance(2 * time.Second)
	require.Equal(t, int64(900), c.shop.owns())
	c.restart(t, game, reporting)
	c.service.Advance(time.Hour)
	assert.Empty(t, c.service.Imbalances())
	assert.Contains(t, c.pageOf(t, order), "The transaction failed. The game gave back 100 item_gold.")
}

// The terms of an ended order are there after a restart: for the same order again, for
// another like it, and for its contract.
func TestTheTermsOfAnEndedOrderAreKept(t *testing.T) {
	c := newCounter(t, kept(t))
	asked := request()
	asked.Intent.Token = swordToken
	asked.Intent.Materials[0].IsNonFungible = true
	started := ramp.Must(c.client.Initialize(t.Context(), asked))
	order := ramp.Must(c.service.Mint(t.Context(), started.UUID, c.session, ramp.NewAmount(2)))
	c.service.Advance(2 * time.Second)
	c.initialize(t) // the newest UUID
	holds := func() int64 {
		node := nodeOf(t, c.service)
		n := ramp.Must(node.TokenBalance(t.Context(), common.HexToAddress(swordToken), c.service.Wallet(c.session), ramp.Latest))
		return n.Int64()
	}
	require.Equal(t, int64(1002), holds(), "swords, and not fractions of them")

	c.restart(t, c.handler)
	assert.Equal(t, int64(1002), holds())
	same, err := c.service.Mint(t.Context(), order.UUID, c.session, ramp.NewAmount(2))
	require.NoError(t, err, "the same request is the same order")
	assert.Equal(t, order.TxHash, same.TxHash)

	c.restart(t, c.handler)
	c.shop.gold = 1000
	status, _ := c.control(t, "POST", "/control/orders", fmt.Sprintf(`{"do":"mint","like":%q}`, order.UUID))
	require.Equal(t, 200, status)
	c.service.Advance(2 * time.Second)
	assert.Greater(t, holds(), int64(1002))
}

func TestEndedOrdersAreForgottenAfterARestart(t *testing.T) {
	three := func(c *ramptest.Config) { c.Desk.KeepOrders = 3 }
	c := newCounter(t, kept(t), three)
	for range 2 {
		for range 3 {
			c.shop.gold = 1000
			c.mint(t)
			c.service.Advance(time.Minute)
		}
		c.restart(t, c.handler, three)
	}
	c.mint(t)
	c.service.Advance(time.Minute)
	c.initialize(t) // forgets
	_, before := c.control(t, "GET", "/control/orders", "")
	assert.LessOrEqual(t, before.Total, 4)
	c.restart(t, c.handler, three)
	_, after := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, before.Orders, after.Orders)
}

// BenchmarkTenThousandOrders measures a service that keeps 10,000 orders in a file: its
// memory, how long it takes to start from the file, and its pages.
func BenchmarkTenThousandOrders(b *testing.B) {
	const orders = 10_000
	path := filepath.Join(b.TempDir(), "state")
	empty := heap()
	file := openState(b, path)
	keeping := func(c *ramptest.Config) { c.Desk.State, c.Desk.KeepOrders = file, orders }
	c := newCounter(b, keeping)
	c.shop.gold = 100 * orders
	var order *ramptest.Order
	for range orders {
		order = c.mint(b)
		c.service.Advance(2 * time.Second)
	}
	clear(c.shop.orders) // only what the service keeps counts
	c.shop.results = nil
	minted := heap() - empty
	open := func(b *testing.B, when string) {
		for name, path := range map[string]string{
			"front": "/", "search": "/?q=" + order.UUID.String(), "attention": "/?show=attention", "order": "/orders/" + order.UUID.String(),
			"calls": "/calls", "calls of a session": "/calls?session=session-1&q=success", "API": "/control/orders",
			"catalog": "/catalog?projectId=p&sessionId=session-1&accessToken=token-1&network=testnet",
		} {
			b.Run(when+"page="+name, func(b *testing.B) {
				for b.Loop() {
					require.Equal(b, 200, c.browse(b, http.MethodGet, path, nil).StatusCode)
				}
			})
			b.Run(when+"page="+name+" after an event", func(b *testing.B) {
				for b.Loop() {
					ramp.Must(c.service.Assets(b.Context(), c.session))
					require.Equal(b, 200, c.browse(b, http.MethodGet, path, nil).StatusCode)
				}
			})
		}
	}
	open(b, "")
	restart := func() {
		file = ramp.Must(ramptest.OpenState(path))
		config := c.config
		keeping(&config)
		c.service = ramp.Must(ramptest.New(config))
	}
	end := func() {
		c.service.Close()
		require.NoError(b, file.Close())
		c.service, file = nil, nil
		runtime.GC()
	}
	end()
	b.Run("restart", func(b *testing.B) {
		for b.Loop() {
			restart()
			b.StopTimer()
			require.GreaterOrEqual(b, len(c.service.Events()), orders)
			end()
			b.StartTimer()
		}
	})
	for name, path := range map[string]string{"front": "/", "search": "/?q=" + order.UUID.String()} {
		b.Run("first page after a restart="+name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				restart()
				b.StartTimer()
				require.Equal(b, 200, c.browse(b, http.MethodGet, path, nil).StatusCode)
				b.StopTimer()
				end()
				b.StartTimer()
			}
		})
	}
	ended := heap()
	restart()
	b.Cleanup(end)
	restarted := heap() - ended
	b.Run("memory", func(b *testing.B) {
		b.ReportMetric(minted, "MiB")
		b.ReportMetric(restarted, "MiB-after-restart")
		b.ReportMetric(0, "ns/op")
	})
	open(b, "after a restart, ")
}

// heap returns how much memory is in use, in MiB.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
