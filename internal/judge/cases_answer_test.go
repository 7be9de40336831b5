package judge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// otherStatus is middleware that gives the calls for which when holds another status than the game did.
func otherStatus(when func(path string, asked message, body []byte, status int) bool, to int) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		answer := answerOf(next, r)
		status := answer.Code
		if when(r.URL.Path, parse(body), body, status) {
			status = to
		}
		reply(w, status, answer.Body.String())
	})
}

func answerMutants() map[string]mutant {
	result := func(when func(asked message, body []byte) bool) func(string, message, []byte, int) bool {
		return func(path string, asked message, body []byte, _ int) bool {
			return path == ramp.PathResult && when(asked, body)
		}
	}
	return map[string]mutant{
		"result-not-lost/unknown": otherStatus(func(path string, _ message, _ []byte, status int) bool {
			return path == ramp.PathResult && status == 500
		}, 404),
		"result-not-lost/no-status": otherStatus(result(func(asked message, _ []byte) bool {
			return asked.at("receipt") != nil && asked.at("receipt.status") == nil
		}), 200),
		"result-not-lost/too-large": otherStatus(result(func(_ message,
			body []byte) bool {
			return len(body) > 4<<20
		}), 413),
		"result-not-lost/large-header": replies(func(_ *studio, r *http.Request, _ []byte) bool {
			size := 0
			for name, values := range r.Header {
				size += len(name) + len(strings.Join(values, ""))
			}
			return r.URL.Path == ramp.PathResult && size > 4<<10
		}, 431, "Request Header Fields Too Large"),
		"result-not-lost/misspelled": otherStatus(func(path string, _ message, _ []byte, _ int) bool {
			return path == ramp.PathResult+"s"
		}, 404),
		"result-not-lost/at-validate": otherStatus(func(path string, asked message, _ []byte, _ int) bool {
			return path == ramp.PathValidate && asked.at("receipt") != nil
		}, 400),
	}
}

// Middleware that changes the status of answers loses every failed result for good.
func TestMiddlewareThatLosesResultsFails(t *testing.T) {
	t.Parallel()
	always := func(string, message, []byte, int) bool { return true }
	failed := func(_ string, _ message, _ []byte, status int) bool { return status == 500 }
	for name, planted := range map[string]mutant{
		"500 becomes 503":             otherStatus(failed, 503),
		"500 becomes 502":             otherStatus(failed, 502),
		"500 becomes 400":             otherStatus(failed, 400),
		"500 becomes 200":             otherStatus(failed, 200),
		"every status becomes 200":    otherStatus(always, 200),
		"a large body gets 413":       answerMutants()["result-not-lost/too-large"],
		"another address answers 404": answerMutants()["result-not-lost/at-validate"],
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, planted, func(t *testing.T, s *studio) {
				j := s.unopened(t)
				if !assert.NoError(t, j.Ready(t.Context())) {
					return
				}
				for _, c := range judge.Cases() {
					if c.ID == "result-not-lost" {
						v := j.Try(t.Context(), c)
						assert.Equal(t, judge.Failed, v.Outcome, v.String())
						assert.Equal(t, judge.Must, v.Level)
					}
				}
			})
		})
	}
}
