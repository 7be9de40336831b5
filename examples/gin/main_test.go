package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// approving is a game that approves every order.
type approving struct {
	Game
	results int
}

func (*approving) Authenticate(context.Context, ramp.Session) error { return nil }

func (*approving) Validate(context.Context, ramp.Session, *ramp.ValidateRequest) error { return nil }

func (g *approving) Result(context.Context, ramp.Session, *ramp.Result) error {
	g.results++
	return nil
}

func TestGinAnswersAllThreeCalls(t *testing.T) {
	key, err := ramp.TextKey("key of the console")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	if err != nil {
		t.Fatal(err)
	}
	game := &approving{}
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: ramp.AnyTerms, Game: game, Key: key, Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(routes(handler))
	defer server.Close()
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Game: server.URL,
		Books: ramptest.BooksOff}) // the game moves nothing
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	if _, err := service.Assets(t.Context(), session); err != nil {
		t.Error(err)
	}
	item := ramp.Item{ID: "item_gold", Amount: ramp.NewAmount(1), IconURL: "https://example.com/gold.png"}
	started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		Materials: []ramp.Item{item}, Outputs: []ramp.Item{item},
	}})
	if err != nil {
		t.Fatal(err)
	}
	order, err := service.Mint(t.Context(), started.UUID, session, ramp.NewAmount(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Deliver(t.Context(), order, ramptest.Succeeded); err != nil {
		t.Error(err)
	}
	if game.results != 1 {
		t.Errorf("the game heard of %d results, not of 1", game.results)
	}
}

func TestGinRefusesABodyAboveTheLimit(t *testing.T) {
	key, _ := ramp.TextKey("key of the console")
	signer, _ := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: ramp.AnyTerms, Game: Game{}, Key: key, Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	routes(handler).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/api/result", strings.NewReader(strings.Repeat("x", maxBody+1))))
	body, _ := io.ReadAll(answer.Body)
	if answer.Code != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), `"BODY_TOO_LARGE"`) {
		t.Errorf("HTTP %d: %s", answer.Code, body)
	}
}
