package racedetector

import "testing"

// Skip skips a test that computes for long by itself if the detector is on: it would take ten times as
// long, and nothing in it overlaps. internal/test/testrun then runs it without.
func Skip(t testing.TB) {
	t.Helper()
	if On {
		t.Skip("it takes ten times as long with the race detector, and runs without")
	}
}
