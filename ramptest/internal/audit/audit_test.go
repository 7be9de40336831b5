package audit_test

import (
	"context"
	"errors"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// player is a player as the game knows it.
type player struct {
	id   string // "" is not reported
	gold int64
}

// game says what its players own, and keeps what the books tell.
type game struct {
	*audit.Auditor

	mu      sync.Mutex
	players map[string]*player // by session
	fails   []error            // of the next readings
	asked   []string           // with which session, in order
	told    []string           // the stories of the windows
	changed []uuid.UUID
}

var (
	errDown    = errors.New("HTTP 500")
	errExpired = errors.New("HTTP 401")
	errSilent  = errors.New("no answer")
)

func play(c audit.Config, players map[string]*player) *game {
	g := &game{players: players}
	c.Ask, c.Rejects = g.ask, func(err error) bool { return errors.Is(err, errExpired) }
	c.Changed = func(id uuid.UUID) { g.changed = append(g.changed, id) }
	c.Judged = func(_ uuid.UUID, said string, _ *audit.Finding) { g.told = append(g.told, said) }
	g.Auditor = audit.New(c)
	return g
}

// ask reads what a player owns, as a service does.
func (g *game) ask(_ context.Context, s ramp.Session, _ uuid.UUID) (read *ramp.Player, status int, err error) {
	enter := g.Reading(s)
	g.mu.Lock()
	g.asked = append(g.asked, s.ID)
	if len(g.fails) > 0 {
		err, g.fails = g.fails[0], g.fails[1:]
	}
	p := *g.players[s.ID]
	g.mu.Unlock()
	if err != nil {
		return nil, map[error]int{errDown: 500, errExpired: 401}[err], err
	}
	gold := ramp.Asset{ID: "gold", Balance: ramp.NewAmount(p.gold)}
	read = &ramp.Player{PlayerID: p.id, Name: p.id, Assets: []ramp.Asset{gold}}
	enter(read)
	return read, http.StatusOK, nil
}

func (g *game) move(session string, gold int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.players[session].gold += gold
}

// mint is a mint for 100 gold.
func mint(session string) audit.Subject {
	return audit.Subject{
		UUID:    uuid.New(),
		Session: ramp.Session{ID: session, Token: ramp.NewAccessToken("token of " + session)},
		Mint:    true,
		Sum:     tally.Assets{"gold": big.NewRat(-100, 1)},
	}
}

func (g *game) validate(o audit.Subject) *audit.Entry {
	return g.Open(context.Background(), audit.Call{Order: o})
}

// result begins a result call with the outcome on the chain.
func (g *game) result(o audit.Subject, succeeded bool) *audit.Entry {
	return g.Open(context.Background(), audit.Call{Order: o, Result: true, Stated: succeeded, OnChain: succeeded})
}

// yes ends a call that the game has answered with success.
func yes(e *audit.Entry) { e.Close(context.Background(), tally.Yes, http.StatusOK, true) }

// approve makes a validate call, in which the game takes the gold.
func (g *game) approve(o audit.Subject) {
	call := g.validate(o)
	g.move(o.Session.ID, -100)
	yes(call)
}

func (g *game) problems() (problems []string) {
	for _, found := range g.Found() {
		problems = append(problems, found.Problem)
	}
	return problems
}

// moved returns what the game is known to have moved for an order.
func (g *game) moved(t *testing.T, o audit.Subject) []tally.Assets {
	account := g.Account(o)
	if assert.NotNil(t, account) {
		assert.False(t, account.Unread || account.Mixed || account.Guess)
		return account.Totals
	}
	return nil
}

// opening lets calls begin in goroutines, and tells which have begun.
type opening struct {
	mu     sync.Mutex
	begun  []string
	opened map[string]*audit.Entry
}

func (o *opening) call(name string, open func() *audit.Entry) {
	go func() {
		entry := open()
		o.mu.Lock()
		defer o.mu.Unlock()
		o.begun, o.opened[name] = append(o.begun, name), entry
	}()
	synctest.Wait()
}

// Calls that overlap share a window only if their effects can be told apart: validate calls,
// or the calls of one order.
func TestWindowsThatOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := play(audit.Config{Settle: -1}, map[string]*player{"s": {"alice", 1000}, "other": {"bob", 1000}})
		for range 2 { // both players are known
			g.approve(mint("s"))
			g.approve(mint("other"))
		}
		first, second, third := mint("s"), mint("s"), mint("s")
		g.told, g.asked = nil, nil
		o := &opening{opened: map[string]*audit.Entry{}}
		o.call("first", func() *audit.Entry { return g.validate(first) })
		o.call("second", func() *audit.Entry { return g.validate(second) })
		assert.Equal(t, []string{"first", "second"}, o.begun, "validate calls share a window")
		assert.Equal(t, []string{"s"}, g.asked, "which was read once")

		o.call("result", func() *audit.Entry { return g.result(first, false) })
		o.call("third", func() *audit.Entry { return g.validate(third) })
		assert.Equal(t, []string{"first", "second"}, o.begun, "a result waits, and nobody overtakes it")
		g.approve(mint("other"))
		assert.Len(t, g.told, 1, "another player's calls go on")

		g.move("s", -100)
		yes(o.opened["second"])
		synctest.Wait()
		assert.Len(t, g.told, 1, "the window is open as long as one of its calls is")
		g.move("s", -100)
		yes(o.opened["first"])
		end := map[string]func(){
			"third": func() {
				g.move("s", -100)
				yes(o.opened["third"])
			},
			"result": func() {
				again := g.result(first, false) // shares the window of the order's other result
				g.move("s", 100)
				yes(again)
				yes(o.opened["result"])
			},
		}
		for n := range 2 {
			synctest.Wait()
			if assert.Len(t, o.begun, 3+n, "those that wait begin one after the other, in any order") {
				end[o.begun[2+n]]()
			}
		}

		assert.Empty(t, g.problems())
		told := []string{"took 100 gold", "took 200 gold", "gave back 100 gold", "took 100 gold"}
		assert.ElementsMatch(t, told, g.told)
		assert.Equal(t, []tally.Assets{{}}, g.moved(t, first))
		assert.Equal(t, []tally.Assets{{"gold": big.NewRat(-100, 1)}}, g.moved(t, second))
	})
}

// While a player is unknown, a movement may be anybody's, so nobody is accused of it.
func TestAPlayerWhoBecomesKnown(t *testing.T) {
	g := play(audit.Config{Settle: -1}, map[string]*player{"s": {"alice", 1000}})
	g.fails = []error{errSilent}
	rejected := g.validate(mint("s"))
	id, name := g.Who("s")
	assert.Equal(t, []string{"", ""}, []string{id, name})
	g.move("s", -170) // by somebody, for something else
	rejected.Close(context.Background(), tally.No, http.StatusOK, true)
	assert.Empty(t, g.problems())

	o := mint("s")
	g.approve(o)
	id, name = g.Who("s")
	assert.Equal(t, []string{"alice", "alice"}, []string{id, name})
	assert.Empty(t, g.problems())
	yes(g.result(o, false)) // and gives nothing back
	problem := "alice's mint " + o.UUID.String()[:8] + " failed on chain: the game must give back 100 gold: "
	assert.Equal(t, []string{problem + "730 before the call, 730 after it, 830 expected"}, g.problems())
	assert.Len(t, g.Take(o.UUID), 1)
	assert.Empty(t, g.Take(o.UUID), "a finding is returned once")
	assert.Len(t, g.About(o.UUID), 1)
	assert.Contains(t, g.changed, o.UUID)
	assert.Equal(t, tally.Results{Made: true, Confirmed: true, Status: http.StatusOK}, g.Account(o).Failure)

	// Who has the next session is unknown. It may be alice, so she is not accused meanwhile.
	g.players["stranger"] = &player{"", 1000}
	g.fails = []error{errSilent, errSilent}
	unread := mint("stranger")
	call := g.validate(unread)
	next := mint("s")
	g.approve(next)
	yes(g.result(next, false)) // and gives nothing back
	assert.Len(t, g.problems(), 1)
	g.fails = []error{errSilent}
	yes(call)
	assert.True(t, g.Account(unread).Unread)
}

// A validate call and the results of its order share a window, but not with calls of other orders.
func TestTheCallsOfOneOrderShareAWindow(t *testing.T) {
	for _, first := range []string{"repeat", "result"} {
		synctest.Test(t, func(t *testing.T) {
			g := play(audit.Config{Settle: -1}, map[string]*player{"s": {"alice", 1000}})
			order, other := mint("s"), mint("s")
			g.approve(order)
			g.told = nil
			o := &opening{opened: map[string]*audit.Entry{}}
			calls := map[string]func() *audit.Entry{
				"repeat": func() *audit.Entry { return g.validate(order) },
				"result": func() *audit.Entry { return g.result(order, false) },
			}
			second := map[string]string{"repeat": "result", "result": "repeat"}[first]
			o.call(first, calls[first])
			o.call(second, calls[second])
			assert.Equal(t, []string{first, second}, o.begun, "both are about one order")
			o.call("other", func() *audit.Entry { return g.validate(other) })
			o.call("result of other", func() *audit.Entry { return g.result(other, false) })
			assert.Equal(t, []string{first, second}, o.begun, "these are about another one")
			g.move("s", 100)
			yes(o.opened[first])
			assert.Empty(t, g.told)
			yes(o.opened[second])
			assert.Equal(t, []string{"gave back 100 gold"}, g.told)
			assert.Equal(t, []tally.Assets{{}}, g.moved(t, order))
		})
	}
}

// A result waits until validate calls of several orders are answered. So a call during which one is made, and
// calls about other orders, never overlap.
func TestACallDuringWhichAnotherIsMadeIsAlone(t *testing.T) {
	alone := func(o audit.Subject) audit.Call { return audit.Call{Order: o, Alone: true} }
	synctest.Test(t, func(t *testing.T) {
		g := play(audit.Config{Settle: -1}, map[string]*player{"s": {"alice", 1000}})
		order := mint("s")
		g.approve(order)
		o := &opening{opened: map[string]*audit.Entry{}}
		o.call("another", func() *audit.Entry { return g.validate(mint("s")) })
		o.call("alone", func() *audit.Entry { return g.Open(t.Context(), alone(order)) })
		assert.Equal(t, []string{"another"}, o.begun)
		o.opened["another"].Close(t.Context(), tally.No, http.StatusOK, true)
		synctest.Wait()
		assert.Equal(t, []string{"another", "alone"}, o.begun)
		o.call("one more", func() *audit.Entry { return g.validate(mint("s")) })
		result := g.result(order, true)
		assert.Equal(t, []string{"another", "alone"}, o.begun)
		yes(result)
		yes(o.opened["alone"])
		synctest.Wait()
		assert.Equal(t, []string{"another", "alone", "one more"}, o.begun)
		o.opened["one more"].Close(t.Context(), tally.No, http.StatusOK, true)
		assert.Empty(t, g.problems())
	})
}

// A call that waited for another one while the player was unknown is one of the player who is
// known since, for whose calls there is one window.
func TestAPlayerWhoBecomesKnownHasOneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := play(audit.Config{Settle: -1}, map[string]*player{"s": {"alice", 1000}})
		g.fails = []error{errSilent, errSilent}
		first, second := mint("s"), mint("s")
		o := &opening{opened: map[string]*audit.Entry{}}
		o.call("first", func() *audit.Entry { return g.validate(first) })
		o.call("result", func() *audit.Entry { return g.result(mint("s"), false) })
		assert.Equal(t, []string{"first"}, o.begun)
		_, _, _ = g.ask(t.Context(), first.Session, uuid.Nil)
		g.move("s", -100)
		yes(o.opened["first"])
		synctest.Wait()
		o.call("second", func() *audit.Entry { return g.validate(second) })
		assert.Equal(t, []string{"first", "result"}, o.begun)
		yes(o.opened["result"])
		synctest.Wait()
		assert.Equal(t, []string{"first", "result", "second"}, o.begun)
		g.move("s", -100)
		yes(o.opened["second"])
		assert.Empty(t, g.problems())
	})
}

// A game may name a player otherwise while a call is made: the player logged in, or two
// accounts were merged. The books go on under the new name.
func TestAPlayerWhosePlayerIDChangesDuringACall(t *testing.T) {
	for _, former := range []string{"", "guest"} {
		g := play(audit.Config{Settle: -1}, map[string]*player{"s": {former, 1000}})
		before := mint("s")
		g.approve(before)
		o := mint("s")
		call := g.validate(o)
		g.players["s"].id = "alice"
		g.move("s", -100)
		yes(call)
		id, _ := g.Who("s")
		assert.Equal(t, "alice", id)
		assert.Empty(t, g.problems())

		next := mint("s")
		g.approve(next)
		yes(g.result(next, true))
		assert.Empty(t, g.problems(), "the window of the former name is closed")
		call = g.result(before, false)
		g.move("s", 100)
		yes(call)
		yes(g.result(o, false)) // and gives nothing back
		if problems := g.problems(); assert.Len(t, problems, 1, former) {
			id := o.UUID.String()[:8]
			assert.Contains(t, problems[0], "mint "+id+" failed on chain: the game must give back 100 gold")
		}
	}
}

// What may still come for the player of the former name may come for the one of the new name.
func TestALateEffectFollowsAPlayerWhosePlayerIDChanges(t *testing.T) {
	guest := &player{"guest", 1000}
	g := play(audit.Config{Settle: -1}, map[string]*player{"s": guest, "other": guest})
	g.approve(mint("other"))
	o := mint("s")
	g.approve(o)
	call := g.result(o, false)
	g.players["s"] = &player{"alice", guest.gold}
	call.Close(context.Background(), tally.Open, http.StatusInternalServerError, true)
	next := mint("s")
	g.approve(next)
	call = g.result(next, true)
	g.move("s", 100) // late, and of the other order
	yes(call)
	assert.Empty(t, g.problems())
	g.approve(mint("other")) // whose window is not that of the call which changed the name
	assert.Empty(t, g.problems())
}

// A reading that the game fails is made once more, and one that it rejects with the newest
// session that it has accepted.
func TestAReadingThatFails(t *testing.T) {
	for _, test := range []struct {
		name   string
		fails  []error
		asked  []string
		before bool // was it read
	}{
		{"works", nil, []string{"old"}, true},
		{"fails once", []error{errDown}, []string{"old", "old"}, true},
		{"fails twice", []error{errDown, errDown}, []string{"old", "old"}, false},
		{"has no answer", []error{errSilent}, []string{"old"}, false},
		{"is rejected", []error{errExpired}, []string{"old", "new"}, true},
		{"is rejected and then fails", []error{errExpired, errDown}, []string{"old", "new", "new"}, true},
		{"is rejected twice", []error{errExpired, errExpired}, []string{"old", "new"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			alice := &player{"alice", 1000}
			g := play(audit.Config{Settle: -1}, map[string]*player{"old": alice, "new": alice})
			g.approve(mint("old"))
			g.approve(mint("new"))
			g.fails, g.asked = test.fails, nil
			o := mint("old")
			call := g.validate(o)
			assert.Equal(t, test.asked, g.asked)
			owned, _ := call.Owned(nil)
			assert.Equal(t, test.before, owned != nil)
			g.move("old", -100)
			yes(call)
			assert.Empty(t, g.problems())
			assert.Equal(t, []tally.Assets{{"gold": big.NewRat(-100, 1)}}, g.moved(t, o), "it is read afterwards, too")
		})
	}
}

// An effect may lag behind its answer for as long as Settle says.
func TestLateEffects(t *testing.T) {
	for _, test := range []struct {
		name   string
		after  time.Duration // -1 is never
		took   time.Duration // at least and at most twice as much, until it is judged
		missed bool
	}{
		{"at once", 0, 0, false},
		{"late", 300 * time.Millisecond, 300 * time.Millisecond, false},
		{"too late", 3 * time.Second, time.Second, true},
		{"never", -1, time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := play(audit.Config{Settle: time.Second}, map[string]*player{"s": {"alice", 1000}})
				g.approve(mint("s"))
				o := mint("s")
				g.approve(o)
				call := g.result(o, false)
				if test.after >= 0 {
					go func() {
						time.Sleep(test.after)
						g.move("s", 100)
					}()
					synctest.Wait()
				}
				begun := time.Now()
				yes(call)
				took := time.Since(begun)
				assert.True(t, test.took <= took && took <= 2*test.took, took)
				found := g.problems()
				assert.Equal(t, test.missed, len(found) == 1, found)

				time.Sleep(5 * time.Second)
				next := mint("s")
				g.approve(next)
				yes(g.result(next, true))
				assert.Equal(t, found, g.problems(), "a late effect is no loss of the next order")
			})
		})
	}
}

// One late effect changes a reading once. What changes with each reading is not the order's.
func TestAPlayerWhoKeepsMovingIsNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := play(audit.Config{Settle: time.Second}, map[string]*player{"s": {"alice", 1000}})
		g.approve(mint("s"))
		o := mint("s")
		g.approve(o)
		call := g.result(o, false)
		stop := make(chan bool)
		go func() {
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
					g.move("s", 7*n)
				}
			}
		}()
		yes(call)
		stop <- true
		assert.Empty(t, g.problems())
		assert.Equal(t, "not judged, because what the player owns keeps changing", g.told[2])
	})
}

// Ten missing effects need not take ten times as long as one, if others come fast.
func TestPatienceShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := play(audit.Config{Settle: 16 * time.Second}, map[string]*player{"s": {"alice", 10_000}})
		wait := func() time.Duration {
			o := mint("s")
			g.approve(o)
			begun := time.Now()
			yes(g.result(o, false)) // and gives nothing back
			return time.Since(begun)
		}
		g.approve(mint("s"))
		assert.InDelta(t, 16, wait().Seconds(), 0.2)
		assert.InDelta(t, 1, wait().Seconds(), 0.2)
	})
}

// A service that goes on from a state file knows what the one before knew.
func TestWhatIsSavedIsRestored(t *testing.T) {
	alice := &player{"alice", 1000}
	g := play(audit.Config{Settle: -1}, map[string]*player{"s": alice})
	g.approve(mint("s"))
	taken, lost, late := mint("s"), mint("s"), mint("s")
	g.approve(taken)
	g.approve(lost)
	yes(g.result(lost, false)) // and gives nothing back
	assert.Len(t, g.problems(), 1)
	g.approve(late)
	g.result(late, false).Close(t.Context(), tally.Open, http.StatusInternalServerError, true)

	after := play(audit.Config{Settle: -1}, map[string]*player{"s": alice})
	for _, o := range []audit.Subject{taken, lost, late} {
		key, entries, player := g.Save(o)
		after.RestoreOrder(o.Session, key, entries)
		after.RestorePlayer(key, player)
	}
	after.RestoreFound(g.Found())
	assert.Equal(t, g.Account(taken), after.Account(taken))
	assert.Equal(t, g.Account(lost), after.Account(lost))
	assert.Equal(t, g.Found(), after.Found())
	assert.Empty(t, after.Take(lost.UUID), "an earlier service has reported it")
	call := after.result(taken, false)
	after.move("s", 100)
	yes(call)
	next := mint("s")
	after.approve(next)
	call = after.result(next, true)
	after.move("s", 100) // late
	yes(call)
	assert.Len(t, after.problems(), 1, "that of before")

	key, _, saved := g.Save(mint("stranger"))
	assert.Equal(t, "", key)
	assert.Nil(t, saved)
	after.Reset()
	assert.Empty(t, after.Found())
	assert.Nil(t, after.Account(taken))
}

// Without readings, the books know only what the results said.
func TestOff(t *testing.T) {
	g := play(audit.Config{Off: true, Settle: -1}, map[string]*player{"s": {"alice", 1000}})
	o := mint("s")
	g.approve(o)
	yes(g.result(o, true))
	again := g.result(o, false)
	assert.True(t, again.Opposite, "it states another outcome than the first one")
	yes(again)
	assert.Empty(t, g.asked)
	assert.Empty(t, g.told)
	assert.True(t, g.Account(o).Disputed)
	assert.Nil(t, g.HeldBefore(o))
}
