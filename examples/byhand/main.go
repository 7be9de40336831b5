// Byhand answers the service's calls with the pieces of the package, without its
// Handler. Copy it if you have a server and want only the pieces; docs/by-hand.md lists
// them.
//
// It checks HMACs and tokens, and moves the assets of each order once, also if calls are
// repeated or arrive together. What is missing here, the Handler does: it rejects orders for
// another project, another token or at another price (Terms); it keeps an order and what it moves in
// one transaction of a database, so that neither a crash nor a restart loses or doubles
// anything, and lets one transaction of the chain end one order only (Store); it asks the chain
// whether a result is true and belongs to its order (Confirm); it hands contradictions to
// a person (OnConflict), limits how long a signature may take, and logs each call without
// its secrets. docs/by-hand.md says how the judge rates this program.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… go run ./examples/byhand
package main

import (
	"encoding/json"
	"errors"
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

type server struct {
	key    ramp.HMACKey
	signer *ramp.Signer

	mu      sync.Mutex // held for a whole call
	orders  map[uuid.UUID]*ramp.Order
	players map[string]*player // by session
}

type player struct {
	token  ramp.AccessToken
	assets map[string]ramp.Amount
}

func (s *server) validate(w http.ResponseWriter, r *http.Request) {
	body, err := s.authentic(w, r)
	if err != nil {
		answer[any](w, http.StatusUnauthorized, ramp.CodeHMACInvalid, nil)
		return
	}
	request, err := ramp.ParseValidate(body)
	if err != nil {
		answer[any](w, http.StatusBadRequest, "INVALID_BODY", nil)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	session, player := s.login(r)
	if player == nil {
		answer[any](w, http.StatusUnauthorized, "INVALID_USER", nil)
		return
	}
	// Sign before anything moves: a signer that fails must cost the player nothing.
	signature, err := s.signer.Sign(r.Context(), request.Digest)
	if err != nil {
		answer[any](w, http.StatusInternalServerError, ramp.CodeInternal, nil)
		return
	}
	if err := s.update(request.UUID, ramp.Accept(session, request, time.Now())); err != nil {
		answer[any](w, http.StatusOK, "INVALID_MESSAGE", nil)
		return
	}
	answer(w, http.StatusOK, "", &ramp.Approval{UserSig: request.UserSig, ValidatorSig: signature})
}

// result answers every failure with 500, because the service repeats only those.
func (s *server) result(w http.ResponseWriter, r *http.Request) {
	body, err := s.authentic(w, r)
	if err == nil {
		var result *ramp.Result
		if result, err = ramp.ParseResult(body); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			err = s.update(result.UUID, ramp.Finish(result, time.Now()))
		}
	}
	if err != nil {
		answer[any](w, http.StatusInternalServerError, ramp.CodeInternal, nil)
		return
	}
	answer[any](w, http.StatusOK, "", nil)
}

// authentic returns a body whose HMAC is right. Its bytes must not change before.
func (s *server) authentic(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	return body, s.key.Verify(body, r.Header.Get(ramp.HeaderHMAC))
}

// login returns nil for a session that is unknown or has another token.
func (s *server) login(r *http.Request) (ramp.Session, *player) {
	session, err := ramp.ParseSession(r.Header)
	player := s.players[session.ID]
	if err != nil || player == nil || !player.token.Equal(session.Token) {
		return session, nil
	}
	return session, player
}

// update takes an order one step further. The step has an effect the first time only.
func (s *server) update(id uuid.UUID, next ramp.Transition) error {
	step, err := next(s.orders[id])
	if err != nil {
		return err
	}
	player := s.players[step.Order.SessionID]
	balances := maps.Clone(player.assets)
	for _, asset := range step.Effect.Assets { // none for a repeat
		balances[asset.ID], err = balances[asset.ID].Add(step.Effect.Delta(asset))
		if err != nil || step.Effect.Kind == ramp.Take && balances[asset.ID].Sign() < 0 {
			return errors.New("the player owns too little") // only a mint may be refused
		}
	}
	player.assets, s.orders[id] = balances, &step.Order
	return nil
}

func (s *server) assets(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, player := s.login(r)
	if player == nil {
		answer[any](w, http.StatusUnauthorized, "INVALID_USER", nil)
		return
	}
	var shown ramp.Player
	for id, balance := range player.assets {
		shown.Assets = append(shown.Assets, ramp.Asset{ID: id, Balance: balance})
	}
	answer(w, http.StatusOK, "", &map[string]ramp.Player{"v1": shown})
}

// answer writes the envelope of the interface. An empty code means success.
func answer[T any](w http.ResponseWriter, status int, code ramp.Code, data *T) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(ramp.Response[T]{Success: code == "", ErrorCode: code, Data: data})
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ramp.PathAssets, s.assets)
	mux.HandleFunc("POST "+ramp.PathValidate, s.validate)
	mux.HandleFunc("POST "+ramp.PathResult, s.result)
	return mux
}

func main() {
	key := ramp.Must(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")))
	signer := ramp.Must(ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")))
	s := &server{key: key, signer: signer, orders: make(map[uuid.UUID]*ramp.Order),
		players: map[string]*player{"session-1": {
			token: ramp.NewAccessToken("token-1"), assets: map[string]ramp.Amount{"item_gold": ramp.NewAmount(1000)}}}}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", s.routes()))
}
