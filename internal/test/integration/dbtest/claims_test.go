package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// newClaims returns claims in the database of a place.
func newClaims(t *testing.T, p *place) *rampsql.Claims {
	t.Helper()
	return must.Get(rampsql.NewClaims(rampsql.ClaimsConfig{DB: p.db, Dialect: p.dialect, Network: ramp.Testnet}))(t)
}

// newClaimingStore returns a store with claims.
func newClaimingStore(t *testing.T, p *place, apply apply, claims *rampsql.Claims) *rampsql.Store {
	t.Helper()
	return must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: apply, Claims: claims,
		TxOptions: &sql.TxOptions{Isolation: p.mode.isolation}, Logger: ramptest.Logger(t)}))(t)
}

// claimants are two databases that share claims, which are in the first one.
type claimants struct {
	t      *testing.T
	places [2]*place
	stores [2]*rampsql.Store
	claims *rampsql.Claims

	mu      sync.Mutex
	granted map[uuid.UUID]int
	fails   error // of Apply at the end of an order
}

func newClaimants(t *testing.T, p *place) *claimants {
	t.Helper()
	c := &claimants{t: t, places: [2]*place{p, newPlace(t, p.database, p.mode)}, granted: map[uuid.UUID]int{}}
	c.claims = newClaims(t, p)
	for n, p := range c.places {
		c.stores[n] = newClaimingStore(t, p, c.apply, c.claims)
	}
	return c
}

func (c *claimants) apply(_ context.Context, _ *sql.Tx, step ramp.Step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if step.Effect.Kind != ramp.Grant || step.Rehearsal {
		return nil
	}
	if c.fails != nil {
		return c.fails
	}
	c.granted[step.Order.UUID]++
	return nil
}

// burns accepts a burn in each database.
func (c *claimants) burns() (orders [2]order) {
	c.t.Helper()
	for n := range orders {
		orders[n] = newOrder("alice", burn("gold", 5))
		take(c.t, c.stores[n], orders[n].id, acceptAt(orders[n], day0))
	}
	return orders
}

// end ends the order of a database by a transaction.
func (c *claimants) end(n int, o order, hash string) error {
	_, err := c.stores[n].Update(c.t.Context(), o.id, ramp.Finish(o.reportBy(hash, success), time.Now()))
	return err
}

// isConflict checks that an order does not end because another one has claimed the transaction.
func (c *claimants) isConflict(err error, other uuid.UUID) {
	c.t.Helper()
	var conflict *ramp.ConflictError
	if !errors.As(err, &conflict) || conflict.Field != "tx_hash" || conflict.Other == nil ||
		conflict.Other.UUID != other {
		c.t.Errorf("a transaction that order %s has claimed: %v", other, err)
	}
}

// Both databases get the result of one transaction at the same moment. One of them pays.
func TestOneTransactionEndsOneOrderOfAllDatabases(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		c := newClaimants(t, p)
		for range 20 {
			orders := c.burns()
			hash := txHashOf(uuid.New())
			var failed [2]error
			var both sync.WaitGroup
			for n := range orders {
				both.Go(func() { failed[n] = c.end(n, orders[n], hash) })
			}
			both.Wait()
			winner := 0
			if failed[0] != nil {
				winner = 1
			}
			check(t, failed[winner])
			c.isConflict(failed[1-winner], orders[winner].id)
			for range 2 {
				check(t, c.end(winner, orders[winner], hash))
				c.isConflict(c.end(1-winner, orders[1-winner], hash), orders[winner].id)
			}
			equal(t, "grants of the winner", c.granted[orders[winner].id], 1)
			equal(t, "grants of the other", c.granted[orders[1-winner].id], 0)
			claimed := must.Get(c.claims.Claimed(t.Context(), common.HexToHash(hash)))(t)
			equal(t, "claims", len(claimed), 1)
			check(t, c.end(1-winner, orders[1-winner], txHashOf(uuid.New()))) // its own
		}
	})
}

// A call ends between its claim and the end of its order. Nobody else ends by the transaction, and its repeat
// does.
func TestAClaimWithoutAnEndIsRepeated(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		c := newClaimants(t, p)
		orders := c.burns()
		hash := txHashOf(uuid.New())
		c.fails = errors.New("killed")
		expectText(t, c.end(1, orders[1], hash), "killed")
		c.fails = nil
		equal(t, "claims", len(must.Get(c.claims.Claimed(t.Context(), common.HexToHash(hash)))(t)), 1)
		err := c.end(0, orders[0], hash)
		c.isConflict(err, orders[1].id)
		expectText(t, err, "which has claimed it")
		check(t, c.end(1, orders[1], hash))
		c.isConflict(c.end(0, orders[0], hash), orders[1].id)
		equal(t, "grants", c.granted[orders[1].id], 1)
		equal(t, "grants of the other", c.granted[orders[0].id], 0)
	})
}

// Servers get claims one after the other, and orders end meanwhile. After the statement of the page, a second
// database ends no order by a transaction of any of them.
func TestWhatEndedWithoutClaimsIsClaimed(t *testing.T) {
	_, section, _ := strings.Cut(pageOf(t, "databases.md"), "\nIf orders have ended without `Claims`")
	statement := regexp.MustCompile("(?s)```sql\n(.+?)```").FindStringSubmatch(section)[1]
	statement = strings.ReplaceAll(statement, "mainnet", string(ramp.Testnet))
	eachDatabase(t, func(t *testing.T, p *place) {
		equal(t, "the page says how the statement ends", strings.Contains(section, p.leavesClaims), true)
		statement := strings.Replace(statement, "ON CONFLICT DO NOTHING", p.leavesClaims, 1)
		c := newClaimants(t, p)
		former := newStore(t, p, c.apply) // of a server without claims
		ends := func(store *rampsql.Store, network ramp.Network) string {
			o := newOrder("alice", burn("gold", 5))
			take(t, store, o.id, ramp.OnlyOf(nil, network, acceptAt(o, day0)))
			hash := txHashOf(uuid.New())
			take(t, store, o.id, ramp.Finish(o.reportBy(hash, success), day0.Add(time.Hour)))
			return hash
		}
		hashes := []string{ends(former, ramp.Testnet), ends(c.stores[0], ramp.Testnet), ends(former, ""),
			ends(former, ramp.Testnet)}
		live := ends(former, ramp.Mainnet)
		for range 2 {
			run(t, p.db, statement)
		}
		for _, hash := range hashes {
			conflict := (*ramp.ConflictError)(nil)
			equal(t, "the second database refuses", errors.As(c.end(1, c.burns()[1], hash), &conflict), true)
			equal(t, "claims", len(must.Get(c.claims.Claimed(t.Context(), common.HexToHash(hash)))(t)), 1)
		}
		equal(t, "claims of mainnet", len(must.Get(c.claims.Claimed(t.Context(), common.HexToHash(live)))(t)), 0)
	})
}

// What does not hold claims nothing, and an end without a transaction needs no claim.
func TestWhatEndsNothingClaimsNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		c := newClaimants(t, p)
		o := c.burns()[0]
		hash := txHashOf(uuid.New())
		unproven := errors.New("it proves nothing")
		_, err := c.stores[0].Update(t.Context(), o.id, func(stored *ramp.Order) (ramp.Step, error) {
			if stored == nil {
				return ramp.Step{}, ramp.ErrOrderUnknown
			}
			return ramp.Step{}, unproven
		})
		expectText(t, err, unproven.Error())
		run(t, p.administrator(), fmt.Sprintf("DROP TABLE %s.ramp_claims", p.schema))
		expectText(t, c.end(0, o, hash), "claim transaction "+hash)
		equal(t, "grants", c.granted[o.id], 0)
		expectText(t, c.stores[0].Check(t.Context(), ramp.Testnet), "table ramp_claims, which Dialect.Schema creates")
		expectText(t, c.stores[1].Check(t.Context(), ramp.Testnet), "table ramp_claims, which Dialect.Schema creates")
		_, err = c.stores[0].Update(t.Context(), o.id, ramp.Abandon("nobody", time.Now()))
		check(t, err)
	})
}

// Check finds claims that are none, and changes nothing.
func TestCheckRehearsesAClaim(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		c := newClaimants(t, p)
		check(t, c.stores[1].Check(t.Context(), ramp.Testnet))
		var rows int
		check(t, p.db.QueryRow("SELECT COUNT(*) FROM ramp_claims").Scan(&rows))
		equal(t, "claims", rows, 0)
		expectText(t, c.stores[1].Check(t.Context(), ramp.Mainnet), "Config.Claims must be of the network of the terms")
	})
}

// The orders of a batch claim the places after the first, each once.
func TestTheOrdersOfABatchClaimTheirPlaces(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		c := newClaimants(t, p)
		hash := common.HexToHash(txHashOf(uuid.New()))
		ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
		for place, id := range ids[:2] {
			for range 2 {
				equal(t, "holder", must.Get(c.claims.Claim(t.Context(), hash, place, id))(t), id)
			}
		}
		var both sync.WaitGroup
		holders := make([]uuid.UUID, 2)
		for n, id := range []uuid.UUID{ids[2], uuid.New()} {
			both.Go(func() { holders[n] = must.Get(c.claims.Claim(t.Context(), hash, 2, id))(t) })
		}
		both.Wait()
		equal(t, "holders of one place", holders[0], holders[1])
		claimed := must.Get(c.claims.Claimed(t.Context(), hash))(t)
		equal(t, "claims", len(claimed), 3)
		equal(t, "the first", claimed[0], ids[0])
		other := must.Get(rampsql.NewClaims(rampsql.ClaimsConfig{DB: p.db, Dialect: p.dialect,
			Network: ramp.Mainnet}))(t)
		equal(t, "claims of the other network", len(must.Get(other.Claimed(t.Context(), hash))(t)), 0)
	})
}
