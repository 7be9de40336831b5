package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// The recipes of docs/players-and-items.md, while an order begins or ends at the same moment.

// A comment with which the tests see in MySQL that a statement waits.
const seen = " /* ramp_orders */"

const accounts = "CREATE TABLE accounts (id VARCHAR(64) PRIMARY KEY, player VARCHAR(64) NOT NULL);" +
	"INSERT INTO accounts VALUES ('a', 'alice'), ('b', 'bob');" +
	"INSERT INTO holdings VALUES ('alice', 'gold', 100), ('bob', 'gold', 50);"

// moment is a change and a call of the service, one of which begins while the other one is between two of its
// statements.
type moment struct {
	*place
	t     *testing.T
	step  int
	at    int           // the step of change, or -1: change begins within the call
	other func()        // begins at the moment
	done  chan struct{} // the other one has ended
}

// here is the place between two statements. The other one runs until it waits, or has ended.
func (m *moment) here(step int) {
	if step != m.at || m.done != nil {
		return
	}
	m.done = make(chan struct{})
	go func() { defer close(m.done); m.other() }()
	for {
		select {
		case <-m.done:
			return
		case <-time.After(time.Millisecond):
		}
		if n, err := m.waiting(); err != nil {
			m.t.Error(err)
			return
		} else if n > 0 {
			return
		}
	}
}

// locking is what makes a statement lock what it reads.
func (p *place) locking(locks bool) string {
	if !locks || p.file {
		return seen
	}
	return " FOR UPDATE" + seen
}

// careful says which of the two locks of the page are taken, and whether an order of a player who is gone is
// rejected.
type careful struct{ session, balances, rejects bool }

// playerOf returns the player of a session, or "".
func (m *moment) playerOf(ctx context.Context, tx *sql.Tx, session string, c careful) (player string, err error) {
	err = tx.QueryRowContext(ctx, bind(m.dialect, "SELECT player FROM accounts WHERE id = ?"+m.locking(c.session)),
		session).Scan(&player)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return player, err
}

// applies grants to a row that it creates, as the README does, and lets a mint take.
func (m *moment) applies(c careful) apply {
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		if step.Rehearsal {
			return nil
		}
		player, err := m.playerOf(ctx, tx, step.Order.SessionID, c)
		if err != nil {
			return err
		}
		m.here(-1)
		if step.Order.State == ramp.OrderAccepted && player == "" && c.rejects {
			return ramp.Reject("INVALID_USER")
		}
		for _, a := range step.Effect.Assets {
			delta := must.Get(step.Effect.Delta(a).Int64())(m.t)
			changed, err := m.changes(ctx, tx, "UPDATE holdings SET amount = amount + ? WHERE session_id = ?",
				delta, player)
			if err == nil && changed == 0 {
				_, err = m.changes(ctx, tx, "INSERT INTO holdings (amount, session_id, asset) VALUES (?, ?, 'gold')",
					delta, player)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (m *moment) changes(ctx context.Context, tx *sql.Tx, statement string, args ...any) (int64, error) {
	done, err := tx.ExecContext(ctx, bind(m.dialect, statement+seen), args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func rejects(err error, code ramp.Code) bool {
	var rejection *ramp.Rejection
	return errors.As(err, &rejection) && rejection.Code == code
}

// merges makes bob the player of all that is alice's. It begins with the sessions.
func (m *moment) merges(c careful) error {
	return m.inSteps(func(tx *sql.Tx, run func(string, ...any)) {
		run("UPDATE accounts SET player = 'bob' WHERE player = 'alice'")
		m.here(1)
		var gold int64
		check(m.t, tx.QueryRow("SELECT amount FROM holdings WHERE session_id = 'alice'"+
			m.locking(c.balances)).Scan(&gold))
		m.here(2)
		run("UPDATE holdings SET amount = amount + ? WHERE session_id = 'bob'", gold)
		m.here(3)
		run("DELETE FROM holdings WHERE session_id = 'alice'")
		m.here(4)
	})
}

// renames alice.
func (m *moment) renames(careful) error {
	return m.inSteps(func(_ *sql.Tx, run func(string, ...any)) {
		run("UPDATE accounts SET player = 'bob' WHERE player = 'alice'")
		m.here(1)
		run("UPDATE holdings SET session_id = 'bob' WHERE session_id = 'alice'")
		m.here(2)
	})
}

func (m *moment) inSteps(steps func(tx *sql.Tx, run func(string, ...any))) error {
	tx, err := m.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	steps(tx, func(statement string, args ...any) {
		if _, err := m.changes(context.Background(), tx, statement, args...); err != nil {
			m.t.Error(err)
		}
	})
	return tx.Commit()
}

// play lets a result end a burn of alice's session at a moment of a change, and returns what is held then.
func (m *moment) play(c careful, change func(careful) error) string {
	store := newStore(m.t, m.place, m.applies(c))
	o := newOrder("a", burn("gold", 30))
	at := m.at
	m.at = -2
	take(m.t, store, o.id, o.accept())
	m.at = at
	result := func() { take(m.t, store, o.id, o.finish(success)) }
	made := func() {
		if err := change(c); err != nil {
			m.t.Error(err)
		}
	}
	first := made
	if m.other = result; at == -1 {
		first, m.other = result, made
	}
	first()
	if m.done == nil {
		m.t.Fatal("the moment did not come")
	}
	<-m.done
	return held(m.t, m.place)
}

// A result arrives while its player is merged into another one, or renamed, at each moment of the change.
func TestAResultAtTheMomentOfAMerge(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*moment) func(careful) error
		steps  int
		want   string
	}{
		"merge":  {func(m *moment) func(careful) error { return m.merges }, 4, "bob gold 180"},
		"rename": {func(m *moment) func(careful) error { return m.renames }, 2, "bob gold 130"},
	} {
		play := func(t *testing.T, p *place, at int, with careful) string {
			t.Helper()
			p.may(t, "DELETE")
			if name == "rename" {
				run(t, p.db, "DELETE FROM holdings WHERE session_id = 'bob'")
			}
			m := &moment{place: p, t: t, at: at}
			return m.play(with, c.change(m))
		}
		for at := -1; at <= c.steps; at++ {
			if at == 0 {
				continue
			}
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				eachDatabase(t, func(t *testing.T, p *place) {
					equal(t, "what is held", play(t, p, at, careful{session: true, balances: true}), c.want)
				}, accounts)
			})
		}
		t.Run(name+" without the locks", func(t *testing.T) {
			got := play(t, placeOn(t, rampsql.PostgreSQL, accounts), -1, careful{})
			equal(t, "the grant has come to a player who is gone", strings.HasPrefix(got, "alice gold"), true)
		})
	}
	t.Run("merge without the lock of the balances", func(t *testing.T) {
		p := placeOn(t, rampsql.PostgreSQL, accounts)
		p.may(t, "DELETE")
		m := &moment{place: p, t: t, at: 2}
		store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			for _, a := range step.Effect.Assets { // only if there is a row, as gameserver does
				if _, err := m.changes(ctx, tx, "UPDATE holdings SET amount = amount + ? WHERE session_id = 'alice'",
					must.Get(step.Effect.Delta(a).Int64())(t)); err != nil {
					return err
				}
			}
			return nil
		})
		o := newOrder("a", burn("gold", 30))
		take(t, store, o.id, o.accept())
		m.other = func() { take(t, store, o.id, o.finish(success)) }
		check(t, m.merges(careful{}))
		<-m.done
		equal(t, "what is held, without the grant", held(t, p), "bob gold 150")
	})
}

// A player is deleted because no order waits, while a burn is accepted. Either the order waits, and the player
// stays, or the player is gone, and the order is rejected.
func TestABurnAtTheMomentOfADeletion(t *testing.T) {
	deletes := func(m *moment) error {
		return m.inSteps(func(tx *sql.Tx, run func(string, ...any)) {
			check(m.t, tx.QueryRow("SELECT player FROM accounts WHERE id = 'a'"+m.locking(true)).Scan(new(string)))
			m.here(1)
			var n int
			check(m.t, tx.QueryRow("SELECT count(*) FROM ramp_orders WHERE state = 'accepted'"+
				" AND session_id IN ('a')").Scan(&n))
			m.here(2)
			if n > 0 {
				return
			}
			run("DELETE FROM accounts WHERE id = 'a'")
			m.here(3)
			run("DELETE FROM holdings WHERE session_id = 'alice'")
			m.here(4)
		})
	}
	play := func(t *testing.T, p *place, at int, c careful) (accepted, gone bool) {
		t.Helper()
		p.may(t, "DELETE")
		m := &moment{place: p, t: t, at: at}
		store, o := newStore(t, p, m.applies(c)), newOrder("a", burn("gold", 30))
		accept := func() {
			_, err := store.Update(t.Context(), o.id, o.accept())
			if accepted = err == nil; !accepted && !rejects(err, "INVALID_USER") {
				t.Error(err)
			}
		}
		change := func() { check(t, deletes(m)) }
		first := change
		if m.other = accept; at == -1 {
			first, m.other = accept, change
		}
		first()
		<-m.done
		var n int
		check(t, p.db.QueryRow("SELECT count(*) FROM accounts WHERE id = 'a'").Scan(&n))
		return accepted, n == 0
	}
	for _, at := range []int{-1, 1, 2, 3, 4} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, p *place) {
				accepted, gone := play(t, p, at, careful{session: true, rejects: true})
				equal(t, "the order was accepted, and not the player deleted", accepted, !gone)
			}, accounts)
		})
	}
	t.Run("without a rejection", func(t *testing.T) {
		accepted, gone := play(t, placeOn(t, rampsql.PostgreSQL, accounts), 1, careful{session: true})
		equal(t, "a burn is signed for a player who is gone", accepted && gone, true)
	})
}

// Two mints of a player begin at the same moment on two servers. Each fits the limit of a day, and both do not.
func TestTwoMintsAtTheMomentOfALimit(t *testing.T) {
	play := func(t *testing.T, p *place, locks bool) (accepted int) {
		t.Helper()
		m := &moment{place: p, t: t, at: -1}
		apply := func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if _, err := m.playerOf(ctx, tx, step.Order.SessionID, careful{session: locks}); err != nil {
				return err
			}
			var n int
			err := tx.QueryRowContext(ctx, "SELECT count(*) FROM ramp_orders WHERE session_id = 'a'"+
				" AND direction = 'mint' AND state <> 'failed'").Scan(&n)
			m.here(-1)
			if err == nil && n > 1 {
				err = ramp.Reject("LIMIT_REACHED")
			}
			return err
		}
		mints := func() {
			o := newOrder("a", mint("gold", 5)) // each server has a store of its own
			_, err := newStore(t, p, apply).Update(t.Context(), o.id, o.accept())
			switch {
			case err == nil:
				accepted++
			case !rejects(err, "LIMIT_REACHED"):
				t.Error(err)
			}
		}
		m.other = mints
		mints()
		<-m.done
		return accepted
	}
	eachDatabase(t, func(t *testing.T, p *place) {
		equal(t, "mints", play(t, p, true), 1)
	}, accounts)
	t.Run("without the lock", func(t *testing.T) {
		equal(t, "mints", play(t, placeOn(t, rampsql.PostgreSQL, accounts), false), 2)
	})
}

// The season is reset. The clock of a server is a minute ahead or behind, and a mint takes gold of the old season
// or the new one. What comes back belongs to the season from which it was taken.
func TestAMintBesideTheResetOfASeason(t *testing.T) {
	const season = "CREATE TABLE season (number INTEGER NOT NULL); INSERT INTO season VALUES (1);" +
		"CREATE TABLE taken (id VARCHAR(36) PRIMARY KEY, season INTEGER NOT NULL);" +
		"CREATE TABLE mailbox (id VARCHAR(36) PRIMARY KEY, amount BIGINT NOT NULL);"
	for name, ahead := range map[string]time.Duration{"ahead": time.Minute, "behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, p *place) {
				m := &moment{place: p, t: t}
				store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
					id := step.Order.UUID.String()
					for _, a := range step.Effect.Assets {
						delta := must.Get(step.Effect.Delta(a).Int64())(t)
						var same bool
						if step.Effect.Kind == ramp.GiveBack {
							query := "SELECT season = (SELECT number FROM season) FROM taken WHERE id = ?"
							check(t, tx.QueryRow(bind(p.dialect, query), id).Scan(&same))
						}
						statement := "UPDATE holdings SET amount = amount + ? WHERE session_id = 'alice'"
						args := []any{delta}
						if step.Effect.Kind == ramp.GiveBack && !same {
							statement, args = "INSERT INTO mailbox (amount, id) VALUES (?, ?)", []any{delta, id}
						}
						if _, err := m.changes(ctx, tx, statement, args...); err != nil {
							return err
						}
					}
					if step.Effect.Kind == ramp.Take { // after the take, which holds the balance
						_, err := m.changes(ctx, tx, "INSERT INTO taken SELECT ?, number FROM season", id)
						return err
					}
					return nil
				})
				accept := func() order {
					o := newOrder("a", mint("gold", 30))
					take(t, store, o.id, acceptAt(o, time.Now().Add(ahead)))
					return o
				}
				old := accept()
				check(t, m.inSteps(func(_ *sql.Tx, run func(string, ...any)) {
					run("UPDATE season SET number = number + 1")
					run("UPDATE holdings SET amount = 100")
				}))
				next := accept()
				for _, o := range []order{old, next} {
					take(t, store, o.id, o.finish(failure))
				}
				equal(t, "what is held", held(t, p), "alice gold 100, bob gold 100")
				var mail string
				check(t, p.db.QueryRow("SELECT MAX(id) FROM mailbox").Scan(&mail))
				equal(t, "what the mailbox has is of the old order", mail, old.id.String())
			}, accounts, season)
		})
	}
}

// Two players, and two calls of one of them, change a balance at the same moment with the statements for MySQL.
func TestTheStatementsForMySQLAtTheSameMoment(t *testing.T) {
	p := placeOn(t, rampsql.MySQL)
	table, take, grant := statementsForMySQL(t)
	run(t, p.admin, "USE "+p.schema+";"+table)
	must.Get(p.db.Exec(grant, 100, "alice", "gold"))(t)
	ended := make(chan int64)
	for n := range 16 { // two takes of 60, of which one fits, and grants that make a row or add to it
		go func() {
			statement, args := grant, []any{5, fmt.Sprint("player", n%3), "gold"}
			if n%8 == 0 {
				statement, args = take, []any{60, "alice", "gold", 60}
			}
			done, err := p.db.Exec(statement, args...)
			if err != nil {
				t.Error(err)
				ended <- 0
				return
			}
			changed, err := done.RowsAffected()
			if n%8 != 0 || err != nil {
				changed = 0
			}
			ended <- changed
		}()
	}
	var taken, alice, others int64
	for range 16 {
		taken += <-ended
	}
	check(t, p.db.QueryRow("SELECT SUM(CASE WHEN player = 'alice' THEN amount ELSE 0 END),"+
		" SUM(CASE WHEN player <> 'alice' THEN amount ELSE 0 END) FROM balances").Scan(&alice, &others))
	equal(t, "takes, what alice has, what the others have", fmt.Sprint(taken, alice, others), "1 40 70")
}
