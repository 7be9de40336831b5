package ramptest

import (
	"context"
	"iter"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// PlannedOrder is an order of [Pairs].
type PlannedOrder struct {
	Burn   bool // otherwise it is a mint
	Tokens ramp.Amount
	Faults []Fault
}

// Place places the order: it calls [Service.Mint] or [Service.Burn].
func (o PlannedOrder) Place(ctx context.Context, s *Service, id uuid.UUID,
	session ramp.Session) (*PlacedOrder, error) {
	place := s.Mint
	if o.Burn {
		place = s.Burn
	}
	return place(ctx, id, session, o.Tokens, o.Faults...)
}

// Pairs returns every two orders that a player can have open at once, each pair with a name for a
// subtest. Each order is a mint or a burn, whose transaction succeeds or fails. The results come in the
// sequence of the orders, in the reverse one, or in the same one and the first result comes again
// 5 minutes later, because the game's answer to it is lost. The service pays for all transactions, see
// [Service.Payer].
//
// Play each pair against a new game, in which the player owns what 4 tokens cost. Place both orders, and
// then call [Service.Advance]: the books judge what the orders moved. The first order is about 1 token and
// the second about 3, because two equal orders can be confused without a trace.
func Pairs() iter.Seq2[string, [2]PlannedOrder] {
	kinds := []struct {
		name        string
		burn, fails bool
	}{
		{"mint", false, false},
		{"failing mint", false, true},
		{"burn", true, false},
		{"failing burn", true, true},
	}
	plan := func(burn, fails bool, tokens int64) PlannedOrder {
		faults := []Fault{TransactionType(7)} // a proof asks whether the ramp has paid for it
		if fails {
			faults = append(faults, TransactionFails())
		}
		return PlannedOrder{burn, ramp.NewAmount(tokens), faults}
	}
	results := []struct {
		name   string
		faults []Fault // of the first order
	}{
		{"", nil},
		{", results reversed", []Fault{ResultAfterNext()}},
		{", first result again", []Fault{LostAnswer(OnResult)}},
	}
	return func(yield func(string, [2]PlannedOrder) bool) {
		for _, a := range kinds {
			for _, b := range kinds {
				for _, r := range results {
					first, second := plan(a.burn, a.fails, 1), plan(b.burn, b.fails, 3)
					first.Faults = append(first.Faults, r.faults...)
					if !yield(a.name+" and "+b.name+r.name, [2]PlannedOrder{first, second}) {
						return
					}
				}
			}
		}
	}
}
