package conformance_test

import (
	"net/http"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

func orderMutants() map[string]mutant {
	return map[string]mutant{
		"mint-succeeds":                   {bug: "takes nothing"},
		"mint-fails":                      {bug: "keeps what failed"},
		"burn-succeeds":                   {bug: "never grants"},
		"burn-fails":                      {bug: "grants what failed"},
		"mint-takes-at-validate":          {bug: "holds until the result"},
		"burn-grants-at-result":           {bug: "shows burns at validate"},
		"burn-spent-early":                {bug: "grants at validate"},
		"mint-several":                    {bug: "one order a player"},
		"validate-twice":                  {bug: "takes again"},
		"validate-twice-back":             {bug: "takes again"},
		"validate-twice-approved":         {bug: "declines repeats"},
		"validate-at-once":                {bug: "looks, then takes"},
		"mints-at-once":                   {bug: "reads, then writes"},
		"mints-at-once-short":             {bug: "reads, then writes"},
		"validate-other-amount":           {bug: "approves whatever is known"},
		"validate-other-amount-declined":  {bug: "pins no amount"},
		"validate-other-digest":           {bug: "pins no amount"},
		"validate-other-tokens":           {bug: "pins no amount"},
		"validate-other-direction":        {bug: "pins no amount"},
		"validate-other-owner":            {bug: "approves whatever is known"},
		"validate-other-owner-declined":   {bug: "approves whatever is known"},
		"validate-other-digest-declined":  repeats(),
		"validate-failed-other-digest":    {bug: "approves whatever is known"},
		"validate-succeeded-other-digest": {bug: "approves whatever is known"},
		"validate-after-failure":          {bug: "approves whatever is known"},
		"validate-after-success":          {bug: "forgets settled orders"},
		"validate-declined-then-right":    {bug: "remembers declined orders"},

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

		"restart-mint-fails":     {bug: "forgets orders"},
		"restart-burn-succeeds":  {bug: "forgets orders"},
		"restart-result-again":   {bug: "forgets orders"},
		"restart-validate-again": {bug: "forgets orders"},
	}
}
