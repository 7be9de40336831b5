package rampsql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// Shards is a [ramp.Store] for players who are in several databases, each with a [Store]. Make one with
// [NewShards]. It is safe for concurrent use.
//
// An order is stored in the database where its player is when it is accepted, and stays there, also if the
// player moves. So a result is looked for by its UUID in every database, and a validate call in those where
// its player is or has been. Only a new order goes to where the player is. A database that does not answer
// stops the orders of the players who are or have been there, and nobody else's. Lists, counts and Check
// need all databases. Delete old orders in each of them.
//
// One transaction ends one order of all databases: their stores have the same [Claims]. While the database of
// these does not answer, no order ends by a transaction. It can be the one that Place asks.
//
// docs/players-and-items.md says how a player moves.
type Shards struct{ config ShardsConfig }

// ShardsConfig configures [Shards]. Both fields are required.
type ShardsConfig struct {
	// Stores are the stores of the databases, one for each, with the same Projects, Network and Claims. A
	// [Place] names them by their index, so append new ones, and remove none that has an order.
	Stores []*Store

	// Place says where the player of a session is, and has been. It must know each session for as long as
	// [ramp.Players] must. Its error is that of the call; [ramp.Reject] declines a new order.
	Place func(ctx context.Context, sessionID string) (Place, error)
}

// Place is where a player is. The numbers are indexes of Stores of [ShardsConfig].
type Place struct {
	Shard  int   // where the player is: a new order is stored there
	Former []int // where the player has been
	Moving bool  // whether the player is being moved: a new order is declined with the code PLAYER_MOVING
}

// NewShards returns the store of several databases. The error is a [*ramp.InvalidError].
func NewShards(c ShardsConfig) (*Shards, error) {
	var p invalid.Fields
	p.Require(len(c.Stores) > 0, "ShardsConfig.Stores", "is required")
	for n, store := range c.Stores {
		path := fmt.Sprintf("ShardsConfig.Stores[%d]", n)
		p.Require(store != nil && store.made() == nil, path, "must be made by New")
		twice := func(other *Store) bool {
			return store != nil && other != nil && other.config.DB == store.config.DB
		}
		p.Require(!slices.ContainsFunc(c.Stores[:n], twice), path, "must have a database of its own")
		if store == nil {
			continue
		}
		p.Require(store.config.Claims != nil, path, "must have Config.Claims: a player who moves, and "+
			"somebody with the HMAC key, could be paid in each database for one transaction")
		first := c.Stores[0]
		if first == nil {
			continue
		}
		same := func(equal bool, what string) {
			p.Require(equal, path, "must have the "+what+" of the first store")
		}
		same(slices.Equal(store.own.sorted(), first.own.sorted()), "Projects")
		same(store.own.network == first.own.network, "Network")
		if first.config.Claims != nil && store.config.Claims != nil {
			same(store.config.Claims == first.config.Claims, "Claims")
		}
	}
	p.Require(c.Place != nil, "ShardsConfig.Place", "is required")
	if err := p.Err(); err != nil {
		return nil, err
	}
	c.Stores = slices.Clone(c.Stores)
	return &Shards{c}, nil
}

func (s *Shards) made() error {
	if s.config.Place == nil {
		return errors.New("ramp: the rampsql.Shards was not made by rampsql.NewShards")
	}
	return nil
}

// all returns the index of every store.
func (s *Shards) all() []int {
	all := make([]int, len(s.config.Stores))
	for n := range all {
		all[n] = n
	}
	return all
}

// place returns where a player is, and all stores that may have an order of the player.
func (s *Shards) place(ctx context.Context, sessionID string) (place Place, known []int, err error) {
	place, err = s.config.Place(ctx, sessionID)
	if err != nil {
		return Place{}, nil, fmt.Errorf("ramp: the place of session %q: %w", sessionID, err)
	}
	known = append(known, place.Shard)
	for _, former := range place.Former {
		if !slices.Contains(known, former) {
			known = append(known, former)
		}
	}
	for _, n := range known {
		if n < 0 || n >= len(s.config.Stores) {
			return Place{}, nil, fmt.Errorf("ramp: the place of session %q: there is no shard %d",
				sessionID, n)
		}
	}
	return place, known, nil
}

// askTime is how long a database may take to say whether it has an order.
const askTime = time.Second

// answer is what a store has said.
type answer[T any] struct {
	shard int
	value T
	err   error
}

// ask asks stores at the same time, and returns their answers in the order of shards.
func ask[T any](
	ctx context.Context, s *Shards, shards []int, question func(context.Context, *Store) (T, error),
) []answer[T] {
	answers := make(chan answer[T], len(shards))
	for _, n := range shards {
		go func() {
			value, err := question(ctx, s.config.Stores[n])
			if err != nil {
				err = fmt.Errorf("shard %d: %w", n, err)
			}
			answers <- answer[T]{n, value, err}
		}()
	}
	var all []answer[T]
	for range shards {
		all = append(all, <-answers)
	}
	slices.SortFunc(all, func(a, b answer[T]) int { return a.shard - b.shard })
	return all
}

// find returns the only order that stores have, and where it is. If none has it, and one does not answer,
// that is the error; otherwise the error wraps [ramp.ErrOrderUnknown].
func (s *Shards) find(
	ctx context.Context, shards []int, what string,
	question func(context.Context, *Store) (ramp.Order, error),
) (found ramp.Order, at int, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	at = -1
	var silent []error
	for _, a := range ask(ctx, s, shards, question) {
		switch {
		case a.err == nil && at >= 0:
			return ramp.Order{}, -1, fmt.Errorf("ramp: %s: shards %d and %d both have it", what, at, a.shard)
		case a.err == nil:
			found, at = a.value, a.shard
		case !errors.Is(a.err, ramp.ErrOrderUnknown):
			silent = append(silent, a.err)
		}
	}
	switch {
	case at >= 0:
		return found, at, nil
	case silent != nil:
		return ramp.Order{}, -1, fmt.Errorf("ramp: %s: %w", what, errors.Join(silent...))
	default:
		return ramp.Order{}, -1, fmt.Errorf("ramp: %s: %w", what, ramp.ErrOrderUnknown)
	}
}

// findOrder finds an order, of whatever project.
func (s *Shards) findOrder(ctx context.Context, shards []int, id uuid.UUID) (ramp.Order, int, error) {
	what := "order " + id.String()
	return s.find(ctx, shards, what, func(ctx context.Context, store *Store) (ramp.Order, error) {
		return store.one(ctx, what, "WHERE uuid = $1", id.String())
	})
}

// findTransaction finds the order that a transaction has ended.
func (s *Shards) findTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error) {
	found, _, err := s.find(ctx, s.all(), "order of transaction "+hash.String(),
		func(ctx context.Context, store *Store) (ramp.Order, error) {
			return store.OrderByTransaction(ctx, hash)
		})
	return found, err
}

// Update implements [ramp.Store] in the database that has the order, and otherwise in that of its player.
func (s *Shards) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	if err := s.made(); err != nil {
		return ramp.Step{}, err
	}
	opened, err := openingStep(next)
	if err != nil {
		return ramp.Step{}, err
	}
	shards, place := s.all(), Place{} // the caller of a result need not know its session
	if opened.New {
		if place, shards, err = s.place(ctx, opened.Order.SessionID); err != nil {
			return ramp.Step{}, err
		}
	}
	_, at, err := s.findOrder(ctx, shards, id)
	switch {
	case err == nil:
		step, err := s.config.Stores[at].Update(ctx, id, next)
		return step, s.explain(ctx, err)
	case !errors.Is(err, ramp.ErrOrderUnknown):
		return ramp.Step{}, err
	case !opened.New:
		_, err := next(nil)
		return ramp.Step{}, err
	case place.Moving:
		return ramp.Step{}, fmt.Errorf("ramp: order %s: the player is being moved: %w", id,
			ramp.Reject("PLAYER_MOVING"))
	}
	return s.config.Stores[place.Shard].Update(ctx, id, next)
}

// explain completes a conflict with an order of another database.
func (s *Shards) explain(ctx context.Context, err error) error {
	var conflict *ramp.ConflictError
	if !errors.As(err, &conflict) || conflict.Other == nil || conflict.Other.State != "" {
		return err
	}
	if other, _, failed := s.findOrder(ctx, s.all(), conflict.Other.UUID); failed == nil {
		return &ramp.ConflictError{Order: conflict.Order, Field: conflict.Field, Other: &other}
	}
	return err
}

// Claims returns the claims of all databases; see [ramp.Claims].
func (s *Shards) Claims() ramp.Claims {
	if s.made() != nil {
		return nil
	}
	return s.config.Stores[0].Claims()
}

// Check calls [Store.Check] of every store.
func (s *Shards) Check(ctx context.Context, network ramp.Network) error {
	if err := s.made(); err != nil {
		return err
	}
	var found []error
	for _, a := range ask(ctx, s, s.all(), func(ctx context.Context, store *Store) (struct{}, error) {
		return struct{}{}, store.Check(ctx, network)
	}) {
		found = append(found, a.err)
	}
	return errors.Join(found...)
}

// Refused is [Store.Refused] in the database that has the order.
func (s *Shards) Refused(ctx context.Context, id uuid.UUID, reason string) error {
	if err := s.made(); err != nil {
		return err
	}
	_, at, err := s.findOrder(ctx, s.all(), id)
	if errors.Is(err, ramp.ErrOrderUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.config.Stores[at].Refused(ctx, id, reason)
}
