package dbtest

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Two games share a database, and a player of each has the same session ID and wallet. Whatever one of
// them lists, counts, notes, erases or deletes, the other one's orders stay as they are. The same holds for
// the orders that a game has from the other network.
func TestAStoreLeavesOrdersOfOthersAlone(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		p.may(t, "DELETE")
		storeOf := func(network ramp.Network, projects ...string) *rampsql.Store {
			return newStoreOf(t, p, applyNothing, network, projects...)
		}
		red, blue := storeOf(ramp.Testnet, "red", "old red"), storeOf(ramp.Testnet, "blue")
		live := storeOf(ramp.Mainnet, "red")
		place := func(store *rampsql.Store, project string, network ramp.Network, ends bool) ramp.Order {
			o := newOrder("1001", mint("gold", 5))
			o.project = project
			only := func(next ramp.Transition) ramp.Transition { return ramp.OnlyOf(nil, network, next) }
			at := day0
			if !ends { // so late that what ended before may be deleted
				at = day0.Add(3 * time.Hour)
			}
			step := must.Get(store.Update(t.Context(), o.id, only(acceptAt(o, at))))(t)
			if ends {
				next := ramp.Finish(o.report(success), day0.Add(time.Hour))
				step = must.Get(store.Update(t.Context(), o.id, next))(t)
			}
			return step.Order
		}
		for _, ends := range []bool{false, true} {
			place(red, "red", ramp.Testnet, ends)
			place(red, "old red", ramp.Testnet, ends)
			place(live, "red", ramp.Mainnet, ends)
		}
		waits, ended := place(blue, "blue", ramp.Testnet, false), place(blue, "blue", ramp.Testnet, true)

		listed := func(orders []ramp.Order, err error) int { return len(must.Get(orders, err)(t)) }
		counted := func(n int, _ time.Time, err error) int { return must.Get(n, err)(t) }
		page, now := ramp.OrderPage{}, time.Now()
		for name, store := range map[string]*rampsql.Store{"red": red, "blue": blue, "live": live} {
			each := map[string]int{"red": 2, "blue": 1, "live": 1}[name] // projects
			equal(t, name+": Waiting", listed(store.Waiting(t.Context(), ramp.Mint, now, page)), each)
			equal(t, name+": CountWaiting", counted(store.CountWaiting(t.Context(), ramp.Mint, now)), each)
			equal(t, name+": Ended", listed(store.Ended(t.Context(), day0, now, page)), each)
			equal(t, name+": SessionOrders", listed(store.SessionOrders(t.Context(), "1001", page)), 2*each)
			equal(t, name+": UserOrders", listed(store.UserOrders(t.Context(), waits.UserAddress, page)), 2*each)
		}

		for _, other := range []*rampsql.Store{red, live} {
			_, err := other.Order(t.Context(), waits.UUID)
			equal(t, "an order of blue is foreign", errors.Is(err, ramp.ErrOrderForeign), true)
			check(t, other.Refused(t.Context(), waits.UUID, "no room"))
		}
		equal(t, "blue's refusals", counted(blue.CountRefused(t.Context(), ramp.Mint)), 0)
		check(t, blue.Refused(t.Context(), waits.UUID, "no room"))
		equal(t, "blue's refusals", counted(blue.CountRefused(t.Context(), ramp.Mint)), 1)
		equal(t, "red's refusals", counted(red.CountRefused(t.Context(), ramp.Mint)), 0)
		unknown := newOrder("1001", mint("gold", 5))
		unknown.project = "blue"
		_, err := red.Update(t.Context(), unknown.id, acceptAt(unknown, day0))
		equal(t, "an order that red would never find is foreign", errors.Is(err, ramp.ErrOrderForeign), true)

		// A transaction ends one order of both games, and is a witness for both.
		same := ramp.Finish(&ramp.Result{UUID: waits.UUID, TxHash: txHashOf(ended.UUID),
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(success)}}, day0.Add(4*time.Hour))
		conflict := (*ramp.ConflictError)(nil)
		_, err = blue.Update(t.Context(), waits.UUID, same)
		equal(t, "a second order of the transaction", errors.As(err, &conflict), true)
		by := must.Get(red.OrderByTransaction(t.Context(), common.HexToHash(ended.TxHash)))(t)
		equal(t, "the order of a transaction", by.UUID, ended.UUID)
		late := newOrder("1002", mint("gold", 5))
		late.project = "blue"
		take(t, blue, late.id, ramp.OnlyOf(nil, ramp.Testnet, acceptAt(late, day0)))
		take(t, blue, late.id, ramp.Finish(late.report(success), day0.Add(2*time.Hour)))
		equal(t, "red's witness", must.Get(red.NewestSuccess(t.Context(), ramp.Testnet))(t).UUID, late.id)

		old := now.AddDate(0, 0, -7)
		for _, nobody := range []*rampsql.Store{storeOf("", "red"), storeOf(ramp.Testnet)} {
			_, err = nobody.EraseSession(t.Context(), "1001", old)
			expectText(t, err, "required to erase or delete orders")
			_, err = nobody.DeleteFinished(t.Context(), ramp.Mint, old)
			expectText(t, err, "required to erase or delete orders")
		}
		equal(t, "any that wait", counted(storeOf("").CountWaiting(t.Context(), ramp.Mint, now)), 4)
		equal(t, "erased by red", must.Get(red.EraseSession(t.Context(), "1001", old))(t), 2)
		equal(t, "deleted by red", must.Get(red.DeleteFinished(t.Context(), ramp.Mint, old))(t), 2)
		for _, of := range []ramp.Order{waits, ended} {
			kept := must.Get(blue.Order(t.Context(), of.UUID))(t)
			equal(t, "blue's player", kept.SessionID+kept.UserAddress, "1001"+of.UserAddress)
		}
		equal(t, "live's orders", listed(live.SessionOrders(t.Context(), "1001", page)), 2)
		equal(t, "red's that wait", counted(red.CountWaiting(t.Context(), ramp.Mint, now)), 2)
		equal(t, "deleted by red again", must.Get(red.DeleteFinished(t.Context(), ramp.Mint, old))(t), 0)
	})
}
