package pairs

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	"modernc.org/libc"
	_ "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// database is where the orders and the game's tables are, of one world after another.
type database struct {
	dialect rampsql.Dialect

	// open opens the first one or, for a player who moves, the second. What is in it is from another world.
	open func(t testing.TB, n int) (db *sql.DB, closes func())
}

const ownTables = `
CREATE TABLE balances (player varchar(40) PRIMARY KEY, gold bigint NOT NULL);
CREATE TABLE sessions (session varchar(40) PRIMARY KEY, player varchar(40) NOT NULL);
CREATE TABLE moves (uuid varchar(40) NOT NULL, gold bigint NOT NULL)`

// bind writes a query with the placeholders of the dialect.
func (d *database) bind(query string) string {
	if d.dialect != rampsql.PostgreSQL {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", "$"+strconv.Itoa(n), 1)
	}
	return query
}

func run(t testing.TB, db *sql.DB, statements string) {
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

// keepMemory lets the allocator of SQLite keep a page for each size: otherwise it asks the system for one, and returns
// it, several times in each statement. That takes a quarter of the time.
func keepMemory() {
	tls := libc.NewTLS()
	for size := int32(8); size < 16<<10; size *= 2 {
		sqlite3.Xsqlite3_malloc(tls, size)
	}
}

// sqlite are two files. A bubble may use connections that another one has opened.
func sqlite(t *testing.T) database {
	dbs := make([]*sql.DB, 2)
	for n := range dbs {
		name := "file:" + filepath.Join(t.TempDir(), strconv.Itoa(n)+".db") +
			"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=synchronous(off)&_pragma=journal_mode(wal)"
		plain := must.Get(sql.Open("sqlite", name))(t)
		dbs[n] = sql.OpenDB(keeper{plain.Driver(), name})
		dbs[n].SetMaxIdleConns(10)
		t.Cleanup(func() { dbs[n].Close() })
		run(t, dbs[n], rampsql.SQLite.Schema()+ownTables)
	}
	return database{rampsql.SQLite, func(_ testing.TB, n int) (*sql.DB, func()) { return dbs[n], func() {} }}
}

// served are two databases on a server. A bubble opens connections of its own, because their goroutines belong to it.
// Its clock stands still while one of them waits for the server.
func served(t *testing.T, dialect rampsql.Dialect) database {
	driver, address := "pgx", os.Getenv("RAMP_TEST_POSTGRESQL")
	create, drop, in, end := "CREATE SCHEMA ", "DROP SCHEMA %s CASCADE", address+"&search_path=", ""
	if dialect == rampsql.MySQL {
		driver, address = "mysql", os.Getenv("RAMP_TEST_MYSQL")
		create, drop, in, end = "CREATE DATABASE ", "DROP DATABASE %s", address, "?multiStatements=true"
	}
	if address == "" {
		t.Skipf("*** NOT TESTED on %s: its address is not set: run internal/test/databases go test ***", dialect)
	}
	name := "ramp_pairs_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	open := func(t testing.TB, n int) (*sql.DB, func()) {
		db := must.Get(sql.Open(driver, in+name+strconv.Itoa(n)+end))(t)
		db.SetMaxIdleConns(10)
		return db, func() { db.Close() }
	}
	administrator := must.Get(sql.Open(driver, address))(t)
	t.Cleanup(func() { administrator.Close() })
	for n := range 2 {
		run(t, administrator, create+name+strconv.Itoa(n))
		t.Cleanup(func() { run(t, administrator, strings.ReplaceAll(drop, "%s", name+strconv.Itoa(n))) })
		db, closes := open(t, n)
		run(t, db, dialect.Schema()+ownTables)
		closes()
	}
	return database{dialect, open}
}
