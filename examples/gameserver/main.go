// To make it yours: name it after your game.

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
//	gameserver orders list|find|count|conflicts|resolve|decisions|missing|restore
//	gameserver orders show|finish|abandon|prune|erase|decide|entries
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
// The first lines of each file say what you change in it. No file needs one that needs it: from here, read
// down.
//
//	program.go    puts the server together
//	serve.go      stops it without losing a result
//	commands.go   the commands
//	decisions.go  those of a person who says why, such as erase.go
//	emulator.go   the service, for trying the game
//	open.go       opens the game, its chain, and what ends orders by hand
//	api.go        serves the game's client, with answers.go
//	migrate.go    creates the tables of schema.go
//	apply.go      moves the items of an order
//	swords.go     items of which no two are the same
//	mailbox.go    where what does not fit waits
//	moved.go      counts what leaves the game, for the limits of caps.go
//	players.go    logs players in, and shows what they own
//	pages.go      the tokens of the pages
//	wallets.go    whose wallet it is
//	shop.go       whether the shop is open
//	findings.go   what calls a person until it is closed
//	journal.go    what was decided about the books
//	sessions.go   the sessions
//	terms.go      what is sold, of items.go
//	settings.go   the flags, which flags.go reads
//	keys.go       the keys
//	game.go       what the game is, on database.go
//	dialect.go    what sqlite.go, postgres.go and mysql.go do otherwise
//	metrics.go    the metrics
//	log.go        the log
//	bodies.go     the memory of bodies
//
// If you have a server already, copy what it lacks: serve.go and bodies.go for how it listens and stops,
// metrics.go, log.go, shop.go, and caps.go with moved.go. Your staff needs commands.go and decisions.go, with
// erase.go, findings.go and journal.go.
//
// Delete what you do not need: mysql*.go or postgres.go without such a database, and proxy_*_test.go,
// nginx.conf and haproxy.cfg without these proxies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
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

// run serves until ctx is done and then lets the calls in progress finish. If the
// first argument is that of a command, it runs that command instead.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	switch {
	case len(args) > 1 && (args[0] == "orders" || args[0] == "shop") && !strings.HasPrefix(args[1], "-"):
		return runCommand(ctx, args[1], args[2:], getenv, stdout, stderr)
	case len(args) > 0 && (args[0] == "reconcile" || args[0] == "migrate"):
		return runCommand(ctx, args[0], args[1:], getenv, stdout, stderr)
	}
	return serveGame(ctx, args, getenv, stdout, stderr)
}
