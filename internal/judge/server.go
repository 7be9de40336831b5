package judge

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// server is what all trials of a judge know of the server. It is safe for concurrent use.
type server struct {
	client *http.Client
	dial   func(ctx context.Context, network, address string) (net.Conn,
		error) // also for calls that are cut off

	learned
	players
	evidence
	layers layers      // what stands before the handler
	hangs  atomic.Bool // it does not answer results of orders that it does not know
	run    run
}

// run is a run of cases, which ends early if nothing more can be tried.
type run struct {
	mu   sync.Mutex
	gone error // why
}

// stop ends the run, for the first reason that is given.
func (r *run) stop(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = cmp.Or(r.gone, why)
}

// resume goes on, and returns why the run had ended.
func (r *run) resume() (gone error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone, r.gone = r.gone, nil
	return gone
}

func (r *run) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}
