package support_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

var inBatch = support.Decision{Who: "alice", Reason: "case 18", Batch: true}

// batch is a transaction that settles orders, and has ended the first of them.
type batch struct {
	*rig.Office
	store  *rig.Store
	node   *rig.Node
	clock  time.Time
	moved  []ramp.Step // by the game
	orders []ramp.Order
	hash   common.Hash
}

// newBatch keeps orders of so many tokens that were accepted 14 hours ago, and sends a transaction that moves so
// many hundredths for each user. An order below 0 has the other direction.
func newBatch(t *testing.T, d ramp.Direction, tokens []int64, tx rig.Tx) *batch {
	t.Helper()
	b := &batch{node: &rig.Node{Begin: rig.Now.Add(-365 * 24 * time.Hour), Head: 365 * 24 * 3600,
		Decimals: "0x0000000000000000000000000000000000000000000000000000000000000012"}}
	b.store = rig.NewStore(t, func(_ context.Context, step ramp.Step) error {
		b.moved = append(b.moved, step)
		return nil
	})
	b.clock = rig.Now
	b.Office, _ = rig.WithJournal(t, b.store, b.node, &b.clock)
	at := rig.Now.Add(-14 * time.Hour)
	tx.From, tx.Payer, tx.To = rig.Player, rig.Payer, rig.Vault
	b.hash = b.node.Send(at.Add(10*time.Minute), tx)
	for i, n := range tokens {
		of := d
		if n < 0 {
			of, n = map[ramp.Direction]ramp.Direction{ramp.Mint: ramp.Burn, ramp.Burn: ramp.Mint}[d], -n
		}
		o := rig.OrderOf(of, n, at.Add(time.Duration(i)*time.Second))
		if i == 0 {
			o = rig.Ended(o, ramp.OrderSucceeded, b.hash, at.Add(11*time.Minute))
			if tx.Failed {
				o.State = ramp.OrderFailed
			}
		}
		b.orders = append(b.orders, o)
	}
	b.store.Keep(t, b.orders...)
	b.store.Witness(t, b.node)
	b.moved = nil
	return b
}

// burns returns a transaction in which the player burns so many hundredths.
func burns(hundredths ...int64) (tx rig.Tx) {
	for _, n := range hundredths {
		tx.Transfers = append(tx.Transfers, rig.Moved(rig.Player, common.Address{}, n))
	}
	return tx
}

// mints returns a transaction in which the player is minted so many hundredths.
func mints(hundredths ...int64) (tx rig.Tx) {
	for _, n := range hundredths {
		tx.Transfers = append(tx.Transfers, rig.Moved(common.Address{}, rig.Player, n))
	}
	return tx
}

// fee returns a transaction in which the account of the fees is minted so many hundredths.
func fee(hundredths int64) rig.Tx {
	return rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, common.HexToAddress("0xfee5"), hundredths)}}
}

// with returns a transaction that does what both do.
func with(a, b rig.Tx) rig.Tx { return rig.Tx{Transfers: slices.Concat(a.Transfers, b.Transfers)} }

// A wallet can send two burns in one transaction. Each of them is granted, and none twice.
func TestABatchEndsEachOfItsOrders(t *testing.T) {
	for name, c := range map[string]struct {
		direction ramp.Direction
		tokens    []int64
		tx        rig.Tx
		effect    ramp.EffectKind
	}{
		"two burns":         {ramp.Burn, []int64{5, 3}, burns(500, 300), ramp.Grant},
		"two equal burns":   {ramp.Burn, []int64{5, 5}, burns(500, 500), ramp.Grant},
		"three burns":       {ramp.Burn, []int64{5, 3, 2}, burns(500, 300, 200), ramp.Grant},
		"two mints, net":    {ramp.Mint, []int64{5, 3}, mints(490, 294), ramp.Nothing},
		"two failed mints":  {ramp.Mint, []int64{5, 3}, rig.Tx{Failed: true}, ramp.GiveBack},
		"burns in one part": {ramp.Burn, []int64{5, 3}, burns(800), ramp.Grant},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBatch(t, c.direction, c.tokens, c.tx)
			for i, o := range b.orders[1:] {
				report := must.Get(b.Show(t.Context(), o.UUID))(t)
				if !c.tx.Failed {
					require.Equal(t, support.NextBatch, report.Advice.Next, report.Advice.Do)
					assert.Equal(t, &b.hash, report.Advice.Tx)
					assert.NotContains(t, report.Advice.Do, "wrongly")
					assert.Contains(t, report.Text(), "\n    it moved enough for this order, too: it settles several\n")
					_, err := b.Abandon(t.Context(), o.UUID, alice)
					refuses(t, err, b.hash)
				}
				var conflict *ramp.ConflictError
				_, err := b.Finish(t.Context(), o.UUID, b.hash, alice)
				require.ErrorAs(t, err, &conflict)
				assert.Equal(t, "tx_hash", conflict.Field)

				step := must.Get(b.Finish(t.Context(), o.UUID, b.hash, inBatch))(t)
				assert.Equal(t, c.effect, step.Effect.Kind)
				assert.Equal(t, "alice: case 18", step.Order.Reason)
				assert.Empty(t, step.Order.TxHash, "one order stores it")
				assert.Equal(t, i+1, len(must.Get(b.BatchOf(t.Context(), b.hash))(t)))
				assert.False(t, must.Get(b.Finish(t.Context(), o.UUID, b.hash, inBatch))(t).New, "a repeat")
			}
			effects := 0
			for _, step := range b.moved {
				if step.Effect.Kind != ramp.Nothing {
					effects++
				}
			}
			if c.effect != ramp.Nothing {
				assert.Equal(t, len(c.tokens)-1, effects)
			}
		})
	}
}

// A mint and a burn of one transaction hide each other, so the service says whose it is. Then what the first has
// explained does not count against the second.
func TestABatchInBothDirections(t *testing.T) {
	d := inBatch
	d.AgainstEvidence = true
	for direction, c := range map[ramp.Direction]struct {
		tx     rig.Tx
		effect ramp.EffectKind
	}{
		ramp.Mint: {with(mints(490), burns(300)), ramp.Grant},
		ramp.Burn: {with(burns(500), mints(294)), ramp.Nothing},
	} {
		b := newBatch(t, direction, []int64{5, -3}, c.tx)
		id := b.orders[1].UUID
		assert.Equal(t, support.NextAskService, must.Get(b.Show(t.Context(), id))(t).Advice.Next)
		_, err := b.Finish(t.Context(), id, b.hash, inBatch)
		require.ErrorIs(t, err, rampproof.ErrNotProven)
		assert.Equal(t, c.effect, must.Get(b.Finish(t.Context(), id, b.hash, d))(t).Effect.Kind)
	}
}

// With claims, each order of a batch has a place among those of its transaction, also if the first one ended
// before there were claims. An order of another database that has a place is read by nobody here, so it is not known
// what is left.
func TestTheOrdersOfABatchClaimTheirTransaction(t *testing.T) {
	for _, before := range []bool{true, false} {
		b := newBatch(t, ramp.Burn, []int64{5, 3, 2}, burns(500, 300, 200))
		b.store.Shared = new(rig.Claims)
		if !before {
			must.Get(b.store.Shared.Claim(t.Context(), b.hash, 0, b.orders[0].UUID))(t)
		}
		for i, o := range b.orders[1:] {
			assert.True(t, must.Get(b.Show(t.Context(), o.UUID))(t).Candidates[0].Batch)
			for range 2 {
				must.Get(b.Finish(t.Context(), o.UUID, b.hash, inBatch))(t)
			}
			claimed := must.Get(b.store.Shared.Claimed(t.Context(), b.hash))(t)
			assert.Equal(t, []uuid.UUID{b.orders[0].UUID, b.orders[1].UUID, b.orders[2].UUID}[:i+2], claimed)
		}
	}
	b := newBatch(t, ramp.Burn, []int64{5, 3}, burns(500, 300))
	b.store.Shared = new(rig.Claims)
	must.Get(b.Finish(t.Context(), b.orders[1].UUID, b.hash, inBatch))(t)
	for _, deleted := range b.orders {
		delete(b.store.Orders, deleted.UUID)
	}
	books := must.Get(b.Reconcile(t.Context(), rig.Now.Add(-20*time.Hour), time.Time{}))(t)
	assert.Empty(t, books.Findings)
	assert.Equal(t, 1, books.Elsewhere)

	b = newBatch(t, ramp.Burn, []int64{5, 3}, burns(500, 300, 200))
	b.store.Shared = new(rig.Claims)
	for place, id := range []uuid.UUID{b.orders[0].UUID, uuid.New()} {
		must.Get(b.store.Shared.Claim(t.Context(), b.hash, place, id))(t)
	}
	assert.False(t, must.Get(b.Show(t.Context(), b.orders[1].UUID))(t).Candidates[0].Batch)
	_, err := b.Finish(t.Context(), b.orders[1].UUID, b.hash, inBatch)
	assert.ErrorContains(t, err, "cannot be read, so nobody knows whether it covers this one")
}

// What the transaction moved must cover every order that ends by it.
func TestABatchCoversItsOrders(t *testing.T) {
	against := inBatch
	against.AgainstEvidence = true
	two := burns(500, 300)
	two.Transfers = append(two.Transfers, rig.Moved(rig.Friend, common.Address{}, 900))
	for name, c := range map[string]struct {
		direction ramp.Direction
		tokens    []int64
		tx        rig.Tx
	}{
		"a second order, with the burn of the first": {ramp.Burn, []int64{5, 5}, burns(500)},
		"one unit too few":                           {ramp.Burn, []int64{5, 3}, burns(500, 299)},
		"mints, one unit below the fee":              {ramp.Mint, []int64{5, 3}, mints(490, 293)},
		"what somebody else burned":                  {ramp.Burn, []int64{5, 5}, two},
		"a burn of the minted amount, less the fee":  {ramp.Mint, []int64{5, -5}, with(mints(490), burns(490))},
		"a burn that was refunded":                   {ramp.Mint, []int64{1, -5}, with(mints(98, 500), burns(500))},
		"a burn that goes on to a friend": {ramp.Burn, []int64{5, 3}, rig.Tx{Transfers: []ramp.Transfer{
			rig.Moved(rig.Player, common.Address{}, 500), rig.Moved(rig.Player, rig.Friend, 300)}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBatch(t, c.direction, c.tokens, c.tx)
			id := b.orders[1].UUID
			assert.NotEqual(t, support.NextBatch, must.Get(b.Show(t.Context(), id))(t).Advice.Next)
			for _, d := range []support.Decision{inBatch, against} {
				_, err := b.Finish(t.Context(), id, b.hash, d)
				require.ErrorIs(t, err, rampproof.ErrNotProven)
			}
			assert.Empty(t, b.moved)
			assert.Empty(t, must.Get(b.BatchOf(t.Context(), b.hash))(t))
		})
	}
	t.Run("a third order", func(t *testing.T) {
		b := newBatch(t, ramp.Burn, []int64{5, 3, 3}, burns(500, 300))
		report := must.Get(b.Show(t.Context(), b.orders[1].UUID))(t)
		assert.Equal(t, support.NextAskService, report.Advice.Next, "which of two it is")
		assert.Equal(t, []uuid.UUID{b.orders[2].UUID}, report.Candidates[0].AlsoProves)
		must.Get(b.Finish(t.Context(), b.orders[1].UUID, b.hash, inBatch))(t)
		_, err := b.Finish(t.Context(), b.orders[2].UUID, b.hash, against)
		require.ErrorIs(t, err, rampproof.ErrNotProven)
		assert.Len(t, b.moved, 1)

		must.Get(b.Abandon(t.Context(), b.orders[2].UUID, alice))(t) // all that it moved is explained
	})
	t.Run("the order was not ended by it", func(t *testing.T) {
		b := newBatch(t, ramp.Burn, []int64{5, 3}, burns(500, 300))
		hash := b.node.Send(rig.Now.Add(-13*time.Hour), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
			Transfers: burns(300).Transfers})
		_, err := b.Finish(t.Context(), b.orders[1].UUID, hash, inBatch)
		require.ErrorContains(t, err, "has ended no other order with this outcome: finish the order without Batch")
	})
}

// Two persons add an order at the same moment, or one whose program was killed does it again.
func TestABatchIsAddedToOnce(t *testing.T) {
	b := newBatch(t, ramp.Burn, []int64{5, 3, 3}, burns(500, 300))
	require.NoError(t, b.KeepBatch(t.Context(), b.hash, nil, b.orders[1].UUID, "alice", "case 18"))
	require.Error(t, b.KeepBatch(t.Context(), b.hash, nil, b.orders[2].UUID, "bob", "case 19"), "at the same moment")
	_, err := b.Finish(t.Context(), b.orders[2].UUID, b.hash, inBatch)
	require.ErrorIs(t, err, rampproof.ErrNotProven, "the first has all that is left")
	step := must.Get(b.Finish(t.Context(), b.orders[1].UUID, b.hash, inBatch))(t)
	assert.Equal(t, ramp.Grant, step.Effect.Kind)
	assert.Len(t, b.moved, 1)
}

// A batch is in the books: each order has its part of the transaction.
func TestTheBooksKnowABatch(t *testing.T) {
	for name, c := range map[string]struct {
		direction ramp.Direction
		tx        rig.Tx
		moved     string // with that of the witness
		last      string // in the period in which the person ended the second, and the transaction is older
	}{
		"burns": {ramp.Burn, burns(500, 300), "9", "3"},
		"mints": {ramp.Mint, mints(490, 294), "8.82", "2.94"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBatch(t, c.direction, []int64{5, 3}, c.tx)
			from := rig.Now.Add(-20 * time.Hour)
			books := must.Get(b.Reconcile(t.Context(), from, time.Time{}))(t)
			require.Len(t, books.Findings, 1)
			assert.Equal(t, "waits_with_event", string(books.Findings[0].Kind))
			assert.Equal(t, b.orders[1].UUID, books.Findings[0].Orders[0].UUID)
			assert.False(t, books.Findings[0].Fitting)
			b.clock = rig.Now.Add(-10 * time.Minute)
			must.Get(b.Finish(t.Context(), b.orders[1].UUID, b.hash, inBatch))(t)

			b.clock = rig.Now
			for since, moved := range map[time.Duration]string{20 * time.Hour: c.moved, 20 * time.Minute: c.last} {
				books = must.Get(b.Reconcile(t.Context(), rig.Now.Add(-since), time.Time{}))(t)
				assert.Empty(t, books.Findings)
				at := slices.IndexFunc(books.Totals, func(t rampbooks.Total) bool { return t.Direction == c.direction })
				require.GreaterOrEqual(t, at, 0)
				total := &books.Totals[at]
				assert.Equal(t, moved+" 0", total.Moved.String()+" "+total.Unmatched.String(), since)
			}
		})
	}
}

// Whose each part of a batch is says the journal: an order of the user that would fit, too, changes nothing, and
// neither does the erasure of the user.
func TestTheBooksBelieveTheJournalOfABatch(t *testing.T) {
	overruled := inBatch
	overruled.AgainstEvidence = true
	for name, c := range map[string]struct {
		direction ramp.Direction
		tokens    []int64
		tx        rig.Tx
		d         support.Decision
		moved     string // with the witnesses, which burn 1 and mint 0.98
		last      string // in the period in which the person ended them, and the transaction is older
	}{
		"a mint, then a burn": {ramp.Mint, []int64{5, -3}, with(mints(490), burns(300)), overruled,
			"burn 4, mint 5.88", "burn 3"},
		"a burn, then a mint": {ramp.Burn, []int64{5, -3}, with(burns(500), mints(294)), overruled,
			"burn 6, mint 3.92", "mint 2.94"},
		"three burns, two of them equal": {ramp.Burn, []int64{5, 3, 3}, burns(500, 300, 300), inBatch,
			"burn 12, mint 0.98", "burn 6"},
		"three equal burns": {ramp.Burn, []int64{3, 3, 3}, burns(300, 300, 300), inBatch,
			"burn 10, mint 0.98", "burn 6"},
		"mints, and the fees of both": {ramp.Mint, []int64{5, 3}, with(mints(490, 294), fee(16)), inBatch,
			"burn 1, mint 8.82", "mint 2.94"},
		"a burn, two mints, and the fees of both": {ramp.Burn, []int64{5, -3, -2},
			with(with(burns(500), mints(294, 196)), fee(10)), overruled, "burn 6, mint 5.88", "mint 4.9"},
		"burns in one part": {ramp.Burn, []int64{5, 3, 3}, burns(1100), inBatch, "burn 12, mint 0.98", "burn 6"},
		"mints in one part, and the fees of both": {ramp.Mint, []int64{5, 3}, with(mints(784), fee(16)), inBatch,
			"burn 1, mint 8.82", "mint 2.94"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBatch(t, c.direction, c.tokens, c.tx)
			for _, o := range b.orders[1:] {
				b.clock = rig.Now.Add(-10 * time.Minute)
				must.Get(b.Finish(t.Context(), o.UUID, b.hash, c.d))(t)
			}
			twin := b.orders[len(b.orders)-1]
			twin.UUID, twin.Reason = uuid.New(), "alice: case 19"
			b.store.Keep(t, rig.Ended(twin, ramp.OrderAbandoned, common.Hash{}, rig.Now.Add(-5*time.Minute)))
			b.store.Change(twin.UUID, func(o *ramp.Order) { o.TxHash = "" })
			b.clock = rig.Now
			books := func(since time.Duration) string {
				var moved []string
				found := must.Get(b.Reconcile(t.Context(), rig.Now.Add(-since), time.Time{}))(t)
				assert.Empty(t, found.Findings)
				for _, total := range found.Totals {
					if total.Succeeded > 0 {
						assert.Equal(t, "0", total.Unmatched.String())
						moved = append(moved, string(total.Direction)+" "+total.Moved.String())
					}
				}
				slices.Sort(moved)
				return strings.Join(moved, ", ")
			}
			for range 2 {
				assert.Equal(t, c.moved, books(20*time.Hour))
				assert.Equal(t, c.last, books(20*time.Minute))
				must.Get(b.EraseSession(t.Context(), b.orders[0].SessionID, rig.Now, alice))(t)
			}
		})
	}
}

// A person was about to end an order with a batch, when the order's own result came. What it would have had is
// another order's.
func TestAnOrderThatEndedByAnotherTransactionHasNoPartOfABatch(t *testing.T) {
	b := newBatch(t, ramp.Burn, []int64{5, 3, 3}, burns(500, 300))
	require.NoError(t, b.KeepBatch(t.Context(), b.hash, nil, b.orders[1].UUID, "alice", "case 18"))
	own := burns(300)
	own.From, own.Payer, own.To = rig.Player, rig.Payer, rig.Vault
	hash := b.node.Send(rig.Now.Add(-13*time.Hour), own)
	b.clock = rig.Now.Add(-10 * time.Minute)
	must.Get(b.Finish(t.Context(), b.orders[1].UUID, hash, against))(t)

	must.Get(b.Finish(t.Context(), b.orders[2].UUID, b.hash, inBatch))(t)
	b.clock = rig.Now
	books := must.Get(b.Reconcile(t.Context(), rig.Now.Add(-20*time.Hour), time.Time{}))(t)
	assert.Empty(t, books.Findings)
	assert.Zero(t, books.Open)
}
