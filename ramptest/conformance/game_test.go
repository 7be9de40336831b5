package conformance_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// game is a game that is right, in memory: orders are recorded once, what was
// stored at validate counts, and they are settled once. A bug makes it wrong in
// one point.
type game struct {
	bug bug

	mu      sync.Mutex
	players map[string]*player // by session
	orders  map[uuid.UUID]*order
}

type player struct {
	token    string
	balances map[string]ramp.Amount
}

type order struct {
	owner   string
	request *ramp.ValidateRequest
	state   string // "", success or failure
}

func newGame() *game {
	return &game{players: map[string]*player{}, orders: map[uuid.UUID]*order{}}
}

func (g *game) login(_ context.Context, _ string) (ramp.Session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := ramp.Session{ID: "session-" + rand.Text(), Token: ramp.NewAccessToken(rand.Text())}
	g.players[s.ID] = &player{token: s.Token.Reveal(), balances: map[string]ramp.Amount{
		"item_gold": ramp.NewAmount(1_000_000), "item_gem": ramp.NewAmount(10_000)}}
	return s, nil
}

func (g *game) Authenticate(_ context.Context, s ramp.Session) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.players[s.ID]; p == nil || p.token != s.Token.Reveal() {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g *game) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.players[s.ID]
	return &ramp.Player{PlayerID: s.ID, Name: "Name", Assets: []ramp.Asset{
		{ID: "item_gold", Balance: p.balances["item_gold"]}, {ID: "item_gem", Balance: p.balances["item_gem"]},
	}}, nil
}

func (g *game) Validate(_ context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.orders[r.UUID]; known != nil {
		if known.owner != s.ID || !same(known.request, r) || known.state != "" {
			return ramp.Reject("INVALID_MESSAGE")
		}
		return nil
	}
	if d, _ := r.Intent.Direction(); d == ramp.Burn {
		for _, to := range r.Intent.To {
			if _, known := g.players[s.ID].balances[to.ID]; !known {
				return ramp.Reject("INVALID_MESSAGE")
			}
		}
	}
	effect, err := r.Effect()
	if err != nil {
		return err
	}
	if err := g.apply(s.ID, effect); err != nil {
		return err
	}
	g.orders[r.UUID] = &order{owner: s.ID, request: r}
	return nil
}

func same(a, b *ramp.ValidateRequest) bool {
	return a.Digest == b.Digest && string(must(a.Intent)) == string(must(b.Intent))
}

func (g *game) Result(_ context.Context, s ramp.Session, r *ramp.Result) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.orders[r.UUID]
	if known == nil {
		return errors.New("no such order")
	}
	state := "failure"
	if r.Succeeded() {
		state = "success"
	}
	reported, err := moves(r.Intent)
	if err != nil {
		return err
	}
	stored, err := moves(known.request.Intent)
	switch {
	case err != nil:
		return err
	case known.owner != s.ID, known.state != "" && known.state != state, string(must(reported)) != string(must(stored)):
		return ramp.Permanent(errors.New("the result contradicts the order"))
	case known.state == state:
		return nil
	}
	effect, err := (&ramp.Result{Receipt: r.Receipt, Intent: known.request.Intent}).Effect()
	if err != nil {
		return err
	}
	if err := g.apply(known.owner, effect); err != nil {
		return err
	}
	known.state = state
	return nil
}

// moves is what an intent is about for the game.
func moves(i ramp.Intent) (ramp.Effect, error) {
	if d, _ := i.Direction(); d == ramp.Burn {
		one := ramp.NewQuantity(1)
		return (&ramp.Result{Receipt: ramp.Receipt{Status: one}, Intent: i}).Effect()
	}
	return (&ramp.ValidateRequest{Intent: i}).Effect()
}

// apply moves all assets of an effect, or none.
func (g *game) apply(owner string, effect ramp.Effect) error {
	p := g.players[owner]
	after := map[string]ramp.Amount{}
	for _, asset := range effect.Assets {
		balance, known := p.balances[asset.ID]
		sum, err := balance.Add(effect.Delta(asset))
		if err != nil || !known || sum.Sign() < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		after[asset.ID] = sum
	}
	for id, balance := range after {
		p.balances[id] = balance
	}
	return nil
}

// studio is a game behind a real HTTP server.
type studio struct {
	game   *game
	key    ramp.HMACKey
	signer *ramp.Signer
	server *httptest.Server
	target conformance.Target
}

func newStudio(t testing.TB, m mutant) *studio {
	t.Helper()
	s := &studio{game: newGame()}
	s.game.bug = m.bug
	var err error
	s.key, err = ramp.TextKey("the key of the console")
	require.NoError(t, err)
	s.signer, err = ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	handler, err := ramp.NewHandler(s.game, s.key, s.signer, ramp.WithProject("project-1"))
	require.NoError(t, err)
	var outer http.Handler = handler
	if m.wrap != nil {
		outer = m.wrap(s, handler)
	}
	s.server = httptest.NewServer(outer)
	t.Cleanup(s.server.Close)
	s.target = conformance.Target{
		URL: s.server.URL, Key: s.key, Validator: s.signer.Address(), ProjectID: "project-1",
		Player: s.game.login, Restart: s.restart, Strict: true,
	}
	return s
}

// restart forgets what a server keeps in memory; this one has it all stored.
func (s *studio) restart(context.Context) error {
	if s.game.bug == "forgets orders" {
		s.game.mu.Lock()
		defer s.game.mu.Unlock()
		clear(s.game.orders)
	}
	return nil
}
