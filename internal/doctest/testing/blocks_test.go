//go:build docs

// The blocks of docs/testing.md.
package testing

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

var (
	key, _     = ramp.TextKey("key from the console")
	signer, _  = ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	session    = ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	game       = newGame()
	handler, _ = ramp.NewHandler(ramp.HandlerConfig{Game: game, Key: key, Signer: signer})
	server     = &httptest.Server{}
	request    = ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}},
		Outputs:   []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}},
	}}
	before = int64(1000)
)

func login(context.Context, string) (ramp.Session, error) { return session, nil }

// players is an in-memory game, whose only player has gold.
type players struct {
	mu   sync.Mutex
	gold int64
}

var bank = &players{gold: before}

func gold() int64 {
	bank.mu.Lock()
	defer bank.mu.Unlock()
	return bank.gold
}

func newGame() ramp.Game {
	store, err := ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: func(_ context.Context, step ramp.Step) error {
		bank.mu.Lock()
		defer bank.mu.Unlock()
		for _, asset := range step.Effect.Assets {
			delta, err := step.Effect.Delta(asset).Int64()
			if err != nil {
				return err
			}
			bank.gold += delta
		}
		return nil
	}})
	if err != nil {
		panic(err)
	}
	game, err := ramp.NewOrderGame(ramp.OrderGameConfig{Players: bank, Store: store})
	if err != nil {
		panic(err)
	}
	return game
}

func (p *players) Authenticate(context.Context, ramp.Session) error { return nil }

func (p *players) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(p.gold)}}}, nil
}

// block: func TestAFailedMintGivesTheGoldBack(

// block: func TestOurServer(

func TestAHandlerAfterItsService(t *testing.T) {
	// block: service := ramptest.Start(
	require.NoError(t, err)
	_, err = service.Assets(t.Context(), session)
	require.NoError(t, err)
}
