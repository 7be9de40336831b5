package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// api serves the game's own client and its operators.
type api struct {
	game     *game
	store    *ramp.SQLStore
	stopping atomic.Bool
	log      *slog.Logger
	network  ramp.Network
	project  string
	frontend string
	client   *ramp.Client // nil if RAMP_API_URL is not set
	emulated bool
	played   sync.Map // the ramp.Session of each player, if emulated
}

func (a *api) routes(handler *ramp.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(ramp.PathAssets, handler.Assets)
	mux.HandleFunc(ramp.PathValidate, handler.Validate)
	mux.HandleFunc(ramp.PathResult, handler.Result)
	mux.HandleFunc("GET /healthz", a.alive)
	mux.HandleFunc("GET /readyz", a.ready)
	mux.HandleFunc("POST /login", a.login)
	mux.HandleFunc("POST /exchange", a.exchange)
	if a.emulated {
		mux.HandleFunc("GET /play", a.play)
	}
	return mux
}

// alive answers 200 while the process serves requests. It does not check the database,
// because restarting the server when the database is down would only make it worse.
func (a *api) alive(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready answers 200 while this server should receive calls: the database answers and
// has the tables, and the server is not stopping.
func (a *api) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if a.stopping.Load() {
		a.fail(w, r, http.StatusServiceUnavailable, "stopping", nil)
		return
	}
	if err := a.game.check(ctx, a.store); err != nil {
		a.fail(w, r, http.StatusServiceUnavailable, "the database is not ready", err)
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ready"})
}

// stop makes ready fail.
func (a *api) stop() { a.stopping.Store(true) }

// login starts a session. It answers the session ID and access token that the game's
// client puts into the URL of a view, and that the service sends with every call.
func (a *api) login(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Player string `json:"player"`
	}
	if !a.read(w, r, &asked) {
		return
	}
	s, err := a.game.login(r.Context(), asked.Player)
	switch {
	case errors.Is(err, errPlayerName):
		a.fail(w, r, http.StatusBadRequest, err.Error(), nil)
	case err != nil:
		a.fail(w, r, http.StatusInternalServerError, "try again", err)
	default:
		reply(w, http.StatusOK, map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal()})
	}
}

// opened is a view that a player may open until the UUID expires.
type opened struct {
	URL       string    `json:"url"`
	UUID      uuid.UUID `json:"uuid"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// open asks the service for a UUID and makes the URL that the player's webview
// opens: steps 1 and 2 of a mint. The product is gold unless the player named one.
func (a *api) open(ctx context.Context, s ramp.Session, product string) (opened, error) {
	started, err := a.client.Initialize(ctx, ramp.InitializeRequest{Product: cmp.Or(product, gold)})
	if err != nil {
		return opened{}, err
	}
	page, err := ramp.ExchangeURL(a.frontend, ramp.ExchangeParams{
		UUID: started.UUID, AccessToken: s.Token, SessionID: s.ID, Network: a.network})
	return opened{URL: page, UUID: started.UUID, ExpiresAt: started.ExpiresAt.UTC()}, err
}

// exchange opens the exchange view for a player who is logged in. It reads only the
// session and the name of a product and ignores all other fields, because the game sets
// the terms, not the player.
func (a *api) exchange(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		SessionID   string `json:"sessionId"`
		AccessToken string `json:"accessToken"`
		Product     string `json:"product"`
	}
	if !a.read(w, r, &asked) {
		return
	}
	s := ramp.Session{ID: asked.SessionID, Token: ramp.NewAccessToken(asked.AccessToken)}
	if !a.authenticated(w, r, s) {
		return
	}
	if a.client == nil || a.frontend == "" || a.project == "" {
		a.fail(w, r, http.StatusServiceUnavailable, "RAMP_API_URL, RAMP_FRONTEND_URL and -project must all be set", nil)
		return
	}
	view, err := a.open(r.Context(), s, asked.Product)
	var wrong *ramp.InvalidError
	switch {
	case errors.As(err, &wrong):
		a.fail(w, r, http.StatusBadRequest, err.Error(), nil)
	case err != nil:
		a.fail(w, r, http.StatusBadGateway, "initialize failed", err)
	default:
		reply(w, http.StatusOK, view)
	}
}

func (a *api) authenticated(w http.ResponseWriter, r *http.Request, s ramp.Session) bool {
	err := a.game.Authenticate(r.Context(), s)
	var rejected *ramp.Rejection
	switch {
	case errors.As(err, &rejected):
		a.fail(w, r, http.StatusUnauthorized, "unknown session, or wrong or expired token", nil)
	case err != nil:
		a.fail(w, r, http.StatusInternalServerError, "try again", err)
	}
	return err == nil
}

// read reads a small JSON body.
func (a *api) read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<14)).Decode(into); err != nil {
		a.fail(w, r, http.StatusBadRequest, "the body must be a small JSON object", nil)
		return false
	}
	return true
}

// fail answers with a message that is safe for the caller, and logs the cause.
func (a *api) fail(w http.ResponseWriter, r *http.Request, status int, message string, cause error) {
	if cause != nil {
		a.log.ErrorContext(r.Context(), message, "path", r.URL.Path, "error", cause)
	}
	reply(w, status, map[string]string{"error": message})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // keep URLs readable
	_ = encoder.Encode(body)     // fails only if the caller is gone
}
