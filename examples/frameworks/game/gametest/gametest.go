// Package gametest tests the game on any framework.
package gametest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/frameworks/game"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A Studio is a game on a listener of its own.
type Studio struct {
	*testing.T
	DB       *sql.DB
	Key      ramp.HMACKey
	Signer   *ramp.Signer
	Listener net.Listener
	URL      string
	ctx      context.Context // of what serves
	ended    chan error
}

// New opens the database and the listener. Let the studio Serve.
func New(t *testing.T) *Studio {
	t.Helper()
	db, err := game.Open(t.Context(), filepath.Join(t.TempDir(), "game.db"))
	check(t, err)
	key, err := ramp.TextKey("key of the console")
	check(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	// t.Context ends before the service's last calls.
	ctx, stop := context.WithCancel(context.Background())
	s := &Studio{T: t, DB: db, Key: key, Signer: signer, Listener: listener,
		URL: "http://" + listener.Addr().String(), ctx: ctx, ended: make(chan error)}
	t.Cleanup(func() {
		stop()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Serve serves the game until the test ends. service is the URL of the ramp.
func (s *Studio) Serve(service string, serve Serve) {
	server := game.New(s.DB, s.Key, s.Signer, service, service)
	go func() { s.ended <- serve(s.ctx, server, s.Listener) }()
}

// Player returns a new player with so much gold, and an access token of so many UUIDs.
func (s *Studio) Player(id string, gold int64, token int) ramp.Session {
	s.Helper()
	session := ramp.Session{ID: id, Token: ramp.NewAccessToken(strings.Repeat(uuid.NewString(), token))}
	hash := sha256.Sum256([]byte(session.Token.Reveal()))
	_, err := s.DB.Exec("INSERT INTO characters VALUES ($1, $2, $3)", id, hash[:], gold)
	check(s.T, err)
	return session
}

// order begins a mint or a burn.
type order = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount,
	...ramptest.Fault) (*ramptest.PlacedOrder, error)

// Serve is how a framework serves the game.
type Serve = func(context.Context, *game.Server, net.Listener) error

// Trade lets a player mint and burn through a framework, which serves the service's calls on these paths, and
// lets nobody else start an order. The access token has so many UUIDs.
func Trade(t *testing.T, paths ramptest.Config, serve Serve, token int) {
	t.Helper()
	s := New(t)
	paths.Key, paths.Validator, paths.Game = s.Key, s.Signer.Address(), s.URL
	service := ramptest.Start(t, paths)
	s.Serve(service.URL(), serve)
	session := s.Player("character-1", 1000, token)
	for _, step := range []struct {
		order order
		fault ramptest.Fault
		gold  int64
	}{
		{service.Mint, ramptest.ResultTwice(), 800},
		{service.Mint, ramptest.TransactionFails(), 800},
		{service.Burn, ramptest.ResultTwice(), 1000},
	} {
		page, status := s.exchange(session.ID, session.Token.Reveal())
		if status != http.StatusOK {
			t.Fatalf("HTTP %d", status)
		}
		id, err := uuid.Parse(page.Query().Get("uuid"))
		check(t, err)
		_, err = step.order(t.Context(), id, session, ramp.NewAmount(2), step.fault,
			ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(), ramptest.ValidateExtraItem())
		check(t, err)
		service.Advance(time.Minute)
		var gold int64
		check(t, s.DB.QueryRow("SELECT gold FROM characters").Scan(&gold))
		if gold != step.gold {
			t.Errorf("after %s, the player owns %d gold instead of %d", step.fault, gold, step.gold)
		}
	}
	if _, status := s.exchange(session.ID, "another token"); status != http.StatusUnauthorized {
		t.Errorf("another token: HTTP %d", status)
	}
}

// exchange asks the game for the page of a new order.
func (s *Studio) exchange(session, token string) (page *url.URL, status int) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.URL+"/exchange/gold", nil)
	check(s.T, err)
	request.Header = http.Header{"X-Session": {session}, "X-Token": {token}}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	check(s.T, err)
	defer response.Body.Close()
	var answer struct{ URL string }
	if response.StatusCode == http.StatusOK {
		check(s.T, json.NewDecoder(response.Body).Decode(&answer))
	}
	page, err = url.Parse(answer.URL)
	check(s.T, err)
	return page, response.StatusCode
}

// Own are paths of a studio's own for the three calls.
var Own = ramptest.Config{
	AssetsPath: "/ramp/assets", ValidatePath: "/ramp/validate", ResultPath: "/ramp/result"}

// LosesNoResult tests routes of net/http on the paths Own. They must not answer what may be a result: only
// HTTP 500 lets it come again. And they leave the raw body to the handler, which has its own limit.
func LosesNoResult(t *testing.T, routes func(*game.Server) http.Handler) {
	t.Helper()
	s := New(t)
	close(s.ended) // nothing is served
	handler := routes(game.New(s.DB, s.Key, s.Signer, "http://127.0.0.1:1", "http://127.0.0.1:1"))
	answer := func(call, body string) *httptest.ResponseRecorder {
		method, path, _ := strings.Cut(call, " ")
		request := httptest.NewRequest(method, "http://game.example"+path, strings.NewReader(body))
		if method == http.MethodPost || path == Own.ResultPath {
			request.Header.Set(ramp.HeaderHMAC, strings.Repeat("0", 64))
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer
	}
	for _, call := range []string{"POST //ramp/result", "POST /ramp/result/", "POST /ramp/results", "POST /",
		"GET /ramp/result"} {
		if got := answer(call, "{}"); got.Code != http.StatusInternalServerError {
			t.Errorf("%s: HTTP %d: %s", call, got.Code, got.Body)
		}
	}
	if got := answer("GET /favicon.ico", ""); got.Code != http.StatusNotFound {
		t.Errorf("HTTP %d", got.Code)
	}
	for body, code := range map[string]ramp.Code{
		`{"uuid":1}`:                   ramp.CodeHMACInvalid,
		strings.Repeat("x", 1+(1<<20)): ramp.CodeBodyTooLarge,
	} {
		got := answer("POST "+Own.ResultPath, body)
		if got.Code != http.StatusInternalServerError || !strings.Contains(got.Body.String(), string(code)) {
			t.Errorf("HTTP %d: %s", got.Code, got.Body)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
