package ramptest

import (
	"crypto/sha256"
	"sync"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// reading is what the game said that a player owns, and when. The pages show it,
// so that nobody calls the game by looking at a page.
type reading struct {
	player *ramp.Player
	err    error // of the call, instead of a player
	at     time.Time
}

// maxReadings bounds what a service that runs for weeks keeps.
const maxReadings = 1_000

// readings are the last readings of sessions.
type readings struct {
	mu   sync.Mutex
	last map[[sha256.Size]byte]reading
}

// readingKey tells sessions apart by their tokens too: whoever has none of them must
// not see what was read with another one.
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

func (r *readings) of(s ramp.Session) (read reading, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read, ok = r.last[readingKey(s)]
	return read, ok
}
