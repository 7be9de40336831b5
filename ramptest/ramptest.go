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
// [Standalone.Speed] makes it run.
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
// the game loses assets or moves them twice. See [Audit].
//
// # Half of a session
//
// The service asks the game for assets as a thief would, with half of each session that the game has
// accepted, and [Start] fails the test if the game lists some, or could not be asked. See
// [Config.NoThief].
//
// # What happened
//
// Every exchange is recorded without its secrets: [Service.Events] and
// [Service.Timeline]. A failing test shows what it found, with the events of these orders.
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
	"net/http"
	"testing"

	"github.com/token-ramp/ramp-go/ramptest/internal/api"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/view"
)

// Start starts a service and closes it when the test ends. It fails the test, and shows what happened to
// the orders in question, if the game has lost assets or moved them twice, if an order needs attention, or
// if it is unknown what the game moved. It also fails a test that has not failed otherwise if a [Fault] of
// an approved order had no effect, see [Perhaps], if the game lists assets to a thief or could not be
// asked, see [Config.NoThief], and if it was not asked about the end of an order, see [Config.Incomplete].
// With [AuditReport] it only logs all of this, and with [AuditOff] it says nothing of it.
func Start(t testing.TB, config Config) *Service {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	talk := talkOf(t)
	t.Cleanup(func() {
		if config.Closed {
			s.service.Audit.Sweep(s.service.Life.Alive)
		}
		var stolen []string
		done := !t.Failed() && !t.Skipped() // a test that has stopped has not done all that it means to
		if done {
			stolen = s.service.Game.Thefts(s.service.Life.Alive)
		}
		s.Close()
		said := s.service.Report()
		if done {
			said = text.Lines(append([]string{said, s.service.Shortfalls()}, stolen...)...)
		}
		switch {
		case said == "" || config.Audit == AuditOff:
		case config.Audit == AuditFail:
			t.Error(s.service.Failure(said)) // in one call: that of Ginkgo does not return
			return
		default:
			t.Log(said)
		}
		if t.Failed() && !talk.tells() {
			return
		}
		if aside := s.service.Asides(); aside != "" {
			t.Log(aside)
		}
		if t.Failed() {
			t.Log(s.service.Recent())
		}
	})
	return s
}

// New starts a service for a program, or for a test without a [testing.TB]. Call [Service.Check] when the
// test has done all that it means to, and then [Service.Close]: without Check, nothing is asked like a thief,
// and no finding fails anything.
func New(config Config) (*Service, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config.setDefaults()
	service, err := emulator.New(config.emulator())
	if err != nil {
		return nil, err
	}
	controlled := api.Of(service)
	s := &Service{service: service, pages: frontend.Serve(config.Standalone.Pages,
		view.Of(service, controlled), service.Guard)}
	handler := api.Handler(controlled, service.Guard.Control, config.MaxBody)
	service.Handle("/control", handler)
	service.Handle("/control/", handler)
	service.Handle("/", http.HandlerFunc(s.servePage))
	if config.Handler != nil {
		s.SetHandler(config.Handler)
	}
	if err := service.Serve(); err != nil {
		return nil, err
	}
	return s, nil
}
