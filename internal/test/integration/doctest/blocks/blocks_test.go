//go:build docs

package blocks

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
	_ "modernc.org/sqlite"
)

// The blocks of README.md: a game on SQL whose wiring is tested as shown.

// block: type Game interface {

var _ Game = (*game)(nil)

type game struct {
	db    *sql.DB
	admit func(ramp.Session) bool // nil checks the token and the session
	twice ramp.EffectKind         // moves the assets of such an effect twice
}

// apply is Apply of the README, with the flaw of g.
func (g *game) apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	err := g.Apply(ctx, tx, step)
	if err == nil && step.Effect.Kind == g.twice {
		err = g.Apply(ctx, tx, step)
	}
	return err
}

func (g *game) loggedIn(id, token string) bool {
	s := ramp.Session{ID: id, Token: ramp.NewAccessToken(token)}
	return g.admit != nil && g.admit(s) || s.ID == session.ID && s.Token.Equal(session.Token)
}

// block: func (g *game) Authenticate(ctx context.Context, s ramp.Session) error {

// block: func (g *game) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {

// block: func (g *game) Apply(ctx context.Context, tx *sql.Tx

// block: func TestEveryInterleaving(t *testing.T) {

var session = ramp.Session{ID: "character-1", Token: ramp.NewAccessToken("token-1")}

func wakeSomebody(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }

func approve(context.Context, ramp.Session, *ramp.ValidateRequest) error { return nil }

func login(context.Context, ramp.Session) error { return nil }

// newDatabase returns the address of a database with the tables.
func newDatabase(t *testing.T) string {
	t.Helper()
	address := "file:" + filepath.Join(t.TempDir(), "game.db") + "?_txlock=immediate&_pragma=journal_mode(wal)"
	db := ramp.Must(sql.Open("sqlite", address))
	for _, statement := range []string{
		rampsql.SQLite.Schema(),
		// With the check of docs/orders.md.
		"CREATE TABLE balances (player TEXT, asset TEXT, amount INTEGER NOT NULL CHECK (typeof(amount) = 'integer')," +
			" PRIMARY KEY (player, asset))",
	} {
		ramp.Must(db.Exec(statement))
	}
	require.NoError(t, db.Close())
	return address
}

// open returns a database with one character, who has 1000 gold and no gems.
func open(t *testing.T) *sql.DB {
	t.Helper()
	db := ramp.Must(sql.Open("sqlite", newDatabase(t)))
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	ramp.Must(db.Exec("INSERT INTO balances VALUES ('" + session.ID + "', 'gold', 1000)"))
	return db
}

// mount is the wiring of the README.
func mount(mux *http.ServeMux, db *sql.DB, g Game, terms *ramp.Terms, key ramp.HMACKey, signer *ramp.Signer) error {
	ctx := context.Background()
	// block: store, err := rampsql.New(
	return nil
}

func confirm(config *ramp.HandlerConfig, nodeURL string, chainID uint64) error {
	// block: chain, err := ramp.NewRPC(
	return nil
}

func start(
	ctx context.Context, apiURL, frontendURL string, key ramp.HMACKey, terms *ramp.Terms, playerID, token string,
) error {
	// block: client, err := ramp.NewClient(
	if err != nil {
		return err
	}
	// block: order, err := client.Initialize(ctx
	if err == nil && link == "" {
		err = errors.New("no link")
	}
	return err
}

func receive(w http.ResponseWriter, r *http.Request, key ramp.HMACKey, terms *ramp.Terms, body []byte,
	signer *ramp.Signer,
) error {
	ctx := r.Context()
	// block: request, session, err := ramp.ReadValidate(
	if session.ID == "" {
		return errors.New("no session")
	}
	// block: signature, err := signer.Sign(
}

func keep(ctx context.Context, session ramp.Session, request *ramp.ValidateRequest, store ramp.Store) error {
	// block: // accept is a function
}

func end(ctx context.Context, r *http.Request, key ramp.HMACKey, body []byte, chain *ramp.RPC, store ramp.Store) error {
	// block: result, _, err := ramp.ReadResult(
}

func decline(w http.ResponseWriter, err error) {
	// block: rejection := ramp.RejectionOf(err)
}

func show(frontendURL string, session ramp.Session) error {
	// block: link, err := ramp.CatalogURL(
	if err == nil && link == "" {
		err = errors.New("no link")
	}
	return err
}

func readChain(ctx context.Context, chain *ramp.RPC, result *ramp.Result) error {
	// block: block, err := chain.BlockNumber(ctx)
	if err == nil && (block == 0 || !receipt.Succeeded()) {
		err = errors.New("no receipt")
	}
	return err
}

func TestThePiecesOfTheREADME(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "key from the console")
	t.Setenv("RAMP_VALIDATOR_KEY", "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	// block: price := []ramp.Item{{
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address()})
	received := httptest.NewRecorder()
	db, mux := open(t), http.NewServeMux()
	require.NoError(t, mount(mux, db, &game{db: db}, terms, key, signer))
	service.SetHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := ramp.Must(io.ReadAll(r.Body))
		if r.URL.Path == ramp.PathValidate {
			assert.NoError(t, receive(received, r, key, terms, body, signer))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mux.ServeHTTP(w, r)
	}))
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	require.NoError(t, start(t.Context(), server.URL, server.URL, key, terms, session.ID, session.Token.Reveal()))
	require.NoError(t, show(server.URL, session))
	declined := httptest.NewRecorder()
	decline(declined, ramp.Reject("INVALID_BALANCE"))
	require.JSONEq(t, `{"success":false,"errorCode":"INVALID_BALANCE","data":null}`, declined.Body.String())
	config := ramp.HandlerConfig{}
	require.NoError(t, confirm(&config, server.URL, 7002))
	require.NotNil(t, config.Confirm)

	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: server.URL, Key: key, Terms: terms}))
	started := ramp.Must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))
	order := ramp.Must(service.Mint(t.Context(), started.UUID, session, ramp.NewAmount(1)))
	var taken ramp.Effect
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		taken = step.Effect
		return nil
	}}
	require.NoError(t, keep(t.Context(), session, &order.Request, store))
	require.Equal(t, ramp.Take, taken.Kind)
	_, err := store.Update(t.Context(), started.UUID,
		ramp.OnlyOf([]string{"project-1"}, ramp.Mainnet, ramp.Accept(session, &order.Request, time.Now())))
	require.ErrorIs(t, err, ramp.ErrOrderForeign)
	var approval ramp.Response[ramp.Approval]
	require.NoError(t, json.Unmarshal(received.Body.Bytes(), &approval))
	require.NotZero(t, approval.Data.ValidatorSig)
	service.Advance(time.Minute)
	// block: emulated, err := ramp.NewRPC(
	require.NoError(t, err)
	require.NoError(t, readChain(t.Context(), emulated, &ramp.Result{TxHash: order.TxHash.Hex()}))
}

func TestTheTestOfTheREADME(t *testing.T) { theTestOfTheREADME(t, &game{db: open(t)}) }

// judged is a test that may fail.
type judged struct {
	testing.TB
	cleanup func()
	said    string
}

func (j *judged) Cleanup(do func()) { j.cleanup = do } // that of Start
func (j *judged) Failed() bool      { return j.said != "" }
func (j *judged) Error(args ...any) { j.said += fmt.Sprint(args...) }
func (j *judged) Log(args ...any)   {}

// An assertion that fails ends the test, but is not what Start says.
func (j *judged) Errorf(string, ...any) {}
func (j *judged) FailNow()              { runtime.Goexit() }

// Whoever checks half of a session is red, without an assertion.
func TestTheTestOfTheREADMEFindsHalfOfASession(t *testing.T) {
	for name, admit := range map[string]func(ramp.Session) bool{
		"both":              nil,
		"the token alone":   func(s ramp.Session) bool { return s.Token.Equal(session.Token) },
		"the session alone": func(s ramp.Session) bool { return s.ID == session.ID },
		"nothing":           func(ramp.Session) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			test := &judged{TB: t}
			theTestOfTheREADME(test, &game{db: open(t), admit: admit})
			test.cleanup()
			require.Equal(t, admit != nil, test.Failed(), test.said)
			require.Equal(t, admit != nil, strings.Contains(test.said, "nobody has issued"), test.said)
		})
	}
}

// So is whoever moves assets twice.
func TestTheTestOfTheREADMEFindsWhatMovesTwice(t *testing.T) {
	for _, kind := range []ramp.EffectKind{ramp.Take, ramp.GiveBack, ramp.Grant} {
		t.Run(kind.String(), func(t *testing.T) {
			test := &judged{TB: t}
			var ended sync.WaitGroup
			ended.Go(func() { theTestOfTheREADME(test, &game{db: open(t), twice: kind}) })
			ended.Wait()
			test.cleanup()
			require.Contains(t, test.said, "Assets moved twice")
		})
	}
}

func theTestOfTheREADME(t testing.TB, g *game) {
	key, signer, terms, newHandler := wire(t, g)
	before, gold := int64(1000), func() int64 { return goldIn(g.db) }
	// block: service := ramptest.Start(
	require.Contains(t, service.Timeline(), "#2   200  success")

	// An asset without a row is a declined order, not an error of SQL.
	order = ramp.Must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gem"}))
	_, err = service.Mint(t.Context(), order.UUID, session, ramp.NewAmount(1))
	require.ErrorContains(t, err, "INVALID_BALANCE")
}

// The block of docs/testing.md.
func TestTwoOrdersAtOnce(t *testing.T) {
	newService := func(t *testing.T) (*ramptest.Service, *ramp.Client) {
		key, signer, terms, newHandler := wire(t, &game{db: open(t)})
		service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Closed: true})
		service.SetHandler(newHandler(service))
		return service, ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms,
			HTTPClient: service.Client()}))
	}
	// block: for name, pair := range ramptest.Pairs() {
}

// wire returns what the tests of the documents are about.
func wire(t testing.TB, g *game) (
	ramp.HMACKey, *ramp.Signer, *ramp.Terms, func(*ramptest.Service) http.Handler,
) {
	key := ramp.Must(ramp.TextKey("key from the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	items := func(id string) []ramp.Item {
		return []ramp.Item{{ID: id, Amount: ramp.NewAmount(100), IconURL: "https://example.com/icon.png"}}
	}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: []ramp.Product{
			{Name: "gold", Token: "0x00000000000000000000000000000000000070c3", Materials: items("gold"),
				Outputs: items("gold")},
			{Name: "gem", Token: "0x0000000000000000000000000000000000006e30", Materials: items("gem"),
				Outputs: items("gem")},
		}}))
	newHandler := func(service *ramptest.Service) http.Handler {
		node := ramp.Must(ramp.NewRPC(ramp.RPCConfig{
			URL: service.RPCURL(ramp.Testnet), ChainID: 7002, HTTPClient: service.Client(),
		}))
		store := ramp.Must(rampsql.New(rampsql.Config{DB: g.db, Dialect: rampsql.SQLite, Apply: g.apply}))
		handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: g, Store: store, Terms: terms, Key: key,
			Signer: signer, OnConflict: wakeSomebody, Confirm: rampproof.Confirmed(node, 1)}))
		// Not the context of t: Go ends a test whose context is first used in a bubble.
		require.NoError(t, handler.Check(context.Background()))
		return handler
	}
	return key, signer, terms, newHandler
}

// The block of docs/in-your-build.md.
func TestABubble(t *testing.T) {
	db := open(t)
	key, signer, terms, newHandler := wire(t, &game{db: db})
	begun := time.Now()
	// block: synctest.Test(t, func(
	require.Less(t, time.Since(begun), time.Minute)
	require.EqualValues(t, 700, goldIn(db))
}

// A debt, a player without a row, and a balance that has no room keep no grant and no give-back of the
// README's Apply from being applied. What cannot be granted is declined.
func TestTheApplyOfTheREADME(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Fixture {
		db := open(t)
		store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite,
			Apply: func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
				if err := (&game{db: db}).Apply(ctx, tx, step); err != nil {
					return err
				}
				return check(step)
			}}))
		return storetest.Fixture{
			Stores: []ramp.Store{store},
			Give: func(ctx context.Context, session, asset string, amount int64) error {
				_, err := db.ExecContext(ctx, `INSERT INTO balances (amount, player, asset) VALUES ($1, $2, $3)
					ON CONFLICT (player, asset) DO UPDATE SET amount = excluded.amount`, amount, session, asset)
				return err
			},
			Balance: func(ctx context.Context, session, asset string) (n int64, err error) {
				err = db.QueryRowContext(ctx, "SELECT amount FROM balances WHERE player = $1 AND asset = $2",
					session, asset).Scan(&n)
				if errors.Is(err, sql.ErrNoRows) {
					err = nil
				}
				return n, err
			},
		}
	})

	db := open(t)
	store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite, Apply: (&game{db: db}).Apply}))
	half := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.Must(ramp.ParseAmount("99.5"))}}
	token := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: common.Address{1}.Hex(), Amount: ramp.NewAmount(1)}}
	for n, intent := range []ramp.Intent{
		{Method: ramp.MethodMint, Type: ramp.Assemble, From: half, To: token},
		{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: token, To: half},
	} {
		r := &ramp.ValidateRequest{
			UUID: [16]byte{15: byte(n)}, ProjectID: "project-1", UserAddress: common.Address{2}.Hex(), Intent: intent}
		_, err := store.Update(t.Context(), r.UUID, ramp.Accept(session, r, time.Now()))
		require.ErrorContains(t, err, "whole number")
	}
	require.EqualValues(t, 1000, goldIn(db))
}

func goldIn(db *sql.DB) (gold int64) {
	if err := db.QueryRow("SELECT amount FROM balances WHERE asset = 'gold'").Scan(&gold); err != nil {
		panic(err)
	}
	return gold
}

// The blocks of docs/orders.md.

func TestAStoreOnSQLite(t *testing.T) {
	t.Chdir(t.TempDir())
	// block: db, err := sql.Open(
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Exec(rampsql.SQLite.Schema())
	require.NoError(t, err)
	require.FileExists(t, "game.db")
	apply := func(context.Context, *sql.Tx, ramp.Step) error { return nil }
	store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite, Apply: apply}))
	require.NoError(t, store.Check(t.Context(), ""))
}

// The blocks of docs/operations.md.

type anybody struct{}

func (anybody) Authenticate(context.Context, ramp.Session) error { return nil }
func (anybody) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

// environment is a project on a network, with the service that calls it.
type environment struct {
	http.Handler
	name    string
	service *ramptest.Service
	terms   *ramp.Terms
	key     ramp.HMACKey
	applied []string
}

func newEnvironment(t *testing.T, name string, network ramp.Network, mux http.Handler) *environment {
	e := &environment{name: name, key: ramp.Must(ramp.TextKey("the key of " + name))}
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	e.service = ramptest.Start(t,
		ramptest.Config{Key: e.key, Validator: signer.Address(), ProjectID: name, Handler: mux,
			Audit:      ramptest.AuditOff,
			AssetsPath: "/" + name + ramp.PathAssets, ValidatePath: "/" + name + ramp.PathValidate,
			ResultPath: "/" + name + ramp.PathResult})
	chainID := map[ramp.Network]uint64{ramp.Mainnet: 7001, ramp.Testnet: 7002}[network]
	chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: e.service.RPCURL(network), HTTPClient: e.service.Client(),
		ChainID: chainID}))
	items := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	e.terms = ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: name, Network: network, Products: []ramp.Product{{
		Name: "gold", Token: "0x00000000000000000000000000000000000070c3", Materials: items, Outputs: items}}}))
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		e.applied = append(e.applied, step.Order.ProjectID+" "+string(step.Order.Network)+" "+string(step.Order.State))
		return nil
	}}
	e.Handler = ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: anybody{}, Store: store, Terms: e.terms,
		Key: e.key, Signer: signer,
		Confirm: rampproof.Confirmed(chain, 1)}))
	return e
}

func (e *environment) mint(t *testing.T) error {
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: e.service.URL(), Key: e.key, Terms: e.terms,
		HTTPClient: e.service.Client()}))
	started := ramp.Must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))
	_, err := e.service.Mint(t.Context(), started.UUID, ramp.Session{ID: "alice", Token: ramp.NewAccessToken("token")},
		ramp.NewAmount(1))
	e.service.Advance(time.Minute)
	return err
}

func mountBoth(mux *http.ServeMux, live, trial http.Handler) {
	// block: mux.Handle("/live/"
}

// inFront returns the mux behind what docs/frameworks.md puts before it.
func inFront(handler http.Handler, mux *http.ServeMux) http.Handler {
	server := new(http.Server)
	// block: server.Handler = http.HandlerFunc(
	return server.Handler
}

// A mux with live and trial, and the webhook of another vendor, whose calls carry the same header.
func TestWhatMayBeAResultIsAnsweredWith500OnAMuxOfMany(t *testing.T) {
	mux := http.NewServeMux()
	live, trial := newEnvironment(t, "live", ramp.Mainnet, mux), newEnvironment(t, "trial", ramp.Testnet, mux)
	mountBoth(mux, live, trial)
	const foreign = `{"uuid":"of another vendor"}`
	var arrived []string
	mux.HandleFunc("POST /webhooks/payments", func(w http.ResponseWriter, r *http.Request) {
		body := ramp.Must(io.ReadAll(r.Body))
		arrived = append(arrived, r.Header.Get("X-HMAC-SIGNATURE")+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
	})
	front := inFront(live, mux)
	for path, want := range map[string]int{
		"/live/api/result":     500, // of an order that nobody knows
		"/trial/api/result":    500,
		"//live/api/result":    500,
		"/live//api/result":    500,
		"/live/api/result%20":  500,
		"/live/api/results":    500,
		"/live/api/callback":   500,
		"/trial/api/validate":  401, // signed with another key
		"/webhooks/payments":   202,
		"//webhooks//payments": 500,
	} {
		body := `{"uuid":"7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10","receipt":{"status":"0x1"}}`
		if strings.HasSuffix(path, "payments") {
			body = foreign
		}
		r := httptest.NewRequest(http.MethodPost, "http://game.example"+path, strings.NewReader(body))
		r.Header.Set(ramp.HeaderHMAC, live.key.Sign([]byte(body)))
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, path)
	}
	require.Equal(t, []string{live.key.Sign([]byte(foreign)) + " " + foreign}, arrived, "it arrives untouched")
	require.Empty(t, append(live.applied, trial.applied...))
}

func TestEachProjectHasItsOwnOrders(t *testing.T) {
	mux, mixed := http.NewServeMux(), http.NewServeMux()
	live, trial := newEnvironment(t, "live", ramp.Mainnet, mux), newEnvironment(t, "trial", ramp.Testnet, mux)
	mountBoth(mux, live, trial)
	require.NoError(t, live.mint(t))
	require.NoError(t, trial.mint(t))
	require.Equal(t, []string{"live mainnet accepted", "live mainnet succeeded"}, live.applied)
	require.Equal(t, []string{"trial testnet accepted", "trial testnet succeeded"}, trial.applied)

	// A project whose path is mixed up with that of another gets nothing.
	mountBoth(mixed, trial, live)
	require.ErrorContains(t, newEnvironment(t, "live", ramp.Mainnet, mixed).mint(t), "HMAC_INVALID")
}
