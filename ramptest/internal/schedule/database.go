package schedule

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// patience is how long the database may take for what it always does.
const patience = 20 * time.Second

// database is what the schedule itself asks of a database.
type database struct {
	dialect Dialect
	admin   *sql.DB
}

// waits returns the connections that wait for a lock. A file has none: see conn.meet.
func (d *database) waits() (map[int64]bool, error) {
	waits := map[int64]bool{}
	switch d.dialect {
	case PostgreSQL:
		rows, err := d.admin.Query("SELECT pid FROM pg_locks WHERE NOT granted")
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return nil, err
			}
			waits[id] = true
		}
		return waits, rows.Err()
	case MySQL: // information_schema.innodb_trx is a tenth of a second old
		var kind, name, status string
		if err := d.admin.QueryRow("SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
			return nil, fmt.Errorf("Schedules.Admin needs the privilege PROCESS: %w", err)
		}
		for _, trx := range strings.Split(status, "---TRANSACTION")[1:] {
			_, after, _ := strings.Cut(trx, "thread id ")
			var id int64
			if _, err := fmt.Sscanf(after, "%d", &id); err == nil && strings.Contains(trx, "\nLOCK WAIT ") {
				waits[id] = true
			}
		}
	}
	return waits, nil
}

// end ends a connection, as the end of its process would, and returns when its transaction is
// rolled back.
func (d *database) end(id int64) {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond / 5) {
		var err error
		var done bool
		if d.dialect == PostgreSQL {
			err = d.admin.QueryRow(
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1", id).
				Scan(&done)
			done = errors.Is(err, sql.ErrNoRows)
		} else {
			_, err = d.admin.Exec(fmt.Sprint("KILL ", id))
			done = err != nil && strings.Contains(err.Error(), "Error 1094") // it is unknown
		}
		switch {
		case done:
			return
		case err != nil:
			panic(fmt.Sprintf("schedule: end connection %d: %v", id, err))
		case time.Now().After(deadline):
			panic(fmt.Sprintf("schedule: connection %d does not end", id))
		}
	}
}

// isBusy reports whether an error of SQLite means that another connection has the lock. The drivers
// agree on the text only.
func isBusy(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "database is locked") && !strings.Contains(text, "SNAPSHOT") &&
		!strings.Contains(text, "(517)")
}
