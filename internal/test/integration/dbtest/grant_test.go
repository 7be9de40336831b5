package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// A burn succeeds after its tokens are gone. So its grant is tried when it is accepted, as a
// result would apply it, and leaves nothing behind.
func TestTheGrantOfABurnIsRehearsed(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		s := studio{db: p.db, dialect: p.dialect}
		var steps []ramp.Step
		w := newWorld(t, p, newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			steps = append(steps, step)
			return s.Apply(ctx, tx, step)
		}))
		w.give("alice", "gold", 100)
		bought, sold := newOrder("alice", burn("gold", 5)), newOrder("alice", mint("gold", 7))
		for range 2 { // a repeat rehearses nothing, and neither does a mint
			w.expect(w.validate(bought), "200")
			w.expect(w.validate(sold), "200")
		}
		w.expect(w.result(bought, success), "200")
		w.expect(w.result(sold, failure), "200")

		var said []string
		for _, step := range steps {
			text := step.Order.UUID.String() + " " + string(step.Order.State) + " " + step.Effect.String()
			if step.Rehearsal {
				text += " (rehearsed)"
			}
			said = append(said, strings.NewReplacer(bought.id.String(), "burn", sold.id.String(), "mint").Replace(text))
		}
		equal(t, "the steps that Apply got", strings.Join(said, "\n"), strings.Join([]string{
			"burn accepted nothing",
			"burn succeeded grant +5 gold (rehearsed)",
			"mint accepted take -7 gold",
			"burn succeeded grant +5 gold",
			"mint failed give back +7 gold",
		}, "\n"))
		tried := steps[1]
		if tried.Order.FinishedAt.IsZero() || len(tried.Order.TxHash) != 66 || !tried.New ||
			tried.Product != "" || tried.Tokens.Sign() != 0 || tried.Evidence.TokenIDs != nil {
			t.Errorf("the grant that was rehearsed: %+v", tried)
		}
		w.assertMoves(map[uuid.UUID][]string{
			bought.id: {"grant alice +5 gold"},
			sold.id:   {"take alice -7 gold", "give back alice +7 gold"},
		})
	})
}

// What cannot be granted is declined before anything is signed.
func TestABurnThatCannotBeGrantedIsNotSigned(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			p := newPlace(t, d, d.modes[0],
				"CREATE TABLE purse (n "+d.purse+"); INSERT INTO purse (n) VALUES ("+d.near+");")
			testABurnThatCannotBeGranted(t, p, d.near)
		})
	}
}

func testABurnThatCannotBeGranted(t *testing.T, p *place, near string) {
	t.Helper()
	var refuse error
	w := newWorld(t, p, newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		if step.Effect.Kind != ramp.Grant {
			return nil
		}
		if _, err := tx.ExecContext(ctx, "UPDATE purse SET n = n + 100"); err != nil {
			return err
		}
		return refuse
	}))
	expect := func(what string, got answer, want string) {
		t.Helper()
		equal(t, what, got.String(), want)
		equal(t, what+": the signature", got.signature, "")
		var orders int
		check(t, p.db.QueryRow("SELECT count(*) FROM ramp_orders").Scan(&orders))
		equal(t, what+": orders", orders, 0)
		var n string
		check(t, p.db.QueryRow("SELECT n FROM purse").Scan(&n))
		equal(t, what+": the purse", n, near)
	}
	expect("a column near its end", w.validate(newOrder("alice", burn("gold", 100))), "500 INTERNAL_ERROR")
	near = "0"
	must.Get(p.db.Exec("UPDATE purse SET n = 0"))(t)
	refuse = ramp.Reject("INVENTORY_FULL")
	expect("a rejection", w.validate(newOrder("alice", burn("gold", 100))), "200 INVENTORY_FULL")
	refuse = errors.New("the inventory is unreachable")
	expect("another error", w.validate(newOrder("alice", burn("gold", 100))), "500 INTERNAL_ERROR")
	refuse = nil
	if answer := w.validate(newOrder("alice", burn("gold", 100))); answer.signature == "" {
		t.Errorf("what can be granted is not signed: %s", answer)
	}
}

// An error that Apply ignores may have rolled back the whole transaction. A savepoint would
// then begin a new one on SQLite, whose commit succeeds: the order would be signed, and no
// table would have it.
func TestARehearsalDoesNotHideThatEverythingWasRolledBack(t *testing.T) {
	p := placeOn(t, rampsql.SQLite,
		"CREATE TABLE counted (name TEXT PRIMARY KEY); INSERT INTO counted VALUES ('orders');")
	ignored := 0
	w := newWorld(t, p, newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		if !step.Rehearsal {
			_, err := tx.ExecContext(ctx, "INSERT OR ROLLBACK INTO counted VALUES ('orders')")
			if err == nil {
				t.Error("the statement did not fail")
			}
			ignored++
		}
		return nil
	}))
	for range 2 {
		answer := w.validate(newOrder("alice", burn("gold", 5)))
		equal(t, "the answer", answer.String(), "500 INTERNAL_ERROR")
		equal(t, "the signature", answer.signature, "")
	}
	equal(t, "errors that Apply ignored", ignored, 2)
}

// A rehearsal that ends the transaction is an error, too.
func TestARehearsalThatRollsBackEverything(t *testing.T) {
	p := placeOn(t, rampsql.SQLite,
		"CREATE TABLE counted (name TEXT PRIMARY KEY); INSERT INTO counted VALUES ('orders');")
	w := newWorld(t, p, newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		if step.Rehearsal {
			_, _ = tx.ExecContext(ctx, "INSERT OR ROLLBACK INTO counted VALUES ('orders')")
		}
		return nil
	}))
	answer := w.validate(newOrder("alice", burn("gold", 5)))
	equal(t, "the answer", answer.String(), "500 INTERNAL_ERROR")
	equal(t, "the signature", answer.signature, "")
}
