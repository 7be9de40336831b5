package game

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
)

// probeTime bounds a probe, in real time.
const probeTime = 2 * time.Second

// probeBody is the body of a probe. It has nothing of an order, and says so to whoever finds it in a log.
const probeBody = `{"probe":"This is no order. The ramp emulator tries whether it has the game's HMAC key."}`

// Probe makes a validate call whose HMAC is right and whose body is no order. Unless the answer says that
// the HMAC is wrong, it makes the same call with one that is. The calls are about nobody: they have no
// session, and are not in the record.
func (s *Game) Probe(caller context.Context) (call control.Event, apart bool) {
	ctx, cancel := context.WithTimeout(caller, probeTime)
	defer cancel()
	call = s.probeWith(ctx, s.config.Key.Sign([]byte(probeBody)))
	if call.Answer == nil || NamesHMAC(call.Outcome) {
		return call, false
	}
	apart = refusesHMAC(s.probeWith(ctx, strings.Repeat("0", 64)), call)
	return call, apart
}

// refusesHMAC reports whether a game rejected a call for its wrong HMAC. It did if it answered the same
// call with the right one otherwise: the interface has no errorCode for that. A game that fails rejects
// nothing.
func refusesHMAC(wrong, right control.Event) bool {
	switch {
	case wrong.Answer == nil, wrong.Outcome == "success":
		return false
	case NamesHMAC(wrong.Outcome):
		return true
	default:
		return wrong.Answer.Status < http.StatusInternalServerError &&
			(wrong.Answer.Status != right.Answer.Status || wrong.Outcome != right.Outcome)
	}
}

// NamesHMAC reports whether an outcome is one of the errorCodes of package ramp about the HMAC.
func NamesHMAC(outcome string) bool {
	return outcome == string(ramp.CodeHMACInvalid) || outcome == string(ramp.CodeHMACMissing)
}

// probeWith makes a call with an HMAC and returns what happened.
func (s *Game) probeWith(ctx context.Context, hmac string) control.Event {
	c := Call{Kind: control.KindValidate, method: http.MethodPost, path: s.config.ValidatePath,
		hmac: hmac, Body: []byte(probeBody), anonymous: true}
	event := control.Event{Time: s.config.Now(), Kind: c.Kind,
		Request: &control.Message{Method: c.method, Path: c.path, Header: c.header(), Body: probeBody}}
	a, header, err := s.do(ctx, c)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		event.Outcome = fmt.Sprintf("ramptest: the game did not answer: not within %v", probeTime)
	case err != nil:
		event.Outcome = err.Error()
	default:
		event.Answer = &control.Message{Status: a.Status, Header: header, Body: string(a.body)}
		event.Outcome = Outcome(a)
		if _, err := open(a); err != nil && !IsRejection(err) {
			event.Outcome = err.Error()
		}
	}
	return history.RedactEvent(event, s.config.Secrets.With(hmac))
}
