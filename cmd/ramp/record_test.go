package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The command between a game and an emulated service, with a call in each direction.
func TestRecordStandsBetweenAGameAndTheService(t *testing.T) {
	const key = "a+key/of+the/console0A=="
	folder, keyFile := filepath.Join(t.TempDir(), "recorded"), filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(keyFile, []byte(key+"\n"), 0o600))
	text := must.Get(ramp.TextKey(key))(t)
	server := serve(t, ramp.HandlerConfig{Players: game{}, Store: game{}, Terms: anyTerms, Key: text})
	service := ramptest.Start(t, ramptest.Config{Key: text,
		Validator: must.Get(ramp.NewKeySigner(validatorKey))(t).Address(),
		Game:      server, Audit: ramptest.AuditOff})

	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"record", "-game", server, "-service", service.URL(), "-listen", "127.0.0.1:0",
			"-service-listen", "127.0.0.1:0", "-key-file", keyFile, "-folder", folder}, write, write)
		write.Close()
	}()
	lines := bufio.NewScanner(read)
	next := func(pattern string) []string {
		t.Helper()
		require.True(t, lines.Scan())
		found := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text())
		require.NotNil(t, found, "%q", lines.Text())
		return found
	}
	next(`^Writes into ` + regexp.QuoteMeta(folder) + ` \(Ctrl\+C stops\)$`)
	front := next(`^For the service console, behind your own HTTPS: (http://127\.0\.0\.1:\d+) instead of ` + server +
		`$`)[1]
	next(`^For the game's environment:$`)
	api := next(`^export RAMP_API_URL=(http://127\.0\.0\.1:\d+)$`)[1]
	next(`^$`)

	require.NoError(t, initialize(t, api, text)())
	next(`^0001  initialize  HTTP 200  \d`)
	body := `{"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","receipt":{"status":"0x1"}}`
	q := must.Get(http.NewRequest(http.MethodPost, front+ramp.PathResult, strings.NewReader(body)))(t)
	q.Header = http.Header{"Content-Type": {"application/json"}, ramp.HeaderSession: {"session-1"},
		ramp.HeaderAuthorization: {"Bearer " + testToken}, ramp.HeaderHMAC: {text.Sign([]byte(body))}}
	answer := must.Get(http.DefaultClient.Do(q))(t)
	require.NoError(t, answer.Body.Close())
	next(`^0002  result      HTTP \d+  \d`)
	next(`^      result: .* is missing$`)

	cancel()
	rest := string(must.Get(io.ReadAll(read))(t))
	assert.Equal(t, 0, <-ended)
	assert.Contains(t, rest,
		"| how the HMAC key becomes bytes | the HMAC is made with ramp.TextKey (once) | read the key with "+
			"ramp.TextKey |")
	for _, entry := range must.Get(os.ReadDir(folder))(t) {
		text := string(must.Get(os.ReadFile(filepath.Join(folder, entry.Name())))(t))
		assert.NotContains(t, text, key)
		assert.NotContains(t, text, testToken)
	}
	assert.Contains(t, rest, string(must.Get(os.ReadFile(filepath.Join(folder, "report.md")))(t))[:100])
}

// Each form in which a console may show a key, by the function that reads it.
func TestRecordTriesEachReadingOfAKey(t *testing.T) {
	for text, want := range map[string]string{
		"plain text!":  "ramp.TextKey",
		"c2VjcmV0":     "ramp.Base64URLKey",
		"00ff10":       "ramp.BytesKey of its hex",
		"c2VjcmV0IQ==": "ramp.BytesKey of its base64.StdEncoding",
		"/+8":          "ramp.BytesKey of its base64.RawStdEncoding",
		"_-8=":         "ramp.BytesKey of its base64.URLEncoding",
	} {
		var names []string
		for _, r := range readings(text) {
			names = append(names, r.Name)
		}
		assert.Equal(t, "ramp.TextKey", names[0], "every text is one")
		assert.Contains(t, names, want, text)
	}
}

func TestRecordRejects(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "ramp record: -game (the base URL of your server) is required"},
		{[]string{"-game", "127.0.0.1"}, "ramp record: the game's address must be an absolute URL"},
		{[]string{"-game", "http://user:pass@127.0.0.1"}, "ramp record: the game's address must have no credentials"},
		{[]string{"-game", "http://127.0.0.1", "-key-file", "nowhere"}, "ramp record: -key-file: open nowhere"},
		{[]string{"-game", "http://127.0.0.1", "-listen", "127.0.0.1:x"}, "ramp record: -listen: "},
	} {
		var out, errs strings.Builder
		args := append([]string{"record", "-listen", "127.0.0.1:0", "-folder", filepath.Join(t.TempDir(), "f")},
			test.args...)
		assert.Equal(t, 2, run(t.Context(), args, &out, &errs))
		assert.Contains(t, errs.String(), test.want)
		assert.NotContains(t, errs.String(), "pass@")
		assert.Empty(t, out.String())
	}
}
