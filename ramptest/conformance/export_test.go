package conformance

import (
	"context"
	"net"
)

// DialWith makes the judge call a server over connections of another kind.
func (j *Judge) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	j.dial = dial
}
