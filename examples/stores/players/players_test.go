package players

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

const (
	envServe = "PLAYERS_TEST_SERVE" // the address of the database; if set, the process is a game server
	envNaive = "PLAYERS_TEST_NAIVE" // if set, steps know nothing of the players in memory
	hmacText = "a key of these tests"
	began    = 1_000_000 // of gold, for each player
	pathPlay = "/play"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(envServe); address != "" {
		serve(address, os.Getenv(envNaive) != "")
	}
	os.Exit(m.Run())
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// game authenticates players by tokens that are the same in every process.
type game struct{ memory *Memory }

func (game) Authenticate(_ context.Context, s ramp.Session) error {
	if s.Token.Reveal() != "token of "+s.ID {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g game) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	gold, err := g.memory.Gold(ctx, s.ID)
	return &ramp.Player{Assets: []ramp.Asset{{ID: "gold", Balance: ramp.NewAmount(gold)}}}, err
}

func newStore(db *sql.DB, memory *Memory) (*Store, error) {
	orders, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: Apply})
	return &Store{orders, memory}, err
}

// serve runs the game server on a listener that outlives it. Each fifth play is saved.
func serve(address string, naive bool) {
	db := must(sql.Open("pgx", address))
	db.SetMaxOpenConns(12)
	db.SetMaxIdleConns(12)
	memory := New(db)
	store := must(newStore(db, memory))
	var orders ramp.Store = store
	save := memory.Save
	if naive {
		orders = store.SQLStore
		save = func(ctx context.Context, id string) error {
			defer memory.lock(id)()
			p, err := memory.load(ctx, id)
			if err == nil {
				_, err = db.ExecContext(ctx, "UPDATE players SET gold = $1, plays = $2 WHERE id = $3", p.Gold, p.Plays, id)
			}
			return err
		}
	}
	handler := must(ramp.NewHandler(ramp.HandlerConfig{Terms: must(ramp.NewTerms(ramp.TermsConfig{Any: true})), Players: game{memory}, Store: orders,
		Key: must(ramp.TextKey(hmacText)), Logger: slog.New(slog.DiscardHandler),
		Signer: must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))}))
	mux := http.NewServeMux()
	mux.Handle("/api/", handler)
	mux.HandleFunc(pathPlay, func(w http.ResponseWriter, r *http.Request) {
		id, due := r.Header.Get(ramp.HeaderSession), false
		err := memory.Play(r.Context(), id, func(p *Player) error {
			p.Gold, p.Plays = p.Gold-1, p.Plays+1
			due = p.Plays%5 == 0
			return nil
		})
		if err == nil && due {
			err = save(r.Context(), id)
		}
		if err != nil && !errors.Is(err, errMoved) {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprintf(w, `{"success":%t}`, err == nil)
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the test has ended
	}()
	log.Fatal(http.Serve(must(net.FileListener(os.NewFile(3, "listener"))), mux))
}

// database returns the address of a new schema with the tables, and a handle.
func database(t *testing.T) (address string, db *sql.DB) {
	t.Helper()
	admin := os.Getenv("RAMP_TEST_POSTGRESQL")
	if admin == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set: run internal/dbtest/databases go test ***")
	}
	name := "players_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u, err := url.Parse(admin)
	check(t, err)
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	db, err = sql.Open("pgx", u.String())
	check(t, err)
	db.SetMaxOpenConns(20)
	_, err = db.Exec("CREATE SCHEMA " + name)
	check(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP SCHEMA " + name + " CASCADE")
		check(t, err)
		check(t, db.Close())
	})
	_, err = db.Exec(ramp.PostgreSQL.Schema() + Schema)
	check(t, err)
	return u.String(), db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server is the game server in a process of its own.
type server struct {
	t        *testing.T
	env      []string
	listener *os.File
	address  string
	process  *exec.Cmd
}

func newServer(t *testing.T, env ...string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, listener.Close()) })
	s := &server{t: t, env: env, address: listener.Addr().String()}
	s.listener, err = listener.(*net.TCPListener).File()
	check(t, err)
	t.Cleanup(func() { check(t, s.listener.Close()) })
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.process = exec.Command(os.Args[0])
	s.process.Env = append(os.Environ(), s.env...)
	s.process.Stderr = os.Stderr
	s.process.ExtraFiles = []*os.File{s.listener}
	_, err := s.process.StdinPipe() // ends with this process
	check(s.t, err)
	check(s.t, s.process.Start())
}

func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// load plays the game and the service at once. Calls are repeated until they are answered.
type load struct {
	server  *server
	key     ramp.HMACKey
	client  *http.Client
	answers atomic.Int64
	cut     atomic.Int64
}

// post makes a call until the server answers, and reports whether it succeeded.
func (l *load) post(path, session string, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		request, err := http.NewRequest(http.MethodPost, "http://"+l.server.address+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header = http.Header{}
		request.Header.Set(ramp.HeaderHMAC, l.key.Sign(body))
		request.Header.Set(ramp.HeaderSession, session)
		request.Header.Set(ramp.HeaderAuthorization, "Bearer token of "+session)
		answer, err := l.client.Do(request)
		var envelope struct{ Success bool }
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(&envelope)
			_ = answer.Body.Close()
		}
		switch {
		case err == nil && answer.StatusCode == http.StatusOK && (envelope.Success || path == pathPlay):
			l.answers.Add(1)
			return nil
		case err == nil && answer.StatusCode != http.StatusInternalServerError || time.Now().After(deadline):
			return fmt.Errorf("%s: %v, %+v", path, err, answer)
		}
		l.cut.Add(1)
	}
}

// order runs one order of a player, and returns what it must have moved.
func (l *load) order(player string) (moved int64, err error) {
	id, n, succeeds := uuid.New(), 1+rand.Int64N(9), rand.IntN(2)
	assets := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(n)}}
	tokens := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000000aa", Amount: ramp.NewAmount(1)}}
	intent := ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: assets, To: tokens}
	moved = -n * int64(succeeds)
	if rand.IntN(2) == 0 {
		intent = ramp.Intent{Method: ramp.MethodBurn, Type: ramp.Disassemble, From: tokens, To: assets}
		moved = n * int64(succeeds)
	}
	err = l.post(ramp.PathValidate, player, &ramp.ValidateRequest{UserSig: "0xabcd", UserAddress: "0x00000000000000000000000000000000000000bb",
		ProjectID: "project-1", Digest: sha256.Sum256(id[:]), UUID: id, Intent: intent})
	if err == nil {
		err = l.post(ramp.PathResult, player, &ramp.Result{SessionID: player, UUID: id, TxHash: fmt.Sprintf("0x%x", sha256.Sum256(id[:])),
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(uint64(succeeds))}, Intent: intent})
	}
	return moved, err
}

// run makes orders and plays on a server that is killed, and returns how many players have
// another amount of gold than their orders and the plays that were saved have left, and how
// many plays were saved.
func run(t *testing.T, orders, plays, kills int, env ...string) (wrong, saved int64) {
	t.Helper()
	const players, workers = 25, 8
	address, db := database(t)
	for n := range players {
		_, err := db.Exec("INSERT INTO players (id, gold) VALUES ($1, $2)", fmt.Sprint("player-", n), began)
		check(t, err)
	}
	key, err := ramp.TextKey(hmacText)
	check(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * workers}
	defer transport.CloseIdleConnections()
	l := &load{server: newServer(t, append(env, envServe+"="+address)...), key: key, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}

	var moved [players]atomic.Int64
	var leftOrders, leftPlays atomic.Int64
	leftOrders.Store(int64(orders))
	leftPlays.Store(int64(plays))
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for leftOrders.Add(-1) >= 0 {
				n := rand.IntN(players)
				delta, err := l.order(fmt.Sprint("player-", n))
				if err != nil {
					t.Error(err)
					return
				}
				moved[n].Add(delta)
			}
		})
		group.Go(func() {
			for leftPlays.Add(-1) >= 0 {
				if err := l.post(pathPlay, fmt.Sprint("player-", rand.IntN(players)), nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	total := int64(2*orders + plays)
	for n := range kills { // evenly over all answers
		for at := total * int64(n+1) / int64(kills+1); l.answers.Load() < at && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		l.server.kill()
		l.server.start()
	}
	group.Wait()
	for n := range players {
		var gold, played int64
		check(t, db.QueryRow("SELECT gold, plays FROM players WHERE id = $1", fmt.Sprint("player-", n)).Scan(&gold, &played))
		if want := began + moved[n].Load() - played; gold != want {
			wrong++
			t.Logf("player-%d owns %d gold instead of %d", n, gold, want)
		}
		saved += played
	}
	t.Logf("%d orders, %d plays of which %d were saved, %d kills, %d calls cut off: %d of %d players have the wrong gold",
		orders, plays, saved, kills, l.cut.Load(), wrong, players)
	if kills > 0 && l.cut.Load() == 0 {
		t.Error("no kill cut off a call")
	}
	return wrong, saved
}

func TestOrdersBesidePlay(t *testing.T) {
	orders, plays, kills := 2000, 2000, 10
	if testing.Short() {
		orders, plays, kills = 200, 200, 3
	}
	wrong, saved := run(t, orders, plays, kills)
	if wrong != 0 {
		t.Errorf("%d players have the wrong gold", wrong)
	}
	if saved < int64(plays/2) {
		t.Errorf("only %d plays were saved", saved)
	}
}

// This tests the test: without the lock and the version, a write-back undoes orders.
func TestAWriteBackThatKnowsNothingOfOrdersIsFound(t *testing.T) {
	if wrong, _ := run(t, 200, 200, 0, envNaive+"=1"); wrong == 0 {
		t.Error("nothing was wrong")
	}
}

// Another process owns the player: a step moves the row, and the owner loses unsaved play only.
func TestAStepBesideAnotherOwnerLosesOnlyUnsavedPlay(t *testing.T) {
	_, db := database(t)
	_, err := db.Exec("INSERT INTO players (id, gold) VALUES ('alice', 100)")
	check(t, err)
	owner, other := New(db), New(db)
	spend := func(p *Player) error { p.Gold, p.Plays = p.Gold-1, p.Plays+1; return nil }
	check(t, owner.Play(t.Context(), "alice", spend))
	check(t, owner.Save(t.Context(), "alice"))
	check(t, owner.Play(t.Context(), "alice", spend))

	store, err := newStore(db, other)
	check(t, err)
	order := &ramp.ValidateRequest{UUID: uuid.New(), UserSig: "0xabcd", UserAddress: "0x00000000000000000000000000000000000000bb", ProjectID: "project-1",
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(50)}},
			To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000000aa", Amount: ramp.NewAmount(1)}}}}
	_, err = store.Update(t.Context(), order.UUID, ramp.Accept(ramp.Session{ID: "alice"}, order, time.Now()))
	check(t, err)

	if err := owner.Save(t.Context(), "alice"); !errors.Is(err, errMoved) {
		t.Errorf("the owner saved: %v", err)
	}
	if gold, err := owner.Gold(t.Context(), "alice"); err != nil || gold != 49 {
		t.Errorf("%d gold, %v", gold, err)
	}
}

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Target {
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
		orders, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: apply})
		check(t, err)
		return storetest.Target{Stores: []ramp.Store{&Store{orders, New(db)}, &Store{orders, New(db)}},
			Give: func(ctx context.Context, session, asset string, n int64) error {
				_, err := db.ExecContext(ctx, "INSERT INTO players (id, gold) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET gold = $2", key(session, asset), n)
				return err
			},
			Balance: func(ctx context.Context, session, asset string) (n int64, err error) {
				err = db.QueryRowContext(ctx, "SELECT coalesce(max(gold), 0) FROM players WHERE id = $1", key(session, asset)).Scan(&n)
				return n, err
			}}
	})
}
