package pairs

import (
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"
)

// backup is a dump of the database, with what the game knew then.
type backup struct {
	tables   map[string][][]any
	accounts map[string]string
	trades   []trade
}

var tables = []string{"ramp_orders", "ramp_refusals", "balances", "sessions", "moves"}

func (w *world) backUp() {
	b := &backup{tables: map[string][][]any{}, accounts: maps.Clone(w.game.accounts),
		trades: slices.Clone(w.game.trades)}
	for _, table := range tables {
		rows, err := w.db.Query("SELECT * FROM " + table)
		w.check(err)
		columns, err := rows.Columns()
		w.check(err)
		for rows.Next() {
			row, to := make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				to[i] = &row[i]
			}
			w.check(rows.Scan(to...))
			b.tables[table] = append(b.tables[table], row)
		}
		w.check(rows.Err())
		rows.Close()
	}
	w.backups = append(w.backups, b)
}

// restore stops the servers, which ends the calls that are in progress, brings back a backup, and does what
// docs/restore.md says.
func (w *world) restore(b *backup) {
	w.taking <- true
	<-w.taking
	w.sleep(time.Second)
	w.taking <- true
	tx, err := w.db.Begin()
	w.check(err)
	for _, table := range tables {
		w.write(tx, "DELETE FROM "+table)
		for _, row := range b.tables[table] {
			w.write(tx, "INSERT INTO "+table+" VALUES (?"+strings.Repeat(", ?", len(row)-1)+")", row...)
		}
	}
	w.check(tx.Commit())
	<-w.taking
	w.game.accounts, w.game.trades = maps.Clone(b.accounts), slices.Clone(b.trades)
	if session := w.game.session["alice"]; session != "" && w.game.accounts[session] == "" {
		w.game.session["alice"] = "" // who logs in with it again is known again
		w.renames()
	}
	w.restored = true
	w.repair()
}

func (w *world) write(tx *sql.Tx, query string, args ...any) {
	_, err := tx.Exec(w.data.bind(query), args...)
	w.check(err)
}

// repair stores again what the logs have. If a player has too little now for what a mint had taken, the game lends
// it. What is not restored for another reason is tried again later.
func (w *world) repair() {
	for range 3 {
		lost, err := w.desk().Lost(ctx, strings.NewReader(w.log.String()))
		if err != nil {
			w.fault("unread log", "", 0, "%v", err)
		}
		_, err = w.desk().Restore(ctx, lost, who)
		for _, l := range lost {
			o := w.of(l.UUID)
			o.decided = true
			w.tell("  missing: %s of %s, it %s: %v", o.direction(), o.player, l.State, l.Effects)
			if err != nil && strings.Contains(err.Error(), "INVALID_BALANCE") {
				w.trade("", w.game.accounts[o.session], o.gold)
			}
		}
		if err == nil {
			return
		}
		w.tell("  restore: %v", err)
	}
}

// resend: after the backup was restored and repaired, the service sends the calls of all orders once more.
func (w *world) resend() {
	w.each(asked, func(o *order) {
		if o.closed {
			return
		}
		w.repeatValidate(o)
		if w.chain.has(o.tx) {
			w.repeatResult(o)
		}
	})
}
