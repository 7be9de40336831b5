package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// shared are the variables of several flags, which mean the same thing by another name.
var shared = map[string]string{
	"RAMP_API_URL":           "at url",       // the emulator is the service
	"RAMP_GAME":              "game url",     // the server that is called
	"RAMP_HMAC_KEY_ENCODING": "key-encoding", // as a game's server reads it
	"RAMP_WAIT_TIMEOUT":      "timeout",
}

// Each flag has a variable, and no variable means two things.
func TestEveryFlagHasAVariableOfItsOwn(t *testing.T) {
	line := regexp.MustCompile(`(?m)^  -([a-z0-9-]+)( [^\s-]\S*)*(\t|$)`)
	variable := regexp.MustCompile(`\[(RAMP_[A-Z0-9_]+)\]`)
	flags := map[string]map[string]string{} // the usage of each flag, by its variable and name
	total := 0
	for command := range commands {
		var flag string
		given, found := 0, 0
		for text := range strings.Lines(ends(t, 0, "help", command)) {
			if m := line.FindStringSubmatch(text); m != nil {
				flag = m[1]
				given++
			}
			if m := variable.FindStringSubmatch(text); m != nil {
				found++
				if flags[m[1]] == nil {
					flags[m[1]] = map[string]string{}
				}
				flags[m[1]][flag] += command + " "
			}
		}
		assert.Equal(t, given, found, command)
		total += found
	}
	require.Greater(t, total, 100)
	for name, of := range flags {
		assert.True(t, len(of) == 1 || shared[name] != "", "%s sets several flags: %v", name, of)
		for flag := range of {
			byName := "RAMP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
			assert.True(t, name == byName || strings.HasSuffix(name, strings.TrimPrefix(byName, "RAMP")) ||
				strings.Contains(shared[name], flag) || name == "RAMP_RPC_URL" || name == "RAMP_FRONTEND_URL" ||
				name == "RAMP_SESSIONS", "%s of -%s", name, flag)
		}
	}
}

func TestFlagsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("RAMP_GAME", newServer(t))
	t.Setenv("RAMP_HMAC_KEY", testKey)
	t.Setenv("RAMP_HMAC_KEY_ENCODING", "text")
	t.Setenv("RAMP_VALIDATOR_KEY", validatorKey)
	t.Setenv("RAMP_SETTLE", "1ms")
	t.Setenv("RAMP_RUN", "^assets$")
	t.Setenv("RAMP_Q", "true")
	const passed = "passed: none of 1 cases failed; 0 noted, 0 unproven, 0 unasked, 0 waived, 0 skipped, 0 untried\n"
	assert.Equal(t, passed, ends(t, 0, "check"))

	t.Setenv("RAMP_RUN", "^nothing$")
	assert.Equal(t, passed, ends(t, 0, "check", "-run", "^assets$"), "the arguments win")

	t.Setenv("RAMP_SESSIONS", "session-1="+testToken+"\nsession-1="+testToken+"\n")
	t.Setenv("RAMP_RUN", "^assets$")
	assert.Equal(t, passed, ends(t, 0, "check", "-login", "/login"), "the arguments win over another flag's variable")
	t.Setenv("RAMP_Q", "maybe")
	assert.Equal(t, "stderr: ramp check: RAMP_Q, for -q: parse error (see: ramp help check)\n", ends(t, 2, "check"))
}

// An order of the game's own takes its terms from the page, whatever the environment names.
func TestATokenOfTheEnvironmentIsNoTerms(t *testing.T) {
	d := newDesktop(t)
	t.Setenv("RAMP_TOKEN", "0x00000000000000000000000000000000000070c3")
	t.Setenv("RAMP_PROJECT", "project-1")
	out := d.ends(t, 0, onTerms("mint", "-wait", "-q")...)
	assert.Len(t, d.ends(t, 0, "trigger", "mint", "-like", out[:8], "-q", "-wait"), 37)
	assert.Contains(t, d.ends(t, 2, "trigger", "mint"), "one of -page, -uuid, -like and -token")
	assert.Equal(t, "stderr: ramp trigger: RAMP_ACCESS_TOKEN, or the token of -session ID=TOKEN, is required: "+
		"no order of this session is known\n",
		d.ends(t, 2, "trigger", "mint", "-material", "item_gold=1", "-session", "session-2"))
}

func TestOrdersShowsWhatTheGameRefused(t *testing.T) {
	t.Parallel()
	d := newDesktop(t)
	d.ends(t, 1, onTerms("mint", "-material", "item_gold=5000")...)
	out := d.ends(t, 0, "orders")
	assert.Regexp(t, `^Calls that led to no order:\n\d\d:\d\d:\d\d validate +[0-9a-f]{8} +200  INVALID_BALANCE\n$`, out)
	id := d.ends(t, 0, onTerms("mint", "-wait", "-q")...)
	assert.Regexp(t, `(?s)^Calls that led to no order:\n.* INVALID_BALANCE\n\nUUID +TIME .*\n`+id[:8]+" ",
		d.ends(t, 0, "orders"))
	assert.NotContains(t, d.ends(t, 0, "orders", "-state", "done"), "INVALID_BALANCE")
	assert.Contains(t, d.ends(t, 0, "orders", "-attention"), "No order matches.", "a game may refuse an order")
}

func TestAdvanceShowsHowFarTheClockIs(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	enough := make(chan struct{})
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 {
			close(enough)
		}
		_, _ = io.WriteString(w, `{"now":"2026-11-26T12:00:00Z","chains":{"testnet":{}}}`)
	}))
	defer emulator.Close()
	var shown strings.Builder
	c := &caller{call: &call{stdio: stdio{nil, io.Discard, &shown}}, Client: &control.Client{URL: emulator.URL}}
	stop := c.showClock(t.Context(), 15*time.Minute, time.Millisecond)
	<-enough
	stop()
	assert.True(t, strings.HasPrefix(shown.String(),
		"\r\x1b[KIt is 2026-11-26 12:00:00, on the way to 2026-11-26 12:15:00"), shown.String())
	assert.True(t, strings.HasSuffix(shown.String(), "\r\x1b[K"), "the line goes")
}

func TestReadyWaitsForAnEmulator(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, "-public")
	assert.Empty(t, d.ends(t, 0, "ready", "-timeout", "0s"), "one that wants a token is there, too")
	assert.Contains(t, ends(t, 2, "ready", "-timeout", "0s", "-at", "http://127.0.0.1:1"),
		"ramp ready: there is no emulator at http://127.0.0.1:1")

	var asked atomic.Int64
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 2 {
			_, _ = io.WriteString(w, `{"now":"2026-11-26T12:00:00Z","chains":{"testnet":{}}}`)
			return
		}
		http.NotFound(w, r)
	}))
	defer emulator.Close()
	assert.Empty(t, ends(t, 0, "ready", "-at", emulator.URL))
	assert.EqualValues(t, 3, asked.Load())
}

func TestCommandsGuessWhatWasMeant(t *testing.T) {
	t.Parallel()
	known := []string{"advance", "check", "orders", "wait", "key-file"}
	for unknown, want := range map[string]string{"chekc": "check", "ordres": "orders", "advnace": "advance",
		"order": "orders", "wiat": "wait", "keyfile": "key-file"} {
		assert.Equal(t, "; did you mean -"+want+"?", didYouMean(unknown, "-", known))
	}
	for _, unknown := range []string{"", "x", "mine", "nonsense", strings.Repeat("w", 1000)} {
		assert.Empty(t, didYouMean(unknown, "-", known), unknown)
	}
	version := ends(t, 0, "version")
	require.NotEmpty(t, version)
	assert.Equal(t, version, ends(t, 0, "--version"))
}

// Each switch for what the interface leaves open is in the list of open points, or in the page about tests.
func TestEverySwitchIsInADocument(t *testing.T) {
	_, group, found := strings.Cut(ends(t, 0, "help", "emulate"), "\nWhat the interface leaves open")
	require.True(t, found)
	documents := ""
	for _, name := range []string{"interface", "testing"} {
		documents += string(must.Get(os.ReadFile("../../docs/" + name + ".md"))(t))
	}
	switches := regexp.MustCompile(`(?m)^  (-[a-z0-9-]+)`).FindAllStringSubmatch(group, -1)
	assert.Len(t, switches, 8)
	for _, m := range switches {
		assert.Regexp(t, "`[^`]*"+m[1]+"[` ]", documents)
	}
}
