package ramptest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

var (
	// ErrLostAnswer says that the studio may have acted, but its answer has not
	// come: see [LostAnswer] and [SlowAnswer].
	ErrLostAnswer = errors.New("ramptest: the studio's answer was lost")

	// ErrForged says that the studio accepted a call that the service has not
	// signed (interface 5.2). Of a validate call, [Service.Mint] and
	// [Service.Burn] return it; of a result, [Delivery].Err of the first delivery
	// has it, and the genuine call follows all the same.
	ErrForged = errors.New("ramptest: the studio accepted a call whose HMAC is not that of its body")
)

var errNoStudio = errors.New("ramptest: there is no server of a studio yet: set Config.Game or Config.Handler, or call Service.SetHandler")

// call is one request of the service to the studio.
type call struct {
	kind    Kind
	id      uuid.UUID
	attempt int
	method  string
	path    string
	session ramp.Session
	hmac    string // of the body; none for an assets call
	body    []byte

	fault  string        // what is scripted about it
	forged bool          // the studio must refuse it, and may do so without an answer
	lost   bool          // nobody hears the answer
	slow   time.Duration // how long the answer takes at least
}

// answer is what the studio's server said.
type answer struct {
	status int
	body   []byte
}

// post is a validate or a result call of an order.
func (s *Service) post(kind Kind, o *Order, attempt int, body []byte) call {
	path := s.config.ValidatePath
	if kind == KindResult {
		path = s.config.ResultPath
	}
	return call{kind: kind, id: o.UUID, attempt: attempt, method: http.MethodPost, path: path,
		session: o.Session, hmac: s.config.Key.Sign(body), body: body}
}

// header are the headers of a call (interface 4.3). Their names have the case in
// which the service writes them: another one for assets than for the others.
func (c *call) header() http.Header {
	bearer := "Bearer " + c.session.Token.Reveal()
	if c.kind == KindAssets {
		return http.Header{
			"Content-Type":         {"application/json"},
			"X-Dapp-Authorization": {bearer},
			"X-Dapp-SessionID":     {c.session.ID},
		}
	}
	header := map[string][]string{
		"Content-Type":         {"application/json"},
		"x-dapp-authorization": {bearer},
		"x-dapp-sessionid":     {c.session.ID},
	}
	if c.hmac != "" {
		header["x-hmac-signature"] = []string{c.hmac}
	}
	return header
}

// exchange makes a call, has its answer judged, and records both. Its error is
// that of judge if there was an answer. The answer is there even if nobody heard
// it in time.
func (s *Service) exchange(ctx context.Context, c call, judge func(*answer) error) (*answer, error) {
	event := Event{Time: s.Now(), Kind: c.kind, UUID: c.id, Attempt: c.attempt, Fault: c.fault}
	secrets := redact.New(c.session.Token.Reveal(), c.hmac)
	event.Request = &Message{Method: c.method, Path: c.path, Header: redactHeader(c.header(), secrets), Body: redactBody(c.body, secrets)}

	a, header, err := s.send(ctx, c)
	if c.slow > 0 {
		s.clock.pass(ctx, min(c.slow, s.config.Timeout))
	}
	switch event.Took = s.Now().Sub(event.Time); {
	case err != nil:
		event.Outcome = err.Error()
		if c.forged {
			err = nil
		}
	default:
		event.Answer = &Message{Status: a.status, Header: redactHeader(header, secrets), Body: redactBody(a.body, secrets)}
		event.Outcome = outcome(a)
		if c.lost || c.slow > s.config.Timeout {
			err = ErrLostAnswer
			event.Outcome += ", which nobody heard"
		} else if err = judge(a); err != nil && !isDeclined(err) {
			event.Outcome = err.Error()
		}
	}
	err = redactError(err, secrets)
	event.Outcome = secrets.Text(event.Outcome)
	event.Failed = err != nil
	s.record.add(event)
	return a, err
}

// send makes a call and reads the answer whole.
func (s *Service) send(ctx context.Context, c call) (*answer, http.Header, error) {
	studio := s.studio.Load()
	if studio == nil {
		return nil, nil, errNoStudio
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.method, studio.address+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, nil, fmt.Errorf("ramptest: %w", err)
	}
	request.Header = c.header()
	response, err := studio.client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("ramptest: the studio did not answer: %w", err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, s.config.MaxBody))
	if err != nil {
		return nil, nil, fmt.Errorf("ramptest: the studio's answer did not come whole: %w", err)
	}
	return &answer{status: response.StatusCode, body: read}, response.Header, nil
}

// memory carries requests to a handler without a network.
type memory struct {
	handler http.Handler
	running *group // has each call of the handler
}

// RoundTrip gives the handler what a server would have given it.
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close() // it was read whole, or failed
		if err != nil {
			return nil, err
		}
	}
	served := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), bytes.NewReader(body))
	served.Host = cmp.Or(r.Host, r.URL.Host)
	for name, values := range r.Header {
		for _, value := range values {
			served.Header.Add(name, value) // a server, too, gives names their one form
		}
	}
	recorder := httptest.NewRecorder()
	done := make(chan error, 1)
	m.running.run(func() {
		err := errors.New("the handler ended its goroutine")
		defer func() { done <- err }() // after runtime.Goexit too, as of a test that fails
		err = serve(m.handler, recorder, served)
	})
	var err error
	select {
	case err = <-done:
	case <-r.Context().Done():
	}
	if err := cmp.Or(r.Context().Err(), err); err != nil {
		return nil, err // nobody waits for it any more
	}
	response := recorder.Result()
	response.Request = r
	return response, nil
}

// serve calls a handler. Where a server would drop the connection, it fails. A
// server logs the stack of a panic that was not meant, so the error has it.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			err = fmt.Errorf("the handler panicked: %v", cause)
		default:
			err = fmt.Errorf("the handler panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}
