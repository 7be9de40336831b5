package record

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The keys with which the signatures in the files are made anew. They are no secrets.
const (
	TestHMACKey      = "ramp-record-test-key" // as text
	TestValidatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
)

// masker replaces texts by others of the same length. Equal texts stay equal during one
// recording, and nobody can compute a text from what replaced it.
type masker struct {
	salt []byte
}

// text masks the bytes between the quotes of a JSON string, or the value of a header: letters
// become letters, digits become digits, and ASCII punctuation stays.
func (m masker) text(raw string) string {
	stream := m.stream(raw)
	masked := []byte(raw)
	for i := 0; i < len(masked); i++ {
		n := int(stream[i])
		switch c := masked[i]; {
		case '0' <= c && c <= '9':
			masked[i] = '0' + byte(n%10)
		case 'a' <= c && c <= 'z':
			masked[i] = 'a' + byte(n%26)
		case 'A' <= c && c <= 'Z':
			masked[i] = 'A' + byte(n%26)
		case c >= 0x80:
			masked[i] = 'x'
		case c == '\\': // an escape, whose length depends on what follows
			size := min(2, len(masked)-i)
			if size == 2 && masked[i+1] == 'u' {
				size = min(6, len(masked)-i)
			}
			copy(masked[i:i+size], strings.Repeat("x", size))
			i += size - 1
		}
	}
	return string(masked)
}

// signature masks hex digits. A prefix 0x, the case of the letters, and the last two digits of a
// signature of 65 bytes, which are v, stay.
func (m masker) signature(sent string) string {
	digits := strings.TrimPrefix(sent, "0x")
	if strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return m.text(sent)
	}
	stream := m.stream(sent)
	alphabet := "0123456789abcdef"
	if digits != strings.ToLower(digits) {
		alphabet = strings.ToUpper(alphabet)
	}
	masked := []byte(digits)
	for i := range masked {
		if len(masked) != 130 || i < 128 {
			masked[i] = alphabet[stream[i]%16]
		}
	}
	return sent[:len(sent)-len(digits)] + string(masked)
}

// stream returns as many bytes as text has, which depend on it. It reads text once, which can be 1 MB.
func (m masker) stream(text string) (stream []byte) {
	of := hmac.New(sha256.New, m.salt)
	of.Write([]byte(text))
	seed := of.Sum(nil)
	for n := 0; len(stream) < len(text); n++ {
		mac := hmac.New(sha256.New, seed)
		mac.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16)})
		stream = mac.Sum(stream)
	}
	return stream
}

// body masks a message: every string but those that its shape has as shown. secrets are never shown, and
// sign replaces a signature of the validator key.
func (m masker) body(of shape, text []byte, secrets []string, sign func(hex string) string) ([]byte, error) {
	leaves, err := walk(text)
	if err != nil {
		return nil, err
	}
	masked := slices.Clone(text)
	for _, l := range leaves {
		value, isText := l.value.(string)
		if !isText {
			continue
		}
		known := of[l.path]
		raw := string(text[l.start+1 : l.end-1])
		switch {
		case known.validator:
			raw = sign(raw)
		case known.signature:
			raw = m.signature(raw)
		case !known.shown || holds(value, secrets):
			raw = m.text(raw)
		}
		copy(masked[l.start+1:l.end-1], raw)
	}
	if holds(string(masked), secrets) || holds(unescaped(string(masked)), secrets) {
		return nil, errors.New("it holds a secret where the interface has none")
	}
	return masked, nil
}

// holds reports whether a text holds one of the secrets, as it is or in a usual encoding.
func holds(text string, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return len(secret) >= minSecret && slices.ContainsFunc(forms(secret), func(form string) bool {
			return strings.Contains(text, form)
		})
	})
}

func forms(secret string) []string {
	raw := []byte(secret)
	digits := hex.EncodeToString(raw)
	return []string{secret, digits, strings.ToUpper(digits), url.QueryEscape(secret), url.PathEscape(secret),
		base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)}
}

var escape = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// unescaped returns a JSON text without the escapes of characters, in which a name can be written.
func unescaped(text string) string {
	return escape.ReplaceAllStringFunc(text, func(e string) string {
		n, _ := strconv.ParseUint(e[2:], 16, 16) // it has four hex digits
		return string(rune(n))
	})
}

// minSecret is the length of the shortest secret: shorter texts occur in any message.
const minSecret = 4
