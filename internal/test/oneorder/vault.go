package oneorder

import (
	"context"
	"sync"

	"github.com/token-ramp/ramp-go"
)

// Vault is the data of a game in memory: the gold of each session.
type Vault struct {
	sync.Mutex
	Gold map[string]int64
	Fail func() error // instead of the next steps, or nil
}

// Apply moves what a step moves. Whoever has too little is rejected.
func (v *Vault) Apply(_ context.Context, step ramp.Step) error {
	v.Lock()
	defer v.Unlock()
	if v.Fail != nil {
		return v.Fail()
	}
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		if v.Gold[step.Order.SessionID]+delta < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		v.Gold[step.Order.SessionID] += delta
	}
	return nil
}
