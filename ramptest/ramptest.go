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
//	client, _ := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client()})
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
// # Stores
//
// [TestStore] tests a [ramp.Store] of your own, without a service.
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
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Config is what the service console knows of a project (interface 1), and what
// the interface leaves open. Only Key and Validator are required, and one of Game,
// Handler and [Service.SetHandler].
type Config struct {
	// Key is the HMAC key of the console. Required.
	Key ramp.HMACKey

	// Validator is the address of the validator key in the console. Required.
	Validator common.Address

	// Game is the base URL of the studio's server.
	Game string

	// Handler is the studio's server in memory, instead of Game. The service
	// then uses no network: reach it through [Service.Client].
	//
	// Each call of it has a goroutine of its own, as on a server, which ends with
	// the call; so it works inside testing/synctest. A handler that ignores the
	// context of its request outlives the call, for which nobody waits beyond
	// Timeout.
	Handler http.Handler

	// AssetsPath, ValidatePath and ResultPath are the endpoints below Game that
	// the console has. Each begins with a slash. Empty stands for the paths of the
	// interface's examples (4.3): [ramp.PathAssets], [ramp.PathValidate] and
	// [ramp.PathResult].
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
	// this machine, and for none if Game is empty.
	Listener net.Listener

	// PublicURL is the address that others reach the service by, if it is not
	// that of the listener: [Service.URL] returns it, and the pages can be opened
	// under its host name.
	PublicURL string

	// AnyHost lets the pages be opened under any host name. Without it, only a
	// name of this machine will do, so that no page of the web can reach them
	// through a name that it makes point here.
	AnyHost bool

	// Speed is how fast the clock runs: 1 as on the wall, 60 a minute in a
	// second, 100,000 at most. 0 stands for a still clock, which moves by
	// [Service.Advance] only. A clock that runs needs a [Service.Close].
	Speed float64

	// Epoch is what the clock shows at first. The zero time stands for now.
	//
	// The ExpiresAt of a [ramp.Initialization] goes by the clock of the client.
	// To use one clock, set [ramp.ClientConfig].Now to service.Now.
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

	// Wallet is the key of a player, who signs the orders and the transactions
	// with it. nil stands for one that is made of the session ID: see
	// [Service.Wallet].
	Wallet func(ramp.Session) *ramp.Signer

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
	// transaction on before its result is delivered. 0 stands for 1. While the
	// clock stands still, no block comes during a call, so a handler whose own
	// Confirmations ([ramp.HandlerConfig]) are more answers HTTP 500 and confirms
	// the repetition.
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
	studio atomic.Pointer[studio] // nil if there is none yet
	mux    *http.ServeMux

	transport *http.Transport // to the studio, if it is our own

	templates func() *template.Template
	chains    map[ramp.Network]*chain
	record    record
	clock     clock

	server  *http.Server // nil without a listener
	address string       // base address of the service
	alive   context.Context
	end     context.CancelFunc
	busy    group // what is under way: calls, handlers, and our own goroutines

	turn sync.Mutex // held by whoever does what is due

	mu       sync.Mutex
	promises map[uuid.UUID]*promise // what initialize has answered
	orders   map[uuid.UUID]*Order
	queue    []job    // the next one first
	held     []*Order // whose results wait for another one
	failing  []InitializeFailure
	failRPC  []int
}

// studio is how the service reaches the studio's server.
type studio struct {
	address string // without a slash at its end
	client  *http.Client
}

// ErrClosed says that the service is closed.
var ErrClosed = errors.New("ramptest: the service is closed")

// inMemory is the address of a service, and of a studio, that no network leads
// to.
const inMemory = "https://memory.invalid"

// New starts a service. Close it when it is no longer needed.
func New(config Config) (*Service, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config.fill()
	s := &Service{
		config:   config,
		promises: make(map[uuid.UUID]*promise),
		orders:   make(map[uuid.UUID]*Order),
		chains:   make(map[ramp.Network]*chain),
	}
	s.clock.start(config.Epoch, config.Speed)
	s.record.start(s.Now(), config.OnEvent)
	for _, network := range config.Networks {
		s.chains[network] = newChain(network, &s.config, s.Now)
	}
	switch {
	case config.Handler != nil:
		s.SetHandler(config.Handler)
	case config.Game != "":
		if config.Client == nil {
			s.transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
			config.Client = &http.Client{Transport: s.transport}
		}
		s.call(config.Game, *config.Client)
	}
	s.routes()
	s.alive, s.end = context.WithCancel(context.Background())
	if err := s.listen(); err != nil {
		s.end()
		return nil, err
	}
	if config.Speed > 0 {
		s.busy.run(s.run)
	}
	return s, nil
}

// SetHandler makes handler the studio's server from now on, as [Config.Handler]
// does. It is for a server that needs the address of the service, or its
// [Service.Client], to be made: leave Game and Handler of the [Config] empty then.
func (s *Service) SetHandler(handler http.Handler) {
	s.call(inMemory, http.Client{Transport: memory{handler, &s.busy}})
}

// call makes an address the one of the studio's server. A token must not reach
// another one, so that no redirect is followed.
func (s *Service) call(address string, client http.Client) {
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.studio.Store(&studio{strings.TrimRight(address, "/"), &client})
}

// maxSpeed lets a clock run for a day on the wall before it has shown all the
// time that a [time.Duration] holds.
const maxSpeed = 100_000

// check says what cannot work.
func (c *Config) check() error {
	wrong := func(field, problem string) error { return fmt.Errorf("ramptest: Config.%s %s", field, problem) }
	switch {
	case c.Key.IsZero():
		return wrong("Key", "is missing")
	case c.Validator == common.Address{}:
		return wrong("Validator", "is missing")
	case c.Handler != nil && c.Game != "":
		return wrong("Game", "and Config.Handler exclude each other")
	case c.Game != "" && !isAbsolute(c.Game):
		return wrong("Game", "must be the absolute URL of the studio's server")
	case c.PublicURL != "" && !isAbsolute(c.PublicURL):
		return wrong("PublicURL", "must be an absolute URL")
	case !(0 <= c.Speed && c.Speed <= maxSpeed): // nor is NaN
		return wrong("Speed", "must be from 0 to 100000")
	case c.FailureStatus != 0 && (c.FailureStatus < 200 || c.FailureStatus > 599):
		return wrong("FailureStatus", "must be an HTTP status")
	case c.Decimals < 0 || c.Decimals > 77: // what 256 bits hold
		return wrong("Decimals", "must be from 0 to 77")
	case c.Confirmations < 0:
		return wrong("Confirmations", "must not be below 0")
	case c.BlockTime < 0:
		return wrong("BlockTime", "must not be below 0")
	case c.Timeout < 0:
		return wrong("Timeout", "must not be below 0")
	case c.MaxBody < 0:
		return wrong("MaxBody", "must not be below 0")
	}
	for field, path := range map[string]string{"AssetsPath": c.AssetsPath, "ValidatePath": c.ValidatePath, "ResultPath": c.ResultPath} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return wrong(field, "must begin with a slash")
		}
	}
	return nil
}

func isAbsolute(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
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
	if c.Epoch.IsZero() {
		c.Epoch = time.Now()
	}
	if c.Wallet == nil {
		c.Wallet = wallet
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
	public := strings.TrimRight(s.config.PublicURL, "/")
	s.address = cmp.Or(public, inMemory)
	if listener == nil {
		if s.config.Game == "" {
			return nil
		}
		var err error
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
	}
	at := listener.Addr().String()
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() { // which is no address to go to
		at = fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	s.address = cmp.Or(public, "http://"+at)
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.busy.run(func() { _ = s.server.Serve(listener) }) // until it is shut down
	return nil
}

// URL is the base address of the service: {ramp_api_url} and {ramp_url} of the
// interface, or [Config.PublicURL]. If the service is in memory, only
// [Service.Client] reaches it.
func (s *Service) URL() string { return s.address }

// RPCURL is the address of a network's chain: {rpc_mainnet_url} or
// {rpc_testnet_url} of the interface.
func (s *Service) RPCURL(network ramp.Network) string { return s.address + "/rpc/" + string(network) }

// Client returns an HTTP client that reaches the service, in memory or not. Set it
// as the HTTPClient of [ramp.ClientConfig] and [ramp.RPCConfig].
func (s *Service) Client() *http.Client {
	if s.server == nil {
		return &http.Client{Transport: memory{s, new(group)}}
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

// enter lets a call in, unless the service is closed. Close waits for it to leave.
func (s *Service) enter() (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive.Err() != nil {
		return nil, ErrClosed
	}
	s.busy.add()
	return s.busy.done, nil
}

// Close stops the service. It waits for calls that are under way, and for the
// [Config.Handler] to return from them, but no longer than [Config.Timeout]. After
// it, the methods that call the studio fail with [ErrClosed], and
// [Service.Advance] does nothing.
func (s *Service) Close() {
	s.mu.Lock() // who has entered is waited for, and nobody enters any more
	s.end()
	s.mu.Unlock()
	ending, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	if s.server != nil && s.server.Shutdown(ending) != nil {
		_ = s.server.Close() // somebody holds on: nothing is lost but their answer
	}
	select {
	case <-s.busy.ended():
	case <-ending.Done():
	}
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
}
