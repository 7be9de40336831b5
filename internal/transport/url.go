package transport

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// Base returns the base URL of a service without trailing slashes. If it is unusable, problem says why.
func Base(base string, insecure bool) (clean, problem string) {
	u, problem := ParseURL(base, insecure)
	switch {
	case problem != "":
		return "", problem
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(base, "#"):
		return "", "must not have a user, a query or a fragment"
	}
	return strings.TrimRight(u.String(), "/"), ""
}

// Address parses the address of a server, to whose path others are appended. If it is unusable, or would be
// used in part only, problem says why.
func Address(text string) (u *url.URL, problem string) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, "must be an absolute URL, such as http://127.0.0.1:8080"
	case strings.ContainsAny(text, "?#"):
		return nil, "must have no query and no fragment"
	}
	return u, ""
}

// ParseURL parses an absolute URL of the service or of a node. If it is unusable,
// problem says why without quoting it, because it may contain a credential.
// insecure accepts http for every host.
func ParseURL(text string, insecure bool) (u *url.URL, problem string) {
	if what := redact.Unseen(text); what != "" {
		return nil, "must not have " + what
	}
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, "is required"
	case strings.TrimSpace(text) != text:
		return nil, "must not begin or end with white space"
	case err != nil, u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http":
		return nil, "must be an absolute https URL"
	case u.Scheme == "http" && !insecure && !isPrivate(u.Hostname()):
		return nil, "must be https, unless the host is on a private network"
	default:
		return u, ""
	}
}

// isPrivate reports whether a host can only be on a private network.
func isPrivate(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.ContainsAny(host, ".:") {
		// Browsers and getaddrinfo read a number as an IPv4 address.
		_, err := strconv.ParseUint(host, 0, 64)
		return err != nil
	}
	return strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".local") ||
		strings.HasSuffix(host, ".internal")
}

// Secrets returns the secrets of a URL: user, password, query values, and path
// segments that are long enough to be a key, unlike "data" or "eth-mainnet".
func Secrets(u *url.URL) []string {
	const minSegment = 16 // characters
	password, _ := u.User.Password()
	secrets := []string{u.User.Username(), password}
	parameters := strings.FieldsFunc(u.RawQuery, func(c rune) bool { return c == '&' || c == ';' })
	for _, parameter := range parameters {
		_, value, named := strings.Cut(parameter, "=")
		if !named {
			value = parameter
		}
		if decoded, err := url.QueryUnescape(value); err == nil {
			value = decoded
		}
		secrets = append(secrets, value)
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if utf8.RuneCountInString(segment) >= minSegment {
			secrets = append(secrets, segment)
		}
	}
	return secrets
}
