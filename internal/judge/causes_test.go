package judge_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// judged is a whole judgement of a server, with the ends that count.
func judged(t *testing.T, s *studio) []judge.Verdict {
	t.Helper()
	j := newJudge(t, s)
	verdicts := j.Run(t.Context(), judge.Cases(), 8, nil)
	require.NoError(t, j.Err())
	require.Len(t, verdicts, len(judge.Cases()))
	return verdicts
}

func outcomes(verdicts []judge.Verdict, o judge.Outcome) []string {
	var ids []string
	for _, v := range verdicts {
		if v.Outcome == o {
			ids = append(ids, v.Case.ID)
		}
	}
	return ids
}

// One server for each ability and each subject that no other test has as its only cause. Whatever else a defect brings
// with it, what to fix is said first.
func TestTheDefectIsTheFirstCause(t *testing.T) {
	t.Parallel()
	skipSlow(t, true)
	all := mutants(t)
	for _, id := range []string{
		"assets", "refusal", "mint-succeeds", "burn-succeeds", "burn-fails", "repeats/each", "balance", "unknown-order",
		"null-fields/assets", "validate-token-wrong/unknown", "validate-hmac-wrong/other-key",
		"validate-intent/no-from",
		"intent-asset-twice/mint", "mint-amount-too-much/2-32", "sign-unchanged/known", "validate-other/second-mint",
		"result-other-intent/more-back",
		"receipt/mint-failure-type-7", "http/validate-slow", "validate-after-end/success", "sign-nonce",
		"sign-rejected", "result-log", "receipt-status-2/mint-failure", "receipt-large/mint-logs",
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, all[id], func(t *testing.T, s *studio) {
				verdicts := judged(t, s)
				causes := judge.Causes(verdicts)
				require.NotEmpty(t, causes)
				var first []string
				for _, v := range causes[0].Failed {
					first = append(first, v.Case.ID)
				}
				family, _, _ := strings.Cut(id, "/")
				assert.Contains(t, first, family)
				t.Logf("%d causes; failed: %v; waiting: %v", len(causes), outcomes(verdicts, judge.Failed),
					outcomes(verdicts, judge.Unproven))
			})
		})
	}
}

// An order that expires is the cause of what fails on a slow machine, where a case takes
// longer than the order is kept.
func TestAnOrderThatExpiresIsTheFirstCause(t *testing.T) {
	skipSlow(t, false)
	t.Parallel()
	slow := bends(func(_ *studio, r *http.Request, _ []byte) {
		if r.URL.Path == ramp.PathResult {
			time.Sleep(150 * time.Millisecond)
		}
	})
	inVirtualTime(t, both(slow, mutant{bug: "expires + deletes what expires"}), func(t *testing.T, s *studio) {
		verdicts := judged(t, s)
		assert.Contains(t, outcomes(verdicts, judge.Failed), "repeats")
		assert.Equal(t, "result-late", judge.Causes(verdicts)[0].First().Case.ID)
	})
}

// What fails comes before what is only noted. Within each, what anybody can do comes first, then what
// stands before the handler, then the abilities in their order, then what mixes players up, then what many
// other cases need, then a MUST, then what gives, what loses and a form, then what needs only one call at a
// time, then the cause with which most inputs failed.
func TestCausesAreInTheOrderInWhichToFixThem(t *testing.T) {
	t.Parallel()
	verdict := func(id string, o judge.Outcome, level judge.Level) judge.Verdict {
		return judge.Verdict{Case: caseOf(t, id), InputVerdict: judge.InputVerdict{Outcome: o, Level: level}}
	}
	failed := func(id string) judge.Verdict { return verdict(id, judge.Failed, judge.Must) }
	harms := func(id string, harm judge.Harm) judge.Verdict {
		v := failed(id)
		v.Harm = harm
		return v
	}
	want := []judge.Verdict{
		harms("validate-token-wrong", judge.Open), failed("handler"), failed("assets"), failed("mint-fails"),
		failed("unknown-order"), failed("players-at-once"),
		failed("terms-rate"), harms("mints-at-once", judge.Gives), harms("mint-several", judge.Loses),
		failed("result-contrary"), verdict("assets-id-once", judge.Failed, judge.Should),
		verdict("refusal", judge.Noted, judge.Must), verdict("sign-v", judge.Noted, judge.Should),
	}
	for range 20 {
		mixed := slices.Clone(want)
		rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		unproven := verdict("mint-fails", judge.Unproven, judge.Must)
		unproven.Until = "mint-fails"
		var got []string
		for _, c := range judge.Causes(append(mixed, unproven, verdict("sign-form", judge.Passed, judge.Must))) {
			got = append(got, c.First().Case.ID)
			assert.Equal(t, c.First().Outcome, c.Outcome)
			assert.Equal(t, c.First().Case.ID == "mint-fails", c.Waiting == 1)
		}
		assert.Equal(t,
			"validate-token-wrong handler assets mint-fails unknown-order players-at-once terms-rate mints-at-once "+
				"mint-several result-contrary assets-id-once refusal sign-v", strings.Join(got, " "))
	}

	// What fails with one call at a time comes before what fails with several, however often.
	often := failed("orders-at-once")
	often.Inputs = []judge.InputVerdict{often.InputVerdict, often.InputVerdict}
	assert.Equal(t, "mint-several", judge.Causes([]judge.Verdict{often, failed("mint-several")})[0].First().Case.ID)

	// Cases with one fix are one cause; the one with more failed inputs comes first among equals.
	causes := judge.Causes([]judge.Verdict{failed("result-contrary"), failed("sign-unchanged"), failed("sign-every")})
	require.Len(t, causes, 2)
	assert.Len(t, causes[0].Failed, 2)
	assert.Equal(t, "result-contrary", causes[1].First().Case.ID)
}

// Of a server with several flaws, what anybody can take is named first, although other cases wait for another flaw.
func TestWhatAnybodyCanTakeIsTheFirstCause(t *testing.T) {
	t.Parallel()
	skipSlow(t, true)
	all := mutants(t)
	for id, open := range map[string][]string{
		"result-hmac-wrong/missing":     {"result-hmac-wrong"},
		"validate-hmac-wrong/other-key": {"validate-hmac-wrong"},
		"validate-token-wrong/unknown":  {"validate-token-wrong", "validate-foreign-token"},
		"result-other-session":          {"result-other-session"},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			flaws := both(all[id], both(all["null-fields/assets"], all["burn-succeeds"]))
			inVirtualTime(t, flaws, func(t *testing.T, s *studio) {
				var got []string
				for _, c := range judge.Causes(judged(t, s)) {
					if c.Outcome == judge.Failed {
						got = append(got, c.First().Case.ID)
					}
				}
				ability := slices.Index(got, "burn-succeeds")
				require.Positive(t, ability, got)
				assert.Equal(t, open, got[:ability])
				assert.Contains(t, got[ability:], "null-fields")
			})
		})
	}
}

// The report in docs/testing.md is that of a game that never gives back.
func TestTheDocumentedReportIsTrue(t *testing.T) {
	t.Parallel()
	skipSlow(t, false)
	document, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	inVirtualTime(t, both(rate(), mutant{bug: "keeps what failed"}), func(t *testing.T, s *studio) {
		s.target.Token, s.target.Amount, s.target.Tokens = "0x0000000000000000000000000000000000007e57", 2, 1
		s.target.Strict, s.target.Restart = false, nil
		verdicts := judged(t, s)
		causes := judge.Causes(verdicts)
		require.Len(t, causes, 1)
		first := causes[0].First()
		n := func(o judge.Outcome) int { return len(outcomes(verdicts, o)) }
		report := fmt.Sprintf(
			"1. %s (%s, interface %s, %s; %d cases wait for it)\n   saw:  %s %s: %s\n   want: %s\n   fix:  %s\n\n"+
				"failed: %d of %d cases failed, first %s; %d noted, %d unproven, %d unasked, %d waived, %d skipped, "+
				"%d untried",
			first.Case.Title, first.Level, first.Case.Section, first.Case.ID, causes[0].Waiting, first.Call.Method,
			first.Call.Path, first.Saw, first.Want, first.Case.Fix,
			n(judge.Failed), len(verdicts), first.Case.ID, n(judge.Noted), n(judge.Unproven), n(judge.Unasked),
			n(judge.Waived), n(judge.Skipped), n(judge.Untried))
		assert.True(t, strings.Contains(string(document), report), "docs/testing.md must have the report\n%s", report)
	})
}

// behind is a server whose assets endpoint asks a replica that is behind.
func behind(lag time.Duration) mutant {
	return behindBy(func([]byte) time.Duration { return lag })
}

// behindBy is like behind. The lag depends on the call that has the effect.
func behindBy(lag func(call []byte) time.Duration) mutant {
	type state struct {
		since time.Time // when the replica shows it
		body  string
	}
	var mu sync.Mutex
	states := make(map[string][]state)
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, call []byte, next http.Handler) {
		session := r.Header.Get(ramp.HeaderSession)
		now := func() string {
			get := r.Clone(r.Context())
			get.Method, get.URL.Path, get.Body, get.ContentLength = http.MethodGet, ramp.PathAssets, http.NoBody, 0
			answer := answerOf(next, get)
			if !strings.Contains(answer.Body.String(), `"success":true`) {
				return ""
			}
			return answer.Body.String()
		}
		remember := func(since time.Time) {
			if body := now(); body != "" {
				mu.Lock()
				states[session] = append(states[session], state{since, body})
				mu.Unlock()
			}
		}
		switch {
		case r.Method == http.MethodPost && (r.URL.Path == ramp.PathValidate || r.URL.Path == ramp.PathResult):
			mu.Lock()
			known := len(states[session]) > 0
			mu.Unlock()
			if !known {
				remember(time.Time{})
			}
			next.ServeHTTP(w, r)
			remember(time.Now().Add(lag(call)))
		case r.URL.Path == ramp.PathAssets && r.Method == http.MethodGet && now() != "":
			mu.Lock()
			defer mu.Unlock()
			body := ""
			for _, s := range states[session] {
				if !time.Now().Before(s.since) {
					body = s.body
				}
			}
			if body == "" {
				next.ServeHTTP(w, r)
				return
			}
			reply(w, 200, body)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// both puts one layer in front of another.
func both(outer, inner mutant) mutant {
	return mutant{bug: outer.bug + " + " + inner.bug, wrap: func(s *studio, next http.Handler) http.Handler {
		for _, m := range []mutant{inner, outer} {
			if m.wrap != nil {
				next = m.wrap(s, next)
			}
		}
		return next
	}}
}

// An asset may move by itself. It is no order's doing.
func TestAnAssetThatMovesByItselfIsLeftOut(t *testing.T) {
	t.Parallel()
	began := time.Now()
	m := answers(ramp.PathAssets, func(_ *studio, _ *http.Request, _ message, body string) string {
		energy := time.Since(began).Milliseconds() / 20 % 30 // too little for an order
		return strings.Replace(body, `"assets":[`,
			`"assets":[{"id":"energy","balance":"`+ramp.NewAmount(energy).String()+`"},`, 1)
	})
	for _, id := range []string{"mint-succeeds", "mint-fails", "validate-hmac-wrong"} {
		v := newJudge(t, newStudio(t, m)).Try(t.Context(), caseOf(t, id))
		assert.Equal(t, judge.Passed, v.Outcome, v.String())
	}
}

// What is gone gets no verdict; which case ended it is said. A server whose connections to its
// database are used up still answers what it rejects before it needs one.
func TestAServerThatIsGoneEndsTheJudgement(t *testing.T) {
	t.Parallel()
	ends := func(body []byte) bool { return bytes.Contains(body, []byte("item_of_nobody")) }
	var stuck atomic.Bool
	for saw, m := range map[string]mutant{
		"no answer": bends(func(s *studio, _ *http.Request, body []byte) {
			if ends(body) {
				s.server.Listener.Close()
				s.server.CloseClientConnections()
			}
		}),
		"timeout": hangs(func(_ *studio, r *http.Request, body []byte) bool {
			if ends(body) {
				stuck.Store(true)
			}
			return stuck.Load() && r.Header.Get(ramp.HeaderSession) != ""
		}),
	} {
		inVirtualTime(t, m, func(t *testing.T, s *studio) {
			j := newJudge(t, s)
			cases := []judge.Case{caseOf(t, "mint-succeeds"), caseOf(t, "intent-unknown-asset"),
				caseOf(t, "mint-several"), caseOf(t, "sign-v")}
			var got []judge.Outcome
			verdicts := j.Run(t.Context(), cases, 1, nil)
			for _, v := range verdicts {
				got = append(got, v.Outcome)
			}
			assert.Equal(t, []judge.Outcome{judge.Passed, judge.Failed, judge.Untried, judge.Untried}, got)
			assert.Contains(t, verdicts[1].Saw, saw)
			assert.EqualError(t, j.Err(),
				"the server stopped answering during intent-unknown-asset; the remaining cases were not tried")
		})
	}
}

// With a restart, the case that stops the server is found, and the others are judged.
func TestTheCaseThatStopsTheServerIsFound(t *testing.T) {
	t.Parallel()
	for name, outside := range map[string]bool{"a crash": false, "a kill from outside": true} {
		var dead, killed atomic.Bool
		inVirtualTime(t, layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if bytes.Contains(body, []byte("item_of_nobody")) && !(outside && killed.Swap(true)) {
				dead.Store(true)
			}
			time.Sleep(time.Millisecond) // so that other cases are being tried when it stops
			if dead.Load() {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		}), func(t *testing.T, s *studio) {
			s.target.Restart = func(context.Context) error {
				dead.Store(false)
				return nil
			}
			s.target.Timeout = 10 * time.Second
			j := newJudge(t, s)
			cases := []judge.Case{caseOf(t, "intent-unknown-asset"), caseOf(t, "mint-succeeds"),
				caseOf(t, "mint-again"), caseOf(t, "sign-v"), caseOf(t, "mint-several")}
			verdicts := j.Run(t.Context(), cases, 3, nil)
			require.Len(t, verdicts, 5)
			if outside {
				assert.ErrorContains(t, j.Err(), "but not when each was tried alone after a restart")
				return
			}
			require.NoError(t, j.Err(), name)
			assert.Equal(t, []string{"intent-unknown-asset"}, outcomes(verdicts, judge.Failed))
			assert.Len(t, outcomes(verdicts, judge.Passed), 4)
			assert.Contains(t, verdicts[0].Note, "it crashed, or it hangs")
		})
	}
}

// An asset of the orders that moves by itself ends the run: every case would blame the
// server for it.
func TestAnAssetOfTheOrdersThatMovesEndsTheJudgement(t *testing.T) {
	t.Parallel()
	gold := regexp.MustCompile(`("id":"item_gold",[^}]*"balance":")[0-9]+`)
	inVirtualTime(t, answers(ramp.PathAssets, func(_ *studio, _ *http.Request, _ message, body string) string {
		return gold.ReplaceAllString(body, "${1}"+strconv.FormatInt(time.Now().UnixMilli()/20, 10))
	}), func(t *testing.T, s *studio) {
		s.target.Asset = "item_gold"
		j := s.unopened(t)
		j.Run(t.Context(),
			[]judge.Case{caseOf(t, "mint-succeeds"), caseOf(t, "http"), caseOf(t, "mints-at-once")}, 1, nil)
		assert.EqualError(t, j.Err(),
			"the player's item_gold moves without an order; name an asset that does not (-asset)")
	})
}

// A server may close an idle connection whenever it likes, also when the next call has
// just been sent.
func TestEachCallHasAConnectionOfItsOwn(t *testing.T) {
	t.Parallel()
	var reused atomic.Int64
	s := newStudio(t, bends(func(_ *studio, r *http.Request, _ []byte) {
		if !r.Close {
			reused.Add(1)
		}
	}))
	assert.Equal(t, judge.Passed, s.unopened(t).Try(t.Context(), caseOf(t, "mint-succeeds")).Outcome)
	assert.Zero(t, reused.Load())
}
