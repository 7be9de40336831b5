package ramptest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/ramptest"
)

func closed(c *ramptest.Config) { c.Closed = true }

// goldOrder mints or burns so much gold.
func (p *played) goldOrder(
	t *testing.T, session string, burn bool, gold int64, faults ...ramptest.Fault,
) *ramptest.PlacedOrder {
	t.Helper()
	items := request().Intent.Materials
	items[0].Amount = ramp.NewAmount(gold)
	return must.Get(p.orderOf(t, session, burn, items, faults...))(t)
}

// The most expensive mistakes of real games move assets between calls, where a player also earns
// and spends. With closed books they are errors; without, lines in the log.
func TestClosedBooksSeeWhatMovesBetweenCalls(t *testing.T) {
	fails := ramptest.TransactionFails()
	for _, test := range []struct {
		name   string
		play   func(t *testing.T, p *played)
		want   string // with closed books
		logged string // with open ones
	}{
		{"a janitor gives back, and then the transaction succeeds", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 300)
			p.vault.add("session-1", "item_gold", 300)
			p.service.Advance(time.Minute)
		}, "succeeded on chain: the game must take 300 item_gold",
			"rose by 300 (700 before, 1,000 after): just what mint "},
		{"a watcher of the chain grants, and then the result grants", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", true, 300)
			p.vault.add("session-1", "item_gold", 300)
			p.service.Advance(time.Minute)
		}, "succeeded on chain: the game must move nothing",
			"rose by 300 (1,000 before, 1,300 after): just what burn "},
		{"a repair job gives back once more", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 300, fails)
			p.service.Advance(time.Minute)
			p.vault.add("session-1", "item_gold", 300)
			p.service.Advance(time.Hour)
			p.goldOrder(t, "session-1", false, 7)
			p.service.Advance(time.Minute)
		}, "rose by 300 (1,000 before, 1,300 after): just what mint ",
			"rose by 300 (1,000 before, 1,300 after): just what mint "},
		{"the grant goes to two players", func(t *testing.T, p *played) {
			other := ramp.Session{ID: "session-2", Token: ramp.NewAccessToken("token-1")}
			must.Get(p.service.Assets(t.Context(), other))(t)
			p.goldOrder(t, "session-1", true, 300)
			p.service.Advance(time.Minute)
			p.vault.add("session-2", "item_gold", 300)
			p.service.Advance(time.Minute)
			must.Get(p.service.Assets(t.Context(), other))(t)
		}, ", an order of somebody else, is about", ", an order of somebody else, is about"},
		{"a mint is given back less its fee", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 300)
			p.service.Advance(time.Minute)
			p.vault.add("session-1", "item_gold", 240)
			must.Get(p.service.Assets(t.Context(), session1))(t)
		}, "rose by 240 (700 before, 940 after): just what mint ",
			"rose by 240 (700 before, 940 after): just what mint "},
		{"a whole row is saved around a mint, and nothing else moved", func(t *testing.T, p *played) {
			p.goldOrder(t, "session-1", false, 300)
			p.vault.add("session-1", "item_gold", 300) // loaded before, saved after
			p.service.Advance(time.Minute)
		}, "succeeded on chain: the game must take 300 item_gold",
			"rose by 300 (700 before, 1,000 after): just what mint "},
		{"a trade in memory, of which one side is saved", func(t *testing.T, p *played) {
			p.service.Outside(func() { // alice gives bob 100
				p.vault.add("session-2", "item_gold", -100)
				p.vault.add("session-1", "item_gold", 100)
			})
			other := ramp.Session{ID: "session-2", Token: ramp.NewAccessToken("token-1")}
			must.Get(p.service.Assets(t.Context(), other))(t)
			p.goldOrder(t, "session-1", false, 100)
			p.service.Advance(time.Minute)
			p.vault.add("session-2", "item_gold", 100) // after a kill, her row is that of before
			must.Get(p.service.Assets(t.Context(), other))(t)
		}, "rose by 100 (900 before, 1,000 after): just what mint ",
			"rose by 100 (900 before, 1,000 after): just what mint "},
		{"a whole row is saved around a mint, with what was earned meanwhile", func(t *testing.T, p *played) {
			must.Get(p.service.Assets(t.Context(), session1))(t)
			p.goldOrder(t, "session-1", false, 300)
			p.service.Advance(time.Minute)
			p.vault.add("session-1", "item_gold", 317) // loaded before, played, saved after
			must.Get(p.service.Assets(t.Context(), session1))(t)
		}, "rose by 317 (700 before, 1,017 after), and no order explains that",
			"rose by 317 (700 before, 1,017 after), and no order explains that"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), closed)
			test.play(t, p)
			failed, said := p.test.end()
			assert.True(t, failed, said)
			assert.Contains(t, said, test.want)

			p = play(t, newVault())
			test.play(t, p)
			failed, said = p.test.end()
			assert.False(t, failed, said)
			assert.Contains(t, said, test.logged)
		})
	}
}

func TestClosedBooksNameTheRemedy(t *testing.T) {
	p := play(t, newVault(), closed)
	p.goldOrder(t, "session-1", false, 300)
	p.service.Advance(time.Minute)
	p.vault.add("session-1", "item_gold", 5)
	const want = "between two calls, player of session-1's item_gold rose by 5 (700 before, 705 after), " +
		"and no order explains that. If your test did it, wrap it in service.Outside(func() { … })"
	assert.ErrorContains(t, p.service.Check(), "ramptest: "+want)
	require.Len(t, p.service.Imbalances(), 1)
	found := p.service.Imbalances()[0]
	assert.Equal(t, want, found.Problem)
	assert.Empty(t, found.Orders)
	assert.Equal(t, []ramptest.AssetBalance{{ID: "item_gold", Before: ramp.NewAmount(700), After: ramp.NewAmount(705),
		Expected: ramp.NewAmount(700)}}, found.Assets)
	failed, _ := p.test.end()
	assert.True(t, failed)
}

// A game that ends an order before its result comes is right, and so is a test that says what it
// moves itself.
func TestClosedBooksAccuseNoRightGame(t *testing.T) {
	ends := func(settled int64) func(*vault) { // the result then moves nothing
		return func(v *vault) {
			v.add("session-1", "item_gold", settled)
			for _, o := range v.orders {
				o.over = true
			}
		}
	}
	for _, test := range []struct {
		name    string
		burn    bool
		faults  []ramptest.Fault
		between func(*vault)
		outside int64
	}{
		{"a watcher gives back before the result", false, []ramptest.Fault{ramptest.TransactionFails()}, ends(300), 0},
		{"a watcher grants before the result", true, nil, ends(300), 0},
		{"an operator ends a mint without a result", false,
			[]ramptest.Fault{ramptest.TransactionFails(), ramptest.ResultNever()}, ends(300), 0},
		{"the test gives as much as an order is about", false, nil, nil, 300},
		{"the test gives a little", true, nil, nil, 17},
		{"the test takes it all", true, nil, nil, -500},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, newVault(), closed)
			p.goldOrder(t, "session-1", test.burn, 300, test.faults...)
			if test.between != nil {
				test.between(p.vault)
			}
			p.service.Outside(func() { p.vault.add("session-1", "item_gold", test.outside) })
			p.service.Advance(time.Minute)
			p.service.Outside(func() { p.vault.add("session-1", "item_gold", test.outside) })
			p.service.Advance(time.Hour)
			failed, said := p.test.end()
			assert.False(t, failed, said)
		})
	}
}

// What settles an order early while the player earns 17 gold cannot be told apart from other income.
func TestAnEarlyEndBesideIncomeIsUnknownAtMost(t *testing.T) {
	p := play(t, newVault())
	o := p.goldOrder(t, "session-1", false, 300, ramptest.TransactionFails())
	p.vault.add("session-1", "item_gold", 317)
	p.vault.orders[o.UUID].over = true
	p.service.Advance(time.Minute)
	_, shown := p.control(t, "GET", "/control/orders/"+o.UUID.String(), "")
	assert.Equal(t, "unknown", string(shown.State), shown.Said)
	assert.False(t, shown.Loss)
	assert.Empty(t, p.service.Imbalances())
}

// A right game that delivers to a mailbox says what waits there.
func TestAMailboxIsOwned(t *testing.T) {
	for _, says := range []bool{true, false} {
		v, mail := newVault(), map[string]int64{}
		v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
			mail[s.ID] += 300
			return nil
		}
		p := play(t, v, closed, func(c *ramptest.Config) {
			if says {
				c.Mailbox = func(s ramp.Session) []ramp.Asset {
					v.mu.Lock()
					defer v.mu.Unlock()
					return []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(mail[s.ID])}}
				}
			}
		})
		p.goldOrder(t, "session-1", true, 300)
		p.service.Advance(time.Minute)
		v.mu.Lock() // the player opens it
		v.owns["session-1"]["item_gold"] += mail["session-1"]
		clear(mail)
		v.mu.Unlock()
		p.service.Advance(time.Minute)
		failed, said := p.test.end()
		assert.Equal(t, !says, failed, said)
	}
}

func TestClosedBooksAreForTests(t *testing.T) {
	key, signer := console(t)
	_, err := ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Closed: true,
		Standalone: ramptest.Standalone{Speed: 1}})
	assert.ErrorContains(t, err,
		"Config.Closed is for a test: it excludes Standalone.Speed, Standalone.Listener and Standalone.State")
}

// ordinary is an ordinary test of a studio.
type ordinary struct {
	*played
	t *testing.T
}

func (o *ordinary) minute()                     { o.service.Advance(time.Minute) }
func (o *ordinary) earn(player string, n int64) { o.vault.add(player, "item_gold", n) }
func (o *ordinary) burn(gold int64)             { o.order("session-1", true, gold); o.minute() }

func (o *ordinary) mint(gold int64, faults ...ramptest.Fault) {
	o.order("session-1", false, gold, faults...)
	o.minute()
}

func (o *ordinary) order(session string, burn bool, gold int64, faults ...ramptest.Fault) {
	o.goldOrder(o.t, session, burn, gold, faults...)
}

func (o *ordinary) reset() {
	o.vault.mu.Lock()
	defer o.vault.mu.Unlock()
	for _, session := range []string{"session-1", "session-2"} {
		o.vault.owns[session] = map[string]int64{"item_gold": 1000, "item_gem": 1000}
	}
}

// Ordinary tests of a studio move assets between orders, without a word of it. So books are closed
// only where a test asks for it.
func TestMostOrdinaryTestsAreNotForClosedBooks(t *testing.T) {
	const alice, bob = "session-1", "session-2"
	fails := ramptest.TransactionFails()
	red := map[string]int{}
	for name, plays := range map[string]func(*ordinary){
		"balances are reset after a mint of 300": func(o *ordinary) { o.mint(300); o.reset(); o.mint(7) },
		"balances are reset after a failed mint": func(o *ordinary) { o.mint(300, fails); o.reset(); o.mint(7) },
		"balances are reset after a burn of 300": func(o *ordinary) { o.burn(300); o.reset(); o.mint(7) },
		"balances are reset before each of a table": func(o *ordinary) {
			for _, gold := range []int64{1, 300, 1000} {
				o.reset()
				o.mint(gold)
			}
		},
		"two subtests share a player":       func(o *ordinary) { o.mint(300); o.mint(300) },
		"a shared player is topped up":      func(o *ordinary) { o.mint(300); o.earn(alice, 300); o.mint(300) },
		"one gold is earned between orders": func(o *ordinary) { o.mint(300); o.earn(alice, 1); o.burn(300) },
		"one gold is earned meanwhile": func(o *ordinary) {
			o.order(alice, false, 300)
			o.earn(alice, 1)
			o.minute()
		},
		"an achievement of 50":      func(o *ordinary) { o.mint(300); o.earn(alice, 50); o.mint(10) },
		"an achievement of as much": func(o *ordinary) { o.mint(100); o.earn(alice, 100); o.mint(10) },
		"a gem as an achievement": func(o *ordinary) {
			o.mint(300)
			o.vault.add(alice, "item_gem", 1)
			o.mint(10)
		},
		"a row is loaded, played and saved": func(o *ordinary) { o.mint(300); o.earn(alice, 17); o.mint(10) },
		"a daily reward":                    func(o *ordinary) { o.burn(300); o.earn(alice, 1000); o.burn(300) },
		"what was burned is spent at once":  func(o *ordinary) { o.burn(300); o.earn(alice, -300); o.burn(10) },
		"some of it is spent":               func(o *ordinary) { o.burn(300); o.earn(alice, -120); o.burn(10) },
		"two players trade": func(o *ordinary) {
			o.burn(300)
			o.earn(alice, -100)
			o.earn(bob, 100)
			o.order(bob, false, 100)
			o.minute()
		},
		"a balance is set to nothing": func(o *ordinary) { o.mint(300); o.earn(alice, -700); o.burn(10) },
		"support ends an order": func(o *ordinary) {
			o.order(alice, false, 300, fails, ramptest.ResultNever())
			o.minute()
			o.earn(alice, 300)
			o.mint(10)
		},
		"each subtest has a player": func(o *ordinary) { o.mint(300); o.order(bob, false, 300); o.minute() },
		"interest of 5 percent":     func(o *ordinary) { o.mint(300); o.earn(alice, 35); o.mint(10) },
		"only orders":               func(o *ordinary) { o.mint(300); o.mint(300, fails); o.burn(300) },
		"a lost answer and a repeat": func(o *ordinary) {
			o.order(alice, false, 300, fails, ramptest.LostAnswer(ramptest.OnResult))
			o.service.Advance(time.Hour)
		},
	} {
		p := play(t, newVault())
		plays(&ordinary{p, t})
		failed, said := p.test.end()
		assert.False(t, failed, "%s: %s", name, said)
		if strings.Contains(said, ": just what ") {
			red["a movement of just what an order is about"]++
		}
		p = play(t, newVault(), closed)
		plays(&ordinary{p, t})
		if failed, _ := p.test.end(); failed {
			red["closed"]++
		}
	}
	assert.Equal(t, map[string]int{"a movement of just what an order is about": 7, "closed": 16}, red,
		"of 22: if nearly all were green, books could be closed by default")
}

// Random games, in which a janitor, a watcher of the chain and a repair job act between calls,
// rightly and wrongly, while the test lets players earn: the books find the wrong ones and no other.
func TestRandomGamesWithClosedBooks(t *testing.T) {
	racedetector.Skip(t)
	games := 150
	if testing.Short() {
		games = 30
	}
	right, wrong := 0, 0
	for seed := range uint64(games) {
		p := play(t, newVault(), closed, func(c *ramptest.Config) { c.Settle = -1 })
		random := rand.New(rand.NewPCG(seed, 68))
		acted := p.playBetween(t, random, random.IntN(2) == 0)
		failed, said := p.test.end()
		require.Equal(t, len(acted) > 0, failed, "game %d: %v\n%s", seed, acted, said)
		if failed {
			wrong++
		} else {
			right++
		}
	}
	t.Logf("%d right games, %d wrong ones", right, wrong)
	assert.Greater(t, min(right, wrong), games/5)
}

// playBetween plays orders of different amounts, and returns what acted wrongly.
func (p *played) playBetween(t *testing.T, random *rand.Rand, honest bool) (wrong []string) {
	const alice, bob = "session-1", "session-2"
	chance := func(percent int) bool { return random.IntN(100) < percent }
	for _, session := range []string{alice, bob} {
		must.Get(p.service.Assets(t.Context(), ramp.Session{ID: session, Token: ramp.NewAccessToken("token-1")}))(t)
	}
	gold := int64(1)
	for range 1 + random.IntN(5) {
		gold += gold + random.Int64N(3)
		burn, fails, session, other := chance(50), chance(50), alice, bob
		if chance(50) {
			session, other = other, session
		}
		var faults []ramptest.Fault
		if fails {
			faults = append(faults, ramptest.TransactionFails())
		}
		o := p.goldOrder(t, session, burn, gold, faults...)
		move := func(player, who string, isWrong bool) {
			p.vault.add(player, "item_gold", gold)
			if isWrong {
				wrong = append(wrong, fmt.Sprintf("%s (burn %v, fails %v, %d gold)", who, burn, fails, gold))
			}
		}
		if chance(30) {
			p.service.Outside(func() { p.vault.add(session, "item_gold", random.Int64N(40)) })
		}
		settled := false
		switch {
		case burn != fails && chance(40): // it ends the order before the result comes
			move(session, "a watcher", false)
			p.vault.mu.Lock()
			p.vault.orders[o.UUID].over, settled = true, true
			p.vault.mu.Unlock()
		case !honest && burn == fails && chance(30): // a janitor gives back what succeeds, or grants what fails
			move(session, "a janitor", true)
		case !honest && burn != fails && chance(30):
			move(session, "a watcher, before the result does the same", true)
		}
		p.service.Advance(time.Duration(random.IntN(60)) * time.Minute)
		p.service.Advance(time.Minute)
		switch {
		case honest || settled && chance(50):
		case chance(15):
			move(session, "a repair job", true)
		case chance(15):
			move(other, "a grant to another player", true)
		}
		if chance(30) {
			p.service.Advance(time.Minute)
			p.service.Outside(func() { p.vault.add(other, "item_gold", random.Int64N(40)) })
		}
	}
	return wrong
}

// A right game fails in its first call, and the player tries again with an equal order: the second order
// explains what moved.
func TestAnEqualOrderAfterAFailedCallIsToldApart(t *testing.T) {
	for _, burn := range []bool{false, true} {
		v, calls := newVault(), 0
		v.validate = func(v *vault, s ramp.Session, r *ramp.ValidateRequest) error {
			if calls++; calls == 1 {
				return errors.New("the database is unreachable")
			}
			return v.accept(s, r)
		}
		p := play(t, v)
		_, err := p.order(t, "session-1", burn)
		require.Error(t, err)
		must.Get(p.order(t, "session-1", burn))(t)
		p.service.Advance(13 * time.Hour)
		failed, said := p.test.end()
		assert.False(t, failed, said)
	}
}

// Two sessions may share what a nameless player owns, so closed books would see nothing, and a test
// that relies on them would be green whatever its game does.
func TestClosedBooksNeedToKnowThePlayer(t *testing.T) {
	for name, playerID := range map[string]string{"without a player_id": "", "with one": "alice"} {
		t.Run(name, func(t *testing.T) {
			v := newVault()
			p := alarm(t, &lister{vault: v, list: func(_ ramp.Session, p *ramp.Player) *ramp.Player {
				p.PlayerID = playerID
				return p
			}}, closed)
			p.vault = v
			p.goldOrder(t, "session-1", false, 300, ramptest.TransactionFails())
			p.service.Advance(time.Hour)
			v.add("session-1", "item_gold", 300) // a repair job gives back once more
			checked := p.service.Check()
			failed, said := p.test.end()
			assert.True(t, failed)
			want := "rose by 300 (1,000 before, 1,300 after): just what mint "
			if playerID == "" {
				want = "Config.Closed cannot see what moves for session session-1 between two calls, " +
					"because the game's answer for it has no player_id"
			}
			assert.Contains(t, said, want)
			assert.ErrorContains(t, checked, want)
		})
	}
}
