package judge

import (
	"context"
	"net"
	"net/http"
)

// DialWith makes the judge call a server over connections of another kind, which no server
// closes while they are idle, so that calls may share them.
func (j *Judge) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	j.dial = dial
	j.client.Transport.(*http.Transport).DisableKeepAlives = false
}

// CallWith makes the judge call a server without connections, except for calls that are
// cut off.
func (j *Judge) CallWith(transport http.RoundTripper) { j.client.Transport = transport }
