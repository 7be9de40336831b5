package support

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Logged is an order as the log of a game server has it.
type Logged struct {
	UUID      uuid.UUID       `json:"uuid"`
	SessionID string          `json:"session_id"`
	State     ramp.OrderState `json:"state"`   // after the last step that was logged
	TxHash    string          `json:"tx_hash"` // of that step
	Effects   []string        `json:"effects"` // what the steps moved, such as "take -100 item_gold", in their order

	// Missing reports whether the store has no such order. Otherwise it has the order,
	// but not its end.
	Missing bool `json:"missing"`
}

// Lost returns the orders of a log that are missing in the store, or whose end is missing,
// in the order of the log. Use it after a backup was restored. The log is that of a
// [slog.JSONHandler] for [ramp.HandlerConfig].Logger and [Config].Logger, and may have
// other lines, and text before a record. Put the logs of several servers together.
func (o *Orders) Lost(ctx context.Context, log io.Reader) ([]Logged, error) {
	steps := []string{"ramp: call", "ramp: order finished", "ramp: order abandoned"}
	var ids []uuid.UUID
	logged := map[uuid.UUID]*Logged{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if at := bytes.IndexByte(line, '{'); at >= 0 {
			var r struct {
				Msg, Effect, Conflict string
				New                   bool
				Logged
			}
			// A repeat counts: the server may have been killed before it logged the step.
			if json.Unmarshal(line[at:], &r) == nil && slices.Contains(steps, r.Msg) && r.State != "" && r.Conflict == "" {
				one := logged[r.UUID]
				if one == nil {
					one = &Logged{UUID: r.UUID}
					logged[r.UUID], ids = one, append(ids, r.UUID)
				}
				if one.SessionID = r.SessionID; r.New {
					one.Effects = append(one.Effects, r.Effect)
				}
				if r.State != ramp.OrderAccepted || one.State == "" { // logs that were put together may be out of order
					one.State, one.TxHash = r.State, r.TxHash
				}
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("ramp: read the log: %w", err)
		}
	}
	var lost []Logged
	for _, id := range ids {
		one := logged[id]
		stored, err := o.order(ctx, id)
		one.Missing = errors.Is(err, ramp.ErrOrderUnknown)
		switch {
		case errors.Is(err, ramp.ErrOrderConflict): // of another project or network
		case err != nil && !one.Missing:
			return nil, err
		case one.Missing, stored.State == ramp.OrderAccepted && one.State != ramp.OrderAccepted:
			lost = append(lost, *one)
		}
	}
	return lost, nil
}
