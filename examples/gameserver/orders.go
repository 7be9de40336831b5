package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/support"
)

const ordersUsage = `usage:
  gameserver orders list    -db … [-older 13h] [-direction mint|burn]
  gameserver orders show    -db … [CHAIN] [-json] UUID
  gameserver orders finish  -db … CHAIN -who NAME -reason TEXT -tx HASH UUID
  gameserver orders abandon -db … [CHAIN] -who NAME -reason TEXT [-anyway] UUID
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
	var run func(ctx context.Context, d *support.Orders, store *ramp.SQLStore, id uuid.UUID) error
	wantsID := true
	var c chainFlags
	var validators addresses
	var d support.Decision
	switch args[0] {
	case "list":
		wantsID = false
		older := flags.Duration("older", 13*time.Hour, "list only orders that have waited longer than this `duration`; the service stops delivering after 12 hours")
		direction := flags.String("direction", "", "list only orders of this `direction`, mint or burn; a burn that waits has moved nothing")
		run = func(ctx context.Context, _ *support.Orders, store *ramp.SQLStore, _ uuid.UUID) error {
			return listOrders(ctx, store, *older, *direction, stdout)
		}
	case "show":
		asJSON := flags.Bool("json", false, "print JSON")
		run = func(ctx context.Context, ended *support.Orders, _ *ramp.SQLStore, id uuid.UUID) error {
			report, err := ended.Show(ctx, id)
			switch {
			case report == nil:
			case *asJSON:
				err = errors.Join(err, json.NewEncoder(stdout).Encode(report))
			default:
				printReport(stdout, report, c.id != 0 && err == nil)
			}
			return err
		}
	case "finish":
		tx := flags.String("tx", "", "`hash` of the transaction that the order has ended with; required")
		run = func(ctx context.Context, ended *support.Orders, _ *ramp.SQLStore, id uuid.UUID) error {
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
		run = func(ctx context.Context, ended *support.Orders, _ *ramp.SQLStore, id uuid.UUID) error {
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
	if wantsID {
		c.add(flags)
		flags.Var(&validators, "validators", "`addresses` of your validator keys, past ones too: a transaction that holds a signature\n"+
			"of theirs is marked")
	}
	if args[0] == "finish" || args[0] == "abandon" {
		flags.StringVar(&d.Who, "who", "", "`name` of the person who decides; required")
		flags.StringVar(&d.Reason, "reason", "", "why the result cannot arrive; required")
	}
	if args[0] == "abandon" {
		flags.BoolVar(&d.Anyway, "anyway", false, "abandon the order although a transaction may be its own")
	}
	count := 0
	if wantsID {
		count = 1
	}
	err := parse(flags, args[1:], count)
	if err != nil {
		return err
	}
	var id uuid.UUID
	if wantsID {
		if id, err = uuid.Parse(flags.Arg(0)); err != nil {
			return usageError(fmt.Sprintf("%q is not a UUID", flags.Arg(0)))
		}
	}

	log := slog.New(slog.NewJSONHandler(stderr, nil))
	var chain *ramp.RPC
	if c.id != 0 {
		if chain, err = openChain(ctx, getenv("RAMP_RPC_URL"), c.id, log, ramp.Observer{}); err != nil {
			return err
		}
	}
	if path, ok := strings.CutPrefix(*address, "sqlite:"); ok {
		if _, err := os.Stat(path); err != nil { // SQLite would create it
			return fmt.Errorf("-db: %w", err)
		}
	}
	db, dialect, err := openDatabase(*address)
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := openStore(ctx, db, dialect)
	if err != nil {
		return err
	}
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
	return run(ctx, ended, store, id)
}

// openStore returns the orders in the database of a server, which may be running. It
// creates no tables, so that a mistyped address does not look like an empty database.
func openStore(ctx context.Context, db *sql.DB, dialect ramp.Dialect) (*ramp.SQLStore, error) {
	game := &game{db: db, dialect: dialect} // accepts no orders here, so it needs no terms
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: dialect, Apply: game.Apply, Retries: 3, Retryable: raced})
	if err != nil {
		return nil, err
	}
	return store, game.check(ctx, store)
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

// listOrders prints the orders that wait for a result: first the mints, then the
// burns, each with the oldest first.
func listOrders(ctx context.Context, store *ramp.SQLStore, older time.Duration, direction string, out io.Writer) error {
	directions := []ramp.Direction{ramp.Mint, ramp.Burn}
	switch direction {
	case "":
	case ramp.Mint.String():
		directions = directions[:1]
	case ramp.Burn.String():
		directions = directions[1:]
	default:
		return errors.New("-direction must be mint or burn")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UUID\tORDER\tASSETS\tWAITS\tSESSION\tADDRESS")
	now := time.Now()
	var damaged error // rows that are no orders; they do not hide the others
	for _, d := range directions {
		for page := (ramp.OrderPage{}); ; {
			list, err := store.Waiting(ctx, d, now.Add(-older), page)
			for _, o := range list {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", o.UUID, d, assetsOf(o), now.Sub(o.AcceptedAt).Round(time.Second),
					shown(o.SessionID), shown(o.UserAddress))
			}
			damaged = errors.Join(damaged, err)
			if len(list) == 0 {
				break
			}
			page.After = list[len(list)-1]
		}
	}
	return errors.Join(table.Flush(), damaged)
}

func printReport(out io.Writer, r *support.Report, hasActivity bool) {
	o := r.Order
	fmt.Fprintf(out, "%s  %s of %s  %s\n", o.UUID, o.Direction, assetsOf(o), o.State)
	fmt.Fprintf(out, "accepted  %s, %s ago\n", o.AcceptedAt.Format(time.RFC3339), time.Since(o.AcceptedAt).Round(time.Second))
	if !o.FinishedAt.IsZero() {
		fmt.Fprintf(out, "finished  %s\n", o.FinishedAt.Format(time.RFC3339))
	}
	fmt.Fprintf(out, "session   %s\naddress   %s\nproject   %s\n", shown(o.SessionID), shown(o.UserAddress), shown(o.ProjectID))
	if o.TxHash != "" {
		fmt.Fprintf(out, "tx_hash   %s\n", o.TxHash)
	}
	if o.Reason != "" {
		fmt.Fprintf(out, "reason    %s\n", shown(o.Reason))
	}
	if !hasActivity {
		fmt.Fprintln(out, "chain     not asked, or unreachable: set RAMP_RPC_URL and -chain-id")
		return
	}
	fmt.Fprintf(out, "chain     blocks %d to %d of %d; transactions that may be the order's own: %d\n", r.FirstBlock, r.LastBlock, r.NewestBlock, len(r.Candidates))
	for _, c := range r.Candidates {
		fmt.Fprintf(out, "  %s  block %d  %s\n", c.Hash, c.Block, c.Time.Format(time.RFC3339))
		outcome, proof := "failed", "proves that the order has ended so"
		if c.Evidence.Succeeded {
			outcome = "succeeded"
		}
		if c.Unproven != nil {
			proof = c.Unproven.Error()
		}
		fmt.Fprintf(out, "    %s, sent by %s, paid by %s, to %s\n", outcome, c.Evidence.From, cmp.Or(c.Evidence.FeePayer, c.Evidence.From), c.Evidence.To)
		for _, t := range c.Transfers {
			fmt.Fprintf(out, "    moved %s of %s from %s to %s\n", cmp.Or(t.Value, t.TokenID), t.Token, t.From, t.To)
		}
		if c.Signed {
			fmt.Fprintln(out, "    its input has the validator's signature of this order, which anybody can copy")
		}
		if c.EndedOther != nil {
			fmt.Fprintf(out, "    it has ended order %s\n", c.EndedOther)
		}
		fmt.Fprintf(out, "    %s\n", proof)
	}
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
		return did + " " + assetsOf(ramp.Order{Assets: s.Effect.Assets})
	}
}

func assetsOf(o ramp.Order) string {
	if len(o.Assets) == 0 {
		return "-"
	}
	var list []string
	for _, a := range o.Assets {
		list = append(list, a.Amount.String()+" "+shown(a.ID))
	}
	return strings.Join(list, ", ")
}

// shown quotes foreign text, so that it cannot move the cursor or fake a line.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1 : len(quoted)-1]
}
