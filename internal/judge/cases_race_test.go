package judge_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

func raceMutants() map[string]mutant {
	return map[string]mutant{
		"players-at-once/approvals": {bug: "approves for the latest caller"},
		"players-at-once/results":   {bug: "ends what the latest caller ends"},
		"players-at-once/assets":    {bug: "lists for the latest caller"},
		"orders-at-once/one-asset":  {bug: "locks validate and result apart"},
		"orders-at-once/two-assets": {bug: "locks each asset apart"},
		"orders-at-once/same-order": {bug: "locks in another order"},
		"orders-at-once/crossed":    {bug: "locks assets as they are listed"},
	}
}

// locked is a server that works on one call with each key at a time. It answers HTTP 400 to
// those that come meanwhile, as if they had waited for a lock too long.
func locked(key func(r *http.Request) string) mutant {
	var working sync.Map
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		if r.URL.Path != ramp.PathAssets {
			if _, taken := working.LoadOrStore(key(r), true); taken {
				reply(w, 400, no("LOCK_TIMEOUT"))
				return
			}
			defer working.Delete(key(r))
			time.Sleep(time.Millisecond)
		}
		next.ServeHTTP(w, r)
	})
}

// A result that is rejected because another call holds a lock is never delivered again.
func TestAResultThatGetsNoLockIsLost(t *testing.T) {
	skipSlow(t, false)
	t.Parallel()
	inVirtualTime(t, locked(func(*http.Request) string { return "" }), func(t *testing.T, s *studio) {
		causes := judge.Causes(judged(t, s))
		assert.Equal(t, "players-at-once", causes[0].First().Case.ID)
		assert.Equal(t, judge.Must, causes[0].Level)
		assert.Contains(t, causes[0].First().Saw, "HTTP 400")
	})
	inVirtualTime(t, locked(func(r *http.Request) string { return r.Header.Get(ramp.HeaderSession) }),
		func(t *testing.T, s *studio) {
			for id, want := range map[string]judge.Outcome{"players-at-once": judge.Passed,
				"results-at-once": judge.Failed} {
				v := newJudge(t, s).Try(t.Context(), caseOf(t, id))
				assert.Equal(t, want, v.Outcome, v.String())
			}
		})
}
