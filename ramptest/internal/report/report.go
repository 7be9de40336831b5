// Package report says what the control API and the pages of an emulated service show alike: its orders, and
// why a request failed. So neither needs the other, and they cannot disagree.
package report

import (
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Order returns an order as the API and the pages show it.
func Order(s *emulator.Service, o *order.Order) control.OrderReport {
	player, name := s.Audit.Who(o.Session.ID)
	token, tx, progress, known := o.Token(), s.Orders.Chains.Event(o), s.Orders.Progress(o), s.Orders.Known(o)
	r := control.OrderReport{UUID: o.UUID, Do: string(o.Trade().Direction), SessionID: o.Session.ID,
		PlayerID: player, Name: name,
		Network: o.Network, ProjectID: o.Request.ProjectID, Token: token.ID, Amount: token.Amount.String(),
		Wallet: o.Request.UserAddress,
		Assets: []control.AssetAmount{}, Faults: append([]string{}, o.Script.Names...), Placed: o.Placed,
		Verdict: verdict.Of(known.Facts), TxHash: o.TxHash, TxStatus: string(tx.Status), Block: tx.Block,
		Delivery: string(progress.State), Attempts: progress.Attempts, LastStatus: progress.Status,
		Over: progress.Done, Imbalances: []control.Imbalance{}}
	if known.Books.Moved != nil {
		r.Moved = make(map[string]string)
	}
	for asset, amount := range known.Books.Moved {
		r.Moved[asset] = trade.AmountOf(amount).String()
	}
	if o.Refused != "" {
		r.TxStatus, r.Delivery = "", ""
	}
	assets, _ := o.Trade().Sides(&o.Request.Intent)
	for _, asset := range *assets {
		r.Assets = append(r.Assets, control.AssetAmount{ID: asset.ID, Amount: asset.Amount.String()})
	}
	for _, found := range s.Audit.About(o.UUID) {
		shown := control.Imbalance{Problem: found.Problem, Assets: []control.AssetBalance{}}
		for _, a := range found.Assets {
			shown.Assets = append(shown.Assets,
				control.AssetBalance{ID: a.ID, Before: a.Before.String(), After: a.After.String(),
					Expected: a.Expected.String()})
		}
		r.Imbalances = append(r.Imbalances, shown)
	}
	return r
}
