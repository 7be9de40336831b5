package dbtest

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
	_ "modernc.org/sqlite"
)

const (
	envPostgreSQL = "RAMP_TEST_POSTGRESQL"
	envMySQL      = "RAMP_TEST_MYSQL"
)

func TestMain(m *testing.M) {
	storetest.Serve(openServed)
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

// openServed opens the store of a served, written as JSON.
func openServed(setting string) (ramp.Store, error) {
	var s served
	if err := json.Unmarshal([]byte(setting), &s); err != nil {
		return nil, err
	}
	return s.open()
}

// mode is a configuration that a studio may use.
type mode struct {
	name      string
	isolation sql.IsolationLevel
	params    string // for the address of the database
	races     bool   // whether the database aborts transactions that race with another
	only      string // part of the only version that knows the params; "" if all do
}

// eachDatabase runs a test on every available database in its default mode, beside each other, because one mostly
// waits for its server. The administrator also runs the migrations.
func eachDatabase(t *testing.T, test func(t *testing.T, p *place), migrations ...string) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, newPlace(t, d, d.modes[0], migrations...))
		})
	}
}

// eachMode runs a test on every available database in every mode, like eachDatabase.
func eachMode(t *testing.T, test func(t *testing.T, p *place)) {
	for _, d := range databases {
		for _, m := range d.modes {
			t.Run(d.name+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				test(t, newPlace(t, d, m))
			})
		}
	}
}

// place is an empty database for one test. An administrator created its tables. The user
// of db may only select, insert and update.
type place struct {
	database
	mode   mode
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
	p := &place{database: d, mode: m, schema: "ramp_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]}
	d.create(t, p, d.dialect.Schema()+tables+strings.Join(migrations, ""))
	p.db = open(t, p.driver, p.dsn)
	return p
}

// placeOn creates a place on one kind of database.
func placeOn(t *testing.T, dialect rampsql.Dialect, migrations ...string) *place {
	t.Helper()
	d := databaseOf(t, dialect)
	return newPlace(t, d, d.modes[0], migrations...)
}

// administrator returns the database as somebody who may change the tables.
func (p *place) administrator() *sql.DB {
	return cmp.Or(p.admin, p.db) // SQLite has no users
}

// analyze updates the database's statistics of the orders table.
func (p *place) updateStatistics(t *testing.T) {
	t.Helper()
	run(t, p.administrator(), fmt.Sprintf(p.analyze, p.schema))
}

func addressOf(t *testing.T, env string) string {
	t.Helper()
	address := os.Getenv(env)
	if address == "" {
		t.Skip("*** NOT TESTED: " + env + " is not set ***")
	}
	return address
}

const maxConns = 60 // of a test

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open(driver, dsn))(t)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

func run(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	must.Get(db.Exec(statements))(t)
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
	if of, _ := find(d); !of.numbered {
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
