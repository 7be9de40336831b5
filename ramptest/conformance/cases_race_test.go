package conformance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

func raceMutants() map[string]mutant {
	return map[string]mutant{
		"players-at-once/approvals": {bug: "approves for the latest caller"},
		"players-at-once/results":   {bug: "ends what the latest caller ends"},
		"players-at-once/assets":    {bug: "lists for the latest caller"},
		"orders-at-once/one-asset":  {bug: "locks validate and result apart"},
		"orders-at-once/two-assets": {bug: "locks each asset apart"},
		"orders-at-once/same-order": {bug: "locks in another order"},
		"orders-at-once/crossed":    {bug: "locks assets as they are listed"},
	}
}

// What one player causes in the calls of another is said first, and nothing else fails by
// accident, however many cases were to be tried at the same time.
func TestWhatMixesUpPlayersIsTheOnlyCause(t *testing.T) {
	t.Parallel()
	skipSlow(t, true)
	for id, m := range raceMutants() {
		family, input, _ := strings.Cut(id, "/")
		if family != "players-at-once" {
			continue
		}
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, m, func(t *testing.T, s *studio) {
				verdicts := judged(t, s)
				assert.Equal(t, "players-at-once", conformance.Causes(verdicts)[0].First().Case.ID)
				for _, v := range verdicts {
					if v.Case.ID == family {
						assert.Contains(t, v.String(), "with: "+input+" ")
					} else if !strings.HasSuffix(v.Case.ID, "-at-once") {
						assert.NotEqual(t, conformance.Failed, v.Outcome, v.String())
					}
				}
			})
		})
	}
}
