package ramptest

import (
	"errors"
	"net/http"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// redactError removes credentials from an error.
func redactError(err error, secrets *redact.Redactor) error {
	var declined *Declined
	if errors.As(err, &declined) {
		declined.Code = ramp.Code(secrets.Text(string(declined.Code)))
		return err
	}
	return secrets.Error(err)
}

// isCredential reports whether a header holds a credential, which is not recorded.
func isCredential(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case ramp.HeaderAuthorization, ramp.HeaderHMAC, "Authorization", "Cookie", "Set-Cookie", "Proxy-Authorization":
		return true
	default:
		return false
	}
}

// secretsOf returns a redactor for the credentials in a request to the service.
func secretsOf(header http.Header) *redact.Redactor {
	var secrets []string
	for name, values := range header {
		if isCredential(name) {
			for _, value := range values {
				secrets = append(secrets, redact.Header(value)...)
			}
		}
	}
	return redact.New(secrets...)
}

// redactHeader returns a copy of the headers without credentials.
func redactHeader(header http.Header, secrets *redact.Redactor) http.Header {
	clean := make(http.Header, len(header))
	for name, values := range header {
		switch {
		case http.CanonicalHeaderKey(name) == ramp.HeaderAuthorization:
			clean[name] = []string{"Bearer " + redact.Mark}
		case isCredential(name):
			clean[name] = []string{redact.Mark}
		default:
			clean[name] = make([]string, len(values))
			for i, value := range values {
				clean[name][i] = secrets.Text(value)
			}
		}
	}
	return clean
}

// redactBody returns a body without credentials.
func redactBody(body []byte, secrets *redact.Redactor) string {
	return strings.ToValidUTF8(secrets.Text(string(body)), "�")
}
