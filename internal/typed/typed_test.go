package typed

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const hash = "0x88df016429689c079f3b2f6ad39fa052532c56795b733da78a91ebe6a713944b"

// What another program added, replaced or cut is named.
func TestWhatAnotherProgramDidToATextIsNamed(t *testing.T) {
	for text, problem := range map[string]string{
		"item_gold":          "",
		"a b":                "",
		"$GOLD":              "",
		`say "hi"`:           "",
		"L’Étoile":           "",
		"\ufeffgold":         "must not have a byte order mark (U+FEFF)",
		"go\u200bld":         "must not have a zero-width space (U+200B)",
		"gold\r":             "must not have a line break (U+000D)",
		"gold\n":             "must not have a line break (U+000A)",
		"g\x00o\x00":         "must not have a NUL, as in a file in UTF-16 (U+0000)",
		"gold ":              "must not begin or end with white space",
		"\u00a0gold":         "must not begin or end with white space",
		"my\u00a0gold":       "must not have a space of another kind (U+00A0)",
		"my\u3000gold":       "must not have a space of another kind (U+3000)",
		`"gold"`:             "must not have quotes around it",
		"'gold'":             "must not have quotes around it",
		"“gold”":             "must not have quotes around it",
		"«gold»":             "must not have quotes around it",
		"gold\xff":           "must be valid UTF-8",
		"g\ufffdld":          "must not have a character that another program could not read (U+FFFD)",
		"$RAMP_PROJECT":      "must not be the name of a variable, which nothing has replaced",
		"${project}":         "must not be the name of a variable, which nothing has replaced",
		"%RAMP_PROJECT%":     "must not be the name of a variable, which nothing has replaced",
		"price of ${item} 1": "",
	} {
		assert.Equal(t, problem, Problem(text), "%+q", text)
	}
}

func TestWhatIsWrongWithAHashIsNamed(t *testing.T) {
	const form = "must be 0x followed by 64 hex digits"
	for text, problem := range map[string]string{
		hash:                 "",
		"":                   "is required and " + form,
		"0X" + hash[2:]:      form + ", and begins with 0X",
		hash[2:]:             form + ", and does not begin with 0x",
		hash[:65]:            form + ", and has 63",
		hash + "0":           form + ", and has 65",
		hash[:65] + "g":      form + `, and has 'g'`,
		hash[:65] + "\u0430": form + `, and has 'а'`,
		"0x88df…944b":        "must be whole: with …, a page shows a part of it only",
		"0x88df...944b":      "must be whole: with ..., a page shows a part of it only",
		hash + "\n":          "must not have a line break (U+000A)",
		"'" + hash + "'":     "must not have quotes around it",
	} {
		_, err := ParseHash(text)
		if problem == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, problem)
		}
	}
}

func TestWhatIsWrongWithAnAddressOrAUUIDIsNamed(t *testing.T) {
	address := func(text string) error { _, err := ParseAddress(text); return err }
	id := func(text string) error { _, err := ParseUUID(text); return err }
	for _, test := range []struct {
		err  error
		want string
	}{
		{address("0xd8da6bf26964af9d7eed9e03e53415d37aa96045"), ""},
		{address("0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"), ""},
		{address("0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045"),
			"must be 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045, or all in lower case: the case of its letters is a " +
				"wrong checksum (EIP-55)"},
		{address("0xd8da…6045"), "must be whole: with …, a page shows a part of it only"},
		{address("d8da6bf26964af9d7eed9e03e53415d37aa96045"),
			"must be 0x followed by 40 hex digits, and does not begin with 0x"},
		{id("b65696e5-4f14-4a5b-9d2b-5d0a1d9d7c11"), ""},
		{id("b65696e54f144a5b9d2b5d0a1d9d7c11"), ""},
		{id("b65696e5"), "must be a UUID, with all its 36 characters"},
		{id("b65696e5-4f1…"), "must be whole: with …, a page shows a part of it only"},
		{id("b65696e5‑4f14‑4a5b‑9d2b‑5d0a1d9d7c11"), "must be a UUID, with all its 36 characters"},
		{id("b65696e5-4f14-4a5b-9d2b-5d0a1d9d7c11\u200b"), "must not have a zero-width space (U+200B)"},
	} {
		if test.want == "" {
			assert.NoError(t, test.err)
		} else {
			assert.EqualError(t, test.err, test.want)
		}
	}
}
