package redact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go/internal/redact"
)

func inJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// escapers are the forms in which a secret is found.
var escapers = map[string]func(string) string{
	"as it is":    func(s string) string { return s },
	"JSON":        inJSON, // with \u0026 and \u003c
	"JSON of PHP": func(s string) string { return strings.ReplaceAll(inJSON(s), "/", `\/`) },
	"JSON of a browser": func(s string) string {
		return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(inJSON(s))
	},
	"JSON in ASCII": func(s string) string {
		var b strings.Builder
		for _, r := range inJSON(s) {
			switch {
			case r < utf8.RuneSelf:
				b.WriteRune(r)
			case r > 0xffff:
				r -= 0x10000
				fmt.Fprintf(&b, `\u%04X\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			default:
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
		return b.String()
	},
	"a query":               url.QueryEscape,
	"a query in lower case": func(s string) string { return lowerEscapes(url.QueryEscape(s)) },
	"a path":                url.PathEscape,
	"a URL, all of it": func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
		return b.String()
	},
}

func lowerEscapes(s string) string {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' {
			s = s[:i] + strings.ToLower(s[i:i+3]) + s[i+3:]
		}
	}
	return s
}

var awkward = []string{
	"0000", "user", "a/b+c=d&e", `quo"te\back`, "tök&en/1\"+ <2>", "50%25off", `C:\new\table`,
	"it's <b>bold</b>", "한국어 키",
	"emoji-\U0001f511-key", "a%41&b", "&amp;&lt;", `\u0041\/`, "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}

func TestASecretIsFoundAsItIsPercentEncodedAndEscapedForJSON(t *testing.T) {
	for _, secret := range awkward {
		r := redact.New("unrelated-secret", secret)
		for form, escape := range escapers {
			assert.Equal(t, "before [redacted] after", r.Text("before "+escape(secret)+" after"), "%q in %s",
				secret, form)
			assert.Equal(t, "[redacted]", r.Text(escape(secret)), "%q in %s", secret, form)
		}
	}
}

func TestOtherTextStaysAsItIs(t *testing.T) {
	r := redact.New("secret", "", "abc", "api-key=1", `b\c"d`)
	for _, text := range []string{
		"", "abc", "100%", "%", "%4", "%zz", `\`, `\u`, `\u00`, `\u00zz`, `\ud83d`, `\ud83d\u0041 and more`, `\q`,
		`{"a":"\u00e4 \/ +","b":20000}`, "&", "Secret",
		"\xff\xfe\x00", "soft\u00adhyphen \x1b[31m", "a+b c", "<html>\n\t</html>", "secre t", "secre", "%73ecre",
		strings.Repeat("%25", 1000),
	} {
		assert.Equal(t, text, r.Text(text))
		assert.Equal(t, text, redact.New().Text(text))
		assert.Equal(t, text, redact.New("abc").Text(text), "too short to be a secret")
	}
	assert.Equal(t, "ä [redacted] % \\/ ", r.Text("ä secret % \\/ "))
}

func TestSecretsMayOverlap(t *testing.T) {
	r := redact.New("token", "token-1").With("1-other", "-1-o")
	assert.Equal(t, "a [redacted] b [redacted]s", r.Text("a token-1-other b tokens"))
	assert.Equal(t, "[redacted]", redact.New("aaaa").Text("aaaaaa"))
}

// A truncated text must not end with the beginning of a secret.
func TestTheBeginningOfATextHoldsNoPartOfASecret(t *testing.T) {
	const secret = "pass/word&key"
	r := redact.New(secret)
	for _, escape := range escapers {
		text := strings.Repeat("x", 20) + escape(secret) + strings.Repeat("y", 20)
		for n := range len(text) + 3 {
			got := r.Beginning(text, n)
			switch {
			case n <= 20:
				assert.Equal(t, strings.Repeat("x", n), got)
			case n <= 20+len(escape(secret)):
				assert.Equal(t, strings.Repeat("x", 20)+redact.Mark, got)
			default:
				assert.Equal(t, r.Text(text[:min(n, len(text))]), got)
			}
		}
	}
}

func TestALineIsOneLineOfLimitedLength(t *testing.T) {
	r := redact.New("the-secret")
	for text, want := range map[string]string{
		"<h1>\r\n\tNo\u00a0gate\u2028</h1>\n":  "<h1> No gate </h1>",
		"\x1b[31mred\x1b[0m\u200b\x00":         "[31mred [0m",
		"not \xff text":                        "not text",
		strings.Repeat("x", 20):                strings.Repeat("x", 20),
		strings.Repeat("x", 21):                strings.Repeat("x", 17) + "…",
		strings.Repeat("영", 10):                strings.Repeat("영", 5) + "…",
		strings.Repeat(" ", 70) + "far away":   "far away",
		strings.Repeat(" ", 76) + "far away":   "far",
		strings.Repeat(" ", 76) + "the-secret": "[redacted]",
		"0123456789 the-secret":                "0123456789 [redac…",
	} {
		assert.Equal(t, want, r.Line(text, 20), "%q", text)
	}
}

func TestAnErrorKeepsWhatItIs(t *testing.T) {
	r := redact.New("secret")
	assert.NoError(t, r.Error(nil))
	plain := errors.New("plain")
	assert.Same(t, plain, r.Error(plain))

	inner := errors.New("secret inside")
	err := r.Error(fmt.Errorf("a secret: %w: %w", inner, context.DeadlineExceeded))
	assert.EqualError(t, err, "a [redacted]: [redacted] inside: context deadline exceeded")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorIs(t, err, inner)
	assert.NotErrorIs(t, err, context.Canceled)
	for e := err; e != nil; e = errors.Unwrap(e) {
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v", e, e, e), "secret")
	}
	assert.Len(t, r.Error(errors.New(strings.Repeat("x", 300_000))).Error(), redact.MaxError)
	assert.EqualError(t, r.Error(errors.New("two\nlines")), "two lines")
}

func TestARedactorShowsNoSecret(t *testing.T) {
	r := redact.New("s3cr3t-text").With("another-s3cr3t")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		assert.NotContains(t, fmt.Sprintf(verb, r)+fmt.Sprintf(verb, *r), "s3cr3t")
	}
}

func TestWhatIsSecretInAHeader(t *testing.T) {
	r := redact.New(redact.Header("Bearer abcd.efgh")...)
	assert.Equal(t, "x [redacted] bearer", r.Text("x Bearer abcd.efgh bearer"))
	assert.Equal(t, "x [redacted] bearer", r.Text("x abcd.efgh bearer"))
	assert.Equal(t, "[redacted]", redact.New(redact.Header("of-the-header")...).Text("of-the-header"))
}

// The test adds a space, because a character directly before a secret may form an
// escape with it.
func FuzzText(f *testing.F) {
	for _, secret := range awkward {
		f.Add(secret, "before ", " after", 9)
	}
	f.Fuzz(func(t *testing.T, secret, before, after string, n int) {
		r := redact.New(secret)
		for _, escape := range []func(string) string{escapers["as it is"], url.QueryEscape, url.PathEscape} {
			if got := r.Text(before + " " + escape(secret) + " " + after); len(secret) >= 4 {
				assert.Contains(t, got, redact.Mark)
			}
		}
		if n >= 0 {
			r.Beginning(before+secret+after, n)
		}
		line := r.Line(before+secret+after, 100)
		assert.LessOrEqual(t, len(line), 100)
		assert.NotContains(t, line, "\n")
	})
}

func TestRightToLeftTextIsIsolated(t *testing.T) {
	assert.Equal(t, "item_gold", redact.Isolate("item_gold"))
	assert.Equal(t, "\u2068זהב 100\u2069", redact.Isolate("זהב 100"))
	assert.Equal(t, "\u2068a\uFFFDb\u2069", redact.Isolate("a\u2069b"), "a name cannot end its isolation")
}
