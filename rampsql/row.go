package rampsql

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// orderColumns are the columns that readOrder reads. The direction, which follows
// from the intent, is a column for lookups only.
const (
	orderColumns = "uuid, claim, state, network, project_id, session_id, user_address, digest, " +
		"intent, tx_hash, reason, settled, accepted_at, finished_at"
	selectOrders = "SELECT " + orderColumns + " FROM ramp_orders "
)

// selectExact selects the same on MySQL, with each text as the bytes of its UTF-8. A connection in
// another character set would get ? for each character that it lacks, and a result would
// contradict its own order.
const selectExact = "SELECT uuid, claim, state, network, " +
	asUTF8 + "project_id" + asBytes + asUTF8 + "session_id" + asBytes + asUTF8 + "user_address" + asBytes +
	"digest, " + asUTF8 + "intent" + asBytes + "tx_hash, " + asUTF8 + "reason" + asBytes +
	asUTF8 + "settled" + asBytes + "accepted_at, finished_at FROM ramp_orders "

const asUTF8, asBytes = "CAST(CONVERT(", " USING utf8mb4) AS BINARY), "

// orderRow is a row of the table.
type orderRow struct {
	ramp.Order
	claim string
}

// readOrder reads a row. of is the intent whose text is sent, to save reading it. If the
// row is not a valid order, readOrder returns what it could read and the error. If it
// cannot be scanned, readOrder returns nil.
func readOrder(from interface{ Scan(...any) error }, sent []byte, of ramp.Intent) (*orderRow, error) {
	var column struct { // in one piece of memory with the row
		orderRow
		digest     string
		intent     []byte
		txHash     sql.NullString
		acceptedAt int64
		finishedAt sql.NullInt64
	}
	row := &column.orderRow
	err := from.Scan(&row.UUID, &row.claim, (*string)(&row.State), (*string)(&row.Network), &row.ProjectID,
		&row.SessionID, &row.UserAddress, &column.digest, &column.intent, &column.txHash, &row.Reason,
		&row.Settled, &column.acceptedAt, &column.finishedAt)
	if err != nil {
		return nil, err
	}
	row.TxHash = column.txHash.String
	row.AcceptedAt = time.UnixMilli(column.acceptedAt).UTC()
	if column.finishedAt.Valid {
		row.FinishedAt = time.UnixMilli(column.finishedAt.Int64).UTC()
	}
	if row.Digest, err = ramp.ParseDigest(column.digest); err == nil && !bytes.Equal(column.intent, sent) {
		err = row.Intent.UnmarshalJSON(column.intent)
	} else {
		row.Intent = cloneIntent(of)
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

// derive sets the fields of an order that follow from its intent.
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
