// Package audit keeps the books of the players while a service calls their game. It reads
// what a player owns before and after each call about an order, lets package tally judge
// the difference, and remembers what was found.
//
// It knows neither the service nor its orders: a call is a [Call], a plain value, and what
// it needs of the service is in [Config].
package audit

import (
	"context"
	"math/big"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Config is what the books need of a service.
type Config struct {
	// Off disables the readings. The books then keep only what the results said.
	Off bool

	// Closed says that whatever moves for no order is a finding.
	Closed bool

	// Settle is how long an effect may lag behind its answer; below 0, not at all.
	Settle time.Duration

	// Regenerating are the assets that move by themselves, which are neither read nor judged.
	Regenerating []string

	// Ask asks the game what a player owns. status is that of its answer, or 0.
	Ask func(context.Context, ramp.Session, uuid.UUID) (player *ramp.Player, status int, err error)

	// Rejects reports whether an error of Ask means that the game rejected the session.
	Rejects func(error) bool

	// Changed is called if something has become known about an order. The books are locked
	// meanwhile, as in Judged, so neither may call them.
	Changed func(uuid.UUID)

	// Judged is called with the story of each window and what was found in it, or nil, before
	// the next call about the same player goes on: the record tells of a call and of what was
	// found after it in this order. With uuid.Nil, the story is of what moved between windows.
	Judged func(opened uuid.UUID, said string, found *Finding)
}

// Subject is what the audit must know about an order.
type Subject struct {
	UUID    uuid.UUID
	Session ramp.Session
	Mint    bool         // false for a burn
	Sum     tally.Assets // what must move if the transaction succeeds; see [tally.Tally]
	Less    bool         // the transaction burns less than the order is about
	Held    *big.Rat     // the tokens in the player's wallet before the order
	Fee     *big.Rat     // the part that the ramp keeps of a mint; nil is nothing
}

// Call is a call about an order. Stated and OnChain are the outcome that a result states,
// and that on the chain: true is a success.
type Call struct {
	Order           Subject
	Result, Forged  bool
	Stated, OnChain bool

	// Alone says that a call about the same order is made before this one ends. A call about another order
	// must then not overlap: the inner call could not join their window, and would wait for itself.
	Alone bool
}

// Finding is what the game has lost, or moved twice or wrongly.
type Finding struct {
	Orders  []uuid.UUID
	Problem string
	Assets  []Balance
}

// Balance is a player's balance of an asset.
type Balance struct {
	ID                      string
	Before, After, Expected ramp.Amount
}

// amount converts an exact decimal. A sum may have more digits than an amount can hold; the
// result is then zero.
func amount(n *big.Rat) ramp.Amount {
	converted, _ := ramp.ParseAmount(tally.Decimal(n))
	return converted
}
