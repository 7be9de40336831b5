package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// peakMemory returns the most memory that a process has had, in MiB.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("*** NOT TESTED: this system has no /proc ***")
	}
	return must(strconv.Atoi(regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindStringSubmatch(string(status))[1]))(t) >> 10
}

// Anybody can begin bodies and never end them. Neither the memory of compose.yaml ends, nor are the
// calls of the service kept waiting.
func TestBodiesThatNeverEndStopNothing(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector needs several times the memory")
	}
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	c, _ := readCompose(t)
	most := must(strconv.Atoi(strings.TrimSuffix(c.Services["game-1"].MemLimit, "m")))(t)
	eachProxy(t, func(t *testing.T, name string) {
		for what, sent := range map[string]int{"small": 60_000, "large": 1_000_000} {
			p := deploy(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), "-any-rate")
			address := strings.TrimPrefix(p.url, "http://")
			url, client := startProxy(t, name, configOf(t, name), address, address)
			held := holdBodies(t, 400, sent, func() net.Conn { return dial(t, url, client) })
			for n := range 20 {
				begun := time.Now()
				equal(t, fmt.Sprintf("%s, call %d", what, n),
					told(t, dial(t, url, client), wire("POST", "/api/validate", signature)), "401")
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("%s: while bodies are held, call %d takes %v", what, n, took)
				}
			}
			held()
			peak := peakMemory(t, p.command.Process.Pid)
			t.Logf("%s: 400 held bodies: %d MiB at most", what, peak)
			if peak > most*3/4 {
				t.Errorf("%s: bodies that never end need %d MiB; compose.yaml gives %d", what, peak, most)
			}
		}
	})
}

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
