package report

import (
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Find returns the order of a UUID.
func Find(s *emulator.Service, id uuid.UUID) (*order.Order, error) {
	if o := s.Orders.Shown(id); o != nil {
		return o, nil
	}
	return nil, Errorf(control.CodeNotFound, "there is no order with this UUID")
}

// Session returns a session by its ID. Its token is that of its last order, unless one is given.
func Session(s *emulator.Service, id, token string) (ramp.Session, error) {
	session := trade.Received(ramp.Session{ID: id, Token: ramp.NewAccessToken(token)})
	switch {
	case session.ID == "":
		return session, Invalid("session_id is required")
	case session.Token.Reveal() != "":
		return session, nil
	}
	for _, o := range s.Orders.All() { // newest first
		if o.Session.ID == session.ID {
			return o.Session, nil
		}
	}
	return session, Invalid("access_token is required: no order of this session is known")
}

// Issue issues a UUID, as for an initialize call with the terms.
func Issue(s *emulator.Service, terms *control.Terms) (uuid.UUID, error) {
	id, unknown, problem := s.Console.Issue(terms)
	switch {
	case unknown == emulator.UnknownProject:
		return id, Invalid("terms.project_id is missing, or is not that of this service")
	case unknown != "":
		return id, Invalid("terms.network must be a network of this service")
	case problem != "":
		return id, Invalid("%s", strings.Replace(problem, "intent.", "terms.", 1))
	}
	return id, nil
}
