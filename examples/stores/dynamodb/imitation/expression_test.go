package imitation

import "testing"

// A store that keeps all balances of a player in one document changes them with one update.
func TestSeveralBalancesInOneItem(t *testing.T) {
	n := func(text string) value { return value{N: &text} }
	player := func() *expression {
		return &expression{item: item{"gold": n("5"), "gem": n("7")},
			names:  map[string]string{"#a": "gold", "#b": "gem"},
			values: item{":a": n("3"), ":b": n("7")}, used: map[string]bool{}}
	}
	for condition, want := range map[string]bool{
		"#a >= :a AND #b >= :b": true,
		"(attribute_not_exists(#a) OR #a <= :a) AND (attribute_not_exists(#b) OR #b <= :b)": false,
		"(#a >= :a)": true,
	} {
		if holds, err := player().condition(condition); err != nil || holds != want {
			t.Errorf("%s: %v, %v", condition, holds, err)
		}
	}
	for update, want := range map[string][2]string{
		"SET #a = #a - :a, #b = #b - :b": {"2", "0"},
		"ADD #a :a, #b :b":               {"8", "14"},
	} {
		after := item{}
		err := player().update(update, after)
		if err != nil || *after["gold"].N != want[0] || *after["gem"].N != want[1] {
			t.Errorf("%s: %v, %v", update, after, err)
		}
	}
	for _, wrong := range []string{"SET #a = #b - :a", "SET #a = :a", "ADD #a :a #b :b", "ADD #a", "REMOVE #a",
		"ADD #a :a,"} {
		if err := player().update(wrong, item{}); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}
