package ramptest_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

const envelope = `{"success":true,"errorCode":null,"data":null}`

// answersFirst answers the first call of a path. If acts is set, the handler acts on it.
func answersFirst(path string, acts bool, status int, body string) func(*ramptest.Config) {
	return func(c *ramptest.Config) {
		inner, answered := c.Handler, false
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answered || r.URL.Path != path {
				inner.ServeHTTP(w, r)
				return
			}
			if answered = true; acts {
				inner.ServeHTTP(&discard{header: http.Header{}}, r)
			}
			answersWith(status, body)(w)
		})
	}
}

// A game does not know that its answer is lost on purpose. So an answer that would have lost the result,
// or that breaks the interface, is told although the result is sent again.
func TestALostAnswerIsJudgedLikeOneThatArrives(t *testing.T) {
	const acts, idle = true, false
	const busy = `{"success":false,"errorCode":"BUSY","data":null}`
	const over = ", after which the result is not sent again (6)"
	for _, test := range []struct {
		name   string
		acts   bool
		status int
		body   string
		want   string // after "breaks the interface: "
	}{
		{"503", idle, 503, busy, `HTTP 503 and "BUSY"` + over},
		{"503, and it has acted", acts, 503, busy, `HTTP 503 and "BUSY"` + over},
		{"a page of a proxy", idle, 502, "<html>",
			"HTTP 502 with a body that is no JSON object: it is an HTML page" + over},
		{"a conflict", acts, 409, busy, `HTTP 409 and "BUSY"` + over},
		{"no content", acts, 204, "", "HTTP 204 with a body that is no JSON object" + over},
		{"created", acts, 201, envelope, "success with HTTP 201 instead of 200 (4.3)" + over},
		{"an empty success", acts, 200, "", "HTTP 200 with a body that is no JSON object"},
		{"a failure as a success", acts, 200, busy, `success is false (4.3), with "BUSY"`},
	} {
		for _, lost := range []ramptest.Fault{ramptest.LostAnswer(ramptest.OnResult),
			ramptest.SlowAnswer(ramptest.OnResult, time.Minute)} {
			t.Run(test.name+"/"+lost.String(), func(t *testing.T) {
				p := play(t, newVault(), answersFirst("/api/result", test.acts, test.status, test.body))
				o, err := p.order(t, "session-1", false, ramptest.TransactionFails(), lost)
				require.NoError(t, err)
				sent := p.service.Advance(2 * time.Second)
				require.Len(t, sent, 1)
				assert.ErrorIs(t, sent[0].Err, ramptest.ErrLostAnswer)
				assert.ErrorContains(t, sent[0].Err, "breaks the interface: "+test.want)
				assert.Zero(t, sent[0].Status, "the service knows nothing of it")

				p.attends(t, o, "The answer was lost on purpose, and it breaks the interface: "+test.want+".")
				sent = p.service.Advance(time.Hour)
				require.Len(t, sent, 1, "it is sent again as if nothing had arrived")
				assert.NoError(t, sent[0].Err)
				assert.Equal(t, ramptest.Confirmed, p.service.State(o))

				p.attends(t, o, "Confirmed, but its answer breaks the interface: "+test.want+".")
				assert.Contains(t, saidOf(p.service.Events(), o.UUID),
					"The answer was lost on purpose, and it breaks the interface: "+test.want+".")
				failed, said := p.test.end()
				assert.True(t, failed)
				assert.Contains(t, said, "Confirmed, but its answer breaks the interface: "+test.want+".")
			})
		}
	}
}

// attends asserts what is said about an order that needs attention.
func (p *played) attends(t *testing.T, o *ramptest.PlacedOrder, want string) {
	t.Helper()
	_, order := p.control(t, "GET", "/control/orders/"+o.UUID.String(), "")
	assert.Contains(t, order.Said, want)
	assert.True(t, order.Attention)
	_, list := p.control(t, "GET", "/control/orders?attention=true", "")
	require.Len(t, list.Orders, 1)
	assert.Equal(t, order.Said, list.Orders[0].Said)
}

// The confirmation of a result for which nothing has moved would have lost it, had it arrived.
func TestALostConfirmationOwesWhatIsDue(t *testing.T) {
	p := play(t, newVault(), answersFirst("/api/result", false, 200, envelope))
	o, err := p.order(t, "session-1", false, ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult))
	require.NoError(t, err)
	sent := p.service.Advance(time.Hour)
	require.Len(t, sent, 2)
	assert.ErrorContains(t, sent[0].Err, "failed on chain: the game must give back")
	_, order := p.control(t, "GET", "/control/orders/"+o.UUID.String(), "")
	assert.True(t, order.Loss)
	failed, _ := p.test.end()
	assert.True(t, failed)
}

// A game may fail at any time, and may reject what contradicts the chain or pays for nothing.
func TestALostAnswerIsForgivenWhatOneThatArrivesIs(t *testing.T) {
	const refusal = `{"success":false,"errorCode":"NO","data":null}`
	for _, test := range []struct {
		name   string
		game   func(*ramptest.Config)
		burn   bool
		faults []ramptest.Fault
	}{
		{name: "it has acted and confirmed", game: answersFirst("/api/result", true, 200, envelope)},
		{name: "500", game: answersFirst("/api/result", false, 500, refusal)},
		{name: "500, and it has acted", game: answersFirst("/api/result", true, 500, refusal)},
		{name: "a page with HTTP 500", game: answersFirst("/api/result", false, 500, "<html>")},
		{name: "the service repeats after any 5xx", game: func(c *ramptest.Config) {
			answersFirst("/api/result", false, 503, refusal)(c)
			c.Retry = func(status int) bool { return status >= 500 }
		}},
		{name: "the store failed on purpose", game: func(*ramptest.Config) {},
			faults: []ramptest.Fault{ramptest.StoreFails()}},
		{name: "a burn that pays for nothing", game: rejectsResults, burn: true,
			faults: []ramptest.Fault{ramptest.BurnsLess()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), test.game)
			faults := append(test.faults, ramptest.LostAnswer(ramptest.OnResult))
			if !test.burn {
				faults = append(faults, ramptest.TransactionFails())
			}
			_, err := p.order(t, "session-1", test.burn, faults...)
			require.NoError(t, err)
			p.service.Advance(time.Hour)
			failed, said := p.test.end()
			assert.False(t, failed, said)
		})
	}
}

func rejectsResults(c *ramptest.Config) {
	inner := c.Handler
	c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/result" {
			answersWith(409, `{"success":false,"errorCode":"NO","data":null}`)(w)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func TestALostAnswerToAContradictionIsForgiven(t *testing.T) {
	p := play(t, newVault(), answersFirst("/api/result", false, 409, `{"success":false,"errorCode":"NO","data":null}`))
	o, err := p.order(t, "session-1", false, ramptest.LostAnswer(ramptest.OnResult), ramptest.ResultLate(time.Minute))
	require.NoError(t, err)
	p.service.Advance(time.Second) // the block, but not the result
	err = p.service.Deliver(t.Context(), o, ramptest.Failed)
	assert.EqualError(t, err, ramptest.ErrLostAnswer.Error())
	p.service.Advance(time.Hour)
	failed, said := p.test.end()
	assert.False(t, failed, said)
}

// A repeat that only a fault makes does not mend an answer. One by hand does: whoever makes it has
// mended the game.
func TestARepeatOnPurposeMendsNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"503", 503, "", "HTTP 503, after which the result is not sent again (6)"},
		{"an empty success", 200, "", "HTTP 200 with a body that is no JSON object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), answersFirst("/api/result", true, test.status, test.body))
			o, err := p.order(t, "session-1", false, ramptest.TransactionFails(), ramptest.ResultTwice())
			require.NoError(t, err)
			sent := p.service.Advance(time.Hour)
			require.Len(t, sent, 2)
			assert.Error(t, sent[0].Err)
			assert.NoError(t, sent[1].Err)
			p.attends(t, o, "Confirmed, but its answer breaks the interface: "+test.want+".")

			require.NoError(t, p.service.Resend(t.Context(), o))
			failed, said := p.test.end()
			assert.False(t, failed, said)
		})
	}
}

// The answer to a validate call is judged, too, as far as it claims to be an approval.
func TestALostApprovalIsJudged(t *testing.T) {
	const refusal = `{"success":false,"errorCode":"NO","data":null}`
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   string // "" if nothing is said
	}{
		{"an approval without user_sig", 200, `{"success":true,"errorCode":null,"data":{}}`,
			"the game's answer breaks the interface: data.userSig is not user_sig as it was sent (2.6)"},
		{"a page", 200, "<html>",
			"the game's answer breaks the interface: HTTP 200 with a body that is no JSON object: " +
				"it is an HTML page"},
		{"a rejection", 200, refusal, ""},
		{"a failure", 500, "<html>", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), answersFirst("/api/validate", false, test.status, test.body))
			_, err := p.order(t, "session-1", false, ramptest.LostAnswer(ramptest.OnValidate))
			require.ErrorIs(t, err, ramptest.ErrLostAnswer)
			if test.want == "" {
				assert.EqualError(t, err, ramptest.ErrLostAnswer.Error())
				return
			}
			assert.ErrorContains(t, err, test.want)
			calls := slices.DeleteFunc(p.service.Events(),
				func(e control.Event) bool { return e.Kind != control.KindValidate })
			require.Len(t, calls, 1)
			assert.True(t, calls[0].Failed)
			assert.Contains(t, calls[0].Said, "The answer was lost on purpose, and it breaks the interface: ")
		})
	}
}
