// Package ownledger serves a game of a test that keeps a ledger of its own, right or wrong, as a
// server in another language would: it sees each call of the service instead of the steps of a
// store. The emulator and the judge are tested with such games.
package ownledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
)

// Game handles orders with a ledger of its own.
type Game interface {
	ramp.Players

	// Validate approves or rejects a validate call, as the Apply of a store does.
	Validate(ctx context.Context, s ramp.Session, r *ramp.ValidateRequest) error

	// Result takes the outcome of a transaction.
	Result(ctx context.Context, s ramp.Session, r *ramp.Result) error
}

// Handler returns a handler whose players and orders are those of a game.
func Handler(c ramp.HandlerConfig, game Game) (http.Handler, error) {
	c.Players, c.Store = game, store{game}
	handler, err := ramp.NewHandler(c)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served := &call{header: r.Header}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, served))
		if r.Body != nil {
			r.Body = &tee{r.Body, &served.body}
		}
		handler.ServeHTTP(w, r)
	}), nil
}

// call is what a handler has read of a call.
type call struct {
	header http.Header
	body   bytes.Buffer
}

type callKey struct{}

type tee struct {
	io.ReadCloser
	read *bytes.Buffer
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.read.Write(p[:n])
	return n, err
}

// store passes the calls on, instead of their steps.
type store struct{ game Game }

func (s store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	served := ctx.Value(callKey{}).(*call)
	step, err := next(nil)
	switch {
	case err == nil:
		r, err := ramp.ParseValidate(served.body.Bytes())
		if err != nil {
			return ramp.Step{}, err
		}
		session, err := ramp.ParseSession(served.header)
		if err != nil {
			return ramp.Step{}, err
		}
		r.Product, r.Tokens = step.Product, step.Tokens
		return ramp.Step{Order: step.Order}, s.game.Validate(ctx, session, r)
	case errors.Is(err, ramp.ErrOrderUnknown):
		r, err := ramp.ParseResult(served.body.Bytes())
		if err != nil {
			return ramp.Step{}, err
		}
		session, _ := ramp.ParseSession(served.header)
		session.ID = cmp.Or(strings.TrimSpace(r.SessionID), session.ID)
		return ramp.Step{Order: ramp.Order{UUID: id, SessionID: session.ID}}, s.game.Result(ctx, session, r)
	}
	return ramp.Step{}, err
}
