// Package redact takes secrets out of foreign text: what a server, a proxy or a
// driver said, before it gets into an error, a log or a record. Redact the
// foreign part of a text only. Taking secrets out of our own words tells what
// the secrets are.
package redact

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

const (
	minSecret = 4 // bytes; shorter ones are no credentials, and part of every text
	pieceSize = 8 // bytes, see Pieces
)

// Redactor finds secrets in texts, in any mix of upper and lower case, and
// escaped for JSON, a URL or HTML, even several times. Make one with [New] or
// [Pieces]. It is safe for concurrent use. A nil Redactor finds nothing.
type Redactor struct {
	// find returns what to hide, in order and without overlaps. It is a
	// function so that nothing that prints a Redactor can show the secrets.
	find   func(text string) []span
	margin int // no secret is longer than this, however it is escaped
}

// New returns a Redactor of secrets. Those shorter than 4 bytes are left out.
func New(secrets ...string) *Redactor { return newRedactor(secrets, false) }

// Pieces returns a Redactor that also hides every piece of a secret of at least
// 8 bytes, for text that may quote a part of one.
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
				continue // as little is left of &lt; once it is unescaped
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
		// The longest escape of one byte has 6 of them, and may be escaped again.
		margin: 16 * longest,
		find:   func(text string) []span { return find(text, patterns) },
	}
}

// Text returns text with [Mark] for each secret.
func (r *Redactor) Text(text string) string { return r.Beginning(text, len(text)) }

// Beginning returns the first n bytes of text with [Mark] for each secret. A
// secret that only begins in them is hidden too.
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

// Error returns err if its text has no secret, and otherwise an error with the
// redacted text as [Instead] makes it.
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

// Instead returns an error with another text than err, on which [errors.Is]
// works as on err; nothing else leads from it to err.
func Instead(err error, text string) error {
	return &redactedError{text: text, is: func(target error) bool { return errors.Is(err, target) }}
}

type redactedError struct {
	text string
	is   func(target error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

// Header returns what is secret in the value of a header that holds a
// credential: the value, each of its words but for the name of a scheme, the
// values of parameters and cookies, and the user and password of "Basic".
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

// find returns where patterns are in a text, in any of its layers.
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
