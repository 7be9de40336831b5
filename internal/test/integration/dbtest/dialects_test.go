package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// database is a kind of database, and all that the tests of every database know of it. In statements, %s
// or %[1]s is the schema of a place, which is also the name of its user.
type database struct {
	name    string
	dialect rampsql.Dialect
	modes   []mode
	texts   []mode // other connections with which each text must be stored

	env    string // has the address of a server, and is empty for a file
	driver string
	file   bool // a file has no users, and one transaction writes at a time

	numbered    bool           // arguments are $1, $2, …, not ?
	strict      bool           // after an error, a transaction accepts nothing but its end
	replaces    bool           // database/sql itself replaces a bad connection
	exact       bool           // DECIMAL is exact
	floatText   bool           // the driver has the text of a float, so that it can be read as an amount
	amounts     bool           // the driver takes an amount as an argument
	prepares    bool           // a statement with an argument costs a round trip more
	slowWalk    bool           // the walk through three calls takes longer than ten minutes
	trips       map[string]int // the round trips of each step of an order; nil without a network
	purse, near string         // a column for whole numbers, and a number near its end

	create func(t *testing.T, p *place, schema string)                          // the tables and the user of a place
	empty  func(t *testing.T, name string) (dsn string)                         // a database without tables
	dialed func(t *testing.T, dsn string, dial func(net.Conn) net.Conn) *sql.DB // through a dialer
	shop   func(t *testing.T, p *place) string                                  // the address for gameserver -db
	waits  func(p *place) (n int64, err error)                                  // the connections that wait for a lock

	reads     func(p *place) (n int64, err error) // what the only connection has read: rows, or blocks
	connector func(address string) (driver.Connector, error)

	enter, grant, revoke string // grant and revoke have the right as %[2]s
	analyze, explain     string
	quickDeadlocks       string // lets the user's deadlocks be found soon; %[2]s is after how long
	lock, unlock         string // of the table
	readOnly             string // of a connection
	autocommit           string // selects whether a connection commits each statement
	dropIndex            string // %[1]s is its name
	narrowClaim          string // makes the column too narrow
	leavesClaims         string // ends a statement that inserts claims unless there are some
	anySession           string // lets the game's tables hold every session
	manyAtOnce           string // for the address of a database that takes several statements at once
	counting, still      string // for the address of a connection whose reads are counted; leaves the statistics alone
	lax                  string // for the address of a database that truncates what does not fit
}

var databases = []database{
	{name: "SQLite", dialect: rampsql.SQLite, modes: []mode{
		{name: "immediate", params: "&_txlock=immediate"},
		{name: "deferred", params: "&_txlock=deferred"},
	},
		driver: "sqlite", file: true, leavesClaims: "ON CONFLICT DO NOTHING",
		// It stores a float beyond the end, unless the table forbids it.
		purse: "INTEGER CHECK (typeof(n) = 'integer')", near: "9223372036854775800",
		create: func(t *testing.T, p *place, schema string) {
			p.schema = "main"
			p.dsn = "file:" + filepath.Join(t.TempDir(), "test.db") +
				"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)" + p.mode.params
			run(t, open(t, p.driver, p.dsn), schema)
		},
		empty: func(t *testing.T, _ string) string {
			return "file:" + filepath.Join(t.TempDir(), "new.db") + "?_pragma=busy_timeout(20000)"
		},
		shop: func(_ *testing.T, p *place) string {
			path, _, _ := strings.Cut(strings.TrimPrefix(p.dsn, "file:"), "?")
			return "sqlite:" + path
		},
		waits: func(p *place) (int64, error) { return int64(p.db.Stats().InUse) - 1, nil }, // which retry in a loop
		reads: pagesRead, counting: "&_pragma=cache_size(1)",
		connector: func(address string) (driver.Connector, error) {
			return storetest.Connector("sqlite", address)
		},
		analyze: "ANALYZE %s.ramp_orders", explain: "EXPLAIN QUERY PLAN ", readOnly: "PRAGMA query_only = 1",
		dropIndex: "DROP INDEX %s;",
	},
	{name: "PostgreSQL", dialect: rampsql.PostgreSQL, modes: []mode{
		{name: "read committed"},
		{name: "repeatable read", isolation: sql.LevelRepeatableRead, races: true},
		{name: "serializable", isolation: sql.LevelSerializable, races: true},
		{name: "simple protocol", params: "&default_query_exec_mode=simple_protocol"},
	},
		env: "RAMP_TEST_POSTGRESQL", driver: "pgx",
		numbered: true, strict: true, replaces: true, exact: true, amounts: true,
		// BEGIN, INSERT, COMMIT; BEGIN, SELECT, UPDATE, COMMIT; BEGIN, SELECT, ROLLBACK, a claim, and as before
		trips: map[string]int{"accept": 3, "finish": 4, "repeat": 3, "finish with claims": 8},
		purse: "INTEGER", near: "2147483640",
		create: createOnPostgreSQL,
		empty: func(t *testing.T, name string) string {
			address := addressOf(t, envPostgreSQL)
			admin := open(t, "pgx", address)
			run(t, admin, "CREATE SCHEMA "+name)
			t.Cleanup(func() { run(t, admin, "DROP SCHEMA "+name+" CASCADE") })
			return address + "&search_path=" + name
		},
		dialed: func(t *testing.T, dsn string, dial func(net.Conn) net.Conn) *sql.DB {
			config := must.Get(pgx.ParseConfig(dsn))(t)
			config.DialFunc = through(dial)
			return stdlib.OpenDB(*config)
		},
		shop: func(t *testing.T, p *place) string {
			return addressOf(t, envPostgreSQL) + "&search_path=" + p.schema
		},
		waits: func(p *place) (n int64, err error) {
			return n, p.db.QueryRow("SELECT count(*) FROM pg_stat_activity" +
				" WHERE usename = current_user AND wait_event_type = 'Lock'").Scan(&n)
		},
		reads: blocksRead, counting: "&plan_cache_mode=force_generic_plan",
		still:     "ALTER TABLE %s.ramp_orders SET (autovacuum_enabled = false)",
		connector: func(address string) (driver.Connector, error) { return storetest.Connector("pgx", address) },
		enter:     "SET search_path = %s",
		grant:     "GRANT %[2]s ON ALL TABLES IN SCHEMA %[1]s TO %[1]s",
		revoke:    "REVOKE %[2]s ON %[1]s.ramp_orders FROM %[1]s",
		analyze:   "VACUUM ANALYZE %s.ramp_orders", explain: "EXPLAIN ",
		quickDeadlocks: "ALTER ROLE %[1]s SET deadlock_timeout = '%[2]s'",
		lock:           "LOCK TABLE %s.ramp_orders IN ACCESS EXCLUSIVE MODE",
		readOnly:       "SET default_transaction_read_only = on", // as on a standby
		dropIndex:      "DROP INDEX %s;",
		narrowClaim:    "ALTER TABLE ramp_orders ALTER claim TYPE varchar(25);",
		leavesClaims:   "ON CONFLICT DO NOTHING",
	},
	{name: "MySQL", dialect: rampsql.MySQL, modes: []mode{
		{name: "repeatable read"},
		{name: "read committed", isolation: sql.LevelReadCommitted},
		{name: "serializable", isolation: sql.LevelSerializable},
		// its default since 11.6
		{name: "snapshot isolation", params: "&innodb_snapshot_isolation=ON", only: "MariaDB"},
		{name: "optimistic", params: "&tidb_txn_mode=optimistic", only: "TiDB", races: true},
		{name: "found rows", params: "&clientFoundRows=true"},
		{name: "local times", params: "&parseTime=true&loc=America%2FNew_York&interpolateParams=true"},
	},
		texts: []mode{
			{name: "charset=utf8", params: "&charset=utf8"},
			{name: "charset=latin1", params: "&charset=latin1"},
			{name: "other quotes", params: "&sql_mode=%27ANSI,NO_BACKSLASH_ESCAPES%27"},
		},
		env: "RAMP_TEST_MYSQL", driver: "mysql",
		exact: true, floatText: true, slowWalk: true, prepares: true,
		trips: map[string]int{"accept": 6, "finish": 6, "repeat": 6, "finish with claims": 15},
		purse: "INT UNSIGNED", near: "4294967290",
		create: createOnMySQL,
		empty: func(t *testing.T, name string) string {
			address := addressOf(t, envMySQL)
			admin := open(t, "mysql", address)
			run(t, admin, "CREATE DATABASE "+name)
			t.Cleanup(func() { run(t, admin, "DROP DATABASE "+name) })
			return address + name + "?multiStatements=true"
		},
		dialed: func(t *testing.T, dsn string, dial func(net.Conn) net.Conn) *sql.DB {
			config := must.Get(mysql.ParseDSN(dsn))(t)
			config.DialFunc = through(dial)
			return sql.OpenDB(must.Get(mysql.NewConnector(config))(t))
		},
		shop: func(t *testing.T, p *place) string {
			config := must.Get(mysql.ParseDSN(addressOf(t, envMySQL)))(t)
			config.DBName = p.schema
			return "mysql:" + config.FormatDSN()
		},
		waits: func(p *place) (n int64, err error) {
			query := "SELECT count(*) FROM information_schema.processlist" +
				" WHERE info LIKE '%ramp_orders%' AND id <> connection_id()"
			if p.tidb { // the victim of a deadlock waits last, and what is in that list may not wait yet
				query = "SELECT count(*) FROM information_schema.tidb_trx WHERE state = 'LockWaiting'"
			}
			return n, p.db.QueryRow(query).Scan(&n)
		},
		reads: rowsRead, still: "ALTER TABLE %s.ramp_orders STATS_AUTO_RECALC = 0",
		connector: func(address string) (driver.Connector, error) {
			config, err := mysql.ParseDSN(address)
			if err != nil {
				return nil, err
			}
			config.Logger = &mysql.NopLogger{} // it would log each connection that a schedule breaks
			return mysql.NewConnector(config)
		},
		enter:   "USE %s",
		grant:   "GRANT %[2]s ON %[1]s.* TO %[1]s@'%%'; GRANT %[2]s ON %[1]s.* TO %[1]s@localhost",
		revoke:  "REVOKE %[2]s ON %[1]s.* FROM %[1]s@'%%', %[1]s@localhost",
		analyze: "ANALYZE TABLE %s.ramp_orders", explain: "EXPLAIN ",
		lock: "LOCK TABLES %s.ramp_orders WRITE", unlock: "UNLOCK TABLES",
		readOnly:     "SET SESSION TRANSACTION READ ONLY",
		autocommit:   "SELECT @@autocommit",
		dropIndex:    "DROP INDEX %s ON ramp_orders;",
		narrowClaim:  "ALTER TABLE ramp_orders MODIFY claim VARCHAR(25) NOT NULL;",
		leavesClaims: "ON DUPLICATE KEY UPDATE uuid = ramp_claims.uuid",
		lax:          "&sql_mode=''",
		anySession: "ALTER TABLE holdings CONVERT TO CHARACTER SET utf8mb4;" +
			"ALTER TABLE moves CONVERT TO CHARACTER SET utf8mb4;",
		manyAtOnce: "&multiStatements=true",
	},
}

// A dialect of the package is a row of databases that says all that the tests ask, and no test asks which
// dialect it is: what differs is a field of the row.
func TestADialectIsARow(t *testing.T) {
	for _, d := range databases {
		row := reflect.ValueOf(d)
		optional := []string{"texts", "numbered", "strict", "replaces", "exact", "floatText", "amounts", "prepares",
			"slowWalk", "quickDeadlocks", "unlock", "autocommit", "lax", "anySession", "manyAtOnce",
			"counting", "still"}
		ofServers := []string{"env", "trips", "dialed", "enter", "grant", "revoke", "lock", "narrowClaim"}
		for n := range row.NumField() {
			name := row.Type().Field(n).Name
			switch needed := !slices.Contains(optional, name); {
			case name == "file", slices.Contains(ofServers, name) && d.file:
			case needed && row.Field(n).IsZero():
				t.Errorf("dialects_test.go: %s needs the field %s", d.name, name)
			}
		}
	}
	asks := regexp.MustCompile(`\b[dD]ialect [!=]= rampsql\.|switch .*\b[dD]ialect \{`)
	for _, file := range must.Get(filepath.Glob("*_test.go"))(t) {
		for n, line := range strings.Split(string(must.Get(os.ReadFile(file))(t)), "\n") {
			if asks.MatchString(line) && !strings.Contains(line, "regexp") {
				t.Errorf("%s:%d asks for the dialect: add a field to database in dialects_test.go", file, n+1)
			}
		}
	}
}

func databaseOf(t *testing.T, dialect rampsql.Dialect) database {
	t.Helper()
	d, ok := find(dialect)
	if !ok {
		t.Fatalf("databases does not have %s", dialect)
	}
	return d
}

func find(dialect rampsql.Dialect) (database, bool) {
	for _, d := range databases {
		if d.dialect == dialect {
			return d, true
		}
	}
	return database{}, false
}

// dialectsOf returns the dialects of which something is true.
func dialectsOf(is func(d database) bool) (dialects []rampsql.Dialect) {
	for _, d := range databases {
		if is(d) {
			dialects = append(dialects, d.dialect)
		}
	}
	return dialects
}

// eachServer runs a test for every database that has users and more than one writer.
func eachServer(t *testing.T, test func(t *testing.T, d database)) {
	for _, d := range databases {
		if !d.file {
			t.Run(d.name, func(t *testing.T) { test(t, d) })
		}
	}
}

// may gives the user of a place a right.
func (p *place) may(t *testing.T, right string) {
	t.Helper()
	if p.grant != "" {
		run(t, p.admin, fmt.Sprintf(p.grant, p.schema, right))
		p.db.SetMaxIdleConns(0) // MySQL gives the right to new connections
		p.db.SetMaxIdleConns(maxConns)
	}
}

// through returns what dials, and passes the connection on.
func through(dial func(net.Conn) net.Conn) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return dial(conn), nil
	}
}

func createOnPostgreSQL(t *testing.T, p *place, schema string) {
	t.Helper()
	address, name := addressOf(t, envPostgreSQL), p.schema
	admin := open(t, p.driver, address)
	p.admin = admin
	run(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'test'; CREATE SCHEMA "+name)
	t.Cleanup(func() {
		run(t, admin, "DROP SCHEMA "+name+" CASCADE; DROP ROLE "+name)
	})
	run(t, admin, "BEGIN; SET LOCAL search_path = "+name+";"+schema+
		"GRANT USAGE ON SCHEMA "+name+" TO "+name+";"+
		fmt.Sprintf(p.grant, name, "SELECT, INSERT, UPDATE")+"; COMMIT")
	u := must.Get(url.Parse(address))(t)
	u.User = url.UserPassword(name, "test")
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode() + p.mode.params
	p.dsn = u.String()
}

func createOnMySQL(t *testing.T, p *place, schema string) {
	t.Helper()
	config, name := must.Get(mysql.ParseDSN(addressOf(t, envMySQL)))(t), p.schema
	config.MultiStatements = true
	admin := open(t, p.driver, config.FormatDSN())
	p.admin = admin
	var version string
	check(t, admin.QueryRow("SELECT @@version").Scan(&version))
	if !strings.Contains(version, p.mode.only) {
		t.Skip("only " + p.mode.only + " has this mode, and this is " + version)
	}
	p.tidb = strings.Contains(version, "TiDB")
	if p.tidb && p.mode.isolation == sql.LevelSerializable {
		t.Skip("TiDB has no SERIALIZABLE: error 8048")
	}
	run(t, admin,
		"CREATE DATABASE "+name+"; CREATE USER "+name+"@'%' IDENTIFIED BY 'test'; CREATE USER "+name+
			"@localhost IDENTIFIED BY 'test'")
	t.Cleanup(func() {
		run(t, admin, "DROP DATABASE "+name+"; DROP USER "+name+"@'%'; DROP USER "+name+"@localhost")
	})
	_, err := admin.Exec("USE " + name + ";" + schema + fmt.Sprintf(p.grant, name, "SELECT, INSERT, UPDATE"))
	if p.tidb && err != nil && strings.Contains(err.Error(), "Error 8200") {
		t.Skip("TiDB cannot make this table: " + err.Error())
	}
	check(t, err)
	config.MultiStatements = false
	config.User, config.Passwd, config.DBName = name, "test", name
	p.dsn = config.FormatDSN()
	if p.mode.params != "" {
		separator := "?"
		if strings.Contains(p.dsn, "?") {
			separator = "&"
		}
		p.dsn += separator + p.mode.params[1:]
	}
}
