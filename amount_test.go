package ramp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// amount parses a text that is known to be valid.
func amount(t testing.TB, text string) ramp.Amount { return must.Get(ramp.ParseAmount(text))(t) }

func TestAmountKeepsEveryDigit(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"zero", "0", "0"},
		{"minus zero is zero", "-0", "0"},
		{"zero with a fraction of zeros", "0.000", "0"},
		{"zero with any exponent", "0e999999999999999999999999", "0"},
		{"256 bytes", "1." + strings.Repeat("0", 254), "1"},
		{"more than a float holds", "9007199254740993", "9007199254740993"},
		{"a fraction", "0.5", "0.5"},
		{"needless zeros behind the point", "1.500", "1.5"},
		{"an exponent that moves the point right", "1.25e1", "12.5"},
		{"an exponent that moves it past the digits", "1.25e4", "12500"},
		{"an exponent that moves the point left", "125e-4", "0.0125"},
		{"an exponent with leading zeros", "7e002", "700"},
		{"zeros that an exponent takes away", "12000e-3", "12"},
		{"100 digits before the point", strings.Repeat("9", 100), strings.Repeat("9", 100)},
		{"100 digits before the point by exponent", "1e99", "1" + strings.Repeat("0", 99)},
		{"100 digits behind the point", "1e-100", "0." + strings.Repeat("0", 99) + "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := must.Get(ramp.ParseAmount(tt.text))(t)
			assert.Equal(t, tt.want, a.String())

			var read ramp.Amount
			require.NoError(t, json.Unmarshal([]byte(tt.text), &read))
			assert.Equal(t, a, read, "JSON reads as ParseAmount does")

			written := must.Get(json.Marshal(a))(t)
			assert.Equal(t, tt.want, string(written), "JSON holds a plain number")
		})
	}
}

// The size of an amount must be checked before it is built, because an exponent can
// name any size.
func TestAmountRejectsWhatNoQuantityNeeds(t *testing.T) {
	for _, text := range []string{
		"1e100",
		"1e-101",
		"1e999999999",
		"1e-999999999",
		"1e9223372036854775807",  // the largest int64: adding to it wraps around
		"1e-9223372036854775807", // and the smallest
		"1e-9223372036854775808",
		"1.5e9223372036854775806",
		"1e999999999999999999999999999",
		"1e-999999999999999999999999999",
		strings.Repeat("9", 101),
		"0." + strings.Repeat("0", 100) + "1",
		strings.Repeat("9", 1<<20),
		"1." + strings.Repeat("0", 255), // 257 bytes
		"1e" + strings.Repeat("0", 300) + "1",
	} {
		t.Run(text[:min(len(text), 40)], func(t *testing.T) {
			_, err := ramp.ParseAmount(text)
			require.ErrorContains(t, err, "digits")
			assert.Less(t, len(err.Error()), 100, "the text itself is not repeated")

			var read ramp.Amount
			require.Error(t, json.Unmarshal([]byte(text), &read))
		})
	}
}

func TestAmountInJSONIsANumberAndNothingElse(t *testing.T) {
	for _, text := range []string{`"5"`, `""`, `true`, `false`, `null`, `{}`, `[]`, `[5]`, `{"amount":5}`} {
		t.Run(text, func(t *testing.T) {
			kept := ramp.NewAmount(7)
			assertFields(t, json.Unmarshal([]byte(text), &kept), "amount must be a number, not ")
			assert.Zero(t, kept, "a failed read leaves nothing of before")
		})
	}
}

func TestAmountsOfOneValueAreEqual(t *testing.T) {
	for _, text := range []string{"1", "1.0", "1e0", "10e-1", "0.1e1", "1.000000"} {
		assert.Equal(t, ramp.NewAmount(1), amount(t, text), text)
		assert.True(t, ramp.NewAmount(1) == amount(t, text), text)
	}
	assert.Equal(t, ramp.Amount{}, amount(t, "-0.0e5"))
	assert.Equal(t, ramp.Amount{}, ramp.NewAmount(0))
	assert.NotEqual(t, amount(t, "1"), amount(t, "-1"))
}

func TestAmountSignAndCmp(t *testing.T) {
	ordered := []string{"-1e30", "-2", "-0.5", "0", "0.0001", "0.5", "1", "9007199254740992",
		"9007199254740993", "1e30"}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i != j {
				want = map[bool]int{true: -1, false: 1}[i < j]
			}
			assert.Equal(t, want, amount(t, a).Cmp(amount(t, b)), "%s against %s", a, b)
		}
		assert.Equal(t, amount(t, a).Rat().Sign(), amount(t, a).Sign(), a)
	}
}

func TestAmountAddIsExact(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"0", "0", "0"},
		{"0.1", "0.2", "0.3"},
		{"5", "-5", "0"},
		{"0.5", "0.5", "1"},
		{"9007199254740993", "1", "9007199254740994"},
		{"1e30", "1e-18", "1000000000000000000000000000000.000000000000000001"},
		{"1e99", "1e-100", "1" + strings.Repeat("0", 99) + "." + strings.Repeat("0", 99) + "1"},
	} {
		sum := must.Get(amount(t, tt.a).Add(amount(t, tt.b)))(t)
		assert.Equal(t, tt.want, sum.String(), "%s + %s", tt.a, tt.b)
	}

	_, err := amount(t, strings.Repeat("9", 100)).Add(ramp.NewAmount(1))
	assert.ErrorContains(t, err, "digits", "a sum that no amount can hold is an error, not a wrong number")
}

func TestAmountsAndTheSmallestUnitsOfATokenAreExact(t *testing.T) {
	for _, tt := range []struct {
		amount   string
		decimals int
		units    string // empty if there are none
	}{
		{"0", 18, "0"}, {"1", 18, "1000000000000000000"}, {"1.5", 18, "1500000000000000000"},
		{"0.000000000000000001", 18, "1"},
		{"-2.25", 6, "-2250000"}, {"7", 0, "7"}, {"1e30", 18, "1" + strings.Repeat("0", 48)}, {"0.5", 0, ""},
		{"0.0000001", 6, ""},
	} {
		units, err := amount(t, tt.amount).Units(tt.decimals)
		if tt.units == "" {
			assert.ErrorContains(t, err, "decimals", tt.amount)
			continue
		}
		require.NoError(t, err, tt.amount)
		assert.Equal(t, tt.units, units.String(), tt.amount)
		back := must.Get(ramp.AmountOfUnits(units, tt.decimals))(t)
		assert.Equal(t, amount(t, tt.amount), back)
	}
}
