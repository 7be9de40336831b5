package emulator

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/access"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/clock"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
)

// shared is what the parts of a service have in common.
type shared struct {
	config  *Config
	Clock   *clock.Clock
	History *history.History
	Life    *life.Lifetime
	Guard   *access.Guard
	changes *changes
	Audit   *audit.Auditor
	secrets history.Secrets
}

// called reads a call to the service, and begins its event.
func (s *shared) called(kind control.Kind, w http.ResponseWriter, r *http.Request) (event control.Event,
	body []byte, err error) {
	event = control.Event{Time: s.Clock.Now(), Kind: kind}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	event.Request = &control.Message{Method: r.Method, Path: r.URL.Path, Header: r.Header, Body: string(body)}
	return event, body, err
}

// respond records a call to the service, and answers it.
func (s *shared) respond(w http.ResponseWriter, r *http.Request, event control.Event, status int,
	text []byte) {
	event.Answer = &control.Message{Status: status, Body: string(text)}
	event.Took = control.Duration(s.Clock.Now().Sub(event.Time))
	s.History.Exchange(event, s.secrets.With(history.Credentials(r.Header)...))
	w.WriteHeader(status)
	_, _ = w.Write(text) // an error means that the caller is gone
}

// breakOff records a call to the service, and ends it without a whole answer: after the first
// half of text, or if there is none when the caller gives up.
func (s *shared) breakOff(w http.ResponseWriter, r *http.Request, event control.Event, text []byte) {
	event.Took = control.Duration(s.Clock.Now().Sub(event.Time))
	s.History.Exchange(event, s.secrets.With(history.Credentials(r.Header)...))
	if text == nil {
		select {
		case <-r.Context().Done():
		case <-s.Life.Alive.Done():
		}
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush() // the caller sees what there is
	}
	panic(http.ErrAbortHandler)
}

// recordChain records an event on a chain. id is the order, or zero. tx describes the
// transaction.
func (s *shared) recordChain(id uuid.UUID, tx control.Event, what string, args ...any) {
	tx.Time, tx.Kind, tx.UUID = s.Clock.Now(), control.KindChain, id
	tx.Outcome = string(tx.Network) + " " + fmt.Sprintf(what, args...)
	s.History.Add(tx)
}
