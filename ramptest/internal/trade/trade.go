// Package trade is what a mint and a burn mean to an emulated service: which side of an intent is the game's,
// which amounts it has, and which tokens move.
package trade

import (
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// Trade is what a direction of the interface means to the service.
type Trade struct {
	Direction ramp.Direction
	Type      ramp.IntentType

	// Mint means that the game takes assets when it approves and gives them back after a
	// failure, and that the wallet receives tokens. Otherwise the wallet loses tokens, and
	// the game grants assets after a success. The chain, the books and the verdicts know
	// only these two.
	Mint bool
}

// All are all trades, in the order of the exchange page. Whatever depends on the
// direction of an order asks its trade.
var All = []*Trade{{ramp.Mint, ramp.Assemble, true}, {ramp.Burn, ramp.Disassemble, false}}

// Items returns what the game gives or receives.
func (t *Trade) Items(asked *ramp.InitializeIntent) []ramp.Item {
	if t.Mint {
		return asked.Materials
	}
	return asked.Outputs
}

// Sides returns the game's side of an intent, and that of the wallet.
func (t *Trade) Sides(i *ramp.Intent) (assets, tokens *[]ramp.IntentAsset) {
	if t.Mint {
		return &i.From, &i.To
	}
	return &i.To, &i.From
}

// first returns the first trade that matches, or nil.
func first(match func(*Trade) bool) *Trade {
	if i := slices.IndexFunc(All, match); i >= 0 {
		return All[i]
	}
	return nil
}

// Named returns the trade with the name of a direction, or nil.
func Named(name string) *Trade {
	return first(func(t *Trade) bool { return string(t.Direction) == name })
}

// Names returns the names of all directions, as "mint or burn".
func Names() string {
	var names []string
	for _, t := range All {
		names = append(names, string(t.Direction))
	}
	return strings.Join(names, " or ")
}

// Of returns the trade of an intent, or nil if it has none.
func Of(i *ramp.Intent) *Trade {
	return first(func(t *Trade) bool { return t.Type == i.Type && len(i.From) > 0 && len(i.To) > 0 })
}

// Copy returns an intent that shares no assets with the given one.
func Copy(i ramp.Intent) ramp.Intent {
	i.From, i.To = slices.Clone(i.From), slices.Clone(i.To)
	return i
}
