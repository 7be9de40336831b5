package ramptest

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/internal/history"
)

// secretsOf returns those of a configuration.
func secretsOf(c *Config) history.Secrets {
	known := append([]string{c.Desk.ControlToken}, c.Desk.Secrets...)
	if game, err := url.Parse(c.Game); err == nil && game.User != nil {
		name := game.User.Username()
		password, _ := game.User.Password()
		known = append(known, password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	return history.NewSecrets(c.Key, known...)
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
