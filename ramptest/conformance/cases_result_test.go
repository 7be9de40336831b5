package conformance_test

import (
	"net/http"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

func resultMutants() map[string]mutant {
	m := map[string]mutant{
		"mint-failure-twice":       {bug: "settles each time"},
		"mint-failure-at-once":     {bug: "looks, then settles"},
		"mint-failure-then-other":  {bug: "the last outcome counts"},
		"mint-success-twice":       {bug: "a repeat is an error"},
		"mint-success-at-once":     {bug: "a repeat is an error"},
		"mint-success-then-other":  {bug: "the last outcome counts"},
		"burn-success-twice":       {bug: "settles each time"},
		"burn-success-at-once":     {bug: "looks, then settles"},
		"burn-success-then-other":  {bug: "the last outcome counts"},
		"burn-failure-twice":       {bug: "a repeat is an error"},
		"burn-failure-at-once":     {bug: "a repeat is an error"},
		"burn-failure-then-other":  {bug: "the last outcome counts"},
		"result-20-times":          {bug: "forgets after ten"},
		"burn-20-times":            {bug: "forgets after ten"},
		"results-at-once":          {bug: "reads, then writes"},
		"results-at-once-answered": {bug: "a repeat is an error"},
		"result-error-code-null":   replaces(ramp.PathResult, `"errorCode":null,`, ""),
		"result-data-null":         replaces(ramp.PathResult, `,"data":null`, ""),
		"result-content-type":      plainText(ramp.PathResult, 200),
		"result-unknown-mint":      {bug: "believes in unknown orders"},
		"result-unknown-burn":      {bug: "believes in unknown orders"},
		"result-unknown-again":     {bug: "confirms unknown orders"},
		"result-before-validate":   {bug: "ends unknown orders"},
		"result-declined-mint":     {bug: "believes in unknown orders"},
		"result-declined-burn":     {bug: "believes in unknown orders"},
		"result-other-owner-mint":  {bug: "pays the session"},
		"result-other-owner-burn":  {bug: "pays the session"},
		"result-more-back":         {bug: "believes the result"},
		"result-more-granted":      {bug: "believes the result"},
		"result-negative-back": layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			if m := parse(body); r.URL.Path == ramp.PathResult && strings.HasPrefix(amountText(m, "intent.from.0.amount"), "-") {
				s.game.mu.Lock()
				balances := s.game.players[r.Header.Get(ramp.HeaderSession)].balances
				less, _ := balances["item_gold"].Add(ramp.NewAmount(-2))
				balances["item_gold"] = less
				s.game.mu.Unlock()
				reply(w, 200, yes)
				return
			}
			next.ServeHTTP(w, r)
		}),
		"result-mint-as-burn": {bug: "believes the result"},
		"result-burn-as-mint": {bug: "believes the result"},
		"result-other-asset":  {bug: "believes the result"},
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
		"to-zero":      inResult(is("intent.to.0.amount", "0")),
		"to-missing":   all(given("intent.to.0"), without("intent.to.0.amount")),
		"to-text":      inResult(func(m message) bool { _, isText := m.at("intent.to.0.amount").(string); return isText }),
		"to-digits":    inResult(func(m message) bool { return len(m.text("intent.to.0.amount")) > 1000 }),
		"long-tx-hash": func(m message) bool { return len(m.text("tx_hash")) > 66 },
		"no-tx-hash":   func(m message) bool { return m["receipt"] != nil && m["tx_hash"] == nil },
	} {
		m["result-mint-"+id], m["result-burn-"+id] = refuses(when), refuses(when)
	}
	return m
}
