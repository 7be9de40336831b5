// Package redisstore is a ramp.Store on Redis. Copy the whole package. A script
// compares the stored order, replaces it and moves the balances atomically.
//
//	store := &redisstore.Store{Client: client, Approve: approve}
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{
//		Players: players, Store: store, Terms: terms, Key: key, Signer: signer})
//
// Run a single primary with these settings. Without them, assets that players paid
// can be lost:
//
//	appendonly yes
//	appendfsync always
//	maxmemory-policy noeviction
//
// Redis replicates asynchronously: after a failover to a replica, acknowledged orders
// and the changes that they made to balances may be lost. The keys of an order and of
// its player belong to different slots, so this store does not work with Redis
// Cluster.
//
// Store returns Redis errors, and the service then repeats the call. If the answer of
// a script is lost, the script may have run. A repeat then finds the order and moves
// nothing.
package redisstore

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	ramp "github.com/token-ramp/ramp-go"
)

// Store keeps orders and balances in Redis. Any number of processes may share it.
type Store struct {
	Client *redis.Client
	// Approve applies the rules of the game; it may be nil. It is called for each
	// new step, and may reject an order in the state OrderAccepted with
	// ramp.Reject. It must not change anything, because it may be called again for
	// the same step.
	Approve func(ctx context.Context, step ramp.Step) error
}

// Orders and transactions are never deleted and do not expire. The hash of a player's
// balances has a field for each asset of the game.
func orderKey(id uuid.UUID) string        { return "order:" + id.String() }
func balancesKey(sessionID string) string { return "balances:" + sessionID }
func transactionKey(txHash string) string { return "transaction:" + txHash }

//go:embed step.lua
var stepSource string

var stepScript = redis.NewScript(stepSource)

// attempts is more than enough, because an order changes at most twice. If all fail,
// something else writes to its key.
const attempts = 5

// Update implements ramp.Store. If another call changed the order concurrently, Update
// tries again with the order that the other call stored.
func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	for range attempts {
		document, stored, err := s.read(ctx, id)
		if err != nil {
			return ramp.Step{}, err
		}
		step, err := next(stored)
		if err != nil || !step.New {
			return step, err
		}
		if s.Approve != nil && !step.Settled() {
			if err := s.Approve(ctx, step); err != nil {
				return ramp.Step{}, err
			}
		}
		other, won, err := s.apply(ctx, id, document, step)
		switch {
		case err != nil:
			return ramp.Step{}, err
		case other != nil:
			return ramp.Step{}, &ramp.ConflictError{Order: *stored, Field: "tx_hash", Other: other}
		case won:
			return step, nil
		}
	}
	return ramp.Step{}, fmt.Errorf("order %s changed during %d attempts", id, attempts)
}

// read returns an order and its document, or "" and nil if there is none.
func (s *Store) read(ctx context.Context, id uuid.UUID) (document string, stored *ramp.Order, err error) {
	document, err = s.Client.Get(ctx, orderKey(id)).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	stored = new(ramp.Order)
	return document, stored, json.Unmarshal([]byte(document), stored)
}

const maxAmount = 100_000_000_000_000_000 // of an asset in one order

// apply stores the order of a step and moves its assets. It reports whether the order
// still had the document, and returns the other order that has ended by its
// transaction; in both cases it changes nothing. It rejects an order that it could not
// move exactly or could not grant later.
func (s *Store) apply(ctx context.Context, id uuid.UUID, document string, step ramp.Step) (other *ramp.Order,
	won bool, err error) {
	replacement, err := json.Marshal(step.Order)
	if err != nil {
		return nil, false, err
	}
	assets, accepted := step.Effect.Assets, step.Order.State == ramp.OrderAccepted
	if accepted {
		assets = step.Order.Assets // includes those of a burn, which do not move yet
	}
	args := []any{document, replacement, ""}
	if step.Order.TxHash != "" {
		args[2] = id.String()
	}
	for _, a := range assets {
		if n, err := a.Amount.Int64(); accepted && (err != nil || n > maxAmount) {
			return nil, false, ramp.Reject("INVALID_AMOUNT")
		}
		args = append(args, a.ID, a.Amount.String(), sign(step.Effect.Kind))
	}
	keys := []string{orderKey(id), balancesKey(step.Order.SessionID), transactionKey(step.Order.TxHash)}
	outcome, err := stepScript.Run(ctx, s.Client, keys, args...).Text()
	taken, found := strings.CutPrefix(outcome, "TAKEN ")
	switch {
	case err != nil:
		return nil, false, err
	case found:
		_, other, err = s.read(ctx, uuid.MustParse(taken))
		return other, false, err
	case outcome != "BALANCE":
		return nil, outcome == "STORED", nil
	default: // only an order that was just accepted: a grant or a give-back needs no balance
		return nil, false, ramp.Reject("INVALID_BALANCE")
	}
}

// sign returns the sign of an effect's change to balances, or 0 for no change.
func sign(kind ramp.EffectKind) string {
	switch kind {
	case ramp.Take:
		return "-"
	case ramp.GiveBack, ramp.Grant:
		return "+"
	default:
		return "0"
	}
}

// Balance returns how much of an asset a player owns.
func (s *Store) Balance(ctx context.Context, sessionID, asset string) (int64, error) {
	return s.Client.HGet(ctx, balancesKey(sessionID), asset).Int64()
}

// SetBalance sets how much of an asset a player owns, for example when a player is
// created. It must not run concurrently with an order of the player.
func (s *Store) SetBalance(ctx context.Context, sessionID, asset string, amount int64) error {
	return s.Client.HSet(ctx, balancesKey(sessionID), asset, amount).Err()
}
