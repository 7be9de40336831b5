package pairs

import (
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/support"
)

// backup is a dump of the database, with what the game knew then.
type backup struct {
	at       time.Time
	dbs      []content
	accounts map[string]string
	trades   []trade
	place    rampsql.Place
}

// content is what each table of a database has.
type content map[string]rows

type rows struct {
	columns []string
	values  [][]any
}

var tables = []string{"ramp_orders", "ramp_refusals", "ramp_claims", "balances", "sessions", "moves"}

// backUp makes a backup, if one will be restored.
func (w *world) backUp() {
	if w.restores {
		w.backups = append(w.backups, w.dump())
	}
}

func (w *world) dump() *backup {
	b := &backup{at: w.now(), accounts: maps.Clone(w.game.accounts), trades: slices.Clone(w.game.trades),
		place: w.game.place}
	for _, db := range w.dbs {
		b.dbs = append(b.dbs, w.dumpOf(db))
	}
	return b
}

func (w *world) dumpOf(db *sql.DB) content {
	c := content{}
	for _, table := range tables {
		found, err := db.Query("SELECT * FROM " + table)
		w.check(err)
		columns, err := found.Columns()
		w.check(err)
		r := rows{columns: columns}
		for found.Next() {
			row, to := make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				to[i] = &row[i]
			}
			w.check(found.Scan(to...))
			r.values = append(r.values, row)
		}
		w.check(found.Err())
		w.check(found.Close())
		c[table] = r
	}
	return c
}

// fill replaces all rows of a database.
func (w *world) fill(db *sql.DB, c content) {
	tx, err := db.Begin()
	w.check(err)
	for _, table := range tables {
		_, err := tx.Exec("DELETE FROM " + table)
		w.check(err)
		r := c[table]
		if len(r.values) == 0 {
			continue
		}
		row := "(?" + strings.Repeat(", ?", len(r.columns)-1) + ")"
		_, err = tx.Exec(w.data.bind("INSERT INTO "+table+" ("+strings.Join(r.columns, ", ")+") VALUES "+
			row+strings.Repeat(", "+row, len(r.values)-1)), slices.Concat(r.values...)...)
		w.check(err)
	}
	w.check(tx.Commit())
}

// restore brings back a backup, and does what docs/restore.md says.
func (w *world) restore(b *backup) {
	w.lose(b)
	w.repair()
}

// lose stops the servers, which ends the calls that are in progress, and goes on with an older database. Nobody knows
// what it lacks, until the books do.
func (w *world) lose(b *backup) {
	w.taking <- true
	<-w.taking
	w.sleep(time.Second)
	w.taking <- true
	for i, db := range w.dbs {
		var c content // of a database that was not there yet
		if i < len(b.dbs) {
			c = b.dbs[i]
		}
		w.fill(db, c)
	}
	<-w.taking
	w.game.accounts, w.game.trades, w.game.place = maps.Clone(b.accounts), slices.Clone(b.trades), b.place
	if session := w.game.session["alice"]; session != "" && w.game.accounts[session] == "" {
		w.game.session["alice"] = "" // who logs in with it again is known again
		w.renames()
	}
	w.restored, w.versions = true, new(versions) // the replica is made anew
}

// repair stores again what the logs have. If a player has too little now for what a mint had taken, the game lends
// it. What is not restored for another reason is tried again later. Whatever is restored has ended as it had before.
func (w *world) repair() {
	w.restoring = true
	defer func() { w.restoring = false }()
	for range 3 {
		lost, err := w.desk().Lost(ctx, strings.NewReader(w.log.String()))
		if err != nil && !w.store.down {
			w.fault("unread log", "", 0, "%v", err)
		}
		_, err = w.desk().Restore(ctx, lost, who)
		if err != nil && !slices.ContainsFunc(strings.Split(err.Error(), "\n"),
			func(line string) bool { return !strings.Contains(line, "may be its own") }) { // nothing else is wrong
			w.doubts(err)
		}
		for _, l := range lost {
			o := w.of(l.UUID)
			o.decided = o.decided || w.stored(o).state != string(ramp.OrderAccepted)
			w.tell("  missing: %s of %s, it %s: %v", o.direction(), o.player, l.State, l.Effects)
			if err != nil && strings.Contains(err.Error(), "INVALID_BALANCE") {
				w.trade("", w.game.accounts[o.session], o.gold)
			}
		}
		if err == nil {
			if lost, _ := w.desk().Lost(ctx, strings.NewReader(w.log.String())); len(lost) > 0 {
				of := w.of(lost[0].UUID)
				w.fault("unrestored", of.player, of.value(), "it is still missing, and nothing was refused")
			}
			return
		}
		w.tell("  restore: %v", err)
	}
}

// doubts: an order is not restored because of a transaction that has ended another one, which the log says, too.
func (w *world) doubts(err error) {
	var doubted *support.CandidateError
	if !errors.As(err, &doubted) {
		return
	}
	const ended = "SELECT count(*) FROM ramp_orders WHERE tx_hash = ? AND uuid <> ?"
	of := w.of(doubted.Order)
	if w.sum(ended, doubted.Candidate.Hash.Hex(), of.id.String()) > 0 {
		w.fault("doubted", of.player, of.value(), "%v", doubted)
	}
}

// resend: after the backup was restored and repaired, the service sends the calls of all orders once more.
func (w *world) resend() {
	w.each(asked, func(o *order) {
		if o.closed {
			return
		}
		w.again = func() { w.repeatValidate(o) }
		w.again()
		if w.chain.has(o.tx) {
			w.again = func() { w.repeatResult(o) }
			w.again()
		}
	})
}
