// Package redact makes foreign text, such as the answer of a server, a proxy or a
// driver, fit to be shown: without secrets, and where it goes into an error, on one
// line of limited length. Redact only the foreign part of a text. A gap in text of our
// own, which the reader knows, would reveal the secret.
package redact

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// MaxError is the maximum length of the text of an error in bytes.
const MaxError = 500

const minSecret = 4 // bytes; shorter strings are not credentials and occur in any text

// Redactor finds secrets in texts: as they are, percent-encoded, and escaped for JSON.
// Create one with [New]. It is safe for concurrent use.
type Redactor struct {
	secrets func() []string // a function, so that printing a Redactor cannot reveal them
}

// New returns a Redactor of secrets. It ignores secrets shorter than 4 bytes.
func New(secrets ...string) *Redactor {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < minSecret })
	return &Redactor{secrets: func() []string { return secrets }}
}

// With returns a Redactor that finds more secrets too.
func (r *Redactor) With(secrets ...string) *Redactor {
	return New(slices.Concat(r.secrets(), secrets)...)
}

// Text returns text with each secret replaced by [Mark].
func (r *Redactor) Text(text string) string { return r.Beginning(text, len(text)) }

// Beginning returns the first n bytes of text with each secret replaced by [Mark],
// including a secret of which only the beginning is within the n bytes.
func (r *Redactor) Beginning(text string, n int) string {
	n = min(n, len(text))
	secrets := r.secrets()
	var begins [256]bool // the bytes with which a secret begins, in any form
	for _, form := range append([]string{`%`, `+`, `\`}, secrets...) {
		begins[form[0]] = true
	}
	var out strings.Builder
	end := 0 // of the last secret
	for at := range n {
		if !begins[text[at]] {
			continue
		}
		if size := longest(text[at:], secrets); size > 0 {
			if at >= end {
				out.WriteString(text[end:at] + Mark)
			}
			end = max(end, at+size)
		}
	}
	out.WriteString(text[min(end, n):n])
	return out.String()
}

// Line returns the beginning of text on one line of at most n bytes, with each secret
// replaced by [Mark] and without control characters, except those of [Isolate].
func (r *Redactor) Line(text string, n int) string {
	text = strings.Join(strings.FieldsFunc(r.Beginning(text, 4*n), func(c rune) bool {
		return c == ' ' || c == utf8.RuneError || !unicode.IsPrint(c) && c != firstStrongIsolate &&
			c != popIsolate
	}), " ")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len("…")], "") + "…"
}

// Error returns err if its text is what Line returns for [MaxError], and otherwise an
// error with that text. [errors.Is] gives the same results for it as for err, but err,
// which holds the secret, cannot be unwrapped from it.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := r.Line(err.Error(), MaxError); text != err.Error() {
		return r.Hide(err, text)
	}
	return err
}

// Hide is Error for an error whose text the caller has redacted.
func (r *Redactor) Hide(err error, text string) error {
	return &redactedError{text: r.Line(text, MaxError),
		is: func(target error) bool { return errors.Is(err, target) }}
}

type redactedError struct {
	text string
	is   func(target error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

const (
	firstStrongIsolate = '\u2068'
	popIsolate         = '\u2069'
)

// Isolate returns foreign text, such as a name, as it goes into a sentence or a line of our
// own: right-to-left text in it must not reorder what stands around it.
func Isolate(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko,
			unicode.Bidi_Control)
	}) {
		return text
	}
	return string(firstStrongIsolate) + strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) { // it could end the isolation
			return unicode.ReplacementChar
		}
		return r
	}, text) + string(popIsolate)
}

// Header returns the secrets in the value of a header that holds a credential: the
// value, and what follows the name of a scheme, such as Bearer.
func Header(value string) []string {
	_, credential, _ := strings.Cut(value, " ")
	return []string{value, credential}
}

// longest returns the length of the longest secret that text begins with, in any form.
func longest(text string, secrets []string) (size int) {
	for _, secret := range secrets {
		if !mayBegin(text, secret) {
			continue
		}
		for _, read := range []func(string) (string, int){asIs, inPath, inQuery, inJSON} {
			size = max(size, match(text, secret, read))
		}
	}
	return size
}

// mayBegin reports whether text is secret as it is, up to the first escape.
func mayBegin(text, secret string) bool {
	for n := range min(len(text), len(secret)) {
		if escaped := text[n] == '%' || text[n] == '+' || text[n] == '\\'; escaped || text[n] != secret[n] {
			return escaped
		}
	}
	return true
}

// match returns how many bytes of text form secret if read reads them, or 0.
func match(text, secret string, read func(string) (string, int)) int {
	at := 0
	for secret != "" {
		if at == len(text) {
			return 0
		}
		part, size := read(text[at:])
		if !strings.HasPrefix(secret, part) {
			return 0
		}
		secret, at = secret[len(part):], at+size
	}
	return at
}

// asIs, inPath, inQuery and inJSON read one byte or one escape.
func asIs(b string) (string, int) { return b[:1], 1 }

func inPath(b string) (string, int) {
	if part, err := url.PathUnescape(b[:min(len(b), 3)]); b[0] == '%' && err == nil {
		return part, 3
	}
	return asIs(b)
}

func inQuery(b string) (string, int) {
	if b[0] == '+' {
		return " ", 1
	}
	return inPath(b)
}

func inJSON(b string) (string, int) {
	if strings.HasPrefix(b, `\/`) {
		return "/", 2
	}
	if c, _, rest, err := strconv.UnquoteChar(b, '"'); err == nil {
		return string(c), len(b) - len(rest)
	}
	var pair string // of surrogates
	if len(b) >= 12 && json.Unmarshal([]byte(`"`+b[:12]+`"`), &pair) == nil {
		return pair, 12
	}
	return asIs(b)
}

// MaxExcerpt is how much foreign text an error shows, so that with our own words it
// stays below [MaxError] bytes.
const MaxExcerpt = 400

// Excerpt returns the beginning of foreign text on one line.
func Excerpt(text string) string { return New().Line(text, MaxExcerpt) }

// boundedError is an error whose text is cut.
type boundedError struct {
	error
	text string
}

func (e *boundedError) Error() string { return e.text }
func (e *boundedError) Unwrap() error { return e.error }

// Bounded returns err with a text of at most [MaxError] bytes on one line.
// Foreign text in it must have been redacted.
func Bounded(err error) error {
	if err == nil || len(err.Error()) <= MaxError {
		return err
	}
	return &boundedError{err, New().Line(err.Error(), MaxError)}
}
