package items

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"

	ramp "github.com/token-ramp/ramp-go"
)

// bank is a service as the package wants it. It decides each key once, with all that it moves.
type bank struct {
	check func(ramp.Step) error // of the kit; may be nil

	mu       sync.Mutex
	balances map[[2]string]int64 // by player and item
	decided  map[string]error    // by key; nil is applied
}

func newBank(check func(ramp.Step) error) *bank {
	return &bank{check: check, balances: map[[2]string]int64{}, decided: map[string]error{}}
}

func (b *bank) give(_ context.Context, player, item string, balance int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balances[[2]string{player, item}] = balance
	return nil
}

func (b *bank) balance(_ context.Context, player, item string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.balances[[2]string{player, item}], nil
}

// Apply implements Items, in the process of the store.
func (b *bank) Apply(_ context.Context, key string, step ramp.Step) error {
	return b.decide(key, step.Order.SessionID, step.Effect.Kind.String(), step.Order.Assets, func() error {
		if b.check == nil {
			return nil
		}
		return b.check(step)
	})
}

func (b *bank) decide(key, player, kind string, assets []ramp.AssetAmount, check func() error) (refused error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if refused, again := b.decided[key]; again {
		return refused
	}
	defer func() {
		if cause := recover(); cause != nil {
			refused = fmt.Errorf("%w: panic: %v", ErrRefused, cause)
		}
		b.decided[key] = refused
	}()
	sign := map[string]int64{"take": -1, "give back": 1, "grant": 1}[kind]
	after := map[[2]string]int64{}
	for _, asset := range assets {
		n, err := asset.Amount.Int64()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, ramp.Reject("INVALID_AMOUNT"))
		}
		item := [2]string{player, asset.ID}
		owned := b.balances[item]
		after[item] = owned + sign*n
		// Only a take may be refused, and a burn that was just accepted, for which kind is nothing.
		if kind == "take" && after[item] < 0 || sign == 0 && owned > math.MaxInt64-n {
			return fmt.Errorf("%w: %w", ErrRefused, ramp.Reject("INVALID_BALANCE"))
		}
	}
	if err := check(); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for item, n := range after {
		b.balances[item] = n
	}
	return nil
}

// ServeHTTP answers a Service.
func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m Move
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	refused := b.decide(r.Header.Get("Idempotency-Key"), m.Player, m.Kind, m.Assets, func() error { return nil })
	var rejection *ramp.Rejection
	if errors.As(refused, &rejection) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": rejection.Code})
	}
}
