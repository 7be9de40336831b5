// Package api serves the control API of an emulated service. Its messages and its client are in package
// control.
package api

import (
	"context"

	"github.com/token-ramp/ramp-go/ramptest/control"
)

// Emulator is an emulated service. Each method is one request of the API. A
// [control.Client] implements it over HTTP. An error of the API is a [*control.Error].
//
// An id is the UUID of an order, or at least its first 4 characters.
type Emulator interface {
	Describe(ctx context.Context) (control.Description, error)
	Start(ctx context.Context, r control.StartRequest) (control.OrderReport, error)
	Orders(ctx context.Context, q control.OrdersQuery) (control.OrderList, error)
	Order(ctx context.Context, id string, q control.OrderQuery) (control.OrderReport, error)
	Send(ctx context.Context, id string, r control.SendRequest) (control.Sent, error)
	Advance(ctx context.Context, r control.AdvanceRequest) (control.Advanced, error)
	Fail(ctx context.Context, r control.FailRequest) (control.Done, error)
	SetNode(ctx context.Context, r control.NodeRequest) (control.Done, error)
	Events(ctx context.Context, q control.EventsQuery) (control.EventList, error)
	Check(ctx context.Context) (control.Checked, error)
	Reset(ctx context.Context, r control.ResetRequest) (control.Done, error)
}

var _ Emulator = (*control.Client)(nil)
