package judge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/judge"
)

func orderMutants() map[string]mutant {
	return map[string]mutant{
		"mint-succeeds":    {bug: "takes nothing"},
		"mint-fails":       {bug: "keeps what failed"},
		"burn-succeeds":    {bug: "never grants"},
		"burn-fails":       {bug: "grants what failed"},
		"burn-spent-early": {bug: "grants at validate"},
		"mint-several/sizes": both(mutant{bug: "ends the latest order"},
			mutant{bug: "ignores the result's intent"}),
		"mint-several/equal":                {bug: "knows orders by their intent"},
		"mint-spent-twice":                  {bug: "takes at the result"},
		"mint-several/uuids":                edits("uuid", func(_ message, old any) any { return beginningOf(old) }),
		"repeats/each":                      {bug: "takes again"},
		"repeats/validate":                  {bug: "takes again"},
		"repeats/mint-failure":              {bug: "forgets after ten"},
		"repeats/burn-success":              {bug: "forgets after ten"},
		"repeats/mint-success":              {bug: "a repeat is an error"},
		"repeats/burn-failure":              {bug: "a repeat is an error"},
		"validate-twice-approved":           {bug: "rejects repeats"},
		"validate-twice-balance":            {bug: "looks at balances first"},
		"validate-at-once":                  {bug: "looks, then takes"},
		"mints-at-once/small":               {bug: "reads, then writes"},
		"mints-at-once/short":               {bug: "reads, then writes"},
		"validate-other/more":               {bug: "approves whatever is known"},
		"validate-other/amount":             {bug: "keeps the last amount + ignores the result's intent"},
		"validate-other/second-mint":        {bug: "pins no amount"},
		"validate-other/tokens":             {bug: "pins no amount"},
		"validate-other/direction":          {bug: "pins no amount"},
		"validate-other/other-player":       {bug: "approves whatever is known"},
		"validate-other/owner":              {bug: "approves whatever is known"},
		"validate-other/digest":             repeats(),
		"validate-after-end/failure-digest": {bug: "approves whatever is known"},
		"validate-after-end/success-digest": {bug: "approves whatever is known"},
		"validate-after-end/failure":        {bug: "approves whatever is known"},
		"validate-after-end/success":        {bug: "reuses settled orders"},
		"mint-again":                        {bug: "keeps a hold"},
		"validate-rejected-then-right":      {bug: "remembers rejected orders"},
	}
}

// beginningOf returns a UUID with the beginning of another.
func beginningOf(id any) any {
	if text, _ := id.(string); len(text) == 36 {
		return text[:35] + "0"
	}
	return id
}

// A server may take one open mint of a player for another, or forget all but one.
func TestOpenMintsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, b := range []bug{"one order a player", "ends the latest order + ignores the result's intent"} {
		v := newStudio(t, mutant{bug: b}).unopened(t).Try(t.Context(), caseOf(t, "mint-several/sizes"))
		assert.Equal(t, judge.Failed, v.Outcome, b)
	}
	// A game may approve orders of one size only.
	v := newStudio(t,
		rejects(func(m message) bool { return !is("intent.from.0.amount", "2")(m) && m.at("intent.from") != nil })).
		unopened(t).Try(t.Context(), caseOf(t, "mint-several/sizes"))
	assert.Equal(t, judge.Passed, v.Outcome, v.String())
}
