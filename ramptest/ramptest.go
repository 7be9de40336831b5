// Package ramptest plays the token ramp's side of the interface, so that a
// studio can test its integration offline: an HTTP server that answers
// initialize calls, and the three calls that the service makes to the studio's
// server, with everything checked that the interface says of the answers.
//
//	service := ramptest.Start(t, ramptest.Config{
//		Key:       key,              // the console's HMAC key
//		Validator: signer.Address(), // the console's validator address
//		Game:      server.URL,       // the console's endpoints
//	})
//	client, _ := ramp.NewClient(service.URL(), key)
//	started, _ := client.Initialize(ctx, request)
//
//	order, err := service.Mint(ctx, started.UUID, session, ramp.NewAmount(10))
//	err = service.Deliver(ctx, order, ramptest.Failed)  // assets come back
//	err = service.Deliver(ctx, order, ramptest.Failed)  // and only once
//
// It signs with the same code as a studio verifies with. What the interface
// does not show is settable and documented at its place in [Config].
package ramptest

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Config is what the service console knows of a project (interface 1), and what
// the interface leaves open.
type Config struct {
	// Key is the HMAC key of the console. Required.
	Key ramp.HMACKey

	// Validator is the address of the validator key in the console. Required.
	Validator common.Address

	// Game is the base URL of the studio's server. Required.
	Game string

	// AssetsPath, ValidatePath and ResultPath are the endpoints below Game that
	// the console has. Empty stands for the paths of the interface's examples
	// (4.3): [ramp.PathAssets], [ramp.PathValidate] and [ramp.PathResult].
	AssetsPath, ValidatePath, ResultPath string

	// ProjectID is the one project that the service knows. Empty accepts every
	// project ID but the empty one.
	ProjectID string

	// Networks are the networks that the service serves. Empty stands for
	// mainnet and testnet.
	Networks []ramp.Network

	// FailureStatus is the HTTP status of a failed initialize call, which the
	// interface does not show (7.1). 0 stands for the code of the envelope.
	FailureStatus int

	// Client makes the calls to the studio's server. nil stands for a client
	// with a timeout of 10 seconds.
	Client *http.Client

	// Now is the clock that UUIDs expire by. nil stands for [time.Now].
	Now func() time.Time
}

// Service is a token ramp on a loopback port. It is safe for concurrent use.
type Service struct {
	config Config
	game   *url.URL
	server *httptest.Server

	mu      sync.Mutex
	pending map[uuid.UUID]pending // what initialize has promised
	height  uint64                // of the chain
}

// pending is an initialize call that was answered.
type pending struct {
	request ramp.InitializeRequest
	expires time.Time
	block   uint64 // of its transaction; 0 before the studio approved
}

// New starts a service. Close it when it is no longer needed.
func New(config Config) (*Service, error) {
	game, err := url.Parse(config.Game)
	switch {
	case config.Key.IsZero():
		return nil, errors.New("ramptest: Config.Key is missing")
	case config.Validator == common.Address{}:
		return nil, errors.New("ramptest: Config.Validator is missing")
	case err != nil, game.Host == "":
		return nil, errors.New("ramptest: Config.Game must be the absolute URL of the studio's server")
	}
	if len(config.Networks) == 0 {
		config.Networks = []ramp.Network{ramp.Mainnet, ramp.Testnet}
	}
	config.Networks = slices.Clone(config.Networks)
	config.AssetsPath = cmp.Or(config.AssetsPath, ramp.PathAssets)
	config.ValidatePath = cmp.Or(config.ValidatePath, ramp.PathValidate)
	config.ResultPath = cmp.Or(config.ResultPath, ramp.PathResult)
	if config.Client == nil {
		config.Client = &http.Client{Timeout: 10 * time.Second}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Service{config: config, game: game, pending: make(map[uuid.UUID]pending)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v2/initialize", s.initialize)
	s.server = httptest.NewServer(mux)
	return s, nil
}

// Start starts a service that closes itself when the test ends.
func Start(t testing.TB, config Config) *Service {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// URL is the base address of the service: {ramp_api_url} and {ramp_url} of the
// interface.
func (s *Service) URL() string { return s.server.URL }

// Close stops the service and waits for calls that are under way.
func (s *Service) Close() { s.server.Close() }

// endpoint is the address of one of the studio's endpoints.
func (s *Service) endpoint(path string) string {
	return s.game.Scheme + "://" + s.game.Host + strings.TrimRight(s.game.EscapedPath(), "/") + path
}
