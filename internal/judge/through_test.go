package judge_test

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
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

// confirmations replaces the confirmation of every result.
func confirmations(status int, contentType, body string) mutant {
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		answer := answerOf(next, r)
		if r.URL.Path == ramp.PathResult && strings.Contains(answer.Body.String(), `"success":true`) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return
		}
		reply(w, answer.Code, answer.Body.String())
	})
}

func TestAServerThatConfirmsInItsOwnWayIsToldOnce(t *testing.T) {
	t.Parallel()
	skipSlow(t, false)
	for name, m := range map[string]mutant{
		"HTTP 201":      confirmations(201, "application/json", yes),
		"text":          confirmations(200, "text/plain", "OK"),
		"success false": confirmations(200, "application/json", `{"success":false,"errorCode":null,"data":null}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, m, func(t *testing.T, s *studio) {
				s.target.Strict = false
				verdicts := judged(t, s)
				assert.Equal(t, []string{"result-answer"}, outcomes(verdicts, judge.Failed))
				assert.Equal(t, []string{"null-fields"}, outcomes(verdicts, judge.Unproven))
			})
		})
	}
}

// logsOnly is a server that reads the logs of a receipt in one form only, and says so in a
// form of its own. The form is that of the blockTimestamp of a log.
func logsOnly(form string) mutant {
	return says(ramp.PathResult, func(m message) bool {
		logs, _ := m.at("receipt.logs").([]any)
		if len(logs) == 0 {
			return false
		}
		time := logs[0].(map[string]any)["blockTimestamp"]
		_, isText := time.(string)
		return !(form == "text" && isText || form == "missing" && time == nil)
	}, 400, `{"error":"cannot read the body"}`)
}

// hexTimes is a server whose receipts are those of a library that wants every quantity in
// hex.
func hexTimes() mutant { return logsOnly("text") }

// Of each form of logs, the judge finds out whether the server reads it, before it blames
// anything else.
func TestTheFormOfLogsThatTheServerReadsIsFound(t *testing.T) {
	t.Parallel()
	for form, reads := range map[string]string{
		"text":    "receipt.logs[].blockTimestamp as hex text",
		"missing": "no receipt.logs[].blockTimestamp",
		"none":    "no logs in the receipt",
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, logsOnly(form), func(t *testing.T, s *studio) {
				s.target.Strict = false
				j := newJudge(t, s)
				require.Len(t, j.Opening(), 1)
				v := j.Opening()[0]
				assert.Equal(t, "result-log", v.Case.ID)
				assert.Equal(t, "a confirmation, which the same result with "+reads+" got", v.Want)
				for _, id := range []string{"mint-succeeds", "burn-succeeds", "repeats", "result-at-once"} {
					v := j.Try(t.Context(), caseOf(t, id))
					assert.Equal(t, judge.Passed, v.Outcome, v.String())
				}
			})
		})
	}
}

// What else is wrong with such a server is found behind it.
func TestAServerThatCannotReadALogIsToldOnce(t *testing.T) {
	t.Parallel()
	skipSlow(t, false)
	for id, m := range map[string]mutant{"result-log": {}, "burn-succeeds": {bug: "never grants"},
		"repeats": {bug: "takes again"}} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, both(hexTimes(), m), func(t *testing.T, s *studio) {
				s.target.Strict = false
				j := newJudge(t, s)
				var failed []string
				for _, v := range j.Opening() {
					failed = append(failed, v.Case.ID)
				}
				assert.Equal(t, slices.Compact([]string{"result-log", id}), failed)
				v := j.Try(t.Context(), caseOf(t, "result-contrary"))
				assert.NotEqual(t, judge.Failed, v.Outcome, v.String())
			})
		})
	}
}

// A server that never gives back what a mint took shows only with burns whether it
// believes a forged result.
func TestAForgedResultIsFoundWhereFailedMintsKeepTheirAssets(t *testing.T) {
	t.Parallel()
	inVirtualTime(t,
		both(trusts(ramp.PathResult, func(*studio, []string, []byte) bool { return true }),
			mutant{bug: "keeps what failed"}), func(t *testing.T, s *studio) {
			j := newJudge(t, s)
			require.Len(t, j.Opening(), 1)
			assert.Equal(t, "mint-fails", j.Opening()[0].Case.ID)
			v := j.Try(t.Context(), caseOf(t, "result-hmac-wrong"))
			assert.Equal(t, judge.Failed, v.Outcome, v.String())
			assert.Equal(t, "missing", v.Input.Name)
		})
}

// A game of whole tokens rejects an order for a fraction of one, whatever else is wrong.
func TestAnAmountThatIsTooLargeIsAtTheRate(t *testing.T) {
	t.Parallel()
	whole := rejects(func(m message) bool { return strings.Contains(amountText(m, "intent.to.0.amount"), ".") })
	inVirtualTime(t, both(whole, mutantOf(t, "mint-amount-too-much/2-63")), func(t *testing.T, s *studio) {
		s.target.Amount, s.target.Tokens, s.target.BurnTokens = 400, 4, 5
		v := newJudge(t, s).Try(t.Context(), caseOf(t, "mint-amount-too-much/2-63"))
		assert.Equal(t, judge.Failed, v.Outcome, v.String())
	})
}

// A burn that is granted again is told beside the mint that is taken again.
func TestASecondFaultOfAnAbilityIsTold(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, both(mutant{bug: "takes again"}, mutant{bug: "settles each time"}), func(t *testing.T, s *studio) {
		opening := newJudge(t, s).Opening()
		require.Len(t, opening, 1)
		assert.Equal(t, "repeats", opening[0].Case.ID)
		assert.Regexp(t,
			`^a balance that moved by -400 \(.*\); later \(mint failed again\) a balance that moved by 400 \(.*\); `+
				`later \(burn succeeded again\) a balance that moved by 400 \(.*\)$`, opening[0].Saw)
	})
}

// That failed mints keep their assets is not told again as a theft under a known uuid.
func TestAKeptFailedMintIsNotATheft(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, both(ownUUIDs(), mutant{bug: "keeps what failed"}), func(t *testing.T, s *studio) {
		v := newJudge(t, s).Try(t.Context(), caseOf(t, "validate-other/other-player"))
		assert.Equal(t, judge.Passed, v.Outcome, v.String())
	})
}

// What another program answered says nothing about keys.
func TestWhatTheHandlerDidNotAnswerIsSaid(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{
		404: "HTTP 404: there is no such path, or another program listens on this port",
		302: "HTTP 302, a redirect; the service does not follow it",
		413: "HTTP 413: something before it limits the size of a body",
		403: "HTTP 403: a framework's protection, for example against CSRF, or a proxy",
		200: "HTTP 200, a page of HTML",
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := newStudio(t,
				layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
					if r.URL.Path != ramp.PathValidate {
						next.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "text/html")
					w.WriteHeader(status)
					_, _ = w.Write([]byte("<html>no</html>"))
				}))
			err := opened(t, s.target)
			require.ErrorContains(t, err, "which begins '<html>no</html>'")
			assert.ErrorContains(t, err,
				"POST "+s.target.URL+
					"/api/validate was not answered by the game's handler, because the answer has no envelope ("+says+
					")")
			assert.NotContains(t, err.Error(), "(-key-file)")
			layer := status == 413 || status == 403
			assert.Equal(t, layer,
				strings.Contains(err.Error(), "Middleware or a proxy before the handler answers"), err)
			assert.Equal(t, !layer, strings.Contains(err.Error(), "(-validate)"), err)
		})
	}
}

// Where a redirect leads says what is wrong, often that the address is http or lacks a
// slash at its end.
func TestARedirectNamesItsLocation(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]string{ramp.PathAssets: "(-assets) or the address (-url) is wrong",
		ramp.PathValidate: "(-validate)", ramp.PathResult: "(-result)"} {
		s := newStudio(t, layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
			if r.URL.Path == path {
				http.Redirect(w, r, "https://game.example.com"+path+"/", http.StatusMovedPermanently)
				return
			}
			next.ServeHTTP(w, r)
		}))
		err := opened(t, s.target)
		assert.ErrorContains(t, err,
			"HTTP 301, a redirect to https://game.example.com"+path+"/; the service does not follow it")
		assert.ErrorContains(t, err, says)
	}
}

// An answer that is cut off is neither no answer nor a wrong one.
func TestAnAnswerThatIsCutOffIsSaid(t *testing.T) {
	t.Parallel()
	s := newStudio(t, layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if r.URL.Path != ramp.PathResult || !bytes.Contains(body, []byte(`"status":"0x1"`)) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Length", "45")
		_, _ = w.Write([]byte(`{"success":true,`))
	}))
	v := newJudge(t, s).Try(t.Context(), caseOf(t, "mint-succeeds"))
	assert.Equal(t, judge.Failed, v.Outcome, v.String())
	assert.Equal(t, "the answer was cut off after 16 bytes of its body: the connection was closed", v.Saw)
}

func TestAnAssetThatThePlayerDoesNotListIsSaid(t *testing.T) {
	t.Parallel()
	target := newStudio(t, mutant{}).target
	target.Asset = "item_silver"
	assert.ErrorContains(t, opened(t, target),
		"the player does not list the asset item_silver of the order (-asset); it lists 1000000 item_gold, 10000 "+
			"item_gem, 0 item_third")
}

func TestARateLimitOfEverythingEndsTheRun(t *testing.T) {
	t.Parallel()
	var limited atomic.Bool
	s := newStudio(t, layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		if limited.Load() {
			w.Header().Set("Retry-After", "3600")
			reply(w, 429, `{}`)
			return
		}
		next.ServeHTTP(w, r)
	}))
	j := newJudge(t, s)
	limited.Store(true)
	verdicts := j.Run(t.Context(), judge.Cases(), 1, nil)
	assert.ErrorContains(t, j.Err(), "3 cases in a row ended by it, so the remaining ones were not tried")
	untried := outcomes(verdicts, judge.Untried)
	assert.Equal(t, []string{"handler"}, outcomes(verdicts, judge.Failed))
	assert.Equal(t, len(verdicts)-len(outcomes(verdicts, judge.Passed))-1, len(untried),
		"only the abilities were tried before")
}

// literal is a server for which only the text 0x1 is a success, and which wants section 6
// in the rest of a result.
func literal() mutant {
	digits := regexp.MustCompile(`^[0-9.]+$`)
	return both(edits("receipt", func(m message, old any) any {
		status := m.at("receipt.status")
		if m["tx_hash"] == nil || status == nil || status == "" || status == "0x1" {
			return old
		}
		return map[string]any{"status": "0x0"}
	}), rejects(func(m message) bool {
		_, isText := m.at("intent.to.0.amount").(string)
		return m["tx_hash"] != nil &&
			(isText && digits.MatchString(m.text("intent.to.0.amount")) || m["session_id"] == nil ||
				strings.HasPrefix(m.text("session_id"), " "))
	}))
}

func TestAFormThatSection6DoesNotHaveIsOnlyNoted(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, literal(), func(t *testing.T, s *studio) {
		s.target.Strict = false
		j := newJudge(t, s)
		for _, id := range []string{"receipt-odd", "result-odd"} {
			v := j.Try(t.Context(), caseOf(t, id))
			assert.Contains(t, []judge.Outcome{judge.Passed, judge.Noted}, v.Outcome, v.String())
		}
	})
}

// A burn that is paid without a status counts, though the case is a SHOULD.
func TestPayingWithoutAStatusCounts(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, mutantOf(t, "receipt-no-status/burn-no-status"), func(t *testing.T, s *studio) {
		s.target.Strict = false
		v := newJudge(t, s).Try(t.Context(), caseOf(t, "receipt-no-status"))
		assert.Equal(t, judge.Failed, v.Outcome, v.String())
		assert.Equal(t, judge.Must, v.Level)
		assert.Equal(t, "burn-no-receipt", v.Input.Name)
	})
}

// An HMAC over text that lost its letters breaks every order about an item whose ID has
// some. That counts if the server trades one; otherwise it is only noted.
func TestALossyHMACCountsWhereAnItemIsNotASCII(t *testing.T) {
	t.Parallel()
	lossy := func(text []byte) []byte {
		return regexp.MustCompile(`[^\x00-\x7f]`).ReplaceAll(text, []byte("?"))
	}
	m := layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if !bytes.Equal(lossy(body), body) && s.key.Verify(lossy(body), r.Header.Get(ramp.HeaderHMAC)) != nil {
			r.Header.Set(ramp.HeaderHMAC, "")
		}
		next.ServeHTTP(w, r)
	})
	korean := func(m message) bool { return m.text("intent.to.0.id") == "검" }
	for name, c := range map[string]struct {
		mutant
		want judge.Outcome
	}{
		"it trades none": {m, judge.Noted},
		"it lists one": {both(m, replaces(ramp.PathAssets, `"assets":[`, `"assets":[{"id":"검","balance":"1"},`)),
			judge.Failed},
		"it approves one":  {both(m, approves(korean)), judge.Failed},
		"it declines them": {both(m, rejects(korean)), judge.Noted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, c.mutant, func(t *testing.T, s *studio) {
				s.target.Strict = false
				j := newJudge(t, s)
				for _, id := range []string{"validate-hmac-raw", "result-hmac-raw"} {
					v := j.Try(t.Context(), caseOf(t, id+"/unicode"))
					assert.Equal(t, c.want, v.Outcome, v.String())
				}
			})
		})
	}
}

// A call is shown with what repeats it, and without what it proves itself with.
func TestACallShowsNoSecret(t *testing.T) {
	t.Parallel()
	var tokens, sigs, hmacs sync.Map
	s := newStudio(t, layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		tokens.Store(strings.TrimPrefix(r.Header.Get(ramp.HeaderAuthorization), "Bearer "), nil)
		hmacs.Store(r.Header.Get(ramp.HeaderHMAC), nil)
		sigs.Store(parse(body).text("user_sig"), nil)
		answer := answerOf(next, r)
		if sig, ok := parse(answer.Body.Bytes()).at("data.validatorSig").(string); ok {
			sigs.Store(sig, nil)
		}
		// It repeats what it was sent.
		text := strings.Replace(answer.Body.String(), `"data":null`,
			`"said":"`+r.Header.Get(ramp.HeaderAuthorization)+" "+r.Header.Get(ramp.HeaderHMAC)+`","data":null`, 1)
		reply(w, answer.Code, text)
	}))
	j := newJudge(t, s)
	for _, id := range []string{"mint-succeeds", "sign-v", "validate-twice-approved", "assets-foreign-token",
		"rejection-envelope"} {
		v := j.Try(t.Context(), caseOf(t, id))
		if v.Calls == nil {
			v = s.unopened(t).Try(t.Context(), caseOf(t, id))
		}
		require.NotEmpty(t, v.Calls, id)
		shown := string(jsonOf(v.Calls))
		for _, secrets := range []*sync.Map{&tokens, &sigs, &hmacs} {
			secrets.Range(func(secret, _ any) bool {
				assert.True(t, len(secret.(string)) < 20 || !strings.Contains(shown, secret.(string)), "%s shows %s",
					id, secret)
				return true
			})
		}
	}
}

// An order that was approved for a stolen session is no order that takes its assets late.
// Otherwise, all other cases would wait for such effects.
func TestATheftIsNoLateEffect(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, mutantOf(t, "validate-foreign-token"), func(t *testing.T, s *studio) {
		s.target.Settle = 0 // as it is by default
		j := newJudge(t, s)
		assert.Equal(t, judge.Failed, j.Try(t.Context(), caseOf(t, "validate-foreign-token")).Outcome)
		assert.Less(t, j.Try(t.Context(), caseOf(t, "mint-several")).Took, time.Second)
	})
}

// A server may take a result with another tx_hash than the confirmed one for a contradiction.
func TestAnotherHashMayContradict(t *testing.T) {
	t.Parallel()
	var hashes sync.Map
	s := newStudio(t, replies(func(s *studio, r *http.Request, body []byte) bool {
		if r.URL.Path != ramp.PathResult || !s.authentic(r, body) {
			return false
		}
		m := parse(body)
		first, _ := hashes.LoadOrStore(m.text("uuid"), m.text("tx_hash"))
		return first != m.text("tx_hash")
	}, 500, no("OTHER_TRANSACTION")))
	v := newJudge(t, s).Try(t.Context(), caseOf(t, "result-odd/mint-long-tx-hash"))
	assert.Equal(t, judge.Passed, v.Outcome, v.String())
}
