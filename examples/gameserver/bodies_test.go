package main

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// raceDetector reports whether the server runs with it.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// holdBodies begins calls on connections of their own, sends a part of each body, and waits until they
// have been sent or refused. The function that it returns ends them.
func holdBodies(t *testing.T, calls, sent int, dial func() net.Conn) (end func()) {
	t.Helper()
	header := "POST /api/result HTTP/1.1\r\nHost: game.example.com\r\nContent-Length: 1048576\r\n" + signature + "\r\n"
	connections := make([]net.Conn, calls)
	var all sync.WaitGroup
	for n := range connections {
		all.Go(func() {
			connections[n] = dial()
			_ = connections[n].SetWriteDeadline(time.Now().Add(4 * time.Second))
			_, _ = io.WriteString(connections[n], header+strings.Repeat(" ", sent))
		})
	}
	all.Wait()
	return func() {
		for _, connection := range connections {
			_ = connection.Close()
		}
	}
}

// Large bodies of genuine results arrive, as many as there are places, and the others come again.
func TestLargeBodiesTakePlaces(t *testing.T) {
	p := deploy(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), "-any-rate")
	address := strings.TrimPrefix(p.url, "http://")
	large := func() string {
		connection := must(net.Dial("tcp", address))(t)
		return told(t, connection,
			fmt.Sprintf("POST /api/validate HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n%s", 500_000, signature,
				strings.Repeat(" ", 500_000)))
	}
	equal(t, "with places", large(), "401")
	end := holdBodies(t, 4*largeBodies, 500_000, func() net.Conn { return must(net.Dial("tcp", address))(t) })
	await(t, func() bool { return repeated(large()) }, func() string { return "a large body has a place" })
	end()
	await(t, func() bool { return large() == "401" }, func() string { return "the places stay taken" })
}
