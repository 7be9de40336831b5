package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

func TestTheEndpointsAnswerOnPathsOfTheirOwn(t *testing.T) {
	key := ramp.Must(ramp.TextKey("key of the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	game := NewGame()
	handler := newHandler(game, key, signer)
	server := httptest.NewServer(routes(handler))
	defer server.Close()
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Game: server.URL,
		AssetsPath: "/ramp/assets", ValidatePath: "/ramp/validate", ResultPath: "/ramp/result"})
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: products}))
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms}))

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
		started := ramp.Must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))
		ramp.Must(step.order(t.Context(), started.UUID, session, ramp.NewAmount(2), step.fault,
			ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(), ramptest.ValidateExtraItem()))
		service.Advance(time.Minute)
		assert.Equal(t, step.gold, game.gold[session.ID])
	}

	// The console has these for the address of results.
	for _, path := range []string{"//ramp/result", "/ramp/result/", "/ramp/results", "/ramp/validate", "/"} {
		signature := key.Sign([]byte("{}"))
		request := ramp.Must(http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader("{}")))
		request.Header.Set(ramp.HeaderHMAC, signature)
		response := ramp.Must(server.Client().Do(request))
		response.Body.Close()
		want := http.StatusInternalServerError
		if path == "/ramp/validate" {
			want = http.StatusBadRequest // it is neither a validate call nor a result
		}
		assert.Equal(t, want, response.StatusCode, path)
	}

	_, err := service.Assets(t.Context(), ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-2")})
	var rejected *ramptest.Rejection
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, ramp.Code("INVALID_USER"), rejected.Code)
}
