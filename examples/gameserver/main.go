// Gameserver is a small game server with a token ramp that is ready to deploy. It
// keeps players and their items in a SQL database and applies every order exactly
// once.
//
//	go -C examples/gameserver run .                            # SQLite, and an emulated service in this process
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… go -C examples/gameserver run . \
//		-db postgres://user@host/game -project … -token 0x… -network testnet
//
// To make it your own, copy the folder out of the repository, and run there
//
//	go mod edit -dropreplace github.com/token-ramp/ramp-go && go mod tidy
//
// The flags set what is sold: the token contracts, their network, and how many items one
// token is worth. A player chooses a product, and nothing else that a player sends
// matters.
//
// To inspect orders whose result does not arrive, and to end them, use
//
//	gameserver orders list|conflicts|missing|show|finish|abandon
//
// To compare the books with the chain, use
//
//	gameserver reconcile
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
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
)

func main() {
	// The first signal stops the server gracefully. A second one kills it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "gameserver:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gameserver:", err)
		os.Exit(1)
	}
}

// usageError is an error of the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// parse parses the flags of a command that takes a number of arguments.
func parse(flags *flag.FlagSet, args []string, count int) error {
	if len(args) > 0 && args[0] == "help" {
		args = []string{"-help"}
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil: // it has been printed
		return usageError("see gameserver help")
	case flags.NArg() > count:
		return usageError(fmt.Sprintf("there is no command or argument %q; see gameserver help", flags.Arg(count)))
	case flags.NArg() < count:
		return usageError("an argument is missing; see gameserver help")
	default:
		return nil
	}
}

// run serves until ctx is done and then lets the calls in progress finish. If the
// first argument is "orders" or "reconcile", it runs that command instead.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "orders" {
		return orders(ctx, args[1:], getenv, stdout, stderr)
	}
	if len(args) > 0 && args[0] == "reconcile" {
		return reconcile(ctx, args[1:], getenv, stdout, stderr)
	}
	flags := flag.NewFlagSet("gameserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: gameserver [flags]\n"+
			"       gameserver orders list|conflicts|missing|show|finish|abandon …\n"+
			"       gameserver reconcile [flags]\n\n"+
			"Serves a game with a token ramp. Keys and URLs come from the environment, and are\n"+
			"listed at the top of main.go. Without RAMP_HMAC_KEY, the service is emulated.\n\nFlags:\n")
		flags.PrintDefaults()
	}
	addr := flags.String("addr", "127.0.0.1:8080", "`address` to serve on")
	address := flags.String("db", "sqlite:gameserver.db", "`database`: sqlite:PATH, postgres://… or mysql://…")
	var s sold
	s.add(flags)
	drain := flags.Duration("drain", 0, "how long to keep serving after a stop signal while /readyz fails; set a `duration`\n"+
		"longer than a load balancer takes to notice")
	scraped := flags.String("metrics", "", "`address` to serve metrics for Prometheus on, apart from -addr; empty means none")
	books := flags.String("books", "", "`file` with the position of the books, which are then compared with the chain every hour;\n"+
		"set it on one server only")
	var c chainFlags
	c.add(flags)
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))

	emulated := getenv("RAMP_HMAC_KEY") == ""
	key, signer, err := keys(getenv, emulated)
	if err != nil {
		return err
	}
	if emulated {
		s.token, s.network = cmp.Or(s.token, emulatedToken), cmp.Or(s.network, string(emulatedNetwork))
		s.swordToken = cmp.Or(s.swordToken, emulatedSwordToken)
	}
	terms, err := s.terms()
	if err != nil {
		return err
	}

	db, dialect, err := openDatabase(*address)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate(ctx, db, dialect); err != nil {
		return err
	}

	game := &game{db: db, dialect: dialect}
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: dialect, Apply: game.Apply, Retries: 3, Retryable: raced})
	if err != nil {
		return err
	}
	if err := store.Check(ctx); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	observer := newMetrics(registry)
	countWaiting(registry, store.CountWaiting)
	if *scraped != "" {
		metrics, err := serveMetrics(*scraped, registry)
		if err != nil {
			return err
		}
		defer metrics.Close()
	}
	config := ramp.HandlerConfig{
		Players: game, Store: store, Terms: terms.accepted(), Policy: terms.policy, Key: key, Signer: signer, ProjectID: s.project, Logger: log, Observer: observer,
		OnConflict: func(ctx context.Context, conflict *ramp.ConflictError, r *ramp.Result) error {
			// Alert a person here, or at least make sure that someone reads this log.
			log.ErrorContext(ctx, "a result contradicts its order: check the transaction on the chain",
				"uuid", r.UUID, "state", conflict.Order.State, "differs", conflict.Field, "tx_hash", r.TxHash)
			return game.keep(ctx, conflict, r) // gameserver orders conflicts lists it
		},
	}
	if config.Chain, err = openChain(ctx, getenv("RAMP_RPC_URL"), c.id, log, observer); err != nil {
		return err
	}
	if config.Chain != nil {
		config.Confirmations = c.confirmations
		erc20 := common.HexToAddress(s.token) // that of swords is an NFT, and has no decimals
		if config.Proof, err = c.proof(ctx, config.Chain, &erc20); err != nil {
			return err
		}
	}
	if *books != "" {
		if config.Chain == nil {
			return usageError("-books needs RAMP_RPC_URL and -chain-id")
		}
		keeper, err := newBookkeeper(ctx, store, config.Chain, c, terms, s.project, *books, log)
		if err != nil {
			return err
		}
		countFindings(registry, keeper.findings)
		keeping, stop := context.WithCancel(ctx)
		kept := make(chan struct{})
		go func() { defer close(kept); keeper.keep(keeping) }()
		defer func() { stop(); <-kept }()
	}
	handler, err := ramp.NewHandler(config)
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	server := &api{game: game, network: terms.network, store: store, log: log, project: s.project, frontend: getenv("RAMP_FRONTEND_URL")}
	apiURL := getenv("RAMP_API_URL")
	if emulated {
		emulator, err := startEmulator(key, signer, "http://"+reachable(listener.Addr()), s.project)
		if err != nil {
			return err
		}
		defer emulator.Close()
		server.emulated = true
		server.project = cmp.Or(s.project, "gameserver")
		server.frontend, apiURL = cmp.Or(server.frontend, emulator.URL()), emulator.URL()
	}
	if apiURL != "" {
		if server.client, err = ramp.NewClient(ramp.ClientConfig{URL: apiURL, Key: key, Terms: terms.sold, Logger: log, Observer: observer}); err != nil {
			return err
		}
	}

	log.Info("serving", "address", listener.Addr().String(), "database", dialect.String(), "emulated", emulated,
		"validator", signer.Address()) // the address to register in the console
	for _, text := range warnings(listener.Addr(), *address, s.project, terms, config.Proof, emulated) {
		log.Warn("unsafe: " + text)
	}
	if getenv("RAMP_HMAC_KEY_PREVIOUS") != "" && !emulated {
		log.Warn("the key in RAMP_HMAC_KEY_PREVIOUS is accepted too: remove it when the rotation is over")
	}
	if emulated {
		fmt.Fprintf(stderr, usage, reachable(listener.Addr()), apiURL, terms.recipe)
	}
	fmt.Fprintf(stdout, "ready on http://%s with %s\n", reachable(listener.Addr()), describe(*address))

	return serve(ctx, listener, server.routes(handler), log, *drain, server.stop)
}

// usage explains what to do with the emulated service.
const usage = `
RAMP_HMAC_KEY is not set, so a token ramp is emulated at %[2]s. Open

  http://%[1]s/play?player=alice

to mint and burn as a player. %[3]s are worth one token.
With &product=sword, a sword is worth one token of another contract.
Or make the calls of a game's client:

  curl -s http://%[1]s/login -d '{"player":"alice"}'
  curl -s http://%[1]s/exchange -d '{"sessionId":"…","accessToken":"…"}'

`

// keys reads the HMAC key and the validator key. If the service is emulated, it
// generates the HMAC key, and the validator key unless one is set.
func keys(getenv func(string) string, emulated bool) (key ramp.HMACKey, signer *ramp.Signer, err error) {
	text, encoding := getenv("RAMP_HMAC_KEY"), cmp.Or(getenv("RAMP_HMAC_KEY_ENCODING"), "text")
	validator := getenv("RAMP_VALIDATOR_KEY")
	if emulated {
		text, encoding = rand.Text(), "text"
		if validator == "" {
			var random [32]byte
			_, _ = rand.Read(random[:]) // never fails
			validator = hex.EncodeToString(random[:])
		}
	}
	read := ramp.TextKey
	switch encoding {
	case "text":
	case "base64url":
		read = ramp.Base64URLKey
	default:
		return key, nil, errors.New("RAMP_HMAC_KEY_ENCODING must be text or base64url")
	}
	if key, err = read(text); err != nil {
		return key, nil, err
	}
	if previous := getenv("RAMP_HMAC_KEY_PREVIOUS"); previous != "" && !emulated {
		older, err := read(previous)
		if err != nil {
			return key, nil, fmt.Errorf("RAMP_HMAC_KEY_PREVIOUS: %w", err)
		}
		key = key.WithPrevious(older)
	}
	if validator == "" {
		return key, nil, errors.New("RAMP_VALIDATOR_KEY is required, because RAMP_HMAC_KEY is set")
	}
	signer, err = ramp.NewKeySigner(validator)
	return key, signer, err
}

// reachable returns an address at which this machine can reach the listener.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
