package emulator

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
)

// take returns the findings about an order that were not returned before, as an error. It
// returns nil unless the mode is Fail.
func (s *shared) take(id uuid.UUID) error {
	if s.config.Mode != Fail {
		return nil
	}
	var errs []error
	for _, found := range s.Audit.Take(id) {
		errs = append(errs, s.config.Finding(found))
	}
	return errors.Join(errs...)
}

// rejectsSession reports whether an error of an assets call means that the game rejected the session.
func rejectsSession(err error) bool {
	r := game.RejectionOf(err)
	return r != nil && r.Status < http.StatusInternalServerError
}

// newAudit returns the books of a service, which ask its game and write its record.
func (s *shared) newAudit(ask func(context.Context, ramp.Session, uuid.UUID) (*ramp.Player, int,
	error)) *audit.Auditor {
	return audit.New(audit.Config{Off: s.config.Mode == Off, Closed: s.config.Closed,
		Settle: s.config.Settle, Regenerating: s.config.Regenerating,
		Ask: ask, Rejects: rejectsSession, Changed: func(id uuid.UUID) { s.changes.note(id) },
		Judged: func(id uuid.UUID, said string, found *audit.Finding) {
			if found != nil {
				for _, id := range found.Orders {
					s.History.Lose(id, found.Problem)
				}
			}
			if id == uuid.Nil && !s.config.IsUnitTest {
				return // players play
			}
			s.History.Add(control.Event{Time: s.Clock.Now(), Kind: control.KindBooks,
				UUID: id, Outcome: said, Failed: found != nil})
		}})
}
