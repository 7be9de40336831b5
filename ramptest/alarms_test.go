package ramptest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// lister is a vault with an assets endpoint of its own.
type lister struct {
	*vault
	admits func(s ramp.Session) error
	list   func(s ramp.Session, p *ramp.Player) *ramp.Player
}

func (l *lister) Authenticate(_ context.Context, s ramp.Session) error {
	if l.admits == nil {
		return nil
	}
	return l.admits(s)
}

func (l *lister) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	p, err := l.vault.Assets(ctx, s)
	if err == nil && l.list != nil {
		p = l.list(s, p)
	}
	return p, err
}

// alarm plays with a game in a test that asserts nothing.
func alarm(t *testing.T, l *lister, options ...func(*ramptest.Config)) *played {
	t.Helper()
	return playAs(t, l, l.vault, options...)
}

// fails mints 100 gold in a transaction that will fail.
func (p *played) fails(t *testing.T) {
	t.Helper()
	_, err := p.service.Mint(t.Context(), p.initialize(t), session1, ramp.NewAmount(10), ramptest.TransactionFails())
	require.NoError(t, err)
}

var expired = ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("expired")}

func rejectsExpired(s ramp.Session) error {
	if s.Token.Equal(expired.Token) {
		return ramp.Reject("SESSION_EXPIRED")
	}
	return nil
}

// A player whose token has expired logs in and repeats the order: the books know it from then on.
func TestAFreshTokenAfterAnExpiredOneIsJudged(t *testing.T) {
	for name, loses := range map[string]bool{"right": false, "wrong": true} {
		t.Run(name, func(t *testing.T) {
			l := &lister{vault: newVault(), admits: rejectsExpired}
			if loses {
				l.result = func(*vault, ramp.Session, *ramp.Result) error { return nil }
			}
			p := alarm(t, l)
			id := p.initialize(t)
			_, err := p.service.Mint(t.Context(), id, expired, ramp.NewAmount(10))
			require.ErrorContains(t, err, "SESSION_EXPIRED")
			_, err = p.service.Mint(t.Context(), id, session1, ramp.NewAmount(10), ramptest.TransactionFails())
			require.NoError(t, err)
			p.service.Advance(time.Minute)
			failed, said := p.test.end()
			assert.Equal(t, loses, failed, said)
			assert.NotContains(t, said, "did not report what the player owns")
		})
	}
}

// Who asks the chain in a test is not a game with a Proof.
func TestAHintNamesAProofOnlyWhereThereIsOne(t *testing.T) {
	v := newVault()
	v.result = func(*vault, ramp.Session, *ramp.Result) error { return errors.New("the database is down") }
	p := alarm(t, &lister{vault: v})
	p.fails(t)
	_, err := nodeOf(t, p.service).BlockNumber(t.Context())
	require.NoError(t, err)
	p.service.Advance(13 * time.Hour)
	failed, said := p.test.end()
	assert.True(t, failed)
	assert.NotContains(t, said, "Proof")
}

// Whose token is wrong has not used a UUID twice.
func TestAHintAboutAnEarlierOrderIsAboutThatOrder(t *testing.T) {
	p := alarm(t, &lister{vault: newVault(), admits: rejectsExpired})
	id := p.initialize(t)
	_, err := p.service.Mint(t.Context(), id, session1, ramp.NewAmount(10))
	require.NoError(t, err)
	_, err = p.service.Mint(t.Context(), id, ramp.Session{ID: "session-2", Token: expired.Token}, ramp.NewAmount(10))
	require.ErrorContains(t, err, "SESSION_EXPIRED")
	assert.NotContains(t, err.Error(), "earlier order")
	_, err = p.service.Mint(t.Context(), id, session1, ramp.NewAmount(7))
	assert.ErrorContains(t, err, "the UUID is that of an earlier order")
	p.service.Advance(time.Minute)
	failed, said := p.test.end()
	assert.False(t, failed, said)
}

// Two sessions of one player, whom the game does not name: the second order moves in the window of the
// first.
func TestSessionsThatShareAssetsAreNamed(t *testing.T) {
	for name, named := range map[string]bool{"without a player_id": false, "with one": true} {
		t.Run(name, func(t *testing.T) {
			v := newVault()
			v.owns["session-2"] = v.owns["session-1"] // one purse
			begun, second := make(chan struct{}), make(chan struct{})
			l := &lister{vault: v, list: func(_ ramp.Session, p *ramp.Player) *ramp.Player {
				if p.PlayerID = ""; named {
					p.PlayerID = "alice"
				}
				return p
			}}
			p := alarm(t, l)
			other := ramp.Session{ID: "session-2", Token: ramp.NewAccessToken("token-2")}
			for _, s := range []ramp.Session{session1, other} {
				_, err := p.service.Assets(t.Context(), s)
				require.NoError(t, err)
			}
			v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
				if s.ID == "session-1" && !named {
					close(begun)
					v.mu.Unlock()
					<-second
					v.mu.Lock()
				}
				return v.accept(s, r)
			}
			first, last := p.initialize(t), p.initialize(t)
			var both sync.WaitGroup
			both.Go(func() { _, _ = p.service.Mint(t.Context(), first, session1, ramp.NewAmount(10)) })
			both.Go(func() {
				if !named {
					<-begun
				}
				_, _ = p.service.Mint(t.Context(), last, other, ramp.NewAmount(10))
				close(second)
			})
			both.Wait()
			p.service.Advance(time.Minute)
			failed, said := p.test.end()
			assert.Equal(t, !named, failed, said)
			const hint = "two sessions moved the same assets at once: return a player_id"
			assert.Equal(t, !named, strings.Contains(said, hint), said)
		})
	}
}

// Two devices of one player, to which a game gives a player_id each: what one's order moves is not what the
// other's must give back.
func TestAPurseOfTwoDevicesIsNamed(t *testing.T) {
	v := newVault()
	v.owns["session-2"] = v.owns["session-1"] // one purse
	p := alarm(t, &lister{vault: v, list: func(_ ramp.Session, p *ramp.Player) *ramp.Player { return p }})
	other := ramp.Session{ID: "session-2", Token: ramp.NewAccessToken("token-2")}
	for _, s := range []ramp.Session{session1, other} {
		_, err := p.service.Assets(t.Context(), s)
		require.NoError(t, err)
	}
	first, second := p.initialize(t), p.initialize(t)
	v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
		v.result = (*vault).finish
		v.mu.Unlock()
		_, err := p.service.Mint(t.Context(), second, other, ramp.NewAmount(10)) // during the first one's result
		assert.NoError(t, err)
		v.mu.Lock()
		return v.finish(s, r)
	}
	o, err := p.service.Mint(t.Context(), first, session1, ramp.NewAmount(10), ramptest.TransactionFails())
	require.NoError(t, err)
	_ = p.service.Deliver(t.Context(), o, ramptest.Failed)
	_, said := p.test.end()
	assert.Contains(t, said, "That is just what orders of another player are about that moved at the same time")
	assert.Contains(t, said, "return one player_id for both")
	assert.NotContains(t, said, "must give back")
}

// A game that sets the price aside when the page is opened takes nothing when it is asked to approve.
func TestAGameThatReservesBeforeItIsAskedToldOfTheMailbox(t *testing.T) {
	for _, ends := range []ramptest.Outcome{ramptest.Succeeded, ramptest.Failed} {
		for _, listed := range []bool{false, true} {
			v := newVault()
			aside := int64(0)
			v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
				v.owns[s.ID]["item_gold"] += aside
				aside = 0
				return v.accept(s, r)
			}
			p := play(t, v, func(c *ramptest.Config) {
				if listed {
					c.Mailbox = func(ramp.Session) []ramp.Asset {
						v.mu.Lock()
						defer v.mu.Unlock()
						return []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(aside)}}
					}
				}
			})
			id := must.Get(p.client.Initialize(t.Context(), request()))(t).UUID
			v.mu.Lock()
			v.owns["session-1"]["item_gold"] -= 100
			aside = 100
			v.mu.Unlock()
			o, err := p.service.Mint(t.Context(), id, session1, ramp.NewAmount(10))
			require.NoError(t, err)
			err = p.service.Deliver(t.Context(), o, ends)
			if listed {
				assert.NoError(t, err)
				continue
			}
			assert.ErrorContains(t, err, "if the game set the price aside before the validate call, let "+
				"Config.Mailbox return it until then")
		}
	}
}

// An emulator knows only its own orders, so the orders of another one that uses the same game are a riddle.
func TestAnotherEmulatorIsNamed(t *testing.T) {
	for _, test := range []struct {
		name             string
		closed, overlaps bool
		said             [2]string
		named            [2]bool
	}{
		{name: "one after the other", said: [2]string{"between two calls, alice's item_gold fell by 100", ""}},
		{name: "one during the other", overlaps: true, named: [2]bool{true, false},
			said: [2]string{"1,000 before the call, 800 after it, 900 expected",
				"between two calls, alice's item_gold fell by 100"}},
		{name: "one after the other, closed books", closed: true, named: [2]bool{true, false},
			said: [2]string{"between two calls, alice's item_gold fell by 100", ""}},
		{name: "one during the other, closed books", closed: true, overlaps: true, named: [2]bool{true, true},
			said: [2]string{"1,000 before the call, 800 after it, 900 expected",
				"between two calls, alice's item_gold fell by 100"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newVault()
			l := &lister{vault: v, list: func(_ ramp.Session, p *ramp.Player) *ramp.Player {
				p.PlayerID = "alice"
				return p
			}}
			first := alarm(t, l, func(c *ramptest.Config) { c.Closed = test.closed })
			second := &played{vault: v, test: &judged{TB: t}, counter: new(counter)}
			*second.counter = *first.counter
			second.service = ramptest.Start(second.test, first.config)
			second.client = clientOf(t, second.service, second.key)
			mint := func(p *played) {
				_, err := p.service.Mint(t.Context(), p.initialize(t), session1, ramp.NewAmount(10))
				require.NoError(t, err)
			}
			if test.overlaps {
				v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
					v.validate = (*vault).accept
					v.mu.Unlock()
					mint(second)
					v.mu.Lock()
					return v.accept(s, r)
				}
				_, err := first.service.Mint(t.Context(), first.initialize(t), session1, ramp.NewAmount(10))
				assert.Error(t, err)
			} else {
				mint(first)
				mint(second)
			}
			for i, p := range []*played{first, second} {
				_, err := p.service.Assets(t.Context(), session1)
				require.NoError(t, err)
				failed, said := p.test.end()
				assert.Equal(t, test.named[i], failed, said)
				assert.Contains(t, said, test.said[i])
				assert.Equal(t, test.named[i], strings.Contains(said, "An order of another emulator"), said)
			}
		})
	}
}

// Who logs every call reads few of them before a finding.
func TestAMissingEffectIsAwaitedWithFewReadings(t *testing.T) {
	v := newVault()
	v.result = func(*vault, ramp.Session, *ramp.Result) error { return nil }
	var mu sync.Mutex
	readings := 0
	l := &lister{vault: v, list: func(_ ramp.Session, p *ramp.Player) *ramp.Player {
		mu.Lock()
		defer mu.Unlock()
		readings++
		return p
	}}
	p := alarm(t, l, func(c *ramptest.Config) { c.Settle = 2 * time.Second })
	p.fails(t)
	readings = 0
	p.service.Advance(time.Minute)
	assert.LessOrEqual(t, readings, 14)
	failed, _ := p.test.end()
	assert.True(t, failed)
}

// What follows from a finding is no second one: the answer was not lost because middleware had ended the
// deliveries.
func TestAConsequenceIsNoSecondFinding(t *testing.T) {
	v := newVault()
	p := play(t, v, func(c *ramptest.Config) {
		inner := c.Handler
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			if inner.ServeHTTP(answer, r); answer.Code == http.StatusInternalServerError {
				answer.Code = http.StatusServiceUnavailable
			}
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	})
	p.goldOrder(t, "session-1", false, 300, ramptest.TransactionFails(), ramptest.StoreFails(),
		ramptest.LostAnswer(ramptest.OnResult))
	p.service.Advance(time.Hour)
	failed, said := p.test.end()
	assert.True(t, failed)
	findings, _, _ := strings.Cut(said, "what happened since")
	assert.Equal(t, 1, strings.Count(findings, "'s mint "), findings)
}

// A grant never fails, whatever has become of the player since the approval: what does not fit or cannot
// be reached waits, and the books know it by the word for it, or once the player can be read again.
func TestAGrantToAPlayerWhoCannotTakeIt(t *testing.T) {
	type world struct {
		*lister
		waits map[string]int64 // in the mailbox, by asset
		away  bool             // the game rejects the session
	}
	item := func(n int64) []ramp.Asset { return []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(n)}} }
	for name, c := range map[string]struct {
		before  int64                               // gold at the approval
		lists   func(gold int64) int64              // how much of it the game lists
		happens func(w *world)                      // between the approval and the result
		grants  func(w *world, gold, n int64) int64 // what the player then has; nil grants all
		mailbox func(w *world, gold int64) []ramp.Asset
		back    bool // the player can be read again before the test ends
		wrong   bool
	}{
		"full, and the rest waits": {before: 1000, grants: func(w *world, gold, n int64) int64 {
			w.waits["item_gold"] += gold + n - 1050
			return 1050
		}, mailbox: func(w *world, _ int64) []ramp.Asset { return item(w.waits["item_gold"]) }},
		"full, and the rest is lost": {before: 1000, wrong: true,
			grants: func(*world, int64, int64) int64 { return 1050 }},
		"in debt, which the list hides": {before: -500, lists: func(gold int64) int64 { return max(0, gold) },
			mailbox: func(_ *world, gold int64) []ramp.Asset { return item(min(0, gold)) }},
		"in debt, which eats the grant twice": {before: -500, lists: func(gold int64) int64 { return max(0, gold) },
			grants:  func(_ *world, gold, _ int64) int64 { return gold },
			mailbox: func(_ *world, gold int64) []ramp.Asset { return item(min(0, gold)) }, wrong: true},
		"banned, and pardoned": {before: 1000, happens: func(w *world) { w.away = true }, back: true},
		"banned, and never granted": {before: 1000, happens: func(w *world) { w.away = true }, back: true,
			grants: func(_ *world, gold, _ int64) int64 { return gold }, wrong: true},
		"absent, and the grant waits": {before: 1000, happens: func(w *world) { w.away = true }, back: true,
			grants: func(w *world, gold, n int64) int64 {
				w.waits["item_gold"] += n
				return gold
			}, mailbox: func(w *world, _ int64) []ramp.Asset { return item(w.waits["item_gold"]) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{lister: &lister{vault: newVault()}, waits: map[string]int64{}}
			w.owns["session-1"]["item_gold"] = c.before
			w.admits = func(ramp.Session) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.away {
					return ramp.Reject("BANNED")
				}
				return nil
			}
			w.list = func(_ ramp.Session, p *ramp.Player) *ramp.Player {
				if c.lists != nil {
					w.mu.Lock()
					defer w.mu.Unlock()
					p.Assets = item(c.lists(w.owns["session-1"]["item_gold"]))
				}
				return p
			}
			w.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
				o := v.orders[r.UUID]
				if o == nil || o.over {
					return nil
				}
				o.over = true
				gold := v.owns[s.ID]["item_gold"]
				if v.owns[s.ID]["item_gold"] = gold + 100; c.grants != nil {
					v.owns[s.ID]["item_gold"] = c.grants(w, gold, 100)
				}
				return nil
			}
			p := alarm(t, w.lister, func(config *ramptest.Config) {
				if c.mailbox != nil {
					config.Mailbox = func(ramp.Session) []ramp.Asset {
						w.mu.Lock()
						defer w.mu.Unlock()
						return c.mailbox(w, w.owns["session-1"]["item_gold"])
					}
				}
			})
			_, err := p.service.Burn(t.Context(), p.initialize(t), session1, ramp.NewAmount(10))
			require.NoError(t, err)
			set := func(change func(w *world)) {
				w.mu.Lock()
				defer w.mu.Unlock()
				change(w)
			}
			if c.happens != nil {
				set(c.happens)
			}
			p.service.Advance(time.Minute)
			if c.back {
				set(func(w *world) { w.away = false })
				_, err := p.service.Assets(t.Context(), session1)
				require.NoError(t, err)
			}
			failed, said := p.test.end()
			assert.Equal(t, c.wrong, failed, said)
		})
	}
}

// Books that had to guess what an order has moved may take its effect for a stray one. They say so: a test
// that is green although they do not know would say that they do.
func TestBooksThatHaveGuessedSaySo(t *testing.T) {
	for name, unread := range map[string]bool{"a result that could not be read": true, "all was read": false} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			away := false
			set := func(is bool) {
				mu.Lock()
				defer mu.Unlock()
				away = is
			}
			p := alarm(t, &lister{vault: newVault(), admits: func(ramp.Session) error {
				mu.Lock()
				defer mu.Unlock()
				if away {
					return ramp.Reject("SESSION_EXPIRED")
				}
				return nil
			}}, closed)
			p.fails(t)
			set(unread)
			p.service.Advance(time.Minute)
			set(false)
			_, err := p.service.Assets(t.Context(), session1)
			require.NoError(t, err)
			p.vault.add("session-1", "item_gold", 300)
			failed, said := p.test.end()
			assert.True(t, failed, said)
			assert.Contains(t, said, "rose by 300 (1,000 before, 1,300 after)")
			const guessed = "what this player's orders have moved is not certain, so this may belong to one"
			assert.Equal(t, unread, strings.Contains(said, guessed), said)
		})
	}
}

// A player whose player_id changes during a call is still one player, also for closed books.
func TestClosedBooksFollowAPlayerIDThatChangesDuringACall(t *testing.T) {
	for name, c := range map[string]struct {
		lost, stray bool
		want        string
	}{
		"right":            {false, false, ""},
		"never given back": {true, false, "must give back 100 item_gold"},
		"a stray movement": {false, true, "rose by 300"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault()
			id, calls := "alice", 0
			rename := func() {
				calls++
				id = "alice " + strings.Repeat("I", calls)
			}
			v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
				rename()
				return v.accept(s, r)
			}
			v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
				if rename(); c.lost {
					return nil
				}
				return v.finish(s, r)
			}
			p := alarm(t, &lister{vault: v, list: func(_ ramp.Session, p *ramp.Player) *ramp.Player {
				v.mu.Lock()
				defer v.mu.Unlock()
				p.PlayerID = id
				return p
			}}, closed)
			p.fails(t)
			p.service.Advance(time.Minute)
			if c.stray {
				v.add("session-1", "item_gold", 300)
			}
			failed, said := p.test.end()
			assert.Equal(t, c.want != "", failed, said)
			assert.Contains(t, said, c.want)
		})
	}
}
