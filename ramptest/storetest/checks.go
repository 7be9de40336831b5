package storetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/rampproof"
)

// errorsComeBack makes every kind of call that must fail. The other checks
// recognize an outcome by its error.
func (k *trial) errorsComeBack() {
	d := k.player(10).deal(mint(gold(4)))
	own := func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, errors.New("an error of next") }
	d.unchanged("a result of an unknown order", d.fails())
	d.unchanged("the abandonment of an unknown order", d.abandoned())
	d.unchanged("an error of next without an order", own)

	d.atApply(func(ramp.Step) error { return ramp.Reject("NOT_TODAY") })
	if code := d.rejected("a validate that Apply rejected with NOT_TODAY"); code != "NOT_TODAY" {
		k.fail(
			"Apply rejected a validate with NOT_TODAY, but errors.As finds the code %q in the error "+
				"of Update", code)
	}
	d.atApply(nil)
	d.deal(mint(gold(11))).rejected("a Take of 11 above the balance of 10")
	d.expectGold("after calls that failed", 10)

	d.take("a validate that was rejected before", d.accepts())
	request := *d.ValidateRequest
	request.Digest[0]++
	d.unchanged("a validate with another digest", d.deal(&request).accepts())
	other := player{k, "another session"}.deal(d.ValidateRequest)
	d.unchanged("a validate of another session", other.accepts())
	d.unchanged("a result of another session", other.fails())
	d.unchanged("an error of next", own)
	d.unchanged("an error of next for the stored order alone", func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return d.accepts()(nil)
		}
		return own(stored)
	})
	d.expectGold("after calls that contradict the order", 6)

	d.take("a result", d.fails())
	d.unchanged("a validate of an order that is over", d.accepts())
	d.unchanged("the abandonment of an order that is over", d.abandoned())
	d.unchanged("another outcome", d.succeeds())
	d.expectGold("after calls that contradict the outcome", 10)
}

// unchanged makes a call for which next returns an error. Update must return that error
// itself.
func (d *deal) unchanged(what string, next ramp.Transition) {
	before := d.timesApplied()
	var want error
	step, got := d.update(d.ctx, d.UUID, func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		want = err
		return step, err
	})
	d.expectError(what, step, got)
	switch _, final := next(d.order); {
	case want == nil || want.Error() != final.Error():
		d.fail("Update must return what next says of the stored order, but returned %q instead of %q for %s",
			got, final, what)
	case got != want:
		d.fail("Update must return an error of next unchanged, but returned %T %q instead of %T %q for %s",
			got, got, want, want, what)
	case d.timesApplied() != before:
		d.fail("Apply was called for %s, although next returned an error", what)
	}
	d.expectStored("after " + what)
}

// rejected makes a validate call that must be rejected, and returns the code.
func (d *deal) rejected(what string) ramp.Code {
	err := d.mustFail(what, d.accepts())
	var rejection *ramp.Rejection
	if !errors.As(err, &rejection) {
		d.fail("Update must return an error that wraps that of ramp.Reject for %s, but returned %T %q",
			what, err, err)
	}
	return rejection.Code
}

func (k *trial) stepsAndRepeats() {
	for _, e := range endings {
		d := k.player(10).deal(e.request(gold(4)))
		for _, s := range e.steps(d) {
			for _, what := range []string{"the ", "a repeated ", "a repeated "} {
				d.take(what+s.name, s.next)
				d.expectGold("after "+what+s.name, s.after)
			}
		}
	}
}

func (k *trial) roundTrip() {
	large := ramp.Must(ramp.ParseAmount("9" + strings.Repeat("8", 99) + "." + strings.Repeat("7", 99) + "1"))
	const emoji = "😀"
	for _, session := range []string{"игрок 玩家 ", `{"a":1}'; --\`, strings.Repeat("長", 330), emoji} {
		p := player{k, session + rand.Text()}
		p.give("gold", 100)
		for _, e := range endings {
			r := e.request(gold(4))
			inUnicode(r)
			side := &r.Intent.To
			if r.Intent.Type == ramp.Disassemble {
				side = &r.Intent.From
			}
			*side = append(*side, ramp.IntentAsset{Type: "新", ID: "<token> \u2028", Amount: large})
			r.Intent.TargetCandidate = json.RawMessage(`{"a":[null,"Ω"]}`)

			d := p.deal(r)
			if session == emoji {
				var wrong *ramp.InvalidError // some databases cannot hold it
				if _, err := k.update(k.ctx, r.UUID, d.accepts()); errors.As(err, &wrong) {
					d.expectStored("after Update returned an InvalidError")
					continue
				}
				r.UUID = uuid.New()
			}
			d.take("a validate in Unicode with an amount of 200 digits", d.accepts())
			d.take("the end of "+e.name+" in Unicode", e.end(d))
		}
	}
}

// inUnicode sets each text of a validate call that an order stores.
func inUnicode(r *ramp.ValidateRequest) {
	order := reflect.TypeFor[ramp.Order]()
	for _, field := range reflect.VisibleFields(reflect.TypeOf(*r)) {
		stored, known := order.FieldByName(field.Name)
		if known && stored.Type == field.Type && field.Type.Kind() == reflect.String {
			reflect.ValueOf(r).Elem().FieldByIndex(field.Index).SetString("プロジェクト <&> Ä")
		}
	}
}

// applyError is an error of Apply that errors.As can find.
type applyError struct{}

func (*applyError) Error() string { return "Apply failed" }

func (k *trial) failingApply() {
	cause := &applyError{}
	k.applying("failed", func(ramp.Step) error { return cause }, func(err error) {
		var found *applyError
		if !errors.Is(err, cause) || !errors.As(err, &found) {
			k.fail(
				"Update's error does not wrap the error of Apply, so that errors.Is and errors.As do not "+
					"find it: %v", err)
		}
	})
	k.applying("panicked", func(ramp.Step) error { panic("in Apply") }, func(error) {})
}

// applying runs each step of each kind of order with an Apply that stores nothing, and
// then repeats it with one that succeeds. It calls examine with the errors.
func (k *trial) applying(how string, apply func(ramp.Step) error, examine func(error)) {
	for _, e := range endings {
		d := k.player(10).deal(e.request(gold(4)))
		for _, s := range e.steps(d) {
			failing := "the " + s.name + " whose Apply " + how
			d.atApply(apply)
			examine(d.mustFail(failing, s.next))
			d.expectGold("after "+failing, s.before)
			d.atApply(nil)
			d.take("the repeated "+s.name, s.next)
			d.expectGold("after the repeated "+s.name, s.after)
		}
	}
}

func (k *trial) takeTooMuch() {
	p := k.player(10)
	p.give("gem", 1)
	gem := ramp.AssetAmount{ID: "gem", Amount: ramp.NewAmount(2)}
	for _, r := range []*ramp.ValidateRequest{mint(gold(11)), mint(gold(3), gem), mint(gem, gold(3))} {
		d := p.deal(r)
		d.rejected("a Take above the balance")
		p.expectGold("after a Take above the balance of one asset", 10)
		if gems := p.balance("gem"); gems != 1 {
			k.fail("the second balance is %d instead of 1 after a Take above the balance of one asset", gems)
		}
		r.Intent.From = r.Intent.From[:1]
		r.Intent.From[0].Amount = ramp.NewAmount(1)
		d.take("a smaller order under a UUID that was rejected", d.accepts())
		d.take("its result", d.fails())
	}
	d := p.deal(mint(gold(10)))
	d.take("a mint of the whole balance", d.accepts())
	p.expectGold("after a mint of the whole balance", 0)
}

// grants ends orders of players who could not get the assets, if a grant could be refused.
func (k *trial) grants() {
	kinds := []struct {
		name string
		r    func() *ramp.ValidateRequest
		end  func(*deal) ramp.Transition
	}{
		{"a burn", func() *ramp.ValidateRequest { return burn(gold(4)) }, (*deal).succeeds},
		{"a failed mint", func() *ramp.ValidateRequest { return mint(gold(4)) }, (*deal).fails},
	}
	for _, e := range kinds {
		p := k.player(10)
		d := p.accepted(e.r())
		p.give("gold", -500) // a chargeback
		d.take("the end of "+e.name+" of a player with a debt of 500", e.end(d))
		p.expectGold("after "+e.name+" of a player with a debt of 500", -496)
	}
	nobody := player{k, "nobody " + rand.Text()}
	d := nobody.accepted(burn(gold(4)))
	d.take("the end of a burn of a player without any balance", d.succeeds())
	nobody.expectGold("after a burn of a player without any balance", 4)

	full := k.player(math.MaxInt64 - 3)
	d = full.deal(burn(gold(4)))
	if step, err := full.update(k.ctx, d.UUID, d.accepts()); err == nil {
		d.order = &step.Order
		d.take("the end of a burn of a player whose balance has no room for it", d.succeeds())
		if n := full.balance("gold"); n < math.MaxInt64-3 {
			k.fail("the balance is %d after a burn without room for it, and was %d before", n,
				int64(math.MaxInt64-3))
		}
	} else {
		d.expectStored("after a burn without room for it was declined")
		full.expectGold("after a burn without room for it was declined", math.MaxInt64-3)
	}
}

// settledElsewhere ends orders whose assets a person has settled in another way, for which
// Apply is not called: it would fail.
func (k *trial) settledElsewhere() {
	for _, e := range endings {
		d := k.player(10).accepted(e.request(gold(4)))
		d.atApply(func(ramp.Step) error { return errors.New("the player is gone") })
		what := e.name + ", settled in another way"
		for range 2 {
			d.take(what, ramp.Settled("by mail 📨", e.end(d)))
			d.expectGold("after "+what, 10-e.taken)
		}
		d.take("the end of "+what+", again", e.end(d))
		d.expectGold("after the end of "+what+", again", 10-e.taken)
	}
	d := k.player(10).accepted(burn(gold(4)))
	d.take("a burn that was settled in another way", ramp.Settled("by mail", d.succeeds()))
	other := k.player(10).accepted(burn(gold(4)))
	what := "a result by the transaction of an order that was settled in another way"
	other.expectTaken(what, other.mustFail(what, other.resultBy(d.order.TxHash, 1)), d.order)
}

// refusals notes refusals, if the store does.
// refuser is a store that knows why the ends of orders were refused.
type refuser interface {
	Refused(ctx context.Context, id uuid.UUID, reason string) error
	Refusals(ctx context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error)
}

func (k *trial) refusals() {
	for _, e := range endings {
		store := k.Stores[int(k.turn.Add(1))%len(k.Stores)].(refuser)
		d := k.player(10).accepted(e.request(gold(4)))
		refuse := func(id uuid.UUID, reason string, want int) ramp.Refusal {
			if err := store.Refused(k.ctx, id, reason); err != nil {
				k.fail("Refused failed: %v", err)
			}
			noted, err := store.Refusals(k.ctx, id, uuid.New())
			if err != nil || len(noted) != min(want, 1) || noted[id].Count != want {
				k.fail("Refusals returned %+v, %v for an order that was refused %d times", noted, err, want)
			}
			return noted[id]
		}
		refuse(uuid.New(), "of an unknown order", 0)
		first := refuse(d.UUID, "the purse is full", 1)
		const reason = "the purse of 玩家 is full 🙂, it's \\ 1000"
		last := refuse(d.UUID, reason, 2)
		switch {
		case last.UUID != d.UUID || last.Reason != reason:
			k.fail("Refusals returned %+v for the last refusal of %s for the reason %q", last, d.UUID, reason)
		case first.First.IsZero() || !last.First.Equal(first.First) || last.Last.Before(first.Last):
			k.fail("Refusals returned the times %v to %v, and then %v to %v",
				first.First, first.Last, last.First, last.Last)
		}
		d.take("the end of "+e.name+" that was refused before", e.end(d))
		if ended := refuse(d.UUID, "after its end", 2); ended.Reason != reason {
			k.fail("Refused has noted %q for an order that has ended", ended.Reason)
		}
	}
}

func (k *trial) keptApart() {
	name := "Player-" + rand.Text()
	type holding struct{ session, asset string }
	holdings := []holding{ // a careless key or collation would confuse these
		{name, "gold:x"}, {name + ":gold", "x"}, {name + ":gold:x", ""}, {name, "Gold:x"}, {name, "gold:x "},
		{strings.ToLower(name), "gold:x"}, {name + "é", "gold:x"}, {name + "e", "gold:x"},
		{name + "%", "gold:x"},
	}
	for i, h := range holdings {
		player{k, h.session}.give(h.asset+"!", int64(100+i))
	}
	for i, h := range holdings {
		player{k, h.session}.accepted(mint(ramp.AssetAmount{ID: h.asset + "!", Amount: ramp.NewAmount(50)}))
		for j, other := range holdings {
			want := int64(100 + j)
			if j <= i {
				want -= 50
			}
			if got := (player{k, other.session}).balance(other.asset + "!"); got != want {
				k.fail("session %q has %d of asset %q instead of %d, after session %q paid 50 of asset %q",
					other.session, got, other.asset+"!", want, h.session, h.asset+"!")
			}
		}
	}
}

func (k *trial) largeBalances() {
	const odd = 1<<53 + 1 // float64 cannot represent this
	p := k.player(odd)
	d := p.accepted(mint(gold(1)))
	p.expectGold("after 1 was taken of a large balance", odd-1)
	d.take("its result", d.fails())
	p.expectGold("after 1 was given back to a large balance", odd)
	d = p.accepted(mint(gold(odd)))
	p.expectGold("after a large balance was taken as a whole", 0)
	d.take("its result", d.fails())
	p.expectGold("after a large balance was given back as a whole", odd)
}

// oneTransaction ends orders by a transaction that has ended another one.
func (k *trial) oneTransaction() {
	alice, bob := k.player(10), k.player(10)
	first := alice.accepted(burn(gold(4)))
	first.take("the result of a burn", first.succeeds())
	d := alice.accepted(burn(gold(4)))
	d.atApply(func(ramp.Step) error { return errors.New("an error of Apply") })
	hash := txHash(uuid.New())
	d.mustFail("a result whose Apply failed", d.resultBy(hash, 1))
	if orderlist.ClaimsOf(k.Stores[0]) == nil {
		d = bob.accepted(burn(gold(4)))
		d.take("a result by the transaction of a step that failed", d.resultBy(hash, 1))
	} else { // what it has claimed is its own
		const what = "a result by the transaction that another order has claimed"
		other := bob.accepted(burn(gold(4)))
		other.expectTaken(what, other.mustFail(what, other.resultBy(hash, 1)), d.order)
		d.atApply(nil)
		d.take("a result whose Apply failed before", d.resultBy(hash, 1))
	}
	for _, p := range []player{alice, bob} {
		for _, e := range endings {
			if strings.Contains(e.name, "abandoned") {
				continue
			}
			d := p.accepted(e.request(gold(4)))
			before := p.balance("gold")
			what := "the result of " + e.name + " by a transaction that has ended another order"
			status := uint64(0)
			if strings.Contains(e.name, "succeeds") {
				status = 1
			}
			for range 2 {
				d.expectTaken(what, d.mustFail(what, d.resultBy(first.order.TxHash, status)), first.order)
				p.expectGold("after "+what, before)
			}
			d.take("the result of "+e.name+" by its own transaction", e.end(d))
			p.expectGold("after a result by its own transaction", before+e.given)
		}
	}
	first.take("the repeated result of the order that has ended by the transaction", first.succeeds())
	for range 2 { // no transaction is not a transaction
		d := alice.accepted(burn(gold(4)))
		d.take("a result without tx_hash", d.resultBy("", 1))
	}
}

// expectTaken fails unless an error says which other order has ended by a transaction.
func (d *deal) expectTaken(what string, err error, other *ramp.Order) {
	var conflict *ramp.ConflictError
	switch {
	case !errors.As(err, &conflict) || conflict.Field != "tx_hash":
		d.fail("Update must return a *ramp.ConflictError of tx_hash for %s, but returned %T %q",
			what, err, err)
	case difference(conflict.Order, *d.order) != "":
		d.fail("Order of the ConflictError is not the stored order of the call for %s: %s", what,
			difference(conflict.Order, *d.order))
	case conflict.Other != nil && conflict.Other.UUID == other.UUID && orderlist.ClaimsOf(d.Stores[0]) != nil:
		// it may have claimed the transaction, and not ended yet
	case conflict.Other == nil || difference(*conflict.Other, *other) != "":
		d.fail(
			"Other of the ConflictError must be the order that has ended by the transaction, for %s, "+
				"but is %v", what, conflict.Other)
	}
}

// orderFinder tests the methods that a proof needs, if the store has them.
func (k *trial) orderFinder() {
	s := k.Stores[0].(rampproof.OrderFinder)
	p := k.player(100)
	of := func(d *deal, what string) {
		got, err := s.OrderByTransaction(k.ctx, common.HexToHash(d.order.TxHash))
		if err != nil || difference(got, *d.order) != "" {
			k.fail("OrderByTransaction returned another order than %s: %v, %s",
				what, err, difference(got, *d.order))
		}
	}
	unknown := func(hash string) {
		_, err := s.OrderByTransaction(k.ctx, common.HexToHash(hash))
		if !errors.Is(err, ramp.ErrOrderUnknown) {
			k.fail("the error of OrderByTransaction for a transaction that ended no order "+
				"does not wrap ErrOrderUnknown: %v", err)
		}
	}
	at := time.Now().Add(time.Hour) // the data may have other orders
	ends := func(d *deal, hash string, status uint64) {
		at = at.Add(time.Millisecond)
		d.take("a result", ramp.Finish(&ramp.Result{SessionID: d.session, UUID: d.UUID, TxHash: hash,
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: d.Intent}, at))
	}
	var newest *deal
	for _, r := range []*ramp.ValidateRequest{mint(gold(1)), burn(gold(1))} {
		d := p.accepted(r)
		unknown(txHash(d.UUID))
		ends(d, txHash(d.UUID), 1)
		of(d, "the one that succeeded by the transaction")
		newest = d
	}
	failed := p.accepted(mint(gold(1)))
	ends(failed, txHash(failed.UUID), 0)
	of(failed, "the one that failed by the transaction")
	ends(p.accepted(burn(gold(1))), "", 1)
	abandoned := p.accepted(mint(gold(1)))
	abandoned.take("a decision", abandoned.abandoned())
	unknown("0x00")
	k.eventually(func() { k.newestSuccess(s, newest) })
}

func (k *trial) newestSuccess(s rampproof.OrderFinder, newest *deal) {
	got, err := s.NewestSuccess(k.ctx, ramp.Testnet) // orders of no network count, too
	switch {
	case err != nil:
		k.fail("NewestSuccess failed, although an order has succeeded by a transaction: %v", err)
	case got.State != ramp.OrderSucceeded || got.TxHash == "":
		k.fail("NewestSuccess returned an order that is %s by the transaction %q", got.State, got.TxHash)
	case got.FinishedAt.Before(newest.order.FinishedAt):
		k.fail("NewestSuccess returned an order that succeeded before another")
	case got.UUID == newest.UUID && difference(got, *newest.order) != "":
		k.fail("NewestSuccess returned another order than is stored: %s", difference(got, *newest.order))
	}
}

// oneTransactionAtOnce lets orders of several players end by one transaction.
func (k *trial) oneTransactionAtOnce() {
	const orders = 8
	for range 4 {
		calls, deals := make([]*call, orders), make([]*deal, orders)
		hash := txHash(uuid.New())
		for i := range calls {
			deals[i] = k.player(10).accepted(burn(gold(4)))
			calls[i] = deals[i].call(deals[i].resultBy(hash, 1))
		}
		k.race(calls)
		var winner *ramp.Order
		for _, c := range calls {
			if c.err == nil && winner != nil {
				k.fail("two of %d concurrent orders have ended by one transaction", orders)
			} else if c.err == nil {
				winner = &c.step.Order
			}
		}
		if winner == nil {
			k.fail("none of %d concurrent orders has ended by a transaction: %v", orders, calls[0].err)
		}
		for i, c := range calls {
			d, want := deals[i], int64(14)
			if c.err != nil {
				want = 10
				d.expectTaken("one of several orders that end by one transaction", c.err, winner)
			}
			d.expectGold("after several orders ended by one transaction", want)
			if c.err != nil {
				d.take("the result by its own transaction", d.succeeds())
			}
		}
	}
}

func (k *trial) canceled() {
	for _, e := range endings {
		for at := range 5 { // canceled before the call, at a call of next, or in Apply
			d := k.player(10).deal(e.request(gold(4)))
			for _, s := range e.steps(d) {
				ctx, cancel := context.WithCancel(k.ctx)
				if at == 0 {
					cancel()
				}
				if at == 4 {
					d.atApply(func(ramp.Step) error { cancel(); return nil })
				}
				calls := 0
				_, err := k.update(ctx, d.UUID, func(stored *ramp.Order) (ramp.Step, error) {
					if calls++; calls == at {
						cancel()
					}
					return s.next(stored)
				})
				if errors.Is(err, errStuck) {
					k.fail("%v after its context was canceled", err)
				}
				if _, again := k.settle(d.UUID, s.next); again != nil {
					k.fail("the repeat of a call whose context was canceled failed: %v", again)
				}
				cancel()
				d.atApply(nil)
				d.expectGold("after the "+s.name+" whose context was canceled, and its repeat", s.after)
			}
		}
	}
}

const racers = 50

// expectOne fails unless exactly one call of a race made a new step, and the others were
// answered by what it stored. It returns the stored order.
func (k *trial) expectOne(what string, calls []*call) *ramp.Order {
	stored := k.stored(calls[0].id)
	if stored == nil {
		k.fail("no order is stored after %d concurrent %s", len(calls), what)
	}
	opened := 0
	for _, c := range calls {
		_, want := c.next(stored)
		switch {
		case (c.err == nil) != (want == nil), want != nil && !errors.Is(c.err, errors.Unwrap(want)):
			k.fail("one of %d concurrent %s was answered with %v instead of %v", len(calls), what,
				c.err, want)
		case c.err == nil && difference(c.step.Order, *stored) != "":
			k.fail("one of %d concurrent %s returned another order than is stored: %s", len(calls), what,
				difference(c.step.Order, *stored))
		case c.step.New:
			opened++
		}
	}
	if opened != 1 {
		k.fail("%d of %d concurrent %s made a new step, instead of one", opened, len(calls), what)
	}
	return stored
}

func (k *trial) validatesAtOnce() {
	for range 4 {
		d := k.player(1000).deal(mint(gold(4)))
		other := *d.ValidateRequest
		other.Digest[0]++
		other.Intent.From = []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(7)}}
		calls := make([]*call, racers)
		for i := range calls {
			at := validatedAt.Add(time.Duration(i) * time.Millisecond)
			calls[i] = d.call(ramp.Accept(ramp.Session{ID: d.session},
				[]*ramp.ValidateRequest{d.ValidateRequest, &other}[i%2], at))
		}
		k.race(calls)
		stored := k.expectOne("validates, of which half were different,", calls)
		taken := int64(4)
		if stored.Digest == other.Digest {
			taken = 7
		}
		d.expectGold(fmt.Sprintf("after %d concurrent validates under one UUID", racers), 1000-taken)
	}
}

func (k *trial) outcomesAtOnce() {
	for _, e := range endings {
		d := k.player(1000).accepted(e.request(gold(4)))
		ends := []ramp.Transition{e.end(d), d.succeeds(), e.end(d), d.fails(), d.abandoned()}
		calls := make([]*call, racers)
		for i := range calls {
			calls[i] = d.call(ends[i%len(ends)])
		}
		k.race(calls)
		stored := k.expectOne("outcomes", calls)
		gold := int64(1000)
		switch mint := stored.Direction == ramp.Mint; {
		case mint && stored.State == ramp.OrderSucceeded:
			gold -= 4
		case !mint && stored.State == ramp.OrderSucceeded:
			gold += 4
		}
		d.expectGold(fmt.Sprintf("after concurrent different outcomes of a %v, of which %q won",
			stored.Direction, stored.State), gold)
	}
}

func (k *trial) manyOrders() {
	const balance, price, orders = 100, 3, 60
	p := k.player(balance)
	deals, calls := make([]*deal, orders), make([]*call, orders)
	for i := range calls {
		deals[i] = p.deal(mint(gold(price)))
		calls[i] = deals[i].call(deals[i].accepts())
	}
	done, lowest := make(chan struct{}), make(chan int64)
	go func() {
		for low := int64(balance); ; {
			select {
			case <-done:
				lowest <- low
				return
			default:
				if n, err := k.Balance(k.ctx, p.session, "gold"); err == nil {
					low = min(low, n)
				}
				runtime.Gosched() // to look in memory again and again would keep the orders waiting
			}
		}
	}()
	k.race(calls)
	close(done)
	if low := <-lowest; low < 0 {
		k.fail("the balance was %d for a moment while %d orders of one player ran", low, orders)
	}
	accepted := 0
	var rejection *ramp.Rejection
	for _, c := range calls {
		switch {
		case c.err == nil:
			accepted++
		case !errors.As(c.err, &rejection):
			k.fail("one of %d concurrent orders of one player failed: %v", orders, c.err)
		}
	}
	p.expectGold(fmt.Sprintf("after %d of %d concurrent mints of %d were accepted", accepted, orders, price),
		int64(balance-accepted*price))
	if accepted != balance/price {
		k.fail("%d concurrent mints of %d were accepted with a balance of %d, instead of %d", accepted, price,
			balance, balance/price)
	}
	var results []*call
	back := 0
	for i, c := range calls {
		if c.err == nil {
			end := deals[i].succeeds()
			if i%2 == 0 {
				end = deals[i].fails()
				back += price
			}
			results = append(results, deals[i].call(end))
		}
	}
	k.race(results)
	for _, c := range results {
		if c.err != nil {
			k.fail("one of the concurrent results of one player failed: %v", c.err)
		}
	}
	p.expectGold("after all results of one player came at once", int64(balance-accepted*price+back))
}

func (k *trial) afterCrashes() { k.interrupted("crash", 3, 3) }

// interrupted crashes under load, more often than fewest if no crash came between a step and
// its answer. Every call is repeated until it is answered, as by the service and the player.
// It returns how many orders there were.
func (k *trial) interrupted(crash string, fewest, most int) (orders int) {
	const workers, answersBetween = 8, 20
	n := 0
	players := make([]player, workers/2)
	for i := range players {
		players[i] = k.player(1_000_000)
	}
	var (
		wg       sync.WaitGroup
		stop     = make(chan struct{})
		answered atomic.Int64 // orders
		mu       sync.Mutex
		want     = map[player]int64{}
		repeats  []func() error
		failed   error
		restart  error
	)
	for worker := range workers {
		wg.Go(func() {
			for n := worker; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				e, p := endings[n%len(endings)], players[worker/2]
				d := p.deal(e.request(gold(4)))
				call := func(next ramp.Transition) error {
					_, err := k.settle(d.UUID, next)
					return err
				}
				err := call(d.accepts())
				if err == nil {
					err = call(e.end(d))
				}
				mu.Lock()
				want[p] += e.given - e.taken
				repeats = append(repeats, func() error { return call(e.end(d)) })
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
				answered.Add(1)
			}
		})
	}
	wait := func() bool {
		from := answered.Load()
		end := time.Now().Add(2 * k.timeout)
		for ; answered.Load() < from+answersBetween; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
		return true
	}
	running := wait()
	for ; (n < fewest || k.late.Load() == 0 && n < most) && running; n++ {
		restart = k.Crash() // the load continues in the meantime
		running = restart == nil && wait()
	}
	close(stop)
	wg.Wait()
	switch {
	case restart != nil:
		k.fail("Crash failed: %v", restart)
	case failed != nil:
		k.fail("a call that was repeated around a %s was not answered with success: %v", crash, failed)
	case !running:
		k.fail("orders were no longer finished after a %s", crash)
	case k.failed.Load() == 0:
		k.fail(
			"of %d times, no %s among %d orders interrupted a call, so they prove nothing: does Crash "+
				"stop the server?", n, crash, len(repeats))
	}
	for _, repeat := range repeats {
		if err := repeat(); err != nil {
			k.fail("an order that was finished around a %s is not: %v", crash, err)
		}
	}
	for _, p := range players {
		p.expectGold(fmt.Sprintf("after each %s of %d, among %d orders", crash, n, len(repeats)),
			1_000_000+want[p])
	}
	return len(repeats)
}

// largestOrder ends the largest order that can be accepted. A person's reason is the longest text of an end.
func (k *trial) largestOrder() {
	e := ending{"a mint that is abandoned", mint, (*deal).abandoned, 4, 4}
	d := k.player(10).deal(e.request(gold(4)))
	tooLarge := func(size int) bool {
		d.Intent.TargetCandidate = fmt.Appendf(nil, `{"options":"%0*d"}`, size, 0)
		_, err := d.accepts()(nil)
		return err != nil
	}
	largest := sort.Search(ramp.MaxOrder, tooLarge) - 1
	tooLarge(largest)
	for _, s := range e.steps(d) {
		d.take("the largest "+s.name+" (ramp.MaxOrder)", func(o *ramp.Order) (ramp.Step, error) {
			step, err := s.next(o)
			if step.New && step.Order.Reason != "" {
				step.Order.Reason = "alice: " + strings.Repeat("\x01", 4000)
			}
			return step, err
		})
		d.expectGold("after the "+s.name, s.after)
	}
}

// lateRequests holds each request of a validate call in turn: the first, the second, and so on.
func (k *trial) lateRequests() {
	for n := 1; ; n++ {
		d := k.player(3).deal(mint(gold(5)))
		k.Late.hold(n)
		_, err := k.Stores[0].Update(k.ctx, d.UUID, d.accepts())
		if err == nil {
			k.fail("a validate of 5 gold was accepted of a player with 3")
		}
		d.give("gold", 10) // which the player has won meanwhile
		held, failed := k.Late.release(k.ctx)
		if failed != nil {
			k.fail("the late request could not be sent: %v", failed)
		}
		if !held {
			if n == 1 {
				k.fail("no request of the store came through the Late of the Fixture: " +
					"let the client of your database use it as its transport")
			}
			return
		}
		stored, taken := d.stored(d.UUID), 10-d.balance("gold")
		switch {
		case rejected(err) && (taken != 0 || stored != nil):
			k.fail("request %d of a validate call came late, after the call was rejected: it took %d gold "+
				"of the player. Let the rejection write something that the late request is compared with",
				n, taken)
		case !slices.Contains([]int64{0, 5}, taken) || (taken == 5) != (stored != nil):
			k.fail("request %d of a validate call came late, and %d gold are taken of an order that is %v",
				n, taken, stored)
		}
	}
}

func rejected(err error) bool {
	var rejection *ramp.Rejection
	return errors.As(err, &rejection)
}

// staleReads repeats each call while the store reads its order as it was before the first one.
func (k *trial) staleReads() {
	stale := false
	for _, e := range endings {
		d := k.player(10).deal(e.request(gold(4)))
		for _, s := range e.steps(d) {
			k.Late.keepAnswers(true)
			d.take("the "+s.name, s.next)
			k.Late.beStale()
			step, err := k.settle(d.UUID, s.next)
			stale = k.Late.wasStale() || stale
			k.Late.keepAnswers(false)
			if err != nil || step.New {
				k.fail("the repeat of the %s, for which the store read the order as it was before, "+
					"returned a step with New %v, and %v", s.name, step.New, err)
			}
			d.expectStored("after a repeat of the " + s.name + " with a stale read")
			d.expectGold("after a repeat of the "+s.name+" with a stale read", s.after)
		}
	}
	if !stale {
		k.untested = "the store has not sent the same request twice: does it read its orders elsewhere?"
	}
}

// MaxAssets is the largest number of different assets of an order with which [TestStore] tries a store. A
// store whose transactions have a limit may take fewer: it rejects an order of more when it asks for
// approval, because one that was accepted must be able to end.
const MaxAssets = 128

// manyAssets ends orders of as many assets as the store takes.
func (k *trial) manyAssets() {
	assets := func(n int) (list []ramp.AssetAmount) {
		for i := range n {
			list = append(list, ramp.AssetAmount{ID: fmt.Sprintf("asset-%03d", i), Amount: ramp.NewAmount(4)})
		}
		return list
	}
	most := sort.Search(MaxAssets, func(n int) bool {
		d := k.player(0).deal(burn(assets(n + 1)...)) // which needs no balance
		_, err := k.settle(d.UUID, d.accepts())
		if err != nil && !rejected(err) {
			k.fail("a burn of %d assets was not rejected, but failed: %v", n+1, err)
		}
		return err != nil
	})
	if most < 2 {
		k.fail("a burn of 2 assets was rejected")
	}
	list := assets(most)
	for _, e := range endings {
		p := k.player(0)
		for _, a := range list {
			p.give(a.ID, 10)
		}
		d := p.deal(e.request(list...))
		for _, s := range e.steps(d) {
			d.take(fmt.Sprintf("the %s with %d assets", s.name, most), s.next)
			for _, a := range []string{list[0].ID, list[most/2].ID, list[most-1].ID} {
				if n := p.balance(a); n != s.after {
					k.fail("the balance of %s is %d instead of %d after the %s with %d assets", a, n, s.after,
						s.name, most)
				}
			}
		}
	}
}

// stepsThatMeet makes a call while another one works on the same order, or on the same balance. A conflict
// may come as an error, upon which the call is repeated, but not as a rejection, which is final.
func (k *trial) stepsThatMeet() {
	for _, e := range endings {
		d := k.player(10).deal(e.request(gold(4)))
		for _, s := range e.steps(d) {
			calls := []*call{d.call(s.next), d.call(s.next)}
			k.meet(calls[0], calls[1])
			k.expectOne(s.name+" that meet", calls)
			d.expectGold("after a "+s.name+" that met its repeat", s.after)
		}
		p := k.player(10)
		one, two := p.deal(e.request(gold(4))), p.deal(e.request(gold(4)))
		for i, s := range e.steps(one) {
			calls := []*call{one.call(s.next), two.call(e.steps(two)[i].next)}
			k.meet(calls[0], calls[1])
			if err := errors.Join(calls[0].err, calls[1].err); err != nil {
				k.fail("the %s that met one of another order of the player was refused: %v", s.name, err)
			}
			p.expectGold("after a "+s.name+" that met one of another order of the player", 2*s.after-10)
		}
	}
}
