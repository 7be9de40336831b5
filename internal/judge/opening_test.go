package judge_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// opened is what the opening says of a server.
func opened(t *testing.T, target judge.Config) error {
	t.Helper()
	j, err := judge.New(target)
	require.NoError(t, err)
	defer j.Close()
	return j.Ready(t.Context())
}

// The first cause is the one that the answer speaks for.
func TestTheCausesFollowTheAnswer(t *testing.T) {
	t.Parallel()
	always := func(status int, body string) mutant { return replies(at(ramp.PathValidate), status, body) }
	code := func(status int, code string) mutant { return always(status, no(code)) }
	for name, c := range map[string]struct {
		mutant
		change func(*judge.Config)
		first  string
	}{
		"another project": {code(400, "INVALID_PROJECT_ID"), nil, "the project is wrong (-project)"},
		"no such path": {always(404, "404 page not found"), nil,
			"the path of the endpoint is wrong (-validate)"},
		"no such path, typed": {mutant{}, func(target *judge.Config) { target.ValidatePath = "/api/validat" },
			"the path of the endpoint is wrong (-validate)"},
		"a page":      {always(200, "<html>"), nil, "the path of the endpoint is wrong (-validate)"},
		"another key": {code(401, "UNAUTHORIZED"), nil, "the HMAC key is wrong (-key-file)"},
		"a signature": {code(400, "BAD_SIGNATURE"), nil, "the HMAC key is wrong (-key-file)"},
		"an HMAC": {code(401, "HMAC_INVALID"), nil,
			"the HMAC key is wrong (-key-file), or the server decodes it differently (-key-encoding)\n  middleware " +
				"or a proxy before the handler reads, cuts or changes the body"},
		"no HMAC": {code(401, "HMAC_MISSING"), nil,
			"middleware or a proxy before the handler reads, cuts or changes the body, or removes the HMAC header"},
		"a large body": {code(413, "BODY_TOO_LARGE"), nil,
			"the server, or a proxy before it, limits the size of a body"},
		"a session": {code(403, "SESSION_EXPIRED"), nil,
			"the access token or the session is accepted at assets but not at validate"},
		"a rate": {code(200, "INVALID_RATE"), nil, "the order does not match the game's rate"},
		"the terms": {code(200, "INVALID_MESSAGE"), nil,
			"the token contract is wrong (-token)\n  the order does not match the game's rate"},
		"a wallet": {code(200, "WALLET_MISMATCH"), nil, "the server expects another wallet"},
		"a balance": {code(400, "INSUFFICIENT_BALANCE"), nil,
			"validate looks at another balance than the one that the assets endpoint lists"},
		"a UUID": {code(200, "UNKNOWN_UUID"), nil, "the server approves only UUIDs of its own initialize calls"},
		"swapped paths": {code(500, "INVALID_RECEIPT_STATUS"), nil,
			"the server takes a validate call for a result: its paths are swapped"},
		"a crash": {code(500, "INTERNAL_ERROR"), nil, "the validate handler has a bug"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := newStudio(t, c.mutant).target
			if c.change != nil {
				c.change(&target)
			}
			err := opened(t, target)
			assert.ErrorContains(t, err, "Likely causes, most likely first:\n  "+c.first)
			if name == "a large body" {
				assert.NotContains(t, err.Error(), "(-key-file)", "nothing suggests the other causes")
			}
		})
	}
}

// A server that confirms results on a chain does not know the judge's transactions. It is
// asked as often as any result that HTTP 500 answered, twice, and once more a moment later.
func TestA500ToTheOpeningResultEndsTheRun(t *testing.T) {
	t.Parallel()
	results := 0
	target := newStudio(t, replies(func(s *studio, r *http.Request, body []byte) bool {
		if r.URL.Path == ramp.PathResult {
			results++
		}
		return r.URL.Path == ramp.PathResult
	}, 500, no("INTERNAL_ERROR"))).target
	err := opened(t, target)
	assert.ErrorContains(t, err, "the server confirms results on a chain")
	assert.ErrorContains(t, err, "the result handler has a bug")
	assert.Equal(t, 4, results)
}

// An order that is stored a moment after its approval is unknown to a result that comes at once.
func TestAnOrderThatIsStoredTooLateIsSaid(t *testing.T) {
	t.Parallel()
	var approved sync.Map // by uuid
	inVirtualTime(t, layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		id := parse(body).text("uuid")
		if since, ok := approved.Load(id); ok && r.URL.Path == ramp.PathResult &&
			time.Since(since.(time.Time)) < 30*time.Millisecond {
			reply(w, 500, no("UNKNOWN_ORDER"))
			return
		}
		next.ServeHTTP(w, r)
		approved.LoadOrStore(id, time.Now())
	}), func(t *testing.T, s *studio) {
		err := s.unopened(t).Ready(t.Context())
		assert.ErrorContains(t, err, "the result of a plain mint was answered with HTTP 500")
		assert.ErrorContains(t, err, "approves an order before it is stored")
	})
}

func TestACallWithoutAnAnswerIsNamed(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]string{
		ramp.PathValidate: "/api/validate: saw no answer: timeout after 1s",
		ramp.PathResult:   "the result of a plain mint got no answer (timeout after 1s)\nThere are two likely causes:",
	} {
		target := newStudio(t, hangs(at(path))).target
		target.Timeout = time.Second // in which the other calls are answered on a busy machine
		assert.ErrorContains(t, opened(t, target), says)
	}
}

// A result handler may have its fault in one sort of order only. The rest is judged.
func TestA500ToTheResultsOfBurnsIsOneCause(t *testing.T) {
	skipSlow(t, false)
	t.Parallel()
	inVirtualTime(t, says(ramp.PathResult, is("intent.type", "disassemble"), 500, no("X")),
		func(t *testing.T, s *studio) {
			causes := judge.Causes(judged(t, s))
			require.NotEmpty(t, causes)
			assert.Equal(t, "burn-succeeds", causes[0].First().Case.ID)
			assert.Len(t, causes, 1)
		})
}

func TestAnotherValidatorIsFoundAtTheFirstSignature(t *testing.T) {
	t.Parallel()
	target := newStudio(t, mutant{}).target
	is := target.Validator
	target.Validator = common.HexToAddress("0x0000000000000000000000000000000000000001")
	err := opened(t, target)
	assert.ErrorContains(t, err,
		"is signed by "+is.Hex()+", but -validator is 0x0000000000000000000000000000000000000001")
	// A key that signs something else is for the cases.
	assert.NoError(t, opened(t, newStudio(t, mutantOf(t, "sign-unchanged/known")).target))
}

func TestAssetsWithoutDataSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	target := newStudio(t, replies(at(ramp.PathAssets), 200, yes)).target
	assert.ErrorContains(t, opened(t, target), "data null, in which data.v1.assets is missing")
}

// The first of the calls with a token uses it up, so no page works.
func TestATokenForOneCallIsNamed(t *testing.T) {
	t.Parallel()
	var used sync.Map
	target := newStudio(t, replies(func(_ *studio, r *http.Request, _ []byte) bool {
		_, again := used.LoadOrStore(r.Header.Get(ramp.HeaderAuthorization), true)
		return again
	}, 401, no("INVALID_TOKEN"))).target
	err := opened(t, target)
	assert.ErrorContains(t, err,
		"The server has listed assets for this token in an earlier call. A token must last for several calls")
	assert.NotContains(t, err.Error(), "Likely causes")
}

// Nothing but the path, a layer before the handler or the session explains that the first
// call fails.
func TestAnAssetsCallThatFailsIsExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		says   []string
	}{
		"a prefix": {404, no("NOT_FOUND"),
			[]string{
				"The path of the endpoint (-assets) or the address (-url) is wrong, or the server's router strips " +
					"or adds a prefix."}},
		"a layer": {401, `{"error":"missing jwt"}`,
			[]string{`the answer begins '{"error":"missing jwt"}'`, "was not answered by the game's handler",
				"Middleware or a proxy before the handler answers"}},
		"a token": {401, no("INVALID_USER"),
			[]string{`the answer begins '{"success":false,"errorCode":"INVALID_USER"`,
				"The server does not accept the access token or the session (-login, -session), or wants a header " +
					"that the service does not send; it sends X-Dapp-Authorization, not Authorization."}},
		"a bug": {500, no("X"), []string{"The assets handler has a bug: see the server's log."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := newStudio(t, replies(at(ramp.PathAssets), c.status, c.body)).target
			err := opened(t, target)
			for _, text := range append(c.says, "GET "+target.URL+"/api/assets: saw HTTP") {
				assert.ErrorContains(t, err, text)
			}
		})
	}
}

func TestOneCaseOfHeaderNamesIsSaid(t *testing.T) {
	t.Parallel()
	target := newStudio(t, deafTo(ramp.PathAssets, "x-dapp-sessionid")).target
	assert.ErrorContains(t, opened(t, target), "The server reads the names of headers in one case only")
}

// A game may take what it has reserved a little after the approval. A result that shows its
// effect at once must not hide how much later that is.
func TestHowLateATakeIsIsMeasuredToo(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, behindBy(func(call []byte) time.Duration {
		return when(bytes.Contains(call, []byte("receipt")), time.Duration(0), 60*time.Millisecond).(time.Duration)
	}), func(t *testing.T, s *studio) {
		s.target.Settle = 0 // as it is by default
		j := newJudge(t, s)
		for _, id := range []string{"repeats", "result-hmac-wrong"} {
			v := j.Try(t.Context(), caseOf(t, id))
			assert.Equal(t, judge.Passed, v.Outcome, v.String())
		}
	})
	// On a busy machine, a take may be later than all before it.
	validates := 0
	inVirtualTime(t, behindBy(func(call []byte) time.Duration {
		if bytes.Contains(call, []byte("receipt")) {
			return 0
		}
		if validates++; validates%7 == 0 {
			return time.Duration(validates) * 10 * time.Millisecond
		}
		return 60 * time.Millisecond
	}), func(t *testing.T, s *studio) {
		s.target.Settle = 0
		j := newJudge(t, s)
		for _, id := range []string{"result-hmac-wrong", "result-body", "result-other-intent"} {
			v := j.Try(t.Context(), caseOf(t, id))
			assert.Equal(t, judge.Passed, v.Outcome, v.String())
		}
	})
}

// The words are ours: nothing is taken out of them, whatever the key is.
func TestNothingIsTakenOutOfOurOwnWords(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"refused", "closed", "connection", "answer", "interface"} {
		target := newStudio(t, mutant{}).target
		target.URL, target.Secrets = "http://127.0.0.1:1", []string{key}
		err := opened(t, target)
		assert.ErrorContains(t, err, "no answer: the connection was refused")
		assert.False(t, strings.Contains(err.Error(), "[redacted]"), err)
	}
}

// On a busy machine, an effect may take much longer than all before it. What is due must
// then not look like an effect of what comes again.
func TestALateEffectIsNotADoubleOne(t *testing.T) {
	t.Parallel()
	burns := make(map[string]bool)
	slower := func(call []byte) time.Duration {
		if m := parse(call); m.text("receipt.status") == "0x1" && m.text("intent.type") == "disassemble" {
			burns[m.text("uuid")] = true
		}
		if len(burns) > 2 { // the first two are of the abilities before
			return 250 * time.Millisecond
		}
		return 100 * time.Millisecond
	}
	inVirtualTime(t, behindBy(slower), func(t *testing.T, s *studio) {
		s.target.Settle = 0 // as it is by default
		for _, v := range newJudge(t, s).Opening() {
			assert.Equal(t, judge.Passed, v.Outcome, v.String())
		}
	})
}
