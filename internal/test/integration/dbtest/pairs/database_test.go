package pairs

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	_ "modernc.org/sqlite"

	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// database is where the orders and the game's tables are.
type database struct {
	dialect rampsql.Dialect
	open    func(t testing.TB) *sql.DB // an empty one
}

const ownTables = `;CREATE TABLE balances (player varchar(40) PRIMARY KEY, gold bigint NOT NULL);
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

func create(t testing.TB, db *sql.DB, d rampsql.Dialect) {
	for s := range strings.SplitSeq(d.Schema()+ownTables, ";") {
		if strings.TrimSpace(s) == "" {
			continue
		}
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, err)
		}
	}
}

// sqlite is a file for each world, in a directory.
func sqlite(dir string) database {
	return database{rampsql.SQLite, func(t testing.TB) *sql.DB {
		db := openFile(t, filepath.Join(dir, "seed.db"))
		create(t, db, rampsql.SQLite)
		return db
	}}
}

func openFile(t testing.TB, file string) *sql.DB {
	db := must.Get(sql.Open("sqlite", "file:"+file+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=synchronous(off)&_pragma=journal_mode(wal)"))(t)
	db.SetMaxIdleConns(10)
	return db
}

// copyFile opens a database of its own with what is in another, and returns how to remove it.
func copyFile(t testing.TB, dir string, content []byte) (db *sql.DB, remove func()) {
	file := filepath.Join(dir, uuid.NewString()+".db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db = openFile(t, file)
	return db, func() {
		db.Close()
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(file + end)
		}
	}
}
