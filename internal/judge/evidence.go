package judge

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// evidence is what all cases saw of the server. It is safe for concurrent use.
type evidence struct {
	watched  sync.Map     // the assets that were checked for moving without an order, and whether they do
	unsigned sync.Map     // by [signatureFault]: the first approval whose signature is wrong in this way
	nonces   sync.Map     // by r: the digest that was signed with it
	slowest  atomic.Int64 // the longest known time from an answer to its effect, a [time.Duration]

	mu   sync.Mutex
	sent []order // the latest validate calls
}

// signatureFault is a way in which a validatorSig is wrong.
type signatureFault int

const (
	otherForm   signatureFault = iota // it is not 0x and 130 hex digits: judged by sign-form alone
	otherSigner                       // it is not the registered key's signature of the digest
	leaked                            // the answer is a rejection
	reused                            // its r is that of a signature of another digest
)

func (e *evidence) wrongSignature(how signatureFault) string {
	text, _ := e.unsigned.Load(how)
	return literalText(text)
}

// reuses reports whether the r of a signature is that of a signature of another digest.
func (e *evidence) reuses(sig, digest string) bool {
	digest = strings.ToLower(digest)
	signed, _ := e.nonces.LoadOrStore(strings.ToLower(sig[2:66]), digest) // 0x and 130 digits
	return signed != digest
}

// sends records a validate call. The latest are kept, because an answer that is mixed up
// is that to another call at the same time.
func (e *evidence) sends(o order) {
	const most = 64
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent[max(0, len(e.sent)+1-most):], o)
}

func (e *evidence) latest() []order {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.sent)
}

// watches reports whether the caller should check if an asset moves without an order.
// It is true once for each asset.
func (e *evidence) watches(asset string) bool {
	_, again := e.watched.LoadOrStore(asset, false)
	return !again
}

// drifts reports whether an asset moves without an order.
func (e *evidence) drifts(asset string) bool {
	moves, _ := e.watched.Load(asset)
	return moves == true
}

func (e *evidence) driftsAlone(asset string) { e.watched.Store(asset, true) }

// lag returns the longest known time from an answer to its effect.
func (e *evidence) lag() time.Duration { return time.Duration(e.slowest.Load()) }

func (e *evidence) measuredLag(d time.Duration) {
	for old := e.slowest.Load(); int64(d) > old && !e.slowest.CompareAndSwap(old, int64(d)); {
		old = e.slowest.Load()
	}
}
