// Package redact removes secrets from foreign text, such as the answer of a server, a
// proxy or a driver, before the text gets into an error, a log or a record. Redact
// only the foreign part of a text. A gap in text of our own, which the reader knows,
// would reveal the secret.
package redact

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// Mark replaces a secret.
const Mark = "[redacted]"

const (
	minSecret = 4 // bytes; shorter strings are not credentials and occur in any text
	pieceSize = 8 // bytes; see Pieces
)

// Redactor finds secrets in texts, regardless of case, and escaped for JSON, URLs or
// HTML, even several times. Create one with [New] or [Pieces]. It is safe for concurrent use. A nil Redactor finds nothing.
type Redactor struct {
	// find returns the spans to hide, in order and without overlaps. It is a
	// function, so that printing a Redactor cannot reveal the secrets.
	find   func(text string) []span
	margin int // maximum length of a secret in any escaped form
}

// New returns a Redactor of secrets. It ignores secrets shorter than 4 bytes.
func New(secrets ...string) *Redactor { return newRedactor(secrets, false) }

// Pieces is like [New], but the Redactor also hides every piece of a secret that has
// at least 8 bytes, for text that may quote part of a secret.
func Pieces(secrets ...string) *Redactor { return newRedactor(secrets, true) }

func newRedactor(secrets []string, pieces bool) *Redactor {
	var patterns []string
	longest := 0
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		longest = max(longest, len(secret))
		for l := range layers(secret) {
			pattern := string(l.text)
			if len(pattern) < minSecret {
				continue // little is left of a secret like &lt; after unescaping
			}
			patterns = append(patterns, pattern)
			for i := 0; pieces && i+pieceSize <= len(pattern); i++ {
				patterns = append(patterns, pattern[i:i+pieceSize])
			}
		}
	}
	slices.Sort(patterns)
	patterns = slices.Compact(patterns)
	return &Redactor{
		// The longest escape of a byte has 6 bytes, which may be escaped again.
		margin: 16 * longest,
		find:   func(text string) []span { return find(text, patterns) },
	}
}

// Text returns text with each secret replaced by [Mark].
func (r *Redactor) Text(text string) string { return r.Beginning(text, len(text)) }

// Beginning returns the first n bytes of text with each secret replaced by [Mark],
// including a secret of which only the beginning is within the n bytes.
func (r *Redactor) Beginning(text string, n int) string {
	n = min(n, len(text))
	if r == nil || r.margin == 0 {
		return text[:n]
	}
	var out strings.Builder
	at := 0
	for _, hidden := range r.find(text[:min(len(text), n+r.margin)]) {
		if hidden.from >= n {
			break
		}
		out.WriteString(text[at:hidden.from])
		out.WriteString(Mark)
		at = hidden.to
	}
	if at < n {
		out.WriteString(text[at:n])
	}
	return out.String()
}

// Error returns err if its text contains no secret, and otherwise [Instead] of err with
// the redacted text.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := r.Text(text)
	if clean == text {
		return err
	}
	return Instead(err, clean)
}

// Instead returns an error with the given text. [errors.Is] gives the same results for
// it as for err, but err cannot be unwrapped from it.
func Instead(err error, text string) error {
	return &redactedError{text: text, is: func(target error) bool { return errors.Is(err, target) }}
}

type redactedError struct {
	text string
	is   func(target error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

// Header returns the secrets in the value of a header that contains a credential: the
// value, each of its words except the name of a scheme, the values of parameters and
// cookies, and the user and password of Basic authentication.
func Header(value string) []string {
	secrets := []string{value}
	for _, word := range strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t,;", c) }) {
		switch strings.ToLower(word) {
		case "basic", "bearer", "digest", "token":
			continue
		}
		_, parameter, _ := strings.Cut(word, "=")
		secrets = append(secrets, strings.TrimRight(word, "="), parameter)
	}
	if scheme, credentials, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Basic") {
		if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credentials)); err == nil {
			user, password, _ := strings.Cut(string(plain), ":")
			secrets = append(secrets, string(plain), user, password)
		}
	}
	return secrets
}

// span is a part of a text.
type span struct{ from, to int }

// find returns the spans where patterns occur in any layer of text.
func find(text string, patterns []string) []span {
	var found []span
	for l := range layers(text) {
		in := string(l.text)
		for _, pattern := range patterns {
			for at := 0; ; at++ {
				i := strings.Index(in[at:], pattern)
				if i < 0 {
					break
				}
				at += i
				found = append(found, l.source(at, at+len(pattern)))
			}
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	merged := found[:0]
	for _, s := range found {
		if last := len(merged) - 1; last >= 0 && s.from <= merged[last].to {
			merged[last].to = max(merged[last].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
