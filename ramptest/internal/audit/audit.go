// Package audit keeps the books of the players while a service calls their game. It reads
// what a player owns before and after each call about an order, lets package books judge
// the difference, and remembers what was found.
//
// It knows neither the service nor its orders: a call is a [Call], a plain value, and what
// it needs of the service is in [Config]. It is safe for concurrent use.
package audit

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Config is what the books need of a service.
type Config struct {
	// Off disables the readings. The books then keep only what the results said.
	Off bool

	// Settle is how long an effect may lag behind its answer; below 0, not at all.
	Settle time.Duration

	// Regenerating are the assets that move by themselves, which are not read.
	Regenerating []string

	// Ask asks the game what a player owns. status is that of its answer, or 0.
	Ask func(context.Context, ramp.Session, uuid.UUID) (player *ramp.Player, status int, err error)

	// Rejects reports whether an error of Ask means that the game rejected the session.
	Rejects func(error) bool

	// Changed is called if something has become known about an order.
	Changed func(uuid.UUID)

	// Judged is called with the story of each window, and what was found in it, or nil. It
	// must not call the books.
	Judged func(opened uuid.UUID, said string, found *Finding)
}

// Order is what the books must know about an order.
type Order struct {
	UUID    uuid.UUID
	Session ramp.Session
	Mint    bool         // false for a burn
	Sum     books.Assets // what must move if the transaction succeeds; see [books.Tally]
	Less    bool         // the transaction burns less than the order is about
	Held    *big.Rat     // the tokens in the player's wallet before the order
}

// Call is a call about an order. Stated and OnChain are the outcome that a result states,
// and that on the chain: true is a success.
type Call struct {
	Order           Order
	Result, Forged  bool
	Stated, OnChain bool
}

// Finding is what the game has lost, or moved twice or wrongly.
type Finding struct {
	Orders  []uuid.UUID
	Problem string
	Assets  []Balance
}

// Balance is a player's balance of an asset.
type Balance struct {
	ID                      string
	Before, After, Expected ramp.Amount
}

// Books are the books of all players.
type Books struct {
	config Config

	mu       sync.Mutex
	turned   sync.Cond                    // signals that a window was read or closed
	players  map[string]*player           // by their keys
	keys     map[string]string            // of the players, by session
	orders   map[uuid.UUID][]*books.Tally // one, unless the game was asked to approve two under a UUID
	found    []*Finding
	returned map[*Finding]bool // those that Take has returned
	changes  int               // how often a window was opened, joined or closed
	strays   int               // the windows so far whose player was unknown when they were opened
	strayed  int               // those of them that are closed
	waited   bool              // an effect was awaited in vain
	lag      time.Duration     // how late an effect came, at most; 0 if none came
}

// New returns empty books.
func New(c Config) *Books {
	b := &Books{config: c}
	b.turned.L = &b.mu
	b.clear()
	return b
}

// Reset forgets the players, the orders and the findings.
func (b *Books) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	b.changes++
}

func (b *Books) clear() {
	b.players, b.keys = make(map[string]*player), make(map[string]string)
	b.orders, b.returned, b.found = make(map[uuid.UUID][]*books.Tally), make(map[*Finding]bool), nil
}

// Forget drops a finished order.
func (b *Books) Forget(id uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.orders, id)
}

type player struct {
	name    string       // as the game last reported it; "" if unknown
	session ramp.Session // the newest that the game has accepted
	books   books.Player
	window  *window // the open window, or nil
	waiting int     // calls that wait for the next window
}

// strangerOf is the key of whoever has a session, while the player is unknown.
func strangerOf(session string) string { return "session " + session }

// player returns the books of a session's player. The caller must hold the lock.
func (b *Books) player(s ramp.Session) *player {
	return b.keep(cmp.Or(b.keys[s.ID], strangerOf(s.ID)))
}

// keep returns the books of a player, which it creates if needed. The caller must hold
// the lock.
func (b *Books) keep(key string) *player {
	if b.players[key] == nil {
		b.players[key] = &player{}
	}
	return b.players[key]
}

// Who returns the player_id of a session and the name of its player, or "" if they are
// unknown.
func (b *Books) Who(session string) (id, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := b.keys[session]
	if p := b.players[key]; p != nil {
		name = p.name
	}
	return playerID(key), name
}

// Reading begins a reading of what the player of a session owns. The caller passes what the
// game said to the function that it returns, which enters it if nothing has moved meanwhile.
func (b *Books) Reading(s ramp.Session) (enter func(*ramp.Player)) {
	at, _ := b.turn(s)
	return func(read *ramp.Player) { b.look(s, read, at) }
}

// turn returns the number of changes, and the key of a session's player, or "".
func (b *Books) turn(s ramp.Session) (at int, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes, b.keys[s.ID]
}

// look enters what the game said that the player of a session owns, whoever asked, if
// nothing has changed since the turn at.
func (b *Books) look(s ramp.Session, read *ramp.Player, at int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := strangerOf(s.ID)
	if read.PlayerID != "" {
		key = keyOf(read)
	}
	old, p := b.player(s), b.keep(key)
	b.keys[s.ID], p.session, p.name = key, s, cmp.Or(read.Name, read.PlayerID)
	p.books.Adopt(&old.books)
	if !b.config.Off && p.window == nil && at == b.changes {
		b.changed(p.books.Look(b.balances(read)))
	}
}

// changed tells the service of orders about which something has become known.
func (b *Books) changed(orders []*books.Tally) {
	for _, o := range orders {
		b.config.Changed(o.UUID)
	}
}

func (b *Books) balances(read *ramp.Player) books.Assets {
	owns := books.Assets{}
	for _, asset := range read.Assets {
		if !b.regenerates(asset.ID) {
			owns.Add(asset.ID, asset.Balance.Rat())
		}
	}
	return owns
}

// regenerates reports whether an asset moves by itself.
func (b *Books) regenerates(asset string) bool { return slices.Contains(b.config.Regenerating, asset) }

// tally returns the books' entry of an order for which nothing has moved.
func (o *Order) tally() *books.Tally {
	t := books.NewTally(o.UUID, o.Mint, o.Sum)
	t.Less = o.Less
	return t
}

// entry returns the books' entry of an order, or nil if there is none. The caller must hold
// the lock.
func (b *Books) entry(o *Order) *books.Tally {
	for _, known := range b.orders[o.UUID] {
		if known.Mint == o.Mint && known.Sum.Equal(o.Sum) {
			return known
		}
	}
	return nil
}

// Account is what the books know about an order.
type Account struct {
	books.Tally
	Last  books.Assets // the player's last known assets; nil if unknown
	Twins bool         // the game may have approved another order under the same UUID
}

// Account returns what the books know about an order, or nil if they know nothing.
func (b *Books) Account(o Order) *Account {
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

// Take returns the findings about an order that it has not returned before.
func (b *Books) Take(id uuid.UUID) (found []*Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.found {
		if !b.returned[f] && slices.Contains(f.Orders, id) {
			b.returned[f] = true
			found = append(found, f)
		}
	}
	return found
}

// Found returns the last 1,000 findings.
func (b *Books) Found() []*Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.found)
}

// About returns the findings about an order.
func (b *Books) About(id uuid.UUID) []*Finding {
	return slices.DeleteFunc(b.Found(), func(f *Finding) bool { return !slices.Contains(f.Orders, id) })
}

// maxFound bounds the findings of a service that runs for weeks.
const maxFound = 1_000

// conclude enters a judgment, and tells it. The caller must hold the lock.
func (b *Books) conclude(w *window, v books.Judgment) {
	b.changed(w.player.books.End(v))
	b.player(w.session).books.Adopt(&w.player.books)
	w.player.window = nil
	if w.stray {
		b.strayed++
	}
	b.changes++
	b.turned.Broadcast()
	secrets := redact.New(w.session.Token.Reveal()) // an asset ID may contain it
	if v.Problem == "" {
		b.config.Judged(w.id, secrets.Text(v.Said), nil)
		return
	}
	found := &Finding{Orders: v.Orders, Problem: secrets.Text(v.Problem)}
	for _, d := range v.Assets {
		found.Assets = append(found.Assets, Balance{secrets.Text(d.ID), amount(d.Before), amount(d.After), amount(d.Expected)})
	}
	if len(b.found) == maxFound {
		delete(b.returned, b.found[0])
		b.found = slices.Delete(b.found, 0, 1)
	}
	b.found = append(b.found, found)
	b.config.Judged(w.id, found.Problem, found)
}

// amount converts an exact decimal. A sum may have more digits than an amount can hold; the
// result is then zero.
func amount(n *big.Rat) ramp.Amount {
	converted, _ := ramp.ParseAmount(books.Decimal(n))
	return converted
}

// owned returns what the player owned before the calls of a window, of what a mint takes,
// and in words what of it was too little, or not among the assets that the game listed last.
// It is nil if unknown.
func (b *Books) owned(w *window, o *Order, listed *ramp.Player) (owned books.Assets, lacks string) {
	if !o.Mint || w == nil || w.before == nil {
		return nil, ""
	}
	owned = books.Assets{}
	takes := books.Assets{}.Minus(o.Sum)
	for id := range takes {
		if !b.regenerates(id) {
			owned[id] = cmp.Or(w.before[id], new(big.Rat))
		}
	}
	var ids []string
	if listed != nil {
		for _, asset := range listed.Assets {
			ids = append(ids, asset.ID)
		}
	}
	return owned, verdict.Lacks(takes, owned, ids)
}
