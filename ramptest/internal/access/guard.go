// Package access decides who may use an emulated service: programs on this machine, its own pages, and
// whoever has its token, but no page of another site.
package access

import (
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/control"
)

// A service or game in memory has this address.
const (
	MemoryHost = "memory.invalid"
	MemoryURL  = "https://" + MemoryHost

	// MemoryRemote is the remote address that httptest.NewRequest sets, from a reserved network.
	MemoryRemote = "192.0.2.1:1234"
)

// Guard decides who may use the service. It blocks pages of other sites.
type Guard struct {
	URL   string // the address of the service
	Token string // required by the control API; empty if it requires none
}

// Control returns why a request may not use the control API, or nil if it may. If a
// token is set, whoever has it may. Otherwise only programs on this machine and the
// service's own pages may. Both the address that the request comes from and the host
// that it names must then be local, because of DNS rebinding.
func (g *Guard) Control(r *http.Request) *control.Error {
	switch {
	case g.Token == "" && !(fromHere(r) && isHere(r.Host)):
		return denied(control.CodeForbidden,
			"without a token, the control API is for programs on this machine only")
	case r.Header.Get("Origin") != "" && !SameOrigin(r):
		return denied(control.CodeForbidden, "a page of another site has no access")
	case g.Token != "" && !g.knows(r):
		return denied(control.CodeUnauthorized,
			"the token is missing or wrong: send it as Authorization: Bearer TOKEN, or in the query as token")
	case r.Method == http.MethodPost && !isJSON(r) && !isBare(r):
		return denied(control.CodeMediaType, "Content-Type must be application/json")
	default:
		return nil
	}
}

func denied(code control.ErrorCode, why string) *control.Error {
	return &control.Error{Code: code, Message: why}
}

// tokenCookie is the cookie in which the pages keep the token.
const tokenCookie = "ramp-control-token"

// Operates reports whether a request for a page may see and change the orders of all
// players. The rules are those of the control API, except that the token may also be
// in a cookie.
func (g *Guard) Operates(r *http.Request) bool {
	if g.Token == "" {
		return fromHere(r) && isHere(r.Host)
	}
	cookie, err := r.Cookie(tokenCookie)
	return g.knows(r) || err == nil &&
		subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(url.QueryEscape(g.Token))) == 1
}

// Remember stores the token in a cookie, so that it need not stay in the address.
func (g *Guard) Remember(w http.ResponseWriter) {
	http.SetCookie(w,
		&http.Cookie{Name: tokenCookie, Value: url.QueryEscape(g.Token), Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
}

// knows reports whether a request has the token.
func (g *Guard) knows(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = r.URL.Query().Get("token")
	}
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.Token)) == 1
}

// fromHere reports whether a request comes from this machine, or from an in-memory
// client.
func fromHere(r *http.Request) bool {
	if r.RemoteAddr == MemoryRemote && r.Host == MemoryHost {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// isHere reports whether a host is a local name, or that of the service in memory.
func isHere(host string) bool {
	name := host
	if split, _, err := net.SplitHostPort(host); err == nil {
		name = split
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return ip != nil && ip.IsLoopback() || strings.EqualFold(name, "localhost") || host == MemoryHost
}

// Rejection returns the HTTP status with which pages of other sites are rejected, or 0.
// Their requests have an Origin header or a content type other than JSON. Programs
// are accepted under any host name.
func (g *Guard) Rejection(r *http.Request) int {
	switch {
	case r.Header.Get("Origin") != "" && !(g.IsOurs(r.Host) && SameOrigin(r)):
		return http.StatusForbidden
	case !isJSON(r):
		return http.StatusUnsupportedMediaType
	default:
		return 0
	}
}

// isBare reports whether a request has no body, no type, and none of the headers that browsers send.
func isBare(r *http.Request) bool {
	return r.ContentLength == 0 && r.Header.Get("Content-Type") == "" && r.Header.Get("Origin") == "" &&
		r.Header.Get("Sec-Fetch-Site") == ""
}

func isJSON(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// IsOurs reports whether a host names this service: a local name, or the host of its
// address. If there is a token, any name does, because no page of another site has it.
func (g *Guard) IsOurs(host string) bool {
	if own, err := url.Parse(g.URL); g.Token != "" || err == nil && strings.EqualFold(host, own.Host) {
		return true
	}
	return isHere(host)
}

// SameOrigin reports whether a request was sent by a page of the service.
func SameOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && origin.Host == r.Host
}
