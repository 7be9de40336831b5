package support_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/internal/test/thief"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// scheduler is who ends what fits.
var scheduler = support.Decision{Who: "scheduler", Reason: "the service delivers nothing"}

// ownsWallet says that the wallet of the player belongs to session-1.
func ownsWallet(_ context.Context, session string, wallet common.Address) (bool, error) {
	return session == "session-1" && wallet == rig.Player, nil
}

// forgotten is an order of the player that waits since 20 hours, and its transaction.
type forgotten struct {
	config rig.Config
	store  *rig.Store
	node   *rig.Node
	order  ramp.Order
	tx     rig.Tx // of the ramp
	at     time.Time
	own    common.Hash
	right  ramp.Order    // another's, which has ended
	since  time.Duration // of the books
}

// newForgotten returns a game in which nothing is wrong but that a result never came.
func newForgotten(t *testing.T, d ramp.Direction) *forgotten {
	t.Helper()
	f := &forgotten{at: rig.Now.Add(-20 * time.Hour), since: 80 * time.Hour}
	_, f.store, f.node = rig.NewOfficeOnNode(t, 300*time.Hour, rig.Paid)
	f.config = rig.Config{
		Store: f.store, Products: rampbooks.Always(rig.Product), OwnsWallet: ownsWallet,
		Proof: rig.ProofOn(t, f.node.RPC(t), &rampproof.Config{Payers: []common.Address{rig.Payer},
			Contracts: []common.Address{rig.Vault}}),
		Now: func() time.Time { return rig.Now }, Logger: rig.Quiet,
	}
	f.order = rig.OrderOf(d, 5, f.at)
	transfer := rig.Moved(common.Address{}, rig.Player, 490)
	if d == ramp.Burn {
		transfer = rig.Moved(rig.Player, common.Address{}, 500)
	}
	f.tx = rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault, Transfers: []ramp.Transfer{transfer}}
	f.right = rig.OrderOf(ramp.Mint, 1, rig.Now.Add(-70*time.Hour))
	f.right.UserAddress = rig.Friend.Hex()
	return f
}

// witness puts the order of somebody else and its transaction into the past.
func (f *forgotten) witness(t *testing.T) {
	minted := []ramp.Transfer{rig.Moved(common.Address{}, rig.Friend, 98)}
	hash := f.node.Send(rig.Now.Add(-69*time.Hour),
		rig.Tx{From: rig.Friend, Payer: rig.Payer, To: rig.Vault, Transfers: minted})
	f.store.Keep(t, rig.Ended(f.right, ramp.OrderSucceeded, hash, rig.Now.Add(-68*time.Hour)))
}

// move moves the transaction of the order to a later block.
func (f *forgotten) move(later time.Duration) {
	for i := range f.node.Sent {
		if tx := &f.node.Sent[i]; tx.Hash == f.own {
			tx.Block += uint64(later / time.Second)
		}
	}
	slices.SortStableFunc(f.node.Sent, func(a, b rig.Tx) int { return int(a.Block) - int(b.Block) })
}

// also sends another transaction, an hour after that of the order.
func (f *forgotten) also(tx rig.Tx) common.Hash { return f.node.Send(f.at.Add(time.Hour), tx) }

// dust sends the player 300 transfers of nearly nothing, and of nothing, from nobody.
func (f *forgotten) dust() {
	for i := range int64(300) {
		f.also(rig.Tx{From: rig.Friend, To: rig.Token,
			Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, i%3)}})
	}
}

// gift sends the player what a mint would give.
func (f *forgotten) gift() {
	f.also(rig.Tx{From: rig.Friend, To: rig.Token, Transfers: []ramp.Transfer{rig.Moved(rig.Friend, rig.Player, 490)}})
}

// ownEnd ends another order for the same by a transaction of its own.
func (f *forgotten) ownEnd(t *testing.T) {
	o := rig.OrderOf(f.order.Direction, 5, f.at.Add(-time.Hour))
	f.store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, f.also(f.tx), f.at.Add(2*time.Hour)))
}

// What the service forgot is marked only if nobody could doubt it.
func TestWhichOrdersFit(t *testing.T) {
	racedetector.Skip(t)
	type change = func(*testing.T, *forgotten)
	is := func(change func(f *forgotten)) change { return func(_ *testing.T, f *forgotten) { change(f) } }
	again := func(state ramp.OrderState, tokens int64, after time.Duration) change { // another order
		return func(t *testing.T, f *forgotten) {
			o := rig.OrderOf(f.order.Direction, tokens, f.at.Add(after))
			if o.State = state; state != ramp.OrderAccepted {
				o.FinishedAt = f.at.Add(after + time.Hour)
			}
			f.store.Keep(t, o)
		}
	}
	moves := func(transfer ramp.Transfer) change {
		return is(func(f *forgotten) { f.tx.Transfers = []ramp.Transfer{transfer} })
	}
	nobody := func(context.Context, string, common.Address) (bool, error) { return false, nil }
	const waits, failed, succeeded = ramp.OrderAccepted, ramp.OrderFailed, ramp.OrderSucceeded
	for name, c := range map[string]struct {
		before, after change // the transaction is sent
		fits          bool
	}{
		"nothing else happened":          {nil, nil, true},
		"an order of another amount":     {again(waits, 4, -time.Hour), nil, true},
		"an order that ended by its own": {nil, func(t *testing.T, f *forgotten) { f.ownEnd(t) }, true},
		"another's tokens":               {nil, is((*forgotten).gift), true},
		"dust":                           {nil, is((*forgotten).dust), true},

		"an order that waits beside it":      {again(waits, 5, -time.Hour), nil, false},
		"an order that waits, a day before":  {again(waits, 5, -40*time.Hour), nil, false},
		"an order by a clock that was ahead": {again(waits, 5, 3*time.Hour), nil, false},
		"an order that was given up":         {again(ramp.OrderAbandoned, 5, -time.Hour), nil, false},
		"an order that failed":               {again(failed, 5, -time.Hour), nil, false},
		"an order that ended without a hash": {again(succeeded, 5, -time.Hour), nil, false},
		"a second transaction of the ramp":   {nil, is(func(f *forgotten) { f.also(f.tx) }), false},

		"the same again a day later": {is(func(f *forgotten) { f.at = rig.Now.Add(-50 * time.Hour) }),
			func(t *testing.T, f *forgotten) {
				f.store.Keep(t, rig.OrderOf(f.order.Direction, 5, rig.Now.Add(-22*time.Hour)))
				f.node.Send(rig.Now.Add(-21*time.Hour), f.tx)
			}, false},
		"its transaction has ended a thief's order": {nil, func(t *testing.T, f *forgotten) {
			stolen := rig.OrderOf(f.order.Direction, 5, f.at)
			stolen.UserAddress = rig.Friend.Hex()
			f.store.Keep(t, rig.Ended(stolen, ramp.OrderSucceeded, f.own, f.at.Add(time.Hour)))
			f.also(f.tx)
		}, false},
		"an order from before what is read": {is(func(f *forgotten) { f.at = rig.Now.Add(-94 * time.Hour) }),
			is(func(f *forgotten) { f.move(15 * time.Hour) }), false},
		"a receipt that says that it failed": {nil, is(func(f *forgotten) {
			for i := range f.node.Sent {
				f.node.Sent[i].Failed = f.node.Sent[i].Hash == f.own
			}
		}), false},

		"its result may come":        {is(func(f *forgotten) { f.at = rig.Now.Add(-12 * time.Hour) }), nil, false},
		"its transaction is younger": {nil, is(func(f *forgotten) { f.move(8 * time.Hour) }), false},
		"it is not the ramp's": {is(func(f *forgotten) {
			f.tx.From, f.tx.Payer, f.tx.To = rig.Friend, common.Address{}, rig.Hidden
		}), nil, false},
		"another amount":           {moves(rig.Moved(rig.Player, rig.Vault, 400)), nil, false},
		"nobody knows whose it is": {is(func(f *forgotten) { f.config.OwnsWallet = nil }), nil, false},
		"the wallet is another's":  {is(func(f *forgotten) { f.config.OwnsWallet = nobody }), nil, false},
		"nobody knows the ramp": {is(func(f *forgotten) {
			f.config.Proof = rig.ProofOn(t, f.config.Proof.Config().Chain, &rampproof.Config{AnyFailure: true})
		}), nil, false},
		"an order of the other network":  {is(func(f *forgotten) { f.order.Network = ramp.Mainnet }), nil, false},
		"an order of the node's network": {is(func(f *forgotten) { f.order.Network = ramp.Testnet }), nil, true},
		"the node lists nothing else": {nil, is(func(f *forgotten) {
			delete(f.store.Orders, f.right.UUID)
			f.node.Sent = f.node.Sent[1:]
		}), false},
		"so old that orders may be deleted": {is(func(f *forgotten) {
			f.at, f.since = rig.Now.Add(-8*24*time.Hour), 200*time.Hour
		}), nil, false},
		"its transaction has ended an order of another player, too": {is(func(f *forgotten) {
			f.tx.Transfers = append(f.tx.Transfers, rig.Moved(common.Address{}, rig.Friend, 98))
		}), func(t *testing.T, f *forgotten) {
			o := rig.OrderOf(ramp.Mint, 1, f.at)
			o.UserAddress, o.SessionID = rig.Friend.Hex(), "session-2"
			f.store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, f.own, f.at.Add(time.Hour)))
		}, false},
	} {
		for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			t.Run(name+"/"+string(d), func(t *testing.T) {
				f := newForgotten(t, d)
				f.witness(t)
				if c.before != nil {
					c.before(t, f)
				}
				f.order.AcceptedAt = f.at.UTC()
				f.store.Keep(t, f.order)
				f.own = f.node.Send(f.at.Add(time.Minute), f.tx)
				if c.after != nil {
					c.after(t, f)
				}
				orders := must.Get(rig.NewOffice(f.config))(t)
				books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-f.since), time.Time{}))(t)
				steps := must.Get(orders.FinishFitting(t.Context(), books, scheduler))(t)
				if !c.fits {
					assert.Zero(t, books.Fitting)
					assert.Empty(t, steps)
					return
				}
				require.Equal(t, 1, books.Fitting, "%v", books.Findings)
				require.Len(t, steps, 1)
				step := steps[0]
				assert.Equal(t, f.order.UUID, step.Order.UUID)
				assert.Equal(t, ramp.OrderSucceeded, step.Order.State)
				assert.Equal(t, f.own.Hex(), step.Order.TxHash)
				assert.Equal(t, "scheduler: the service delivers nothing", step.Order.Reason)
				effect := map[ramp.Direction]ramp.EffectKind{ramp.Mint: ramp.Nothing, ramp.Burn: ramp.Grant}[d]
				assert.Equal(t, effect, step.Effect.Kind)
				books = must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-80*time.Hour), time.Time{}))(t)
				assert.Zero(t, books.Fitting)
			})
		}
	}
}

// A proxy answers the first delivery of each result with 502, and the service delivers it
// never again, for a day. Thieves send what seems to fit. One command ends what is certain:
// nothing that failed is given back, and what a thief has made doubtful waits for a person.
func TestADayOfResultsThatTheServiceForgotIsEndedInOneStep(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 9) // before the day
	s.Service.Advance(time.Hour)
	day := s.Service.Now()
	owns := func(_ context.Context, session string, wallet common.Address) (bool, error) {
		return s.Service.Wallet(ramp.Session{ID: session}) == wallet, nil
	}
	orders := must.Get(rig.NewOffice(rig.Config{
		Store: s.Store, Products: rampbooks.Always(rig.Product), Sessions: rig.Sessions, OwnsWallet: owns,
		Proof: rig.ProofOn(t, s.Chain, &rampproof.Config{Payers: []common.Address{s.Service.Payer()}}),
		Now:   s.Service.Now, Logger: slog.New(slog.NewJSONHandler(&s.Log, nil)),
	}))(t)
	place := func(place rig.Placer, player string, tokens int64, faults ...ramptest.Fault) *ramptest.PlacedOrder {
		started := must.Get(s.Client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
		session := ramp.Session{ID: player, Token: ramp.NewAccessToken("token-1")}
		faults = append(faults, ramptest.ResultNever(), ramptest.TransactionType(7))
		order := must.Get(place(t.Context(), started.UUID, session, ramp.NewAmount(tokens), faults...))(t)
		s.Service.Advance(10 * time.Minute)
		return order
	}
	fits := map[uuid.UUID]bool{}
	var all []*ramptest.PlacedOrder
	for n := range 12 {
		player := fmt.Sprintf("player-%d", n)
		for _, o := range []*ramptest.PlacedOrder{place(s.Service.Mint, player, 5), place(s.Service.Burn, player, 3)} {
			fits[o.UUID] = true
			all = append(all, o)
		}
	}
	failed := place(s.Service.Mint, "player-1", 7, ramptest.TransactionFails())
	pending := place(s.Service.Burn, "player-2", 7, ramptest.StaysPending())
	twice := []*ramptest.PlacedOrder{place(s.Service.Burn, "player-3", 2), place(s.Service.Burn, "player-3", 2)}
	for _, trick := range thief.Tricks() {
		must.Get(thief.Play(t.Context(), s.Service, pending, trick))(t)
		must.Get(thief.Play(t.Context(), s.Service, all[0], trick))(t)
	}
	for s.Service.Now().Before(day.Add(24 * time.Hour)) {
		s.Service.Advance(time.Hour)
	}

	gold := s.Gold
	from := []string{"-fitting", "-from", day.Format(time.RFC3339)}
	printed := must.Get(rig.RunCommand(t, orders, "finish", from...))(t)
	assert.Equal(t, len(fits), strings.Count(printed, "\ttokens: "), printed)
	assert.True(t, strings.HasSuffix(printed, "\norders that fit: 24; end them with -yes\n"), printed)
	assert.Equal(t, gold, s.Gold, "a list moves nothing")
	_, err := rig.RunCommand(t, orders, "finish", append(from, "-yes")...)
	assert.EqualError(t, err, "ramp: Decision.Who is required; Decision.Reason is required")

	s.Log.Reset()
	decided := append(from, "-yes", "-who", "scheduler", "-reason", "case 52")
	printed = must.Get(rig.RunCommand(t, orders, "finish", decided...))(t)
	assert.True(t, strings.HasSuffix(printed, "\norders that fit: 24, of which were ended: 24\n"), printed)
	assert.EqualValues(t, 12*100, s.Gold-gold, "each burn was granted, and no mint was given back")
	assert.Equal(t, 24, strings.Count(s.Log.String(), `"level":"WARN","msg":"ramp: order finished"`))
	assert.Equal(t, 24, strings.Count(s.Log.String(), `"who":"scheduler","reason":"case 52","fitting":true`))
	for _, o := range all {
		stored := s.Store.Orders[o.UUID]
		assert.Equal(t, ramp.OrderSucceeded, stored.State)
		assert.Equal(t, o.TxHash.Hex(), stored.TxHash)
		assert.Equal(t, "scheduler: case 52", stored.Reason)
	}
	for name, o := range map[string]*ramptest.PlacedOrder{
		"failed": failed, "pending": pending, "twice": twice[0], "again": twice[1],
	} {
		assert.Equal(t, ramp.OrderAccepted, s.Store.Orders[o.UUID].State, name)
	}
	printed = must.Get(rig.RunCommand(t, orders, "finish", decided...))(t)
	assert.Equal(t, "orders that fit: 0, of which were ended: 0\n", printed)

	after := s.Gold
	for _, o := range all { // the service remembers
		require.NoError(t, s.Service.Resend(t.Context(), o))
	}
	assert.Equal(t, after, s.Gold)
}
