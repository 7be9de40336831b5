package game

import "sync"

// thief is what was learned by asking like one.
type thief struct {
	mu    sync.Mutex
	told  map[int]bool // by the kind of call
	found []string     // each kind once, in sentences
	doubt string       // the first session that only Authenticate has let in
}

// reset forgets what was learned.
func (t *thief) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told, t.found, t.doubt = nil, nil, ""
}
