package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// openChain returns the node that results are confirmed by, nil without a URL.
func openChain(ctx context.Context, url string, chainID uint64, log *slog.Logger) (*ramp.RPC, error) {
	switch {
	case url == "" && chainID == 0:
		return nil, nil
	case url == "":
		return nil, errors.New("RAMP_RPC_URL is missing: -chain-id is set, so results are to be confirmed")
	case chainID == 0:
		return nil, errors.New("-chain-id is missing: without it a node of a testnet could confirm orders of the mainnet")
	}
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: url, ChainID: chainID, Logger: log})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = chain.ChainID(ctx)
	if errors.Is(err, ramp.ErrWrongChain) {
		return nil, err
	}
	if err != nil { // results wait until it is back, everything else works
		log.WarnContext(ctx, "the node is unreachable", "error", err)
	}
	return chain, nil
}
