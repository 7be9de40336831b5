package ramptest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

// kept keeps a service in a file.
func kept(t testing.TB) func(*ramptest.Config) {
	file := openState(t, filepath.Join(t.TempDir(), "state"))
	return func(c *ramptest.Config) { c.Standalone.State = file }
}

func openState(t testing.TB, path string) *ramptest.StateFile {
	t.Helper()
	file := must.Get(ramptest.OpenState(path))(t)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// restart closes a service that is kept in a file, and starts another one from there.
func (c *counter) restart(t *testing.T, handler http.Handler, options ...func(*ramptest.Config)) {
	t.Helper()
	c.service.Close()
	require.NotNil(t, c.config.Standalone.State)
	require.NoError(t, c.config.Standalone.State.Err())
	config := ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: handler,
		NoThief: true, Incomplete: true,
		Standalone: ramptest.Standalone{State: c.config.Standalone.State, Pages: pages.New()}}
	for _, o := range options {
		o(&config)
	}
	c.service = ramptest.Start(t, config)
	c.client = clientOf(t, c.service, c.key)
}

func TestAServiceGoesOnWhereAnotherOneWas(t *testing.T) {
	c := newCounter(t, kept(t))
	c.shop.name = "alice"
	done := c.mint(t)
	failing := c.mint(t, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult),
		ramptest.LostAnswer(ramptest.OnResult))
	asked := request()
	asked.Intent.Token, asked.Intent.Materials[0].IsNonFungible = swordToken, true
	swords := must.Get(c.client.Initialize(t.Context(), asked))(t).UUID
	must.Get(c.service.Mint(t.Context(), swords, c.session, ramp.NewAmount(2)))(t)
	c.service.Advance(time.Minute)
	held := c.mint(t, ramptest.ResultAfterNext())
	c.service.Advance(2 * time.Second)
	unused := c.initialize(t)
	pending := c.mint(t, ramptest.TransactionFails())
	type view struct {
		list, page     string
		orders         []shown
		receipt        *ramp.Receipt
		swords, wallet string
		now            time.Time
	}
	look := func() (v view) {
		node := nodeOf(t, c.service)
		_, v.list, _ = strings.Cut(c.page(t, "/"), "All 5 ")
		v.page = regexp.MustCompile(` As reported by the game at [0-9:]+\.`).ReplaceAllString(c.pageOf(t, failing),
			"") // it is not asked again
		_, reported := c.control(t, "GET", "/control/orders", "")
		v.orders, v.now, v.wallet = reported.Orders, c.service.Now().UTC(), c.service.Wallet(c.session).Hex()
		v.receipt = must.Get(node.Receipt(t.Context(), done.TxHash))(t)
		v.swords = tokenBalance(t, node, common.HexToAddress(swordToken), c.service.Wallet(c.session)).String()
		return v
	}
	before := look()
	require.Contains(t, before.list, "Mint 10 tokens 0x…70c3 "+done.UUID.String()[:8]+" −100 item_gold alice")
	require.Contains(t, before.page, "tokens ✓ 0 0 ") // what must move, and what moved
	require.Contains(t, before.page, "tokens outside of this order: +16 1,000 1,016 ")
	require.Equal(t, "1002", before.swords, "swords, and not fractions of them")

	c.restart(t, c.handler)
	assert.Equal(t, before, look())
	same, err := c.service.Mint(t.Context(), pending.UUID, c.session, ramp.NewAmount(10))
	require.NoError(t, err, "the same request is the same order")
	assert.Equal(t, pending.TxHash, same.TxHash)
	_, err = c.service.Mint(t.Context(), unused, c.session, ramp.NewAmount(10))
	require.NoError(t, err, "a UUID holds for its 5 minutes")
	status, like := c.control(t, "POST", "/control/orders", fmt.Sprintf(`{"do":"mint","like":%q}`, swords))
	require.Equal(t, 200, status, like.problem())

	attempts := make(map[uuid.UUID]int)
	for _, d := range c.service.Advance(time.Hour) {
		attempts[d.Order.UUID] = d.Attempt
	}
	assert.Equal(t, map[uuid.UUID]int{failing.UUID: 3, held.UUID: 1, pending.UUID: 1, unused: 1, like.UUID: 1},
		attempts, "one answer was lost before, and one after")
	assert.EqualValues(t, 1000-5*100, c.shop.owns(), "two failed mints gave back, five took")
	assert.Equal(t, "1004", look().swords)
	_, after := c.control(t, "GET", "/control/orders?state=done", "")
	assert.Equal(t, 7, after.Total)
}

func TestAClockThatRunsAsOnTheWallGoesOnMeanwhile(t *testing.T) {
	c := newCounter(t, kept(t), func(c *ramptest.Config) { c.Standalone.Speed = 1 })
	c.service.Advance(time.Hour)
	before, wall := c.service.Now(), time.Now()
	c.restart(t, c.handler, func(c *ramptest.Config) { c.Standalone.Speed = 1 })
	assert.InDelta(t, time.Since(wall).Seconds(), c.service.Now().Sub(before).Seconds(), 0.5)
}

// filed lets play use a service, and returns what its state file then holds.
func filed(t *testing.T, play func(*counter)) (c *counter, state []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	file := openState(t, path)
	c = newCounter(t, func(c *ramptest.Config) { c.Standalone.State = file })
	play(c)
	c.service.Close()
	require.NoError(t, file.Close())
	return c, must.Get(os.ReadFile(path))(t)
}

// from starts another service from what a state file holds, and lets use have it.
func (c *counter) from(t *testing.T, state []byte, use func(*ramptest.Service)) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(path, state, 0o600))
	file, err := ramptest.OpenState(path)
	if err != nil {
		return err
	}
	defer file.Close()
	service, err := ramptest.New(ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator, Handler: c.handler,
		Standalone: ramptest.Standalone{State: file}, Audit: ramptest.AuditOff})
	if err == nil {
		use(service)
		service.Close()
	}
	return err
}

// A service may be killed at any byte that it writes. Whatever the file then holds is a
// service that goes on.
func TestAServiceSurvivesAKillAtAnyTime(t *testing.T) {
	var failing *ramptest.PlacedOrder
	c, state := filed(t, func(c *counter) {
		failing = c.mint(t, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult))
		pending := c.mint(t, ramptest.StaysPending())
		c.service.Advance(1300 * time.Millisecond)
		require.NoError(t, c.service.Deliver(t.Context(), pending, ramptest.Succeeded), "by a block between two others")
	})
	assert.Contains(t, string(state), "token-1", "the next service must call for the player too")
	due := regexp.MustCompile(`uuid/` + failing.UUID.String() + `.*"State":"delivering".*\n`)
	kills := 0
	for at, b := range state {
		if b != '\n' {
			continue
		}
		kills++
		killed := state[:min(at+len("\nuuid"), len(state))] // in the next line
		assert.NoError(t, c.from(t, killed, func(s *ramptest.Service) {
			if sent := s.Advance(24 * time.Hour); due.Match(killed) {
				assert.True(t,
					slices.ContainsFunc(sent, func(d ramptest.Delivery) bool { return d.Order.UUID == failing.UUID }))
			}
		}), string(killed))
	}
	assert.Greater(t, kills, 20)
}

func TestWhatHappenedIsThereAfterARestart(t *testing.T) {
	c := newCounter(t, kept(t))
	var minted []*ramptest.PlacedOrder
	for range 300 { // more events than keep their bodies in memory
		minted = append(minted, c.mint(t, ramptest.TransactionFails()))
		c.service.Advance(time.Minute)
	}
	before, timeline := c.service.Events(), c.service.Timeline()
	require.Greater(t, len(before), 1000)
	assert.NotEmpty(t, before[0].Request.Body, "an old body comes from the file")
	history := func() string {
		said := text(t, c.browse(t, "GET", "/orders/"+minted[0].UUID.String(), nil))
		_, said, _ = strings.Cut(said, "What happened ")
		said, _, _ = strings.Cut(said, "All that ")
		return said
	}
	shown := history()
	require.Contains(t, shown, "gave back 100 item_gold")
	c.restart(t, c.handler)
	after := c.service.Events()
	routine := func(e control.Event) bool { return e.Routine() }
	want := must.Get(json.Marshal(slices.DeleteFunc(before, routine)))(t)
	got := must.Get(json.Marshal(slices.DeleteFunc(after, routine)))(t)
	assert.JSONEq(t, string(want), string(got))
	assert.Equal(t, shown, history())
	assert.True(t, strings.HasPrefix(c.service.Timeline(), strings.SplitAfter(timeline, "\n")[0]))
}

func TestAStateFileHasOneService(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	file := openState(t, path)
	require.NoError(t, file.SetNote("a key", "a value\n"))
	_, err := ramptest.OpenState(path)
	require.ErrorContains(t, err, "another program uses it")
	require.NoError(t, file.Close())
	note := must.Get(openState(t, path).Note("a key"))(t)
	assert.Equal(t, "a value\n", note)
}

func TestAStateThatIsNoneIsRejected(t *testing.T) {
	c, state := filed(t, func(c *counter) { c.mint(t) })
	for name, broken := range map[string][]byte{
		"not a journal": []byte("secret"),
		"a version":     bytes.Replace(state, []byte(`note/version "6"`), []byte(`note/version "1"`), 1),
		"not JSON":      bytes.ReplaceAll(state, []byte(`"Terms"`), []byte(`{secret`)),
		"another net":   bytes.ReplaceAll(state, []byte(`"Network":"testnet"`), []byte(`"Network":"moon"`)),
		"no intent":     bytes.ReplaceAll(state, []byte(`"from":[`), []byte(`"from_":[`)),
		"no blocks":     bytes.ReplaceAll(state, []byte("\ntx/testnet/"), []byte("\ntx/mainnet/")),
	} {
		err := c.from(t, broken, func(*ramptest.Service) {})
		require.ErrorContains(t, err, "ramptest: state: ", name)
		assert.NotContains(t, err.Error(), "secret", name)
		assert.NotContains(t, err.Error(), "token-1", name)
	}
}

// An effect that comes during a call about another order is not forgotten by a restart.
func TestALateEffectIsKept(t *testing.T) {
	c := newCounter(t, kept(t), reporting)
	c.shop.answers = []error{errors.New("the database is unreachable")}
	order := c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	c.mint(t)
	c.shop.done[order.UUID], c.shop.also = true, map[string]int64{ramp.PathResult: 100}
	c.service.Advance(2 * time.Second)
	c.shop.also = nil
	require.Equal(t, int64(900), c.shop.owns())
	c.restart(t, c.handler, reporting)
	c.service.Advance(time.Hour)
	assert.Empty(t, c.service.Imbalances())
	assert.Contains(t, c.pageOf(t, order), "The transaction failed, and the game gave everything back.")
}

// testdata/state-6 was written by commit 5149a37: a mint that is done, one that was not given
// back, one whose answer was lost, a burn that stays pending, a mint whose result is held, and
// a UUID without an order. If the lines of the file change, raise stateVersion.
func TestAStateFileOfAnEarlierReleaseIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(path, must.Get(os.ReadFile("testdata/state-6"))(t), 0o600))
	file := openState(t, path)
	c := newCounter(t, reporting, func(c *ramptest.Config) { c.Standalone.State = file })
	c.shop.name, c.shop.gold = "alice", 700

	type order struct {
		do, id, tx, delivery string
		block                uint64
		attempts             int
		over                 bool
		moved                map[string]string
	}
	orders := func() (list []order) {
		_, shown := c.control(t, "GET", "/control/orders", "")
		for _, o := range shown.Orders {
			assert.Equal(t, "alice", o.PlayerID)
			list = append(list, order{
				o.Do, o.UUID.String()[:8], o.TxStatus, o.Delivery, o.Block, o.Attempts, o.Over, o.Moved,
			})
		}
		return list
	}
	took := map[string]string{"item_gold": "-100"}
	assert.Equal(t, []order{
		{"mint", "fe92a037", "succeeded", "delivering", 181, 0, true, took},
		{"burn", "5b232c62", "submitted", "pending", 0, 0, true, map[string]string{}},
		{"mint", "365bb0bc", "failed", "delivering", 121, 1, false, nil},
		{"mint", "3327a7e7", "failed", "confirmed", 61, 1, true, took},
		{"mint", "3f0182cb", "succeeded", "confirmed", 1, 1, true, took},
	}, orders())
	lost := uuid.MustParse("3327a7e7-2d83-499c-9576-366f7c50def2")
	assert.Equal(t, []*ramptest.Imbalance{{
		Orders: []uuid.UUID{lost},
		Problem: "mint 3327a7e7 failed on chain: the game must give back 100 item_gold: " +
			"800 before the call, 800 after it, 900 expected",
		Assets: []ramptest.AssetBalance{{ID: "item_gold",
			Before: ramp.NewAmount(800), After: ramp.NewAmount(800), Expected: ramp.NewAmount(900)}},
	}}, c.service.Imbalances())
	assert.Equal(t, time.Date(2026, 11, 26, 5, 3, 2, 0, time.UTC), c.service.Now().UTC())
	first := c.service.Events()[0]
	assert.Equal(t, control.KindInitialize, first.Kind)
	assert.Contains(t, first.Request.Body, `"project_id":"project-1"`)
	balance := tokenBalance(t, nodeOf(t, c.service), common.HexToAddress(token), c.service.Wallet(c.session))
	assert.Equal(t, "1016", new(big.Int).Div(balance, big.NewInt(1e18)).String())

	unused := uuid.MustParse("d8d8d6b1-a1ad-4071-9e7a-45a801976f7d")
	must.Get(c.service.Mint(t.Context(), unused, c.session, ramp.NewAmount(10)))(t)
	sent := map[string]int{}
	for _, d := range c.service.Advance(time.Hour) {
		require.NoError(t, d.Err)
		sent[d.Order.UUID.String()[:8]] = d.Attempt
	}
	assert.Equal(t, map[string]int{"d8d8d6b1": 1, "fe92a037": 1, "365bb0bc": 2}, sent)
	again := orders()[3]
	again.moved = nil // the game has a new ledger
	assert.Equal(t, order{"mint", "365bb0bc", "failed", "confirmed", 121, 2, true, nil}, again)
	assert.Len(t, c.service.Imbalances(), 1, "what was found before")
}
