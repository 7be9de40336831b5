package rig

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// NotingStore is a store that notes refusals.
type NotingStore struct {
	*Store
	Noted   map[uuid.UUID]ramp.Refusal
	Failing error
}

func (n *NotingStore) Refused(_ context.Context, id uuid.UUID, reason string) error {
	if o, known := n.Orders[id]; known && o.State == ramp.OrderAccepted && n.Failing == nil {
		r := n.Noted[id]
		n.Noted[id] = ramp.Refusal{UUID: id, First: Now, Last: Now.Add(time.Hour), Count: r.Count + 1,
			Reason: reason}
	}
	return n.Failing
}

func (n *NotingStore) Refusals(_ context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error) {
	found := map[uuid.UUID]ramp.Refusal{}
	for _, id := range orders {
		if r, ok := n.Noted[id]; ok {
			found[id] = r
		}
	}
	return found, nil
}

func (n *NotingStore) CountRefused(_ context.Context, d ramp.Direction) (count int, first time.Time,
	err error) {
	for id := range n.Noted {
		if o := n.Orders[id]; o.State == ramp.OrderAccepted && o.Direction == d {
			count++
		}
	}
	return count, Now, nil
}
