package ramp_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// memoryGame returns a game whose orders are in memory.
func memoryGame(t testing.TB, c ramp.OrderGameConfig) *ramp.OrderGame {
	t.Helper()
	store, err := ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: func(context.Context, ramp.Step) error { return nil }})
	require.NoError(t, err)
	c.Players, c.Store = noPlayers{}, store
	game, err := ramp.NewOrderGame(c)
	require.NoError(t, err)
	return game
}

// The service does not deliver a result again that was answered with 400, so
// only OnConflict's nil may lead there.
func TestAConflictIsPermanentOnlyAfterItWasTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		onConflict func(context.Context, *ramp.ConflictError, *ramp.Result) error
		status     int
	}{
		"taken":              {func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }, http.StatusBadRequest},
		"without OnConflict": {nil, http.StatusInternalServerError},
		"failed":             {func(context.Context, *ramp.ConflictError, *ramp.Result) error { return errors.New("down") }, http.StatusInternalServerError},
		"failed with Permanent": {func(context.Context, *ramp.ConflictError, *ramp.Result) error {
			return ramp.Permanent(errors.New("down"))
		}, http.StatusInternalServerError},
		"failed with a decline":  {func(context.Context, *ramp.ConflictError, *ramp.Result) error { return ramp.Reject("DOWN") }, http.StatusInternalServerError},
		"failed with a conflict": {func(_ context.Context, c *ramp.ConflictError, _ *ramp.Result) error { return c }, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			game := memoryGame(t, ramp.OrderGameConfig{OnConflict: tt.onConflict})
			request := burnRequest(t)
			require.NoError(t, game.Validate(t.Context(), player, request))
			order := accepted(t, request)
			require.NoError(t, game.Result(t.Context(), player, reported(order, 1)))

			handler, err := ramp.NewHandler(ramp.HandlerConfig{Game: game, Key: testKey(t), Signer: testSigner(t), Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			result := func(r *ramp.Result) ramp.Reply {
				body, err := json.Marshal(r)
				require.NoError(t, err)
				return handler.AnswerResult(t.Context(), http.Header{ramp.HeaderHMAC: {testKey(t).Sign(body)}}, body)
			}
			reply := result(reported(order, 0))
			assert.Equal(t, tt.status, reply.Status)
			assert.ErrorIs(t, reply.Err, ramp.ErrOrderConflict)

			repeat := reported(order, 1)
			assert.Equal(t, http.StatusOK, result(repeat).Status, "a repeat is none")
			repeat.TxHash = "0x" + strings.Repeat("cd", 32)
			want := http.StatusOK // because the order has its outcome
			if strings.HasPrefix(name, "failed") {
				want = http.StatusInternalServerError
			}
			assert.Equal(t, want, result(repeat).Status)
		})
	}
}

// What only one database cannot store is the fault of the call, too: MySQL's
// charset utf8 ends at U+FFFF.
func TestAValidateThatTheDatabaseCannotStoreIsRefused(t *testing.T) {
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: sql.OpenDB(nil), Dialect: ramp.MySQL,
		Apply: func(context.Context, *sql.Tx, ramp.Step) error { return nil }})
	require.NoError(t, err)
	game, err := ramp.NewOrderGame(ramp.OrderGameConfig{Players: noPlayers{}, Store: store})
	require.NoError(t, err)
	err = game.Validate(t.Context(), ramp.Session{ID: "quoted\U0001F600"}, mintRequest(t))
	var refusal *ramp.Refusal
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, http.StatusBadRequest, refusal.Status)
	assert.Equal(t, ramp.Code("INVALID_SESSION_ID"), refusal.Code)
	assertFields(t, err, "session_id must not contain a character above U+FFFF")
	assert.NotContains(t, err.Error(), "quoted")
}
