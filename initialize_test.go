package ramp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

func testRequest() ramp.InitializeRequest {
	return ramp.InitializeRequest{
		PlayerID: "player-1",
		Intent: ramp.InitializeIntent{
			Network:    ramp.Testnet,
			ProjectID:  "project-1",
			Token:      testToken,
			MintFeeBps: 100,
			Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100),
				IconURL: "https://example.com/gold.png?size=1&dark=0"}},
			Outputs: []ramp.Item{{ID: "item_gem", Amount: ramp.NewAmount(2),
				IconURL: "https://example.com/gem.png", IsNonFungible: true}},
		},
	}
}

const testRequestBytes = `{"player_id":"player-1","intent":{"network":"testnet","project_id":"project-1",` +
	`"token":"0x00000000000000000000000000000000000070c3","mint_fee_bps":100,"burn_fee_bps":0,` +
	`"mint_method":"mint","burn_method":"burn-permit",` +
	`"materials":[{"id":"item_gold","amount":100,"icon_url":"https://example.com/gold.png?size=1&dark=0",` +
	`"is_non_fungible":false}],` +
	`"outputs":[{"id":"item_gem","amount":2,"icon_url":"https://example.com/gem.png","is_non_fungible":true}]}}`

const okAnswer = `{"code":200,"message":"OK","data":{"uuid":"` + testUUID + `"}}`

// api is a client of the service that a node plays.
func (n *rpcNode) api(t testing.TB, c ramp.ClientConfig) *ramp.Client {
	c.URL = n.URL + c.URL
	if c.Key.IsZero() {
		c.Key = testKey(t)
	}
	return must.Get(ramp.NewClient(c))(t)
}

func TestInitializeSendsTheBytesThatItSigned(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	service := newNode(t, says(200, string(golden(t, "2.3-initialize-response.json"))))
	client := service.api(t, ramp.ClientConfig{URL: "/v1/", Now: func() time.Time { return now }})

	request := testRequest()
	got := must.Get(client.Initialize(t.Context(), request))(t)
	assert.Equal(t, goldenMint, got.UUID.String())
	assert.Equal(t, now.Add(5*time.Minute), got.ExpiresAt)
	assert.Equal(t, testRequest(), request, "the caller's request is left alone")

	assert.Equal(t, http.MethodPost, service.request().Method)
	assert.Equal(t, "/v1/api/v2/initialize", service.request().URL.Path)
	assert.Equal(t, "application/json", service.request().Header.Get("Content-Type"))
	assert.Equal(t, "ramp-go", service.request().Header.Get("User-Agent"))
	assert.Equal(t, testRequestBytes, service.asked()[0])
	assert.NoError(t, testKey(t).Verify([]byte(service.asked()[0]), service.request().Header.Get("X-HMAC-SIGNATURE")))
}

func TestEveryProblemOfARequestIsReportedAtOnceAndNothingIsSent(t *testing.T) {
	service := newNode(t, says(200, okAnswer))
	client := service.api(t, ramp.ClientConfig{})

	paths := func(request ramp.InitializeRequest) []string {
		_, err := client.Initialize(t.Context(), request)
		wrong := as[*ramp.InvalidError](t, err)
		var paths []string
		for _, field := range wrong.Fields {
			paths = append(paths, field.Path)
			assert.Contains(t, err.Error(), field.Path+" "+field.Problem)
		}
		return paths
	}

	assert.Equal(t, []string{
		"intent.network", "intent.project_id", "intent.token",
	}, paths(ramp.InitializeRequest{}))

	request := testRequest()
	request.Intent.Network = "mainnet2"
	request.Intent.Token = "0x12"
	request.Intent.MintFeeBps = 10_001
	request.Intent.Materials = append(request.Intent.Materials,
		ramp.Item{ID: "item_gold", Amount: ramp.NewAmount(-1)})
	request.Intent.Outputs[0] = ramp.Item{}
	assert.Equal(t, []string{
		"intent.network", "intent.token", "intent.mint_fee_bps", "intent.materials[1].id", "intent.materials[1].amount",
		"intent.materials[1].icon_url",
		"intent.outputs[0].id", "intent.outputs[0].amount", "intent.outputs[0].icon_url",
	}, paths(request))

	assert.Empty(t, service.asked())
}

func TestTheFailuresOfTheInterfaceAreSentinels(t *testing.T) {
	failures := []struct {
		file, message, data string
		code                int
		is                  error
		hint                string
	}{
		{"7.1-hmac-missing.json", "Bad Request", "X-HMAC-Signature is required", 400, ramp.ErrHMACMissing,
			"(a proxy may have removed the header)"},
		{"7.1-hmac-invalid.json", "Internal Server Error", "invalid mac", 500, ramp.ErrHMACInvalid,
			"(the key was read as text: compare it with the console's, or try Base64URLKey)"},
		{"7.1-project-missing.json", "Internal Server Error", "ramp not found", 500, ramp.ErrUnknownProject,
			"(check intent.project_id)"},
		{"7.1-network-invalid.json", "Internal Server Error", "ramp not exists", 500, ramp.ErrUnknownNetwork,
			"(check intent.network)"},
	}
	source := must.Get(os.ReadFile("errors.go"))(t)
	require.Len(t, failures, strings.Count(string(source), "(interface 7.1"), "one for each sentinel of 7.1")
	for _, tt := range failures {
		for _, status := range []int{200, 400, 401, 429, 500, 502, 503} { // which one, the interface does not say
			service := newNode(t, says(status, string(golden(t, tt.file))))
			got, err := service.api(t, ramp.ClientConfig{}).Initialize(t.Context(), testRequest())
			assert.Nil(t, got)
			assert.ErrorContains(t, err, tt.data+" "+tt.hint)
			failure := as[*ramp.APIError](t, err)
			assert.Equal(t, []any{status, tt.code, tt.message, tt.data},
				[]any{failure.Status, failure.Code, failure.Message, failure.Data})
			for _, other := range failures {
				assert.Equal(t, other.is == tt.is, errors.Is(err, other.is), "%v", other.is)
			}
			assert.Len(t, service.asked(), 1, "the envelope's own failures are never retried")
		}
	}
	client := newNode(t,
		says(500, `{"code":500,"message":"","data":"invalid mac: of the body"}`)).api(t, ramp.ClientConfig{
		Key: vectorBase64Key(t)})
	_, err := client.Initialize(t.Context(), testRequest())
	assert.ErrorIs(t, err, ramp.ErrHMACInvalid)
	assert.ErrorContains(t, err,
		"(the key was read as unpadded base64url: compare it with the console's, or try TextKey)")
}

func TestAnAnswerThatIsNoSuccessSaysWhatItIs(t *testing.T) {
	const notTheEnvelope = ", without the envelope of the interface"
	for name, test := range map[string]struct {
		status int
		kind   string
		body   string
		want   string // after "the service answered HTTP "
	}{
		"HTML": {500, "text/html; charset=utf-8", "<html>\n<h1>Internal\tError</h1></html>",
			"500 with text/html" + notTheEnvelope + ": <html> <h1>Internal Error</h1></html>"},
		"no content type": {500, "", "x", "500" + notTheEnvelope + ": x"},
		"nothing":         {200, "application/json", "", "200 with application/json" + notTheEnvelope},
		"a truncated envelope": {200, "", okAnswer[:40], "200" + notTheEnvelope +
			", because it is not valid JSON: " + okAnswer[:40]},
		"null": {200, "", "null", "200" + notTheEnvelope + ": null"},
		"a code of text": {200, "", `{"code":"200"}`, "200" + notTheEnvelope +
			`, because code must be a whole number: {"code":"200"}`},
		"a code of 200.5": {200, "", `{"code":200.5}`, "200" + notTheEnvelope +
			`, because code must be a whole number: {"code":200.5}`},
		"no code": {200, "", `{"uuid":"` + testUUID + `"}`, "200" + notTheEnvelope +
			`, because it has no code: {"uuid":"` + testUUID + `"}`},
		"a code that is a number": {400, "", `{"code":76561198}`, "400, code 76561198"},
		"data of another type": {200, "", `{"code":200,"message":"OK","data":[1]}`,
			"200, code 200: OK: [1], without a UUID in data.uuid"},
		"a UUID of zeros": {200, "", `{"code":200,"data":{"uuid":"00000000-0000-0000-0000-000000000000"}}`,
			`200, code 200: {"uuid":"00000000-0000-0000-0000-000000000000"}, without a UUID in data.uuid`},
		"success under a failure": {500, "", okAnswer,
			`500, code 200: OK: {"uuid":"` + testUUID + `"}, with the envelope of a success`},
		"success under code 0": {200, "", `{"code":0,"message":"OK","data":{"uuid":"` + testUUID + `"}}`,
			`200: OK: {"uuid":"` + testUUID + `"}, with a UUID, although code is not 200`},
		"another reason": {200, "",
			`{"code":500,"message":"Internal Server Error","data":"token not registered"}`,
			"200, code 500: Internal Server Error: token not registered"},
		"a reason of two lines": {400, "",
			`{"code":400,"message":"Bad Request","data":"intent.token:\n\u001b[31m0x12"}`,
			"400, code 400: Bad Request: intent.token: [31m0x12"},
		"a reason in an object": {400, "", `{"code":400,"message":"Bad Request","data":{"field":"intent.token"}}`,
			`400, code 400: Bad Request: {"field":"intent.token"}`},
		"a redirect":       {307, "", "moved", "307, a redirect to /elsewhere: moved"},
		"what is not text": {500, "", "\xff\xfe\x00", "500" + notTheEnvelope},
	} {
		t.Run(name, func(t *testing.T) {
			service := newNode(t, says(test.status, test.body, "Location", "/elsewhere", "Content-Type", test.kind))
			got, err := service.api(t, ramp.ClientConfig{}).Initialize(t.Context(), testRequest())
			assert.Nil(t, got)
			failure := as[*ramp.APIError](t, err)
			assert.Equal(t, test.status, failure.Status)
			assert.EqualError(t, err, "ramp: initialize: the service answered HTTP "+test.want)
			assert.Len(t, service.asked(), 1)
		})
	}
}

// The page gets the UUID in the form in which the service wrote it.
func TestAUUIDGoesBackAsItCame(t *testing.T) {
	digits := strings.ReplaceAll(testUUID, "-", "")
	for _, text := range []string{testUUID, strings.ToUpper(testUUID), digits} {
		service := newNode(t, says(200, `{"code":200,"message":"OK","data":{"uuid":"`+text+`"}}`))
		got, err := service.api(t, ramp.ClientConfig{}).Initialize(t.Context(), testRequest())
		require.NoError(t, err)
		assert.Equal(t, testUUID, got.UUID.String())
		assert.Equal(t, text, got.Text)
		page, err := got.ExchangeURL("https://ramp.example.com", ramp.Session{ID: "s", Token: ramp.NewAccessToken("t")})
		require.NoError(t, err)
		assert.Contains(t, page, "?uuid="+text+"&")
	}
}

// script is a network in memory: each call takes the next step.
type script struct {
	steps []func(*http.Request) (*http.Response, error)
	sent  [][]byte
	at    []time.Duration
	start time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.sent = append(s.sent, body)
	s.at = append(s.at, time.Since(s.start))
	return s.steps[min(len(s.sent), len(s.steps))-1](r)
}

func status(code int, header map[string]string, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		for name, value := range header {
			recorder.Header().Set(name, value)
		}
		recorder.WriteHeader(code)
		_, _ = recorder.WriteString(body)
		return recorder.Result(), nil
	}
}

func disconnect(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }

// hang answers when the request's context ends.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// initialize makes a call against a script, in a bubble whose time passes by
// itself.
func initialize(t *testing.T, ctx context.Context, s *script) error {
	return initializeWith(t, ctx, s, ramp.ClientConfig{})
}

func initializeWith(t *testing.T, ctx context.Context, s *script, c ramp.ClientConfig) error {
	t.Helper()
	s.start = time.Now()
	c.URL, c.Key, c.HTTPClient = "https://api.example.com", testKey(t), &http.Client{Transport: s}
	client := must.Get(ramp.NewClient(c))(t)
	_, err := client.Initialize(ctx, testRequest())
	return err
}

func TestAFailureThatMayPassIsTriedAgain(t *testing.T) {
	type steps = []func(*http.Request) (*http.Response, error)
	ok := status(200, nil, okAnswer)
	busy := status(503, nil, "busy")
	for name, test := range map[string]struct {
		steps  steps
		config ramp.ClientConfig
		sent   int
		fails  bool
		waits  [][2]int // milliseconds between attempts, at least and at most
	}{
		"a dropped connection":  {steps: steps{disconnect, ok}, sent: 2, waits: [][2]int{{100, 200}}},
		"503":                   {steps: steps{busy, ok}, sent: 2},
		"504":                   {steps: steps{status(504, nil, ""), ok}, sent: 2},
		"500 is not among them": {steps: steps{status(500, nil, "oops"), ok}, sent: 1, fails: true},
		"404 is not among them": {steps: steps{status(404, nil, ""), ok}, sent: 1, fails: true},
		"Retry-After in seconds": {steps: steps{status(429, map[string]string{"Retry-After": "7"}, ""), ok}, sent: 2,
			waits: [][2]int{{7000, 7000}}},
		"Retry-After as a date": {steps: steps{status(503,
			map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:00:09 GMT"}, ""), ok}, sent: 2,
			waits: [][2]int{{9000, 9000}}},
		"Retry-After of another clock": {steps: steps{status(503, map[string]string{
			"Date": "Sun, 02 Jan 2000 00:00:00 GMT", "Retry-After": "Sun, 02 Jan 2000 00:00:09 GMT"}, ""), ok}, sent: 2,
			waits: [][2]int{{9000, 9000}}},
		"a gateway's body with a code": {steps: steps{
			status(503, nil, `{"code":14,"message":"unavailable"}`), ok}, sent: 2},
		"a rate limit in the envelope": {steps: steps{status(429, map[string]string{"Retry-After": "1"},
			`{"code":429,"message":"Too Many Requests","data":"slow down"}`), ok},
			sent: 2, waits: [][2]int{{1000, 1000}}},
		"a failure of the interface is final": {steps: steps{status(503, nil,
			`{"code":500,"message":"Internal Server Error","data":"ramp not found"}`), ok}, sent: 1, fails: true},
		"Retry-After that makes no sense": {steps: steps{status(503, map[string]string{"Retry-After": "soon"}, ""),
			ok}, sent: 2,
			waits: [][2]int{{100, 200}}},
		"Retry-After beyond patience": {steps: steps{status(429, map[string]string{"Retry-After": "31"}, ""), ok},
			sent: 1, fails: true},
		"an attempt that hangs": {steps: steps{hang, ok}, config: ramp.ClientConfig{Timeout: 3 * time.Second}, sent: 2,
			waits: [][2]int{{3100, 3200}}},
		"longer each time, up to five seconds": {steps: steps{busy}, config: ramp.ClientConfig{Retries: 12}, sent: 13,
			fails: true,
			waits: [][2]int{{100, 200}, {200, 400}, {400, 800}, {800, 1600}, {1600, 3200}, {2500, 5000}, {2500, 5000},
				{2500, 5000}}},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := &script{steps: test.steps}
			err := initializeWith(t, t.Context(), s, test.config)
			assert.Equal(t, test.fails, err != nil, "%v", err)
			assert.Len(t, s.sent, test.sent)
			for i, body := range s.sent {
				assert.Equal(t, testRequestBytes, string(body), "attempt %d has the whole body", i)
			}
			for i, wait := range test.waits {
				took := int((s.at[i+1] - s.at[i]).Milliseconds())
				assert.GreaterOrEqual(t, took, wait[0], "wait %d", i)
				assert.LessOrEqual(t, took, wait[1], "wait %d", i)
			}
		})
	}
}

func TestAContextEndsACallAtOnce(t *testing.T) {
	busy := status(503, nil, "busy")
	inBubble(t, "canceled while waiting", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		s := &script{steps: []func(*http.Request) (*http.Response, error){busy}}
		err := initialize(t, ctx, s)
		assert.ErrorIs(t, err, context.Canceled)
		var failure *ramp.APIError
		assert.ErrorAs(t, err, &failure, "and says what it was waiting after")
		assert.Equal(t, 50*time.Millisecond, time.Since(s.start))
		assert.Len(t, s.sent, 1)
	})
	inBubble(t, "canceled while asking", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		s := &script{steps: []func(*http.Request) (*http.Response, error){hang}}
		assert.EqualError(t, initialize(t, ctx, s), "ramp: initialize: context canceled",
			"there was no next attempt to wait for")
		assert.Len(t, s.sent, 1)
	})
	inBubble(t, "a deadline before the next attempt", func(t *testing.T) {
		ctx := within(t, 50*time.Millisecond)
		s := &script{steps: []func(*http.Request) (*http.Response, error){busy}}
		failure := as[*ramp.APIError](t, initialize(t, ctx, s))
		assert.Equal(t, 503, failure.Status)
		assert.Zero(t, time.Since(s.start), "there is no use in waiting")
	})
}

func TestACallIsValidFromTheAttemptThatSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{start: time.Now(), steps: []func(*http.Request) (*http.Response, error){
			status(429, map[string]string{"Retry-After": "20"}, ""), status(200, nil, okAnswer)}}
		client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(t),
			HTTPClient: &http.Client{Transport: s}}))(t)
		got := must.Get(client.Initialize(t.Context(), testRequest()))(t)
		assert.Equal(t, s.start.Add(20*time.Second+ramp.UUIDValidity), got.ExpiresAt)
	})
}

func TestAClientThatCannotWorkIsNotMade(t *testing.T) {
	for _, address := range []string{"api.example.com", "http://api.example.com", "https://user:secret@api.example.com",
		"https://api.example.com?key=secret"} {
		_, err := ramp.NewClient(ramp.ClientConfig{URL: address, Key: testKey(t)})
		var wrong *ramp.InvalidError
		require.ErrorAs(t, err, &wrong, address)
		assert.Equal(t, "ClientConfig.URL", wrong.Fields[0].Path)
		assert.NotContains(t, err.Error(), "secret")
	}
	config := ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(t)}
	assertCannotWork(t, config, ramp.NewClient, []wrong[ramp.ClientConfig]{
		{"ClientConfig.URL is required", func(c *ramp.ClientConfig) { c.URL = "" }},
		{"ClientConfig.Key is required", func(c *ramp.ClientConfig) { c.Key = ramp.HMACKey{} }},
		{"ClientConfig.Timeout must not be negative", func(c *ramp.ClientConfig) { c.Timeout = -time.Second }},
		{"ClientConfig.Retries must be at least -1, which means none", func(c *ramp.ClientConfig) { c.Retries = -2 }},
	})
	_, err := ramp.NewClient(ramp.ClientConfig{Retries: -2})
	assertFields(t, err, "ClientConfig.URL is required", "ClientConfig.Key is required", "ClientConfig.Retries")
	assert.ErrorIs(t, err, ramp.ErrHMACKey)
}

func TestInitializeLogsWithoutSecrets(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	must.Get(newNode(t, says(200, okAnswer)).api(t, ramp.ClientConfig{Logger: logger}).Initialize(t.Context(),
		testRequest()))(t)
	_, err := newNode(t, says(500, "oops")).api(t, ramp.ClientConfig{Logger: logger}).Initialize(t.Context(),
		testRequest())
	require.Error(t, err)

	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 2)
	for i, want := range []string{"INFO", "ERROR"} {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &record))
		assert.Equal(t, want, record["level"])
		assert.Equal(t, "initialize", record["endpoint"])
		assert.Contains(t, record, "duration")
	}
	assert.Contains(t, lines[0], testUUID)
	assert.NotContains(t, log.String(), testKey(t).Sign([]byte(testRequestBytes)))
}

// Invalid UTF-8 would be signed as different bytes under each version of
// encoding/json.
func TestInitializeRejectsInvalidUTF8(t *testing.T) {
	request := testRequest()
	request.PlayerID, request.Name, request.Server, request.WalletAddress, request.Intent.ProjectID = "\xff", "\xff",
		"\xff", "\xff", "\xff"
	request.Intent.Materials = []ramp.Item{{ID: "\xff", Amount: ramp.NewAmount(1), IconURL: "https://example.com/\xff"}}
	service := newNode(t, says(200, okAnswer))
	_, err := service.api(t, ramp.ClientConfig{}).Initialize(t.Context(), request)
	assertFields(t, err, "player_id must be valid UTF-8", "name must be valid UTF-8", "server must be valid UTF-8",
		"wallet_address must be valid UTF-8",
		"intent.project_id must be valid UTF-8", "intent.materials[0].id must be valid UTF-8",
		"intent.materials[0].icon_url must be valid UTF-8")
	assert.Empty(t, service.asked())
}

func TestAFeeIsAPartOfTheWhole(t *testing.T) {
	for fee, ok := range map[int]bool{-1: false, 0: true, 10_000: true, 10_001: false} {
		request := testRequest()
		request.Intent.MintFeeBps = fee
		_, err := newNode(t, says(200, okAnswer)).api(t, ramp.ClientConfig{}).Initialize(t.Context(), request)
		if ok {
			assert.NoError(t, err, fee)
		} else {
			assertFields(t, err, "intent.mint_fee_bps must be 0 to 10000 basis points")
		}
	}
}

// The interface calls an icon a URL (2.2): one that a page of the service can load.
func TestAnIconIsAnAddress(t *testing.T) {
	const form = "must be an absolute https URL, such as https://example.com"
	for icon, problem := range map[string]string{
		"https://example.com/a.png":          "",
		"http://localhost:8080/a.png":        "",
		"":                                   "is required",
		"data:image/png;base64,AA==":         form,
		"//example.com/a.png":                form,
		"/a.png":                             form,
		"gold.png":                           form,
		"javascript:alert(1)":                form,
		"https://":                           form,
		"http://example.com/a.png":           "must be https, unless the host is on a private network",
		"https://$CDN/a.png":                 "must have a host of letters",
		"https://example.com:70000/a.png":    "must have a port from 1 to 65535",
		"https://u:secret@example.com/a":     "must not have a user",
		"\u200bhttps://example.com/a.png":    "must not have a zero-width space (U+200B)",
		"\"https://example.com/a.png\"":      "must not have quotes around it",
		"https://example.com/a\u00a0b.png":   "must not have a space of another kind (U+00A0)",
		"https://example.com/a\xff.png":      "must be valid UTF-8",
		"https://example.com/\ufffdgold.png": "must not have a character that another program could not read",
	} {
		request := testRequest()
		request.Intent.Materials = []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(1), IconURL: icon}}
		_, err := newNode(t, says(200, okAnswer)).api(t, ramp.ClientConfig{}).Initialize(t.Context(), request)
		product := goldProduct()
		product.Materials[0].IconURL = icon
		_, sold := ramp.NewTerms(ramp.TermsConfig{ProjectID: "1", Network: ramp.Testnet,
			Products: []ramp.Product{product}})
		if problem == "" {
			assert.NoError(t, err, icon)
			assert.NoError(t, sold, icon)
			continue
		}
		assert.ErrorContains(t, err, "intent.materials[0].icon_url "+problem, icon)
		assert.ErrorContains(t, sold, "Materials[0].icon_url "+problem, icon)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// The interface calls the wallet of a player a string and says no more (2.2).
func TestAWalletMayHaveAnyForm(t *testing.T) {
	request := testRequest()
	request.WalletAddress = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
	_, err := newNode(t, says(200, okAnswer)).api(t, ramp.ClientConfig{}).Initialize(t.Context(), request)
	assert.NoError(t, err)
}

// The interface names four failures. Any other text is what a developer needs.
func TestAReasonThatTheInterfaceDoesNotListIsShown(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	client := newNode(t,
		says(400, `{"code":400,"message":`+quoted("two\nlines")+`,"data":`+quoted(long)+`}`)).
		api(t, ramp.ClientConfig{})
	_, err := client.Initialize(t.Context(), testRequest())
	failure := as[*ramp.APIError](t, err)
	assert.Equal(t, "two\nlines", failure.Message)
	assert.Equal(t, long[:64<<10], failure.Data)
	assert.Contains(t, err.Error(), "two lines: xxx")
	assert.LessOrEqual(t, len(err.Error()), 500)
}

func TestWhyTheServiceWasNotReachedIsShown(t *testing.T) {
	because := func(transport http.RoundTripper, address string) error {
		client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: address, Key: testKey(t), Retries: -1,
			HTTPClient: &http.Client{Transport: transport}}))(t)
		_, err := client.Initialize(t.Context(), testRequest())
		return err
	}
	listener := must.Get(loopback.Listen())(t)
	require.NoError(t, listener.Close())
	assert.ErrorContains(t, because(nil, "http://"+listener.Addr().String()), "connection refused")

	private := httptest.NewUnstartedServer(http.NotFoundHandler())
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	private.StartTLS()
	defer private.Close()
	assert.ErrorContains(t, because(nil, private.URL), "ramp: initialize: tls: failed to verify certificate: x509: ")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	assert.ErrorContains(t, because(nil, strings.Replace(plain.URL, "http:", "https:", 1)),
		"ramp: initialize: http: server gave HTTP response to HTTPS client")
	own := errors.New("the breaker is open")
	for _, cause := range []error{own, context.DeadlineExceeded} {
		err := because(roundTripper(func(*http.Request) (*http.Response, error) { return nil, cause }),
			"https://api.example.com")
		assert.ErrorIs(t, err, cause, "the errors of the caller's own transport are found")
		assert.EqualError(t, err, "ramp: initialize: "+cause.Error())
	}
}
