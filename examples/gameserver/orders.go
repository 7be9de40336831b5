package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/support"
)

const ordersUsage = `usage:
  gameserver orders list      -db … [-older 13h] [-direction mint|burn]
  gameserver orders list      -db … -player NAME | -session ID | -address 0x… | -ended FROM,TO
  gameserver orders conflicts -db …
  gameserver orders missing   -db … LOG
  gameserver orders show      -db … [CHAIN] [-json] UUID
  gameserver orders finish    -db … CHAIN -who NAME -reason TEXT -tx HASH UUID
  gameserver orders abandon   -db … [CHAIN] -who NAME -reason TEXT [-anyway] UUID
CHAIN is -chain-id, -payers and what else the server has of these flags, -validators with
the addresses of its keys, and RAMP_RPC_URL.`

// orders runs the commands for a person who decides about orders whose result does
// not arrive. Nothing else in this program ends an order without a result.
func orders(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return usageError(ordersUsage)
	}
	flags := flag.NewFlagSet("gameserver orders "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("db", "sqlite:gameserver.db", "`database` of the server")
	var run func(ctx context.Context, orders *support.Orders, id uuid.UUID) error
	var c chainFlags
	var validators addresses
	var d support.Decision
	switch args[0] {
	case "list", "conflicts", "missing":
		return lists(ctx, args, stdout, stderr)
	case "show":
		asJSON := flags.Bool("json", false, "print JSON")
		run = func(ctx context.Context, ended *support.Orders, id uuid.UUID) error {
			report, err := ended.Show(ctx, id)
			switch {
			case report == nil:
			case *asJSON:
				err = errors.Join(err, json.NewEncoder(stdout).Encode(report))
			default:
				fmt.Fprint(stdout, report.Text())
			}
			return err
		}
	case "finish":
		tx := flags.String("tx", "", "`hash` of the transaction that the order has ended with; required")
		run = func(ctx context.Context, ended *support.Orders, id uuid.UUID) error {
			hash, err := hexutil.Decode(*tx)
			if err != nil || len(hash) != common.HashLength {
				return errors.New("-tx must be 0x and 64 hex digits")
			}
			if c.id == 0 {
				return errors.New("RAMP_RPC_URL and -chain-id are required: the order ends as its transaction did")
			}
			step, err := ended.Finish(ctx, id, common.Hash(hash), d)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s has %s: %s\n", id, step.Order.State, effectOf(step))
			return err
		}
	case "abandon":
		run = func(ctx context.Context, ended *support.Orders, id uuid.UUID) error {
			step, err := ended.Abandon(ctx, id, d)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s is abandoned: %s\n", id, effectOf(step))
			return err
		}
	default:
		return usageError(fmt.Sprintf("orders %s: no such command\n%s", args[0], ordersUsage))
	}
	c.add(flags)
	flags.Var(&validators, "validators", "`addresses` of your validator keys, past ones too: a transaction that holds a signature\n"+
		"of theirs is marked")
	if args[0] == "finish" || args[0] == "abandon" {
		flags.StringVar(&d.Who, "who", "", "`name` of the person who decides; required")
		flags.StringVar(&d.Reason, "reason", "", "why the result cannot arrive; required")
	}
	if args[0] == "abandon" {
		flags.BoolVar(&d.Anyway, "anyway", false, "abandon the order although a transaction may be its own")
	}
	if err := parse(flags, args[1:], 1); err != nil {
		return err
	}
	id, err := uuid.Parse(flags.Arg(0))
	if err != nil {
		return usageError(fmt.Sprintf("%q is not a UUID", flags.Arg(0)))
	}

	log := slog.New(slog.NewJSONHandler(stderr, nil))
	var chain *ramp.RPC
	if c.id != 0 {
		if chain, err = openChain(ctx, getenv("RAMP_RPC_URL"), c.id, log, ramp.Observer{}); err != nil {
			return err
		}
	}
	game, store, err := openOrders(ctx, *address)
	if err != nil {
		return err
	}
	defer game.db.Close()
	config := support.Config{Store: store, Chain: chain, Validators: validators, Logger: log}
	if chain != nil {
		order, err := store.Order(ctx, id)
		if err != nil {
			return err
		}
		config.Proof, err = c.proof(ctx, chain, tokenOf(order))
		if config.Proof == nil {
			return err
		}
		if err != nil { // it can still show the order, but not finish a burn
			log.WarnContext(ctx, "the decimals of the token are not known", "error", err)
		}
		config.Confirmations = c.confirmations
	}
	ended, err := support.New(config)
	if err != nil {
		return err
	}
	return run(ctx, ended, id)
}

// openOrders opens the database of a server, which may be running. It creates no tables,
// so that a mistyped address does not look like an empty database.
func openOrders(ctx context.Context, address string) (*game, *ramp.SQLStore, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		if _, err := os.Stat(path); err != nil { // SQLite would create it
			return nil, nil, fmt.Errorf("-db: %w", err)
		}
	}
	db, dialect, err := openDatabase(address)
	if err != nil {
		return nil, nil, err
	}
	game := &game{db: db, dialect: dialect} // accepts no orders here, so it needs no terms
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: dialect, Apply: game.Apply, Retries: 3, Retryable: raced})
	if err == nil {
		err = game.check(ctx, store)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return game, store, nil
}

// tokenOf returns the contract of an order's ERC-20 token, or nil if it has none.
func tokenOf(o ramp.Order) *common.Address {
	for _, token := range slices.Concat(o.Intent.From, o.Intent.To) {
		if strings.EqualFold(string(token.Type), string(ramp.TypeERC20)) {
			contract := common.HexToAddress(token.ID)
			return &contract
		}
	}
	return nil
}

// effectOf describes the effect of a step.
func effectOf(s ramp.Step) string {
	switch {
	case !s.New:
		return "it had ended so before, and nothing was moved"
	case s.Effect.Kind == ramp.Nothing:
		return "nothing was moved"
	default: // in the past tense, so that nobody moves it again by hand
		did := map[ramp.EffectKind]string{ramp.GiveBack: "gave back", ramp.Grant: "granted"}[s.Effect.Kind]
		var list []string
		for _, a := range s.Effect.Assets {
			list = append(list, a.Amount.String()+" "+a.ID)
		}
		return did + " " + strings.Join(list, ", ")
	}
}
