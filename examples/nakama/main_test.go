package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/heroiclabs/nakama-common/runtime"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

const (
	envServe     = "NAKAMA_TEST_SERVE" // the address of the database; if set, the process stands for Nakama
	envService   = "NAKAMA_TEST_SERVICE"
	envNakama    = "RAMP_TEST_NAKAMA" // a folder with the program nakama and the plugin modules/ramp.so
	hmacText     = "a key of these tests"
	validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	began        = 1_000_000 // of gold, for each user
)

// tables are those of Nakama's migrations that the plugin uses.
const tables = `CREATE TABLE users (
	id           UUID         PRIMARY KEY,
	username     VARCHAR(128) NOT NULL UNIQUE,
	wallet       JSONB        NOT NULL DEFAULT '{}',
	create_time  TIMESTAMPTZ  NOT NULL DEFAULT now(),
	update_time  TIMESTAMPTZ  NOT NULL DEFAULT now(),
	disable_time TIMESTAMPTZ  NOT NULL DEFAULT '1970-01-01 00:00:00 UTC'
);
CREATE TABLE wallet_ledger (
	PRIMARY KEY (user_id, create_time, id),
	FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
	id          UUID        NOT NULL UNIQUE,
	user_id     UUID        NOT NULL,
	changeset   JSONB       NOT NULL,
	metadata    JSONB       NOT NULL,
	create_time TIMESTAMPTZ NOT NULL DEFAULT now(),
	update_time TIMESTAMPTZ NOT NULL DEFAULT now()
);`

func TestMain(m *testing.M) {
	storetest.Serve(func(address string) (ramp.Store, error) {
		db, err := sql.Open("pgx", address)
		if err != nil {
			return nil, err
		}
		return rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.PostgreSQL,
			Apply: func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
				step.Order.SessionID = userOf(step.Order.SessionID)
				return apply(ctx, tx, step)
			}})
	})
	if address := os.Getenv(envServe); address != "" {
		serve(address)
	}
	os.Exit(m.Run())
}

// host stands for Nakama, as far as the plugin needs it.
type host struct {
	runtime.Initializer
	mux *http.ServeMux
	rpc map[string]func(context.Context, runtime.Logger, *sql.DB, runtime.NakamaModule, string) (string, error)
}

func (h *host) RegisterHttp(path string, handler func(http.ResponseWriter, *http.Request), _ ...string) error {
	h.mux.HandleFunc(path, handler)
	return nil
}

func (h *host) RegisterRpc(id string,
	rpc func(context.Context, runtime.Logger, *sql.DB, runtime.NakamaModule, string) (string, error)) error {
	h.rpc[id] = rpc
	return nil
}

func newHost(ctx context.Context, db *sql.DB, service string) (*host, error) {
	h := &host{mux: http.NewServeMux(),
		rpc: map[string]func(context.Context, runtime.Logger, *sql.DB, runtime.NakamaModule, string) (string, error){}}
	//nolint:staticcheck // SA1029: Nakama's keys are texts
	ctx = context.WithValue(ctx, runtime.RUNTIME_CTX_ENV, map[string]string{
		"RAMP_HMAC_KEY": hmacText, "RAMP_VALIDATOR_KEY": validatorKey, "RAMP_API_URL": service,
		"RAMP_FRONTEND_URL": service})
	return h, InitModule(ctx, nil, db, nil, h)
}

// serve runs the plugin on a listener that outlives the process.
func serve(address string) {
	db, err := sql.Open("pgx", address)
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(12)
	h, err := newHost(context.Background(), db, os.Getenv(envService))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the test has ended
	}()
	log.Fatal(http.Serve(listener, h.mux))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// database returns the address of a new schema with Nakama's tables, and a handle.
func database(t *testing.T) (address string, db *sql.DB) {
	t.Helper()
	admin := os.Getenv("RAMP_TEST_POSTGRESQL")
	if admin == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set: run internal/test/databases go test ***")
	}
	name := "nakama_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u := must(url.Parse(admin))(t)
	if os.Getenv(envNakama) != "" {
		return migrated(t, u, name)
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	db = must(sql.Open("pgx", u.String()))(t)
	must(db.Exec("CREATE SCHEMA " + name))(t)
	t.Cleanup(func() {
		must(db.Exec("DROP SCHEMA " + name + " CASCADE"))(t)
		check(t, db.Close())
	})
	must(db.Exec(tables))(t)
	return u.String(), db
}

// migrated returns a new database with the tables of the real Nakama.
func migrated(t *testing.T, u *url.URL, name string) (address string, db *sql.DB) {
	t.Helper()
	admin := must(sql.Open("pgx", u.String()))(t)
	must(admin.Exec("CREATE DATABASE " + name))(t)
	u.Path = "/" + name
	db = must(sql.Open("pgx", u.String()))(t)
	t.Cleanup(func() {
		check(t, db.Close())
		must(admin.Exec("DROP DATABASE " + name + " WITH (FORCE)"))(t)
		check(t, admin.Close())
	})
	out, err := exec.Command(os.Getenv(envNakama)+"/nakama", "migrate", "up", "--database.address",
		without(u.String())).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return u.String(), db
}

// without returns an address without its scheme, as Nakama reads it.
func without(address string) string { return strings.TrimPrefix(address, "postgres://") }

// nakama is the process that the plugin runs in.
type nakama struct {
	t        *testing.T
	args     []string
	env      []string
	listener *os.File // nil for the real Nakama
	url      string
	process  *exec.Cmd
}

func start(t *testing.T, database string) *nakama {
	t.Helper()
	if folder := os.Getenv(envNakama); folder != "" {
		port := 20000 + 10*rand.IntN(1000) // below those that the system gives; Nakama takes those beside it too
		n := &nakama{t: t, url: fmt.Sprint("http://127.0.0.1:", port),
			args: []string{folder + "/nakama", "--config", "local.yml",
				"--database.address", without(database), "--runtime.path", folder + "/modules", "--data_dir",
				t.TempDir(),
				"--socket.address", "127.0.0.1", "--socket.port", fmt.Sprint(port), "--console.port",
				fmt.Sprint(port + 5),
				"--runtime.env", "RAMP_HMAC_KEY=" + hmacText, "--runtime.env", "RAMP_VALIDATOR_KEY=" + validatorKey,
				"--runtime.env", "RAMP_API_URL=http://127.0.0.1:1", "--runtime.env",
				"RAMP_FRONTEND_URL=http://127.0.0.1:1"}}
		n.run()
		t.Cleanup(n.kill)
		return n
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { check(t, listener.Close()) })
	n := &nakama{t: t, args: os.Args[:1], env: []string{envServe + "=" + database, envService + "=http://127.0.0.1:1"},
		url: "http://" + listener.Addr().String()}
	n.listener = must(listener.(*net.TCPListener).File())(t)
	t.Cleanup(func() { check(t, n.listener.Close()) })
	n.run()
	t.Cleanup(n.kill)
	return n
}

func (n *nakama) run() {
	n.process = exec.Command(n.args[0], n.args[1:]...)
	n.process.Env = append(os.Environ(), n.env...)
	if n.listener != nil {
		n.process.ExtraFiles = []*os.File{n.listener}
	}
	must(n.process.StdinPipe())(n.t)
	check(n.t, n.process.Start())
}

func (n *nakama) kill() {
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
}

// login creates a user with a token of an exchange page.
func login(ctx context.Context, db *sql.DB, gold int64) (ramp.Session, error) {
	s := ramp.Session{ID: uuid.NewString(), Token: ramp.NewAccessToken(uuid.NewString())}
	hash := sha256.Sum256([]byte(s.Token.Reveal()))
	err := createUser(ctx, db, s.ID, gold)
	if err == nil {
		_, err = db.ExecContext(ctx, "INSERT INTO ramp_tokens (hash, user_id) VALUES ($1, $2)", hash[:], s.ID)
	}
	return s, err
}

func createUser(ctx context.Context, db *sql.DB, id string, gold int64) error {
	_, err := db.ExecContext(ctx,
		"INSERT INTO users (id, username, wallet) VALUES ($1, $2, jsonb_build_object('gold', $3::bigint, 'gem', 7))",
		id, id, gold)
	return err
}

// await waits until the plugin answers. It has created its tables then.
func (n *nakama) await(ctx context.Context) error {
	for ctx.Err() == nil {
		answer, err := http.Get(n.url + "/ramp/assets")
		if err == nil {
			return answer.Body.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ctx.Err()
}

func TestTheJudgeFindsNothing(t *testing.T) {
	address, db := database(t)
	n := start(t, address)
	check(t, n.await(t.Context()))
	key := must(ramp.TextKey(hmacText))(t)
	signer := must(ramp.NewKeySigner(validatorKey))(t)
	conformance.Test(t,
		conformance.Server{URL: n.url, AssetsPath: "/ramp/assets", ValidatePath: "/ramp/validate",
			ResultPath: "/ramp/result",
			Key:        key, Validator: signer.Address(), ProjectID: "project-1", Strict: true,
			Token: "0x00000000000000000000000000000000000070c3", Asset: "gold", Amount: 20, Tokens: 2, OneAsset: true,
			Waive:   regexp.MustCompile("^result-not-lost/misspelled$"), // Nakama itself answers other paths with 404
			Player:  func(ctx context.Context, _ string) (ramp.Session, error) { return login(ctx, db, began) },
			Restart: func(ctx context.Context) error { n.kill(); n.run(); return n.await(ctx) }})
}

// Steps of orders and Nakama's own updates rewrite the same wallets, while the process that
// takes the steps is killed again and again.
func TestOrdersBesideNakamasWalletUpdatesAndKills(t *testing.T) {
	address, db := database(t)
	db.SetMaxOpenConns(12)
	must(db.Exec(rampsql.PostgreSQL.Schema()))(t)
	var mu sync.Mutex
	updated := map[string]int64{} // by user
	ended := make(chan error)
	ctx, end := context.WithCancel(t.Context())
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			mu.Lock()
			for user := range updated {
				updated[user]++
				err = errors.Join(err, update(db, user, 1))
			}
			mu.Unlock()
		}
		ended <- err
	}()
	storetest.TestKill(t, storetest.Fixture{
		Give: func(ctx context.Context, session, _ string, n int64) error {
			mu.Lock()
			defer mu.Unlock()
			updated[userOf(session)] = 0
			return createUser(ctx, db, userOf(session), n)
		},
		Balance: func(ctx context.Context, session, _ string) (n int64, err error) {
			err = db.QueryRowContext(ctx, "SELECT (wallet->>'gold')::bigint FROM users WHERE id = $1",
				userOf(session)).Scan(&n)
			return n, err
		}}, storetest.Start(t, "", address))
	end()
	check(t, <-ended)
	for user, n := range updated {
		var gold, gem, gold2, gem2 int64
		check(t,
			db.QueryRow("SELECT (wallet->>'gold')::bigint, (wallet->>'gem')::bigint FROM users WHERE id = $1",
				user).Scan(&gold, &gem))
		check(t,
			db.QueryRow(
				"SELECT 1000000 + coalesce(sum((changeset->>'gold')::bigint), 0), 7 + "+
					"sum((changeset->>'gem')::bigint) FROM wallet_ledger WHERE user_id = $1", user).Scan(&gold2, &gem2))
		if gem != 7+n || gem2 != gem || gold2 != gold {
			t.Errorf("after %d updates, user %s has %d gold and %d gems, and by the ledger %d and %d", n, user, gold,
				gem, gold2, gem2)
		}
		t.Logf("%d updates", n)
	}
}

// userOf returns the user who stands for a session of the kit.
func userOf(session string) string { return uuid.NewSHA1(uuid.Nil, []byte(session)).String() }

// update adds gems to a wallet as Nakama's own WalletUpdate does.
func update(db *sql.DB, user string, gems int64) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var text []byte
	wallet := map[string]int64{}
	if err := tx.QueryRow("SELECT wallet FROM users WHERE id = $1 FOR UPDATE", user).Scan(&text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &wallet); err != nil {
		return err
	}
	wallet["gem"] += gems
	after, _ := json.Marshal(wallet)
	if _, err := tx.Exec("UPDATE users SET update_time = now(), wallet = $2 WHERE id = $1", user, after); err != nil {
		return err
	}
	if _, err := tx.Exec(
		"INSERT INTO wallet_ledger (id, user_id, changeset, metadata) VALUES ($1, $2, jsonb_build_object('gem', "+
			"$3::bigint), '{}')",
		uuid.New(), user, gems); err != nil {
		return err
	}
	return tx.Commit()
}

// A player starts an order with the RPC, and the page that it returns can be used.
func TestAPlayerTrades(t *testing.T) {
	if os.Getenv(envNakama) != "" {
		t.Skip("this test stands for Nakama itself")
	}
	_, db := database(t)
	key := must(ramp.TextKey(hmacText))(t)
	signer := must(ramp.NewKeySigner(validatorKey))(t)
	game := httptest.NewUnstartedServer(nil) // its address is known, and the service needs it
	t.Cleanup(game.Close)
	service := ramptest.Start(t,
		ramptest.Config{Key: key, Validator: signer.Address(), Game: "http://" + game.Listener.Addr().String(),
			AssetsPath: "/ramp/assets", ValidatePath: "/ramp/validate", ResultPath: "/ramp/result"})
	h := must(newHost(t.Context(), db, service.URL()))(t)
	game.Config.Handler = h.mux
	game.Start()
	s := must(login(t.Context(), db, 100))(t)
	rpc := func(user, payload string) (string, error) {
		//nolint:staticcheck // SA1029: Nakama's keys are texts
		return h.rpc["ramp_exchange"](context.WithValue(t.Context(), runtime.RUNTIME_CTX_USER_ID, user), nil, db,
			nil, payload)
	}
	for user, payload := range map[string]string{"": `{"product":"gold"}`, s.ID: `{`} {
		if answer, err := rpc(user, payload); err == nil {
			t.Errorf("user %q and %s: %s", user, payload, answer)
		}
	}
	answer := must(rpc(s.ID, `{"product":"gold"}`))(t)
	var page struct{ URL string }
	check(t, json.Unmarshal([]byte(answer), &page))
	at := must(url.Parse(page.URL))(t)
	id := must(uuid.Parse(at.Query().Get("uuid")))(t)
	session := ramp.Session{ID: at.Query().Get("sessionId"), Token: ramp.NewAccessToken(at.Query().Get("accessToken"))}
	must(service.Mint(t.Context(), id, session, ramp.NewAmount(3), ramptest.ResultTwice()))(t)
	service.Advance(time.Minute)
	var gold int64
	check(t, db.QueryRow("SELECT (wallet->>'gold')::bigint FROM users WHERE id = $1", s.ID).Scan(&gold))
	if gold != 70 {
		t.Errorf("%d gold instead of 70", gold)
	}

	// The page of a user who is banned meanwhile has not expired.
	must(db.Exec("UPDATE users SET disable_time = now() WHERE id = $1", s.ID))(t)
	if err := (players{db}).Authenticate(t.Context(), s); err == nil {
		t.Error("a banned user trades")
	}
}

// Only a mint may be refused. A chargeback may leave a debt while an order waits.
func TestAGrantNeverFails(t *testing.T) {
	_, db := database(t)
	must(db.Exec(rampsql.PostgreSQL.Schema() + schema))(t)
	s := must(login(t.Context(), db, -500))(t)
	gold := []ramp.AssetAmount{{ID: "gold", Amount: ramp.NewAmount(300)}}
	move := func(kind ramp.EffectKind) error {
		tx := must(db.Begin())(t)
		defer func() { _ = tx.Rollback() }()
		step := ramp.Step{Order: ramp.Order{UUID: uuid.New(), SessionID: s.ID, State: ramp.OrderFailed, Assets: gold},
			Effect: ramp.Effect{Kind: kind, Assets: gold}, New: true}
		if err := apply(t.Context(), tx, step); err != nil {
			return err
		}
		return tx.Commit()
	}
	check(t, move(ramp.GiveBack))
	check(t, move(ramp.Grant))
	var rejection *ramp.Rejection
	if err := move(ramp.Take); !errors.As(err, &rejection) || rejection.Code != "INVALID_BALANCE" {
		t.Errorf("a mint beyond the balance: %v", err)
	}
	player := must(players{db}.Assets(t.Context(), s))(t)
	if shown := player.Assets[0].Balance; shown.String() != "100" {
		t.Errorf("%s gold are shown instead of 100", shown)
	}
	must(db.Exec(`UPDATE users SET wallet = '{"gold":-1}' WHERE id = $1`, s.ID))(t)
	player = must(players{db}.Assets(t.Context(), s))(t)
	if shown := player.Assets[0].Balance; shown.String() != "0" {
		t.Errorf("a debt is shown as %s gold", shown)
	}
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
