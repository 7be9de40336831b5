package dbtest

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// The statements of docs/players-and-items.md count the orders that wait.
func TestThePageAboutPlayersCountsWhatWaits(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../../../docs/players-and-items.md"))(t))
	_, block, found := strings.Cut(page, "```sql\n")
	block, _, closed := strings.Cut(block, "```")
	statements := strings.Split(strings.TrimSpace(block), "\n")
	if !found || !closed || len(statements) != 2 {
		t.Fatalf("the page has the statements %q", statements)
	}
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		counts := func() (all, mine int) {
			t.Helper()
			check(t, p.db.QueryRow(statements[0]).Scan(&all))
			check(t, p.db.QueryRow(statements[1]).Scan(&mine))
			return all, mine
		}
		first, second, other := newOrder("a", mint("gold", 1)), newOrder("b", burn("gold", 1)),
			newOrder("c", mint("gold", 1))
		for _, o := range []order{first, second, other} {
			take(t, store, o.id, o.accept())
		}
		all, mine := counts()
		equal(t, "orders that wait", all, 3)
		equal(t, "orders that wait for the player", mine, 2)
		take(t, store, first.id, first.finish(failure))
		take(t, store, second.id, second.finish(success))
		all, mine = counts()
		equal(t, "orders that wait", all, 1)
		equal(t, "orders that wait for the player", mine, 0)
	})
}

// A row that was loaded before a mint and is saved whole after it undoes the mint. Both ways
// that the page names keep it.
func TestARowThatIsSavedWholeUndoesAMint(t *testing.T) {
	for _, c := range []struct {
		name, save string
		gold       int
	}{
		{"the whole row",
			"UPDATE characters SET gold = ?, version = version + 1 WHERE version >= ? AND id = 'alice'", 1017},
		{"a version", "UPDATE characters SET gold = ?, version = version + 1 WHERE version = ? AND id = 'alice'", 700},
		{"a difference",
			"UPDATE characters SET gold = gold + ? - 1000, version = version + 1 WHERE version >= ? AND id " +
				"= 'alice'", 717},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, p *place) {
				store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
					for _, a := range step.Effect.Assets {
						delta := must.Get(step.Effect.Delta(a).Int64())(t)
						if _, err := tx.ExecContext(ctx, bind(p.dialect,
							"UPDATE characters SET gold = gold + ?, version = version + 1 WHERE id = 'alice'"),
							delta); err != nil {
							return err
						}
					}
					return nil
				})
				var gold, version int
				load := func() {
					t.Helper()
					check(t, p.db.QueryRow("SELECT gold, version FROM characters").Scan(&gold, &version))
				}
				load()
				o := newOrder("alice", mint("gold", 300))
				take(t, store, o.id, o.accept())
				must.Get(p.db.Exec(bind(p.dialect, c.save), gold+17, version))(t) // she has earned 17
				load()
				equal(t, "gold", gold, c.gold)
			}, "CREATE TABLE characters (id VARCHAR(64) PRIMARY KEY, gold BIGINT NOT NULL, version BIGINT NOT NULL);"+
				"INSERT INTO characters VALUES ('alice', 1000, 1);")
		})
	}
}

// A failed mint gives back exactly the lots that were taken, although they expire one by one.
func TestAGiveBackReturnsTheLotsThatWereTaken(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			id := step.Order.UUID.String()
			statement := ""
			switch step.Effect.Kind {
			case ramp.Take: // the lot that expires first
				statement = "UPDATE lots SET order_id = ? WHERE expires = 1 AND order_id = ''"
			case ramp.GiveBack:
				statement = "UPDATE lots SET order_id = '' WHERE order_id = ?"
			default:
				return nil
			}
			_, err := tx.ExecContext(ctx, bind(p.dialect, statement), id)
			return err
		})
		o := newOrder("alice", mint("gem", 5))
		take(t, store, o.id, o.accept())
		owned := func() (text string) {
			t.Helper()
			rows := must.Get(p.db.Query("SELECT expires FROM lots WHERE order_id = '' ORDER BY expires"))(t)
			defer rows.Close()
			for rows.Next() {
				var expires string
				check(t, rows.Scan(&expires))
				text += expires
			}
			check(t, rows.Err())
			return text
		}
		equal(t, "lots while the mint waits", owned(), "2")
		take(t, store, o.id, o.finish(failure))
		equal(t, "lots after it failed", owned(), "12")
	}, "CREATE TABLE lots (expires BIGINT NOT NULL, n BIGINT NOT NULL, order_id VARCHAR(36) NOT NULL);"+
		"INSERT INTO lots VALUES (1, 5, ''), (2, 5, '');")
}

// A game whose session ID is the player's name renames a player and an item while a mint waits that fails.
// What it gives back belongs to the old names, unless Apply reads them as the new ones, or until the
// statements of the change run once more.
func TestOldNamesAreReadAsTheNewOnes(t *testing.T) {
	rename := []string{"UPDATE holdings SET session_id = 'alicia' WHERE session_id = 'alice'",
		"UPDATE holdings SET asset = 'coin' WHERE asset = 'gold'"}
	for _, c := range []struct {
		name  string
		reads func(*ramp.Step)
		want  string
	}{
		{"Apply does not know", func(*ramp.Step) {}, "alice gold 7, alicia coin 93"},
		{"Apply reads the old names", func(step *ramp.Step) {
			step.Order.SessionID = "alicia"
			step.Effect.Assets[0].ID = "coin"
		}, "alicia coin 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, p *place) {
				renamed, s := false, studio{p.db, p.dialect}
				store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
					if renamed {
						c.reads(&step)
					}
					return s.Apply(ctx, tx, step)
				})
				check(t, insert(t.Context(), p.db, p.dialect, "alice", "gold", 100))
				o := newOrder("alice", mint("gold", 7))
				take(t, store, o.id, o.accept())
				for _, statement := range rename {
					run(t, p.db, statement)
				}
				renamed = true
				take(t, store, o.id, o.finish(failure))
				equal(t, "what is held", held(t, p), c.want)
			})
		})
	}
}

// held returns all balances.
func held(t *testing.T, p *place) string {
	t.Helper()
	rows := must.Get(p.db.Query("SELECT session_id, asset, amount FROM holdings ORDER BY session_id"))(t)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var session, asset, amount string
		check(t, rows.Scan(&session, &asset, &amount))
		all = append(all, session+" "+asset+" "+amount)
	}
	check(t, rows.Err())
	return strings.Join(all, ", ")
}

// A change that does not wait until the shop is closed locks the row that Apply locks for each order, and
// then counts. A burn takes nothing when it is approved, so that nothing else would keep it away.
func TestALockedRowKeepsOrdersFromBeingApproved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		lock := "SELECT id /* as ramp_orders */ FROM characters WHERE id = 'alice' FOR UPDATE" // for waiting
		if p.file {
			lock = strings.TrimSuffix(lock, " FOR UPDATE")
		}
		counted := make(chan int, 1)
		change := func() {
			tx := must.Get(p.db.Begin())(t)
			var id string
			check(t, tx.QueryRow(lock).Scan(&id))
			var n int
			check(t, tx.QueryRow("SELECT count(*) FROM ramp_orders WHERE state = 'accepted'").Scan(&n))
			check(t, tx.Rollback())
			counted <- n
		}
		store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if !step.Rehearsal {
				var id string
				return tx.QueryRowContext(ctx, lock).Scan(&id)
			}
			go change()
			for len(counted) == 0 { // until the change waits, or has been made too early
				if n, err := p.waiting(); err != nil || n > 0 {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		o := newOrder("alice", burn("gold", 5))
		take(t, store, o.id, o.accept())
		equal(t, "orders that wait", <-counted, 1)
	}, "CREATE TABLE characters (id VARCHAR(64) PRIMARY KEY); INSERT INTO characters VALUES ('alice');")
}
