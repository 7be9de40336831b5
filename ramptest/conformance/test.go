package conformance

import "testing"

// Test judges the server of the target in a test. Each case is a subtest named by its ID. A failed MUST fails the test. A failed SHOULD is only
// logged, unless the target is strict or the failure gives assets away. A case that
// could not be tried fails the test too, so that it is not mistaken for a pass.
//
// Some cases prove nothing until a basic ability works, such as giving back after a
// failed mint. Without the ability these subtests are skipped, and the test itself
// fails, whichever subtests run. The test ends when the server stops answering.
func Test(t *testing.T, target Target) {
	t.Helper()
	judge, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	defer judge.Close()
	if err := judge.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting := make(map[string]int)
	for _, c := range Cases() {
		t.Run(c.ID, func(t *testing.T) {
			v := judge.Try(t.Context(), c)
			switch waiting[v.Until]++; v.Outcome {
			case Failed, Untried:
				t.Error(v)
			case Noted:
				t.Log(v)
			case Skipped, Unproven, Waived:
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
