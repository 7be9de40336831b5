// Package ramptest plays the token ramp's side of the interface, so that a
// studio can test its integration offline: it answers initialize calls, makes
// the three calls to the game's server, keeps a chain behind JSON-RPC, and
// delivers results as often as the interface says. Everything that the
// interface says of the game's answers is checked.
//
//	service := ramptest.Start(t, ramptest.Config{
//		Key:       key,              // the console's HMAC key
//		Validator: signer.Address(), // the console's validator address
//		Handler:   handler,          // the game's server, or its URL as Game
//	})
//	client, _ := ramp.NewClient(ramp.ClientConfig{
//		URL: service.URL(), Key: key, HTTPClient: service.Client()})
//	started, _ := client.Initialize(ctx, request)
//
//	order, err := service.Mint(ctx, started.UUID, session, ramp.NewAmount(10), ramptest.TransactionFails())
//	sent := service.Advance(time.Minute) // the transaction fails, assets come back
//	err = service.Resend(ctx, order)     // and only once
//
// # Time
//
// One clock rules blocks, deliveries and the end of a UUID. It stands still
// until [Service.Advance] moves it, so a test of twelve hours takes no time.
// [Desk.Speed] makes it run.
//
// # Faults
//
// A [Fault] is a scripted deviation for one order. Pass any number of faults to
// [Service.Mint] or [Service.Burn]:
//
//	service.Mint(ctx, id, session, amount, ramptest.LostAnswer(ramptest.OnResult), ramptest.ResultTwice())
//
// # The books
//
// The service tracks which assets each order must move. [Start] fails the test if
// the game loses assets or moves them twice. See [Books].
//
// # Half of a session
//
// When its test ends, [Start] asks the game for assets as a thief would, with half of each session
// that the game has accepted, and fails the test if the game lists some. See [Config.NoThief].
//
// # What happened
//
// Every exchange is recorded without its secrets: [Service.Events] and
// [Service.Timeline]. A failing test logs the timeline.
//
// # Other languages
//
// The service has a control API below /control. A test in any language can use it
// to start orders with faults, advance the clock and wait. See docs/control.md.
//
// # Stores
//
// Package storetest tests a [ramp.Store] of your own, without a service.
//
// The service signs with the same code that a game uses to verify. Where the
// interface does not say what the service does, a documented field of [Config]
// sets it.
package ramptest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/clock"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/route"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
)

// Start starts a service and closes it when the test ends. It fails the test, and logs the timeline, if
// the game has lost assets or moved them twice, if an order needs attention, or if it is unknown what the
// game moved. It also fails a test that has not failed otherwise if a [Fault] of an approved order had no
// effect, see [Perhaps], and if the game lists assets to a thief, see [Config.NoThief]. With
// [BooksReport] it only logs all of this, and with [BooksOff] it says nothing of it. Orders whose result
// was never sent or whose last answer was lost by a fault, and pending transactions, do not fail the
// test.
func Start(t testing.TB, config Config) *Service {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if config.Closed {
			s.audit.Sweep(s.life.Alive)
		}
		var stolen, unasked []string
		done := !t.Failed() && !t.Skipped() // a test that has stopped has not done all that it means to
		if done {
			stolen, unasked = s.game.thefts(s.life.Alive)
		}
		s.Close()
		said := s.report()
		if done {
			said = lines(append([]string{said, s.orders.missed(), s.notClosed()}, stolen...)...)
		}
		switch {
		case said == "" || config.Books == BooksOff:
		case config.Books == BooksFail:
			t.Error(said)
		default:
			t.Log(said)
		}
		if aside := lines(append(unasked, s.asides())...); aside != "" {
			t.Log(aside)
		}
		if t.Failed() {
			t.Log(s.Timeline())
		}
	})
	return s
}

// New starts a service. Close it when it is no longer needed.
func New(config Config) (*Service, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	epoch := config.Epoch
	if config.Desk.State != nil {
		var err error
		if config.Epoch, err = config.Desk.State.file.Epoch(config.Desk.Speed, epoch); err != nil {
			return nil, fmt.Errorf("ramptest: state: %w", err)
		}
	}
	config.setDefaults()
	s := &Service{mux: http.NewServeMux(), run: rand.Text()[:8], transport: &http.Transport{},
		shared: shared{config: &config, life: life.New(), secrets: secretsOf(&config)}}
	s.wire()
	if s.keeper != nil {
		err := s.keeper.restore()
		if err == nil {
			s.run, err = config.Desk.State.file.Kept("run", s.run)
		}
		if err != nil {
			return nil, err
		}
		s.clock.Epoch = epoch // it starts where the other one was only once
	}
	switch {
	case config.Handler != nil:
		s.SetHandler(config.Handler)
	case config.Game != "":
		client := config.Client
		if client == nil {
			client = &http.Client{Transport: s.transport}
		}
		s.game.reach(config.Game, *client)
	}
	if err := s.listen(); err != nil {
		s.life.Close()
		return nil, err
	}
	if s.keeper != nil {
		s.keeper.flush()
		s.life.Busy.Run(s.keeper.run)
	}
	if config.Desk.Speed > 0 {
		s.life.Busy.Run(s.orders.run)
	}
	return s, nil
}

// wire creates the parts of the service and connects them.
func (s *Service) wire() {
	c := s.config
	s.clock = clock.New(c.Desk.Speed, c.Epoch)
	var file *statefile.File
	if c.Desk.State != nil {
		s.changes, file = newChanges(), c.Desk.State.file
	}
	s.history = history.New(s.clock.Now(), file, c.Desk.OnEvent)
	s.guard = &desk.Guard{Token: c.Desk.ControlToken}
	s.game = &game{shared: s.shared, readings: readings{mu: locks.At(locks.Readings)},
		failing: newFailures[AssetsFailure]()}
	s.audit = s.newAudit(s.game.owned)
	s.game.audit = s.audit // which asks it
	chains := make(map[ramp.Network]*chain.Chain)
	s.orders = &orders{shared: s.shared, game: s.game, chains: chains,
		agenda: newAgenda(), turn: locks.At(locks.Turn), mu: locks.At(locks.Orders),
		issued: make(map[uuid.UUID]*issued), placed: make(map[uuid.UUID]*Order)}
	for network, id := range c.Networks {
		chains[network] = chain.New(chain.Config{Name: string(network), ID: id, BlockTime: c.BlockTime,
			Now: s.clock.Now, Tokens: chain.Units(*c.Tokens, c.Decimals), Decimals: c.Decimals,
			Service: serviceAccount(), Tracked: c.Desk.State != nil,
			Submitted: func(tx *chain.Transaction) { s.orders.submitted(network, tx) }})
	}
	if c.Desk.State != nil {
		s.keeper = &keeper{shared: s.shared, file: file, orders: s.orders,
			writing: locks.At(locks.Writing)}
	}
	s.console = &console{shared: s.shared, orders: s.orders, failing: newFailures[InitializeFailure]()}
	s.node = &node{shared: s.shared, chains: chains, failing: newFailures[int]()}
	calls := new(route.Table)
	calls.Handle("POST /api/v2/initialize", s.console)
	calls.Handle("POST /rpc/{network}", s.node)
	s.mux.Handle("/api/v2/initialize", calls)
	s.mux.Handle("/rpc/", calls)
	driven := &remote{s}
	api := driven.handler()
	front := &frontDesk{remote: driven, listed: entries{mu: locks.At(locks.List)}, probing: newProbing()}
	s.pages = desk.Serve(c.Desk.Pages, front, s.guard)
	s.mux.HandleFunc("/", s.servePage)
	s.mux.Handle("/control", api)
	s.mux.Handle("/control/", api)
}

// listen starts the HTTP server, unless the service is in memory.
func (s *Service) listen() error {
	listener := s.config.Desk.Listener
	public := strings.TrimRight(s.config.Desk.PublicURL, "/")
	s.guard.URL = cmp.Or(public, desk.MemoryURL)
	if listener == nil {
		if s.config.Game == "" {
			return nil
		}
		var err error
		if listener, err = loopback.Listen(); err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
	}
	if s.guard.URL = public; public == "" {
		at, err := loopback.Address(listener)
		if err != nil {
			return fmt.Errorf("ramptest: %w", err)
		}
		s.guard.URL = "http://" + at
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
	s.life.Busy.Run(func() { _ = s.server.Serve(listener) }) // until it is shut down
	return nil
}
