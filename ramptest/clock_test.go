package ramptest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

func TestTheScheduleIsThatOfTheInterface(t *testing.T) {
	var all time.Duration
	for _, wait := range ramptest.Schedule() {
		all += wait
	}
	assert.Len(t, ramptest.Schedule(), 19)
	assert.Equal(t, 11*time.Hour+55*time.Minute, all)
	ramptest.Schedule()[0] = 0
	assert.Equal(t, 5*time.Minute, ramptest.Schedule()[0], "nobody changes it for another")
}

func TestAStillClockMovesByAdvanceOnly(t *testing.T) {
	epoch := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newCounter(t, func(c *ramptest.Config) { c.Epoch = epoch })
	order := c.mint(t)
	assert.Equal(t, ramptest.Pending, c.service.State(order))
	assert.Empty(t, c.service.Advance(time.Second-time.Nanosecond), "the block is not due")
	sent := c.service.Advance(time.Nanosecond)
	require.Len(t, sent, 1)
	assert.Same(t, order, sent[0].Order)
	assert.Equal(t, ramptest.Delivery{Order: order, Attempt: 1, Time: epoch.Add(time.Second), Status: 200}, sent[0])
	assert.Equal(t, ramptest.Confirmed, c.service.State(order))
	assert.Equal(t, epoch.Add(time.Second), c.service.Now())
	assert.Empty(t, c.service.Advance(24*time.Hour), "a result that was confirmed is not sent again")
	assert.Equal(t, epoch.Add(24*time.Hour+time.Second), c.service.Now())
}

func TestAResultIsRepeatedOnTheSchedule(t *testing.T) {
	c := newCounter(t)
	c.shop.answers = slices.Repeat([]error{errors.New("the database is unreachable")}, 20)
	order := c.mint(t, ramptest.TransactionFails())
	begun := c.service.Now().Add(time.Second)
	sent := c.service.Advance(13 * time.Hour)
	require.Len(t, sent, 20, "the first attempt and the 19 of the list")
	due := begun
	for i, d := range sent {
		assert.Equal(t, i+1, d.Attempt)
		assert.Equal(t, due, d.Time)
		assert.Equal(t, 500, d.Status)
		assert.Error(t, d.Err)
		if i < 19 {
			due = due.Add(ramptest.Schedule()[i])
			assert.Equal(t, due, d.Next)
		} else {
			assert.Zero(t, d.Next)
		}
	}
	assert.Equal(t, ramptest.GivenUp, c.service.State(order))
	assert.Equal(t, int64(900), c.shop.owns(), "the player never got the gold back")

	require.NoError(t, c.service.Resend(t.Context(), order))
	assert.Equal(t, ramptest.Confirmed, c.service.State(order))
	assert.Equal(t, int64(1000), c.shop.owns())
	for _, r := range c.shop.results {
		assert.Equal(t, c.shop.results[0].Raw, r.Raw, "each time the same bytes")
	}
}

func TestATwentiethRepetitionCanBeAdded(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Schedule = append(ramptest.Schedule(), 5*time.Minute) })
	c.shop.answers = slices.Repeat([]error{errors.New("unreachable")}, 20)
	order := c.mint(t)
	assert.Len(t, c.service.Advance(12*time.Hour+time.Second), 21)
	assert.Equal(t, ramptest.Confirmed, c.service.State(order))
}

func TestWhichAnswersAreRepeatedIsASwitch(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		retry  func(int) bool
		want   ramptest.State
	}{
		{"500", 500, nil, ramptest.Delivering},
		{"503", 503, nil, ramptest.Rejected},
		{"503, any 5xx", 503, func(status int) bool { return status >= 500 }, ramptest.Delivering},
		{"400", 400, nil, ramptest.Rejected},
		{"200 without success", 200, nil, ramptest.Confirmed},
	} {
		t.Run(test.name, func(t *testing.T) {
			rejects := answering(ramp.PathResult, test.status, `{"success":false,"errorCode":"NO","data":null}`)
			c := newCounter(t, reporting, rejects, func(c *ramptest.Config) { c.Retry = test.retry })
			order := c.mint(t)
			sent := c.service.Advance(time.Minute)
			require.Len(t, sent, 1)
			assert.Error(t, sent[0].Err)
			assert.Equal(t, test.want, c.service.State(order))
			assert.Equal(t, test.want == ramptest.Delivering, !sent[0].Next.IsZero())
		})
	}
}

func TestDeliveriesOfManyOrdersComeInOrder(t *testing.T) {
	c := newCounter(t)
	c.shop.answers = slices.Repeat([]error{errors.New("unreachable")}, 3)
	first := c.mint(t, ramptest.ResultLate(2*time.Minute))
	second := c.mint(t)
	third := c.mint(t, ramptest.ResultLate(time.Minute))
	var got []*ramptest.PlacedOrder
	var last time.Time
	for _, d := range c.service.Advance(time.Hour) {
		assert.False(t, d.Time.Before(last))
		got, last = append(got, d.Order), d.Time
	}
	assert.Equal(t, []*ramptest.PlacedOrder{second, third, first, second, third, first}, got)
}

func TestDeliverAndTheScheduleKnowOfEachOther(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t)
	assert.ErrorIs(t, c.service.Resend(t.Context(), order), ramptest.ErrPending)
	c.shop.answers = []error{errors.New("unreachable")}
	assert.Error(t, c.service.Deliver(t.Context(), order, ramptest.Succeeded))
	sent := c.service.Advance(time.Hour)
	require.Len(t, sent, 1)
	assert.Equal(t, 2, sent[0].Attempt, "the schedule goes on from there")
	assert.Equal(t, ramptest.Confirmed, c.service.State(order))
}

func TestAResultWaitsForConfirmations(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Confirmations, c.BlockTime = 12, 2*time.Second })
	c.mint(t)
	assert.Empty(t, c.service.Advance(24*time.Second-1))
	assert.Len(t, c.service.Advance(1), 1)
}

// The clock runs, and the bubble's time is the real time.
func TestAClockCanRun(t *testing.T) {
	for _, speed := range []float64{1, 60} {
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(t, func(c *ramptest.Config) { c.Standalone.Speed = speed })
			c.shop.answers = []error{errors.New("unreachable")}
			order := c.mint(t)
			factor := time.Duration(speed)
			time.Sleep(2 * time.Second / factor)
			synctest.Wait()
			assert.Equal(t, ramptest.Delivering, c.service.State(order))
			time.Sleep(5 * time.Minute / factor)
			synctest.Wait()
			assert.Equal(t, ramptest.Confirmed, c.service.State(order))
			assert.Len(t, c.shop.results, 2)

			late := c.mint(t, ramptest.ResultLate(time.Hour))
			assert.Len(t, c.service.Advance(time.Hour+time.Minute), 1, "a clock that runs can be moved too")
			assert.Equal(t, ramptest.Confirmed, c.service.State(late))
		})
	}
}

func TestASlowAnswerIsWaitedForWhileAClockRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(t, func(c *ramptest.Config) { c.Standalone.Speed = 1 })
		begun := time.Now()
		c.mint(t, ramptest.SlowAnswer(ramptest.OnValidate, 5*time.Second))
		assert.Equal(t, 5*time.Second, time.Since(begun))
	})
}

// A bubble does not end while one of its goroutines is left, and this service is never
// closed.
func TestAServiceInMemoryLeavesNothingBehind(t *testing.T) {
	c := newCounter(t)
	synctest.Test(t, func(t *testing.T) {
		service := must.Get(ramptest.New(ramptest.Config{PerOrder: true, Key: c.key, Validator: c.validator,
			Handler: c.handler}))(t)
		_, err := service.Assets(t.Context(), c.session)
		assert.NoError(t, err)
	})
}

func TestAServiceCanBeCalledFromABubbleThatIsNotItsOwn(t *testing.T) {
	c := newCounter(t, onWire(t))
	synctest.Test(t, func(t *testing.T) {
		_, err := c.service.Assets(t.Context(), c.session)
		assert.NoError(t, err)
	})
}

func TestAClosedServiceCallsNobody(t *testing.T) {
	c := newCounter(t)
	id, order := c.initialize(t), c.mint(t)
	before := len(c.service.Events())
	c.service.Close()
	assert.Empty(t, c.service.Advance(time.Hour))
	_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10))
	assert.ErrorIs(t, err, ramptest.ErrClosed)
	_, err = c.service.Burn(t.Context(), id, c.session, ramp.NewAmount(10))
	assert.ErrorIs(t, err, ramptest.ErrClosed)
	_, err = c.service.Assets(t.Context(), c.session)
	assert.ErrorIs(t, err, ramptest.ErrClosed)
	assert.ErrorIs(t, c.service.Deliver(t.Context(), order, ramptest.Succeeded), ramptest.ErrClosed)
	assert.ErrorIs(t, c.service.Resend(t.Context(), order), ramptest.ErrClosed)
	assert.Len(t, c.service.Events(), before)
	c.service.Close() // once more does no harm
}

// The handler takes 5 seconds, and does not look at its context.
func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	for _, speed := range []float64{0, 1} {
		for path, do := range map[string]func(*testing.T, *counter){
			ramp.PathValidate: func(t *testing.T, c *counter) {
				_, _ = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10))
			},
			ramp.PathResult: func(_ *testing.T, c *counter) { c.service.Advance(time.Minute) },
		} {
			t.Run(fmt.Sprint(path, speed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var entered, left atomic.Bool
					c := newCounter(t, reporting, func(c *ramptest.Config) { c.Standalone.Speed = speed },
						before(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
							if r.URL.Path != path || entered.Swap(true) {
								inner.ServeHTTP(w, r)
								return
							}
							time.Sleep(5 * time.Second)
							left.Store(true)
						}))
					if path == ramp.PathResult {
						c.mint(t)
					}
					go do(t, c)
					synctest.Wait()
					require.True(t, entered.Load())
					c.service.Close()
					assert.True(t, left.Load())
				})
			})
		}
	}
}

// An Apply on the database waits for the connection that its own tx holds. The books' own calls hang, too,
// but move nothing.
func TestAnOrderThatIsNotAnsweredHintsAtAnApplyThatWaitsForItself(t *testing.T) {
	const hint = "; if an Apply uses the database instead of tx, and tx holds the only connection, " +
		"then it waits for itself"
	for path, isHinted := range map[string]bool{ramp.PathAssets: false, ramp.PathValidate: true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCounter(t, func(c *ramptest.Config) { c.Audit = ramptest.AuditOff },
				before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
					if r.URL.Path == path {
						<-r.Context().Done()
						return
					}
					game.ServeHTTP(w, r)
				}))
			_, err := c.service.Assets(t.Context(), c.session)
			if path == ramp.PathValidate {
				require.NoError(t, err)
				_, err = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10))
			}
			assert.ErrorContains(t, err, "the game did not answer: not within 10s")
			assert.Equal(t, isHinted, strings.HasSuffix(err.Error(), hint), err)
		})
	}
}

func TestNobodyWaitsForAHandlerThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newCounter(t, func(c *ramptest.Config) { c.Timeout = time.Minute },
			before(func(_ http.ResponseWriter, _ *http.Request, _ http.Handler) {
				<-release
			}))
		begun := time.Now()
		_, err := c.service.Assets(t.Context(), c.session)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "the game did not answer: not within 1m0s, which is Timeout of ramptest.Config")
		assert.Equal(t, time.Minute, time.Since(begun))
		c.service.Close()
		assert.Equal(t, 2*time.Minute, time.Since(begun), "it might have answered")
		close(release)
	})
}

// A request that arrived before the service listened must reach a fully built service.
// The race detector checks this.
func TestAServiceIsWholeBeforeItListens(t *testing.T) {
	for range 10 {
		listener := must.Get(loopback.Listen())(t)
		early := must.Get(net.Dial("tcp", listener.Addr().String()))(t)
		const body = `{"jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{"from":"` + token + `","to":"` +
			token + `"}]}`
		must.Get(fmt.Fprintf(early,
			"POST /rpc/testnet HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
				"Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body))(t)
		c := newCounter(t, func(c *ramptest.Config) { c.Standalone.Listener, c.Standalone.Speed = listener, 1 })
		answer := must.Get(io.ReadAll(early))(t)
		assert.Contains(t, string(answer), `"result":"0x`)
		c.service.Close()
	}
}
