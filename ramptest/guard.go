package ramptest

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// guard keeps pages of other sites out of the service.
type guard struct {
	anyHost bool
	address string // of the service
}

// refusal is the HTTP status that keeps pages of other sites from the API: what
// they send has an Origin, or is not called JSON. It is 0 for a program, which may
// use any name of the service.
func (g *guard) refusal(r *http.Request) int {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Header.Get("Origin") != "" && !(g.isOurs(r.Host) && sameOrigin(r)):
		return http.StatusForbidden
	case err != nil || media != "application/json":
		return http.StatusUnsupportedMediaType
	default:
		return 0
	}
}

// isOurs reports whether the service may be reached under the name of a host: one
// of this machine, or of its own address.
func (g *guard) isOurs(host string) bool {
	if own, err := url.Parse(g.address); g.anyHost || err == nil && strings.EqualFold(host, own.Host) {
		return true
	}
	name := host
	if split, _, err := net.SplitHostPort(host); err == nil {
		name = split
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return ip != nil && ip.IsLoopback() || strings.EqualFold(name, "localhost")
}

func sameOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && origin.Host == r.Host
}
