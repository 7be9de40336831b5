// Byhand answers the service's calls with the parts of the package, without its Handler. Copy it if
// you have a server and want only the parts. The README says how to play with it: use this program
// instead of examples/first.
//
// It verifies a call before it reads it, checks project, token and price, and lets each order and each
// transaction of the chain move assets once, also if calls are repeated or arrive together. The
// Handler and a store on a database do what is missing here:
//
//   - Orders are in memory. A restart forgets who has paid, and a crash between the order and what it
//     moves could lose or double assets, if the players were in a database.
//   - A result is believed, unless confirm is set: main does not know your node.
//   - A result that contradicts its order comes again for 12 hours. Nobody hears of it, and nobody can
//     end it (HandlerConfig.OnConflict).
//   - The mux answers a result at a path with // with a redirect, and it never comes again.
//   - A validate call that is repeated after the products have changed is declined, although the
//     player has paid.
//   - A player may name any wallet (HandlerConfig.Wallet).
//   - A key service that hangs holds the call (HandlerConfig.SignTimeout).
//   - Calls are neither logged nor counted, apart from failures.
//
// docs/by-hand.md says how the judge rates this program.
//
// The emulator prints the variables of the environment that it needs:
//
//	go run ./examples/byhand
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

const (
	project = "project-1"
	network = ramp.Testnet
)

// price is what a token costs, and is worth.
var price = []ramp.Item{
	{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"},
}

var products = []ramp.Product{{
	Name: "gold", Token: "0x00000000000000000000000000000000000070c3", MintFeeBps: 100,
	Materials: price, Outputs: price,
}}

type server struct {
	key    ramp.HMACKey
	signer *ramp.Signer
	terms  *ramp.Terms
	client *ramp.Client // asks the service for UUIDs

	// confirm decides whether a result is true, such as a rampproof.Proof. nil believes it.
	confirm ramp.Confirmer

	mu           sync.Mutex
	orders       map[uuid.UUID]*ramp.Order
	transactions map[string]uuid.UUID // the orders that have ended by them
	players      map[string]*player   // by session
}

type player struct {
	token  ramp.AccessToken
	assets map[string]ramp.Amount
}

// play opens the page of a new order for the player of a session. Its address holds the access token.
func (s *server) play(session ramp.Session) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		order, err := s.client.Initialize(r.Context(), ramp.InitializeRequest{Product: "gold"})
		var page string
		if err == nil {
			page, err = order.ExchangeURL(os.Getenv("RAMP_FRONTEND_URL"), session)
		}
		if err != nil {
			log.Print(err)
			http.Error(w, "the ramp is unavailable", http.StatusBadGateway)
			return
		}
		http.Redirect(w, r, page, http.StatusSeeOther)
	}
}

func (s *server) assets(w http.ResponseWriter, r *http.Request) {
	session, err := ramp.ParseSession(r.Header)
	var shown ramp.Player
	if err == nil {
		shown, err = s.login(session)
	}
	if err != nil {
		reject(w, ramp.RejectionOf(err))
		return
	}
	answer(w, &ramp.AssetsData{V1: shown})
}

func (s *server) validate(w http.ResponseWriter, r *http.Request) {
	approval, err := s.approve(w, r)
	if err != nil {
		reject(w, ramp.RejectionOf(err))
		return
	}
	answer(w, approval)
}

func (s *server) approve(w http.ResponseWriter, r *http.Request) (*ramp.Approval, error) {
	body, err := read(w, r)
	if err != nil {
		return nil, err
	}
	request, session, err := ramp.ReadValidate(s.key, r.Header, body)
	if err != nil {
		return nil, err
	}
	if err := s.terms.Match(request); err != nil { // this project, one of the products, at its price
		return nil, err
	}
	if _, err := s.login(session); err != nil {
		return nil, err
	}
	// Sign before anything moves: a signer that fails must cost the player nothing.
	signature, err := s.signer.Sign(r.Context(), request.Digest)
	if err != nil {
		return nil, err
	}
	accept := ramp.OnlyOf([]string{project}, network, ramp.Accept(session, request, time.Now()))
	if _, err := s.Update(r.Context(), request.UUID, accept); err != nil {
		return nil, err // the signature is not released
	}
	return &ramp.Approval{UserSig: request.UserSig, ValidatorSig: signature}, nil
}

// result answers every failure with 500, because the service repeats only those.
func (s *server) result(w http.ResponseWriter, r *http.Request) {
	if err := s.end(w, r); err != nil {
		log.Print(err)
		rejection := ramp.RejectionOf(err)
		rejection.Status = http.StatusInternalServerError
		reject(w, rejection)
		return
	}
	answer[any](w, nil)
}

func (s *server) end(w http.ResponseWriter, r *http.Request) error {
	body, err := read(w, r)
	if err != nil {
		return err
	}
	result, _, err := ramp.ReadResult(s.key, r.Header, body)
	if err != nil {
		return err
	}
	// From here on, a sender that gives up must not stop a result, which could be given up each time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 30*time.Second)
	defer cancel()
	finish := ramp.Finish(result, time.Now())
	if s.confirm != nil {
		if finish, err = s.confirm.Confirm(ctx, s, result, finish); err != nil {
			return err
		}
	}
	_, err = s.Update(ctx, result.UUID, ramp.OnlyOf([]string{project}, network, finish))
	return err
}

// read returns a body. Its bytes must not change before its HMAC was verified.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return nil, &ramp.Rejection{
			Status: http.StatusRequestEntityTooLarge, Code: ramp.CodeBodyTooLarge, Err: err}
	}
	return body, nil
}

// login returns what the player of a session owns.
func (s *server) login(session ramp.Session) (shown ramp.Player, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	player := s.players[session.ID]
	if player == nil || !player.token.Equal(session.Token) {
		return shown, &ramp.Rejection{Status: http.StatusUnauthorized, Code: "INVALID_USER"}
	}
	for id, balance := range player.assets {
		shown.Assets = append(shown.Assets, ramp.Asset{ID: id, Balance: balance})
	}
	return shown, nil
}

// Update takes an order one step further, and moves what the step moves. It is that of a
// [ramp.Store].
func (s *server) Update(_ context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.orders[id]
	step, err := next(stored)
	if err != nil || !step.New { // a repeat moves nothing
		return step, err
	}
	other, ended := s.transactions[step.Order.TxHash]
	if ended && step.Order.TxHash != "" {
		return ramp.Step{}, &ramp.ConflictError{Order: *stored, Field: "tx_hash", Other: s.orders[other]}
	}
	if step.Settled() { // by a person, in another way; the player may be gone
		s.orders[id], s.transactions[step.Order.TxHash] = &step.Order, id
		return step, nil
	}
	player := s.players[step.Order.SessionID]
	balances, err := player.after(step)
	if err != nil {
		return ramp.Step{}, err
	}
	if grant, ok := step.Rehearse(); ok { // a burn whose grant would fail must not be signed
		if _, err := player.after(grant); err != nil {
			return ramp.Step{}, err
		}
	}
	player.assets, s.orders[id], s.transactions[step.Order.TxHash] = balances, &step.Order, id
	return step, nil
}

// after returns what a player owns after a step. Only a mint may be refused for want of assets.
func (p *player) after(step ramp.Step) (map[string]ramp.Amount, error) {
	balances := maps.Clone(p.assets)
	for _, asset := range step.Effect.Assets {
		balance, err := balances[asset.ID].Add(step.Effect.Delta(asset))
		if err != nil || step.Effect.Kind == ramp.Take && balance.Sign() < 0 {
			return nil, ramp.Reject("INVALID_BALANCE")
		}
		balances[asset.ID] = balance
	}
	return balances, nil
}

// answer writes the envelope of a success.
func answer[T any](w http.ResponseWriter, data *T) {
	write(w, http.StatusOK, ramp.Response[T]{Success: true, Data: data})
}

// reject writes the envelope of a failure.
func reject(w http.ResponseWriter, r *ramp.Rejection) {
	write(w, r.Status, ramp.Response[any]{ErrorCode: r.Code})
}

func write(w http.ResponseWriter, status int, envelope any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(envelope)
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ramp.PathAssets, s.assets)
	mux.HandleFunc("POST "+ramp.PathValidate, s.validate)
	mux.HandleFunc("POST "+ramp.PathResult, s.result)
	mux.HandleFunc("/", astray)
	return mux
}

// astray answers every other call. A signed one may be a result whose path the console misspells, so
// it must come again.
func astray(w http.ResponseWriter, r *http.Request) {
	status := http.StatusNotFound
	if r.Header.Get(ramp.HeaderHMAC) != "" {
		status = http.StatusInternalServerError
	}
	reject(w, &ramp.Rejection{Status: status, Code: ramp.CodeNotFound})
}

func newServer(key ramp.HMACKey, signer *ramp.Signer) *server {
	terms := ramp.TermsConfig{ProjectID: project, Network: network, Products: products}
	return &server{
		key: key, signer: signer, terms: ramp.Must(ramp.NewTerms(terms)),
		orders: map[uuid.UUID]*ramp.Order{}, transactions: map[string]uuid.UUID{},
		players: map[string]*player{},
	}
}

func main() {
	key := ramp.Must(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")))
	s := newServer(key, ramp.Must(ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY"))))
	s.client = ramp.Must(ramp.NewClient(ramp.ClientConfig{
		URL: os.Getenv("RAMP_API_URL"), Key: key, Terms: s.terms}))
	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	s.players[session.ID] = &player{token: session.Token,
		assets: map[string]ramp.Amount{"item_gold": ramp.NewAmount(1000)}}
	mux := http.NewServeMux()
	mux.Handle("/", s.routes())
	mux.HandleFunc("/play", s.play(session)) // your client opens it in a webview
	log.Println("open http://127.0.0.1:8080/play")
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", mux))
}
