package ramp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/typed"
)

// HMACKey is the HMAC key from the service console (interface 5.2). It signs and
// verifies bodies. It prints and logs as [redacted], and is safe for concurrent
// use. Make one with [TextKey], [Base64URLKey] or [BytesKey]. The zero value fails
// closed: it signs nothing and verifies nothing.
type HMACKey struct {
	secret
	ring        []*macPool // newest first
	encoding    string     // how the newest was read, for the hint of an APIError
	alternative string     // how else it could be read
}

// TextKey uses the bytes of the console's text as the key. The interface does not say how
// the text becomes the key: one reference implementation uses it unchanged, another
// decodes it as [Base64URLKey] does. If the service answers "invalid mac" with one, try
// the other.
//
// The error wraps [ErrHMACKey] in these cases:
//
//   - The text is empty or blank.
//   - It begins or ends with white space, such as the final newline of a file.
//   - It has a control character or an invisible one, such as a byte order mark.
//   - The mode of the Go program forbids the key: with GODEBUG=fips140=only, a key must have at least
//     14 bytes.
func TextKey(text string) (HMACKey, error) {
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "":
		return HMACKey{}, fmt.Errorf("ramp: %w: it is empty", ErrHMACKey)
	case trimmed != text:
		return HMACKey{}, fmt.Errorf("ramp: %w: white space surrounds it", ErrHMACKey)
	}
	if what := typed.Unseen(text); what != "" {
		return HMACKey{}, fmt.Errorf("ramp: %w: it has %s", ErrHMACKey, what)
	}
	return newHMACKey([]byte(text), "text", "Base64URLKey", text)
}

// Base64URLKey uses the console's text, decoded as unpadded base64url, as the key; see
// [TextKey]. The error wraps [ErrHMACKey] for a character outside the alphabet, padding,
// white space, nonzero trailing bits, an empty key, or one that is too short for
// GODEBUG=fips140=only.
func Base64URLKey(text string) (HMACKey, error) {
	if what := typed.Unseen(text); what != "" {
		return HMACKey{}, fmt.Errorf("ramp: %w: it has %s", ErrHMACKey, what)
	}
	key, err := base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	case err != nil:
		return HMACKey{}, fmt.Errorf("ramp: %w: it is not unpadded base64url", ErrHMACKey)
	case len(key) == 0:
		return HMACKey{}, fmt.Errorf("ramp: %w: it is empty", ErrHMACKey)
	}
	return newHMACKey(key, "unpadded base64url", "TextKey", text)
}

// BytesKey uses these bytes as the key. It is for a text that the console shows in a form
// which neither [TextKey] nor [Base64URLKey] reads, such as padded base64 or hex: decode
// it, and pass the result. The bytes are copied. The error wraps [ErrHMACKey] if there are
// none, or if they are too few for GODEBUG=fips140=only.
func BytesKey(key []byte) (HMACKey, error) {
	if len(key) == 0 {
		return HMACKey{}, fmt.Errorf("ramp: %w: it is empty", ErrHMACKey)
	}
	return newHMACKey(bytes.Clone(key), "bytes", "another encoding", hex.EncodeToString(key),
		base64.StdEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key))
}

// newHMACKey returns a key of these bytes, which the console shows as one of texts.
func newHMACKey(key []byte, encoding, alternative string, texts ...string) (k HMACKey, err error) {
	pool := &macPool{secrets: func() []string { return append(slices.Clone(texts), string(key)) }}
	pool.New = func() any { return &macState{mac: hmac.New(sha256.New, key)} }
	defer func() { // crypto/hmac panics for a key that GODEBUG=fips140=only forbids
		if reason := recover(); reason != nil {
			k, err = HMACKey{}, fmt.Errorf("ramp: %w: %v", ErrHMACKey, reason)
		}
	}()
	pool.Put(pool.New())
	return HMACKey{ring: []*macPool{pool}, encoding: encoding, alternative: alternative}, nil
}

// WithPrevious returns a key that signs as k does, and verifies with k and then
// with each of the older keys. Use it while the service may still sign with a key
// that was replaced in the console.
func (k HMACKey) WithPrevious(older ...HMACKey) HMACKey {
	if k.IsZero() {
		return k
	}
	for _, o := range older {
		k.ring = append(slices.Clip(k.ring), o.ring...)
	}
	return k
}

// IsZero reports whether k is the zero value.
func (k HMACKey) IsZero() bool { return len(k.ring) == 0 }

// Redact returns a text with the key replaced by [redacted], in the forms in which a console, a URL and
// JSON write it. Use it before you show or log a text that you did not write, such as the page of a
// server that lists its environment. A key of fewer than 4 bytes is not found.
func (k HMACKey) Redact(text string) string { return redact.New(k.secrets()...).Text(text) }

// Fingerprint returns 8 hex digits that tell whether two programs have the same key, in the same encoding. It
// reveals nothing of the key. The zero key has none.
func (k HMACKey) Fingerprint() string {
	sum := k.Sign([]byte("ramp: the fingerprint of an HMAC key"))
	return sum[:min(8, len(sum))]
}

// secrets returns what foreign text must not show.
func (k HMACKey) secrets() (all []string) {
	for _, key := range k.ring {
		all = append(all, key.secrets()...)
	}
	return all
}

// Sign returns the signature of body for an X-HMAC-SIGNATURE header: 64 lower-case
// hex digits. The zero key returns "", which never verifies.
func (k HMACKey) Sign(body []byte) string {
	if k.IsZero() {
		return ""
	}
	var sum [sha256.Size]byte
	k.ring[0].sum(body, &sum)
	return hex.EncodeToString(sum[:])
}

// Verify returns nil if signature, the value of an X-HMAC-SIGNATURE header, was
// made with k for exactly these bytes. Hex digits may have either case, and the
// comparison takes constant time. The error is [ErrHMACMissing] for an empty
// signature, [ErrHMACKey] for the zero key, and [ErrHMACInvalid] otherwise.
func (k HMACKey) Verify(body []byte, signature string) error {
	_, err := k.verify(body, signature)
	return err
}

// verify also returns which key verified: 0 is the newest.
func (k HMACKey) verify(body []byte, signature string) (int, error) {
	if k.IsZero() {
		return 0, fmt.Errorf("ramp: %w: it is the zero value", ErrHMACKey)
	}
	want, err := decodeHMAC(signature)
	if err != nil {
		return 0, err
	}
	var sum [sha256.Size]byte
	for n, key := range k.ring {
		key.sum(body, &sum)
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("ramp: %w: it was made for another body or with another key", ErrHMACInvalid)
}

// decodeHMAC checks the form of a signature before any hashing.
func decodeHMAC(signature string) (sum [sha256.Size]byte, err error) {
	switch {
	case signature == "":
		return sum, fmt.Errorf("ramp: %w", ErrHMACMissing)
	case len(signature) != hex.EncodedLen(sha256.Size):
		return sum, fmt.Errorf("ramp: %w: it must have %d characters, not %d",
			ErrHMACInvalid, hex.EncodedLen(sha256.Size), len(signature))
	}
	var text [2 * sha256.Size]byte // a fixed size stays off the heap
	copy(text[:], signature)
	if _, err := hex.Decode(sum[:], text[:]); err != nil {
		return sum, fmt.Errorf("ramp: %w: it is not hex", ErrHMACInvalid)
	}
	return sum, nil
}

// macPool holds keyed hash states, so that a call neither hashes the key again nor
// allocates.
type macPool struct {
	sync.Pool
	secrets func() []string // the forms of the key; a function, so that nothing prints them
}

type macState struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

func (p *macPool) sum(body []byte, into *[sha256.Size]byte) {
	s := p.Get().(*macState)
	defer p.Put(s)
	s.mac.Reset()
	s.mac.Write(body)
	s.mac.Sum(s.sum[:0])
	*into = s.sum
}
