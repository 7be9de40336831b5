package ramp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ethcrypto "github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

const (
	testUUID   = oneorder.UUID
	testDigest = oneorder.Digest
	testToken  = oneorder.Token

	// The signature of testDigest by the key of testSigner, made with an
	// independent implementation.
	testSignature = "0xb17272739fcb2452e6775a892259513cfd733f3c2dcf3c4f2772ff55514e49d6" +
		"2d88f1296329f3642793e186858daf49ffd6518cc9c6fe86886209689019aaa91c"
)

func validateCall() oneorder.Object { return oneorder.Validate(oneorder.Mint()) }

func resultCall() oneorder.Object {
	return oneorder.Object{
		"session_id": "session-1", "uuid": testUUID, "tx_hash": common.MaxHash.Hex(),
		"receipt": map[string]any{"status": "0x1"}, "intent": oneorder.Mint(),
	}
}

// recorder is the players and the store of a game that says yes and remembers what reached it.
type recorder struct {
	authenticate, assets, validate, result func() error

	mu    sync.Mutex
	calls []string
}

func (g *recorder) note(name string, answer func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, name)
	if answer == nil {
		return nil
	}
	return answer()
}

func (g *recorder) Authenticate(context.Context, ramp.Session) error {
	return g.note("authenticate", g.authenticate)
}

func (g *recorder) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, g.note("assets", g.assets)
}

// Update keeps no order: it opens every one, and takes every result for a repeat.
func (g *recorder) Update(_ context.Context, _ uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	switch step, err := next(nil); {
	case err == nil:
		return step, g.note("validate", g.validate)
	case errors.Is(err, ramp.ErrOrderUnknown):
		return ramp.Step{}, g.note("result", g.result)
	default:
		return ramp.Step{}, err
	}
}

// studio is a handler behind a real HTTP server.
type studio struct {
	*httptest.Server
	game *recorder
	key  ramp.HMACKey
	log  *bytes.Buffer
}

func newStudio(t *testing.T) *studio { return newStudioWith(t, ramp.HandlerConfig{}) }

// newStudioWith is newStudio with what a test sets beside the required fields.
func newStudioWith(t *testing.T, c ramp.HandlerConfig) *studio {
	t.Helper()
	s := &studio{game: &recorder{}, key: testKey(t), log: &bytes.Buffer{}}
	c.Players, c.Store, c.Key, c.Signer, c.Logger = s.game, s.game, s.key, testSigner(t),
		slog.New(slog.NewJSONHandler(s.log, nil))
	if c.Terms == nil {
		c.Terms = anyTerms
	}
	handler := must.Get(ramp.NewHandler(c))(t)
	s.Server = httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func (s *studio) call(t *testing.T, method, path string, header http.Header, body []byte) (int, string) {
	t.Helper()
	request := must.Get(http.NewRequest(method, s.URL+path, bytes.NewReader(body)))(t)
	request.Header = header
	response := must.Get(s.Client().Do(request))(t)
	defer response.Body.Close()
	answer := must.Get(io.ReadAll(response.Body))(t)
	assert.Equal(t, "application/json", response.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", response.Header.Get("Cache-Control"),
		"what the service is told must not come out of a cache")
	return response.StatusCode, string(answer)
}

func (s *studio) post(t *testing.T, path string, body []byte) (int, string) {
	t.Helper()
	return s.call(t, http.MethodPost, path, signed(t, body), body)
}

func rejection(code string) string {
	return fmt.Sprintf(`{"success":false,"errorCode":%q,"data":null}`, code)
}

const (
	approved  = `{"success":true,"errorCode":null,"data":{"userSig":"0xaa55","validatorSig":"` + testSignature + `"}}`
	confirmed = `{"success":true,"errorCode":null,"data":null}`
)

func TestTheThreeEndpointsAnswerWithTheEnvelopesOfTheInterface(t *testing.T) {
	s := newStudio(t)

	header := signed(t, nil)
	header.Set("Authorization", "Bearer of a proxy")
	status, body := s.call(t, http.MethodGet, ramp.PathAssets+"?language=ko", header, nil)
	assert.Equal(t, 200, status)
	assert.Equal(t, `{"success":true,"errorCode":null,"data":{"v1":{"assets":[]}}}`, body)

	status, body = s.post(t, ramp.PathValidate, validateCall().Bytes(t))
	assert.Equal(t, 200, status)
	assert.Equal(t, approved, body)

	status, body = s.post(t, ramp.PathResult, resultCall().Bytes(t))
	assert.Equal(t, 200, status)
	assert.Equal(t, confirmed, body)

	assert.Equal(t, []string{"authenticate", "assets", "authenticate", "validate", "result"}, s.game.calls,
		"a result is authenticated by its HMAC alone")
}

// What is wrong with a body, ParseValidate and ParseResult say. The codes on the wire
// are the same under every Go release.
func TestABodyWithAWrongFieldReachesNoGame(t *testing.T) {
	type fault struct {
		name, code string
		body       []byte
	}
	validate, result := validateCall(), resultCall()
	for path, endpoint := range map[string]struct {
		status int
		wrong  []fault
	}{
		ramp.PathValidate: {400, []fault{
			{"an empty body", "INVALID_BODY", nil},
			{"a truncated object", "INVALID_BODY", validate.Bytes(t)[:40]},
			{"two uuids", "INVALID_UUID",
				bytes.Replace(validate.Bytes(t), []byte(`"uuid":`), []byte(`"uuid":null,"uuid":`), 1)},
			{"a digest of 31 bytes", "INVALID_DIGEST", validate.With("digest", testDigest[:64]).Bytes(t)},
			{"a user_sig of 0x", "INVALID_USER_SIG", validate.With("user_sig", "0x").Bytes(t)},
			{"another project than the configured", "INVALID_PROJECT_ID",
				validate.With("project_id", "project-2").Bytes(t)},
			{"an intent that is a list", "INVALID_INTENT", validate.With("intent", []any{}).Bytes(t)},
			{"mint from a token", "INVALID_INTENT_FROM_TYPE",
				validate.With("intent.from", oneorder.Side("ERC20", "item_gold", 1)).Bytes(t)},
		}},
		ramp.PathResult: {500, []fault{ // so that it comes again
			{"an array", "INVALID_BODY", []byte("[" + string(result.Bytes(t)) + "]")},
			{"no uuid", "INVALID_UUID", result.Without("uuid").Bytes(t)},
			// Whoever takes a missing status for a failure gives back twice.
			{"no receipt", "INVALID_RECEIPT_STATUS", result.Without("receipt").Bytes(t)},
			{"a status of text", "INVALID_RECEIPT_STATUS", result.With("receipt.status", "failed").Bytes(t)},
		}},
	} {
		s := newStudioWith(t, ramp.HandlerConfig{Terms: anyOf(t, "project-1", "")})
		for _, test := range endpoint.wrong {
			t.Run(path+"/"+test.name, func(t *testing.T) {
				status, body := s.post(t, path, test.body)
				assert.Equal(t, endpoint.status, status)
				assert.Equal(t, rejection(test.code), body)
				assert.Empty(t, s.game.calls, "nothing is passed to the game")
			})
		}
	}
}

func TestACallThatIsNotAuthenticReachesNoGame(t *testing.T) {
	type fault struct {
		name, header, code string
		values             []string
	}
	sessions := []fault{
		{"no session", "x-dapp-sessionid", "SESSION_MISSING", nil},
		{"an empty session", "x-dapp-sessionid", "SESSION_MISSING", []string{""}},
		{"a session that is no text", "x-dapp-sessionid", "SESSION_MISSING", []string{"\xff"}},
		{"two sessions", "x-dapp-sessionid", "SESSION_MISSING", []string{"session-1", "session-2"}},
		{"no token", "x-dapp-authorization", "ACCESS_TOKEN_MISSING", nil},
		{"an empty token", "x-dapp-authorization", "ACCESS_TOKEN_MISSING", []string{"Bearer "}},
		{"basic authorization", "x-dapp-authorization", "ACCESS_TOKEN_MISSING", []string{"Basic c2VjcmV0"}},
		{"two tokens", "x-dapp-authorization", "ACCESS_TOKEN_MISSING", []string{"Bearer a", "Bearer b"}},
	}
	other := must.Get(ramp.TextKey("another key"))(t)
	hmacs := func(body []byte) []fault {
		right := testKey(t).Sign(body)
		return []fault{
			{"no HMAC", "x-hmac-signature", "HMAC_MISSING", nil},
			{"an empty HMAC", "x-hmac-signature", "HMAC_MISSING", []string{""}},
			{"a truncated HMAC", "x-hmac-signature", "HMAC_INVALID", []string{right[:62]}},
			{"an HMAC that is not hex", "x-hmac-signature", "HMAC_INVALID", []string{strings.Repeat("zz", 32)}},
			{"an HMAC of another body", "x-hmac-signature", "HMAC_INVALID", []string{testKey(t).Sign([]byte("{}"))}},
			{"an HMAC under another key", "x-hmac-signature", "HMAC_INVALID", []string{other.Sign(body)}},
			{"an HMAC under an empty key", "x-hmac-signature", "HMAC_INVALID", []string{reference(nil, body)}},
			{"two HMACs", "x-hmac-signature", "HMAC_INVALID", []string{right, right}},
		}
	}
	validate, result := validateCall().Bytes(t), resultCall().Bytes(t)
	for _, call := range []struct {
		method, path string
		body         []byte
		status       int
		wrong        []fault
	}{
		{http.MethodGet, ramp.PathAssets, nil, 401, sessions},
		{http.MethodPost, ramp.PathValidate, validate, 401, append(hmacs(validate), sessions...)},
		{http.MethodPost, ramp.PathResult, result, 500, hmacs(result)},
	} {
		s := newStudio(t)
		for _, test := range call.wrong {
			t.Run(call.path+"/"+test.name, func(t *testing.T) {
				header := signed(t, call.body)
				header[test.header] = test.values
				status, answer := s.call(t, call.method, call.path, header, call.body)
				assert.Equal(t, call.status, status)
				assert.Equal(t, rejection(test.code), answer)
				assert.Empty(t, s.game.calls)
			})
		}
		if call.body == nil {
			continue
		}
		// Nothing of the body is looked at before its HMAC holds.
		for _, body := range []string{strings.Replace(string(call.body), `"amount":100`, `"amount":999`, 1),
			"not JSON"} {
			status, answer := s.call(t, call.method, call.path, signed(t, call.body), []byte(body))
			assert.Equal(t, call.status, status)
			assert.Equal(t, rejection("HMAC_INVALID"), answer)
			assert.Empty(t, s.game.calls)
		}
	}
}

// A result is authenticated by its HMAC. What its headers lack, or hold in
// another form, rejects nothing.
func TestAResultNeedsNoHeadersOfASession(t *testing.T) {
	for _, test := range []struct {
		name    string
		headers map[string][]string
		body    oneorder.Object
	}{
		{"no session", map[string][]string{"x-dapp-sessionid": nil}, resultCall()},
		// no HMAC covers the headers
		{"another session", map[string][]string{"x-dapp-sessionid": {"session-2"}}, resultCall()},
		{"a session that is no text", map[string][]string{"x-dapp-sessionid": {"\xff"}}, resultCall()},
		{"a session padded in the body", nil, resultCall().With("session_id", "\u00a0session-1 \u3000")},
		{"a session in the header alone", nil, resultCall().Without("session_id")},
		{"a session of null in the body", nil, resultCall().With("session_id", nil)},
		{"no session at all", map[string][]string{"x-dapp-sessionid": nil}, resultCall().Without("session_id")},
		{"no token", map[string][]string{"x-dapp-authorization": nil}, resultCall()},
		{"basic authorization", map[string][]string{"x-dapp-authorization": {"Basic c2VjcmV0"}}, resultCall()},
	} {
		t.Run(test.name, func(t *testing.T) {
			var steps []ramp.Step
			handler := newHandler(t, ramp.HandlerConfig{Players: noPlayers{}, Store: &ramp.MemoryStore{
				Apply: func(_ context.Context, step ramp.Step) error { steps = append(steps, step); return nil }}})
			validate, body := validateCall().Bytes(t), test.body.Bytes(t)
			require.Equal(t, 200, toValidate(handler)(t.Context(), signed(t, validate), validate).Status)
			header := signed(t, body)
			maps.Copy(header, test.headers)
			reply := toResult(handler)(t.Context(), header, body)
			assert.Equal(t, 200, reply.Status)
			assert.Equal(t, confirmed, string(reply.Body))
			require.Len(t, steps, 2)
			assert.Equal(t, "session-1", steps[1].Order.SessionID, "the one that was validated")
		})
	}
}

func TestABodyAboveTheLimitIsRejectedUnread(t *testing.T) {
	body := validateCall().With("padding", strings.Repeat("x", 4096)).Bytes(t)
	s := newStudioWith(t, ramp.HandlerConfig{MaxBody: 4096})
	for path, want := range map[string]int{ramp.PathValidate: 413, ramp.PathResult: 500} {
		status, answer := s.post(t, path, body)
		assert.Equal(t, want, status)
		assert.Equal(t, rejection("BODY_TOO_LARGE"), answer)
	}
	assert.Empty(t, s.game.calls)

	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: s.game, Store: s.game, Key: s.key,
		Signer: testSigner(t), MaxBody: 4096}))(t)
	rest := &countingReader{from: strings.NewReader(strings.Repeat(" ", 1<<20))}
	request := httptest.NewRequest(http.MethodPost, ramp.PathResult, io.MultiReader(bytes.NewReader(body), rest))
	request.Header = http.Header{"X-Hmac-Signature": {s.key.Sign(body)}}
	require.EqualValues(t, -1, request.ContentLength, "a body in chunks does not say how long it is")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	assert.Equal(t, 500, recorder.Code)
	assert.Equal(t, rejection("BODY_TOO_LARGE"), recorder.Body.String())
	assert.Less(t, rest.read, 64<<10, "what is behind the limit is not read")

	reply := toValidate(handler)(t.Context(), signed(t, body), body)
	assert.Equal(t, 413, reply.Status, "the core has the limit too")
	assertCode(t, reply.Err, ramp.CodeBodyTooLarge)
	assert.Empty(t, s.game.calls)
	fits := newStudioWith(t, ramp.HandlerConfig{MaxBody: int64(len(body))})
	status, _ := fits.post(t, ramp.PathValidate, body)
	assert.Equal(t, 200, status)
}

// countingReader counts what is read of it.
type countingReader struct {
	from io.Reader
	read int
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.read += n
	return n, err
}

// Who has no HMAC must not make the server hold bodies.
func TestABodyWithoutAnHMACIsRejectedUnread(t *testing.T) {
	s := newStudio(t)
	type endpoint struct {
		path     string
		status   int
		tooLarge int
	}
	for name, test := range map[string]struct {
		headers string
		code    string
	}{
		"no HMAC":      {"Content-Length: 1000000\r\n", "HMAC_MISSING"},
		"a short HMAC": {"Content-Length: 1000000\r\nX-HMAC-SIGNATURE: ab\r\n", "HMAC_INVALID"},
		"an HMAC not in hex": {"Content-Length: 1000000\r\nX-HMAC-SIGNATURE: " + strings.Repeat("z", 64) +
			"\r\n", "HMAC_INVALID"},
		"two HMACs": {"Content-Length: 1000000\r\n" +
			strings.Repeat("X-HMAC-SIGNATURE: "+strings.Repeat("0", 64)+"\r\n", 2), "HMAC_INVALID"},
		"a length that claims": {"Content-Length: 1048577\r\nX-HMAC-SIGNATURE: " + strings.Repeat("0", 64) +
			"\r\n", "BODY_TOO_LARGE"},
		"an endless body without an HMAC": {"Content-Length: 99999999999\r\n", "HMAC_MISSING"},
	} {
		for _, at := range []endpoint{{ramp.PathValidate, 401, 413}, {ramp.PathResult, 500, 500},
			{"/ramp/result", 500, 500}} {
			t.Run(at.path+"/"+name, func(t *testing.T) {
				want, code := at.status, test.code
				if code == "BODY_TOO_LARGE" {
					want = at.tooLarge
				}
				if at.path == "/ramp/result" {
					code = "NOT_FOUND"
				}
				conn := must.Get(net.Dial("tcp", s.Listener.Addr().String()))(t)
				defer conn.Close()
				must.Get(fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: game\r\n%s\r\n", at.path, test.headers))(t)
				// No byte of the body is sent, so only a server that does not wait answers.
				response := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
				defer response.Body.Close()
				body := must.Get(io.ReadAll(response.Body))(t)
				assert.Equal(t, want, response.StatusCode)
				assert.Equal(t, rejection(code), string(body))
			})
		}
	}
	assert.Empty(t, s.game.calls)
}

func TestConnectionsWithoutAnHMACHoldLittleMemory(t *testing.T) {
	if racedetector.On {
		t.Skip("the race detector needs memory of its own")
	}
	const connections = 100
	s := newStudio(t)
	payload := bytes.Repeat([]byte("x"), 1<<20)
	inUse := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse+m.StackInuse) / (1 << 20)
	}
	before := inUse()
	for range connections {
		conn := must.Get(net.Dial("tcp", s.Listener.Addr().String()))(t)
		defer conn.Close()
		must.Get(fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: game\r\nContent-Length: %d\r\n\r\n", ramp.PathResult,
			len(payload)))(t)
		go func() { _, _ = conn.Write(payload[1:]) }() // ends with the connection
		must.Get(http.ReadResponse(bufio.NewReaderSize(conn, 16), nil))(t)
	}
	held := inUse() - before
	t.Logf("%d connections hold %.1f MiB", connections, held)
	assert.Less(t, held, 20.0)
}

// The connection failed, not the caller: a result must be delivered again, whatever
// error a middleware's reader returns.
func TestABodyThatDoesNotComeInTimeIsAskedForAgain(t *testing.T) {
	for _, cause := range []error{io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, ramp.ErrHMACInvalid,
		&ramp.Rejection{Status: 400}} {
		s := newStudio(t)
		body := resultCall().Bytes(t)
		request := httptest.NewRequest(http.MethodPost, ramp.PathResult,
			io.MultiReader(bytes.NewReader(body[:20]), iotest.ErrReader(cause)))
		request.Header = signed(t, body)
		answer := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(answer, request)
		assert.Equal(t, 500, answer.Code)
		assert.Equal(t, rejection("INTERNAL_ERROR"), answer.Body.String())
		assert.Empty(t, s.game.calls)
	}
}

func TestOtherMethodsAndPathsAreRejected(t *testing.T) {
	s := newStudio(t)
	for path, allowed := range map[string]string{
		ramp.PathAssets: http.MethodGet, ramp.PathValidate: http.MethodPost, ramp.PathResult: http.MethodPost,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			if method == allowed {
				continue
			}
			request := must.Get(http.NewRequest(method, s.URL+path, nil))(t)
			response := must.Get(s.Client().Do(request))(t)
			answer := must.Get(io.ReadAll(response.Body))(t)
			response.Body.Close()
			assert.Equal(t, 405, response.StatusCode)
			assert.Equal(t, allowed, response.Header.Get("Allow"))
			assert.Equal(t, rejection("METHOD_NOT_ALLOWED"), string(answer))
		}
	}
	status, answer := s.call(t, http.MethodGet, "/api/other", nil, nil)
	assert.Equal(t, 404, status)
	assert.Equal(t, rejection("NOT_FOUND"), answer)
	assert.Empty(t, s.game.calls)
}

func TestTheGameDecides(t *testing.T) {
	say := func(err error) func() error { return func() error { return err } }
	broken := errors.New("the database is down: dsn=secret")
	tests := []struct {
		name   string
		config ramp.HandlerConfig
		game   *recorder
		path   string
		status int
		code   string
	}{
		{"a token that the game does not know, at assets", ramp.HandlerConfig{},
			&recorder{authenticate: say(ramp.Reject("INVALID_USER"))}, ramp.PathAssets, 401, "INVALID_USER"},
		{"assets that the game will not show", ramp.HandlerConfig{},
			&recorder{assets: say(ramp.Reject("BANNED"))}, ramp.PathAssets, 200, "BANNED"},
		{"assets that are broken", ramp.HandlerConfig{},
			&recorder{assets: say(broken)}, ramp.PathAssets, 500, "INTERNAL_ERROR"},
		{"an order that is rejected", ramp.HandlerConfig{},
			&recorder{validate: say(ramp.Reject("INVALID_BALANCE"))}, ramp.PathValidate, 200, "INVALID_BALANCE"},
		{"an order that breaks the game", ramp.HandlerConfig{},
			&recorder{validate: say(broken)}, ramp.PathValidate, 500, "INTERNAL_ERROR"},
		{"a result that could not be taken in", ramp.HandlerConfig{},
			&recorder{result: say(broken)}, ramp.PathResult, 500, "INTERNAL_ERROR"},
		{"a result that panics", ramp.HandlerConfig{},
			&recorder{result: func() error { panic("secret") }}, ramp.PathResult, 500, "INTERNAL_ERROR"},
		{"a result with a status of the game's own", ramp.HandlerConfig{},
			&recorder{result: say(&ramp.Rejection{Status: 400, Code: "OWN"})}, ramp.PathResult, 500, "OWN"},
		{"a result cannot be rejected, it comes again", ramp.HandlerConfig{},
			&recorder{result: say(ramp.Reject("INVALID_BALANCE"))}, ramp.PathResult, 500, "INVALID_BALANCE"},
		{"a status of the game's own", ramp.HandlerConfig{},
			&recorder{validate: say(&ramp.Rejection{Status: 599, Code: "OWN"})}, ramp.PathValidate, 599, "OWN"},
		{"a status above HTTP's", ramp.HandlerConfig{},
			&recorder{validate: say(&ramp.Rejection{Status: 600, Code: "OWN"})}, ramp.PathValidate, 500,
			"INTERNAL_ERROR"},
		{"a status below HTTP's", ramp.HandlerConfig{},
			&recorder{validate: say(&ramp.Rejection{Status: 199, Code: "OWN"})}, ramp.PathValidate, 500,
			"INTERNAL_ERROR"},
		{"codes that nobody has translated", ramp.HandlerConfig{TranslateCode: func(ramp.Code) ramp.Code { return "" }},
			&recorder{validate: say(ramp.Reject("SHORT"))}, ramp.PathValidate, 200, "SHORT"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStudioWith(t, test.config)
			s.game.authenticate, s.game.assets = test.game.authenticate, test.game.assets
			s.game.validate, s.game.result = test.game.validate, test.game.result
			method, body := http.MethodPost, validateCall().Bytes(t)
			switch test.path {
			case ramp.PathAssets:
				method, body = http.MethodGet, nil
			case ramp.PathResult:
				body = resultCall().Bytes(t)
			}
			status, answer := s.call(t, method, test.path, signed(t, body), body)
			assert.Equal(t, test.status, status)
			assert.Equal(t, rejection(test.code), answer, "and no signature, no data, no detail")
		})
	}
}

func TestAGameThatReturnsNonsenseIsOursToBlame(t *testing.T) {
	good := ramp.Asset{ID: "item_gold"}
	for name, tt := range map[string]struct {
		player *ramp.Player
		want   string
	}{
		"no player": {nil, "ramp: Players.Assets returned a nil player and no error"},
		"a balance below 0": {&ramp.Player{Assets: []ramp.Asset{good,
			{ID: "item_gem", Balance: ramp.NewAmount(-1)}}}, "assets[1].balance must not be negative"},
		"a name that is not UTF-8": {&ramp.Player{Name: "\xff"}, "name must be valid UTF-8"},
		"an ID that is not UTF-8": {&ramp.Player{Assets: []ramp.Asset{{ID: "\xff", Balance: ramp.NewAmount(1)}}},
			"assets[0].id must be valid UTF-8"},
		"an asset that has no name": {&ramp.Player{Assets: []ramp.Asset{good, {}}}, "assets[1].id is required"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.player != nil {
				tt.want = "ramp: player returned by Players.Assets: ramp: " + tt.want
			}
			config := inMemory(ramp.HandlerConfig{})
			config.Players = &listing{player: tt.player}
			handler := newHandler(t, config)
			reply := toAssets(handler)(t.Context(), signed(t, nil))
			assert.Equal(t, 500, reply.Status)
			assert.EqualError(t, errors.Unwrap(reply.Err), tt.want)
			assert.Equal(t, rejection("INTERNAL_ERROR"), string(reply.Body))
		})
	}
}

func TestACallLeavesOneRecordWithoutSecrets(t *testing.T) {
	records := func(s *studio) []map[string]any {
		var all []map[string]any
		for line := range strings.Lines(s.log.String()) {
			var record map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &record))
			all = append(all, record)
		}
		return all
	}

	var observed strings.Builder
	observe := func(op ramp.Operation) { fmt.Fprintf(&observed, "%+v %v %+v\n", op, op.Err, op.Step) }
	s := newStudioWith(t, ramp.HandlerConfig{Observer: ramp.Observer{
		Start: func(ctx context.Context, op ramp.Operation) context.Context { observe(op); return ctx },
		End:   func(_ context.Context, op ramp.Operation) { observe(op) },
	}})
	s.game.result = func() error { panic("of the game") }
	s.post(t, ramp.PathValidate, validateCall().Bytes(t))
	s.post(t, ramp.PathValidate, validateCall().With("digest", "0x").Bytes(t))
	s.post(t, ramp.PathResult, resultCall().Bytes(t))
	s.call(t, http.MethodGet, ramp.PathAssets, signed(t, nil), nil)

	got := records(s)
	require.Len(t, got, 4)
	for i, want := range []struct{ level, endpoint, outcome string }{
		{"INFO", "validate", "success"},
		{"WARN", "validate", "INVALID_DIGEST"},
		{"ERROR", "result", "INTERNAL_ERROR"},
		{"INFO", "assets", "success"},
	} {
		assert.Equal(t, want.level, got[i]["level"])
		assert.Equal(t, want.endpoint, got[i]["endpoint"])
		assert.Equal(t, want.outcome, got[i]["outcome"])
		assert.Contains(t, got[i], "duration")
	}
	assert.Equal(t, []string{"duration", "endpoint", "level", "msg", "outcome", "session_id", "status", "time"},
		slices.Sorted(maps.Keys(got[3])),
		"what there is nothing to say of is left out")
	assert.Equal(t, testUUID, got[0]["uuid"])
	assert.Contains(t, got[2]["stack"], "TestACallLeavesOneRecordWithoutSecrets", "a panic is logged where it happened")
	for _, secret := range []string{"secret-token", "my_secret_salt", testSignature,
		s.key.Sign(validateCall().Bytes(t))} {
		assert.NotContains(t, s.log.String()+observed.String(), secret)
	}
	const userSig = `\b0xaa55\b` // as a word, because a pointer in a stack may begin with it
	assert.NotRegexp(t, userSig, s.log.String()+observed.String())
	assert.Contains(t, observed.String(), testUUID)
}

// checked is a store that finds a fault in itself.
type checked struct {
	ramp.Store
	fault error
}

// A clock that is none gives orders a wrong time, which a proof compares with the chain's.
func TestCheckWarnsOfAClockThatIsNone(t *testing.T) {
	begun := time.Now()
	for name, tt := range map[string]struct {
		now  func() time.Time
		want string
	}{
		"that of the computer": {nil, ""},
		"a little slow":        {func() time.Time { return time.Now().Add(-30 * time.Second) }, ""},
		"20 minutes ahead": {
			func() time.Time { return time.Now().Add(20 * time.Minute) },
			"it is 20m0s ahead of the clock of this computer"},
		"of last year": {func() time.Time { return begun.AddDate(-1, 0, 0) },
			"it is 8760h0m0s behind the clock of this computer"},
		"as at the start": {func() time.Time { return begun }, "it stands still"},
		"none":            {func() time.Time { return time.Time{} }, "it returns the zero time"},
	} {
		var log bytes.Buffer
		handler := newHandler(t, ramp.HandlerConfig{
			Players: noPlayers{}, Now: tt.now, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Store: &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }},
		})
		require.NoError(t, handler.Check(t.Context()), name)
		if tt.want == "" {
			assert.Empty(t, log.String(), name)
			continue
		}
		assert.Contains(t, log.String(), `msg="ramp: check" warning="orders get a wrong time`, name)
		assert.Contains(t, log.String(), tt.want, name)
	}
}

func (c checked) Check(_ context.Context, network ramp.Network) error {
	if network != ramp.Testnet {
		return errors.New("not the network of the terms")
	}
	return c.fault
}

// Whose wallet it is, is asked before anything is signed or stored.
func TestTheWalletOfAValidateCallIsAskedAboutAfterThePolicy(t *testing.T) {
	for name, tt := range map[string]struct {
		policy, wallet error
		want           string
		asked          []string
	}{
		"both approve":           {nil, nil, "200", []string{"policy", "wallet"}},
		"the wallet is rejected": {nil, ramp.Reject("WRONG_WALLET"), "WRONG_WALLET", []string{"policy", "wallet"}},
		"the wallet fails":       {nil, errors.New("no connection"), "500", []string{"policy", "wallet"}},
		"the policy rejects":     {ramp.Reject("TOO_MANY"), nil, "TOO_MANY", []string{"policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			game, v := newVault(t, func(c *ramp.HandlerConfig) {
				c.Policy = func(context.Context, ramp.Session, *ramp.ValidateRequest) error {
					asked = append(asked, "policy")
					return tt.policy
				}
				c.Wallet = func(_ context.Context, s ramp.Session, wallet common.Address) error {
					asked = append(asked, "wallet")
					assert.Equal(t, player.ID, s.ID)
					assert.Equal(t, common.HexToAddress(mintRequest(t).UserAddress), wallet)
					return tt.wallet
				}
			})
			assert.Equal(t, tt.want, answerTo(game.Validate(t, t.Context(), player, mintRequest(t))))
			assert.Equal(t, tt.asked, asked)
			assert.Equal(t, tt.want == "200", v.Gold["session-1"] == 900)
		})
	}
	assert.NoError(t, ramp.AnyWallet(t.Context(), player, common.Address{}))
}

// withStore returns a config with players and a store.
func withStore(c ramp.HandlerConfig) ramp.HandlerConfig {
	c.Players, c.Store = noPlayers{}, &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	return c
}

// confirmer confirms everything, and finds faults.
type confirmer struct{ config, fault error }

func (c confirmer) CheckConfig(*ramp.HandlerConfig) error            { return c.config }
func (c confirmer) Check(context.Context, *ramp.HandlerConfig) error { return c.fault }
func (c confirmer) Confirm(_ context.Context, _ ramp.Store, _ *ramp.Result,
	finish ramp.Transition) (ramp.Transition, error) {
	return finish, nil
}

func TestCheckFindsEveryFaultBeforeAPlayerPays(t *testing.T) {
	key := must.Get(ethcrypto.HexToECDSA(vectorKey[2:]))(t)
	signs := func(sign func(context.Context, []byte) ([]byte, error)) *ramp.Signer {
		return must.Get(ramp.NewFuncSigner(vectorAddress, sign))(t)
	}
	rehashed := signs(func(_ context.Context, digest []byte) ([]byte, error) {
		return ethcrypto.Sign(ethcrypto.Keccak256(digest), key)
	})
	slow := signs(func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	full := errors.New("the disk is full")
	elsewhere := fmt.Errorf("%w: its chain ID is 1", ramp.ErrWrongChain)
	for name, tt := range map[string]struct {
		change func(*ramp.HandlerConfig)
		want   []string // parts of the error; nil for none
		is     error
	}{
		"nothing": {func(*ramp.HandlerConfig) {}, nil, nil},
		"the store": {func(c *ramp.HandlerConfig) { c.Store = checked{c.Store, full} },
			[]string{"the disk is full"}, full},
		"a key service that hashes the digest again": {func(c *ramp.HandlerConfig) { c.Signer = rehashed },
			[]string{"the signer hashed the digest again, with Keccak-256"}, ramp.ErrSignature},
		"a key service that is slow": {func(c *ramp.HandlerConfig) { c.Signer, c.SignTimeout = slow, time.Millisecond },
			[]string{"no signature within 1ms, which is HandlerConfig.SignTimeout"}, context.DeadlineExceeded},
		"another chain": {func(c *ramp.HandlerConfig) { c.Confirm = confirmer{fault: elsewhere} },
			[]string{"its chain ID is 1"}, ramp.ErrWrongChain},
		"all at once": {func(c *ramp.HandlerConfig) {
			c.Store, c.Signer, c.Confirm = checked{c.Store, full}, rehashed, confirmer{fault: elsewhere}
		}, []string{"the disk is full", "hashed the digest again", "its chain ID is 1"}, full},
	} {
		t.Run(name, func(t *testing.T) {
			config := withStore(ramp.HandlerConfig{Terms: anyOf(t, "project-1", ramp.Testnet), Key: testKey(t),
				Signer: testSigner(t), Confirm: confirmer{}})
			tt.change(&config)
			handler := must.Get(ramp.NewHandler(config))(t)
			err := handler.Check(t.Context())
			if tt.want == nil {
				assert.NoError(t, err)
				return
			}
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
			assert.ErrorIs(t, err, tt.is)
		})
	}
}

// Everybody ends their program after an error of Check, and a node that is down must not
// stop a deployment: only results wait for it.
func TestCheckLogsAnOutageAndReportsWhatSomebodyMustCorrect(t *testing.T) {
	page := func(code int) roundTripper { return status(code, nil, "<html>") }
	fails := func(err error) roundTripper { return func(*http.Request) (*http.Response, error) { return nil, err } }
	dial := func(err error) roundTripper { return fails(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	for name, tt := range map[string]struct {
		node roundTripper
		want string // part of the error; empty if it is only logged
	}{
		"no answer in time":          {hang, ""},
		"a refused connection":       {dial(syscall.ECONNREFUSED), ""},
		"a connection that ends":     {fails(io.EOF), ""},
		"a name that cannot be read": {dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), ""},
		"429":                        {page(429), ""},
		"500":                        {page(500), ""},
		"503":                        {page(503), ""},
		"a rate limit": {status(200, nil,
			`{"id":null,"error":{"code":-32005,"message":"limit exceeded"}}`), ""},
		"a rate limit in 429": {status(429, nil, `{"id":null,"error":{"code":-32601,"message":"no"}}`), ""},

		"a name that does not exist": {dial(&net.DNSError{Err: "no such host", IsNotFound: true}), "no such host"},
		"a wrong certificate":        {fails(x509.UnknownAuthorityError{}), "unknown authority"},
		"401":                        {page(401), "HTTP 401"},
		"403":                        {page(403), "HTTP 403"},
		"404":                        {page(404), "HTTP 404"},
		"a redirect":                 {status(302, map[string]string{"Location": "https://a.example"}, ""), "HTTP 302"},
		"no JSON":                    {page(200), "not JSON-RPC"},
		"no such method": {status(200, nil,
			`{"id":null,"error":{"code":-32601,"message":"no"}}`), "-32601"},
		"another chain": {status(200, nil, `{"id":1,"result":"0x1"}`), "its chain ID is 1"},
	} {
		inBubble(t, name, func(t *testing.T) {
			var log bytes.Buffer
			node := rpcOver(t, tt.node, ramp.RPCConfig{ChainID: 1112, Retries: -1})
			handler := must.Get(
				ramp.NewHandler(withStore(ramp.HandlerConfig{Terms: anyTerms, Key: testKey(t), Signer: testSigner(t),
					Confirm: rampproof.Confirmed(node, 1), Logger: slog.New(slog.NewTextHandler(&log, nil))})))(t)
			err := handler.Check(t.Context())
			if tt.want == "" {
				assert.NoError(t, err)
				assert.Contains(t, log.String(),
					`level=WARN msg="ramp: a node cannot be reached: results wait for it" error="ramp: check `+
						`https://node.example.com`)
				return
			}
			assert.ErrorContains(t, err, tt.want)
			assert.Empty(t, log.String())
		})
	}

	// The fallback is looked at, too, and its fault is an error although the first is down.
	n := &twoNodes{first: dial(syscall.ECONNREFUSED),
		fallback: &oneorder.Chain{Say: map[string]string{"eth_chainId": `"result":"0x1"`}}}
	handler := must.Get(
		ramp.NewHandler(withStore(ramp.HandlerConfig{Terms: anyTerms, Key: testKey(t), Signer: testSigner(t),
			Confirm: rampproof.Confirmed(n.client(t, ramp.RPCConfig{ChainID: 1112, Retries: -1}), 1),
			Logger:  slog.New(slog.DiscardHandler)})))(t)
	err := handler.Check(t.Context())
	assert.ErrorIs(t, err, ramp.ErrWrongChain)
	assert.NotContains(t, err.Error(), "refused")
}

func TestAHandlerThatCannotWorkIsNotMade(t *testing.T) {
	game := &recorder{}
	config := ramp.HandlerConfig{Terms: anyTerms, Players: game, Store: game, Key: testKey(t), Signer: testSigner(t)}
	assertCannotWork(t, config, ramp.NewHandler, []wrong[ramp.HandlerConfig]{
		{"HandlerConfig.Players is required", func(c *ramp.HandlerConfig) { c.Players = nil }},
		{"HandlerConfig.Store is required", func(c *ramp.HandlerConfig) { c.Store = nil }},
		{"MemoryStore.Apply is required", func(c *ramp.HandlerConfig) { c.Store = &ramp.MemoryStore{} }},
		{"HandlerConfig.Key is required", func(c *ramp.HandlerConfig) { c.Key = ramp.HMACKey{} }},
		{"HandlerConfig.Signer is required", func(c *ramp.HandlerConfig) { c.Signer = nil }},
		{"HandlerConfig.MaxBody must not be negative", func(c *ramp.HandlerConfig) { c.MaxBody = -1 }},
		{"HandlerConfig.RejectStatus must be 200, or 400 to 499", func(c *ramp.HandlerConfig) { c.RejectStatus = 500 }},
		{"HandlerConfig.Wallet is required", func(c *ramp.HandlerConfig) {
			c.Confirm = confirmer{config: &ramp.InvalidError{Fields: []ramp.FieldError{{Path: "HandlerConfig.Wallet",
				Problem: "is required"}}}}
		}},
		{"HandlerConfig.Confirm cannot be used", func(c *ramp.HandlerConfig) {
			c.Confirm = confirmer{config: errors.New("cannot be used")}
		}},
	})
	for status, ok := range map[int]bool{0: true, 199: false, 200: true, 201: false, 399: false, 400: true, 499: true,
		500: false, -1: false} {
		config.RejectStatus = status
		_, err := ramp.NewHandler(config)
		assert.Equal(t, ok, err == nil, status)
	}
	_, err := ramp.NewHandler(ramp.HandlerConfig{Signer: &ramp.Signer{}, MaxBody: -1, SignTimeout: -1})
	assertFields(t, err, "HandlerConfig.Players is required", "HandlerConfig.Store is required",
		"HandlerConfig.Terms is required", "HandlerConfig.Key is required",
		"HandlerConfig.Signer is required", "HandlerConfig.SignTimeout must not be negative",
		"HandlerConfig.MaxBody must not be negative")
	assert.ErrorIs(t, err, ramp.ErrHMACKey)
	assert.ErrorIs(t, err, ramp.ErrValidatorKey)
}

// A failure that nobody hears of is found by nobody. Programs set their logger
// late, so it is looked up at each record.
func TestWithoutALoggerFailuresGoToTheDefaultOne(t *testing.T) {
	game := &recorder{}
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: game, Store: game,
		Key: testKey(t), Signer: testSigner(t)}))(t)
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	defer slog.SetDefault(before)

	body := resultCall().Bytes(t)
	header := http.Header{"X-Hmac-Signature": {testKey(t).Sign(body)}}
	require.Equal(t, 200, toResult(handler)(t.Context(), header, body).Status)
	assert.Empty(t, log.String(), "a success is not logged")

	require.Equal(t, 500, toResult(handler)(t.Context(), nil, body).Status)
	assert.Contains(t, log.String(), `"outcome":"HMAC_MISSING"`)
	log.Reset()

	body = resultCall().With("session_id", 7).Bytes(t)
	header = http.Header{"X-Hmac-Signature": {testKey(t).Sign(body)}}
	require.Equal(t, 200, toResult(handler)(t.Context(), header, body).Status)
	assert.Contains(t, log.String(), `"level":"WARN"`)
	assert.Contains(t, log.String(), `"unreadable":"ramp: session_id must be a string, not a number"`)
}

func TestAReplyBelongsToItsCaller(t *testing.T) {
	handler := newHandler(t, ramp.HandlerConfig{})
	body := resultCall().Bytes(t)
	header := http.Header{"X-Hmac-Signature": {testKey(t).Sign(body)}}
	reply := toResult(handler)(t.Context(), header, body)
	want := string(reply.Body)
	clear(reply.Body)
	assert.Equal(t, want, string(toResult(handler)(t.Context(), header, body).Body))
}

// Each of these took a new user more than a minute to find.
func TestTheLogNamesTheCause(t *testing.T) {
	type reader = func(http.ResponseWriter, io.ReadCloser) io.ReadCloser
	consumed := func(_ http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
		_, _ = io.Copy(io.Discard, body)
		return body
	}
	cut := func(_ http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
		return io.NopCloser(io.LimitReader(body, 300))
	}
	limited := func(w http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
		return http.MaxBytesReader(w, body, 300)
	}
	padded := func(n int) []byte { return resultCall().With("padding", strings.Repeat("x", n)).Bytes(t) }
	validate, result, long := validateCall().Bytes(t), padded(1000), padded(1<<20)
	compressed := signed(t, validate)
	compressed["content-encoding"] = []string{"gzip"}
	token := []string{"Bearer a", "Bearer b"}
	for name, test := range map[string]struct {
		path       string
		header     http.Header
		body       []byte
		middleware reader
		want       string
	}{
		"a middleware consumed the body": {ramp.PathValidate, signed(t, validate), validate, consumed,
			"the body has 0 bytes, and Content-Length is "},
		"a middleware cut the body": {ramp.PathResult, signed(t, result), result, cut,
			"the body has 300 bytes, and Content-Length is "},
		"a middleware has a limit of its own": {ramp.PathResult, signed(t, result), result, limited,
			"the body is larger than 300 bytes: raise that limit (HandlerConfig.MaxBody is 1048576)"},
		"a limit that is too low": {ramp.PathResult, signed(t, long), long, nil,
			"the body is larger than 1048576 bytes: raise that limit (HandlerConfig.MaxBody is 1048576)"},
		"an empty body with an HMAC of its own": {ramp.PathValidate, signed(t, nil), nil, nil,
			"body must be one JSON object, but is empty"},
		"a session that occurs twice": {ramp.PathAssets, http.Header{"X-Dapp-Sessionid": {"a", "b"}}, nil, nil,
			"X-Dapp-Sessionid occurs more than once"},
		"a token that occurs twice": {ramp.PathAssets,
			http.Header{"X-Dapp-Sessionid": {"a"}, "X-Dapp-Authorization": token}, nil, nil,
			"X-Dapp-Authorization occurs more than once"},
		"an HMAC that occurs twice": {ramp.PathResult, http.Header{"X-Hmac-Signature": {"a", "b"}}, nil, nil,
			"it occurs more than once"},
		"a session that is no text": {ramp.PathAssets, http.Header{"X-Dapp-Sessionid": {"\xff"}}, nil, nil,
			"or not UTF-8"},
		"a body that was compressed": {ramp.PathValidate, compressed, []byte("\x1f\x8b"), nil,
			"the body has a Content-Encoding, but the HMAC covers the body that the service sent"},
		"a handler under a prefix": {"/ramp" + ramp.PathValidate, signed(t, validate), validate, nil,
			`got POST \"/ramp/api/validate\", but the path of validate calls is /api/validate: correct the console`},
		"a handler without its prefix": {"/assets", nil, nil, nil,
			`the handler got GET \"/assets\", but the path of assets calls is /api/assets: correct the console`},
		"a path that a console misspells": {"/api/results", signed(t, result), result, nil,
			`got POST \"/api/results\", but the path of result calls is /api/result, or of validate calls, ` +
				`/api/validate: `},
		"a path that is not printed": {"/api/result%0A", signed(t, result), result, nil, `got POST \"/api/result\\n\"`},
		"a result at the address of validate calls": {ramp.PathValidate, signed(t, result), result, nil,
			"a result came to the address of validate calls: in the console, the address of validate calls " +
				"must end in " +
				"/api/validate and that of results in /api/result"},
		"a validate call at the address of results": {ramp.PathResult, signed(t, validate), validate, nil,
			"a validate call came to the address of results: in the console,"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t)
			if test.middleware != nil {
				next := s.Config.Handler
				s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Body = test.middleware(w, r.Body)
					next.ServeHTTP(w, r)
				})
			}
			method := http.MethodPost
			if strings.HasSuffix(test.path, "/assets") {
				method = http.MethodGet
			}
			s.call(t, method, test.path, test.header, test.body)
			assert.Contains(t, s.log.String(), test.want)
			assert.Empty(t, s.game.calls)
		})
	}
	s := newStudio(t)
	header := signed(t, []byte("another body"))
	header["content-encoding"] = []string{"Identity"}
	s.call(t, http.MethodPost, ramp.PathValidate, header, validateCall().Bytes(t))
	assert.Contains(t, s.log.String(), "it was made for another body or with another key")
	assert.NotContains(t, s.log.String(), "Content-Encoding", "which changes nothing here")

	s = newStudio(t)
	for options, want := range map[string]int{`{}`: 0, `null`: 0, `{"vip":1}`: 1, `[7]`: 1, `""`: 1} {
		s.log.Reset()
		s.post(t, ramp.PathValidate, validateCall().With("intent.target_candidate", json.RawMessage(options)).Bytes(t))
		assert.Equal(t, want, strings.Count(s.log.String(), `"target_candidate":true`), options)
		assert.Equal(t, want, strings.Count(s.log.String(), `"level":"WARN"`), options)
		rest, _, _ := strings.Cut(s.log.String(), `"order":`)
		assert.NotContains(t, rest, "vip", "only the order has them")
	}

	s = newStudio(t)
	status, _ := s.call(t, http.MethodGet, "/wp-login.php", nil, nil)
	assert.Equal(t, 404, status)
	assert.Empty(t, s.log.String(), "what is not ours is not logged")
}

// What another framework makes of headers is not always what net/http does.
func TestHeadersThatNetHTTPDoesNotMake(t *testing.T) {
	// the second folds to the first
	for _, name := range []string{"X-Dapp-Sessionid", "X-Dapp-\u017fe\u017f\u017fionid"} {
		header := http.Header{name: {"a"}, "X-Dapp-Authorization": {"Bearer x"}}
		if name == ramp.HeaderSession {
			header[name] = []string{}
		}
		_, err := ramp.ParseSession(header)
		assertCode(t, err, "SESSION_MISSING")
	}
	session := must.Get(ramp.ParseSession(http.Header{"x-dapp-sessionid": {" \t alice "},
		"X-DAPP-AUTHORIZATION": {"  bearer   token-1  "}}))(t)
	assert.Equal(t, "alice token-1", session.ID+" "+session.Token.Reveal())

	handler := newHandler(t, ramp.HandlerConfig{})
	body := resultCall().Bytes(t)
	signature := testKey(t).Sign(body)
	assert.Equal(t, 200,
		toResult(handler)(t.Context(), http.Header{"X-HMAC-SIGNATURE": {" " + strings.ToUpper(signature) + "\t"}},
			body).Status)
	reply := toResult(handler)(t.Context(),
		http.Header{"X-Hmac-Signature": {signature}, "x-hmac-signature": {signature}}, body)
	assert.ErrorIs(t, reply.Err, ramp.ErrHMACInvalid)
	assert.ErrorContains(t, reply.Err, "it occurs more than once")
}

// bank lists the gold of a vault.
type bank struct {
	noPlayers
	*oneorder.Vault
}

func (b bank) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	b.Lock()
	defer b.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(b.Gold[s.ID])}}}, nil
}

type placer = func(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount,
	faults ...ramptest.Fault) (*ramptest.PlacedOrder, error)

// For an hour, every result meets one of these. The service delivers by the schedule of
// the interface (8), and each order must end rightly once the trouble is over.
func TestAnHourOfTroubleLosesNoOrder(t *testing.T) {
	otherKey := must.Get(ramp.TextKey("the key before the rotation"))(t)
	type trouble struct {
		config func(*ramp.HandlerConfig)
		front  func(http.ResponseWriter, *http.Request) // is called before the handler
	}
	configured := func(change func(*ramp.HandlerConfig)) trouble { return trouble{config: change} }
	before := func(change func(http.ResponseWriter, *http.Request)) trouble { return trouble{front: change} }
	path := func(change func(string) string) trouble {
		return before(func(_ http.ResponseWriter, r *http.Request) { r.URL.Path = change(r.URL.Path) })
	}
	failing := func(fail func() error) trouble {
		return configured(func(c *ramp.HandlerConfig) {
			c.Store = &recorder{result: fail}
		})
	}
	for name, trouble := range map[string]trouble{
		"the key is wrong":          configured(func(c *ramp.HandlerConfig) { c.Key = otherKey }),
		"the limit is too low":      configured(func(c *ramp.HandlerConfig) { c.MaxBody = 100 }),
		"another database":          failing(func() error { return ramp.ErrOrderUnknown }),
		"the game panics":           failing(func() error { panic("a bug") }),
		"the call is canceled":      failing(func() error { return context.Canceled }),
		"the game rejects with 200": failing(func() error { return &ramp.Rejection{Status: 200, Code: "OWN"} }),
		"the game rejects with 400": failing(func() error {
			return &ramp.Rejection{Status: 400,
				Code: "INVALID_MESSAGE"}
		}),
		"the game rejects with a NUL": failing(func() error { return ramp.Reject("\x00\xff") }),
		"the codes have a bug": configured(func(c *ramp.HandlerConfig) {
			c.Key, c.TranslateCode = otherKey, func(ramp.Code) ramp.Code { panic("a bug") }
		}),
		"a proxy removes the HMAC": before(func(_ http.ResponseWriter,
			r *http.Request) {
			r.Header.Del(ramp.HeaderHMAC)
		}),
		"a proxy repeats the HMAC": before(func(_ http.ResponseWriter, r *http.Request) {
			r.Header.Add(ramp.HeaderHMAC, r.Header.Get(ramp.HeaderHMAC))
		}),
		"a proxy cuts the HMAC": before(func(_ http.ResponseWriter,
			r *http.Request) {
			r.Header.Set(ramp.HeaderHMAC, "ab")
		}),
		"a proxy changes the body": before(func(_ http.ResponseWriter,
			r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("{}"))
		}),
		"a middleware has a limit": before(func(w http.ResponseWriter,
			r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 100)
		}),
		"the path has a prefix":      path(func(p string) string { return "/ramp" + p }),
		"the path lost its prefix":   path(func(p string) string { return strings.TrimPrefix(p, "/api") }),
		"the path is in upper case":  path(strings.ToUpper),
		"the path ends in a space":   path(func(p string) string { return p + " " }),
		"the path is another one":    path(func(string) string { return "/hooks/done" }),
		"the path is missing":        path(func(string) string { return "/" }),
		"the path has two slashes":   path(func(p string) string { return "/" + p }),
		"the path is that of assets": path(func(string) string { return ramp.PathAssets }),
		"the addresses are swapped":  path(func(string) string { return ramp.PathValidate }),
		"a redirect makes it a GET": before(func(_ http.ResponseWriter, r *http.Request) {
			r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
		}),
		"the project is mistyped": configured(func(c *ramp.HandlerConfig) { c.Terms = anyOf(t, "project-11", "") }),
		"another network's handler": configured(func(c *ramp.HandlerConfig) {
			c.Terms = anyOf(t, "project-1",
				ramp.Mainnet)
		}),
		"the connections are broken": before(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	} {
		inBubble(t, name, func(t *testing.T) {
			service := ramptest.Start(t, ramptest.Config{Key: testKey(t), Validator: testSigner(t).Address(),
				Handler: http.NotFoundHandler(), NoThief: true})
			v := &oneorder.Vault{Gold: map[string]int64{}}
			store := &ramp.MemoryStore{Apply: v.Apply}
			config := ramp.HandlerConfig{Terms: anyOf(t, "project-1", ramp.Testnet),
				Players: bank{Vault: v}, Store: store,
				Key: testKey(t), Signer: testSigner(t), Now: service.Now, Logger: slog.New(slog.DiscardHandler),
				OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }}
			rightly := must.Get(ramp.NewHandler(config))(t)
			service.SetHandler(rightly)
			client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: testKey(t),
				HTTPClient: service.Client()}))(t)
			var orders []*ramptest.PlacedOrder
			place := func(session string, of placer, faults ...ramptest.Fault) {
				v.Gold[session] = 1000
				request := testRequest()
				request.Intent.Outputs = request.Intent.Materials
				started := must.Get(client.Initialize(t.Context(), request))(t)
				order := must.Get(of(t.Context(), started.UUID,
					ramp.Session{ID: session, Token: ramp.NewAccessToken("token-" + session)},
					ramp.NewAmount(1), faults...))(t)
				orders = append(orders, order)
			}
			place("minted", service.Mint)
			place("failed", service.Mint, ramptest.TransactionFails())
			place("burned", service.Burn)

			wrongly := config
			if trouble.config != nil {
				trouble.config(&wrongly)
			}
			handler := must.Get(ramp.NewHandler(wrongly))(t)
			service.SetHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != ramp.PathResult {
					rightly.ServeHTTP(w, r)
					return
				}
				if trouble.front != nil {
					trouble.front(w, r)
				}
				handler.ServeHTTP(w, r)
			}))
			for _, delivery := range service.Advance(time.Hour) {
				assert.False(t, delivery.Next.IsZero(), "%s", delivery)
				assert.Contains(t, []int{0, 500}, delivery.Status, "%s", delivery)
			}
			service.SetHandler(rightly)
			service.Advance(12 * time.Hour)
			for _, order := range orders {
				assert.Equal(t, ramptest.Confirmed, service.State(order), "%s", order)
			}
			assert.Equal(t, map[string]int64{"minted": 900, "failed": 1000, "burned": 1100}, v.Gold)
		})
	}
}

// mayBeResult reports whether a call has a well-formed HMAC header.
func mayBeResult(header http.Header) bool {
	for name, values := range header {
		wellFormed := regexp.MustCompile(`^\s*[0-9a-fA-F]{64}\s*$`).MatchString
		if strings.ToLower(name) == "x-hmac-signature" && slices.ContainsFunc(values, wellFormed) {
			return true
		}
	}
	return false
}

// Whoever calls the result endpoint, and however, an answer is a confirmation, a
// decision of the game, or one after which the service delivers again.
func FuzzAnswersToResults(f *testing.F) {
	right := resultCall().Bytes(f)
	f.Add("POST", "/api/result", "Content-Length", "7", right, testKey(f).Sign(right), byte(0))
	f.Add("POST", "/ramp/api/RESULT//", "x-hmac-signature", "ab", right, "", byte(1))
	f.Add("GET", "/result", "X-Dapp-Sessionid", "\xff", []byte("[]"), "0x", byte(2))
	f.Add("PUT", "/api/result", "Content-Encoding", "gzip", []byte{}, strings.Repeat("0", 64), byte(3))
	f.Add("POST", "/api/result", "Expect", "100-continue", bytes.Repeat([]byte("x"), 5000),
		strings.Repeat("0", 64), byte(4))
	f.Add("", "/x/result", "Transfer-Encoding", "chunked", right, testKey(f).Sign(right), byte(5))
	f.Fuzz(func(t *testing.T, method, path, name, value string, body []byte, signature string, answer byte) {
		errs := []error{nil, context.Canceled, &ramp.Rejection{Status: int(answer) * 4, Code: ramp.Code(value)},
			ramp.Reject(ramp.Code(value))}
		says := int(answer) % (len(errs) + 1)
		game := &recorder{result: func() error {
			if says == len(errs) {
				panic(value)
			}
			return errs[says]
		}}
		handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: game, Store: game,
			Key: testKey(t), Signer: testSigner(t), MaxBody: 4096,
			Logger:        slog.New(slog.DiscardHandler),
			TranslateCode: func(c ramp.Code) ramp.Code { return c + ramp.Code(value) }}))(t)
		if answer%2 == 0 { // so that the fuzzer gets further than the HMAC
			signature = testKey(t).Sign(body)
		}
		request := &http.Request{Method: method, URL: &url.URL{Path: path}, ContentLength: int64(len(body)),
			Header: http.Header{name: {value}, ramp.HeaderHMAC: {signature}}, Body: io.NopCloser(bytes.NewReader(body))}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		called := len(game.calls) > 0
		posted := method == http.MethodPost
		ends := strings.HasSuffix(path, "/result")
		switch {
		case posted && path == ramp.PathResult && called && says == 0:
			require.Equal(t, 200, w.Code)
		case posted && ends, mayBeResult(request.Header):
			require.Equal(t, 500, w.Code)
		case path == ramp.PathResult:
			require.Equal(t, 405, w.Code)
		case ends:
			require.Equal(t, 404, w.Code)
		}
		if called {
			require.True(t, posted && path == ramp.PathResult)
		}
	})
}
