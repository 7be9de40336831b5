// To make it yours: remove this file from a server that does not use SQLite. The emulated service and the
// tests use it, unless they are given another database.

package main

import (
	"database/sql"
	"net/url"
	"strings"

	"github.com/token-ramp/ramp-go/rampsql"
	_ "modernc.org/sqlite"
)

func init() {
	dialects["sqlite"] = dialect{sql: rampsql.SQLite, form: "sqlite:PATH", file: true, open: openSQLite,
		// It has one writer at a time, and no lock of a row.
		translate: func(statement string) string { return strings.TrimSuffix(statement, " FOR UPDATE") }}
}

func openSQLite(address string) (*sql.DB, error) {
	// The transactions that write wait for each other for 10 s, also in other processes.
	query := url.Values{"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)"}}
	path := strings.TrimPrefix(address, "sqlite:")
	return sql.Open("sqlite", "file:"+url.PathEscape(path)+"?"+query.Encode())
}
