package ramp_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// The rules of an order are told twice: by the package, and by the table after below, which is
// short enough to be checked by reading it. Every sequence of up to four calls about one order is
// made, and after each call both must agree: on its answer, on what is stored, and on what the
// player owns. What a call does follows from what is stored, and two calls store all that can be, so more calls would
// show nothing else. Wrong rules, each of which the table must report, show that it works.

// facts are what is true of an order and its player.
type facts struct {
	state    ramp.OrderState // "" if there is no order
	openedBy byte            // the digest of the validate call that opened it
	endedBy  string          // the transaction that ended it
	settled  bool            // whether a person settled its end without the game
	gold     int             // the player's
}

// The calls of the sequences. Each of the results contradicts an accepted order in at most one way.
var sequenceCalls = []sequenceCall{
	{name: "validate", digest: 1},
	{name: "another validate", digest: 2},
	{name: "success", status: 1, tx: "a"},
	{name: "failure", status: 0, tx: "b"},
	{name: "success by another transaction that lists no assets", status: 1, tx: "c", lists: "nothing"},
	{name: "failure for another session", status: 0, tx: "b", contradicts: "session_id"},
	{name: "success of another intent", status: 1, tx: "a", lists: "another", contradicts: "intent"},
	{name: "abandon"},
	{name: "abandon, settled by mail", settled: true},
	{name: "success, settled by mail", status: 1, tx: "a", settled: true},
}

// sequenceCall is a call of a sequence: a validate call if it has a digest, a result if it has a
// transaction, and otherwise a person who abandons the order.
type sequenceCall struct {
	name        string
	digest      byte
	status      uint64
	tx          string
	lists       string // what the intent of a result is, if not that of the order
	contradicts string // the field that differs from the order
	settled     bool   // whether a person makes it, who has settled the assets in another way
}

// after is the table: what must be true after a call, and its answer.
func (f facts) after(c sequenceCall, mint bool) (facts, string) {
	none, open := f.state == "", f.state == ramp.OrderAccepted
	succeeded, failed := ramp.OrderSucceeded, ramp.OrderFailed
	ends := func(state ramp.OrderState, tx string, gold int) facts {
		return facts{state: state, openedBy: f.openedBy, endedBy: tx, gold: f.gold + gold}
	}
	switch {
	case c.settled:
		return f.afterSettled(c, mint)
	case c.digest != 0:
		opened := facts{state: ramp.OrderAccepted, openedBy: c.digest, gold: f.gold}
		switch {
		case none && mint:
			opened.gold -= 5
			return opened, "take"
		case none:
			return opened, "nothing"
		case f.openedBy != c.digest:
			return f, "conflict in digest"
		case open:
			return f, "repeat"
		}
		return f, "finished"
	case none:
		return f, "unknown"
	case c.tx == "":
		switch {
		case open && mint:
			return ends(ramp.OrderAbandoned, "", 5), "give back"
		case open:
			return ends(ramp.OrderAbandoned, "", 0), "nothing"
		case f.state == ramp.OrderAbandoned:
			return f, "repeat"
		}
		return f, "finished"
	case c.contradicts != "":
		return f, "conflict in " + c.contradicts
	case open && mint && c.status == 1:
		return ends(succeeded, c.tx, 0), "nothing"
	case open && mint:
		return ends(failed, c.tx, 5), "give back"
	case open && c.status == 1:
		return ends(succeeded, c.tx, 5), "grant"
	case open:
		return ends(failed, c.tx, 0), "nothing"
	case f.state == succeeded && c.status == 1, f.state != succeeded && c.status == 0:
		return f, "repeat"
	}
	return f, "conflict in receipt.status"
}

// afterSettled is the part of the table about what a person settles: the order ends as it would, and
// the game moves nothing, unless it already has.
func (f facts) afterSettled(c sequenceCall, mint bool) (facts, string) {
	c.settled = false
	now, answer := f.after(c, mint)
	moved := !f.settled && (f.state == ramp.OrderSucceeded) != mint // by the end of the order
	switch {
	case answer == "repeat" && moved:
		return f, "conflict in settled"
	case now != f:
		now.settled, now.gold = true, f.gold
		return now, "nothing"
	}
	return f, answer
}

func TestEverySequenceOfCalls(t *testing.T) {
	const longest, total = 4, 11_111 // 1 + 10 + 10^2 + 10^3 + 10^4
	for _, direction := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		sequences, err := trySequences(direction, longest, nil)
		require.NoError(t, err)
		require.Equal(t, total, sequences, "every sequence of a %v is tried", direction)
	}
}

func TestTheSequencesReportWrongRules(t *testing.T) {
	rules := wrongRules()
	type wrong = func(stored *ramp.Order, step ramp.Step, err error) (ramp.Step, error)
	settled := func(wrong wrong) spoil {
		return func(rule string, _ *ramp.Result, next ramp.Transition) ramp.Transition {
			if rule != "settled" {
				return next
			}
			return func(stored *ramp.Order) (ramp.Step, error) {
				step, err := next(stored)
				return wrong(stored, step, err)
			}
		}
	}
	rules["a settled end moves its assets"] = settled(func(stored *ramp.Order, step ramp.Step,
		err error) (ramp.Step, error) {
		if step.New {
			step.Effect = ramp.Effect{Kind: ramp.GiveBack, Assets: stored.Assets}
		}
		return step, err
	})
	rules["what the game has moved is settled again"] = settled(func(stored *ramp.Order, step ramp.Step,
		err error) (ramp.Step, error) {
		if errors.Is(err, ramp.ErrOrderConflict) {
			return ramp.Step{Order: *stored}, nil
		}
		return step, err
	})
	for name, spoil := range rules {
		t.Run(name, func(t *testing.T) {
			_, mint := trySequences(ramp.Mint, 3, spoil)
			_, burn := trySequences(ramp.Burn, 3, spoil)
			require.Error(t, cmp.Or(mint, burn))
			t.Log(cmp.Or(mint, burn))
		})
	}
}

// trySequences makes every sequence of up to longest calls about an order, and counts them. The
// error is the first disagreement with the table.
func trySequences(direction ramp.Direction, longest int, spoil spoil) (sequences int, err error) {
	rules := make([]ramp.Transition, len(sequenceCalls))
	for i, c := range sequenceCalls {
		rules[i] = c.transition(direction, spoil)
	}
	var extend func(stored *ramp.Order, before facts, sequence []string) error
	extend = func(stored *ramp.Order, before facts, sequence []string) error {
		sequences++
		if len(sequence) == longest {
			return nil
		}
		for i, c := range sequenceCalls {
			sequence := append(sequence, c.name)
			got, answer, now := before.call(rules[i], stored)
			want, wantAnswer := before.after(c, direction == ramp.Mint)
			if got != want || answer != wantAnswer {
				return fmt.Errorf("%v, %s: answered %q with %+v, instead of %q with %+v",
					direction, strings.Join(sequence, ", then "), answer, got, wantAnswer, want)
			}
			if err := extend(now, got, sequence); err != nil {
				return err
			}
		}
		return nil
	}
	return sequences, extend(nil, facts{}, nil)
}

// call makes a call, as a store does, and returns what is true afterwards.
func (f facts) call(next ramp.Transition, stored *ramp.Order) (facts, string, *ramp.Order) {
	step, err := next(stored)
	answer := answered(step, err)
	if err == nil && step.New {
		stored = &step.Order
		for _, a := range step.Effect.Assets {
			if a.ID == "gold" {
				delta, err := step.Effect.Delta(a).Int64()
				if err != nil {
					return f, err.Error(), stored
				}
				f.gold += int(delta)
			}
		}
	}
	if stored != nil {
		f.state, f.openedBy = stored.State, stored.Digest[0]
		f.settled = stored.Settled != ""
		f.endedBy = strings.Trim(strings.TrimPrefix(stored.TxHash, "0x"), "0")
	}
	return f, answer, stored
}

// answered names what a call came to.
func answered(step ramp.Step, err error) string {
	var conflict *ramp.ConflictError
	switch {
	case errors.As(err, &conflict):
		return "conflict in " + conflict.Field
	case errors.Is(err, ramp.ErrOrderUnknown):
		return "unknown"
	case errors.Is(err, ramp.ErrOrderFinished):
		return "finished"
	case err != nil:
		return err.Error()
	case !step.New:
		return "repeat"
	}
	return step.Effect.Kind.String()
}

// transition returns the rule of the package for a call.
func (c sequenceCall) transition(direction ramp.Direction, spoil spoil) ramp.Transition {
	at := time.Unix(1_795_000_000, 0)
	intent := sequenceIntent(direction == ramp.Mint, 5)
	rule, next, result := "abandon", ramp.Abandon("the test said so", at), (*ramp.Result)(nil)
	switch {
	case c.digest != 0:
		rule = "accept"
		next = ramp.Accept(ramp.Session{ID: "alice"}, &ramp.ValidateRequest{UUID: uuid.UUID{1},
			UserAddress: "0xAa", ProjectID: "project", Digest: ramp.Digest{c.digest}, Intent: intent}, at)
	case c.tx != "":
		result = &ramp.Result{SessionID: "alice", UUID: uuid.UUID{1}, TxHash: "0x" + c.tx + strings.Repeat("0", 63),
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(c.status)}, Intent: intent}
		if c.contradicts == "session_id" {
			result.SessionID = "bob"
		}
		switch c.lists {
		case "nothing":
			result.Intent = ramp.Intent{}
		case "another":
			result.Intent = sequenceIntent(direction == ramp.Mint, 6)
		}
		rule, next = "finish", ramp.Finish(result, at)
	}
	if c.settled {
		rule, next = "settled", ramp.Settled("sent by mail", next)
	}
	if spoil != nil {
		next = spoil(rule, result, next)
	}
	return next
}

// sequenceIntent is an intent of this much gold.
func sequenceIntent(mint bool, gold int64) ramp.Intent {
	game := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(gold)},
		{Type: ramp.TypeAsset, ID: "gem", Amount: ramp.NewAmount(5)}}
	chain := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: testToken, Amount: ramp.NewAmount(10)}}
	if mint {
		return ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: game, To: chain}
	}
	return ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: chain, To: game}
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

// spoil makes a rule wrong: "accept", "finish" with its result, "abandon" or "settled".
type spoil func(rule string, r *ramp.Result, next ramp.Transition) ramp.Transition
