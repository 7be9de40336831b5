package ramptest

import (
	"testing"

	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// Conformance judges the server of the target: each case of package conformance
// is a subtest by its ID. A MUST that fails, fails the test; a SHOULD is logged,
// unless the target is strict or something is given away. What could not be
// tried fails the test too, so that nobody takes it for passed.
//
// Subtests that prove nothing until a basic ability works, such as that a failed
// mint gives back, are skipped, and the ability fails the test itself, whichever
// subtests run. When the server stops answering, the test ends.
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
	waiting := make(map[string]int)
	for _, c := range conformance.Cases() {
		t.Run(c.ID, func(t *testing.T) {
			v := judge.Try(t.Context(), c)
			switch waiting[v.Until]++; v.Outcome {
			case conformance.Failed, conformance.Untried:
				t.Error(v)
			case conformance.Noted:
				t.Log(v)
			case conformance.Skipped, conformance.Unproven:
				t.Skip(v)
			}
		})
		if err := judge.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range judge.Opening() {
		if n := waiting[v.Case.ID]; n > 0 {
			t.Errorf("mend this first, for %d cases wait for it: %s: %v", n, v.Case.ID, v)
		}
	}
}
