package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
