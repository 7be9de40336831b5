package rampsql

import (
	"bytes"
	"fmt"
	"slices"

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

// readOrder reads a row. sent is the row that was sent, whose intent is not parsed again if it came back
// as it is, or nil. If the row is not a valid order, readOrder returns what it could read and the error.
// If it cannot be scanned, readOrder returns nil.
func readOrder(from interface{ Scan(...any) error }, sent *orderRow) (*orderRow, error) {
	row := new(orderRow)
	into := make([]any, len(columns))
	for i := range columns {
		into[i] = columns[i].at(row)
	}
	err := from.Scan(into...)
	if err != nil {
		return nil, err
	}
	if row.Digest, err = ramp.ParseDigest(row.digest); err == nil {
		if sent != nil && bytes.Equal(row.intent, sent.intent) {
			row.Intent = cloneIntent(sent.Intent)
		} else {
			err = row.Intent.UnmarshalJSON(row.intent)
		}
	}
	if err == nil {
		err = derive(&row.Order)
	}
	if err != nil { // not wrapped: it is not an error of the call
		row.Digest, row.Intent, row.Direction, row.Assets = ramp.Digest{}, ramp.Intent{}, "", nil
		return row, fmt.Errorf("the value stored under %s is not an order: %v", row.UUID, err)
	}
	return row, nil
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
