// To make it yours: change nothing, or open what your game has already opened.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/support"
)

// inFile reports whether the database is a file, which its server has to itself.
func (s *settings) inFile() bool {
	d, err := dialectOf(s.database)
	return err == nil && d.file
}

// open opens the database of the game. Only the command migrate creates the tables, and a
// server on SQLite or that emulates the service: the user of another server needs no right
// to, and a mistyped address does not look like an empty database.
func (s *settings) open(ctx context.Context, create bool) (*game, *rampsql.Store, error) {
	if _, path, _ := strings.Cut(s.database, ":"); s.inFile() && !create {
		if _, err := os.Stat(path); err != nil { // it would be created
			return nil, nil, fmt.Errorf("-db: %w", err)
		}
	}
	db, dialect, err := openDatabase(s.database, cmp.Or(s.connections, 20))
	if err != nil {
		return nil, nil, err
	}
	game := &game{database: database{db: db, dialect: dialect}, anyPage: s.anyPage, purse: math.MaxInt64,
		caps: s.caps}
	store, err := rampsql.New(rampsql.Config{DB: db, Dialect: dialect.sql, Apply: game.Apply,
		Projects: s.projects(), Network: s.network})
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
		if dialect.denied != "" && strings.Contains(err.Error(), dialect.denied) {
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
		Decimals: map[common.Address]int{}, MintFeeBps: map[common.Address]int{}}
	if s.decimals >= 0 {
		config.Decimals[s.token] = s.decimals
	}
	for _, sold := range s.sold() { // also what was sold before: an order of it may still wait
		token := common.HexToAddress(sold.Product.Token)
		config.MintFeeBps[token] = max(config.MintFeeBps[token], sold.Product.MintFeeBps)
		if s.anyRate { // and any fee
			config.MintFeeBps[token] = -1
		}
	}
	return rampproof.New(config)
}

// desk returns what shows and ends orders by hand.
func (s *settings) desk(
	game *game, store *rampsql.Store, proof *rampproof.Proof, log *slog.Logger,
) (*support.Orders, error) {
	config := support.Config{Store: store, Proof: proof, Projects: s.projects(), Network: s.network,
		NoEmptyBlocks: s.noEmptyBlocks, Products: s.sold(), Sessions: game.sessions, Logger: log}
	if proof != nil { // without a node, nothing can be compared
		reconciler, err := s.reconciler(game, store, proof, log)
		if err != nil {
			return nil, err
		}
		config.Books = reconciler
	}
	return support.New(config)
}

// reconciler returns what compares the orders with the chain.
func (s *settings) reconciler(
	game *game, store *rampsql.Store, proof *rampproof.Proof, log *slog.Logger,
) (*rampbooks.Reconciler, error) {
	return rampbooks.New(rampbooks.Config{Store: store, Proof: proof, Projects: s.projects(),
		Network: s.network, Products: s.sold(), Journal: game, OwnsWallet: game.ownsWallet, Logger: log})
}
