package storetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// errorsComeBack makes every kind of call that must fail. The other checks
// recognize an outcome by its error.
func (k *trial) errorsComeBack() {
	session, r := k.player(10), mint(gold(4))
	own := func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, errors.New("an error of next") }
	k.unchanged("a result of an unknown order", r.UUID, nil, fail(session, r))
	k.unchanged("the abandonment of an unknown order", r.UUID, nil, abandon(session, r))
	k.unchanged("an error of next without an order", r.UUID, nil, own)

	k.atApply(r.UUID, func(ramp.Step) error { return ramp.Reject("NOT_TODAY") })
	if code := k.rejected("a validate that Apply rejected with NOT_TODAY", r.UUID, accept(session, r)); code != "NOT_TODAY" {
		k.fail("Apply rejected a validate with NOT_TODAY, but errors.As finds the code %q in the error of Update", code)
	}
	k.atApply(r.UUID, nil)
	large := mint(gold(11))
	k.rejected("a Take of 11 above the balance of 10", large.UUID, accept(session, large))
	k.expectGold("after calls that failed", session, 10)

	order := k.take("a validate that was rejected before", r.UUID, nil, accept(session, r))
	other := *r
	other.Digest[0]++
	k.unchanged("a validate with another digest", r.UUID, order, accept(session, &other))
	k.unchanged("a validate of another session", r.UUID, order, accept("another session", r))
	k.unchanged("a result of another session", r.UUID, order, fail("another session", r))
	k.unchanged("an error of next", r.UUID, order, own)
	k.unchanged("an error of next for the stored order alone", r.UUID, order, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return accept(session, r)(nil)
		}
		return own(stored)
	})
	k.expectGold("after calls that contradict the order", session, 6)

	order = k.take("a result", r.UUID, order, fail(session, r))
	k.unchanged("a validate of an order that is over", r.UUID, order, accept(session, r))
	k.unchanged("the abandonment of an order that is over", r.UUID, order, abandon(session, r))
	k.unchanged("another outcome", r.UUID, order, succeed(session, r))
	k.expectGold("after calls that contradict the outcome", session, 10)
}

// unchanged makes a call for which next returns an error. Update must return that error
// itself.
func (k *trial) unchanged(what string, id uuid.UUID, stored *ramp.Order, next ramp.Transition) {
	before := k.timesApplied(id)
	var want error
	step, got := k.update(k.ctx, id, func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		want = err
		return step, err
	})
	k.expectError(what, step, got)
	switch _, final := next(stored); {
	case want == nil || want.Error() != final.Error():
		k.fail("Update must return what next says of the stored order, but returned %q instead of %q for %s", got, final, what)
	case got != want:
		k.fail("Update must return an error of next unchanged, but returned %T %q instead of %T %q for %s", got, got, want, want, what)
	case k.timesApplied(id) != before:
		k.fail("Apply was called for %s, although next returned an error", what)
	}
	k.expectStored("after "+what, id, stored)
}

// rejected makes a validate call that must be rejected, and returns the code.
func (k *trial) rejected(what string, id uuid.UUID, next ramp.Transition) ramp.Code {
	err := k.mustFail(what, id, nil, next)
	var rejection *ramp.Rejection
	if !errors.As(err, &rejection) {
		k.fail("Update must return an error that wraps that of ramp.Reject for %s, but returned %T %q", what, err, err)
	}
	return rejection.Code
}

func (k *trial) stepsAndRepeats() {
	for _, e := range endings {
		session, r := k.player(10), e.request(gold(4))
		var order *ramp.Order
		for _, s := range e.steps(session, r) {
			for _, what := range []string{"the ", "a repeated ", "a repeated "} {
				order = k.take(what+s.name, r.UUID, order, s.next)
				k.expectGold("after "+what+s.name, session, s.after)
			}
		}
	}
}

func (k *trial) roundTrip() {
	large, err := ramp.ParseAmount("9" + strings.Repeat("8", 99) + "." + strings.Repeat("7", 99) + "1")
	if err != nil {
		panic(err)
	}
	const emoji = "😀"
	for _, session := range []string{"игрок 玩家 ", `{"a":1}'; --\`, strings.Repeat("長", 330), emoji} {
		session += rand.Text()
		k.give(session, "gold", 100)
		for _, e := range endings {
			r := e.request(gold(4))
			r.UserAddress, r.ProjectID = "0xÄ", "プロジェクト <&>"
			side := &r.Intent.To
			if r.Intent.Type == ramp.Disassemble {
				side = &r.Intent.From
			}
			*side = append(*side, ramp.IntentAsset{Type: "新", ID: "<token> \u2028", Amount: large})
			r.Intent.TargetCandidate = json.RawMessage(`{"a":[null,"Ω"]}`)

			if session[0] == emoji[0] {
				var wrong *ramp.InvalidError // some databases cannot hold it
				if _, err := k.update(k.ctx, r.UUID, accept(session, r)); errors.As(err, &wrong) {
					k.expectStored("after Update returned an InvalidError", r.UUID, nil)
					continue
				}
				r.UUID = uuid.New()
			}
			order := k.take("a validate in Unicode with an amount of 200 digits", r.UUID, nil, accept(session, r))
			k.take("the end of "+e.name+" in Unicode", r.UUID, order, e.end(session, r))
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
			k.fail("Update's error does not wrap the error of Apply, so that errors.Is and errors.As do not find it: %v", err)
		}
	})
	k.applying("panicked", func(ramp.Step) error { panic("in Apply") }, func(error) {})
}

// applying runs each step of each kind of order with an Apply that stores nothing, and
// then repeats it with one that succeeds. It calls examine with the errors.
func (k *trial) applying(how string, apply func(ramp.Step) error, examine func(error)) {
	for _, e := range endings {
		session, r := k.player(10), e.request(gold(4))
		var order *ramp.Order
		for _, s := range e.steps(session, r) {
			failing := "the " + s.name + " whose Apply " + how
			k.atApply(r.UUID, apply)
			examine(k.mustFail(failing, r.UUID, order, s.next))
			k.expectGold("after "+failing, session, s.before)
			k.atApply(r.UUID, nil)
			order = k.take("the repeated "+s.name, r.UUID, order, s.next)
			k.expectGold("after the repeated "+s.name, session, s.after)
		}
	}
}

func (k *trial) takeTooMuch() {
	session := k.player(10)
	k.give(session, "gem", 1)
	gem := ramp.AssetAmount{ID: "gem", Amount: ramp.NewAmount(2)}
	for _, r := range []*ramp.ValidateRequest{mint(gold(11)), mint(gold(3), gem), mint(gem, gold(3))} {
		k.rejected("a Take above the balance", r.UUID, accept(session, r))
		k.expectGold("after a Take above the balance of one asset", session, 10)
		if gems := k.balance(session, "gem"); gems != 1 {
			k.fail("the second balance is %d instead of 1 after a Take above the balance of one asset", gems)
		}
		r.Intent.From = r.Intent.From[:1]
		r.Intent.From[0].Amount = ramp.NewAmount(1)
		order := k.take("a smaller order under a UUID that was rejected", r.UUID, nil, accept(session, r))
		k.take("its result", r.UUID, order, fail(session, r))
	}
	r := mint(gold(10))
	k.take("a mint of the whole balance", r.UUID, nil, accept(session, r))
	k.expectGold("after a mint of the whole balance", session, 0)
}

func (k *trial) keptApart() {
	name := "Player-" + rand.Text()
	type holding struct{ session, asset string }
	holdings := []holding{ // a careless key or collation would confuse these
		{name, "gold:x"}, {name + ":gold", "x"}, {name + ":gold:x", ""}, {name, "Gold:x"}, {name, "gold:x "},
		{strings.ToLower(name), "gold:x"}, {name + "é", "gold:x"}, {name + "e", "gold:x"}, {name + "%", "gold:x"},
	}
	for i, h := range holdings {
		k.give(h.session, h.asset+"!", int64(100+i))
	}
	for i, h := range holdings {
		r := mint(ramp.AssetAmount{ID: h.asset + "!", Amount: ramp.NewAmount(50)})
		k.accepted(h.session, r)
		for j, other := range holdings {
			want := int64(100 + j)
			if j <= i {
				want -= 50
			}
			if got := k.balance(other.session, other.asset+"!"); got != want {
				k.fail("session %q has %d of asset %q instead of %d, after session %q paid 50 of asset %q",
					other.session, got, other.asset+"!", want, h.session, h.asset+"!")
			}
		}
	}
}

func (k *trial) largeBalances() {
	const odd = 1<<53 + 1 // float64 cannot represent this
	session, r := k.player(odd), mint(gold(1))
	order := k.accepted(session, r)
	k.expectGold("after 1 was taken of a large balance", session, odd-1)
	k.take("its result", r.UUID, order, fail(session, r))
	k.expectGold("after 1 was given back to a large balance", session, odd)
	r = mint(gold(odd))
	order = k.accepted(session, r)
	k.expectGold("after a large balance was taken as a whole", session, 0)
	k.take("its result", r.UUID, order, fail(session, r))
	k.expectGold("after a large balance was given back as a whole", session, odd)
}

// oneTransaction ends orders by a transaction that has ended another one.
func (k *trial) oneTransaction() {
	alice, bob := k.player(10), k.player(10)
	first := burn(gold(4))
	order := k.accepted(alice, first)
	other := k.take("the result of a burn", first.UUID, order, succeed(alice, first))
	r := burn(gold(4))
	order = k.accepted(alice, r)
	k.atApply(r.UUID, func(ramp.Step) error { return errors.New("an error of Apply") })
	hash := txHash(burn(gold(4)))
	k.mustFail("a result whose Apply failed", r.UUID, order, resultBy(hash, alice, r, 1))
	r = burn(gold(4))
	order = k.accepted(bob, r)
	k.take("a result by the transaction of a step that failed", r.UUID, order, resultBy(hash, bob, r, 1))
	for _, session := range []string{alice, bob} {
		for _, e := range endings {
			if strings.Contains(e.name, "abandoned") {
				continue
			}
			r := e.request(gold(4))
			order := k.accepted(session, r)
			before := k.balance(session, "gold")
			what := "the result of " + e.name + " by a transaction that has ended another order"
			status := uint64(0)
			if strings.Contains(e.name, "succeeds") {
				status = 1
			}
			for range 2 {
				err := k.mustFail(what, r.UUID, order, resultBy(other.TxHash, session, r, status))
				k.expectTaken(what, err, order, other)
				k.expectGold("after "+what, session, before)
			}
			k.take("the result of "+e.name+" by its own transaction", r.UUID, order, e.end(session, r))
			k.expectGold("after a result by its own transaction", session, before+e.given)
		}
	}
	k.take("the repeated result of the order that has ended by the transaction", first.UUID, other, succeed(alice, first))
	for range 2 { // no transaction is not a transaction
		r := burn(gold(4))
		order := k.accepted(alice, r)
		k.take("a result without tx_hash", r.UUID, order, resultBy("", alice, r, 1))
	}
}

// expectTaken fails unless an error says which other order has ended by a transaction.
func (k *trial) expectTaken(what string, err error, stored, other *ramp.Order) {
	var conflict *ramp.ConflictError
	switch {
	case !errors.As(err, &conflict) || conflict.Field != "tx_hash":
		k.fail("Update must return a *ramp.ConflictError of tx_hash for %s, but returned %T %q", what, err, err)
	case difference(conflict.Order, *stored) != "":
		k.fail("Order of the ConflictError is not the stored order of the call for %s: %s", what, difference(conflict.Order, *stored))
	case conflict.Other == nil || difference(*conflict.Other, *other) != "":
		k.fail("Other of the ConflictError must be the order that has ended by the transaction, for %s, but is %v", what, conflict.Other)
	}
}

// oneTransactionAtOnce lets orders of several players end by one transaction.
func (k *trial) oneTransactionAtOnce() {
	const orders = 8
	for range 4 {
		calls, own := make([]*call, orders), make([]ramp.Transition, orders)
		sessions := make([]string, orders)
		hash := txHash(burn(gold(1)))
		for i := range calls {
			r := burn(gold(4))
			sessions[i] = k.player(10)
			k.accepted(sessions[i], r)
			calls[i] = &call{id: r.UUID, next: resultBy(hash, sessions[i], r, 1)}
			own[i] = succeed(sessions[i], r)
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
			want := int64(14)
			if c.err != nil {
				want = 10
				k.expectTaken("one of several orders that end by one transaction", c.err, k.stored(c.id), winner)
			}
			k.expectGold("after several orders ended by one transaction", sessions[i], want)
			if c.err != nil {
				k.take("the result by its own transaction", c.id, k.stored(c.id), own[i])
			}
		}
	}
}

func (k *trial) canceled() {
	for _, e := range endings {
		for at := range 5 { // canceled before the call, at a call of next, or in Apply
			session, r := k.player(10), e.request(gold(4))
			for _, s := range e.steps(session, r) {
				ctx, cancel := context.WithCancel(k.ctx)
				if at == 0 {
					cancel()
				}
				if at == 4 {
					k.atApply(r.UUID, func(ramp.Step) error { cancel(); return nil })
				}
				calls := 0
				_, err := k.update(ctx, r.UUID, func(stored *ramp.Order) (ramp.Step, error) {
					if calls++; calls == at {
						cancel()
					}
					return s.next(stored)
				})
				if errors.Is(err, errStuck) {
					k.fail("%v after its context was canceled", err)
				}
				if _, again := k.settle(r.UUID, s.next); again != nil {
					k.fail("the repeat of a call whose context was canceled failed: %v", again)
				}
				cancel()
				k.atApply(r.UUID, nil)
				k.expectGold("after the "+s.name+" whose context was canceled, and its repeat", session, s.after)
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
			k.fail("one of %d concurrent %s was answered with %v instead of %v", len(calls), what, c.err, want)
		case c.err == nil && difference(c.step.Order, *stored) != "":
			k.fail("one of %d concurrent %s returned another order than is stored: %s", len(calls), what, difference(c.step.Order, *stored))
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
		session, r := k.player(1000), mint(gold(4))
		other := *r
		other.Digest[0]++
		other.Intent.From = []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(7)}}
		calls := make([]*call, racers)
		for i := range calls {
			at := validatedAt.Add(time.Duration(i) * time.Millisecond)
			calls[i] = &call{id: r.UUID, next: ramp.Accept(ramp.Session{ID: session}, []*ramp.ValidateRequest{r, &other}[i%2], at)}
		}
		k.race(calls)
		stored := k.expectOne("validates, of which half were different,", calls)
		taken := int64(4)
		if stored.Digest == other.Digest {
			taken = 7
		}
		k.expectGold(fmt.Sprintf("after %d concurrent validates under one UUID", racers), session, 1000-taken)
	}
}

func (k *trial) outcomesAtOnce() {
	for _, e := range endings {
		session, r := k.player(1000), e.request(gold(4))
		k.accepted(session, r)
		ends := []ramp.Transition{e.end(session, r), succeed(session, r), e.end(session, r), fail(session, r), abandon(session, r)}
		calls := make([]*call, racers)
		for i := range calls {
			calls[i] = &call{id: r.UUID, next: ends[i%len(ends)]}
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
		k.expectGold(fmt.Sprintf("after concurrent different outcomes of a %v, of which %q won", stored.Direction, stored.State), session, gold)
	}
}

func (k *trial) manyOrders() {
	const balance, price, orders = 100, 3, 60
	session := k.player(balance)
	requests, calls := make([]*ramp.ValidateRequest, orders), make([]*call, orders)
	for i := range calls {
		requests[i] = mint(gold(price))
		calls[i] = &call{id: requests[i].UUID, next: accept(session, requests[i])}
	}
	done, lowest := make(chan struct{}), make(chan int64)
	go func() {
		for low := int64(balance); ; {
			select {
			case <-done:
				lowest <- low
				return
			default:
				if n, err := k.Balance(k.ctx, session, "gold"); err == nil {
					low = min(low, n)
				}
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
	k.expectGold(fmt.Sprintf("after %d of %d concurrent mints of %d were accepted", accepted, orders, price), session, int64(balance-accepted*price))
	if accepted != balance/price {
		k.fail("%d concurrent mints of %d were accepted with a balance of %d, instead of %d", accepted, price, balance, balance/price)
	}
	var results []*call
	back := 0
	for i, c := range calls {
		if c.err == nil {
			end := succeed
			if i%2 == 0 {
				end = fail
				back += price
			}
			results = append(results, &call{id: c.id, next: end(session, requests[i])})
		}
	}
	k.race(results)
	for _, c := range results {
		if c.err != nil {
			k.fail("one of the concurrent results of one player failed: %v", c.err)
		}
	}
	k.expectGold("after all results of one player came at once", session, int64(balance-accepted*price+back))
}

func (k *trial) afterCrashes() { k.interrupted("crash", 3, 3) }

// interrupted crashes under load, more often than fewest if no crash came between a step and
// its answer. Every call is repeated until it is answered, as by the service and the player.
// It returns how many orders there were.
func (k *trial) interrupted(crash string, fewest, most int) (orders int) {
	const workers, answersBetween = 8, 20
	n := 0
	sessions := make([]string, workers/2)
	for i := range sessions {
		sessions[i] = k.player(1_000_000)
	}
	var (
		wg       sync.WaitGroup
		stop     = make(chan struct{})
		answered atomic.Int64 // orders
		mu       sync.Mutex
		want     = map[string]int64{}
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
				e, session := endings[n%len(endings)], sessions[worker/2]
				r := e.request(gold(4))
				call := func(next ramp.Transition) error {
					_, err := k.settle(r.UUID, next)
					return err
				}
				err := call(accept(session, r))
				if err == nil {
					err = call(e.end(session, r))
				}
				mu.Lock()
				want[session] += e.given - e.taken
				repeats = append(repeats, func() error { return call(e.end(session, r)) })
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
		for end := time.Now().Add(2 * k.timeout); answered.Load() < from+answersBetween; time.Sleep(time.Millisecond) {
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
		k.fail("of %d times, no %s among %d orders interrupted a call, so they prove nothing: does Crash stop the server?", n, crash, len(repeats))
	}
	for _, repeat := range repeats {
		if err := repeat(); err != nil {
			k.fail("an order that was finished around a %s is not: %v", crash, err)
		}
	}
	for _, session := range sessions {
		k.expectGold(fmt.Sprintf("after each %s of %d, among %d orders", crash, n, len(repeats)), session, 1_000_000+want[session])
	}
	return len(repeats)
}
