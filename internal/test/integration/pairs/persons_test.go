package pairs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/support"
)

// person is somebody who ends orders by hand.
type person struct {
	hears bool // the service answers
}

var (
	heard   = person{hears: true}
	unheard = person{}

	who     = support.Decision{Who: "carol", Reason: "case 17"}
	against = support.Decision{Who: "carol", Reason: "case 17", AgainstEvidence: true}
	batch   = support.Decision{Who: "carol", Reason: "case 17", Batch: true}
)

func (w *world) desk() *support.Orders {
	return must.Get(support.New(support.Config{Store: program{w.store}, Proof: w.proof(), Projects: w.game.projects,
		Products: w.books.sold, Books: w.reconciler(), Now: w.now,
		Logger: slog.New(slog.NewJSONHandler(w.log, nil))}))(w.t)
}

func (w *world) reconciler() *rampbooks.Reconciler {
	var from rampbooks.OrderLister = w.store
	if w.books.lag > 0 {
		from = replica{w.store}
	}
	return must.Get(rampbooks.New(rampbooks.Config{Store: from, Proof: w.proof(), Projects: w.game.projects,
		Products: w.books.sold, Journal: &w.books, OwnsWallet: w.owns, Now: w.now,
		Logger: slog.New(slog.NewJSONHandler(w.log, nil))}))(w.t)
}

// waiting are the orders that persons see: those that have waited for 13 hours.
func (w *world) waiting() (list []ramp.Order) {
	if w.store.down {
		return nil
	}
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		l, err := w.store.Waiting(ctx, d, w.now().Add(-13*time.Hour), ramp.OrderPage{})
		w.check(err)
		list = append(list, l...)
	}
	return list
}

// obeys lets a person do what Advise says, word for word, with each order that waits, and returns how many did.
func (w *world) obeys(p person) int {
	list := w.waiting()
	for _, o := range list {
		said := w.follow(p, &o)
		w.last[w.of(o.UUID).player] = said
		w.tell("  a person: %s", said)
	}
	w.corrects()
	return len(list)
}

func (w *world) follow(p person, stored *ramp.Order) string {
	desk, o := w.desk(), w.of(stored.UUID)
	report, err := desk.Show(ctx, o.id)
	if report == nil {
		return err.Error()
	}
	defer w.decides(o)
	a := support.Advise(report, w.now())
	// finish does what the refusals say: the service says that a transaction which has ended another order settles
	// both, that one which looks older than the order is its own, and whose another one is that keeps the order
	// from being given back.
	finish := func(hash common.Hash, d support.Decision) error {
		for {
			_, err := desk.Finish(ctx, o.id, hash, d)
			var conflict *ramp.ConflictError
			var other *support.CandidateError
			switch {
			case err == nil:
				return nil
			case !d.Batch && errors.As(err, &conflict) && conflict.Field == "tx_hash":
				d.Batch = true
			case !d.AgainstEvidence && (strings.Contains(err.Error(), "ask the service whose it is") ||
				strings.Contains(err.Error(), "the clock of the server was ahead")):
				d.AgainstEvidence = true
			case p.hears && errors.As(err, &other) && other.Candidate.Hash != o.tx.hash:
				_, err = desk.Abandon(ctx, o.id, against)
				return err
			default:
				return err
			}
		}
	}
	switch a.Next {
	case support.NextFinish:
		_, err = desk.Finish(ctx, o.id, *a.Tx, who)
	case support.NextBatch:
		_, err = desk.Finish(ctx, o.id, *a.Tx, batch)
	case support.NextAbandon:
		equal := a.Tx != nil // it does not matter which of two orders the transaction of Tx belongs to
		unsent := func(b *order) bool { return b.player == o.player && b.tx == nil && w.mayCome(b) }
		switch {
		case equal && p.hears && w.has(unsent):
			return "the service says: wait"
		case equal:
			_, err = desk.Abandon(ctx, o.id, who)
		case p.hears && w.chain.has(o.tx):
			err = finish(o.tx.hash, who)
		case p.hears && w.mayCome(o):
			return "the service says: wait"
		default:
			_, err = desk.Abandon(ctx, o.id, who)
		}
	case support.NextAskService, support.NextOtherOrder, support.NextCompareClocks:
		switch {
		case !p.hears:
			return string(a.Next) + ": no answer"
		case w.chain.has(o.tx):
			err = finish(o.tx.hash, against)
		case w.mayCome(o):
			return "the service says: wait"
		default:
			_, err = desk.Abandon(ctx, o.id, against)
		}
	case support.NextCorrect: // the cause is corrected
		w.game.full = false
		if !w.chain.has(o.tx) {
			return a.Do
		}
		err = finish(o.tx.hash, who)
	}
	if err != nil {
		return string(a.Next) + ": " + err.Error()
	}
	return string(a.Next) + ": " + a.Do
}

// corrects: a result or the books contradict how an order ended, because its transaction was sent again. A person
// corrects the balance by hand and decides the findings, as docs/on-call.md says.
func (w *world) corrects() {
	for _, o := range w.orders {
		if !o.sentAgain {
			continue
		}
		made, err := w.reconciler().Reconcile(ctx, w.books.begun, time.Time{})
		if err != nil {
			w.tell("  books: %v", err)
			continue
		}
		told := slices.Contains(w.conflicts, o)
		for _, f := range made.Findings {
			if fits(&f, o) {
				told = true
				w.decideFinding(rampbooks.Entry{Finding: f.Kind, Order: o.id, TxHash: o.tx.hash})
			}
		}
		if told && w.moved(o.id) != o.value() {
			w.decideFinding(rampbooks.Entry{Finding: rampbooks.EndedOtherwise, Order: o.id})
			w.byHand(o, o.value())
		}
	}
}

func (w *world) decideFinding(e rampbooks.Entry) {
	e.Who, e.Reason = who.Who, who.Reason
	if _, err := w.reconciler().Decide(ctx, e); err != nil && !errors.Is(err, rampbooks.ErrDecided) {
		w.tell("  a person decides nothing: %v", err)
	}
}

// byHand moves by hand what an order should have moved in all.
func (w *world) byHand(o *order, should int64) {
	n := should - w.moved(o.id)
	w.tell("  a person moves by hand: %+d", n)
	w.exec("UPDATE balances SET gold = gold + ? WHERE player = ?", n, w.game.accounts[o.session])
	w.execOn(w.dbs[0], "INSERT INTO moves (uuid, gold) VALUES (?, ?)", o.id.String(), n)
}

// mails: a person ends the orders of alice that wait, without the game, and sends by mail what it should have moved.
func (w *world) mails() {
	d := against
	d.Settled = "by mail"
	w.each(func(o *order) bool { return o.asked > 0 && w.chain.has(o.tx) }, func(o *order) {
		defer w.decides(o)
		for range 2 { // the answer of a COMMIT may be lost
			_, err := w.desk().Finish(ctx, o.id, o.tx.hash, d)
			w.tell("  a person settles: %v", err)
		}
		stored, err := w.store.Order(ctx, o.id)
		if err != nil || stored.Settled == "" {
			return
		}
		should := int64(0)
		if o.tx.ok {
			should = o.value()
		}
		w.byHand(o, should)
	})
}

// mayCome reports whether a transaction of an order may still come.
func (w *world) mayCome(o *order) bool {
	return o.signed && !o.closed && o.tx == nil || o.tx != nil && !o.tx.dropped
}

// owns reports whether a wallet is that of a session's player.
func (w *world) owns(_ context.Context, session string, wallet common.Address) (bool, error) {
	return slices.ContainsFunc(w.orders, func(o *order) bool {
		return o.session == session && o.wallet == wallet
	}), nil
}

// finishFitting lets a scheduler end the orders of which the books say that they may be ended without a person.
func (w *world) finishFitting() {
	made, err := w.reconciler().Reconcile(ctx, w.books.begun, time.Time{})
	if err != nil {
		w.tell("  books: %v", err)
		return
	}
	steps, err := w.desk().FinishFitting(ctx, made, who)
	w.tell("  a scheduler: %d finished, %v", len(steps), err)
	for _, s := range steps {
		w.of(s.Order.UUID).decided = true
	}
}

// decides notes whether a person has ended an order.
func (w *world) decides(o *order) {
	state := w.stored(o).state
	o.decided = o.decided || state != "" && state != string(ramp.OrderAccepted)
}

// errs lets a person do something else than Advise says, with each order of alice that has been asked for.
// Nothing overrides a check: what is done must be refused, or harmless.
func (w *world) errs(what string) {
	desk := w.desk()
	w.each(func(o *order) bool { return o.asked > 0 }, func(o *order) {
		defer w.decides(o)
		var err error
		switch what {
		case "another's hash": // of an order that goes the same way
			at := slices.IndexFunc(w.orders, func(b *order) bool { return b.player == "bob" && b.burn == o.burn })
			_, err = desk.Finish(ctx, o.id, w.orders[at].tx.hash, who)
		case "the hash of her other order":
			other := w.any(func(b *order) bool { return b != o && w.chain.has(b.tx) })
			if other == nil {
				return
			}
			_, err = desk.Finish(ctx, o.id, other.tx.hash, who)
		case "the hash that failed":
			if o.failed == nil {
				return
			}
			_, err = desk.Finish(ctx, o.id, o.failed.hash, who)
		case "abandons":
			_, err = desk.Abandon(ctx, o.id, who)
		}
		w.tell("  a person errs: %v", err)
	})
}

// books are what a bookkeeper keeps: one period after another.
type books struct {
	sold     []rampbooks.Offer
	entries  []rampbooks.Entry
	begun    time.Time // of the first period
	closed   time.Time // the end of the last one
	ended    int       // orders, by the totals of all periods
	findings []rampbooks.Finding
	position []byte
	lag      time.Duration // of the database that they read
	blames   bool          // they rightly have findings although all is right: a clock was far ahead
}

func (b *books) Add(_ context.Context, e rampbooks.Entry) error {
	b.entries = append(b.entries, e)
	return nil
}

func (b *books) Entries(context.Context, time.Time) ([]rampbooks.Entry, error) { return b.entries, nil }

// What one period leaves for the next one.
func (b *books) Lock(context.Context) (unlock func(), err error) { return func() {}, nil }
func (b *books) Read(context.Context) (text []byte, err error)   { return b.position, nil }
func (b *books) Write(_ context.Context, text []byte) error      { b.position = text; return nil }
func (b *books) String() string                                  { return "the position" }

// close makes the books of the period since the last ones.
func (w *world) close() {
	err := w.reconciler().NextBooks(ctx, &w.books, func(_ context.Context, made *rampbooks.Reconciliation) error {
		w.books.closed = made.To
		for _, total := range made.Totals {
			w.books.ended += total.Succeeded + total.Failed + total.Abandoned
		}
		w.books.findings = append(w.books.findings, made.Findings...)
		for _, f := range made.Findings {
			w.tell("  books: %s: %s", f.Kind, f.Detail)
		}
		return nil
	})
	if err != nil {
		w.tell("  books: %v", err)
	}
}

// prune deletes the mints that ended a week ago, unless their books cannot be made, or have an order that waits: so
// says docs/books.md.
func (w *world) prune() {
	w.close()
	if w.store.down || w.books.closed.Before(w.now().Add(-time.Hour)) || len(w.waiting()) > 0 {
		w.tell("  not pruned")
		return
	}
	for _, s := range w.store.shards {
		for n := 1; n > 0; w.deleted += n {
			w.taking <- true
			var err error
			n, err = s.DeleteFinished(ctx, ramp.Mint, w.now().Add(-7*24*time.Hour))
			<-w.taking
			w.check(err)
		}
	}
	for _, o := range w.orders { // what was never asked for, or was declined, has never been there
		o.gone = o.gone || o.signed && w.stored(o).state == ""
	}
}

func (w *world) erase() {
	w.close()
	n, err := w.desk().EraseSession(ctx, "alice", w.now().Add(-7*24*time.Hour), who)
	for _, o := range w.orders {
		s := w.stored(o)
		o.erased = o.erased || s.session != "" && s.session != o.session
	}
	w.tell("  erased: %d, %v", n, err)
}

// fits reports whether a finding is about a player.
func fits(f *rampbooks.Finding, o *order) bool {
	return slices.ContainsFunc(f.Orders, func(of rampbooks.FoundOrder) bool { return of.UUID == o.id }) ||
		slices.ContainsFunc(f.Events, func(e rampbooks.ChainEvent) bool { return o.tx != nil && e.TxHash == o.tx.hash })
}
