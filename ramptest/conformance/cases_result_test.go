package conformance_test

import (
	"net/http"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

func resultMutants() map[string]mutant {
	m := map[string]mutant{
		"result-twice/mint-failure":    {bug: "settles each time"},
		"result-at-once/mint-failure":  {bug: "looks, then settles"},
		"result-contrary/mint-failure": {bug: "the last outcome counts"},
		"result-twice/mint-success":    {bug: "a repeat is an error"},
		"result-at-once/mint-success":  {bug: "a repeat is an error"},
		"result-contrary/mint-success": {bug: "the last outcome counts"},
		"result-twice/burn-success":    {bug: "settles each time"},
		"result-at-once/burn-success":  {bug: "looks, then settles"},
		"result-contrary/burn-success": {bug: "the last outcome counts"},
		"result-twice/burn-failure":    {bug: "a repeat is an error"},
		"result-at-once/burn-failure":  {bug: "a repeat is an error"},
		"result-contrary/burn-failure": {bug: "the last outcome counts"},
		"result-20-times/mint-failure": {bug: "forgets after ten"},
		"result-20-times/burn-success": {bug: "forgets after ten"},
		"result-20-times/mint-success": {bug: "a repeat is an error"},
		"result-20-times/burn-failure": {bug: "a repeat is an error"},
		"results-at-once":              {bug: "reads, then writes"},
		"results-at-once-answered":     {bug: "a repeat is an error"},
		"result-answer": answers(ramp.PathResult, func(_ *studio, _ *http.Request, _ message, status *int, body string) string {
			*status = when(*status == 200, 201, *status).(int)
			return body
		}),
		"result-log":                       hexTimes(),
		"result-error-code-null":           replaces(ramp.PathResult, `"errorCode":null,`, ""),
		"result-data-null":                 replaces(ramp.PathResult, `,"data":null`, ""),
		"result-content-type":              plainText(ramp.PathResult, 200),
		"unknown-order":                    {bug: "believes in unknown orders"},
		"result-unknown-again":             {bug: "confirms unknown orders"},
		"result-before-validate":           {bug: "ends unknown orders"},
		"result-rejected-mint":             {bug: "believes in unknown orders"},
		"result-rejected-burn":             {bug: "believes in unknown orders"},
		"result-other-owner/mint":          {bug: "pays the session"},
		"result-other-owner/burn":          {bug: "pays the session"},
		"result-other-intent/more-back":    {bug: "believes the result"},
		"result-other-intent/more-granted": {bug: "believes the result"},
		"result-other-intent/negative": layer(func(s *studio, w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
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
		"result-other-intent/mint-as-burn": {bug: "believes the result"},
		"result-other-intent/burn-as-mint": {bug: "believes the result"},
		"result-other-intent/asset":        {bug: "believes the result"},
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
		m["result-odd-mint/"+id], m["result-odd-burn/"+id] = rejects(when), rejects(when)
	}
	return m
}
