package record_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/record"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

const (
	consoleKey = "c2VjcmV0LWtleS1vZi10aGUtY29uc29sZQ" // with two readings
	validator  = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
	token      = "token-of-the-player"
	session    = "session-1"
)

// rig is a game and an emulated service with a recorder between them.
type rig struct {
	t        *testing.T
	service  *ramptest.Service
	client   *ramp.Client
	recorder *record.Recorder
	folder   string
	report   *record.Report
	front    string                                            // the address of the recorder before the game
	answer   func(w http.ResponseWriter, r *http.Request) bool // instead of the game, if it returns true
	gold     atomic.Int64
}

func (g *rig) Authenticate(_ context.Context, s ramp.Session) error {
	if s.Token.Reveal() != token {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g *rig) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{PlayerID: "player-7", Name: "Gi-dong <Lv.7> 홍길동",
		Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(g.gold.Load())}}}, nil
}

func (g *rig) apply(_ context.Context, step ramp.Step) error {
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		g.gold.Add(delta)
	}
	return nil
}

// between starts all three.
func between(t *testing.T, c ramptest.Config) *rig {
	t.Helper()
	g := &rig{t: t, folder: filepath.Join(t.TempDir(), "recorded")}
	g.gold.Store(100_000)
	if c.Key.IsZero() {
		c.Key = must.Get(ramp.TextKey(consoleKey))(t)
	}
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Key: c.Key,
		Signer:  must.Get(ramp.NewKeySigner(validator))(t),
		Players: g,
		Store:   &ramp.MemoryStore{Apply: g.apply},
		Terms:   must.Get(ramp.NewTerms(ramp.TermsConfig{Any: true}))(t),
		Logger:  slog.New(slog.DiscardHandler)}))(t)
	game := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.answer == nil || !g.answer(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(game.Close)
	var inFront, toService http.Handler
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inFront.ServeHTTP(w,
			r)
	}))
	t.Cleanup(front.Close)
	g.front = front.URL
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		toService.ServeHTTP(w,
			r)
	}))
	t.Cleanup(api.Close)

	c.Game, c.Validator, c.Audit = front.URL, must.Get(ramp.NewKeySigner(validator))(t).Address(),
		ramptest.AuditOff
	g.service = must.Get(ramptest.New(c))(t)
	t.Cleanup(g.service.Close)
	g.recorder = must.Get(record.New(record.Config{Game: game.URL, Service: g.service.URL(), Folder: g.folder,
		Now:     g.service.Now,
		Secrets: []string{consoleKey}, Readings: []record.Reading{{Name: "ramp.TextKey",
			Key: must.Get(ramp.TextKey(consoleKey))(t)},
			{Name: "ramp.Base64URLKey", Key: must.Get(ramp.Base64URLKey(consoleKey))(t)}}}))(t)
	inFront, toService = g.recorder.Game(), g.recorder.Service()
	g.client = must.Get(ramp.NewClient(ramp.ClientConfig{URL: api.URL, Key: c.Key, Retries: -1,
		Now: g.service.Now}))(t)
	t.Cleanup(func() { g.end() })
	return g
}

// end closes the recorder and returns its report.
func (g *rig) end() *record.Report {
	if g.report == nil {
		var err error
		g.report, err = g.recorder.Close()
		require.NoError(g.t, err)
	}
	return g.report
}

func player() ramp.Session { return ramp.Session{ID: session, Token: ramp.NewAccessToken(token)} }

// initialize offers 100 gold a token.
func (g *rig) initialize(edit func(*ramp.InitializeIntent)) (*ramp.Initialization, error) {
	item := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100),
		IconURL: "https://cdn.example/gold.png?token=secret-of-the-icon"}}
	r := ramp.InitializeRequest{PlayerID: "player-7", Name: "Gi-dong",
		Intent: ramp.InitializeIntent{Network: ramp.Testnet,
			ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3", MintFeeBps: 2000,
			Materials: item,
			Outputs:   item}}
	if edit != nil {
		edit(&r.Intent)
	}
	return g.client.Initialize(g.t.Context(), r)
}

// mint mints tokens. The order may be refused.
func (g *rig) mint(tokens int64, faults ...ramptest.Fault) {
	started, err := g.initialize(nil)
	require.NoError(g.t, err)
	_, err = g.service.Mint(g.t.Context(), started.UUID, player(), ramp.NewAmount(tokens), faults...)
	if err != nil {
		g.t.Log(err)
	}
}

func (g *rig) burn(tokens int64) {
	started, err := g.initialize(nil)
	require.NoError(g.t, err)
	_, err = g.service.Burn(g.t.Context(), started.UUID, player(), ramp.NewAmount(tokens))
	require.NoError(g.t, err)
}

// point returns what was seen of an open point, and the setting that follows.
func (g *rig) point(name string) string {
	for _, p := range g.end().Points {
		if strings.HasPrefix(p.Name, name) {
			if p.Seen == "" {
				return ""
			}
			return p.Seen + " => " + p.Setting
		}
	}
	require.Fail(g.t, "there is no such point", name)
	return ""
}

// Each switch of the emulator, in both positions, is recognized by what passes.
func TestEachPositionOfEachSwitchIsRecognized(t *testing.T) {
	text, decoded := must.Get(ramp.TextKey(consoleKey))(t), must.Get(ramp.Base64URLKey(consoleKey))(t)
	mint := func(g *rig) { g.mint(10); g.service.Advance(time.Minute) }
	burn := func(g *rig) { g.burn(10); g.service.Advance(time.Minute) }
	answering := func(status int) func(g *rig) {
		return func(g *rig) {
			g.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != ramp.PathResult {
					return false
				}
				w.WriteHeader(status)
				return true
			}
			g.mint(10)
			g.service.Advance(15 * time.Hour)
		}
	}
	failing := func(g *rig) {
		_, err := g.initialize(func(i *ramp.InitializeIntent) { i.ProjectID = "another" })
		assert.ErrorIs(g.t, err, ramp.ErrUnknownProject)
	}
	late := func(g *rig) {
		started, err := g.initialize(nil)
		require.NoError(g.t, err)
		g.service.Advance(6 * time.Minute)
		_, err = g.service.Mint(g.t.Context(), started.UUID, player(), ramp.NewAmount(10))
		assert.True(g.t, err == nil || errors.Is(err, ramptest.ErrExpiredUUID), err)
	}
	twenty := append([]time.Duration{5 * time.Minute}, ramptest.Schedule()...)
	for _, test := range []struct {
		point  string
		play   func(*rig)
		config ramptest.Config
		want   string
	}{
		{"how the HMAC key", mint, ramptest.Config{Key: text},
			"the HMAC is made with ramp.TextKey (2 times) => read the key with ramp.TextKey"},
		{"how the HMAC key", mint, ramptest.Config{Key: decoded},
			"the HMAC is made with ramp.Base64URLKey (2 times) => read the key with ramp.Base64URLKey"},
		{"whether items are", mint, ramptest.Config{},
			"of one token in 1 orders => leave TermsConfig.PerOrder false"},
		{"whether items are", mint, ramptest.Config{PerOrder: true},
			"of a whole order in 1 orders => set TermsConfig.PerOrder"},
		{"whether items are", burn, ramptest.Config{},
			"of one token in 1 orders => leave TermsConfig.PerOrder false"},
		{"whether items are", burn, ramptest.Config{PerOrder: true},
			"of a whole order in 1 orders => set TermsConfig.PerOrder"},
		{"whether `to.amount` of a mint", mint, ramptest.Config{},
			"before the fee in 1 mints => nothing to set"},
		{"whether `to.amount` of a mint", mint, ramptest.Config{NetAmounts: true},
			"after the fee in 1 mints => set TermsConfig.AnyTokens (or Any), check the number in a Policy, and set " +
				"MintFeeBps to 0 in rampproof.Config"},
		{"whether `to.amount` of a mint", mint, ramptest.Config{PerOrder: true},
			"before the fee in 1 mints => nothing to set"},
		{"whether `to.amount` of a mint", mint, ramptest.Config{PerOrder: true, NetAmounts: true},
			"after the fee in 1 mints => set TermsConfig.AnyTokens (or Any), check the number in a Policy, and set " +
				"MintFeeBps to 0 in rampproof.Config"},
		{"the form of a `uuid`", mint, ramptest.Config{}, "36 characters with hyphens in initialize (once), " +
			"36 characters with hyphens in result (once), 36 characters with hyphens in validate (once) => nothing " +
			"to set: every notation is read"},
		{"the form of a `uuid`", mint, ramptest.Config{UUIDDigits: true},
			"32 digits without hyphens in initialize (once), " +
				"32 digits without hyphens in result (once), 32 digits without hyphens in validate (once) => " +
				"nothing to set: every notation is read"},
		{"the `Content-Type` of a result", mint, ramptest.Config{ResultType: "none"},
			"none (once) => nothing to set, unless something in front of the game decides by it"},
		{"when a token is `NFT`", mint, ramptest.Config{},
			"ERC20 with fungible items (once) => nothing to set"},
		{"when a token is `NFT`", mint, ramptest.Config{TokenType: ramp.TypeNFT},
			"NFT with fungible items (once) => set TermsConfig.Any, and check the token in a Policy"},
		{"`burn` as the method", burn, ramptest.Config{},
			"burn-permit (once) => nothing to set: both are accepted"},
		{"`burn` as the method", burn, ramptest.Config{BurnMethod: ramp.MethodBurn},
			"burn (once) => nothing to set: both are accepted"},
		{"whether a validate call is repeated", mint, ramptest.Config{},
			"repeated for 0 of 1 orders => nothing to set: a repeat moves nothing"},
		{"whether a validate call is repeated", func(g *rig) { g.mint(10, ramptest.ValidateTwice()) },
			ramptest.Config{},
			"repeated for 1 of 1 orders => nothing to set: a repeat moves nothing"},
		{"after which answer", answering(503), ramptest.Config{},
			"not repeated after HTTP 503 (once) => nothing to set: Handler answers a result with 200 or 500"},
		{"after which answer", answering(503),
			ramptest.Config{Retry: func(status int) bool { return status >= 500 }},
			"not repeated after HTTP 503 (once), repeated after HTTP 503 (19 times) => nothing to set: Handler " +
				"answers a result with 200 or 500"},
		{"how often a result is repeated", answering(500), ramptest.Config{},
			"19 repeats, after 2 times 5 minutes, 7 times 15 minutes, 10 times 60 minutes (once) => nothing to set"},
		{"how often a result is repeated", answering(500), ramptest.Config{Schedule: twenty},
			"20 repeats, after 3 times 5 minutes, 7 times 15 minutes, 10 times 60 minutes (once) => nothing to set"},
		{"what a result says after its block", func(g *rig) {
			g.mint(10,
				ramptest.Reorganized())
			g.service.Advance(time.Minute)
		}, ramptest.Config{},
			"1 orders got results that name different blocks => set HandlerConfig.Confirm"},
		{"what a result says after its block", mint, ramptest.Config{}, ""},
		{"the HTTP status of a failed", failing, ramptest.Config{ProjectID: "project-1"},
			"HTTP 500 with code 500 (once) => nothing to set: the body decides"},
		{"the HTTP status of a failed", failing, ramptest.Config{ProjectID: "project-1", FailureStatus: 200},
			"HTTP 200 with code 500 (once) => nothing to set: the body decides"},
		{"what happens to a UUID after", late, ramptest.Config{},
			"none of 1 UUIDs older than 5 minutes was used afterwards => nothing to set"},
		{"what happens to a UUID after", late, ramptest.Config{AcceptExpired: true},
			"1 orders were validated later than 5 minutes after initialize => nothing to set"},
		{"the options of", mint, ramptest.Config{}, "without options (once) => nothing to set"},
		{"what the digest covers", mint, ramptest.Config{},
			"user_sig signs neither the digest nor a personal message of it (once) => a Policy can compute the " +
				"digest of a contract that you know"},
		{"the token of a result", mint, ramptest.Config{},
			"that of validate (once) => nothing to set: Handler does not ask it"},
		{"a result in another session", mint, ramptest.Config{},
			"the session of validate (once) => nothing to set"},
		{"whether the signed text", mint, ramptest.Config{},
			"orders succeeded whose validatorSig is a signature (once). " +
				"Each recovers some address from the digest itself; that it is yours is checked by Signer => " +
				"nothing to set"},
		{"whether `to.amount` of a burn's", burn, ramptest.Config{},
			"the amounts of validate (once) => nothing to set"},
		{"headers that occur twice", mint, ramptest.Config{},
			"each header once, no compression (3 times) => nothing to set"},
		{"whether a browser", func(g *rig) {
			_, err := g.service.Assets(g.t.Context(), player())
			assert.NoError(g.t,
				err)
		}, ramptest.Config{},
			"without the headers of a browser (once) => nothing to set"},
	} {
		t.Run(strings.NewReplacer(" ", "_", "`", "").Replace(test.point), func(t *testing.T) {
			g := between(t, test.config)
			test.play(g)
			assert.Equal(t, test.want, g.point(test.point))
			ofTheGame := func(f record.Finding) bool { return strings.Contains(f.Text, "answer: ") }
			assert.Empty(t, slices.DeleteFunc(g.end().Deviations, ofTheGame))
		})
	}
}

// These positions look alike for a proxy, as docs/recording.md says: any 32 bytes can be a digest,
// a mint without an order is only on the chain, and of the largest body that the service reads only a
// rejection would tell.
func TestWhatAProxyCannotTell(t *testing.T) {
	t.Parallel()
	seen := func(point string, c ramptest.Config, faults ...ramptest.Fault) string {
		g := between(t, c)
		g.mint(10, faults...)
		g.mint(10)
		g.service.Advance(time.Minute)
		return g.point(point)
	}
	digest := func(r *ramp.ValidateRequest) ramp.Digest { return ramp.Digest(bytes.Repeat(r.UUID[:], 2)) }
	for point, switched := range map[string]string{
		"what the digest covers":    seen("what the digest covers", ramptest.Config{Digest: digest}),
		"how a transaction belongs": seen("how a transaction belongs", ramptest.Config{}, ramptest.MintedByStranger()),
		"the largest body":          seen("the largest body", ramptest.Config{MaxBody: 64 << 10}),
	} {
		assert.NotEmpty(t, switched, point)
		assert.Equal(t, seen(point, ramptest.Config{}), switched, point)
	}
}

// Every row of the open points has a point here, with the row's own words.
func TestEveryOpenPointIsLookedFor(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/interface.md"))(t))
	_, table, ok := strings.Cut(page, "\n## What the interface does not say\n")
	require.True(t, ok)
	var rows []string
	for _, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 6 {
			rows = append(rows, strings.TrimSpace(cells[1]))
		}
	}
	require.Greater(t, len(rows), 20)
	g := between(t, ramptest.Config{})
	points := g.end().Points
	require.Len(t, points, len(rows[2:]))
	for n, row := range rows[2:] {
		assert.True(t, strings.HasPrefix(row, points[n].Name), "%q is not the beginning of %q", points[n].Name, row)
		assert.NotEmpty(t, points[n].Missing, "nothing was seen yet")
	}
}

// No file holds a secret, and what was masked keeps its length and its form.
func TestTheFilesHoldNoSecretAndKeepTheirLength(t *testing.T) {
	g := between(t, ramptest.Config{})
	var passed []string // bodies of the service, as the game got them
	g.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		passed = append(passed, string(body))
		return false
	}
	_, err := g.service.Assets(t.Context(), player())
	require.NoError(t, err)
	g.mint(10, ramptest.UnknownFields(ramptest.OnResult))
	g.service.Advance(time.Minute)
	r := g.end()
	assert.NotEmpty(t, r.Fresh)

	lines := readLines(t, g.folder)
	require.Len(t, lines, 4) // assets, initialize, validate, result
	var secrets []string
	for _, text := range passed {
		var body struct {
			UserSig string `json:"user_sig"`
		}
		_ = json.Unmarshal([]byte(cmp.Or(text, "{}")), &body)
		if body.UserSig != "" {
			secrets = append(secrets, strings.TrimPrefix(body.UserSig, "0x")[:128])
		}
	}
	require.Len(t, secrets, 1)
	secrets = append(secrets, consoleKey, token, session, "player-7", "Gi-dong", "홍길동",
		"secret-of-the-icon", "secret-key-of-the-console")
	for _, entry := range must.Get(os.ReadDir(g.folder))(t) {
		text := string(must.Get(os.ReadFile(filepath.Join(g.folder, entry.Name())))(t))
		for _, secret := range secrets {
			assert.NotContains(t, text, secret, entry.Name())
		}
		info := must.Get(entry.Info())(t)
		assert.EqualValues(t, 0o600, info.Mode().Perm(), entry.Name())
	}

	byKind := map[string]map[string]any{}
	for _, l := range lines {
		byKind[l["kind"].(string)] = l
	}
	key := must.Get(ramp.TextKey(record.TestHMACKey))(t)
	signer := must.Get(ramp.NewKeySigner(record.TestValidatorKey))(t)
	read := func(kind, message string) []byte {
		return must.Get(os.ReadFile(filepath.Join(g.folder, byKind[kind][message].(string))))(t)
	}
	for n, kind := range []string{"", "validate", "result"} {
		if kind == "" {
			continue
		}
		body := read(kind, "body")
		assert.Len(t, body, len(passed[n]), kind)
		headers := byKind[kind]["headers"].(map[string]any)
		assert.NoError(t, key.Verify(body, headers[ramp.HeaderHMAC].(string)), "signed anew")
		assert.Regexp(t, regexp.MustCompile(`^Bearer [a-z-]{19}$`), headers[ramp.HeaderAuthorization])
		assert.Len(t, headers[ramp.HeaderSession], len(session))
	}
	asked, err := ramp.ParseValidate(read("validate", "body"))
	require.NoError(t, err)
	var approved ramp.Response[ramp.Approval]
	require.NoError(t, json.Unmarshal(read("validate", "answer"), &approved))
	assert.Equal(t, asked.UserSig, approved.Data.UserSig, "equal texts stay equal")
	by, err := ramp.Recover(asked.Digest, approved.Data.ValidatorSig)
	require.NoError(t, err)
	assert.Equal(t, signer.Address(), by, "signed anew")
	done, err := ramp.ParseResult(read("result", "body"))
	require.NoError(t, err)
	assert.True(t, done.Succeeded())
	sent := byKind["result"]["headers"].(map[string]any)
	assert.Equal(t, sent[ramp.HeaderSession], done.SessionID, "the same session")
	written := string(must.Get(os.ReadFile(filepath.Join(g.folder, "report.md")))(t))
	assert.Contains(t, written, "## Fields that the interface does not have")
}

func readLines(t *testing.T, folder string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join(folder, "calls.jsonl")))(t))) {
		var l map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		lines = append(lines, l)
	}
	return lines
}

// direct starts a server, and a recorder in front of it.
func direct(t *testing.T, server http.HandlerFunc) (front *httptest.Server, r *record.Recorder, folder string) {
	t.Helper()
	game := httptest.NewServer(server)
	t.Cleanup(game.Close)
	folder = filepath.Join(t.TempDir(), "recorded")
	r = must.Get(record.New(record.Config{Game: game.URL, Folder: folder, Secrets: []string{consoleKey}}))(t)
	front = httptest.NewServer(r.Game())
	t.Cleanup(front.Close)
	return front, r, folder
}

// What the game sees is what the service sent, and the other way round.
func TestNothingIsChanged(t *testing.T) {
	type seen struct {
		Method, URI, Host, Body string
		Header                  http.Header
		Length                  int64
	}
	var got seen
	front, r, _ := direct(t, func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		got = seen{q.Method, q.RequestURI, q.Host, string(body), q.Header, q.ContentLength}
		w.Header()["X-Twice"] = []string{"a", "b"}
		w.Header().Set("Content-Type", "text/odd")
		w.WriteHeader(299)
		_, _ = io.WriteString(w, "answer\x00")
	})
	paths := []string{ramp.PathResult, "//api/result", "/api/result%20?a=1;b=%zz", "/api/../api/assets", "/other"}
	for _, path := range paths {
		wire := must.Get(net.Dial("tcp", front.Listener.Addr().String()))(t)
		_, err := io.WriteString(wire,
			"POST "+path+" HTTP/1.1\r\nhost: game.example\r\nx-hmac-signature: abc\r\nX-Forwarded-For: 1.2.3.4\r\n"+
				"X-Twice: a\r\nx-twice: b\r\nAccept-Encoding: br\r\nContent-Length: 10\r\n\r\n{\"a\" : 1}\n")
		require.NoError(t, err)
		answer := must.Get(http.ReadResponse(bufio.NewReader(wire), nil))(t)
		assert.Equal(t, "answer\x00", string(must.Get(io.ReadAll(answer.Body))(t)))
		require.NoError(t, wire.Close())
		assert.Equal(t, 299, answer.StatusCode)
		assert.Equal(t, []string{"a", "b"}, answer.Header["X-Twice"])
		assert.Equal(t, "text/odd", answer.Header.Get("Content-Type"))
		got.Header.Del("Connection") // each call has a connection of its own
		assert.Equal(t, seen{"POST", path, "game.example", "{\"a\" : 1}\n", http.Header{ramp.HeaderHMAC: {"abc"},
			"X-Forwarded-For": {"1.2.3.4"}, "X-Twice": {"a", "b"}, "Accept-Encoding": {"br"},
			"Content-Length": {"10"}}, 10}, got)
	}
	must.Get(r.Close())(t)
}

// An answer of the recorder would be taken for one of the game: a result that gets 502 is not
// delivered again.
func TestAGameThatIsNotReachedGivesNoAnswer(t *testing.T) {
	front, r, folder := direct(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := http.Post(front.URL+ramp.PathResult, "application/json", strings.NewReader(`{}`))
	assert.ErrorIs(t, err, io.EOF)
	report := must.Get(r.Close())(t)
	assert.Equal(t, 1, report.Calls)
	line := readLines(t, folder)[0]
	assert.EqualValues(t, 0, line["status"])
	assert.Equal(t, "no answer", line["failure"])
}

// What is no call of the service passes, and leaves no trace: a login holds a password.
func TestOtherCallsAreNotRecorded(t *testing.T) {
	front, r, folder := direct(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "welcome") })
	login := strings.NewReader(`{"password":"hunter2"}`)
	answer := must.Get(http.Post(front.URL+"/login?code=1", "application/json", login))(t)
	assert.Equal(t, "welcome", string(must.Get(io.ReadAll(answer.Body))(t)))
	answer.Body.Close()
	assert.Zero(t, must.Get(r.Close())(t).Calls)
	assert.Empty(t, readLines(t, folder))
}

// A slow disk delays no call: what passed waits for the disk, not the caller.
func TestACallDoesNotWaitForTheRecord(t *testing.T) {
	block, first := make(chan struct{}), make(chan struct{}, 100)
	game := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{}`)
	}))
	defer game.Close()
	r := must.Get(record.New(record.Config{Game: game.URL, Folder: filepath.Join(t.TempDir(), "f"),
		OnCall: func(record.Line) { first <- struct{}{}; <-block }}))(t)
	front := httptest.NewServer(r.Game())
	defer front.Close()
	for n := range 20 {
		answer := must.Get(http.Post(front.URL+ramp.PathResult, "application/json", strings.NewReader(`{}`)))(t)
		answer.Body.Close()
		if n == 0 {
			<-first
		}
	}
	close(block)
	assert.Equal(t, 20, must.Get(r.Close())(t).Calls)
}

// What a stranger would find in a message, in the words of the report.
func TestDeviationsAndNewFieldsAreListed(t *testing.T) {
	front, r, _ := direct(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"success":true,"errorCode":null,"data":{}}`)
	})
	q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+ramp.PathResult,
		strings.NewReader(
			`{"session_id":7,"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","receipt":{"status":"0x1","logs":[]},`+
				`"memo":{"a":1}}`)))(t)
	q.Header.Set(ramp.HeaderSession, session)
	answer := must.Get(http.DefaultClient.Do(q))(t)
	answer.Body.Close()
	report := must.Get(r.Close())(t)
	var found []string
	for _, f := range slices.Concat(report.Deviations, report.Fresh) {
		assert.Equal(t, 1, f.Call)
		found = append(found, f.Text)
	}
	for _, want := range []string{
		"result: X-HMAC-SIGNATURE is missing",
		"result: X-Dapp-Authorization is not Bearer and a token", "result: session_id is of type number, not string",
		"result: tx_hash is missing", "result: receipt.gasUsed is missing", "result: intent is missing",
		"result: answer: data is of type object, not null", "result: memo (object)",
	} {
		assert.Contains(t, found, want)
	}
	assert.NotContains(t, fmt.Sprint(found), "fee_rate", "it is missing in one example of the interface")
}

// Whoever has no key teaches nothing, once the key has made one HMAC: a player turned the finding about prices into
// its contrary with four calls. What came before is marked.
func TestWhoHasNoKeyTeachesNothing(t *testing.T) {
	forge := func(g *rig, path, body string) {
		q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, g.front+path,
			strings.NewReader(body)))(t)
		q.Header = http.Header{"Content-Type": {"application/json"}, ramp.HeaderHMAC: {strings.Repeat("0", 64)}}
		if answer, err := http.DefaultClient.Do(q); err == nil {
			answer.Body.Close()
		}
	}
	honest := between(t, ramptest.Config{})
	honest.mint(10)
	honest.service.Advance(time.Minute)

	g := between(t, ramptest.Config{})
	const forged = `{"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","memo\u001b[2J":1,"receipt":{"status":"0x1"}}`
	forge(g, ramp.PathResult, forged)
	g.mint(10)
	g.service.Advance(time.Minute)
	for _, path := range []string{ramp.PathValidate, ramp.PathResult, "/elsewhere"} {
		forge(g, path, forged)
	}
	forge(g, ramp.PathValidate, `{"uuid":"`+strings.Repeat("x", 1<<20-20)+`"}`) // which is masked at once
	report := g.end()
	seen := func(r *record.Report) []record.Point {
		return slices.DeleteFunc(slices.Clone(r.Points), func(p record.Point) bool {
			return p.Name == "the form of v, and whether s is low" // v is 27 or 28, as it happens
		})
	}
	assert.Equal(t, seen(honest.end()), seen(report))
	assert.Equal(t, honest.end().Deviations, report.Deviations)
	assert.Equal(t, honest.end().Fresh, report.Fresh)
	bodies := map[string]int{} // that are written
	for _, line := range readLines(t, g.folder) {
		if line["kind"] != "initialize" && line["kind"] != "preflight" {
			assert.Equal(t, line["hmac"] == nil, line["unsigned"] == true, line)
		}
		if name, _ := line["body"].(string); line["unsigned"] == true && strings.HasSuffix(name, ".json") {
			bodies[name]++
		}
	}
	assert.Len(t, bodies, 1, "only that of the first, before the key had made an HMAC")
}

// A name of a field is shown on one line, and holds no secret in any usual encoding.
func TestNamesOfFieldsAreShownOnOneLine(t *testing.T) {
	g := between(t, ramptest.Config{})
	g.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == ramp.PathAssets {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"success":true,"data":{"v1":{}},"\u001b[2J\n# heading":1,`+
				`"`+base64.RawURLEncoding.EncodeToString([]byte(token))+`":2}`)
		}
		return r.URL.Path == ramp.PathAssets
	}
	_, _ = g.service.Assets(t.Context(), player())
	for _, f := range g.end().Fresh {
		assert.NotContains(t, f.Text, "\x1b")
		assert.NotContains(t, f.Text, "\n")
	}
	line := readLines(t, g.folder)[0]
	assert.Equal(t, "not written: it holds a secret where the interface has none", line["answer"])
}

// The golden messages of the interface have no deviation.
func TestTheGoldenMessagesDoNotDeviate(t *testing.T) {
	for path, files := range map[string][]string{
		ramp.PathValidate: {"2.5-validate-mint.json", "2.5-validate-burn.json"},
		ramp.PathResult:   {"6-result-mint.json", "6-result-burn.json", "6-result-failed-mint.json"},
	} {
		for _, name := range files {
			body := must.Get(os.ReadFile("../../testdata/" + name))(t)
			front, r, folder := direct(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			q := must.Get(http.NewRequest(http.MethodPost, front.URL+path, bytes.NewReader(body)))(t)
			q.Header = http.Header{"Content-Type": {"application/json"}, ramp.HeaderSession: {session},
				ramp.HeaderAuthorization: {"Bearer " + token}, ramp.HeaderHMAC: {strings.Repeat("A", 64)}}
			_, err := http.DefaultClient.Do(q)
			assert.Error(t, err)
			report := must.Get(r.Close())(t)
			assert.Empty(t, report.Deviations, name)
			assert.Empty(t, report.Fresh, "%s has a field that the shapes of shape.go lack", name)
			line := readLines(t, folder)[0]
			written := must.Get(os.ReadFile(filepath.Join(folder, line["body"].(string))))(t)
			assert.Len(t, written, len(body))
			hmac := line["headers"].(map[string]any)[ramp.HeaderHMAC].(string)
			assert.Equal(t, strings.ToUpper(hmac), hmac, "its case stays")
			assert.NoError(t, must.Get(ramp.TextKey(record.TestHMACKey))(t).Verify(written, hmac))
		}
	}
}

func TestANewRecorderRejects(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "recorded")
	for _, test := range []struct {
		config record.Config
		want   string
	}{
		{record.Config{Game: "127.0.0.1:8080", Folder: folder}, "the game's address must be an absolute URL"},
		{record.Config{Game: "http://user:pass@game.example", Folder: folder},
			"the game's address must have no credentials"},
		{record.Config{Game: "http://game.example/ramp", Folder: folder}, "the game's address must have no path"},
		{record.Config{Game: "http://game.example?a=1", Folder: folder}, "the game's address must have no query"},
		{record.Config{Game: "http://game.example", Service: "x", Folder: folder},
			"the service's address must be an absolute URL"},
	} {
		_, err := record.New(test.config)
		assert.ErrorContains(t, err, test.want)
		assert.NotContains(t, err.Error(), "pass")
	}
	_, r, used := direct(t, func(http.ResponseWriter, *http.Request) {})
	_, err := record.New(record.Config{Game: "http://game.example", Folder: used})
	assert.ErrorContains(t, err, "has a recording already; name an empty folder")
	must.Get(r.Close())(t)
}
