package rampsql

import (
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
)

// orderRow is a row of the table.
type orderRow struct {
	ramp.Order
	claim string

	digest string // as it is stored
	intent []byte // likewise
}

// newRow returns the row of an order.
func newRow(o *ramp.Order, claim string) (*orderRow, error) {
	intent, err := o.Intent.MarshalJSON() // which escapes no letter, because people search the column
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", o.UUID, err)
	}
	return &orderRow{Order: *o, claim: claim, digest: o.Digest.String(), intent: intent}, nil
}

// derive sets the fields of an order that follow from its intent, as package ramp does.
func derive(o *ramp.Order) error {
	direction, err := o.Intent.Direction()
	if err != nil {
		return err
	}
	moves := ramp.OrderAccepted // when a mint takes its assets
	if direction == ramp.Burn {
		moves = ramp.OrderSucceeded // and a burn grants them
	}
	effect, err := o.Intent.Effect(moves)
	o.Direction, o.Assets = direction, effect.Assets
	return err
}

// cloneIntent returns an intent that shares no memory with i.
func cloneIntent(i ramp.Intent) ramp.Intent {
	i.From, i.To = slices.Clone(i.From), slices.Clone(i.To)
	i.TargetCandidate = slices.Clone(i.TargetCandidate)
	return i
}

// optional is a text that is NULL if it is empty.
type optional string

// Scan implements [sql.Scanner].
func (o *optional) Scan(value any) error {
	var text sql.NullString
	err := text.Scan(value)
	*o = optional(text.String)
	return err
}

// milliseconds is a time that a column holds as milliseconds since 1970, or as NULL if it is zero.
type milliseconds time.Time

// Scan implements [sql.Scanner].
func (m *milliseconds) Scan(value any) error {
	var since sql.NullInt64
	err := since.Scan(value)
	*m = milliseconds{}
	if since.Valid {
		*m = milliseconds(time.UnixMilli(since.Int64).UTC())
	}
	return err
}

// value returns the argument that writes what at points to.
func value(at any) any {
	switch at := at.(type) {
	case *string:
		return *at
	case *optional:
		return string(*at)
	case *[]byte:
		return string(*at)
	case *uuid.UUID:
		return at.String()
	case *milliseconds:
		return time.Time(*at).UnixMilli()
	default:
		return at // which no driver takes
	}
}
