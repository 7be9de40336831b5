package dbtest

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
	_ "modernc.org/sqlite"
)

const (
	envPostgreSQL = "RAMP_TEST_POSTGRESQL"
	envMySQL      = "RAMP_TEST_MYSQL"
)

func TestMain(m *testing.M) {
	storetest.Serve(func(setting string) (ramp.Store, error) {
		var s served
		if err := json.Unmarshal([]byte(setting), &s); err != nil {
			return nil, err
		}
		return s.open()
	})
	serveCheck()
	code := m.Run()
	for _, env := range []string{envPostgreSQL, envBin, envMySQL} {
		if os.Getenv(env) == "" {
			fmt.Fprintf(os.Stderr,
				"\n*** NOT TESTED, because %s is not set: run internal/test/databases go test ***\n", env)
		}
	}
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		fmt.Fprintf(os.Stderr, "\n*** NOT TESTED behind PgBouncer: %v ***\n", err)
	}
	os.Exit(code)
}

// database is a kind of database and its modes.
type database struct {
	name    string
	dialect rampsql.Dialect
	enter   string // the statement with which an administrator uses the tables of a place
	modes   []mode
}

// mode is a configuration that a studio may use.
type mode struct {
	name      string
	isolation sql.IsolationLevel
	params    string // for the address of the database
	races     bool   // whether the database aborts transactions that race with another
	only      string // part of the only version that knows the params; "" if all do
}

var databases = []database{
	{name: "SQLite", dialect: rampsql.SQLite, modes: []mode{
		{name: "immediate", params: "&_txlock=immediate"},
		{name: "deferred", params: "&_txlock=deferred"},
	}},
	{name: "PostgreSQL", dialect: rampsql.PostgreSQL, enter: "SET search_path = %s", modes: []mode{
		{name: "read committed"},
		{name: "repeatable read", isolation: sql.LevelRepeatableRead, races: true},
		{name: "serializable", isolation: sql.LevelSerializable, races: true},
		{name: "simple protocol", params: "&default_query_exec_mode=simple_protocol"},
	}},
	{name: "MySQL", dialect: rampsql.MySQL, enter: "USE %s", modes: []mode{
		{name: "repeatable read"},
		{name: "read committed", isolation: sql.LevelReadCommitted},
		{name: "serializable", isolation: sql.LevelSerializable},
		// its default since 11.6
		{name: "snapshot isolation", params: "&innodb_snapshot_isolation=ON", only: "MariaDB"},
		{name: "optimistic", params: "&tidb_txn_mode=optimistic", only: "TiDB", races: true},
		{name: "found rows", params: "&clientFoundRows=true"},
		{name: "local times", params: "&parseTime=true&loc=America%2FNew_York&interpolateParams=true"},
	}},
}

// eachDatabase runs a test on every available database in its default mode. The
// administrator also runs the migrations.
func eachDatabase(t *testing.T, test func(t *testing.T, p *place), migrations ...string) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) { test(t, newPlace(t, d, d.modes[0], migrations...)) })
	}
}

// eachMode runs a test on every available database in every mode.
func eachMode(t *testing.T, test func(t *testing.T, p *place)) {
	for _, d := range databases {
		for _, m := range d.modes {
			t.Run(d.name+"/"+m.name, func(t *testing.T) { test(t, newPlace(t, d, m)) })
		}
	}
}

// place is an empty database for one test. An administrator created its tables. The user
// of db may only select, insert and update.
type place struct {
	database
	mode   mode
	driver string
	dsn    string
	db     *sql.DB
	admin  *sql.DB // of a server
	schema string  // where the tables are, on a server
	tidb   bool    // whether the server is TiDB
}

const tables = `
CREATE TABLE holdings (
	session_id VARCHAR(64) NOT NULL,
	asset      VARCHAR(64) NOT NULL,
	amount     BIGINT      NOT NULL CHECK (amount <= 9223372036854775807), -- which SQLite would exceed with a float
	PRIMARY KEY (session_id, asset)
);
CREATE TABLE moves (
	uuid       VARCHAR(36) NOT NULL,
	session_id VARCHAR(64) NOT NULL,
	kind       VARCHAR(16) NOT NULL,
	asset      VARCHAR(64) NOT NULL,
	amount     BIGINT      NOT NULL
);
CREATE TABLE steps (
	uuid       VARCHAR(36) NOT NULL,
	state      VARCHAR(16) NOT NULL
);
`

// newPlace creates a place. The administrator also runs the migrations.
func newPlace(t *testing.T, d database, m mode, migrations ...string) *place {
	t.Helper()
	p := &place{database: d, mode: m}
	name := "ramp_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	schema := d.dialect.Schema() + tables + strings.Join(migrations, "")
	switch d.dialect {
	case rampsql.SQLite:
		p.driver = "sqlite"
		p.dsn = "file:" + filepath.Join(t.TempDir(), "test.db") +
			"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)" + m.params
		admin := open(t, p.driver, p.dsn)
		run(t, admin, schema)

	case rampsql.PostgreSQL:
		address := addressOf(t, envPostgreSQL)
		p.driver = "pgx"
		admin := open(t, p.driver, address)
		p.admin, p.schema = admin, name
		run(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'test'; CREATE SCHEMA "+name)
		t.Cleanup(func() {
			run(t, admin, "DROP SCHEMA "+name+" CASCADE; DROP ROLE "+name)
		})
		run(t, admin, "BEGIN; SET LOCAL search_path = "+name+";"+schema+
			"GRANT USAGE ON SCHEMA "+name+" TO "+name+";"+
			"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA "+name+" TO "+name+"; COMMIT")
		u := ramp.Must(url.Parse(address))
		u.User = url.UserPassword(name, "test")
		query := u.Query()
		query.Set("search_path", name)
		u.RawQuery = query.Encode() + m.params
		p.dsn = u.String()

	case rampsql.MySQL:
		config := ramp.Must(mysql.ParseDSN(addressOf(t, envMySQL)))
		p.driver = "mysql"
		config.MultiStatements = true
		admin := open(t, p.driver, config.FormatDSN())
		p.admin, p.schema = admin, name
		var version string
		check(t, admin.QueryRow("SELECT @@version").Scan(&version))
		if !strings.Contains(version, m.only) {
			t.Skip("only " + m.only + " has this mode, and this is " + version)
		}
		p.tidb = strings.Contains(version, "TiDB")
		if p.tidb && m.isolation == sql.LevelSerializable {
			t.Skip("TiDB has no SERIALIZABLE: error 8048")
		}
		run(t, admin,
			"CREATE DATABASE "+name+"; CREATE USER "+name+"@'%' IDENTIFIED BY 'test'; CREATE USER "+name+
				"@localhost IDENTIFIED BY 'test'")
		t.Cleanup(func() {
			run(t, admin, "DROP DATABASE "+name+"; DROP USER "+name+"@'%'; DROP USER "+name+"@localhost")
		})
		_, err := admin.Exec("USE " + name + ";" + schema +
			"GRANT SELECT, INSERT, UPDATE ON " + name + ".* TO " + name + "@'%'; GRANT SELECT, INSERT, UPDATE ON " +
			name + ".* TO " + name + "@localhost")
		if p.tidb && err != nil && strings.Contains(err.Error(), "Error 8200") {
			t.Skip("TiDB cannot make this table: " + err.Error())
		}
		check(t, err)
		config.MultiStatements = false
		config.User, config.Passwd, config.DBName = name, "test", name
		p.dsn = config.FormatDSN()
		if m.params != "" {
			separator := "?"
			if strings.Contains(p.dsn, "?") {
				separator = "&"
			}
			p.dsn += separator + m.params[1:]
		}
	}
	p.db = open(t, p.driver, p.dsn)
	return p
}

// placeOn creates a place on one kind of database.
func placeOn(t *testing.T, dialect rampsql.Dialect, migrations ...string) *place {
	t.Helper()
	d := databaseOf(t, dialect)
	return newPlace(t, d, d.modes[0], migrations...)
}

func databaseOf(t *testing.T, dialect rampsql.Dialect) database {
	t.Helper()
	for _, d := range databases {
		if d.dialect == dialect {
			return d
		}
	}
	panic("no such database")
}

// administrator returns the database as somebody who may change the tables.
func (p *place) administrator() *sql.DB {
	return cmp.Or(p.admin, p.db) // SQLite has no users
}

// allowDelete gives the user of the place the privilege that DeleteFinished needs.
func (p *place) allowDelete(t *testing.T) {
	t.Helper()
	switch p.dialect {
	case rampsql.PostgreSQL:
		run(t, p.admin, "GRANT DELETE ON "+p.schema+".ramp_orders, "+p.schema+".ramp_refusals TO "+p.schema)
	case rampsql.MySQL:
		for _, host := range []string{"'%'", "localhost"} {
			run(t, p.admin, "GRANT DELETE ON "+p.schema+".ramp_orders TO "+p.schema+"@"+host+
				"; GRANT DELETE ON "+p.schema+".ramp_refusals TO "+p.schema+"@"+host)
		}
	}
}

// analyze updates the database's statistics of the orders table.
func (p *place) analyze(t *testing.T) {
	t.Helper()
	switch p.dialect {
	case rampsql.PostgreSQL:
		run(t, p.admin, "VACUUM ANALYZE "+p.schema+".ramp_orders")
	case rampsql.MySQL:
		run(t, p.admin, "ANALYZE TABLE "+p.schema+".ramp_orders")
	default:
		run(t, p.db, "ANALYZE")
	}
}

func addressOf(t *testing.T, env string) string {
	t.Helper()
	address := os.Getenv(env)
	if address == "" {
		t.Skip("*** NOT TESTED: " + env + " is not set ***")
	}
	return address
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db := ramp.Must(sql.Open(driver, dsn))
	db.SetMaxOpenConns(60)
	db.SetMaxIdleConns(60)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

func run(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	ramp.Must(db.Exec(statements))
}

// equal fails the test unless what it got is what it wants.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bind converts the placeholders of a statement to those of the dialect.
func bind(d rampsql.Dialect, statement string) string {
	if d != rampsql.PostgreSQL {
		return statement
	}
	var b strings.Builder
	for n, part := range strings.Split(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}
