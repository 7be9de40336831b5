package ramptest

import (
	"testing"

	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// Conformance judges the server of the target: each case of package conformance
// is a subtest by its ID. A MUST that fails, fails the test; a SHOULD is logged,
// unless the target is strict. What could not be tried fails the test too, so
// that nobody takes it for passed.
func Conformance(t *testing.T, target conformance.Target) {
	t.Helper()
	judge, err := conformance.New(target)
	if err != nil {
		t.Fatal(err)
	}
	defer judge.Close()
	if err := judge.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range conformance.Cases() {
		t.Run(c.ID, func(t *testing.T) {
			switch v := judge.Try(t.Context(), c); v.Outcome {
			case conformance.Failed, conformance.Untried:
				t.Error(v)
			case conformance.Noted:
				t.Log(v)
			case conformance.Skipped:
				t.Skip(v.Saw)
			}
		})
	}
}
