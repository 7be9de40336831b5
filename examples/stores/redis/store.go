// Package redisstore is a ramp.Store on Redis, to copy whole. A script compares
// the stored order, replaces it and moves the balances in one atomic step.
//
//	store := &redisstore.Store{Client: client, Approve: approve}
//	game, err := ramp.NewOrderGame(ramp.OrderGameConfig{Players: players, Store: store})
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{Game: game, Key: key, Signer: signer})
//
// Run one primary, with these settings. Without them, what players have paid can
// be lost:
//
//	appendonly yes
//	appendfsync always
//	maxmemory-policy noeviction
//
// Replication of Redis is asynchronous: after a failover to a replica, orders
// that were acknowledged may be lost, and the balances that they moved with them.
// The keys of an order and of its player belong to different slots, so this
// store does not run on Redis Cluster.
//
// Errors of Redis are returned, and the service repeats the call. A script whose
// answer was lost has run or not; a repeat finds the order and moves nothing.
package redisstore

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	ramp "github.com/token-ramp/ramp-go"
)

// Store keeps orders and balances in Redis. Any number of processes may share it.
type Store struct {
	Client *redis.Client
	// Approve has the rules of the game, nil for none. It sees each new step, and
	// may decline an order that is accepted with ramp.Reject. It may be called
	// again for the same step, so it must change nothing.
	Approve func(ctx context.Context, step ramp.Step) error
}

// An order is never deleted and does not expire. A player has a field for each
// asset that the game knows.
func orderKey(id uuid.UUID) string        { return "order:" + id.String() }
func balancesKey(sessionID string) string { return "balances:" + sessionID }

//go:embed step.lua
var stepSource string

var stepScript = redis.NewScript(stepSource)

// An order changes twice at most, so that more lost attempts mean that something
// else writes to its key.
const attempts = 5

// Update implements ramp.Store. A step that lost against another one is taken
// again, from the order that the other one stored.
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
		if s.Approve != nil {
			if err := s.Approve(ctx, step); err != nil {
				return ramp.Step{}, err
			}
		}
		if won, err := s.apply(ctx, id, document, step); err != nil {
			return ramp.Step{}, err
		} else if won {
			return step, nil
		}
	}
	return ramp.Step{}, fmt.Errorf("order %s changed during %d attempts", id, attempts)
}

// read returns an order and its document, nil and "" if there is none.
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

const most = 100_000_000_000_000_000 // of an asset in one order, so that a balance does not overflow

// apply stores the order of a step and moves what the step moves. It reports
// whether the order still had the document. It declines an order that it could
// not move exactly, or not grant later, while it can still be declined.
func (s *Store) apply(ctx context.Context, id uuid.UUID, document string, step ramp.Step) (bool, error) {
	replacement, err := json.Marshal(step.Order)
	if err != nil {
		return false, err
	}
	assets, accepted := step.Effect.Assets, step.Order.State == ramp.OrderAccepted
	if accepted {
		assets = step.Order.Assets // those of a burn too, which move by nothing
	}
	args := []any{document, replacement}
	for _, a := range assets {
		if n, err := a.Amount.Int64(); accepted && (err != nil || n > most) {
			return false, ramp.Reject("INVALID_AMOUNT")
		}
		args = append(args, a.ID, a.Amount.String(), sign(step.Effect.Kind))
	}
	switch outcome, err := stepScript.Run(ctx, s.Client, []string{orderKey(id), balancesKey(step.Order.SessionID)}, args...).Text(); {
	case err != nil:
		return false, err
	case outcome != "BALANCE":
		return outcome == "STORED", nil
	case accepted:
		return false, ramp.Reject("INVALID_BALANCE")
	default:
		return false, fmt.Errorf("order %s: session %q has no balance of an asset", id, step.Order.SessionID)
	}
}

// sign is the direction of an effect: 0 for none.
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

// Balance reads what a player owns of an asset.
func (s *Store) Balance(ctx context.Context, sessionID, asset string) (int64, error) {
	return s.Client.HGet(ctx, balancesKey(sessionID), asset).Int64()
}

// SetBalance sets what a player owns of an asset, such as at the login of a new
// player. It must not run at the same time as an order of the player.
func (s *Store) SetBalance(ctx context.Context, sessionID, asset string, amount int64) error {
	return s.Client.HSet(ctx, balancesKey(sessionID), asset, amount).Err()
}
