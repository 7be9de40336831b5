package loopback

import (
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No program can connect to an unspecified address, and not every machine has IPv4, or IPv6.
func TestAnAddressReachesItsListener(t *testing.T) {
	here := func(host string) bool {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		return err == nil && listener.Close() == nil
	}
	for _, test := range []struct {
		network, address string
		hosts            []string // the first one that this machine has
	}{
		{"tcp4", "0.0.0.0:0", []string{"127.0.0.1"}},
		{"tcp6", "[::]:0", []string{"::1"}},
		{"tcp", "[::]:0", []string{"127.0.0.1", "::1"}},
		{"tcp", "127.0.0.1:0", []string{"127.0.0.1"}},
		{"tcp", "[::1]:0", []string{"::1"}},
	} {
		t.Run(test.network+" "+test.address, func(t *testing.T) {
			listener, err := net.Listen(test.network, test.address)
			if err == nil && listener.Addr().(*net.TCPAddr).IP.To4() != nil {
				test.hosts = test.hosts[:1] // without IPv4, package net takes [::] for 0.0.0.0
			}
			host := slices.IndexFunc(test.hosts, here)
			if err != nil {
				require.Negative(t, host)
				t.Skip(err)
			}
			defer listener.Close()
			got, err := Address(listener)
			if host < 0 {
				assert.ErrorContains(t, err,
					"no program of this machine reaches a listener at "+listener.Addr().String())
				return
			}
			require.NoError(t, err)
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			assert.Equal(t, net.JoinHostPort(test.hosts[host], port), got)
			reached, err := net.Dial("tcp", got)
			require.NoError(t, err)
			assert.NoError(t, reached.Close())
		})
	}
}
