package racedetector

import "testing"

// Reason is why Skip skips a test.
const Reason = "it takes ten times as long with the race detector, and runs without"

// Skip skips a test that computes for long by itself if the detector is on: it would take ten times as
// long, and nothing in it overlaps. internal/testrun runs what was skipped without the detector.
func Skip(t testing.TB) {
	t.Helper()
	if On {
		t.Skip(Reason)
	}
}
