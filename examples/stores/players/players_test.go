package players

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

func TestMain(m *testing.M) {
	storetest.Serve(func(address string) (ramp.Store, error) { // in a process that is killed
		db, err := sql.Open("pgx", address)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(12)
		memory := New(db)
		go play(memory)
		return newStore(db, memory)
	})
	os.Exit(m.Run())
}

// play plays with all players as fast as it can, and saves each fifth play.
func play(memory *Memory) {
	for ctx := context.Background(); ; {
		var id string
		_ = memory.db.QueryRow("SELECT id FROM players ORDER BY random()").Scan(&id)
		for due := false; !due; {
			err := memory.Play(ctx, id, func(p *Player) error {
				due = p.Plays%5 == 4
				return spend(p)
			})
			due = due || err != nil // there are no players yet
		}
		_ = memory.Save(ctx, id)
	}
}

func spend(p *Player) error { p.Gold, p.Plays = p.Gold-1, p.Plays+1; return nil }

func newStore(db *sql.DB, memory *Memory) (*Store, error) {
	orders, err := rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.PostgreSQL, Apply: Apply})
	return &Store{orders, memory}, err
}

// database returns the address of a new schema with the tables, and a handle.
func database(t *testing.T) (address string, db *sql.DB) {
	t.Helper()
	admin := os.Getenv("RAMP_TEST_POSTGRESQL")
	if admin == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set: run internal/test/databases go test ***")
	}
	name := "players_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u := must(url.Parse(admin))(t)
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	db = must(sql.Open("pgx", u.String()))(t)
	db.SetMaxOpenConns(20)
	must(db.Exec("CREATE SCHEMA " + name))(t)
	t.Cleanup(func() {
		must(db.Exec("DROP SCHEMA " + name + " CASCADE"))(t)
		check(t, db.Close())
	})
	must(db.Exec(rampsql.PostgreSQL.Schema() + Schema))(t)
	return u.String(), db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The process that plays and takes the steps of orders is killed again and again. Each play
// spends one gold.
func TestOrdersBesidePlay(t *testing.T) {
	address, db := database(t)
	storetest.TestKill(t, storetest.Fixture{
		Give: func(ctx context.Context, session, _ string, n int64) error {
			_, err := db.ExecContext(ctx, "INSERT INTO players (id, gold) VALUES ($1, $2)", session, n)
			return err
		},
		Balance: func(ctx context.Context, session, _ string) (n int64, err error) {
			err = db.QueryRowContext(ctx, "SELECT gold + plays FROM players WHERE id = $1", session).Scan(&n)
			return n, err
		}}, storetest.Start(t, "", address))
	var saved int
	check(t, db.QueryRow("SELECT sum(plays) FROM players").Scan(&saved))
	t.Logf("%d plays were saved", saved)
	if saved < 100 {
		t.Error("too few plays were saved to disturb an order")
	}
}

const token = "0x00000000000000000000000000000000000000aa"

// accept accepts an order of a player for 50 gold, in a process that has this memory.
func accept(t *testing.T, db *sql.DB, memory *Memory, player string, direction ramp.Direction) (*Store, uuid.UUID) {
	t.Helper()
	store := must(newStore(db, memory))(t)
	gold := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(50)}}
	tokens := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}}
	intent := ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: gold, To: tokens}
	if direction == ramp.Burn {
		intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: tokens, To: gold}
	}
	order := &ramp.ValidateRequest{UUID: uuid.New(), UserSig: "0xabcd",
		UserAddress: "0xbB00000000000000000000000000000000000000", ProjectID: "project-1", Intent: intent}
	must(store.Update(t.Context(), order.UUID, ramp.Accept(ramp.Session{ID: player}, order, time.Now())))(t)
	return store, order.UUID
}

// take takes 50 gold of alice for a mint.
func take(t *testing.T, db *sql.DB, memory *Memory) {
	t.Helper()
	accept(t, db, memory, "alice", ramp.Mint)
}

// stored returns the gold that each player has in the database.
func stored(t *testing.T, db *sql.DB) map[string]int64 {
	t.Helper()
	rows := must(db.Query("SELECT id, gold FROM players"))(t)
	defer rows.Close()
	gold := map[string]int64{}
	for rows.Next() {
		var id string
		var n int64
		check(t, rows.Scan(&id, &n))
		gold[id] = n
	}
	check(t, rows.Err())
	return gold
}

// alice gives bob 100 gold, bob mints 50 of it, and the process dies with what it did not save.
func TestATradeIsSavedForBoth(t *testing.T) {
	_, db := database(t)
	must(db.Exec("INSERT INTO players (id, gold) VALUES ('alice', 100), ('bob', 0)"))(t)
	memory := New(db)
	give := func(from, to *Player) error {
		from.Gold, to.Gold = from.Gold-100, to.Gold+100
		return nil
	}
	check(t, memory.Trade(t.Context(), "alice", "bob", give))
	accept(t, db, memory, "bob", ramp.Mint)
	if gold := stored(t, db); gold["alice"] != 0 || gold["bob"] != 50 {
		t.Errorf("stored: %v", gold)
	}
}

func TestATradeThatFailsChangesNobody(t *testing.T) {
	_, db := database(t)
	must(db.Exec("INSERT INTO players (id, gold) VALUES ('alice', 100), ('bob', 0)"))(t)
	memory, other := New(db), New(db)
	gold := func(player string) int64 {
		t.Helper()
		return must(memory.Gold(t.Context(), player))(t)
	}
	refuse := errors.New("bob wants more")
	give := func(result error) func(from, to *Player) error {
		return func(from, to *Player) error {
			from.Gold, to.Gold = from.Gold-100, to.Gold+100
			return result
		}
	}
	if err := memory.Trade(t.Context(), "alice", "bob", give(refuse)); !errors.Is(err, refuse) {
		t.Error(err)
	}
	if err := memory.Trade(t.Context(), "alice", "alice", give(nil)); err == nil {
		t.Error("alice traded with herself")
	}
	if gold("alice") != 100 || gold("bob") != 0 {
		t.Error("a trade that was refused changed somebody")
	}

	// Another process has bob now.
	check(t, memory.Play(t.Context(), "alice", spend))
	check(t, other.Play(t.Context(), "bob", spend))
	check(t, other.Save(t.Context(), "bob"))
	if err := memory.Trade(t.Context(), "alice", "bob", give(nil)); !errors.Is(err, errMoved) {
		t.Error(err)
	}
	if gold("alice") != 100 || gold("bob") != -1 {
		t.Errorf("alice has %d, bob %d", gold("alice"), gold("bob"))
	}
}

// A debt and a player who is gone do not keep a grant or a give-back from being applied.
func TestAGrantNeverFails(t *testing.T) {
	_, db := database(t)
	must(db.Exec("INSERT INTO players (id, gold) VALUES ('alice', 60), ('bob', -500), ('carol', 50)"))(t)
	memory := New(db)
	hash := 0
	end := func(store *Store, id uuid.UUID, status string) {
		t.Helper()
		hash++
		r := must(ramp.ParseResult(fmt.Appendf(nil,
			`{"uuid":%q,"tx_hash":"0x%064x","receipt":{"status":%q}}`, id, hash, status)))(t)
		must(store.Update(t.Context(), id, ramp.Finish(r, time.Now())))(t)
	}
	mint, failed := accept(t, db, memory, "alice", ramp.Mint)
	burn, indebted := accept(t, db, memory, "bob", ramp.Burn)
	gone, erased := accept(t, db, memory, "carol", ramp.Mint)
	must(db.Exec("UPDATE players SET gold = gold - 500 WHERE id = 'alice'"))(t) // a chargeback
	must(db.Exec("DELETE FROM players WHERE id = 'carol'"))(t)
	end(mint, failed, "0x0")
	end(burn, indebted, "0x1")
	end(gone, erased, "0x0")
	if gold := stored(t, db); gold["alice"] != -440 || gold["bob"] != -450 || gold["carol"] != 50 {
		t.Errorf("stored: %v", gold)
	}
}

// A step saves unsaved play of its own process. If another process owns the player, the step
// moves the row all the same, and the owner loses unsaved play only.
func TestAStepBesideUnsavedPlay(t *testing.T) {
	_, db := database(t)
	must(db.Exec("INSERT INTO players (id, gold) VALUES ('alice', 200)"))(t)
	owner, other := New(db), New(db)
	check(t, owner.Play(t.Context(), "alice", spend))
	take(t, db, owner)
	check(t, owner.Play(t.Context(), "alice", spend))
	check(t, owner.Save(t.Context(), "alice"))
	check(t, owner.Play(t.Context(), "alice", spend))
	take(t, db, other)

	if err := owner.Save(t.Context(), "alice"); !errors.Is(err, errMoved) {
		t.Errorf("the owner saved: %v", err)
	}
	if gold, err := owner.Gold(t.Context(), "alice"); err != nil || gold != 98 {
		t.Errorf("%d gold, %v", gold, err)
	}
}

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Fixture {
		_, db := database(t)
		key := func(session, asset string) string { return session + " " + asset } // the kit has several assets
		apply := func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			assets := step.Effect.Assets
			for _, asset := range assets {
				step.Effect.Assets = []ramp.AssetAmount{asset}
				one := step
				one.Order.SessionID = key(step.Order.SessionID, asset.ID)
				if err := Apply(ctx, tx, one); err != nil {
					return err
				}
			}
			step.Effect.Assets = assets
			return approve(step)
		}
		orders := must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.PostgreSQL, Apply: apply}))(t)
		return storetest.Fixture{Stores: []ramp.Store{&Store{orders, New(db)}, &Store{orders, New(db)}},
			Give: func(ctx context.Context, session, asset string, n int64) error {
				_, err := db.ExecContext(ctx,
					"INSERT INTO players (id, gold) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET gold = $2",
					key(session, asset), n)
				return err
			},
			Balance: func(ctx context.Context, session, asset string) (n int64, err error) {
				err = db.QueryRowContext(ctx, "SELECT coalesce(max(gold), 0) FROM players WHERE id = $1",
					key(session, asset)).Scan(&n)
				return n, err
			}}
	})
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
