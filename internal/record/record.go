// Package record watches a game and the service from between them. It passes each call on
// unchanged, writes what passed into files without secrets, and compares it with the interface: what
// deviates, which fields are new, and which open points of docs/interface.md the calls answer.
//
// It works for a game in any language, because it sees HTTP only. Names of headers come in the form
// that Go writes, and a failed connection to one side becomes a failed connection to the other:
// an answer of its own would be taken for one of the game, and could lose a result.
package record

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/transport"
)

// maxCalls is how many calls are recorded.
const maxCalls = 10_000

// Config configures a [Recorder].
type Config struct {
	Game    string // the address of the game's server: scheme, host and port. Required
	Service string // the address of the service's API, which may have a path. Without it, no initialize calls

	// The paths of the game's endpoints; they default to those of package ramp.
	AssetsPath, ValidatePath, ResultPath string

	Readings []Reading // of the HMAC key; without them the files are the same
	Secrets  []string  // what no file may hold, beside what the calls carry: the texts of the HMAC key

	Folder string           // for the files; it may not have a recording. Required
	Now    func() time.Time // by default [time.Now]
	OnCall func(Line)       // is called with each call that was recorded, one at a time
}

// Line is what a person may want to see of a call at once.
type Line struct {
	Call   int
	Kind   string
	Status int
	Took   time.Duration
	News   []string // deviations and new fields that no earlier call had
	Failed error    // why the files could not be written
}

// Recorder passes calls on and records them. Make one with [New].
type Recorder struct {
	config  Config
	game    *url.URL
	service *url.URL // nil without Config.Service
	files   *files

	mu      sync.Mutex
	waiting []*call // that passed, and are not recorded yet; it has no end, so that no call waits
	wake    *sync.Cond
	passing sync.WaitGroup
	calls   []*call
	lost    int
	number  int
	known   map[string]bool // findings that a Line had
	proven  bool            // the key has made the HMAC of a call
	closed  bool
	ended   chan struct{}
	failed  error // the first failure to write
}

// New returns a recorder. Close it to get the report.
func New(c Config) (*Recorder, error) {
	r := &Recorder{config: c, known: map[string]bool{}, ended: make(chan struct{})}
	r.wake = sync.NewCond(&r.mu)
	var err error
	if r.game, err = origin(c.Game); err != nil {
		return nil, fmt.Errorf("the game's address %w", err)
	}
	if r.game.Path != "" {
		return nil,
			errors.New("the game's address must have no path: the paths of the calls stay as they are")
	}
	if c.Service != "" {
		if r.service, err = origin(c.Service); err != nil {
			return nil, fmt.Errorf("the service's address %w", err)
		}
	}
	for path, name := range map[*string]string{&r.config.AssetsPath: ramp.PathAssets,
		&r.config.ValidatePath: ramp.PathValidate, &r.config.ResultPath: ramp.PathResult} {
		if *path == "" {
			*path = name
		}
	}
	if r.config.Now == nil {
		r.config.Now = time.Now
	}
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // it never fails
	if r.files, err = openFiles(c.Folder, salt, c.Secrets); err != nil {
		return nil, err
	}
	go r.work()
	return r, nil
}

// origin parses an address of a server.
func origin(address string) (*url.URL, error) {
	u, problem := transport.Address(address)
	if problem == "" && u.User != nil {
		problem = "must have no credentials"
	}
	if problem != "" {
		return nil, errors.New(problem)
	}
	return u, nil
}

// Game is the handler to put before the game: register its address in the service console.
func (r *Recorder) Game() http.Handler { return proxy(r, r.game, false, r.kindOf) }

// Service is the handler to put before the service's API: give its address to the game.
func (r *Recorder) Service() http.Handler {
	if r.service == nil {
		return http.NotFoundHandler()
	}
	return proxy(r, r.service, true, func(q *http.Request) kind {
		if strings.HasSuffix(q.URL.Path, "/api/v2/initialize") {
			return initialize
		}
		return ""
	})
}

// kindOf returns what a call to the game is about, or "" for a call that is not the service's.
func (r *Recorder) kindOf(q *http.Request) kind {
	_, session := q.Header[ramp.HeaderSession]
	_, signed := q.Header[ramp.HeaderHMAC]
	switch path := q.URL.Path; {
	case path == r.config.AssetsPath && q.Method == http.MethodOptions:
		return preflight
	case path == r.config.AssetsPath:
		return assets
	case path == r.config.ValidatePath:
		return validate
	case path == r.config.ResultPath:
		return result
	case session || signed:
		return elsewhere
	}
	return ""
}

// begin numbers a call. It returns nil if there were too many.
func (r *Recorder) begin(k kind) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number == maxCalls || r.closed {
		r.lost++
		return nil
	}
	r.number++
	r.passing.Add(1)
	return &call{number: r.number, kind: k, at: r.config.Now()}
}

// now is the time of the calls.
func (r *Recorder) now() time.Time { return r.config.Now() }

// end hands a call over to be recorded.
func (r *Recorder) end(c *call) {
	if c.status == 0 {
		c.ended = r.config.Now()
	}
	r.mu.Lock()
	r.waiting = append(r.waiting, c)
	r.mu.Unlock()
	r.wake.Signal()
	r.passing.Done()
}

// work records calls until the recorder is closed and none waits.
func (r *Recorder) work() {
	defer close(r.ended)
	for {
		r.mu.Lock()
		for len(r.waiting) == 0 && !r.closed {
			r.wake.Wait()
		}
		waiting := r.waiting
		r.waiting = nil
		r.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		for _, c := range waiting {
			r.record(c)
		}
	}
}

// record reads a call, and writes its files and the report.
func (r *Recorder) record(c *call) {
	c.read(r.config.Readings)
	r.proven = r.proven || c.proven()
	forged := r.proven && c.forged()
	err := r.files.write(c, forged)
	line := Line{Call: c.number, Kind: string(c.kind), Status: c.status, Took: c.ended.Sub(c.at)}
	for _, text := range append(c.deviation, c.fresh...) {
		if forged {
			break
		}
		if text = string(c.kind) + ": " + text; !r.known[text] {
			r.known[text] = true
			line.News = append(line.News, text)
		}
	}
	c.body, c.answer = nil, nil // the facts stay
	r.mu.Lock()
	r.calls = append(r.calls, c)
	r.mu.Unlock()
	line.Failed = errors.Join(err, r.files.writeReport(r.Report()))
	r.mu.Lock()
	if r.failed == nil {
		r.failed = line.Failed
	}
	r.mu.Unlock()
	if r.config.OnCall != nil {
		r.config.OnCall(line)
	}
}

// Report returns what the calls that were recorded show.
func (r *Recorder) Report() *Report {
	r.mu.Lock()
	calls, lost := r.calls[:len(r.calls):len(r.calls)], r.lost
	r.mu.Unlock()
	return report(newHistory(believed(calls), r.config.Now(), len(r.config.Readings) > 0), lost)
}

// Close waits for the calls that are passing, writes the last report, and returns it. The error is the
// first with which a file could not be written.
func (r *Recorder) Close() (*Report, error) {
	r.passing.Wait()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wake.Signal()
	<-r.ended
	last := r.Report()
	return last, errors.Join(r.failed, r.files.writeReport(last), r.files.log.Close())
}
