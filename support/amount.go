package support

import (
	"maps"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go"
)

// Amount is an exact amount. In JSON it is a string, because many readers round numbers.
type Amount struct{ ramp.Amount }

// MarshalJSON writes the amount as a string.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(`"` + a.String() + `"`), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Amount) UnmarshalJSON(b []byte) (err error) {
	a.Amount, err = ramp.ParseAmount(strings.Trim(string(b), `"`))
	return err
}

// negated returns the amount with the other sign.
func (a Amount) negated() Amount {
	text, below := strings.CutPrefix(a.String(), "-")
	if !below && a.Sign() != 0 {
		text = "-" + text
	}
	negated, _ := ramp.ParseAmount(text) // it is one
	return Amount{negated}
}

// movedText writes amounts of assets for a person, sorted, such as "-500 item_gold".
func movedText(amounts map[string]Amount) string {
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(amounts)) {
		texts = append(texts, amounts[id].String()+" "+id)
	}
	return strings.Join(texts, ", ")
}
