package ramp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// The studio of the README is the one that the compiler sees.
func TestTheStudioOfTheREADMEIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_sqlstore_test.go")
	require.NoError(t, err)
	_, studio, found := strings.Cut(string(readme), "```go\ntype studio struct{ db *sql.DB }\n")
	require.True(t, found)
	studio, _, found = strings.Cut(studio, "```")
	require.True(t, found)
	assert.Contains(t, string(example), strings.ReplaceAll(studio, "*studio)", "*SQLStudio)"))
}

func TestTheStudioOfTheREADMEKnowsItsTerms(t *testing.T) {
	gold := func(amount int64) ramp.AssetAmount {
		return ramp.AssetAmount{ID: "item_gold", Amount: ramp.NewAmount(amount)}
	}
	for name, c := range map[string]struct {
		contract, tokens string
		assets           []ramp.AssetAmount
		want             bool
	}{
		"one token":             {tokenContract, "1", []ramp.AssetAmount{gold(100)}, true},
		"three tokens":          {strings.ToUpper(tokenContract), "3", []ramp.AssetAmount{gold(300)}, true},
		"a worthless token":     {"0x000000000000000000000000000000000000bad1", "1", []ramp.AssetAmount{gold(100)}, false},
		"next to nothing of it": {tokenContract, "1e-18", []ramp.AssetAmount{gold(100)}, false},
		"another rate":          {tokenContract, "1", []ramp.AssetAmount{gold(101)}, false},
		"another item":          {tokenContract, "1", []ramp.AssetAmount{{ID: "item_gem", Amount: ramp.NewAmount(100)}}, false},
		"an item more":          {tokenContract, "1", []ramp.AssetAmount{gold(100), {ID: "item_gem", Amount: ramp.NewAmount(1)}}, false},
		"too much to multiply":  {tokenContract, "9e18", []ramp.AssetAmount{gold(100)}, false},
	} {
		tokens, err := ramp.ParseAmount(c.tokens)
		require.NoError(t, err)
		side := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: c.contract, Amount: tokens}}
		assert.Equal(t, c.want, onOurTerms(ramp.Order{Direction: ramp.Mint, Assets: c.assets, Intent: ramp.Intent{To: side}}), "a mint: %s", name)
		assert.Equal(t, c.want, onOurTerms(ramp.Order{Direction: ramp.Burn, Assets: c.assets, Intent: ramp.Intent{From: side}}), "a burn: %s", name)
		twice := append(side, side...)
		assert.False(t, onOurTerms(ramp.Order{Direction: ramp.Burn, Assets: c.assets, Intent: ramp.Intent{From: twice}}), "two entries: %s", name)
	}
}
