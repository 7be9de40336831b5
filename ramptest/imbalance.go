package ramptest

import (
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
)

// Imbalance is an error which reports that the game has lost assets, or moved them
// twice or wrongly.
type Imbalance struct {
	Orders  []uuid.UUID // the orders of the calls; several if calls overlapped
	Problem string      // what is wrong, in words
	// the assets whose balance is wrong; none if the game approved more than the player owned
	Assets []AssetBalance
}

// AssetBalance is a player's balance of an asset before and after a call, and the
// balance expected after it.
type AssetBalance struct {
	ID                      string
	Before, After, Expected ramp.Amount
}

// Error returns the problem.
func (i *Imbalance) Error() string { return "ramptest: " + i.Problem }

// imbalance returns a finding as the service reports it.
func imbalance(f *audit.Finding) *Imbalance {
	i := &Imbalance{Orders: f.Orders, Problem: f.Problem}
	for _, a := range f.Assets {
		i.Assets = append(i.Assets, AssetBalance(a))
	}
	return i
}
