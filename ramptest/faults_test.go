package ramptest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// TestAGoodGameStandsEveryFault plays each fault, and pairs of them, against a correct
// game.
func TestAGoodGameStandsEveryFault(t *testing.T) {
	const minted, restored = 900, 1000
	for _, test := range []struct {
		faults  []ramptest.Fault
		results int // results, in three days
		gold    int64
		state   ramptest.State
	}{
		{nil, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.TransactionFails()}, 1, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.StaysPending()}, 0, minted, ramptest.Pending},
		{[]ramptest.Fault{ramptest.ResultTwice()}, 2, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultTwice(), ramptest.TransactionFails()}, 2, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultAtOnce(8), ramptest.TransactionFails()}, 8, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultLate(48 * time.Hour), ramptest.TransactionFails()}, 1, restored,
			ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultNever(), ramptest.TransactionFails()}, 0, minted, ramptest.Delivering},
		{[]ramptest.Fault{ramptest.Reorganized(), ramptest.TransactionFails()}, 2, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.TransactionType(0x7)}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.TransactionType(0x63)}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.WithoutFee()}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultWithoutLogs()}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.MintedByStranger()}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ValidateTwice()}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ValidateAtOnce(8)}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultBeforeAnswer()}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultBeforeAnswer(), ramptest.TransactionFails()}, 1, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultBeforeAnswer(), ramptest.ResultAtOnce(3), ramptest.ResultTwice(),
			ramptest.TransactionFails()}, 4, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ResultBeforeAnswer(), ramptest.LostAnswer(ramptest.OnResult),
			ramptest.TransactionFails()}, 2, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.ValidateOtherDigest(), ramptest.ValidateOtherAmount()}, 1, minted,
			ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.TamperedBody(ramptest.OnValidate), ramptest.WrongHMAC(ramptest.OnValidate),
			ramptest.MissingHMAC(ramptest.OnValidate)}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.TamperedBody(ramptest.OnResult), ramptest.WrongHMAC(ramptest.OnResult),
			ramptest.MissingHMAC(ramptest.OnResult), ramptest.TransactionFails()}, 1, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.LostAnswer(ramptest.OnResult), ramptest.LostAnswer(ramptest.OnResult),
			ramptest.TransactionFails()}, 3, restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.SlowAnswer(ramptest.OnResult, time.Minute), ramptest.TransactionFails()}, 2,
			restored, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.SlowAnswer(ramptest.OnValidate, 9*time.Second)}, 1, minted, ramptest.Confirmed},
		{[]ramptest.Fault{ramptest.UnknownFields(ramptest.OnValidate), ramptest.UnknownFields(ramptest.OnResult)}, 1,
			minted, ramptest.Confirmed},
	} {
		t.Run(fmt.Sprint(test.faults), func(t *testing.T) {
			c := newCounter(t)
			order := c.mint(t, test.faults...)
			for _, d := range c.service.Advance(72 * time.Hour) {
				if d.Err != nil {
					assert.ErrorIs(t, d.Err, ramptest.ErrLostAnswer)
				}
			}
			assert.Len(t, c.shop.results, test.results)
			assert.Equal(t, test.gold, c.shop.owns())
			assert.Equal(t, test.state, c.service.State(order))
			if strings.Contains(fmt.Sprint(test.faults), "unknown-fields") {
				assert.Equal(t, 5, bytes.Count(c.shop.results[0].Raw, []byte("unknown_field")))
			}
		})
	}
}

func TestALostApprovalCanBeAskedForAgain(t *testing.T) {
	lost, slow := ramptest.LostAnswer(ramptest.OnValidate), ramptest.SlowAnswer(ramptest.OnValidate, 11*time.Second)
	for _, test := range []struct {
		faults []ramptest.Fault
		calls  int              // that are lost
		again  []ramptest.Fault // of the call that is answered
	}{
		{[]ramptest.Fault{lost}, 1, nil},
		{[]ramptest.Fault{lost}, 1, []ramptest.Fault{lost}},
		{[]ramptest.Fault{lost, lost}, 2, []ramptest.Fault{lost, lost}},
		{[]ramptest.Fault{slow}, 1, nil},
	} {
		c := newCounter(t)
		id := c.initialize(t)
		for range test.calls {
			_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10), test.faults...)
			assert.ErrorIs(t, err, ramptest.ErrLostAnswer)
			assert.Equal(t, int64(900), c.shop.owns(), "the game has acted")
			assert.Empty(t, c.service.Advance(time.Minute), "but nothing is on the chain")
		}
		_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10), test.again...)
		assert.NoError(t, err)
		assert.Equal(t, int64(900), c.shop.owns())
		assert.Len(t, c.service.Advance(time.Minute), 1)
	}
}

// TestABadGameIsFound breaks a game in one place each time.
func TestABadGameIsFound(t *testing.T) {
	for _, fault := range []ramptest.Fault{ramptest.TamperedBody(ramptest.OnValidate),
		ramptest.WrongHMAC(ramptest.OnValidate),
		ramptest.MissingHMAC(ramptest.OnValidate), ramptest.TamperedBody(ramptest.OnResult)} {
		t.Run(fault.String(), func(t *testing.T) {
			var c *counter
			c = newCounter(t, auditOff, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				r.Header.Set("X-Hmac-Signature", c.key.Sign(body)) // as if any call came from the service
				game.ServeHTTP(w, r)
			}))
			c.shop.gold = 1_000_000 // enough for what was tampered with
			_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1), fault)
			if err == nil {
				sent := c.service.Advance(time.Minute)
				require.NotEmpty(t, sent)
				err = sent[0].Err
			}
			assert.ErrorIs(t, err, ramptest.ErrForged)
		})
	}

	for _, fault := range []ramptest.Fault{ramptest.ValidateOtherDigest(), ramptest.ValidateOtherAmount()} {
		t.Run(fault.String(), func(t *testing.T) {
			c := newCounterOf(t, approvesEverything(), auditOff)
			_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1), fault)
			assert.ErrorIs(t, err, ramptest.ErrTwoOrders)
		})
	}
}

func TestInitializeFailsInEachWay(t *testing.T) {
	c := newCounter(t)
	var failure *ramp.APIError
	examples := must.Get(filepath.Glob("../testdata/7.1-*.json"))(t)
	require.NotEmpty(t, examples)
	for _, example := range examples { // a new failure of the interface is one of the service too
		want := must.Get(os.ReadFile(example))(t)
		var asked struct{ Data ramptest.InitializeFailure }
		require.NoError(t, json.Unmarshal(want, &asked))
		c.service.FailInitialize(asked.Data)
		_, err := c.client.Initialize(t.Context(), request())
		require.ErrorAs(t, err, &failure)
		assert.JSONEq(t, string(want),
			fmt.Sprintf(`{"code":%d,"message":%q,"data":%q}`, failure.Code, failure.Message, failure.Data), example)
	}
	c.service.FailInitialize(ramptest.Unavailable, ramptest.TooMany)
	for _, want := range []struct {
		status int
		after  time.Duration
	}{{503, 0}, {429, time.Second}} {
		_, err := c.client.Initialize(t.Context(), request())
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, want.status, failure.Status)
		assert.Equal(t, want.after, failure.RetryAfter)
	}
	c.initialize(t)
}

func TestAnAnswerThatNeverComesIsLost(t *testing.T) {
	var drop atomic.Bool
	c := newCounter(t, auditOff, before(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if drop.Swap(false) {
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	order := c.mint(t)
	drop.Store(true)
	sent := c.service.Advance(time.Hour)
	require.Len(t, sent, 2)
	assert.ErrorContains(t, sent[0].Err, "did not answer")
	assert.Zero(t, sent[0].Status)
	assert.Equal(t, ramptest.Confirmed, c.service.State(order))
}

// A forged call is distinguished from the genuine one, which follows it whatever the
// outcome of the forged one.
func TestTheGenuineCallFollowsTheForgedOne(t *testing.T) {
	const approved = `{"success":true,"errorCode":null,"data":null}`
	for _, test := range []struct {
		name   string
		forged http.HandlerFunc // what the game does with a call without an HMAC
		want   error            // of the first delivery
	}{
		{"it accepts them", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, approved) },
			ramptest.ErrForged},
		{"it drops them", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil},
		{"it rejects them",
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "who are you?",
					http.StatusUnauthorized)
			}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCounter(t, before(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
				if r.Method == http.MethodPost && r.Header.Get("X-Hmac-Signature") == "" {
					test.forged(w, r)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			id := c.initialize(t)
			_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10),
				ramptest.MissingHMAC(ramptest.OnValidate))
			assert.ErrorIs(t, err, test.want)

			order := c.mint(t, ramptest.MissingHMAC(ramptest.OnResult), ramptest.TransactionFails())
			for _, d := range c.service.Advance(time.Hour) {
				if d.Order == order {
					assert.Equal(t, 200, d.Status)
					assert.ErrorIs(t, d.Err, test.want)
				}
			}
			assert.Equal(t, ramptest.Confirmed, c.service.State(order))
			assert.True(t, c.shop.done[order.UUID], "the game has the genuine result")
		})
	}
}

// A UUID identifies one request (interface 2.5). A game that approves
// everything approves two under one.
func TestTwoRequestsUnderOneUUIDAreTwoOrders(t *testing.T) {
	same := func(c *ramptest.Config) { c.Digest = func(*ramp.ValidateRequest) ramp.Digest { return ramp.Digest{1} } }
	for _, config := range []func(*ramptest.Config){func(*ramptest.Config) {}, same} {
		for _, again := range []struct {
			name   string
			by     func(*ramptest.Service) placer
			player ramp.Session
			tokens int64
		}{
			{"another player", mints, ramp.Session{ID: "session-2", Token: ramp.NewAccessToken("token-2")}, 1},
			{"another amount", mints, session1, 2},
			{"another direction", burns, session1, 1},
		} {
			t.Run(again.name, func(t *testing.T) {
				c := newCounterOf(t, approvesEverything(), auditOff, config)
				id := c.initialize(t)
				must.Get(c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(1)))(t)
				_, err := again.by(c.service)(t.Context(), id, again.player, ramp.NewAmount(again.tokens))
				assert.ErrorIs(t, err, ramptest.ErrTwoOrders)
			})
		}
	}
}

// A game that knows the UUID rejects the digest of another player's request.
func TestTheDigestIsThatOfAUser(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t)
	_, err := c.service.Mint(t.Context(), order.UUID, ramp.Session{ID: "session-2", Token: session1.Token},
		ramp.NewAmount(10))
	assert.ErrorContains(t, err, "INVALID_MESSAGE")
}

// Each answer to simultaneous calls must follow the interface.
func TestEachAnswerAtOnceIsJudged(t *testing.T) {
	for others, want := range map[string]string{`{"success":false,"errorCode":"BUSY","data":null}`: "",
		`<html>`: "no JSON object"} {
		var first atomic.Bool
		c := newCounter(t, reporting, before(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
			if r.URL.Path == ramp.PathValidate && first.Swap(true) {
				_, _ = io.WriteString(w, others)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10),
			ramptest.ValidateAtOnce(4))
		assert.Equal(t, want == "", err == nil, others)
		assert.Contains(t, fmt.Sprint(err), want)
	}
}

// How many results a game receives, for faults that can be combined in either order.
func TestFaultsOfAResultGoTogether(t *testing.T) {
	afterNext, twice, atOnce := ramptest.ResultAfterNext(), ramptest.ResultTwice(), ramptest.ResultAtOnce(4)
	reorganized := ramptest.Reorganized()
	for _, test := range []struct {
		faults  []ramptest.Fault
		results int
	}{
		{[]ramptest.Fault{twice, twice}, 3},
		{[]ramptest.Fault{twice, atOnce}, 5},
		{[]ramptest.Fault{twice, reorganized}, 3},
		{[]ramptest.Fault{atOnce, reorganized}, 5},
		{[]ramptest.Fault{afterNext, twice}, 2},
		{[]ramptest.Fault{afterNext, atOnce}, 4},
		{[]ramptest.Fault{afterNext, reorganized}, 2},
		{[]ramptest.Fault{afterNext, twice, atOnce, reorganized}, 6},
	} {
		for range 2 {
			t.Run(fmt.Sprint(test.faults), func(t *testing.T) {
				c := newCounter(t)
				order, next := c.mint(t, test.faults...), c.mint(t)
				var got []*ramptest.PlacedOrder
				for _, d := range c.service.Advance(12 * time.Hour) {
					assert.NoError(t, d.Err)
					got = append(got, d.Order)
				}
				want := slices.Repeat([]*ramptest.PlacedOrder{order}, test.results)
				if slices.ContainsFunc(test.faults,
					func(f ramptest.Fault) bool { return f.String() == afterNext.String() }) {
					assert.Equal(t, append([]*ramptest.PlacedOrder{next}, want...), got)
				} else {
					assert.Equal(t, append(want, next), got)
				}
			})
			slices.Reverse(test.faults)
		}
	}
}

// A game that neither takes nor gives back looks like one that takes with a repeat of the validate call and gives
// back with the result, if both are answered between the same readings. Nobody can say that it is right.
func TestAMintForWhichNothingMovedBeforeTheAnswerIsUnknown(t *testing.T) {
	nothing := func(*server, *booking, bool) int { return http.StatusOK }
	game := &kind{check: approves, finish: nothing, script: func(p *trial) {
		p.order(step{fails: true})
		p.later(time.Hour)
		p.ends()
	}}
	for _, audit := range []func(*ramptest.Config){closed, func(*ramptest.Config) {}} {
		red, said := game.played(t, audit, false)
		assert.False(t, red, "nothing was taken, so nothing was due\n%s", said)
		red, said = game.played(t, audit, false, ramptest.ResultBeforeAnswer())
		assert.True(t, red, said)
		assert.Contains(t, said, "What the game moved is unknown")
	}
}

// Invalid faults make no call to the game.
func TestAFaultThatMakesNoSenseIsRejected(t *testing.T) {
	c := newCounter(t)
	id := c.initialize(t)
	for want, fault := range map[string]ramptest.Fault{
		"ResultAtOnce(0) delivers nothing":       ramptest.ResultAtOnce(0),
		"ResultAtOnce(-1) delivers nothing":      ramptest.ResultAtOnce(-1),
		"ValidateAtOnce(0) asks for nothing":     ramptest.ValidateAtOnce(0),
		"ResultLate(-1s) is in the past":         ramptest.ResultLate(-time.Second),
		"SlowAnswer(-1s) is in the past":         ramptest.SlowAnswer(ramptest.OnResult, -time.Second),
		`on validate or result, not on "assets"`: ramptest.LostAnswer("assets"),
	} {
		_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10), fault)
		assert.ErrorContains(t, err, want)
	}
	assert.Len(t, c.service.Events(), 1, "the initialize call")
}

// A failing test prints its values, so they must be readable.
func TestWhatAdvanceReturnsCanBePrinted(t *testing.T) {
	c := newCounter(t, reporting, func(c *ramptest.Config) { c.Epoch = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) })
	c.shop.answers = []error{errors.New("unreachable")}
	order := c.mint(t, ramptest.TransactionFails())
	id := order.UUID.String()[:8]
	assert.Equal(t, "mint "+id+" of 10 tokens (pending)", fmt.Sprint(order))
	assert.Equal(t, "[result #1 of mint "+id+" of 10 tokens (delivering) at 03:04:06: HTTP 500, next at 03:09:06: "+
		`ramptest: the game answered HTTP 500 and "INTERNAL_ERROR": its log may say why]`,
		fmt.Sprint(c.service.Advance(time.Minute)))
	assert.Equal(t, "an order without an intent", fmt.Sprint(&ramptest.PlacedOrder{}))
}

func TestAResultThatIsHeldBack(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t, ramptest.Perhaps(ramptest.ResultAfterNext()))
	assert.Empty(t, c.service.Advance(24*time.Hour), "it never comes without a next one")
	assert.Equal(t, ramptest.Delivering, c.service.State(order))
	require.NoError(t, c.service.Resend(t.Context(), order))
	next := c.mint(t)
	sent := c.service.Advance(time.Hour)
	require.Len(t, sent, 1, "it does not come again after it came by hand")
	assert.Same(t, next, sent[0].Order)

	order = c.mint(t, ramptest.Perhaps(ramptest.ResultAfterNext()))
	c.service.Advance(time.Hour)
	c.shop.answers = []error{errors.New("unreachable")}
	require.Error(t, c.service.Resend(t.Context(), order))
	next = c.mint(t)
	sent = c.service.Advance(time.Hour)
	require.Len(t, sent, 2, "it comes on the schedule after it failed by hand")
	assert.Equal(t, []*ramptest.PlacedOrder{next, order}, []*ramptest.PlacedOrder{sent[0].Order, sent[1].Order})
}

func TestTheServiceWaitsForASlowAnswerUntilItsTimeoutOnly(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Timeout = 3 * time.Second })
	c.mint(t, ramptest.SlowAnswer(ramptest.OnResult, time.Hour))
	begun := c.service.Now()
	sent := c.service.Advance(time.Second)
	require.Len(t, sent, 1)
	assert.ErrorIs(t, sent[0].Err, ramptest.ErrLostAnswer)
	assert.Equal(t, 4*time.Second, c.service.Now().Sub(begun), "a second, and the wait")
}

// A burn of more than the wallet holds fails on the chain, whoever mines it.
func TestDeliverTellsWhatTheChainHasMadeOfIt(t *testing.T) {
	c := newCounter(t, reporting)
	order := must.Get(c.service.Burn(t.Context(), c.initialize(t), c.session, ramp.NewAmount(5000),
		ramptest.StaysPending()))(t)
	require.NoError(t, c.service.Deliver(t.Context(), order, ramptest.Succeeded))
	assert.False(t, c.shop.results[0].Succeeded(), "the transaction got into a block with this call")
	require.NoError(t, c.service.Deliver(t.Context(), order, ramptest.Succeeded))
	assert.True(t, c.shop.results[1].Succeeded(), "it was in one before")
}
