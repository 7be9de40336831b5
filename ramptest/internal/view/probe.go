package view

import (
	"context"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
)

// probing is what the game's answers to calls that are no orders have shown so far. A page that shows it
// asks for it again and again, so that the game is asked only sometimes.
type probing struct {
	turn chan struct{} // has room for one who asks
	last frontend.Probe
	next time.Time // the real time before which the game is not asked again
}

func newProbing() *probing { return &probing{turn: make(chan struct{}, 1)} }

// The limits of a probe, in real time. Whoever mends something sees the effect soon. A game that answers is
// asked more rarely, because its log has each probe.
const (
	probeAgain = 5 * time.Second
	probeLater = time.Minute
)

// ask asks the game if the last answer is old and shows what may change.
func (p *probing) ask(ctx context.Context, asked *game.Game) frontend.Probe {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return frontend.Probe{}
	}
	defer func() { <-p.turn }()
	if p.last.Apart || time.Now().Before(p.next) {
		return p.last
	}
	var found frontend.Probe
	found.Call, found.Apart = asked.Probe(ctx)
	if ctx.Err() != nil { // the reader is gone
		return found
	}
	pause := probeAgain
	if found.Call.Answer != nil && !game.NamesHMAC(found.Call.Outcome) {
		pause = probeLater
	}
	p.last, p.next = found, time.Now().Add(pause)
	return found
}
