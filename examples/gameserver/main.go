// To make it yours: read the keys from your secret store in keys; examples/keys has signers for a validator
// key in an HSM or in AWS KMS. Remove warn once nothing in it applies.

// Gameserver is a small game server with a token ramp that is ready to deploy. It
// keeps players and their items in a SQL database and applies every order exactly
// once.
//
//	go -C examples/gameserver run .                            # SQLite, and an emulated service in this process
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
	case "db", "connections", "project", "network", "token", "sword-token", "chain-id", "confirmations", "payers",
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
	flags := flag.NewFlagSet("gameserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := newSettings(flags)
	addr := flags.String("addr", "127.0.0.1:8080", "`address` to serve on")
	drain := flags.Duration("drain", 0, "how long to keep serving after a stop signal while /readyz fails; set a `duration`\n"+
		"longer than a load balancer takes to notice")
	scraped := flags.String("metrics", "", "`address` to serve metrics for Prometheus on, apart from -addr; empty means none")
	books := flags.String("books", "", "`file` with the position of the books, which are then compared with the chain every hour;\n"+
		"set it on one server only")
	if err := parse(flags, args, getenv); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("there is no command %q: use orders list|find|count|conflicts|resolve|decisions|"+
			"missing|show|finish|abandon|decide|entries|prune|erase, shop close|open, migrate, or reconcile: %w",
			flags.Arg(0), errUsage)
	}
	log, queue := newLog(stderr, logRecords)

	emulated := getenv("RAMP_HMAC_KEY") == ""
	if emulated {
		getenv = s.emulate(getenv)
	}
	key, signer, err := keys(getenv)
	if err != nil {
		return err
	}
	if s.token == (common.Address{}) {
		return errors.New("-token is required, because RAMP_HMAC_KEY is set")
	}
	terms, err := s.terms()
	if err != nil {
		return fmt.Errorf("-network and -project: %w", err)
	}
	game, store, err := s.open(ctx, emulated || strings.HasPrefix(s.database, "sqlite:"))
	if err != nil {
		return err
	}
	defer game.db.Close()

	registry := prometheus.NewRegistry()
	observer := newMetrics(registry)
	observer.End = game.keepingConflicts(observer.End, log)
	queue.observe(registry)
	countWaiting(registry, store.CountWaiting)
	countRefused(registry, store.CountRefused)
	game.observe(registry)
	game.observeCaps(registry)
	if *scraped != "" {
		metrics, err := serveMetrics(*scraped, registry)
		if err != nil {
			return err
		}
		defer metrics.Close()
	}
	config := ramp.HandlerConfig{
		Players: game, Store: store, Terms: terms, Key: key, Signer: signer,
		Logger: log, Observer: observer, Wallet: game.bindWallet,
		OnConflict: func(ctx context.Context, conflict *ramp.ConflictError, r *ramp.Result) error {
			// Alert a person here, or at least make sure that someone reads this log.
			log.ErrorContext(ctx, "a result contradicts its order: check the transaction on the chain",
				"uuid", r.UUID, "state", conflict.Order.State, "differs", conflict.Field, "tx_hash", r.TxHash)
			return game.keepConflict(ctx, r.UUID, conflict, r.TxHash) // gameserver orders conflicts lists it
		},
		Policy: func(ctx context.Context, session ramp.Session, r *ramp.ValidateRequest) error {
			return cmp.Or(s.policy(ctx, session, r), game.checkPage(ctx, session, r))
		},
	}
	proof, err := s.proof(getenv("RAMP_RPC_URL"), log, observer)
	if err != nil {
		return err
	}
	if proof != nil {
		config.Confirm = proof
		watchNode(registry, proof.Config().Chain)
	}
	handler, err := ramp.NewHandler(config)
	if err != nil {
		return err
	}
	// What would show when a player has paid. A node that cannot be reached is only logged.
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := handler.Check(soon); err != nil {
		return err
	}
	if proof != nil {
		checkClock(soon, getenv("RAMP_RPC_URL"), log)
	}
	if *books != "" {
		if proof == nil {
			return errors.New("-books needs RAMP_RPC_URL and -chain-id")
		}
		desk, err := s.desk(game, store, proof, log)
		if err != nil {
			return err
		}
		count := countBooks(registry)
		go desk.KeepBooks(ctx, *books, func(ctx context.Context, books *support.Reconciliation) error {
			err := game.keepFindings(ctx, books)
			if err == nil {
				count(books)
			}
			return err
		})
	}

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	server := &api{game: game, log: log, emulated: emulated, frontend: getenv("RAMP_FRONTEND_URL"),
		project: s.project, network: s.network}
	apiURL := getenv("RAMP_API_URL")
	if emulated {
		emulator, err := startEmulator(key, signer, "http://"+listener.Addr().String(), s.project)
		if err != nil {
			return err
		}
		defer emulator.Close()
		server.frontend, apiURL = cmp.Or(server.frontend, emulator.URL()), emulator.URL()
		fmt.Fprintf(stderr, usage, listener.Addr(), apiURL)
	}
	if apiURL != "" && server.frontend != "" {
		if server.client, err = ramp.NewClient(ramp.ClientConfig{URL: apiURL, Key: key, Terms: terms, Logger: log, Observer: observer}); err != nil {
			return err
		}
	}
	log.Info("serving", "address", listener.Addr().String(), "database", string(game.dialect), "emulated", emulated,
		"validator", signer.Address()) // the address to register in the console
	warn(log, s, emulated, getenv("RAMP_HMAC_KEY_PREVIOUS") != "")
	fmt.Fprintf(stdout, "ready on http://%s with %s\n", listener.Addr(), game.dialect)
	return serve(ctx, listener, server.routes(handler), log, *drain, func() { server.stopping.Store(true) })
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
		{!emulated && s.chainID == 0, "results are not confirmed on the chain: set RAMP_RPC_URL, -chain-id and -payers"},
		{s.anyFailure, "-any-failure lets any failed transaction give back a mint: set -payers"},
		{!emulated && len(s.caps) == 0, "nothing limits what leaves the game in an hour: set -cap"},
		{s.anyRate, "-any-rate approves every rate"},
		{s.anyPage, "-any-page accepts the token of the login for any order"},
		{previousKey, "the key in RAMP_HMAC_KEY_PREVIOUS is accepted too: remove it when the rotation is over"},
	} {
		if setting.unsafe {
			log.Warn("unsafe: " + setting.text)
		}
	}
}
