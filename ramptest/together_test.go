package ramptest_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A store lets a transaction end one order, and if the moves cancel out, it proves none. What is left waits for
// a person, and that is no mistake.
func TestATransactionOfTwoOrdersEndsOneAtMost(t *testing.T) {
	for name, test := range map[string]struct {
		first, second func(*ramptest.Service) placer
		fault         ramptest.Fault
		gold          int64 // of 1000, and each order is about 100
		ends          ramptest.State
	}{
		"two burns":                   {burns, burns, ramptest.ResultTwice(), 1100, ramptest.Confirmed},
		"two mints":                   {mints, mints, ramptest.ResultTwice(), 800, ramptest.Confirmed},
		"a mint and a burn":           {mints, burns, ramptest.ResultTwice(), 900, ramptest.GivenUp},
		"two mints that fail":         {mints, mints, ramptest.TransactionFails(), 900, ramptest.Confirmed},
		"a burn and a mint that fail": {burns, mints, ramptest.TransactionFails(), 900, ramptest.Confirmed},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, proved, nil)
			first := s.place(t, test.first, ramptest.MinedWithNext())
			assert.Empty(t, s.service.Advance(time.Minute), name)
			_, shown := (&counter{service: s.service}).control(t, "GET", "/control/orders/"+first.UUID.String(), "")
			assert.Equal(t, "The transaction waits for the next order, as you chose.", shown.Head)
			second := s.place(t, test.second, test.fault)
			assert.Equal(t, first.TxHash, second.TxHash)
			s.service.Advance(12 * time.Hour)
			assert.Equal(t, test.ends, s.service.State(first), name)
			assert.Equal(t, ramptest.GivenUp, s.service.State(second), name)
			assert.Equal(t, test.gold, s.owns["item_gold"], name)
			_, shown = (&counter{service: s.service}).control(t, "GET", "/control/orders/"+second.UUID.String(), "")
			assert.Equal(t, "The transaction is that of another order, too, so a person must end this one.", shown.Head,
				name)
			assert.Equal(t, "unconfirmed", string(shown.State))
			failed, said := s.test.end()
			assert.False(t, failed, "%s: %s", name, said)
		})
	}
}

// A game that ends both orders at once is right, too. One that moves more for an order than it is about is
// not, nor is one that ends neither, or that confirms and moves nothing.
func TestEachOrderOfATransactionMovesItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		result func(v *vault, s ramp.Session, r *ramp.Result, n int) error // n counts the results
		said   string                                                      // "" if it is right
	}{
		"ends both": {func(v *vault, s ramp.Session, r *ramp.Result, _ int) error { return v.finish(s, r) }, ""},
		"grants both for each": {func(v *vault, s ramp.Session, r *ramp.Result, _ int) error {
			v.effect(s.ID, r)
			v.effect(s.ID, r)
			return nil
		}, "the game must grant 1 item_gem, 100 item_gold"},
		"grants both with the first": {func(v *vault, s ramp.Session, r *ramp.Result, n int) error {
			if n == 1 {
				v.effect(s.ID, r)
				v.effect(s.ID, r)
				return nil
			}
			return errors.New("the transaction has ended another order")
		}, "the game must grant 1 item_gem, 100 item_gold"},
		"confirms and grants nothing": {func(v *vault, s ramp.Session, r *ramp.Result, n int) error {
			if n == 1 {
				return v.finish(s, r)
			}
			return nil
		}, "the game must grant 1 item_gem, 100 item_gold"},
		"ends neither": {func(*vault, ramp.Session, *ramp.Result, int) error { return errors.New("a batch") },
			"The game never confirmed."},
	} {
		for _, second := range []string{"session-1", "session-2"} {
			v, n := newVault(), 0
			v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
				n++
				return test.result(v, s, r, n)
			}
			p := play(t, v, complete)
			must.Get(p.order(t, "session-1", true, ramptest.MinedWithNext()))(t)
			must.Get(p.order(t, second, true))(t)
			p.service.Advance(24 * time.Hour)
			failed, said := p.test.end()
			assert.Equal(t, test.said != "", failed, "%s, %s: %s", name, second, said)
			assert.Contains(t, said, test.said, "%s, %s", name, second)
		}
	}
}

// A transaction burns all that it is about, or nothing.
func TestATransactionOfTwoBurnsNeedsBoth(t *testing.T) {
	for tokens, gold := range map[int64]int64{20: 1200, 19: 1000} {
		p := play(t, newVault(), complete, func(c *ramptest.Config) {
			has := ramp.NewAmount(tokens)
			c.Tokens = &has
		})
		must.Get(p.order(t, "session-1", true, ramptest.MinedWithNext()))(t)
		must.Get(p.order(t, "session-1", true))(t)
		assert.Equal(t, []int{200, 200}, statuses(p.service.Advance(time.Minute)))
		assert.Equal(t, gold, p.vault.owns["session-1"]["item_gold"])
		failed, said := p.test.end()
		assert.False(t, failed, said)
	}
}

// The transaction can be ended by hand, for both, and each result is then sent once.
func TestATransactionOfTwoOrdersCanBeEndedByHand(t *testing.T) {
	for hand := range 2 {
		for _, pending := range []bool{false, true} {
			p := play(t, newVault(), complete)
			faults := [][]ramptest.Fault{{ramptest.MinedWithNext()}, nil}
			if pending {
				faults[hand] = append(slices.Clone(faults[hand]), ramptest.StaysPending())
			}
			var placed []*ramptest.PlacedOrder
			for _, f := range faults {
				placed = append(placed, must.Get(p.order(t, "session-1", false, f...))(t))
			}
			if pending {
				require.Empty(t, p.service.Advance(time.Minute))
			}
			require.NoError(t, p.service.Deliver(t.Context(), placed[hand], ramptest.Failed))
			assert.Equal(t, []int{200}, statuses(p.service.Advance(time.Hour)))
			for _, o := range placed {
				assert.Equal(t, ramptest.Confirmed, p.service.State(o))
			}
			assert.Equal(t, int64(1000), p.vault.owns["session-1"]["item_gold"])
			failed, said := p.test.end()
			assert.False(t, failed, said)
		}
	}
}

func TestOrdersOfOneTransactionAreKept(t *testing.T) {
	c := newCounter(t, kept(t))
	first := c.mint(t, ramptest.MinedWithNext())
	c.restart(t, c.handler)
	assert.Empty(t, c.service.Advance(time.Minute))
	second := c.mint(t)
	c.restart(t, c.handler)
	assert.Len(t, c.service.Advance(time.Minute), 2)
	_, a := c.control(t, "GET", "/control/orders/"+first.UUID.String(), "")
	_, b := c.control(t, "GET", "/control/orders/"+second.UUID.String(), "")
	assert.Equal(t, a.TxHash, b.TxHash)
	assert.Equal(t, "done", string(a.State))
	assert.Equal(t, a.Said, b.Said)
}

func TestATransactionThatWaitsForNoOrderShowsNothing(t *testing.T) {
	p := play(t, newVault(), complete)
	must.Get(p.order(t, "session-1", false, ramptest.MinedWithNext()))(t)
	p.service.Advance(time.Hour)
	failed, said := p.test.end()
	assert.True(t, failed)
	assert.Contains(t, said,
		"mined-with-next had no effect, because no other order of its network was approved after it")
}
