package judge_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// refusesRepeats answers a repeated result in a way that ends its deliveries.
func refusesRepeats() mutant {
	return mutant{bug: "a repeat is an error", wrap: statusAt(ramp.PathResult, 500, 400).wrap}
}

func resultMutants() map[string]mutant {
	m := map[string]mutant{
		"result-at-once/mint-failure":      {bug: "looks, then settles"},
		"result-late/mint-failure":         {bug: "expires + keeps what expires"},
		"result-late/mint-success":         {bug: "expires"},
		"result-late/burn-success":         {bug: "expires"},
		"result-same-hash":                 {bug: "ends two orders by one transaction"},
		"result-contrary/mint-failure":     {bug: "the last outcome counts"},
		"result-at-once/mint-success":      {bug: "a repeat is an error"},
		"result-contrary/mint-success":     {bug: "the last outcome counts"},
		"result-at-once/burn-success":      {bug: "looks, then settles"},
		"result-contrary/burn-success":     {bug: "the last outcome counts"},
		"result-at-once/burn-failure":      {bug: "a repeat is an error"},
		"result-contrary/burn-failure":     {bug: "the last outcome counts"},
		"results-at-once":                  {bug: "reads, then writes"},
		"result-at-once/answers":           refusesRepeats(),
		"result-answer":                    statusAt(ramp.PathResult, 200, 201),
		"result-log":                       hexTimes(),
		"null-fields/result":               replaces(ramp.PathResult, `,"data":null`, ""),
		"content-type/confirmation":        plainText(ramp.PathResult, 200),
		"unknown-order":                    {bug: "believes in unknown orders"},
		"result-unknown-again":             {bug: "confirms unknown orders"},
		"result-before-validate":           {bug: "ends unknown orders"},
		"result-again-late":                {bug: "remembers the last order only"},
		"result-other-owner/mint-failure":  {bug: "pays the session"},
		"result-other-owner/burn-success":  {bug: "pays the session"},
		"result-other-intent/more-back":    {bug: "believes the result"},
		"result-other-intent/more-granted": {bug: "believes the result"},
		"result-other-intent/negative": replies(func(s *studio, r *http.Request, body []byte) bool {
			negative := r.URL.Path == ramp.PathResult &&
				strings.HasPrefix(amountText(parse(body), "intent.from.0.amount"), "-")
			if negative {
				s.game.adds(r.Header.Get(ramp.HeaderSession), -2)
			}
			return negative
		}, 200, yes),
		"result-other-intent/mint-as-burn": {bug: "believes the result"},
		"result-other-intent/burn-as-mint": {bug: "believes the result"},
		"result-other-intent/asset":        {bug: "believes the result"},
	}
	for _, id := range []string{"digest", "hmac", "access-token", "contract", "rate"} {
		m["result-rejected/mint-"+id] = storesRejected(id)
		m["result-rejected/burn-"+id] = storesRejected(id)
	}
	m["result-rejected/mint-balance"] = mutant{bug: "believes in unknown orders"}
	for _, prefix := range []string{"mint-failure-", "mint-success-", "burn-success-"} {
		m["result-again-changed/"+prefix+"tx-hash"] = movesForEach(func(m message, _ []byte) string {
			return m.text("tx_hash")
		})
		m["result-again-changed/"+prefix+"indented"] = movesForEach(func(_ message, body []byte) string {
			return string(body)
		})
	}
	for id, when := range map[string]func(message) bool{
		"no-session-id":     func(m message) bool { _, given := m["session_id"]; return m["receipt"] != nil && !given },
		"null-session-id":   without("session_id"),
		"padded-session-id": func(m message) bool { return strings.HasPrefix(m.text("session_id"), " ") },
		"plain-uuid":        func(m message) bool { return len(m.text("uuid")) == 32 },
		"no-intent":         without("intent"),
		"null-intent":       without("intent"),
		"null-to":           without("intent.to"),
		"empty-to": inResult(func(m message) bool {
			to, ok := m.at("intent.to").([]any)
			return ok && len(to) == 0
		}),
		"to-zero":    inResult(is("intent.to.0.amount", "0")),
		"to-missing": all(given("intent.to.0"), without("intent.to.0.amount")),
		"to-text": inResult(func(m message) bool {
			_, isText := m.at("intent.to.0.amount").(string)
			return isText
		}),
		"to-digits":    inResult(func(m message) bool { return len(m.text("intent.to.0.amount")) > 1000 }),
		"long-tx-hash": func(m message) bool { return len(m.text("tx_hash")) > 66 },
		"no-tx-hash":   func(m message) bool { return m["receipt"] != nil && m["tx_hash"] == nil },
	} {
		m["result-odd/mint-"+id], m["result-odd/burn-"+id] = rejects(when), rejects(when)
	}
	return m
}

// movesForEach is a server that tells repeated results by another key than the uuid. For
// another one it moves something.
func movesForEach(key func(m message, body []byte) string) mutant {
	var first sync.Map // by uuid
	return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
		m := parse(body)
		if r.URL.Path != ramp.PathResult || m == nil || !s.authentic(r, body) {
			next.ServeHTTP(w, r)
			return
		}
		status := m.text("receipt.status") // another outcome is not a repeat
		if known, again := first.LoadOrStore(m.text("uuid")+status, key(m, body)); again && known != key(m, body) {
			s.game.adds(r.Header.Get(ramp.HeaderSession), 2)
			reply(w, 200, yes)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// adds gives a player some gold for nothing.
func (g *game) adds(session string, gold int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	balances := g.players[session].balances
	balances["item_gold"], _ = balances["item_gold"].Add(ramp.NewAmount(gold))
}

// storesRejected is a server that rejects an order for one reason, but keeps it, and pays for
// its result.
func storesRejected(reason string) mutant {
	var kept sync.Map // by uuid
	wrong := map[string]func(r *http.Request, m message, authentic bool, answer string) bool{
		"digest": func(_ *http.Request, m message, _ bool, _ string) bool { return len(m.text("digest")) < 66 },
		"hmac":   func(_ *http.Request, _ message, authentic bool, _ string) bool { return !authentic },
		"access-token": func(r *http.Request, _ message, _ bool, _ string) bool {
			return strings.Contains(r.Header.Get(ramp.HeaderAuthorization), "nobody")
		},
		"contract": func(_ *http.Request, m message, _ bool, _ string) bool { return ofForeignToken(m) },
		"rate": func(_ *http.Request, m message, _ bool, answer string) bool {
			return strings.Contains(answer, "RATE") && !ofForeignToken(m)
		},
	}[reason]
	return mutant{terms: true, wrap: func(s *studio, next http.Handler) http.Handler {
		return layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			m := parse(body)
			if _, pays := kept.Load(m.text("uuid")); pays && r.URL.Path == ramp.PathResult && s.authentic(r, body) {
				s.game.adds(r.Header.Get(ramp.HeaderSession), 2)
				reply(w, 200, yes)
				return
			}
			answer := answerOf(next, r)
			text := answer.Body.String()
			if r.URL.Path == ramp.PathValidate && strings.Contains(text, `"success":false`) &&
				wrong(r, m, s.authentic(r, body), text) {
				kept.Store(m.text("uuid"), true)
			}
			reply(w, answer.Code, text)
		}).wrap(s, rate().wrap(s, next))
	}}
}

// An order that is rejected for one reason and kept is found by one input only.
func TestARejectedOrderIsTriedForEachReason(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"digest", "hmac", "access-token", "contract", "rate"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, storesRejected(name), func(t *testing.T, s *studio) {
				for _, in := range s.unopened(t).Try(t.Context(), caseOf(t, "result-rejected")).Inputs {
					want := when(strings.HasSuffix(in.Input.Name, "-"+name), judge.Failed, judge.Passed)
					assert.Equal(t, want, in.Outcome, "%s: %s", in.Input.Name, in.Saw)
				}
			})
		})
	}
}
