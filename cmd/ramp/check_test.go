package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

const (
	testKey       = "secret key of the console"
	testToken     = "secret-token"
	testValidator = "0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb"
)

// TestMain is the command itself under the name of the command, for tests that need a
// process. More tests run at once than there are processors, because most of the time
// they wait for a judge or an emulator.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ramp" {
		main()
	}
	err := flag.Set("test.parallel", "8")   // the command line overrides it
	for _, variable := range os.Environ() { // those of whoever runs the tests
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "RAMP_") {
			err = errors.Join(err, os.Unsetenv(name))
		}
	}
	folder, failed := os.MkdirTemp("", "ramp-test-")
	testKeyFile = filepath.Join(folder, "key")
	if err = errors.Join(err, failed, os.WriteFile(testKeyFile, []byte(testKey+"\n"), 0o600)); err != nil {
		log.Fatal(err)
	}
	status := m.Run()
	if err := os.RemoveAll(folder); err != nil {
		log.Print(err)
	}
	os.Exit(status)
}

// testKeyFile is a file with testKey.
var testKeyFile string

// keyFile returns a file with another key.
func keyFile(t *testing.T, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(key), 0o600))
	return file
}

// game approves everything, moves nothing, and knows one player.
type game struct{}

func (game) Authenticate(_ context.Context, s ramp.Session) error {
	if s.ID != "session-1" || s.Token.Reveal() != testToken {
		return ramp.Reject(ramp.Code("no: " + s.Token.Reveal())) // and tells tokens
	}
	return nil
}

func (game) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(1000)}}}, nil
}

// Update is that of a store that approves every step, and keeps no order.
func (game) Update(_ context.Context, _ uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	step, err := next(nil)
	if errors.Is(err, ramp.ErrOrderUnknown) { // a result
		return ramp.Step{}, nil
	}
	return step, err
}

// newServer serves the game that moves nothing.
func newServer(t *testing.T) string {
	t.Helper()
	return serve(t, ramp.HandlerConfig{Terms: anyTerms, Players: game{}, Store: game{}})
}

// serve serves a game, and logins for it.
func serve(t *testing.T, c ramp.HandlerConfig) string {
	t.Helper()
	if c.Key.IsZero() {
		c.Key = must.Get(ramp.TextKey(testKey))(t)
	}
	c.Signer, c.Logger = must.Get(ramp.NewKeySigner(validatorKey))(t), slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	mux.Handle("/api/", must.Get(ramp.NewHandler(c))(t))
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Player string }
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		assert.NotEmpty(t, asked.Player)
		_, _ = io.WriteString(w, `{"sessionId":"session-1","accessToken":"`+testToken+`"}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// behind serves the game that moves nothing behind a front, which reports whether it has
// answered by itself.
func behind(t *testing.T, front func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(must.Get(url.Parse(newServer(t)))(t))
	proxy.ErrorLog = slog.NewLogLogger(ramptest.Logger(t).Handler(), slog.LevelWarn)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !front(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// checked runs check and returns what it wrote, which must hold no secret: what
// it found, or else why it found nothing.
func checked(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	status := stdio{nil, &out, &errs}.run(t.Context(), "check", args)
	assert.NotContains(t, out.String()+errs.String(), testKey)
	assert.NotContains(t, out.String()+errs.String(), testToken)
	assert.True(t, out.Len() == 0 || errs.Len() == 0, "errors have a writer of their own")
	return status, out.String() + errs.String()
}

func flags(url string, more ...string) []string {
	return append([]string{"-url", url, "-key-file", testKeyFile, "-key-encoding", "text", "-validator", testValidator,
		"-settle", "1ms"}, more...)
}

func TestCheckEndsWithWhatItFound(t *testing.T) {
	t.Parallel()
	url := newServer(t)

	status, out := checked(t, flags(url, "-login", "/login", "-run", "^assets$")...)
	assert.Equal(t, 0, status)
	assert.Equal(t,
		"passed: none of 1 cases failed; 0 noted, 0 unproven, 0 unasked, 0 waived, 0 skipped, 0 untried\n", out)

	// The details come first, and what to fix is last.
	status, out = checked(t,
		flags(url, "-session", "session-1="+testToken, "-run", "^(mint-succeeds|result-unknown-again)$")...)
	assert.Equal(t, 1, status)
	assert.True(t,
		strings.HasPrefix(out, "failed mint-succeeds: MUST (interface 1): A mint that succeeds takes its assets.\n"+
			"  saw:  a balance that moved by 0 (1000 before, 1000 after)\n  want: a balance that moved by -50\n  "+
			"fix:  Take intent.from of a mint, and keep it when the transaction succeeded.\n"+
			"  call: POST /api/result: HTTP 200 Content-Type: application/json\n  answer: "+
			"{\"success\":true,\"errorCode\":null,\"data\":null}\n  uuid "), out)
	assert.Contains(t, out,
		", session session-1\n  repeat it: ramp check -url '"+url+"' -key-file '"+testKeyFile+
			"' -key-encoding 'text' -validator '"+testValidator+
			"' -settle '1ms' -session 'session-1=TOKEN' -run '^mint-succeeds$' -v\n")
	assert.Contains(t, out,
		"\nnoted result-unknown-again: A result for an unknown order is answered with HTTP 500. (a SHOULD, which "+
			"counts with -strict)\n\n")
	assert.True(t, strings.HasSuffix(out, "\nWhat to fix, in this order:\n\n"+
		"1. A mint that succeeds takes its assets. (MUST, interface 1, mint-succeeds)\n   saw:  POST /api/result: a "+
		"balance that moved by 0 (1000 before, 1000 after)\n"+
		"   want: a balance that moved by -50\n   fix:  Take intent.from of a mint, and keep it when the transaction "+
		"succeeded.\n\n"+
		"failed: 1 of 2 cases failed, first mint-succeeds; 1 noted, 0 unproven, 0 unasked, 0 waived, "+
		"0 skipped, 0 untried\n"), out)

	status, out = checked(t, flags(url, "-login", "/login", "-run", "^validate-at-once$")...)
	assert.Equal(t, 1, status, "what a case waits for counts, though it was not chosen")
	assert.Contains(t, out,
		"1. A mint that succeeds takes its assets. (MUST, interface 1, mint-succeeds; 1 case waits for it)\n")
	assert.NotContains(t, out, "failed validate-at-once")

	status, out = checked(t, flags(url, "-login", "/login", "-run", "^mint-succeeds$", "-q")...)
	assert.Equal(t, 1, status)
	assert.Equal(t,
		"failed: 1 of 1 cases failed, first mint-succeeds; 0 noted, 0 unproven, 0 unasked, 0 waived, "+
			"0 skipped, 0 untried\n", out)

	status, out = checked(t, flags(url, "-login", "/login", "-run", "^mint-succeeds$", "-skip", "^mint-")...)
	assert.Equal(t, 0, status, "what is waived does not count")
	assert.Equal(t,
		"waived mint-succeeds: a balance that moved by 0 (1000 before, 1000 after)\n\npassed: none of 1 cases "+
			"failed; 0 noted, 0 unproven, 0 unasked, 1 waived, 0 skipped, 0 untried\n", out)
	status, out = checked(t,
		flags(url, "-login", "/login", "-run", "^assets-token-wrong$", "-skip", "^assets-token-wrong/cut$")...)
	assert.Equal(t, 0, status)
	assert.Equal(t,
		"waived assets-token-wrong/cut: waived (-skip)\n\npassed: none of 1 cases failed; 0 noted, 0 unproven, "+
			"0 unasked, 1 waived, 0 skipped, 0 untried\n", out)

	status, _ = checked(t, flags(url, "-login", "/login", "-run", "^result-unknown-again$")...)
	assert.Equal(t, 0, status, "a SHOULD does not count")
	status, _ = checked(t, flags(url, "-login", "/login", "-run", "^result-unknown-again$", "-strict")...)
	assert.Equal(t, 1, status, "unless it is strict")

	status, out = checked(t,
		flags(url, "-login", url+"/login", "-run", "^(assets-token-wrong|restart/mint-fails)$", "-v")...)
	assert.Equal(t, 2, status, "nothing is known of a restart")
	assert.Contains(t, out,
		"passed   MUST   5.1  assets-token-wrong\n         missing: passed (without an access token)\n           "+
			"GET /api/assets: HTTP 200 Content-Type: application/json\n")
	assert.True(t, strings.HasSuffix(out, "unasked: none of 2 cases failed; 0 noted, 0 unproven, 1 unasked, 0 waived, "+
		"0 skipped, 0 untried; not tried, though money depends on it: restart (set -restart); "+
		"or waive it (-skip)\n"), out)
	_, out = checked(t, flags(url, "-login", "/login", "-run", "^(terms-.*|result-rejected|restart)$", "-q")...)
	assert.Contains(t, out, "; not tried, though money depends on it: "+
		"terms-token, result-rejected/mint-contract, result-rejected/burn-contract (set -token); "+
		"terms-rate, result-rejected/mint-rate, result-rejected/burn-rate (set -token, -amount and -tokens); "+
		"restart/mint-fails (set -restart); or waive it (-skip)\n")

	status, out = checked(t, "-list", "-run", "^mint-succeeds$")
	assert.Equal(t, 0, status)
	assert.Equal(t, "mint-succeeds  MUST  1  A mint that succeeds takes its assets.\n", out)
	status, out = checked(t, "-list", "-json", "-run", "^mint-succeeds$")
	assert.Equal(t, 0, status)
	assert.JSONEq(t,
		`[{"id":"mint-succeeds","subject":"orders","title":"A mint that succeeds takes its assets.","level":"MUST",
		"section":"1","fix":"Take intent.from of a mint, and keep it when the transaction succeeded."}]`, out)

	status, out = checked(t, "-help")
	assert.Equal(t, 0, status)
	assert.Contains(t, out, "usage: ramp check")
}

// Waiving an ability does not turn what depends on it into a success.
func TestWhatIsUnprovenIsNoSuccess(t *testing.T) {
	t.Parallel()
	url := newServer(t)
	status, out := checked(t,
		flags(url, "-login", "/login", "-run", "^(mint-succeeds|validate-at-once)$", "-skip", "^mint-succeeds$")...)
	assert.Equal(t, 2, status)
	assert.Contains(t, out, "unproven: none of 2 cases failed; 0 noted, 1 unproven, 0 unasked, 1 waived,")
	status, _ = checked(t,
		flags(url, "-login", "/login", "-run", "^(mint-succeeds|validate-at-once)$", "-skip",
			"^(mint-succeeds|validate-at-once)$")...)
	assert.Equal(t, 0, status, "unless it is waived too")
}

func TestRunChoosesInputs(t *testing.T) {
	t.Parallel()
	status, out := checked(t,
		flags(newServer(t), "-login", "/login", "-run", "^assets-token-wrong/(cut|long)$", "-json")...)
	assert.Equal(t, 0, status)
	assert.Equal(t, 2, strings.Count(out, `"name":`), out)
	for _, name := range []string{"cut", "long"} {
		assert.Contains(t, out, `"name": "`+name+`"`)
	}
}

// The server approves only UUIDs that it has given out, for the wallet that its login names.
func TestUUIDAndWalletComeFromTheServer(t *testing.T) {
	t.Parallel()
	const wallet = "0x00000000000000000000000000000000000000aB"
	key := must.Get(ramp.TextKey(testKey))(t)
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/login":
			fmt.Fprintf(w, `{"sessionId":"session-1","accessToken":"%s","wallet":"%s"}`, testToken, wallet)
		case "/uuid":
			assert.JSONEq(t, `{"sessionId":"session-1","accessToken":"`+testToken+`"}`, string(body))
			fmt.Fprint(w, `{"uuid":"7b0f9a1e-1111-4222-8333-444455556666"}`)
		case "/api/assets":
			fmt.Fprint(w,
				`{"success":true,"errorCode":null,"data":{"v1":{"assets":[{"id":"gold","balance":"100000"}]}}}`)
		default:
			if key.Verify(body, r.Header.Get(ramp.HeaderHMAC)) == nil {
				seen = append(seen, string(body))
			}
			fmt.Fprint(w, `{"success":false,"errorCode":"NO","data":null}`)
		}
	}))
	defer server.Close()
	status, _ := checked(t, flags(server.URL, "-login", "/login", "-uuid", "/uuid")...)
	assert.Equal(t, 2, status)
	require.NotEmpty(t, seen)
	assert.Contains(t, seen[0], `"uuid":"7b0f9a1e-1111-4222-8333-444455556666"`)
	assert.Contains(t, seen[0], `"user_address":"`+wallet+`"`)
}

// A server whose pages have tokens of their own refuses that of the login.
func TestTheTokensOfPagesComeFromTheServer(t *testing.T) {
	t.Parallel()
	const login, catalog, page = "token-of-the-login", "token-of-the-catalog", "token-of-the-order"
	sent := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/login":
			fmt.Fprintf(w, `{"sessionId":"session-1","accessToken":"%s","pageToken":"%s"}`, login, catalog)
		case "/uuid":
			assert.JSONEq(t, `{"sessionId":"session-1","accessToken":"`+login+`"}`, string(body))
			fmt.Fprintf(w, `{"uuid":"7b0f9a1e-1111-4222-8333-444455556666","accessToken":"%s"}`, page)
		case "/api/assets":
			assert.Equal(t, "Bearer "+catalog, r.Header.Get(ramp.HeaderAuthorization))
			fmt.Fprint(w,
				`{"success":true,"errorCode":null,"data":{"v1":{"assets":[{"id":"gold","balance":"100000"}]}}}`)
		default:
			sent[r.URL.Path+" "+r.Header.Get(ramp.HeaderAuthorization)] = true
			fmt.Fprint(w, `{"success":false,"errorCode":"NO","data":null}`)
		}
	}))
	defer server.Close()
	status, out := checked(t, flags(server.URL, "-login", "/login", "-uuid", "/uuid")...)
	assert.Equal(t, 2, status)
	assert.Equal(t, map[string]bool{"/api/validate Bearer " + page: true}, sent)
	for _, token := range []string{login, catalog, page} {
		assert.NotContains(t, out, token)
	}
}

func TestWhatToFixFitsOnOneScreen(t *testing.T) {
	t.Parallel()
	var verdicts []judge.Verdict
	null := judge.InputVerdict{Input: judge.Input{Name: "null", Title: "that is null"}, Outcome: judge.Failed,
		Level: judge.Must, Saw: "this", Want: "that"}
	for i := range 40 {
		verdicts = append(verdicts, judge.Verdict{InputVerdict: null, Inputs: []judge.InputVerdict{null},
			Case: judge.Case{ID: fmt.Sprint("case-", i), Title: "A title.", Fix: fmt.Sprint("Fix ", i, "."),
				Section: "6"}})
	}
	var out strings.Builder
	require.NoError(t, newReport(paint(&out), "", nil, verdicts).writeText(&out, false))
	_, fixes, _ := strings.Cut(out.String(), "What to fix, in this order:\n")
	assert.Contains(t, fixes,
		"\n5. A title. (MUST, interface 6, case-4)\n   with: null (that is null)\n   saw:  this\n   want: that\n   "+
			"fix:  Fix 4.\n6. A title. (MUST, interface 6, case-5)\n7. ")
	assert.Contains(t, fixes,
		"\n12. A title. (MUST, interface 6, case-11)\n28 more are in the output of -json.\n\nfailed: 40 of 40 cases "+
			"failed, first case-0;")
	assert.LessOrEqual(t, strings.Count(fixes, "\n"), 40)
}

func TestCheckWritesJSON(t *testing.T) {
	t.Parallel()
	status, out := checked(t,
		flags(newServer(t), "-login", "/login", "-run", "^(assets|mint-succeeds|restart/mint-fails)$",
			"-json")...)
	assert.Equal(t, 1, status)
	var got struct {
		Target                         string
		Passed, Failed, Noted, Unasked int
		Cases                          []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.Equal(t, []int{1, 1, 0, 1}, []int{got.Passed, got.Failed, got.Noted, got.Unasked})
	require.Len(t, got.Cases, 3)
	delete(got.Cases[1], "milliseconds")
	calls, _ := got.Cases[1]["calls"].([]any)
	require.NotEmpty(t, calls)
	assert.Equal(t, calls[len(calls)-2], got.Cases[1]["call"], "after it, only the balances were asked")
	call := got.Cases[1]["call"].(map[string]any)
	assert.Equal(t, []any{"POST", "/api/result", 200.0, `{"success":true,"errorCode":null,"data":null}`},
		[]any{call["method"], call["path"], call["status"], call["answer"]})
	delete(got.Cases[1], "calls")
	delete(got.Cases[1], "call")
	assert.Equal(t, map[string]any{
		"id": "mint-succeeds", "subject": "orders", "title": "A mint that succeeds takes its assets.",
		"level": "MUST", "section": "1", "outcome": "failed",
		"saw": "a balance that moved by 0 (1000 before, 1000 after)", "want": "a balance that moved by -50",
		"fix": "Take intent.from of a mint, and keep it when the transaction succeeded.",
	}, got.Cases[1])
}

func TestCheckTakesTheKeyFromTheEnvironment(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", testKey)
	status, out := checked(t, "-url", newServer(t), "-key-encoding", "text", "-validator", testValidator, "-login",
		"/login", "-run", "^sign-v$", "-settle", "1ms")
	assert.Equal(t, 0, status, out)
}

// What a server says in its answers is not to be trusted with secrets.
func TestCheckNeverShowsAToken(t *testing.T) {
	t.Parallel()
	status, out := checked(t, flags(newServer(t), "-login", "/login", "-parallel", "16", "-v")...)
	assert.Equal(t, 1, status)
	assert.Contains(t, out, "failed mint-succeeds")
}

func TestCheckWithNothingToJudge(t *testing.T) {
	t.Parallel()
	url := newServer(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no flags":        {nil, "ramp check: -url (the base URL of your server), -key-file ("},
		"an unknown flag": {[]string{"-nonsense"}, "-nonsense"},
		"an argument":     {flags(url, "more"), "it takes flags only"},
		"no encoding": {[]string{"-url", url, "-key-file", testKeyFile},
			"ramp check: -key-encoding (text or base64url"},
		"a key of other form":  {flags(url, "-key-encoding", "base64url", "-login", "/login"), "HMAC key is unusable"},
		"no validator":         {flags(url, "-validator", ""), "-validator"},
		"no player":            {flags(url + "/base"), "no player is available: -login (POST " + url + "/base/login)"},
		"two sorts of players": {flags(url, "-login", "/login", "-session", "a=b"), "-login or from -session"},
		"half a session":       {flags(url, "-session", testToken), "ID=TOKEN"},
		"a remote server":      {flags("http://192.0.2.1", "-login", "http://127.0.0.1/login"), "AllowRemote"},
		"a remote login":       {flags(url, "-login", "http://192.0.2.1/login"), "-allow-remote"},
		"no scheme": {flags("127.0.0.1:8080", "-login", "/login"),
			"-url must be an http or https URL with its scheme"},
		"no scheme, a name": {flags("localhost:8080", "-login", "/login"),
			"-url must be an http or https URL with its scheme"},
		"no UUID there": {flags(url, "-login", "/login", "-uuid", "/nowhere"),
			"no UUID is available: -uuid (POST "},
		"no server": {flags("http://127.0.0.1:1", "-login", "/login"), "nothing to judge"},
		"no login there": {flags(url, "-login", "/nowhere"),
			"/nowhere) answered HTTP 404; want HTTP 200 with the body {\"sessionId\":"},
		"a login of no form": {flags(url, "-login", "login"), "a path that begins with /"},
		"a login elsewhere":  {flags(url+"/base", "-login", "/login"), "/base/login) answered HTTP 404"},
		"no rich player":     {flags(url, "-login", "/login", "-amount", "100"), "the player owns too little"},
		"another key": {flags(url, "-login", "/login", "-key-file", keyFile(t, "another")),
			"was not approved: HTTP 401"},
		"a key like our words": {flags(url, "-login", "/login", "-key-file", keyFile(t, "wrong")),
			"the HMAC key is wrong (-key-file), or the server"},
		"a bad expression": {flags(url, "-login", "/login", "-run", "("), "-run"},
		"no such case":     {flags(url, "-login", "/login", "-run", "^nothing$"), `-run matches no case: "^nothing$"`},
		"half a header":    {flags(url, "-login", "/login", "-header", testToken), "-header must be 'Name: value'"},
		"a header of ours": {flags(url, "-login", "/login", "-header", "x-dapp-sessionid: a"),
			"must not contain X-Dapp-Sessionid"},
		"sessions at once": {flags(url, "-session", "a=b", "-parallel", "2"), "-parallel must be 1 with -session"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out := checked(t, test.args...)
			assert.Equal(t, 2, status)
			assert.Contains(t, out, test.want)
		})
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, 2, stdio{nil, io.Discard, io.Discard}.run(ctx, "check", flags(url, "-login", "/login")))
}

// What a login or a restart says may hold a secret.
func TestCheckRedactsWhatOthersSay(t *testing.T) {
	url := newServer(t)
	_, out := checked(t, "-url", url, "-key-encoding", "text", "-validator", testValidator, "-login", "/login",
		"-header", "X-Gateway: password",
		"-key-file", testKeyFile, "-settle", "1ms", "-run", "^restart/mint-fails$",
		"-restart", "echo the password >&2; exit 3")
	assert.Contains(t, out, "untried restart: the server could not be restarted: exit status 3: the [redacted]\n")
	_, out = checked(t, flags(url, "-login", "/nowhere")...)
	assert.Contains(t, out, "no player is available: -login (POST "+url+"/nowhere) answered HTTP 404; "+
		`want HTTP 200 with the body {"sessionId":"…","accessToken":"…"}, both strings`)
	_, out = checked(t, flags(url, "-login", "/nowhere/"+strings.ReplaceAll(testKey, " ", "%20"))...)
	assert.Contains(t, out, "-login (POST "+url+"/nowhere/[redacted]) answered HTTP 404")
	_, out = checked(t, flags(url, "-login", "http://127.0.0.1:1/"+strings.ReplaceAll(testKey, " ", "%20"))...)
	assert.Contains(t, out,
		"-login (POST http://127.0.0.1:1/[redacted]): dial tcp 127.0.0.1:1: connect: connection refused\n")
}

// What was found until then is not lost.
func TestAnInterruptedCheckShowsWhatItTried(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupting := behind(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.RawQuery != "" { // only one case sends a query
			cancel()
		}
		return false
	})
	var out, errs bytes.Buffer
	status := stdio{nil, &out, &errs}.run(ctx, "check",
		flags(interrupting.URL, "-login", "/login", "-parallel", "1", "-run", "^assets(-older-callers)?$"))
	assert.Equal(t, 2, status)
	assert.Equal(t,
		"interrupted: none of 1 cases failed; 0 noted, 0 unproven, 0 unasked, 0 waived, 0 skipped, 0 untried\n",
		out.String())
	assert.Equal(t, "ramp check: interrupted after 1 of 2 cases\n", errs.String())
}

// Without a verdict, none is written.
func TestACheckThatIsInterruptedAtItsBeginningHasNoVerdict(t *testing.T) {
	t.Parallel()
	for at, first := range map[string]string{"the opening": "/api/validate", "the login": "/login"} {
		ctx, cancel := context.WithCancel(t.Context())
		hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == first {
				cancel()
				return
			}
			switch r.URL.Path {
			case "/login":
				_, _ = io.WriteString(w, `{"sessionId":"session-1","accessToken":"token-1"}`)
			default:
				_, _ = io.WriteString(w,
					`{"success":true,"errorCode":null,"data":{"v1":{"assets":[{"id":"item_gold","balance":"9000"}]}}}`)
			}
		}))
		var out, errs bytes.Buffer
		assert.Equal(t, statusUnknown,
			stdio{nil, &out, &errs}.run(ctx, "check", flags(hangs.URL, "-login", "/login", "-json")), at)
		assert.Empty(t, out.String(), at)
		assert.Equal(t, "ramp check: interrupted before the first verdict\n", errs.String(), at)
		hangs.Close()
		cancel()
	}
}

// A server that is gone gets no verdicts.
func TestCheckStopsWhenTheServerIsGone(t *testing.T) {
	t.Parallel()
	var server *httptest.Server
	server = behind(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.RawQuery == "" {
			return false
		}
		server.Listener.Close()
		server.CloseClientConnections()
		return true
	})
	var out, errs bytes.Buffer
	status := stdio{nil, &out, &errs}.run(t.Context(), "check",
		flags(server.URL, "-login", "/login", "-parallel", "1", "-timeout", "2s", "-run", "^(assets-|sign-)"))
	assert.Equal(t, 2, status)
	assert.Contains(t, out.String(), "failed assets-older-callers: ")
	assert.NotContains(t, out.String(), "failed sign-")
	assert.Contains(t, out.String(), " more: the server stopped answering before this was tried\n")
	assert.Equal(t,
		"ramp check: the server stopped answering during assets-older-callers; the remaining cases were not tried\n",
		errs.String())
}

// A gateway in front of the server may want a header of its own.
func TestCheckSendsTheHeadersThatItIsGiven(t *testing.T) {
	t.Parallel()
	gateway := behind(t, func(w http.ResponseWriter, r *http.Request) bool {
		closed := r.Header.Get("X-Gateway") != "open sesame"
		if closed {
			http.Error(w, "closed", http.StatusForbidden)
		}
		return closed
	})
	status, out := checked(t,
		flags(gateway.URL, "-login", "/login", "-run", "^sign-v$", "-header", "X-Gateway: open sesame")...)
	assert.Equal(t, 0, status, out)
	status, out = checked(t, flags(gateway.URL, "-login", "/login", "-run", "^sign-v$")...)
	assert.Equal(t, 2, status, out)
}

func TestCheckWritesJUnit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "junit.xml")
	status, _ := checked(t,
		flags(newServer(t), "-login", "/login", "-run", "^(mint-succeeds|validate-at-once|assets|restart/mint-fails)$",
			"-junit", file)...)
	assert.Equal(t, 1, status)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var suite junitSuite
	require.NoError(t, xml.Unmarshal(b, &suite))
	assert.Equal(t, []int{4, 1, 1, 1}, []int{suite.Tests, suite.Failures, suite.Errors, suite.Skipped})
	require.Len(t, suite.Cases, 4)
	assert.Equal(t, []string{"assets", "assets"}, []string{suite.Cases[0].Class, suite.Cases[0].Name})
	assert.Equal(t, "a balance that moved by 0 (1000 before, 1000 after)", suite.Cases[1].Failure.Message)
	assert.Contains(t, suite.Cases[2].Skipped.Message, "not provable until mint-succeeds passes")
}

// The verdicts of cases that are tried at the same time keep the order of the
// cases.
func TestCheckKeepsTheOrderOfCases(t *testing.T) {
	t.Parallel()
	game := newServer(t)
	var got [2]string
	for i, parallel := range []string{"1", "8"} {
		_, out := checked(t, flags(game, "-login", "/login", "-parallel", parallel, "-v", "-run", "^(sign|assets)-")...)
		got[i] = strings.Join(regexp.MustCompile(
			`(?m)^(passed|failed|noted|unproven|skipped) +(MUST|SHOULD).*$`).FindAllString(out, -1), "\n")
	}
	assert.NotEmpty(t, got[0])
	assert.Equal(t, got[0], got[1])
}

// Where the judge's own side fails, nothing is said of the server.
func TestWhatCheckCouldNotTryIsNotPassed(t *testing.T) {
	t.Parallel()
	args := flags(newServer(t), "-login", "/login", "-restart", "echo no such service >&2; exit 3")
	status, out := checked(t, append(args, "-run", "^(assets|restart/mint-fails)$")...)
	assert.Equal(t, 2, status)
	assert.Contains(t, out, "untried restart: the server could not be restarted: exit status 3: no such service\n")
	assert.Contains(t, out,
		"untried: none of 2 cases failed; 0 noted, 0 unproven, 0 unasked, 0 waived, 0 skipped, 1 untried\n")

	status, _ = checked(t, append(args, "-run", "^(mint-succeeds|restart/mint-fails)$")...)
	assert.Equal(t, 1, status, "what failed counts more")
}

// A login that is rate-limited is repeated, as calls are.
func TestCheckWaitsForALimitedLogin(t *testing.T) {
	t.Parallel()
	var logins atomic.Int64
	limited := behind(t, func(w http.ResponseWriter, r *http.Request) bool {
		now := r.URL.Path == "/login" && logins.Add(1)%2 == 1
		if now {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return now
	})
	status, out := checked(t, flags(limited.URL, "-login", "/login", "-run", "^sign-v$")...)
	assert.Equal(t, 0, status, out)
}

// If all repeated their login at once, one of them could lose every time.
func TestALimitedLoginIsRepeatedOneAtATime(t *testing.T) {
	t.Parallel()
	const players = 8
	var requests, inFlight, most atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := inFlight.Add(1)
		defer inFlight.Add(-1)
		if requests.Add(1)%2 == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		most.Store(max(most.Load(), n))
		time.Sleep(5 * time.Millisecond) // long enough for another one to come
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	f := &checkFlags{Config: judge.Config{Timeout: time.Minute}}
	at := must.Get(f.endpoint("-login", server.URL))(t)
	login := func() {
		assert.NoError(t, at.ask(t.Context(), nil, new(struct{}), func() bool { return true }, "an object"))
	}
	login() // meets the limit
	var all sync.WaitGroup
	for range players {
		all.Go(login)
	}
	all.Wait()
	assert.EqualValues(t, 1, most.Load(), "logins at the same time")
}

// A login that leads elsewhere would be told who plays there.
func TestCheckGoesNowhereElse(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("was called")
	}))
	defer elsewhere.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()

	status, out := checked(t, flags(newServer(t), "-login", redirecting.URL+"/login")...)
	assert.Equal(t, 2, status)
	assert.Contains(t, out, "HTTP 307")

	status, out = checked(t, flags(newServer(t), "-login", "/login", "-result", elsewhere.URL+"/result")...)
	assert.Equal(t, 2, status)
	assert.Contains(t, out, "begins with /")
}

func TestRunNamesItsCommands(t *testing.T) {
	var out strings.Builder
	assert.Equal(t, 2, run(t.Context(), nil, io.Discard, &out))
	assert.Contains(t, out.String(), "ramp check")
	assert.Equal(t, 0, run(t.Context(), []string{"check", "-list"}, &out, io.Discard))
}

// What is noted comes in the order of its causes, as what failed does.
func TestNotedCasesAreInTheOrderOfTheirCauses(t *testing.T) {
	var verdicts []judge.Verdict
	for _, c := range judge.Cases() {
		if c.ID == "result-hmac-raw" || c.ID == "unknown-fields" {
			noted := judge.InputVerdict{Input: c.Inputs[0], Level: judge.Should, Outcome: judge.Noted}
			verdicts = append(verdicts,
				judge.Verdict{Case: c, InputVerdict: noted, Inputs: []judge.InputVerdict{noted}})
		}
	}
	var out strings.Builder
	require.NoError(t, newReport(paint(&out), "", nil, verdicts).writeText(&out, false))
	assert.Regexp(t, `(?s)^noted unknown-fields/validate: .*\nnoted result-hmac-raw/indented: `, out.String())
}

// Package flag knows which flags have a value, also one that begins like a flag.
func TestTheCommandOfARunIsRepeated(t *testing.T) {
	c := newCall(stdio{}, "check", "",
		[]string{"-unique", "-url", "http://127.0.0.1", "--parallel=2", "-q", "-skip", "-x", "-header=A: b",
			"-strict=false", "--"})
	_, err := parseCheck(c)
	require.NoError(t, err)
	assert.Equal(t,
		"ramp check -unique -url 'http://127.0.0.1' -skip '-x' -header 'A: VALUE' -strict='false'", c.again())
}
