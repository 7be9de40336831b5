package judge_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

func intentMutants() map[string]mutant {
	const from, to = "intent.from.0.type", "intent.to.0.type"
	method := func(method, kind string) func(message) bool {
		return all(is("intent.method", method), is("intent.type", kind))
	}
	aMint, aBurn := method("mint", "assemble"), method("burn-permit", "disassemble")
	return map[string]mutant{
		"intent-mixed/mint-disassemble": approves(method("mint", "disassemble")),
		"intent-mixed/burn-assemble":    approves(method("burn-permit", "assemble")),
		"intent-mixed/mint-as-burn":     approves(all(aBurn, is(from, "asset"))),
		"intent-mixed/unknown-method":   approves(is("intent.method", "steal")),
		"intent-mixed/unknown-type":     approves(is("intent.type", "reassemble")),
		"intent-sides/mint-from-token":  approves(all(aMint, is(from, "ERC20"))),
		"intent-sides/mint-to-asset": edits(to,
			func(m message, old any) any { return when(aMint(m), "ERC20", old) }),
		"intent-sides/burn-from-asset": edits(from,
			func(m message, old any) any { return when(aBurn(m), "ERC20", old) }),
		"intent-sides/burn-to-token": edits(to,
			func(m message, old any) any { return when(aBurn(m), "asset", old) }),
		"intent-older-words/burn":               rejects(is("intent.method", "burn")),
		"intent-older-words/erc20":              rejects(is(to, "erc20")),
		"intent-unknown-asset/unknown":          approves(is("intent.from.0.id", "item_of_nobody")),
		"intent-unknown-asset/constructor":      approves(is("intent.from.0.id", "constructor")),
		"intent-burn-unknown-asset/unknown":     approves(is("intent.to.0.id", "item_of_nobody")),
		"intent-burn-unknown-asset/constructor": approves(is("intent.to.0.id", "constructor")),
		"intent-second-short/unknown":           {bug: "takes one asset after the other"},
		"intent-second-short/too-much":          {bug: "takes one asset after the other"},
		"intent-second-short/alone":             {bug: "looks at the first asset's balance"},
		"intent-asset-twice/mint":               {bug: "takes the last entry"},
		"intent-asset-twice/mint-back":          {bug: "gives back the last entry"},
		"intent-asset-twice/burn":               {bug: "grants the last entry"},
		"intent-sum-too-much/most":              {bug: "takes more than there is"},
		"intent-sum-too-much/2-31":              sumAbove(4_000_000_000),
		"intent-sum-too-much/2-62":              sumAbove(9e18),
		"intent-sum-too-much/2-63":              sumAbove(18e18),
		"intent-two-assets":                     {bug: "takes the last entry"},
	}
}

func when(condition bool, yes, no any) any {
	if condition {
		return yes
	}
	return no
}

// termsMutants is a game that looks at neither the token nor the rate, as the right one
// does not.
func termsMutants() map[string]mutant {
	m := make(map[string]mutant)
	for _, id := range []string{"terms-token/mint", "terms-token/burn", "terms-rate/mint-double",
		"terms-rate/mint-outputs-twice", "terms-rate/burn-outputs-twice", "terms-rate/mint-half",
		"terms-rate/mint-one-less",
		"terms-rate/mint-one-token-more", "terms-rate/mint-tokens-2-32", "terms-rate/mint-tokens-2-64",
		"terms-rate/mint-tokens-2-256", "terms-rate/mint-tokens-smallest-unit", "terms-rate/burn-one-token-less",
		"terms-rate/burn-double", "terms-rate/burn-half", "terms-rate/burn-one-more", "terms-rate/burn-item-more"} {
		m[id] = mutant{terms: true}
	}
	more := approves(is("intent.to.1.id", "item_of_nobody"))
	more.terms = true
	m["terms-rate/burn-nothing-more"] = more
	return m
}

// sumAbove is a server that approves two entries whose sum, which wraps around, exceeds a
// number.
func sumAbove(n float64) mutant {
	return approves(func(m message) bool {
		one, _ := strconv.ParseFloat(m.text("intent.from.0.amount"), 64)
		two, _ := strconv.ParseFloat(m.text("intent.from.1.amount"), 64)
		return m.at("intent.from.1") != nil && one+two > n
	})
}

// playersHave lets each player begin with so many gems.
func (s *studio) playersHave(gems int64) {
	login := s.target.Player
	s.target.Player = func(ctx context.Context, name string) (ramp.Session, error) {
		session, err := login(ctx, name)
		s.game.mu.Lock()
		defer s.game.mu.Unlock()
		s.game.players[session.ID].balances["item_gem"] = ramp.NewAmount(gems)
		return session, err
	}
}

// A player who owns next to nothing of a second asset is the one from whom it must not be taken.
func TestASecondAssetMayBeScarce(t *testing.T) {
	t.Parallel()
	for bug, want := range map[bug]judge.Outcome{"": judge.Passed, "takes one asset after the other": judge.Failed} {
		inVirtualTime(t, mutant{bug: bug}, func(t *testing.T, s *studio) {
			s.playersHave(1)
			v := newJudge(t, s).Try(t.Context(), caseOf(t, "intent-second-short/too-much"))
			assert.Equal(t, want, v.Outcome, v.String())
		})
	}
}

// A server that gives back one asset of two is found with the amount that the judge chooses, even if the player
// owns much less of the second asset than of the first.
func TestTheAmountIsOneThatThePlayerCanPayOfBothAssets(t *testing.T) {
	t.Parallel()
	for gems, want := range map[int64]judge.Outcome{
		10_000: judge.Failed, // 400
		400:    judge.Failed, // 20
		41:     judge.Failed, // 2
		39:     judge.Unasked,
		0:      judge.Unasked,
	} {
		inVirtualTime(t, mutant{bug: "gives back the last entry"}, func(t *testing.T, s *studio) {
			s.playersHave(gems)
			v := newJudge(t, s).Try(t.Context(), caseOf(t, "intent-two-assets"))
			assert.Equal(t, want, v.Outcome, "%d gems: %s", gems, v)
			if want == judge.Unasked {
				assert.Contains(t, v.Set, "of item_gem (-login, -second-asset)")
			}
		})
	}
}

// A game of one asset says so. Then nothing about a second one is tried, and nothing is missing.
func TestAGameOfOneAssetSaysSo(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, mutant{}, func(t *testing.T, s *studio) {
		s.target.OneAsset = true
		require.ErrorContains(t, s.unopened(t).Ready(t.Context()), "the player lists a second asset, item_gem")
		s.game.mu.Lock()
		s.game.bug = "lists one asset"
		s.game.mu.Unlock()
		j := newJudge(t, s)
		for id, want := range map[string]judge.Outcome{"intent-two-assets": judge.Skipped,
			"intent-second-short": judge.Passed, "orders-at-once": judge.Passed} {
			v := j.Try(t.Context(), caseOf(t, id))
			assert.Equal(t, want, v.Outcome, v.String())
		}
	})
}
