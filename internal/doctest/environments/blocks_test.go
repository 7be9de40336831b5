//go:build docs

// The blocks of docs/environments.md.
package environments

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

type anybody struct{}

func (anybody) Authenticate(context.Context, ramp.Session) error { return nil }
func (anybody) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

// environment is a project on a network, with the service that calls it.
type environment struct {
	http.Handler
	name    string
	service *ramptest.Service
	terms   *ramp.Terms
	key     ramp.HMACKey
	applied []string
}

func newEnvironment(t *testing.T, name string, network ramp.Network, mux http.Handler) *environment {
	e := &environment{name: name, key: ramp.Must(ramp.TextKey("the key of " + name))}
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	e.service = ramptest.Start(t, ramptest.Config{Key: e.key, Validator: signer.Address(), ProjectID: name, Handler: mux, Books: ramptest.BooksOff,
		AssetsPath: "/" + name + ramp.PathAssets, ValidatePath: "/" + name + ramp.PathValidate, ResultPath: "/" + name + ramp.PathResult})
	chainID := map[ramp.Network]uint64{ramp.Mainnet: 7001, ramp.Testnet: 7002}[network]
	chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: e.service.RPCURL(network), HTTPClient: e.service.Client(), ChainID: chainID}))
	items := []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	e.terms = ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: name, Network: network, Products: []ramp.Product{{
		Name: "gold", Token: "0x00000000000000000000000000000000000070c3", Materials: items, Outputs: items}}}))
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		e.applied = append(e.applied, step.Order.ProjectID+" "+string(step.Order.Network)+" "+string(step.Order.State))
		return nil
	}}
	e.Handler = ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: anybody{}, Store: store, Terms: e.terms, Key: e.key, Signer: signer, Chain: chain}))
	return e
}

func (e *environment) mint(t *testing.T) error {
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: e.service.URL(), Key: e.key, Terms: e.terms, HTTPClient: e.service.Client()}))
	started := ramp.Must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))
	_, err := e.service.Mint(t.Context(), started.UUID, ramp.Session{ID: "alice", Token: ramp.NewAccessToken("token")}, ramp.NewAmount(1))
	e.service.Advance(time.Minute)
	return err
}

func mount(mux *http.ServeMux, live, trial http.Handler) {
	// block: mux.Handle("/live/"
}

func TestEachProjectHasItsOwnOrders(t *testing.T) {
	mux, mixed := http.NewServeMux(), http.NewServeMux()
	live, trial := newEnvironment(t, "live", ramp.Mainnet, mux), newEnvironment(t, "trial", ramp.Testnet, mux)
	mount(mux, live, trial)
	require.NoError(t, live.mint(t))
	require.NoError(t, trial.mint(t))
	require.Equal(t, []string{"live mainnet accepted", "live mainnet succeeded"}, live.applied)
	require.Equal(t, []string{"trial testnet accepted", "trial testnet succeeded"}, trial.applied)

	// A project whose path is mixed up with that of another gets nothing.
	mount(mixed, trial, live)
	require.ErrorContains(t, newEnvironment(t, "live", ramp.Mainnet, mixed).mint(t), "HMAC_INVALID")
}
