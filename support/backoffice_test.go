package support_test

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// backoffice shows and ends orders, and compares them with the chain.
type backoffice struct {
	*support.Orders
	*rampbooks.Reconciler // nil if the store does not list its orders
}

// backofficeConfig is that of a backoffice.
type backofficeConfig struct {
	Store      ramp.Store
	Proof      *rampproof.Proof
	ProjectID  string
	Network    ramp.Network
	Products   []rampbooks.Offer
	Tokens     []common.Address
	Sessions   func(ctx context.Context, player string) ([]string, error)
	OwnsWallet func(ctx context.Context, sessionID string, wallet common.Address) (bool, error)
	Journal    rampbooks.Journal
	Logger     *slog.Logger
	Now        func() time.Time
}

func newBackoffice(c backofficeConfig) (*backoffice, error) {
	b := new(backoffice)
	var failed error
	var books support.Books
	if store, ok := c.Store.(rampbooks.OrderLister); ok {
		b.Reconciler, failed = rampbooks.New(rampbooks.Config{Store: store, Proof: c.Proof, ProjectID: c.ProjectID,
			Network: c.Network, Products: c.Products, Tokens: c.Tokens, OwnsWallet: c.OwnsWallet,
			Journal: c.Journal, Logger: c.Logger, Now: c.Now})
		if c.Proof != nil {
			books = b.Reconciler
		}
	}
	var err error
	b.Orders, err = support.New(support.Config{Store: c.Store, Proof: c.Proof, ProjectID: c.ProjectID,
		Network: c.Network, Products: c.Products, Sessions: c.Sessions, Books: books,
		Logger: c.Logger, Now: c.Now})
	return b, cmp.Or(err, failed)
}
