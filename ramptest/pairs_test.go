package ramptest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// places places an order of 20 gold for each token.
func (p *trial) places(o ramptest.PlannedOrder) {
	items := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(20), IconURL: "https://example.com/i.png"}}
	started := must.Get(p.client.Initialize(p.t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		MintFeeBps: 2000, Materials: items, Outputs: items}}))(p.t)
	_, err := o.Place(p.t.Context(), p.service, started.UUID, p.session("alice-1"))
	assert.NoError(p.t, err)
}

// paired returns the names of the pairs that a game fails.
func (k kind) paired(t *testing.T) (red []string, said string) {
	for name, pair := range ramptest.Pairs() {
		k.script = func(p *trial) {
			p.places(pair[0])
			p.places(pair[1])
			p.later(13 * time.Hour)
		}
		if failed, why := k.played(t, closed, false); failed {
			red, said = append(red, name), why
		}
	}
	return red, said
}

// alone reports whether a game fails one of four orders, one after the other.
func (k kind) alone(t *testing.T) (red bool) {
	k.script = func(p *trial) {
		for _, burn := range []bool{false, true} {
			for _, faults := range [][]ramptest.Fault{nil, {ramptest.TransactionFails()}} {
				p.places(ramptest.PlannedOrder{Burn: burn, Tokens: ramp.NewAmount(1), Faults: faults})
				p.later(13 * time.Hour)
			}
		}
	}
	red, _ = k.played(t, closed, false)
	return red
}

func TestPairsAreEveryTwoOrdersOnce(t *testing.T) {
	var names []string
	for name := range ramptest.Pairs() {
		names = append(names, name)
	}
	require.Len(t, names, 4*4*3)
	assert.Equal(t, []string{"mint and mint", "mint and mint, results reversed", "mint and mint, first result again",
		"mint and failing mint"}, names[:4])
	slices.Sort(names)
	assert.Len(t, slices.Compact(names), 4*4*3)
	for _, pair := range ramptest.Pairs() {
		_ = append(pair[0].Faults, ramptest.StoreFails()) // who changes a pair changes no other
		for i := range pair[1].Faults {
			pair[1].Faults[i] = ramptest.StaysPending()
		}
		assert.NotContains(t, fmt.Sprint(pair[0]), "stays-pending")
	}
}

func TestRightGamesStandEveryPair(t *testing.T) {
	skipUnderTheDetector(t)
	t.Parallel()
	for _, g := range rightGames() {
		if g.script == nil && g.closed == "" && g.owns == nil {
			t.Run(g.name, func(t *testing.T) {
				t.Parallel()
				red, said := g.paired(t)
				assert.Empty(t, red, said)
			})
		}
	}
}

// Each of these games is right about orders that come one after the other.
func TestPairsFindWhatNoOrderAloneShows(t *testing.T) {
	skipUnderTheDetector(t)
	t.Parallel()
	const gold, before, price, open = "item_gold", "before ", "price", "open"
	// giving is a game whose Apply gives back a mint, or grants a burn, in its own way.
	giving := func(give func(s *server, own assets, step ramp.Step, amount int64)) func(*server) http.Handler {
		return handled(func(s *server, step ramp.Step) error {
			own := s.balance[s.players[step.Order.SessionID]]
			if step.Effect.Kind == ramp.GiveBack || step.Effect.Kind == ramp.Grant {
				give(s, own, step, units(s.t, step.Effect.Assets[0]))
				return nil
			}
			if step.Effect.Kind == ramp.Take {
				s.count[before+step.Order.UUID.String()], s.count[open] = own[gold], 1
				s.count[price] = units(s.t, step.Effect.Assets[0])
			} else if step.Order.Direction == ramp.Mint { // it has succeeded
				s.count[open] = 0
			}
			return apply(s, step)
		})
	}
	for _, g := range []struct {
		kind
		shown string // one of the pairs that show it
	}{
		{kind{name: "gives back the balance of before", behind: giving(
			func(s *server, own assets, step ramp.Step, amount int64) {
				if own[gold] += amount; step.Effect.Kind == ramp.GiveBack {
					own[gold] = s.count[before+step.Order.UUID.String()]
				}
			})}, "failing mint and mint"},
		{kind{name: "gives back the price of the newest mint", behind: giving(
			func(s *server, own assets, step ramp.Step, amount int64) {
				if step.Effect.Kind == ramp.GiveBack {
					amount = s.count[price]
				}
				own[gold] += amount
			})}, "failing mint and mint"},
		{kind{name: "knows only whether a mint of the player is open", behind: giving(
			func(s *server, own assets, step ramp.Step, amount int64) {
				if step.Effect.Kind == ramp.Grant || s.count[open] == 1 {
					own[gold] += amount
				}
			})}, "mint and failing mint"},
		{kind{name: "grants up to a limit", behind: giving(
			func(_ *server, own assets, _ ramp.Step, amount int64) { own[gold] = min(1000, own[gold]+amount) })},
			"failing mint and burn, results reversed"},
		{kind{name: "remembers the last result only", finish: func(s *server, o *booking, ok bool) int {
			if o.ended = s.last == o.id; !o.ended {
				s.last = o.id
			}
			return s.end(o, ok)
		}}, "failing mint and mint, first result again"},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			red, said := g.paired(t)
			assert.Contains(t, red, g.shown, said)
			assert.Equal(t, 2, strings.Count(said, "  initialize  "), "it tells the story of both orders\n%s", said)
			t.Logf("%d pairs show it: %q", len(red), red)
			g.owns = assets{gold: 900} // room for the grant of one burn
			assert.False(t, g.alone(t), "one order after the other shows it, too")
		})
	}
}
