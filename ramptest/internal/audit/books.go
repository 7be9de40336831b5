package audit

import (
	"bytes"
	"cmp"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Auditor are the books of all players. They are safe for concurrent use.
type Auditor struct {
	config Config

	mu       locks.Mutex
	turned   sync.Cond                    // signals that a window was read or closed
	players  map[string]*player           // by their keys
	keys     map[string]string            // of the players, by session
	orders   map[uuid.UUID][]*tally.Tally // one, unless the game was asked to approve two under a UUID
	placed   map[uuid.UUID]Subject        // as they were entered
	outside  int                          // how many functions of Outside run
	found    []*Finding
	unseen   string            // what the last sweep could not read, and why
	blind    string            // the same of the first sweep around Outside that failed
	asides   []string          // what moved for no order, and is no finding
	returned map[*Finding]bool // those that Take has returned
	changes  int               // how often a window was opened, joined or closed
	strays   int               // the windows so far whose player was unknown when they were opened
	strayed  int               // those of them that are closed
	waited   bool              // an effect was awaited in vain
	lag      time.Duration     // how late an effect came, at most; 0 if none came
}

// New returns empty books.
func New(c Config) *Auditor {
	b := &Auditor{config: c, mu: locks.At(locks.Books)}
	b.turned.L = &b.mu
	b.clear()
	return b
}

// Reset forgets the players, the orders and the findings.
func (b *Auditor) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	b.changes++
}

func (b *Auditor) clear() {
	b.players, b.keys = make(map[string]*player), make(map[string]string)
	b.orders, b.returned, b.found = make(map[uuid.UUID][]*tally.Tally), make(map[*Finding]bool), nil
	b.placed, b.asides, b.unseen, b.blind = make(map[uuid.UUID]Subject), nil, "", ""
}

// Forget drops a finished order.
func (b *Auditor) Forget(id uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.orders, id)
	delete(b.placed, id)
}

// player returns the books of a session's player. The caller must hold the lock.
func (b *Auditor) player(s ramp.Session) *player {
	return b.keep(cmp.Or(b.keys[s.ID], strangerOf(s.ID)))
}

// keep returns the books of a player, which it creates if needed. The caller must hold
// the lock.
func (b *Auditor) keep(key string) *player {
	if b.players[key] == nil {
		b.players[key] = &player{}
	}
	return b.players[key]
}

// Nameless returns a session for which the game has returned no player_id, or "" if there is none.
// What its player owns may belong to other sessions, too, so closed books cannot judge it.
func (b *Auditor) Nameless() (session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, key := range b.keys {
		if key == strangerOf(id) && (session == "" || id < session) {
			session = id
		}
	}
	return session
}

// Who returns the player_id of a session and the name of its player, or "" if they are
// unknown.
func (b *Auditor) Who(session string) (id, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := b.keys[session]
	if p := b.players[key]; p != nil {
		name = p.name
	}
	return playerID(key), name
}

// turn returns the number of changes, and the key of a session's player, or "".
func (b *Auditor) turn(s ramp.Session) (at int, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes, b.keys[s.ID]
}

// changed tells the service of orders about which something has become known.
func (b *Auditor) changed(orders []*tally.Tally) {
	for _, o := range orders {
		b.config.Changed(o.UUID)
	}
}

// regenerates reports whether an asset moves by itself.
func (b *Auditor) regenerates(asset string) bool {
	return slices.Contains(b.config.Regenerating, asset)
}

// Judged returns what an order moves of the assets that do not move by themselves, and the IDs
// of the others, sorted.
func (b *Auditor) Judged(sum tally.Assets) (judged tally.Assets, regenerating []string) {
	judged = tally.Assets{}
	for _, id := range sum.IDs() {
		if b.regenerates(id) {
			regenerating = append(regenerating, id)
		} else {
			judged[id] = sum[id]
		}
	}
	return judged, regenerating
}

// entry returns the books' entry of an order, or nil if there is none. The caller must hold
// the lock.
func (b *Auditor) entry(o *Subject) *tally.Tally {
	sum, _ := b.Judged(o.Sum)
	for _, known := range b.orders[o.UUID] {
		if known.Mint == o.Mint && known.Sum.Equal(sum) {
			return known
		}
	}
	return nil
}

// open makes an entry of an order for which nothing has moved. The caller must hold the lock.
func (b *Auditor) open(o *Subject) *tally.Tally {
	sum, _ := b.Judged(o.Sum)
	t := tally.NewTally(o.UUID, o.Mint, sum)
	t.Less = o.Less
	b.orders[o.UUID] = append(b.orders[o.UUID], t)
	b.placed[o.UUID] = *o
	return t
}

// Account is what the books know about an order.
type Account struct {
	tally.Tally
	Last  tally.Assets // the player's last known assets; nil if unknown
	Twins bool         // the game may have approved another order under the same UUID
}

// Account returns what the books know about an order, or nil if they know nothing.
func (b *Auditor) Account(o Subject) *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.entry(&o)
	if entry == nil {
		return nil
	}
	approved := 0
	for _, known := range b.orders[o.UUID] {
		if known.Approved || len(known.Took) > 0 {
			approved++
		}
	}
	return &Account{*entry, b.player(o.Session).books.Last, approved > 1}
}

// Unread returns the orders of which it is unknown what the game moved, because it did not say what their
// players own before and after some call, by UUID.
func (b *Auditor) Unread() (all []Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, entries := range b.orders {
		if slices.ContainsFunc(entries, func(o *tally.Tally) bool { return o.Unread }) {
			all = append(all, b.placed[id])
		}
	}
	slices.SortFunc(all, func(x, y Subject) int { return bytes.Compare(x.UUID[:], y.UUID[:]) })
	return all
}

// HeldBefore returns the tokens that the player's wallet held before the game was asked for
// an order first, or nil if it was not.
func (b *Auditor) HeldBefore(o Subject) *big.Rat {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.entry(&o); entry != nil && entry.Asked {
		return entry.Held
	}
	return nil
}
