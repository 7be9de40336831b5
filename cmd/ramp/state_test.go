package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

func TestAnEmulatorSurvivesARestart(t *testing.T) {
	t.Parallel()
	d := newDesktop(t) // whose game goes on
	game := d.Assets[:len(d.Assets)-len("/api/assets")]
	path := filepath.Join(t.TempDir(), "desk.json")

	first, lines, stop := beginJSON(t, append(console(), "-state", path, "-game", game, "-speed", "0")...)
	drain(lines)
	d.API = first.API
	out := d.ends(t, 0, onTerms("mint")...)
	id := out[:36]
	stop()
	info := must.Get(os.Stat(path))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	files := must.Get(os.ReadDir(filepath.Dir(path)))(t)
	assert.Len(t, files, 1, "the file alone")

	second, lines, _ := beginJSON(t, append(console(), "-state", path, "-game", game, "-speed", "0")...)
	drain(lines)
	d.API = second.API
	assert.Contains(t, d.ends(t, 0, "advance", "1m"), "confirmed", "the result that was due is delivered")
	assert.Contains(t, d.ends(t, 0, "orders", id[:8]), "The game took 100 item_gold")
}

func TestMadeKeysSurviveEvenAKill(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "")
	t.Setenv("RAMP_VALIDATOR_KEY", "")
	path := filepath.Join(t.TempDir(), "desk.json")
	first, _, stop := beginJSON(t, "-state", path, "-game", "http://127.0.0.1:1", "-key-encoding", "base64url")
	written, err := os.ReadFile(path)
	require.NoError(t, err, "it is there as soon as the keys are printed")
	stop()
	require.NoError(t, os.WriteFile(path, written, 0o600)) // as after a kill
	second, _, stop := beginJSON(t, "-state", path, "-game", "http://127.0.0.1:1", "-key-encoding", "base64url")
	stop()
	assert.Equal(t, first.HMACKey, second.HMACKey)
	assert.Equal(t, first.ValidatorKey, second.ValidatorKey)
	third, _, stop := beginJSON(t, "-state", path, "-game", "http://127.0.0.1:1")
	stop()
	assert.NotEqual(t, first.HMACKey, third.HMACKey, "a key of the other encoding cannot be read")
	assert.Equal(t, first.ValidatorKey, third.ValidatorKey)
}

func TestEmulateRejectsAFileOfSomethingElse(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", testKey)
	path := filepath.Join(t.TempDir(), "desk.json")
	for _, text := range []string{"{}", "my thesis", "my thesis\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var errs bytes.Buffer
		assert.Equal(t, 2,
			run(t.Context(),
				[]string{"emulate", "-game", "http://127.0.0.1:1", "-listen", "127.0.0.1:0", "-state", path},
				io.Discard, &errs))
		assert.Regexp(t, "-state .*is not a state file", errs.String())
		left := must.Get(os.ReadFile(path))(t)
		assert.Equal(t, text, string(left), "it is not overwritten")
	}
}

// A limit of the file's size stands for a full disk.
func TestAStateFileThatCannotBeWrittenIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "desk.json")
	d := newDesktop(t) // whose game goes on
	game := d.Assets[:len(d.Assets)-len("/api/assets")]
	command, first, _, errs := beginProgram(t, `ulimit -f 100; exec "$@"`, "-state", path, "-game", game,
		"-speed", "0", "-q")
	d.started = first
	client := control.Client{URL: d.API}
	d.order(t, 1)
	require.Eventually(t, func() bool {
		kept, err := os.ReadFile(path)
		return err == nil && bytes.Contains(kept, []byte("\nuuid/"))
	}, 10*time.Second, time.Millisecond, "the first order is not kept")
	var about control.Description
	for orders := 0; about.StateError == ""; orders++ {
		require.Less(t, orders, 100)
		d.order(t, 1)
		about = must.Get(client.Describe(t.Context()))(t)
	}
	assert.Equal(t, "write "+path+": file too large", about.StateError)
	page := must.Get(http.Get(d.API + "/"))(t)
	shown := must.Get(io.ReadAll(page.Body))(t)
	require.NoError(t, page.Body.Close())
	assert.Contains(t, string(shown),
		"Nothing is kept for a restart.</strong> The state file cannot be written: "+about.StateError)
	said := "ramp emulate: -state: " + about.StateError + "\n" +
		"Nothing that happens from now on is kept for a restart. Make room, and restart.\n"
	require.Eventually(t, func() bool { return errs.String() == said }, 10*time.Second, 10*time.Millisecond, "%s", errs)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	var ended *exec.ExitError
	require.ErrorAs(t, command.Wait(), &ended)
	assert.Equal(t, 1, ended.ExitCode())
	assert.Equal(t, said+"ramp emulate: -state: "+about.StateError+"\n", errs.String())

	again, lines, _ := beginJSON(t, append(console(), "-state", path, "-game", game, "-speed", "0")...)
	drain(lines)
	d.API = again.API
	list := must.Get((&control.Client{URL: d.API}).Orders(t.Context(), control.OrdersQuery{}))(t)
	assert.NotEmpty(t, list.Orders, "what was written fits together")
	d.ends(t, 0, "advance", "1m")
}
