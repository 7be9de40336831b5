package ramptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Books sets how the service reports a game that loses assets or moves them twice.
// The service asks for a player's assets before and after each validate and result
// call, and compares the difference with what the order must move.
//
// Movements between calls are ignored, because a player earns and spends assets.
// Movements during a call are attributed to the order. A game or a test that
// changes the player's assets at that moment therefore looks wrong. Nothing is
// compared if the game does not list the player's assets, for orders that were made
// by hand, and for orders whose results stated two outcomes.
type Books int

// The modes of the books.
const (
	// BooksFail reports every finding: as an error of [Service.Mint],
	// [Service.Burn], [Service.Deliver] and [Service.Resend], in [Delivery].Err,
	// and as a failure of the test that [Start] was given. It is the default.
	BooksFail Books = iota

	// BooksReport reports findings only in [Service.Imbalances], the record and,
	// with [Start], the log of the test.
	BooksReport

	// BooksOff disables the books, so that the service does not ask for assets. Use
	// it for a game that moves no assets, or for a test that counts its calls.
	BooksOff
)

// Imbalance is an error which reports that the game has lost assets, or moved them
// twice or wrongly.
type Imbalance struct {
	Orders  []uuid.UUID    // the orders of the calls; several if calls overlapped
	Problem string         // what is wrong, in words
	Assets  []AssetBalance // the assets whose balance is wrong; none if the game approved more than the player owned
}

// AssetBalance is a player's balance of an asset before and after a call, and the
// balance expected after it.
type AssetBalance struct {
	ID                      string
	Before, After, Expected ramp.Amount
}

func (i *Imbalance) Error() string { return "ramptest: " + i.Problem }

// audit keeps the books of the players.
type audit struct {
	shared
	assets func(context.Context, ramp.Session, uuid.UUID) (player *ramp.Player, status int, err error)

	mu       sync.Mutex
	turned   *sync.Cond                   // signals that a window was read or closed
	players  map[string]*auditedPlayer    // by their keys
	keys     map[string]string            // of the players, by session
	orders   map[uuid.UUID][]*books.Tally // one, unless the game was asked to approve two under a UUID
	found    []*Imbalance
	returned map[*Imbalance]bool // those that some call has returned
	changes  int                 // how often a window was opened, joined or closed
	strays   int                 // the windows so far whose player was unknown when they were opened
	strayed  int                 // those of them that are closed
	waited   bool                // an effect was awaited in vain
	lag      time.Duration       // how late an effect came, at most; 0 if none came
}

type auditedPlayer struct {
	name    string       // as the game last reported it; "" if unknown
	session ramp.Session // the newest that the game has accepted
	books   books.Player
	window  *window // the open window, or nil
	waiting int     // calls that wait for the next window
}

// window is the time between two readings of a player's assets. It has one call, or several
// that overlap: validate calls, or results of one order. What a result moves would
// otherwise be mixed up with the effects of other orders.
type window struct {
	player  *auditedPlayer
	session ramp.Session // used to ask for the assets
	id      uuid.UUID    // the order that it was opened for
	result  bool
	ready   bool         // before was read
	before  books.Assets // nil if unknown
	stray   bool         // who the player is was unknown; it may be any
	strayed int          // as the audit counted when it was opened
	open    int          // calls in progress
	calls   []books.Call // those that have ended
}

// admits reports whether a call may join the window.
func (w *window) admits(c *call) bool {
	return w.result == (c.kind == KindResult) && (w.id == c.order.UUID || !w.result && w.player.waiting == 0)
}

// open opens a window for a call about an order, or joins the open one. The window is
// nil if the books are off: they then keep only what the results said.
func (a *audit) open(ctx context.Context, c *call) (*window, books.Call) {
	o := c.order
	if !o.composed {
		return nil, books.Call{}
	}
	at, key := a.turn(o.Session)
	asked := key == "" && a.config.Books != BooksOff
	if asked { // who the player is
		_, _ = a.ask(ctx, o.Session, o.UUID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.config.Books == BooksOff {
		return nil, a.begin(nil, c)
	}
	p := a.player(o.Session)
	for p.window != nil && !p.window.admits(c) {
		p.waiting++
		a.turned.Wait()
		p.waiting--
		p = a.player(o.Session) // who may be known now
	}
	unchanged := at == a.changes
	a.changes++
	w := p.window
	if w != nil {
		w.open++
		for !w.ready {
			a.turned.Wait()
		}
		return w, a.begin(w, c)
	}
	w = &window{player: p, session: o.Session, id: o.UUID, result: c.kind == KindResult,
		stray: a.keys[o.Session.ID] == "", strayed: a.strayed, open: 1}
	p.window = w
	switch {
	case w.stray:
		a.strays++
	case asked && unchanged:
		w.before = p.books.Last
	default:
		w.before = a.read(ctx, w)
		a.changed(p.books.Look(w.before))
	}
	w.ready = true
	a.turned.Broadcast()
	return w, a.begin(w, c)
}

// changed has orders written about which something has become known.
func (a *audit) changed(orders []*books.Tally) {
	for _, o := range orders {
		a.keeper.touch(o.UUID)
	}
}

// strangerOf is the key of whoever has a session, while the player is unknown.
func strangerOf(session string) string { return "session " + session }

// player returns the books of a session's player. The caller must hold the lock.
func (a *audit) player(s ramp.Session) *auditedPlayer {
	return a.keep(cmp.Or(a.keys[s.ID], strangerOf(s.ID)))
}

// keep returns the books of a player, which it creates if needed. The caller must hold
// the lock.
func (a *audit) keep(key string) *auditedPlayer {
	if a.players[key] == nil {
		a.players[key] = &auditedPlayer{}
	}
	return a.players[key]
}

// begin records what the player and the wallet had before an order, and the outcome that a result
// states. The caller must hold the lock.
func (a *audit) begin(w *window, c *call) books.Call {
	o := a.entry(c.order)
	if o == nil {
		o = tallyOf(c.order)
		a.orders[o.UUID] = append(a.orders[o.UUID], o)
	}
	switch {
	case w == nil:
	case !o.Asked:
		o.Before, o.Held = w.before, c.order.heldBefore
	case c.kind == KindValidate: // it was asked before
		c.order.heldBefore = cmp.Or(o.Held, c.order.heldBefore)
	}
	if c.kind == KindResult && !c.forged {
		c.opposite = o.Deliver(c.stated == Succeeded, c.onChain == Succeeded)
	}
	return books.Call{Order: o, Result: c.kind == KindResult, Forged: c.forged}
}

// account is what the books know about an order.
type account struct {
	order books.Tally
	last  books.Assets // the player's last known assets; nil if unknown
	twins bool         // the game may have approved another order under the same UUID
}

// account returns what the books know about an order, or nil if they know nothing.
func (a *audit) account(o *Order) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.entry(o)
	if entry == nil {
		return nil
	}
	approved := 0
	for _, known := range a.orders[o.UUID] {
		if known.Approved || len(known.Took) > 0 {
			approved++
		}
	}
	return &account{*entry, a.player(o.Session).books.Last, approved > 1}
}

// turn returns the number of changes, and the key of a session's player, or "".
func (a *audit) turn(s ramp.Session) (at int, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changes, a.keys[s.ID]
}

// look enters what the game said that the player of a session owns, whoever asked, if
// nothing has changed since the turn at.
func (a *audit) look(s ramp.Session, player *ramp.Player, at int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := strangerOf(s.ID)
	if player.PlayerID != "" {
		key = "player " + player.Server + "\x00" + player.PlayerID
	}
	old, p := a.player(s), a.keep(key)
	a.keys[s.ID], p.session, p.name = key, s, cmp.Or(player.Name, player.PlayerID)
	p.books.Adopt(&old.books)
	if a.config.Books != BooksOff && p.window == nil && at == a.changes {
		a.changed(p.books.Look(a.balances(player)))
	}
}

// tallyOf returns the books' entry of an order for which nothing has moved.
func tallyOf(o *Order) *books.Tally {
	t, sign := o.trade(), int64(1)
	if t.mint {
		sign = -1
	}
	tally := books.NewTally(o.UUID, t.mint, books.Assets{})
	tally.Less = o.burnsLess()
	assets, _ := t.sides(&o.Request.Intent)
	for _, asset := range *assets {
		if asset.Type == ramp.TypeAsset {
			tally.Sum.Add(asset.ID, new(big.Rat).Mul(asset.Amount.Rat(), big.NewRat(sign, 1)))
		}
	}
	return tally
}

// entry returns the books' entry of an order, or nil if there is none. The caller must hold
// the lock.
func (a *audit) entry(o *Order) *books.Tally {
	tally := tallyOf(o)
	for _, known := range a.orders[o.UUID] {
		if known.Mint == tally.Mint && known.Sum.Equal(tally.Sum) {
			return known
		}
	}
	return nil
}

// read asks what the player of a window owns, with the session of its order, and if the
// game rejects that, with the newest that it has accepted. It returns nil if the game does
// not say. The caller must hold the lock, which is released meanwhile.
func (a *audit) read(ctx context.Context, w *window) books.Assets {
	newest := w.player.session
	a.mu.Unlock()
	defer a.mu.Lock()
	player, err := a.ask(ctx, w.session, w.id)
	if isRejection(err) && newest.ID != "" && keyOf(newest) != keyOf(w.session) {
		player, err = a.ask(ctx, newest, w.id)
	}
	if err != nil {
		return nil
	}
	return a.balances(player)
}

// ask asks what a player owns, and once more if the game fails. The books go on when the
// caller does not.
func (a *audit) ask(ctx context.Context, s ramp.Session, id uuid.UUID) (*ramp.Player, error) {
	ctx = context.WithoutCancel(ctx)
	player, status, err := a.assets(ctx, s, id)
	if status >= 500 {
		player, _, err = a.assets(ctx, s, id)
	}
	return player, err
}

func (a *audit) balances(player *ramp.Player) books.Assets {
	owns := books.Assets{}
	for _, asset := range player.Assets {
		if !a.moves(asset.ID) {
			owns.Add(asset.ID, asset.Balance.Rat())
		}
	}
	return owns
}

// moves reports whether an asset moves by itself, so that the books do not read it.
func (a *audit) moves(asset string) bool { return slices.Contains(a.config.Regenerating, asset) }

// owned returns what the player owned before the calls of a window, of what a mint takes,
// and in words what of it was too little, or not among the assets of player, whom the game
// listed last. It is nil if unknown.
func (a *audit) owned(w *window, o *Order, player *ramp.Player) (owned books.Assets, lacks string) {
	tally := tallyOf(o)
	if !tally.Mint || w == nil || w.before == nil {
		return nil, ""
	}
	owned = books.Assets{}
	takes := books.Assets{}.Minus(tally.Sum)
	for id := range takes {
		if !a.moves(id) {
			owned[id] = cmp.Or(w.before[id], new(big.Rat))
		}
	}
	var listed []string
	if player != nil {
		for _, asset := range player.Assets {
			listed = append(listed, asset.ID)
		}
	}
	return owned, verdict.Lacks(takes, owned, listed)
}

// minReadings is how often the books read the assets, at least, before they report
// a missing effect. It gives a slow machine enough time.
const minReadings = 6

// answered records the HTTP status with which the game answered a result; 0 is no answer.
func (a *audit) answered(c *call, entry *books.Tally, status int) {
	if entry != nil && c.kind == KindResult && !c.forged {
		a.mu.Lock()
		defer a.mu.Unlock()
		entry.Answered(c.stated == Succeeded, status)
	}
}

// close ends a call of a window. The last call closes the window with a verdict.
func (a *audit) close(ctx context.Context, w *window, c books.Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.calls = append(w.calls, c)
	w.open--
	a.changes++
	calls, longest := len(w.calls), a.config.Settle
	if a.waited && a.lag > 0 { // ten missing effects need not take ten times as long
		longest = min(longest, max(longest/16, 8*a.lag))
	}
	var latest books.Assets
	differ, begun := 0, time.Now() // how many readings differ from the one before
	for readings, pause := 1, time.Millisecond; ; readings, pause = readings+1, min(2*pause, 100*time.Millisecond) {
		var after books.Assets
		if w.open == 0 && (w.before != nil || w.player.books.Last != nil) { // otherwise there is nothing to compare it with
			after = a.read(ctx, w)
		}
		if w.open > 0 || len(w.calls) > calls { // another call will close the window, or has
			return
		}
		if after != nil && (latest == nil || !latest.Equal(after)) {
			latest, differ = after, differ+1
		}
		last := time.Since(begun) >= longest && (readings >= minReadings || a.config.Settle < 0)
		before := w.before
		sent := slices.DeleteFunc(slices.Clone(w.calls), func(c books.Call) bool { return c.Order == nil })
		if a.strays > w.strayed || len(sent) == 0 { // what they moved may be this player's
			before = nil
		}
		v := w.player.books.Judge(sent, before, after, last)
		if v.Problem == "" || v.Overdraw || last {
			if v.Problem == "" && (readings > 1 || len(v.Moved) > 0) {
				a.lag = max(a.lag, time.Since(begun), 1)
			}
			a.waited = a.waited || v.Problem != "" && !v.Overdraw
			if v.Problem != "" && differ > 2 { // one late effect cannot explain this
				v = w.player.books.Judge(sent, nil, after, true)
				v.Said = "not judged, because what the player owns keeps changing"
			}
			a.end(w, v)
			return
		}
		a.mu.Unlock()
		time.Sleep(pause)
		a.mu.Lock()
	}
}

// maxFound bounds the findings of a service that runs for weeks.
const maxFound = 1_000

// end enters a verdict in the books and records it. The caller must hold the lock.
func (a *audit) end(w *window, v books.Judgment) {
	a.changed(w.player.books.End(v))
	a.player(w.session).books.Adopt(&w.player.books)
	w.player.window = nil
	if w.stray {
		a.strayed++
	}
	a.changes++
	a.turned.Broadcast()
	secrets := redact.New(w.session.Token.Reveal()) // an asset ID may contain it
	event := Event{Time: a.clock.now(), Kind: KindBooks, UUID: w.id, Outcome: secrets.Text(v.Said)}
	if v.Problem != "" {
		found := &Imbalance{Orders: v.Orders, Problem: secrets.Text(v.Problem)}
		event.Outcome, event.Failed = found.Problem, true
		for _, d := range v.Assets {
			found.Assets = append(found.Assets, AssetBalance{secrets.Text(d.ID), amountOf(d.Before), amountOf(d.After), amountOf(d.Expected)})
		}
		if len(a.found) == maxFound {
			delete(a.returned, a.found[0])
			a.found = slices.Delete(a.found, 0, 1)
		}
		a.found = append(a.found, found)
		for _, id := range v.Orders {
			a.record.lose(id, found.Problem)
		}
	}
	a.record.add(event)
}

// amountOf converts an exact decimal to an amount. A sum may have more digits than
// an amount can hold; the result is then zero.
func amountOf(n *big.Rat) ramp.Amount {
	amount, _ := ramp.ParseAmount(books.Decimal(n))
	return amount
}

// take returns the findings about an order that were not returned before. It
// returns nil unless the mode is BooksFail.
func (a *audit) take(id uuid.UUID) error {
	if a.config.Books != BooksFail {
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

// all returns the findings so far.
func (a *audit) all() []*Imbalance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.found)
}

// about returns the findings about an order.
func (a *audit) about(id uuid.UUID) []*Imbalance {
	return slices.DeleteFunc(a.all(), func(found *Imbalance) bool { return !slices.Contains(found.Orders, id) })
}

// knows reports whether the books know what the game moved for an order, and if not,
// why.
func (a *account) knows(mode Books) verdict.Why {
	switch {
	case mode == BooksOff:
		return verdict.Off
	case a == nil || a.order.Unread:
		return verdict.Unread
	case a.twins:
		return verdict.Twins
	case a.order.Mixed || a.order.Guess || len(a.order.Totals) != 1:
		return verdict.Overlap
	default:
		return verdict.Known
	}
}

// who returns the player_id of a session and the name of its player, or "" if they are
// unknown.
func (a *audit) who(session string) (id, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := a.keys[session]
	if p := a.players[key]; p != nil {
		name = p.name
	}
	_, id, _ = strings.Cut(key, "\x00")
	return id, name
}

// reset forgets the players, the orders and the findings.
func (a *audit) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.players)
	clear(a.keys)
	clear(a.orders)
	clear(a.returned)
	a.found = nil
	a.changes++
}

// forget drops a finished order.
func (a *audit) forget(id uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.orders, id)
}

// applyHint explains assets that moved exactly twice, because a [ramp.SQLStore] behind
// [Config.Handler] rolls back the first attempt at each step.
func applyHint(found []*Imbalance) string {
	for _, f := range found {
		for _, a := range f.Assets {
			moved := new(big.Rat).Sub(a.After.Rat(), a.Before.Rat())
			due := new(big.Rat).Sub(a.Expected.Rat(), a.Before.Rat())
			if due.Sign() != 0 && moved.Cmp(due.Add(due, due)) == 0 {
				return "\nAssets moved twice. If the game uses a ramp.SQLStore, its first attempt at each step was rolled back: Apply must use tx for every statement."
			}
		}
	}
	return ""
}

// report lists the findings, and the other orders that need attention, one per line. It
// makes no calls.
func (s *Service) report() string {
	var lines []string
	found := s.audit.all()
	for _, f := range found {
		lines = append(lines, f.Error())
	}
	for _, o := range slices.Backward(s.orders.all()) {
		if v := s.orders.verdict(o); v.Attention && len(s.audit.about(o.UUID)) == 0 {
			line := fmt.Sprintf("ramptest: %s %s: %s", o.trade().direction, shortUUID(o.UUID), v.Said)
			if o.delivery.now().Status == http.StatusInternalServerError {
				line += s.orders.hint(o)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + applyHint(found)
}
