package conformance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

func must(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func newJudge(t testing.TB, target conformance.Target) *conformance.Judge {
	t.Helper()
	judge, err := conformance.New(target)
	require.NoError(t, err)
	t.Cleanup(judge.Close)
	require.NoError(t, judge.Ready(t.Context()))
	return judge
}

func TestARightServerPassesEveryCase(t *testing.T) {
	judge := newJudge(t, newStudio(t, mutant{}).target)
	for _, c := range conformance.Cases() {
		t.Run(c.ID, func(t *testing.T) {
			v := judge.Try(t.Context(), c)
			assert.Equal(t, conformance.Passed, v.Outcome, v.String())
		})
	}
}

func TestEveryCaseSaysWhatItIs(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range conformance.Cases() {
		assert.False(t, seen[c.ID], "%s is there twice", c.ID)
		seen[c.ID] = true
		assert.Regexp(t, `^[a-z0-9-]+$`, c.ID)
		assert.Regexp(t, `^[A-Z].*\.$`, c.Title)
		assert.Regexp(t, `^[A-Z].*\.$`, c.Mend)
		assert.Regexp(t, `^[1-8](\.[1-7])?$`, c.Section)
		assert.Contains(t, []conformance.Level{conformance.Must, conformance.Should}, c.Level)
	}
	assert.GreaterOrEqual(t, len(seen), 120)
}
