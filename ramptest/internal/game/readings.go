package game

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
)

// Reading is what the game last said about a player's assets, and when. The pages
// show it, so that viewing a page does not call the game.
type Reading struct {
	Player *ramp.Player
	Err    error // of the call; Player is then nil
	At     time.Time
}

// Rejection returns the HTTP status with which the game rejected the session, or 0 if it did not.
func (r Reading) Rejection() int {
	if rejected := RejectionOf(r.Err); rejected != nil && rejected.Status < http.StatusInternalServerError {
		return rejected.Status
	}
	return 0
}

// Problem says why the game did not list the assets, and what to do; "" if it did.
func (r Reading) Problem() string {
	if r.Err == nil {
		return ""
	}
	switch r.Rejection() {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusOK:
		return text.Sentence(r.Err) +
			" If the session has expired, log in again, and the books read with the new session."
	}
	return text.Sentence(r.Err)
}

// maxReadings bounds the readings of a service that runs for weeks.
const maxReadings = 1_000

// readings holds the last reading of each session, and who was let in.
type readings struct {
	mu     locks.Mutex
	last   map[readingKey]Reading
	guests map[string]guest // by session ID

	maxGuests int // 0 is maxReadings
}

// guest is a session that the game has accepted, with its newest token.
type guest struct {
	session          ramp.Session
	server, playerID string
	robbed           bool // it was asked for like a thief
	asked            bool // the game has answered all of that
}

// readingKey is the key of a session. It includes the token, so that a caller with a
// wrong token does not see what was read with the right one.
type readingKey struct{ id, token string }

func keyOf(s ramp.Session) readingKey { return readingKey{s.ID, s.Token.Reveal()} }

func (r *readings) keep(s ramp.Session, read Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || len(r.last) >= maxReadings {
		r.last = make(map[readingKey]Reading)
	}
	r.last[keyOf(s)] = read
	if r.guests == nil {
		r.guests = make(map[string]guest)
	}
	if g, known := r.guests[s.ID]; read.Err == nil &&
		(known || len(r.guests) < cmp.Or(r.maxGuests, maxReadings)) {
		r.guests[s.ID] = guest{s, read.Player.Server, read.Player.PlayerID, g.robbed, g.asked}
	}
}

// robbed notes that a session was asked for like a thief, and whether the game has answered all of that.
func (r *readings) robbed(session string, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g, known := r.guests[session]; known {
		g.robbed, g.asked = true, g.asked || answered
		r.guests[session] = g
	}
}

// wasRobbed reports whether a session was asked for like a thief.
func (r *readings) wasRobbed(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guests[session].robbed
}

// accepted returns the sessions that the game has accepted, sorted.
func (r *readings) accepted() []guest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.guests), func(x, y guest) int {
		return strings.Compare(x.session.ID, y.session.ID)
	})
}

// tokens returns the access tokens of the sessions that the game has accepted.
func (r *readings) tokens() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.guests {
		list = append(list, g.session.Token.Reveal())
	}
	return list
}

func (r *readings) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.guests = nil, nil
}

func (r *readings) of(s ramp.Session) (read Reading, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read, ok = r.last[keyOf(s)]
	return read, ok
}
