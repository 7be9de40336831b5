package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
)

// openChain returns the node that confirms results, or nil if neither url nor chainID
// is set.
func openChain(ctx context.Context, url string, chainID uint64, log *slog.Logger, observer ramp.Observer) (*ramp.RPC, error) {
	switch {
	case url == "" && chainID == 0:
		return nil, nil
	case url == "":
		return nil, errors.New("RAMP_RPC_URL is required, because -chain-id is set")
	case chainID == 0:
		return nil, errors.New("-chain-id is required, because RAMP_RPC_URL is set: without it, a testnet node could confirm mainnet orders")
	}
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: url, ChainID: chainID, Logger: log, Observer: observer})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = chain.ChainID(ctx)
	if errors.Is(err, ramp.ErrWrongChain) {
		return nil, err
	}
	if err != nil { // only results have to wait for it
		log.WarnContext(ctx, "the node is unreachable", "error", err)
	}
	return chain, nil
}

// chainFlags say where transactions are, and what one must show before it ends an order;
// see [ramp.Proof]. The server and the orders command have the same.
type chainFlags struct {
	id, confirmations uint64
	payers, contracts addresses
	anyFailure        bool
	decimals          int
}

func (c *chainFlags) add(flags *flag.FlagSet) {
	flags.Uint64Var(&c.id, "chain-id", 0, "chain `ID` that the node at RAMP_RPC_URL must have")
	flags.Uint64Var(&c.confirmations, "confirmations", 1, "`number` of confirmations of a transaction that ends an order")
	flags.Var(&c.payers, "payers", "`addresses` with which the ramp sends or pays for transactions, separated by commas")
	flags.Var(&c.contracts, "contracts", "`addresses` of the ramp's contracts, separated by commas")
	flags.BoolVar(&c.anyFailure, "any-failure", false, "accept any failed transaction, if the ramp's addresses are not known")
	flags.IntVar(&c.decimals, "decimals", -1, "decimals of the token, a `number`; by default the node is asked, which must then be reachable")
}

// proof returns what a transaction must show. token is an ERC-20 contract, or nil. If its
// decimals are not known, proof returns the rest together with an error.
func (c *chainFlags) proof(ctx context.Context, chain *ramp.RPC, token *common.Address) (*ramp.Proof, error) {
	if len(c.payers) == 0 && !c.anyFailure {
		return nil, errors.New("-payers is required, because -chain-id is set; use -any-failure if the ramp's addresses are not known")
	}
	p := &ramp.Proof{Payers: c.payers, Contracts: c.contracts, AnyFailure: c.anyFailure}
	if token == nil {
		return p, nil
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	decimals, err := chain.TokenDecimals(asking, *token)
	switch {
	case err == nil && c.decimals >= 0 && decimals != c.decimals:
		return p, fmt.Errorf("-decimals is %d, but the token %s has %d", c.decimals, token, decimals)
	case err != nil && c.decimals < 0:
		return p, fmt.Errorf("the node does not say the decimals of the token, so set -decimals: %w", err)
	case err != nil:
		decimals = c.decimals
	}
	p.Decimals = map[common.Address]int{*token: decimals}
	return p, nil
}

// addresses is a flag that holds addresses.
type addresses []common.Address

func (a *addresses) String() string { return fmt.Sprint([]common.Address(*a)) }

func (a *addresses) Set(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		if !common.IsHexAddress(one) {
			return errors.New("must be 0x and 40 hex digits each")
		}
		*a = append(*a, common.HexToAddress(one))
	}
	return nil
}
