package dbtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

const (
	hmacText     = "a key of these tests"
	validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// studio is the part that a studio writes. It records every step and every move, so that
// duplicates are found.
type studio struct {
	db      *sql.DB
	dialect rampsql.Dialect
}

func (s studio) Authenticate(_ context.Context, session ramp.Session) error {
	if session.Token.Reveal() != "token of "+session.ID {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (s studio) Assets(ctx context.Context, session ramp.Session) (*ramp.Player, error) {
	rows, err := s.db.QueryContext(ctx,
		bind(s.dialect, "SELECT asset, amount FROM holdings WHERE session_id = ? ORDER BY asset"), session.ID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var player ramp.Player
	for rows.Next() {
		var id string
		var amount int64
		if err := rows.Scan(&id, &amount); err != nil {
			return nil, err
		}
		player.Assets = append(player.Assets, ramp.Asset{ID: id, Balance: ramp.NewAmount(amount)})
	}
	return &player, rows.Err()
}

func (s studio) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	for _, a := range step.Effect.Assets {
		delta, err := step.Effect.Delta(a).Int64()
		if err != nil {
			return ramp.Reject("INVALID_AMOUNT")
		}
		if err := s.move(ctx, tx, step.Order.UUID, step.Order.SessionID, step.Effect.Kind, a.ID, delta); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, bind(s.dialect, "INSERT INTO steps (uuid, state) VALUES (?, ?)"),
		step.Order.UUID.String(), string(step.Order.State))
	return err
}

// execer is a *sql.DB or *sql.Tx.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (s studio) move(ctx context.Context, tx execer, id uuid.UUID, session string, kind ramp.EffectKind, asset string,
	delta int64) error {
	least := int64(math.MinInt64) // a grant or a give-back never fails
	if kind == ramp.Take {
		least = -delta
	}
	held, err := add(ctx, tx, s.dialect, session, asset, delta, least)
	if !held && err == nil && kind == ramp.Take {
		return ramp.Reject("INVALID_BALANCE")
	} else if !held && err == nil {
		err = insert(ctx, tx, s.dialect, session, asset, delta)
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		bind(s.dialect, "INSERT INTO moves (uuid, session_id, kind, asset, amount) VALUES (?, ?, ?, ?, ?)"),
		id.String(), session, kind.String(), asset, delta)
	return err
}

// add changes a balance. It reports false if the player has none, or less than least.
func add(
	ctx context.Context, tx execer, d rampsql.Dialect, session, asset string, delta, least int64,
) (bool, error) {
	done, err := tx.ExecContext(ctx,
		bind(d, "UPDATE holdings SET amount = amount + ? WHERE session_id = ? AND asset = ? AND amount >= ?"),
		delta, session, asset, least)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n == 1, err
}

func insert(ctx context.Context, on execer, d rampsql.Dialect, session, asset string, amount int64) error {
	_, err := on.ExecContext(ctx, bind(d, "INSERT INTO holdings (session_id, asset, amount) VALUES (?, ?, ?)"), session,
		asset, amount)
	return err
}

// world is a game server, its database, and the service that calls it.
type world struct {
	*place
	t       *testing.T
	store   *rampsql.Store
	handler *ramp.Handler
	client  *http.Client
	key     ramp.HMACKey
	address func() string

	started map[holding]int64
}

type holding struct{ session, asset string }

// newWorld serves a game on the place. It has a store of its own unless there is one.
func newWorld(t *testing.T, p *place, store *rampsql.Store) *world {
	t.Helper()
	w := &world{place: p, t: t, store: store, key: must.Get(ramp.TextKey(hmacText))(t), started: map[holding]int64{}}
	s := studio{p.db, p.dialect}
	if store == nil {
		w.store = newStore(t, p, s.Apply)
	}
	w.handler = newHandler(t, s, w.store)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	w.address = func() string { return server.URL }
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return w
}

type apply = func(context.Context, *sql.Tx, ramp.Step) error

func newStore(t *testing.T, p *place, apply apply) *rampsql.Store {
	t.Helper()
	return newStoreOf(t, p, apply, "")
}

// newStoreOf returns a store of a network and of projects.
func newStoreOf(t *testing.T, p *place, apply apply, network ramp.Network, projects ...string) *rampsql.Store {
	t.Helper()
	return must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: apply,
		Projects: projects, Network: network,
		TxOptions: &sql.TxOptions{Isolation: p.mode.isolation}, Logger: ramptest.Logger(t)}))(t)
}

// applyNothing is an Apply that moves nothing.
func applyNothing(context.Context, *sql.Tx, ramp.Step) error { return nil }

func newHandler(t *testing.T, players ramp.Players, store ramp.Store) *ramp.Handler {
	return must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: players, Store: store,
		Logger: ramptest.Logger(t),
		Key:    must.Get(ramp.TextKey(hmacText))(t), Signer: must.Get(ramp.NewKeySigner(validatorKey))(t)}))(t)
}

// give gives a player an initial balance.
func (w *world) give(session, asset string, amount int64) {
	w.t.Helper()
	check(w.t, insert(w.t.Context(), w.db, w.dialect, session, asset, amount))
	w.started[holding{session, asset}] = amount
}

// order is an order of the service.
type order struct {
	id      uuid.UUID
	session string
	project string
	user    string
	digest  ramp.Digest
	intent  ramp.Intent
}

const token = "0x00000000000000000000000000000000000000aa"

func newOrder(session string, intent ramp.Intent) order {
	id := uuid.New()
	return order{id: id, session: session, project: "project", user: "0xbB00000000000000000000000000000000000000",
		digest: sha256.Sum256(id[:]), intent: intent}
}

func amounts(kind ramp.AssetType, pairs ...any) (list []ramp.IntentAsset) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list,
			ramp.IntentAsset{Type: kind, ID: pairs[i].(string), Amount: ramp.NewAmount(int64(pairs[i+1].(int)))})
	}
	return list
}

// mint returns the intent that exchanges assets, given as alternating IDs and amounts,
// for one token.
func mint(pairs ...any) ramp.Intent {
	return ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
		From: amounts(ramp.TypeAsset, pairs...), To: amounts(ramp.TypeERC20, token, 1)}
}

// burn returns the intent that exchanges one token for assets.
func burn(pairs ...any) ramp.Intent {
	return ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble,
		From: amounts(ramp.TypeERC20, token, 1), To: amounts(ramp.TypeAsset, pairs...)}
}

func (o order) validateRequest() *ramp.ValidateRequest {
	return &ramp.ValidateRequest{UserSig: "0xabcd", UserAddress: o.user, ProjectID: o.project, Digest: o.digest,
		UUID: o.id, Intent: o.intent}
}

// accept returns the transition of the order's validate call.
func (o order) accept() ramp.Transition {
	return ramp.Accept(ramp.Session{ID: o.session}, o.validateRequest(), time.Now())
}

// finish returns the transition of the order's result.
func (o order) finish(status uint64) ramp.Transition {
	return ramp.Finish(o.report(status), time.Now())
}

func (o order) report(status uint64) *ramp.Result {
	return &ramp.Result{SessionID: o.session, UUID: o.id, TxHash: txHashOf(o.id),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: o.intent}
}

// txHashOf returns the hash of an order's transaction.
func txHashOf(id uuid.UUID) string { return fmt.Sprintf("0x%x", sha256.Sum256(id[:])) }

// txHash returns a hash that repeats one byte.
func txHash(hexByte string) string { return "0x" + strings.Repeat(hexByte, 32) }

const (
	success = 1
	failure = 0
)

// answer is an answer as the service sees it.
type answer struct {
	status    int
	code      string
	signature string
	err       error // why there was no answer
}

func (a answer) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.status, a.code))
}

func (w *world) validate(o order) answer {
	return w.post(ramp.PathValidate, o.session, o.validateRequest())
}

func (w *world) result(o order, status uint64) answer {
	return w.post(ramp.PathResult, o.session, o.report(status))
}

func (w *world) post(path, session string, message any) answer {
	body := must.Get(json.Marshal(message))(w.t)
	request := must.Get(http.NewRequest(http.MethodPost, w.address()+path, bytes.NewReader(body)))(w.t)
	request.Header.Set(ramp.HeaderHMAC, w.key.Sign(body))
	if session != "" {
		request.Header.Set(ramp.HeaderSession, session)
		request.Header.Set(ramp.HeaderAuthorization, "Bearer token of "+session)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return answer{err: err}
	}
	var envelope struct {
		ErrorCode string
		Data      struct{ ValidatorSig string }
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return answer{err: err}
	}
	return answer{status: response.StatusCode, code: envelope.ErrorCode, signature: envelope.Data.ValidatorSig}
}

// waiting counts the connections that wait for a lock.
func (p *place) waiting() (int64, error) { return p.waits(p) }

// audit compares the moves of each order with the correct ones, and every balance with
// the sum of its moves. It returns the problems.
func (w *world) audit(want map[uuid.UUID][]string) (wrong []string) {
	w.t.Helper()
	rows := must.Get(w.db.Query("SELECT uuid, session_id, kind, asset, amount FROM moves"))(w.t)
	defer rows.Close()
	moved, balance := map[uuid.UUID][]string{}, maps.Clone(w.started)
	for rows.Next() {
		var id uuid.UUID
		var kind string
		var at holding
		var amount int64
		check(w.t, rows.Scan(&id, &at.session, &kind, &at.asset, &amount))
		moved[id] = append(moved[id], fmt.Sprintf("%s %s %+d %s", kind, at.session, amount, at.asset))
		balance[at] += amount
	}
	check(w.t, rows.Err())
	for id := range moved {
		if _, ok := want[id]; !ok {
			want[id] = nil
		}
	}
	for id, expected := range want {
		slices.Sort(moved[id])
		slices.Sort(expected)
		if !slices.Equal(moved[id], expected) {
			wrong = append(wrong, fmt.Sprintf("order %s moved %q, not %q", id, moved[id], expected))
		}
	}
	for at, expected := range balance {
		var got int64
		check(w.t,
			w.db.QueryRow(bind(w.dialect, "SELECT amount FROM holdings WHERE session_id = ? AND asset = ?"), at.session,
				at.asset).Scan(&got))
		if got != expected {
			wrong = append(wrong, fmt.Sprintf("%s holds %d %s, not %d", at.session, got, at.asset, expected))
		}
	}
	// Apply received each step of an order exactly once.
	var steps, distinct, taken int
	check(w.t, w.db.QueryRow("SELECT count(*) FROM steps").Scan(&steps))
	check(w.t, w.db.QueryRow("SELECT count(*) FROM (SELECT DISTINCT uuid, state FROM steps) AS s").Scan(&distinct))
	check(w.t, w.db.QueryRow("SELECT count(*) + count(finished_at) FROM ramp_orders").Scan(&taken))
	if steps != taken || distinct != taken {
		wrong = append(wrong, fmt.Sprintf("of %d steps, %d came to Apply, %d times", taken, distinct, steps))
	}
	return wrong
}

// assertMoves fails the test unless exactly these moves were made.
func (w *world) assertMoves(want map[uuid.UUID][]string) {
	w.t.Helper()
	for _, wrong := range w.audit(want) {
		w.t.Error(wrong)
	}
}

func (w *world) expect(got answer, want string) {
	w.t.Helper()
	if got.err != nil {
		w.t.Fatal(got.err)
	}
	if got.String() != want {
		w.t.Fatalf("answered %q, not %q", got, want)
	}
	if approved := got.signature != ""; approved && want != "200" {
		w.t.Fatalf("%q came with a signature", got)
	}
}
