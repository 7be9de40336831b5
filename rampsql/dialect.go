package rampsql

import (
	"context"
	"database/sql"
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

// dialectRequired is what is said where there is no dialect.
const dialectRequired = "is required and must be PostgreSQL, MySQL or SQLite"

// dialect is all that differs between the databases.
type dialect struct {
	version  string    // asks for the version
	products []product // the first whose name is in the answer, or the last

	catalog     string   // selects name, type and width of the columns, and of the indexes that are in use
	hashIndexes string   // counts the unique indexes of tx_hash alone
	volatile    string   // selects why orders would not outlive a crash; otherwise nothing
	lasting     string   // selects name and kind of the tables that no rollback changes
	warnings    string   // selects level, code and text of the warnings of a statement; "" if none
	lax         string   // selects the setting that lets the database store another value, or nothing
	sorted      string   // selects how tx_hash is sorted, if an upgrade can change that; "" if none can
	settings    string   // selects names and values of settings
	session     []string // select names and values of what Apply must leave as it was
	reverts     bool     // a rollback takes settings back, too
	place       string   // where ramp_orders is, as the connection resolves it
	autocommit  string   // selects whether autocommit is on; "" if it always is
	clock       string   // selects the time in milliseconds since 1970; "" if it is the program's

	weak func(settings map[string]string) []string // what may lose a commit that was confirmed

	wallet string // user_address, compared without its case

	orders    string // selects orders, without a condition
	insert    string // inserts an order, unless its UUID exists
	returning bool   // insert and claim return the row
	lock      string // selects an order and locks it
	note      string // notes a refusal of an order that waits
	claim     string // writes a claim, or locks the one that has its place
	holder    string // without returning, selects whose claim has a place, also if it was committed meanwhile
	literal   bool   // arguments are written into the statement

	begin  func(ctx context.Context, p pool) (transaction, error)
	nested func(ctx context.Context, conn *sql.Conn) (bool, error) // whether a connection is in a transaction
}

// product is a database that a dialect fits, and its oldest version.
type product struct {
	name         string
	major, minor int
}

// The statements that dialects share.
const (
	lockOrder      = "WHERE uuid = $1 FOR UPDATE"
	orKeep         = " ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING "
	refusalColumns = "uuid, first_at, last_at, refusals, reason"
)

// placePostgreSQL is NULL if the connection finds no table.
const placePostgreSQL = "(SELECT relnamespace::regnamespace::text FROM pg_class" +
	" WHERE oid = to_regclass('ramp_orders'))"

// sortedPostgreSQL selects nothing for the collation C, which that of the database may be, too.
// datlocprovider is a column since version 15.
const sortedPostgreSQL = "SELECT 'tx_hash has the collation ' || c.collname FROM pg_attribute a" +
	" JOIN pg_collation c ON c.oid = a.attcollation JOIN pg_database d ON d.datname = current_database()" +
	" WHERE a.attrelid = to_regclass('ramp_orders') AND a.attname = 'tx_hash'" +
	" AND NOT CASE c.collname WHEN 'default' THEN d.datcollate IN ('C', 'POSIX')" +
	" AND COALESCE(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c' ELSE c.collname IN ('C', 'POSIX') END"

// The statements that select what a connection keeps beyond a transaction, and the game depends on.
const (
	sessionPostgreSQL = "SELECT name, setting FROM pg_settings WHERE source = 'session'" +
		" AND name NOT LIKE 'transaction%' UNION ALL SELECT 'current_user', current_user::text" +
		" UNION ALL SELECT 'search_path', current_setting('search_path')"
	variablesMySQL = "SHOW SESSION VARIABLES WHERE variable_name IN ('sql_mode', 'time_zone'," +
		" 'character_set_client', 'character_set_connection', 'character_set_results'," +
		" 'collation_connection', 'tx_isolation', 'transaction_isolation', 'foreign_key_checks'," +
		" 'unique_checks', 'sql_safe_updates', 'lock_wait_timeout', 'innodb_lock_wait_timeout')"
	sessionMySQL = "SELECT 'database', COALESCE(DATABASE(), '')" +
		" UNION ALL SELECT 'current_role', COALESCE(CURRENT_ROLE(), '')"
	sessionSQLite = "SELECT 'query_only', query_only FROM pragma_query_only" +
		" UNION ALL SELECT 'ignore_check_constraints', ignore_check_constraints" +
		" FROM pragma_ignore_check_constraints UNION ALL SELECT 'database ' || name, ''" +
		" FROM pragma_database_list WHERE name <> 'temp'" +
		" UNION ALL SELECT 'temporary table ' || name, '' FROM sqlite_temp_master"
)

// The statements that note a refusal. They write nothing unless the order waits.
const (
	noteRefusal = "INSERT INTO ramp_refusals (" + refusalColumns + ") SELECT uuid," +
		" CAST($1 AS bigint), CAST($2 AS bigint), 1, CAST($3 AS text) FROM ramp_orders" +
		" WHERE uuid = $4 AND state = 'accepted' AND " + ours + " ON CONFLICT (uuid) DO UPDATE SET" +
		" last_at = excluded.last_at, refusals = ramp_refusals.refusals + 1, reason = excluded.reason"
	noteRefusalMySQL = "INSERT INTO ramp_refusals (" + refusalColumns + ")" +
		" SELECT uuid, $1, $2, 1, $3 FROM ramp_orders" +
		" WHERE uuid = $4 AND state = 'accepted' AND " + ours +
		" ON DUPLICATE KEY UPDATE last_at = VALUES(last_at)," +
		" refusals = ramp_refusals.refusals + 1, reason = VALUES(reason)"
)

// The statements of a claim. The one that has its place is written again, so the commit waits for whatever
// the commit of that one waited for.
const (
	claim = "INSERT INTO ramp_claims (network, tx_hash, place, uuid, claimed_at)" +
		" VALUES ($1, $2, $3, $4, $5)"
	keepClaim = claim + " ON CONFLICT (network, tx_hash, place) DO UPDATE SET uuid = ramp_claims.uuid" +
		" RETURNING uuid"
	claimHolder = "SELECT uuid FROM ramp_claims WHERE network = $1 AND tx_hash = $2 AND place = $3"
)

// values returns the dialect's values. Those of an unknown dialect are zero.
func (d Dialect) values() *dialect {
	switch d {
	case PostgreSQL:
		return &dialect{
			version: "SHOW server_version", products: []product{{"PostgreSQL", 9, 5}},
			catalog: "SELECT column_name::text, data_type::text, character_maximum_length::int" +
				" FROM information_schema.columns WHERE table_name = 'ramp_orders' AND table_schema =" +
				" (SELECT n.nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid" +
				" WHERE c.oid = to_regclass('ramp_orders')) UNION ALL" +
				" SELECT c.relname::text, 'index', NULL FROM pg_index i" +
				" JOIN pg_class c ON c.oid = i.indexrelid" +
				" WHERE i.indrelid = to_regclass('ramp_orders') AND i.indisvalid",
			hashIndexes: "SELECT count(*) FROM pg_index i" +
				" JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]" +
				" WHERE i.indrelid = 'ramp_orders'::regclass AND i.indisunique AND i.indisvalid" +
				" AND i.indnatts = 1 AND a.attname = 'tx_hash'" +
				" AND COALESCE(pg_get_expr(i.indpred, i.indrelid), '') IN ('', '(tx_hash IS NOT NULL)')",
			volatile: "SELECT CASE relpersistence WHEN 'u' THEN 'UNLOGGED' ELSE 'TEMPORARY' END" +
				" FROM pg_class WHERE oid = 'ramp_orders'::regclass AND relpersistence <> 'p'",
			lasting: "SELECT c.relname::text, 'a foreign table of ' || w.fdwname FROM pg_foreign_table f" +
				" JOIN pg_class c ON c.oid = f.ftrelid JOIN pg_foreign_server s ON s.oid = f.ftserver" +
				" JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw WHERE w.fdwname <> 'postgres_fdw'" +
				" AND c.relnamespace = (SELECT relnamespace FROM pg_class" +
				" WHERE oid = to_regclass('ramp_orders'))",
			lax: "SELECT '' WHERE 1 = 0", settings: settingsPostgreSQL, weak: weakPostgreSQL,
			sorted:  sortedPostgreSQL,
			session: []string{sessionPostgreSQL}, reverts: true, place: placePostgreSQL,
			nested: nestedPostgreSQL,
			clock:  "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
			wallet: "lower(user_address)",
			// DEFAULT is NULL here. SQLite rejects it, and PostgreSQL has no IIF, so that a
			// wrong dialect fails at the first order and not at its result.
			insert:    insertStatement("DEFAULT") + orKeep + orderColumns + ", " + placePostgreSQL,
			returning: true,
			orders:    selectOrders, lock: withPlace(selectOrders, placePostgreSQL) + lockOrder,
			note: noteRefusal, claim: keepClaim, begin: beginPostgreSQL,
		}
	case MySQL:
		return &dialect{
			version: "SELECT @@version", products: []product{{"MariaDB", 10, 5}, {"MySQL", 8, 0}},
			catalog: "SELECT column_name, data_type, character_maximum_length" +
				" FROM information_schema.columns WHERE table_schema = DATABASE()" +
				" AND table_name = 'ramp_orders' UNION ALL SELECT DISTINCT index_name, 'index', NULL" +
				" FROM information_schema.statistics WHERE table_schema = DATABASE()" +
				" AND table_name = 'ramp_orders'",
			hashIndexes: "SELECT COUNT(*) FROM (SELECT index_name FROM information_schema.statistics" +
				" WHERE table_schema = DATABASE() AND table_name = 'ramp_orders' AND non_unique = 0" +
				" GROUP BY index_name" +
				" HAVING COUNT(*) = 1 AND MAX(column_name) = 'tx_hash' AND MAX(sub_part) IS NULL) AS found",
			volatile: "SELECT '' FROM DUAL WHERE 1 = 0", warnings: "SHOW WARNINGS",
			lasting: "SELECT t.table_name, CONCAT('of the engine ', e.engine)" +
				" FROM information_schema.tables t" +
				" JOIN information_schema.engines e ON e.engine = t.engine" +
				" WHERE t.table_schema = DATABASE() AND e.transactions <> 'YES'" +
				" AND t.table_type <> 'SEQUENCE'",
			lax:   "SELECT CONCAT('sql_mode=', @@sql_mode) FROM DUAL WHERE @@sql_mode NOT LIKE '%STRICT%'",
			clock: "SELECT UNIX_TIMESTAMP() * 1000", settings: settingsMySQL, weak: weakMySQL,
			autocommit: "SELECT @@autocommit", place: "DATABASE()", nested: nestedMySQL,
			session: []string{variablesMySQL, sessionMySQL},
			wallet:  "user_address", // of a collation without case
			// Not INSERT IGNORE, which turns other errors into warnings, and locks
			// an existing row so weakly that two repeats can deadlock.
			insert: insertStatement("NULL") + " ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid",
			orders: selectExact, lock: withPlace(selectExact, "DATABASE()") + lockOrder,
			note:    noteRefusalMySQL,
			claim:   claim + " ON DUPLICATE KEY UPDATE uuid = ramp_claims.uuid",
			holder:  claimHolder + " FOR UPDATE",
			literal: true, begin: beginMySQL,
		}
	case SQLite:
		return &dialect{
			version: "SELECT sqlite_version()", products: []product{{"SQLite", 3, 37}},
			catalog: "SELECT name, CASE WHEN upper(type) LIKE '%INT%' THEN 'bigint' ELSE type END, NULL" +
				" FROM pragma_table_info('ramp_orders')" +
				" UNION ALL SELECT name, 'index', NULL FROM pragma_index_list('ramp_orders')",
			hashIndexes: "SELECT COUNT(*) FROM pragma_index_list('ramp_orders') AS i" +
				" WHERE i.\"unique\" = 1 AND i.partial = 0" +
				" AND (SELECT group_concat(name) FROM pragma_index_info(i.name)) = 'tx_hash'",
			wallet:   "lower(user_address)",
			volatile: "SELECT '' WHERE 1 = 0",
			lasting: "SELECT 'ramp_orders', 'in a database with journal_mode=off' FROM pragma_journal_mode" +
				" WHERE journal_mode = 'off'",
			lax: "SELECT '' WHERE 1 = 0", settings: settingsSQLite, weak: weakSQLite,
			session: []string{sessionSQLite}, place: "'main'", nested: nestedSQLite,
			insert: insertStatement("IIF(0, 0, NULL)") + orKeep + orderColumns + ", 'main'", returning: true,
			orders: selectOrders, note: noteRefusal, claim: keepClaim,
			// SQLite has no FOR UPDATE. A write takes its only lock.
			lock: "UPDATE ramp_orders SET claim = claim WHERE uuid = $1 RETURNING " + orderColumns +
				", 'main'",
			begin: beginSQLite,
		}
	default:
		return &dialect{}
	}
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

// known reports whether this package has the values of a dialect.
func (d Dialect) known() bool { return d.values().begin != nil }
