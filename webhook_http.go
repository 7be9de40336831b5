package ramp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// The paths of the interface's examples (4.3), which [Handler.ServeHTTP] serves.
const (
	PathAssets   = "/api/assets"
	PathValidate = "/api/validate"
	PathResult   = "/api/result"
)

// ServeHTTP serves the three endpoints on PathAssets, PathValidate and
// PathResult, and answers 404 for every other path. A POST to another path that ends in
// /result is answered with 500, so that the service delivers it again while somebody
// corrects the path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case PathAssets:
		h.Assets(w, r)
	case PathValidate:
		h.Validate(w, r)
	case PathResult:
		h.Result(w, r)
	default:
		// The mux may strip too little, or too much, or the console have another path.
		rejection := &Rejection{Status: http.StatusNotFound, Code: CodeNotFound}
		name := path.Base(strings.ToLower(r.URL.Path))
		ours := slices.Contains([]string{"assets", "validate", "result"}, name)
		if !ours || name == "result" && r.Method != http.MethodPost {
			h.reject("", rejection).Write(w)
			return
		}
		rejection.Err = fmt.Errorf("ramp: the handler got the path %.100q, but answers %q: "+
			"correct http.StripPrefix, or mount the methods of the handler", r.URL.Path, "/api/"+name)
		h.answer(r.Context(), name, func(*call) error { return rejection }, nil).Write(w)
	}
}

// Assets serves the Get Assets endpoint (interface 4.3).
func (h *Handler) Assets(w http.ResponseWriter, r *http.Request) {
	if h.allows(w, r, http.MethodGet) {
		h.AnswerAssets(r.Context(), r.Header).Write(w)
	}
}

// Validate serves the Validate Order endpoint (interface 4.3).
func (h *Handler) Validate(w http.ResponseWriter, r *http.Request) {
	h.post(w, r, "validate", h.AnswerValidate)
}

// Result serves the result endpoint (interface 4.3).
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
		h.answer(r.Context(), endpoint, func(*call) error { return err }, nil).Write(w)
		return
	}
	answer(r.Context(), r.Header, body).Write(w)
}

// readBody reads a body. It reads nothing of one that is too large or has no
// well-formed HMAC header, and allocates memory for a large one only as it arrives.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if _, err := hmacHeader(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > h.config.MaxBody {
		return nil, h.bodyTooLarge(h.config.MaxBody)
	}
	const maxPrealloc = 32 << 10
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxPrealloc)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.config.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large): // whose limit may be that of middleware
		return nil, h.bodyTooLarge(large.Limit)
	case err != nil: // a timeout or a broken connection
		return nil, &Rejection{Status: http.StatusInternalServerError, Code: CodeInternal, Err: fmt.Errorf("ramp: read the body: %w", err)}
	}
	return body.Bytes(), nil
}

func (h *Handler) allows(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	h.reject("", &Rejection{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed}).Write(w)
	return false
}

// Reply is the answer to a call of the service. Write sends it; with another framework,
// send Status and Body as application/json, also if Err is set.
type Reply struct {
	Status int    // HTTP status
	Body   []byte // JSON, the envelope of the interface
	Err    error  // nil for success, otherwise a [*Rejection]
}

// Write writes the reply to w.
func (r Reply) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // an error means that the caller is gone
}
