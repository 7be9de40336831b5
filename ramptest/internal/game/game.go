// Package game is the game's server as an emulated service reaches it: the three calls that the service makes
// (interface 4.3), and what the answers mean. What others do with a call is in [Config].
package game

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/failures"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/memory"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Config is what the calls need of a service.
type Config struct {
	Key                                  ramp.HMACKey
	AssetsPath, ValidatePath, ResultPath string
	Timeout                              time.Duration
	MaxBody                              int64
	Retry                                func(status int) bool // whether a result is sent again
	Mailbox                              func(ramp.Session) []ramp.Asset
	UUIDDigits                           bool     // UUIDs are written without hyphens
	ResultType                           string   // the Content-Type of a result; "" is that of the others
	Regenerating                         []string // assets that move by themselves
	Audited                              bool     // what the player owns is read before each call
	NoThief                              bool     // nobody asks like a thief
	MaxGuests                            int      // how many sessions a thief asks for; 0 is 1,000

	Now     func() time.Time
	Pass    func(context.Context, time.Duration) // lets the time of a slow answer pass
	Secrets history.Secrets

	// Record records an exchange, without the secrets.
	Record func(control.Event, history.Secrets)

	// Reading is called when the assets of a session are asked for. What it returns is called with the
	// answer.
	Reading func(ramp.Session) (enter func(*ramp.Player))

	// Watch is called before each call about an order that the service has placed.
	Watch func(context.Context, audit.Call) Watch
}

// Watch is what the audit does with a call, see [audit.Entry].
type Watch struct {
	Opposite, Fits bool
	Owned          func(listed *ramp.Player) (owned tally.Assets, lacks string)
	Close          func(ctx context.Context, answer tally.Answer, status int, sent bool)
}

// Game is the game's server, as the service reaches it.
type Game struct {
	config Config
	to     atomic.Pointer[destination] // nil until set

	readings readings
	thief    thief
	Failing  failures.List[string] // of the assets calls: [AssetsLost] and the others
}

// New returns a game that is nowhere until [Game.Reach].
func New(config Config) *Game {
	return &Game{config: config,
		readings: readings{mu: locks.At(locks.Readings), maxGuests: config.MaxGuests},
		Failing:  failures.New[string]()}
}

// The failures of an assets call, for the history.
const (
	AssetsLost     = "lost answer" // the answer is lost at once
	AssetsNoAnswer = "no answer"   // until the service gives up
	AssetsCutOff   = "cut off"     // half of the answer arrives
)

// destination is where the calls go.
type destination struct {
	address string // without a slash at its end
	client  *http.Client
}

// Reach sets the address of the game's server.
func (s *Game) Reach(address string, client http.Client) {
	client.CheckRedirect = gamecall.SameAddress
	s.to.Store(&destination{strings.TrimRight(address, "/"), &client})
}

// IsInMemory reports whether the calls go to a handler in memory.
func (s *Game) IsInMemory() bool {
	to := s.to.Load()
	if to == nil {
		return false
	}
	_, is := to.client.Transport.(memory.Transport)
	return is
}

// Read returns what the game last said about the assets of a session, if it was asked.
func (s *Game) Read(session ramp.Session) (read Reading, ok bool) { return s.readings.of(session) }

// Reset forgets what the game has said, and the scripted failures.
func (s *Game) Reset() {
	s.Failing.Reset()
	s.readings.reset()
	s.thief.reset()
}
