package rampbooks_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
)

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
