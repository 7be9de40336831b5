// To make it yours: change nothing, or where your game keeps such a switch. Keep that the switch is
// read with each order.

package main

import (
	"context"
	"errors"

	ramp "github.com/token-ramp/ramp-go"
)

const shopClosed = "SELECT closed FROM shop WHERE closed <> ?"

// checkOpen rejects an order before it begins while the shop is closed. bindWallet decides.
func (g *game) checkOpen(ctx context.Context) error {
	closed, err := g.column(ctx, g.db, shopClosed, "")
	if err == nil && len(closed) > 0 {
		err = &ramp.Rejection{Code: "SHOP_CLOSED", Err: errors.New("closed by " + closed[0])}
	}
	return err
}
