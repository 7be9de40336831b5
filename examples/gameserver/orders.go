package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
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
  gameserver orders show    -db … [-chain-id N] [-blocks N] UUID    (reads transactions from the node at RAMP_RPC_URL)
  gameserver orders finish  -db … [-chain-id N] [-blocks N] -who NAME -reason TEXT -tx HASH UUID    (reads the node too)
  gameserver orders abandon -db … -who NAME -reason TEXT UUID`

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
	var chainID uint64
	var blocks int
	var who, reason string
	switch args[0] {
	case "list":
		wantsID = false
		older := flags.Duration("older", 13*time.Hour, "list only orders that have waited longer than this `duration`; the service stops delivering after 12 hours")
		direction := flags.String("direction", "", "list only orders of this `direction`, mint or burn; a burn that waits has moved nothing")
		run = func(ctx context.Context, _ *support.Orders, store *ramp.SQLStore, _ uuid.UUID) error {
			return listOrders(ctx, store, *older, *direction, stdout)
		}
	case "show":
		run = func(ctx context.Context, ended *support.Orders, _ *ramp.SQLStore, id uuid.UUID) error {
			report, err := ended.Show(ctx, id)
			if report != nil {
				printReport(stdout, report, chainID != 0 && err == nil)
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
			if chainID == 0 {
				return errors.New("RAMP_RPC_URL and -chain-id are required: the order ends as its transaction did")
			}
			step, err := ended.Finish(ctx, id, common.Hash(hash), who, reason)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s has %s: %s\n", id, step.Order.State, effectOf(step))
			return err
		}
	case "abandon":
		run = func(ctx context.Context, ended *support.Orders, _ *ramp.SQLStore, id uuid.UUID) error {
			step, err := ended.Abandon(ctx, id, who, reason)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s is abandoned: %s\n", id, effectOf(step))
			return err
		}
	default:
		return usageError(fmt.Sprintf("orders %s: no such command\n%s", args[0], ordersUsage))
	}
	readsChain, decides := args[0] == "show" || args[0] == "finish", args[0] == "finish" || args[0] == "abandon"
	if readsChain {
		flags.Uint64Var(&chainID, "chain-id", 0, "chain `ID` that the node at RAMP_RPC_URL must have")
		flags.IntVar(&blocks, "blocks", 2000, "maximum `number` of blocks to read, starting at the time of the order")
	}
	if decides {
		flags.StringVar(&who, "who", "", "`name` of the person who decides; required")
		flags.StringVar(&reason, "reason", "", "why the result cannot arrive; required")
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
	url := ""
	if readsChain {
		url = getenv("RAMP_RPC_URL")
	}
	chain, err := openChain(ctx, url, chainID, log)
	if err != nil {
		return err
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
	ended, store, err := newSupport(ctx, db, dialect, chain, blocks, log)
	if err != nil {
		return err
	}
	return run(ctx, ended, store, id)
}

// newSupport returns the orders in the database of a server, which may be running. It creates
// no tables, so that a mistyped address does not look like an empty database.
func newSupport(ctx context.Context, db *sql.DB, dialect ramp.Dialect, chain *ramp.RPC, blocks int, log *slog.Logger) (*support.Orders, *ramp.SQLStore, error) {
	game := &game{db: db, dialect: dialect} // accepts no orders here, so it needs no terms
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: dialect, Apply: game.Apply, Retries: 3, Retryable: raced})
	if err != nil {
		return nil, nil, err
	}
	if err := game.check(ctx, store); err != nil {
		return nil, nil, err
	}
	orders, err := support.New(support.Config{Store: store, Chain: chain, Blocks: blocks, Logger: log})
	return orders, store, err
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
	fmt.Fprintf(out, "chain     blocks %d to %d of %d; transactions of this player: %d\n", r.FirstBlock, r.LastBlock, r.NewestBlock, len(r.Activity))
	for _, a := range r.Activity {
		outcome, token := "failed", "without an event of the token"
		if a.Success {
			outcome = "succeeded"
		}
		if a.Token {
			token = "with an event of the token"
		}
		fmt.Fprintf(out, "  %s  block %d  %s  %s, %s\n", a.Hash, a.Block, a.Time.Format(time.RFC3339), outcome, token)
	}
	if r.LastBlock < r.NewestBlock {
		fmt.Fprintf(out, "          %d newer blocks were not read: use -blocks %d\n", r.NewestBlock-r.LastBlock, r.NewestBlock-r.FirstBlock+1)
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
