package ramptest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

const redacted = "[redacted]"

// redactor takes credentials out of texts, in each form in which a server may
// echo them: as they are, escaped for JSON, or for a URL.
func redactor(secrets ...string) *strings.Replacer {
	var forms []string
	for _, secret := range secrets {
		if len(secret) < 4 { // less is no credential, and part of every text
			continue
		}
		inJSON := strconv.Quote(secret)
		forHTML, _ := json.Marshal(secret) // a string can be marshalled
		inQuery, inPath := url.QueryEscape(secret), url.PathEscape(secret)
		forms = append(forms, secret, inQuery, inPath, lowerEscapes(inQuery), lowerEscapes(inPath))
		for _, quoted := range []string{inJSON, string(forHTML)} {
			quoted = quoted[1 : len(quoted)-1]
			forms = append(forms, quoted, strings.ReplaceAll(quoted, "/", `\/`))
		}
	}
	// The longest first, because one secret may be a part of another.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, redacted)
	}
	return strings.NewReplacer(pairs...)
}

// lowerEscapes writes %2F as %2f, as some servers do.
func lowerEscapes(escaped string) string {
	return regexp.MustCompile("%..").ReplaceAllStringFunc(escaped, strings.ToLower)
}

// redactedError is an error without credentials in its text.
type redactedError struct {
	error
	text string
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.error }

// redactError takes credentials out of an error.
func redactError(err error, secrets *strings.Replacer) error {
	var declined *Declined
	switch {
	case err == nil:
		return nil
	case errors.As(err, &declined):
		declined.Code = ramp.Code(secrets.Replace(string(declined.Code)))
		return err
	}
	if text := secrets.Replace(err.Error()); text != err.Error() {
		return &redactedError{error: err, text: text}
	}
	return err
}

// isCredential says whether a header is one that is not recorded.
func isCredential(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case ramp.HeaderAuthorization, ramp.HeaderHMAC, "Authorization", "Cookie", "Set-Cookie", "Proxy-Authorization":
		return true
	default:
		return false
	}
}

// secretsOf are the credentials that a request to the service carries.
func secretsOf(header http.Header) *strings.Replacer {
	var secrets []string
	for name, values := range header {
		if isCredential(name) {
			for _, value := range values {
				_, token, _ := strings.Cut(value, " ") // after Bearer, or Basic
				secrets = append(secrets, value, token)
			}
		}
	}
	return redactor(secrets...)
}

// redactHeader returns the headers without credentials.
func redactHeader(header http.Header, secrets *strings.Replacer) http.Header {
	clean := make(http.Header, len(header))
	for name, values := range header {
		switch {
		case http.CanonicalHeaderKey(name) == ramp.HeaderAuthorization:
			clean[name] = []string{"Bearer " + redacted}
		case isCredential(name):
			clean[name] = []string{redacted}
		default:
			clean[name] = make([]string, len(values))
			for i, value := range values {
				clean[name][i] = secrets.Replace(value)
			}
		}
	}
	return clean
}

// redactBody returns a body without credentials.
func redactBody(body []byte, secrets *strings.Replacer) string {
	return strings.ToValidUTF8(secrets.Replace(string(body)), "�")
}
