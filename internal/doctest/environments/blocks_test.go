//go:build docs

// The blocks of docs/environments.md.
package environments

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// block: // project is a project

type anybody struct{}

func (anybody) Authenticate(context.Context, ramp.Session) error { return nil }
func (anybody) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

// environment is a project with the service that calls it.
type environment struct {
	project
	service *ramptest.Service
	client  *ramp.Client
	applied []ramp.Order
}

func newEnvironment(t *testing.T, name string, network ramp.Network, mux http.Handler, store ramp.Store) *environment {
	e := &environment{}
	key, err := ramp.TextKey("the key of " + name)
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	e.service = ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), ProjectID: name, Handler: mux, Books: ramptest.BooksOff,
		AssetsPath: "/" + name + ramp.PathAssets, ValidatePath: "/" + name + ramp.PathValidate, ResultPath: "/" + name + ramp.PathResult})
	if store == nil {
		store = &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
			e.applied = append(e.applied, step.Order)
			return nil
		}}
	}
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: e.service.RPCURL(network), HTTPClient: e.service.Client(),
		ChainID: map[ramp.Network]uint64{ramp.Mainnet: 7001, ramp.Testnet: 7002}[network]})
	require.NoError(t, err)
	items := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	terms, err := ramp.NewTerms(ramp.TermsConfig{ProjectID: name, Network: network, Products: []ramp.Product{{
		Name: "gold", Token: "0x00000000000000000000000000000000000070c3", Materials: items, Outputs: items}}})
	require.NoError(t, err)
	e.client, err = ramp.NewClient(ramp.ClientConfig{URL: e.service.URL(), Key: key, Terms: terms, HTTPClient: e.service.Client()})
	require.NoError(t, err)
	e.project = project{name, ramp.HandlerConfig{Players: anybody{}, Store: store, Terms: terms, Key: key, Signer: signer, Chain: chain,
		OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }}}
	return e
}

func (e *environment) mint(t *testing.T) (*ramptest.Order, error) {
	started, err := e.client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"})
	require.NoError(t, err)
	order, err := e.service.Mint(t.Context(), started.UUID, ramp.Session{ID: "alice", Token: ramp.NewAccessToken("token")}, ramp.NewAmount(1))
	if err == nil {
		e.service.Advance(time.Minute)
	}
	return order, err
}

func TestEachProjectHasItsOwnOrders(t *testing.T) {
	mux := http.NewServeMux()
	live := newEnvironment(t, "live", ramp.Mainnet, mux, nil)
	second := newEnvironment(t, "second", ramp.Mainnet, mux, live.Config.Store) // in the same database
	trial := newEnvironment(t, "trial", ramp.Testnet, mux, nil)
	require.NoError(t, mount(mux, []project{live.project, second.project, trial.project}))
	for _, e := range []*environment{live, second, trial} {
		_, err := e.mint(t)
		require.NoError(t, err, e.Name)
	}
	require.Equal(t, []string{"live live mainnet accepted", "live live mainnet succeeded", "live second mainnet accepted", "live second mainnet succeeded",
		"trial trial testnet accepted", "trial trial testnet succeeded"}, append(states(live), states(trial)...))

	// A project whose keys and paths are mixed up with those of another gets nothing.
	mixed := http.NewServeMux()
	wrong := newEnvironment(t, "live", ramp.Testnet, mixed, nil)
	wrong.Config.Key = trial.Config.Key
	require.NoError(t, mount(mixed, []project{wrong.project}))
	_, err := wrong.mint(t)
	require.ErrorContains(t, err, "HMAC_INVALID")

	trial.Config.Terms = nil
	require.ErrorContains(t, mount(http.NewServeMux(), []project{trial.project}), "trial: ramp: HandlerConfig.Terms is required")
}

func states(e *environment) (list []string) {
	for _, o := range e.applied {
		list = append(list, fmt.Sprintf("%s %s %s %s", e.Name, o.ProjectID, o.Network, o.State))
	}
	return list
}
