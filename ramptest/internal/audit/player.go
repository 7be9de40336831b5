package audit

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

type player struct {
	name    string       // as the game last reported it; "" if unknown
	session ramp.Session // the newest that the game has accepted
	books   tally.Player
	window  *window // the open window, or nil
	waiting int     // calls that wait for the next window
	named   bool    // the game returns a player_id
	income  bool    // what has moved since the last reading belongs to no order
}

// window is the time between two readings of a player's assets. It has one call, or several
// that overlap: calls about one order, or validate calls about several. What a result moves would
// otherwise be mixed up with the effects of other orders.
type window struct {
	player  *player
	session ramp.Session // used to ask for the assets
	id      uuid.UUID    // the order that it was opened for
	order   Subject      // that order
	several bool         // it has calls about other orders, too
	alone   bool         // it admits none about another order
	result  bool         // it has a result
	ready   bool         // before was read
	before  tally.Assets // nil if unknown
	stray   bool         // who the player is was unknown; it may be any
	strayed int          // as the books counted when it was opened
	open    int          // calls in progress
	calls   []tally.Call // those that have ended

	orders []*tally.Tally // of its calls
	beside []*tally.Tally // of the windows of other players that were open meanwhile
}

// admits reports whether a call may join the window.
func (w *window) admits(c *Call) bool {
	switch {
	case w.result || c.Result || w.alone || c.Alone:
		return !w.several && w.isAbout(&c.Order)
	default:
		return w.id == c.Order.UUID || w.player.waiting == 0
	}
}

// isAbout reports whether the window was opened for an order. There may be two under a UUID.
func (w *window) isAbout(o *Subject) bool {
	return w.id == o.UUID && w.order.Mint == o.Mint && w.order.Sum.Equal(o.Sum)
}

// join enters that a call begins.
func (w *window) join(c *Call) {
	w.open++
	w.several = w.several || !w.isAbout(&c.Order)
	w.result, w.alone = w.result || c.Result, w.alone || c.Alone
}

// sent returns the calls that have reached the game.
func (w *window) sent() []tally.Call {
	return slices.DeleteFunc(slices.Clone(w.calls), func(c tally.Call) bool { return c.Order == nil })
}

// keyOf returns the key of a player whom the game names. A session of an unknown player has
// another; see strangerOf.
func keyOf(p *ramp.Player) string { return "player " + p.Server + "\x00" + p.PlayerID }

// strangerOf is the key of whoever has a session, while the player is unknown.
func strangerOf(session string) string { return "session " + session }

// playerID returns the player_id in a key, or "" if it has none.
func playerID(key string) string {
	_, id, _ := strings.Cut(key, "\x00")
	return id
}
