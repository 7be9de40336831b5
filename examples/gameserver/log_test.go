package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// slowLog is a log that somebody reads only once it is released.
type slowLog struct {
	released chan struct{}
	mu       sync.Mutex
	text     bytes.Buffer
}

func (l *slowLog) Write(line []byte) (int, error) {
	<-l.released
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *slowLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}

// A record is written before its call goes on. If nobody reads the log, the call goes on after a
// second, the records wait in their order, and those that do not fit are counted.
func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	t.Parallel()
	const fit = 4
	out := &slowLog{released: make(chan struct{})}
	log, queue := newLog(out, fit)
	logged := make(chan time.Duration, 1)
	record := func(n int) time.Duration {
		t.Helper()
		begun := time.Now()
		go func() { log.With("n", n).Info("ramp: call"); logged <- time.Since(begun) }()
		select {
		case took := <-logged:
			return took
		case <-time.After(20 * time.Second):
			t.Fatalf("record %d stops its call", n)
			return 0
		}
	}
	if took := record(0); took < logPatience {
		t.Errorf("the first record was given up after %v", took)
	}
	begun := time.Now()
	for n := range 9 {
		record(n + 1)
	}
	if took := time.Since(begun); took > logPatience {
		t.Errorf("while nobody reads the log, nine records take %v", took)
	}
	equal(t, "records that did not fit", queue.lost.Load(), int64(9-fit))
	close(out.released)
	await(t, func() bool { return len(out.lines()) == 1+fit }, func() string { return strings.Join(out.lines(), "\n") })
	for n, line := range out.lines() {
		says(t, line, fmt.Sprintf(`"msg":"ramp: call","n":%d}`, n))
	}
	for n := range 100 { // from now on, each is written before its call goes on
		record(n + 10)
		equal(t, "records", len(out.lines()), 1+fit+n+1)
	}
	equal(t, "records that did not fit", queue.lost.Load(), int64(9-fit))
	if !log.Handler().Enabled(t.Context(), slog.LevelInfo) || log.Handler().Enabled(t.Context(), slog.LevelDebug) {
		t.Error("the level has changed")
	}
}

// The pipe of a real server is full: Docker, containerd and systemd may stop reading it. Its calls are
// still answered, and its records are there once somebody reads them.
func TestAFullPipeOfTheLogStopsNoCall(t *testing.T) {
	t.Parallel()
	metrics := freeAddress(t)
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	p := deploy(t, address, "-any-rate", "-metrics", metrics)
	session := login(t, p.url, "alice")
	p.kill()
	read, write, err := os.Pipe()
	check(t, err)
	p.stderr = write
	p.start()
	check(t, write.Close()) // the process has its own
	client := &http.Client{Timeout: 10 * time.Second}
	const calls = 600
	for n := range calls {
		request := must(http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+ramp.PathAssets, nil))(t)
		request.Header.Set("X-Dapp-Authorization", "Bearer "+session.Token.Reveal())
		request.Header.Set("X-Dapp-SessionID", session.ID)
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		must(io.Copy(io.Discard, response.Body))(t)
		check(t, response.Body.Close())
		equal(t, "status", response.StatusCode, 200)
	}
	series := scrape(t, "http://"+metrics+"/metrics")
	if series["ramp_log_records_waiting"] == "0" || series["ramp_log_records_lost_total"] != "0" {
		t.Errorf("waiting: %s, lost: %s", series["ramp_log_records_waiting"], series["ramp_log_records_lost_total"])
	}
	found := 0
	for lines := bufio.NewScanner(read); found < calls && lines.Scan(); {
		if strings.Contains(lines.Text(), `"msg":"ramp: call"`) {
			found++
		}
	}
	equal(t, "records", found, calls)
	equal(t, "records that wait", scrape(t, "http://"+metrics+"/metrics")["ramp_log_records_waiting"], "0")
	go func() { _, _ = io.Copy(io.Discard, read) }()
}
