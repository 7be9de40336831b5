package ramptest

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
)

// Books says what the service does about a game that loses assets or moves them
// twice. It asks for a player's assets before and after each validate and result
// call, and compares what moved with what the order must move.
//
// A movement between calls is the game's own business: a player earns and spends.
// One during a call is the order's, so a game or a test that changes the player's
// assets at that very moment looks like one that is wrong. Nothing is compared
// where the game does not list the player's assets, for orders that were made by
// hand, and for those that were told two outcomes.
type Books int

// What the books can do.
const (
	// BooksFail reports every finding: as an error of [Service.Mint],
	// [Service.Burn], [Service.Deliver] and [Service.Resend], in [Delivery].Err,
	// and as a failure of the test that [Start] was given. It is the default.
	BooksFail Books = iota

	// BooksReport keeps findings to [Service.Imbalances], the record and, with
	// [Start], the log of the test.
	BooksReport

	// BooksOff asks for no assets: for a test whose game moves none, or that
	// counts the calls of it.
	BooksOff
)

// Imbalance is an error that says that the game has lost assets, or moved them
// twice or wrongly.
type Imbalance struct {
	Orders  []uuid.UUID    // whose calls they were; several if they overlapped
	Problem string         // what is wrong, in words
	Assets  []AssetBalance // those that are not as they must be; none if the game approved more than there was
}

// AssetBalance is what a player owns of an asset, before and after a call, and what
// it should be after it.
type AssetBalance struct {
	ID                      string
	Before, After, Expected ramp.Amount
}

func (i *Imbalance) Error() string { return "ramptest: " + i.Problem }

// audit keeps the books of the players.
type audit struct {
	mode   Books
	settle time.Duration // of wall time
	clock  *clock
	record *record
	assets func(context.Context, ramp.Session, uuid.UUID) (*ramp.Player, error)

	mu       sync.Mutex
	players  map[string]*auditedPlayer // by playerKey
	keys     map[string]string         // of the players, by session
	orders   map[uuid.UUID][]auditedOrder
	found    []*Imbalance
	returned map[*Imbalance]bool // by some call
	changes  int                 // windows that were opened, joined or closed
}

// auditedOrder is an order of one player. A UUID has one, unless the studio was
// asked for two.
type auditedOrder struct {
	player *auditedPlayer
	order  *books.Order
}

type auditedPlayer struct {
	books  books.Player
	window *window // that is open, or nil
}

// window is what happens between two readings of what a player owns: one call, or
// several that overlap.
type window struct {
	player  *auditedPlayer
	session ramp.Session // that asks for the assets
	id      uuid.UUID    // of the order that it was opened for
	ready   chan struct{}
	before  books.Assets // nil if unknown
	open    int          // calls that are under way
	joined  int          // calls so far
	calls   []books.Call
}

// open begins the window of a call, or joins the one that is open. It returns nil
// if the books are off.
func (a *audit) open(ctx context.Context, o *Order) (*window, *books.Order) {
	if a.mode == BooksOff || o.wallet == nil {
		return nil, nil
	}
	key, first, asked, at := a.player(ctx, o)
	a.mu.Lock()
	p := a.players[key]
	if p == nil {
		p = &auditedPlayer{}
		a.players[key] = p
	}
	unchanged := at == a.changes
	a.changes++
	entry := a.order(p, o)
	w := p.window
	if w != nil {
		w.open, w.joined = w.open+1, w.joined+1
		a.mu.Unlock()
		<-w.ready
		return w, entry
	}
	w = &window{player: p, session: o.Session, id: o.UUID, ready: make(chan struct{}), open: 1, joined: 1}
	p.window = w
	a.mu.Unlock()
	if w.before = first; !asked || !unchanged {
		w.before = a.read(ctx, w)
	}
	a.mu.Lock()
	p.books.Begin(w.before)
	a.mu.Unlock()
	close(w.ready)
	return w, entry
}

// player finds out who the player of a session is. If it asked for that, it
// returns what the player owns too, nil if nobody says, and how many changes there
// were before.
func (a *audit) player(ctx context.Context, o *Order) (key string, owns books.Assets, asked bool, at int) {
	a.mu.Lock()
	key, known := a.keys[o.Session.ID]
	at = a.changes
	a.mu.Unlock()
	if known {
		return key, nil, false, at
	}
	key = "session " + o.Session.ID
	player, err := a.assets(ctx, o.Session, o.UUID)
	if err != nil {
		return key, nil, true, at
	}
	if player.PlayerID != "" {
		key = "player " + player.Server + "\x00" + player.PlayerID
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[o.Session.ID] = key
	return key, balances(player), true, at
}

// order is what the books know of an order. The caller holds the lock.
func (a *audit) order(p *auditedPlayer, o *Order) *books.Order {
	mint := o.Request.Intent.Type == ramp.Assemble
	sum, assets, sign := books.Assets{}, o.Request.Intent.From, int64(-1)
	if !mint {
		assets, sign = o.Request.Intent.To, 1
	}
	for _, asset := range assets {
		if asset.Type == ramp.TypeAsset {
			sum.Add(asset.ID, new(big.Rat).Mul(asset.Amount.Rat(), big.NewRat(sign, 1)))
		}
	}
	for _, known := range a.orders[o.UUID] {
		if known.player == p && known.order.Mint == mint && known.order.Sum.Equal(sum) {
			return known.order
		}
	}
	entry := books.NewOrder(o.UUID, mint, sum)
	a.orders[o.UUID] = append(a.orders[o.UUID], auditedOrder{p, entry})
	return entry
}

// read asks what the player of a window owns. It returns nil if nobody says.
func (a *audit) read(ctx context.Context, w *window) books.Assets {
	asked, err := a.assets(ctx, w.session, w.id)
	if err != nil {
		return nil
	}
	return balances(asked)
}

func balances(player *ramp.Player) books.Assets {
	owns := books.Assets{}
	for _, asset := range player.Assets {
		owns.Add(asset.ID, asset.Balance.Rat())
	}
	return owns
}

// minReadings is how often the books ask at least before they report a
// difference, so that a machine that is slow is slow for them too.
const minReadings = 6

// close ends a call of a window. The last one closes the window, with a verdict.
func (a *audit) close(ctx context.Context, w *window, c books.Call) {
	a.mu.Lock()
	w.calls = append(w.calls, c)
	w.open--
	a.changes++
	joined, last := w.joined, w.open == 0
	a.mu.Unlock()
	if !last {
		return
	}
	var seen []books.Assets // different readings, one after the other
	end := time.Now().Add(a.settle)
	readings := 0
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		readings++
		var after books.Assets
		if w.before != nil {
			after = a.read(ctx, w)
		}
		if after != nil && (len(seen) == 0 || !seen[len(seen)-1].Equal(after)) {
			seen = append(seen, after)
		}
		a.mu.Lock()
		if w.joined != joined { // somebody has joined, and closes it
			a.mu.Unlock()
			return
		}
		last := !time.Now().Before(end) && (readings >= minReadings || a.settle < 0)
		v := w.player.books.Judge(w.calls, w.before, after, last)
		if v.Problem == "" || v.Overdraw || last {
			if v.Problem != "" && len(seen) > 2 { // not by one late effect
				v = w.player.books.Judge(w.calls, nil, after, true)
				v.Said = "not judged, because what the player owns keeps changing"
			}
			a.end(w, v)
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		wait(ctx, pause)
	}
}

// wait waits for a time on the wall, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// mostFound bounds the findings of a service that runs for weeks.
const mostFound = 1_000

// end enters a verdict, and records it. The caller holds the lock.
func (a *audit) end(w *window, v books.Verdict) {
	w.player.books.End(v)
	w.player.window = nil
	a.changes++
	secrets := redact.New(w.session.Token.Reveal()) // that an asset ID may hold
	event := Event{Time: a.clock.now(), Kind: KindBooks, UUID: w.id, Outcome: secrets.Text(v.Said)}
	if v.Problem != "" {
		found := &Imbalance{Orders: v.Orders, Problem: secrets.Text(v.Problem)}
		event.Outcome, event.Failed = found.Problem, true
		for _, d := range v.Assets {
			found.Assets = append(found.Assets, AssetBalance{secrets.Text(d.ID), amountOf(d.Before), amountOf(d.After), amountOf(d.Expected)})
		}
		if len(a.found) == mostFound {
			delete(a.returned, a.found[0])
			a.found = slices.Delete(a.found, 0, 1)
		}
		a.found = append(a.found, found)
	}
	a.record.add(event)
}

// amountOf is an exact decimal as an amount: no game has more digits than one may
// have, but a sum of several may.
func amountOf(n *big.Rat) ramp.Amount {
	amount, _ := ramp.ParseAmount(books.Decimal(n))
	return amount
}

// tell notes what a result says, and what the chain knows.
func (a *audit) tell(entry *books.Order, outcome, onChain Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry.Tell(outcome == Succeeded, onChain == Succeeded)
}

// take returns what was found about an order and was not returned before, if the
// books fail.
func (a *audit) take(id uuid.UUID) error {
	if a.mode != BooksFail {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, found := range a.found {
		if !a.returned[found] && slices.Contains(found.Orders, id) {
			a.returned[found] = true
			errs = append(errs, found)
		}
	}
	return errors.Join(errs...)
}

// all returns what was found so far.
func (a *audit) all() []*Imbalance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.found)
}

// report is the findings as one text, one a line.
func report(found []*Imbalance) string {
	lines := make([]string, len(found))
	for i, f := range found {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}
