package audit

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Entry is a call in progress. The zero value is a call that the books do not follow.
type Entry struct {
	Opposite bool // see [tally.Tally.Deliver]
	Fits     bool // see [tally.Tally.Fits]

	books   *Auditor
	window  *window // nil if the books are off
	unknown bool    // the game rejected the session when it was asked for assets
	call    tally.Call
	asked   Call
}

// Open opens a window for a call, or joins the open one. End it with [Entry.Close].
func (b *Auditor) Open(ctx context.Context, c Call) *Entry {
	o := &c.Order
	at, key := b.turn(o.Session)
	asked := key == "" && !b.config.Off
	unknown := false // to the game, too
	if asked {       // who the player is
		_, err := b.ask(ctx, o.Session, o.UUID)
		unknown = b.config.Rejects(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.config.Off {
		return b.begin(nil, c, false)
	}
	p := b.player(o.Session)
	for p.window != nil && !p.window.admits(&c) {
		p.waiting++
		b.turned.Wait()
		p.waiting--
		p = b.player(o.Session) // who may be known now
	}
	unchanged := at == b.changes
	b.changes++
	w := p.window
	if w != nil {
		w.join(&c)
		for !w.ready {
			b.turned.Wait()
		}
		return b.begin(w, c, unknown)
	}
	w = &window{player: p, session: o.Session, id: o.UUID, order: *o,
		stray: b.keys[o.Session.ID] == "", strayed: b.strayed}
	w.join(&c)
	p.window = w
	switch {
	case w.stray:
		b.strays++
	case asked && unchanged:
		w.before = p.books.Last
	default:
		w.before = b.read(ctx, w)
		b.looked(p, w.before)
	}
	b.askAnother(ctx, p)
	w.ready = true
	b.turned.Broadcast()
	return b.begin(w, c, unknown)
}

// begin records what the player and the wallet had before an order, and the outcome that a
// result states. The caller must hold the lock.
func (b *Auditor) begin(w *window, c Call, unknown bool) *Entry {
	o := b.entry(&c.Order)
	if o == nil {
		o = b.open(&c.Order)
	}
	if w != nil && !o.Asked {
		o.Before, o.Held = w.before, c.Order.Held
	}
	b.beside(w, o)
	e := &Entry{books: b, window: w, unknown: unknown, asked: c,
		call: tally.Call{Order: o, Result: c.Result, Forged: c.Forged}}
	if c.Result && !c.Forged {
		e.Opposite, e.Fits = o.Deliver(c.Stated, c.OnChain), o.Fits(c.Stated, c.OnChain)
	}
	return e
}

// beside notes which orders of other players move at the same time. Two players may own the same assets.
// The caller must hold the lock.
func (b *Auditor) beside(w *window, o *tally.Tally) {
	if w == nil {
		return
	}
	w.orders = append(w.orders, o)
	for _, p := range b.players {
		if other := p.window; other != nil && other != w && p.named == w.player.named {
			w.beside, other.beside = append(w.beside, other.orders...), append(other.beside, o)
		}
	}
}

// shared says that a finding is about assets that two sessions have moved, and purse that it is about
// those of two players.
const (
	shared = " (two sessions moved the same assets at once: return a player_id, so that the books know " +
		"that they are one player's)"
	purse = ". That is just what orders of another player are about that moved at the same time: if " +
		"both own the same assets, such as one purse for all devices, return one player_id for both"
)

// mailbox says how a game is judged that sets a price aside before it is asked to approve.
const mailbox = " (if the game set the price aside before the validate call, let Config.Mailbox return " +
	"it until then)"

// reserved reports whether a mint that nothing was taken for ends as if its price had been.
func (w *window) reserved(v *tally.Judgment) bool {
	for _, c := range w.calls {
		o := c.Order
		kept := o != nil && o.Succeeded && len(v.Moved) == 0
		back := o != nil && !o.Succeeded && v.Moved.Equal(tally.Assets{}.Minus(o.Sum))
		if o == nil || !c.Result || c.Forged || !o.Mint || len(o.Took) > 0 || !kept && !back {
			return false
		}
	}
	return len(w.calls) > 0
}

// explained adds to a problem what else may explain it.
func (w *window) explained(v *tally.Judgment) {
	switch {
	case len(w.beside) > 0 && v.IsExplainedBy(w.beside) && w.player.named:
		story, balances, _ := strings.Cut(v.Problem, ": the game must ")
		_, balances, _ = strings.Cut(balances, ": ")
		v.Problem = story + ": " + balances + purse
	case len(w.beside) > 0 && v.IsExplainedBy(w.beside):
		v.Problem += shared
	case w.reserved(v):
		v.Problem += mailbox
	}
}

// Owned returns what the player owned before the call, of what a mint takes, and in words
// what of it was too little, or is not among what the game listed last. It is nil if unknown.
func (e *Entry) Owned(listed *ramp.Player) (owned tally.Assets, lacks string) {
	return e.books.owned(e.window, &e.asked.Order, listed)
}

// Close ends the call with what its answer means, and the HTTP status of the answer, or 0
// without one. sent is false if nothing has reached the game. The last call of a window
// closes it with a judgment.
func (e *Entry) Close(ctx context.Context, answer tally.Answer, status int, sent bool) {
	b, w := e.books, e.window
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.asked.Result && !e.asked.Forged {
		e.call.Order.Answered(e.asked.Stated, status)
	}
	if w == nil {
		return
	}
	// Who rejects a session at both endpoints knows no player from whom something could move.
	if e.call.Answer = answer; !sent || e.unknown && answer == tally.No {
		e.call.Order = nil
	}
	b.close(ctx, w, e.call)
}

// owned returns what the player owned before the calls of a window, of what a mint takes,
// and in words what of it was too little, or not among the assets that the game listed last.
// It is nil if unknown.
func (b *Auditor) owned(w *window, o *Subject, listed *ramp.Player) (owned tally.Assets, lacks string) {
	if !o.Mint || w == nil || w.before == nil {
		return nil, ""
	}
	owned = tally.Assets{}
	takes := tally.Assets{}.Minus(o.Sum)
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

// minReadings is how often the books read the assets, at least, before they report
// a missing effect. It gives a slow machine enough time.
const minReadings = 6

// close ends a call of a window. The last one closes the window with a judgment, for which it
// reads the assets until they are right or patience has ended. The caller must hold the lock.
func (b *Auditor) close(ctx context.Context, w *window, c tally.Call) {
	w.calls = append(w.calls, c)
	w.open--
	b.changes++
	calls, longest := len(w.calls), b.patience()
	var latest tally.Assets
	differ, begun := 0, time.Now()           // how many readings differ from the one before
	most := max(time.Millisecond, longest/8) // few pauses, for who logs every call
	pause := time.Millisecond
	for readings := 1; ; readings++ {
		var after tally.Assets
		// otherwise there is nothing to compare it with
		if w.open == 0 && (w.before != nil || w.player.books.Last != nil) {
			after = b.read(ctx, w)
		}
		if w.open > 0 || len(w.calls) > calls { // another call will close the window, or has
			return
		}
		if after != nil && (latest == nil || !latest.Equal(after)) {
			latest, differ = after, differ+1
		}
		last := time.Since(begun) >= longest && (readings >= minReadings || b.config.Settle < 0)
		sent, before := w.sent(), w.before
		if b.strays > w.strayed || len(sent) == 0 { // what they moved may be this player's
			before = nil
		}
		v := w.player.books.Judge(sent, before, after, last)
		if v.Problem == "" || v.Overdraw || last {
			if v.Problem == "" && (readings > 1 || len(v.Moved) > 0) {
				b.lag = max(b.lag, time.Since(begun), 1)
			}
			b.waited = b.waited || v.Problem != "" && !v.Overdraw
			if v.Problem != "" && differ > 2 { // one late effect cannot explain this
				v = w.player.books.Judge(sent, nil, after, true)
				v.Said = "not judged, because what the player owns keeps changing"
			}
			b.conclude(w, v)
			return
		}
		b.mu.Unlock()
		time.Sleep(min(pause, max(longest-time.Since(begun), time.Millisecond)))
		pause = min(4*pause, most)
		b.mu.Lock()
	}
}

// patience is how long a missing effect is awaited. Ten missing ones need not take ten times
// as long as one.
func (b *Auditor) patience() time.Duration {
	settle := b.config.Settle
	if b.waited && b.lag > 0 {
		return min(settle, max(settle/16, 8*b.lag))
	}
	return settle
}

// read asks what the player of a window owns, with the session of its order, and if the
// game rejects that, with the newest that it has accepted. It returns nil if the game does
// not say. The caller must hold the lock, which is released meanwhile.
func (b *Auditor) read(ctx context.Context, w *window) tally.Assets {
	newest := w.player.session
	b.mu.Unlock()
	defer b.mu.Lock()
	read, err := b.ask(ctx, w.session, w.id)
	other := newest.ID != w.session.ID || !newest.Token.Equal(w.session.Token)
	if b.config.Rejects(err) && newest.ID != "" && other {
		read, err = b.ask(ctx, newest, w.id)
	}
	if err != nil {
		return nil
	}
	return b.balances(read)
}

// askAnother asks what another player owns, if the books are closed. A game that gives to whoever asked
// last would otherwise be right in every test. The caller must hold the lock, which is released meanwhile.
func (b *Auditor) askAnother(ctx context.Context, p *player) {
	if !b.config.Closed {
		return
	}
	for _, s := range b.named() {
		if b.player(s) == p {
			continue
		}
		b.mu.Unlock()
		_, err := b.ask(ctx, s, uuid.Nil)
		b.mu.Lock()
		if err == nil { // otherwise another one; whom nobody can ask fails the sweep when the test ends
			return
		}
	}
}

// ask asks what a player owns, and once more if the game fails. The books go on when the
// caller does not.
func (b *Auditor) ask(ctx context.Context, s ramp.Session, id uuid.UUID) (*ramp.Player, error) {
	ctx = context.WithoutCancel(ctx)
	read, status, err := b.config.Ask(ctx, s, id)
	if status >= 500 {
		read, _, err = b.config.Ask(ctx, s, id)
	}
	return read, err
}

// conclude enters a judgment, and tells it. The caller must hold the lock.
func (b *Auditor) conclude(w *window, v tally.Judgment) {
	if v.Problem != "" {
		w.explained(&v)
	}
	b.changed(w.player.books.End(v))
	b.player(w.session).books.Adopt(&w.player.books)
	w.player.window = nil
	if named := b.player(w.session); named.window == w { // it got another name during the call
		named.window = nil
	}
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
	owner := w.player.name
	if owner == "" {
		owner = fmt.Sprintf("session %q", w.session.ID)
	}
	found := &Finding{Orders: v.Orders, Problem: secrets.Text(redact.Isolate(owner) + "'s " + v.Problem)}
	for _, d := range v.Assets {
		found.Assets = append(found.Assets,
			Balance{secrets.Text(d.ID), amount(d.Before), amount(d.After), amount(d.Expected)})
	}
	b.find(w.id, found)
}
