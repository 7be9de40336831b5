package ramptest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/ownledger"
	"github.com/token-ramp/ramp-go/ramptest"
)

// vault is a game with several players. It is correct unless a test replaces one of
// its parts with a broken one.
type vault struct {
	mu     sync.Mutex
	owns   map[string]map[string]int64 // by session, then by asset
	orders map[uuid.UUID]*vaultOrder
	calls  map[uuid.UUID]int // results of an order

	earn bool          // the player earns gold whenever somebody looks
	hold bool          // takes with the result, not with the approval
	late time.Duration // how long effects follow the answers

	coming sync.WaitGroup // effects that are late

	validate func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error // instead of the right one
	result   func(v *vault, s ramp.Session, r *ramp.Result) error
}

type vaultOrder struct {
	request *ramp.ValidateRequest
	over    bool
}

func newVault() *vault {
	return &vault{orders: make(map[uuid.UUID]*vaultOrder), calls: make(map[uuid.UUID]int),
		owns: map[string]map[string]int64{
			"session-1": {"item_gold": 1000, "item_gem": 1000},
			"session-2": {"item_gold": 1000, "item_gem": 1000},
			"beggar":    {},
		}}
}

func approvesEverything() *vault {
	v := newVault()
	v.validate = func(*vault, ramp.Session, *ramp.ValidateRequest) error { return nil }
	return v
}

func (v *vault) Authenticate(context.Context, ramp.Session) error { return nil }

func (v *vault) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	player := &ramp.Player{PlayerID: "player of " + s.ID}
	if v.earn {
		v.owns[s.ID]["item_gold"]++
	}
	for id, n := range v.owns[s.ID] {
		player.Assets = append(player.Assets, ramp.Asset{ID: id, Balance: ramp.NewAmount(n)})
	}
	return player, nil
}

func (v *vault) Validate(_ context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.validate != nil {
		return v.validate(v, s, r)
	}
	return v.accept(s, r)
}

// accept handles a validate call correctly.
func (v *vault) accept(s ramp.Session, r *ramp.ValidateRequest) error {
	if known := v.orders[r.UUID]; known != nil {
		if known.request.Digest != r.Digest {
			return ramp.Reject("INVALID_MESSAGE")
		}
		return nil
	}
	effect, err := r.Intent.Effect(ramp.OrderAccepted)
	if err != nil {
		return err
	}
	for _, a := range effect.Assets {
		if n, err := a.Amount.Int64(); err != nil || effect.Kind == ramp.Take && v.owns[s.ID][a.ID] < n {
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	v.orders[r.UUID] = &vaultOrder{request: r}
	if !v.hold {
		v.move(s.ID, effect)
	}
	return nil
}

func (v *vault) Result(_ context.Context, s ramp.Session, r *ramp.Result) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls[r.UUID]++
	if v.result != nil {
		return v.result(v, s, r)
	}
	return v.finish(s, r)
}

// finish handles a result correctly.
func (v *vault) finish(s ramp.Session, r *ramp.Result) error {
	o := v.orders[r.UUID]
	if o == nil || o.over {
		return nil
	}
	o.over = true
	v.effect(s.ID, r)
	return nil
}

// effect moves what a result moves.
func (v *vault) effect(player string, r *ramp.Result) {
	effect, err := r.Intent.Effect(r.Outcome())
	switch {
	case err != nil:
	case v.hold && r.Intent.Type == ramp.Assemble && r.Succeeded():
		effect, _ = v.orders[r.UUID].request.Intent.Effect(ramp.OrderAccepted)
		v.move(player, effect)
	case v.hold && r.Intent.Type == ramp.Assemble:
	default:
		v.move(player, effect)
	}
}

func (v *vault) move(player string, effect ramp.Effect) {
	do := func() {
		for _, a := range effect.Assets {
			n, _ := effect.Delta(a).Int64()
			v.owns[player][a.ID] += n
		}
	}
	if v.late == 0 {
		do()
		return
	}
	v.coming.Add(1)
	time.AfterFunc(v.late, func() {
		defer v.coming.Done()
		v.mu.Lock()
		defer v.mu.Unlock()
		do()
	})
}

// add adds to a player's assets; a negative amount is taken.
func (v *vault) add(player, asset string, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.owns[player][asset] += n
}

// judged is a test that asserts nothing. It fails if the books fail it.
type judged struct {
	testing.TB
	cleanup []func()
	failed  bool
	panics  bool // Error does not return, as that of Ginkgo
	said    bytes.Buffer
}

func (j *judged) Helper()           {}
func (j *judged) Cleanup(do func()) { j.cleanup = append(j.cleanup, do) }
func (j *judged) Failed() bool      { return j.failed }
func (j *judged) Log(args ...any)   { fmt.Fprintln(&j.said, args...) }
func (j *judged) Error(args ...any) {
	j.failed = true
	if j.Log(args...); j.panics {
		panic(j)
	}
}

// end ends the test, and returns whether it failed and what it logged.
func (j *judged) end() (failed bool, said string) {
	for len(j.cleanup) > 0 {
		last := len(j.cleanup) - 1
		func() {
			defer func() { _ = j.panics && recover() != nil }()
			j.cleanup[last]()
		}()
		j.cleanup = j.cleanup[:last]
	}
	return j.failed, j.said.String()
}

// beforeStory returns what a test says before it tells the story.
func beforeStory(said string) string {
	before, _, _ := strings.Cut(said, "what happened since")
	return before
}

// played is a vault with its service, in a test that asserts nothing.
type played struct {
	*counter
	vault *vault
	test  *judged
}

func play(t *testing.T, v *vault, options ...func(*ramptest.Config)) *played {
	t.Helper()
	return playAs(t, v, v, options...)
}

// playAs plays with a game that has a vault.
func playAs(t *testing.T, game ownledger.Game, v *vault, options ...func(*ramptest.Config)) *played {
	t.Helper()
	p := &played{vault: v, test: &judged{TB: t}}
	settle := func(c *ramptest.Config) { c.Settle = 60 * time.Millisecond }
	p.counter = newCounterOf(p.test, game, append([]func(*ramptest.Config){settle}, options...)...)
	return p
}

// order mints or burns 100 gold and a gem.
func (p *played) order(t *testing.T, session string, burn bool, faults ...ramptest.Fault) (*ramptest.PlacedOrder,
	error) {
	t.Helper()
	items := append(request().Intent.Materials,
		ramp.Item{ID: "item_gem", Amount: ramp.NewAmount(1), IconURL: "https://example.com/gem.png"})
	return p.orderOf(t, session, burn, items, faults...)
}

// orderOf mints or burns 10 tokens for some items.
func (p *played) orderOf(t *testing.T, session string, burn bool, items []ramp.Item, faults ...ramptest.Fault,
) (*ramptest.PlacedOrder, error) {
	t.Helper()
	r := request()
	r.Intent.Materials, r.Intent.Outputs = items, items
	started := must.Get(p.client.Initialize(t.Context(), r))(t)
	place := p.service.Mint
	if burn {
		place = p.service.Burn
	}
	return place(t.Context(), started.UUID, ramp.Session{ID: session, Token: ramp.NewAccessToken("token-1")},
		ramp.NewAmount(10), faults...)
}

// moved is what a call moves of a player's gold and gems.
type moved struct{ gold, gem int64 }

// shift moves a player's assets, at once or late.
func (v *vault) shift(player string, m moved) {
	v.move(player, ramp.Effect{Kind: ramp.Grant, Assets: []ramp.AssetAmount{
		{ID: "item_gold", Amount: ramp.NewAmount(m.gold)}, {ID: "item_gem", Amount: ramp.NewAmount(m.gem)}}})
}

// forgeable lets a game act on forged calls of a path, although it rejects them.
func forgeable(t *testing.T, path string) func(http.Handler) http.Handler {
	key := wayKey(t)
	return func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if r.URL.Path == path && r.Header.Get("X-Hmac-Signature") == "" {
				again := r.Clone(r.Context())
				again.Header.Set("X-Hmac-Signature", key.Sign(body))
				w.WriteHeader(http.StatusUnauthorized)
				w = &discard{header: http.Header{}}
				r = again
			}
			inner.ServeHTTP(w, r)
		})
	}
}

// Each of these games loses assets or moves them twice or wrongly. A test that
// plays an order and asserts nothing fails.
func TestTheBooksCatchEveryLoss(t *testing.T) {
	none, take, give := moved{}, moved{-100, -1}, moved{100, 1}
	type calls []moved // of an order; the last one stands for all that follow
	type faults []ramptest.Fault
	fails, twice := ramptest.TransactionFails(), ramptest.ResultTwice()
	const another, late = "session-2", 5 * time.Millisecond
	for _, test := range []struct {
		name             string
		validate, result calls // what is moved instead of the right thing
		whose            string
		rejects          bool // each validate call
		late             time.Duration
		wrap             func(http.Handler) http.Handler
		who              string // session-1 unless named
		burn             bool
		faults           faults
		want             string // part of what the test says
	}{
		{name: "a mint takes nothing", validate: calls{none},
			want: "succeeded on chain: the game must take 1 item_gem, 100 item_gold: item_gem: 1,000 before the " +
				"call, 1,000 after it, 999 expected; item_gold: 1,000 before the call, 1,000 after it, 900 expected"},
		{name: "a mint is taken twice by validate twice", validate: calls{take},
			faults: faults{ramptest.ValidateTwice()},
			want: "was approved more than once: the game must move nothing: item_gem: 999 before the call, 998 " +
				"after it, 999 expected; item_gold: 900 before the call, 800 after it, 900 expected"},
		{name: "a mint is taken more than once by validate at once", validate: calls{take},
			faults: faults{ramptest.ValidateAtOnce(3)}, want: "the game must"},
		{name: "a mint is taken again after its answer was lost", validate: calls{take},
			faults: faults{ramptest.LostAnswer(ramptest.OnValidate)},
			want:   "the game must move nothing"},
		{name: "a mint is approved for a player who owns nothing", validate: calls{take}, who: "beggar",
			want: "approved, but costs 1 item_gem and the player has 0"},
		{name: "a mint is approved, and taken to 0 only", validate: calls{none}, who: "beggar",
			want: "approved, but costs"},
		{name: "a mint is taken at a validate that is rejected", validate: calls{take}, rejects: true,
			want: "was rejected: the game must move nothing"},
		{name: "a mint takes another asset", validate: calls{{0, -101}},
			want: "item_gem: 1,000 before the call, 899 after it"},
		{name: "a mint takes from another player", validate: calls{take}, whose: another,
			want: "the game must take 1 item_gem, 100 item_gold"},
		{name: "a mint takes one too few", validate: calls{{-99, -1}},
			want: "the game must take 1 item_gem, 100 item_gold: item_gold: 1,000 before the call, 901 after it, " +
				"900 expected"},
		{name: "a mint takes one of two assets", validate: calls{{0, -1}},
			want: "item_gold: 1,000 before the call, 1,000 after it, 900 expected"},
		{name: "a mint is taken with the approval and with the result", result: calls{take},
			want: "succeeded on chain: the game must move nothing"},
		{name: "a mint that is held is never taken", validate: calls{none}, result: calls{none},
			want: "succeeded on chain: the game must take 1 item_gem, 100 item_gold"},
		{name: "a mint that is held is taken twice", validate: calls{none}, result: calls{take}, faults: faults{twice},
			want: "succeeded on chain: the game must move nothing"},
		{name: "a mint that is held is given back", validate: calls{none}, result: calls{give}, faults: faults{fails},
			want: "failed on chain: the game must move nothing"},
		{name: "a mint that succeeded is given back", result: calls{{100, 0}},
			want: "succeeded on chain: the game must move nothing: item_gold: 900 before the call, 1,000 after it, " +
				"900 expected"},
		{name: "a failed mint is not given back", result: calls{none}, faults: faults{fails},
			want: "failed on chain: the game must give back 1 item_gem, 100 item_gold: item_gem: 999 before the " +
				"call, 999 after it, 1,000 expected; item_gold: 900 before the call, 900 after it, 1,000 expected"},
		{name: "a failed mint is given back twice", result: calls{give}, faults: faults{fails, twice},
			want: "failed on chain: the game must move nothing"},
		{name: "a failed mint is given back for each result at once", result: calls{give},
			faults: faults{fails, ramptest.ResultAtOnce(4)},
			want:   "failed on chain: the game must"},
		{name: "a failed mint is given back again after its answer was lost", result: calls{give},
			faults: faults{fails, ramptest.LostAnswer(ramptest.OnResult)}, want: "the game must move nothing"},
		{name: "a failed mint is given back again after HTTP 500", result: calls{give}, faults: faults{fails},
			wrap: instead(ramp.PathResult, true, 500, 0), want: "the game must move nothing"},
		{name: "a failed mint is given back again after a reorganization", result: calls{give},
			faults: faults{fails, ramptest.Reorganized()},
			want:   "the game must move nothing"},
		{name: "a failed mint is given back to another player", result: calls{give}, whose: another,
			faults: faults{fails}, want: "the game must give back"},
		{name: "a failed mint is given back in another asset", result: calls{{0, 101}}, faults: faults{fails},
			want: "the game must give back"},
		{name: "a failed mint is rejected for good", wrap: instead(ramp.PathResult, false, 400), faults: faults{fails},
			want: "failed on chain: the game must give back"},
		{name: "a failed mint is rejected with HTTP 200", wrap: instead(ramp.PathResult, false, 200),
			faults: faults{fails},
			want:   "failed on chain: the game must give back"},
		{name: "a failed mint is given back with the second delivery only", result: calls{none, give},
			faults: faults{fails, twice},
			want:   "failed on chain: the game must give back"},
		{name: "a failed mint that was taken late is not given back", late: late, result: calls{none},
			faults: faults{fails},
			want:   "failed on chain: the game must give back"},
		{name: "a failed mint is given back late, and twice", late: late, result: calls{{200, 2}},
			faults: faults{fails},
			want:   "failed on chain: the game must give back"},
		{name: "a burn is not granted", burn: true, result: calls{none},
			want: "succeeded on chain: the game must grant 1 item_gem, 100 item_gold"},
		{name: "a burn is granted twice", burn: true, result: calls{give}, faults: faults{twice},
			want: "succeeded on chain: the game must move nothing"},
		{name: "a burn is granted with the approval", burn: true, validate: calls{{100, 0}},
			want: "was approved: the game must move nothing"},
		{name: "a burn that failed is granted", burn: true, result: calls{{100, 0}}, faults: faults{fails},
			want: "failed on chain: the game must move nothing"},
		{name: "a burn is granted to another player", burn: true, result: calls{give}, whose: another,
			want: "must grant"},
		{name: "a burn is granted with the second delivery only", burn: true, result: calls{none, give},
			faults: faults{twice}, want: "must grant"},
		{name: "a burn is rejected for good", burn: true, wrap: instead(ramp.PathResult, false, 404),
			want: "must grant"},
		{name: "another order under the UUID is rejected, but taken", validate: calls{take},
			faults: faults{ramptest.ValidateOtherAmount()},
			want:   "the game must move nothing"},
		{name: "a forged validate is rejected, but taken", wrap: forgeable(t, ramp.PathValidate),
			faults: faults{ramptest.MissingHMAC(ramptest.OnValidate)},
			want:   "got a forged validate: the game must move nothing"},
		{name: "a forged result is rejected, but given back", wrap: forgeable(t, ramp.PathResult),
			faults: faults{fails, ramptest.MissingHMAC(ramptest.OnResult)},
			want:   "got a forged result: the game must move nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := newVault()
			v.late = test.late
			shift := func(s ramp.Session, calls calls, n int) {
				v.shift(cmp.Or(test.whose, s.ID), calls[min(n, len(calls)-1)])
			}
			if test.validate != nil {
				v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
					shift(s, test.validate, 0)
					if known := v.orders[r.UUID]; test.rejects || known != nil && known.request.Digest != r.Digest {
						return ramp.Reject("MAINTENANCE")
					}
					v.orders[r.UUID] = &vaultOrder{request: r}
					return nil
				}
			}
			if test.result != nil {
				v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
					shift(s, test.result, v.calls[r.UUID]-1)
					return nil
				}
			}
			p := play(t, v, func(c *ramptest.Config) {
				if test.wrap != nil {
					c.Handler = test.wrap(c.Handler)
				}
			})
			who := cmp.Or(test.who, "session-1")
			_, err := p.order(t, who, test.burn, test.faults...)
			if errors.Is(err, ramptest.ErrLostAnswer) { // the player tries again
				id := p.service.Events()[0].UUID
				_, _ = p.service.Mint(t.Context(), id, ramp.Session{ID: who, Token: ramp.NewAccessToken("token-1")},
					ramp.NewAmount(10), test.faults...)
			}
			v.coming.Wait() // late effects come before the result does
			p.service.Advance(24 * time.Hour)
			failed, said := p.test.end()
			assert.True(t, failed)
			assert.Contains(t, said, test.want)
			assert.Contains(t, said, "what happened since")
		})
	}
}

// Correct games never fail a test: whether they take with the
// approval or with the result, act after their answer, or move a player's assets
// for reasons of their own. RAMP_BOOKS_RUNS plays more of them.
func TestTheBooksNeverBlameAGoodGame(t *testing.T) {
	runs := 1
	if n, err := strconv.Atoi(os.Getenv("RAMP_BOOKS_RUNS")); err == nil {
		runs = n
	}
	for run := range runs {
		for _, kind := range []struct {
			name   string
			hold   bool
			late   bool
			income string
		}{
			{name: "takes with the approval"},
			{name: "takes with the result", hold: true},
			{name: "acts late", late: true},
			{name: "takes late with the result", hold: true, late: true},
			{name: "has other income", income: "between calls"},
			{name: "has other income and takes with the result", hold: true, income: "between calls"},
			{name: "has other income and acts late", late: true, income: "between calls"},
			{name: "has income all the time", income: "always"},
		} {
			t.Run(fmt.Sprint(kind.name, " ", run), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(run), 1))
				v := newVault()
				v.hold, v.earn = kind.hold, kind.income == "always"
				if kind.late {
					v.late = time.Duration(1+random.IntN(8)) * time.Millisecond
				}
				p := play(t, v, func(c *ramptest.Config) {
					if c.Settle = 0; kind.income == "always" { // each difference lasts
						c.Settle = 20 * time.Millisecond
					}
				})
				playWell(t, p, random, kind.income == "between calls")
				failed, said := p.test.end()
				if kind.income == "always" {
					assert.Contains(t, p.service.Timeline(), "not judged, because what the player owns keeps changing")
				}
				// what it moved may be unknown, but is no loss
				if kind.income == "always" || kind.late && kind.income != "" {
					assert.Empty(t, p.service.Imbalances())
					return
				}
				assert.False(t, failed, said)
			})
		}
	}
}

// playWell plays orders with faults, some of them at the same time.
func playWell(t *testing.T, p *played, random *rand.Rand, income bool) {
	t.Helper()
	faults := []func() ramptest.Fault{
		ramptest.TransactionFails, ramptest.StaysPending, ramptest.Reorganized, ramptest.ResultTwice,
		ramptest.ResultNever,
		ramptest.ResultAfterNext, ramptest.ValidateTwice, ramptest.ValidateOtherDigest, ramptest.ValidateOtherAmount,
		func() ramptest.Fault { return ramptest.ResultAtOnce(3) },
		func() ramptest.Fault { return ramptest.ValidateAtOnce(3) },
		func() ramptest.Fault { return ramptest.ResultLate(time.Minute) },
		func() ramptest.Fault { return ramptest.LostAnswer(ramptest.OnValidate) },
		func() ramptest.Fault { return ramptest.LostAnswer(ramptest.OnResult) },
		func() ramptest.Fault { return ramptest.MissingHMAC(ramptest.OnValidate) },
		func() ramptest.Fault { return ramptest.TamperedBody(ramptest.OnResult) },
	}
	earn := func() {
		if income {
			p.vault.add("session-1", []string{"item_gold", "item_gem"}[random.IntN(2)], int64(random.IntN(200))-60)
		}
	}
	var placed []*ramptest.PlacedOrder
	for range 4 {
		var mu sync.Mutex
		var together sync.WaitGroup
		for range 1 + random.IntN(2) {
			var script []ramptest.Fault
			for range random.IntN(4) {
				script = append(script, ramptest.Perhaps(faults[random.IntN(len(faults))]()))
			}
			burn := random.IntN(3) == 0
			together.Go(func() {
				o, err := p.order(t, "session-1", burn, script...)
				if errors.Is(err, ramptest.ErrLostAnswer) {
					return // the player gives up
				}
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				placed = append(placed, o)
			})
		}
		together.Wait()
		earn()
		p.service.Advance([]time.Duration{0, time.Second, time.Hour}[random.IntN(3)])
		earn()
		if o := placed; len(o) > 0 {
			_ = p.service.Resend(t.Context(), o[random.IntN(len(o))])
		}
		earn()
	}
	p.service.Advance(24 * time.Hour)
	p.vault.coming.Wait()
	earn()
	for _, o := range placed {
		_ = p.service.Resend(t.Context(), o)
	}
}

// What comes late for an order whose player could not be read is no loss of the next order,
// whether the player is known since or already during the result.
func TestALateEffectForAnUnknownPlayerIsNobodyElses(t *testing.T) {
	for _, during := range []bool{false, true} {
		var unreadable atomic.Bool
		unreadable.Store(true)
		v := newVault()
		var late *ramp.Result
		v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
			if late == nil {
				late = r
				return errors.New("the result is processed later")
			}
			return v.finish(s, r)
		}
		v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
			if late != nil {
				_ = v.finish(s, late)
			}
			return v.accept(s, r)
		}
		var p *played
		p = play(t, v, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
			if unreadable.Load() && r.URL.Path == ramp.PathAssets {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			if during && r.URL.Path == ramp.PathResult && unreadable.Swap(false) {
				_, err := p.service.Assets(t.Context(), p.session)
				assert.NoError(t, err)
			}
			game.ServeHTTP(w, r)
		}))
		_, err := p.order(t, "session-1", true)
		require.NoError(t, err)
		p.service.Advance(time.Second)
		require.NotNil(t, late)
		unreadable.Store(false)
		_, err = p.order(t, "session-1", true)
		require.NoError(t, err)
		p.service.Advance(time.Hour)
		assert.Empty(t, p.service.Imbalances())
	}
}

// A call that waited while the player was unknown is one of the player who is known since: the next
// call waits for it, so that what both move is not mixed up.
func TestAPlayerWhoBecomesKnownHasOneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var unreadable atomic.Bool
		unreadable.Store(true)
		next, validates := make(chan bool), 0 // lets a call go on
		p := play(t, newVault(), before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
			switch {
			case r.URL.Path == ramp.PathAssets && unreadable.Load():
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			case r.URL.Path == ramp.PathValidate:
				validates++
			}
			if r.URL.Path != ramp.PathAssets && validates > 1 {
				<-next
			}
			game.ServeHTTP(w, r)
		}))
		must.Get(p.order(t, "session-1", true))(t)
		go func() { _, _ = p.order(t, "session-1", false) }()
		synctest.Wait()
		go p.service.Advance(time.Second) // the result of the burn, which waits for the mint
		synctest.Wait()
		unreadable.Store(false)
		must.Get(p.service.Assets(t.Context(), ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}))(t)
		next <- true // the mint
		synctest.Wait()
		go func() { _, _ = p.order(t, "session-1", false) }()
		synctest.Wait()
		assert.Equal(t, 2, validates, "the second mint waits for the result")
		close(next)
		synctest.Wait()
		assert.Equal(t, 3, validates)
	})
}

// discard is a response writer that discards the response.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func TestTheBooksSayWhatTheGameMustDo(t *testing.T) {
	for _, mode := range []ramptest.Audit{ramptest.AuditFail, ramptest.AuditReport, ramptest.AuditOff} {
		v := newVault()
		v.result = func(*vault, ramp.Session, *ramp.Result) error { return nil }
		v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
			v.owns[s.ID]["item_gold"] -= 50
			return v.accept(s, r)
		}
		p := play(t, v, func(c *ramptest.Config) { c.Audit = mode })
		started, err := p.client.Initialize(t.Context(), request())
		require.NoError(t, err)
		order, err := p.service.Mint(t.Context(), started.UUID, p.session, ramp.NewAmount(10),
			ramptest.TransactionFails())
		require.NotNil(t, order, "it was placed, whatever the books say")
		id := order.UUID.String()[:8]
		first := "ramptest: player of session-1's mint " + id +
			" was approved: the game must take 100 item_gold: 1,000 before the call, 850 after it, 900 expected"
		second := "ramptest: player of session-1's mint " + id +
			" failed on chain: the game must give back 150 item_gold: 850 before the call, 850 after it, 1,000 expected"
		sent := p.service.Advance(time.Minute)
		require.Len(t, sent, 1)
		var found *ramptest.Imbalance
		if mode == ramptest.AuditFail {
			require.ErrorAs(t, err, &found)
			assert.EqualError(t, found, first)
			assert.Equal(t, []uuid.UUID{order.UUID}, found.Orders)
			assert.Equal(t,
				[]ramptest.AssetBalance{{ID: "item_gold", Before: ramp.NewAmount(1000), After: ramp.NewAmount(850),
					Expected: ramp.NewAmount(900)}}, found.Assets)
			assert.EqualError(t, sent[0].Err, second)
		} else {
			assert.NoError(t, err)
			assert.NoError(t, sent[0].Err)
		}
		if mode == ramptest.AuditOff {
			assert.Empty(t, p.service.Imbalances())
		} else {
			assert.Len(t, p.service.Imbalances(), 2)
			assert.Contains(t, p.service.Timeline(), second[len("ramptest: "):])
		}
		failed, said := p.test.end()
		assert.Equal(t, mode == ramptest.AuditFail, failed)
		assert.Equal(t, mode != ramptest.AuditOff, strings.Contains(said, second))
	}
}
