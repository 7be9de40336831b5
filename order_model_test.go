package ramp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/racedetector"
)

// The rules of orders under random schedules: calls of all kinds, repeated,
// contradictory, racing and interrupted by crashes. A small independent model knows
// what each call must return, and where all assets and tokens are. Wrong rules,
// each of which the model must report, show that it works.

func TestRandomSchedulesLoseAndDoubleNothing(t *testing.T) {
	steps := 250_000
	if racedetector.On || testing.Short() {
		steps /= 10
	}
	random := rand.Uint64()
	t.Logf("the random seed is %d", random)
	for _, seed := range []uint64{1, 2, 3, random} { // chance may leave a kind out of the last
		m := newModel(seed)
		require.NoError(t, m.run(steps), "seed %d", seed)
		for _, kind := range []string{"opened", "rejected", "finished", "abandoned", "repeated", "conflict", "over", "unknown", "crashed before", "crashed after", "raced"} {
			assert.True(t, m.seen[kind] > steps/1000 || seed == random, "%s, of %v", kind, m.seen)
		}
		t.Logf("seed %d: %v", seed, m.seen)
	}
}

func TestTheModelReportsWrongRules(t *testing.T) {
	// came is what a right rule came to.
	type came struct {
		stored *ramp.Order
		result *ramp.Result // of finish
		step   ramp.Step
		err    error
	}
	type then = func(came) (ramp.Step, error)
	wrong := func(rule string, when func(came) bool, then then) rules {
		return rules{spoil: func(of string, r *ramp.Result, next ramp.Transition) ramp.Transition {
			return func(stored *ramp.Order) (ramp.Step, error) {
				step, err := next(stored)
				if c := (came{stored, r, step, err}); of == rule && when(c) {
					return then(c)
				}
				return step, err
			}
		}}
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
	for name, rules := range map[string]rules{
		"a repeated validate takes again": wrong("accept", func(c came) bool { return c.err == nil && is(c, ramp.Mint) },
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
		"the intent of the result is granted": wrong("finish", func(c came) bool { return c.step.Effect.Kind == ramp.Grant },
			func(c came) (ramp.Step, error) {
				c.step.Effect.Assets = nil
				for _, a := range c.result.Intent.To {
					c.step.Effect.Assets = append(c.step.Effect.Assets, ramp.AssetAmount{ID: a.ID, Amount: a.Amount})
				}
				return c.step, c.err
			}),
		"a result for another session moves": wrong("finish", func(c came) bool { return c.stored != nil && c.result.SessionID != "" },
			func(c came) (ramp.Step, error) {
				theirs := *c.stored
				theirs.SessionID = c.result.SessionID
				return ramp.Finish(c.result, time.Now())(&theirs)
			}),
		"a contradicting result is confirmed": wrong("finish", conflict, confirms),
		"an unreadable result is a conflict": wrong("finish", func(c came) bool { return c.err == nil && c.result.Intent.Method == "" },
			func(c came) (ramp.Step, error) {
				return ramp.Step{}, &ramp.ConflictError{Order: *c.stored, Field: "intent"}
			}),
		"an abandon after a success gives back": wrong("abandon", func(c came) bool {
			return over(c) && in(c, ramp.OrderSucceeded) && is(c, ramp.Mint)
		}, moves(ramp.GiveBack, ramp.OrderAbandoned)),
		"an abandoned burn is granted": wrong("abandon", func(c came) bool { return c.step.New && is(c, ramp.Burn) },
			moves(ramp.Grant, ramp.OrderAbandoned)),
		"an abandoned mint gives nothing back": wrong("abandon", func(c came) bool { return c.step.New && is(c, ramp.Mint) },
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
		"a step is not stored":               {forgets: true},
		"the effect comes before the store":  {torn: true},
		"the last of two racing steps stays": {blind: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(1)
			m.rules = rules
			err := m.run(100_000)
			require.Error(t, err)
			t.Logf("after %d steps: %v", m.steps, err)
		})
	}
}

// rules are how a store uses the rules under test, and what is wrong with them.
type rules struct {
	spoil func(rule string, r *ramp.Result, next ramp.Transition) ramp.Transition // nil if nothing is

	forgets bool // the store applies a step, and sometimes does not store it
	torn    bool // a crash may come between the effect and the order
	blind   bool // the store does not look whether the order has changed
}

const (
	modelPlayers = 3
	modelOrders  = 6
	modelWealth  = 40 // of each asset, for each player
)

var modelAssets = []string{"gold", "gem"}

// model is a game, the service and the chain.
type model struct {
	rules  rules
	random *rand.Rand
	now    time.Time
	steps  int
	seen   map[string]int

	stored map[uuid.UUID]*ramp.Order // the store: a plain map
	assets [modelPlayers][2]int64    // what the players hold in the game
	tokens [modelPlayers][2]int64    // and on the chain, by the asset that a token stands for
	orders [modelOrders]*modelOrder  // those that something still happens to
}

// modelOrder is an order, and its true state.
type modelOrder struct {
	request *ramp.ValidateRequest
	session ramp.Session
	player  int
	mint    bool
	amounts [2]int64

	state ramp.OrderState // "" before it was accepted
	taken [2]int64        // what the game has taken for it, less what it gave
	chain chainState
}

type chainState int

const (
	undecided chainState = iota
	chainSucceeded
	chainFailed // or never will succeed
)

func newModel(seed uint64) *model {
	m := &model{
		random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1_700_000_000, 0),
		seen: map[string]int{}, stored: map[uuid.UUID]*ramp.Order{},
	}
	for p := range modelPlayers {
		for a := range modelAssets {
			m.assets[p][a], m.tokens[p][a] = modelWealth, modelWealth
		}
	}
	for n := range m.orders {
		m.orders[n] = m.newOrder()
	}
	return m
}

func (m *model) newOrder() *modelOrder {
	o := &modelOrder{player: m.random.IntN(modelPlayers), mint: m.random.IntN(2) == 0}
	for a := range modelAssets {
		o.amounts[a] = 1 + m.random.Int64N(12)
	}
	o.session = ramp.Session{ID: fmt.Sprint("player-", o.player)}
	var id uuid.UUID
	for i := range id {
		id[i] = byte(m.random.Uint32())
	}
	o.request = &ramp.ValidateRequest{UUID: id, UserAddress: "0xAa", ProjectID: "project", Digest: ramp.Digest(append(id[:], id[:]...)),
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

// run takes random steps and checks the books after each.
func (m *model) run(steps int) error {
	for range steps {
		m.steps++
		m.now = m.now.Add(time.Millisecond)
		n := m.random.IntN(modelOrders)
		o := m.orders[n]
		if err := m.happen(o); err != nil {
			return fmt.Errorf("step %d, order %d (%s): %w", m.steps, n, o.state, err)
		}
		if err := m.balance(); err != nil {
			return fmt.Errorf("step %d, order %d (%s): %w", m.steps, n, o.state, err)
		}
		if o.state != ramp.OrderAccepted && m.random.IntN(12) == 0 {
			delete(m.stored, o.request.UUID)
			m.orders[n] = m.newOrder()
		}
	}
	return nil
}

// happen lets one thing happen to an order.
func (m *model) happen(o *modelOrder) error {
	if m.random.IntN(8) == 0 {
		m.settle(o)
		return nil
	}
	first := m.call(o)
	if m.random.IntN(6) == 0 {
		m.seen["raced"]++
		return m.race(o, first, m.call(o))
	}
	return m.update(o, first, m.read(o))
}

// settle decides the transaction on the chain.
func (m *model) settle(o *modelOrder) {
	if o.state != ramp.OrderAccepted || o.chain != undecided {
		return
	}
	o.chain = chainFailed
	enough := o.mint
	if !o.mint {
		enough = m.tokens[o.player][0] >= o.amounts[0] && m.tokens[o.player][1] >= o.amounts[1]
	}
	if !enough || m.random.IntN(2) == 0 {
		return
	}
	o.chain = chainSucceeded
	for a, n := range o.amounts {
		if o.mint {
			m.tokens[o.player][a] += n
		} else {
			m.tokens[o.player][a] -= n
		}
	}
}

// modelCall is a call, and its expected step.
type modelCall struct {
	next ramp.Transition
	want func() want // in the state of that moment
}

// want is what a step must be.
type want struct {
	err    error
	state  ramp.OrderState
	effect ramp.EffectKind
	new    bool
}

// rule returns a transition, with what is wrong in it.
func (m *model) rule(name string, r *ramp.Result, next ramp.Transition) ramp.Transition {
	if m.rules.spoil != nil {
		next = m.rules.spoil(name, r, next)
	}
	return next
}

func (m *model) call(o *modelOrder) modelCall {
	switch m.random.IntN(10) {
	case 0, 1, 2:
		return m.validate(o, m.random.IntN(4) == 0)
	case 3:
		return m.abandon(o)
	case 4:
		return m.result(o)
	default:
		if o.state == "" {
			return m.validate(o, false)
		}
		return m.result(o)
	}
}

func (m *model) validate(o *modelOrder, contradicts bool) modelCall {
	session, r := o.session, *o.request
	r.Intent = modelIntent(o.mint, o.amounts)
	if contradicts && o.state != "" {
		switch m.random.IntN(7) {
		case 0:
			session.ID = fmt.Sprint("player-", (o.player+1)%modelPlayers)
		case 1:
			r.ProjectID = "another"
		case 2:
			r.UserAddress = "0xbb"
		case 3:
			r.Digest[0]++
		case 4:
			more := o.amounts
			more[m.random.IntN(2)] += 1000
			r.Intent = modelIntent(o.mint, more)
		case 5:
			r.Intent = modelIntent(!o.mint, o.amounts)
		case 6:
			side := &r.Intent.To
			if !o.mint {
				side = &r.Intent.From
			}
			(*side)[0].ID = "0xff"
		}
		return modelCall{m.rule("accept", nil, ramp.Accept(session, &r, m.now)), func() want { return want{err: ramp.ErrOrderConflict} }}
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
	return modelCall{m.rule("accept", nil, ramp.Accept(session, &r, m.now)), func() want {
		switch o.state {
		case "":
			if o.mint {
				return want{state: ramp.OrderAccepted, effect: ramp.Take, new: true}
			}
			return want{state: ramp.OrderAccepted, new: true}
		case ramp.OrderAccepted:
			return want{state: ramp.OrderAccepted}
		default:
			return want{err: ramp.ErrOrderFinished}
		}
	}}
}

// result is a result of the service, which tells what is true until the order is
// over. Afterwards it may claim anything.
func (m *model) result(o *modelOrder) modelCall {
	succeeded := o.chain == chainSucceeded
	switch {
	case o.state == "":
		o.chain = chainFailed // the order may be opened before the result comes
	case o.state != ramp.OrderAccepted:
		succeeded = m.random.IntN(2) == 0
	case o.chain == undecided:
		return m.validate(o, true) // there is nothing to report
	}
	status, outcome := uint64(0), ramp.OrderFailed
	if succeeded {
		status, outcome = 1, ramp.OrderSucceeded
	}
	r := &ramp.Result{SessionID: o.session.ID, UUID: o.request.UUID, TxHash: "0x" + strings.Repeat("ab", 32),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: modelIntent(o.mint, o.amounts)}
	game, chain := &r.Intent.From, &r.Intent.To
	if !o.mint {
		game, chain = chain, game
	}
	contradicts := false
	switch m.random.IntN(16) {
	case 0:
		r.SessionID, contradicts = fmt.Sprint("player-", (o.player+1)%modelPlayers), true
	case 1:
		(*game)[0].Amount, contradicts = ramp.NewAmount(o.amounts[0]+1000), true
	case 2:
		(*chain)[0].ID, contradicts = "0xff", true
	case 3:
		r.Intent, contradicts = modelIntent(!o.mint, o.amounts), true
	case 4: // unreadable
		r.Intent = ramp.Intent{}
	case 5:
		*game = nil
	case 6:
		(*game)[1].Amount = ramp.Amount{}
	case 7:
		*chain = nil
	case 8:
		r.SessionID = ""
	case 9:
		r.SessionID = "\t" + r.SessionID + " "
	case 10:
		r.TxHash = "no hash"
	case 11:
		r.TxHash = "0x" + strings.Repeat("cd", 32)
	}
	return modelCall{m.rule("finish", r, ramp.Finish(r, m.now)), func() want {
		switch {
		case o.state == "":
			return want{err: ramp.ErrOrderUnknown}
		case contradicts:
			return want{err: ramp.ErrOrderConflict}
		case o.state == ramp.OrderAccepted:
			w := want{state: outcome, new: true}
			if o.mint && !succeeded {
				w.effect = ramp.GiveBack
			} else if !o.mint && succeeded {
				w.effect = ramp.Grant
			}
			return w
		case o.state == outcome, o.state == ramp.OrderAbandoned && !succeeded:
			return want{state: o.state}
		default:
			return want{err: ramp.ErrOrderConflict}
		}
	}}
}

// abandon is the step of a person who has checked the chain.
func (m *model) abandon(o *modelOrder) modelCall {
	switch {
	case o.state != "" && o.state != ramp.OrderAccepted:
	case o.chain == chainSucceeded:
		return m.result(o)
	default:
		o.chain = chainFailed
	}
	return modelCall{m.rule("abandon", nil, ramp.Abandon("the model said so", m.now)), func() want {
		switch o.state {
		case "":
			return want{err: ramp.ErrOrderUnknown}
		case ramp.OrderAccepted:
			if o.mint {
				return want{state: ramp.OrderAbandoned, effect: ramp.GiveBack, new: true}
			}
			return want{state: ramp.OrderAbandoned, new: true}
		case ramp.OrderAbandoned:
			return want{state: ramp.OrderAbandoned}
		default:
			return want{err: ramp.ErrOrderFinished}
		}
	}}
}

// read is what a store reads before a step.
func (m *model) read(o *modelOrder) *ramp.Order { return m.stored[o.request.UUID] }

// race makes two calls read the same order. The second one to store finds that it
// has changed, and starts again.
func (m *model) race(o *modelOrder, first, second modelCall) error {
	read := m.read(o)
	if err := m.update(o, first, read); err != nil {
		return err
	}
	return m.update(o, second, read)
}

// update is the Update of a store that compares and swaps, on an order that was
// read earlier.
func (m *model) update(o *modelOrder, call modelCall, read *ramp.Order) error {
	for {
		if m.random.IntN(4) == 0 {
			if _, err := call.next(nil); err != nil && !errors.Is(err, ramp.ErrOrderUnknown) {
				return fmt.Errorf("without a stored order: %w", err)
			}
		}
		step, err := call.next(read)
		changed := m.read(o) != read && !m.rules.blind
		if changed && (err != nil || step.New || m.random.IntN(2) == 0) {
			read = m.read(o)
			continue
		}
		if changed {
			return nil // a repeat of what was read; nothing is to be stored
		}
		if err := m.judge(o, call.want(), step, err); err != nil || !step.New {
			return err
		}
		return m.store(o, step)
	}
}

// judge compares the step of the rules with the expected one.
func (m *model) judge(o *modelOrder, w want, step ramp.Step, err error) error {
	switch {
	case w.err != nil:
		if !errors.Is(err, w.err) {
			return fmt.Errorf("came to %s with the error %v, not to %v", step.Order.State, err, w.err)
		}
		m.seen[map[error]string{ramp.ErrOrderConflict: "conflict", ramp.ErrOrderFinished: "over", ramp.ErrOrderUnknown: "unknown"}[w.err]]++
		return nil
	case err != nil:
		return fmt.Errorf("failed: %w", err)
	case step.New != w.new || step.Order.State != w.state || step.Effect.Kind != w.effect:
		return fmt.Errorf("came to %s, %s, new %t; not to %s, %s, new %t",
			step.Order.State, step.Effect.Kind, step.New, w.state, w.effect, w.new)
	}
	if !step.New {
		m.seen["repeated"]++
	}
	return nil
}

// store applies a step and stores its order: both or neither, whenever it
// crashes.
func (m *model) store(o *modelOrder, step ramp.Step) error {
	if m.random.IntN(10) == 0 && !m.rules.torn {
		m.seen["crashed before"]++
		return nil
	}
	if step.Order.SessionID != o.session.ID || step.Order.UUID != o.request.UUID {
		return fmt.Errorf("is a step of %s for %s", step.Order.UUID, step.Order.SessionID)
	}
	after := m.assets[o.player]
	for _, moved := range step.Effect.Assets {
		delta, err := step.Effect.Delta(moved).Int64()
		if err != nil {
			return err
		}
		after[slices.Index(modelAssets, moved.ID)] += delta
	}
	if after[0] < 0 || after[1] < 0 {
		if step.Effect.Kind != ramp.Take {
			return fmt.Errorf("%s makes a balance negative", step.Effect.Kind)
		}
		m.seen["rejected"]++
		return nil
	}
	for a := range after {
		o.taken[a] += m.assets[o.player][a] - after[a]
	}
	m.assets[o.player] = after
	if m.rules.torn && m.random.IntN(10) == 0 || m.rules.forgets && m.random.IntN(10) == 0 {
		return nil
	}
	stored := step.Order
	if m.random.IntN(50) == 0 {
		written, err := json.Marshal(stored)
		if err != nil {
			return err
		}
		stored = ramp.Order{}
		if err := json.Unmarshal(written, &stored); err != nil {
			return err
		}
	}
	m.stored[o.request.UUID], o.state = &stored, stored.State
	switch stored.State {
	case ramp.OrderAccepted:
		m.seen["opened"]++
	case ramp.OrderAbandoned:
		m.seen["abandoned"]++
	default:
		m.seen["finished"]++
	}
	if m.random.IntN(10) == 0 {
		m.seen["crashed after"]++ // the caller hears nothing, and calls again
	}
	return nil
}

// balance checks the books. For each order, the assets that the game has taken and
// not given back equal the tokens that the chain has issued, unless one of the two
// is pending. No initial asset or token is lost or doubled.
func (m *model) balance() error {
	var total [2]int64
	for p := range modelPlayers {
		for a := range modelAssets {
			total[a] += m.assets[p][a] + m.tokens[p][a]
		}
	}
	for n, o := range m.orders {
		for a, amount := range o.amounts {
			var taken, underway int64
			switch {
			case o.mint && o.state == ramp.OrderAccepted && o.chain != chainSucceeded:
				taken, underway = amount, amount
			case o.mint && (o.state == ramp.OrderAccepted || o.state == ramp.OrderSucceeded):
				taken = amount
			case !o.mint && o.state == ramp.OrderAccepted && o.chain == chainSucceeded:
				underway = amount
			case !o.mint && o.state == ramp.OrderSucceeded:
				taken = -amount
			}
			if o.taken[a] != taken {
				return fmt.Errorf("for order %d (%s) the game has taken %d %s, not %d", n, o.state, o.taken[a], modelAssets[a], taken)
			}
			total[a] += underway
		}
	}
	for a, id := range modelAssets {
		if want := int64(2 * modelPlayers * modelWealth); total[a] != want {
			return fmt.Errorf("there are %d %s, not %d", total[a], id, want)
		}
	}
	return nil
}
