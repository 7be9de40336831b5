package ramptest_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// resultsAnswered lets the handler act on each result, and answers the one with a number as answer
// does.
func resultsAnswered(number int, answer func(http.ResponseWriter)) func(*ramptest.Config) {
	return func(c *ramptest.Config) {
		inner, n := c.Handler, 0
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/result" {
				if n++; n == number {
					inner.ServeHTTP(&discard{header: http.Header{}}, r)
					answer(w)
					return
				}
			}
			inner.ServeHTTP(w, r)
		})
	}
}

func answersWith(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// A confirmation is HTTP 200 (6) with the envelope of 4.3, the first time and each time after that.
// Whoever looks is told the same about any other.
func TestAConfirmationIsTheEnvelope(t *testing.T) {
	const first, second = 1, 2
	for _, test := range []struct {
		name   string
		number int
		answer func(http.ResponseWriter)
		want   string // after "answer breaks the interface: "
	}{
		{"success is false", first, answersWith(200, `{"success":false,"errorCode":"LATER","data":null}`),
			`success is false (4.3), with "LATER"`},
		{"a body without its end", first, answersWith(200, `{"success":true,"errorCode":nu`),
			"HTTP 200 with a body that is no JSON object"},
		{"no body", first, answersWith(200, ""), "HTTP 200 with a body that is no JSON object"},
		{"data", first, answersWith(200, `{"success":true,"errorCode":null,"data":{}}`),
			"data of a result's answer is not null (4.3)"},
		{"a repeat is success false", second, answersWith(200, `{"success":false,"errorCode":"DONE","data":null}`),
			`success is false (4.3), with "DONE"`},
		{"a repeat has no body", second, answersWith(200, ""), "HTTP 200 with a body that is no JSON object"},
		{"a repeat is a conflict", second, answersWith(409, `{"success":false,"errorCode":"DONE","data":null}`),
			`HTTP 409 and "DONE", after it had confirmed (6)`},
		{"a repeat is a text", second, answersWith(409, "done"),
			"HTTP 409 with a body that is no JSON object, after it had confirmed (6)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), resultsAnswered(test.number, test.answer))
			faults := slices.Repeat([]ramptest.Fault{ramptest.ResultTwice()}, test.number-1)
			o, err := p.order(t, "session-1", false, append(faults, ramptest.TransactionFails())...)
			require.NoError(t, err)
			sent := p.service.Advance(time.Minute)
			want := "onfirmed, but its answer breaks the interface: " + test.want
			assert.ErrorContains(t, sent[test.number-1].Err, "ramptest: c"+want)
			assert.Equal(t, ramptest.Confirmed, p.service.State(o))

			_, order := p.control(t, "GET", "/control/orders/"+o.UUID.String(), "")
			assert.Contains(t, order.Said, "C"+want+".")
			assert.True(t, order.Attention)
			_, list := p.control(t, "GET", "/control/orders?attention=true", "")
			require.Len(t, list.Orders, 1)
			assert.Equal(t, order.Said, list.Orders[0].Said)
			assert.Contains(t, saidOf(p.service.Events(), o.UUID), "C"+want+".")
			failed, said := p.test.end()
			assert.True(t, failed)
			assert.Contains(t, said, "C"+want+".")
		})
	}
}

// saidOf returns what there is to say about the calls of an order.
func saidOf(events []control.Event, id uuid.UUID) string {
	var said []string
	for _, e := range events {
		if e.UUID == id {
			said = append(said, e.Said)
		}
	}
	return strings.Join(said, "\n")
}
