package judge

import "testing"

// Test runs all cases as subtests.
func Test(t *testing.T, target Config) {
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
			case Failed, Untried, Unasked:
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
