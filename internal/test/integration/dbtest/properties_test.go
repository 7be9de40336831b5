package dbtest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

type moves = map[uuid.UUID][]string

// The longest texts and all allowed characters are stored and read back unchanged on
// every database, whatever characters the connection has.
// Statements of MySQL contain their values, so the effect of a quote or a backslash must not
// depend on the rest of the value.
func TestEveryTextIsStored(t *testing.T) {
	for _, d := range databases {
		for _, m := range append([]mode{d.modes[0]}, d.texts...) {
			t.Run(d.name+"/"+m.name, func(t *testing.T) {
				p := newPlace(t, d, m)
				store := newStore(t, p, applyNothing)
				longest, reason := strings.Repeat("한", 1024/len("한")), strings.Repeat("한", 1364)+"\U0001f600"
				const quotes = `it's "a" \project\', ? $1 -- x'`
				const asset = "a\x00\x1f\x7f\u0080\ud7ff\ue000\ufffe\uffff\U00010000\U0010fffd\U0010ffff"
				o := newOrder(longest, mint(asset, 5))
				o.project, o.user = quotes, longest
				o.intent.TargetCandidate = json.RawMessage(`{"한":1}`)
				for _, next := range []ramp.Transition{o.accept(), ramp.Abandon(reason, time.Now()),
					o.finish(failure)} {
					must.Get(store.Update(t.Context(), o.id, next))(t)
					got := must.Get(store.Order(t.Context(), o.id))(t)
					if got.SessionID != longest || got.ProjectID != quotes || got.UserAddress != longest ||
						len(got.Assets) != 1 || got.Assets[0].ID != asset || got.State == ramp.OrderAbandoned &&
						got.Reason != reason {
						t.Errorf("read back: %+v", got)
					}
				}
				want := map[uuid.UUID]string{}
				for c := rune(1); c <= 0x80; c++ {
					o := newOrder("bob", mint("gold", 5))
					o.project = "p" + string(c)
					want[o.id] = o.project
					must.Get(store.Update(t.Context(), o.id, o.accept()))(t)
				}
				waiting := must.Get(store.SessionOrders(t.Context(), "bob", ramp.OrderPage{Limit: 1000}))(t)
				equal(t, "orders that are stored", len(waiting), len(want))
				for _, o := range waiting {
					equal(t, "the stored project", o.ProjectID, want[o.UUID])
				}
			})
		}
	}
}

// A corrupt row is not the service's fault: the service must retry, so that the call
// succeeds after somebody has repaired the row. The row keeps its transaction meanwhile.
func TestADamagedRowIsOursToBlame(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		damaged, whole, paid := newOrder("alice", mint("gold", 5)), newOrder("alice", mint("gold", 7)),
			newOrder("alice", burn("gold", 1))
		for _, o := range []order{damaged, whole, paid} {
			w.expect(w.validate(o), "200")
		}
		w.expect(w.result(paid, success), "200")
		store := func(o order, column, value string) {
			must.Get(p.db.Exec(bind(p.dialect, "UPDATE ramp_orders SET "+column+" = ? WHERE uuid = ?"), value,
				o.id.String()))(t)
		}
		store(paid, "intent", "")
		_, err := w.store.Update(t.Context(), whole.id, ramp.Finish(whole.reportBy(txHashOf(paid.id), success), day0))
		expectTaken(t, err, whole, paid)
		good := must.Get(json.Marshal(damaged.intent))(t)
		for value, c := range map[string]struct{ column, good, problem string }{
			"0x12":              {"digest", damaged.digest.String(), "digest"},
			`{"method":"mint"}`: {"intent", string(good), "is not an order"},
			`{"target_candidate":1,"target_candidate":2,` + string(good[1:]): {"intent", string(good),
				"occurs more than once"},
		} {
			store(damaged, c.column, value)
			w.expect(w.result(damaged, failure), "500 INTERNAL_ERROR")
			waiting, err := w.store.Waiting(context.Background(), ramp.Mint, time.Now().Add(time.Hour),
				ramp.OrderPage{})
			expectText(t, err, damaged.id.String(), c.problem)
			if len(waiting) != 2 {
				t.Fatalf("with a damaged %s, %d orders wait", c.column, len(waiting))
			}
			for _, o := range waiting {
				if readable := o.UUID == whole.id; readable != (o.Direction == ramp.Mint && len(o.Assets) == 1) ||
					o.SessionID != "alice" {
					t.Errorf("with a damaged %s, an order that waits is %+v", c.column, o)
				}
			}
			store(damaged, c.column, c.good)
		}
		w.expect(w.result(damaged, failure), "200")
		w.assertMoves(moves{damaged.id: {"take alice -5 gold", "give back alice +5 gold"},
			whole.id: {"take alice -7 gold"},
			paid.id:  {"grant alice +1 gold"}})
	})
}
