package pairs

import (
	"database/sql"
	"errors"
	"slices"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// This file is the only judge. It shares no code with ramp: what a player must have follows from the chain, from
// the prices of the pages, and from what players did in the game besides.

// owes returns what a player must have once all is over.
func (w *world) owes(player string) (gold int64) {
	for session, of := range w.game.accounts {
		if of == player && (session == "alice" || session == "bob") {
			gold += startGold
		}
	}
	for _, t := range w.game.trades {
		if t.from == player {
			gold -= t.gold
		}
		if t.to == player {
			gold += t.gold
		}
	}
	for _, o := range w.orders {
		if w.game.accounts[o.session] == player && w.chain.has(o.tx) && o.tx.ok {
			gold += o.value()
		}
	}
	return gold
}

// excuse is why an order may be declined now, or empty. The repeat of an accepted order is not judged by the
// rules of today.
func (w *world) excuse(o *order) string {
	switch g := &w.game; {
	case g.banned && o.player == "alice":
		return "she is banned"
	case w.service.key != g.key && w.service.key != g.former:
		return "an old key"
	case o.decided, o.gone, o.erased:
		return "a person has ended it, or it is gone"
	case o.signed && (!w.restored || w.stored(o).state != ""):
		return ""
	case o.asked > 1 && !o.signed: // its first answer was lost, or it was declined
		return "it may have been declined"
	case g.projects[0] != o.project:
		return "another project"
	case o.burn && o.gold != w.pays(w.here()), !o.burn && o.gold != w.costs(w.here()):
		return "another price"
	default:
		return w.rule(o)
	}
}

// rule is why a new order must be declined now, or empty.
func (w *world) rule(o *order) string {
	switch g := &w.game; {
	case g.banned && o.player == "alice":
		return "she is banned"
	case g.rule:
		return "her KYC has ended"
	case g.closed:
		return "the shop is closed"
	case !o.burn && g.capped:
		return "a cap is reached"
	case !o.burn && w.gold(g.accounts[o.session]) < o.gold:
		return "she has too little"
	case o.burn && g.full:
		return "her purse is full"
	default:
		return ""
	}
}

// paid: nothing is signed unpaid, and nothing is signed that can be traded, at the offers of this moment, for more
// than it costs.
func (w *world) paid(o *order, offered []price) {
	want := int64(0)
	if !o.burn {
		want = -o.gold
	}
	if has := w.moved(o.id); has != want {
		w.fault("unpaid", o.player, has-want, "it was signed when the game had moved %d", has)
	}
	if o.asked > 1 {
		return
	}
	for _, s := range w.servers {
		pays, costs := w.pays(s), w.costs(s)
		if s == w.here() { // which must not sign for a price while another one, that it has too, pays for it
			for _, p := range offered { // when the call began
				pays, costs = max(pays, p.burn), min(costs, p.mint)
			}
		}
		if gain := pays - o.gold; !o.burn && gain > 0 {
			w.fault("pump", o.player, gain, "a mint for %d was signed while a burn pays %d", o.gold, pays)
		}
		if gain := o.gold - costs; o.burn && gain > 0 {
			w.fault("pump", o.player, gain, "a burn for %d was signed while a mint costs %d", o.gold, costs)
		}
	}
}

// answered: who answers that a result was taken has moved what it says, or has told a person of the contradiction.
func (w *world) answered(o *order, ok bool) {
	want := int64(0)
	if ok {
		want = o.value()
	}
	if has := w.moved(o.id); has != want && !slices.Contains(w.conflicts, o) {
		w.fault("untold", o.player, has-want, "its result was answered, and the game has moved %d", has)
	}
}

// settle lets the world come to rest, and judges it.
func (w *world) settle() {
	w.heal()
	w.others()
	w.pass(time.Minute)
	for range 2 { // what a late repeat has signed, too
		for _, o := range w.orders {
			w.mined(o)
		}
		for n := 0; n < 20 && w.deliverAll(); n++ {
			w.sleep(37 * time.Minute)
		}
	}
	w.pass(14*time.Hour + w.game.ahead)
	w.close()
	w.known()
	w.pass(5 * time.Minute)
	for range 4 {
		if w.restored {
			w.repair()
		}
		if waited := w.obeys(heard); waited == 0 && !w.restored {
			break
		}
		w.pass(time.Hour)
	}
	w.pass(14 * time.Hour)
	for _, o := range w.waiting() {
		of := w.of(o.UUID)
		w.fault("stuck", of.player, of.value(), "%s waits; following Advise: %.300s", o.Direction, w.last[of.player])
	}
	w.balance(func(player string, has, must int64) {
		kind := "lost"
		if has > must {
			kind = "doubled"
		}
		w.fault(kind, player, has-must, "has %d, and should have %d", has, must)
	})
	w.totals()
}

// heal ends what lasts: no fault of the world lasts for ever.
func (w *world) heal() {
	w.chain.goOn()
	w.chain.set(func(n *node) { *n = node{} })
	w.service.out, w.service.deaf, w.service.copies, w.service.form = false, false, "", ""
	w.game.full, w.game.closed, w.game.capped, w.game.clock = false, false, false, 0
	w.game.slow, w.game.panics, w.game.aborts, w.game.breaks = false, false, false, false
	w.store.down, w.store.fails, w.store.loses, w.store.forgot = false, false, false, false
	w.books.lag = 0
	clear(w.inside)
}

// stored is what the table has of an order; its state is empty if it has none.
func (w *world) stored(o *order) (s struct{ state, session string }) {
	for _, db := range w.dbs {
		err := db.QueryRow(w.data.bind("SELECT state, session_id FROM ramp_orders WHERE uuid = ?"), o.id.String()).
			Scan(&s.state, &s.session)
		if !errors.Is(err, sql.ErrNoRows) {
			w.check(err)
		}
	}
	return s
}

func (w *world) balance(wrong func(player string, has, must int64)) {
	for _, player := range []string{"alice", "bob"} {
		if has, must := w.gold(player), w.owes(player); has != must {
			wrong(player, has, must)
		}
	}
}

// known: 13 hours after all has happened, by the clocks of the servers, who has too much or too little is known to a
// person: an order of theirs waits, or a result has contradicted one, or the books have a finding.
func (w *world) known() {
	waiting := w.waiting()
	w.balance(func(player string, has, must int64) {
		of := func(o *order) bool { return w.game.accounts[o.session] == player }
		known := slices.ContainsFunc(w.orders, func(o *order) bool {
			if !of(o) {
				return false
			}
			for i := range w.books.findings {
				if fits(&w.books.findings[i], o) {
					return true
				}
			}
			// Who was told of a conflict does not know that gold was doubled.
			return has < must && slices.Contains(w.conflicts, o) ||
				slices.ContainsFunc(waiting, func(s ramp.Order) bool { return s.UUID == o.id })
		})
		if !known {
			w.fault("silent", player, has-must, "has %d, should have %d, and nobody knows", has, must)
		}
	})
}

// totals: the books of all periods count each order that has ended once, and nothing is found where all is right.
func (w *world) totals() {
	right := len(w.faults) == 0
	w.close()
	if !w.restored && w.books.closed.After(w.now().Add(-time.Hour)) {
		n := int(w.sum("SELECT count(*) FROM ramp_orders WHERE state <> 'accepted'")) + w.deleted
		if n != w.books.ended {
			w.fault("totals", "", int64(w.books.ended-n), "%d orders have ended, and the periods count %d",
				n, w.books.ended)
		}
	}
	if !right {
		return
	}
	all, err := w.reconciler().Reconcile(ctx, w.books.begun, time.Time{})
	if err != nil {
		w.fault("no books", "", 0, "%v", err)
		return
	}
	for _, f := range all.Findings {
		if ofGone := func(o *order) bool { return o.gone && fits(&f, o) }; !slices.ContainsFunc(w.orders, ofGone) &&
			!w.books.blames {
			w.fault("stays", "", 0, "%s: %s", f.Kind, f.Detail)
		}
	}
}
