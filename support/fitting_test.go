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
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
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
	return session == "session-1" && wallet == player, nil
}

// forgotten is an order of the player that waits since 20 hours, and its transaction.
type forgotten struct {
	config backofficeConfig
	store  *ledger
	node   *node
	order  ramp.Order
	tx     sentTx // of the ramp
	at     time.Time
	own    common.Hash
	right  ramp.Order // another's, which has ended
}

func (f *forgotten) orders() *backoffice { return ramp.Must(newBackoffice(f.config)) }

// newForgotten returns a game in which nothing is wrong but that a result never came.
func newForgotten(t *testing.T, d ramp.Direction) *forgotten {
	t.Helper()
	f := &forgotten{at: now.Add(-20 * time.Hour)}
	_, f.store, f.node = newOrders(t, 100*time.Hour, paid)
	f.config = backofficeConfig{
		Store: f.store, Products: rampbooks.Always(product), OwnsWallet: ownsWallet,
		Proof: proofOn(f.node.rpc(t), &rampproof.Config{Payers: []common.Address{payer},
			Contracts: []common.Address{vault}}),
		Now: func() time.Time { return now }, Logger: quiet,
	}
	f.order = orderOf(d, 5, f.at)
	transfer := moved(common.Address{}, player, 490)
	if d == ramp.Burn {
		transfer = moved(player, common.Address{}, 500)
	}
	f.tx = sentTx{from: player, payer: payer, to: vault, transfers: []ramp.Transfer{transfer}}
	f.right = orderOf(ramp.Mint, 1, now.Add(-70*time.Hour))
	f.right.UserAddress = friend.Hex()
	return f
}

// witness puts the order of somebody else and its transaction into the past.
func (f *forgotten) witness(t *testing.T) {
	minted := []ramp.Transfer{moved(common.Address{}, friend, 98)}
	hash := f.node.send(now.Add(-69*time.Hour), sentTx{from: friend, payer: payer, to: vault, transfers: minted})
	f.store.keep(t, ended(f.right, ramp.OrderSucceeded, hash, now.Add(-68*time.Hour)))
}

// move moves the transaction of the order to a later block.
func (f *forgotten) move(later time.Duration) {
	for i := range f.node.sent {
		if tx := &f.node.sent[i]; tx.hash == f.own {
			tx.block += uint64(later / time.Second)
		}
	}
	slices.SortStableFunc(f.node.sent, func(a, b sentTx) int { return int(a.block) - int(b.block) })
}

// also sends another transaction, an hour after that of the order.
func (f *forgotten) also(tx sentTx) common.Hash { return f.node.send(f.at.Add(time.Hour), tx) }

// dust sends the player 300 transfers of nearly nothing, and of nothing, from nobody.
func (f *forgotten) dust() {
	for i := range int64(300) {
		f.also(sentTx{from: friend, to: token, transfers: []ramp.Transfer{moved(common.Address{}, player, i%3)}})
	}
}

// gift sends the player what a mint would give.
func (f *forgotten) gift() {
	f.also(sentTx{from: friend, to: token, transfers: []ramp.Transfer{moved(friend, player, 490)}})
}

// ownEnd ends another order for the same by a transaction of its own.
func (f *forgotten) ownEnd(t *testing.T) {
	o := orderOf(f.order.Direction, 5, f.at.Add(-time.Hour))
	f.store.keep(t, ended(o, ramp.OrderSucceeded, f.also(f.tx), f.at.Add(2*time.Hour)))
}

// What the service forgot is marked only if nobody could doubt it.
func TestWhichOrdersFit(t *testing.T) {
	racedetector.Skip(t)
	type change = func(*testing.T, *forgotten)
	is := func(change func(f *forgotten)) change { return func(_ *testing.T, f *forgotten) { change(f) } }
	again := func(state ramp.OrderState, tokens int64, after time.Duration) change { // another order
		return func(t *testing.T, f *forgotten) {
			o := orderOf(f.order.Direction, tokens, f.at.Add(after))
			if o.State = state; state != ramp.OrderAccepted {
				o.FinishedAt = f.at.Add(after + time.Hour)
			}
			f.store.keep(t, o)
		}
	}
	moves := func(transfer ramp.Transfer) change {
		return is(func(f *forgotten) { f.tx.transfers = []ramp.Transfer{transfer} })
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

		"the same again a day later": {is(func(f *forgotten) { f.at = now.Add(-50 * time.Hour) }),
			func(t *testing.T, f *forgotten) {
				f.store.keep(t, orderOf(f.order.Direction, 5, now.Add(-22*time.Hour)))
				f.node.send(now.Add(-21*time.Hour), f.tx)
			}, false},
		"its transaction has ended a thief's order": {nil, func(t *testing.T, f *forgotten) {
			stolen := orderOf(f.order.Direction, 5, f.at)
			stolen.UserAddress = friend.Hex()
			f.store.keep(t, ended(stolen, ramp.OrderSucceeded, f.own, f.at.Add(time.Hour)))
			f.also(f.tx)
		}, false},
		"an order from before what is read": {is(func(f *forgotten) { f.at = now.Add(-94 * time.Hour) }),
			is(func(f *forgotten) { f.move(15 * time.Hour) }), false},
		"a receipt that says that it failed": {nil, is(func(f *forgotten) {
			for i := range f.node.sent {
				f.node.sent[i].failed = f.node.sent[i].hash == f.own
			}
		}), false},

		"its result may come":        {is(func(f *forgotten) { f.at = now.Add(-12 * time.Hour) }), nil, false},
		"its transaction is younger": {nil, is(func(f *forgotten) { f.move(8 * time.Hour) }), false},
		"it is not the ramp's": {is(func(f *forgotten) {
			f.tx.from, f.tx.payer, f.tx.to = friend, common.Address{}, hidden
		}), nil, false},
		"another amount":           {moves(moved(player, vault, 400)), nil, false},
		"nobody knows whose it is": {is(func(f *forgotten) { f.config.OwnsWallet = nil }), nil, false},
		"the wallet is another's":  {is(func(f *forgotten) { f.config.OwnsWallet = nobody }), nil, false},
		"nobody knows the ramp": {is(func(f *forgotten) {
			f.config.Proof = proofOn(f.config.Proof.Config().Chain, &rampproof.Config{AnyFailure: true})
		}), nil, false},
		"an order of the other network":  {is(func(f *forgotten) { f.order.Network = ramp.Mainnet }), nil, false},
		"an order of the node's network": {is(func(f *forgotten) { f.order.Network = ramp.Testnet }), nil, true},
		"the node lists nothing else": {nil, is(func(f *forgotten) {
			delete(f.store.orders, f.right.UUID)
			f.node.sent = f.node.sent[1:]
		}), false},
		"so old that orders may be deleted": {is(func(f *forgotten) {
			f.node.begin, f.node.head, f.at = now.Add(-300*time.Hour), 300*3600, now.Add(-8*24*time.Hour)
		}), nil, false},
	} {
		for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			t.Run(name+"/"+string(d), func(t *testing.T) {
				f := newForgotten(t, d)
				f.witness(t)
				if c.before != nil {
					c.before(t, f)
				}
				f.order.AcceptedAt = f.at.UTC()
				f.store.keep(t, f.order)
				f.own = f.node.send(f.at.Add(time.Minute), f.tx)
				if c.after != nil {
					c.after(t, f)
				}
				orders := f.orders()
				books := ramp.Must(orders.Reconcile(t.Context(), now.Add(-80*time.Hour), time.Time{}))
				steps := ramp.Must(orders.FinishFitting(t.Context(), books, scheduler))
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
				books = ramp.Must(orders.Reconcile(t.Context(), now.Add(-80*time.Hour), time.Time{}))
				assert.Zero(t, books.Fitting)
			})
		}
	}
}

// A proxy answers the first delivery of each result with 502, and the service delivers it
// never again, for a day. Thieves send what seems to fit. One command ends what is certain:
// nothing that failed is given back, and what a thief has made doubtful waits for a person.
func TestADayOfResultsThatTheServiceForgotIsEndedInOneStep(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 9) // before the day
	s.service.Advance(time.Hour)
	day := s.service.Now()
	owns := func(_ context.Context, session string, wallet common.Address) (bool, error) {
		return s.service.Wallet(ramp.Session{ID: session}) == wallet, nil
	}
	orders := ramp.Must(newBackoffice(backofficeConfig{
		Store: s.store, Products: rampbooks.Always(product), Sessions: sessions, OwnsWallet: owns,
		Proof: proofOn(s.chain, &rampproof.Config{Payers: []common.Address{s.service.Payer()}}),
		Now:   s.service.Now, Logger: slog.New(slog.NewJSONHandler(&s.log, nil)),
	}))
	place := func(place placer, player string, tokens int64, faults ...ramptest.Fault) *ramptest.Order {
		started := ramp.Must(s.client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))
		session := ramp.Session{ID: player, Token: ramp.NewAccessToken("token-1")}
		faults = append(faults, ramptest.ResultNever(), ramptest.TransactionType(7))
		order := ramp.Must(place(t.Context(), started.UUID, session, ramp.NewAmount(tokens), faults...))
		s.service.Advance(10 * time.Minute)
		return order
	}
	fits := map[uuid.UUID]bool{}
	var all []*ramptest.Order
	for n := range 12 {
		player := fmt.Sprintf("player-%d", n)
		for _, o := range []*ramptest.Order{place(s.service.Mint, player, 5), place(s.service.Burn, player, 3)} {
			fits[o.UUID] = true
			all = append(all, o)
		}
	}
	failed := place(s.service.Mint, "player-1", 7, ramptest.TransactionFails())
	pending := place(s.service.Burn, "player-2", 7, ramptest.StaysPending())
	twice := []*ramptest.Order{place(s.service.Burn, "player-3", 2), place(s.service.Burn, "player-3", 2)}
	for _, trick := range thief.Tricks() {
		ramp.Must(thief.Play(t.Context(), s.service, pending, trick))
		ramp.Must(thief.Play(t.Context(), s.service, all[0], trick))
	}
	for s.service.Now().Before(day.Add(24 * time.Hour)) {
		s.service.Advance(time.Hour)
	}

	gold := s.gold
	from := []string{"-fitting", "-from", day.Format(time.RFC3339)}
	printed := ramp.Must(command(t, orders, "finish", from...))
	assert.Equal(t, len(fits), strings.Count(printed, "\ttokens: "), printed)
	assert.True(t, strings.HasSuffix(printed, "\norders that fit: 24; end them with -yes\n"), printed)
	assert.Equal(t, gold, s.gold, "a list moves nothing")
	_, err := command(t, orders, "finish", append(from, "-yes")...)
	assert.EqualError(t, err, "ramp: Decision.Who is required; Decision.Reason is required")

	s.log.Reset()
	decided := append(from, "-yes", "-who", "scheduler", "-reason", "case 52")
	printed = ramp.Must(command(t, orders, "finish", decided...))
	assert.True(t, strings.HasSuffix(printed, "\norders that fit: 24, of which were ended: 24\n"), printed)
	assert.EqualValues(t, 12*100, s.gold-gold, "each burn was granted, and no mint was given back")
	assert.Equal(t, 24, strings.Count(s.log.String(), `"level":"WARN","msg":"ramp: order finished"`))
	assert.Equal(t, 24, strings.Count(s.log.String(), `"who":"scheduler","reason":"case 52","fitting":true`))
	for _, o := range all {
		stored := s.store.orders[o.UUID]
		assert.Equal(t, ramp.OrderSucceeded, stored.State)
		assert.Equal(t, o.TxHash.Hex(), stored.TxHash)
		assert.Equal(t, "scheduler: case 52", stored.Reason)
	}
	for name, o := range map[string]*ramptest.Order{
		"failed": failed, "pending": pending, "twice": twice[0], "again": twice[1],
	} {
		assert.Equal(t, ramp.OrderAccepted, s.store.orders[o.UUID].State, name)
	}
	printed = ramp.Must(command(t, orders, "finish", decided...))
	assert.Equal(t, "orders that fit: 0, of which were ended: 0\n", printed)

	after := s.gold
	for _, o := range all { // the service remembers
		require.NoError(t, s.service.Resend(t.Context(), o))
	}
	assert.Equal(t, after, s.gold)
}
