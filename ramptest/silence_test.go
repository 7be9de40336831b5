package ramptest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Nobody reads the log of a test that has passed. What could not be seen, or what nobody has met, fails it,
// unless a field says that it is meant.
func TestWhatWasNotSeenFailsTheTest(t *testing.T) {
	spare := func(c *ramptest.Config) { c.SpareFailures = true }
	for _, test := range []struct {
		name   string
		option func(*ramptest.Config)
		play   func(*testing.T, *played)
		want   string
	}{
		{"closed books whose game is gone", closed, func(t *testing.T, p *played) {
			p.service.SetHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				panic(http.ErrAbortHandler)
			}))
		}, `Config.Closed could not look when the test ended, because the game did not say ` +
			`what session "session-1" owns`},
		{"closed books whose game lives", closed, func(*testing.T, *played) {}, ""},
		{"an initialize call that nobody makes", none, func(_ *testing.T, p *played) {
			p.service.FailInitialize(ramptest.InvalidMAC, ramptest.InvalidMAC)
		}, "2 failures of service.FailInitialize had no effect"},
		{"a node that nobody asks", none, func(_ *testing.T, p *played) { p.service.FailRPC(503) },
			"1 failures of service.FailRPC had no effect"},
		{"assets that nobody asks for", none, func(_ *testing.T, p *played) {
			p.service.FailAssets(ramptest.AssetsLost)
		}, "1 failures of service.FailAssets had no effect"},
		{"a node that nobody asks, and that is meant", spare, func(_ *testing.T, p *played) { p.service.FailRPC(503) },
			""},
		{"a node that is asked", none, func(t *testing.T, p *played) {
			p.service.FailRPC(-32603)
			_, err := nodeOf(t, p.service).BlockNumber(t.Context())
			assert.Error(t, err)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), test.option)
			_, err := p.order(t, "session-1", false)
			require.NoError(t, err)
			p.service.Advance(time.Minute)
			test.play(t, p)
			failed, said := p.test.end()
			assert.Equal(t, test.want != "", failed, said)
			assert.Contains(t, said, test.want)
		})
	}
}

func none(*ramptest.Config) {}

// A timeline can be a golden file: the same test says the same in each run.
func TestTwoRunsOfOneTestSayTheSame(t *testing.T) {
	var told [2]string
	for i := range told {
		next := byte(0)
		p := play(t, newVault(), func(c *ramptest.Config) {
			c.Epoch = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
			c.UUID = func() uuid.UUID {
				next++
				return uuid.UUID{6: 0x40, 8: 0x80, 15: next}
			}
		})
		for _, fault := range []ramptest.Fault{ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult)} {
			_, err := p.order(t, "session-1", false, fault)
			require.NoError(t, err)
			p.service.Advance(time.Hour)
		}
		_ = p.service.Deliver(t.Context(), p.goldOrder(t, "session-1", false, 7, ramptest.TransactionType(7)),
			ramptest.Failed)
		told[i] = p.service.Timeline()
		for _, e := range p.service.Events() {
			if e.TxHash != (common.Hash{}) {
				told[i] += "\n" + e.TxHash.Hex()
			}
		}
	}
	assert.Equal(t, told[0], told[1])
	assert.Contains(t, told[0], "00000000  #2")
}

// A game that goes away between two validate calls about one order may have taken its price.
func TestNobodySaysThatNothingWasSentIfAnEarlierCallWas(t *testing.T) {
	var game *httptest.Server
	c := newCounter(t, reporting, func(c *ramptest.Config) {
		inner := c.Handler
		game = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == ramp.PathValidate {
				_ = game.Listener.Close()
			}
			w.Header().Set("Connection", "close")
			inner.ServeHTTP(w, r)
		}))
		t.Cleanup(game.Close)
		c.Game, c.Handler = game.URL, nil
	})
	_, err := c.service.Mint(t.Context(), c.initialize(t), session1, ramp.NewAmount(10), ramptest.ValidateTwice())
	assert.ErrorContains(t, err, "this call was not sent, but an earlier one about the order was")
	assert.NotContains(t, err.Error(), "nothing was sent")
}
