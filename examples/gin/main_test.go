package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

var session = ramp.Session{ID: "character-1", Token: ramp.NewAccessToken("token-1")}

// newGame starts the server with one player, who owns 1,000 gold, and the service.
func newGame(t *testing.T) (*server, *httptest.Server, *ramptest.Service) {
	t.Helper()
	key := ramp.Must(ramp.TextKey("key of the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	db := ramp.Must(open(t.Context(), filepath.Join(t.TempDir(), "game.db")))
	t.Cleanup(func() { _ = db.Close() })
	hash := sha256.Sum256([]byte(session.Token.Reveal()))
	ramp.Must(db.Exec("INSERT INTO characters VALUES ($1, $2, 1000)", session.ID, hash[:]))
	game := httptest.NewUnstartedServer(nil) // its address is known, and the service needs it
	t.Cleanup(game.Close)
	service := ramptest.Start(t,
		ramptest.Config{Key: key, Validator: signer.Address(), Game: "http://" + game.Listener.Addr().String(),
			AssetsPath: "/ramp/assets", ValidatePath: "/ramp/validate", ResultPath: "/ramp/result"})
	s := newServer(db, key, signer, service.URL(), service.URL())
	game.Config.Handler = s.routes()
	game.Start()
	return s, game, service
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exchange asks the game for the page of a new order.
func exchange(t *testing.T, game *httptest.Server, token string) (page *url.URL, status int) {
	t.Helper()
	request := ramp.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, game.URL+"/exchange/gold", nil))
	request.Header = http.Header{"X-Session": {session.ID}, "X-Token": {token}}
	response := ramp.Must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	var answer struct{ URL string }
	if response.StatusCode == http.StatusOK {
		check(t, json.NewDecoder(response.Body).Decode(&answer))
	}
	page = ramp.Must(url.Parse(answer.URL))
	return page, response.StatusCode
}

func TestAPlayerTradesThroughGin(t *testing.T) {
	s, game, service := newGame(t)
	for _, step := range []struct {
		order func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)
		fault ramptest.Fault
		gold  int64
	}{
		{service.Mint, ramptest.ResultTwice(), 800},
		{service.Mint, ramptest.TransactionFails(), 800},
		{service.Burn, ramptest.ResultTwice(), 960},
	} {
		page, _ := exchange(t, game, session.Token.Reveal())
		id := ramp.Must(uuid.Parse(page.Query().Get("uuid")))
		ramp.Must(step.order(t.Context(), id, session, ramp.NewAmount(2), step.fault,
			ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(), ramptest.ValidateExtraItem()))
		service.Advance(time.Minute)
		var gold int64
		check(t, s.game.db.QueryRow("SELECT gold FROM characters").Scan(&gold))
		if gold != step.gold {
			t.Errorf("after %s, the player owns %d gold instead of %d", step.fault, gold, step.gold)
		}
	}
}

func TestOnlyAPlayerStartsAnOrder(t *testing.T) {
	_, game, _ := newGame(t)
	if _, status := exchange(t, game, "another token"); status != http.StatusUnauthorized {
		t.Errorf("HTTP %d", status)
	}
}

// A router must not answer what may be a result: only HTTP 500 lets it come again.
func TestAResultAtAWrongPathComesAgain(t *testing.T) {
	s, _, _ := newGame(t)
	for _, call := range []string{"POST //ramp/result", "POST /ramp/result/", "POST /ramp/results", "POST /",
		"GET /ramp/result"} {
		method, path, _ := strings.Cut(call, " ")
		request := httptest.NewRequest(method, "http://game.example"+path, strings.NewReader("{}"))
		request.Header.Set(ramp.HeaderHMAC, strings.Repeat("0", 64))
		answer := httptest.NewRecorder()
		s.routes().ServeHTTP(answer, request)
		if answer.Code != http.StatusInternalServerError {
			t.Errorf("%s: HTTP %d: %s", call, answer.Code, answer.Body)
		}
	}
	answer := httptest.NewRecorder()
	s.routes().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/favicon.ico", nil))
	if answer.Code != http.StatusNotFound {
		t.Errorf("HTTP %d", answer.Code)
	}
}

// The raw body reaches the handler, which has its own limit.
func TestGinLeavesTheBodyToTheHandler(t *testing.T) {
	s, _, _ := newGame(t)
	for body, code := range map[string]ramp.Code{
		`{"uuid":1}`:                   ramp.CodeHMACInvalid,
		strings.Repeat("x", 1+(1<<20)): ramp.CodeBodyTooLarge,
	} {
		request := httptest.NewRequest(http.MethodPost, "/ramp/result", strings.NewReader(body))
		request.Header.Set(ramp.HeaderHMAC, strings.Repeat("0", 64))
		answer := httptest.NewRecorder()
		s.routes().ServeHTTP(answer, request)
		if answer.Code != http.StatusInternalServerError || !strings.Contains(answer.Body.String(), string(code)) {
			t.Errorf("HTTP %d: %s", answer.Code, answer.Body)
		}
	}
}
