package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// emulateFrom runs emulate with a file until the function that it returns is called.
func emulateFrom(t *testing.T, path string, args ...string) (s started, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"emulate", "-listen", "127.0.0.1:0", "-json", "-state", path}, args...), write, write)
		write.Close()
	}()
	lines := bufio.NewScanner(read)
	require.True(t, lines.Scan())
	require.NoError(t, json.Unmarshal(lines.Bytes(), &s), lines.Text())
	go func() { _, _ = io.Copy(io.Discard, read) }()
	return s, func() {
		cancel()
		assert.Equal(t, 0, <-ended)
	}
}

func TestAnEmulatorSurvivesARestart(t *testing.T) {
	t.Parallel()
	d := newDesktop(t) // whose game goes on
	game := d.Assets[:len(d.Assets)-len("/api/assets")]
	path := filepath.Join(t.TempDir(), "desk.json")

	first, stop := emulateFrom(t, path, append(console, "-game", game, "-speed", "0")...)
	d.API = first.API
	status, out, errs := d.ramp(t, onTerms("mint")...)
	require.Equal(t, 0, status, errs)
	id := out[:36]
	stop()
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, files, 1, "no other file is left")

	second, stop := emulateFrom(t, path, append(console, "-game", game, "-speed", "0")...)
	defer stop()
	d.API = second.API
	status, out, _ = d.ramp(t, "advance", "1m")
	assert.Equal(t, 0, status)
	assert.Contains(t, out, "confirmed", "the result that was due is delivered")
	status, out, _ = d.ramp(t, "orders", id[:8])
	assert.Equal(t, 0, status)
	assert.Contains(t, out, "The game took 100 item_gold")
}

func TestMadeKeysSurviveEvenAKill(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "")
	t.Setenv("RAMP_VALIDATOR_KEY", "")
	path := filepath.Join(t.TempDir(), "desk.json")
	first, stop := emulateFrom(t, path, "-game", "http://127.0.0.1:1", "-key-encoding", "base64url")
	written, err := os.ReadFile(path)
	require.NoError(t, err, "it is there as soon as the keys are printed")
	stop()
	require.NoError(t, os.WriteFile(path, written, 0o600)) // as after a kill
	second, stop := emulateFrom(t, path, "-game", "http://127.0.0.1:1", "-key-encoding", "base64url")
	stop()
	assert.Equal(t, first.HMACKey, second.HMACKey)
	assert.Equal(t, first.ValidatorKey, second.ValidatorKey)
	third, stop := emulateFrom(t, path, "-game", "http://127.0.0.1:1")
	stop()
	assert.NotEqual(t, first.HMACKey, third.HMACKey, "a key of the other encoding cannot be read")
	assert.Equal(t, first.ValidatorKey, third.ValidatorKey)
}

func TestAnEmulatorSavesWhileItRuns(t *testing.T) {
	t.Parallel()
	d := newDesktop(t)
	game := d.Assets[:len(d.Assets)-len("/api/assets")]
	path := filepath.Join(t.TempDir(), "desk.json")
	s, stop := emulateFrom(t, path, append(console, "-game", game, "-speed", "0")...)
	defer stop()
	d.API = s.API
	status, out, errs := d.ramp(t, onTerms("mint")...)
	require.Equal(t, 0, status, errs)
	require.Eventually(t, func() bool {
		written, err := os.ReadFile(path)
		return err == nil && json.Valid(written) && bytes.Contains(written, []byte(out[:36]))
	}, 20*time.Second, 10*time.Millisecond)
}

func TestEmulateRefusesAFileOfSomethingElse(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", testKey)
	path := filepath.Join(t.TempDir(), "desk.json")
	for _, text := range []string{"", "{}", `{"service":{"Version":9}}`, "my thesis"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var errs bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), []string{"emulate", "-game", "http://127.0.0.1:1", "-listen", "127.0.0.1:0", "-state", path}, io.Discard, &errs))
		assert.Regexp(t, "-state: |Config.State", errs.String())
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, string(left), "it is not overwritten")
	}
}

// Many changes are written together, and no change is not.
func TestTheStateIsSavedAtMostOnceASecond(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	synctest.Test(t, func(t *testing.T) {
		key, err := ramp.TextKey("a-key")
		require.NoError(t, err)
		service := ramptest.Start(t, ramptest.Config{Key: key, Validator: common.Address{1}, Handler: http.NotFoundHandler()})
		file, err := openState(path)
		require.NoError(t, err)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			file.keep(service, stop, func(err error) { t.Error(err) })
		}()
		saved := func() bool { // since the last call
			synctest.Wait()
			return os.Remove(path) == nil
		}
		changes := func(most time.Duration) {
			for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				file.changed.Store(true)
			}
		}
		changes(900 * time.Millisecond)
		assert.False(t, saved())
		changes(200 * time.Millisecond) // the second passes
		assert.True(t, saved())
		changes(800 * time.Millisecond)
		assert.False(t, saved())
		time.Sleep(time.Second)
		assert.True(t, saved())
		time.Sleep(saveAnyway - time.Second)
		assert.False(t, saved(), "nothing has changed")
		time.Sleep(time.Second)
		assert.True(t, saved(), "the clock has moved")
		close(stop)
		<-ended
	})
}
