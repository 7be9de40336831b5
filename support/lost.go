package support

import (
	"bufio"
	"bytes"
	"cmp"
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
// [slog.JSONHandler] for [ramp.HandlerConfig].Logger and [Config].Logger. Put the logs of
// several servers together.
//
// A record is a whole line. Lines of other programs are skipped, also if they quote a
// record: a player could have written it. Lost returns an error beside the orders if a line
// that is no JSON object with a "msg" quotes one, because a container or a log service may
// have wrapped it, and if the log has no record of a step at all.
func (o *Orders) Lost(ctx context.Context, log io.Reader) ([]Logged, error) {
	read, unread := readSteps(log)
	if read == nil {
		return nil, unread
	}
	var lost []Logged
	for _, one := range read {
		stored, err := o.order(ctx, one.UUID)
		one.Missing = errors.Is(err, ramp.ErrOrderUnknown)
		switch {
		case errors.Is(err, ramp.ErrOrderForeign):
		case err != nil && !one.Missing:
			return nil, err
		case one.Missing, stored.State == ramp.OrderAccepted && one.State != ramp.OrderAccepted:
			lost = append(lost, *one)
		}
	}
	return lost, unread
}

// stepRecords are the messages of the records that name a step of an order.
var stepRecords = []string{"ramp: call", "ramp: order finished", "ramp: order abandoned"}

// readSteps returns the orders of a log, and an error if it may have more.
func readSteps(log io.Reader) (orders []*Logged, err error) {
	known := map[uuid.UUID]*Logged{}
	lines := bufio.NewReader(log)
	wrapped, first := 0, 0
	for n := 1; ; n++ {
		line, end := lines.ReadBytes('\n')
		r, ok := readRecord(line)
		if !ok {
			wrapped, first = wrapped+1, cmp.Or(first, n)
		} else if r != nil {
			one := known[r.UUID]
			if one == nil {
				one = &Logged{UUID: r.UUID}
				known[r.UUID], orders = one, append(orders, one)
			}
			one.add(r)
		}
		if errors.Is(end, io.EOF) {
			break
		}
		if end != nil {
			return nil, fmt.Errorf("ramp: read the log: %w", end)
		}
	}
	const want = "give each record a line of its own, as slog.JSONHandler writes it"
	switch {
	case wrapped > 0:
		return orders, fmt.Errorf("ramp: read the log: lines that may hold a record, but are none: %d, the first is line %d: %s",
			wrapped, first, want)
	case len(orders) == 0:
		return nil, fmt.Errorf("ramp: read the log: it has no record of an order: %s", want)
	}
	return orders, nil
}

// stepRecord is a record that names a step of an order.
type stepRecord struct {
	Msg, Effect, Conflict string
	New                   bool
	Logged
}

// readRecord returns the record of a step that a line is, or nil if it is something else. It
// is not ok if the line may hold such a record without being one.
func readRecord(line []byte) (r *stepRecord, ok bool) {
	var own struct {
		Msg *string `json:"msg"`
	}
	if json.Unmarshal(line, &own) != nil || own.Msg == nil {
		quotes := func(msg string) bool { return bytes.Contains(line, []byte(msg)) }
		return nil, !slices.ContainsFunc(stepRecords, quotes)
	}
	if !slices.Contains(stepRecords, *own.Msg) {
		return nil, true
	}
	r = new(stepRecord)
	switch err := json.Unmarshal(line, r); {
	case err != nil:
		return nil, false
	case r.State == "", r.Conflict != "": // nothing was stored, or what was stored contradicts the call
		return nil, true
	}
	return r, true
}

// add adds a step. A repeat counts: the server may have been killed before it logged the
// step that the repeat repeats.
func (l *Logged) add(r *stepRecord) {
	if l.SessionID = r.SessionID; r.New {
		l.Effects = append(l.Effects, r.Effect)
	}
	if r.State != ramp.OrderAccepted || l.State == "" { // logs that were put together may be out of order
		l.State, l.TxHash = r.State, r.TxHash
	}
}
