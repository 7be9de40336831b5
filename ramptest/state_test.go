package ramptest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
