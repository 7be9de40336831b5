// Package nodetest tests the client with real nodes: go-ethereum in process, and anvil.
// Its module requires the newest go-ethereum, and importing ramp requires no node.
package nodetest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	gethlog "github.com/ethereum/go-ethereum/log"
	gethnode "github.com/ethereum/go-ethereum/node"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// node is a real node that makes a block on request.
type node struct {
	url     string
	mine    func(t *testing.T)
	replace func(t *testing.T, after *ramp.Block) // replaces all blocks after this one with another block
	signs   common.Address                        // an account whose key the node has; zero for none
}

// key is the key of the account that has coins.
func key(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	// The first account of anvil, whose key is public.
	return must.Get(crypto.HexToECDSA("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"))(t)
}

// onEveryNode runs a test with each available node.
func onEveryNode(t *testing.T, test func(t *testing.T, n *node, r *ramp.RPC)) {
	for name, start := range map[string]func(*testing.T) *node{"geth": startGeth, "anvil": startAnvil} {
		t.Run(name, func(t *testing.T) {
			n := start(t)
			id := must.Get(must.Get(ramp.NewRPC(ramp.RPCConfig{URL: n.url}))(t).ChainID(t.Context()))(t)
			test(t, n,
				must.Get(ramp.NewRPC(ramp.RPCConfig{URL: n.url, ChainID: id.Uint64(),
					PollInterval: 10 * time.Millisecond}))(t))
		})
	}
}

// startGeth starts go-ethereum with an HTTP endpoint on a port that the operating system
// chooses. The node reports the port only in its log.
func startGeth(t *testing.T) *node {
	t.Helper()
	log := &endpointLog{found: make(chan string, 1)}
	backend := simulated.NewBackend(
		types.GenesisAlloc{crypto.PubkeyToAddress(key(t).PublicKey): {Balance: new(big.Int).Lsh(common.Big1, 100)}},
		func(n *gethnode.Config, _ *ethconfig.Config) {
			n.HTTPHost, n.HTTPPort, n.HTTPModules = "127.0.0.1", 0, []string{"eth", "net", "web3"}
			n.Logger = gethlog.NewLogger(log)
		})
	t.Cleanup(func() { require.NoError(t, backend.Close()) })
	url := "http://" + <-log.found
	r := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: url}))(t)
	backend.Commit()
	require.Eventually(t, func() bool { // before its first block it says "transaction indexing is in progress"
		_, err := r.Transaction(t.Context(), common.MaxHash)
		return errors.Is(err, ramp.ErrNotFound)
	}, 30*time.Second, 10*time.Millisecond)
	return &node{
		url:  url,
		mine: func(*testing.T) { backend.Commit() },
		replace: func(t *testing.T, after *ramp.Block) {
			t.Helper()
			require.NoError(t, backend.Fork(after.Hash))
			// Another time makes it another block. Until that exists, the pool takes back, at any time, the
			// transactions of the blocks that are gone, and with one of them no time can be set.
			require.Eventually(t, func() bool {
				backend.Rollback()
				return backend.AdjustTime(time.Hour) == nil
			}, 30*time.Second, time.Millisecond)
		},
	}
}

type endpointLog struct{ found chan string }

func (*endpointLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *endpointLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l *endpointLog) WithGroup(string) slog.Handler          { return l }

func (l *endpointLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "HTTP server started" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "endpoint" {
				select {
				case l.found <- a.Value.String():
				default: // the second endpoint, for consensus
				}
			}
			return true
		})
	}
	return nil
}

// startAnvil starts anvil if it is available: as $ANVIL, in the path, or installed in this
// directory with npm install.
func startAnvil(t *testing.T) *node {
	t.Helper()
	program := ""
	for _, candidate := range []string{os.Getenv("ANVIL"), "anvil", "./node_modules/.bin/anvil"} {
		if found, err := exec.LookPath(candidate); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("ANVIL IS NOT HERE: the second node is not tested. Run npm install in " +
			"internal/test/newest/nodetest, or set ANVIL to its path.")
	}
	command := exec.Command(program, "--port", "0", "--no-mining", "--chain-id", "1112")
	output := must.Get(command.StdoutPipe())(t)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	listening := regexp.MustCompile(`Listening on (\S+)`)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if at := listening.FindStringSubmatch(lines.Text()); at != nil {
			go func() {
				for lines.Scan() { // so that anvil never blocks
				}
			}()
			url := "http://" + at[1]
			tell := func(t *testing.T, method string, params ...any) {
				t.Helper()
				r := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: url}))(t)
				require.NoError(t, r.Call(t.Context(), nil, method, params...))
			}
			return &node{
				url:   url,
				mine:  func(t *testing.T) { t.Helper(); tell(t, "evm_mine") },
				signs: crypto.PubkeyToAddress(key(t).PublicKey),
				replace: func(t *testing.T, after *ramp.Block) {
					t.Helper()
					r := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: url}))(t)
					head := must.Get(r.BlockNumber(t.Context()))(t)
					number := must.Get(after.Number.Uint64())(t)
					tell(t, "anvil_rollback", head-number)
					tell(t, "evm_mine")
				},
			}
		}
	}
	require.NoError(t, lines.Err())
	t.Fatal("anvil ended before it listened")
	return nil
}

// player sends transactions from the account that has coins.
type player struct {
	*ramp.RPC
	key     *ecdsa.PrivateKey
	address common.Address
}

func newPlayer(t *testing.T, r *ramp.RPC) *player {
	t.Helper()
	k := key(t)
	return &player{RPC: r, key: k, address: crypto.PubkeyToAddress(k.PublicKey)}
}

// sign returns a signed transaction. If to is nil, it creates a contract.
func (p *player) sign(t *testing.T, to *common.Address, wei *big.Int, data []byte) []byte {
	t.Helper()
	id := must.Get(p.ChainID(t.Context()))(t)
	nonce := must.Get(p.TransactionCount(t.Context(), p.address, "pending"))(t)
	tx := must.Get(types.SignNewTx(p.key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: nonce, Gas: 500_000, GasFeeCap: big.NewInt(1e11), GasTipCap: big.NewInt(1e9), To: to,
		Value: wei, Data: data,
	}))(t)
	return must.Get(tx.MarshalBinary())(t)
}

func (p *player) send(t *testing.T, to *common.Address, wei *big.Int, data []byte) common.Hash {
	t.Helper()
	return must.Get(p.SendRawTransaction(t.Context(), p.sign(t, to, wei, data)))(t)
}

// echoCode is the code of a contract. If its call data begins with 1, it returns the rest;
// if it begins with another byte, it reverts with the rest; if it is empty, it logs 42.
var echoCode = common.FromHex(strings.ReplaceAll(strings.Join([]string{
	"6031 80 600b 6000 39 6000 f3", // to deploy the 49 bytes that follow
	"36 15 6022 57",                // no call data: go to the log
	"6001 36 03 80 6001 6000 37",   // copy all but the first byte
	"6000 35 60f8 1c 6001 14 601e 57",
	"6000 fd",                 // revert
	"5b 6000 f3",              // return
	"5b 602a 6000 52",         // log: 42 into memory
	"33 6077 6020 6000 a2 00", // topics 0x77 and the caller
}, ""), " ", ""))

func (p *player) deployEcho(t *testing.T, n *node) common.Address {
	t.Helper()
	hash := p.send(t, nil, nil, echoCode)
	n.mine(t)
	receipt := must.Get(p.WaitReceipt(t.Context(), hash, 1))(t)
	require.True(t, receipt.Succeeded(), string(receipt.Raw))
	require.NotZero(t, receipt.ContractAddress)
	return receipt.ContractAddress
}
