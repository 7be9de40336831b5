package main

import (
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// frozen returns an address that accepts connections and never answers.
func frozen(t *testing.T) string {
	t.Helper()
	listener := ramp.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// The first host of the database neither answers nor refuses: the second one is asked in time.
func TestAFrozenHostOfTheDatabaseIsLeft(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres:") {
			t.Skip("its driver knows one host only")
		}
		u := ramp.Must(url.Parse(address))
		u.Host = frozen(t) + "," + u.Host
		db, _, err := openDatabase(u.String(), 2)
		check(t, err)
		defer db.Close()
		begun := time.Now()
		check(t, db.PingContext(t.Context()))
		if took := time.Since(begun); took > callDeadline {
			t.Errorf("it took %v", took)
		}
	})
}
