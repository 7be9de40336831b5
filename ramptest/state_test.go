package ramptest_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// restart closes a service and starts another one from its saved state.
func (c *counter) restart(t *testing.T, handler http.Handler, options ...func(*ramptest.Config)) {
	t.Helper()
	c.service.Close()
	state, err := c.service.Save()
	require.NoError(t, err)
	config := ramptest.Config{Key: c.key, Validator: c.validator, Handler: handler, State: state}
	for _, o := range options {
		o(&config)
	}
	c.service = ramptest.Start(t, config)
	c.client, err = ramp.NewClient(ramp.ClientConfig{URL: c.service.URL(), Key: c.key, HTTPClient: c.service.Client(), Retries: -1})
	require.NoError(t, err)
}

func TestAServiceGoesOnWhereAnotherOneWas(t *testing.T) {
	c := newCounter(t)
	done := c.mint(t)
	failing := c.mint(t, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult), ramptest.LostAnswer(ramptest.OnResult))
	c.service.Advance(time.Minute)
	held := c.mint(t, ramptest.ResultAfterNext())
	c.service.Advance(2 * time.Second)
	unused := c.initialize(t)
	pending := c.mint(t, ramptest.TransactionFails())
	_, before := c.control(t, "GET", "/control/orders", "")
	shows := func() string { return text(t, c.browse(t, "GET", "/orders/"+failing.UUID.String(), nil)) }
	const tokens = "tokens ✓ nothing moved outside of this order: +16 1000 1016 1016" // before, now, expected
	require.Contains(t, shows(), tokens)
	now, wallet := c.service.Now(), c.service.Wallet(c.session)
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: c.service.RPCURL(ramp.Testnet), HTTPClient: c.service.Client()})
	require.NoError(t, err)
	receipt, err := chain.Receipt(t.Context(), done.TxHash)
	require.NoError(t, err)

	c.restart(t, c.handler)
	assert.True(t, now.Equal(c.service.Now()), "a clock that stands still has not moved")
	assert.Equal(t, wallet, c.service.Wallet(c.session))
	_, after := c.control(t, "GET", "/control/orders", "")
	assert.Equal(t, before.Orders, after.Orders)
	chain, err = ramp.NewRPC(ramp.RPCConfig{URL: c.service.RPCURL(ramp.Testnet), HTTPClient: c.service.Client()})
	require.NoError(t, err)
	again, err := chain.Receipt(t.Context(), done.TxHash)
	require.NoError(t, err)
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

func TestTheBooksGoOnWithTheService(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t, ramptest.TransactionFails())
	deaf := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ramp.PathResult {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"success":true,"errorCode":null,"data":null}`))
			return
		}
		c.handler.ServeHTTP(w, r)
	})
	c.restart(t, deaf, func(c *ramptest.Config) { c.Books, c.Settle = ramptest.BooksReport, -1 })
	c.service.Advance(time.Minute)
	found := c.service.Imbalances()
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Problem, "must give back 100 item_gold")
	assert.Equal(t, order.UUID, found[0].Orders[0])
	c.restart(t, deaf, func(c *ramptest.Config) { c.Books = ramptest.BooksReport })
	assert.Len(t, c.service.Imbalances(), 1, "what was found is not forgotten")
}

func TestAClockThatRunsAsOnTheWallGoesOnMeanwhile(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Speed = 1 })
	c.service.Advance(time.Hour)
	before, wall := c.service.Now(), time.Now()
	c.restart(t, c.handler, func(c *ramptest.Config) { c.Speed = 1 })
	assert.InDelta(t, time.Since(wall).Seconds(), c.service.Now().Sub(before).Seconds(), 0.5)
}

func TestAStateThatIsNoneIsRefused(t *testing.T) {
	c := newCounter(t)
	c.mint(t)
	state, err := c.service.Save()
	require.NoError(t, err)
	assert.Contains(t, string(state), "token-1", "the next service must call for the player too")
	for name, broken := range map[string][]byte{
		"empty":       {},
		"not JSON":    []byte("secret"),
		"null":        []byte("null"),
		"cut":         state[:len(state)/2],
		"a version":   bytes.Replace(state, []byte(`"Version":1`), []byte(`"Version":2`), 1),
		"another net": bytes.Replace(state, []byte(`"testnet":{`), []byte(`"moon":{`), 1),
		"no intent":   bytes.Replace(state, []byte(`"from":[`), []byte(`"from_":[`), 1),
		"no chains":   bytes.Replace(state, []byte(`"Chains":`), []byte(`"Chains_":`), 1),
		"no UUIDs":    bytes.Replace(state, []byte(`"Issued":`), []byte(`"Issued_":`), 1),
		"no orders":   bytes.Replace(state, []byte(`"Orders":`), []byte(`"Orders_":`), 1),
	} {
		_, err := ramptest.New(ramptest.Config{Key: c.key, Validator: c.validator, Handler: c.handler, State: append([]byte{}, broken...)})
		require.ErrorContains(t, err, "Config.State", name)
		assert.NotContains(t, err.Error(), "secret", name)
		assert.NotContains(t, err.Error(), "token-1", name)
	}
}
