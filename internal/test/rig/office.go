// Package rig has what the tests of packages support and rampbooks run on: a node with a chain that
// a test writes, a store in memory, and a studio on the emulator.
package rig

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// Office shows and ends orders, and compares them with the chain.
type Office struct {
	*support.Orders
	*rampbooks.Reconciler // nil if the store does not list its orders
}

// Config is that of an [Office].
type Config struct {
	Store      ramp.Store
	Proof      *rampproof.Proof
	Projects   []string
	Network    ramp.Network
	Products   []rampbooks.Offer
	Tokens     []common.Address
	Sessions   func(ctx context.Context, player string) ([]string, error)
	OwnsWallet func(ctx context.Context, sessionID string, wallet common.Address) (bool, error)
	Journal    rampbooks.Journal
	Logger     *slog.Logger
	Now        func() time.Time
}

// NewOffice returns what the package support and the books need of c.
func NewOffice(c Config) (*Office, error) {
	b := new(Office)
	var failed error
	var books support.Books
	if store, ok := c.Store.(rampbooks.OrderLister); ok {
		b.Reconciler, failed = rampbooks.New(rampbooks.Config{Store: store, Proof: c.Proof,
			Projects: c.Projects,
			Network:  c.Network, Products: c.Products, Tokens: c.Tokens, OwnsWallet: c.OwnsWallet,
			Journal: c.Journal, Logger: c.Logger, Now: c.Now})
		if c.Proof != nil {
			books = b.Reconciler
		}
	}
	var err error
	b.Orders, err = support.New(support.Config{Store: c.Store, Proof: c.Proof, Projects: c.Projects,
		Network: c.Network, Products: c.Products, Sessions: c.Sessions, Books: books,
		Logger: c.Logger, Now: c.Now})
	return b, cmp.Or(err, failed)
}

// NewOfficeOnNode returns orders of the game that sells product, on a node whose chain is so old.
func NewOfficeOnNode(t *testing.T, age time.Duration, proof *rampproof.Config) (*Office, *Store, *Node) {
	t.Helper()
	n := &Node{Begin: Now.Add(-age), Head: uint64(age / time.Second), Decimals: Eighteen}
	store := NewStore(t, func(context.Context, ramp.Step) error { return nil })
	return OfficeOf(t, store, n, proof), store, n
}

// OfficeOf returns the orders of a store, on a node.
func OfficeOf(t *testing.T, store *Store, n *Node, proof *rampproof.Config) *Office {
	t.Helper()
	return must.Get(NewOffice(Config{Store: store, Proof: ProofOn(t, n.RPC(t), proof),
		Products: rampbooks.Always(Product),
		Now:      Later, Logger: Quiet}))(t)
}

// WithJournal returns the orders of a store with a journal, whose clock a test sets.
func WithJournal(t *testing.T, store *Store, n *Node, clock *time.Time) (*Office, *Journal) {
	t.Helper()
	journal := new(Journal)
	return must.Get(NewOffice(Config{Store: store, Journal: journal, Logger: Quiet,
		Proof: ProofOn(t, n.RPC(t), &rampproof.Config{AnyFailure: true}), Products: rampbooks.Always(Product),
		Now: func() time.Time { return *clock }}))(t), journal
}

// ProofOn returns a proof on a chain, with the fee of product.
func ProofOn(t testing.TB, chain *ramp.RPC, c *rampproof.Config) *rampproof.Proof {
	config := *c
	config.Chain, config.Network = chain, cmp.Or(c.Network, ramp.Testnet)
	config.MintFeeBps = map[common.Address]int{common.HexToAddress(Product.Token): Product.MintFeeBps}
	return must.Get(rampproof.New(config))(t)
}

// Paid proves what the ramp pays for.
var Paid = &rampproof.Config{Payers: []common.Address{Payer}}

// Quiet drops what is logged.
var Quiet = slog.New(slog.DiscardHandler)

// RunCommand runs a command as a program does.
func RunCommand(t *testing.T, o *Office, name string, args ...string) (string, error) {
	t.Helper()
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	single, err := support.NewCommand(name, flags)
	books, failed := rampbooks.NewCommand(name, flags)
	if err != nil && failed != nil {
		return "", err
	}
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if single != nil {
		err = single(t.Context(), o.Orders, flags.Args(), &out)
	} else {
		err = books(t.Context(), o.Reconciler, flags.Args(), &out)
	}
	return out.String(), err
}
