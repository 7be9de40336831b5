package ramptest_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// seller is a game with one player, which moves whatever an order says.
type seller struct {
	owns  map[string]int64
	steps []ramp.Step
}

func (s *seller) Authenticate(context.Context, ramp.Session) error { return nil }

func (s *seller) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	var player ramp.Player
	for id, n := range s.owns {
		player.Assets = append(player.Assets, ramp.Asset{ID: id, Balance: ramp.NewAmount(n)})
	}
	return &player, nil
}

func (s *seller) Apply(_ context.Context, step ramp.Step) error {
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		s.owns[asset.ID] += delta
	}
	s.steps = append(s.steps, step)
	return nil
}

const swordToken = "0x0000000000000000000000000000000000005b0d"

// selling is a service for a game that sells gold and swords.
type selling struct {
	*seller
	*ramptest.Service
	client *ramp.Client
}

// sells starts a service for a seller, which checks only as much as terms do: its own, or
// others.
func sells(t *testing.T, others *ramp.Terms) *selling {
	t.Helper()
	product := func(name, token, item string, price, worth int64, unique bool) ramp.Product {
		one := ramp.Item{ID: item, Amount: ramp.NewAmount(price), IconURL: item + ".png", IsNonFungible: unique}
		back := one
		back.Amount = ramp.NewAmount(worth)
		return ramp.Product{Name: name, Token: token, MintFeeBps: 100, Materials: []ramp.Item{one}, Outputs: []ramp.Item{back}}
	}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{
		product("gold", token, "gold", 100, 80, false),
		product("sword", swordToken, "sword", 1, 1, true),
	}}))
	game := &seller{owns: map[string]int64{"gold": 1000, "sword": 2, "extra_item": 9}}
	store := &ramp.MemoryStore{Apply: game.Apply}
	key, signer := console(t)
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: store, Terms: cmp.Or(others, terms),
		Key: key, Signer: signer, Logger: slog.New(slog.DiscardHandler)}))
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Handler: handler})
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms, HTTPClient: service.Client()}))
	return &selling{game, service, client}
}

// order mints or burns n tokens of a product.
func (s *selling) order(ctx context.Context, by placer, product string, n int64, faults ...ramptest.Fault) (*ramptest.Order, error) {
	started := ramp.Must(s.client.Initialize(context.WithoutCancel(ctx), ramp.InitializeRequest{Product: product}))
	return by(ctx, started.UUID, session1, ramp.NewAmount(n), faults...)
}

var offTheTerms = []ramptest.Fault{ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(), ramptest.ValidateExtraItem()}

func TestAGameWithTermsApprovesOnlyWhatItSells(t *testing.T) {
	s := sells(t, nil)
	for _, step := range []struct {
		by          placer
		product     string
		kind        ramp.AssetType
		gold, sword int64 // in the end
	}{
		{s.Mint, "gold", ramp.TypeERC20, 800, 2},
		{s.Burn, "gold", ramp.TypeERC20, 960, 2},
		{s.Mint, "sword", ramp.TypeNFT, 960, 0},
		{s.Burn, "sword", ramp.TypeNFT, 960, 2},
	} {
		intent := ramp.Must(s.order(t.Context(), step.by, step.product, 2, offTheTerms...)).Request.Intent
		assert.Contains(t, []ramp.AssetType{intent.From[0].Type, intent.To[0].Type}, step.kind)
		s.Advance(time.Minute)
		assert.Equal(t, map[string]int64{"gold": step.gold, "sword": step.sword, "extra_item": 9}, s.owns)
		last := s.steps[len(s.steps)-2:]
		assert.Equal(t, step.product, last[0].Product)
		assert.Equal(t, "2", last[0].Tokens.String())
		assert.Positive(t, last[1].Evidence.Units.Sign(), "the end of an order has its evidence")
		assert.Equal(t, step.kind == ramp.TypeNFT, len(last[1].Evidence.TokenIDs) == 2)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.order(ctx, s.Mint, "gold", 1, ramptest.ValidateOtherToken())
	assert.True(t, err != nil && !errors.Is(err, ramptest.ErrOffTerms), "it must be answered: %v", err)
}

// An ERC-721 event has the ID of a token as its third indexed parameter.
func TestTheEvidenceNamesNonFungibleTokens(t *testing.T) {
	s := sells(t, nil)
	moved := func(by placer, n int64) (ids []string) {
		ramp.Must(s.order(t.Context(), by, "sword", n))
		s.Advance(time.Minute)
		for _, id := range s.steps[len(s.steps)-1].Evidence.TokenIDs {
			ids = append(ids, id.String())
		}
		return ids
	}
	ramp.Must(s.client.Initialize(t.Context(), ramp.InitializeRequest{Product: "sword"})) // names the token
	node, sword := nodeOf(t, s.Service), common.HexToAddress(swordToken)
	holds := func() int64 {
		return ramp.Must(node.TokenBalance(t.Context(), sword, s.Wallet(session1), ramp.Latest)).Int64()
	}
	assert.Equal(t, int64(1000), holds(), "swords, not fractions of them")
	_, err := node.TokenDecimals(t.Context(), sword)
	assert.Error(t, err, "ERC-721 has no decimals")

	minted := moved(s.Mint, 2)
	require.Len(t, minted, 2)
	assert.Equal(t, int64(1002), holds())
	assert.NotEqual(t, minted[0], minted[1])
	assert.Equal(t, minted[:1], moved(s.Burn, 1), "the oldest token is burned first")
	again := moved(s.Burn, 2)
	require.Len(t, again, 2)
	assert.Equal(t, minted[1], again[0])
	assert.NotContains(t, minted, again[1], "a token that the wallet had from the beginning")
}

func TestAGameThatChecksNothingIsFound(t *testing.T) {
	for _, fault := range offTheTerms {
		t.Run(fault.String(), func(t *testing.T) {
			s := sells(t, anyTerms)
			for _, by := range []placer{s.Mint, s.Burn} {
				placed, err := s.order(t.Context(), by, "gold", 1, fault)
				assert.ErrorIs(t, err, ramptest.ErrOffTerms)
				assert.Nil(t, placed, "the order itself is not made")
			}
		})
	}
}
