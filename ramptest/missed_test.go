package ramptest_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A fault that had no effect has tested nothing: the end of the test says so, and what would let it
// have one.
func TestAFaultWithoutEffectIsAnError(t *testing.T) {
	lost, twice := ramptest.LostAnswer(ramptest.OnResult), ramptest.ResultTwice()
	fails, noise := ramptest.TransactionFails(), ramptest.WrongHMAC(ramptest.OnResult)
	for _, test := range []struct {
		name    string
		faults  []ramptest.Fault
		advance time.Duration
		byHand  bool
		want    string // "" if nothing is said
	}{
		{"nothing was advanced", []ramptest.Fault{fails, lost, twice, noise}, 0, false,
			"transaction-fails, lost-answer=result, result-twice, wrong-hmac=result had no effect, " +
				"because its transaction is in no block: call service.Advance(time.Minute)"},
		{"only the block was mined", []ramptest.Fault{ramptest.ResultLate(time.Hour)}, time.Minute, false,
			"result-late=1h0m0s had no effect, because its result is sent in 59m1s: " +
				"call service.Advance with more than that"},
		{"the answer was lost, and none followed", []ramptest.Fault{fails, lost}, time.Minute, false,
			"lost-answer=result had no effect, because its result is sent again in 4m1s: " +
				"call service.Advance with more than that"},
		{"the store failed, and nothing followed", []ramptest.Fault{ramptest.StoreFails()}, time.Minute, false,
			"store-fails had no effect, because its result is sent again in 4m1s"},
		{"no other order", []ramptest.Fault{ramptest.ResultAfterNext()}, time.Hour, false,
			"result-after-next had no effect, because no other order had a result after this one"},
		{"by hand", []ramptest.Fault{twice}, 0, true,
			"result-twice had no effect, because its result was delivered by hand, and service.Advance delivers it"},
		{"on purpose", []ramptest.Fault{ramptest.Perhaps(twice), ramptest.Perhaps(noise)}, 0, true, ""},
		{"everything happened", []ramptest.Fault{fails, lost, twice, noise}, time.Hour, false, ""},
		{"faults of validate", []ramptest.Fault{ramptest.ValidateTwice()}, time.Minute, false, ""},
		{"faults that keep a result", []ramptest.Fault{ramptest.ResultNever()}, time.Hour, false, ""},
		{"a transaction that stays", []ramptest.Fault{ramptest.StaysPending()}, 0, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault())
			o, err := p.order(t, "session-1", false, test.faults...)
			require.NoError(t, err)
			p.service.Advance(test.advance)
			if test.byHand {
				require.NoError(t, p.service.Deliver(t.Context(), o, ramptest.Succeeded))
			}
			checked := p.service.Check()
			failed, said := p.test.end()
			if test.want == "" {
				assert.NoError(t, checked)
				assert.False(t, failed, said)
				return
			}
			want := "ramptest: player of session-1's mint " + o.UUID.String()[:8] + ": " + test.want
			assert.ErrorContains(t, checked, want)
			assert.True(t, failed)
			assert.Contains(t, said, want)
			assert.Contains(t, said, "wrap the fault in ramptest.Perhaps")
		})
	}
}

func TestATestThatHasStoppedOwesNoFaults(t *testing.T) {
	p := play(t, newVault())
	_, err := p.order(t, "session-1", false, ramptest.TransactionFails())
	require.NoError(t, err)
	p.test.Error("what it expected did not happen")
	_, said := p.test.end()
	assert.NotContains(t, said, "had no effect")
}

// rewritten lets middleware answer with another status and body instead of an HTTP 500.
func rewritten(status int, body string) func(*ramptest.Config) {
	return func(c *ramptest.Config) {
		inner := c.Handler
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			inner.ServeHTTP(recorded, r)
			if recorded.Code == http.StatusInternalServerError {
				recorded.Code = status
				if body != "" {
					recorded.Body = bytes.NewBufferString(body)
				}
			}
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(recorded.Body.Bytes())
		})
	}
}

// With a store that fails once, a game shows what stands before its handler.
func TestAStoreThatFailsShowsWhatChangesItsAnswer(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*ramptest.Config)
		want   string
	}{
		{"nothing", func(*ramptest.Config) {}, ""},
		{"500 becomes 503", rewritten(503, ""), "the game's store failed on purpose, which must be answered with " +
			"HTTP 500, because the result is not sent again after HTTP 503 (6)"},
		{"every status becomes 200", rewritten(200, ""), "because the result is not sent again after HTTP 200 (6)"},
		{"every answer becomes a success", rewritten(200, `{"success":true,"errorCode":null,"data":null}`),
			"because the result is not sent again after HTTP 200 (6)"},
		{"the service repeats after any 5xx", func(c *ramptest.Config) {
			rewritten(503, "")(c)
			c.Retry = func(status int) bool { return status >= 500 }
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), test.change)
			_, err := p.order(t, "session-1", false, ramptest.StoreFails(), ramptest.LostAnswer(ramptest.OnResult))
			require.NoError(t, err)
			sent := p.service.Advance(time.Hour)
			if test.want == "" {
				require.Len(t, sent, 3)
				assert.ErrorIs(t, sent[0].Err, ramptest.ErrStoreFailed)
				assert.ErrorIs(t, sent[1].Err, ramptest.ErrLostAnswer, "the one that followed was lost")
				assert.NoError(t, sent[2].Err)
				failed, said := p.test.end()
				assert.False(t, failed, said)
				return
			}
			require.Len(t, sent, 1)
			assert.ErrorContains(t, sent[0].Err, test.want)
			failed, _ := p.test.end()
			assert.True(t, failed)
		})
	}
}

func TestAStoreOutOfReachIsNamed(t *testing.T) {
	t.Run("through a URL", func(t *testing.T) {
		c := newCounter(t, served(t))
		_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10), ramptest.StoreFails())
		assert.ErrorContains(t, err, "StoreFails needs a ramp.Handler as Config.Handler")
	})
	t.Run("pieces, or another context", func(t *testing.T) {
		p := play(t, newVault(), func(c *ramptest.Config) {
			inner := c.Handler
			c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner.ServeHTTP(w, r.WithContext(t.Context()))
			})
		})
		_, err := p.order(t, "session-1", false, ramptest.StoreFails())
		require.NoError(t, err)
		sent := p.service.Advance(time.Hour)
		assert.ErrorContains(t, sent[0].Err, "the result reached no ramp.Handler with the context of its request")
		assert.ErrorContains(t, p.service.Check(), "its result reached no ramp.Handler")
	})
}
