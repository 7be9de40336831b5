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
	"testing"
	"time"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
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
