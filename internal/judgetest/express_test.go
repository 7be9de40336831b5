package judgetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// express starts the server of docs/other-languages.md in a schema of its own, and returns
// its URL.
func express(t *testing.T, key string, env ...string) string {
	t.Helper()
	database := os.Getenv("RAMP_TEST_POSTGRESQL")
	if database == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set: run internal/dbtest/databases go test ***")
	}
	folder := filepath.Join("..", "..", "examples", "express")
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		t.Skip("*** NOT TESTED: run npm install --prefix examples/express ***")
	}
	schema := "express_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	at := ramp.Must(url.Parse(database))
	query := at.Query()
	query.Set("options", "-c search_path="+schema)
	at.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	sql := func(statement string) {
		out, err := exec.Command("psql", database, "-qc", statement).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	sql("CREATE SCHEMA " + schema)
	t.Cleanup(func() { sql("DROP SCHEMA " + schema + " CASCADE") })
	serving := exec.Command("node", "server.js")
	serving.Dir = folder
	serving.Env = append(append(os.Environ(), "DATABASE_URL="+at.String(), "RAMP_HMAC_KEY="+key, "RAMP_VALIDATOR_KEY="+validatorKey,
		"TEST_LOGIN=1", "PORT=0"), env...)
	out := ramp.Must(serving.StdoutPipe())
	var says bytes.Buffer
	serving.Stderr = &says
	require.NoError(t, serving.Start())
	t.Cleanup(func() {
		_ = serving.Process.Kill()
		_ = serving.Wait()
		if t.Failed() {
			t.Log(says.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the server did not start: %s", &says)
	return strings.TrimSpace(line)
}

// The commands of docs/other-languages.md end with a verdict that is green.
func TestTheServerOfTheDocumentIsGreen(t *testing.T) {
	text := ramp.Must(os.ReadFile("../../docs/other-languages.md"))
	assert.NotRegexp(t, `\bGo\b|golang`, string(text), "the reader has none")
	documented := regexp.MustCompile(`(?ms)^RAMP_HMAC_KEY=(\S+) ramp (check .*?)\n` + "```").FindStringSubmatch(string(text))
	require.NotNil(t, documented)
	require.Contains(t, string(text), "RAMP_VALIDATOR_KEY="+validatorKey+" node examples/express/server.js")
	address := express(t, documented[1])
	judge := exec.CommandContext(t.Context(), "sh", "-c", command+" "+strings.ReplaceAll(documented[2], "http://127.0.0.1:8080", address))
	judge.Env = append(os.Environ(), "RAMP_HMAC_KEY="+documented[1])
	out, err := judge.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(t, `(?m)^passed: 0 of [0-9]+ cases failed; 0 noted, 0 unproven`, string(out))
}

// The server starts orders of its own, and trades through the service.
func TestAPlayerTradesThroughTheServerOfTheDocument(t *testing.T) {
	key := ramp.Must(ramp.TextKey(consoleKey))
	signer := ramp.Must(ramp.NewKeySigner(validatorKey))
	var game *url.URL // it needs the service's address, and the service needs one before that
	forward := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(game) }})
	t.Cleanup(forward.Close)
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Game: forward.URL})
	game = ramp.Must(url.Parse(express(t, consoleKey, "RAMP_API_URL="+service.URL(), "RAMP_FRONTEND_URL="+service.URL())))
	post := func(path, session, token string, into any) {
		request := ramp.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, game.String()+path, nil))
		request.Header.Set(ramp.HeaderSession, session)
		request.Header.Set(ramp.HeaderAuthorization, "Bearer "+token)
		answer := ramp.Must(http.DefaultClient.Do(request))
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.NoError(t, json.NewDecoder(answer.Body).Decode(into))
	}
	var player struct{ SessionID, AccessToken string }
	post("/login", "", "", &player)
	for _, fault := range []ramptest.Fault{ramptest.ResultTwice(), ramptest.TransactionFails()} {
		var page struct{ Data string }
		post("/exchange", player.SessionID, player.AccessToken, &page)
		at := ramp.Must(url.Parse(page.Data))
		id := ramp.Must(uuid.Parse(at.Query().Get("uuid")))
		ramp.Must(service.Mint(t.Context(), id, ramp.Session{ID: at.Query().Get("sessionId"), Token: ramp.NewAccessToken(at.Query().Get("accessToken"))},
			ramp.NewAmount(2), fault, ramptest.ValidateTwice(), ramptest.LostAnswer(ramptest.OnResult)))
		service.Advance(time.Hour)
	}
}
