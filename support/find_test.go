package support_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// Eight causes of "my gold is gone". Whoever is asked finds the order by what the player has, and the
// next step is the right one.
func TestMyGoldIsGone(t *testing.T) {
	for cause, c := range map[string]struct {
		play func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder
		wait time.Duration // after an hour
		next support.NextStep
		tell string
	}{
		"the tokens are in the wallet": {func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder {
			return s.Place(t, s.Service.Mint, 2)
		}, 0, support.NextNothing, "Your tokens were sent to 0x"},
		"the mint failed, and the gold is back": {func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder {
			return s.Place(t, s.Service.Mint, 2, ramptest.TransactionFails())
		}, 0, support.NextNothing, "what it had taken is back"},
		"the result is still on its way": {func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder {
			return s.Place(t, s.Service.Mint, 2, ramptest.ResultLate(11*time.Hour))
		}, 0, support.NextWait, "Nothing is lost"},
		"the result was lost, and the tokens are in the wallet": {func(t *testing.T,
			s *rig.Shop) *ramptest.PlacedOrder {
			s.Place(t, s.Service.Mint, 3) // what the node is known to list
			return s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
		}, 14 * time.Hour, support.NextFinish, "Nothing is lost"},
		"the result was lost, and the mint had failed": {func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder {
			s.Place(t, s.Service.Mint, 3)
			return s.Place(t, s.Service.Mint, 2, ramptest.TransactionFails(), ramptest.ResultNever())
		}, 14 * time.Hour, support.NextAbandon, "Nothing is lost"},
		"two mints of the same amount lost their results": {func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder {
			s.Place(t, s.Service.Mint, 3)
			s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
			return s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
		}, 14 * time.Hour, support.NextAskService, "Nothing is lost"},
		"the node is down": {func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder {
			order := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
			s.Service.FailRPC(503)
			return order
		}, 14 * time.Hour, support.NextAskNode, "Nothing is lost"},
		"the player closed the page of a burn": {func(t *testing.T, s *rig.Shop) *ramptest.PlacedOrder {
			s.Place(t, s.Service.Burn, 3)
			return s.Place(t, s.Service.Burn, 2, ramptest.StaysPending())
		}, 14 * time.Hour, support.NextAbandon, "has not moved anything"},
	} {
		t.Run(cause, func(t *testing.T) {
			s := rig.NewShop(t)
			order := c.play(t, s)
			s.Service.Advance(c.wait)
			for _, known := range []string{order.UUID.String(), "session-1"} {
				found, err := s.Find(t.Context(), " "+known+" ")
				require.NoError(t, err, known)
				assert.Contains(t, uuids(found), order.UUID, known)
			}
			report, err := s.Show(t.Context(), order.UUID)
			require.Equal(t, c.next == support.NextAskNode, err != nil, err)
			assert.Equal(t, c.next, report.Advice.Next, report.Text())
			assert.Contains(t, report.Advice.Tell, c.tell)
			assert.Contains(t, report.Text(), "\nnext      "+report.Advice.Do+"\ntell      "+report.Advice.Tell+"\n")
		})
	}
}

func uuids(orders []ramp.Order) (list []uuid.UUID) {
	for _, o := range orders {
		list = append(list, o.UUID)
	}
	return list
}

// An order is found by whatever a player or a helper has at hand, and by nothing else.
func TestFind(t *testing.T) {
	s := rig.NewShop(t)
	first, second := s.Place(t, s.Service.Mint, 2), s.Place(t, s.Service.Mint, 3, ramptest.ResultNever())
	both := []uuid.UUID{second.UUID, first.UUID}
	stored := must.Get(s.Find(t.Context(), first.UUID.String()))(t)[0]
	for _, c := range []struct {
		text string
		want []uuid.UUID
	}{
		{strings.ToUpper(first.UUID.String()), both[1:]},
		{stored.TxHash, both[1:]},
		{stored.UserAddress, both},
		{"session-1", both},
		{"session-2", nil},
		{uuid.NewString(), nil},
		{second.TxHash.Hex(), nil}, // which has ended no order yet
		{"", nil},
	} {
		found, err := s.Find(t.Context(), c.text)
		assert.Equal(t, c.want, uuids(found), c.text)
		assert.Equal(t, c.want == nil, errors.Is(err, ramp.ErrOrderUnknown), c.text)
	}
	printed, err := rig.RunCommand(t, s.Office, "find", "-json", first.UUID.String())
	require.NoError(t, err)
	var list []struct{ UUID uuid.UUID }
	require.NoError(t, json.Unmarshal([]byte(printed), &list))
	require.Len(t, list, 1)
	assert.Equal(t, first.UUID, list[0].UUID)
	printed, err = rig.RunCommand(t, s.Office, "find", "session-1")
	require.NoError(t, err)
	assert.Contains(t, printed, second.UUID.String())
}

// A session may look like a UUID, a transaction or a wallet.
func TestFindLooksATextUpAsEverythingThatItCanBe(t *testing.T) {
	s := rig.NewShop(t)
	other, order := s.Place(t, s.Service.Mint, 2), s.Place(t, s.Service.Mint, 3)
	wallet := must.Get(s.Store.Order(t.Context(), other.UUID))(t).UserAddress
	for session, known := range map[string]bool{other.UUID.String(): true, uuid.NewString(): false, wallet: true,
		"0x00000000000000000000000000000000000070c3": false,
		"0x" + strings.Repeat("12", 32):              false} {
		s.Change(order.UUID, func(o *ramp.Order) { o.SessionID = session })
		found, err := s.Find(t.Context(), session)
		require.NoError(t, err, session)
		assert.Contains(t, uuids(found), order.UUID, session)
		assert.Equal(t, known, len(found) == 2, session)
	}
	_, err := s.Find(t.Context(), "0x12…ab")
	assert.ErrorContains(t, err, "(it must be whole: with …, a page shows a part of it only)")
}
