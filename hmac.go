package ramp

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// HeaderHMAC carries the signature of a body (interface 5.2): HMAC-SHA256 of
// the raw bytes, in hex. Header names are case-insensitive.
const HeaderHMAC = "X-Hmac-Signature"

// HMACKey is the HMAC key of the service console (interface 5.2). It signs and
// verifies bodies, and prints and logs as [redacted]. It is safe for concurrent
// use. Make one with [TextKey] or [Base64URLKey]; the zero value fails closed:
// it signs nothing and verifies nothing.
type HMACKey struct {
	ring  []*macPool // newest first
	read  string     // how the newest was read, for the hint of an APIError
	other string     // what reads it the other way
}

// TextKey uses the bytes of the console's text as the key.
//
// The interface does not show how the console's text becomes the key: one
// reference implementation uses it as it is (this function), another decodes it
// (see [Base64URLKey]). Nothing in the text tells which, so there is no
// default. If the service answers "invalid mac" with one, try the other.
//
// An empty or blank text, and one with white space around it, as a file's last
// newline, is refused with [ErrHMACKey].
func TextKey(text string) (HMACKey, error) {
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "":
		return HMACKey{}, fmt.Errorf("ramp: %w: it is empty", ErrHMACKey)
	case trimmed != text:
		return HMACKey{}, fmt.Errorf("ramp: %w: white space surrounds it", ErrHMACKey)
	}
	return newHMACKey([]byte(text), "text", "Base64URLKey"), nil
}

// Base64URLKey decodes the console's text as unpadded base64url and uses the
// decoded bytes as the key; see [TextKey] for the choice. Decoding is strict:
// a character outside the alphabet, padding, white space, or bits that decoding
// would drop are refused with [ErrHMACKey], and so is an empty key.
func Base64URLKey(text string) (HMACKey, error) {
	key, err := base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	case err != nil, strings.ContainsAny(text, "\r\n"): // which the decoder skips
		return HMACKey{}, fmt.Errorf("ramp: %w: it is not unpadded base64url", ErrHMACKey)
	case len(key) == 0:
		return HMACKey{}, fmt.Errorf("ramp: %w: it is empty", ErrHMACKey)
	}
	return newHMACKey(key, "unpadded base64url", "TextKey"), nil
}

func newHMACKey(key []byte, read, other string) HMACKey {
	pool := &macPool{}
	pool.New = func() any { return &macState{mac: hmac.New(sha256.New, key)} }
	return HMACKey{ring: []*macPool{pool}, read: read, other: other}
}

// WithPrevious returns a key that signs as k does and verifies with k and then
// with each of the older keys. Use it while the service still signs with a key
// that was replaced in the console. The zero key stays the zero key.
func (k HMACKey) WithPrevious(older ...HMACKey) HMACKey {
	if k.IsZero() {
		return k
	}
	for _, o := range older {
		k.ring = append(slices.Clip(k.ring), o.ring...)
	}
	return k
}

// IsZero says whether the key is the zero value, with which nothing can be
// signed or verified.
func (k HMACKey) IsZero() bool { return len(k.ring) == 0 }

// Sign returns the signature of body for an X-HMAC-SIGNATURE header, 64
// lower-case hex digits. The zero key returns "", which nobody accepts.
func (k HMACKey) Sign(body []byte) string {
	if k.IsZero() {
		return ""
	}
	var sum [sha256.Size]byte
	k.ring[0].sum(body, &sum)
	return hex.EncodeToString(sum[:])
}

// Verify reports whether signature, the value of an X-HMAC-SIGNATURE header, was
// made for exactly these bytes. Hex digits of either case are accepted and the
// comparison takes constant time. The error is [ErrHMACMissing] for an empty
// signature, [ErrHMACKey] for the zero key, and [ErrHMACInvalid] otherwise.
func (k HMACKey) Verify(body []byte, signature string) error {
	if k.IsZero() {
		return fmt.Errorf("ramp: %w: it is the zero value", ErrHMACKey)
	}
	want, err := decodeHMAC(signature)
	if err != nil {
		return err
	}
	var sum [sha256.Size]byte
	for _, key := range k.ring {
		key.sum(body, &sum)
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 {
			return nil
		}
	}
	return fmt.Errorf("ramp: %w: it was made for another body or with another key", ErrHMACInvalid)
}

// decodeHMAC checks the form of a signature, which costs nothing.
func decodeHMAC(signature string) (sum [sha256.Size]byte, err error) {
	switch {
	case signature == "":
		return sum, fmt.Errorf("ramp: %w", ErrHMACMissing)
	case len(signature) != hex.EncodedLen(sha256.Size):
		return sum, fmt.Errorf("ramp: %w: it has %d characters, not %d",
			ErrHMACInvalid, len(signature), hex.EncodedLen(sha256.Size))
	}
	var text [2 * sha256.Size]byte // a fixed size stays off the heap
	copy(text[:], signature)
	if _, err := hex.Decode(sum[:], text[:]); err != nil {
		return sum, fmt.Errorf("ramp: %w: it is not hex", ErrHMACInvalid)
	}
	return sum, nil
}

// String returns "[redacted]".
func (k HMACKey) String() string { return redacted }

// Format writes "[redacted]" under every verb.
func (k HMACKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText writes "[redacted]".
func (k HMACKey) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue logs "[redacted]".
func (k HMACKey) LogValue() slog.Value { return slog.StringValue(redacted) }

// macPool holds keyed states of one key, so that a call neither hashes the key
// again nor allocates.
type macPool struct{ sync.Pool }

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
