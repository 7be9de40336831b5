package ramptest

import (
	"crypto/subtle"
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
	token   string // that the control API asks for; empty if it asks for none
}

// A denial says why a request is refused: with an HTTP status, and in words.
type denial struct {
	status int
	why    string
}

// control decides whether a request may use what shows and moves the orders of all
// players. Without a token, only a program of this machine may, and a page of the
// service itself: the address that a request comes from and the name that it is sent
// to must both be of this machine, because a page of the web can make a name of its
// own point here. With a token, whoever has it may.
func (g *guard) control(r *http.Request) *denial {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case g.token == "" && !(fromHere(r) && isHere(r.Host)):
		return &denial{http.StatusForbidden, "without a token, the control API is for programs on this machine only"}
	case g.token != "" && !g.isOurs(r.Host):
		return &denial{http.StatusForbidden, "the service was reached under a name that is not its own"}
	case r.Header.Get("Origin") != "" && !sameOrigin(r):
		return &denial{http.StatusForbidden, "a page of another site has no access"}
	case g.token != "" && !g.knows(r):
		return &denial{http.StatusUnauthorized, "the token is missing or wrong: send it as Authorization: Bearer TOKEN, or in the query as token"}
	case r.Method == http.MethodPost && (err != nil || media != "application/json"):
		return &denial{http.StatusUnsupportedMediaType, "Content-Type must be application/json"}
	default:
		return nil
	}
}

// tokenCookie keeps the token for the pages, once it was in an address.
const tokenCookie = "ramp-control-token"

// operates reports whether a request of a page may see and move the orders of all
// players: as for the control API, one from this machine if there is no token, and
// else one that has it, in a cookie too.
func (g *guard) operates(r *http.Request) bool {
	if g.token == "" {
		return fromHere(r) && isHere(r.Host)
	}
	cookie, err := r.Cookie(tokenCookie)
	return g.knows(r) || err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(url.QueryEscape(g.token))) == 1
}

// remember lets the browser keep the token that is in an address, so that it need
// not stay there.
func (g *guard) remember(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: url.QueryEscape(g.token), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// knows reports whether a request has the token.
func (g *guard) knows(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = r.URL.Query().Get("token")
	}
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// fromHere reports whether a request comes from this machine, or through a client in
// memory.
func fromHere(r *http.Request) bool {
	if r.RemoteAddr == memoryRemote && r.Host == memoryHost {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// isHere reports whether a host is a name of this machine, or the one in memory.
func isHere(host string) bool {
	name := host
	if split, _, err := net.SplitHostPort(host); err == nil {
		name = split
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return ip != nil && ip.IsLoopback() || strings.EqualFold(name, "localhost") || host == memoryHost
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
	return isHere(host)
}

func sameOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && origin.Host == r.Host
}
