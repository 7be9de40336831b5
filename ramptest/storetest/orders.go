package storetest

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

const token = "0x00000000000000000000000000000000000070c3"

// validatedAt has a higher precision than an order keeps.
var validatedAt = time.Unix(1_795_000_000, 123_456_789)

func gold(n int64) ramp.AssetAmount { return ramp.AssetAmount{ID: "gold", Amount: ramp.NewAmount(n)} }

// mint returns a validate call for a mint, and burn one for a burn.
func mint(assets ...ramp.AssetAmount) *ramp.ValidateRequest {
	r := &ramp.ValidateRequest{UserSig: "0x01", UserAddress: "0x00000000000000000000000000000000000000Aa",
		ProjectID: "project-1", UUID: uuid.New(), Product: "gold", Tokens: ramp.NewAmount(1),
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token, Amount: ramp.NewAmount(1)}}}}
	_, _ = rand.Read(r.Digest[:]) // never fails
	for _, a := range assets {
		r.Intent.From = append(r.Intent.From,
			ramp.IntentAsset{Type: ramp.TypeAsset, ID: a.ID, Amount: a.Amount})
	}
	return r
}

func burn(assets ...ramp.AssetAmount) *ramp.ValidateRequest {
	r := mint(assets...)
	r.Intent.Method, r.Intent.Type = ramp.MethodBurnPermit, ramp.Disassemble
	r.Intent.From, r.Intent.To = r.Intent.To, r.Intent.From
	return r
}

// player is a player of the game whose store is tried.
type player struct {
	*trial
	session string
}

// player returns a player with gold.
func (k *trial) player(gold int64) player {
	p := player{k, "player-" + rand.Text()}
	p.give("gold", gold)
	return p
}

func (p player) give(asset string, balance int64) {
	if err := p.Give(p.ctx, p.session, asset, balance); err != nil {
		p.fail("Give failed: %v", err)
	}
}

func (p player) balance(asset string) int64 {
	for deadline := time.Now().Add(p.timeout); ; {
		n, err := p.Balance(p.ctx, p.session, asset)
		if err == nil {
			return n
		}
		if time.Now().After(deadline) {
			p.fail("Balance failed: %v", err)
		}
		time.Sleep(time.Millisecond) // the server may be starting
	}
}

func (p player) expectGold(when string, want int64) {
	if got := p.balance("gold"); got != want {
		p.fail("the balance is %d instead of %d %s", got, want, when)
	}
}

// deal is an order of a player, and what the store must have of it.
type deal struct {
	player
	*ramp.ValidateRequest
	order *ramp.Order // nil if it has none
}

func (p player) deal(r *ramp.ValidateRequest) *deal { return &deal{player: p, ValidateRequest: r} }

// atApply sets what check does with the steps of an order; nil approves them.
func (d *deal) atApply(f func(ramp.Step) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onApply[d.UUID] = f
}

func (d *deal) timesApplied() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.applied[d.UUID]
}

// take calls Update and compares the step with that of next. The deal then has the order
// after the step, which is stored for a repeat.
func (d *deal) take(what string, next ramp.Transition) {
	want, err := next(d.order)
	if err != nil {
		panic(err) // a bug in the check
	}
	before := d.timesApplied()
	got, err := d.update(d.ctx, d.UUID, next)
	switch applied := d.timesApplied() - before; {
	case err != nil:
		d.fail("Update failed for %s: %v", what, err)
	case got.New != want.New:
		d.fail("Update returned a step with New %v for %s, but next returned one with New %v", got.New,
			what, want.New)
	case got.Product != want.Product || got.Tokens.Cmp(want.Tokens) != 0:
		d.fail("Update returned a step of product %q instead of %q for %s", got.Product, want.Product, what)
	case difference(got.Effect, want.Effect) != "":
		d.fail("Update returned another effect than next for %s: %s", what,
			difference(got.Effect, want.Effect))
	case difference(got.Order, want.Order) != "":
		d.fail("Update returned another order than next for %s: %s", what, difference(got.Order, want.Order))
	case want.Settled() && applied != 0:
		d.fail("%s was applied, although a person has settled it in another way", what)
	case want.New && !want.Settled() && applied == 0:
		d.fail("%s was not applied: Apply must see each new step, also one whose effect is %v", what,
			want.Effect.Kind)
	case !want.New && applied != 0:
		d.fail("%s was applied, although its step is not New", what)
	}
	d.order = &want.Order
	d.expectStored("after " + what)
}

// mustFail makes a call that must fail and must change nothing. It returns the error.
func (d *deal) mustFail(what string, next ramp.Transition) error {
	step, err := d.update(d.ctx, d.UUID, next)
	d.expectError(what, step, err)
	d.expectStored("after " + what)
	return err
}

func (d *deal) expectStored(when string) {
	got, want := d.stored(d.UUID), d.order
	switch {
	case got == nil && want != nil:
		d.fail("no order is stored %s: the store lost it", when)
	case got != nil && want == nil:
		d.fail("an order is stored %s, but there must be none", when)
	case got != nil && difference(*got, *want) != "":
		d.fail("the stored order is not the right one %s: %s", when, difference(*got, *want))
	}
}

// accepted returns an order that the store has accepted.
func (p player) accepted(r *ramp.ValidateRequest) *deal {
	d := p.deal(r)
	d.take("a validate", d.accepts())
	return d
}

func (d *deal) call(next ramp.Transition) *call { return &call{id: d.UUID, next: next} }

func (d *deal) accepts() ramp.Transition {
	return ramp.Accept(ramp.Session{ID: d.session}, d.ValidateRequest, validatedAt)
}

// txHash returns the hash of the transaction of an order.
func txHash(order uuid.UUID) string { return fmt.Sprintf("0x%x", sha256.Sum256(order[:])) }

// resultBy returns the transition of the order's result that names a transaction.
func (d *deal) resultBy(txHash string, status uint64) ramp.Transition {
	return ramp.Finish(&ramp.Result{SessionID: d.session, UUID: d.UUID, TxHash: txHash,
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}, Intent: d.Intent},
		validatedAt.Add(time.Hour))
}

func (d *deal) succeeds() ramp.Transition { return d.resultBy(txHash(d.UUID), 1) }

func (d *deal) fails() ramp.Transition { return d.resultBy(txHash(d.UUID), 0) }

// byHand returns the transition of a person who ends the order as its transaction failed.
func (d *deal) byHand() ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := d.fails()(stored)
		if step.New {
			step.Order.Reason = "alice: the result never came"
		}
		return step, err
	}
}

func (d *deal) abandoned() ramp.Transition {
	return ramp.Abandon("no transaction", validatedAt.Add(time.Hour))
}

// ending is a way in which an order of 4 gold can end.
type ending struct {
	name    string
	request func(...ramp.AssetAmount) *ramp.ValidateRequest
	end     func(*deal) ramp.Transition
	taken   int64 // by the validate call
	given   int64 // by the ending
}

// step is a step of the order of a player with 10 gold.
type step struct {
	name          string
	next          ramp.Transition
	before, after int64 // the gold
}

// steps returns the two steps of an order.
func (e *ending) steps(d *deal) []step {
	accepted := 10 - e.taken
	return []step{
		{"validate of " + e.name, d.accepts(), 10, accepted},
		{"end of " + e.name, e.end(d), accepted, accepted + e.given},
	}
}

// endings are all of them.
var endings = []ending{
	{"a mint that succeeds", mint, (*deal).succeeds, 4, 0},
	{"a mint that fails", mint, (*deal).fails, 4, 4},
	{"a mint that a person ends by its transaction", mint, (*deal).byHand, 4, 4},
	{"a mint that is abandoned", mint, (*deal).abandoned, 4, 4},
	{"a burn that succeeds", burn, (*deal).succeeds, 0, 4},
	{"a burn that fails", burn, (*deal).fails, 0, 0},
	{"a burn that is abandoned", burn, (*deal).abandoned, 0, 0},
}
