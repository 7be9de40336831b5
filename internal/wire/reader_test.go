package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Each byte of a few texts is left out, doubled and replaced by each byte that means something.
func TestWhatIsJSONIsWhatEncodingJSONSays(t *testing.T) {
	check := func(text string) {
		t.Helper()
		require.Equal(t, json.Valid([]byte(text)), wire.IsJSON([]byte(text)), "%.100q", text)
	}
	for _, text := range []string{
		"", "null", "true", "false", "0", "-0", "12", "-1.50e+2", "1E9", `""`, "[]", "{}", " [ 1 , [ ] , { } ] ",
		`"\"\\\/\b\f\n\r\t\u00e4\uD83D"`, `"12345678123456781\u0031 ä\xff"`, "\ufeff1",
		"\r\n\t { \"a\" : 1 , \"\\u0061\" : [ true , false , null ] } ", `{"a":{"b":[{"c":"d"},-0.1,2e-3]}}`,
	} {
		check(text)
		for n := range len(text) {
			check(text[:n])
			check(text[:n] + text[n+1:])
			for _, other := range "\x00\x01\x1f\v \n\"\\/[]{},:+-.0159aefnrtux\u007f\u0085ä" {
				check(text[:n] + string(other) + text[n:])
				check(text[:n] + string(other) + text[n+1:])
			}
		}
	}
	// A string is read in steps of 8 bytes.
	for n := range 24 {
		for _, c := range []string{
			`"`, `\`, `\"`, `\u1234`, "\x00", "\x1f", " ", "!", "#", "[", "]", "\x7f", "\x80", "\xa2", "\xdc", "\xff",
		} {
			for _, rest := range []int{0, 1, 7, 8, 9} {
				check(`"` + strings.Repeat("x", n) + c + strings.Repeat("y", rest) + `"`)
				check(`"` + strings.Repeat("\xff", n) + c + strings.Repeat("\x80", rest) + `"`)
			}
		}
	}
	for _, depth := range []int{9_999, 10_000, 10_001, 1_000_000} {
		check(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		check(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
	}
}
