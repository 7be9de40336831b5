// Package loopback listens where only programs of this machine connect.
package loopback

import (
	"errors"
	"net"
)

// Listen listens on a free port of 127.0.0.1, or of ::1 on a machine without IPv4, such as
// some containers.
func Listen() (net.Listener, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err == nil {
		return listener, nil
	}
	listener, err6 := net.Listen("tcp6", "[::1]:0")
	if err6 != nil {
		return nil, errors.Join(err, err6)
	}
	return listener, nil
}
