package ramp

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// The headers of the service's calls (interface 4.3, 5).
const (
	HeaderSession       = "X-Dapp-Sessionid"     // the session
	HeaderAuthorization = "X-Dapp-Authorization" // "Bearer " and the access token
	HeaderHMAC          = "X-Hmac-Signature"     // HMAC-SHA256 of the raw body, in hex
)

// Session identifies the user whom a call of the service is about (interface 4.3,
// 5.1). The X-Dapp headers carry it. It is not for storing: see [AccessToken].
type Session struct {
	ID    string      // X-Dapp-SessionID: the user's session or game character
	Token AccessToken // X-Dapp-Authorization, without "Bearer "
}

// AccessToken is the token of a player's session in the game (interface 5.1). It
// prints, logs and marshals as [redacted], and so does a [Session] with it: what keeps or sends
// sessions, such as a login server, must store the text that Reveal returns. The zero value
// is no token. Compare tokens with Equal.
type AccessToken struct {
	secret
	_    [0]func() // forbids ==, which would compare addresses
	text *string   // masked; a pointer, so that printing an enclosing struct shows at most an address
}

// NewAccessToken returns text as a token.
func NewAccessToken(text string) AccessToken {
	if text == "" {
		return AccessToken{}
	}
	text = masked(text)
	return AccessToken{text: &text}
}

// masked masks a text and unmasks it. It is no encryption: it keeps a token from being read where a
// failed assertion has printed hidden fields. Equal tokens have equal fields, for reflect.DeepEqual.
func masked(text string) string {
	bytes := []byte(text)
	for i := range bytes {
		bytes[i] ^= 0xA5 // what is ASCII becomes no UTF-8, and is printed escaped
	}
	return string(bytes)
}

const redacted = redact.Mark

// Reveal returns the token's text. It is a credential: do not log it.
func (t AccessToken) Reveal() string {
	if t.text == nil {
		return ""
	}
	return masked(*t.text)
}

// Equal compares two tokens, in constant time for texts of the same length.
func (t AccessToken) Equal(u AccessToken) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(u.Reveal())) == 1
}

// secret is embedded in types that must not show their value.
type secret struct{}

// String returns "[redacted]".
func (secret) String() string { return redacted }

// Format writes "[redacted]" under every verb but %p, which asks no method.
func (secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText writes "[redacted]".
func (secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// ParseSession reads the X-Dapp headers (interface 5.1), whose names may have any case.
// The error is a [*Rejection] with HTTP 401, and [codeSessionMissing] or
// [codeTokenMissing], if one is missing or occurs twice. The values are copied, because
// fasthttp reuses the memory of headers.
func ParseSession(header http.Header) (Session, error) {
	id, err := sessionID(header)
	if err != nil {
		return Session{}, err
	}
	token, err := bearerToken(header)
	return Session{ID: id, Token: token}, err
}

func sessionID(header http.Header) (string, error) {
	id, err := singleHeader(header, HeaderSession)
	if err == nil && !isHeaderText(id) {
		err = errors.New("ramp: X-Dapp-SessionID is missing, or not UTF-8 without control characters")
	}
	if err != nil {
		return "", unauthorized(codeSessionMissing, err)
	}
	return strings.Clone(id), nil
}

func bearerToken(header http.Header) (AccessToken, error) {
	authorization, err := singleHeader(header, HeaderAuthorization)
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.TrimSpace(token)
	if err == nil && (!strings.EqualFold(scheme, "Bearer") || token == "") {
		err = errors.New("ramp: X-Dapp-Authorization with a bearer token is missing")
	}
	if err != nil {
		return AccessToken{}, unauthorized(codeTokenMissing, err)
	}
	return NewAccessToken(strings.Clone(token)), nil
}

// singleHeader returns the value of a header whose name may have any case. One that
// occurs more than once is an error, because its value would be ambiguous.
func singleHeader(header http.Header, name string) (value string, err error) {
	seen := 0
	for key, values := range header {
		if len(key) == len(name) && strings.EqualFold(key, name) && len(values) > 0 {
			value = strings.TrimSpace(values[0])
			seen += len(values)
		}
	}
	if seen > 1 {
		return "", fmt.Errorf("ramp: %s occurs more than once", name)
	}
	return value, nil
}

// isHeaderText reports whether text can be the value of a header.
func isHeaderText(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
