//go:build docs

// The blocks of docs/testing.md.
package testing

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

var (
	key, _     = ramp.TextKey("key from the console")
	signer, _  = ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	session    = ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	store      = newStore()
	handler, _ = ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: bank, Store: store, Key: key, Signer: signer})
	server     = httptest.NewServer(handler)
	request    = ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}},
		Outputs:   []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}},
	}}
	before = int64(1000)
)

// login creates a player who owns plenty.
func login(context.Context, string) (ramp.Session, error) {
	session := ramp.Session{ID: rand.Text(), Token: ramp.NewAccessToken(rand.Text())}
	bank.mu.Lock()
	defer bank.mu.Unlock()
	bank.owned[session.ID] = map[string]int64{"item_gold": 1_000_000, "item_gem": 1_000_000}
	bank.tokens[session.ID] = session.Token
	return session, nil
}

// players is an in-memory game.
type players struct {
	mu     sync.Mutex
	owned  map[string]map[string]int64 // by session and asset
	tokens map[string]ramp.AccessToken // by session
}

var bank = &players{
	owned:  map[string]map[string]int64{session.ID: {"item_gold": before}},
	tokens: map[string]ramp.AccessToken{session.ID: session.Token},
}

func gold() int64 {
	bank.mu.Lock()
	defer bank.mu.Unlock()
	return bank.owned[session.ID]["item_gold"]
}

func newStore() ramp.Store {
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		bank.mu.Lock()
		defer bank.mu.Unlock()
		owned := maps.Clone(bank.owned[step.Order.SessionID])
		for _, asset := range step.Effect.Assets {
			delta, err := step.Effect.Delta(asset).Int64()
			if err != nil {
				return err
			}
			if owned[asset.ID] += delta; owned[asset.ID] < 0 {
				return ramp.Reject("INVALID_BALANCE")
			}
		}
		bank.owned[step.Order.SessionID] = owned
		return nil
	}}
	return store
}

func (p *players) Authenticate(_ context.Context, s ramp.Session) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tokens[s.ID].Equal(s.Token) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (p *players) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	player := &ramp.Player{}
	for _, id := range slices.Sorted(maps.Keys(p.owned[s.ID])) {
		player.Assets = append(player.Assets, ramp.Asset{ID: id, Balance: ramp.NewAmount(p.owned[s.ID][id])})
	}
	return player, nil
}

// block: func TestAFailedMintGivesTheGoldBack(

// block: func TestOurServer(
