package ramp

import (
	"context"
	_ "embed" // for the schema files
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Dialect is a kind of SQL database.
type Dialect int

// The dialects.
const (
	PostgreSQL Dialect = iota + 1 // PostgreSQL 9.5 or newer
	MySQL                         // MySQL 8.0 or newer, or MariaDB 10.5 or newer; with InnoDB
	SQLite                        // SQLite 3.37 or newer
)

// dialect is all that differs between the databases.
type dialect struct {
	name   string
	schema string

	version  string    // asks for the version
	schemas  string    // the schema of the table in information_schema; "" if columns have no width
	products []product // the first whose name is in the answer, or the last

	insert    string // inserts an order, unless its UUID exists
	returning bool   // insert returns the row
	lock      string // selects an order and locks it
	latest    string // makes a SELECT read what was committed last, not a snapshot

	// bind returns a statement and its arguments as they are sent.
	bind func(statement string, args ...any) (string, []any)

	begin func(ctx context.Context, s *SQLStore) (transaction, error)
}

// product is a database that a dialect fits, and its oldest version.
type product struct {
	name         string
	major, minor int
}

var (
	//go:embed schema/postgresql.sql
	schemaPostgreSQL string
	//go:embed schema/mysql.sql
	schemaMySQL string
	//go:embed schema/sqlite.sql
	schemaSQLite string
)

const (
	insertOrder = "INSERT INTO ramp_orders (direction, " + orderColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', ?, "
	orReturn    = ") ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING " + orderColumns
	lockOrder   = selectOrders + "WHERE uuid = ? FOR UPDATE"
)

// values returns the dialect's values, or nil for an unknown dialect.
func (d Dialect) values() *dialect {
	switch d {
	case PostgreSQL:
		return &dialect{
			name: "PostgreSQL", schema: schemaPostgreSQL,
			version: "SHOW server_version", products: []product{{"PostgreSQL", 9, 5}}, schemas: "current_schema()",
			// DEFAULT is NULL here. SQLite rejects it, so that a wrong dialect fails
			// at the first order and not at its result.
			insert: insertOrder + "DEFAULT" + orReturn, returning: true, lock: lockOrder,
			bind: numbered, begin: beginPostgreSQL,
		}
	case MySQL:
		return &dialect{
			name: "MySQL", schema: schemaMySQL,
			version: "SELECT @@version", products: []product{{"MariaDB", 10, 5}, {"MySQL", 8, 0}}, schemas: "DATABASE()",
			// Not INSERT IGNORE, which turns other errors into warnings, and locks
			// an existing row so weakly that two repeats can deadlock.
			insert: insertOrder + "NULL) ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid", lock: lockOrder,
			// Not FOR UPDATE: two that lost against one transaction would deadlock.
			latest: " LOCK IN SHARE MODE",
			bind:   literally, begin: beginMySQL,
		}
	case SQLite:
		return &dialect{
			name: "SQLite", schema: schemaSQLite,
			version: "SELECT sqlite_version()", products: []product{{"SQLite", 3, 37}},
			insert: insertOrder + "NULL" + orReturn, returning: true,
			// SQLite has no FOR UPDATE. A write takes its only lock.
			lock: "UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING " + orderColumns,
			bind: unchanged, begin: beginSQLite,
		}
	default:
		return nil
	}
}

// String returns the name of the database, such as "MySQL".
func (d Dialect) String() string {
	if v := d.values(); v != nil {
		return v.name
	}
	return "unknown dialect"
}

// Schema returns the statements that create the table of a [SQLStore], for your
// migrations. The module's directory schema has them as files too. It is empty for
// an unknown dialect.
func (d Dialect) Schema() string {
	if v := d.values(); v != nil {
		return v.schema
	}
	return ""
}

// checkVersion returns an error if the database is too old. A fork may format its
// version differently. That is not an error.
func (d *dialect) checkVersion(version string) error {
	want := d.products[len(d.products)-1]
	for _, p := range d.products {
		if strings.Contains(version, p.name) {
			want = p
			break
		}
	}
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n > 0 &&
		(major < want.major || major == want.major && minor < want.minor) {
		return fmt.Errorf("the database is %s %d.%d, but must be %d.%d or newer", want.name, major, minor, want.major, want.minor)
	}
	return nil
}

// unchanged is the bind of a database whose placeholder is the question mark.
func unchanged(statement string, args ...any) (string, []any) { return statement, args }

// numbered replaces ? by $1, $2 and so on.
func numbered(statement string, args ...any) (string, []any) {
	return fill(statement, func(n int) string { return "$" + strconv.Itoa(n+1) }), args
}

// literally writes the arguments into the statement, because with arguments the
// driver would prepare the statement first, in another round trip.
func literally(statement string, args ...any) (string, []any) {
	return fill(statement, func(n int) string { return literal(args[n]) }), nil
}

// fill replaces each question mark of a statement.
func fill(statement string, value func(n int) string) string {
	var b strings.Builder
	for n, part := range strings.Split(statement, "?") {
		if n > 0 {
			b.WriteString(value(n - 1))
		}
		b.WriteString(part)
	}
	return b.String()
}

// literal writes a value for MySQL. Text with anything but letters, digits and
// dashes is written in hex, which has the same meaning under every sql_mode and
// character set.
func literal(value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%d", value)
	}
	const safe = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if strings.Trim(text, safe) != "" {
		return "_utf8mb4 X'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + text + "'"
}
