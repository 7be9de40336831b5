package judgetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// express starts the server of docs/other-languages.md in a schema of its own, and returns
// its URL.
func express(t *testing.T, key string, env ...string) string {
	t.Helper()
	database := os.Getenv("RAMP_TEST_POSTGRESQL")
	if database == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set: run internal/test/databases go test ***")
	}
	folder := filepath.Join("..", "..", "..", "..", "examples", "express")
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		t.Skip("*** NOT TESTED: run npm install --prefix examples/express ***")
	}
	schema := "express_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	at := must.Get(url.Parse(database))(t)
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
	serving.Env = append(append(os.Environ(), "DATABASE_URL="+at.String(), "RAMP_HMAC_KEY="+key,
		"RAMP_VALIDATOR_KEY="+validatorKey,
		"TEST_LOGIN=1", "PORT=0"), env...)
	out := must.Get(serving.StdoutPipe())(t)
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
	text := must.Get(os.ReadFile("../../../../docs/other-languages.md"))(t)
	assert.NotRegexp(t, `\bGo\b|golang`, string(text), "the reader has none")
	documented := regexp.MustCompile(`(?ms)^RAMP_HMAC_KEY=(\S+) ramp (check .*?)\n` +
		"```").FindStringSubmatch(string(text))
	require.NotNil(t, documented)
	require.Contains(t, string(text), "RAMP_VALIDATOR_KEY="+validatorKey+" node examples/express/server.js")
	address := express(t, documented[1])
	judge := exec.CommandContext(t.Context(), "sh", "-c",
		command+" "+strings.ReplaceAll(documented[2], "http://127.0.0.1:8080", address))
	judge.Env = append(os.Environ(), "RAMP_HMAC_KEY="+documented[1])
	out, err := judge.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(t, `(?m)^passed: none of [0-9]+ cases failed; 0 noted, 0 unproven`, string(out))
}

// The server starts orders of its own, and trades through the service.
func TestAPlayerTradesThroughTheServerOfTheDocument(t *testing.T) {
	key := must.Get(ramp.TextKey(consoleKey))(t)
	signer := must.Get(ramp.NewKeySigner(validatorKey))(t)
	var game *url.URL // it needs the service's address, and the service needs one before that
	forward := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(game) }})
	t.Cleanup(forward.Close)
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Game: forward.URL})
	game = must.Get(url.Parse(express(t, consoleKey, "RAMP_API_URL="+service.URL(),
		"RAMP_FRONTEND_URL="+service.URL())))(t)
	post := func(path, session, token string, into any) {
		request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, game.String()+path, nil))(t)
		request.Header.Set(ramp.HeaderSession, session)
		request.Header.Set(ramp.HeaderAuthorization, "Bearer "+token)
		answer := must.Get(http.DefaultClient.Do(request))(t)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.NoError(t, json.NewDecoder(answer.Body).Decode(into))
	}
	var player struct{ SessionID, AccessToken string }
	post("/login", "", "", &player)
	for _, fault := range []ramptest.Fault{ramptest.ResultTwice(), ramptest.TransactionFails()} {
		var page struct{ Data struct{ URL string } }
		post("/exchange", player.SessionID, player.AccessToken, &page)
		at := must.Get(url.Parse(page.Data.URL))(t)
		id := must.Get(uuid.Parse(at.Query().Get("uuid")))(t)
		must.Get(service.Mint(t.Context(), id,
			ramp.Session{ID: at.Query().Get("sessionId"), Token: ramp.NewAccessToken(at.Query().Get("accessToken"))},
			ramp.NewAmount(2), fault, ramptest.ValidateTwice(), ramptest.LostAnswer(ramptest.OnResult)))(t)
		service.Advance(time.Hour)
	}
}

// shown is the server of the document, with one player, who has 1,000 gold.
type shown struct {
	t              *testing.T
	url            string
	session, login string
	token          string // of the newest page
}

func newShown(t *testing.T) *shown {
	t.Helper()
	s := &shown{t: t, url: express(t, consoleKey)}
	answer := must.Get(http.Post(s.url+"/login", "", nil))(t)
	defer answer.Body.Close()
	var player struct{ SessionID, AccessToken, PageToken string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&player))
	s.session, s.login, s.token = player.SessionID, player.AccessToken, player.PageToken
	return s
}

// open opens the page of an order.
func (s *shown) open() uuid.UUID {
	s.t.Helper()
	body := must.Get(json.Marshal(map[string]string{"sessionId": s.session, "accessToken": s.login}))(s.t)
	answer := must.Get(http.Post(s.url+"/page", "application/json", bytes.NewReader(body)))(s.t)
	defer answer.Body.Close()
	var page struct {
		UUID        uuid.UUID
		AccessToken string
	}
	require.Equal(s.t, http.StatusOK, answer.StatusCode)
	require.NoError(s.t, json.NewDecoder(answer.Body).Decode(&page))
	s.token = page.AccessToken
	return page.UUID
}

// call sends a call. Those with a body are signed.
func (s *shown) call(method, path, body string) (status int, answer string) {
	s.t.Helper()
	request := must.Get(http.NewRequestWithContext(s.t.Context(), method, s.url, strings.NewReader(body)))(s.t)
	if at, err := url.Parse(s.url + path); err == nil {
		request.URL = at
	} else {
		request.URL.Opaque = path // which no client of Go would send
	}
	request.Header.Set(ramp.HeaderSession, s.session)
	request.Header.Set(ramp.HeaderAuthorization, "Bearer "+s.token)
	if body != "" {
		request.Header.Set(ramp.HeaderHMAC, must.Get(ramp.TextKey(consoleKey))(s.t).Sign([]byte(body)))
	}
	response := must.Get(http.DefaultTransport.RoundTrip(request))(s.t)
	defer response.Body.Close()
	return response.StatusCode, string(must.Get(io.ReadAll(response.Body))(s.t))
}

func (s *shown) gold() string {
	s.t.Helper()
	_, answer := s.call(http.MethodGet, "/api/assets", "")
	found := regexp.MustCompile(`"balance":"([^"]*)"`).FindStringSubmatch(answer)
	require.NotNil(s.t, found, answer)
	return found[1]
}

// order returns a validate call of a mint with a new UUID.
func order(id uuid.UUID, gold, tokens string) string {
	return `{"user_sig":"0xaa","user_address":"0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb","project_id":"project-1",` +
		`"digest":"0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85","uuid":"` + id.String() + `",` +
		`"intent":{"method":"mint","type":"assemble","from":[{"type":"asset","id":"item_gold",` + gold + `}],` +
		`"to":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3",` + tokens + `}]}}`
}

// What is written into a signed order is what is judged, however it is written.
func TestNoSpellingOfAnAmountGetsPastTheServerOfTheDocument(t *testing.T) {
	s := newShown(t)
	for name, c := range map[string]struct{ gold, tokens string }{
		"a negative amount":                    {`"amount":-1000000`, `"amount":-100000`},
		"a negative amount under an escape":    {`"amo\u0075nt":-1000000`, `"amo\u0075nt":-100000`},
		"one that is rounded, under an escape": {`"amo\u0075nt":10.0000000000000000001`, `"amount":1`},
		"one that is rounded":                  {`"amount":10.0000000000000000001`, `"amount":1`},
		"one behind a string that looks alike": {`"x":"\\\"amount\":10","amount":1e1`, `"amount":1`},
		"text":                                 {`"amount":"10"`, `"amount":"1"`},
		"zero":                                 {`"amount":0`, `"amount":0`},
		"minus zero":                           {`"amount":-0`, `"amount":-0`},
		"a fraction":                           {`"amount":5`, `"amount":0.5`},
		"more than a number holds":             {`"amount":90071992547409930`, `"amount":9007199254740993`},
		"nothing":                              {`"amount":null`, `"amount":null`},
		"a list":                               {`"amount":[10]`, `"amount":[1]`},
		"twice, the second negative":           {`"amount":10,"amo\u0075nt":-10`, `"amount":1,"amo\u0075nt":-1`},
	} {
		id := s.open()
		_, answer := s.call(http.MethodPost, "/api/validate", order(id, c.gold, c.tokens))
		assert.Contains(t, answer, `{"success":false,`, name)
		assert.NotContains(t, answer, "validatorSig", name)
		result := `{"uuid":"` + id.String() + `","receipt":{"status":"0x0"}}`
		status, _ := s.call(http.MethodPost, "/api/result", result)
		assert.Equal(t, 500, status, "%s: it is no order", name)
		assert.Equal(t, "1000", s.gold(), name)
	}
	_, answer := s.call(http.MethodPost, "/api/validate",
		order(s.open(), `"note":"\"amount\":-1","amo\u0075nt":10`, `"n":1.5,"amount":1`))
	assert.Contains(t, answer, `"success":true`, "an escape alone is no fault")
	assert.Equal(t, "990", s.gold())
}

// Only what is certainly a failure gives gold back.
func TestAStatusThatSaysNothingMovesNothing(t *testing.T) {
	s := newShown(t)
	id := s.open()
	_, answer := s.call(http.MethodPost, "/api/validate", order(id, `"amount":100`, `"amount":10`))
	require.Contains(t, answer, `"success":true`)
	for _, receipt := range []string{`{}`, `{"status":{}}`, `{"status":true}`, `{"status":false}`, `{"status":""}`,
		`{"status":"1"}`, `{"status":null}`,
		`{"status":["0x0"]}`, `{"status":"0x"}`, `{"status":"failed"}`, `{"status":0.5}`, `{"status":" 0x0"}`,
		`7`, `null`} {
		status, _ := s.call(http.MethodPost, "/api/result", `{"uuid":"`+id.String()+`","receipt":`+receipt+`}`)
		assert.Equal(t, 500, status, receipt)
		assert.Equal(t, "900", s.gold(), receipt)
	}
	status, _ := s.call(http.MethodPost, "/api/result",
		`{"uuid":"`+id.String()+`","tx_hash":["0x1"],"receipt":{"status":"0x0"}}`)
	assert.Equal(t, 200, status, "a tx_hash that is none ends no order less")
	assert.Equal(t, "1000", s.gold())
	status, _ = s.call(http.MethodPost, "/api/result", `{"uuid":"`+id.String()+`","receipt":{"status":0}}`)
	assert.Equal(t, 200, status)
	status, _ = s.call(http.MethodPost, "/api/result", `{"uuid":"`+id.String()+`","receipt":{"status":"0x01"}}`)
	assert.Equal(t, 500, status)
	assert.Equal(t, "1000", s.gold())
}

// A result is repeated only after 500, whatever the console has as its address.
func TestNoAnswerOfTheServerOfTheDocumentEndsAResult(t *testing.T) {
	s := newShown(t)
	unknown := `{"uuid":"` + uuid.NewString() + `","receipt":{"status":"0x0"}}`
	long := `{"padding":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, path := range []string{"/api/result", "/api/result/", "/API/result", "/API/RESULT/", "//api/result",
		"/api/results", "/api/result%20",
		"/api/result%0A", "/api/result%zz", "/api/callback", "/", "/api/validate", "/api/assets", "/ramp/api/result"} {
		status, answer := s.call(http.MethodPost, path, unknown)
		assert.Equal(t, 500, status, "%s: %s", path, answer)
		if path == "/api/validate" {
			continue
		}
		for name, body := range map[string]string{"not JSON": "{", "too long": long} {
			status, answer := s.call(http.MethodPost, path, body)
			assert.Equal(t, 500, status, "%s, %s: %s", path, name, answer)
		}
	}
	status, _ := s.call(http.MethodGet, "/api/result", unknown)
	assert.Equal(t, 500, status, "after a redirect")
	for _, path := range []string{"/api/result", "/api/result/", "/ramp/result", "/API/result"} {
		status, _ := s.call(http.MethodPost, path, "")
		assert.Equal(t, 500, status, "%s without an HMAC", path)
	}
	for call, want := range map[string]int{"GET /": 404, "GET /api/result": 404, "POST /xmlrpc.php": 404,
		"POST /api/validate": 401} {
		method, path, _ := strings.Cut(call, " ")
		status, _ := s.call(method, path, "")
		assert.Equal(t, want, status, call)
	}
	assert.Equal(t, "1000", s.gold())
}

// A leaked address is worth one order, and the token of the login opens no page.
func TestAPageOfTheServerOfTheDocumentIsWorthOneOrder(t *testing.T) {
	s := newShown(t)
	mint := func(token string, id uuid.UUID) string {
		s.token = token
		_, answer := s.call(http.MethodPost, "/api/validate", order(id, `"amount":10`, `"amount":1`))
		return answer
	}
	catalog := s.token
	id, other := s.open(), s.open()
	second := s.token
	first := s.open() // the third page
	third := s.token
	for name, token := range map[string]string{"the login": s.login, "a page for assets": catalog,
		"another page": second} {
		assert.Contains(t, mint(token, id), `"errorCode":"INVALID_USER"`, name)
	}
	assert.Contains(t, mint(second, other), `"success":true`)
	assert.Contains(t, mint(second, other), `"success":true`, "a repeat")
	assert.Contains(t, mint(third, first), `"success":true`)
	s.token = catalog
	assert.Equal(t, "980", s.gold())
	s.token = s.login
	status, _ := s.call(http.MethodGet, "/api/assets", "")
	assert.Equal(t, http.StatusUnauthorized, status)

	limited := 0
	for range 20 {
		status, _ := s.call(http.MethodPost, "/catalog", "")
		if limited++; status == http.StatusTooManyRequests {
			break
		}
	}
	assert.Equal(t, 17, limited, "20 pages a minute, of which 4 were open")
}

// The client of the document's server goes on, and fails, exactly where ours does.
func TestTheInitializeCallOfTheDocumentIsAsOurs(t *testing.T) {
	const right = `{"code":200,"message":"OK","data":{"uuid":"7b0f9a1e-1111-4222-8333-444455556666"}}`
	type reply struct {
		status int
		body   string
		header map[string]string
		hangs  bool
	}
	soon := map[string]string{"Retry-After": "1"}
	for name, c := range map[string]struct {
		replies []reply // the last one again and again
		calls   int
		uuid    bool
		says    string
	}{
		"right":   {[]reply{{status: 200, body: right}}, 1, true, ""},
		"created": {[]reply{{status: 201, body: right}}, 1, true, ""},
		"no uuid": {[]reply{{status: 200, body: `{"code":200,"message":"OK","data":{}}`}}, 1, false,
			"HTTP 200"},
		"a uuid that is none": {[]reply{{status: 200, body: `{"code":200,"message":"OK","data":{"uuid":"7"}}`}}, 1,
			false, "HTTP 200"},
		"no envelope": {[]reply{{status: 200, body: `<html>`}}, 1, false, "without the envelope"},
		"a redirect": {[]reply{{status: 307, header: map[string]string{"Location": "/elsewhere"}}}, 1,
			false, "redirect to /elsewhere"},
		"503 once":     {[]reply{{status: 503}, {status: 200, body: right}}, 2, true, ""},
		"503 for ever": {[]reply{{status: 503}}, 3, false, "HTTP 503"},
		"a gateway's JSON": {[]reply{{status: 503, body: `{"code":14,"message":"unavailable"}`},
			{status: 200, body: right}}, 2, true, ""},
		"a rate limit": {[]reply{{status: 429, body: `{"code":429,"message":"slow"}`, header: soon},
			{status: 200, body: right}}, 2, true, ""},
		"an unknown project": {[]reply{{status: 503, body: `{"code":500,"message":"x","data":"ramp not found"}`}},
			1, false, "ramp not found"},
		"a wrong HMAC": {[]reply{{status: 500, body: `{"code":500,"message":"x","data":"invalid mac"}`}}, 1,
			false, "invalid mac"},
		"a success under 500": {[]reply{{status: 500, body: right}}, 1, false, "HTTP 500"},
		"a long wait": {[]reply{{status: 503, header: map[string]string{"Retry-After": "3600"}}}, 1, false,
			"HTTP 503"},
		"a service that hangs": {[]reply{{hangs: true}, {status: 200, body: right}}, 2, true, ""},
		"an answer that is half": {[]reply{{status: 200, body: right[:20], hangs: true}, {status: 200, body: right}},
			2, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			ended := make(chan struct{})
			var mu sync.Mutex
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, r.URL.Path)
				answer := c.replies[min(len(asked), len(c.replies))-1]
				mu.Unlock()
				for name, value := range answer.header {
					w.Header().Set(name, value)
				}
				if answer.status != 0 {
					w.WriteHeader(answer.status)
				}
				_, _ = io.WriteString(w, answer.body)
				if answer.hangs {
					_ = http.NewResponseController(w).Flush()
					<-ended
				}
			}))
			t.Cleanup(service.Close)
			t.Cleanup(func() { close(ended) })
			check := func(who, uuid, problem string) {
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, slices.Repeat([]string{"/api/v2/initialize"}, c.calls), asked, who)
				assert.Equal(t, c.uuid, uuid == "7b0f9a1e-1111-4222-8333-444455556666", who)
				assert.Contains(t, problem, c.says, who)
				asked = nil
			}
			timeout := time.Minute // a slow machine must not end an attempt
			if slices.ContainsFunc(c.replies, func(r reply) bool { return r.hangs }) {
				timeout = 3 * time.Second
			}
			client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: service.URL + "/", Timeout: timeout,
				Key: must.Get(ramp.TextKey(consoleKey))(t)}))(t)
			item := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(1), IconURL: "https://example.com/gold.png"}}
			started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
				Network: ramp.Testnet, ProjectID: "p", Token: "0x00000000000000000000000000000000000070c3",
				Materials: item, Outputs: item}})
			if err != nil {
				check("ours", "", err.Error())
			} else {
				check("ours", started.UUID.String(), "")
			}
			node := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e",
				`import { initialize } from './initialize.js'
				const answer = initialize(process.argv[1], 'key', {}, Number(process.argv[2]))
				console.log(await answer.catch((error) => 'ERROR ' + error.message))`,
				service.URL+"/", strconv.FormatInt(timeout.Milliseconds(), 10))
			node.Dir = filepath.Join("..", "..", "..", "..", "examples", "express")
			out, err := node.CombinedOutput()
			require.NoError(t, err, "%s", out)
			uuid, problem, _ := strings.Cut(strings.TrimSpace(string(out)), "ERROR ")
			check("the document's", uuid, problem)
		})
	}
}
