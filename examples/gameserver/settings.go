// To make it yours: change the flags. A game with a configuration of its own fills in the same fields
// from it.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/support"
)

// settings are the flags that every command has: where the orders are, which tokens are
// sold, and what a transaction must show before it ends an order.
type settings struct {
	database               string
	project                string
	network                ramp.Network
	token, swordToken      common.Address
	chainID, confirmations uint64
	payers, contracts      []common.Address
	anyRate, anyFailure    bool
	anyPage                bool
	former                 []support.Sold
	connections, decimals  int
	caps                   caps
	looks                  bool              // and needs no right but SELECT
	says                   func(text string) // what a migration waits for
}

func newSettings(flags *flag.FlagSet) *settings {
	s := &settings{says: func(text string) { fmt.Fprintln(flags.Output(), "gameserver migrate: "+text) }}
	flags.StringVar(&s.database, "db", "sqlite:gameserver.db",
		"`database`: sqlite:PATH, postgres://…, or mysql: and a DSN of go-sql-driver/mysql")
	flags.IntVar(&s.connections, "connections", 20,
		"`number` of connections to PostgreSQL or MySQL, of which the database allows a limited number to "+
			"all servers")
	flags.StringVar(&s.project, "project", "",
		"`ID` of the project in the console; required unless the service is emulated")
	flags.StringVar((*string)(&s.network), "network", "",
		"`network` of the token, mainnet or testnet; required unless the service is emulated")
	flags.TextVar(&s.token, "token", common.Address{},
		"contract `address` of the token; required unless the service is emulated")
	flags.TextVar(&s.swordToken, "sword-token", common.Address{},
		"contract `address` of the token of swords; without it, swords are not sold unless\nthe service "+
			"is emulated")
	flags.Func("sold", "`file` of what was sold before, for the books: a JSON list of objects\n"+
		"with product, from and to", s.readFormer)
	flags.BoolVar(&s.anyRate, "any-rate", false,
		"approve orders at every rate, for the judge and for load tests")
	flags.BoolVar(&s.anyPage, "any-page", false,
		"accept the token of the login for any order, for the judge and for load tests")
	flags.Uint64Var(&s.chainID, "chain-id", 0, "chain `ID` that the node at RAMP_RPC_URL must have")
	flags.Uint64Var(&s.confirmations, "confirmations", 1,
		"`number` of confirmations of a transaction that ends an order")
	flags.Func("payers",
		"`addresses` with which the ramp sends or pays for transactions, separated by commas",
		addresses(&s.payers))
	flags.Func("contracts", "`addresses` of the ramp's contracts, separated by commas",
		addresses(&s.contracts))
	flags.BoolVar(&s.anyFailure, "any-failure", false,
		"accept any failed transaction, if the ramp's addresses are not known")
	s.caps = newCaps(flags)
	flags.IntVar(&s.decimals, "decimals", -1,
		"decimals of the token, a `number`, which is compared with its contract; without it, the "+
			"contract is asked")
	return s
}

// addresses reads a flag that lists addresses.
func addresses(list *[]common.Address) func(string) error {
	return func(text string) error {
		for one := range strings.SplitSeq(text, ",") {
			var a common.Address
			if err := a.UnmarshalText([]byte(one)); err != nil {
				return err
			}
			*list = append(*list, a)
		}
		return nil
	}
}

// open opens the database of the game. Only the command migrate creates the tables, and a
// server on SQLite or that emulates the service: the user of another server needs no right
// to, and a mistyped address does not look like an empty database.
func (s *settings) open(ctx context.Context, create bool) (*game, *rampsql.Store, error) {
	if path, ok := strings.CutPrefix(s.database, "sqlite:"); ok && !create {
		if _, err := os.Stat(path); err != nil { // SQLite would create it
			return nil, nil, fmt.Errorf("-db: %w", err)
		}
	}
	db, dialect, err := openDatabase(s.database, cmp.Or(s.connections, 20))
	if err != nil {
		return nil, nil, err
	}
	game := &game{db: db, dialect: dialect, anyPage: s.anyPage, purse: math.MaxInt64,
		caps: s.caps}
	store, err := rampsql.New(rampsql.Config{DB: db, Dialect: dialect, Apply: game.Apply})
	if err == nil && create {
		err = cmp.Or((&migration{db, dialect, s.says}).run(ctx),
			game.insertNew(ctx, db, "shop", "id, closed", 1, ""))
	}
	if err == nil {
		tables := "sessions, inventory, mailbox, swords, conflicts, findings, moved, wallets, shop, " +
			"decisions," +
			" pages, entries"
		_, unready := db.ExecContext(ctx,
			"SELECT conflicts.closed, findings.entry FROM "+tables+" WHERE 1 = 0")
		if err = unready; !s.looks {
			err = cmp.Or(store.Check(ctx, s.network), unready)
		}
	}
	if err != nil {
		why := "the database is unreachable or needs gameserver migrate"
		text := err.Error()
		if strings.Contains(text, "permission denied for") ||
			strings.Contains(text, "command denied to user") {
			why = "the user of the database lacks a right, which a GRANT gives: see docs/operations.md"
		}
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", why, err), db.Close())
	}
	return game, store, nil
}

// proof returns what a transaction must show before it ends an order, or nil if there is no
// node to ask.
func (s *settings) proof(url string, log *slog.Logger, observer ramp.Observer) (*rampproof.Proof, error) {
	switch {
	case url == "" && s.chainID == 0:
		return nil, nil
	case url == "" || s.chainID == 0:
		return nil,
			errors.New(
				"RAMP_RPC_URL and -chain-id need each other: without -chain-id, a testnet node could " +
					"confirm mainnet orders")
	case len(s.payers) == 0 && !s.anyFailure:
		return nil,
			errors.New(
				"-payers is required, because RAMP_RPC_URL is set; use -any-failure if the ramp's " +
					"addresses are not known")
	}
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: url, ChainID: s.chainID, Logger: log, Observer: observer})
	if err != nil {
		return nil, err
	}
	config := rampproof.Config{Chain: chain, Network: s.network, Confirmations: s.confirmations,
		Payers: s.payers, Contracts: s.contracts, AnyFailure: s.anyFailure,
		Decimals: map[common.Address]int{}}
	if s.decimals >= 0 {
		config.Decimals[s.token] = s.decimals
	}
	for _, sold := range s.sold() { // also what was sold before: an order of it may still wait
		config.MintFeeBps = max(config.MintFeeBps, sold.Product.MintFeeBps)
	}
	if s.anyRate { // and any fee
		config.MintFeeBps = -1
	}
	return rampproof.New(config)
}

// desk returns what shows and ends orders by hand, and compares the books.
func (s *settings) desk(
	game *game, store *rampsql.Store, proof *rampproof.Proof, log *slog.Logger,
) (*support.Orders, error) {
	return support.New(support.Config{Store: store, Proof: proof,
		ProjectID: s.project, Network: s.network, Products: s.sold(), Journal: game,
		Sessions: game.sessions, OwnsWallet: game.ownsWallet, Logger: log})
}

// readFormer reads what was sold before: former tokens, fees, prices and names, each until a time.
func (s *settings) readFormer(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s.former); err != nil {
		return err
	}
	for _, sold := range s.former {
		if sold.To.IsZero() || !common.IsHexAddress(sold.Product.Token) {
			return fmt.Errorf("product %q needs its token, and the time to which it was sold",
				sold.Product.Name)
		}
	}
	return nil
}

// sold returns what is sold, each product since the last of the former ones with its name ended, and what
// was sold before.
func (s *settings) sold() []support.Sold {
	sold := support.Always(s.products()...)
	for i := range sold {
		for _, former := range s.former {
			if former.Product.Name == sold[i].Product.Name && former.To.After(sold[i].From) {
				sold[i].From = former.To
			}
		}
	}
	return append(sold, s.former...)
}
