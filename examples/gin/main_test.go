package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

func TestGinAnswersAllThreeCalls(t *testing.T) {
	key, err := ramp.TextKey("key of the console")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	if err != nil {
		t.Fatal(err)
	}
	studio := NewStudio()
	handler, err := newHandler(studio, key, signer)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(routes(handler))
	defer server.Close()
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Game: server.URL, PerToken: true})
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key})
	if err != nil {
		t.Fatal(err)
	}

	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	for _, step := range []struct {
		order func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)
		fault ramptest.Fault
		gold  int64
	}{
		{service.Mint, ramptest.ResultTwice(), 800},
		{service.Mint, ramptest.TransactionFails(), 800},
		{service.Burn, ramptest.ResultTwice(), 960},
	} {
		started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Intent: products[0].Intent})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := step.order(t.Context(), started.UUID, session, ramp.NewAmount(2), step.fault,
			ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(), ramptest.ValidateExtraItem()); err != nil {
			t.Fatal(err)
		}
		service.Advance(time.Minute)
		if got := studio.gold[session.ID]; got != step.gold {
			t.Errorf("after %s, the player owns %d gold instead of %d", step.fault, got, step.gold)
		}
	}
}

func TestGinRejectsABodyAboveTheLimit(t *testing.T) {
	key, _ := ramp.TextKey("key of the console")
	signer, _ := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	handler, err := newHandler(NewStudio(), key, signer)
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
