package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

const (
	consoleKey   = "c2VjcmV0LWtleS1vZi10aGUtY29uc29sZQ" // with two readings
	validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
)

// contacted runs connect with an answer to its question. Its output must hold no secret.
func contacted(t *testing.T, answer string, args ...string) (int, string) {
	t.Helper()
	return contactedWith(t, consoleKey, answer, args...)
}

func contactedWith(t *testing.T, key, answer string, args ...string) (int, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	t.Setenv("RAMP_VALIDATOR_KEY", validatorKey)
	t.Setenv("RAMP_ACCESS_TOKEN", testToken)
	var out, errs bytes.Buffer
	status := stdio{strings.NewReader(answer), &out, &errs}.run(t.Context(), "connect",
		append([]string{"-key-file", file, "-project", "project-1",
			"-token", "0x00000000000000000000000000000000000070c3"}, args...))
	for _, secret := range []string{consoleKey, key, "secret-key-of-the-console", validatorKey, testToken} {
		assert.NotContains(t, out.String()+errs.String(), secret)
	}
	return status, out.String() + errs.String()
}

func TestConnectSaysWhichReadingOfTheKeyTheServiceAccepts(t *testing.T) {
	text := must.Get(ramp.TextKey(consoleKey))(t)
	decoded := must.Get(ramp.Base64URLKey(consoleKey))(t)
	for _, test := range []struct {
		key                ramp.HMACKey
		accepted, rejected string
	}{{text, "ramp.TextKey", "ramp.Base64URLKey"}, {decoded, "ramp.Base64URLKey", "ramp.TextKey"}} {
		game := &counting{}
		signer := must.Get(ramp.NewKeySigner(validatorKey))(t)
		server := serve(t, ramp.HandlerConfig{Players: game, Store: game, Terms: anyTerms, Key: test.key})
		service := ramptest.Start(t,
			ramptest.Config{Key: test.key, Validator: signer.Address(), Game: server, ProjectID: "project-1"})

		status, out := contacted(t, "", "-url", service.URL(), "-page", service.URL(), "-rpc",
			service.RPCURL(ramp.Testnet),
			"-game", server, "-session", "session-1")
		assert.Equal(t, 0, status, out)
		assert.Contains(t, out, fmt.Sprintf("ok     %-17s  the service accepts it\n", test.accepted))
		assert.Contains(t, out,
			fmt.Sprintf("-      %-17s  ", test.rejected)+
				"initialize: the service answered HTTP 500, code 500: Internal Server Error: invalid mac")
		assert.Contains(t, out, "ok     page               "+service.URL()+"/exchange?uuid=")
		assert.Contains(t, out, "&accessToken=ACCESS_TOKEN&sessionId=session-1&network=testnet\n")
		assert.Contains(t, out, "ok     node               its chain ID is 7002\n")
		assert.Contains(t, out, "ok     game               GET /api/assets: HTTP 200 \n"+
			"ok     game               POST /api/validate: HTTP 400 INVALID_USER_SIG\n"+
			"ok     game               POST /api/result: HTTP 500 INVALID_RECEIPT_STATUS\n")
		_, next, _ := strings.Cut(out, "\nNext:\n")
		assert.Equal(t, "- Read the HMAC key with "+test.accepted+`.
- Open the page within 5 minutes, with the player's token instead of ACCESS_TOKEN.
- Register the validator's address in the console.
- Set RPCConfig.ChainID to the chain ID of the testnet.
- Judge a test server: ramp check. Then mint the smallest amount on the testnet.
`, next)
		assert.Contains(t, out, "ok     validator          "+testValidator+"\n")
		assert.Zero(t, game.calls.Load(), "nothing reached the game's orders")

		another := must.Get(ramp.TextKey("another key"))(t)
		other := serve(t, ramp.HandlerConfig{Players: game, Store: game, Terms: anyTerms, Key: another})
		status, out = contacted(t, "", "-url", service.URL(), "-game", other, "-session", "session-2")
		assert.Equal(t, 1, status)
		assert.Contains(t, out,
			"WRONG  game               GET /api/assets: HTTP 401 no: [redacted]: is -session the session of "+
				"$RAMP_ACCESS_TOKEN?\n"+
				"WRONG  game               POST /api/validate: HTTP 401 HMAC_INVALID: does the server read the HMAC "+
				"key as the service does?\n"+
				"WRONG  game               POST /api/result: HTTP 500 HMAC_INVALID: does the server read the HMAC "+
				"key as the service does?\n")
		status, out = contacted(t, "", "-url", service.URL(), "-game", other, "-validate", "/nowhere")
		assert.Equal(t, 1, status)
		assert.Contains(t, out,
			"WRONG  game               POST /nowhere: HTTP 404 : is this the path? It must answer with the envelope\n")
	}
}

// counting counts the orders that reach a game.
type counting struct {
	game
	calls atomic.Int64
}

func (g *counting) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	g.calls.Add(1)
	return g.game.Update(ctx, id, next)
}

// The failures of section 7.1, byte for byte.
func TestConnectUnderstandsTheFailuresOfTheService(t *testing.T) {
	text := must.Get(ramp.TextKey(consoleKey))(t)
	for _, test := range []struct {
		right, wrong string // the answers to the text of the key, and to its other reading
		want         []string
	}{
		{"7.1-hmac-invalid", "7.1-hmac-invalid",
			[]string{
				"WRONG  key                the service accepts no reading of it: compare -key-file and -url with " +
					"the console\n"}},
		{"7.1-hmac-missing", "7.1-hmac-missing",
			[]string{"(a proxy may have removed the header)\n",
				"WRONG  key                the service accepts no reading of it: compare"}},
		{"7.1-project-missing", "7.1-hmac-invalid",
			[]string{
				"WRONG  ramp.TextKey       initialize: the service answered HTTP 500, code 500: Internal Server " +
					"Error: ramp not found (check intent.project_id)\n",
				"- Read the HMAC key with ramp.TextKey.\n"}},
		{"7.1-network-invalid", "7.1-network-invalid",
			[]string{"ramp not exists",
				"WRONG  key                the service answers both readings alike, so it did not verify the HMAC\n"}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			name := test.wrong
			if text.Verify(body, r.Header.Get(ramp.HeaderHMAC)) == nil {
				name = test.right
			}
			answer, err := os.ReadFile("../../testdata/" + name + ".json")
			assert.NoError(t, err)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(answer)
		}))
		status, out := contacted(t, "", "-url", server.URL)
		server.Close()
		assert.Equal(t, 1, status)
		for _, want := range test.want {
			assert.Contains(t, out, want)
		}
	}
}

func TestConnectAsksBeforeItCallsAMainnet(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = io.WriteString(w, `{"code":200,"message":"OK","data":{"uuid":"7b0f9a1e-3c44-4b8e-9c1d-2f6a5e8d7c90"}}`)
	}))
	defer server.Close()
	for _, answer := range []string{"", "\n", "no\n", "y"} {
		status, out := contacted(t, answer, "-url", server.URL, "-network", "mainnet")
		assert.Equal(t, 2, status)
		assert.Equal(t,
			"This calls a mainnet, and moves nothing. Type yes to go on: ramp connect: nothing was called (see: "+
				"ramp help connect)\n", out)
		assert.Zero(t, calls.Load())
	}
	status, out := contacted(t, "yes\n", "-url", server.URL, "-network", "mainnet")
	assert.Equal(t, 1, status)
	assert.Contains(t, out, "the service answers both readings alike, so it did not verify the HMAC\n")
	assert.EqualValues(t, 2, calls.Load())

	for name, args := range map[string][]string{
		"-url":      nil,
		"-network":  {"-url", server.URL, "-network", "othernet"},
		"-project":  {"-url", server.URL, "-project", ""},
		"-token":    {"-url", server.URL, "-token", "gold"},
		"-key-file": {"-url", server.URL, "-key-file", ""},
	} {
		status, out := contacted(t, "", args...)
		assert.Equal(t, 2, status)
		assert.Contains(t, out, "ramp connect: "+name)
	}
	assert.EqualValues(t, 2, calls.Load())
}

// A key is copied by people. What counts in it, and is often not meant, is said.
func TestConnectWarnsOfWhatIsOftenNotPartOfAKey(t *testing.T) {
	service := ramptest.Start(t, ramptest.Config{Key: must.Get(ramp.TextKey(consoleKey))(t), ProjectID: "project-1",
		Game: "http://127.0.0.1:1", Audit: ramptest.AuditOff, // so that it can be reached
		Validator: must.Get(ramp.NewKeySigner(validatorKey))(t).Address()})
	const (
		quotes   = "check  key                it has quotes around it, which count: does the console show them?\n"
		variable = "check  key                it looks like the name of a variable, $NAME or ${NAME}, which nothing " +
			"replaces here\n"
		none = "WRONG  key                the service accepts no reading of it"
	)
	for _, test := range []struct{ key, want string }{
		{`"` + consoleKey + `"`, quotes},
		{"'" + consoleKey + "'", quotes},
		{"\u201c" + consoleKey + "\u201d", quotes},
		{"${RAMP_HMAC_KEY}", variable},
		{"$RAMP_HMAC_KEY", variable},
		{"\ufeff" + consoleKey, "-      ramp.TextKey       HMAC key is unusable: it has a byte order mark (U+FEFF)\n"},
	} {
		status, out := contactedWith(t, test.key, "", "-url", service.URL())
		assert.Equal(t, 1, status, out)
		assert.Contains(t, out, test.want)
		assert.Contains(t, out, none)
	}
	_, out := contacted(t, "", "-url", service.URL())
	assert.NotContains(t, out, "check  ")
}

// What did not come from the service says nothing about the key.
func TestConnectBlamesNoKeyForAnAddress(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title>")
	}))
	defer page.Close()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer gateway.Close()
	for _, address := range []string{closed.URL, page.URL, gateway.URL} {
		status, out := contacted(t, "", "-url", address)
		assert.Equal(t, 1, status)
		assert.Contains(t, out,
			"WRONG  service            nothing at -url answered as the service does, so nothing is known of the key\n")
		assert.NotContains(t, out, "WRONG  key", out)
	}
}
