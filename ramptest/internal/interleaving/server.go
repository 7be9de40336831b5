package interleaving

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// shared is what all servers have in common.
type shared struct {
	*database
	playing atomic.Bool // whether statements stop
	events  chan event
	names   map[string]string // of order and transaction IDs, the same in every run

	mu    sync.Mutex
	later []*Statement // what the servers have sent since the run
}

// note keeps a statement that is sent without a stop.
func (s *shared) note(st *Statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later = append(s.later, st)
}

// Later returns what the servers have sent since the run, or since Later was called.
func (s *shared) Later() []*Statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.later
	s.later = nil
	return sent
}

// event is that a server stops before a statement, waits for SQLite, is to be killed with all
// others, or has answered.
type event struct {
	*server
	stops    *Statement
	waits    bool
	killed   bool
	answered bool
}

// server is one of the servers.
type server struct {
	*shared
	n  int
	db *sql.DB

	mu    sync.Mutex
	conns map[interface{ sever() }]bool
	dead  atomic.Bool  // whether its process was killed
	open  atomic.Int32 // its transactions

	// Of the run, for the scheduler:
	cancel   context.CancelFunc // the call's
	at       []*Statement       // before the first of which it has stopped
	sent     *Statement         // the last
	waits    bool               // for a lock
	answered bool
	heard    bool // answered before anything killed it
}

func (s *server) forget(c interface{ sever() }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *server) remember(c interface{ sever() }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
}

// sever breaks all of its connections.
func (s *server) sever() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.sever()
	}
}

// finished reports whether nothing will come of it any more. After a canceled call,
// database/sql rolls back in the background.
func (s *server) finished() bool { return s.answered && s.open.Load() == 0 && len(s.at) == 0 }

func (s *server) runs() bool { return !s.finished() && len(s.at) == 0 && !s.waits }
