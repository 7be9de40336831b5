package audit

import (
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// SavedPlayer is what a state file keeps of a player.
type SavedPlayer struct {
	Name          string `json:",omitempty"`
	Last, Outside tally.Assets
}

// Save returns the key of an order's player, or "" if the player is unknown, and the books of
// the order and of the player. It treats an open window as not yet opened.
func (b *Auditor) Save(o Subject) (key string, entries []tally.Tally, saved *SavedPlayer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entry := range b.orders[o.UUID] {
		entries = append(entries, *entry)
	}
	key = b.keys[o.Session.ID]
	if p := b.players[key]; p != nil {
		saved = &SavedPlayer{p.name, p.books.Last, p.books.Outside}
		if p.books.Pending != nil { // what has moved since is not known
			saved.Last = nil
		}
	}
	return key, entries, saved
}

// RestoreOrder enters what Save returned of an order.
func (b *Auditor) RestoreOrder(s ramp.Session, key string, entries []tally.Tally) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key != "" {
		b.keys[s.ID] = key
	}
	for _, saved := range entries {
		b.orders[saved.UUID] = append(b.orders[saved.UUID], &saved)
		if len(saved.Late) > 0 {
			p := b.player(s)
			p.books.Late = append(p.books.Late, &saved)
		}
	}
}

// RestorePlayer enters what Save returned of a player, after the orders.
func (b *Auditor) RestorePlayer(key string, saved *SavedPlayer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.keep(key)
	p.name, p.books.Last, p.books.Outside = saved.Name, saved.Last, saved.Outside
}

// RestoreFound enters findings that an earlier service has returned.
func (b *Auditor) RestoreFound(found []*Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found = found
	for _, f := range found {
		b.returned[f] = true
	}
}
