package rampbooks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// An order of another database has claimed a transaction. The books of this one do not report its event, and say
// of an order that it would fit who has it. Without claims, nobody knows, and the books say so once.
func TestBooksAskTheClaims(t *testing.T) {
	for _, shared := range []bool{true, false} {
		orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
		at, other := rig.HoursAgo(20), uuid.New()
		waits := rig.OrderOf(ramp.Burn, 5, at)
		burned := func(user common.Address) common.Hash {
			return n.Send(at.Add(time.Minute), rig.Tx{From: user, Payer: rig.Payer, To: rig.Vault,
				Transfers: []ramp.Transfer{rig.Moved(user, common.Address{}, 500)}})
		}
		hash := burned(rig.Player)
		claimed := []common.Hash{hash, burned(rig.Friend), burned(rig.Friend)}
		store.Keep(t, waits)
		if shared {
			store.Shared = new(rig.Claims)
			for _, hash := range claimed {
				must.Get(store.Shared.Claim(t.Context(), hash, 0, other))(t)
			}
		}
		burned(rig.Stranger)
		books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(60), time.Time{}))(t)
		assert.Equal(t, !shared, books.OneDatabase)
		const once = "Only this database was asked whose the events without an order are."
		if !shared {
			assert.Equal(t, 3, books.Counts[rampbooks.EventWithoutOrder])
			assert.Equal(t, 1, books.Counts[rampbooks.WaitsWithEvent])
			assert.Equal(t, 1, strings.Count(books.Text(), once))
			continue
		}
		assert.Equal(t, 3, books.Elsewhere)
		assert.Contains(t, books.Text(), "claimed by orders of other databases, and judged there: 3 transactions\n")
		assert.NotContains(t, books.Text(), once)
		assert.Equal(t, 1, books.Counts[rampbooks.EventWithoutOrder], "of the stranger")
		require.Equal(t, 1, books.Counts[rampbooks.WaitsWithoutEvent])
		for _, f := range books.Findings {
			if f.Kind == rampbooks.WaitsWithoutEvent {
				assert.Equal(t, "no event of its user fits but that of transaction "+hash.Hex()+", which order "+
					other.String()+" of another database has claimed", f.Detail)
			}
		}
	}
}

// A transaction that an order of this database has claimed, which waits, is judged with this order.
func TestAClaimOfAnOrderThatWaitsHidesNothing(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	at := rig.HoursAgo(20)
	waits := rig.OrderOf(ramp.Burn, 5, at)
	store.Keep(t, waits)
	store.Shared = new(rig.Claims)
	hash := n.Send(at.Add(time.Minute), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}})
	must.Get(store.Shared.Claim(t.Context(), hash, 0, waits.UUID))(t)
	books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(60), time.Time{}))(t)
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kindsOf(books))
	assert.Zero(t, books.Elsewhere)
}

// A thief with the HMAC key names the wallet of a player, and ends an order of their own by what that player burned.
// The player's order then waits, and something did happen on the chain.
func TestAnOrderThatWaitsNamesTheOneThatHasItsTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		session, user string
		tokens        int64
		at            time.Duration // of the burn, after the order
		named         string
	}{
		"another session": {"thief", rig.Player.Hex(), 5, time.Minute, "another session"},
		"its session":     {"session-1", rig.Player.Hex(), 5, time.Minute, "its session"},
		"another wallet":  {"thief", rig.Friend.Hex(), 5, time.Minute, ""},
		"another amount":  {"thief", rig.Player.Hex(), 4, time.Minute, ""},
		"a burn before":   {"thief", rig.Player.Hex(), 5, -time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
			at := rig.HoursAgo(20)
			victim, forged := rig.OrderOf(ramp.Burn, 5, at), rig.OrderOf(ramp.Burn, c.tokens, at.Add(c.at))
			forged.SessionID, forged.UserAddress = c.session, c.user
			hash := n.Send(at.Add(c.at), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
				Transfers: []ramp.Transfer{rig.Moved(common.HexToAddress(c.user), common.Address{}, 100*c.tokens)}})
			store.Keep(t, victim, rig.Ended(forged, ramp.OrderSucceeded, hash, at.Add(c.at+time.Minute)))
			books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(60), time.Time{}))(t)
			require.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithoutEvent}, kindsOf(books))
			f := books.Findings[0]
			assert.Equal(t, victim.UUID, f.Orders[0].UUID)
			if c.named == "" {
				assert.Len(t, f.Orders, 1)
				assert.Contains(t, f.Detail, "nothing happened on the chain")
				return
			}
			require.Len(t, f.Orders, 2)
			assert.Equal(t, forged.UUID, f.Orders[1].UUID)
			assert.Equal(t, "no event of its user fits but that of transaction "+hash.Hex()+", which has ended order "+
				forged.UUID.String()+" of "+c.named, f.Detail)
		})
	}
}
