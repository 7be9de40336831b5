package pages

import (
	"net/url"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
)

// readingView is what the player owns, as the game last reported it, and how to ask
// again.
type readingView struct {
	frontend.Player
	At     string     // when the game was asked
	Action string     // the form that asks again
	Fields url.Values // its fields
}

// read returns what a player owns, as the game last reported it.
func (s *visit) read(q frontend.PlayerQuery) (readingView, *problem) {
	p, err := s.service.Player(s.r.Context(), q)
	if err != nil {
		return readingView{}, &problem{Said: say(err)}
	}
	v := readingView{Player: p, At: s.stamp(p.At)}
	if !p.Unknown || s.down() != nil { // the page says that the game is down
		return v, nil
	}
	unread := &problem{Said: p.Problem}
	if e, ok := s.last(frontend.CallsQuery{Pick: frontend.Wrong, Routine: true, Session: q.Session},
		control.KindAssets); ok {
		s.explain(unread, &e)
	}
	return v, unread
}
