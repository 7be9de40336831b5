package ramptest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
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

// sells starts a service for a game that sells gold and swords, and checks only as
// much as terms do.
func sells(t *testing.T, choose func(*ramp.Terms) *ramp.Terms) (*seller, *ramptest.Service, *ramp.Client) {
	t.Helper()
	product := func(name, token, item string, price, worth int64, unique bool) ramp.Product {
		one := ramp.Item{ID: item, Amount: ramp.NewAmount(price), IconURL: item + ".png", IsNonFungible: unique}
		back := one
		back.Amount = ramp.NewAmount(worth)
		return ramp.Product{Name: name, Token: token, MintFeeBps: 100, Materials: []ramp.Item{one}, Outputs: []ramp.Item{back}}
	}
	terms, err := ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{
		product("gold", "0x00000000000000000000000000000000000070c3", "gold", 100, 80, false),
		product("sword", swordToken, "sword", 1, 1, true),
	}})
	require.NoError(t, err)
	game := &seller{owns: map[string]int64{"gold": 1000, "sword": 2, "extra_item": 9}}
	store := &ramp.MemoryStore{Apply: game.Apply}
	key, signer := console(t)
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: store, Terms: choose(terms), Key: key, Signer: signer, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Handler: handler})
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms, HTTPClient: service.Client()})
	require.NoError(t, err)
	return game, service, client
}

var offTheTerms = []ramptest.Fault{ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(), ramptest.ValidateExtraItem()}

func TestAGameWithTermsApprovesOnlyWhatItSells(t *testing.T) {
	game, service, client := sells(t, func(terms *ramp.Terms) *ramp.Terms { return terms })
	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	for _, step := range []struct {
		order       func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)
		product     string
		kind        ramp.AssetType
		gold, sword int64 // in the end
	}{
		{service.Mint, "gold", ramp.TypeERC20, 800, 2},
		{service.Burn, "gold", ramp.TypeERC20, 960, 2},
		{service.Mint, "sword", ramp.TypeNFT, 960, 0},
		{service.Burn, "sword", ramp.TypeNFT, 960, 2},
	} {
		started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: step.product})
		require.NoError(t, err)
		order, err := step.order(t.Context(), started.UUID, session, ramp.NewAmount(2), offTheTerms...)
		require.NoError(t, err)
		intent := order.Request.Intent
		assert.Contains(t, []ramp.AssetType{intent.From[0].Type, intent.To[0].Type}, step.kind)
		service.Advance(time.Minute)
		assert.Equal(t, map[string]int64{"gold": step.gold, "sword": step.sword, "extra_item": 9}, game.owns)
		last := game.steps[len(game.steps)-2:]
		assert.Equal(t, step.product, last[0].Product)
		assert.Equal(t, "2", last[0].Tokens.String())
		assert.Positive(t, last[1].Evidence.Units.Sign(), "the end of an order has its evidence")
		assert.Equal(t, step.kind == ramp.TypeNFT, len(last[1].Evidence.TokenIDs) == 2)
	}
}

// An ERC-721 event has the ID of a token as its third indexed parameter.
func TestTheEvidenceNamesNonFungibleTokens(t *testing.T) {
	game, service, client := sells(t, func(terms *ramp.Terms) *ramp.Terms { return terms })
	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	moved := func(order func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error), n int64) (ids []string) {
		started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "sword"})
		require.NoError(t, err)
		_, err = order(t.Context(), started.UUID, session, ramp.NewAmount(n))
		require.NoError(t, err)
		service.Advance(time.Minute)
		for _, id := range game.steps[len(game.steps)-1].Evidence.TokenIDs {
			ids = append(ids, id.String())
		}
		return ids
	}
	_, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "sword"}) // names the token
	require.NoError(t, err)
	node := nodeOf(t, service)
	holds := func() int64 {
		n, err := node.TokenBalance(t.Context(), common.HexToAddress(swordToken), service.Wallet(session), ramp.Latest)
		require.NoError(t, err)
		return n.Int64()
	}
	assert.Equal(t, int64(1000), holds(), "swords, not fractions of them")
	_, err = node.TokenDecimals(t.Context(), common.HexToAddress(swordToken))
	assert.Error(t, err, "ERC-721 has no decimals")

	minted := moved(service.Mint, 2)
	require.Len(t, minted, 2)
	assert.Equal(t, int64(1002), holds())
	assert.NotEqual(t, minted[0], minted[1])
	assert.Equal(t, minted[:1], moved(service.Burn, 1), "the oldest token is burned first")
	again := moved(service.Burn, 2)
	require.Len(t, again, 2)
	assert.Equal(t, minted[1], again[0])
	assert.NotContains(t, minted, again[1], "a token that the wallet had from the beginning")
}

func TestAGameThatChecksNothingIsFound(t *testing.T) {
	for _, fault := range offTheTerms {
		t.Run(fault.String(), func(t *testing.T) {
			_, service, client := sells(t, func(*ramp.Terms) *ramp.Terms { return anyTerms })
			session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
			for _, order := range []func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error){service.Mint, service.Burn} {
				started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"})
				require.NoError(t, err)
				placed, err := order(t.Context(), started.UUID, session, ramp.NewAmount(1), fault)
				assert.ErrorIs(t, err, ramptest.ErrOffTerms)
				assert.Nil(t, placed, "the order itself is not made")
			}
		})
	}
}

func TestAnOrderOffTheTermsMustBeAnswered(t *testing.T) {
	_, service, client := sells(t, func(terms *ramp.Terms) *ramp.Terms { return terms })
	started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = service.Mint(ctx, started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1), ramptest.ValidateOtherToken())
	assert.True(t, err != nil && !errors.Is(err, ramptest.ErrOffTerms), "%v", err)
}
