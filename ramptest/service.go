package ramptest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// Service is a token ramp. It is safe for concurrent use.
type Service struct {
	config  Config
	clock   *clock
	record  *record
	life    *lifetime
	guard   *guard
	audit   *audit
	studio  *studio
	orders  *orders
	console *console
	node    *node
	mux     *http.ServeMux

	transport *http.Transport // to the studio, if it is our own
	server    *http.Server    // nil without a listener
}

// inMemory is the address of a service, and of a studio, that no network leads
// to.
const inMemory = "https://memory.invalid"

// New starts a service. Close it when it is no longer needed.
func New(config Config) (*Service, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config.fill()
	s := &Service{config: config, life: newLifetime(), mux: http.NewServeMux()}
	s.wire()
	switch {
	case config.Handler != nil:
		s.SetHandler(config.Handler)
	case config.Game != "":
		client := config.Client
		if client == nil {
			s.transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
			client = &http.Client{Transport: s.transport}
		}
		s.studio.reach(config.Game, *client)
	}
	if err := s.listen(); err != nil {
		s.life.close()
		return nil, err
	}
	if config.Speed > 0 {
		s.life.busy.run(s.orders.run)
	}
	return s, nil
}

// wire makes the rooms of the service, and tells each which others it may use.
func (s *Service) wire() {
	c := &s.config
	s.clock = newClock(c.Epoch, c.Speed)
	s.record = &record{begun: s.clock.now(), heard: c.OnEvent}
	s.guard = &guard{anyHost: c.AnyHost}
	s.audit = &audit{mode: c.Books, settle: c.Settle, clock: s.clock, record: s.record, players: make(map[string]*auditedPlayer),
		keys: make(map[string]string), orders: make(map[uuid.UUID][]auditedOrder), returned: make(map[*Imbalance]bool)}
	s.studio = &studio{config: c, clock: s.clock, record: s.record, audit: s.audit}
	s.audit.assets = s.studio.assets
	chains := make(map[ramp.Network]*chain.Chain)
	s.orders = &orders{config: c, clock: s.clock, record: s.record, life: s.life, studio: s.studio, chains: chains,
		agenda: newAgenda(), issued: make(map[uuid.UUID]*issued), placed: make(map[uuid.UUID]*Order)}
	for _, network := range c.Networks {
		chains[network] = chain.New(chain.Config{Name: string(network), ID: c.ChainID(network), BlockTime: c.BlockTime,
			Now: s.clock.now, Tokens: chain.Units(*c.Tokens, c.Decimals), Decimals: c.Decimals, Service: serviceAccount(),
			Submitted: func(tx *chain.Transaction) { s.orders.submitted(network, tx) }})
	}
	s.console = &console{config: c, clock: s.clock, record: s.record, guard: s.guard, orders: s.orders}
	s.node = &node{config: c, clock: s.clock, record: s.record, guard: s.guard, chains: chains}
	front := &pages{config: c, clock: s.clock, record: s.record, guard: s.guard, life: s.life, studio: s.studio, orders: s.orders}
	s.mux.Handle("POST /api/v2/initialize", s.console)
	s.mux.Handle("POST /rpc/{network}", s.node)
	front.mount(s.mux)
}

// listen opens the service to the network, unless it is in memory.
func (s *Service) listen() error {
	listener := s.config.Listener
	public := strings.TrimRight(s.config.PublicURL, "/")
	s.guard.address = cmp.Or(public, inMemory)
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
	s.guard.address = cmp.Or(public, "http://"+at)
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.life.busy.run(func() { _ = s.server.Serve(listener) }) // until it is shut down
	return nil
}

// SetHandler makes handler the studio's server from now on, as [Config.Handler]
// does. It is for a server that needs the address of the service, or its
// [Service.Client], to be made: leave Game and Handler of the [Config] empty then.
func (s *Service) SetHandler(handler http.Handler) {
	s.studio.reach(inMemory, http.Client{Transport: memory{handler, &s.life.busy}})
}

// URL is the base address of the service: {ramp_api_url} and {ramp_url} of the
// interface, or [Config.PublicURL]. If the service is in memory, only
// [Service.Client] reaches it.
func (s *Service) URL() string { return s.guard.address }

// RPCURL is the address of a network's chain: {rpc_mainnet_url} or
// {rpc_testnet_url} of the interface.
func (s *Service) RPCURL(network ramp.Network) string { return s.URL() + "/rpc/" + string(network) }

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

// Wallet is the address of a player's wallet: the user_address of the player's
// orders (interface 2.5). It is zero if [Config.Wallet] has none.
func (s *Service) Wallet(session ramp.Session) common.Address {
	signer, err := s.config.wallet(session)
	if err != nil {
		return common.Address{}
	}
	return signer.Address()
}

// Assets asks the studio for a user's assets (interface 2.4). A studio that
// says no gives a [*Declined], one that breaks the interface another error.
func (s *Service) Assets(ctx context.Context, session ramp.Session) (*ramp.Player, error) {
	leave, err := s.life.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.studio.assets(ctx, session, uuid.Nil)
}

// Mint plays a player who mints: it asks the studio to approve that the
// materials of the initialize call become tokens (interface 2.5). Once the
// studio's answer has passed every check of sections 2.6 and 5.3, the
// transaction goes to the chain, whose next block has it, and the result is
// delivered after that: [Service.Advance] lets that happen.
//
// A studio that says no gives a [*Declined], one that breaks the interface
// another error. The same call again is the same request again, and the same
// order; it takes no more faults, see [ErrPlaced].
func (s *Service) Mint(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount, faults ...Fault) (*Order, error) {
	return s.orders.order(ctx, ramp.Mint, id, session, tokens, faults)
}

// Burn plays a player who burns: it asks the studio to approve that tokens
// become the outputs of the initialize call. All that [Service.Mint] says holds
// here.
func (s *Service) Burn(ctx context.Context, id uuid.UUID, session ramp.Session, tokens ramp.Amount, faults ...Fault) (*Order, error) {
	return s.orders.order(ctx, ramp.Burn, id, session, tokens, faults)
}

// State says how far an order is.
func (s *Service) State(o *Order) State { return o.delivery.now() }

// Deliver tells the studio now, once, how the order's transaction ended
// (interface 6). A transaction that is in no block yet gets into one, with that
// outcome; where the chain cannot have it so, as with a burn of more than there
// is, the studio hears what the chain says. A transaction that was in a block
// before stays as it is: with another outcome, the studio hears what the chain
// contradicts.
//
// Call it again for a redelivery, or from several goroutines at once. nil says
// that the studio confirmed with HTTP 200 and the envelope of 4.3; else the
// schedule goes on with the next repetition.
//
// An [Order] that was made by hand, with a Session, a UUID and the Intent of a
// Request, is delivered too, of a transaction that no chain knows, and once only.
func (s *Service) Deliver(ctx context.Context, o *Order, outcome Outcome) error {
	return s.orders.tell(ctx, o, outcome)
}

// Resend tells the studio now, once more, how the order's transaction ended on
// the chain (interface 6). The error is [ErrPending] if it has not ended.
func (s *Service) Resend(ctx context.Context, o *Order) error { return s.orders.resend(ctx, o) }

// Now is what the service's clock shows.
func (s *Service) Now() time.Time { return s.clock.now() }

// Advance lets a time pass on the service's clock. What falls due is done in its
// order, each at its own time: blocks, and deliveries of results with their
// repetitions (interface 8). It returns the deliveries, once all are answered.
//
// Calls of Advance wait for each other. So a handler that Advance calls must not
// call Advance, nor wait for somebody who does: neither would end.
func (s *Service) Advance(d time.Duration) []Delivery { return s.orders.advance(d) }

// FailInitialize lets the next initialize calls fail, one for each failure, in
// this order, whatever they ask.
func (s *Service) FailInitialize(failures ...InitializeFailure) { s.console.fail(failures) }

// FailRPC lets the next requests to the chains fail, one for each code, in this
// order, whatever they ask. A code below 100 is one of JSON-RPC: those of the
// interface (7.3) are below 0, and 3 is a contract that refuses. Any other is an
// HTTP status; 429 comes with a Retry-After of 1 second. 0 lets a request through.
func (s *Service) FailRPC(codes ...int) { s.node.fail(codes) }

// Events returns what happened so far, oldest first: at most the last 1,000
// requests to the chains and readings of the books, and the last 10,000 of everything else. A body is cut at
// 64 KiB.
func (s *Service) Events() []Event { return s.record.all() }

// Timeline prints what happened so far, one event a line with its time since the
// beginning. An exchange that is not as it should be is shown whole, and a routine
// event is left out: see [Event.Routine].
func (s *Service) Timeline() string { return s.record.timeline() }

// Imbalances returns what the books have found, the last 1,000, oldest first: see
// [Config.Books].
func (s *Service) Imbalances() []*Imbalance { return s.audit.all() }

// Close stops the service. It waits for calls that are under way, and for the
// [Config.Handler] to return from them, but no longer than [Config.Timeout]. After
// it, the methods that call the studio fail with [ErrClosed], and
// [Service.Advance] does nothing.
func (s *Service) Close() {
	s.life.close()
	ending, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	if s.server != nil && s.server.Shutdown(ending) != nil {
		_ = s.server.Close() // somebody holds on: nothing is lost but their answer
	}
	select {
	case <-s.life.busy.ended():
	case <-ending.Done():
	}
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
}
