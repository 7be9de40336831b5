package main

import (
	"crypto/sha256"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

func TestTheEndpointsAnswerOnPathsOfTheirOwn(t *testing.T) {
	key, err := ramp.TextKey("key of the console")
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: ramp.AnyTerms, Game: &Game{session: "session-1", token: sha256.Sum256([]byte("token-1"))}, Key: key, Signer: signer})
	require.NoError(t, err)
	server := httptest.NewServer(routes(handler))
	defer server.Close()
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Game: server.URL,
		AssetsPath: "/ramp/assets", ValidatePath: "/ramp/validate", ResultPath: "/ramp/result"})

	player, err := service.Assets(t.Context(), ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")})
	require.NoError(t, err)
	assert.Equal(t, "1000", player.Assets[0].Balance.String())

	_, err = service.Assets(t.Context(), ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-2")})
	var declined *ramptest.Declined
	require.ErrorAs(t, err, &declined)
	assert.Equal(t, ramp.Code("INVALID_USER"), declined.Code)
}
