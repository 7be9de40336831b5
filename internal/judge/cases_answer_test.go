package judge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

func answerMutants() map[string]mutant {
	return map[string]mutant{
		"result-not-lost/unknown": statusAt(ramp.PathResult, 500, 404),
		"result-not-lost/no-status": otherStatus(func(r *http.Request, asked message, _ int, _ string) bool {
			return r.URL.Path == ramp.PathResult && asked.at("receipt") != nil && asked.at("receipt.status") == nil
		}, 200),
		"result-not-lost/too-large": otherStatus(func(r *http.Request, _ message, _ int, _ string) bool {
			return r.URL.Path == ramp.PathResult && r.ContentLength > 4<<20
		}, 413),
		"result-not-lost/large-header": replies(func(_ *studio, r *http.Request, _ []byte) bool {
			size := 0
			for name, values := range r.Header {
				size += len(name) + len(strings.Join(values, ""))
			}
			return r.URL.Path == ramp.PathResult && size > 4<<10
		}, 431, "Request Header Fields Too Large"),
		"result-not-lost/misspelled": otherStatus(func(r *http.Request, _ message, _ int, _ string) bool {
			return r.URL.Path == ramp.PathResult+"s"
		}, 404),
		"result-not-lost/at-validate": otherStatus(func(r *http.Request, asked message, _ int, _ string) bool {
			return r.URL.Path == ramp.PathValidate && asked.at("receipt") != nil
		}, 400),
	}
}

// Middleware that changes the status of answers loses every failed result for good.
func TestMiddlewareThatLosesResultsFails(t *testing.T) {
	t.Parallel()
	always := func(*http.Request, message, int, string) bool { return true }
	failed := func(_ *http.Request, _ message, status int, _ string) bool { return status == 500 }
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
				v := j.Try(t.Context(), caseOf(t, "result-not-lost"))
				assert.Equal(t, judge.Failed, v.Outcome, v.String())
				assert.Equal(t, judge.Must, v.Level)
			})
		})
	}
}
