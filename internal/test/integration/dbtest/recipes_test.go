package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// pageOf returns a document.
func pageOf(t *testing.T, name string) string {
	return string(must.Get(os.ReadFile("../../../../docs/" + name))(t))
}

// Two games share a database, one of them has moved from another project, and keeps its orders of testnet. A
// player of each has the same session ID. The recipes that read and count say whose a row is.
func TestRecipesWithTwoOfEverything(t *testing.T) {
	_, section, _ := strings.Cut(pageOf(t, "orders.md"), "\n### Read what has ended\n")
	ended := regexp.MustCompile("(?s)```sql\n(.+?)```").FindStringSubmatch(section)[1]
	players := pageOf(t, "players-and-items.md")
	_, block, _ := strings.Cut(players, "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	counts := strings.Split(strings.TrimSpace(block), "\n")
	own := regexp.MustCompile("`(AND project_id IN \\('project-2', 'project-1'\\))`").FindStringSubmatch(players)
	if own == nil {
		t.Fatal("players-and-items.md does not say how to count the orders of one game")
	}
	eachDatabase(t, func(t *testing.T, p *place) {
		place := func(project string, network ramp.Network, ends bool) string {
			store := newStoreOf(t, p, applyNothing, network, project)
			o := newOrder("a", mint("gold", 5))
			o.project = project
			take(t, store, o.id, ramp.OnlyOf(nil, network, acceptAt(o, day0)))
			if ends {
				take(t, store, o.id, ramp.Finish(o.report(success), day0.Add(time.Hour)))
			}
			return o.id.String()
		}
		want := map[string]string{}
		for _, of := range []struct {
			project string
			network ramp.Network
		}{
			{"project-2", ramp.Mainnet},
			{"project-1", ramp.Mainnet},
			{"project-1", ramp.Testnet},
			{"blue", ramp.Mainnet},
		} {
			want[place(of.project, of.network, true)] = fmt.Sprint(of.project, " on ", of.network)
			if of.network == ramp.Mainnet {
				place(of.project, of.network, false)
			}
		}
		rows := must.Get(p.db.Query(bind(p.dialect, ended), day0.UnixMilli(), day0.Add(2*time.Hour).UnixMilli()))(t)
		defer rows.Close()
		got := map[string]string{}
		for rows.Next() {
			var id, project, network, state, direction, session string
			var finished int64
			check(t, rows.Scan(&id, &project, &network, &state, &direction, &session, &finished))
			got[id] = project + " on " + network
		}
		check(t, rows.Err())
		equal(t, "what has ended", fmt.Sprint(got), fmt.Sprint(want))

		for _, statement := range counts {
			var all, mine int
			statement = strings.TrimSuffix(statement, ";")
			check(t, p.db.QueryRow(statement).Scan(&all))
			check(t, p.db.QueryRow(statement+" "+own[1]).Scan(&mine))
			equal(t, "orders that wait for any game", all, 3)
			equal(t, "orders that wait for the game, also of its former project", mine, 2)
		}
	})
}

// An order that is settled in another way ends without Apply. A worker that sends what Apply has written, and what
// has ended without a message, sends each end.
func TestAnOutboxLacksWhatWasSettled(t *testing.T) {
	_, recipe, _ := strings.Cut(pageOf(t, "orders.md"), "\n### An outbox\n")
	recipe, _, _ = strings.Cut(recipe, "\n### ")
	for _, said := range []string{"settled", "(#read-what-has-ended)"} {
		equal(t, "the recipe says "+said, strings.Contains(recipe, said), true)
	}
	eachDatabase(t, func(t *testing.T, p *place) {
		insert := bind(p.dialect, "INSERT INTO outbox (id) VALUES (?)")
		store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if step.Rehearsal {
				return nil
			}
			_, err := tx.ExecContext(ctx, insert, step.Order.UUID.String()+" "+string(step.Order.State))
			return err
		})
		failed, settled := newOrder("alice", mint("gold", 5)), newOrder("bob", mint("gold", 5))
		for _, o := range []order{failed, settled} {
			take(t, store, o.id, o.accept())
		}
		take(t, store, failed.id, failed.finish(failure))
		take(t, store, settled.id, ramp.Settled("by mail", settled.finish(failure)))
		sent := func(id uuid.UUID) (n int) {
			t.Helper()
			check(t, p.db.QueryRow(bind(p.dialect, "SELECT count(*) FROM outbox WHERE id = ?"),
				id.String()+" failed").Scan(&n))
			return n
		}
		equal(t, "messages of Apply", fmt.Sprint(sent(failed.id), sent(settled.id)), "1 0")
		for range 2 { // the periods overlap
			ended := must.Get(store.Ended(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour),
				ramp.OrderPage{}))(t)
			equal(t, "orders that ended", len(ended), 2)
			for _, o := range ended {
				if sent(o.UUID) == 0 {
					must.Get(p.db.Exec(insert, o.UUID.String()+" "+string(o.State)))(t)
				}
			}
		}
		equal(t, "messages", fmt.Sprint(sent(failed.id), sent(settled.id)), "1 1")
	}, "CREATE TABLE outbox (id VARCHAR(80) PRIMARY KEY);")
}

// outbox is what a worker of the recipe needs, and the other system, which counts how often it has got each key.
type outbox struct {
	*moment
	store   *rampsql.Store
	deletes bool // what it has sent, instead of marking it

	mu  sync.Mutex
	got map[string]int
}

const messages = "CREATE TABLE outbox (id VARCHAR(80) PRIMARY KEY, sent BIGINT NOT NULL DEFAULT 0);"

// applies writes a message for each step.
func (b *outbox) applies(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	if step.Rehearsal {
		return nil
	}
	_, err := tx.ExecContext(ctx, bind(b.dialect, "INSERT INTO outbox (id) VALUES (?)"), keyOf(&step.Order))
	return err
}

func keyOf(o *ramp.Order) string { return o.UUID.String() + " " + string(o.State) }

// works is one run of a worker.
func (b *outbox) works() {
	t := b.t
	ended, err := b.store.Ended(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour), ramp.OrderPage{})
	check(t, err)
	b.here(1)
	count := bind(b.dialect, "SELECT count(*) FROM outbox WHERE id = ?")
	for _, o := range ended {
		var n int
		check(t, b.db.QueryRow(count, keyOf(&o)).Scan(&n))
		b.here(2)
		if n > 0 {
			continue
		}
		_, failed := b.db.Exec(bind(b.dialect, "INSERT INTO outbox (id) VALUES (?)"), keyOf(&o))
		check(t, b.db.QueryRow(count, keyOf(&o)).Scan(&n))
		if n != 1 {
			t.Errorf("%d messages of order %s: %v", n, o.UUID, failed)
		}
	}
	b.here(3)
	var unsent []string
	rows, err := b.db.Query("SELECT id FROM outbox WHERE sent = 0")
	check(t, err)
	for rows.Next() {
		var id string
		check(t, rows.Scan(&id))
		unsent = append(unsent, id)
	}
	check(t, errors.Join(rows.Err(), rows.Close()))
	b.here(4)
	for _, id := range unsent {
		b.mu.Lock()
		b.got[id]++
		b.mu.Unlock()
		b.here(5)
		mark := "UPDATE outbox SET sent = 1 WHERE id = ?"
		if b.deletes {
			mark = "DELETE FROM outbox WHERE id = ?"
		}
		must.Get(b.db.Exec(bind(b.dialect, mark), id))(t)
		b.here(6)
	}
}

// A second worker runs, and an order ends, at each moment of a worker. Each end is sent, and nothing that was marked
// is sent again.
func TestTwoWorkersOfAnOutbox(t *testing.T) {
	begun := func(t *testing.T, p *place, at int) (b *outbox, open order) {
		b = &outbox{moment: &moment{place: p, t: t, at: at}, got: map[string]int{}}
		b.store = newStore(t, p, b.applies)
		failed, settled, open := newOrder("alice", mint("gold", 5)), newOrder("bob", mint("gold", 5)),
			newOrder("carol", mint("gold", 5))
		for _, o := range []order{failed, settled, open} {
			take(t, b.store, o.id, o.accept())
		}
		take(t, b.store, failed.id, failed.finish(failure))
		take(t, b.store, settled.id, ramp.Settled("by mail", settled.finish(failure)))
		return b, open
	}
	for at := 1; at <= 6; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, p *place) {
				b, open := begun(t, p, at)
				b.other = func() {
					b.works()
					take(t, b.store, open.id, open.finish(failure))
				}
				b.works()
				<-b.done
				b.works()
				equal(t, "messages that arrived", len(b.got), 6)
				before := fmt.Sprint(b.got)
				b.works()
				equal(t, "what a run without news sends", fmt.Sprint(b.got), before)
				for id, n := range b.got {
					if n > 2 {
						t.Errorf("message %s was sent %d times by two workers", id, n)
					}
				}
			}, messages)
		})
	}
	t.Run("a worker that deletes", func(t *testing.T) {
		p := placeOn(t, rampsql.PostgreSQL, messages)
		p.may(t, "DELETE")
		b, _ := begun(t, p, 0)
		b.deletes = true
		b.works()
		sent := len(b.got)
		b.works()
		twice := 0
		for _, n := range b.got {
			twice += n - 1
		}
		equal(t, "messages, and those that were sent again", fmt.Sprint(sent, twice), "5 2")
	})
}

// The session of an order is part of what the service signs. Two shards become one, and the second player 1001 is
// renamed: whoever renames the session in ramp_orders, too, ends nothing any more.
func TestARenamedSessionOfAnOrderEndsNothing(t *testing.T) {
	rows := strings.Split(pageOf(t, "players-and-items.md"), "\n")
	at := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "| rename a player |") })
	equal(t, "the row says what not to rename", strings.Contains(rows[at], "not in `ramp_orders`"), true)
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		for _, renamed := range []bool{false, true} {
			o := newOrder("1001", mint("gold", 5))
			take(t, store, o.id, o.accept())
			if renamed {
				run(t, p.db, "UPDATE ramp_orders SET session_id = 's2-1001'")
			}
			for _, next := range []ramp.Transition{o.accept(), o.finish(failure)} {
				_, err := store.Update(t.Context(), o.id, next)
				conflict := (*ramp.ConflictError)(nil)
				equal(t, "the call is a conflict", errors.As(err, &conflict), renamed)
			}
		}
	})
}
