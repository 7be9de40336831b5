package ramptest

import (
	"cmp"
	"crypto/sha256"
	"sync"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// reading is what the game last said about a player's assets, and when. The pages
// show it, so that viewing a page does not call the game.
type reading struct {
	player *ramp.Player
	err    error // of the call; player is then nil
	at     time.Time
}

// name returns the name of the player.
func (r reading) name() string {
	if r.player == nil {
		return "the player"
	}
	return cmp.Or(r.player.Name, r.player.PlayerID, "the player")
}

// maxReadings bounds the readings of a service that runs for weeks.
const maxReadings = 1_000

// readings holds the last reading of each session.
type readings struct {
	mu   sync.Mutex
	last map[[sha256.Size]byte]reading
}

// readingKey returns the key of a session. It includes the token, so that a caller
// with a wrong token does not see what was read with the right one.
func readingKey(s ramp.Session) [sha256.Size]byte {
	return sha256.Sum256([]byte(s.ID + "\x00" + s.Token.Reveal()))
}

func (r *readings) keep(s ramp.Session, read reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || len(r.last) >= maxReadings {
		r.last = make(map[[sha256.Size]byte]reading)
	}
	r.last[readingKey(s)] = read
}

func (r *readings) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = nil
}

func (r *readings) of(s ramp.Session) (read reading, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read, ok = r.last[readingKey(s)]
	return read, ok
}
