package game

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// Assets asks for a user's assets (interface 2.4). status is that of the answer, or 0.
func (s *Game) Assets(ctx context.Context, session ramp.Session, id uuid.UUID) (player *ramp.Player,
	status int, err error) {
	c := Call{Kind: control.KindAssets, id: id,
		method: http.MethodGet, path: s.config.AssetsPath, session: session}
	failure, _ := s.Failing.Take()
	c.Lost, c.Fault = failure != "", failure
	if failure == AssetsNoAnswer {
		c.slow = s.config.Timeout
	}
	enter := s.config.Reading(session)
	a, err := s.exchange(ctx, c, func(a *Answer) (err error) {
		player, err = checkAssets(a)
		return err
	})
	if err != nil { // also if the answer was lost
		player = nil
	}
	if a != nil {
		status = a.Status
	}
	s.readings.keep(session, Reading{player, err, s.config.Now()})
	if err == nil {
		enter(s.withMail(session, player))
	}
	return player, status, err
}

// Owned is [Game.Assets], with what waits for the player outside of the list.
func (s *Game) Owned(ctx context.Context, session ramp.Session, id uuid.UUID) (*ramp.Player, int, error) {
	player, status, err := s.Assets(ctx, session, id)
	return s.withMail(session, player), status, err
}

// withMail returns a player with what waits outside of the list of assets.
func (s *Game) withMail(session ramp.Session, player *ramp.Player) *ramp.Player {
	if player == nil || s.config.Mailbox == nil {
		return player
	}
	all := *player
	all.Assets = slices.Concat(player.Assets, s.config.Mailbox(session))
	return &all
}
