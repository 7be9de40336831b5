package conformance

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// evidence is what all cases saw of the server. It is safe for concurrent use.
type evidence struct {
	mu       sync.Mutex
	slowest  time.Duration             // the longest known time from an answer to its effect
	watched  map[string]bool           // the assets that were checked for moving without an order
	drifting map[string]bool           // the assets that move without an order
	unsigned map[signatureFault]string // the first approval whose signature is wrong in this way
	nonces   map[string]string         // the digest that was signed with an r
	sent     []order                   // the latest validate calls
}

func (e *evidence) wrongSignature(how signatureFault) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unsigned[how]
}

// saw records the first approval whose signature is wrong in a way.
func (e *evidence) saw(name string, how signatureFault, wrong string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unsigned[how] == "" {
		e.unsigned[how] = wrong + ", in " + cmp.Or(name, "the opening")
	}
}

// reuses reports whether the r of a signature is that of a signature of another digest.
func (e *evidence) reuses(sig, digest string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := strings.ToLower(sig[2:66]) // 0x and 130 digits
	digest = strings.ToLower(digest)
	if e.nonces[r] == "" {
		e.nonces[r] = digest
	}
	return e.nonces[r] != digest
}

// sends records a validate call. The latest are kept, because an answer that is mixed up
// is that to another call at the same time.
func (e *evidence) sends(o order) {
	const most = 64
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent = append(e.sent, o); len(e.sent) > most {
		e.sent = e.sent[1:]
	}
}

func (e *evidence) latest() []order {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.sent)
}

// watches reports whether the caller should check if an asset moves without an order.
// It is true once for each asset.
func (e *evidence) watches(asset string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.watched[asset]
	e.watched[asset] = true
	return first
}

// drifts reports whether an asset moves without an order.
func (e *evidence) drifts(asset string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drifting[asset]
}

func (e *evidence) driftsAlone(asset string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drifting[asset] = true
}

// lag returns the longest known time from an answer to its effect.
func (e *evidence) lag() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.slowest
}

func (e *evidence) measuredLag(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slowest = max(e.slowest, d)
}
