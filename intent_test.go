package ramp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

func TestDirectionTakesMethodAndTypeTogether(t *testing.T) {
	methods := []ramp.Method{"", ramp.MethodMint, ramp.MethodBurnPermit, ramp.MethodBurn, "Mint", "MINT", "burn_permit", "Burn", "swap"}
	types := []ramp.IntentType{"", ramp.Assemble, ramp.Disassemble, "Assemble", "DISASSEMBLE", "mint"}
	want := map[ramp.Method]map[ramp.IntentType]ramp.Direction{
		ramp.MethodMint:       {ramp.Assemble: ramp.Mint},
		ramp.MethodBurnPermit: {ramp.Disassemble: ramp.Burn},
		ramp.MethodBurn:       {ramp.Disassemble: ramp.Burn},
	}
	for _, method := range methods {
		for _, kind := range types {
			t.Run(fmt.Sprintf("%q and %q", method, kind), func(t *testing.T) {
				intent := ramp.Intent{Method: method, Type: kind}
				direction, err := intent.Direction()
				assert.Equal(t, want[method][kind], direction)
				if want[method][kind] == "" {
					assertFields(t, err, "intent.method and intent.type must be")
				} else {
					require.NoError(t, err)
				}
			})
		}
	}
}

// One table lists every effect.
func TestEffectOfEveryStep(t *testing.T) {
	mint, burn := mintIntent(t), burnIntent(t)
	burnWord := burnIntent(t)
	burnWord.Method = ramp.MethodBurn
	for _, tt := range []struct {
		name   string
		intent ramp.Intent
		status string // "" is a validate
		want   ramp.EffectKind
	}{
		{"a mint that is asked for takes", mint, "", ramp.Take},
		{"a mint that succeeded does nothing", mint, `"0x1"`, ramp.Nothing},
		{"a mint that failed gives back", mint, `"0x0"`, ramp.GiveBack},
		{"a mint of any other status gives back", mint, `"0x2"`, ramp.GiveBack},
		{"a burn that is asked for does nothing", burn, "", ramp.Nothing},
		{"a burn that succeeded grants", burn, `"0x1"`, ramp.Grant},
		{"a burn that failed does nothing", burn, `"0x0"`, ramp.Nothing},
		{"the method burn is a burn", burnWord, `1`, ramp.Grant},
	} {
		t.Run(tt.name, func(t *testing.T) {
			effect, err := effectOf(t, tt.intent, tt.status)
			require.NoError(t, err)
			assert.Equal(t, tt.want, effect.Kind)
			if tt.want == ramp.Nothing {
				assert.Nil(t, effect.Assets)
				return
			}
			game := tt.intent.From
			if tt.want == ramp.Grant {
				game = tt.intent.To
			}
			require.Len(t, effect.Assets, len(game))
			for i, asset := range effect.Assets {
				assert.Equal(t, ramp.AssetAmount{ID: game[i].ID, Amount: game[i].Amount}, asset)
			}
		})
	}
}

func effectOf(t testing.TB, intent ramp.Intent, status string) (ramp.Effect, error) {
	if status == "" {
		return intent.Effect(ramp.OrderAccepted)
	}
	r := ramp.Result{UUID: uuid.New(), Intent: intent}
	r.Receipt.Status = quantity(t, status)
	return r.Intent.Effect(r.Outcome())
}

// assets makes one side of an intent: "gold 5" is five of the asset gold.
func assets(t testing.TB, kind ramp.AssetType, list ...string) []ramp.IntentAsset {
	var side []ramp.IntentAsset
	for _, entry := range list {
		id, count, _ := strings.Cut(entry, " ")
		side = append(side, ramp.IntentAsset{Type: kind, ID: id, Amount: amount(t, count)})
	}
	return side
}

func TestEffectSumsEachAsset(t *testing.T) {
	intent := mintIntent(t)
	intent.From = assets(t, ramp.TypeAsset, "gold 9007199254740993", "dust 0.1", "gold 1", "egg 1", "dust 0.2", "gold 1000000000000000000000")
	effect, err := effectOf(t, intent, "")
	require.NoError(t, err)
	assert.Equal(t, []ramp.AssetAmount{
		{ID: "gold", Amount: amount(t, "1000009007199254740994")},
		{ID: "dust", Amount: amount(t, "0.3")},
		{ID: "egg", Amount: amount(t, "1")},
	}, effect.Assets, "one entry an asset, in the order of the intent")

	assert.Equal(t, amount(t, "9007199254740993"), intent.From[0].Amount, "the intent is left alone")
}

func TestEffectFailsWhenAnAssetAddsUpToMoreThanAnyQuantity(t *testing.T) {
	nines := strings.Repeat("9", 100)
	mint := mintIntent(t)
	mint.From = assets(t, ramp.TypeAsset, "gold "+nines, "egg 1", "gold 1")
	effect, err := effectOf(t, mint, "")
	assertFields(t, err, "intent.from adds up to more")
	assert.Equal(t, ramp.Effect{}, effect)

	burn := burnIntent(t)
	burn.To = assets(t, ramp.TypeAsset, "gold "+nines, "gold 1")
	_, err = effectOf(t, burn, `"0x1"`)
	assertFields(t, err, "intent.to adds up to more")
}

// An effect of an intent that nobody checked is an error, never a guess.
func TestEffectChecksTheIntent(t *testing.T) {
	for _, tt := range intentRejections {
		if tt.change == nil {
			continue // what is wrong is the text, which an Intent cannot hold
		}
		t.Run(tt.name, func(t *testing.T) {
			intent := mintIntent(t)
			if tt.burn {
				intent = burnIntent(t)
			}
			tt.change(&intent)
			for _, status := range []string{"", `"0x1"`, `"0x0"`} {
				effect, err := effectOf(t, intent, status)
				assertFields(t, err, tt.want...)
				assert.Equal(t, ramp.Effect{}, effect)
			}
		})
	}
}

// intentRejections lists everything that can be wrong with an intent of 2.5 and 6.
// change makes an Intent wrong; json does so in the text, for errors that only text
// can have.
var intentRejections = []struct {
	name   string
	burn   bool
	change func(*ramp.Intent)
	json   [2]string // old, new
	want   []string
}{
	{name: "method missing", change: func(i *ramp.Intent) { i.Method = "" },
		want: []string{"intent.method is required"}},
	{name: "type missing", change: func(i *ramp.Intent) { i.Type = "" },
		want: []string{"intent.type is required"}},
	{name: "mint and disassemble contradict each other", change: func(i *ramp.Intent) { i.Type = ramp.Disassemble },
		want: []string{"intent.method and intent.type"}},
	{name: "burn-permit and assemble contradict each other", burn: true, change: func(i *ramp.Intent) { i.Type = ramp.Assemble },
		want: []string{"intent.method and intent.type"}},
	{name: "burn and assemble contradict each other", burn: true, change: func(i *ramp.Intent) { i.Method, i.Type = ramp.MethodBurn, ramp.Assemble },
		want: []string{"intent.method and intent.type"}},
	{name: "a method that nobody knows", change: func(i *ramp.Intent) { i.Method = "swap" },
		want: []string{"intent.method and intent.type"}},
	{name: "a method in capitals", change: func(i *ramp.Intent) { i.Method = "MINT" },
		want: []string{"intent.method and intent.type"}},
	{name: "a type in capitals", change: func(i *ramp.Intent) { i.Type = "Assemble" },
		want: []string{"intent.method and intent.type"}},
	{name: "from missing", change: func(i *ramp.Intent) { i.From = nil },
		want: []string{"intent.from is required"}},
	{name: "from empty", change: func(i *ramp.Intent) { i.From = []ramp.IntentAsset{} },
		want: []string{"intent.from is required"}},
	{name: "to missing", change: func(i *ramp.Intent) { i.To = nil },
		want: []string{"intent.to is required"}},
	{name: "to empty", burn: true, change: func(i *ramp.Intent) { i.To = []ramp.IntentAsset{} },
		want: []string{"intent.to is required"}},
	{name: "mint from a token", change: func(i *ramp.Intent) { i.From[1].Type = ramp.TypeERC20 },
		want: []string{"intent.from[1].type must be asset"}},
	{name: "mint from an NFT", change: func(i *ramp.Intent) { i.From[0].Type = ramp.TypeNFT },
		want: []string{"intent.from[0].type must be asset"}},
	{name: "mint from an asset in capitals", change: func(i *ramp.Intent) { i.From[0].Type = "ASSET" },
		want: []string{"intent.from[0].type must be asset"}},
	{name: "mint to an asset", change: func(i *ramp.Intent) { i.To[0].Type = ramp.TypeAsset },
		want: []string{"intent.to[0].type must be a token"}},
	{name: "mint to an asset in capitals", change: func(i *ramp.Intent) { i.To[0].Type = "Asset" },
		want: []string{"intent.to[0].type must be a token"}},
	{name: "burn from an asset", burn: true, change: func(i *ramp.Intent) { i.From[0].Type = ramp.TypeAsset },
		want: []string{"intent.from[0].type must be a token"}},
	{name: "burn to a token", burn: true, change: func(i *ramp.Intent) { i.To[1].Type = "erc20" },
		want: []string{"intent.to[1].type must be asset"}},
	{name: "an element without a type", change: func(i *ramp.Intent) { i.From[1].Type = "" },
		want: []string{"intent.from[1].type is required"}},
	{name: "an element without an id", burn: true, change: func(i *ramp.Intent) { i.To[1].ID = "" },
		want: []string{"intent.to[1].id is required"}},
	{name: "a token without an id", change: func(i *ramp.Intent) { i.To[0].ID = "" },
		want: []string{"intent.to[0].id is required"}},
	{name: "an amount of zero", change: func(i *ramp.Intent) { i.From[0].Amount = ramp.Amount{} },
		want: []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "an amount below zero", change: func(i *ramp.Intent) { i.From[1].Amount = ramp.NewAmount(-1) },
		want: []string{"intent.from[1].amount is required and must be greater than 0"}},
	{name: "a token amount below zero", burn: true, change: func(i *ramp.Intent) { i.From[0].Amount = ramp.NewAmount(-1) },
		want: []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "everything at once", change: func(i *ramp.Intent) { *i = ramp.Intent{From: []ramp.IntentAsset{{}}} },
		want: []string{"intent.method is required", "intent.type is required", "intent.from[0].type is required",
			"intent.from[0].id is required", "intent.from[0].amount is required", "intent.to is required"}},

	{name: "method null", json: [2]string{`"method":"mint"`, `"method":null`}, want: []string{"intent.method is required"}},
	{name: "method a number", json: [2]string{`"method":"mint"`, `"method":1`}, want: []string{"intent.method must be a string, not a number"}},
	{name: "type null", json: [2]string{`"type":"assemble"`, `"type":null`}, want: []string{"intent.type is required"}},
	{name: "type a boolean", json: [2]string{`"type":"assemble"`, `"type":true`}, want: []string{"intent.type must be a string, not a boolean"}},
	{name: "an element null", json: [2]string{`"to":[`, `"to":[null,`},
		want: []string{"intent.to[0].type is required", "intent.to[0].id is required", "intent.to[0].amount is required"}},
	{name: "an element that is text", json: [2]string{`"to":[`, `"to":["gold",`}, want: []string{"intent.to[0] must be an object, not a string"}},
	{name: "amount missing", json: [2]string{`,"amount":100`, ``}, want: []string{"intent.from[0].amount is required"}},
	{name: "amount null", json: [2]string{`"amount":100`, `"amount":null`}, want: []string{"intent.from[0].amount must be a number, not null"}},
	{name: "amount text", json: [2]string{`"amount":100`, `"amount":"100"`}, want: []string{"intent.from[0].amount must be a number, not a string"}},
	{name: "amount boolean", json: [2]string{`"amount":100`, `"amount":true`}, want: []string{"intent.from[0].amount must be a number, not a boolean"}},
	{name: "amount an object", json: [2]string{`"amount":100`, `"amount":{}`}, want: []string{"intent.from[0].amount must be a number, not an object"}},
	{name: "amount an array", json: [2]string{`"amount":100`, `"amount":[100]`}, want: []string{"intent.from[0].amount must be a number, not an array"}},
	{name: "amount NaN", json: [2]string{`"amount":100`, `"amount":NaN`}, want: []string{"body must be one JSON object"}},
	{name: "amount Infinity", json: [2]string{`"amount":100`, `"amount":Infinity`}, want: []string{"body must be one JSON object"}},
	{name: "amount 0.0", json: [2]string{`"amount":100`, `"amount":0.0`}, want: []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "amount -0", json: [2]string{`"amount":100`, `"amount":-0`}, want: []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "amount negative", json: [2]string{`"amount":100`, `"amount":-100`}, want: []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "amount endless", json: [2]string{`"amount":100`, `"amount":1e999999999`}, want: []string{"intent.from[0].amount must be a number of at most 100 digits"}},
	{name: "amount of the target text", json: [2]string{`"amount":10}`, `"amount":"10"}`}, want: []string{"intent.to[0].amount must be a number, not a string"}},
}

// rejected returns the text of an intent with one error of intentRejections.
func rejected(t testing.TB, n int) string {
	tt := intentRejections[n]
	intent := mintIntent(t)
	if tt.burn {
		intent = burnIntent(t)
	}
	if tt.change != nil {
		tt.change(&intent)
	}
	b, err := json.Marshal(intent)
	require.NoError(t, err)
	if tt.json[0] != "" {
		require.Contains(t, string(b), tt.json[0])
	}
	return strings.Replace(string(b), tt.json[0], tt.json[1], 1)
}

func TestDelta(t *testing.T) {
	five := ramp.AssetAmount{ID: "gold", Amount: amount(t, "5.5")}
	for kind, want := range map[ramp.EffectKind]string{ramp.Nothing: "0", ramp.Take: "-5.5", ramp.GiveBack: "5.5", ramp.Grant: "5.5"} {
		assert.Equal(t, want, ramp.Effect{Kind: kind}.Delta(five).String(), "%s", kind)
	}
	// Taking and giving back cancel out.
	sum, err := ramp.Effect{Kind: ramp.Take}.Delta(five).Add(ramp.Effect{Kind: ramp.GiveBack}.Delta(five))
	require.NoError(t, err)
	assert.Equal(t, ramp.Amount{}, sum)

	assert.Equal(t, ramp.Amount{}, ramp.Effect{Kind: ramp.Take}.Delta(ramp.AssetAmount{}))
	assert.Equal(t, "5", ramp.Effect{Kind: ramp.Take}.Delta(ramp.AssetAmount{Amount: ramp.NewAmount(-5)}).String())
}

// A new direction needs a row, and with it each rule that depends on the direction.
// No switch over directions may take it for one of the others.
func TestEveryDirectionHasItsRules(t *testing.T) {
	states := []ramp.OrderState{ramp.OrderAccepted, ramp.OrderSucceeded, ramp.OrderFailed, ramp.OrderAbandoned}
	require.Len(t, states, len(constantsOf(t, "OrderState")), "an order has a new state")
	game, chain := assets(t, ramp.TypeAsset, "gold 500"), assets(t, ramp.TypeERC20, goldToken+" 5")
	gold := []ramp.Item{priced("gold", ramp.NewAmount(100))}
	match := func(offer ramp.Product, order ramp.Intent) error {
		offer.Name, offer.Token = "gold", goldToken
		_, _, err := newTerms(t, offer).Match(order)
		return err
	}

	var names []string
	for _, tt := range []struct {
		name      string
		direction ramp.Direction
		intent    ramp.Intent
		effects   []ramp.EffectKind // in each state
		offer     ramp.Product      // of this direction only
		foreign   ramp.Product      // of the other
	}{
		{"Mint", ramp.Mint, ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: game, To: chain},
			[]ramp.EffectKind{ramp.Take, ramp.Nothing, ramp.GiveBack, ramp.GiveBack}, ramp.Product{Materials: gold}, ramp.Product{Outputs: gold}},
		{"Burn", ramp.Burn, ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: chain, To: game},
			[]ramp.EffectKind{ramp.Nothing, ramp.Grant, ramp.Nothing, ramp.Nothing}, ramp.Product{Outputs: gold}, ramp.Product{Materials: gold}},
	} {
		names = append(names, tt.name)
		assert.Equal(t, strings.ToLower(tt.name), string(tt.direction))
		direction, err := tt.intent.Direction()
		require.NoError(t, err)
		assert.Equal(t, tt.direction, direction)
		for n, state := range states {
			effect, err := tt.intent.Effect(state)
			require.NoError(t, err)
			assert.Equal(t, tt.effects[n], effect.Kind, "%s, %s", tt.name, state)
		}
		assert.NoError(t, match(tt.offer, tt.intent), tt.name)
		assert.Error(t, match(tt.foreign, tt.intent), tt.name)
	}
	assert.Equal(t, constantsOf(t, "Direction"), names)
}

func TestEffectsAreText(t *testing.T) {
	gold := []ramp.AssetAmount{{ID: "gold", Amount: ramp.NewAmount(5)}}
	for _, tt := range []struct {
		effect     ramp.Effect
		text, json string
	}{
		{ramp.Effect{}, "nothing", `{}`},
		{ramp.Effect{Kind: ramp.Take, Assets: gold}, "take -5 gold", `{"kind":"take","assets":[{"id":"gold","amount":5}]}`},
		{ramp.Effect{Kind: ramp.GiveBack, Assets: gold}, "give back +5 gold", `{"kind":"give back","assets":[{"id":"gold","amount":5}]}`},
		{ramp.Effect{Kind: ramp.Grant, Assets: gold}, "grant +5 gold", `{"kind":"grant","assets":[{"id":"gold","amount":5}]}`},
	} {
		assert.Equal(t, tt.text, tt.effect.String())
		written, err := json.Marshal(tt.effect)
		require.NoError(t, err)
		assert.JSONEq(t, tt.json, string(written))
		var read ramp.Effect
		require.NoError(t, json.Unmarshal(written, &read))
		assert.Equal(t, tt.effect, read)
	}
}

// A fee and a net amount decide nothing, so an unknown form of them does not reject
// an order.
func TestWhatDecidesNothingIsReadLeniently(t *testing.T) {
	for _, tt := range []struct {
		fields          string
		feeRate, actual string
	}{
		{`"fee_rate":2000,"actual":"0.8"`, "2000", "0.8"},
		{`"fee_rate":"2000","actual":0.8`, "2000", "0.8"},
		{`"fee_rate":20.5,"actual":-1`, "20.5", "-1"},
		{`"fee_rate":"many","actual":true`, "", ""},
		{`"fee_rate":true,"actual":{}`, "", ""},
		{`"fee_rate":null,"actual":null`, "", ""},
		{`"fee_rate":[1],"actual":["1"]`, "", ""},
		{`"fee_rate":1e9999`, "", ""},
	} {
		t.Run(tt.fields, func(t *testing.T) {
			r, err := ramp.ParseValidate(validateBody(t, `"target_candidate":{}`, tt.fields))
			require.NoError(t, err)
			assert.Equal(t, tt.feeRate, r.Intent.FeeRate.String())
			assert.Equal(t, tt.actual, r.Intent.Actual)
			_, err = json.Marshal(r.Intent)
			assert.NoError(t, err, "and it can be stored")
		})
	}
}
