package ramptest

import (
	"encoding/base64"
	"net/url"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// secrets are what a service holds and shows to nobody, wherever a game writes it: a framework may list the
// environment, and every header, on its page about an error.
type secrets struct {
	key    ramp.HMACKey
	others *redact.Redactor
}

// secretsOf returns those of a configuration.
func secretsOf(c *Config) secrets {
	known := append([]string{c.Desk.ControlToken}, c.Desk.Secrets...)
	if game, err := url.Parse(c.Game); err == nil && game.User != nil {
		name := game.User.Username()
		password, _ := game.User.Password()
		known = append(known, password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	return secrets{c.Key, redact.New(known...)}
}

// with returns the secrets and those of a call.
func (s secrets) with(more ...string) secrets { return secrets{s.key, s.others.With(more...)} }

// text returns a text without the secrets.
func (s secrets) text(text string) string { return s.key.Redact(s.others.Text(text)) }

// line returns a text as it goes into an error.
func (s secrets) line(text string) string { return s.others.Line(s.text(text), redact.MaxError) }

// err returns an error whose text has none of the secrets.
func (s secrets) err(err error) error {
	if err == nil {
		return nil
	}
	if clean := s.text(err.Error()); clean != err.Error() {
		return s.others.Hide(err, clean)
	}
	return s.others.Error(err)
}

// withoutUser returns an address without its user and password, which are sent and not shown.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return strings.TrimRight(u.String(), "/")
}
