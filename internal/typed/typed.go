// Package typed checks texts that a person has typed, or copied from a page, a file or a shell: what another
// program added to one on the way, replaced in it, or cut from it.
package typed

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// Unseen names the first character of a text that nobody sees, or returns "". It comes from a
// file in another encoding, from two lines, or from a page that a person copied.
func Unseen(text string) string {
	names := map[rune]string{
		0: "a NUL, as in a file in UTF-16", '\n': "a line break", '\r': "a line break",
		'\ufeff': "a byte order mark", '\u200b': "a zero-width space",
	}
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return fmt.Sprintf("%s (%U)", cmp.Or(names[r], "a character that nobody sees"), r)
		}
	}
	return ""
}

// Problem says why a text is not as it was meant, without quoting it, or returns "". It completes a sentence
// that the name of the text begins.
func Problem(text string) string {
	what := Unseen(text)
	switch {
	case !utf8.ValidString(text):
		return "must be valid UTF-8"
	case what != "":
		return "must not have " + what
	case strings.ContainsRune(text, utf8.RuneError):
		return "must not have a character that another program could not read (U+FFFD)"
	case strings.TrimSpace(text) != text:
		return "must not begin or end with white space"
	}
	for _, r := range text {
		if r != ' ' && unicode.IsSpace(r) {
			return fmt.Sprintf("must not have a space of another kind (%U)", r)
		}
	}
	for _, pair := range pairs {
		if inner, ok := strings.CutPrefix(text, pair[0]); ok && strings.HasSuffix(inner, pair[1]) {
			return "must not have quotes around it"
		}
	}
	if isVariable(text) {
		return "must not be the name of a variable, which nothing has replaced"
	}
	return ""
}

// isVariable reports whether a text is $A_NAME, ${NAME} or %NAME%. An item may well be called $GOLD.
func isVariable(text string) bool {
	for _, form := range [][2]string{{"${", "}"}, {"%", "%"}, {"$", ""}} {
		name, begins := strings.CutPrefix(text, form[0])
		name, ends := strings.CutSuffix(name, form[1])
		if begins && ends && name != "" && strings.Trim(strings.ToUpper(name), nameCharacters) == "" {
			return form[0] == "${" || form[0] == "%" && name == strings.ToUpper(name) ||
				strings.Contains(name, "_") && name == strings.ToUpper(name)
		}
	}
	return false
}

const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

// pairs are what programs and pages put around a text. A text may also be nothing but a mark.
var pairs = [][2]string{{`"`, `"`}, {"'", "'"}, {"`", "`"}, {"“", "”"}, {"„", "“"}, {"„", "”"}, {"‘", "’"},
	{"‚", "‘"}, {"«", "»"}, {"»", "«"}}

// Cut says that a page has shown a text with fewer characters than it has, or returns "".
func Cut(text string) string {
	for _, dots := range []string{"…", "...", "⋯", ".."} {
		if strings.Contains(text, dots) {
			return fmt.Sprintf("must be whole: with %s, a page shows a part of it only", dots)
		}
	}
	return ""
}

// Hex says why a text is not 0x and the hex digits of so many bytes, or returns "".
func Hex(text string, bytes int) string {
	if problem := cmp.Or(Problem(text), Cut(text)); problem != "" {
		return problem
	}
	form := fmt.Sprintf("must be 0x followed by %d hex digits", 2*bytes)
	digits, prefixed := strings.CutPrefix(text, "0x")
	other := strings.Trim(digits, hexDigits)
	switch {
	case text == "":
		return "is required and " + form
	case strings.HasPrefix(text, "0X"):
		return form + ", and begins with 0X"
	case !prefixed:
		return form + ", and does not begin with 0x"
	case other != "":
		r, _ := utf8.DecodeRuneInString(other)
		return fmt.Sprintf("%s, and has %q", form, r)
	case len(digits) != 2*bytes:
		return fmt.Sprintf("%s, and has %d", form, len(digits))
	}
	return ""
}

const hexDigits = "0123456789abcdefABCDEF"

// Address says why a text is not an address, or returns "". The case of its letters is a checksum.
func Address(text string) string {
	if problem := Hex(text, common.AddressLength); problem != "" {
		return problem
	}
	digits := text[2:]
	if right := common.HexToAddress(text).Hex(); text != right && digits != strings.ToLower(digits) &&
		digits != strings.ToUpper(digits) {
		return fmt.Sprintf("must be %s, or all in lower case: the case of its letters is a wrong "+
			"checksum (EIP-55)", right)
	}
	return ""
}

// ParseAddress parses an address. The error completes a sentence that the name of the text begins.
func ParseAddress(text string) (common.Address, error) {
	if problem := Address(text); problem != "" {
		return common.Address{}, fmt.Errorf("%s", problem)
	}
	return common.HexToAddress(text), nil
}

// ParseHash parses the hash of a transaction, as [ParseAddress] does an address.
func ParseHash(text string) (common.Hash, error) {
	if problem := Hex(text, common.HashLength); problem != "" {
		return common.Hash{}, fmt.Errorf("%s", problem)
	}
	return common.HexToHash(text), nil
}

// ParseUUID parses a UUID, as [ParseAddress] does an address.
func ParseUUID(text string) (uuid.UUID, error) {
	if problem := cmp.Or(Problem(text), Cut(text)); problem != "" {
		return uuid.Nil, fmt.Errorf("%s", problem)
	}
	id, err := uuid.Parse(text)
	if err != nil || uuid.Validate(text) != nil {
		return uuid.Nil, fmt.Errorf("must be a UUID, with all its 36 characters")
	}
	return id, nil
}
