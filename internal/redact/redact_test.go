package redact_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/redact"
)

func inJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// escapers are ways in which servers escape text that they echo.
var escapers = map[string]func(string) string{
	"as it is":      func(s string) string { return s },
	"JSON":          inJSON,
	"JSON of PHP":   func(s string) string { return strings.ReplaceAll(inJSON(s), "/", `\/`) },
	"JSON in ASCII": func(s string) string { q := strconv.QuoteToASCII(s); return q[1 : len(q)-1] },
	"JSON, all of it": func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if r > 0xffff {
				b.WriteString(inJSON(string(r)))
				continue
			}
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		return b.String()
	},
	"Go":      func(s string) string { q := strconv.Quote(s); return q[1 : len(q)-1] },
	"a query": url.QueryEscape,
	"a path":  url.PathEscape,
	"a URL, all of it": func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
		return b.String()
	},
	"HTML":        html.EscapeString,
	"UTF-16":      func(s string) string { return strings.Join(strings.Split(s, ""), "\x00") },
	"HTML in hex": func(s string) string { return strings.ReplaceAll(html.EscapeString(s), "&#39;", "&#x27;") },
	"HTML, all of it": func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, "&#%d;", r)
		}
		return b.String()
	},
}

var awkward = []string{
	"0000", "user", "a/b+c=d&e", `quo"te\back`, "tök&en/1\"+ <2>", "50%25off", `C:\new\table`, "it's <b>bold</b>", "한국어 키",
	"emoji-\U0001f511-key", "a%41&b", "&amp;&lt;", `\u0041\/`, "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}

func TestEveryFormOfASecretIsHidden(t *testing.T) {
	for _, secret := range awkward {
		r, pieces := redact.New("unrelated-secret", secret), redact.Pieces(secret)
		for inner, escape := range escapers {
			for outer, again := range escapers {
				escaped := again(escape(secret))
				assert.Equal(t, "before [redacted] after", r.Text("before "+escaped+" after"), "%q as %s, then %s", secret, inner, outer)
				assert.NotContains(t, pieces.Text("before "+escaped+" after"), escaped)
			}
			if query := url.QueryEscape(secret); !strings.ContainsAny(secret, `%\&`) { // upper case would change these escapes
				assert.Equal(t, "[redacted]", r.Text(strings.ToLower(query)))
				assert.Equal(t, "[redacted]", r.Text(strings.ToUpper(query)))
			}
		}
	}
}

func TestOtherTextStaysAsItIs(t *testing.T) {
	r := redact.New("secret", "", "abc", "api-key=1")
	for _, text := range []string{
		"", "abc", "100%", "%", "%4", "%zz", `\`, `\u`, `\u00`, `\q`, `{"a":"\u00e4 \/ +","b":20000}`, "&", "&amp", "&amp; &nosuch; &#; &#x; &#99999999;",
		"\xff\xfe\x00", "soft\u00adhyphen \x1b[31m", "a+b c", "<html>\n\t</html>", "SECRE T", strings.Repeat("%25", 1000),
	} {
		assert.Equal(t, text, r.Text(text))
		assert.Equal(t, text, redact.New().Text(text))
		assert.Equal(t, text, redact.New("abc").Text(text), "too short to be a secret")
		assert.Equal(t, text, (*redact.Redactor)(nil).Text(text))
	}
	for _, secret := range []string{"\x00\x00\x00\x00", "%00%00", "&lt;", `\u00ad`} { // empty or a single character after unescaping
		assert.Equal(t, "a < b", redact.New(secret).Text("a < b"))
		assert.Equal(t, "a [redacted] b", redact.New(secret).Text("a "+secret+" b"))
	}
	assert.Equal(t, "ä [redacted] % \\/ ", r.Text("ä Secret % \\/ "))
}

func TestSecretsMayOverlap(t *testing.T) {
	r := redact.New("token", "token-1", "1-other", "-1-o")
	assert.Equal(t, "a [redacted] b [redacted]s", r.Text("a token-1-other b tokens"))
	assert.Equal(t, "[redacted]", redact.New("aaaa").Text("aaaaaa"))
}

func TestPiecesAreHiddenToo(t *testing.T) {
	const secret = "the key of the console"
	for text, want := range map[string]string{
		"was: the key of t": "was: [redacted]",
		"KEY%20OF%20THE!":   "[redacted]!",
		"the key":           "the key",
		"console log":       "console log",
		"of the console":    "[redacted]",
	} {
		assert.Equal(t, want, redact.Pieces(secret, "abc").Text(text))
	}
	assert.Equal(t, "a [redacted]", redact.Pieces("short").Text("a short"))
	assert.Equal(t, "was: the key of t", redact.New(secret).Text("was: the key of t"))
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
	assert.Equal(t, "abc", (*redact.Redactor)(nil).Beginning("abcdef", 3))
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
}

func TestARedactorShowsNoSecret(t *testing.T) {
	r := redact.New("s3cr3t-text")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		assert.NotContains(t, fmt.Sprintf(verb, r)+fmt.Sprintf(verb, *r), "s3cr3t")
	}
}

func TestWhatIsSecretInAHeader(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:pa:ss"))
	for value, want := range map[string]string{
		"Bearer abcd.efgh":      "x [redacted] bearer",
		basic:                   "x [redacted] bearer",
		"session=abcd; k=efgh":  "x [redacted] bearer",
		"Digest username=alice": "x [redacted] bearer",
	} {
		r := redact.New(redact.Header(value)...)
		assert.Equal(t, want, r.Text("x "+value+" bearer"))
	}
	assert.Equal(t, "[redacted].[redacted]", redact.New(redact.Header("session=abcd; k=efgh")...).Text("abcd.efgh"))
	assert.Equal(t, "[redacted] and [redacted]", redact.New(redact.Header(basic)...).Text("alice and pa:ss"))
}

// A character directly before a secret may form an escape with it, so the test adds a
// space. It expects a secret that looks escaped or is not printable only in its
// original form.
func FuzzText(f *testing.F) {
	for _, secret := range awkward {
		f.Add(secret, "before ", " after", 9)
	}
	odd := func(r rune) bool { return strings.ContainsRune(`%\&`, r) || r == utf8.RuneError || !unicode.IsPrint(r) }
	f.Fuzz(func(t *testing.T, secret, before, after string, n int) {
		r := redact.New(secret)
		for _, escape := range []func(string) string{escapers["as it is"], url.QueryEscape, url.PathEscape, html.EscapeString} {
			got := r.Text(before + " " + escape(secret) + " " + after)
			if len(secret) >= 4 && (escape(secret) == secret || !strings.ContainsFunc(secret, odd)) {
				assert.NotContains(t, strings.ReplaceAll(got, redact.Mark, "█"), escape(secret))
				assert.Contains(t, got, redact.Mark)
			}
		}
		if n >= 0 {
			r.Beginning(before+secret+after, n)
		}
		redact.Pieces(secret).Text(before + secret + after)
	})
}
