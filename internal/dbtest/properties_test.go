package dbtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

type moves = map[uuid.UUID][]string

// Property 1: equal concurrent calls have one effect.

func TestEqualValidatesDeductOnce(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		w, want := newWorld(t, p, nil), moves{}
		for _, n := range []int{1, 3, 50} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				w.t = t
				player := fmt.Sprint("alice", n)
				w.give(player, "gold", 100)
				o := newOrder(player, mint("gold", 5))

				signature := ""
				accept := func(a answer) {
					t.Helper()
					w.expect(a, "200")
					if signature == "" {
						signature = a.signature
					}
					if a.signature == "" || a.signature != signature {
						t.Fatalf("signatures %q and %q", a.signature, signature)
					}
				}
				accepted := 0
				for _, a := range w.contend(n, func() answer { return w.validate(o) }) {
					if p.mode.races && a.status == 500 {
						w.expect(a, "500 INTERNAL_ERROR")
						continue
					}
					accept(a)
					accepted++
				}
				if accepted == 0 {
					t.Fatal("not one of the calls was accepted")
				}
				t.Logf("%d of %d accepted at once", accepted, n)
				accept(w.validate(o))
				want[o.id] = []string{"take " + player + " -5 gold"}
				w.books(want)
			})
		}
	})
}

func TestEqualResultsHaveOneEffect(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		w, want := newWorld(t, p, nil), moves{}
		for _, c := range []struct {
			name   string
			intent ramp.Intent
			status uint64
			want   []string
		}{
			{"mint succeeded", mint("gold", 5), success, []string{"take mint_succeeded -5 gold"}},
			{"mint failed", mint("gold", 5), failure, []string{"take mint_failed -5 gold", "give back mint_failed +5 gold"}},
			{"burn succeeded", burn("gold", 5), success, []string{"grant burn_succeeded +5 gold"}},
			{"burn failed", burn("gold", 5), failure, nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				w.t = t
				player := strings.ReplaceAll(c.name, " ", "_")
				w.give(player, "gold", 100)
				o := newOrder(player, c.intent)
				w.expect(w.validate(o), "200")
				for _, a := range w.contend(50, func() answer { return w.result(o, c.status) }) {
					if p.mode.races && a.status == 500 {
						continue
					}
					w.expect(a, "200")
				}
				w.expect(w.result(o, c.status), "200")
				want[o.id] = c.want
				w.books(want)
			})
		}
	})
}

// Many concurrent orders of one player never make a balance negative. The isolation level
// affects only how many calls must be repeated.
func TestOrdersOfOnePlayer(t *testing.T) { eachMode(t, testOrdersOfOnePlayer) }

func testOrdersOfOnePlayer(t *testing.T, p *place) {
	w := newWorld(t, p, nil)
	w.give("alice", "gold", 100)
	w.give("alice", "gem", 100)
	want := moves{}
	orders := make([]order, 25) // the gold is enough for 20 of them
	for i := range orders {
		if orders[i] = newOrder("alice", mint("gold", 5, "gem", 1)); i%2 == 0 {
			orders[i] = newOrder("alice", mint("gem", 1, "gold", 5))
		}
		want[orders[i].id] = nil
	}
	next := make(chan order, len(orders))
	for _, o := range orders {
		next <- o
	}
	accepted := make(chan order, len(orders))
	atOnce(len(orders), func() answer {
		o := <-next
		a := w.validate(o)
		if a.status == 200 && a.code == "" {
			accepted <- o
		}
		return a
	})
	close(accepted)
	n := 0
	for o := range accepted {
		want[o.id] = []string{"take alice -5 gold", "take alice -1 gem"}
		n++
	}
	w.books(want)
	if n == 0 || n > 20 || !p.mode.races && n != 20 {
		t.Errorf("%d orders were accepted", n)
	}
}

// Property 2: a call that differs from the order with its UUID is rejected.

func TestAnotherOrderUnderAKnownUUID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		w.give("bob", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		w.expect(w.validate(o), "200")
		for name, change := range map[string]func(*order){
			"digest":    func(o *order) { o.digest[0]++ },
			"amount":    func(o *order) { o.intent = mint("gold", 6) },
			"less":      func(o *order) { o.intent = mint("gold", 4) },
			"fraction":  func(o *order) { o.intent.From[0].Amount = amount(t, "5.000000000000000001") },
			"asset":     func(o *order) { o.intent = mint("gem", 5) },
			"direction": func(o *order) { o.intent = burn("gold", 5) },
			"token":     func(o *order) { o.intent.To[0].ID = "0x00000000000000000000000000000000000000ff" },
			"session":   func(o *order) { o.session = "bob" },
			"project":   func(o *order) { o.project = "another" },
			"user":      func(o *order) { o.user = "0x00000000000000000000000000000000000000cc" },
		} {
			t.Run(name, func(t *testing.T) {
				w.t = t
				other := o
				other.intent = mint("gold", 5)
				change(&other)
				w.expect(w.validate(other), "200 ORDER_CONFLICT")
			})
		}
		w.t = t
		w.expect(w.validate(o), "200")
		w.books(moves{o.id: {"take alice -5 gold"}})
	})
}

// The same order in another notation is accepted again, so a player who has paid can get
// the signature again.
func TestAKnownOrderInOtherWords(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		first := w.validate(o)
		w.expect(first, "200")
		for name, change := range map[string]func(*order){
			"amount":           func(o *order) { o.intent.From[0].Amount = amount(t, "50e-1") },
			"two entries":      func(o *order) { o.intent = mint("gold", 2, "gold", 3) },
			"token address":    func(o *order) { o.intent.To[0].ID = strings.ToUpper(token) },
			"token type":       func(o *order) { o.intent.To[0].Type = "erc20" },
			"target_candidate": func(o *order) { o.intent.TargetCandidate = json.RawMessage(`{}`) },
			"user address":     func(o *order) { o.user = strings.ToLower(o.user) },
		} {
			t.Run(name, func(t *testing.T) {
				w.t = t
				other := o
				other.intent = mint("gold", 5)
				change(&other)
				again := w.validate(other)
				w.expect(again, "200")
				if again.signature != first.signature {
					t.Errorf("signed %s, then %s", first.signature, again.signature)
				}
			})
		}
		w.t = t
		w.books(moves{o.id: {"take alice -5 gold"}})
	})
}

func TestWhatCannotBeStoredIsRejected(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		rejected := map[string]func(*order){
			"400 INVALID_PROJECT_ID":   func(o *order) { o.project = "a\x00" },
			"400 INVALID_USER_ADDRESS": func(o *order) { o.user = "a\x00" },
		}
		for want, change := range rejected {
			other := o
			change(&other)
			w.expect(w.validate(other), want)
		}
		w.books(moves{})

		w.expect(w.validate(o), "200")
		reasons := []string{" ", "quoted\x00", "quoted\xff", strings.Repeat("x", 4097)}
		for _, reason := range reasons {
			var wrong *ramp.InvalidError
			if _, err := w.game.Abandon(context.Background(), o.id, reason); !errors.As(err, &wrong) || strings.Contains(err.Error(), "quoted") {
				t.Errorf("abandoned for %.10q: %v", reason, err)
			}
		}
		w.books(moves{o.id: {"take alice -5 gold"}})
	})
}

// The longest texts and all allowed characters are stored and read back unchanged on
// every database, and on a connection that cannot send every character, those that it can.
func TestWhatIsNotRejectedIsStored(t *testing.T) {
	ctx := context.Background()
	for _, d := range databases {
		modes := []mode{d.modes[0]}
		if d.dialect == ramp.MySQL {
			modes = append(modes, utf8mb3,
				mode{name: "other quotes", params: "&sql_mode=%27ANSI,NO_BACKSLASH_ESCAPES%27"})
		}
		for _, m := range modes {
			t.Run(d.name+"/"+m.name, func(t *testing.T) {
				p := newPlace(t, d, m)
				store := newStore(t, p, applyNothing)
				longest := strings.Repeat("한", 1024/len("한"))
				const quotes = `it's "a" \project\', ? $1 -- x'`
				asset := "sword\U0001F600\x00한"
				if m.params == utf8mb3.params {
					asset = "sword\x00한"
				}
				o := newOrder(longest, mint(asset, 5))
				o.project, o.user = quotes, longest
				o.intent.TargetCandidate = json.RawMessage(`{"한":1}`)
				for _, next := range []ramp.Transition{
					o.accept(), ramp.Abandon(strings.Repeat("한", 4096/3), time.Now()), o.finish(failure),
				} {
					tx, err := p.db.Begin()
					check(t, err)
					got, err := store.UpdateTx(ctx, tx, o.id, next)
					if err != nil {
						t.Fatal(errors.Join(err, tx.Rollback()))
					}
					check(t, tx.Commit())
					if got.Order.SessionID != longest || got.Order.ProjectID != quotes || got.Order.UserAddress != longest ||
						len(got.Order.Assets) != 1 || got.Order.Assets[0].ID != o.intent.From[0].ID {
						t.Errorf("read back: %+v", got.Order)
					}
				}
				var text string
				check(t, p.db.QueryRow("SELECT intent FROM ramp_orders").Scan(&text))
				if !strings.Contains(text, strings.TrimSuffix(asset, "\x00한")) {
					t.Errorf("the intent is stored as %q", text)
				}
			})
		}
	}
}

// utf8mb3 is the character set of a connection that cannot send every character.
var utf8mb3 = mode{name: "charset=utf8", params: "&charset=utf8"}

// A tx_hash does not affect the outcome and must not prevent an order from being
// finished.
func TestATxHashThatIsNoneIsNotStored(t *testing.T) {
	for _, d := range databases {
		modes := []mode{d.modes[0]}
		if d.dialect == ramp.MySQL {
			modes = append(modes, utf8mb3)
		}
		for _, m := range modes {
			t.Run(d.name+"/"+m.name, func(t *testing.T) {
				w := newWorld(t, newPlace(t, d, m), nil)
				w.give("alice", "gold", 100)
				want := moves{}
				for name, hash := range map[string]string{
					"64 KiB":             "0x" + strings.Repeat("ab", 32<<10),
					"11 KB":              strings.Repeat("x", 11_000), // more than an index supports
					"emoji":              "0x\U0001F600",
					"NUL":                "a\x00",
					"short":              "0xab",
					"long":               txHash("ab") + "ab",
					"without 0x":         txHash("ab")[2:],
					"not hex":            txHash("ab")[:65] + "g",
					"empty":              "",
					"zeros":              txHash("00"),
					"zeros again":        txHash("00"),
					"a hash":             txHash("ab"),
					"a hash in capitals": "0x" + strings.ToUpper(txHash("cd")[2:]),
					"0X":                 "0X" + txHash("ef")[2:],
				} {
					o := newOrder("alice", mint("gold", 5))
					w.expect(w.validate(o), "200")
					result := o.report(failure)
					result.TxHash = hash
					if got := w.post(ramp.PathResult, o.session, result).String(); got != "200" {
						t.Errorf("with %s, a result is answered %q", name, got)
						continue
					}
					want[o.id] = []string{"take alice -5 gold", "give back alice +5 gold"}
					switch {
					case name == "0X":
						hash = txHash("ef")
					case strings.HasPrefix(name, "a hash"):
						hash = strings.ToLower(hash)
					default:
						hash = ""
					}
					var stored string
					check(t, w.db.QueryRow(bind(d.dialect, "SELECT COALESCE(tx_hash, '') FROM ramp_orders WHERE uuid = ?"), o.id.String()).Scan(&stored))
					if stored != hash {
						t.Errorf("with %s, %q is stored", name, stored)
					}
				}
				w.books(want)
			})
		}
	}
}

func TestARejectedOrderLeavesNoRow(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 4)
		o := newOrder("alice", mint("gold", 5))
		w.expect(w.validate(o), "200 INVALID_BALANCE")
		w.expect(w.validate(o), "200 INVALID_BALANCE")
		w.expect(w.result(o, failure), "500 INTERNAL_ERROR")
		w.books(moves{})
		// Another order can still use the same UUID.
		o.intent = mint("gold", 4)
		w.expect(w.validate(o), "200")
		w.books(moves{o.id: {"take alice -4 gold"}})
	})
}

// Many equal validate calls exceed the player's balance. The first one rolls back while
// the others wait for its row.
func TestEqualValidatesAreRejected(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 4)
		o := newOrder("alice", mint("gold", 5))
		rejected := 0
		for _, a := range w.contend(50, func() answer { return w.validate(o) }) {
			if a.status != 500 {
				w.expect(a, "200 INVALID_BALANCE")
				rejected++
			}
		}
		t.Logf("%d of 50 rejected, the others are to be repeated", rejected)
		if rejected == 0 {
			t.Error("not one of the calls was rejected")
		}
		w.expect(w.validate(o), "200 INVALID_BALANCE")
		w.books(moves{})
	})
}

// An order that could not be stored is not approved.
func TestWithoutATableNothingIsSigned(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			w := newWorld(t, newPlace(t, d, d.modes[0], "DROP TABLE ramp_orders;"), nil)
			w.expect(w.validate(newOrder("alice", mint("gold", 5))), "500 INTERNAL_ERROR")
		})
	}
}

// The interface has a session_id in results, but the stored order knows its player.
func TestAResultWithoutASessionFinishesItsOrder(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		w.expect(w.validate(o), "200")
		result := o.report(failure)
		result.SessionID = ""
		for range 2 {
			w.expect(w.post(ramp.PathResult, o.session, result), "200")
		}
		w.books(moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}})
		if len(w.conflicts) != 0 {
			t.Errorf("the hook heard %q", w.conflicts)
		}
	})
}

func TestAnOrderThatIsOverIsNotSignedAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		w.expect(w.validate(o), "200")
		w.expect(w.result(o, failure), "200")
		w.expect(w.validate(o), "200 ORDER_FINISHED")
		w.books(moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}})
	})
}

// Property 3: the validated order decides, not the result.

func TestAResultCannotChangeItsOrder(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		w.give("bob", "gold", 100)

		granted := newOrder("alice", burn("gold", 5))
		w.expect(w.validate(granted), "200")
		more := granted
		more.intent = burn("gold", 5000)
		w.expect(w.result(more, success), "400 PERMANENT")

		minted := newOrder("alice", mint("gold", 5))
		w.expect(w.validate(minted), "200")
		turned := minted
		turned.intent = burn("gold", 5)
		w.expect(w.result(turned, success), "400 PERMANENT")
		w.expect(w.result(turned, failure), "400 PERMANENT")

		stolen := granted
		stolen.session = "bob"
		w.expect(w.result(stolen, success), "400 PERMANENT")

		cheaper := granted // another token pays for it
		cheaper.intent = burn("gold", 5)
		cheaper.intent.From[0].ID = "0x00000000000000000000000000000000000000ff"
		w.expect(w.result(cheaper, success), "400 PERMANENT")

		w.books(moves{minted.id: {"take alice -5 gold"}})
		if len(w.conflicts) != 5 {
			t.Errorf("%d conflicts reached the hook: %q", len(w.conflicts), w.conflicts)
		}

		// None of this prevents the true results.
		w.expect(w.result(granted, success), "200")
		w.expect(w.result(minted, success), "200")
		w.books(moves{minted.id: {"take alice -5 gold"}, granted.id: {"grant alice +5 gold"}})
	})
}

// A second transaction for an order moves nothing, but is reported to the hook, because
// the player may have paid twice.
func TestASecondTransactionIsHeardOf(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", burn("gold", 5))
		w.expect(w.validate(o), "200")
		paidBy := func(txHash string) answer {
			result := o.report(success)
			result.TxHash = txHash
			return w.post(ramp.PathResult, o.session, result)
		}
		w.expect(paidBy(txHash("ab")), "200")
		for _, same := range []string{txHash("ab"), "0x" + strings.ToUpper(txHash("ab")[2:]), "", "0xcd"} {
			w.expect(paidBy(same), "200")
		}
		if len(w.conflicts) != 0 {
			t.Errorf("without a conflict, the hook heard %q", w.conflicts)
		}
		w.expect(paidBy(txHash("cd")), "200")
		w.hookFails = errors.New("the hook's own database is down")
		w.expect(paidBy(txHash("cd")), "500 INTERNAL_ERROR")
		heard := o.id.String() + " was succeeded: tx_hash"
		if len(w.conflicts) != 2 || w.conflicts[0] != heard || w.conflicts[1] != heard {
			t.Errorf("the hook heard %q", w.conflicts)
		}
		w.books(moves{o.id: {"grant alice +5 gold"}})
	})
}

// Two projects share a database and have separate HMAC keys.
func TestAResultOfAnotherProjectMovesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		ours := newWorld(t, p, nil)
		ours.give("alice", "gold", 100)
		terms, err := ramp.NewTerms(ramp.TermsConfig{Any: true, ProjectID: "another"})
		check(t, err)
		theirs := &game{ramp.HandlerConfig{
			Terms: terms, Players: studio{db: p.db, dialect: p.dialect}, Store: ours.store,
			OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil },
		}}
		another := newWorld(t, p, theirs)
		o := newOrder("alice", burn("gold", 5))
		ours.expect(another.validate(o), "400 INVALID_PROJECT_ID")
		ours.expect(ours.validate(o), "200")
		ours.expect(another.result(o, success), "400 PERMANENT")
		ours.books(moves{})
		ours.expect(ours.result(o, success), "200")
		ours.expect(another.result(o, success), "400 PERMANENT")
		ours.books(moves{o.id: {"grant alice +5 gold"}})
	})
}

// An interrupted list is an error, not a short list.
func TestAListOfWaitingOrdersThatBreaksOff(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		w.expect(w.validate(newOrder("alice", mint("gold", 5))), "200")
		var lost atomic.Int64
		p.db = lossy(t, p, &lost)
		store := newStore(t, p, applyNothing)
		lost.Store(1)
		waiting, err := store.Waiting(context.Background(), ramp.Mint, time.Now().Add(time.Hour), ramp.OrderPage{})
		if waiting != nil || !errors.Is(err, errLost) {
			t.Errorf("%d orders wait, with the error %v", len(waiting), err)
		}
		waiting, err = store.Waiting(context.Background(), ramp.Mint, time.Now().Add(time.Hour), ramp.OrderPage{})
		if len(waiting) != 1 || err != nil {
			t.Errorf("%d orders wait, with the error %v", len(waiting), err)
		}
	})
}

// A corrupt row is not the service's fault: the service must retry, so that the call
// succeeds after somebody has repaired the row.
func TestADamagedRowIsOursToBlame(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		damaged, whole := newOrder("alice", mint("gold", 5)), newOrder("alice", mint("gold", 7))
		w.expect(w.validate(damaged), "200")
		w.expect(w.validate(whole), "200")
		store := func(column, value string) {
			_, err := p.db.Exec(bind(p.dialect, "UPDATE ramp_orders SET "+column+" = ? WHERE uuid = ?"), value, damaged.id.String())
			check(t, err)
		}
		for column, value := range map[string]string{"digest": "0x12", "intent": `{"method":"mint"}`} {
			var stored string
			check(t, p.db.QueryRow(bind(p.dialect, "SELECT "+column+" FROM ramp_orders WHERE uuid = ?"), damaged.id.String()).Scan(&stored))
			store(column, value)
			w.expect(w.result(damaged, failure), "500 INTERNAL_ERROR")
			waiting, err := w.store.Waiting(context.Background(), ramp.Mint, time.Now().Add(time.Hour), ramp.OrderPage{})
			if len(waiting) != 2 || err == nil || !strings.Contains(err.Error(), damaged.id.String()) {
				t.Fatalf("with a damaged %s, %d orders wait: %v", column, len(waiting), err)
			}
			for _, o := range waiting {
				if readable := o.UUID == whole.id; readable != (o.Direction == ramp.Mint && len(o.Assets) == 1) || o.SessionID != "alice" {
					t.Errorf("with a damaged %s, an order that waits is %+v", column, o)
				}
			}
			store(column, stored)
		}
		w.expect(w.result(damaged, failure), "200")
		w.books(moves{damaged.id: {"take alice -5 gold", "give back alice +5 gold"}, whole.id: {"take alice -7 gold"}})
	})
}

// The stored order decides what moves. A result whose other fields are malformed is
// accepted, because the service does not deliver a rejected one again.
func TestAResultThatIsNothingButItsUUIDAndStatus(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 1000)
		want := moves{}
		for name, change := range map[string]func(map[string]any){
			"intent missing":               func(r map[string]any) { delete(r, "intent") },
			"intent null":                  func(r map[string]any) { r["intent"] = nil },
			"intent text":                  func(r map[string]any) { r["intent"] = "mint" },
			"intent empty":                 func(r map[string]any) { r["intent"] = map[string]any{} },
			"sides empty":                  func(r map[string]any) { r["intent"] = map[string]any{"from": []any{}, "to": nil} },
			"amounts of 0":                 func(r map[string]any) { setAmounts(r, 0) },
			"amounts as text":              func(r map[string]any) { setAmounts(r, "5") },
			"amounts with too many digits": func(r map[string]any) { setAmounts(r, json.Number(strings.Repeat("9", 200))) },
			"session missing":              func(r map[string]any) { delete(r, "session_id") },
			"session numeric":              func(r map[string]any) { r["session_id"] = 7 },
			"session padded":               func(r map[string]any) { r["session_id"] = "\u2003alice\t" },
			"uuid without dashes":          func(r map[string]any) { r["uuid"] = strings.ReplaceAll(r["uuid"].(string), "-", "") },
			"tx_hash null":                 func(r map[string]any) { r["tx_hash"] = nil },
			"all of it":                    func(r map[string]any) { r["intent"], r["session_id"], r["tx_hash"] = 7, []any{}, map[string]any{} },
		} {
			for _, step := range []struct {
				intent ramp.Intent
				status uint64
				moves  []string
			}{
				{mint("gold", 5), success, []string{"take alice -5 gold"}},
				{mint("gold", 5), failure, []string{"take alice -5 gold", "give back alice +5 gold"}},
				{burn("gold", 5), success, []string{"grant alice +5 gold"}},
				{burn("gold", 5), failure, nil},
			} {
				o := newOrder("alice", step.intent)
				w.expect(w.validate(o), "200")
				written, err := json.Marshal(o.report(step.status))
				check(t, err)
				var result map[string]any
				check(t, json.Unmarshal(written, &result))
				change(result)
				for range 2 {
					if got := w.post(ramp.PathResult, o.session, result).String(); got != "200" {
						t.Errorf("%s: answered %q", name, got)
					}
				}
				want[o.id] = step.moves
			}
		}
		w.books(want)
		if len(w.conflicts) != 0 {
			t.Errorf("the hook heard %q", w.conflicts)
		}
	})
}

// setAmounts sets every amount of a result.
func setAmounts(result map[string]any, amount any) {
	for _, side := range []string{"from", "to"} {
		for _, asset := range result["intent"].(map[string]any)[side].([]any) {
			asset.(map[string]any)["amount"] = amount
		}
	}
}

// Whitespace around a session ID does not make it another session.
func TestAPaddedSessionIsTheSame(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		ctx := context.Background()
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		for n, session := range []string{"\u00a0alice ", "alice", "alice\u2003"} {
			step, err := w.store.Update(ctx, o.id, ramp.Accept(ramp.Session{ID: session}, o.validateRequest(), time.Now()))
			check(t, err)
			if step.New != (n == 0) || step.Order.SessionID != "alice" {
				t.Errorf("with %q: %+v", session, step)
			}
		}
		w.books(moves{o.id: {"take alice -5 gold"}})
	})
}

// The service does not repeat a call after a 400, so a conflict is answered with 400 only
// if the hook has handled it.
func TestAConflictThatNobodyTakesComesAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		ours := newWorld(t, p, nil)
		ours.give("alice", "gold", 100)
		deaf := newWorld(t, p, newGame(studio{db: p.db, dialect: p.dialect}, ours.store)) // without OnConflict
		o := newOrder("alice", mint("gold", 5))
		ours.expect(ours.validate(o), "200")
		ours.expect(ours.result(o, failure), "200")
		for range 2 {
			ours.expect(deaf.result(o, success), "500 INTERNAL_ERROR")
		}
		ours.hookFails = ramp.Permanent(errors.New("the hook's own database is down"))
		ours.expect(ours.result(o, success), "500 INTERNAL_ERROR")
		ours.hookFails = nil
		ours.expect(ours.result(o, success), "400 PERMANENT")
		ours.books(moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}})
	})
}

// Property 4: an order moves all of its assets or none.

func TestAssetsOfAnOrderMoveTogether(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gem", 1)
		w.give("alice", "gold", 100)
		short := newOrder("alice", mint("gold", 5, "gem", 2))
		w.expect(w.validate(short), "200 INVALID_BALANCE")
		shortFirst := newOrder("alice", mint("gem", 2, "gold", 5))
		w.expect(w.validate(shortFirst), "200 INVALID_BALANCE")
		w.books(moves{})

		twice := newOrder("alice", mint("gold", 60, "gold", 60))
		w.expect(w.validate(twice), "200 INVALID_BALANCE")
		w.books(moves{})
		twice.intent = mint("gold", 30, "gold", 40)
		w.expect(w.validate(twice), "200")
		w.expect(w.result(twice, failure), "200")
		w.books(moves{twice.id: {"take alice -70 gold", "give back alice +70 gold"}})
	})
}

// Property 6: results for an unknown order, for a finished order, and contradicting one.

func TestResultsOutOfTurn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)

		o := newOrder("alice", mint("gold", 5))
		w.expect(w.result(o, failure), "500 INTERNAL_ERROR")
		w.books(moves{})
		w.expect(w.validate(o), "200")
		w.expect(w.result(o, failure), "200")
		w.expect(w.result(o, failure), "200")
		want := moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}}
		w.books(want)
		if len(w.conflicts) != 0 {
			t.Errorf("without a conflict, the hook heard %q", w.conflicts)
		}

		w.hookFails = errors.New("the hook's own database is down")
		w.expect(w.result(o, success), "500 INTERNAL_ERROR")
		w.hookFails = nil
		w.expect(w.result(o, success), "400 PERMANENT")
		w.books(want)
		heard := o.id.String() + " was failed: receipt.status"
		if len(w.conflicts) != 2 || w.conflicts[0] != heard || w.conflicts[1] != heard {
			t.Errorf("the hook heard %q", w.conflicts)
		}
	})
}

// Property 7: only a person abandons an order.

func TestWaitingAndAbandon(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		ctx := context.Background()
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		first := newOrder("alice", mint("gold", 5))
		second := newOrder("alice", burn("gold", 7))
		over := newOrder("alice", mint("gold", 1))
		before := time.Now().Truncate(time.Millisecond)
		for _, o := range []order{first, second, over} {
			w.expect(w.validate(o), "200")
		}
		after := time.Now().Add(time.Millisecond)
		w.expect(w.result(over, success), "200")

		waits := func(direction ramp.Direction, before time.Time) []ramp.Order {
			t.Helper()
			waiting, err := w.store.Waiting(ctx, direction, before, ramp.OrderPage{})
			check(t, err)
			return waiting
		}
		if n := len(waits(ramp.Mint, before)) + len(waits(ramp.Burn, before)); n != 0 {
			t.Errorf("%d orders wait since before the first one", n)
		}
		for direction, want := range map[ramp.Direction]order{ramp.Mint: first, ramp.Burn: second} {
			waiting := waits(direction, after)
			if len(waiting) != 1 {
				t.Fatalf("%d orders wait, not 1", len(waiting))
			}
			o := waiting[0]
			if o.UUID != want.id || o.Direction != direction || o.State != ramp.OrderAccepted || o.SessionID != "alice" || o.UserAddress != want.user ||
				o.ProjectID != "project" || o.Digest != want.digest || len(o.Assets) != 1 || !o.FinishedAt.IsZero() {
				t.Errorf("a waiting order is %+v", o)
			}
			if o.AcceptedAt.Before(before) || o.AcceptedAt.After(after) || o.AcceptedAt.Location() != time.UTC {
				t.Errorf("it was accepted at %s, between %s and %s", o.AcceptedAt, before, after)
			}
		}

		for _, o := range []order{first, second} {
			for _, again := range []bool{false, true} {
				step, err := w.game.Abandon(ctx, o.id, fmt.Sprintf("support case %t", again))
				check(t, err)
				if step.New == again || step.Order.State != ramp.OrderAbandoned || step.Order.Reason != "support case false" {
					t.Errorf("abandoned, again %t: %+v", again, step)
				}
			}
		}
		want := moves{
			first.id: {"take alice -5 gold", "give back alice +5 gold"},
			over.id:  {"take alice -1 gold"},
		}
		w.books(want)
		if n := len(waits(ramp.Mint, after)) + len(waits(ramp.Burn, after)); n != 0 {
			t.Errorf("%d abandoned orders wait", n)
		}

		// A late failure agrees with the decision, and a late success contradicts it.
		w.expect(w.result(first, failure), "200")
		if len(w.conflicts) != 0 {
			t.Errorf("the hook heard %q", w.conflicts)
		}
		w.expect(w.result(first, success), "400 PERMANENT")
		w.expect(w.result(second, success), "400 PERMANENT")
		if len(w.conflicts) != 2 || w.conflicts[0] != first.id.String()+" was abandoned: receipt.status" {
			t.Errorf("the hook heard %q", w.conflicts)
		}
		w.books(want)

		if _, err := w.game.Abandon(ctx, over.id, "too late"); !errors.Is(err, ramp.ErrOrderFinished) {
			t.Errorf("abandoning an order that is over: %v", err)
		}
		if _, err := w.game.Abandon(ctx, uuid.New(), "of nobody"); !errors.Is(err, ramp.ErrOrderUnknown) {
			t.Errorf("abandoning an unknown order: %v", err)
		}
		w.books(want)
	})
}

func amount(t *testing.T, s string) ramp.Amount {
	t.Helper()
	a, err := ramp.ParseAmount(s)
	check(t, err)
	return a
}
