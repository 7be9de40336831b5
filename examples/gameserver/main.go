// To make it yours: read the keys from your secret store in keys; examples/keys has signers for a validator
// key in an HSM or in AWS KMS. Remove warn once nothing in it applies.

// Gameserver is a small game server with a token ramp that is ready to deploy. It
// keeps players and their items in a SQL database and applies every order exactly
// once.
//
//	go -C examples/gameserver run . # SQLite, and an emulated service in this process
//	go -C examples/gameserver run . migrate -db postgres://owner@host/game
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… go -C examples/gameserver run . \
//		-db postgres://user@host/game -project … -token 0x… -network testnet
//
// To make it your own, copy the folder out of the repository or with
// gonew github.com/token-ramp/ramp-go/examples/gameserver, and run there
//
//	go mod edit -dropreplace github.com/token-ramp/ramp-go && go mod tidy
//
// Before you start a new version, create the tables and indexes that it needs, as a user who
// may create them. The server's user needs SELECT, INSERT and UPDATE only.
//
//	gameserver migrate -db …
//
// To inspect orders whose result does not arrive, to end them, and to compare the books
// with the chain, use
//
//	gameserver orders list|find|count|conflicts|resolve|decisions|missing|show|finish|abandon|prune|erase
//	gameserver orders decide|entries
//	gameserver reconcile
//
// To decline every new order on every server, and still take results, use
//
//	gameserver shop close|open
//
// The server prints one line to standard output when it is ready, and logs JSON to
// standard error. It reads secrets and URLs from the environment:
//
//	RAMP_HMAC_KEY           the HMAC key of the console; without it, a service is emulated
//	RAMP_HMAC_KEY_PREVIOUS  an older key that is still accepted; set it while you rotate keys
//	RAMP_HMAC_KEY_ENCODING  encoding of both keys: text (the default) or base64url
//	RAMP_VALIDATOR_KEY      the validator key, in hex
//	RAMP_API_URL            URL of the service's API, which issues UUIDs for /exchange
//	RAMP_FRONTEND_URL       URL of the service's pages
//	RAMP_RPC_URL            URL of a node that confirms every result; requires -chain-id and -payers
//
// It also reads flags that the arguments do not set, such as -chain-id from RAMP_CHAIN_ID: -help names the
// variable of each.
//
// The first lines of each file say what you change in it. main.go puts the server together, serve.go
// stops it without losing a result, settings.go has the flags, game.go, swords.go and mailbox.go are
// the game and what it sells, api.go serves its client, pages.go has the tokens of its pages,
// database.go opens the database, migrate.go creates its tables, orders.go, shop.go and findings.go
// have the commands and what a person closes, metrics.go the metrics, log.go the log, bodies.go the
// memory of bodies, caps.go what may leave the game, erase.go what is known of a player,
// journal.go what persons decide about the books, and emulator.go is for trying it.
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
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/support"
)

func main() {
	// The first signal stops the server gracefully. A second one kills it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "gameserver:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// errUsage is wrapped by errors in the arguments.
var errUsage = errors.New("see -help")

// byEnvironment returns the variable that sets a flag, or "". What decides about an order, or switches a
// check off, is said in the arguments only.
func byEnvironment(name string) string {
	switch name {
	case "db", "connections", "project", "network", "token", "sword-token", "chain-id",
		"confirmations", "payers",
		"contracts", "decimals", "cap", "addr", "drain", "metrics", "books":
		return "RAMP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	}
	return ""
}

// parse reads the arguments, and from the environment what they do not set.
func parse(flags *flag.FlagSet, args []string, getenv func(string) string) error {
	flags.VisitAll(func(f *flag.Flag) {
		if variable := byEnvironment(f.Name); variable != "" {
			f.Usage += " [" + variable + "]"
		}
	})
	err := flags.Parse(args)
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	flags.VisitAll(func(f *flag.Flag) {
		variable := byEnvironment(f.Name)
		if err != nil || variable == "" || set[f.Name] || getenv(variable) == "" {
			return
		}
		if failed := f.Value.Set(getenv(variable)); failed != nil {
			err = fmt.Errorf("%s: %w", variable, failed)
		}
	})
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		err = fmt.Errorf("%w: %w", err, errUsage)
	}
	return err
}

// run serves until ctx is done and then lets the calls in progress finish. If the
// first argument is "orders" or "reconcile", it runs that command instead.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	switch {
	case len(args) > 1 && (args[0] == "orders" || args[0] == "shop") && !strings.HasPrefix(args[1], "-"):
		return orders(ctx, args[1], args[2:], getenv, stdout, stderr)
	case len(args) > 0 && (args[0] == "reconcile" || args[0] == "migrate"):
		return orders(ctx, args[0], args[1:], getenv, stdout, stderr)
	}
	p, err := newProgram(args, getenv, stderr)
	if err != nil {
		return err
	}
	p.stdout, p.stderr = stdout, stderr
	if p.game, p.store, err = p.settings.open(ctx, p.emulated ||
		strings.HasPrefix(p.settings.database, "sqlite:")); err != nil {
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
			"the chain every hour;\nset it on one server only")
	if err := parse(flags, args, getenv); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil,
			fmt.Errorf("there is no command %q: use orders list|find|count|conflicts|resolve|decisions|"+
				"missing|show|finish|abandon|decide|entries|prune|erase, shop close|open, migrate, or "+
				"reconcile: %w",
				flags.Arg(0), errUsage)
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
	desk, err := p.settings.desk(p.game, p.store, p.proof, p.log)
	if err != nil {
		return err
	}
	count := countBooks(p.registry)
	go desk.KeepBooks(ctx, p.books, func(ctx context.Context, books *support.Reconciliation) error {
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
	server := &api{game: p.game, log: p.log, emulated: p.emulated, frontend: p.getenv("RAMP_FRONTEND_URL"),
		project: p.settings.project, network: p.settings.network}
	apiURL := p.getenv("RAMP_API_URL")
	if p.emulated {
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
	p.log.Info("serving", "address", listener.Addr().String(), "database", string(p.game.dialect),
		"emulated", p.emulated, "validator", p.signer.Address()) // the address to register in the console
	warn(p.log, p.settings, p.emulated, p.getenv("RAMP_HMAC_KEY_PREVIOUS") != "")
	fmt.Fprintf(p.stdout, "ready on http://%s with %s\n", listener.Addr(), p.game.dialect)
	return serve(ctx, listener, server.routes(handler), p.log, p.drain,
		func() { server.stopping.Store(true) })
}

// keys reads the HMAC key and the validator key.
func keys(getenv func(string) string) (key ramp.HMACKey, signer *ramp.Signer, err error) {
	read := ramp.TextKey
	switch getenv("RAMP_HMAC_KEY_ENCODING") {
	case "", "text":
	case "base64url":
		read = ramp.Base64URLKey
	default:
		return key, nil, errors.New("RAMP_HMAC_KEY_ENCODING must be text or base64url")
	}
	if key, err = read(getenv("RAMP_HMAC_KEY")); err != nil {
		return key, nil, fmt.Errorf("RAMP_HMAC_KEY: %w", err)
	}
	if previous := getenv("RAMP_HMAC_KEY_PREVIOUS"); previous != "" {
		older, err := read(previous)
		if err != nil {
			return key, nil, fmt.Errorf("RAMP_HMAC_KEY_PREVIOUS: %w", err)
		}
		key = key.WithPrevious(older)
	}
	if signer, err = ramp.NewKeySigner(getenv("RAMP_VALIDATOR_KEY")); err != nil {
		return key, nil, fmt.Errorf("RAMP_VALIDATOR_KEY: %w", err)
	}
	return key, signer, nil
}

// warn logs which settings are unsafe. The server starts despite them, but should not be
// used by players.
func warn(log *slog.Logger, s *settings, emulated, previousKey bool) {
	for _, setting := range []struct {
		unsafe bool
		text   string
	}{
		{emulated, "the service is emulated with generated keys: set RAMP_HMAC_KEY and RAMP_VALIDATOR_KEY"},
		{!emulated, "anyone can log in as any player, without a password: replace login"},
		{!emulated && s.chainID == 0,
			"results are not confirmed on the chain: set RAMP_RPC_URL, -chain-id and -payers"},
		{s.anyFailure, "-any-failure lets any failed transaction give back a mint: set -payers"},
		{!emulated && len(s.caps) == 0, "nothing limits what leaves the game in an hour: set -cap"},
		{s.anyRate, "-any-rate approves every rate"},
		{s.anyPage, "-any-page accepts the token of the login for any order"},
		{previousKey,
			"the key in RAMP_HMAC_KEY_PREVIOUS is accepted too: remove it when the rotation is over"},
	} {
		if setting.unsafe {
			log.Warn("unsafe: " + setting.text)
		}
	}
}
