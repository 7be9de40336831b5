package history

import (
	"net/url"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// Secrets are what a service holds and shows to nobody, wherever a game writes it: a framework may list the
// environment, and every header, on its page about an error.
type Secrets struct {
	key    ramp.HMACKey
	others *redact.Redactor
}

// NewSecrets returns the secrets of a service: its HMAC key, and others.
func NewSecrets(key ramp.HMACKey, others ...string) Secrets {
	return Secrets{key, redact.New(others...)}
}

// With returns the secrets and those of a call.
func (s Secrets) With(more ...string) Secrets { return Secrets{s.key, s.others.With(more...)} }

// Text returns a text without the secrets.
func (s Secrets) Text(text string) string { return s.key.Redact(s.others.Text(text)) }

// Line returns a text as it goes into an error.
func (s Secrets) Line(text string) string { return s.others.Line(s.Text(text), redact.MaxError) }

// Err returns an error whose text has none of the secrets.
func (s Secrets) Err(err error) error {
	if err == nil {
		return nil
	}
	if clean := s.Text(err.Error()); clean != err.Error() {
		return s.others.Hide(err, clean)
	}
	return s.others.Error(err)
}

// WithoutUser returns an address without its user and password, which are sent and not shown.
func WithoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return strings.TrimRight(u.String(), "/")
}
