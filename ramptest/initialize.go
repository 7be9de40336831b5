package ramptest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// InitializeFailure is a way in which an initialize call fails.
type InitializeFailure string

// The failures of the interface (7.1), each named by its data, and two that it
// does not show: what a proxy answers, and a limit on the rate of calls (8).
const (
	HMACRequired  InitializeFailure = "X-HMAC-Signature is required" // code 400
	InvalidMAC    InitializeFailure = "invalid mac"                  // code 500
	RampNotFound  InitializeFailure = "ramp not found"               // code 500: no such project
	RampNotExists InitializeFailure = "ramp not exists"              // code 500: no such network
	Unavailable   InitializeFailure = "unavailable"                  // HTTP 503 without the envelope
	TooMany       InitializeFailure = "too many requests"            // HTTP 429 without the envelope, Retry-After 1 second
)

// promise is an initialize call that was answered.
type promise struct {
	request ramp.InitializeRequest
	expires time.Time
	lost    int // validate answers that nobody heard, see [LostAnswer]
}

// envelope is the answer of an initialize call (interface 2.3).
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// FailInitialize lets the next initialize calls fail, one for each failure, in
// this order, whatever they ask.
func (s *Service) FailInitialize(failures ...InitializeFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = append(s.failing, failures...)
}

// initialize answers the one call that a studio makes (interface 4.1), with the
// failures of section 7.1.
func (s *Service) initialize(w http.ResponseWriter, r *http.Request) {
	event := Event{Time: s.Now(), Kind: KindInitialize}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	signature := r.Header.Get(ramp.HeaderHMAC)
	event.Request = &Message{Method: r.Method, Path: r.URL.Path, Header: redactHeader(r.Header), Body: redactBody(body, signature)}

	status, answer := s.decide(body, err, signature, &event)
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // numbers and strings
	}
	w.Header().Set("Content-Type", "application/json")
	if f := InitializeFailure(event.Fault); f == Unavailable || f == TooMany {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Retry-After", "1")
		status, text = answer.Code, []byte(f)
	}
	event.Answer = &Message{Status: status, Body: string(text)}
	event.Took = s.Now().Sub(event.Time)
	s.record.add(event)
	w.WriteHeader(status)
	_, _ = w.Write(text) // the caller is gone: nobody is left to tell
}

// decide decides on an initialize call.
func (s *Service) decide(body []byte, unread error, signature string, event *Event) (int, envelope) {
	fail := func(code int, data string) (int, envelope) {
		event.Outcome, event.Failed = data, true
		status := code
		if s.config.FailureStatus != 0 {
			status = s.config.FailureStatus
		}
		return status, envelope{Code: code, Message: http.StatusText(code), Data: data}
	}
	refuse := func(f InitializeFailure) (int, envelope) {
		switch f {
		case HMACRequired:
			return fail(http.StatusBadRequest, string(f))
		case Unavailable:
			return fail(http.StatusServiceUnavailable, string(f))
		case TooMany:
			return fail(http.StatusTooManyRequests, string(f))
		default:
			return fail(http.StatusInternalServerError, string(f))
		}
	}

	s.mu.Lock()
	if len(s.failing) > 0 {
		scripted := s.failing[0]
		s.failing = s.failing[1:]
		s.mu.Unlock()
		event.Fault = string(scripted)
		return refuse(scripted)
	}
	s.mu.Unlock()

	var request ramp.InitializeRequest
	switch {
	case unread != nil:
		return fail(http.StatusBadRequest, "the body did not come whole")
	case signature == "":
		return refuse(HMACRequired)
	case s.config.Key.Verify(body, signature) != nil:
		return refuse(InvalidMAC)
	case json.Unmarshal(body, &request) != nil:
		return fail(http.StatusBadRequest, "the body is not an initialize request")
	}
	project := request.Intent.ProjectID
	switch {
	case project == "" || s.config.ProjectID != "" && project != s.config.ProjectID:
		return refuse(RampNotFound)
	case !slices.Contains(s.config.Networks, request.Intent.Network):
		return refuse(RampNotExists)
	}

	id := uuid.New()
	event.UUID, event.Outcome = id, "OK"
	s.mu.Lock()
	s.promises[id] = &promise{request: request, expires: event.Time.Add(ramp.UUIDValidity)}
	s.mu.Unlock()
	return http.StatusOK, envelope{Code: http.StatusOK, Message: "OK", Data: map[string]uuid.UUID{"uuid": id}}
}
