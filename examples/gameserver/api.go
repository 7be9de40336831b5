// To make it yours: replace login and the routes of your game. Keep that handler gets every path that
// is not yours.

package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// api serves the game's own client and its operators.
type api struct {
	game     *game
	stopping atomic.Bool
	log      *slog.Logger
	client   *ramp.Client // nil if players cannot start an exchange
	frontend string
	project  string
	network  ramp.Network
}

func (a *api) routes(handler *ramp.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{ramp.PathAssets, ramp.PathValidate, ramp.PathResult, "/"} {
		mux.Handle(path, handler) // "/" so that a result at a wrong path comes again
	}
	mux.HandleFunc("GET /healthz", answer(a.log, a.alive))
	mux.HandleFunc("GET /readyz", answer(a.log, a.ready))
	mux.HandleFunc("POST /login", answer(a.log, a.login))
	mux.HandleFunc("POST /exchange", answer(a.log, a.exchange))
	mux.HandleFunc("POST /catalog", answer(a.log, a.catalog))
	mux.HandleFunc("POST /mail", answer(a.log, a.mail))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "//") { // which mux would redirect: a result would not come again
			handler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// alive answers 200 while the process serves requests. It does not check the database,
// because restarting the server when the database is down would only make it worse.
func (a *api) alive(*http.Request) (any, error) { return map[string]string{"status": "ok"}, nil }

// ready answers 200 while this server should receive calls: until it stops. It does not ask
// the database, because all servers share it. When it is slow, a load balancer would take
// every server out, and answer for them.
func (a *api) ready(*http.Request) (any, error) {
	if a.stopping.Load() {
		return nil, &failure{status: http.StatusServiceUnavailable, text: "stopping"}
	}
	return map[string]string{"status": "ready"}, nil
}

// login starts a session. It answers the session ID, and the token with which the game's client asks
// for pages. It opens none itself.
func (a *api) login(r *http.Request) (any, error) {
	var asked struct{ Player string }
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	s, err := a.game.login(r.Context(), asked.Player)
	return map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal()}, err
}

// exchange opens the exchange view for a player who is logged in. It reads only the
// session and the name of a product and ignores all other fields, because the game sets
// the terms, not the player.
func (a *api) exchange(r *http.Request) (any, error) {
	var asked struct{ SessionID, AccessToken, Product string }
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	s := ramp.Session{ID: asked.SessionID, Token: ramp.NewAccessToken(asked.AccessToken)}
	if err := a.authenticate(r.Context(), s); err != nil {
		return nil, err
	}
	if a.client == nil {
		return nil,
			&failure{status: http.StatusServiceUnavailable,
				text: "RAMP_API_URL and RAMP_FRONTEND_URL must both be set"}
	}
	started, page, at, err := a.open(r.Context(), s.ID, asked.Product)
	switch limited := (*failure)(nil); {
	case errors.As(err, &limited):
		return nil, limited
	case errors.As(err, new(*ramp.Rejection)):
		return nil, &failure{status: http.StatusServiceUnavailable, text: "the shop is closed"}
	case errors.As(err, new(*ramp.InvalidError)):
		return nil, &failure{status: http.StatusBadRequest, text: err.Error()}
	case err != nil:
		return nil, &failure{http.StatusBadGateway, "initialize failed", err}
	}
	seconds := int(time.Until(started.ExpiresAt) / time.Second) // for a phone whose clock is wrong
	return map[string]any{"url": at, "uuid": started.UUID, "accessToken": page.Token.Reveal(),
		"expiresAt": started.ExpiresAt.UTC(), "expiresIn": seconds}, nil
}

// catalog opens the catalog view for a player who is logged in. It shows assets only.
func (a *api) catalog(r *http.Request) (any, error) {
	var asked struct{ SessionID, AccessToken string }
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	s := ramp.Session{ID: asked.SessionID, Token: ramp.NewAccessToken(asked.AccessToken)}
	if err := a.authenticate(r.Context(), s); err != nil {
		return nil, err
	}
	if a.frontend == "" {
		return nil, &failure{status: http.StatusServiceUnavailable, text: "RAMP_FRONTEND_URL must be set"}
	}
	page, err := a.game.openPage(r.Context(), s.ID)
	if err != nil {
		return nil, err
	}
	at, err := ramp.CatalogURL(a.frontend, ramp.CatalogParams{ProjectID: a.project, Network: a.network,
		SessionID: page.ID, AccessToken: page.Token})
	return map[string]string{"url": at, "accessToken": page.Token.Reveal()}, err
}

// mail moves what waits in the mailbox of a player who is logged in into the purse, as far
// as it fits, and answers what still waits.
func (a *api) mail(r *http.Request) (any, error) {
	var asked struct{ SessionID, AccessToken string }
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	s := ramp.Session{ID: asked.SessionID, Token: ramp.NewAccessToken(asked.AccessToken)}
	if err := a.authenticate(r.Context(), s); err != nil {
		return nil, err
	}
	waiting, err := a.game.takeMail(r.Context(), s.ID)
	return map[string]any{"waiting": waiting}, err
}

// authenticate returns what the game's own client is answered without a valid token.
func (a *api) authenticate(ctx context.Context, s ramp.Session) error {
	err := a.game.loggedIn(ctx, s)
	if errors.As(err, new(*ramp.Rejection)) {
		err = &failure{status: http.StatusUnauthorized, text: "unknown session, or wrong or expired token"}
	}
	return err
}

// open makes the token of a page, asks the service for a UUID, and makes the URL that the player's
// webview opens until the UUID expires: steps 1 and 2 of a mint. The product is gold unless the
// player named one.
func (a *api) open(ctx context.Context, session, product string) (
	started *ramp.Initialization, page ramp.Session, at string, err error) {
	if err = a.game.checkOpen(ctx); err == nil {
		page, err = a.game.openPage(ctx, session) // before the service is asked, because it limits that
	}
	if err == nil {
		started, err = a.client.Initialize(ctx, ramp.InitializeRequest{Product: cmp.Or(product, "gold")})
	}
	if err == nil {
		err = a.game.startOrder(ctx, page, started.UUID)
	}
	if err == nil {
		at, err = started.ExchangeURL(a.frontend, page)
	}
	return started, page, at, err
}
