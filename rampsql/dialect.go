package rampsql

import (
	"context"
	_ "embed" // for the schema files
	"fmt"
	"strconv"
	"strings"
)

// Dialect is a kind of SQL database.
type Dialect string

// The dialects.
const (
	PostgreSQL Dialect = "postgresql" // PostgreSQL 9.5 or newer
	MySQL      Dialect = "mysql"      // MySQL 8.0, MariaDB 10.5 (with InnoDB), TiDB 8.5, or newer
	SQLite     Dialect = "sqlite"     // SQLite 3.37 or newer
)

// dialect is all that differs between the databases.
type dialect struct {
	schema string

	version  string    // asks for the version
	products []product // the first whose name is in the answer, or the last

	wrongColumn string // selects a column that is too narrow or of another type, and its type
	hashIndexes string // counts the unique indexes of tx_hash alone
	volatile    string // selects why orders would outlive a rollback, or not a crash; otherwise nothing
	lax         string // selects the setting that lets the database store another value, or nothing
	settings    string // selects names and values of settings
	autocommit  string // selects whether autocommit is on; "" if it always is
	clock       string // selects the time in milliseconds since 1970; "" if the clock is that of the program

	weak func(settings map[string]string) []string // what may lose a commit that was confirmed

	wallet string // user_address, compared without its case

	orders    string // selects orders, without a condition
	insert    string // inserts an order, unless its UUID exists
	returning bool   // insert returns the row
	lock      string // selects an order and locks it
	note      string // notes a refusal of an order that waits
	literal   bool   // arguments are written into the statement

	begin func(ctx context.Context, p pool) (transaction, error)
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

// The statements that dialects share.
const (
	insertOrder = "INSERT INTO ramp_orders (direction, " + orderColumns + ") VALUES " +
		"($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '', '', $11, "
	orReturn    = ") ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING " + orderColumns
	lockOrder   = "WHERE uuid = $1 FOR UPDATE"
	wrongColumn = "SELECT column_name, data_type FROM information_schema.columns" +
		" WHERE table_schema = %s AND table_name = 'ramp_orders' AND (CASE" +
		" WHEN column_name IN ('accepted_at', 'finished_at') THEN data_type <> 'bigint'" +
		" ELSE column_name IN ('uuid', 'claim', 'state', 'direction', 'network', 'project_id'," +
		" 'session_id', 'user_address', 'digest', 'intent', 'tx_hash', 'reason', 'settled')" +
		" AND data_type NOT LIKE '%%char%%' AND data_type NOT LIKE '%%text'" +
		" AND data_type NOT IN ('uuid', 'enum', 'USER-DEFINED') END" +
		" OR character_maximum_length < CASE column_name WHEN 'uuid' THEN 36 WHEN 'claim' THEN 26" +
		" WHEN 'state' THEN 9 WHEN 'direction' THEN 4 WHEN 'network' THEN 7 WHEN 'digest' THEN 66" +
		" WHEN 'tx_hash' THEN 66 WHEN 'reason' THEN 4096 WHEN 'settled' THEN 4096" +
		" WHEN 'intent' THEN 65535 ELSE CASE" +
		" WHEN column_name IN ('project_id', 'session_id', 'user_address') THEN 1024 ELSE 0 END END)"
)

// The statements that note a refusal. They write nothing unless the order waits.
const (
	noteRefusal = "INSERT INTO ramp_refusals (uuid, first_at, last_at, refusals, reason) SELECT uuid," +
		" CAST($1 AS bigint), CAST($2 AS bigint), 1, CAST($3 AS text) FROM ramp_orders" +
		" WHERE uuid = $4 AND state = 'accepted' ON CONFLICT (uuid) DO UPDATE SET" +
		" last_at = excluded.last_at, refusals = ramp_refusals.refusals + 1, reason = excluded.reason"
	noteRefusalMySQL = "INSERT INTO ramp_refusals (uuid, first_at, last_at, refusals, reason)" +
		" SELECT uuid, $1, $2, 1, $3 FROM ramp_orders WHERE uuid = $4 AND state = 'accepted'" +
		" ON DUPLICATE KEY UPDATE last_at = VALUES(last_at)," +
		" refusals = ramp_refusals.refusals + 1, reason = VALUES(reason)"
)

// values returns the dialect's values. Those of an unknown dialect have no schema.
func (d Dialect) values() *dialect {
	switch d {
	case PostgreSQL:
		return &dialect{
			schema:  schemaPostgreSQL,
			version: "SHOW server_version", products: []product{{"PostgreSQL", 9, 5}},
			wrongColumn: fmt.Sprintf(wrongColumn, "(SELECT n.nspname FROM pg_namespace n"+
				" JOIN pg_class c ON c.relnamespace = n.oid WHERE c.oid = 'ramp_orders'::regclass)"),
			hashIndexes: "SELECT count(*) FROM pg_index i" +
				" JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]" +
				" WHERE i.indrelid = 'ramp_orders'::regclass AND i.indisunique AND i.indisvalid" +
				" AND i.indnatts = 1 AND a.attname = 'tx_hash'" +
				" AND COALESCE(pg_get_expr(i.indpred, i.indrelid), '') IN ('', '(tx_hash IS NOT NULL)')",
			volatile: "SELECT CASE relpersistence WHEN 'u' THEN 'UNLOGGED' ELSE 'TEMPORARY' END" +
				" FROM pg_class WHERE oid = 'ramp_orders'::regclass AND relpersistence <> 'p'",
			lax: "SELECT '' WHERE 1 = 0", settings: settingsPostgreSQL, weak: weakPostgreSQL,
			clock:  "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
			wallet: "lower(user_address)",
			// DEFAULT is NULL here. SQLite rejects it, and PostgreSQL has no IIF, so that a
			// wrong dialect fails at the first order and not at its result.
			insert: insertOrder + "DEFAULT" + orReturn, returning: true,
			orders: selectOrders, lock: selectOrders + lockOrder, note: noteRefusal,
			begin: beginPostgreSQL,
		}
	case MySQL:
		return &dialect{
			schema:  schemaMySQL,
			version: "SELECT @@version", products: []product{{"MariaDB", 10, 5}, {"MySQL", 8, 0}},
			wrongColumn: fmt.Sprintf(wrongColumn, "DATABASE()"),
			hashIndexes: "SELECT COUNT(*) FROM (SELECT index_name FROM information_schema.statistics" +
				" WHERE table_schema = DATABASE() AND table_name = 'ramp_orders' AND non_unique = 0" +
				" GROUP BY index_name" +
				" HAVING COUNT(*) = 1 AND MAX(column_name) = 'tx_hash' AND MAX(sub_part) IS NULL) AS found",
			volatile: "SELECT CONCAT('of the engine ', e.engine) FROM information_schema.tables t" +
				" JOIN information_schema.engines e ON e.engine = t.engine" +
				" WHERE t.table_schema = DATABASE() AND t.table_name = 'ramp_orders' AND " +
				"e.transactions <> 'YES'",
			lax:   "SELECT CONCAT('sql_mode=', @@sql_mode) FROM DUAL WHERE @@sql_mode NOT LIKE '%STRICT%'",
			clock: "SELECT UNIX_TIMESTAMP() * 1000", settings: settingsMySQL, weak: weakMySQL,
			autocommit: "SELECT @@autocommit",
			wallet:     "user_address", // of a collation without case
			// Not INSERT IGNORE, which turns other errors into warnings, and locks
			// an existing row so weakly that two repeats can deadlock.
			insert: insertOrder + "NULL) ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid",
			orders: selectExact, lock: selectExact + lockOrder, note: noteRefusalMySQL,
			literal: true, begin: beginMySQL,
		}
	case SQLite:
		return &dialect{
			schema:  schemaSQLite,
			version: "SELECT sqlite_version()", products: []product{{"SQLite", 3, 37}},
			wrongColumn: "SELECT name, type FROM pragma_table_info('ramp_orders')" +
				" WHERE name IN ('accepted_at', 'finished_at') AND upper(type) NOT LIKE '%INT%'",
			hashIndexes: "SELECT COUNT(*) FROM pragma_index_list('ramp_orders') AS i" +
				" WHERE i.\"unique\" = 1 AND i.partial = 0" +
				" AND (SELECT group_concat(name) FROM pragma_index_info(i.name)) = 'tx_hash'",
			wallet:   "lower(user_address)",
			volatile: "SELECT '' WHERE 1 = 0",
			lax:      "SELECT '' WHERE 1 = 0", settings: settingsSQLite, weak: weakSQLite,
			insert: insertOrder + "IIF(0, 0, NULL)" + orReturn, returning: true,
			orders: selectOrders, note: noteRefusal,
			// SQLite has no FOR UPDATE. A write takes its only lock.
			lock:  "UPDATE ramp_orders SET claim = claim WHERE uuid = $1 RETURNING " + orderColumns,
			begin: beginSQLite,
		}
	default:
		return &dialect{}
	}
}

// Schema returns the statements that create the tables of a [Store], for your
// migrations. The directory rampsql/schema of the module has them as files too. Servers that start
// together may all run them: run the whole text at once, or in one transaction, because
// on PostgreSQL its first statement makes other servers wait until the transaction ends.
// It is empty for an unknown dialect.
func (d Dialect) Schema() string { return d.values().schema }

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
		return fmt.Errorf("the database is %s %d.%d, but must be %d.%d or newer",
			want.name, major, minor, want.major, want.minor)
	}
	return nil
}

// bind returns a statement and its arguments as they are sent. Each statement has $1, $2
// and so on in this order, because SQLite counts them by where they first stand.
func (d *dialect) bind(statement string, args ...any) (string, []any) {
	if d.literal {
		return literally(statement, args...), nil
	}
	return statement, args
}

// marks returns the placeholders of n arguments.
func marks(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(", $" + strconv.Itoa(i+1))
	}
	return strings.TrimPrefix(all.String(), ", ")
}
