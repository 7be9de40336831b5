// To make it yours: answer the client of your game as your other calls do.

package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
)

// failure is an answer that is not 200. Its text is safe for the caller.
type failure struct {
	status int
	text   string
	cause  error // is logged; nil if the caller is to blame
}

func (f *failure) Error() string { return f.text }

// answer returns a handler that answers with what serve returns, as JSON.
func answer(log *slog.Logger, serve func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<14)
		status := http.StatusOK
		body, err := serve(r)
		if err != nil {
			failed := &failure{http.StatusInternalServerError, "try again", err}
			errors.As(err, &failed)
			if failed.cause != nil {
				log.ErrorContext(r.Context(), failed.text, "path", r.URL.Path, "error", failed.cause)
			}
			status, body = failed.status, map[string]string{"error": failed.text}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false) // keep URLs readable
		_ = encoder.Encode(body)     // fails only if the caller is gone
	}
}

// read reads the body of a call.
func read(r *http.Request, into any) error {
	if json.NewDecoder(r.Body).Decode(into) != nil {
		return &failure{status: http.StatusBadRequest, text: "the body must be a small JSON object"}
	}
	return nil
}
