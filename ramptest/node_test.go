package ramptest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// statuses are the HTTP statuses of the answers to results.
func statuses(sent []ramptest.Delivery) (list []int) {
	for _, d := range sent {
		list = append(list, d.Status)
	}
	return list
}

// While a chain stands still, nothing ends. When it goes on, everything does, in a block of then.
func TestAChainStandsStillAndGoesOn(t *testing.T) {
	s := open(t, proved, nil)
	head := func() uint64 { return must.Get(s.chain.BlockNumber(t.Context()))(t) }
	s.place(t, mints)
	require.Equal(t, []int{200}, statuses(s.service.Advance(time.Minute)))
	s.service.SetNode(ramp.Testnet, ramptest.NodeState{Stands: true})
	before := head()
	mint := s.place(t, mints, ramptest.TransactionFails())
	burn := s.place(t, burns)
	assert.Empty(t, s.service.Advance(24*time.Hour))
	assert.Equal(t, before, head())
	assert.Equal(t, int64(800), s.owns["item_gold"])
	for _, err := range []error{s.service.Resend(t.Context(), mint),
		s.service.Deliver(t.Context(), burn, ramptest.Succeeded)} {
		assert.ErrorIs(t, err, ramptest.ErrPending)
		assert.ErrorContains(t, err, "after Service.SetNode has let the chain go on")
	}
	_, err := s.chain.Receipt(t.Context(), burn.TxHash)
	assert.ErrorIs(t, err, ramp.ErrNotFound)
	_, shown := (&counter{service: s.service}).control(t, "GET", "/control/orders/"+mint.UUID.String()+"?wait=1h", "")
	assert.Contains(t, shown.Said, "waits for a block, and the chain stands still, as you chose")
	assert.True(t, shown.Over)

	s.service.SetNode(ramp.Testnet, ramptest.NodeState{})
	assert.Equal(t, before+1, head())
	now := s.service.Now()
	assert.Equal(t, []int{200, 200}, statuses(s.service.Advance(time.Minute)))
	assert.Equal(t, before+61, head())
	assert.Equal(t, int64(1000), s.owns["item_gold"])
	receipt := must.Get(s.chain.Receipt(t.Context(), burn.TxHash))(t)
	block := must.Get(s.chain.BlockByHash(t.Context(), receipt.BlockHash, false))(t)
	assert.Equal(t, ramp.NewQuantity(uint64(now.Unix())).String(), block.Timestamp.String())
	failed, said := s.test.end()
	assert.False(t, failed, said)
}

// A result that waits for confirmations waits for the blocks, however long they take.
func TestAResultWaitsForAChainThatStandsStill(t *testing.T) {
	c := newCounter(t, complete, func(c *ramptest.Config) { c.Confirmations = 12 })
	c.mint(t)
	require.Empty(t, c.service.Advance(5*time.Second))
	c.service.SetNode(ramp.Testnet, ramptest.NodeState{Stands: true})
	assert.Empty(t, c.service.Advance(time.Hour))
	assert.Contains(t, c.service.Check().Error(), "its chain stands still: call service.SetNode(\"testnet\"")
	c.service.SetNode(ramp.Testnet, ramptest.NodeState{})
	assert.Empty(t, c.service.Advance(5*time.Second))
	assert.Len(t, c.service.Advance(5*time.Second), 1)
}

// A service that begins anew with its state file has a chain that goes on.
func TestAChainGoesOnAfterARestart(t *testing.T) {
	c := newCounter(t, kept(t))
	c.service.SetNode(ramp.Testnet, ramptest.NodeState{Stands: true})
	c.mint(t)
	c.service.Advance(time.Hour)
	c.service.SetNode(ramp.Testnet, ramptest.NodeState{})
	head := must.Get(nodeOf(t, c.service).BlockNumber(t.Context()))(t)
	assert.Equal(t, uint64(1), head)
	c.restart(t, c.handler)
	assert.Equal(t, head, must.Get(nodeOf(t, c.service).BlockNumber(t.Context()))(t))
	assert.Len(t, c.service.Advance(time.Minute), 1)
	c.service.SetNode(ramp.Testnet, ramptest.NodeState{Stands: true})
	c.mint(t)
	assert.Empty(t, c.service.Advance(time.Hour))
	c.restart(t, c.handler)
	assert.Len(t, c.service.Advance(time.Minute), 1)
}

// With a running clock, nobody needs to advance it after the chain goes on.
func TestARunningClockGoesOnWithItsChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(t, complete, func(c *ramptest.Config) { c.Standalone.Speed = 1 })
		c.service.SetNode(ramp.Testnet, ramptest.NodeState{Stands: true})
		order := c.mint(t)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, ramptest.Pending, c.service.State(order))
		c.service.SetNode(ramp.Testnet, ramptest.NodeState{})
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, ramptest.Confirmed, c.service.State(order))
	})
}

// swallows confirms each result, whatever the server says: a server that takes what it cannot prove.
func swallows(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		status, body := answer.Code, answer.Body.Bytes()
		if r.URL.Path == ramp.PathResult {
			status, body = http.StatusOK, []byte(confirmed)
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
}

// A right server waits while its node does not show enough, and ends the order as soon as it does. One that
// confirms what it cannot prove keeps what a failed mint took.
func TestAServerWaitsForANodeThatShowsEnough(t *testing.T) {
	for name, test := range map[string]struct {
		between time.Duration // the mints that came before and this one
		state   ramptest.NodeState
		now     []int // the answers to its result in the next minute
		later   []int // and those after it, without another setting
	}{
		"all is well":    {0, ramptest.NodeState{}, []int{200}, nil},
		"it lags a bit":  {0, ramptest.NodeState{Behind: 400}, []int{500}, []int{500, 200}},
		"it lags":        {0, ramptest.NodeState{Behind: 1 << 40}, []int{500}, nil},
		"it cuts":        {0, ramptest.NodeState{MaxLogs: 1}, []int{500}, nil},
		"it cuts less":   {0, ramptest.NodeState{MaxLogs: 2}, []int{200}, nil},
		"it forgets":     {time.Hour, ramptest.NodeState{Forgets: time.Hour}, []int{500}, nil},
		"it knows a day": {time.Hour, ramptest.NodeState{Forgets: 24 * time.Hour}, []int{200}, nil},
	} {
		for _, losing := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var around func(http.Handler) http.Handler
				if losing {
					around = swallows
				}
				s := open(t, proved, around)
				for range 2 {
					s.place(t, mints)
					s.service.Advance(time.Second)
				}
				s.service.Advance(test.between)
				s.service.SetNode(ramp.Testnet, test.state)
				order := s.place(t, mints, ramptest.TransactionFails())
				sent := s.service.Advance(time.Minute)
				if test.now[0] == 500 {
					assert.Equal(t, int64(700), s.owns["item_gold"], name)
				}
				if !losing {
					assert.Equal(t, test.now, statuses(sent), name)
					if test.later == nil {
						s.service.SetNode(ramp.Testnet, ramptest.NodeState{})
					} else {
						assert.Equal(t, test.later, statuses(s.service.Advance(12*time.Hour)), name)
					}
					s.service.Advance(12 * time.Hour)
					assert.Equal(t, int64(800), s.owns["item_gold"], name)
					assert.Equal(t, ramptest.Confirmed, s.service.State(order), name)
				}
				failed, said := s.test.end()
				idle := name == "it cuts less" || name == "it knows a day"
				assert.Equal(t, losing && test.now[0] == 500 || idle, failed, "%s: %s", name, said)
				if idle {
					assert.Contains(t, said, "service.SetNode(\"testnet\") had no effect", name)
				}
			})
		}
	}
}

// The books of the service read the chain, not what its node shows of it.
func TestALossIsSeenWhateverTheNodeShows(t *testing.T) {
	for name, test := range map[string]struct {
		state ramptest.NodeState
		said  string
	}{
		"stands": {ramptest.NodeState{Stands: true},
			"succeeded on chain: the game must take 1 item_gem, 100 item_gold"},
		"lags": {ramptest.NodeState{Behind: 1000}, "between two calls, player of session-1's item_gem rose by 1"},
	} {
		p := play(t, newVault(), complete, closed)
		mint := must.Get(p.order(t, "session-1", false))(t)
		p.service.SetNode(ramp.Testnet, test.state)
		p.service.Advance(time.Hour)
		_, _ = nodeOf(t, p.service).BlockNumber(t.Context())
		p.vault.shift("session-1", moved{100, 1}) // a job gives an old order back
		p.service.SetNode(ramp.Testnet, ramptest.NodeState{})
		p.service.Advance(time.Hour)
		failed, said := p.test.end()
		assert.True(t, failed, name)
		assert.Contains(t, said, test.said, name)
		assert.Equal(t, ramptest.Confirmed, p.service.State(mint), name)
	}
}

// What the node does not show, it shows to nobody.
func TestANodeShowsOnlyWhatItHas(t *testing.T) {
	c := newCounter(t)
	c.mint(t)
	young := c.mint(t)
	node := nodeOf(t, c.service)
	c.service.Advance(time.Minute)
	all := must.Get(node.Logs(t.Context(), ramp.LogFilter{FromBlock: ramp.AtBlock(0), ToBlock: ramp.Latest}))(t)
	require.Len(t, all, 4, "each mint has a fee")
	shown := func() (logs int, known bool, head uint64) {
		list := must.Get(node.Logs(t.Context(), ramp.LogFilter{FromBlock: ramp.AtBlock(0), ToBlock: ramp.Latest}))(t)
		_, err := node.Receipt(t.Context(), young.TxHash)
		_, unknown := node.Transaction(t.Context(), young.TxHash)
		assert.Equal(t, err == nil, unknown == nil)
		return len(list), err == nil, must.Get(node.BlockNumber(t.Context()))(t)
	}
	for _, test := range []struct {
		state ramptest.NodeState
		logs  int
		known bool
		head  uint64
	}{
		{ramptest.NodeState{}, 4, true, 60},
		{ramptest.NodeState{Behind: 59}, 4, true, 1},
		{ramptest.NodeState{Behind: 60}, 0, false, 0},
		{ramptest.NodeState{Behind: 1 << 63}, 0, false, 0},
		{ramptest.NodeState{MaxLogs: 3}, 3, true, 60},
		{ramptest.NodeState{Forgets: 59 * time.Second}, 4, true, 60},
		{ramptest.NodeState{Forgets: 59*time.Second - 1}, 0, false, 60},
	} {
		c.service.SetNode(ramp.Testnet, test.state)
		logs, known, head := shown()
		assert.Equal(t, test.logs, logs, test.state)
		assert.Equal(t, test.known, known, test.state)
		assert.Equal(t, test.head, head, test.state)
		block, err := node.BlockByNumber(t.Context(), ramp.Latest, false)
		require.NoError(t, err)
		assert.Equal(t, ramp.NewQuantity(test.head).String(), block.Number.String())
		_, err = node.BlockByNumber(t.Context(), "0x1", false)
		assert.Equal(t, test.head == 0, err != nil, test.state)
	}
	status, _ := c.control(t, "POST", "/control/node", `{"network":"testnet","behind":60,"max_logs":1}`)
	assert.Equal(t, 200, status)
	logs, known, _ := shown()
	assert.Zero(t, logs)
	assert.False(t, known)
	status, _ = c.control(t, "POST", "/control/reset", `{}`)
	assert.Equal(t, 200, status)
	c.mint(t)
	c.service.Advance(time.Minute)
	logs, _, _ = shown()
	assert.Equal(t, 2, logs, "a reset ends it")
}

// A server that asks the chain for logs is right whatever copy of them a result has. One that reads the copy is
// not, and with the fault its test is red.
func TestAResultMayHaveOtherLogsThanTheNode(t *testing.T) {
	s := open(t, proved, nil)
	s.place(t, mints, ramptest.ResultWithoutLogs())
	s.place(t, burns, ramptest.ResultWithoutLogs())
	assert.Equal(t, []int{200, 200}, statuses(s.service.Advance(time.Minute)))
	assert.Equal(t, int64(1000), s.owns["item_gold"])
	failed, said := s.test.end()
	assert.False(t, failed, said)

	for _, faults := range [][]ramptest.Fault{nil, {ramptest.ResultWithoutLogs()}} {
		v := newVault()
		v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
			if len(r.Receipt.Logs) == 0 { // it looks as if nothing had been burned
				return nil
			}
			return v.finish(s, r)
		}
		p := play(t, v, complete)
		_, err := p.order(t, "session-1", true, faults...)
		require.NoError(t, err)
		p.service.Advance(time.Minute)
		failed, said := p.test.end()
		assert.Equal(t, faults != nil, failed, said)
		if failed {
			assert.Contains(t, said, "the game must grant")
		}
	}

	p := play(t, newVault(), complete)
	_, err := p.order(t, "session-1", false, ramptest.ResultWithoutLogs(), ramptest.TransactionFails())
	require.NoError(t, err)
	p.service.Advance(time.Minute)
	failed, said = p.test.end()
	assert.True(t, failed)
	assert.Contains(t, said, "result-without-logs had no effect, because its transaction failed, and has no logs")
}
