package main

import (
	"context"
	"crypto/ecdsa"
	"log"
	"log/slog"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	gethlog "github.com/ethereum/go-ethereum/log"
	gethnode "github.com/ethereum/go-ethereum/node"
	ramp "github.com/token-ramp/ramp-go"
)

// local is a go-ethereum node in this process that serves JSON-RPC over HTTP. You
// do not need it if you have a node of your own.
type local struct {
	backend *simulated.Backend
	url     string
	key     *ecdsa.PrivateKey // of an account that has coins
	player  common.Address    // receives some of them
}

func startLocal() *local {
	key, err := crypto.GenerateKey()
	if err != nil {
		log.Fatal(err)
	}
	endpoint := make(endpointLog, 1)
	backend := simulated.NewBackend(
		types.GenesisAlloc{crypto.PubkeyToAddress(key.PublicKey): {Balance: big.NewInt(2e18)}},
		func(n *gethnode.Config, _ *ethconfig.Config) {
			n.HTTPHost, n.HTTPPort, n.HTTPModules = "127.0.0.1", 0, []string{"eth", "net"}
			n.Logger = gethlog.NewLogger(endpoint)
		})
	return &local{backend: backend, url: "http://" + <-endpoint, key: key, player: common.HexToAddress("0x7b")}
}

func (l *local) close() { _ = l.backend.Close() }

// transfer sends one coin to the player and mines a block with the transaction.
func (l *local) transfer(ctx context.Context) (common.Hash, error) {
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: l.url})
	if err != nil {
		return common.Hash{}, err
	}
	id, err := chain.ChainID(ctx)
	if err != nil {
		return common.Hash{}, err
	}
	tx, err := types.SignNewTx(l.key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Gas: 21_000, GasFeeCap: big.NewInt(1e11), GasTipCap: big.NewInt(1e9), To: &l.player, Value: big.NewInt(1e18),
	})
	if err != nil {
		return common.Hash{}, err
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return common.Hash{}, err
	}
	hash, err := chain.SendRawTransaction(ctx, raw)
	l.backend.Commit()
	return hash, err
}

// endpointLog is a log handler that receives the address on which the node listens.
// The operating system chooses the port, and the node reports it only in its log.
type endpointLog chan string

func (endpointLog) Enabled(context.Context, slog.Level) bool { return true }
func (l endpointLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l endpointLog) WithGroup(string) slog.Handler          { return l }

func (l endpointLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "HTTP server started" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "endpoint" {
				select {
				case l <- a.Value.String():
				default: // ignore a second endpoint
				}
			}
			return true
		})
	}
	return nil
}
