package ramptest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
)

// probing is what the game's answers to calls that are no orders have shown so far. A page that shows it
// asks for it again and again, so that the game is asked only sometimes.
type probing struct {
	turn chan struct{} // has room for one who asks
	last desk.Probe
	next time.Time // the real time before which the game is not asked again
}

func newProbing() *probing { return &probing{turn: make(chan struct{}, 1)} }

// The limits of a probe, in real time. Whoever mends something sees the effect soon. A game that answers is
// asked more rarely, because its log has each probe.
const (
	probeTime  = 2 * time.Second
	probeAgain = 5 * time.Second
	probeLater = time.Minute
)

// ask asks the game if the last answer is old and shows what may change.
func (p *probing) ask(ctx context.Context, game *game) desk.Probe {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return desk.Probe{}
	}
	defer func() { <-p.turn }()
	if p.last.Apart || time.Now().Before(p.next) {
		return p.last
	}
	found := game.probe(ctx)
	if ctx.Err() != nil { // the reader is gone
		return found
	}
	pause := probeAgain
	if found.Call.Answer != nil && !namesHMAC(found.Call.Outcome) {
		pause = probeLater
	}
	p.last, p.next = found, time.Now().Add(pause)
	return found
}

// probeBody is the body of a probe. It has nothing of an order, and says so to whoever finds it in a log.
const probeBody = `{"probe":"This is no order. The ramp emulator tries whether it has the game's HMAC key."}`

// probe makes a validate call whose HMAC is right and whose body is no order. Unless the answer says that
// the HMAC is wrong, it makes the same call with one that is. The calls are about nobody: they have no
// session, and are not in the record.
func (s *game) probe(caller context.Context) (p desk.Probe) {
	ctx, cancel := context.WithTimeout(caller, probeTime)
	defer cancel()
	p.Call = s.probeWith(ctx, s.config.Key.Sign([]byte(probeBody)))
	if p.Call.Answer == nil || namesHMAC(p.Call.Outcome) {
		return p
	}
	p.Apart = refusesHMAC(s.probeWith(ctx, strings.Repeat("0", 64)), p.Call)
	return p
}

// refusesHMAC reports whether a game rejected a call for its wrong HMAC. It did if it answered the same
// call with the right one otherwise: the interface has no errorCode for that. A game that fails rejects
// nothing.
func refusesHMAC(wrong, right control.Event) bool {
	switch {
	case wrong.Answer == nil, wrong.Outcome == "success":
		return false
	case namesHMAC(wrong.Outcome):
		return true
	default:
		return wrong.Answer.Status < http.StatusInternalServerError &&
			(wrong.Answer.Status != right.Answer.Status || wrong.Outcome != right.Outcome)
	}
}

// namesHMAC reports whether an outcome is one of the errorCodes of package ramp about the HMAC.
func namesHMAC(outcome string) bool {
	return outcome == string(ramp.CodeHMACInvalid) || outcome == string(ramp.CodeHMACMissing)
}

// probeWith makes a call with an HMAC and returns what happened.
func (s *game) probeWith(ctx context.Context, hmac string) control.Event {
	c := call{kind: control.KindValidate, method: http.MethodPost, path: s.config.ValidatePath,
		hmac: hmac, body: []byte(probeBody), anonymous: true}
	event := control.Event{Time: s.clock.Now(), Kind: c.kind,
		Request: &control.Message{Method: c.method, Path: c.path, Header: c.header(), Body: probeBody}}
	a, header, err := s.do(ctx, c)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		event.Outcome = fmt.Sprintf("ramptest: the game did not answer: not within %v", probeTime)
	case err != nil:
		event.Outcome = err.Error()
	default:
		event.Answer = &control.Message{Status: a.status, Header: header, Body: string(a.body)}
		event.Outcome = outcome(a)
		if _, err := open(a); err != nil && !isRejection(err) {
			event.Outcome = err.Error()
		}
	}
	return history.RedactEvent(event, s.secrets.With(hmac))
}
