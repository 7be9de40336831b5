package history

import (
	"net/http"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// MaxBody is how many bytes of a body the history keeps. It ends a body that had more with "…".
const MaxBody = 64 << 10

// RedactEvent returns an event without secrets and without the credentials in its headers.
func RedactEvent(e control.Event, known Secrets) control.Event {
	e.Request, e.Answer = redactMessage(e.Request, known), redactMessage(e.Answer, known)
	e.Outcome, e.Said, e.Session = known.Text(e.Outcome), known.Text(e.Said), known.Text(e.Session)
	return e
}

// isCredential reports whether a header holds a credential, which is not recorded.
func isCredential(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case ramp.HeaderAuthorization, ramp.HeaderHMAC, "Authorization", "Cookie", "Set-Cookie",
		"Proxy-Authorization":
		return true
	default:
		return false
	}
}

// Credentials returns those in the headers of a request to the service.
func Credentials(header http.Header) (list []string) {
	for name, values := range header {
		if isCredential(name) {
			for _, value := range values {
				list = append(list, redact.Header(value)...)
			}
		}
	}
	return list
}

// redactHeader returns a copy of the headers without credentials.
func redactHeader(header http.Header, known Secrets) http.Header {
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
				clean[name][i] = known.Text(value)
			}
		}
	}
	return clean
}

// redactMessage returns a copy of a message without credentials, and with a body of
// at most [MaxBody] bytes. A message of nil has none.
func redactMessage(m *control.Message, known Secrets) *control.Message {
	if m == nil {
		return nil
	}
	clean := *m
	clean.Header = redactHeader(m.Header, known)
	clean.Body = strings.ToValidUTF8(known.Text(m.Body), "�")
	if len(clean.Body) > MaxBody {
		clean.Body = strings.ToValidUTF8(clean.Body[:MaxBody], "") + "…"
	}
	return &clean
}
