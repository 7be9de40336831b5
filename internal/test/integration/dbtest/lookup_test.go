package dbtest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// These tests query the table as a person or a monitor does.

// day0 is the time of the first order of these tests, long ago.
var day0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func take(t *testing.T, store ramp.Store, id uuid.UUID, next ramp.Transition) {
	t.Helper()
	must.Get(store.Update(context.Background(), id, next))(t)
}

func acceptAt(o order, at time.Time) ramp.Transition {
	return ramp.Accept(ramp.Session{ID: o.session}, o.validateRequest(), at)
}

func TestAnOrderByItsUUID(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		o := newOrder("alice", burn("gold", 5))
		if _, err := store.Order(t.Context(), o.id); !errors.Is(err, ramp.ErrOrderUnknown) {
			t.Errorf("an unknown order: %v", err)
		}
		take(t, store, o.id, func(stored *ramp.Order) (ramp.Step, error) {
			step, err := acceptAt(o, day0)(stored)
			step.Order.Network = ramp.Testnet
			return step, err
		})
		take(t, store, o.id, ramp.Finish(o.report(success), day0.Add(time.Minute)))
		got := must.Get(store.Order(t.Context(), o.id))(t)
		if got.UUID != o.id || got.Network != ramp.Testnet || got.State != ramp.OrderSucceeded ||
			got.Direction != ramp.Burn || len(got.Assets) != 1 ||
			got.TxHash != txHashOf(got.UUID) || !got.AcceptedAt.Equal(day0) ||
			!got.FinishedAt.Equal(day0.Add(time.Minute)) || got.AcceptedAt.Location() != time.UTC {
			t.Errorf("the order is %+v", got)
		}
		by := must.Get(store.OrderByTransaction(t.Context(), common.HexToHash(txHashOf(o.id))))(t)
		equal(t, "the order of a transaction", by.UUID, o.id)
		if _, err := store.OrderByTransaction(t.Context(), common.Hash{1}); !errors.Is(err, ramp.ErrOrderUnknown) {
			t.Errorf("of an unknown transaction: %v", err)
		}
	})
}

// pages reads a list page by page.
func pages(t *testing.T, size int, next func(ramp.OrderPage) ([]ramp.Order, error)) (ids []uuid.UUID) {
	t.Helper()
	page := ramp.OrderPage{Limit: size}
	for {
		orders := must.Get(next(page))(t)
		if len(orders) == 0 {
			return ids
		}
		if len(orders) > size {
			t.Fatalf("a page has %d orders, not %d", len(orders), size)
		}
		for _, o := range orders {
			ids = append(ids, o.UUID)
		}
		page.After = orders[len(orders)-1]
	}
}

// expectPages reads a list in pages of several sizes.
func expectPages(t *testing.T, name string, want []uuid.UUID, next func(ramp.OrderPage) ([]ramp.Order, error)) {
	t.Helper()
	for _, size := range []int{1, 3, 100} {
		if got := pages(t, size, next); !slices.Equal(got, want) {
			t.Errorf("in pages of %d, the orders of %s are %v, not %v", size, name, got, want)
		}
	}
}

// Burns of players who closed the page do not hide the one mint that needs attention.
// The pages contain every order, although many have the same time.
func TestOrdersThatWaitPageByPage(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		ctx := t.Context()
		store := newStore(t, p, applyNothing)
		var burns []uuid.UUID
		for n := range 23 {
			o := newOrder(fmt.Sprint("player", n), burn("gold", 5))
			take(t, store, o.id, acceptAt(o, day0.Add(time.Duration(n/5)*time.Second)))
			burns = append(burns, o.id)
		}
		for second := range slices.Chunk(burns, 5) { // orders of the same millisecond are sorted by UUID
			slices.SortFunc(second, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		}
		late := newOrder("alice", mint("gold", 5))
		take(t, store, late.id, acceptAt(late, day0.Add(time.Hour)))

		all := day0.Add(2 * time.Hour)
		for _, c := range []struct {
			direction ramp.Direction
			before    time.Time
			want      []uuid.UUID
		}{{ramp.Burn, all, burns}, {ramp.Mint, all, []uuid.UUID{late.id}},
			{ramp.Burn, day0.Add(2 * time.Second), burns[:10]}} {
			expectPages(t, string(c.direction), c.want, func(page ramp.OrderPage) ([]ramp.Order, error) {
				return store.Waiting(ctx, c.direction, c.before, page)
			})
		}

		expect := func(d ramp.Direction, before time.Time, n int, since time.Time) {
			t.Helper()
			got, oldest, err := store.CountWaiting(ctx, d, before)
			check(t, err)
			if got != n || !oldest.Equal(since) {
				t.Errorf("before %s, %d orders wait since %s, not %d since %s", before, got, oldest, n, since)
			}
		}
		expect(ramp.Burn, all, 23, day0)
		expect(ramp.Burn, day0.Add(time.Second), 5, day0)
		expect(ramp.Burn, day0, 0, time.Time{})
		expect(ramp.Mint, all, 1, day0.Add(time.Hour))
		take(t, store, burns[0], ramp.Abandon("closed the page", all))
		expect(ramp.Burn, all, 22, day0)
	})
}

func TestOrdersOfASessionAndOfAWallet(t *testing.T) {
	const address, other = "0x52908400098527886E0F7030069857D2E4169EE7", "0x0000000000000000000000000000000000000001"
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		var ids []uuid.UUID
		mixed := "0x52908400098527886e0f7030069857d2E4169Ee7" // nobody's checksum
		capitals := "0x" + strings.ToUpper(address[2:])
		for n, of := range [][2]string{
			{"alice", address}, {"alice", strings.ToLower(address)}, {"alice2", other}, {"alice", address},
			{"alice", "tom"}, {"alice", other}, {"alice2", other}, {"bob", mixed}, {"bob", capitals},
		} {
			o := newOrder(of[0], mint("gold", 5))
			o.user = of[1]
			take(t, store, o.id, acceptAt(o, day0.Add(time.Duration(n)*time.Second)))
			ids = append(ids, o.id)
		}
		take(t, store, ids[3], ramp.Abandon("case 17", day0.Add(time.Hour)))
		for given, want := range map[string][]uuid.UUID{
			" alice": {ids[5], ids[4], ids[3], ids[1], ids[0]},
			"Alice":  nil, "ali": nil, "": nil, "' OR 1 = 1 --": nil, "\U0001F600": nil,
		} {
			expectPages(t, given, want,
				func(page ramp.OrderPage) ([]ramp.Order, error) {
					return store.SessionOrders(t.Context(),
						given, page)
				})
		}
		for given, want := range map[string][]uuid.UUID{
			address:                  {ids[8], ids[7], ids[3], ids[1], ids[0]},
			strings.ToLower(address): {ids[8], ids[7], ids[3], ids[1], ids[0]},
			capitals:                 {ids[8], ids[7], ids[3], ids[1], ids[0]},
			mixed:                    {ids[8], ids[7], ids[3], ids[1], ids[0]},
			"tom":                    {ids[4]},
			"nobody":                 nil,
			"' OR 1 = 1 --":          nil,
		} {
			expectPages(t, given, want,
				func(page ramp.OrderPage) ([]ramp.Order, error) { return store.UserOrders(t.Context(), given, page) })
		}
	})
}

func TestOrdersThatEndedBetweenTwoTimes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		var ended [5][]uuid.UUID // by the second of the end
		for n := range 20 {
			o := newOrder("alice"+strconv.Itoa(n), mint("gold", 5))
			take(t, store, o.id, acceptAt(o, day0.Add(-time.Duration(n)*time.Hour)))
			if second := n % 6; second < 5 { // the others wait
				take(t, store, o.id, ramp.Abandon("closed the page", day0.Add(time.Duration(second)*time.Second)))
				ended[second] = append(ended[second], o.id)
			}
		}
		for _, ids := range ended {
			slices.SortFunc(ids, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		}
		for _, c := range []struct {
			name     string
			from, to time.Time
			want     []uuid.UUID
		}{
			{"all", time.Time{}, day0.AddDate(1, 0, 0), slices.Concat(ended[:]...)},
			{"with the first time, without the last", day0.Add(time.Second), day0.Add(3 * time.Second),
				slices.Concat(ended[1:3]...)},
			{"none", day0.Add(3 * time.Second), day0.Add(3 * time.Second), nil},
			{"reversed", day0.Add(3 * time.Second), day0, nil},
			{"later", day0.Add(time.Minute), day0.Add(time.Hour), nil},
		} {
			expectPages(t, c.name, c.want,
				func(page ramp.OrderPage) ([]ramp.Order, error) { return store.Ended(t.Context(), c.from, c.to, page) })
		}
	})
}

// PostgreSQL keeps the plan of a prepared statement until it analyzes the table. On a new
// table, the index of states is as cheap as the primary key, but it grows with every order.
func TestAnOrderEndsByItsPrimaryKey(t *testing.T) {
	p := placeOn(t, rampsql.PostgreSQL)
	scans := -1
	store := newStore(t, p,
		func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error { // after the step has stored its order
			return tx.QueryRowContext(ctx,
				"SELECT pg_stat_get_xact_numscans('ramp_orders_state'::regclass)").Scan(&scans)
		})
	o := newOrder("alice", mint("gold", 5))
	take(t, store, o.id, o.accept())
	take(t, store, o.id, o.finish(failure))
	equal(t, "scans of the index of states", scans, 0)
}

// fill inserts n orders, one per second since day0 and 50 per session. One in a hundred
// waits.
func fill(t *testing.T, p *place, n int) {
	t.Helper()
	digest := "0x" + strings.Repeat("ab", 32)
	written := func(intent ramp.Intent) string {
		return string(must.Get(json.Marshal(intent))(t))
	}
	toMint, toBurn := written(mint("gold", 5)), written(burn("gold", 5))
	const part = 1000
	for from := 0; from < n; from += part {
		var values []string
		for i := from; i < min(from+part, n); i++ {
			state, direction, intent, at := "succeeded", "mint", toMint,
				day0.Add(time.Duration(i)*time.Second).UnixMilli()
			finished, txHash := strconv.FormatInt(at+60_000, 10), fmt.Sprintf("'0x%064x'", i)
			switch {
			case i%100 < 2:
				state, finished, txHash = "accepted", "NULL", "NULL"
			case i%3 == 0:
				state = "failed"
			}
			if i%2 == 0 {
				direction, intent = "burn", toBurn
			}
			values = append(values,
				fmt.Sprintf("('%s', 'c', '%s', '%s', 'testnet', 'project', 'session%d', 'user%d', '%s', '%s', %s, '',"+
					" %d, %s)",
					uuid.New(), state, direction, i/50, i/50, digest, intent, txHash, at, finished))
		}
		run(t, p.db,
			"INSERT INTO ramp_orders (uuid, claim, state, direction, network, project_id, session_id, user_address, "+
				"digest, intent, tx_hash, reason, accepted_at, finished_at) VALUES "+
				strings.Join(values, ", "))
	}
}
