package ramptest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Nobody reads the log of a test that has passed. What could not be seen, or what nobody has met, fails it,
// unless a field says that it is meant.
func TestWhatWasNotSeenFailsTheTest(t *testing.T) {
	spare := func(c *ramptest.Config) { c.Incomplete = true }
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
		{"a chain that misses no block", none, func(_ *testing.T, p *played) {
			p.service.SetNode(ramp.Testnet, ramptest.NodeState{Stands: true})
			p.service.SetNode(ramp.Testnet, ramptest.NodeState{})
		}, `service.SetNode("testnet") had no effect, because Stands: the chain missed no block`},
		{"a chain that misses a block", none, func(_ *testing.T, p *played) {
			p.service.SetNode(ramp.Testnet, ramptest.NodeState{Stands: true})
			p.service.Advance(time.Second)
		}, ""},
		{"a node that is behind, and that nobody asks", none, func(_ *testing.T, p *played) {
			p.service.SetNode(ramp.Testnet, ramptest.NodeState{Behind: 1})
		}, `service.SetNode("testnet") had no effect, because Behind: nobody asked the node about a newer block`},
		{"the node of no network", none, func(_ *testing.T, p *played) {
			p.service.SetNode("test", ramptest.NodeState{Behind: 1})
		}, `service.SetNode("test") had no effect, because the service has no such network`},
		{"a node that nobody asks about, and that is meant", spare, func(_ *testing.T, p *played) {
			p.service.SetNode(ramp.Testnet, ramptest.NodeState{Behind: 1, MaxLogs: 1, Forgets: 1})
		}, ""},
		{"a node that is asked", none, func(t *testing.T, p *played) {
			p.service.FailRPC(-32603)
			_, err := nodeOf(t, p.service).BlockNumber(t.Context())
			assert.Error(t, err)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), complete, test.option)
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

func complete(c *ramptest.Config) { c.Incomplete = false }

// An order whose result nobody sent, or that nobody could look at, has shown nothing. Each of these tests asserts
// nothing, and is green only if it says that this is meant.
func TestWhatNobodyAskedFailsTheTest(t *testing.T) {
	const unread = "it is unknown what the game moved, because it did not say what the player owns"
	var gate, assetsOnly atomic.Bool // the game, or only its assets endpoint, rejects every session
	guarded := before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
		if gate.Load() && (r.URL.Path == ramp.PathAssets || !assetsOnly.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"success":false,"errorCode":"INVALID_USER","data":null}`))
			return
		}
		game.ServeHTTP(w, r)
	})
	place := func(faults ...ramptest.Fault) func(*testing.T, *played) {
		return func(t *testing.T, p *played) { p.goldOrder(t, "session-1", false, 7, faults...) }
	}
	for _, test := range []struct {
		name string
		play func(*testing.T, *played)
		want string
	}{
		{"an order that waits for its block", place(),
			"the game was not asked about its end, because its transaction is in no block"},
		{"a result that is not due", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 7)
			p.goldOrder(t, "session-2", false, 9)
			p.service.Advance(time.Millisecond)
		}, "the game was not asked about its end"},
		{"a result that comes late", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", true, 7, ramptest.Perhaps(ramptest.ResultLate(time.Hour)))
			p.service.Advance(time.Minute)
		}, "the game was not asked about its end, because its result is sent in"},
		{"a store that fails, and a result that does not come again", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 7, ramptest.TransactionFails(),
				ramptest.Perhaps(ramptest.StoreFails()))
			p.service.Advance(time.Minute)
		}, "the game was not asked about its end, because its result is sent again in"},
		{"a result of an order that was made by hand", func(t *testing.T, p *played) {
			o := p.goldOrder(t, "session-1", true, 7)
			p.service.Advance(time.Minute)
			made := &ramptest.PlacedOrder{UUID: uuid.New(), Session: o.Session, Network: o.Network, Request: o.Request}
			_ = p.service.Deliver(t.Context(), made, ramptest.Succeeded)
		}, "it was made by hand, so nobody has looked at what its result moved: set Config.Closed"},
		{"a player whose session has ended", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 7)
			p.service.Advance(time.Minute)
			gate.Store(true)
			_, err := p.order(t, "session-1", false)
			assert.Error(t, err)
		}, unread},
		{"a player whom nobody can ask while a transaction stays pending", func(t *testing.T, p *played) {
			must.Get(p.service.Assets(t.Context(), session1))(t)
			gate.Store(true)
			assetsOnly.Store(true)
			p.goldOrder(t, "session-1", false, 7, ramptest.StaysPending())
		}, unread},

		{"a transaction that stays pending on purpose", place(ramptest.StaysPending()), ""},
		{"a result that never comes on purpose", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 7, ramptest.ResultNever())
			p.service.Advance(time.Minute)
		}, ""},
		{"a session that the game has never accepted", func(t *testing.T, p *played) {
			gate.Store(true)
			_, err := p.order(t, "session-1", false)
			assert.Error(t, err)
		}, ""},
		{"a player who comes back", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 7)
			p.service.Advance(time.Minute)
			gate.Store(true)
			_, err := p.order(t, "session-1", false)
			assert.Error(t, err)
			gate.Store(false)
			must.Get(p.service.Assets(t.Context(), session1))(t)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, meant := range []bool{false, true} {
				gate.Store(false)
				assetsOnly.Store(false)
				p := play(t, newVault(), guarded, func(c *ramptest.Config) { c.Incomplete = meant })
				test.play(t, p)
				failed, said := p.test.end()
				assert.Equal(t, test.want != "" && !meant, failed, said)
				if !meant {
					assert.Contains(t, said, test.want)
				}
			}
		})
	}
}

// The control API of a program says it, too, where a test in any language asks at its end.
func TestTheControlAPISaysWhatNobodyAsked(t *testing.T) {
	for _, meant := range []bool{false, true} {
		c := newCounter(&judged{TB: t}, onWire(t), func(c *ramptest.Config) { c.Incomplete = meant })
		c.mint(t)
		check := func() string {
			return c.direct("GET", "http://127.0.0.1/control/check", "", "127.0.0.1:1").Body.String()
		}
		said := check()
		assert.Equal(t, !meant, strings.Contains(said, "the game was not asked about its end"), said)
		c.service.Advance(time.Minute)
		assert.JSONEq(t, `{"problems":[]}`, check())
		c.service.Close()
	}
}

// The books look before and after what a test says of itself: otherwise, what a job has moved looks like it.
func TestClosedBooksThatCannotLookAroundOutsideFailTheTest(t *testing.T) {
	p := play(t, newVault(), closed)
	p.goldOrder(t, "session-1", false, 300)
	p.service.Advance(time.Minute)
	p.vault.add("session-1", "item_gold", 300) // a job gives back once more
	p.service.FailAssets(ramptest.AssetsLost)
	p.service.Outside(func() {})
	failed, said := p.test.end()
	assert.True(t, failed)
	assert.Contains(t, said, "Config.Closed could not look before and after service.Outside, because the game did "+
		`not say what session "session-1" owns`)
}

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
