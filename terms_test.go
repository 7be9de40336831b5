package ramp_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ethcrypto "github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// The tokens of the test's products, and one of nobody's.
const (
	goldToken    = "0x00000000000000000000000000000000000070C3"
	swordToken   = "0x0000000000000000000000000000000000005b0d"
	foreignToken = "0x0000000000000000000000000000000000000bad"
)

func priced(id string, n ramp.Amount) ramp.Item {
	return ramp.Item{ID: id, Amount: n, IconURL: "https://example.com/gold.png"}
}

// goldProduct costs 100 gold and a gem, and is worth 80 gold.
func goldProduct() ramp.Product {
	return ramp.Product{Name: "gold", Token: goldToken, MintFeeBps: 100,
		Materials: []ramp.Item{priced("gold", ramp.NewAmount(100)), priced("gem", ramp.NewAmount(1))},
		Outputs:   []ramp.Item{priced("gold", ramp.NewAmount(80))}}
}

// swordProduct is a sword for a token, both ways.
func swordProduct() ramp.Product {
	sword := priced("sword", ramp.NewAmount(1))
	sword.IsNonFungible = true
	return ramp.Product{Name: "sword", Token: swordToken, Materials: []ramp.Item{sword}, Outputs: []ramp.Item{sword}}
}

func changed(p ramp.Product, change func(*ramp.Product)) ramp.Product {
	p.Materials, p.Outputs = append([]ramp.Item{}, p.Materials...), append([]ramp.Item{}, p.Outputs...)
	change(&p)
	return p
}

func newTerms(t testing.TB, products ...ramp.Product) *ramp.Terms {
	return must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: products}))(t)
}

// entries reads a list such as "gold 100, gem 1".
func entries(t testing.TB, kind ramp.AssetType, text string) (list []ramp.IntentAsset) {
	for part := range strings.SplitSeq(text, ", ") {
		id, n, _ := strings.Cut(part, " ")
		list = append(list, ramp.IntentAsset{Type: kind, ID: id, Amount: amount(t, n)})
	}
	return list
}

func mintOf(t testing.TB, tokens, gives string) ramp.Intent {
	return ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
		From: entries(t, ramp.TypeAsset, gives), To: entries(t, ramp.TypeERC20, tokens)}
}

func burnOf(t testing.TB, tokens, grants string) ramp.Intent {
	return ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble,
		From: entries(t, ramp.TypeERC20, tokens), To: entries(t, ramp.TypeAsset, grants)}
}

func TestAnOrderIsForAProductOrRejected(t *testing.T) {
	const lower = "0x00000000000000000000000000000000000070c3"
	nft := func(order ramp.Intent) ramp.Intent {
		for _, side := range [][]ramp.IntentAsset{order.From, order.To} {
			if side[0].Type == ramp.TypeERC20 {
				side[0].Type = ramp.TypeNFT
			}
		}
		return order
	}
	older := burnOf(t, goldToken+" 1", "gold 80")
	older.From[0].Type = "erc20"
	unknown := burnOf(t, goldToken+" 1", "gold 80")
	unknown.From[0].Type = "ERC1155"
	halves := changed(goldProduct(), func(i *ramp.Product) { i.Outputs[0].Amount = amount(t, "0.5") })
	gems := changed(goldProduct(), func(i *ramp.Product) {
		i.Materials, i.Outputs = []ramp.Item{priced("gem", ramp.NewAmount(50))}, nil
	})
	gems.Name = "gems"
	mixed := swordProduct()
	mixed.Materials = append(mixed.Materials, priced("gold", ramp.NewAmount(5)))
	both := []ramp.Product{goldProduct(), swordProduct()}

	for _, test := range []struct {
		name     string
		products []ramp.Product
		order    ramp.Intent
		product  string // empty: rejected
		want     string // the number of tokens, or why it is rejected
	}{
		{"a mint of one", both, mintOf(t, goldToken+" 1", "gold 100, gem 1"), "gold", "1"},
		{"a mint of three in another order, notation and case", both, mintOf(t, lower+" 3", "gem 3.0, gold 3e2"),
			"gold", "3"},
		{"a mint that splits an item", both, mintOf(t, goldToken+" 1", "gold 30, gem 1, gold 70"), "gold", "1"},
		{"a burn, at its own rate", both, burnOf(t, goldToken+" 2", "gold 160"), "gold", "2"},
		{"an older name of the token type", both, older, "gold", "1"},
		{"a fraction of a token that is worth whole units", both, burnOf(t, goldToken+" 0.5", "gold 40"), "gold",
			"0.5"},
		{"more digits than a float has", both, burnOf(t, goldToken+" 90071992547409931", "gold 7205759403792794480"),
			"gold", "90071992547409931"},
		{"half a gold each, for two", []ramp.Product{halves}, burnOf(t, goldToken+" 2", "gold 1"), "gold", "2"},
		{"a sword", both, nft(mintOf(t, swordToken+" 1", "sword 1")), "sword", "1"},
		{"a sword whose token is called ERC20", both, burnOf(t, swordToken+" 1", "sword 1"), "sword", "1"},
		{"a sword and gold for an NFT", []ramp.Product{mixed}, nft(mintOf(t, swordToken+" 1", "gold 5, sword 1")),
			"sword", "1"},
		{"another way to pay for a token", []ramp.Product{goldProduct(), gems}, mintOf(t, goldToken+" 2", "gem 100"),
			"gems", "2"},

		{"a worthless token", both, burnOf(t, foreignToken+" 2", "gold 160"), "",
			"intent.from must be exactly one token, that of a product (" + goldToken + ", " + swordToken +
				"), not 2 " + foreignToken},
		{"a worthless token beside ours", both, burnOf(t, goldToken+" 1, "+foreignToken+" 1", "gold 80"), "",
			"intent.from must be exactly one token"},
		{"our token twice", both, mintOf(t, goldToken+" 1, "+goldToken+" 1", "gold 200, gem 2"), "",
			"intent.to must be exactly one token"},
		{"an NFT of a fungible product", both, nft(burnOf(t, goldToken+" 1", "gold 80")), "",
			"intent.from[0].type must be ERC20, or NFT"},
		{"an unknown type of token", both, unknown, "",
			"intent.from[0].type must be ERC20, or NFT for a non-fungible item, not ERC1155"},
		{"an invisible character", both, burnOf(t, goldToken+" 1", "gold\u200b 80"), "",
			`80 gold for each token, as for product "gold", not 80 "gold\u200b"`},
		{"a letter that looks alike", both, burnOf(t, goldToken+" 1", "g\u043eld 80"), "",
			`80 gold for each token, as for product "gold", not 80 "g\u043eld"`},
		{"the items of one with the token of the other", both, burnOf(t, goldToken+" 1", "sword 1"), "",
			`intent.to must be 80 gold for each token, as for product "gold", not 1 sword for 1 of the token`},
		{"the rate of a mint for a burn", both, burnOf(t, goldToken+" 1", "gold 100"), "",
			`intent.to must be 80 gold for each token, as for product "gold", not 100 gold for 1 of the token`},
		{"too cheap", both, mintOf(t, goldToken+" 1", "gold 99, gem 1"), "", "intent.from must be"},
		{"more tokens than paid", both, mintOf(t, goldToken+" 2", "gold 100, gem 1"), "", "intent.from must be"},
		{"off by the last digit", both, burnOf(t, goldToken+" 90071992547409931", "gold 7205759403792794481"), "",
			"intent.to must be"},
		{"an item missing", both, mintOf(t, goldToken+" 1", "gold 100"), "", "intent.from must be"},
		{"an item more than the terms have", both, burnOf(t, goldToken+" 1", "gold 80, gem 1"), "",
			"intent.to must be"},
		{"a duplicated item", both, burnOf(t, goldToken+" 1", "gold 80, gold 80"), "", "intent.to must be"},
		{"the case of an item", both, burnOf(t, goldToken+" 1", "GOLD 80"), "", "intent.to must be"},
		{"a fraction of an item", both, burnOf(t, goldToken+" 0.01", "gold 0.8"), "",
			"intent.to must be whole units (TermsConfig.Decimals) that fit an int64, not 0.8 gold"},
		{"half a gold each, for one", []ramp.Product{halves}, burnOf(t, goldToken+" 1", "gold 0.5"), "",
			"intent.to must be whole units"},
		{"half a sword", both, nft(burnOf(t, swordToken+" 0.5", "sword 0.5")), "",
			"intent.from[0].amount must be a whole number, because an item is non-fungible, not 0.5"},
		{"2^63", both, burnOf(t, goldToken+" 115292150460684697.6", "gold 9223372036854775808"), "",
			"intent.to must be whole units (TermsConfig.Decimals) that fit an int64"},
		{"a direction that is not offered", []ramp.Product{gems}, burnOf(t, goldToken+" 1", "gold 80"), "",
			`intent is a burn, but product "gems" has no items for one`},
		{"a mint called a burn", both,
			ramp.Intent{Method: ramp.MethodMint, Type: ramp.Disassemble, From: older.From, To: older.To}, "",
			"intent.method"},
		{"a quantity of 0", both, burnOf(t, goldToken+" 0", "gold 0"), "",
			"intent.from[0].amount is required and must be greater than 0"},
		{"a negative quantity", both, burnOf(t, goldToken+" -1", "gold -80"), "",
			"intent.from[0].amount is required and must be greater than 0"},
		{"nothing", both, ramp.Intent{}, "", "intent.method is required"},
	} {
		t.Run(test.name, func(t *testing.T) {
			product, quantity, err := match(newTerms(t, test.products...), test.order)
			if test.product != "" {
				require.NoError(t, err)
				assert.Equal(t, test.product, product)
				assert.Equal(t, test.want, quantity.String())
				return
			}
			assertCode(t, err, ramp.CodeInvalidMessage)
			var wrong *ramp.InvalidError
			require.ErrorAs(t, err, &wrong, "the cause says what differs")
			assert.Contains(t, err.Error(), test.want)
			assert.Empty(t, product)
			assert.Zero(t, quantity)
		})
	}
}

// A text that a person has copied may have something that nobody sees.
func TestATextOfAPriceListIsWhatOneSees(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ramp.TermsConfig)
		want   string
	}{
		"an ID from a spreadsheet": {func(c *ramp.TermsConfig) { c.Products[0].Materials[0].ID = "gold\r" },
			`TermsConfig.Products[0].Materials[0].id must not have a line break (U+000D), as in "gold\r"`},
		"an ID with a space at its end": {func(c *ramp.TermsConfig) { c.Products[0].Outputs[0].ID = "gold " },
			`TermsConfig.Products[0].Outputs[0].id must not begin or end with white space, as in "gold "`},
		"an icon from a page": {func(c *ramp.TermsConfig) { c.Products[0].Materials[0].IconURL = "\u200bhttps://x" },
			`TermsConfig.Products[0].Materials[0].icon_url must not have a zero-width space (U+200B)`},
		"a project from a file": {func(c *ramp.TermsConfig) { c.ProjectID = "project-1\n" },
			`TermsConfig.ProjectID must not have a line break (U+000A), as in "project-1\n"`},
		"a wrong checksum": {func(c *ramp.TermsConfig) {
			c.Products[0].Token = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"
		}, "must be 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed, or all in lower case"},
		"no price": {func(c *ramp.TermsConfig) { c.Products[0].Materials, c.Products[0].Outputs = nil, nil },
			"TermsConfig.Products[0].Materials and Outputs are empty"},
	} {
		product := changed(goldProduct(), func(*ramp.Product) {})
		c := ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{product}}
		test.change(&c)
		_, err := ramp.NewTerms(c)
		assert.ErrorContains(t, err, test.want, name)
	}
	const one = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	for _, token := range []string{one, strings.ToLower(one), "0x" + strings.ToUpper(one[2:])} {
		product := changed(goldProduct(), func(p *ramp.Product) {
			p.Token, p.Materials[0].ID, p.Outputs[0].ID = token, "two words", "two words"
		})
		assert.NotPanics(t, func() { newTerms(t, product) }, token)
	}
}

// A price that is not read would be none.
func TestAPriceListInJSONIsReadWholly(t *testing.T) {
	const items = `[{"id":"gold","amount":100,"icon_url":"https://x/gold.png","is_non_fungible":false}]`
	for name, text := range map[string]string{
		"the interface's names": `{"project_id":"p","network":"testnet","per_order":true,"products":[
			{"name":"gold","token":"` + goldToken + `","mint_fee_bps":500,"tokens":1,"materials":` + items + `}]}`,
		"the fields' names": `{"ProjectID":"p","Network":"testnet","PerOrder":true,"Products":[
			{"Name":"gold","Token":"` + goldToken + `","MintFeeBps":500,"Tokens":1,"Materials":` + items + `}]}`,
	} {
		var c ramp.TermsConfig
		require.NoError(t, json.Unmarshal([]byte(text), &c), name)
		assert.True(t, c.PerOrder, name)
		assert.Equal(t, 500, c.Products[0].MintFeeBps, name)
		assert.Equal(t, "gold", c.Products[0].Materials[0].ID, name)
		_, err := ramp.NewTerms(c)
		assert.NoError(t, err, name)
	}
	for text, want := range map[string]string{
		`{"mint_fee":500}`:                       `"mint_fee" is no field of the price list`,
		`{"mint_fee_bps":500,"MintFeeBps":1}`:    `"MintFeeBps" occurs twice in the price list`,
		`{"mint_fee_bps":"5%"}`:                  `"mint_fee_bps" of the price list: `,
		`{"materials":[{"id":"x","count":100}]}`: `unknown field`,
		`[]`:                                     "must be an object",
	} {
		assert.ErrorContains(t, json.Unmarshal([]byte(text), new(ramp.Product)), want)
	}
	var list ramp.TermsConfig
	err := json.Unmarshal([]byte(`{"products":[{"fee":1}]}`), &list)
	assert.ErrorContains(t, err, `"fee" is no field of the price list`)
}

// A list that is read again and again does not grow.
func TestAListThatDidNotChangeIsOneOffer(t *testing.T) {
	terms := newTerms(t, goldProduct())
	for range 300 {
		require.NoError(t, terms.Replace([]ramp.Product{goldProduct()}, 0))
	}
	err := terms.Match(placed(mintOf(t, foreignToken+" 1", "gold 100")))
	assert.Equal(t, 1, strings.Count(err.Error(), goldToken))
	assert.NoError(t, terms.Match(placed(mintOf(t, goldToken+" 1", "gold 100, gem 1"))))
}

// The interface does not say whether the number of tokens of a mint is the one before its fee.
func TestAMintThatFitsNetOfItsFeeSaysSo(t *testing.T) {
	const hint, net = "; it would match if the fee of 2000 basis points were already subtracted from ", "8"
	withFee := changed(goldProduct(), func(p *ramp.Product) { p.MintFeeBps = 2000 })
	free := changed(withFee, func(p *ramp.Product) { p.MintFeeBps = 10_000 })
	whole := changed(withFee, func(p *ramp.Product) { p.Tokens = amount(t, "10") })
	for name, test := range map[string]struct {
		product ramp.Product
		order   ramp.Intent
		way     string // the setting that the hint names, or "" without a hint
	}{
		"a price for each token": {withFee, mintOf(t, goldToken+" "+net, "gold 1000, gem 10"), "TermsConfig.Any"},
		"rounded by the service": {withFee, mintOf(t, goldToken+" 2.666666", "gold 333.33333, gem 3.3333333"),
			"TermsConfig.Any"},
		"the price of an order":        {whole, mintOf(t, goldToken+" "+net, "gold 100, gem 1"), "Product.AnyTokens"},
		"another number":               {withFee, mintOf(t, goldToken+" 9", "gold 1000, gem 10"), ""},
		"another number of an order":   {whole, mintOf(t, goldToken+" 9", "gold 100, gem 1"), ""},
		"other items":                  {withFee, mintOf(t, goldToken+" "+net, "gold 1000, rock 10"), ""},
		"a burn, which has no fee":     {withFee, burnOf(t, goldToken+" "+net, "gold 800"), ""},
		"a mint of a token for free":   {goldProduct(), mintOf(t, goldToken+" "+net, "gold 1000, gem 10"), ""},
		"everything is the fee":        {free, mintOf(t, goldToken+" 1", "gold 9"), ""},
		"one item less than the price": {withFee, mintOf(t, goldToken+" "+net, "gold 1000"), ""},
	} {
		terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
			PerOrder: test.product.Tokens.Sign() > 0, Products: []ramp.Product{test.product}}))(t)
		r := placed(test.order)
		err := terms.Match(r)
		require.Error(t, err, name)
		assert.Equal(t, test.way != "", strings.Contains(err.Error(), hint), "%s: %v", name, err)
		assert.Contains(t, err.Error(), test.way, name)
	}
}

func TestDecimalsAreThoseThatTheGameStores(t *testing.T) {
	product := changed(goldProduct(), func(i *ramp.Product) { i.Outputs[0].Amount = amount(t, "0.5") })
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: []ramp.Product{product}, Decimals: map[string]int{"gold": 2}}))(t)
	for tokens, grants := range map[string]string{"1": "0.5", "0.02": "0.01",
		"184467440737095516.14": "92233720368547758.07"} {
		_, _, err := match(terms, burnOf(t, goldToken+" "+tokens, "gold "+grants))
		assert.NoError(t, err, tokens)
	}
	for tokens, grants := range map[string]string{"0.01": "0.005", "184467440737095516.16": "92233720368547758.08"} {
		_, _, err := match(terms, burnOf(t, goldToken+" "+tokens, "gold "+grants))
		assertCode(t, err, ramp.CodeInvalidMessage)
	}
}

func TestTermsThatCannotWorkAreReportedAtOnce(t *testing.T) {
	bad := func(change func(*ramp.Product)) []ramp.Product {
		return []ramp.Product{changed(goldProduct(), change)}
	}
	other := func(p ramp.Product, change func(*ramp.Product)) ramp.Product {
		p = changed(p, change)
		p.Name = "other"
		return p
	}
	for _, test := range []struct {
		name     string
		products []ramp.Product
		want     []string
	}{
		{"an empty product", []ramp.Product{{}}, []string{"TermsConfig.Products[0].Name is required",
			"TermsConfig.Products[0].Token is required", "TermsConfig.Products[0].Materials and Outputs are empty"}},
		{"one token at two rates", []ramp.Product{goldProduct(), other(goldProduct(), func(i *ramp.Product) {
			i.Materials[0].Amount, i.Outputs[0].Amount = ramp.NewAmount(101), ramp.NewAmount(81)
		})},
			[]string{`TermsConfig.Products[1].Token and items are also those of "gold"`}},
		{"one token at two rates, written in another case and order",
			[]ramp.Product{goldProduct(), other(goldProduct(), func(i *ramp.Product) {
				i.Token, i.Outputs = strings.ToLower(i.Token), nil
				i.Materials[0], i.Materials[1] = i.Materials[1], i.Materials[0]
			})}, []string{`TermsConfig.Products[1].Token and items are also those of "gold"`}},
		{"one name",
			[]ramp.Product{goldProduct(), changed(goldProduct(), func(i *ramp.Product) { i.Token = swordToken })},
			[]string{"TermsConfig.Products[1].Name is also the name of another product"}},
		{"a duplicated item", bad(func(i *ramp.Product) { i.Materials[1].ID = "gold" }),
			[]string{"TermsConfig.Products[0].Materials[1].id occurs twice"}},
		{"a price of 0", bad(func(i *ramp.Product) { i.Outputs[0].Amount = ramp.Amount{} }),
			[]string{"TermsConfig.Products[0].Outputs[0].amount is required"}},
		{"half a sword", bad(func(i *ramp.Product) {
			i.Outputs[0].Amount, i.Outputs[0].IsNonFungible = amount(t, "0.5"), true
		}),
			[]string{
				"TermsConfig.Products[0].Outputs[0].amount is required and must be greater than 0, and whole for a " +
					"non-fungible item"}},
		{"a token that is no address", bad(func(i *ramp.Product) { i.Token = "gold" }),
			[]string{"TermsConfig.Products[0].Token"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			terms, err := ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
				Products: test.products})
			assertFields(t, err, test.want...)
			assert.Nil(t, terms)

			valid := newTerms(t, goldProduct())
			assertFields(t, valid.Replace(test.products, -1), test.want...)
			_, _, err = match(valid, burnOf(t, goldToken+" 1", "gold 80"))
			assert.NoError(t, err, "nothing has changed")
		})
	}
}

func TestTermsNeedAProjectANetworkAndProducts(t *testing.T) {
	terms, err := ramp.NewTerms(ramp.TermsConfig{})
	assertFields(t, err, "TermsConfig.ProjectID is required", "TermsConfig.Network must be mainnet or testnet",
		"TermsConfig.Products is required")
	assert.Nil(t, terms)
	_, _, err = match(new(ramp.Terms), burnOf(t, goldToken+" 1", "gold 80"))
	assertCode(t, err, ramp.CodeInvalidMessage) // the zero value offers nothing
	_, err = ramp.NewTerms(ramp.TermsConfig{Any: true, Network: "moon"})
	assertFields(t, err, "TermsConfig.Network must be mainnet or testnet")
}

// The interface does not say whether items are the price of a token or of an order.
func TestPricesOfWholeOrders(t *testing.T) {
	one := changed(goldProduct(), func(p *ramp.Product) { p.Tokens = ramp.NewAmount(1) })
	sword := changed(swordProduct(), func(p *ramp.Product) { p.Tokens = ramp.NewAmount(1) })
	ten := changed(goldProduct(), func(p *ramp.Product) {
		p.Name, p.Tokens = "ten", ramp.NewAmount(10)
		p.Materials = []ramp.Item{priced("gold", ramp.NewAmount(900))}
		p.Outputs = []ramp.Item{priced("gold", ramp.NewAmount(800))}
	})
	gift := changed(goldProduct(), func(p *ramp.Product) {
		p.Name, p.AnyTokens = "gift", true
		p.Materials, p.Outputs = []ramp.Item{priced("gold", ramp.NewAmount(5))}, nil
	})
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, PerOrder: true,
		Products: []ramp.Product{one, sword, ten, gift}}))(t)
	for _, tt := range []struct {
		order         ramp.Intent
		product, want string // the error, if there is no product
	}{
		{mintOf(t, goldToken+" 1", "gold 100, gem 1"), "gold", ""},
		{burnOf(t, goldToken+" 1", "gold 80"), "gold", ""},
		{mintOf(t, goldToken+" 10", "gold 900"), "ten", ""},
		{burnOf(t, goldToken+" 10", "gold 800"), "ten", ""},
		{mintOf(t, goldToken+" 1e77", "gold 100, gem 1"), "", `intent.to[0].amount must be 1, as for product "gold"`},
		{burnOf(t, goldToken+" 1e-18", "gold 80"), "", `intent.from[0].amount must be 1, as for product "gold"`},
		{mintOf(t, goldToken+" 9", "gold 900"), "", `intent.to[0].amount must be 1, as for product "gold", not 9`},
		{burnOf(t, goldToken+" 10", "gold 80"), "", `intent.from[0].amount must be 1, as for product "gold"`},
		{mintOf(t, goldToken+" 1", "gold 101, gem 1"), "",
			`must be 1 gem, 100 gold for an order, as for product "gold", not 1 gem, 101 gold`},
		{mintOf(t, goldToken+" 7", "gold 5"), "gift", ""},
		{mintOf(t, goldToken+" 1e77", "gold 5"), "gift", ""}, // AnyTokens
		{mintOf(t, goldToken+" 7", "gold 4"), "", `intent.to[0].amount must be 1, as for product "gold"`},
	} {
		product, _, err := match(terms, tt.order)
		if tt.want != "" {
			assert.ErrorContains(t, err, tt.want)
		}
		assert.Equal(t, tt.product, product)
	}
}

// A price of a whole order without a number of tokens would sell any number of them.
func TestTheNumberOfTokensOfAProduct(t *testing.T) {
	number := func(tokens int64, anyTokens bool) func(*ramp.Product) {
		return func(p *ramp.Product) { p.Tokens, p.AnyTokens = ramp.NewAmount(tokens), anyTokens }
	}
	const (
		only     = "TermsConfig.Products[0].Tokens and AnyTokens are only for PerOrder: each token has the price"
		required = "TermsConfig.Products[0].Tokens is required with PerOrder, unless AnyTokens is set"
		one      = "TermsConfig.Products[0].AnyTokens must be false if Tokens is set"
		negative = "TermsConfig.Products[0].Tokens must not be negative"
	)
	for _, test := range []struct {
		name          string
		perOrder, any bool
		product       func(*ramp.Product)
		want          string // none: the terms are right
	}{
		{"the price of a token", false, false, number(0, false), ""},
		{"the price of a token, for one number", false, false, number(1, false), only},
		{"the price of a token, for any number", false, false, number(0, true), only},
		{"the price of an order", true, false, number(3, false), ""},
		{"the price of an order, without the number", true, false, number(0, false), required},
		{"the price of an order, for any number", true, false, number(0, true), ""},
		{"the price of an order, for one and any number", true, false, number(3, true), one},
		{"a negative number", true, false, number(-1, false), negative},
		{"terms that check nothing", true, true, number(0, false), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
				PerOrder: test.perOrder, Any: test.any, Products: []ramp.Product{changed(goldProduct(), test.product)}})
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			assertFields(t, err, test.want)
		})
	}
}

// Two products with the price of an order may share a token if their numbers of tokens differ.
func TestProductsWithThePriceOfAnOrderOverlap(t *testing.T) {
	one := changed(goldProduct(), func(p *ramp.Product) { p.Tokens = ramp.NewAmount(1) })
	replace := func(change func(*ramp.Product)) error {
		return must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, PerOrder: true,
			Products: []ramp.Product{one}}))(t).Replace([]ramp.Product{one, changed(one, change)}, 0)
	}
	const overlap = `TermsConfig.Products[1].Token and items are also those of "gold"`
	assertFields(t, replace(func(p *ramp.Product) { p.Name = "other" }), overlap)
	assertFields(t,
		replace(func(p *ramp.Product) { p.Name, p.Tokens, p.AnyTokens = "other", ramp.Amount{}, true }), overlap)
	assert.NoError(t, replace(func(p *ramp.Product) {
		p.Name, p.Tokens = "other", ramp.NewAmount(2)
		p.Materials[0].Amount, p.Materials[1].Amount = ramp.NewAmount(200), ramp.NewAmount(2)
	}))
}

// Without products, nothing new is signed, and what has begun can end.
func TestAShopCloses(t *testing.T) {
	terms := newTerms(t, goldProduct())
	order := burnOf(t, goldToken+" 1", "gold 80")
	require.NoError(t, terms.Replace(nil, time.Minute))
	_, _, err := match(terms, order)
	assert.NoError(t, err, "a player has seen the price")
	require.NoError(t, terms.Replace(nil, -1))
	_, _, err = match(terms, order)
	assertCode(t, err, ramp.CodeInvalidMessage) // at once, whatever was said before
}

func TestTermsDoNotShareMemoryWithTheCaller(t *testing.T) {
	products := []ramp.Product{goldProduct()}
	terms := newTerms(t, products...)
	products[0].Outputs[0].Amount = ramp.NewAmount(8000)
	_, _, err := match(terms, burnOf(t, goldToken+" 1", "gold 80"))
	assert.NoError(t, err)
}

// exchanged is the gold product with other amounts of gold.
func exchanged(mint, burn int64) ramp.Product {
	return changed(goldProduct(), func(p *ramp.Product) {
		p.MintFeeBps, p.Materials = 0, p.Materials[:1]
		p.Materials[0].Amount, p.Outputs[0].Amount = ramp.NewAmount(mint), ramp.NewAmount(burn)
	})
}

// pricesOf returns the amounts of gold for which terms accept a mint and a burn of a token.
func pricesOf(t *testing.T, terms *ramp.Terms) (mints, burns []int64) {
	for gold := range int64(201) {
		price := fmt.Sprint("gold ", gold)
		if _, _, err := match(terms, mintOf(t, goldToken+" 1", price)); err == nil {
			mints = append(mints, gold)
		}
		if _, _, err := match(terms, burnOf(t, goldToken+" 1", price)); err == nil {
			burns = append(burns, gold)
		}
	}
	return mints, burns
}

func assertAccepted(t *testing.T, terms *ramp.Terms, mints, burns []int64) {
	t.Helper()
	gotMints, gotBurns := pricesOf(t, terms)
	assert.Equal(t, mints, gotMints, "mints")
	assert.Equal(t, burns, gotBurns, "burns")
}

func TestFormerPricesCountUntilAPlayerCannotUseThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := newTerms(t, exchanged(100, 80))
		require.NoError(t, terms.Replace([]ramp.Product{exchanged(110, 70)}, 0))
		assertAccepted(t, terms, []int64{100, 110}, []int64{70, 80})
		_, _, err := match(terms, burnOf(t, goldToken+" 1", "gold 75"))
		assert.ErrorContains(t, err, "must be 70 gold", "the current price is named")
		time.Sleep(2 * time.Minute)
		require.NoError(t, terms.Replace([]ramp.Product{exchanged(120, 60)}, 0))
		assertAccepted(t, terms, []int64{100, 110, 120}, []int64{60, 70, 80})
		time.Sleep(3 * time.Minute)
		assertAccepted(t, terms, []int64{110, 120}, []int64{60, 70})
		time.Sleep(2 * time.Minute)
		assertAccepted(t, terms, []int64{120}, []int64{60})

		require.NoError(t, terms.Replace([]ramp.Product{exchanged(110, 70)}, time.Hour))
		time.Sleep(time.Hour - 1)
		assertAccepted(t, terms, []int64{110, 120}, []int64{60, 70})
		time.Sleep(time.Nanosecond)
		assertAccepted(t, terms, []int64{110}, []int64{70})
		require.NoError(t, terms.Replace([]ramp.Product{exchanged(90, 80)}, -1))
		assertAccepted(t, terms, []int64{90}, []int64{80})
	})
}

// While a price changes, nobody can mint at one price and burn at a better one, not even at a server that
// replaces its products half an hour later: until then it accepts all that it accepted before.
func TestNoPriceOfAChangePaysForAnother(t *testing.T) {
	type prices [][2]int64 // mint, burn; one replaces the other, every minute
	for name, test := range map[string]struct {
		prices       prices
		mints, burns []int64 // at last, during the grace
	}{
		"a price rises":           {prices{{100, 100}, {200, 200}}, []int64{200}, []int64{100}},
		"a price falls":           {prices{{200, 200}, {100, 100}}, []int64{200}, []int64{100}},
		"a price rises and falls": {prices{{100, 100}, {200, 200}, {100, 100}}, []int64{200}, []int64{100}},
		"two former prices":       {prices{{60, 55}, {185, 180}, {200, 50}}, []int64{185, 200}, []int64{50, 55}},
		"both directions":         {prices{{100, 80}, {110, 70}}, []int64{100, 110}, []int64{70, 80}},
		"below a former burn":     {prices{{100, 90}, {80, 70}}, []int64{100}, []int64{70}},
	} {
		inBubble(t, name, func(t *testing.T) {
			const grace, late = 60, 30 // minutes
			product := func(n int) []ramp.Product {
				return []ramp.Product{exchanged(test.prices[n][0], test.prices[n][1])}
			}
			first, second := newTerms(t, product(0)...), newTerms(t, product(0)...)
			last := len(test.prices) - 1
			for minute := range 120 {
				for n := 1; n <= last; n++ {
					switch minute {
					case n:
						require.NoError(t, first.Replace(product(n), grace*time.Minute))
					case n + late:
						require.NoError(t, second.Replace(product(n), grace*time.Minute))
					}
				}
				if minute == last {
					assertAccepted(t, first, test.mints, test.burns)
				}
				mints, burns := pricesOf(t, first)
				others, elsewhere := pricesOf(t, second)
				mints, burns = append(mints, others...), append(burns, elsewhere...)
				require.LessOrEqual(t, slices.Max(burns), slices.Min(mints), "minute %d", minute)
				time.Sleep(time.Minute)
			}
			for _, terms := range []*ramp.Terms{first, second} {
				assertAccepted(t, terms, []int64{test.prices[last][0]}, []int64{test.prices[last][1]})
			}
		})
	}
}

// A page that is opened while a price changes has prices that count.
func TestAPageHasThePricesThatCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terms := newTerms(t, exchanged(100, 100))
		require.NoError(t, terms.Replace([]ramp.Product{exchanged(200, 200)}, time.Hour))
		var sent ramp.InitializeRequest
		client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: "http://localhost", Key: testKey(t), Terms: terms,
			HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				require.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
				return nil, errors.New("unreachable")
			})}}))(t)
		prices := func() []ramp.Amount {
			_, _ = client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"})
			return []ramp.Amount{sent.Intent.Materials[0].Amount, sent.Intent.Outputs[0].Amount}
		}
		assert.Equal(t, []ramp.Amount{ramp.NewAmount(200), ramp.NewAmount(100)}, prices())
		time.Sleep(time.Hour)
		assert.Equal(t, []ramp.Amount{ramp.NewAmount(200), ramp.NewAmount(200)}, prices())
	})
}

func TestABurnThatPaysMoreThanAMintCostsIsAnError(t *testing.T) {
	product := func(name string, fee int, materials, outputs string) ramp.Product {
		list := func(text string) (items []ramp.Item) {
			for _, entry := range entries(t, ramp.TypeAsset, text) {
				items = append(items, priced(entry.ID, entry.Amount))
			}
			return items
		}
		return ramp.Product{Name: name, Token: goldToken, MintFeeBps: fee,
			Materials: list(materials), Outputs: list(outputs)}
	}
	ofOrder := func(tokens string, p ramp.Product) ramp.Product {
		p.Tokens = amount(t, tokens)
		return p
	}
	any := product("any", 0, "gold 100", "gold 1")
	any.AnyTokens = true
	type list []ramp.Product
	const gains = "let players gain without end: "
	for name, test := range map[string]struct {
		products list
		perOrder bool
		want     string // "" if they are accepted
		warning  string // of Check
	}{
		"the same":               {products: list{product("a", 0, "gold 100", "gold 100")}},
		"the fee takes the gain": {products: list{product("a", 100, "gold 99", "gold 100")}},
		"a sale": {
			products: list{product("a", 0, "gold 50", "gold 100")},
			want:     `a burn of "a" pays more gold than a mint of "a" costs`,
		},
		"the fee takes less": {
			products: list{product("a", 100, "gold 98", "gold 100")},
			want:     "pays more gold",
		},
		"one asset of two": {
			products: list{product("a", 0, "gold 100, gem 1", "gold 100, gem 2")},
			want:     "pays more gem",
		},
		"more of one, none of the other": {
			products: list{product("a", 0, "gold 50, gem 1", "gold 100")},
			want:     "pays more gold",
		},
		"an asset for nothing": {
			products: list{product("a", 0, "gold 100", "gold 100, gem 1")},
			want:     "pays more gem",
		},
		"two products": {
			products: list{product("a", 0, "gold 50, gem 1", "gold 40"), product("b", 0, "silver 1", "gold 50, gem 2")},
			want:     `a burn of "b" pays more gem than a mint of "a" costs`,
		},
		"an exchange of assets": {
			products: list{product("a", 0, "gold 100", "gold 100"), product("b", 0, "gem 10", "gem 10")},
			warning:  `the price of a mint of "a" cannot be compared with that of a burn of "b"`,
		},
		"the price of an order": {
			perOrder: true,
			products: list{ofOrder("1", product("a", 0, "gold 100", "gold 80")),
				ofOrder("2", product("b", 0, "gold 150", "gold 100"))},
			want: `a burn of "a" pays more gold than a mint of "b" costs`,
		},
		"the price of an order at one rate": {
			perOrder: true,
			products: list{ofOrder("1", product("a", 0, "gold 100", "gold 80")),
				ofOrder("2", product("b", 0, "gold 200", "gold 160"))},
		},
		"any number of tokens": {
			perOrder: true,
			products: list{any},
			warning:  `the price of a mint of "any" cannot be compared with that of a burn of "any"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, PerOrder: test.perOrder,
				Products: test.products}
			terms, err := ramp.NewTerms(config)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, gains)
				require.ErrorContains(t, err, test.want)
				config.AllowArbitrage = true
				terms, err = ramp.NewTerms(config)
				require.NoError(t, err, "the game wants it")
				test.warning = test.want
			}
			log := new(bytes.Buffer)
			handler := newHandler(t, ramp.HandlerConfig{Terms: terms, Logger: slog.New(slog.NewTextHandler(log, nil))})
			require.NoError(t, handler.Check(t.Context()))
			if test.warning == "" {
				assert.Empty(t, log.String())
			} else {
				assert.Contains(t, strings.ReplaceAll(log.String(), `\"`, `"`), test.warning)
			}
		})
	}
}

// counting is a validator key in a key service that counts its signatures.
type counting struct {
	key    *ecdsa.PrivateKey
	signed atomic.Int64
}

func newCounting(t testing.TB) (*counting, *ramp.Signer) {
	key := must.Get(ethcrypto.HexToECDSA(vectorKey[2:]))(t)
	c := &counting{key: key}
	signer := must.Get(ramp.NewFuncSigner(vectorAddress, func(_ context.Context, digest []byte) ([]byte, error) {
		c.signed.Add(1)
		return ethcrypto.Sign(digest, c.key)
	}))(t)
	return c, signer
}

// placed returns a validate request with a UUID of its own.
func placed(intent ramp.Intent) *ramp.ValidateRequest {
	return &ramp.ValidateRequest{
		UserSig: "0xaa55", UserAddress: vectorAddress.Hex(), ProjectID: "project-1",
		Digest: ramp.Digest{1}, UUID: uuid.New(), Intent: intent,
	}
}

// The answer of an accepted order may have been lost. Its repeat passes although a rule has changed since: the
// player has paid.
func TestARepeatIsNotJudgedByTheRulesOfToday(t *testing.T) {
	var rule error
	var taken int
	judges := map[string]func(c *ramp.HandlerConfig){
		"Policy": func(c *ramp.HandlerConfig) {
			c.Policy = func(context.Context, ramp.Session, *ramp.ValidateRequest) error { return rule }
		},
		"Wallet": func(c *ramp.HandlerConfig) {
			c.Wallet = func(context.Context, ramp.Session, common.Address) error { return rule }
		},
	}
	for name, judge := range judges {
		rule, taken = nil, 0
		key, signer := newCounting(t)
		config := ramp.HandlerConfig{Players: &recorder{}, Terms: newTerms(t, swordProduct()), Signer: signer,
			Store: &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { taken++; return nil }}}
		judge(&config)
		service := newCaller(t, config)
		validate := func(r *ramp.ValidateRequest) error {
			return service.Validate(t, t.Context(), ramp.Session{ID: "session-1"}, r)
		}
		accepted, never := placed(mintOf(t, swordToken+" 1", "sword 1")), placed(mintOf(t, swordToken+" 1", "sword 1"))
		require.NoError(t, validate(accepted), name)

		rule = ramp.Reject("KYC_EXPIRED")
		require.NoError(t, validate(accepted), name)
		assert.EqualValues(t, 2, key.signed.Load(), name)
		assertCode(t, validate(never), "KYC_EXPIRED")
		other := *accepted
		other.Digest = ramp.Digest{2}
		assertCode(t, validate(&other), "KYC_EXPIRED") // it would be another order

		rule = &ramp.Rejection{Code: "FROZEN", Repeats: true}
		assertCode(t, validate(accepted), "FROZEN")
		rule = errors.New("the database is down")
		assertCode(t, validate(accepted), ramp.CodeInternal)
		assert.EqualValues(t, 2, key.signed.Load(), name)
		assert.Equal(t, 1, taken, name)
	}
}

func TestNothingThatIsRejectedBeforehandReachesTheKeyOrTheStore(t *testing.T) {
	key, signer := newCounting(t)
	var applied []ramp.Step
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		applied = append(applied, step)
		return nil
	}}
	players := &recorder{}
	var ended []ramp.Operation
	service := newCaller(t, ramp.HandlerConfig{
		Players: players, Store: store, Terms: newTerms(t, goldProduct(), swordProduct()), Signer: signer,
		Policy: func(_ context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
			if r.Product == "sword" && r.Tokens != ramp.NewAmount(1) {
				return ramp.Reject("ONE_SWORD_ONLY")
			}
			return nil
		},
		Observer: ramp.Observer{End: func(_ context.Context, op ramp.Operation) { ended = append(ended, op) }},
	})
	session := ramp.Session{ID: "session-1"}

	for range 100 {
		err := service.Validate(t, t.Context(), session, placed(mintOf(t, goldToken+" 1", "gold 99, gem 1")))
		assertCode(t, err, ramp.CodeInvalidMessage)
	}
	assert.Empty(t, players.calls, "the terms come first")
	assertCode(t, service.Validate(t, t.Context(), session, placed(mintOf(t, swordToken+" 2", "sword 2"))),
		"ONE_SWORD_ONLY")
	players.authenticate = func() error { return ramp.Reject("INVALID_USER") }
	assertCode(t, service.Validate(t, t.Context(), session, placed(mintOf(t, swordToken+" 1", "sword 1"))),
		"INVALID_USER")
	assert.Zero(t, key.signed.Load())
	assert.Empty(t, applied)
	for _, op := range ended {
		assert.False(t, op.Signed)
	}

	players.authenticate, ended = nil, nil
	sword := placed(mintOf(t, swordToken+" 1", "sword 1"))
	require.NoError(t, service.Validate(t, t.Context(), session, sword))
	require.NoError(t, service.Validate(t, t.Context(), session, sword), "a repeat is signed again")
	assert.EqualValues(t, 2, key.signed.Load())
	require.Len(t, applied, 1)
	assert.Equal(t, "sword", applied[0].Product)
	assert.Equal(t, "1", applied[0].Tokens.String())
	for _, op := range ended {
		assert.True(t, op.Signed)
		assert.Equal(t, "sword", op.Step.Product)
	}

	ended = nil
	other := *sword
	other.Digest = ramp.Digest{2}
	assertCode(t, service.Validate(t, t.Context(), session, &other), ramp.CodeOrderConflict)
	require.Len(t, ended, 1)
	assert.True(t, ended[0].Signed && ended[0].Err != nil, "signed, and not released")
}

// A player who has paid gets the signature, whatever the shop sells by now. Nothing else that
// the terms decline does.
func TestARepeatIsAnsweredAfterTheShopHasChanged(t *testing.T) {
	key, signer := newCounting(t)
	var applied []ramp.Step
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		applied = append(applied, step)
		return nil
	}}
	players, terms := &recorder{}, newTerms(t, goldProduct())
	var asked []string
	var policy, wallet error
	service := newCaller(t, ramp.HandlerConfig{
		Players: players, Store: store, Terms: terms, Signer: signer,
		Policy: func(_ context.Context, _ ramp.Session, r *ramp.ValidateRequest) error {
			asked = append(asked, r.Product+" "+r.Tokens.String())
			return policy
		},
		Wallet: func(context.Context, ramp.Session, common.Address) error { return wallet },
	})
	session := ramp.Session{ID: "session-1"}
	paid := placed(mintOf(t, goldToken+" 1", "gold 100, gem 1"))
	require.NoError(t, service.Validate(t, t.Context(), session, paid))
	require.NoError(t, terms.Replace(nil, -1))

	players.calls = nil
	require.NoError(t, service.Validate(t, t.Context(), session, paid))
	assert.Equal(t, []string{"gold 1", " 0"}, asked, "Policy is asked again, without a product")
	assert.Len(t, players.calls, 1, "and so is Authenticate")
	assert.Len(t, applied, 1)
	assert.EqualValues(t, 2, key.signed.Load())

	another := *paid
	another.UUID = uuid.New()
	digest := *paid
	digest.Digest = ramp.Digest{2}
	cheaper := *paid
	cheaper.Intent = mintOf(t, goldToken+" 2", "gold 100, gem 1")
	for name, r := range map[string]*ramp.ValidateRequest{
		"another order": &another, "another digest": &digest, "more tokens": &cheaper} {
		assertCode(t, service.Validate(t, t.Context(), session, r), ramp.CodeInvalidMessage)
		assertCode(t, service.Validate(t, t.Context(), ramp.Session{ID: "session-2"}, r), ramp.CodeInvalidMessage)
		assert.Len(t, asked, 2, name)
	}
	for _, no := range []*error{&policy, &wallet} {
		*no = &ramp.Rejection{Code: "NO", Repeats: true}
		assertCode(t, service.Validate(t, t.Context(), session, paid), "NO")
		*no = nil
	}
	players.authenticate = func() error { return ramp.Reject("INVALID_USER") }
	assertCode(t, service.Validate(t, t.Context(), session, paid), "INVALID_USER")
	players.authenticate = nil
	assert.EqualValues(t, 2, key.signed.Load(), "what is declined is not signed")

	require.NoError(t, service.Result(t, t.Context(), session, reported(accepted(t, paid), 0)))
	assertCode(t, service.Validate(t, t.Context(), session, paid), ramp.CodeInvalidMessage)
	assert.EqualValues(t, 2, key.signed.Load())
	require.Len(t, applied, 2)
}

// A database that fails says nothing about an order.
func TestAStoreThatFailsAfterTheShopHasChangedIsAnInternalError(t *testing.T) {
	service := newCaller(t, ramp.HandlerConfig{Players: &recorder{}, Store: brokenStore{},
		Terms: newTerms(t, goldProduct())})
	err := service.Validate(t, t.Context(), ramp.Session{ID: "session-1"},
		placed(burnOf(t, foreignToken+" 1", "gold 80")))
	assertCode(t, err, ramp.CodeInternal)
}

type brokenStore struct{}

func (brokenStore) Update(_ context.Context, _ uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	_, _ = next(nil) // as a store may
	return ramp.Step{}, errors.New("the database is down")
}

func TestAnOrderOutsideTheTermsIsAnsweredAsTheGameRejects(t *testing.T) {
	s := newStudioWith(t, ramp.HandlerConfig{RejectStatus: 400, Terms: newTerms(t, goldProduct())})
	body := must.Get(json.Marshal(placed(burnOf(t, foreignToken+" 1", "gold 80"))))(t)
	status, answer := s.post(t, ramp.PathValidate, body)
	assert.Equal(t, 400, status)
	assert.JSONEq(t, `{"success":false,"errorCode":"INVALID_MESSAGE","data":null}`, answer)
	assert.Contains(t, s.log.String(), "intent.from must be exactly one token, that of a product",
		"the log has the field and the reason")
	assert.NotContains(t, s.game.calls, "authenticate")
	assert.NotContains(t, s.game.calls, "validate")
}

// The result of a mint may be net of fees, and its times are those of the handler's clock.
func TestTheStepsOfAnOrder(t *testing.T) {
	var steps []ramp.Step
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		steps = append(steps, step)
		return nil
	}}
	service := newCaller(t, ramp.HandlerConfig{Players: noPlayers{}, Store: store, Terms: newTerms(t, goldProduct()),
		Now: func() time.Time { return atResult }})
	session := ramp.Session{ID: "session-1"}
	o := placed(mintOf(t, goldToken+" 1", "gold 100, gem 1"))
	require.NoError(t, service.Validate(t, t.Context(), session, o))

	// The result of a mint may be net of fees: 0.99 of 1 token at 1%. Only the game's
	// side is compared with the order.
	r := &ramp.Result{SessionID: session.ID, UUID: o.UUID, TxHash: "0x" + strings.Repeat("1", 64),
		Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)}, Intent: mintOf(t, goldToken+" 0.99", "gold 100, gem 1")}
	r.Intent.FeeRate, r.Intent.Actual = "100", "0.99"
	require.NoError(t, service.Result(t, t.Context(), session, r))
	require.NoError(t, service.Result(t, t.Context(), session, r))

	require.Len(t, steps, 2, "a repeat is not applied")
	for _, at := range []time.Time{steps[0].Order.AcceptedAt, steps[1].Order.FinishedAt} {
		assert.Equal(t, atResult.Truncate(time.Millisecond), at)
	}
	assert.Zero(t, steps[1].Evidence, "nobody has asked the chain")
	assert.Empty(t, steps[1].Product, "prices are not stored")
}

func TestASlowSignerCostsNothing(t *testing.T) {
	blocked := func(block func(context.Context)) *ramp.Signer {
		return must.Get(ramp.NewFuncSigner(vectorAddress, func(ctx context.Context, _ []byte) ([]byte, error) {
			block(ctx)
			return nil, ctx.Err()
		}))(t)
	}
	for name, block := range map[string]func(context.Context){
		"that obeys its context":   func(ctx context.Context) { <-ctx.Done() },
		"that ignores its context": func(context.Context) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []time.Duration{0, time.Second} {
				synctest.Test(t, func(t *testing.T) {
					game := &recorder{}
					service := newCaller(t, ramp.HandlerConfig{Players: game, Store: game, Signer: blocked(block),
						SignTimeout: limit})
					began := time.Now()
					err := service.Validate(t, t.Context(), ramp.Session{ID: "session-1"},
						placed(mintOf(t, goldToken+" 1", "gold 1")))
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assertCode(t, err, ramp.CodeInternal)
					want := 3 * time.Second
					if limit != 0 {
						want = limit
					}
					assert.Equal(t, want, time.Since(began))
					assert.NotContains(t, game.calls, "validate")
					time.Sleep(time.Hour) // until the function returns
				})
			}
		})
	}
	panicking := blocked(func(context.Context) { panic("the key service's client") })
	service := newCaller(t, ramp.HandlerConfig{Signer: panicking})
	assertCode(t,
		service.Validate(t, t.Context(), ramp.Session{ID: "session-1"}, placed(mintOf(t, goldToken+" 1", "gold 1"))),
		ramp.CodeInternal)
}

// listing is a game that lists the assets of a player.
type listing struct {
	noPlayers
	player *ramp.Player
}

func (l *listing) Assets(context.Context, ramp.Session) (*ramp.Player, error) { return l.player, nil }

func TestAnAssetThatAListLacksIsReportedOnce(t *testing.T) {
	var log strings.Builder
	players := &listing{player: &ramp.Player{Assets: []ramp.Asset{{ID: "gold"},
		{ID: "Sword", Balance: ramp.NewAmount(1)}}}}
	config := inMemory(ramp.HandlerConfig{Terms: newTerms(t, goldProduct(), swordProduct()),
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	config.Players = players
	service := newCaller(t, config)
	header := http.Header{ramp.HeaderSession: {"session-1"}, ramp.HeaderAuthorization: {"Bearer token-1"}}
	require.NoError(t, toAssets(service.handler)(t.Context(), header).Err)
	assert.NotContains(t, log.String(), "asset=gold")
	for range 2 { // a later list may lack what the first one had
		players.player.Assets = nil
		require.NoError(t, toAssets(service.handler)(t.Context(), header).Err)
		for _, asset := range []string{"sword", "gem", "gold"} {
			assert.Equal(t, 1,
				strings.Count(log.String(),
					`level=WARN msg="ramp: an asset of the terms is not in a player's list" asset=`+asset+"\n"),
				log.String())
		}
	}
}

func TestInitializeTakesAProductByName(t *testing.T) {
	service := newNode(t, says(200, okAnswer))
	client := service.api(t, ramp.ClientConfig{Terms: newTerms(t, goldProduct(), swordProduct())})
	must.Get(client.Initialize(t.Context(), ramp.InitializeRequest{PlayerID: "player-1", Product: "sword"}))(t)
	assert.Equal(t,
		`{"player_id":"player-1","intent":{"network":"testnet","project_id":"project-1","token":"`+swordToken+`",`+
			`"mint_fee_bps":0,"burn_fee_bps":0,"mint_method":"mint","burn_method":"burn-permit",`+
			`"materials":[{"id":"sword","amount":1,"icon_url":"https://example.com/gold.png","is_non_fungible":true}],`+
			`"outputs":[{"id":"sword","amount":1,"icon_url":"https://example.com/gold.png","is_non_fungible":true}]}}`,
		service.asked()[0])

	_, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "shield"})
	assertFields(t, err, "product must be the name of a product in ClientConfig.Terms")
	_, err = service.api(t, ramp.ClientConfig{}).Initialize(t.Context(), ramp.InitializeRequest{Product: "sword"})
	assertFields(t, err, "product must be the name of a product in ClientConfig.Terms")
	assert.Len(t, service.asked(), 1)
}
