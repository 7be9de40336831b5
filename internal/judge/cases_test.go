package judge_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// jsonOf writes v as JSON. Servers call it on goroutines that no test may end, and an error is no JSON.
func jsonOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

func newJudge(t testing.TB, s *studio) *judge.Judge {
	t.Helper()
	j := s.unopened(t)
	require.NoError(t, j.Ready(t.Context()))
	return j
}

func TestARightServerPassesEveryCase(t *testing.T) {
	t.Parallel()
	s := newStudio(t, rate())
	s.target.Token, s.target.Amount, s.target.Tokens = "0x0000000000000000000000000000000000007e57", 2, 1
	s.target.Late = time.Millisecond // in real time; what is late is found in virtual time
	s.target.Timeout = time.Minute   // a busy machine is not a server that hangs
	j := newJudge(t, s)
	cases, done := judge.Cases(), make(map[string]bool)
	verdicts := j.Run(t.Context(), cases, 8, func(v judge.Verdict) { done[v.Case.ID] = true })
	require.Len(t, verdicts, len(cases))
	for i, v := range verdicts {
		assert.Equal(t, cases[i].ID, v.Case.ID, "the order is that of the cases")
		assert.Equal(t, judge.Passed, v.Outcome, v.String())
	}
	assert.Len(t, done, len(cases))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Empty(t, j.Run(ctx, cases, 8, nil), "what was not tried is left out")
}

// A token often costs more than it is worth.
func TestABurnMayHaveARateOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStudio(t, rates(4, 2))
	s.target.Token = "0x0000000000000000000000000000000000007e57"
	s.target.Amount, s.target.Tokens, s.target.BurnTokens = 4, 1, 2
	s.target.Timeout = time.Minute
	j := newJudge(t, s)
	burns := slices.DeleteFunc(judge.Cases(), func(c judge.Case) bool {
		return c.Subject != "terms" && c.Subject != "amount" && !strings.Contains(c.ID, "burn")
	})
	require.Greater(t, len(burns), 5)
	for _, v := range j.Run(t.Context(), burns, 8, nil) {
		assert.Equal(t, judge.Passed, v.Outcome, v.String())
	}
	s.target.BurnTokens = 1
	assert.Equal(t, judge.Failed, s.unopened(t).Try(t.Context(), caseOf(t, "burn-succeeds")).Outcome,
		"at the rate of a mint")
}

// Games that only mint, only burn or have unique items are asked for nothing else, and what
// is wrong with them is found.
func TestAGameOfAnotherKindIsJudgedToo(t *testing.T) {
	t.Parallel()
	skipSlow(t, true)
	declining := func(b bug, when func(message) bool) mutant {
		return mutant{bug: b, wrap: says(ramp.PathValidate, when, 200, no("NOT_SOLD")).wrap}
	}
	mints, burns := is("intent.type", "assemble"), is("intent.type", "disassemble")
	several := func(m message) bool {
		return m.at("intent.from.1") != nil || m.at("intent.to.1") != nil || m.text("intent.from.0.amount") != "1" ||
			m.text("intent.to.0.amount") != "1"
	}
	for name, test := range map[string]struct {
		game  mutant
		only  string // otherwise, its items are unique
		first string // the case that is named first; "" if it is right
	}{
		"it only mints":                         {declining("", burns), "mint", ""},
		"it only mints, and gives nothing back": {declining("keeps what failed", burns), "mint", "mint-fails"},
		"it only burns":                         {declining("", mints), "burn", ""},
		"it only burns, and grants nothing":     {declining("never grants", mints), "burn", "burn-succeeds"},
		"unique items":                          {declining("unique items", several), "", ""},
		"items of their own":                    {declining("items of their own", several), "", ""},
		"items of their own, which are not given back": {declining("items of their own + keeps what failed", several),
			"", "mint-fails"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, test.game, func(t *testing.T, s *studio) {
				s.target.Strict, s.target.Only, s.target.Unique = false, test.only, test.only == ""
				verdicts, first := judged(t, s), ""
				if causes := judge.Causes(verdicts); len(causes) > 0 && causes[0].Outcome == judge.Failed {
					first = causes[0].First().Case.ID
				}
				assert.Equal(t, test.first, first)
				assert.Empty(t, outcomes(verdicts, judge.Untried))
				assert.Greater(t, len(outcomes(verdicts, judge.Passed)), 50)
			})
		})
	}
}

// policies are right servers, each of which does one thing in its own way. The interface
// leaves open how a server does many things.
func policies(t testing.TB) map[string]mutant {
	answering := func(from, to int, part string) mutant {
		return otherStatus(func(_ *http.Request, _ message, status int, answer string) bool {
			return status == from && strings.Contains(answer, part)
		}, to)
	}
	status := func(from, to int) mutant { return answering(from, to, "false") }
	// of a result, which the package answers with 500
	unauthentic := func(to int) mutant { return answering(500, to, "HMAC_") }
	lacks, lenient := mutants(t),
		edits("digest",
			func(_ message, old any) any { return when(isDigest(fmt.Sprint("0x", old)), fmt.Sprint("0x", old), old) })
	for _, id := range []string{
		"http/validate-method", "http/validate-charset", "content-type/assets", "assets-session-odd/no-scheme",
		"validate-session-odd/no-scheme",
		"result-same-hash", "mint-again", "validate-fields/no-project", "validate-fields/no-user-sig",
		"validate-fields/no-user-address", "validate-other-project", "intent-sides/burn-from-asset",
		"unknown-fields/validate", "unknown-fields/result",
	} {
		lenient = both(lacks[id], lenient)
	}
	// A result at the validate address is lost if it gets another answer than 500.
	lenient = both(says(ramp.PathValidate, given("receipt"), 500, no("A_RESULT")), lenient)
	return map[string]mutant{
		"what a SHOULD asks for":             lenient,
		"HTTP 401 for an unauthentic result": unauthentic(401),
		"HTTP 200 for an unauthentic result": unauthentic(200),
		"HTTP 400 for a rejected order":      status(200, 400),
		"HTTP 403 for what is not authentic": status(401, 403),
		"HTTP 400 for what is not authentic": status(401, 400),
		"HTTP 200 for what is not authentic": status(401, 200),
		"HTTP 200 for a malformed body":      status(400, 200),
		"HTTP 500 for a malformed body":      status(400, 500),
		"no fractions and no exponents": rejects(func(m message) bool {
			return strings.ContainsAny(amounts(m), ".eE")
		}),
		"HTTP 500 to many a first delivery": busyResults(),
		"no asset twice": rejects(func(m message) bool {
			return m.at("intent.from.1") != nil || m.at("intent.to.1") != nil
		}),
		"user_sig of 65 bytes only": rejects(func(m message) bool {
			return m["user_sig"] != nil && len(m.text("user_sig")) != 132
		}),
		"digests in lower case only": rejects(func(m message) bool {
			return strings.ToLower(m.text("digest")) != m.text("digest")
		}),
		"user_sig checked against the digest": signatureMutants()["user-sig-other-hash"],
		"v of 0 or 1":                         signatureMutants()["sign-v"],
		"a high s":                            signatureMutants()["sign-low-s"],
		"HMACs in lower case only":            hmacMutants()["validate-hmac-capitals"],
		"the player by the token at assets":   byToken(ramp.PathAssets),
		"the player by the token at validate": byToken(ramp.PathValidate),
		"a repeat of validate is rejected":    {bug: "rejects repeats"},
		"assets are held until the result":    {bug: "holds until the result"},
		"a burn is shown at validate":         {bug: "shows burns at validate"},
		"the result's amounts are ignored":    {bug: "ignores the result's intent"},
		"contradictions are confirmed":        {bug: "confirms contradictions"},
		"a text is read as a number":          loose("intent.from.0.amount"),
		"0 is rounded up to 1": edits("intent.from.0.amount", func(m message, old any) any {
			amount, err := ramp.ParseAmount(amountText(m, "intent.from.0.amount"))
			return when(m.text("intent.method") == "mint" && err == nil && amount.Sign() == 0, json.Number("1"), old)
		}),
		"a tiny amount is rounded up": edits("intent.from.0.amount", func(m message, old any) any {
			return when(amountText(m, "intent.from.0.amount") == "1e-999999999", json.Number("1"), old)
		}),
		"a burn of nothing grants nothing": approves(all(is("intent.type", "disassemble"),
			is("intent.from.0.amount", "0"))),
		"the method alone decides": edits("intent.type", func(m message, _ any) any {
			return when(strings.HasPrefix(m.text("intent.method"), "burn"), "disassemble", "assemble")
		}),
		"the sides alone decide": reads(func(body []byte) []byte {
			m := parse(body)
			intent, ok := m.at("intent").(map[string]any)
			if !ok {
				return body
			}
			mint := m.text("intent.from.0.type") == "asset"
			intent["method"], intent["type"] = when(mint, "mint", "burn-permit"), when(mint, "assemble", "disassemble")
			return jsonOf(m)
		}),
		"an item is an asset": edits("intent.from.0.type", func(m message, old any) any {
			return when(strings.HasPrefix(m.text("intent.from.0.id"), "item_"), "asset", old)
		}),
		"the session of header and body":      wantsHeader(),
		"the owner is paid, whoever is named": {bug: "pays the owner"},
		"each digest is an order":             ownDigests(),
		"uuids of each player":                ownUUIDs(),
		"unknown orders are confirmed":        {bug: "confirms unknown orders"},
		"effects follow their answers":        {bug: "acts later"},
		"a replica that is behind":            behind(300 * time.Millisecond),
		"one open order of a player":          {bug: "one open order"},
		"HTTP 429 for a rejected order":       {bug: "one open order", wrap: status(200, 429).wrap},
		"one wallet of a player":              oneWallet(func(*http.Request) string { return "" }),
		"the wallet that assets tells": oneWallet(func(r *http.Request) string {
			return common.BytesToAddress([]byte(r.Header.Get(ramp.HeaderSession))).Hex()
		}),
		"the first answer again":        repeats(),
		"its own rate only":             rate(),
		"no more than one at a time":    busy(),
		"limited every other moment":    limited("0"),
		"rejected orders stay rejected": {bug: "remembers rejected orders"},
		"more in the envelope":          replaces(ramp.PathAssets, "{", `{"message":"OK",`),
		"balances with a point":         replaces(ramp.PathAssets, `"1000000"`, `"1000000.00"`),
		"bad JSON in plain text": layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte,
			next http.Handler) {
			if r.Method == http.MethodPost && s.authentic(r, body) && parse(body) == nil {
				http.Error(w, "Bad Request", http.StatusBadRequest)
				return
			}
			next.ServeHTTP(w, r)
		}),
	}
}

func TestAServerOfAnotherMindFailsNoMust(t *testing.T) {
	t.Parallel()
	skipSlow(t, true)
	all := policies(t)
	for _, two := range [][2]string{ // which have to do with different things, and save a run
		{"HTTP 401 for an unauthentic result", "v of 0 or 1"},
		{"HTTP 200 for an unauthentic result", "a high s"},
		{"HTTP 400 for a rejected order", "user_sig of 65 bytes only"},
		{"HTTP 403 for what is not authentic", "digests in lower case only"},
		{"HTTP 400 for what is not authentic", "HMACs in lower case only"},
		{"HTTP 200 for what is not authentic", "balances with a point"},
		{"HTTP 200 for a malformed body", "more in the envelope"},
		{"HTTP 500 for a malformed body", "user_sig checked against the digest"},
		{"no fractions and no exponents", "the player by the token at assets"},
		{"no asset twice", "the player by the token at validate"},
		{"assets are held until the result", "a text is read as a number"},
		{"contradictions are confirmed", "a tiny amount is rounded up"},
		{"a burn is shown at validate", "0 is rounded up to 1"},
		{"unknown orders are confirmed", "a burn of nothing grants nothing"},
		{"the result's amounts are ignored", "the method alone decides"},
		{"the owner is paid, whoever is named", "an item is an asset"},
		{"rejected orders stay rejected", "one wallet of a player"},
	} {
		all[two[0]+", "+two[1]] = both(all[two[0]], all[two[1]])
		delete(all, two[0])
		delete(all, two[1])
	}
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, m, func(t *testing.T, s *studio) {
				parallel := 8
				s.target.Strict = false
				switch m.bug {
				case "acts later", "":
					s.target.Settle = 0 // as it is by default
				case "one open order": // the players' sessions come again
					first, _ := s.target.Player(t.Context(), "")
					second, _ := s.target.Player(t.Context(), "")
					s.target.Player, parallel = judge.Pool(first, second), 1
				}
				began := time.Now()
				for _, v := range newJudge(t, s).Run(t.Context(), judge.Cases(), parallel, nil) {
					// A failed SHOULD counts if something is lost, doubled or given away.
					allowed := []judge.Outcome{judge.Passed, judge.Noted}
					if v.Case.Subject == "terms" || v.Case.ID == "result-rejected" { // no token and no rate are given
						allowed = append(allowed, judge.Unasked)
					}
					if m.bug == "one open order" &&
						(v.Case.ID == "result-late" ||
							strings.HasSuffix(v.Saw, "rejects a second order while one is open")) {
						allowed = append(allowed, judge.Skipped, judge.Unasked)
					}
					assert.Contains(t, allowed, v.Outcome, "%s: %s", v.Case.ID, v)
				}
				// The judge waits for nothing as long as for late effects.
				assert.Less(t, time.Since(began), 80*time.Second)
			})
		})
	}
}

// A case that was raised to a MUST has a right server that does it differently: it gives
// other answers than the right game, and is not accused.
func TestEachRaisedCaseLeavesOpenWhatTheInterfaceDoes(t *testing.T) {
	t.Parallel()
	for policy, ids := range map[string]string{
		"the session of header and body": "result-other-session",
		"the method alone decides": "intent-mixed/mint-disassemble intent-mixed/burn-assemble " +
			"intent-mixed/unknown-type",
		"the sides alone decide": "intent-mixed/mint-as-burn intent-mixed/unknown-method",
		"an item is an asset":    "intent-sides/mint-from-token",
		"0 is rounded up to 1": "mint-amount/zero mint-amount/minus-zero mint-amount/zero-point " +
			"mint-amount/zero-exponent",
		"a text is read as a number": "mint-amount/text mint-amount/boolean mint-amount/list " +
			"mint-amount/object",
		"a tiny amount is rounded up":      "mint-amount-bomb/tiny",
		"a burn of nothing grants nothing": "burn-amount/tokens-zero",
		"one open order of a player":       "burn-spent-early",
		"each digest is an order": "validate-other/more validate-other/second-mint " +
			"validate-other/tokens validate-other/direction validate-after-end",
		"uuids of each player":                "validate-other/other-player",
		"contradictions are confirmed":        "result-contrary",
		"the owner is paid, whoever is named": "result-other-owner/mint-failure result-other-owner/burn-success",
		"the result's amounts are ignored":    "result-other-intent",
	} {
		for id := range strings.FieldsSeq(ids) {
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				m, known := policies(t)[policy]
				require.True(t, known, policy)
				var said [3][]string
				for i, m := range []mutant{{}, {}, m} {
					inVirtualTime(t, both(records(&said[i]), m), func(t *testing.T, s *studio) {
						v := s.unopened(t).Try(t.Context(), caseOf(t, id))
						assert.Equal(t, judge.Must, v.Level)
						assert.Equal(t, judge.Passed, v.Outcome, v.String())
					})
				}
				assert.Equal(t, said[0], said[1], "the right game gives the same answers each time")
				assert.NotEqual(t, said[0], said[2], "it gives the same answers as the right game")
			})
		}
	}
}

// records notes the answers of a server, without what differs from player to player.
func records(said *[]string) mutant {
	var mu sync.Mutex
	part := regexp.MustCompile(`"(success|errorCode|balance)":("[^"]*"|[a-z]+)`)
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		answer := answerOf(next, r)
		mu.Lock()
		defer mu.Unlock()
		*said = append(*said, fmt.Sprint(r.URL.Path, answer.Code, part.FindAllString(answer.Body.String(), -1)))
		reply(w, answer.Code, answer.Body.String())
	})
}

// oneWallet is a server that knows the wallet of each player: the one that it
// tells, or else the first that came.
func oneWallet(known func(*http.Request) string) mutant {
	var wallets sync.Map
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if address := parse(body).text("user_address"); r.URL.Path == ramp.PathValidate &&
			strings.HasPrefix(address, "0x") {
			if first, _ := wallets.LoadOrStore(r.Header.Get(ramp.HeaderSession),
				cmp.Or(known(r), address)); first != address {
				reply(w, 400, no("WALLET"))
				return
			}
		}
		answer := answerOf(next, r)
		reply(w, answer.Code,
			strings.Replace(answer.Body.String(), `"name"`, `"wallet_address":"`+known(r)+`","name"`, 1))
	})
}

// repeats is a server that keeps the answer to each approved uuid, and gives it
// to whatever its owner sends under that uuid.
func repeats() mutant {
	var mu sync.Mutex
	kept := map[string]string{}
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if r.URL.Path != ramp.PathValidate || !s.authentic(r, body) || parse(body).at("receipt") != nil {
			next.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get(ramp.HeaderSession) + r.Header.Get(ramp.HeaderAuthorization) + parse(body).text("uuid")
		if kept[key] == "" {
			answer := answerOf(next, r)
			if strings.Contains(answer.Body.String(), `"success":false`) {
				reply(w, answer.Code, answer.Body.String())
				return
			}
			kept[key] = answer.Body.String()
		}
		reply(w, 200, kept[key])
	})
}

// ownUUIDs is a server for which the same uuid of two players is two orders.
func ownUUIDs() mutant {
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		m := parse(body)
		id, err := uuid.Parse(m.text("uuid"))
		if m == nil || err != nil || id == uuid.Nil || !s.authentic(r, body) {
			next.ServeHTTP(w, r)
			return
		}
		m["uuid"] = uuid.NewSHA1(id, []byte(r.Header.Get(ramp.HeaderSession))).String()
		s.pass(w, r, jsonOf(m), next)
	})
}

// ownDigests is a server for which each digest under a uuid is an order. It finds the
// digest of a result in the transaction.
func ownDigests() mutant {
	var digests sync.Map // by transaction
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		m := parse(body)
		id, err := uuid.Parse(m.text("uuid"))
		if m == nil || err != nil || id == uuid.Nil || !s.authentic(r, body) {
			next.ServeHTTP(w, r)
			return
		}
		digest, known := digests.Load(m.text("tx_hash"))
		if r.URL.Path == ramp.PathValidate {
			digest, known = m.text("digest"), true
			digests.Store(crypto.Keccak256Hash([]byte(m.text("uuid")+m.text("digest"))).Hex(), digest)
		}
		if known {
			m["uuid"] = uuid.NewSHA1(id, []byte(digest.(string))).String()
		}
		s.pass(w, r, jsonOf(m), next)
	})
}

const foreignToken = "0x000000000000000000000000000000000000dead"

func ofForeignToken(m message) bool {
	return m.text("intent.from.0.id") == foreignToken || m.text("intent.to.0.id") == foreignToken
}

// rate is a server that mints and burns at 2 of an asset for a token.
func rate() mutant { return rates(2, 2) }

// rates is a server that mints at a number of an asset for a token, and burns at another.
func rates(mint, burn int64) mutant {
	sum := func(m message, side string) *big.Rat {
		total := new(big.Rat)
		entries, _ := m.at("intent." + side).([]any)
		for i := range entries {
			amount, err := ramp.ParseAmount(amountText(m, fmt.Sprintf("intent.%s.%d.amount", side, i)))
			if err != nil {
				return nil
			}
			total.Add(total, amount.Rat())
		}
		return total
	}
	return says(ramp.PathValidate, func(m message) bool {
		assets, tokens, each := sum(m, "from"), sum(m, "to"), mint
		if ofForeignToken(m) {
			return true
		}
		if m.text("intent.type") == "disassemble" {
			assets, tokens, each = tokens, assets, burn
		}
		return assets != nil && tokens != nil && assets.Cmp(tokens.Mul(tokens, big.NewRat(each, 1))) != 0
	}, 400, no("RATE"))
}

// busy is a server that answers 409 while it works on a call of the same body.
func busy() mutant {
	var working sync.Map
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		if _, also := working.LoadOrStore(string(body), true); also && len(body) > 0 {
			reply(w, 409, no("BUSY"))
			return
		}
		defer working.Delete(string(body))
		next.ServeHTTP(w, r)
	})
}

// busyResults is a server whose database is busy at the first delivery of every third
// result, before anything moved. The service would deliver the result again.
func busyResults() mutant {
	var results atomic.Int64
	var known sync.Map
	return replies(func(_ *studio, r *http.Request, body []byte) bool {
		_, again := known.LoadOrStore(string(body), true)
		return r.URL.Path == ramp.PathResult && !again && results.Add(1)%3 == 0
	}, 500, no("INTERNAL_ERROR"))
}

// limited is a server that answers every other validate call with HTTP 429.
func limited(retryAfter string) mutant {
	var calls atomic.Int64
	return layer(func(_ *studio, w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
		if r.URL.Path == ramp.PathValidate && calls.Add(1)%2 == 0 {
			w.Header().Set("Retry-After", retryAfter)
			reply(w, 429, no("BUSY"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// amounts are the digits of all amounts of an intent.
func amounts(m message) string {
	var all string
	for _, path := range []string{"intent.from.0.amount", "intent.from.1.amount", "intent.to.0.amount",
		"intent.to.1.amount"} {
		all += amountText(m, path)
	}
	return all
}

// A game that checks its rate is asked at its rate, or that is all it is judged
// for.
func TestARateHidesNothing(t *testing.T) {
	t.Parallel()
	for id, b := range map[string]bug{
		"balance":             "takes more than there is",
		"intent-sum-too-much": "takes more than there is",
		"validate-other/more": "approves whatever is known",
		"intent-asset-twice":  "takes the last entry",
	} {
		j := newStudio(t, mutant{bug: b, wrap: rate().wrap}).unopened(t)
		assert.Equal(t, judge.Failed, j.Try(t.Context(), caseOf(t, id)).Outcome, id)
	}
}

// What a case had approved by mistake is in nobody's way afterwards.
func TestNoCaseLeavesAnOrderOpen(t *testing.T) {
	t.Parallel()
	s := newStudio(t,
		mutant{bug: "one open order", wrap: turns(ramp.PathValidate, http.MethodGet, http.MethodPost).wrap})
	only, err := s.target.Player(t.Context(), "")
	require.NoError(t, err)
	s.target.Player = judge.Pool(only)
	j := newJudge(t, s)
	assert.Equal(t, judge.Failed, j.Try(t.Context(), caseOf(t, "http")).Outcome)
	v := j.Try(t.Context(), caseOf(t, "mint-succeeds"))
	assert.Equal(t, judge.Passed, v.Outcome, v.String())
}

func TestAnAssetThatCannotBeReadIsShown(t *testing.T) {
	t.Parallel()
	for saw, m := range map[string]mutant{
		"an id that is not a JSON string":                          replaces(ramp.PathAssets, `"item_gold"`, "7"),
		`the balance "10,000" of item_gem, which is not a decimal`: replaces(ramp.PathAssets, `"10000"`, `"10,000"`),
	} {
		assert.Contains(t, newStudio(t, m).unopened(t).Try(t.Context(), caseOf(t, "assets-id")).String(),
			"saw:  assets: "+saw)
	}
}

// A server that hangs on every unknown order costs the judge few timeouts.
func TestAServerThatHangsOnUnknownOrdersIsJudgedWithinAMinute(t *testing.T) {
	t.Parallel()
	skipSlow(t, true)
	inVirtualTime(t, hangs(func(s *studio, r *http.Request, body []byte) bool {
		id, err := uuid.Parse(parse(body).text("uuid"))
		s.game.mu.Lock()
		defer s.game.mu.Unlock()
		return r.URL.Path == ramp.PathResult && err == nil && s.game.orders[id] == nil && s.authentic(r, body)
	}), func(t *testing.T, s *studio) {
		s.target.Strict = false
		began := time.Now()
		verdicts := judged(t, s)
		assert.Less(t, time.Since(began), time.Minute)
		assert.Equal(t, "unknown-order", judge.Causes(verdicts)[0].First().Case.ID)
	})
}

func TestAServerThatAsksForMuchPatienceIsUntried(t *testing.T) {
	t.Parallel()
	j := newStudio(t, limited("3600")).unopened(t)
	assert.Equal(t, judge.Passed, j.Try(t.Context(), caseOf(t, "mint-fails")).Outcome)
	v := j.Try(t.Context(), caseOf(t, "mint-succeeds"))
	assert.Equal(t, judge.Untried, v.Outcome)
	assert.Equal(t,
		"untried: the server, or a proxy before it, limits the rate of calls, and answered HTTP 429 for longer than "+
			"-timeout allows: exempt the service's endpoints from the limit", v.String())
}

// A call that is rate-limited is sent again, however its body arrives.
func TestARateLimitIsObeyed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, limited("1"), func(t *testing.T, s *studio) {
		j := newJudge(t, s)
		for _, id := range []string{"repeats", "http", "validate-body"} {
			v := j.Try(t.Context(), caseOf(t, id))
			assert.Equal(t, judge.Passed, v.Outcome, v.String())
		}
	})
}

// Section 3 has a failure for every status other than 0x1. A server may follow
// it to the letter, or have what it cannot read again.
func TestAnOddStatusMayBeAFailure(t *testing.T) {
	t.Parallel()
	j := newJudge(t, newStudio(t, edits("receipt", func(m message, old any) any {
		if m["tx_hash"] == nil || m.text("receipt.status") == "0x1" {
			return old
		}
		return map[string]any{"status": "0x0"}
	})))
	v := j.Try(t.Context(), caseOf(t, "receipt-odd-status"))
	assert.Equal(t, judge.Passed, v.Outcome, v.String())
}

// An effect may follow its answer, but then a second one may follow too.
func TestASecondEffectThatFollowsItsAnswerIsSeen(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, mutant{bug: "acts later, each time"}, func(t *testing.T, s *studio) {
		s.target.Settle = 0 // as it is by default
		j := newJudge(t, s)
		assert.Equal(t, judge.Passed, j.Try(t.Context(), caseOf(t, "burn-succeeds")).Outcome)
		assert.Equal(t, judge.Failed, j.Try(t.Context(), caseOf(t, "repeats")).Outcome)
		v := j.Try(t.Context(), caseOf(t, "validate-at-once"))
		assert.Equal(t, "not provable until repeats passes: The same validate call 8 times at once takes once.",
			v.String())
	})
}

func TestAShouldCountsOnlyWhenStrict(t *testing.T) {
	t.Parallel()
	s := newStudio(t, mutant{bug: "rejects repeats"})
	for strict, want := range map[bool]judge.Outcome{true: judge.Failed, false: judge.Noted} {
		s.target.Strict = strict
		v := newJudge(t, s).Try(t.Context(), caseOf(t, "validate-twice-approved"))
		assert.Equal(t, want, v.Outcome)
		assert.Contains(t, v.String(), "SHOULD (interface 2.5)")
		assert.Contains(t, v.String(), `saw:  HTTP 200, success false, errorCode "INVALID_MESSAGE", data null`)
		assert.Contains(t, v.String(), "want: HTTP 200 with success true")
	}
}

// What fails on the judge's side is no fault of the server's.
func TestWhatTheJudgeCannotDoIsUntried(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		change func(*judge.Config)
		want   string
	}{
		"no login": {func(target *judge.Config) {
			target.Player = func(context.Context, string) (ramp.Session, error) { return ramp.Session{}, broken }
		}, "untried: no player is available: broken"},
		"no restart": {func(target *judge.Config) {
			target.Restart = func(context.Context) error { return broken }
		}, "untried: the server could not be restarted: broken"},
		"a restart that is none": {func(target *judge.Config) {
			target.Restart = func(context.Context) error { return nil }
		}, "untried: nothing was restarted"},
		"no UUID": {func(target *judge.Config) {
			target.UUID = func(context.Context, ramp.Session) (uuid.UUID, ramp.AccessToken, error) {
				return uuid.Nil, ramp.AccessToken{}, broken
			}
		}, "untried: no UUID is available: broken"},
		"a poor player": {func(target *judge.Config) { target.Asset, target.Amount = "item_gem", 1000 },
			"untried: the player owns too little"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, mutant{})
			test.change(&s.target)
			v := s.unopened(t).Try(t.Context(), caseOf(t, "restart/mint-fails"))
			assert.Equal(t, judge.Untried, v.Outcome)
			assert.Contains(t, v.String(), test.want)
		})
	}
}

// caseOf returns a case, or a family with one of its inputs for ID/NAME.
func caseOf(t *testing.T, id string) judge.Case {
	t.Helper()
	id, input, one := strings.Cut(id, "/")
	for _, c := range judge.Cases() {
		if c.ID == id && one {
			return only(c, input)
		} else if c.ID == id {
			return c
		}
	}
	require.Fail(t, "no such case", id)
	return judge.Case{}
}

// A MUST that needs what the target lacks is unasked, so that nobody takes it for passed.
func TestWhatTheTargetLacksIsUnasked(t *testing.T) {
	t.Parallel()
	skipSlow(t, true)
	const terms = "terms-token terms-rate" // the token and the rate are not given here
	few := func(players int) func(*testing.T, *studio) {
		return func(t *testing.T, s *studio) {
			var sessions []ramp.Session
			for range players {
				session, err := s.game.login(t.Context(), "")
				require.NoError(t, err)
				sessions = append(sessions, session)
			}
			s.target.Player = judge.Pool(sessions...)
		}
	}
	for name, test := range map[string]struct {
		change   func(*testing.T, *studio)
		parallel int
		want     string
	}{
		"no restart": {func(_ *testing.T, s *studio) { s.target.Restart = nil }, 8,
			terms + " result-rejected restart"},
		"no second asset": {func(_ *testing.T, s *studio) {
			s.target.Asset, s.target.Second = "item_gold",
				"item_silver"
		}, 8,
			"intent-two-assets " + terms + " result-rejected result-other-intent orders-at-once"},
		"two players, several cases at once": {few(2), 8, terms + " result-rejected orders-at-once result-late"},
		"one player": {few(1), 1, "assets-other-player assets-foreign-token validate-foreign-token " +
			"result-other-session " + terms + " validate-other result-rejected result-other-owner players-at-once " +
			"orders-at-once result-late"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, mutant{}, func(t *testing.T, s *studio) {
				test.change(t, s)
				var unasked []string
				for _, v := range newJudge(t, s).Run(t.Context(), judge.Cases(), test.parallel, nil) {
					if v.Outcome == judge.Unasked {
						unasked = append(unasked, v.Case.ID)
						assert.NotEmpty(t, v.Set, v.Case.ID)
					} else {
						assert.Equal(t, judge.Passed, v.Outcome, v.String())
					}
				}
				assert.Equal(t, test.want, strings.Join(unasked, " "))
			})
		})
	}
}

func TestAJudgeThatCannotWorkIsNotMade(t *testing.T) {
	t.Parallel()
	right := newStudio(t, mutant{}).target
	for name, change := range map[string]func(*judge.Config){
		"no URL":               func(target *judge.Config) { target.URL = "" },
		"a relative URL":       func(target *judge.Config) { target.URL = "localhost:8080" },
		"another scheme":       func(target *judge.Config) { target.URL = "ftp://localhost" },
		"a password":           func(target *judge.Config) { target.URL = "http://me:secret@localhost" },
		"a query":              func(target *judge.Config) { target.URL += "/?a=b" },
		"a fragment":           func(target *judge.Config) { target.URL += "#a" },
		"a URL for a path":     func(target *judge.Config) { target.ResultPath = "http://127.0.0.1/result" },
		"a path of no slash":   func(target *judge.Config) { target.AssetsPath = "@192.0.2.1/assets" },
		"a remote address":     func(target *judge.Config) { target.URL = "http://192.0.2.1" },
		"a name":               func(target *judge.Config) { target.URL = "http://game.example.com" },
		"no key":               func(target *judge.Config) { target.Key = ramp.HMACKey{} },
		"no validator":         func(target *judge.Config) { target.Validator = common.Address{} },
		"no player":            func(target *judge.Config) { target.Player = nil },
		"an amount below 0":    func(target *judge.Config) { target.Amount = -1 },
		"a large amount":       func(target *judge.Config) { target.Amount = 100_000_001 },
		"a large token amount": func(target *judge.Config) { target.Tokens = 100_000_001 },
		"one asset twice":      func(target *judge.Config) { target.Asset, target.Second = "a", "a" },
	} {
		t.Run(name, func(t *testing.T) {
			target := right
			change(&target)
			_, err := judge.New(target)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
	right.URL, right.AllowRemote = "https://game.example.com", true
	_, err := judge.New(right)
	assert.NoError(t, err)
}

func TestWhereThereIsNothingThereIsNothingToJudge(t *testing.T) {
	t.Parallel()
	target := newStudio(t, mutant{}).target
	for name, change := range map[string]func(*judge.Config){
		"no server":     func(target *judge.Config) { target.URL = "http://127.0.0.1:1" },
		"an empty pool": func(target *judge.Config) { target.Player = judge.Pool() },
		"a poor player": func(target *judge.Config) { target.Asset, target.Amount = "item_gem", 1000 },
		"another path":  func(target *judge.Config) { target.AssetsPath = "/assets" },
	} {
		t.Run(name, func(t *testing.T) {
			target := target
			change(&target)
			assert.ErrorContains(t, opened(t, target), "nothing to judge")
		})
	}
}

// Where the plainest of mints is rejected, no case could say more than that.
func TestARejectedMintIsNothingToJudge(t *testing.T) {
	t.Parallel()
	target := newStudio(t, mutant{}).target
	target.ProjectID = "project-2"
	err := opened(t, target)
	require.ErrorContains(t, err,
		"nothing to judge: a plain mint of 2 item_gold for 1 of the token was not approved: HTTP")
	require.ErrorContains(t, err, "success false, errorCode")
	require.ErrorContains(t, err, "Likely causes, most likely first:\n  the project is wrong (-project)\n")
	require.ErrorContains(t, err, "The HMAC key is right")
	require.NotContains(t, err.Error(), "(-key-file)")
}

func TestEveryCaseSaysWhatItIs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range judge.Cases() {
		assert.False(t, seen[c.ID], "%s is there twice", c.ID)
		seen[c.ID] = true
		assert.Regexp(t, `^[a-z0-9-]+$`, c.ID)
		assert.Regexp(t, `^[A-Z].*\.$`, c.Title)
		assert.Regexp(t, `^[A-Z].*\.$`, c.Fix)
		assert.Regexp(t, `^[1-8](\.[1-7])?$`, c.Section)
		assert.Contains(t, []judge.Level{judge.Must, judge.Should}, c.Level)
		names := map[string]bool{}
		for _, in := range c.Inputs {
			assert.False(t, names[in.Name], "%s/%s is there twice", c.ID, in.Name)
			names[in.Name] = true
			assert.Regexp(t, `^[a-z0-9-]+$`, in.Name)
			assert.NotEmpty(t, in.Title)
			assert.Contains(t, []judge.Level{judge.Must, judge.Should}, in.Level)
		}
	}
	assert.LessOrEqual(t, len(seen), 165)
}
