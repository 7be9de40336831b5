// Package emulator is an emulated token ramp: it answers what a game asks (interface 4.1, 4.4), plays the
// players who mint and burn, keeps a chain, and lets package delivery tell the game how orders ended. It
// judges and shows nothing itself: package audit does, and the packages api and view show it.
package emulator

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/access"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/clock"
	"github.com/token-ramp/ramp-go/ramptest/internal/delivery"
	"github.com/token-ramp/ramp-go/ramptest/internal/failures"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/memory"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/route"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Service is an emulated token ramp. It is safe for concurrent use.
type Service struct {
	shared
	Game    *game.Game
	Orders  *Orders
	Console *Console
	Node    *Node
	keeper  *keeper // nil without a state file
	Run     string  // see control.EventList
	mux     *http.ServeMux

	transport *http.Transport // to the game and to the service; it knows no proxy
	server    *http.Server    // nil without a listener
}

// New returns a service that [Service.Serve] starts. It continues from the state file if there is one.
func New(config Config) (*Service, error) {
	epoch := config.Epoch
	if config.State != nil {
		var err error
		if config.Epoch, err = config.State.Epoch(config.Speed, epoch); err != nil {
			return nil, fmt.Errorf("ramptest: state: %w", err)
		}
	}
	s := &Service{mux: http.NewServeMux(), Run: rand.Text()[:8], transport: &http.Transport{},
		shared: shared{config: &config, Life: life.New(), secrets: config.secrets()}}
	s.wire()
	if s.keeper != nil {
		err := s.keeper.restore()
		if err == nil {
			s.Run, err = config.State.Kept("run", s.Run)
		}
		if err != nil {
			return nil, err
		}
		s.Clock.Epoch = epoch // it starts where the other one was only once
	}
	if config.Game != "" {
		client := config.Client
		if client == nil {
			client = &http.Client{Transport: s.transport}
		}
		s.Game.Reach(config.Game, *client)
	}
	return s, nil
}

// wire creates the parts of the service and connects them.
func (s *Service) wire() {
	c := s.config
	guests := 0
	if c.IsUnitTest { // it does not run for weeks
		guests = math.MaxInt
	}
	s.Clock = clock.New(c.Speed, c.Epoch)
	if c.State != nil {
		s.changes = newChanges()
	}
	s.History = history.New(s.Clock.Now(), c.State, c.OnEvent)
	s.Guard = &access.Guard{Token: c.ControlToken}
	s.Audit = s.newAudit(func(ctx context.Context, session ramp.Session, id uuid.UUID) (*ramp.Player, int,
		error) {
		return s.Game.Owned(ctx, session, id)
	})
	s.Game = game.New(game.Config{
		Key: c.Key, AssetsPath: c.AssetsPath, ValidatePath: c.ValidatePath, ResultPath: c.ResultPath,
		Timeout: c.Timeout, MaxBody: c.MaxBody, Retry: c.Retry, Mailbox: c.Mailbox, UUIDDigits: c.UUIDDigits,
		ResultType:   c.ResultType,
		Regenerating: c.Regenerating, Audited: c.Mode != Off, NoThief: c.NoThief,
		MaxGuests: guests,
		Now:       s.Clock.Now, Pass: s.Clock.Pass, Secrets: s.secrets, Record: s.History.Exchange,
		Reading: s.Audit.Reading, Watch: s.watch,
	})
	s.Orders = &Orders{shared: s.shared, Game: s.Game, Chains: make(order.Chains),
		turn: locks.At(locks.Turn), mu: locks.At(locks.Orders),
		issued: make(map[uuid.UUID]*issued), placed: make(map[uuid.UUID]*order.Order)}
	s.Orders.jobs = order.NewJobs(s.Orders.can)
	for network, id := range c.Networks {
		s.Orders.Chains[network] = chain.New(chain.Config{Name: string(network), ID: id,
			BlockTime: c.BlockTime, Now: s.Clock.Now,
			Tokens: chain.Units(c.Tokens, c.Rules.Decimals), Decimals: c.Rules.Decimals,
			Service: trade.ServiceAccount(), Tracked: c.State != nil,
			Submitted: func(tx *chain.Transaction) { s.Orders.submitted(network, tx) }})
	}
	s.Orders.deliveries = s.Orders.newDeliveries()
	if c.State != nil {
		s.keeper = &keeper{shared: s.shared, file: c.State, orders: s.Orders,
			writing: locks.At(locks.Writing)}
	}
	s.Console = &Console{shared: s.shared, orders: s.Orders, Failing: failures.New[InitializeFailure]()}
	s.Node = &Node{shared: s.shared, chains: s.Orders.Chains, wake: s.Orders.jobs.Wake,
		Failing: failures.New[int]()}
	calls := new(route.Table)
	calls.Handle("POST /api/v2/initialize", s.Console)
	calls.Handle("POST /rpc/{network}", s.Node)
	s.mux.Handle("/api/v2/initialize", calls)
	s.mux.Handle("/rpc/", calls)
}

// newDeliveries returns the deliveries of the orders.
func (s *Orders) newDeliveries() *delivery.Deliveries {
	return delivery.New(delivery.Config{Game: s.Game, Chains: s.Chains, Rules: &s.config.Rules,
		Schedule: s.config.Schedule, Retry: s.config.Retry, Now: s.Clock.Now, AskAgain: s.askBefore,
		Plan: func(o *order.Order, at time.Time) {
			s.jobs.Plan(order.Job{Due: at, Task: order.DeliverResult, Order: o})
		},
		Began: s.History.Wake, // a list shows that it is being sent
		Ended: func(id uuid.UUID) { s.changes.note(id) },
		Replaced: func(o *order.Order, block control.Event) {
			block.Status = control.TxReplaced
			s.recordChain(o.UUID, block, "block of the transaction replaced")
		},
		Found: s.take, Hint: s.hint})
}

// watch is [game.Config].Watch.
func (s *Service) watch(ctx context.Context, c audit.Call) game.Watch {
	entry := s.Audit.Open(ctx, c)
	return game.Watch{Opposite: entry.Opposite, Fits: entry.Fits, Owned: entry.Owned, Close: entry.Close}
}

// Handle registers what else the service serves.
func (s *Service) Handle(pattern string, handler http.Handler) { s.mux.Handle(pattern, handler) }

// Config returns the configuration, which must not be changed.
func (s *Service) Config() *Config { return s.config }

// Serve starts the service.
func (s *Service) Serve() error {
	if err := s.listen(); err != nil {
		s.Life.Close()
		return err
	}
	if s.keeper != nil {
		s.keeper.flush()
		s.Life.Busy.Run(s.keeper.run)
	}
	if s.config.Speed > 0 {
		s.Life.Busy.Run(s.Orders.run)
	}
	return nil
}

// SetHandler makes handler the game's server from now on.
func (s *Service) SetHandler(handler http.Handler) {
	s.Game.Reach(access.MemoryURL, http.Client{Transport: memory.Transport{Handler: handler,
		Running: &s.Life.Busy}})
}

// listen starts the HTTP server, unless the service is in memory.
func (s *Service) listen() error {
	listener := s.config.Listener
	public := strings.TrimRight(s.config.PublicURL, "/")
	s.Guard.URL = cmp.Or(public, access.MemoryURL)
	if listener == nil {
		if s.config.Game == "" {
			return nil
		}
		var err error
		if listener, err = loopback.Listen(); err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
	}
	if s.Guard.URL = public; public == "" {
		at, err := loopback.Address(listener)
		if err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
		s.Guard.URL = "http://" + at
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	// Browsers open connections in advance. Shutdown would wait 5 seconds for a request.
	var unused sync.Map
	s.server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			unused.Store(c, nil)
		} else {
			unused.Delete(c)
		}
	}
	s.server.RegisterOnShutdown(func() {
		for c := range unused.Range {
			_ = c.(net.Conn).Close() // nothing was asked
		}
	})
	s.Life.Busy.Run(func() { _ = s.server.Serve(listener) }) // until it is shut down
	return nil
}

// Client returns an HTTP client that reaches the service, in memory or not.
func (s *Service) Client() *http.Client {
	if s.server == nil {
		return &http.Client{Transport: memory.Transport{Handler: s, Running: new(life.Group)}}
	}
	return &http.Client{Transport: s.transport}
}

// ServeHTTP serves the service's own endpoints.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Wallet returns the key of a player.
func (s *Service) Wallet(session ramp.Session) (*ramp.Signer, error) {
	return s.config.wallet(trade.Received(session))
}

// Close stops the service, see Service.Close of package ramptest.
func (s *Service) Close() {
	s.Life.Close()
	ending, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	if s.server != nil && s.server.Shutdown(ending) != nil {
		_ = s.server.Close() // clients that are still connected lose only their answer
	}
	select {
	case <-s.Life.Busy.Ended():
	case <-ending.Done():
	}
	s.transport.CloseIdleConnections()
	s.keeper.flush()
}

// Reset forgets everything but the configuration and the notes in the state file.
func (s *Service) Reset() {
	s.Orders.turn.Lock() // waits for jobs in progress
	defer s.Orders.turn.Unlock()
	s.Console.Failing.Reset()
	s.Node.Failing.Reset()
	s.Node.unknown.Clear()
	s.Clock.Reset()
	s.keeper.clear(s.Orders.reset)
	s.Audit.Reset()
	s.Game.Reset()
	s.History.Reset(s.Clock.Now())
}

// Assets asks the game for a user's assets.
func (s *Service) Assets(ctx context.Context, session ramp.Session) (*ramp.Player, error) {
	leave, err := s.Life.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	player, _, err := s.Game.Assets(ctx, trade.Received(session), uuid.Nil)
	return player, err
}
