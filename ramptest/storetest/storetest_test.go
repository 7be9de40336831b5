package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

// purse holds balances in memory, and moves them whole or not at all.
type purse struct {
	mu   sync.Mutex
	gold map[[2]string]int64
}

func (p *purse) give(_ context.Context, session, asset string, balance int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gold[[2]string{session, asset}] = balance
	return nil
}

func (p *purse) balance(_ context.Context, session, asset string) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gold[[2]string{session, asset}], nil
}

func (p *purse) apply(step ramp.Step) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	after, err := p.after(step)
	if err != nil {
		return err
	}
	if grant, ok := step.Rehearse(); ok {
		if _, err := p.after(grant); err != nil {
			return err
		}
	}
	p.gold = after
	return nil
}

// after returns what the players own after a step.
func (p *purse) after(step ramp.Step) (map[[2]string]int64, error) {
	after := maps.Clone(p.gold)
	for _, a := range step.Effect.Assets {
		delta, err := step.Effect.Delta(a).Int64()
		id := [2]string{step.Order.SessionID, a.ID}
		before := after[id]
		after[id] += delta
		refused := step.Effect.Kind == ramp.Take && after[id] < 0
		if err != nil || refused || delta > 0 && after[id] < before {
			return nil, errors.Join(err, ramp.Reject("INVALID_BALANCE"))
		}
	}
	return after, nil
}

func (p *purse) add(session, asset string, delta int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gold[[2]string{session, asset}] += delta
}

func TestMemoryStoreKeepsTheContract(t *testing.T) {
	TestStore(t, func(t *testing.T, check func(ramp.Step) error) Fixture {
		p := &purse{gold: map[[2]string]int64{}}
		store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
			if err := check(step); err != nil {
				return err
			}
			return p.apply(step)
		}}
		return Fixture{Stores: []ramp.Store{store}, Give: p.give, Balance: p.balance}
	})
}

// flawed is a store that keeps orders as documents. It is correct unless a flaw is set,
// which makes it wrong in one point.
type flawed struct {
	purse
	flaw  string
	check func(ramp.Step) error

	lock   chan struct{}
	locks  sync.Map   // of orders, for a store that locks nothing else
	mu     sync.Mutex // for the maps alone
	orders map[uuid.UUID][]byte
	byTx   map[string]uuid.UUID // the orders that have ended by a transaction
	noted  map[uuid.UUID]ramp.Refusal

	down atomic.Int64 // calls that still find no server, or lose its answer
}

// documentFlaws are the flaws in how an order is stored.
var documentFlaws = map[string]func(o ramp.Order, document string) string{
	"loses the tx_hash": func(_ ramp.Order, d string) string { return strings.ReplaceAll(d, `"tx_hash"`, `"tx"`) },
	"loses the reason":  func(_ ramp.Order, d string) string { return strings.ReplaceAll(d, `"reason"`, `"why"`) },
	"loses the reason beside a transaction": func(o ramp.Order, d string) string {
		if o.TxHash == "" {
			return d
		}
		return strings.ReplaceAll(d, `"reason"`, `"why"`)
	},
	"loses how it was settled": func(_ ramp.Order, d string) string {
		return strings.ReplaceAll(d, `"settled"`, `"how"`)
	},
	"keeps seconds":    func(_ ramp.Order, d string) string { return strings.ReplaceAll(d, ".123Z", "Z") },
	"keeps no Unicode": func(_ ramp.Order, d string) string { return strings.ReplaceAll(d, "玩家", "??") },
	"cuts a session ID at 255": func(o ramp.Order, d string) string {
		return strings.ReplaceAll(d, o.SessionID,
			cut(o.SessionID))
	},
	"keeps amounts as float64": func(_ ramp.Order, d string) string {
		var loose map[string]any
		err := json.Unmarshal([]byte(d), &loose)
		text, failed := json.Marshal(loose)
		if err = errors.Join(err, failed); err != nil {
			return err.Error() // which is no order
		}
		return string(text)
	},
}

func cut(text string) string { return strings.ToValidUTF8(text[:min(255, len(text))], "") }

// The other flaws. Each is implemented in the code below.
var stepFlaws = []string{
	"notes a refusal after the end", "keeps the first reason",
	"has no lock", "locks no balance", "keeps the lock after an error", "keeps the lock after a panic",
	"believes what next makes of nil", "looks for no order after ErrOrderUnknown",
	"hides ErrOrderUnknown", "hides an error of next", "wraps an error of next", "takes a conflict for a repeat",
	"applies what a person has settled", "applies a repeat", "calls Apply for a repeat", "says that a repeat is New",
	"stores an order before it applies it", "stores a rejected order", "loses the order",
	"does not apply what moves nothing", "does not store what moves nothing",
	"moves although Apply fails", "moves although the context is canceled",
	"ignores an error of Apply", "hides an error of Apply",
	"gives nothing back", "goes below zero", "goes below zero for a moment", "takes a part of an order",
	"returns no effect",
	"takes Alice for alice", "keeps balances as float64",
	"ends two orders by one transaction", "checks a transaction without a lock",
	"does not say which order has the transaction", "keeps the transaction of a step that failed",
	"knows an order of every transaction", "knows no order of a transaction", "forgets what failed by a transaction",
	"returns the oldest success", "has no newest success", "takes every end for a success",
	"takes a success without a transaction for one",
	"has no room for the end of a large order", "executes a late request",
	"believes a stale read", "has no room for the end of an order of many assets",
	"rejects an order that meets another",
	"does not crash", "forgets the end of orders in a crash",
}

func newFlawed(flaw string, check func(ramp.Step) error) *flawed {
	return &flawed{purse: purse{gold: map[[2]string]int64{}}, flaw: flaw, check: check,
		lock: make(chan struct{}, 1), orders: map[uuid.UUID][]byte{}, byTx: map[string]uuid.UUID{}}
}

func (f *flawed) read(id uuid.UUID) (*ramp.Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	document, ok := f.orders[id]
	if !ok {
		return nil, nil
	}
	var o ramp.Order
	return &o, json.Unmarshal(document, &o)
}

func (f *flawed) store(o ramp.Order) error {
	document, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if f.flaw == "has no room for the end of a large order" && o.State != ramp.OrderAccepted &&
		len(document) > 150<<10 {
		return errors.New("the item is too large")
	}
	if f.flaw == "has no room for the end of an order of many assets" && o.State != ramp.OrderAccepted &&
		len(o.Assets) > 98 {
		return errors.New("the transaction has too many items")
	}
	if spoil := documentFlaws[f.flaw]; spoil != nil {
		document = []byte(spoil(o, string(document)))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders[o.UUID] = document
	return nil
}

func (f *flawed) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (step ramp.Step, err error) {
	if f.flaw == "has no lock" {
		return f.take(ctx, id, next)
	}
	lock := f.lock
	if f.flaw == "locks no balance" || f.flaw == "checks a transaction without a lock" {
		of, _ := f.locks.LoadOrStore(id, make(chan struct{}, 1))
		lock = of.(chan struct{})
	}
	if f.flaw == "rejects an order that meets another" && len(lock) > 0 {
		return ramp.Step{}, ramp.Reject("BUSY")
	}
	lock <- struct{}{}
	panicked := true
	defer func() {
		if n := f.down.Add(-1); n >= 0 { // the answer is lost
			step, err = ramp.Step{}, errors.New("the connection broke")
		}
		if !(f.flaw == "keeps the lock after an error" && err != nil || f.flaw == "keeps the lock after a panic" &&
			panicked) {
			<-lock
		}
	}()
	step, err = f.take(ctx, id, next)
	panicked = false
	return step, err
}

func (f *flawed) take(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	stored, err := f.read(id)
	if err != nil {
		return ramp.Step{}, err
	}
	step, err := next(nil)
	switch {
	case f.flaw == "looks for no order after ErrOrderUnknown" && err != nil:
		return step, err
	case f.flaw == "believes what next makes of nil" && err == nil:
	default:
		step, err = next(stored)
	}
	if err != nil {
		switch {
		case f.flaw == "hides ErrOrderUnknown" && errors.Is(err, ramp.ErrOrderUnknown),
			f.flaw == "hides an error of next":
			err = errors.New(err.Error())
		case f.flaw == "wraps an error of next":
			err = fmt.Errorf("update: %w", err)
		case f.flaw == "takes a conflict for a repeat" && errors.Is(err, ramp.ErrOrderConflict):
			return ramp.Step{Order: *stored}, nil
		}
		return step, err
	}
	if step.New {
		if err := f.claim(stored, step.Order); err != nil {
			return ramp.Step{}, err
		}
		done, err := f.apply(ctx, step)
		if err != nil && f.flaw != "keeps the transaction of a step that failed" {
			f.free(step.Order)
		}
		return done, err
	}
	switch f.flaw {
	case "applies a repeat":
		waiting := step.Order
		waiting.State = ramp.OrderAccepted
		again, err := ramp.Abandon("again", time.Now())(&waiting)
		if err != nil {
			return step, err
		}
		return step, f.move(again)
	case "calls Apply for a repeat":
		return step, f.check(step)
	case "says that a repeat is New":
		step.New = true
	}
	return step, nil
}

// Refused notes why an end was refused, of an order that waits.
func (f *flawed) Refused(_ context.Context, id uuid.UUID, reason string) error {
	o, err := f.read(id)
	if err != nil || o == nil || o.State != ramp.OrderAccepted && f.flaw != "notes a refusal after the end" {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	noted, now := f.noted[id], time.Now()
	if noted.Count == 0 {
		noted.UUID, noted.First, noted.Reason = id, now, reason
	}
	if f.flaw != "keeps the first reason" {
		noted.Reason = reason
	}
	noted.Last, noted.Count = now, noted.Count+1
	if f.noted == nil {
		f.noted = map[uuid.UUID]ramp.Refusal{}
	}
	f.noted[id] = noted
	return nil
}

func (f *flawed) Refusals(_ context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[uuid.UUID]ramp.Refusal{}
	for _, id := range orders {
		if noted, ok := f.noted[id]; ok {
			found[id] = noted
		}
	}
	return found, nil
}

func (f *flawed) OrderByTransaction(_ context.Context, hash common.Hash) (ramp.Order, error) {
	f.mu.Lock()
	id, ended := f.byTx[hash.Hex()]
	f.mu.Unlock()
	switch {
	case !ended && f.flaw == "knows an order of every transaction":
		return ramp.Order{}, nil
	case !ended || f.flaw == "knows no order of a transaction":
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	o, err := f.read(id)
	if err == nil && o.State == ramp.OrderFailed && f.flaw == "forgets what failed by a transaction" {
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	return *o, err
}

func (f *flawed) NewestSuccess(context.Context, ramp.Network) (newest ramp.Order, err error) {
	f.mu.Lock()
	documents := slices.Collect(maps.Values(f.orders))
	f.mu.Unlock()
	for _, document := range documents {
		var o ramp.Order
		if err := json.Unmarshal(document, &o); err != nil {
			return o, err
		}
		older := newest.State != "" && o.FinishedAt.Before(newest.FinishedAt)
		switch {
		case o.State == ramp.OrderAccepted:
		case o.State != ramp.OrderSucceeded && f.flaw != "takes every end for a success",
			o.TxHash == "" && f.flaw != "takes a success without a transaction for one":
		case f.flaw == "returns the oldest success":
			if newest.State == "" || older {
				newest = o
			}
		case !older:
			newest = o
		}
	}
	if newest.State == "" || f.flaw == "has no newest success" {
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	return newest, nil
}

// claim takes the transaction of an end, and free gives it back.
func (f *flawed) claim(stored *ramp.Order, ended ramp.Order) error {
	if ended.TxHash == "" || f.flaw == "ends two orders by one transaction" {
		return nil
	}
	find := func() (uuid.UUID, bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		id, taken := f.byTx[ended.TxHash]
		return id, taken && id != ended.UUID
	}
	if id, taken := find(); taken {
		other, err := f.read(id)
		if f.flaw == "does not say which order has the transaction" {
			other = nil
		}
		return errors.Join(err, &ramp.ConflictError{Order: *stored, Field: "tx_hash", Other: other})
	}
	for range 10 {
		runtime.Gosched() // to the others, unless the lock stops them
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byTx[ended.TxHash] = ended.UUID
	return nil
}

func (f *flawed) free(ended ramp.Order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byTx, ended.TxHash)
}

// apply applies and stores a new step.
func (f *flawed) apply(ctx context.Context, step ramp.Step) (ramp.Step, error) {
	moves := step
	switch {
	case f.flaw == "stores an order before it applies it":
		if err := f.store(step.Order); err != nil {
			return ramp.Step{}, err
		}
	case f.flaw == "does not apply what moves nothing" && step.Effect.Kind == ramp.Nothing:
		return step, f.store(step.Order)
	case f.flaw == "ignores an error of Apply":
		if f.move(step) == nil {
			_ = f.check(step)
		}
		return step, f.store(step.Order)
	case f.flaw == "gives nothing back" && step.Effect.Kind == ramp.GiveBack:
		moves.Effect = ramp.Effect{}
	}
	if step.Settled() && f.flaw != "applies what a person has settled" {
		return step, f.store(step.Order)
	}
	if err := f.move(moves); err != nil {
		return ramp.Step{}, err
	}
	keep := false
	defer func() {
		if !keep {
			f.undo(moves)
		}
	}()
	if err := f.check(step); err != nil {
		keep = f.flaw == "moves although Apply fails"
		switch f.flaw {
		case "hides an error of Apply":
			err = errors.New(err.Error())
		case "stores a rejected order":
			err = errors.Join(err, f.store(step.Order))
		}
		return ramp.Step{}, err
	}
	keep = f.flaw == "moves although the context is canceled"
	if err := ctx.Err(); err != nil {
		return ramp.Step{}, err
	}
	keep = true
	if f.flaw == "loses the order" || f.flaw == "does not store what moves nothing" &&
		step.Effect.Kind == ramp.Nothing {
		return step, nil
	}
	if f.flaw == "returns no effect" {
		step.Effect = ramp.Effect{}
	}
	return step, f.store(step.Order)
}

// move moves balances, undo moves them back.
func (f *flawed) move(step ramp.Step) error {
	step.Order.SessionID = f.session(step.Order.SessionID)
	if f.flaw == "goes below zero" && step.Effect.Kind == ramp.Take {
		paid, err := step.Order.Assets[0].Amount.Int64()
		f.add(step.Order.SessionID, step.Order.Assets[0].ID, -paid)
		return err
	}
	if f.flaw == "goes below zero for a moment" && step.Effect.Kind == ramp.Take && len(step.Order.Assets) == 1 {
		paid, err := step.Order.Assets[0].Amount.Int64()
		f.add(step.Order.SessionID, step.Order.Assets[0].ID, -paid)
		runtime.Gosched()
		n, _ := f.purse.balance(context.Background(), step.Order.SessionID, step.Order.Assets[0].ID)
		if err != nil || n < 0 {
			f.add(step.Order.SessionID, step.Order.Assets[0].ID, paid)
			return errors.Join(err, ramp.Reject("INVALID_BALANCE"))
		}
		return nil
	}
	if f.flaw == "takes a part of an order" && step.Effect.Kind == ramp.Take {
		for _, a := range step.Order.Assets { // in the order of the intent
			step.Effect.Assets = []ramp.AssetAmount{a}
			if err := f.purse.apply(step); err != nil {
				return err
			}
		}
		return nil
	}
	if f.flaw == "locks no balance" && step.Effect.Kind == ramp.Take && len(step.Order.Assets) == 1 {
		paid, err := step.Order.Assets[0].Amount.Int64()
		n, _ := f.purse.balance(context.Background(), step.Order.SessionID, step.Order.Assets[0].ID)
		runtime.Gosched()
		if err != nil || n < paid {
			return errors.Join(err, ramp.Reject("INVALID_BALANCE"))
		}
		return f.purse.give(context.Background(), step.Order.SessionID, step.Order.Assets[0].ID, n-paid)
	}
	return f.purse.apply(step)
}

func (f *flawed) undo(step ramp.Step) {
	for _, a := range step.Effect.Assets {
		delta, _ := step.Effect.Delta(a).Int64()
		f.add(f.session(step.Order.SessionID), a.ID, -delta)
	}
}

func (f *flawed) give(ctx context.Context, session, asset string, balance int64) error {
	return f.purse.give(ctx, f.session(session), asset, balance)
}

func (f *flawed) balance(ctx context.Context, session, asset string) (int64, error) {
	n, err := f.purse.balance(ctx, f.session(session), asset)
	if f.flaw == "keeps balances as float64" {
		n = int64(float64(n))
	}
	return n, err
}

func (f *flawed) session(id string) string {
	if f.flaw == "takes Alice for alice" {
		return strings.ToLower(id)
	}
	return id
}

// crash interrupts a number of calls.
func (f *flawed) crash() error {
	if f.flaw == "does not crash" {
		return nil
	}
	f.down.Store(20)
	for deadline := time.Now().Add(time.Second); f.down.Load() > 0 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	f.lock <- struct{}{}
	defer func() { <-f.lock }()
	if f.flaw == "forgets the end of orders in a crash" {
		for id := range maps.Clone(f.orders) {
			if o, err := f.read(id); err == nil {
				o.State = ramp.OrderAccepted
				_ = f.store(*o)
			}
		}
	}
	return nil
}

// try returns the failures that TestStore reports for a store, by the name of the
// check.
func try(t *testing.T, flaw string) map[string]string {
	failures := map[string]string{}
	for i, c := range checks {
		if strings.HasSuffix(c.name, "after crashes") && flaw != "" && !strings.HasSuffix(flaw, "crash") {
			continue
		}
		k := newTrial(t.Context())
		switch {
		case strings.Contains(flaw, "the lock"):
			k.timeout = 100 * time.Millisecond
		case flaw != "":
			k.timeout = 5 * time.Second
		}
		store := newFlawed(flaw, k.check)
		k.Fixture = Fixture{Stores: []ramp.Store{store}, Give: store.give, Balance: store.balance, Crash: store.crash}
		if strings.Contains(c.name, "comes late") {
			var end func()
			k.Fixture, end = throughHTTP(k.Fixture, flaw != "executes a late request")
			defer end()
		}
		if strings.Contains(c.name, "stale read") {
			var end func()
			k.Fixture, end = documents(k.check, flaw != "believes a stale read")
			defer end()
		}
		if failure := k.try(c.run); failure != "" {
			failures[c.name] = failure
			if i == 0 {
				break
			}
		}
	}
	return failures
}

func TestAStoreWithoutFlawPasses(t *testing.T) {
	assert.Empty(t, try(t, ""))
}

func TestEveryFlawIsFound(t *testing.T) {
	racedetector.Skip(t)
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	var mu sync.Mutex
	found := map[string]bool{} // by the name of the check
	t.Run("flaw", func(t *testing.T) {
		for _, flaw := range slices.Concat(slices.Sorted(maps.Keys(documentFlaws)), stepFlaws, listFlaws) {
			t.Run(flaw, func(t *testing.T) {
				t.Parallel()
				failures := try(t, flaw)
				for n := 1; n < 10 && len(failures) == 0; n++ {
					failures = try(t, flaw) // a race or a crash may miss what brings the flaw out
				}
				assert.NotEmpty(t, failures)
				mu.Lock()
				defer mu.Unlock()
				for name, failure := range failures {
					found[name] = true
					t.Logf("%s: %s", name, failure)
					assert.NotContains(t, failure, "\n", "one sentence")
				}
			})
		}
	})
	for _, c := range checks {
		assert.True(t, found[c.name], "no flaw is found by %q", c.name)
	}
}

// The kit recognizes a decision of the store by its error. A store that loses such an
// error would make every check wait and fail with the same sentence.
func TestAStoreThatLosesADecisionStopsAtOnce(t *testing.T) {
	for flaw, rule := range map[string]string{
		"hides ErrOrderUnknown":         "Update must return an error of next unchanged",
		"takes a conflict for a repeat": "Update returned no error for a validate with another digest",
		"hides an error of Apply":       "Update must return an error that wraps that of ramp.Reject",
		"keeps the lock after an error": "a lock may not have been released",
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFlawedStore$")
			c.Env = append(os.Environ(), "STORETEST_FLAW="+flaw)
			output, err := c.CombinedOutput()
			require.NoError(t, ctx.Err())
			require.Error(t, err)
			assert.Equal(t, 1, strings.Count(string(output), rule), "%s", output)
			assert.Equal(t, 1, strings.Count(string(output), "--- FAIL: TestFlawedStore/"), "%s", output)
		})
	}
}

// TestFlawedStore is run by TestAStoreThatLosesADecisionStopsAtOnce.
func TestFlawedStore(t *testing.T) {
	flaw := os.Getenv("STORETEST_FLAW")
	if flaw == "" {
		t.Skip("STORETEST_FLAW is not set")
	}
	TestStore(t, func(t *testing.T, check func(ramp.Step) error) Fixture {
		s := newFlawed(flaw, check)
		return Fixture{Stores: []ramp.Store{s}, Give: s.give, Balance: s.balance, Crash: s.crash}
	})
}

// unreturning is a store whose Update does not return.
type unreturning struct{ end func() }

func (e unreturning) Update(context.Context, uuid.UUID, ramp.Transition) (ramp.Step, error) {
	e.end()
	return ramp.Step{}, nil
}

// For both, recover returns nil.
func TestWhatPanicsWithNilOrEndsItsGoroutineIsNoSuccess(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	for name, end := range map[string]func(){"panic(nil)": func() { panic(nil) }, "t.FailNow": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			k := newTrial(t.Context())
			k.timeout = 5 * time.Second
			k.Stores = []ramp.Store{unreturning{end}}
			_, err := k.update(t.Context(), uuid.New(), nil)
			assert.EqualError(t, err, "the call of Update panicked with nil, or ended its goroutine")
			passed := false
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				k.try(func(*trial) { end() }) // such as a Give
				passed = true
			}()
			<-ended
			assert.False(t, passed)
		})
	}
}
