package ramptest_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

const swordToken = "0x0000000000000000000000000000000000005b0d"

// sells opens a studio that sells gold and swords. It checks only as much as terms do: its own,
// or others. Its test must be green.
func sells(t *testing.T, others *ramp.Terms) *studio {
	t.Helper()
	product := func(name, token, item string, price, worth int64, unique bool) ramp.Product {
		one := ramp.Item{ID: item, Amount: ramp.NewAmount(price), IsNonFungible: unique,
			IconURL: "https://example.com/" + item}
		back := one
		back.Amount = ramp.NewAmount(worth)
		return ramp.Product{Name: name, Token: token, MintFeeBps: 100, Materials: []ramp.Item{one},
			Outputs: []ramp.Item{back}}
	}
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: []ramp.Product{
			product("gold", token, "gold", 100, 80, false),
			product("sword", swordToken, "sword", 1, 1, true),
		}}))(t)
	s := &studio{owns: map[string]int64{"gold": 1000, "sword": 2, "extra_item": 9}}
	s.open(t, cmp.Or(others, terms), false, func(service *ramptest.Service) *rampproof.Config {
		p := proved(service)
		p.Contracts = []common.Address{common.HexToAddress(token), common.HexToAddress(swordToken)}
		return p
	}, nil)
	s.client = must.Get(ramp.NewClient(ramp.ClientConfig{URL: s.service.URL(), Key: wayKey(t), Terms: terms,
		HTTPClient: s.service.Client()}))(t)
	t.Cleanup(func() {
		failed, said := s.test.end()
		assert.False(t, failed, said)
	})
	return s
}

// sell mints or burns n tokens of a product.
func (s *studio) sell(ctx context.Context, by placer, product string, n int64,
	faults ...ramptest.Fault) (*ramptest.PlacedOrder, error) {
	started, err := s.client.Initialize(context.WithoutCancel(ctx), ramp.InitializeRequest{Product: product})
	if err != nil {
		return nil, err
	}
	return by(ctx, started.UUID, session1, ramp.NewAmount(n), faults...)
}

var offTheTerms = []ramptest.Fault{ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(),
	ramptest.ValidateExtraItem()}

func TestAGameWithTermsApprovesOnlyWhatItSells(t *testing.T) {
	s := sells(t, nil)
	for _, step := range []struct {
		by          placer
		product     string
		kind        ramp.AssetType
		gold, sword int64 // in the end
	}{
		{s.service.Mint, "gold", ramp.TypeERC20, 800, 2},
		{s.service.Burn, "gold", ramp.TypeERC20, 960, 2},
		{s.service.Mint, "sword", ramp.TypeNFT, 960, 0},
		{s.service.Burn, "sword", ramp.TypeNFT, 960, 2},
	} {
		intent := must.Get(s.sell(t.Context(), step.by, step.product, 2, offTheTerms...))(t).Request.Intent
		assert.Contains(t, []ramp.AssetType{intent.From[0].Type, intent.To[0].Type}, step.kind)
		s.service.Advance(time.Minute)
		assert.Equal(t, map[string]int64{"gold": step.gold, "sword": step.sword, "extra_item": 9}, s.owns)
		last := s.steps[len(s.steps)-2:]
		assert.Equal(t, step.product, last[0].Product)
		assert.Equal(t, "2", last[0].Tokens.String())
		assert.Positive(t, last[1].Evidence.Units.Sign(), "the end of an order has its evidence")
		assert.Equal(t, step.kind == ramp.TypeNFT, len(last[1].Evidence.TokenIDs) == 2)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.sell(ctx, s.service.Mint, "gold", 1, ramptest.ValidateOtherToken())
	assert.True(t, err != nil && !errors.Is(err, ramptest.ErrOffTerms), "it must be answered: %v", err)
}

// An ERC-721 event has the ID of a token as its third indexed parameter.
func TestTheEvidenceNamesNonFungibleTokens(t *testing.T) {
	s := sells(t, nil)
	moved := func(by placer, n int64) (ids []string) {
		must.Get(s.sell(t.Context(), by, "sword", n))(t)
		s.service.Advance(time.Minute)
		for _, id := range s.steps[len(s.steps)-1].Evidence.TokenIDs {
			ids = append(ids, id.String())
		}
		return ids
	}
	must.Get(s.client.Initialize(t.Context(), ramp.InitializeRequest{Product: "sword"}))(t) // names the token
	node, sword := nodeOf(t, s.service), common.HexToAddress(swordToken)
	holds := func() int64 {
		return tokenBalance(t, node, sword, s.service.Wallet(session1)).Int64()
	}
	assert.Equal(t, int64(1000), holds(), "swords, not fractions of them")
	decimals := ramp.TransactionRequest{To: &sword, Data: []byte{0x31, 0x3c, 0xe5, 0x67}}
	_, err := node.CallContract(t.Context(), decimals, ramp.Latest)
	assert.Error(t, err, "ERC-721 has no decimals")

	minted := moved(s.service.Mint, 2)
	require.Len(t, minted, 2)
	assert.Equal(t, int64(1002), holds())
	assert.NotEqual(t, minted[0], minted[1])
	assert.Equal(t, minted[:1], moved(s.service.Burn, 1), "the oldest token is burned first")
	again := moved(s.service.Burn, 2)
	require.Len(t, again, 2)
	assert.Equal(t, minted[1], again[0])
	assert.NotContains(t, minted, again[1], "a token that the wallet had from the beginning")
}

func TestAGameThatChecksNothingIsFound(t *testing.T) {
	for _, fault := range offTheTerms {
		t.Run(fault.String(), func(t *testing.T) {
			s := sells(t, anyTerms)
			for _, by := range []placer{s.service.Mint, s.service.Burn} {
				placed, err := s.sell(t.Context(), by, "gold", 1, fault)
				assert.ErrorIs(t, err, ramptest.ErrOffTerms)
				assert.Nil(t, placed, "the order itself is not made")
			}
		})
	}
}
