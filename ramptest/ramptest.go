// Package ramptest plays the token ramp's side of the interface, so that a
// studio can test its integration offline: it answers initialize calls, makes
// the three calls to the studio's server, keeps a chain behind JSON-RPC, and
// delivers results as often as the interface says. Everything that the
// interface says of the studio's answers is checked.
//
//	service := ramptest.Start(t, ramptest.Config{
//		Key:       key,              // the console's HMAC key
//		Validator: signer.Address(), // the console's validator address
//		Handler:   handler,          // the studio's server, or its URL as Game
//	})
//	client, _ := ramp.NewClient(service.URL(), key, ramp.WithHTTPClient(service.Client()))
//	started, _ := client.Initialize(ctx, request)
//
//	order, err := service.Mint(ctx, started.UUID, session, ramp.NewAmount(10), ramptest.TransactionFails())
//	sent := service.Advance(time.Minute) // the transaction fails, assets come back
//	err = service.Resend(ctx, order)     // and only once
//
// # Time
//
// One clock rules blocks, deliveries and the end of a UUID. It stands still
// until [Service.Advance] moves it, so that a test of twelve hours takes no
// time; [Config.Speed] lets it run.
//
// # Faults
//
// A [Fault] is what goes otherwise than usual with an order. Faults are
// arguments of [Service.Mint] and [Service.Burn] and go together:
//
//	service.Mint(ctx, id, session, amount, ramptest.LostAnswer(ramptest.OnResult), ramptest.ResultTwice())
//
// # What happened
//
// Every exchange is recorded without its secrets: [Service.Events] and
// [Service.Timeline]. A test that fails shows the timeline.
//
// The service signs with the same code as a studio verifies with. What the
// interface does not show is settable and documented at its place in [Config].
package ramptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
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
// the interface leaves open. Only Key, Validator, and one of Game and Handler
// are required.
type Config struct {
	// Key is the HMAC key of the console. Required.
	Key ramp.HMACKey

	// Validator is the address of the validator key in the console. Required.
	Validator common.Address

	// Game is the base URL of the studio's server.
	Game string

	// Handler is the studio's server in memory, instead of Game. The service
	// then uses no network: reach it through [Service.Client]. Nothing of it
	// outlives a call, so it works inside testing/synctest.
	Handler http.Handler

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

	// Client makes the calls to Game. It is copied, and follows no redirect: a
	// token must not reach an address that the console does not have. nil stands
	// for one of its own.
	Client *http.Client

	// Listener is where the service listens. nil stands for a free port of
	// this machine, and for none if Handler is set.
	Listener net.Listener

	// AnyHost lets the pages be opened under any host name. Without it, only a
	// name of this machine will do, so that no page of the web can reach them
	// through a name that it makes point here.
	AnyHost bool

	// Speed is how fast the clock runs: 1 as on the wall, 60 a minute in a
	// second. 0 stands for a still clock, which moves by [Service.Advance] only.
	// A clock that runs needs a [Service.Close].
	Speed float64

	// Epoch is what the clock shows at first. The zero time stands for now.
	Epoch time.Time

	// OnEvent is called with each event that is recorded, one at a time. It must
	// not call the service.
	OnEvent func(Event)

	// From here on it is what the interface does not show.

	// FailureStatus is the HTTP status of a failed initialize call (7.1). 0
	// stands for the code of the envelope.
	FailureStatus int

	// MaxBody is the most bytes of any body that the service reads (8). 0 stands
	// for 1 MiB.
	MaxBody int64

	// AcceptExpired lets a UUID be used after its 5 minutes (3). By default
	// [Service.Mint] and [Service.Burn] fail with [ErrExpiredUUID].
	AcceptExpired bool

	// PerToken multiplies the materials and outputs of an initialize call with
	// the number of tokens (2.2). By default they are those of the whole order.
	PerToken bool

	// BurnMethod is the intent.method of a burn (2.5). Empty stands for
	// [ramp.MethodBurnPermit].
	BurnMethod ramp.Method

	// TokenType is the type of the token in an intent (2.5). Empty stands for
	// [ramp.TypeERC20].
	TokenType ramp.AssetType

	// Digest is what the validator key signs of a request whose Digest is not
	// set yet (5.3). nil stands for a hash of UUID, user address and intent.
	Digest func(*ramp.ValidateRequest) ramp.Digest

	// Timeout is how long the service waits for an answer of the studio. 0
	// stands for 10 seconds.
	Timeout time.Duration

	// Schedule is how long the service waits before each repetition of a result
	// (8). nil stands for [Schedule].
	Schedule []time.Duration

	// Retry says for which HTTP statuses a result is repeated, beside no answer
	// at all (6). nil stands for 500 alone; the service's public guide repeats
	// for every 5xx.
	Retry func(status int) bool

	// Confirmations is how many blocks there must be from the one of the
	// transaction on before its result is delivered. 0 stands for 1.
	Confirmations int

	// BlockTime is the time from a block to the next. 0 stands for a second.
	BlockTime time.Duration

	// ChainID is the number of the chain of a network, and its net_version. nil
	// stands for 7001 for mainnet and 7002 for testnet.
	ChainID func(ramp.Network) uint64

	// Decimals are the places of a token. 0 stands for 18.
	Decimals int

	// Tokens is how much of every token a wallet holds at first. nil stands for
	// 1000. A burn of more fails on the chain.
	Tokens *ramp.Amount

	// AuthorizeRPC says who may call the chain (5.4). nil stands for everyone;
	// the others are answered with HTTP 401.
	AuthorizeRPC func(*http.Request) bool
}

// Service is a token ramp. It is safe for concurrent use.
type Service struct {
	config Config
	game   string // base address of the studio's server
	client *http.Client
	mux    *http.ServeMux

	templates func() *template.Template
	chains    map[ramp.Network]*chain
	record    record
	clock     clock

	server  *http.Server // nil without a listener
	address string       // base address of the service
	alive   context.Context
	end     context.CancelFunc
	ended   sync.WaitGroup

	turn sync.Mutex // held by whoever does what is due

	mu       sync.Mutex
	promises map[uuid.UUID]*promise // what initialize has answered
	orders   map[uuid.UUID]*Order
	queue    []job    // the next one first
	held     []*Order // whose results wait for another one
	failing  []InitializeFailure
	failRPC  []int
}

// inMemory is the address of a service, and of a studio, that no network leads
// to.
const inMemory = "https://memory.invalid"

// New starts a service. Close it when it is no longer needed.
func New(config Config) (*Service, error) {
	switch game, err := url.Parse(config.Game); {
	case config.Key.IsZero():
		return nil, errors.New("ramptest: Config.Key is missing")
	case config.Validator == common.Address{}:
		return nil, errors.New("ramptest: Config.Validator is missing")
	case config.Handler != nil && config.Game != "":
		return nil, errors.New("ramptest: Config.Game and Config.Handler exclude each other")
	case config.Handler == nil && (err != nil || game.Host == ""):
		return nil, errors.New("ramptest: Config.Game must be the absolute URL of the studio's server")
	case config.Speed < 0:
		return nil, errors.New("ramptest: Config.Speed must not be below 0")
	}
	config.fill()
	s := &Service{
		config:   config,
		game:     strings.TrimRight(config.Game, "/"),
		client:   config.Client,
		address:  inMemory,
		promises: make(map[uuid.UUID]*promise),
		orders:   make(map[uuid.UUID]*Order),
		chains:   make(map[ramp.Network]*chain),
	}
	s.clock.start(config.Epoch, config.Speed)
	s.record.start(s.Now(), config.OnEvent)
	for _, network := range config.Networks {
		s.chains[network] = newChain(network, &s.config, s.Now)
	}
	if config.Handler != nil {
		s.game, s.client = inMemory, &http.Client{Transport: memory{config.Handler}}
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.routes()
	s.alive, s.end = context.WithCancel(context.Background())
	if err := s.listen(); err != nil {
		s.end()
		return nil, err
	}
	if config.Speed > 0 {
		s.ended.Go(s.run)
	}
	return s, nil
}

// fill sets what was left to us.
func (c *Config) fill() {
	if len(c.Networks) == 0 {
		c.Networks = []ramp.Network{ramp.Mainnet, ramp.Testnet}
	}
	c.Networks = slices.Clone(c.Networks)
	c.AssetsPath = cmp.Or(c.AssetsPath, ramp.PathAssets)
	c.ValidatePath = cmp.Or(c.ValidatePath, ramp.PathValidate)
	c.ResultPath = cmp.Or(c.ResultPath, ramp.PathResult)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.BurnMethod = cmp.Or(c.BurnMethod, ramp.MethodBurnPermit)
	c.TokenType = cmp.Or(c.TokenType, ramp.TypeERC20)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Confirmations = cmp.Or(c.Confirmations, 1)
	c.BlockTime = cmp.Or(c.BlockTime, time.Second)
	c.Decimals = cmp.Or(c.Decimals, 18)
	if c.Client == nil {
		c.Client = &http.Client{}
	}
	own := *c.Client
	c.Client = &own
	if c.Epoch.IsZero() {
		c.Epoch = time.Now()
	}
	if c.Digest == nil {
		c.Digest = digest
	}
	if c.Schedule == nil {
		c.Schedule = Schedule()
	}
	c.Schedule = slices.Clone(c.Schedule)
	if c.Retry == nil {
		c.Retry = func(status int) bool { return status == http.StatusInternalServerError }
	}
	if c.ChainID == nil {
		c.ChainID = func(n ramp.Network) uint64 {
			if n == ramp.Mainnet {
				return 7001
			}
			return 7002
		}
	}
	if c.Tokens == nil {
		thousand := ramp.NewAmount(1000)
		c.Tokens = &thousand
	}
	if c.AuthorizeRPC == nil {
		c.AuthorizeRPC = func(*http.Request) bool { return true }
	}
}

// Start starts a service that closes itself when the test ends, and shows its
// timeline if the test has failed.
func Start(t testing.TB, config Config) *Service {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Log(s.Timeline())
		}
	})
	return s
}

// listen opens the service to the network, unless it is in memory.
func (s *Service) listen() error {
	listener := s.config.Listener
	if listener == nil {
		if s.config.Handler != nil {
			return nil
		}
		var err error
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
	}
	s.address = "http://" + listener.Addr().String()
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.ended.Go(func() { _ = s.server.Serve(listener) }) // until it is shut down
	return nil
}

// URL is the base address of the service: {ramp_api_url} and {ramp_url} of the
// interface. If the service is in memory, only [Service.Client] reaches it.
func (s *Service) URL() string { return s.address }

// RPCURL is the address of a network's chain: {rpc_mainnet_url} or
// {rpc_testnet_url} of the interface.
func (s *Service) RPCURL(network ramp.Network) string { return s.address + "/rpc/" + string(network) }

// Client returns an HTTP client that reaches the service, in memory or not. Give
// it to [ramp.WithHTTPClient].
func (s *Service) Client() *http.Client {
	if s.server == nil {
		return &http.Client{Transport: memory{s}}
	}
	return &http.Client{}
}

// ServeHTTP is the service itself, for a server of one's own.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Service) routes() {
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("POST /api/v2/initialize", s.initialize)
	s.mux.HandleFunc("POST /rpc/{network}", s.serveRPC)
	s.pages()
}

// Close stops the service and waits for calls that are under way.
func (s *Service) Close() {
	s.end()
	if s.server != nil {
		ending, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
		defer cancel()
		if s.server.Shutdown(ending) != nil {
			_ = s.server.Close() // somebody holds on: nothing is lost but their answer
		}
	}
	s.ended.Wait()
}
