// Package loopback listens where only programs of this machine connect, and says where they reach a
// listener.
package loopback

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
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

// Address returns the host and port at which programs of this machine reach a listener. No program can
// connect to an unspecified address, such as [::]. What reaches the listener depends on the machine, which
// may lack IPv4 or IPv6, and on who opened it: so it is tried.
func Address(listener net.Listener) (string, error) {
	at := listener.Addr().String()
	tcp, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at, nil
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		tried := net.JoinHostPort(host, strconv.Itoa(tcp.Port))
		if c, err := net.DialTimeout("tcp", tried, time.Second); err == nil {
			_ = c.Close() // nothing was asked
			return tried, nil
		}
	}
	// without IPv4, package net listens on 0.0.0.0:8080 if asked for :8080 or [::]:8080
	return "", fmt.Errorf("no program of this machine reaches a listener at %s: listen on an address that "+
		"the machine has", at)
}
