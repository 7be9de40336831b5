package support_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// A backup that is older than every order is restored. The log has what they were, so each ends as it had ended,
// and the player has what they had.
func TestRestoreStoresAgainWhatTheLogHas(t *testing.T) {
	s := newStudio(t)
	s.Witness(t)
	older := slices.Collect(maps.Values(s.Store.Orders))
	decided := support.Decision{Who: "carol", Reason: "case 17"}
	orders := map[string]uuid.UUID{
		"a mint":               s.Mint(t),
		"a mint that failed":   s.Mint(t, ramptest.TransactionFails()),
		"a burn":               s.Place(t, s.Service.Burn).UUID,
		"a mint that waits":    s.Mint(t, ramptest.StaysPending()),
		"an abandoned mint":    s.Mint(t, ramptest.StaysPending()),
		"a mint that is ended": s.Mint(t, ramptest.ResultNever()),
	}
	s.Service.Advance(14 * time.Hour)
	report, err := s.Show(t.Context(), orders["a mint that is ended"])
	require.NoError(t, err)
	asked := decided
	asked.AgainstEvidence = true // the transaction fits other mints that wait, and the service has said whose it is
	_, err = s.Finish(t.Context(), orders["a mint that is ended"], *report.Advice.Tx, asked)
	require.NoError(t, err)
	_, err = s.Abandon(t.Context(), orders["an abandoned mint"], decided)
	require.NoError(t, err)
	before, gold, log := map[string]ramp.Order{}, s.Gold, s.Calls.String()+s.Log.String()
	for name, id := range orders {
		before[name], err = s.Store.Order(t.Context(), id)
		require.NoError(t, err, name)
	}

	s.Lose(t, 1000, older...)
	for range 2 {
		lost, err := s.Lost(t.Context(), strings.NewReader(log))
		require.NoError(t, err)
		steps, err := s.Restore(t.Context(), lost, decided)
		require.NoError(t, err)
		for _, l := range lost {
			assert.True(t, slices.ContainsFunc(steps, func(s ramp.Step) bool {
				return s.Order.UUID == l.UUID && s.Order.State == l.State
			}), l.State)
		}
	}
	assert.Equal(t, gold, s.Gold)
	for name, id := range orders {
		after, err := s.Store.Order(t.Context(), id)
		require.NoError(t, err, name)
		was := before[name]
		was.Reason, was.FinishedAt = after.Reason, after.FinishedAt // a person has ended it now
		assert.True(t, was.Equal(after), ofAccept+"%s: %+v, and was %+v", name, after, was)
		assert.Equal(t, after.State != ramp.OrderAccepted, after.Reason == "carol: case 17", name)
	}
	assert.Contains(t, s.Log.String(), "ramp: order restored")
}

// ofAccept begins the message of each test that a field which is stored with an order fails.
const ofAccept = "accept in restore.go must give the call each field that an order stores: "

// What an order stores of its validate call is there again, also a field that the emulator does not send.
func TestEveryFieldOfAnOrderIsRestored(t *testing.T) {
	s := newStudio(t)
	s.Witness(t)
	older := slices.Collect(maps.Values(s.Store.Orders))
	was, err := s.Store.Order(t.Context(), s.Mint(t, ramptest.StaysPending()))
	require.NoError(t, err)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ramp.ValidateRequest]()) {
		if stored := reflect.ValueOf(&was).Elem().FieldByName(field.Name); stored.IsValid() && stored.IsZero() {
			stored.SetString("a text")
		}
	}
	s.Lose(t, 1000, older...)
	lost := support.Logged{UUID: was.UUID, State: was.State, Missing: true, Order: &was}
	_, err = s.Restore(t.Context(), []support.Logged{lost}, support.Decision{Who: "carol", Reason: "case 17"})
	require.NoError(t, err)
	after, err := s.Store.Order(t.Context(), was.UUID)
	require.NoError(t, err)
	assert.True(t, was.Equal(after), ofAccept+"%+v, and was %+v", after, was)
}

// Equal mints of a player waited at the time of the backup. The transaction of each fits the others, and the log says
// whose it is.
func TestEqualOrdersThatWaitAgainAreRestored(t *testing.T) {
	s := newStudio(t)
	s.Witness(t)
	kept := slices.Collect(maps.Values(s.Store.Orders))
	var ids []uuid.UUID
	for _, faults := range [][]ramptest.Fault{nil, {ramptest.TransactionFails()}, nil} {
		ids = append(ids, s.Place(t, s.Service.Mint, faults...).UUID)
	}
	s.Service.Advance(time.Hour)
	gold, ended := s.Gold, []ramp.Order{}
	for _, id := range ids {
		order, err := s.Store.Order(t.Context(), id)
		require.NoError(t, err)
		ended = append(ended, order)
		order.State, order.TxHash, order.FinishedAt = ramp.OrderAccepted, "", time.Time{}
		kept = append(kept, order)
	}
	s.Lose(t, gold-100, kept...) // the mint that failed had not given back
	lost, err := s.Lost(t.Context(), strings.NewReader(s.Calls.String()))
	require.NoError(t, err)
	require.Len(t, lost, 3)
	_, err = s.Restore(t.Context(), lost, support.Decision{Who: "carol", Reason: "case 17"})
	require.NoError(t, err)
	for _, was := range ended {
		order, err := s.Store.Order(t.Context(), was.UUID)
		require.NoError(t, err)
		assert.Equal(t, was.State, order.State)
		assert.Equal(t, was.TxHash, order.TxHash)
	}
	assert.Equal(t, gold, s.Gold)
}

// What cannot be restored is said, and nothing moves.
func TestWhatIsNotRestored(t *testing.T) {
	s := newStudio(t)
	s.Witness(t)
	older := slices.Collect(maps.Values(s.Store.Orders))
	s.Mint(t)
	lost := func() support.Logged {
		s.Lose(t, 1000, older...)
		list, err := s.Lost(t.Context(), strings.NewReader(s.Calls.String()))
		require.NoError(t, err)
		require.NotEmpty(t, list)
		return list[0]
	}
	for want, change := range map[string]func(l *support.Logged){
		"no record of the logs has the order": func(l *support.Logged) { l.Order = nil },
		"mainnet, and not testnet":            func(l *support.Logged) { l.Order.Network = ramp.Mainnet },
		"the log does not say how it ended":   func(l *support.Logged) { l.State = "" },
	} {
		l := lost()
		change(&l)
		_, err := s.Restore(t.Context(), []support.Logged{l}, support.Decision{Who: "carol", Reason: "case 17"})
		assert.ErrorContains(t, err, want)
	}
}

// A mint that was deleted is missing, too. The logs have it still, and it must not be taken again.
func TestWhatWasDeletedIsNotRestored(t *testing.T) {
	s := newStudio(t)
	s.Mint(t)
	s.Service.Advance(8 * 24 * time.Hour)
	newer, err := s.Store.Order(t.Context(), s.Mint(t))
	require.NoError(t, err)
	gold := s.Gold
	s.Lose(t, gold, newer) // as DeleteFinished does, when it deletes all that ended a week ago
	lost, err := s.Lost(t.Context(), strings.NewReader(s.Calls.String()))
	require.NoError(t, err)
	require.Len(t, lost, 1)
	decided := support.Decision{Who: "carol", Reason: "case 17"}
	steps, err := s.Restore(t.Context(), lost, decided)
	assert.ErrorContains(t, err, "it may have been deleted, and not lost")
	assert.Empty(t, steps)
	assert.Equal(t, gold, s.Gold)

	decided.AgainstEvidence = true
	steps, err = s.Restore(t.Context(), lost, decided)
	require.NoError(t, err)
	assert.Len(t, steps, 2)
	assert.Equal(t, gold-100, s.Gold)
}
