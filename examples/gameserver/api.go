package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// api is what the game's own client and its operators call.
type api struct {
	game     *game
	log      *slog.Logger
	project  string
	frontend string
	client   *ramp.Client // nil when the service's address is not known
	emulated bool
	played   sync.Map // the ramp.Session of each player, when emulated
}

func (a *api) routes(handler *ramp.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(ramp.PathAssets, handler.Assets)
	mux.HandleFunc(ramp.PathValidate, handler.Validate)
	mux.HandleFunc(ramp.PathResult, handler.Result)
	mux.HandleFunc("GET /healthz", a.health)
	mux.HandleFunc("POST /login", a.login)
	mux.HandleFunc("POST /exchange", a.exchange)
	if a.emulated {
		mux.HandleFunc("GET /play", a.play)
	}
	return mux
}

// health answers 200 while the database answers.
func (a *api) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := a.game.db.PingContext(ctx); err != nil {
		a.fail(w, r, http.StatusServiceUnavailable, "the database does not answer", err)
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

// login starts a session. What it answers is what the game's client puts into
// the URL of a view, and the service sends back with every call.
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

// trade is what a player of a session wants to exchange.
type trade struct {
	SessionID   string       `json:"sessionId"`
	AccessToken string       `json:"accessToken"`
	ProjectID   string       `json:"projectId"` // empty stands for the one of -project
	Token       string       `json:"token"`     // contract address
	Network     ramp.Network `json:"network"`
}

func (t trade) session() ramp.Session {
	return ramp.Session{ID: t.SessionID, Token: ramp.NewAccessToken(t.AccessToken)}
}

// opened is a view that a player may open until the UUID expires.
type opened struct {
	URL       string    `json:"url"`
	UUID      uuid.UUID `json:"uuid"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// open asks the service for a UUID and makes the URL that the player's webview
// opens: steps 1 and 2 of a mint.
func (a *api) open(ctx context.Context, t trade) (opened, error) {
	started, err := a.client.Initialize(ctx, a.recipe(t))
	if err != nil {
		return opened{}, err
	}
	page, err := ramp.ExchangeURL(a.frontend, ramp.ExchangeParams{
		UUID: started.UUID, AccessToken: t.session().Token, SessionID: t.SessionID, Network: t.Network})
	return opened{URL: page, UUID: started.UUID, ExpiresAt: started.ExpiresAt.UTC()}, err
}

// exchange opens the exchange view for a player who is logged in.
func (a *api) exchange(w http.ResponseWriter, r *http.Request) {
	var asked trade
	if !a.read(w, r, &asked) || !a.authenticated(w, r, asked) {
		return
	}
	if a.client == nil || a.frontend == "" {
		a.fail(w, r, http.StatusServiceUnavailable, "RAMP_API_URL and RAMP_FRONTEND_URL are not set", nil)
		return
	}
	view, err := a.open(r.Context(), asked)
	var wrong *ramp.InvalidError
	switch {
	case errors.As(err, &wrong):
		a.fail(w, r, http.StatusBadRequest, err.Error(), nil)
	case err != nil:
		a.fail(w, r, http.StatusBadGateway, "the service gave no UUID", err)
	default:
		reply(w, http.StatusOK, view)
	}
}

// recipe is what a token costs in this game.
func (a *api) recipe(t trade) ramp.InitializeRequest {
	const icons = "https://example.com/icons/"
	items := []ramp.Item{
		{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: icons + "gold.png"},
		{ID: "item_gem", Amount: ramp.NewAmount(1), IconURL: icons + "gem.png"},
	}
	project := t.ProjectID
	if project == "" {
		project = a.project
	}
	return ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: t.Network, ProjectID: project, Token: t.Token, MintFeeBps: 100, Materials: items, Outputs: items}}
}

func (a *api) authenticated(w http.ResponseWriter, r *http.Request, t trade) bool {
	err := a.game.Authenticate(r.Context(), t.session())
	var refused *ramp.Refusal
	switch {
	case errors.As(err, &refused):
		a.fail(w, r, http.StatusUnauthorized, "the token is not one of this session", nil)
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

// fail answers what a caller may know, and logs the cause.
func (a *api) fail(w http.ResponseWriter, r *http.Request, status int, says string, cause error) {
	if cause != nil {
		a.log.ErrorContext(r.Context(), says, "path", r.URL.Path, "error", cause)
	}
	reply(w, status, map[string]string{"error": says})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // a URL stays readable
	_ = encoder.Encode(body)     // the caller is gone: nobody is left to tell
}
