package interleaving

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/token-ramp/ramp-go/rampsql"
)

// Dialect is all that the walk knows of a kind of database.
type Dialect struct {
	file           bool // one transaction at a time locks the whole file, and nobody waits in the database
	strict         bool // after an error, a transaction accepts nothing but its end
	snapshotAlways bool // with a level that has a snapshot, the first statement takes it, whatever it is
	snapshotOfRead bool // the first SELECT without a lock may take a snapshot of everything
	gaps           bool // a statement may also lock what is between the rows of orders

	settings string // a statement for a new connection, so that it does not wait by itself
	who      string // selects the number of the connection, and the level of its transactions

	// Autocommit selects whether a connection commits each statement. It is empty if none can have
	// been turned off.
	Autocommit string

	waits func(admin *sql.DB) (map[int64]bool, error)           // the connections that wait for a lock
	kill  func(admin *sql.DB, id int64) (ended bool, err error) // asks for the end of a connection
}

// DialectOf returns the dialect of a database, or nil if it is unknown. MySQL is MariaDB, too.
func DialectOf(d rampsql.Dialect) *Dialect {
	return map[rampsql.Dialect]*Dialect{
		rampsql.SQLite: {
			file: true, settings: "PRAGMA busy_timeout = 0",
			waits: func(*sql.DB) (map[int64]bool, error) { return nil, nil }, // see conn.meet
		},
		rampsql.PostgreSQL: {
			strict: true, snapshotAlways: true,
			settings: "SET deadlock_timeout = '5ms'", // is refused to most users; then it is a second
			who:      "SELECT pg_backend_pid()::text, current_setting('transaction_isolation')",
			waits:    waitsOfPostgreSQL,
			kill: func(admin *sql.DB, id int64) (ended bool, err error) {
				err = admin.QueryRow(
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1", id).Scan(&ended)
				return errors.Is(err, sql.ErrNoRows), err
			},
		},
		rampsql.MySQL: {
			snapshotOfRead: true, gaps: true,
			who:        "SELECT CONNECTION_ID(), ''",
			Autocommit: "SELECT @@autocommit",
			waits:      waitsOfMySQL,
			kill: func(admin *sql.DB, id int64) (ended bool, err error) {
				_, err = admin.Exec(fmt.Sprint("KILL ", id))
				return err != nil && strings.Contains(err.Error(), "Error 1094"), err // it is unknown
			},
		},
	}[d]
}

func waitsOfPostgreSQL(admin *sql.DB) (map[int64]bool, error) {
	rows, err := admin.Query("SELECT pid FROM pg_locks WHERE NOT granted")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	waits := map[int64]bool{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		waits[id] = true
	}
	return waits, rows.Err()
}

// waitsOfMySQL asks the engine: information_schema.innodb_trx is a tenth of a second old.
func waitsOfMySQL(admin *sql.DB) (map[int64]bool, error) {
	var kind, name, status string
	if err := admin.QueryRow("SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
		return nil, fmt.Errorf("Schedules.Admin needs the privilege PROCESS: %w", err)
	}
	waits := map[int64]bool{}
	for _, trx := range strings.Split(status, "---TRANSACTION")[1:] {
		_, after, _ := strings.Cut(trx, "thread id ")
		var id int64
		if _, err := fmt.Sscanf(after, "%d", &id); err == nil && strings.Contains(trx, "\nLOCK WAIT ") {
			waits[id] = true
		}
	}
	return waits, nil
}
