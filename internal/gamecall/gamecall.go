// Package gamecall calls the three endpoints of a game as the service does. The emulator and the judge
// use it. What an answer means is theirs to say.
package gamecall

import (
	"io"
	"net/http"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// The headers of a call (interface 4.3), in the case in which the service writes them in validate and
// result calls.
const (
	Authorization = "x-dapp-authorization"
	SessionID     = "x-dapp-sessionid"
	Signature     = "x-hmac-signature"
)

// Header returns the headers of a validate or result call, without the signature of its body.
func Header(s ramp.Session) http.Header {
	header := Anonymous()
	header[Authorization], header[SessionID] = []string{"Bearer " + s.Token.Reveal()}, []string{s.ID}
	return header
}

// AssetsHeader returns the headers of an assets call, whose names the service writes in another case. The
// judge writes them in both.
func AssetsHeader(s ramp.Session) http.Header {
	header := Anonymous()
	header["X-Dapp-Authorization"] = []string{"Bearer " + s.Token.Reveal()}
	header["X-Dapp-SessionID"] = []string{s.ID}
	return header
}

// Anonymous returns the headers of a call without a session.
func Anonymous() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// SameAddress is the CheckRedirect of a client: no token and no signed call must reach an address that
// nobody named.
func SameAddress(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Answer is what a game has answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // what has arrived of it, up to the limit
	Longer bool   // than the limit
	Cut    error  // why the body ended early, or nil
}

// Do makes a call and reads at most limit bytes of its answer. The error is that of a call that was not
// answered.
func Do(client *http.Client, request *http.Request, limit int64) (*Answer, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, cut := io.ReadAll(io.LimitReader(response.Body, limit+1))
	a := &Answer{Status: response.StatusCode, Header: response.Header, Body: body, Cut: cut}
	if int64(len(body)) > limit {
		a.Body, a.Longer = body[:limit], true
	}
	return a, nil
}

// OtherCase returns the ID of a session whose ASCII letters are in the other case. For a game it is
// another session.
func OtherCase(id string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r ^ 0x20
		}
		return r
	}, id)
}
