package rampsql

import (
	"bytes"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/storable"
)

// column is a column of the table ramp_orders, and all that a [Store] knows of it.
type column struct {
	name    string
	since   int // the version of the tables that added it
	holds   content
	width   int // the characters that it must hold; 0 for a number
	class   class
	written moment

	// at returns where the value is in a row, which is read to there and written from there. A column
	// that can be NULL is read to an optional text or a moment of time: NULL is its zero value. That is
	// each column of a later version, because a release before does not write it.
	at func(*orderRow) any
}

// content is the kind of value that a column holds.
type content int

const (
	number content = iota + 1
	code           // an ID, a hash or a word of ours: it has ASCII characters only
	text           // what people write, in any script
)

// class says to whom a value belongs, and with that whether EraseSession replaces it.
type class int

const (
	ofOrder  class = iota + 1 // what the books need, and how the order ended: it is kept
	ofPlayer                  // who the player is, or what the player wrote: it is replaced
)

// moment is the step of an order that writes a column.
type moment int

const (
	atAccept moment = iota + 1
	atEnd
	atBoth
)

// columns are those of the table. A field that is stored with an order is one row, and has its column in
// the schemas and its migrations. A column that is written when an order is accepted stands before those
// that are written at its end.
var columns = []column{
	{"direction", 1, code, 4, ofOrder, atAccept, // for lookups: it follows from the intent
		func(r *orderRow) any { return (*string)(&r.Direction) }},
	{"uuid", 1, code, 36, ofOrder, atAccept,
		func(r *orderRow) any { return &r.UUID }},
	{"claim", 1, code, 26, ofOrder, atBoth,
		func(r *orderRow) any { return &r.claim }},
	{"state", 1, code, 9, ofOrder, atBoth,
		func(r *orderRow) any { return (*string)(&r.State) }},
	{"network", 1, code, 7, ofOrder, atAccept,
		func(r *orderRow) any { return (*string)(&r.Network) }},
	{"project_id", 1, text, storable.MaxText, ofOrder, atAccept,
		func(r *orderRow) any { return &r.ProjectID }},
	{"session_id", 1, text, storable.MaxText, ofPlayer, atAccept,
		func(r *orderRow) any { return &r.SessionID }},
	{"user_address", 1, text, storable.MaxText, ofPlayer, atAccept,
		func(r *orderRow) any { return &r.UserAddress }},
	{"digest", 1, code, 66, ofOrder, atAccept,
		func(r *orderRow) any { return &r.digest }},
	{"intent", 1, text, 65535, ofOrder, atAccept,
		func(r *orderRow) any { return &r.intent }},
	{"tx_hash", 1, code, 66, ofOrder, atEnd,
		func(r *orderRow) any { return (*optional)(&r.TxHash) }},
	{"reason", 1, text, storable.MaxReason, ofOrder, atEnd,
		func(r *orderRow) any { return &r.Reason }},
	{"settled", 1, text, storable.MaxReason, ofOrder, atEnd,
		func(r *orderRow) any { return &r.Settled }},
	{"accepted_at", 1, number, 0, ofOrder, atAccept,
		func(r *orderRow) any { return (*milliseconds)(&r.AcceptedAt) }},
	{"finished_at", 1, number, 0, ofOrder, atEnd,
		func(r *orderRow) any { return (*milliseconds)(&r.FinishedAt) }},
}

// index is an index of the table.
type index struct {
	name  string
	since int // the version of the tables that added it
}

// indexes are those of the table. One that a release adds is one row, and stands in the schemas and its
// migrations.
var indexes = []index{
	{"ramp_orders_state", 1},
	{"ramp_orders_session", 1},
	{"ramp_orders_wallet", 1},
	{"ramp_orders_ended", 1},
	{"ramp_orders_newest", 1},
	{"ramp_orders_tx_hash", 1},
}

// cataloged is what the database says of a column or an index.
type cataloged struct {
	kind  string        // the type of a column, or "index"
	width sql.NullInt64 // the characters that it holds, if it is limited
}

// fits reports whether a column of the database holds each value of c.
func (c *column) fits(of cataloged) bool {
	kind := strings.ToLower(of.kind)
	if c.holds == number {
		return kind == "bigint"
	}
	ofText := strings.Contains(kind, "char") || strings.HasSuffix(kind, "text") ||
		kind == "uuid" || kind == "enum" || kind == "user-defined"
	return ofText && (!of.width.Valid || of.width.Int64 >= int64(c.width))
}

// nullable reports whether the column is NULL if its value is empty.
func (c *column) nullable() bool {
	switch c.at(new(orderRow)).(type) {
	case *optional, *milliseconds:
		return true
	default:
		return false
	}
}

// The statements that are made of the columns.
var (
	orderColumns = listed(", ", func(c *column) string { return c.name })
	selectOrders = "SELECT " + orderColumns + " FROM ramp_orders "

	// selectExact selects the same on MySQL, with each text as the bytes of its UTF-8. A connection in
	// another character set would get ? for each character that it lacks, and a result would
	// contradict its own order.
	selectExact = "SELECT " + listed(", ", func(c *column) string {
		if c.holds == text {
			return "CAST(CONVERT(" + c.name + " USING utf8mb4) AS BINARY)"
		}
		return c.name
	}) + " FROM ramp_orders "

	updateOrder = updateStatement()
	eraseOrders = eraseStatement()
)

// listed joins the texts of the columns that are not empty.
func listed(separator string, item func(*column) string) string {
	var items []string
	for i := range columns {
		if text := item(&columns[i]); text != "" {
			items = append(items, text)
		}
	}
	return strings.Join(items, separator)
}

// marker returns a function that writes the next placeholder.
func marker() func() string {
	n := 0
	return func() string { n++; return "$" + strconv.Itoa(n) }
}

// placeholder returns the placeholder that writes a column.
func (c *column) placeholder(next func() string) string {
	if c.holds != number && c.nullable() {
		return "NULLIF(" + next() + ", '')"
	}
	return next()
}

// insertStatement returns the statement for a new order, without what follows its values. null is how
// the dialect writes NULL. The arguments are those of values.
func insertStatement(null string) string {
	next := marker()
	return "INSERT INTO ramp_orders (" + orderColumns + ") VALUES (" + listed(", ", func(c *column) string {
		switch {
		case c.written != atEnd:
			return c.placeholder(next)
		case c.nullable():
			return null
		default:
			return "''"
		}
	}) + ")"
}

// updateStatement returns the statement that ends an order. After the arguments of values come its UUID
// and the claim that it had.
func updateStatement() string {
	next := marker()
	return "UPDATE ramp_orders SET " + listed(", ", func(c *column) string {
		if c.written == atAccept {
			return ""
		}
		return c.name + " = " + c.placeholder(next)
	}) + " WHERE uuid = " + next() + " AND claim = " + next()
}

// eraseStatement returns the statement that replaces what belongs to the player in the orders of a
// session. Its arguments are the replacement for each column, the session and a time.
func eraseStatement() string {
	next := marker()
	return "UPDATE ramp_orders SET " + listed(", ", func(c *column) string {
		if c.class != ofPlayer {
			return ""
		}
		return c.name + " = " + next()
	}) + " WHERE session_id = " + next() + " AND state <> 'accepted' AND finished_at < " + next() +
		" AND " + ours
}

// withPlace adds the place of the table to a statement that selects orders.
func withPlace(selects, place string) string {
	return strings.TrimSuffix(selects, " FROM ramp_orders ") + ", " + place + " FROM ramp_orders "
}

// values returns the arguments that write a row at one of two moments.
func (r *orderRow) values(when moment) []any {
	args := make([]any, 0, len(columns)+2) // with what follows in an UPDATE
	for i := range columns {
		if c := &columns[i]; c.written == when || c.written == atBoth {
			args = append(args, value(c.at(r)))
		}
	}
	return args
}

// readOrder reads a row. sent is the row that was sent, whose intent is not parsed again if it came back
// as it is, or nil. also is read from what follows the columns. If the row is not a valid order,
// readOrder returns what it could read and the error. If it cannot be scanned, readOrder returns nil.
func readOrder(from interface{ Scan(...any) error }, sent *orderRow, also ...any) (*orderRow, error) {
	row := new(orderRow)
	into := make([]any, len(columns))
	for i := range columns {
		into[i] = columns[i].at(row)
	}
	err := from.Scan(append(into, also...)...)
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
