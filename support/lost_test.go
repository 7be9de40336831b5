package support_test

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// After a restore, the logs are the only list of what the database has lost.
func TestTheLogSaysWhichOrdersAreLost(t *testing.T) {
	var log strings.Builder
	now := newStudio(t)
	waits, abandoned := now.mint(t, ramptest.ResultNever()), now.mint(t, ramptest.ResultNever())
	repeated := now.mint(t, ramptest.ResultNever()) // the server was killed before it logged what it had committed
	record := slog.New(slog.NewJSONHandler(&log, nil))
	for _, id := range []any{waits, abandoned} {
		record.Info("ramp: call", "uuid", id, "session_id", "alice", "state", "accepted", "new", true, "effect", "take -100 item_gold")
	}
	io.WriteString(&log, "a line of another program {\n\n")
	record.Warn("ramp: order abandoned", "uuid", abandoned, "session_id", "alice", "state", "abandoned", "new", true, "effect", "give back +100 item_gold")
	record.Info("ramp: call", "uuid", abandoned, "session_id", "alice", "state", "abandoned", "new", false, "effect", "nothing")
	record.Info("ramp: call", "uuid", repeated, "session_id", "alice", "state", "failed", "tx_hash", "0x1", "new", false, "effect", "nothing")
	record.Warn("ramp: call", "uuid", repeated, "session_id", "alice", "state", "failed", "tx_hash", "0x2", "conflict", "receipt.status")
	record.Info("ramp: call", "uuid", repeated, "session_id", "alice", "state", "accepted", "new", false) // of another server
	record.Error("a result contradicts its order", "uuid", repeated, "state", "failed", "tx_hash", "0x2")
	record.Error("ramp: call", "uuid", uuid.New(), "status", 500, "error", "nothing was stored")
	text := "game-1  | " + strings.TrimSuffix(log.String(), "\n") // a line may end with the file

	lost := func(d *studio) []support.Logged {
		orders := ramp.Must(support.New(support.Config{Store: d.store}))
		lost := ramp.Must(orders.Lost(t.Context(), strings.NewReader(text)))
		return lost
	}
	again := support.Logged{UUID: repeated, SessionID: "alice", State: ramp.OrderFailed, TxHash: "0x1"}
	assert.Equal(t, []support.Logged{{UUID: abandoned, SessionID: "alice", State: ramp.OrderAbandoned,
		Effects: []string{"take -100 item_gold", "give back +100 item_gold"}}, again}, lost(now))
	again.Missing = true
	assert.Equal(t, []support.Logged{
		{UUID: waits, SessionID: "alice", State: ramp.OrderAccepted, Effects: []string{"take -100 item_gold"}, Missing: true},
		{UUID: abandoned, SessionID: "alice", State: ramp.OrderAbandoned,
			Effects: []string{"take -100 item_gold", "give back +100 item_gold"}, Missing: true}, again,
	}, lost(newStudio(t)))
	_, err := ramp.Must(support.New(support.Config{Store: new(ramp.MemoryStore)})).Lost(t.Context(), strings.NewReader(text))
	assert.ErrorContains(t, err, "MemoryStore.Apply is required", "a store that fails lost nothing")
}
