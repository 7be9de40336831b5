package ramp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// The paths of the interface's examples (4.3), which [Handler.ServeHTTP]
// serves.
const (
	PathAssets   = "/api/assets"
	PathValidate = "/api/validate"
	PathResult   = "/api/result"
)

// ServeHTTP serves the three endpoints on PathAssets, PathValidate and
// PathResult, and answers 404 for every other path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case PathAssets:
		h.Assets(w, r)
	case PathValidate:
		h.Validate(w, r)
	case PathResult:
		h.Result(w, r)
	default:
		refusal := &Refusal{Status: http.StatusNotFound, Code: CodeNotFound}
		for _, path := range []string{PathAssets, PathValidate, PathResult} {
			if strings.HasSuffix(r.URL.Path, path) { // the console and the mux disagree
				refusal.Err = fmt.Errorf("ramp: the path %s has a prefix: mount the handler with http.StripPrefix, or its methods one by one", path)
				h.answer(r.Context(), strings.TrimPrefix(path, "/api/"), func(*call) (any, error) { return nil, refusal })
			}
		}
		h.refuse(refusal).Write(w)
	}
}

// Assets is the Get Assets endpoint (interface 4.3).
func (h *Handler) Assets(w http.ResponseWriter, r *http.Request) {
	if h.allows(w, r, http.MethodGet) {
		h.AnswerAssets(r.Context(), r.Header).Write(w)
	}
}

// Validate is the Validate Order endpoint (interface 4.3).
func (h *Handler) Validate(w http.ResponseWriter, r *http.Request) {
	h.post(w, r, "validate", h.AnswerValidate)
}

// Result is the result endpoint (interface 4.3).
func (h *Handler) Result(w http.ResponseWriter, r *http.Request) {
	h.post(w, r, "result", h.AnswerResult)
}

func (h *Handler) post(w http.ResponseWriter, r *http.Request, endpoint string,
	answer func(context.Context, http.Header, []byte) Reply) {
	if !h.allows(w, r, http.MethodPost) {
		return
	}
	body, err := h.readBody(w, r)
	if err != nil {
		h.answer(r.Context(), endpoint, func(*call) (any, error) { return nil, err }).Write(w)
		return
	}
	answer(r.Context(), r.Header, body).Write(w)
}

// readBody reads nothing of a body that is too large, or that has no HMAC of the
// right form, and makes room for a large one only as it comes.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > h.config.MaxBody {
		return nil, refusalOf(h.tooLarge())
	}
	if _, err := hmacHeader(r.Header); err != nil {
		return nil, refusalOf(err)
	}
	const maxAtOnce = 32 << 10
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxAtOnce)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.config.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refusalOf(h.tooLarge())
	case err != nil: // a timeout or a broken connection: a result must come again
		return nil, fmt.Errorf("ramp: read the body: %w", err)
	}
	return body.Bytes(), nil
}

func (h *Handler) allows(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	h.refuse(&Refusal{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed}).Write(w)
	return false
}

// Reply is what goes back to the service.
type Reply struct {
	Status int    // HTTP status
	Body   []byte // JSON, the envelope of the interface
	Err    error  // why it is no success, a [*Refusal]; nil for success
}

// Write sends the reply.
func (r Reply) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // the caller is gone: nobody is left to tell
}
