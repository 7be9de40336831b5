package pairs

import (
	"slices"
	"testing"

	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

// red is a scene that shows a fault which is not mended yet, and the issue that will mend it.
type red struct {
	scene string
	fault string // its kind, player and amount
	issue string
}

const (
	evidence = "What a list, a clock and a copy prove"
)

// reds are all that is known. Whoever mends one deletes it here.
var reds = []red{
	{"burn | alice batches two burns @ page", "lost alice -100", evidence},
	{"burn | alice batches two burns @ page", "stuck alice +100", evidence},
	{"failed mint | bob's mint is in her transaction @ page", "lost bob -100", evidence},
	{"mint | bob's mint is in her transaction @ page", "stuck bob -100", evidence},
	{"failed mint | bob's mint is in her transaction @ page | never sends a result @ validate", "lost alice -100",
		evidence},
	{"mint | bob's mint is in her transaction @ page | never sends a result @ validate", "stuck alice -100", evidence},
	{"failed mint | bob's mint is in her transaction @ page | the accounts of alice and bob merge @ page",
		"lost alice -100", evidence},
	{"failed mint | the price goes up @ validate | bob's mint is in her transaction @ validate", "lost bob -200",
		evidence},
	{"mint | the price goes up @ validate | bob's mint is in her transaction @ validate", "stuck bob -200", evidence},
}

// TestReds plays each of them: one that is green, or shows something else, fails.
func TestReds(t *testing.T) {
	racedetector.Skip(t)
	s := newStage(t)
	for _, r := range reds {
		scene, gap, list := find(t, r.scene)
		p := s.play(t, job{scene, gap, list})
		if !slices.ContainsFunc(p.faults, func(f fault) bool { return f.String() == r.fault }) {
			t.Errorf("%q has no %q any more, but %v: delete it from the list, or correct it", r.scene, r.fault,
				p.faults)
		}
	}
}

// redKeys are the findings that are known to be red, with their issues.
func redKeys(t *testing.T) map[string]string {
	keys := map[string]string{}
	for _, r := range reds {
		_, _, list := find(t, r.scene)
		keys[causeOf(list)+": "+r.fault] = r.issue
	}
	return keys
}
