package pairs

import (
	"database/sql"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// backup is a dump of the database, with what the game knew then.
type backup struct {
	tables   map[string][][]any
	accounts map[string]string
	trades   []trade
}

var tables = []string{"ramp_orders", "ramp_refusals", "balances", "sessions", "moves"}

func (w *world) backUp() {
	b := &backup{tables: map[string][][]any{}, accounts: maps.Clone(w.game.accounts), trades: slices.Clone(w.game.trades)}
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

// restore stops the servers, brings back a backup, and does what docs/restore.md says. The service repeats the
// calls of what is missing, or does not.
func (w *world) restore(b *backup, repeats bool) {
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
	w.restored = true

	lost, err := w.desk().Lost(ctx, w.logged())
	if err != nil {
		w.fault("unread log", "", 0, "%v", err)
	}
	for _, l := range lost {
		o := w.of(l.UUID)
		o.decided = true
		w.tell("  missing: %s %s, it %s: %v", o.id.String()[:4], o.player, l.State, l.Effects)
		switch {
		case l.Missing && (repeats || l.State == ramp.OrderAccepted):
			w.callsAgain(o)
		case l.Missing:
			w.byHand(o, l.Effects)
		case l.State == ramp.OrderAbandoned:
			if _, err := w.desk().Abandon(ctx, o.id, early); err != nil {
				w.tell("  abandon again: %v", err)
			}
		case o.tx != nil:
			if _, err := w.desk().Finish(ctx, o.id, o.tx.hash, who); err != nil {
				w.tell("  finish again: %v", err)
			}
		}
	}
}

func (w *world) write(tx *sql.Tx, query string, args ...any) {
	_, err := tx.Exec(w.data.bind(query), args...)
	w.check(err)
}

// callsAgain: the service sends validate and then the result again, three times at most.
func (w *world) callsAgain(o *order) {
	for range 3 {
		w.repeatValidate(o)
		if w.chain.has(o.tx) {
			o.heard = false
			w.repeatResult(o)
		}
		if o.heard || o.tx == nil {
			return
		}
	}
}

var effect = regexp.MustCompile(`^(take|give back|grant) ([+-]\d+) gold$`)

// byHand moves what `missing` lists.
func (w *world) byHand(o *order, effects []string) {
	for _, e := range effects {
		if e == "nothing" {
			continue
		}
		m := effect.FindStringSubmatch(e)
		if m == nil {
			w.t.Fatalf("effect %q", e)
		}
		n, err := strconv.ParseInt(m[2], 10, 64)
		w.check(err)
		w.exec("UPDATE balances SET gold = gold + ? WHERE player = ?", n, w.game.accounts[o.player])
	}
	o.heard, o.over, o.closed = true, true, true // the service must not repeat these calls
}
