package ramp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

// The rules of orders under random schedules: calls of all kinds, repeated, contradictory and
// interrupted by crashes, on a store in memory; ramptest/storetest lets calls race. A small
// independent model knows which call must succeed, and what each player owns. Wrong rules, each
// of which the model must report, show that it works.

func TestRandomSchedulesLoseAndDoubleNothing(t *testing.T) {
	steps := 100_000
	if racedetector.On || testing.Short() {
		steps /= 10
	}
	random := rand.Uint64()
	t.Logf("the random seed is %d", random)
	for _, seed := range []uint64{1, 2, 3, random} { // chance may leave a kind out of the last
		m := newModel(seed, nil)
		require.NoError(t, m.run(steps), "seed %d", seed)
		for _, kind := range []string{"accepted", "succeeded", "failed", "abandoned", "repeated", "rejected", "crashed",
			"conflict", "over", "unknown"} {
			assert.True(t, m.seen[kind] > steps/1000 || seed == random, "%s, of %v", kind, m.seen)
		}
		t.Logf("seed %d: %v", seed, m.seen)
	}
}

func TestTheModelReportsWrongRules(t *testing.T) {
	for name, spoil := range wrongRules() {
		t.Run(name, func(t *testing.T) {
			err := newModel(1, spoil).run(100_000)
			require.Error(t, err)
			t.Log(err)
		})
	}
}

// wrongRules are mistakes in the rules.
func wrongRules() map[string]spoil {
	// came is what a right rule came to.
	type came struct {
		stored *ramp.Order
		result *ramp.Result // of finish
		step   ramp.Step
		err    error
	}
	type then = func(came) (ramp.Step, error)
	wrong := func(rule string, when func(came) bool, then then) spoil {
		return func(of string, r *ramp.Result, next ramp.Transition) ramp.Transition {
			return func(stored *ramp.Order) (ramp.Step, error) {
				step, err := next(stored)
				if c := (came{stored, r, step, err}); of == rule && when(c) {
					return then(c)
				}
				return step, err
			}
		}
	}
	moves := func(kind ramp.EffectKind, state ramp.OrderState) then {
		return func(c came) (ramp.Step, error) {
			order := *c.stored
			order.State = state
			return ramp.Step{Order: order, Effect: ramp.Effect{Kind: kind, Assets: order.Assets}, New: true}, nil
		}
	}
	confirms := func(c came) (ramp.Step, error) { return ramp.Step{Order: *c.stored}, nil }
	is := func(c came, direction ramp.Direction) bool { return c.stored != nil && c.stored.Direction == direction }
	in := func(c came, state ramp.OrderState) bool { return c.stored != nil && c.stored.State == state }
	conflict := func(c came) bool { return errors.Is(c.err, ramp.ErrOrderConflict) }
	over := func(c came) bool { return errors.Is(c.err, ramp.ErrOrderFinished) }
	return map[string]spoil{
		"a repeated validate takes again": wrong("accept",
			func(c came) bool { return c.err == nil && is(c, ramp.Mint) },
			moves(ramp.Take, ramp.OrderAccepted)),
		"a finished order is accepted again": wrong("accept", func(c came) bool { return over(c) && is(c, ramp.Mint) },
			moves(ramp.Take, ramp.OrderAccepted)),
		"a finished order is signed again":   wrong("accept", over, confirms),
		"a contradicting validate is signed": wrong("accept", conflict, confirms),
		"a repeated result gives again": wrong("finish", func(c came) bool {
			return c.err == nil && !c.step.New && in(c, ramp.OrderSucceeded) && is(c, ramp.Burn)
		}, moves(ramp.Grant, ramp.OrderSucceeded)),
		"a failure after a success gives back": wrong("finish", func(c came) bool {
			return conflict(c) && in(c, ramp.OrderSucceeded) && !c.result.Succeeded() && is(c, ramp.Mint)
		}, moves(ramp.GiveBack, ramp.OrderFailed)),
		"a failure after an abandon gives back again": wrong("finish", func(c came) bool {
			return c.err == nil && in(c, ramp.OrderAbandoned) && is(c, ramp.Mint)
		}, moves(ramp.GiveBack, ramp.OrderFailed)),
		"the intent of the result is granted": wrong("finish",
			func(c came) bool { return c.step.Effect.Kind == ramp.Grant },
			func(c came) (ramp.Step, error) {
				c.step.Effect.Assets = nil
				for _, a := range c.result.Intent.To {
					c.step.Effect.Assets = append(c.step.Effect.Assets, ramp.AssetAmount{ID: a.ID, Amount: a.Amount})
				}
				return c.step, c.err
			}),
		"a result for another session moves": wrong("finish",
			func(c came) bool { return c.stored != nil && c.result.SessionID != "" },
			func(c came) (ramp.Step, error) {
				theirs := *c.stored
				theirs.SessionID = c.result.SessionID
				return ramp.Finish(c.result, time.Now())(&theirs)
			}),
		"a contradicting result is confirmed": wrong("finish", conflict, confirms),
		"an unreadable result is a conflict": wrong("finish",
			func(c came) bool { return c.err == nil && c.result.Intent.Method == "" },
			func(c came) (ramp.Step, error) {
				return ramp.Step{}, &ramp.ConflictError{Order: *c.stored, Field: "intent"}
			}),
		"an abandon after a success gives back": wrong("abandon", func(c came) bool {
			return over(c) && in(c, ramp.OrderSucceeded) && is(c, ramp.Mint)
		}, moves(ramp.GiveBack, ramp.OrderAbandoned)),
		"an abandoned burn is granted": wrong("abandon", func(c came) bool { return c.step.New && is(c, ramp.Burn) },
			moves(ramp.Grant, ramp.OrderAbandoned)),
		"an abandoned mint gives nothing back": wrong("abandon",
			func(c came) bool { return c.step.New && is(c, ramp.Mint) },
			moves(ramp.Nothing, ramp.OrderAbandoned)),
		"an unknown result gives back": wrong("finish", func(c came) bool {
			return c.stored == nil && !c.result.Succeeded() && c.result.Intent.Method == ramp.MethodMint
		}, func(c came) (ramp.Step, error) {
			effect, err := c.result.Intent.Effect(c.result.Outcome())
			order := ramp.Order{UUID: c.result.UUID, State: ramp.OrderFailed, SessionID: c.result.SessionID}
			return ramp.Step{Order: order, Effect: effect, New: true}, err
		}),
		"a mint gives instead of taking": wrong("accept", func(c came) bool { return c.step.Effect.Kind == ramp.Take },
			func(c came) (ramp.Step, error) {
				c.step.Effect.Kind = ramp.Grant
				return c.step, c.err
			}),
	}
}

// spoil makes a rule wrong: "accept", "finish" with its result, or "abandon".
type spoil func(rule string, r *ramp.Result, next ramp.Transition) ramp.Transition

const (
	modelPlayers = 3
	modelOrders  = 6
	modelWealth  = 40 // of each asset, for each player
)

var modelAssets = []string{"gold", "gem"}

// model is a game, and the truth about its orders.
type model struct {
	spoil  spoil // nil for the rules as they are
	random *rand.Rand
	store  ramp.MemoryStore
	seen   map[string]int

	owned  map[string]int64         // what the players hold in the game: "player-1 gold"
	before map[string]int64         // and held without the orders below
	orders [modelOrders]*modelOrder // those that something still happens to
}

// modelOrder is an order, and its true state.
type modelOrder struct {
	request *ramp.ValidateRequest
	session ramp.Session
	player  int
	mint    bool
	amounts [2]int64

	state ramp.OrderState // "" before it was accepted
	chain ramp.OrderState // how its transaction ended, or "" while it may
}

// The errors of a game that applies a step.
var errCrash, errPoor = errors.New("the game crashed"), errors.New("the player owns too little")

func newModel(seed uint64, spoil spoil) *model {
	m := &model{spoil: spoil, random: rand.New(rand.NewPCG(seed, 0)), seen: map[string]int{},
		before: map[string]int64{}}
	for p := range modelPlayers {
		for _, id := range modelAssets {
			m.before[modelKey(p, id)] = modelWealth
		}
	}
	m.owned, m.store.Apply = maps.Clone(m.before), m.apply
	for n := range m.orders {
		m.orders[n] = m.newOrder()
	}
	return m
}

func modelPlayer(n int) string { return fmt.Sprint("player-", n%modelPlayers) }

func modelKey(player int, asset string) string { return modelPlayer(player) + " " + asset }

func (m *model) newOrder() *modelOrder {
	o := &modelOrder{player: m.random.IntN(modelPlayers), mint: m.random.IntN(2) == 0}
	for a := range modelAssets {
		o.amounts[a] = 1 + m.random.Int64N(12)
	}
	o.session = ramp.Session{ID: modelPlayer(o.player)}
	var id uuid.UUID
	for i := range id {
		id[i] = byte(m.random.Uint32())
	}
	o.request = &ramp.ValidateRequest{UUID: id, UserAddress: "0xAa", ProjectID: "project",
		Digest: ramp.Digest(append(id[:], id[:]...)),
		Intent: modelIntent(o.mint, o.amounts)}
	return o
}

func modelIntent(mint bool, amounts [2]int64) ramp.Intent {
	var game []ramp.IntentAsset
	for a, id := range modelAssets {
		game = append(game, ramp.IntentAsset{Type: ramp.TypeAsset, ID: id, Amount: ramp.NewAmount(amounts[a])})
	}
	chain := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: testToken, Amount: ramp.NewAmount(amounts[0] + amounts[1])}}
	if mint {
		return ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: game, To: chain}
	}
	return ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: chain, To: game}
}

// apply moves all of a step or nothing.
func (m *model) apply(_ context.Context, step ramp.Step) error {
	if m.random.IntN(10) == 0 {
		return errCrash
	}
	after := maps.Clone(m.owned)
	for _, asset := range step.Effect.Assets {
		key := step.Order.SessionID + " " + asset.ID
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		if after[key] += delta; after[key] < 0 {
			return errPoor
		}
	}
	m.owned = after
	return nil
}

// run takes random steps and checks the books after each.
func (m *model) run(steps int) error {
	for step := range steps {
		n := m.random.IntN(modelOrders)
		o := m.orders[n]
		if err := cmp.Or(m.happen(o), m.balance()); err != nil {
			return fmt.Errorf("step %d, order %d (%s): %w", step, n, o.state, err)
		}
		if o.state != ramp.OrderAccepted && m.random.IntN(12) == 0 {
			o.move(m.before)
			m.orders[n] = m.newOrder()
		}
	}
	return nil
}

// happen makes a call about an order.
func (m *model) happen(o *modelOrder) error {
	next, succeeds := m.call(o)
	step, err := m.store.Update(context.Background(), o.request.UUID, func(stored *ramp.Order) (ramp.Step, error) {
		if m.random.IntN(4) == 0 { // as a store may that compares and swaps
			_, _ = next(nil)
		}
		return next(stored)
	})
	switch {
	case errors.Is(err, errCrash):
		m.seen["crashed"]++
	case errors.Is(err, errPoor) && o.mint && o.state == "":
		m.seen["rejected"]++
	case (err == nil) != succeeds:
		return fmt.Errorf("came to %q with the error %v", step.Order.State, err)
	case errors.Is(err, ramp.ErrOrderConflict):
		m.seen["conflict"]++
	case errors.Is(err, ramp.ErrOrderFinished):
		m.seen["over"]++
	case errors.Is(err, ramp.ErrOrderUnknown):
		m.seen["unknown"]++
	case err != nil:
		return err
	case !step.New:
		m.seen["repeated"]++
	default:
		m.seen[string(step.Order.State)]++
	}
	if err == nil {
		o.state = step.Order.State
	}
	if ended := o.state != "" && o.state != ramp.OrderAccepted; ended &&
		(o.state == ramp.OrderSucceeded) != (o.chain == ramp.OrderSucceeded) {
		return fmt.Errorf("its transaction %s", o.chain)
	}
	return nil
}

// call returns a call about an order, and whether it must succeed.
func (m *model) call(o *modelOrder) (next ramp.Transition, succeeds bool) {
	var rule string
	var r *ramp.Result
	switch kind := m.random.IntN(10); {
	case kind < 3 || kind > 4 && o.state == "":
		rule = "accept"
		next, succeeds = m.validate(o, o.state != "" && m.random.IntN(4) == 0)
	case kind == 3 && (o.state != ramp.OrderAccepted || o.chain == ""):
		rule = "abandon"
		next, succeeds = m.abandon(o)
	default:
		rule = "finish"
		r, succeeds = m.result(o)
		next = ramp.Finish(r, time.Now())
	}
	if m.spoil != nil {
		next = m.spoil(rule, r, next)
	}
	return next, succeeds
}

// validate is a validate call.
func (m *model) validate(o *modelOrder, contradicts bool) (ramp.Transition, bool) {
	session, r := o.session, *o.request
	r.Intent = modelIntent(o.mint, o.amounts)
	if contradicts {
		switch m.random.IntN(3) {
		case 0:
			session.ID = modelPlayer(o.player + 1)
		case 1:
			more := o.amounts
			more[m.random.IntN(2)] += 1000
			r.Intent = modelIntent(o.mint, more)
		case 2:
			r.Intent = modelIntent(!o.mint, o.amounts)
		}
		return ramp.Accept(session, &r, time.Now()), false
	}
	if m.random.IntN(2) == 0 { // in other words
		session.ID = " " + session.ID + "\u2003"
		r.UserAddress = strings.ToLower(r.UserAddress)
		game := &r.Intent.From
		if !o.mint {
			game = &r.Intent.To
		}
		slices.Reverse(*game)
	}
	return ramp.Accept(session, &r, time.Now()), o.state == "" || o.state == ramp.OrderAccepted
}

// result is a result of the service, which tells what is true until the order is
// over. Afterwards it may claim anything.
func (m *model) result(o *modelOrder) (r *ramp.Result, succeeds bool) {
	outcome := []ramp.OrderState{ramp.OrderFailed, ramp.OrderSucceeded}[m.random.IntN(2)]
	if o.state == ramp.OrderAccepted {
		o.chain = cmp.Or(o.chain, outcome)
		outcome = o.chain
	}
	status := map[ramp.OrderState]uint64{ramp.OrderSucceeded: 1}[outcome]
	id := o.request.UUID
	r = &ramp.Result{SessionID: o.session.ID, UUID: id, TxHash: fmt.Sprintf("0x%x%x", id[:], id[:]),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: modelIntent(o.mint, o.amounts)}
	game := &r.Intent.From
	if !o.mint {
		game = &r.Intent.To
	}
	contradicts := false
	switch m.random.IntN(12) {
	case 0:
		r.SessionID, contradicts = modelPlayer(o.player+1), true
	case 1:
		(*game)[0].Amount, contradicts = ramp.NewAmount(o.amounts[0]+1000), true
	case 2:
		r.Intent, contradicts = modelIntent(!o.mint, o.amounts), true
	case 3: // unreadable
		r.Intent = ramp.Intent{}
	case 4:
		*game = nil
	case 5:
		(*game)[1].Amount = ramp.Amount{}
	case 6:
		r.SessionID = ""
	case 7:
		r.TxHash = fmt.Sprintf("0xcd%x%x", id[1:], id[:])
	}
	agrees := o.state == ramp.OrderAccepted || o.state == outcome || o.state == ramp.OrderAbandoned &&
		outcome == ramp.OrderFailed
	return r, agrees && !contradicts
}

// abandon is the step of a person who has checked the chain.
func (m *model) abandon(o *modelOrder) (ramp.Transition, bool) {
	if o.state == ramp.OrderAccepted {
		o.chain = ramp.OrderFailed
	}
	return ramp.Abandon("the model said so", time.Now()), o.state == ramp.OrderAccepted ||
		o.state == ramp.OrderAbandoned
}

// move moves what the order must have moved.
func (o *modelOrder) move(owned map[string]int64) {
	for a, id := range modelAssets {
		switch {
		case o.mint && (o.state == ramp.OrderAccepted || o.state == ramp.OrderSucceeded):
			owned[modelKey(o.player, id)] -= o.amounts[a]
		case !o.mint && o.state == ramp.OrderSucceeded:
			owned[modelKey(o.player, id)] += o.amounts[a]
		}
	}
}

// balance checks that each player owns what the orders have left.
func (m *model) balance() error {
	want := maps.Clone(m.before)
	for _, o := range m.orders {
		o.move(want)
	}
	if !maps.Equal(want, m.owned) {
		return fmt.Errorf("the players own %v, not %v", m.owned, want)
	}
	return nil
}
