package interleaving

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// patience is how long the database may take for what it always does.
const patience = 20 * time.Second

// database is what the interleaving itself asks of a database.
type database struct {
	dialect *Dialect
	admin   *sql.DB
}

// end ends a connection, as the end of its process would, and returns when its transaction is
// rolled back.
func (d *database) end(id int64) {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond / 5) {
		done, err := d.dialect.kill(d.admin, id)
		switch {
		case done:
			return
		case err != nil:
			panic(fmt.Sprintf("interleaving: end connection %d: %v", id, err))
		case time.Now().After(deadline):
			panic(fmt.Sprintf("interleaving: connection %d does not end", id))
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
