package ramptest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// StoreUnderTest is a [ramp.Store] for [TestStore], with the balances that it
// moves. Balances are whole numbers below 2^54.
type StoreUnderTest struct {
	// Stores holds the store. To test several machines, open the store several
	// times over the same data; calls are spread over all of them. At least one is
	// required.
	Stores []ramp.Store

	// Give sets the balance of an asset of a session. Required.
	Give func(ctx context.Context, session, asset string, balance int64) error

	// Balance reads the balance of an asset of a session. Required.
	Balance func(ctx context.Context, session, asset string) (int64, error)

	// Crash stops the database server as a crash does and starts it again. If set,
	// the balances must be exact after crashes under load. Use it for a store whose
	// server outlives its process.
	Crash func() error
}

// TestStore tests that a store keeps the contract of [ramp.Store]. Each subtest
// calls open for a store and names in one sentence what the store did wrong.
// The data may be shared, because no session and no UUID is used twice.
//
// The store must move balances, decline a Take above the balance with
// [ramp.Reject], approve every other step, and call check for each step that it
// applies. If check fails, nothing may be stored or moved, and Update must
// return the error. Call check last where a transaction rolls back what was
// done before it.
//
//	func TestMyStore(t *testing.T) {
//		ramptest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) ramptest.StoreUnderTest {
//			store := NewMyStore(func(ctx context.Context, tx Tx, step ramp.Step) error {
//				if err := move(ctx, tx, step); err != nil {
//					return err
//				}
//				return check(step)
//			})
//			return ramptest.StoreUnderTest{Stores: []ramp.Store{store}, Give: give, Balance: balance}
//		})
//	}
func TestStore(t *testing.T, open func(t *testing.T, check func(ramp.Step) error) StoreUnderTest) {
	t.Helper()
	for _, c := range storeChecks {
		t.Run(c.name, func(t *testing.T) {
			k := newStoreTrial(t.Context())
			k.StoreUnderTest = open(t, k.check)
			if len(k.Stores) == 0 || k.Give == nil || k.Balance == nil {
				t.Fatal("StoreUnderTest must have Stores, Give and Balance")
			}
			if c.crashes && k.Crash == nil {
				t.Skip("StoreUnderTest has no Crash")
			}
			if failure := k.try(c.run); failure != "" {
				t.Error(failure)
			}
		})
	}
}

var storeChecks = []struct {
	name    string
	run     func(*storeTrial)
	crashes bool
}{
	{name: "each step moves once, and a repeat nothing", run: (*storeTrial).stepsAndRepeats},
	{name: "an order comes back as it was stored", run: (*storeTrial).roundTrip},
	{name: "a step that moves nothing passes through Apply", run: (*storeTrial).nothingIsApplied},
	{name: "a failing Apply stores nothing", run: (*storeTrial).failingApply},
	{name: "a panic in Apply stores nothing", run: (*storeTrial).panicInApply},
	{name: "a Take above the balance is declined as a whole", run: (*storeTrial).takeTooMuch},
	{name: "an error of next comes back unchanged", run: (*storeTrial).errorsOfNext},
	{name: "a step that is not New changes nothing", run: (*storeTrial).notNew},
	{name: "the step is that of the stored order", run: (*storeTrial).stepOfStored},
	{name: "a success after abandon moves nothing", run: (*storeTrial).successAfterAbandon},
	{name: "players and assets are kept apart", run: (*storeTrial).keptApart},
	{name: "large balances are exact", run: (*storeTrial).largeBalances},
	{name: "a canceled context moves nothing or everything", run: (*storeTrial).canceled},
	{name: "concurrent equal validates take once", run: (*storeTrial).equalValidates},
	{name: "concurrent different validates take once", run: (*storeTrial).differentValidates},
	{name: "concurrent equal results give once", run: (*storeTrial).equalResults},
	{name: "of concurrent different outcomes one wins", run: (*storeTrial).differentOutcomes},
	{name: "many orders of one player add up", run: (*storeTrial).manyOrders},
	{name: "the books are exact after crashes", run: (*storeTrial).afterCrashes, crashes: true},
}

// storeTrial is one check of a store.
type storeTrial struct {
	StoreUnderTest
	ctx      context.Context
	patience time.Duration // for one call

	turn   atomic.Int64 // for spreading calls over the stores
	failed atomic.Int64 // calls that were repeated

	mu      sync.Mutex
	applied map[uuid.UUID]int
	onApply map[uuid.UUID]func(ramp.Step) error
}

func newStoreTrial(ctx context.Context) *storeTrial {
	return &storeTrial{ctx: ctx, patience: 30 * time.Second,
		applied: map[uuid.UUID]int{}, onApply: map[uuid.UUID]func(ramp.Step) error{}}
}

// storeFailure is what a store did wrong. It ends the check.
type storeFailure string

// try runs a check and returns what the store did wrong, "" if nothing.
func (k *storeTrial) try(run func(*storeTrial)) (failure string) {
	defer func() {
		if cause := recover(); cause != nil {
			text, ok := cause.(storeFailure)
			if !ok {
				panic(cause)
			}
			failure = string(text)
		}
	}()
	run(k)
	return ""
}

func (k *storeTrial) fail(format string, args ...any) {
	panic(storeFailure(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "))) // joined errors have lines
}

// check is called by the store's Apply.
func (k *storeTrial) check(step ramp.Step) error {
	k.mu.Lock()
	k.applied[step.Order.UUID]++
	f := k.onApply[step.Order.UUID]
	k.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(step)
}

// atApply sets what check does with the steps of an order; nil approves them.
func (k *storeTrial) atApply(id uuid.UUID, f func(ramp.Step) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onApply[id] = f
}

func (k *storeTrial) timesApplied(id uuid.UUID) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.applied[id]
}

var (
	errStoreStuck    = errors.New("the call of Update did not return")
	errStorePanicked = errors.New("the call of Update panicked")
)

// update calls Update of one of the stores.
func (k *storeTrial) update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	type answer struct {
		step ramp.Step
		err  error
	}
	store := k.Stores[int(k.turn.Add(1))%len(k.Stores)]
	done := make(chan answer, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				done <- answer{err: fmt.Errorf("%w: %v", errStorePanicked, cause)}
			}
		}()
		step, err := store.Update(ctx, id, next)
		done <- answer{step, err}
	}()
	select {
	case a := <-done:
		return a.step, a.err
	case <-time.After(k.patience):
		return ramp.Step{}, fmt.Errorf("%w within %v, so a lock may not have been released", errStoreStuck, k.patience)
	}
}

// settle repeats a call until the store has decided it, as the service does. A
// database may abort a transaction that races another.
func (k *storeTrial) settle(id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	for deadline := time.Now().Add(k.patience); ; {
		step, err := k.update(k.ctx, id, next)
		var refusal *ramp.Rejection
		if err == nil || errors.As(err, &refusal) || errors.Is(err, ramp.ErrOrderConflict) ||
			errors.Is(err, ramp.ErrOrderFinished) || errors.Is(err, ramp.ErrOrderUnknown) ||
			errors.Is(err, errStoreStuck) || errors.Is(err, errStorePanicked) || time.Now().After(deadline) {
			return step, err
		}
		k.failed.Add(1)
		time.Sleep(time.Millisecond) // the server may be starting
	}
}

// storeCall is a call of a race.
type storeCall struct {
	id   uuid.UUID
	next ramp.Transition

	step ramp.Step // the answer
	err  error
}

// race makes calls at once and returns when all are settled.
func (k *storeTrial) race(calls []*storeCall) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, c := range calls {
		wg.Go(func() {
			<-begin
			c.step, c.err = k.settle(c.id, func(stored *ramp.Order) (ramp.Step, error) {
				for range 10 {
					runtime.Gosched() // let the others read the same order, if the store lets them
				}
				return c.next(stored)
			})
		})
	}
	close(begin)
	wg.Wait()
}

// take calls Update and compares the step with that of next. It returns the order
// after the step, which is stored for a repeat.
func (k *storeTrial) take(what string, id uuid.UUID, stored *ramp.Order, next ramp.Transition) *ramp.Order {
	want, err := next(stored)
	if err != nil {
		panic(err) // a bug in the check
	}
	before := k.timesApplied(id)
	got, err := k.update(k.ctx, id, next)
	switch applied := k.timesApplied(id) - before; {
	case err != nil:
		k.fail("Update failed for %s: %v", what, err)
	case got.New != want.New:
		k.fail("Update returned a step with New %v for %s, but next returned one with New %v", got.New, what, want.New)
	case difference(got.Effect, want.Effect) != "":
		k.fail("Update returned another effect than next for %s: %s", what, difference(got.Effect, want.Effect))
	case difference(got.Order, want.Order) != "":
		k.fail("Update returned another order than next for %s: %s", what, difference(got.Order, want.Order))
	case want.New && applied == 0:
		k.fail("%s was not applied: Apply must see each new step, also one whose effect is %v", what, want.Effect.Kind)
	case !want.New && applied != 0:
		k.fail("%s was applied, although its step is not New", what)
	}
	k.expectStored("after "+what, id, &want.Order)
	return &want.Order
}

// refuse makes a call that must fail and must change nothing.
func (k *storeTrial) refuse(what string, id uuid.UUID, stored *ramp.Order, next ramp.Transition) error {
	step, err := k.update(k.ctx, id, next)
	switch {
	case err == nil:
		k.fail("Update returned no error for %s", what)
	case errors.Is(err, errStoreStuck):
		k.fail("%v for %s", err, what)
	case step.New:
		k.fail("Update returned a new step together with an error for %s", what)
	}
	k.expectStored("after "+what, id, stored)
	return err
}

// stored reads an order with a step that is not New. It returns nil if there is none.
func (k *storeTrial) stored(id uuid.UUID) *ramp.Order {
	step, err := k.settle(id, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, ramp.ErrOrderUnknown
		}
		return ramp.Step{Order: *stored}, nil
	})
	switch {
	case errors.Is(err, ramp.ErrOrderUnknown):
		return nil
	case err != nil:
		k.fail("Update failed to read order %s with a step that is not New: %v", id, err)
	case step.New:
		k.fail("Update returned a new step, but next returned one that is not New")
	}
	return &step.Order
}

func (k *storeTrial) expectStored(when string, id uuid.UUID, want *ramp.Order) {
	got := k.stored(id)
	switch {
	case got == nil && want != nil:
		k.fail("no order is stored %s: the store lost it", when)
	case got != nil && want == nil:
		k.fail("an order is stored %s, but there must be none", when)
	case got != nil && difference(*got, *want) != "":
		k.fail("the stored order is not the right one %s: %s", when, difference(*got, *want))
	}
}

func (k *storeTrial) give(session, asset string, balance int64) {
	if err := k.Give(k.ctx, session, asset, balance); err != nil {
		k.fail("Give failed: %v", err)
	}
}

func (k *storeTrial) balance(session, asset string) int64 {
	for deadline := time.Now().Add(k.patience); ; {
		n, err := k.Balance(k.ctx, session, asset)
		if err == nil {
			return n
		}
		if time.Now().After(deadline) {
			k.fail("Balance failed: %v", err)
		}
		time.Sleep(time.Millisecond) // the server may be starting
	}
}

func (k *storeTrial) expectGold(when, session string, want int64) {
	if got := k.balance(session, "gold"); got != want {
		k.fail("the balance is %d instead of %d %s", got, want, when)
	}
}

// player returns a session with gold.
func (k *storeTrial) player(gold int64) string {
	session := "player-" + rand.Text()
	k.give(session, "gold", gold)
	return session
}

// difference returns the name of the first field in which two structs differ, or "" if
// there is none. It compares meanings: an empty list equals nil, and an escaped
// character equals the character itself.
func difference[T any](got, want T) string {
	show := func(field reflect.Value) string {
		text, err := json.Marshal(field.Interface())
		if err != nil {
			return err.Error()
		}
		var value any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // keeps numbers exact
		if err := d.Decode(&value); err != nil {
			return err.Error()
		}
		if list, ok := value.([]any); value == nil || ok && len(list) == 0 {
			return "empty"
		}
		text, _ = json.Marshal(value) // as it was read
		return string(text)
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if got, want := show(g.Field(i)), show(w.Field(i)); got != want {
			return fmt.Sprintf("%s is %.200s instead of %.200s", g.Type().Field(i).Name, got, want)
		}
	}
	return ""
}

const storeToken = "0x00000000000000000000000000000000000070c3"

// storeTime has a higher precision than an order keeps.
var storeTime = time.Unix(1_795_000_000, 123_456_789)

func gold(n int64) ramp.AssetAmount { return ramp.AssetAmount{ID: "gold", Amount: ramp.NewAmount(n)} }

// storeMint returns a validate call for a mint, and storeBurn one for a burn.
func storeMint(assets ...ramp.AssetAmount) *ramp.ValidateRequest {
	r := &ramp.ValidateRequest{UserSig: "0x01", UserAddress: "0x00000000000000000000000000000000000000Aa",
		ProjectID: "project-1", UUID: uuid.New(), Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: storeToken, Amount: ramp.NewAmount(1)}}}}
	_, _ = rand.Read(r.Digest[:]) // never fails
	for _, a := range assets {
		r.Intent.From = append(r.Intent.From, ramp.IntentAsset{Type: ramp.TypeAsset, ID: a.ID, Amount: a.Amount})
	}
	return r
}

func storeBurn(assets ...ramp.AssetAmount) *ramp.ValidateRequest {
	r := storeMint(assets...)
	r.Intent.Method, r.Intent.Type = ramp.MethodBurnPermit, ramp.Disassemble
	r.Intent.From, r.Intent.To = r.Intent.To, r.Intent.From
	return r
}

func storeAccept(session string, r *ramp.ValidateRequest) ramp.Transition {
	return ramp.Accept(ramp.Session{ID: session}, r, storeTime)
}

// storeFinish returns the transition of an order's result.
func storeFinish(session string, r *ramp.ValidateRequest, succeeded bool) ramp.Transition {
	status := uint64(0)
	if succeeded {
		status = 1
	}
	return ramp.Finish(&ramp.Result{SessionID: session, UUID: r.UUID, TxHash: "0x" + strings.Repeat("aB", 32),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: r.Intent}, storeTime.Add(time.Hour))
}

func storeAbandon() ramp.Transition { return ramp.Abandon("no transaction", storeTime.Add(time.Hour)) }

// storeEndings are all the ways in which an order of 4 gold can end.
var storeEndings = []struct {
	name    string
	request func(...ramp.AssetAmount) *ramp.ValidateRequest
	end     func(session string, r *ramp.ValidateRequest) ramp.Transition
	taken   int64 // by the validate call
	given   int64 // by the ending
}{
	{"a mint that succeeds", storeMint, storeSuccess, 4, 0},
	{"a mint that fails", storeMint, storeFailed, 4, 4},
	{"a mint that is abandoned", storeMint, storeAbandoned, 4, 4},
	{"a burn that succeeds", storeBurn, storeSuccess, 0, 4},
	{"a burn that fails", storeBurn, storeFailed, 0, 0},
	{"a burn that is abandoned", storeBurn, storeAbandoned, 0, 0},
}

func storeSuccess(session string, r *ramp.ValidateRequest) ramp.Transition {
	return storeFinish(session, r, true)
}

func storeFailed(session string, r *ramp.ValidateRequest) ramp.Transition {
	return storeFinish(session, r, false)
}

func storeAbandoned(string, *ramp.ValidateRequest) ramp.Transition { return storeAbandon() }

func (k *storeTrial) stepsAndRepeats() {
	for _, e := range storeEndings {
		session, r := k.player(10), e.request(gold(4))
		order := k.take("the validate of "+e.name, r.UUID, nil, storeAccept(session, r))
		k.expectGold("after the validate of "+e.name, session, 10-e.taken)
		for range 2 {
			order = k.take("a repeated validate of "+e.name, r.UUID, order, storeAccept(session, r))
			k.expectGold("after a repeated validate of "+e.name, session, 10-e.taken)
		}
		order = k.take("the end of "+e.name, r.UUID, order, e.end(session, r))
		k.expectGold("after the end of "+e.name, session, 10-e.taken+e.given)
		for range 2 {
			order = k.take("a repeated end of "+e.name, r.UUID, order, e.end(session, r))
			k.expectGold("after a repeated end of "+e.name, session, 10-e.taken+e.given)
		}
	}
}

func (k *storeTrial) roundTrip() {
	large, err := ramp.ParseAmount("9" + strings.Repeat("8", 99) + "." + strings.Repeat("7", 99) + "1")
	if err != nil {
		panic(err)
	}
	const emoji = "😀"
	for _, session := range []string{"игрок 玩家 ", `{"a":1}'; --\`, strings.Repeat("長", 330), emoji} {
		session += rand.Text()
		k.give(session, "gold", 100)
		for _, e := range storeEndings {
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
				if _, err := k.update(k.ctx, r.UUID, storeAccept(session, r)); errors.As(err, &wrong) {
					k.expectStored("after Update returned an InvalidError", r.UUID, nil)
					continue
				}
				r.UUID = uuid.New()
			}
			order := k.take("a validate in Unicode with an amount of 200 digits", r.UUID, nil, storeAccept(session, r))
			k.take("the end of "+e.name+" in Unicode", r.UUID, order, e.end(session, r))
		}
	}
}

func (k *storeTrial) nothingIsApplied() {
	session, r := k.player(0), storeBurn(gold(4))
	k.atApply(r.UUID, func(ramp.Step) error { return ramp.Reject("NOT_TODAY") })
	err := k.refuse("a burn that Apply declined", r.UUID, nil, storeAccept(session, r))
	if k.timesApplied(r.UUID) == 0 {
		k.fail("Apply did not see the validate of a burn: a game may decline it there, although its effect is nothing")
	}
	var refusal *ramp.Rejection
	if !errors.As(err, &refusal) || refusal.Code != "NOT_TODAY" {
		k.fail("Apply declined a burn with NOT_TODAY, but errors.As does not find that in Update's error: %v", err)
	}
	k.atApply(r.UUID, nil)
	order := k.take("the validate of a burn that was declined before", r.UUID, nil, storeAccept(session, r))
	k.take("its result", r.UUID, order, storeFinish(session, r, true))
	k.expectGold("after a burn that was declined first and approved later", session, 4)
}

// storeApplyError is an error of Apply that errors.As can find.
type storeApplyError struct{}

func (*storeApplyError) Error() string { return "Apply failed" }

// failing runs each step of each kind of order. It calls after while Apply fails, and
// then lets Apply succeed.
func (k *storeTrial) failing(how string, apply func(ramp.Step) error, after func(error)) {
	for _, e := range storeEndings {
		session, r := k.player(10), e.request(gold(4))

		k.atApply(r.UUID, apply)
		after(k.refuse("the validate of "+e.name+how, r.UUID, nil, storeAccept(session, r)))
		k.expectGold("after the validate of "+e.name+how, session, 10)
		k.atApply(r.UUID, nil)
		order := k.take("the same validate, repeated, of "+e.name, r.UUID, nil, storeAccept(session, r))
		k.expectGold("after the same validate, repeated, of "+e.name, session, 10-e.taken)

		k.atApply(r.UUID, apply)
		after(k.refuse("the end of "+e.name+how, r.UUID, order, e.end(session, r)))
		k.expectGold("after the end of "+e.name+how, session, 10-e.taken)
		k.atApply(r.UUID, nil)
		k.take("the same end, repeated, of "+e.name, r.UUID, order, e.end(session, r))
		k.expectGold("after the same end, repeated, of "+e.name, session, 10-e.taken+e.given)
	}
}

func (k *storeTrial) failingApply() {
	cause := &storeApplyError{}
	k.failing(", whose Apply failed", func(ramp.Step) error { return cause }, func(err error) {
		var found *storeApplyError
		if !errors.Is(err, cause) || !errors.As(err, &found) {
			k.fail("Update's error does not wrap the error of Apply, so that errors.Is and errors.As do not find it: %v", err)
		}
	})
}

func (k *storeTrial) panicInApply() {
	k.failing(", whose Apply panicked", func(ramp.Step) error { panic("in Apply") }, func(error) {})
}

func (k *storeTrial) takeTooMuch() {
	session := k.player(10)
	k.give(session, "gem", 1)
	gem := ramp.AssetAmount{ID: "gem", Amount: ramp.NewAmount(2)}
	for _, r := range []*ramp.ValidateRequest{storeMint(gold(11)), storeMint(gold(3), gem), storeMint(gem, gold(3))} {
		err := k.refuse("a Take above the balance", r.UUID, nil, storeAccept(session, r))
		var refusal *ramp.Rejection
		if !errors.As(err, &refusal) {
			k.fail("a Take above the balance was not declined with ramp.Reject: %v", err)
		}
		k.expectGold("after a Take above the balance of one asset", session, 10)
		if gems := k.balance(session, "gem"); gems != 1 {
			k.fail("the second balance is %d instead of 1 after a Take above the balance of one asset", gems)
		}
		r.Intent.From = r.Intent.From[:1]
		r.Intent.From[0].Amount = ramp.NewAmount(1)
		order := k.take("a smaller order under a UUID that was declined", r.UUID, nil, storeAccept(session, r))
		k.take("its result", r.UUID, order, storeFinish(session, r, false))
	}
	r := storeMint(gold(10))
	k.take("a mint of the whole balance", r.UUID, nil, storeAccept(session, r))
	k.expectGold("after a mint of the whole balance", session, 0)
}

func (k *storeTrial) errorsOfNext() {
	session, r := k.player(10), storeMint(gold(4))
	unchanged := func(what string, stored *ramp.Order, next ramp.Transition) {
		var returned []error
		before := k.timesApplied(r.UUID)
		err := k.refuse(what, r.UUID, stored, func(stored *ramp.Order) (ramp.Step, error) {
			step, err := next(stored)
			returned = append(returned, err)
			return step, err
		})
		if k.timesApplied(r.UUID) != before {
			k.fail("Apply was called for %s, although next returned an error", what)
		}
		if len(returned) == 0 || err != returned[len(returned)-1] {
			k.fail("Update returned another error than next for %s: %v", what, err)
		}
		_, want := next(stored)
		var conflict, expected *ramp.ConflictError
		switch {
		case errors.As(want, &expected) && (!errors.As(err, &conflict) || conflict.Field != expected.Field ||
			difference(conflict.Order, expected.Order) != ""):
			k.fail("the ConflictError of %s does not hold the stored order: %v", what, err)
		case err.Error() != want.Error():
			k.fail("Update returned %q instead of %q for %s", err, want, what)
		}
	}
	own := errors.New("an error of next")
	unchanged("an error of next without an order", nil, func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, own })
	unchanged("a result of an unknown order", nil, storeFinish(session, r, false))
	unchanged("the abandonment of an unknown order", nil, storeAbandon())
	k.expectGold("after calls for an unknown order", session, 10)

	order := k.take("a validate", r.UUID, nil, storeAccept(session, r))
	other := *r
	other.Digest[0]++
	unchanged("a validate with another digest", order, storeAccept(session, &other))
	unchanged("a validate of another session", order, storeAccept("another session", r))
	unchanged("a result of another session", order, storeFinish("another session", r, false))
	unchanged("an error of next", order, func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, own })
	unchanged("an error of next for the stored order alone", order, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return storeAccept(session, r)(nil)
		}
		return ramp.Step{}, own
	})
	k.expectGold("after calls that contradict the order", session, 6)

	order = k.take("a result", r.UUID, order, storeFinish(session, r, false))
	unchanged("a validate of an order that is over", order, storeAccept(session, r))
	unchanged("the abandonment of an order that is over", order, storeAbandon())
	unchanged("another outcome", order, storeFinish(session, r, true))
	k.expectGold("after calls that contradict the outcome", session, 10)
}

func (k *storeTrial) notNew() {
	session, r := k.player(10), storeMint(gold(4))
	order := k.take("a validate", r.UUID, nil, storeAccept(session, r))
	before := k.timesApplied(r.UUID)
	_, err := k.update(k.ctx, r.UUID, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, ramp.ErrOrderUnknown
		}
		step, err := storeFinish(session, r, false)(stored)
		step.New = false
		return step, err
	})
	if err != nil {
		k.fail("Update failed for a step that is not New: %v", err)
	}
	if k.timesApplied(r.UUID) != before {
		k.fail("a step that is not New was applied")
	}
	k.expectStored("after a step that is not New", r.UUID, order)
	k.expectGold("after a step that is not New", session, 6)
}

func (k *storeTrial) stepOfStored() {
	session, r := k.player(10), storeBurn(gold(4))
	order := k.take("a validate", r.UUID, nil, storeAccept(session, r))
	finish := storeFinish(session, r, true)
	want, err := finish(order)
	if err != nil {
		panic(err)
	}
	// If an order is stored, the step for nil must not count.
	got, err := k.update(k.ctx, r.UUID, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return storeAccept(session, r)(nil)
		}
		return finish(stored)
	})
	switch {
	case err != nil:
		k.fail("Update failed: %v", err)
	case !got.New || difference(got.Order, want.Order) != "" || difference(got.Effect, want.Effect) != "":
		k.fail("Update did not return the step that next made of the stored order, but one whose state is %q and whose effect is %v", got.Order.State, got.Effect.Kind)
	}
	k.expectStored("after a step that differs for nil", r.UUID, &want.Order)
	k.expectGold("after a step that differs for nil", session, 14)
}

func (k *storeTrial) successAfterAbandon() {
	session, r := k.player(10), storeMint(gold(4))
	order := k.take("a validate", r.UUID, nil, storeAccept(session, r))
	order = k.take("the abandonment", r.UUID, order, storeAbandon())
	err := k.refuse("a success after the abandonment", r.UUID, order, storeFinish(session, r, true))
	if !errors.Is(err, ramp.ErrOrderConflict) {
		k.fail("a success after the abandonment is not a conflict: %v", err)
	}
	k.take("a failure after the abandonment", r.UUID, order, storeFinish(session, r, false))
	k.expectGold("after an abandonment and late results", session, 10)
}

func (k *storeTrial) keptApart() {
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
		r := storeMint(ramp.AssetAmount{ID: h.asset + "!", Amount: ramp.NewAmount(50)})
		k.take("a validate", r.UUID, nil, storeAccept(h.session, r))
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

func (k *storeTrial) largeBalances() {
	const odd = 1<<53 + 1 // float64 cannot represent this
	session, r := k.player(odd), storeMint(gold(1))
	order := k.take("a validate", r.UUID, nil, storeAccept(session, r))
	k.expectGold("after 1 was taken of a large balance", session, odd-1)
	k.take("its result", r.UUID, order, storeFinish(session, r, false))
	k.expectGold("after 1 was given back to a large balance", session, odd)
	r = storeMint(gold(odd))
	order = k.take("a validate", r.UUID, nil, storeAccept(session, r))
	k.expectGold("after a large balance was taken as a whole", session, 0)
	k.take("its result", r.UUID, order, storeFinish(session, r, false))
	k.expectGold("after a large balance was given back as a whole", session, odd)
}

func (k *storeTrial) canceled() {
	for _, e := range storeEndings {
		for at := range 5 { // canceled before the call, at a call of next, or in Apply
			session, r := k.player(10), e.request(gold(4))
			canceled := func(next ramp.Transition) {
				ctx, cancel := context.WithCancel(k.ctx)
				defer cancel()
				if at == 0 {
					cancel()
				}
				if at == 4 {
					k.atApply(r.UUID, func(ramp.Step) error { cancel(); return nil })
					defer k.atApply(r.UUID, nil)
				}
				calls := 0
				_, err := k.update(ctx, r.UUID, func(stored *ramp.Order) (ramp.Step, error) {
					if calls++; calls == at {
						cancel()
					}
					return next(stored)
				})
				if errors.Is(err, errStoreStuck) {
					k.fail("%v after its context was canceled", err)
				}
				if _, again := k.settle(r.UUID, next); again != nil {
					k.fail("the repeat of a call whose context was canceled failed: %v", again)
				}
			}
			canceled(storeAccept(session, r))
			k.expectGold("after a validate of "+e.name+" whose context was canceled, and its repeat", session, 10-e.taken)
			canceled(e.end(session, r))
			k.expectGold("after an end of "+e.name+" whose context was canceled, and its repeat", session, 10-e.taken+e.given)
		}
	}
}

const racers = 50

// expectOne fails unless exactly one call of a race made a new step.
func (k *storeTrial) expectOne(what string, calls []*storeCall) {
	opened := 0
	for _, c := range calls {
		if c.err == nil && c.step.New {
			opened++
		}
	}
	if opened != 1 {
		k.fail("%d of %d concurrent %s made a new step, instead of one", opened, len(calls), what)
	}
}

func (k *storeTrial) equalValidates() {
	for range 4 {
		for _, e := range storeEndings[2:4] { // a mint and a burn
			session, r := k.player(1000), e.request(gold(4))
			calls := make([]*storeCall, racers)
			for i := range calls {
				at := storeTime.Add(time.Duration(i) * time.Millisecond)
				calls[i] = &storeCall{id: r.UUID, next: ramp.Accept(ramp.Session{ID: session}, r, at)}
			}
			k.race(calls)
			for _, c := range calls {
				if c.err != nil {
					k.fail("one of %d concurrent equal validates failed: %v", racers, c.err)
				}
			}
			k.expectGold(fmt.Sprintf("after %d concurrent equal validates", racers), session, 1000-e.taken)
			k.expectOne("equal validates", calls)
			if stored := k.stored(r.UUID); stored == nil || difference(*stored, calls[0].step.Order) != "" {
				k.fail("the order that is stored after concurrent equal validates is not the one that Update returned")
			}
		}
	}
}

func (k *storeTrial) differentValidates() {
	for range 4 {
		session, r := k.player(1000), storeMint(gold(4))
		other := *r
		other.Digest[0]++
		other.Intent.From = []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(7)}}
		calls := make([]*storeCall, racers)
		for i := range calls {
			calls[i] = &storeCall{id: r.UUID, next: storeAccept(session, []*ramp.ValidateRequest{r, &other}[i%2])}
		}
		k.race(calls)
		stored := k.stored(r.UUID)
		if stored == nil {
			k.fail("no order is stored after concurrent validates")
		}
		taken := int64(4)
		if stored.Digest == other.Digest {
			taken = 7
		}
		k.expectGold("after concurrent different validates under one UUID", session, 1000-taken)
		for i, c := range calls {
			won := (i%2 == 1) == (taken == 7)
			if won && c.err != nil || !won && !errors.Is(c.err, ramp.ErrOrderConflict) {
				k.fail("of concurrent different validates under one UUID, one was answered with %v although the stored order says otherwise", c.err)
			}
		}
		k.expectOne("different validates", calls)
	}
}

func (k *storeTrial) equalResults() {
	for _, e := range storeEndings {
		session, r := k.player(1000), e.request(gold(4))
		k.take("a validate", r.UUID, nil, storeAccept(session, r))
		calls := make([]*storeCall, racers)
		for i := range calls {
			calls[i] = &storeCall{id: r.UUID, next: e.end(session, r)}
		}
		k.race(calls)
		for _, c := range calls {
			if c.err != nil {
				k.fail("one of %d concurrent equal ends of %s failed: %v", racers, e.name, c.err)
			}
		}
		k.expectGold(fmt.Sprintf("after %d concurrent equal ends of %s", racers, e.name), session, 1000-e.taken+e.given)
		k.expectOne("equal ends of "+e.name, calls)
	}
}

func (k *storeTrial) differentOutcomes() {
	for _, request := range []func(...ramp.AssetAmount) *ramp.ValidateRequest{storeMint, storeBurn} {
		for range 4 {
			session, r := k.player(1000), request(gold(4))
			order := k.take("a validate", r.UUID, nil, storeAccept(session, r))
			ends := []ramp.Transition{storeFinish(session, r, true), storeFinish(session, r, false), storeAbandon()}
			calls := make([]*storeCall, racers)
			for i := range calls {
				calls[i] = &storeCall{id: r.UUID, next: ends[i%len(ends)]}
			}
			k.race(calls)
			stored := k.stored(r.UUID)
			if stored == nil {
				k.fail("no order is stored after concurrent outcomes")
			}
			gold := int64(1000)
			switch mint := order.Direction == ramp.Mint; {
			case mint && stored.State == ramp.OrderSucceeded:
				gold -= 4
			case !mint && stored.State == ramp.OrderSucceeded:
				gold += 4
			}
			k.expectGold(fmt.Sprintf("after concurrent different outcomes of a %v, of which %q won", order.Direction, stored.State), session, gold)
			k.expectOne("different outcomes", calls)
			for i, c := range calls {
				_, want := ends[i%len(ends)](stored)
				if (c.err == nil) != (want == nil) || c.err != nil && !errors.Is(c.err, errors.Unwrap(want)) {
					k.fail("of concurrent different outcomes, one was answered with %v instead of %v", c.err, want)
				}
			}
		}
	}
}

func (k *storeTrial) manyOrders() {
	const balance, price, orders = 100, 3, 60
	session := k.player(balance)
	requests, calls := make([]*ramp.ValidateRequest, orders), make([]*storeCall, orders)
	for i := range calls {
		requests[i] = storeMint(gold(price))
		calls[i] = &storeCall{id: requests[i].UUID, next: storeAccept(session, requests[i])}
	}
	done, lowest := make(chan struct{}), make(chan int64)
	go func() {
		low, failed := int64(balance), error(nil)
		for failed == nil {
			select {
			case <-done:
				lowest <- low
				return
			default:
				var n int64
				if n, failed = k.Balance(k.ctx, session, "gold"); failed == nil {
					low = min(low, n)
				}
			}
		}
		<-done
		lowest <- low
	}()
	k.race(calls)
	close(done)
	if low := <-lowest; low < 0 {
		k.fail("the balance was %d for a moment while %d orders of one player ran", low, orders)
	}
	accepted := 0
	var refusal *ramp.Rejection
	for _, c := range calls {
		switch {
		case c.err == nil:
			accepted++
		case !errors.As(c.err, &refusal):
			k.fail("one of %d concurrent orders of one player failed: %v", orders, c.err)
		}
	}
	k.expectGold(fmt.Sprintf("after %d of %d concurrent mints of %d were accepted", accepted, orders, price), session, int64(balance-accepted*price))
	if accepted != balance/price {
		k.fail("%d concurrent mints of %d were accepted with a balance of %d, instead of %d", accepted, price, balance, balance/price)
	}
	var results []*storeCall
	back := 0
	for i, c := range calls {
		if c.err == nil {
			failed := i%2 == 0
			if failed {
				back += price
			}
			results = append(results, &storeCall{id: c.id, next: storeFinish(session, requests[i], !failed)})
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

// afterCrashes crashes the server under load. Every call is repeated until it
// is answered, as the service and the player do.
func (k *storeTrial) afterCrashes() {
	const workers, crashes, answersBetween = 8, 3, 40
	sessions := make([]string, workers/2)
	for i := range sessions {
		sessions[i] = k.player(1_000_000)
	}
	var (
		wg      sync.WaitGroup
		stop    = make(chan struct{})
		answers = make(chan struct{})
		mu      sync.Mutex
		want    = map[string]int64{}
		repeats []func() error
		failed  error
		restart error
	)
	for worker := range workers {
		wg.Go(func() {
			for n := worker; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				e, session := storeEndings[n%len(storeEndings)], sessions[worker/2]
				r := e.request(gold(4))
				call := func(next ramp.Transition) error {
					_, err := k.settle(r.UUID, next)
					return err
				}
				err := call(storeAccept(session, r))
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
				select {
				case answers <- struct{}{}:
				case <-stop:
				}
			}
		})
	}
	wait := func() bool {
		timeout := time.After(2 * k.patience)
		for range answersBetween {
			select {
			case <-answers:
			case <-timeout:
				return false
			}
		}
		return true
	}
	running := wait()
	for n := 0; n < crashes && running; n++ {
		crashed := make(chan error, 1)
		go func() { crashed <- k.Crash() }()
		for restarted, timeout := false, time.After(2*k.patience); !restarted; { // the load continues in the meantime
			select {
			case <-answers:
			case err := <-crashed:
				restarted, restart = true, errors.Join(restart, err)
			case <-timeout:
				restarted, restart = true, errors.Join(restart, errors.New("the call of Crash did not return"))
			}
		}
		running = restart == nil && wait()
	}
	close(stop)
	wg.Wait()
	switch {
	case restart != nil:
		k.fail("Crash failed: %v", restart)
	case failed != nil:
		k.fail("a call that was repeated around a crash was not answered with success: %v", failed)
	case !running:
		k.fail("orders were no longer finished after a crash")
	case k.failed.Load() == 0:
		k.fail("%d crashes among %d orders interrupted no call, so they prove nothing: does Crash stop the server?", crashes, len(repeats))
	}
	for _, repeat := range repeats {
		if err := repeat(); err != nil {
			k.fail("an order that was finished around a crash is not: %v", err)
		}
	}
	for _, session := range sessions {
		k.expectGold(fmt.Sprintf("after %d crashes among %d orders", crashes, len(repeats)), session, 1_000_000+want[session])
	}
}
