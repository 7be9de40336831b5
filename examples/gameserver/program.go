// To make it yours: set what your game has otherwise, such as its own log. OnConflict is where a person
// is called.

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
)

// serveGame serves until ctx is done.
func serveGame(
	ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer,
) error {
	p, err := newProgram(args, getenv, stderr)
	if err != nil {
		return err
	}
	p.stdout, p.stderr = stdout, stderr
	if p.game, p.store, err = p.settings.open(ctx, p.emulated || p.settings.inFile()); err != nil {
		return err
	}
	defer p.game.db.Close()
	p.observe()
	if p.scraped != "" {
		metrics, err := serveMetrics(p.scraped, p.registry)
		if err != nil {
			return err
		}
		defer metrics.Close()
	}
	handler, err := p.newHandler(ctx)
	if err != nil {
		return err
	}
	if p.books != "" {
		if err := p.keepBooks(ctx); err != nil {
			return err
		}
	}
	return p.listen(ctx, handler)
}

// program is the server while it is put together.
type program struct {
	settings             *settings
	addr, scraped, books string
	drain                time.Duration
	getenv               func(string) string
	emulated             bool // there is no service: the program emulates one
	stdout, stderr       io.Writer

	log      *slog.Logger
	queue    *logQueue
	key      ramp.HMACKey
	signer   *ramp.Signer
	terms    *ramp.Terms
	game     *game
	store    *rampsql.Store
	registry *prometheus.Registry
	observer ramp.Observer
	proof    *rampproof.Proof // nil without a node
}

// newProgram reads the arguments and the environment.
func newProgram(args []string, getenv func(string) string, stderr io.Writer) (*program, error) {
	flags := flag.NewFlagSet("gameserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	p := &program{settings: newSettings(flags), getenv: getenv, emulated: getenv("RAMP_HMAC_KEY") == ""}
	flags.StringVar(&p.addr, "addr", "127.0.0.1:8080", "`address` to serve on")
	flags.DurationVar(&p.drain, "drain", 0,
		"how long to keep serving after a stop signal while /readyz fails; "+
			"set a `duration`\nlonger than a load balancer takes to notice")
	flags.StringVar(&p.scraped, "metrics", "",
		"`address` to serve metrics for Prometheus on, apart from -addr; "+
			"empty means none")
	flags.StringVar(&p.books, "books", "",
		"`file` with the position of the books, which are then compared with "+
			"the chain every hour;\neach server that has it needs a file of its own")
	if err := parse(flags, args, getenv); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil,
			fmt.Errorf("there is no command %q: use orders list|find|count|conflicts|resolve|decisions|"+
				"missing|restore|show|finish|abandon|decide|entries|prune|erase, shop close|open, migrate, "+
				"or reconcile: %w",
				flags.Arg(0), errUsage)
	}
	s := p.settings
	if s.chainID == 0 && (len(s.payers)+len(s.contracts) > 0 || s.anyFailure || s.decimals >= 0) {
		return nil, errors.New("-payers, -contracts, -any-failure and -decimals mean nothing without " +
			"RAMP_RPC_URL and -chain-id")
	}
	p.log, p.queue = newLog(stderr, logRecords)
	if p.emulated {
		p.getenv = p.settings.emulate(getenv)
	}
	var err error
	if p.key, p.signer, err = keys(p.getenv); err != nil {
		return nil, err
	}
	if p.settings.token == (common.Address{}) {
		return nil, errors.New("-token is required, because RAMP_HMAC_KEY is set")
	}
	if p.terms, err = p.settings.terms(); err != nil {
		return nil, fmt.Errorf("-network and -project: %w", err)
	}
	return p, nil
}

// observe makes the metrics.
func (p *program) observe() {
	p.registry = prometheus.NewRegistry()
	p.observer = newMetrics(p.registry)
	p.observer.End = p.game.keepingConflicts(p.observer.End, p.log)
	p.queue.observe(p.registry)
	countWaiting(p.registry, p.store.CountWaiting)
	countRefused(p.registry, p.store.CountRefused)
	p.game.observe(p.registry)
	p.game.observeCaps(p.registry)
}

// newHandler returns what answers the service, once it has found nothing that would show when a
// player has paid.
func (p *program) newHandler(ctx context.Context) (*ramp.Handler, error) {
	config := ramp.HandlerConfig{
		Players: p.game, Store: p.store, Terms: p.terms, Key: p.key, Signer: p.signer,
		Logger: p.log, Observer: p.observer, Wallet: p.game.bindWallet,
		OnConflict: func(ctx context.Context, conflict *ramp.ConflictError, r *ramp.Result) error {
			// Alert a person here, or at least make sure that someone reads this log.
			p.log.ErrorContext(ctx, "a result contradicts its order: check the transaction on the chain",
				"uuid", r.UUID, "state", conflict.Order.State, "differs", conflict.Field, "tx_hash", r.TxHash)
			// gameserver orders conflicts lists it
			return p.game.keepConflict(ctx, r.UUID, conflict, r.TxHash)
		},
		Policy: func(ctx context.Context, session ramp.Session, r *ramp.ValidateRequest) error {
			return cmp.Or(p.settings.policy(ctx, session, r), p.game.checkPage(ctx, session, r))
		},
	}
	url := p.getenv("RAMP_RPC_URL")
	var err error
	if p.proof, err = p.settings.proof(url, p.log, p.observer); err != nil {
		return nil, err
	}
	if p.proof != nil {
		config.Confirm = p.proof
		watchNode(p.registry, p.proof.Config().Chain)
	}
	handler, err := ramp.NewHandler(config)
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := handler.Check(soon); err != nil { // a node that cannot be reached is only logged
		return nil, err
	}
	if p.proof != nil {
		checkClock(soon, url, p.log)
	}
	return handler, nil
}

// keepBooks compares the orders with the chain every hour, until ctx is done.
func (p *program) keepBooks(ctx context.Context) error {
	if p.proof == nil {
		return errors.New("-books needs RAMP_RPC_URL and -chain-id")
	}
	reconciler, err := p.settings.reconciler(p.game, p.store, p.proof, p.log)
	if err != nil {
		return err
	}
	count := countBooks(p.registry)
	position := rampbooks.PositionFile(p.books)
	go reconciler.KeepBooks(ctx, position, func(ctx context.Context, books *rampbooks.Reconciliation) error {
		err := p.game.keepFindings(ctx, books)
		if err == nil {
			count(books)
		}
		return err
	})
	return nil
}

// listen serves until ctx is done.
func (p *program) listen(ctx context.Context, handler *ramp.Handler) error {
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	server := &api{game: p.game, log: p.log, frontend: p.getenv("RAMP_FRONTEND_URL"),
		project: p.settings.project, network: p.settings.network}
	apiURL := p.getenv("RAMP_API_URL")
	routes := server.routes(handler)
	if p.emulated {
		routes = withPlay(server, routes)
		emulator, err := startEmulator(p.key, p.signer, "http://"+listener.Addr().String(),
			p.settings.project)
		if err != nil {
			return err
		}
		defer emulator.Close()
		server.frontend, apiURL = cmp.Or(server.frontend, emulator.URL()), emulator.URL()
		fmt.Fprintf(p.stderr, usage, listener.Addr(), apiURL)
	}
	if apiURL != "" && server.frontend != "" {
		server.client, err = ramp.NewClient(ramp.ClientConfig{URL: apiURL, Key: p.key, Terms: p.terms,
			Logger: p.log, Observer: p.observer})
		if err != nil {
			return err
		}
	}
	p.log.Info("serving", "address", listener.Addr().String(), "database", string(p.game.dialect.sql),
		"emulated", p.emulated, "validator", p.signer.Address()) // the address to register in the console
	warn(p.log, p.settings, p.emulated, p.getenv("RAMP_HMAC_KEY_PREVIOUS") != "")
	fmt.Fprintf(p.stdout, "ready on http://%s with %s\n", listener.Addr(), p.game.dialect.sql)
	return serve(ctx, listener, routes, p.log, p.drain,
		func() { server.stopping.Store(true) })
}
