package transport

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/typed"
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

// Icon says why an address is not that of an image which a page of the service can show, or returns "".
func Icon(address string) (problem string) {
	u, problem := ParseURL(address, false)
	if problem == "" && u.User != nil {
		problem = "must not have a user"
	}
	return problem
}

// Address parses the address of a server, to whose path others are appended. If it is unusable, or would be
// used in part only, problem says why.
func Address(text string) (u *url.URL, problem string) {
	u, problem = ParseURL(strings.TrimRight(text, "/"), true)
	if problem == "" && strings.ContainsAny(text, "?#") {
		return nil, "must have no query and no fragment"
	}
	return u, problem
}

// ParseURL parses an absolute URL of the service or of a node. If it is unusable,
// problem says why without quoting it, because it may contain a credential.
// insecure accepts http for every host.
func ParseURL(text string, insecure bool) (u *url.URL, problem string) {
	if problem := typed.Problem(text); problem != "" {
		return nil, problem
	}
	form := "must be an absolute https URL, such as https://example.com"
	if insecure {
		form = "must be an absolute URL, such as http://127.0.0.1:8080"
	}
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, "is required"
	case err != nil, u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http":
		return nil, form
	case hostProblem(u) != "":
		return nil, hostProblem(u)
	case u.Scheme == "http" && !insecure && !isPrivate(u.Hostname()):
		return nil, "must be https, unless the host is on a private network"
	default:
		return u, ""
	}
}

// Shown returns the scheme and host of a URL, which are no secret, or [redact.Mark] if it is unusable.
func Shown(text string) string {
	u, problem := ParseURL(text, true)
	if problem != "" {
		return redact.Mark
	}
	return u.Scheme + "://" + u.Host
}

// hostProblem returns why browsers and Go would not agree on the server of a URL, or on its path.
func hostProblem(u *url.URL) string {
	host := u.Hostname()
	last := strings.ToLower(host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:])
	_, notIP := netip.ParseAddr(host)
	_, notNumber := strconv.ParseUint(strings.TrimSuffix(last, "."), 0, 64)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case notIP != nil && strings.Trim(host, hostCharacters) != "":
		return "must have a host of letters, digits, hyphens and dots, or an IP address; write another " +
			"name as its DNS has it, with xn--"
	case notIP != nil && strings.ContainsRune(strings.TrimSuffix(host, "."), '.') && notNumber == nil:
		return "must have an IP address of four numbers up to 255, because its host ends in a number"
	case strings.HasSuffix(u.Host, ":"), u.Port() != "" && (err != nil || port == 0):
		return "must have a port from 1 to 65535, or none"
	case strings.ContainsFunc(u.Path, unicode.IsControl):
		return "must not have a control character, also not as %0A"
	}
	return ""
}

const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

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
