package ramptest

import (
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// trade is what a direction of the interface means to the service.
type trade struct {
	direction ramp.Direction
	kind      ramp.IntentType

	// mint means that the game takes assets when it approves and gives them back after a
	// failure, and that the wallet receives tokens. Otherwise the wallet loses tokens, and
	// the game grants assets after a success. The chain, the books and the verdicts know
	// only these two.
	mint bool
}

// trades are all trades, in the order of the exchange page. Whatever depends on the
// direction of an order asks its trade.
var trades = []*trade{{ramp.Mint, ramp.Assemble, true}, {ramp.Burn, ramp.Disassemble, false}}

// items returns what the game gives or receives.
func (t *trade) items(asked *ramp.InitializeIntent) []ramp.Item {
	if t.mint {
		return asked.Materials
	}
	return asked.Outputs
}

// sides returns the game's side of an intent, and that of the wallet.
func (t *trade) sides(i *ramp.Intent) (assets, tokens *[]ramp.IntentAsset) {
	if t.mint {
		return &i.From, &i.To
	}
	return &i.To, &i.From
}

// tradeOf returns the first trade that matches, or nil.
func tradeOf(match func(*trade) bool) *trade {
	if i := slices.IndexFunc(trades, match); i >= 0 {
		return trades[i]
	}
	return nil
}

// tradeNamed returns the trade with the name of a direction, or nil.
func tradeNamed(name string) *trade {
	return tradeOf(func(t *trade) bool { return string(t.direction) == name })
}

// tradeNames returns the names of all directions, as "mint or burn".
func tradeNames() string {
	var names []string
	for _, t := range trades {
		names = append(names, string(t.direction))
	}
	return strings.Join(names, " or ")
}

// tradeIn returns the trade of an intent, or nil if it has none.
func tradeIn(i *ramp.Intent) *trade {
	return tradeOf(func(t *trade) bool { return t.kind == i.Type && len(i.From) > 0 && len(i.To) > 0 })
}

// copied returns an intent that shares no assets with the given one.
func copied(i ramp.Intent) ramp.Intent {
	i.From, i.To = slices.Clone(i.From), slices.Clone(i.To)
	return i
}
