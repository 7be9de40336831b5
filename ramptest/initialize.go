package ramptest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

const mostBytes = 1 << 20 // of any body that is read

// envelope is the answer of an initialize call (interface 2.3).
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// initialize answers the one call that a studio makes (interface 4.1), with the
// failures of section 7.1.
func (s *Service) initialize(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		s.fail(w, http.StatusBadRequest, "the body did not come whole")
		return
	}
	signature := r.Header.Get(ramp.HeaderHMAC)
	if signature == "" {
		s.fail(w, http.StatusBadRequest, "X-HMAC-Signature is required")
		return
	}
	if err := s.config.Key.Verify(body, signature); err != nil {
		s.fail(w, http.StatusInternalServerError, "invalid mac")
		return
	}
	var request ramp.InitializeRequest
	if err := json.Unmarshal(body, &request); err != nil {
		s.fail(w, http.StatusBadRequest, "the body is not an initialize request")
		return
	}
	project := request.Intent.ProjectID
	if project == "" || s.config.ProjectID != "" && project != s.config.ProjectID {
		s.fail(w, http.StatusInternalServerError, "ramp not found")
		return
	}
	if !slices.Contains(s.config.Networks, request.Intent.Network) {
		s.fail(w, http.StatusInternalServerError, "ramp not exists")
		return
	}

	id := uuid.New()
	s.mu.Lock()
	s.pending[id] = pending{request: request, expires: s.config.Now().Add(ramp.UUIDValidity)}
	s.mu.Unlock()
	write(w, http.StatusOK, envelope{Code: http.StatusOK, Message: "OK", Data: map[string]uuid.UUID{"uuid": id}})
}

func (s *Service) fail(w http.ResponseWriter, code int, data string) {
	status := code
	if s.config.FailureStatus != 0 {
		status = s.config.FailureStatus
	}
	write(w, status, envelope{Code: code, Message: http.StatusText(code), Data: data})
}

func write(w http.ResponseWriter, status int, e envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(e) // the caller is gone: nobody is left to tell
}
