package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// openChain returns the node that confirms results, or nil if neither url nor chainID
// is set.
func openChain(ctx context.Context, url string, chainID uint64, log *slog.Logger) (*ramp.RPC, error) {
	switch {
	case url == "" && chainID == 0:
		return nil, nil
	case url == "":
		return nil, errors.New("RAMP_RPC_URL is required, because -chain-id is set")
	case chainID == 0:
		return nil, errors.New("-chain-id is required, because RAMP_RPC_URL is set: without it, a testnet node could confirm mainnet orders")
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
	if err != nil { // only results have to wait for it
		log.WarnContext(ctx, "the node is unreachable", "error", err)
	}
	return chain, nil
}
