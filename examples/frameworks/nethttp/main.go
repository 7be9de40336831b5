// Nethttp mounts the game on http.ServeMux, with paths of its own for the service's three calls.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… RAMP_API_URL=… RAMP_FRONTEND_URL=… go run ./nethttp
package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/frameworks/game"
)

func main() { game.Main(serve) }

func serve(ctx context.Context, s *game.Server, listener net.Listener) error {
	return game.ServeHTTP(ctx, routes(s), listener)
}

// routes mounts the endpoints on the paths that are registered in the service console. What comes
// to another path there, or would be redirected, may be a result whose address is misspelled: the
// handler answers it with HTTP 500, so that it comes again, and every other call with 404.
func routes(s *game.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ramp/assets", s.Handler.Assets)
	mux.HandleFunc("/ramp/validate", s.Handler.Validate)
	mux.HandleFunc("/ramp/result", s.Handler.Result)
	mux.HandleFunc("POST /exchange/{product}", func(w http.ResponseWriter, r *http.Request) {
		exchange(s, w, r)
	})
	mux.Handle("/", s.Handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "//") { // which mux would redirect
			s.Handler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// exchange starts an order of the player who is logged in.
func exchange(s *game.Server, w http.ResponseWriter, r *http.Request) {
	session := ramp.Session{
		ID:    r.Header.Get("X-Session"),
		Token: ramp.NewAccessToken(r.Header.Get("X-Token")),
	}
	page, status := s.Exchange(r.Context(), session, r.PathValue("product"))
	w.WriteHeader(status)
	if status == http.StatusOK {
		_ = json.NewEncoder(w).Encode(map[string]string{"url": page})
	}
}
