package ramptest

import (
	"testing"

	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// Conformance judges the server of the target. Each case of package conformance is
// a subtest named by its ID. A failed MUST fails the test. A failed SHOULD is only
// logged, unless the target is strict or the failure gives assets away. A case that
// could not be tried fails the test too, so that it is not mistaken for a pass.
//
// Some cases prove nothing until a basic ability works, such as giving back after a
// failed mint. Without the ability these subtests are skipped, and the test itself
// fails, whichever subtests run. The test ends when the server stops answering.
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
			case conformance.Skipped, conformance.Unproven, conformance.Waived:
				t.Skip(v)
			}
		})
		if err := judge.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range judge.Opening() {
		if n := waiting[v.Case.ID]; n > 0 {
			t.Errorf("fix this first, because %d cases depend on it: %s: %v", n, v.Case.ID, v)
		}
	}
}
