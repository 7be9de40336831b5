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

// reds are all that is known. Whoever mends one deletes it here.
var reds []red

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
