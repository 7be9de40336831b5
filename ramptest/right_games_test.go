package ramptest_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Why a right game is red, as docs/testing.md says it.
const (
	unlisted  = "delivers to a mailbox that its assets endpoint does not list"
	banned    = "rejects the session of a player who is banned, or whose account is gone"
	tooLate   = "confirms a result, and a job moves the assets later than `Config.Settle`"
	rewards   = "gives a reward or takes a tax during a call"
	setAside  = "lists what is set aside for an order as an asset of its own"
	early     = "ends an order by a job, and then fails at its result, in books that are not closed"
	byItself  = "moves assets by itself"
	noPlayer  = "returns no `player_id`, and the books are closed"
	takesLate = "takes the price of a mint after its answer, and a mint with `ResultBeforeAnswer` fails"
	alsoMoves = "moves assets between calls, and the books are closed"
)

// rightGames are games that lose nothing, and move nothing twice.
func rightGames() []*kind {
	var all []*kind
	for _, some := range [][]*kind{rightOrders(), rightIncome(), rightMailboxes(), rightLists(), rightLate(),
		rightEarly(), rightSessions(), rightAnswers()} {
		all = append(all, some...)
	}
	return all
}

// rightOrders do what most games do.
func rightOrders() []*kind {
	return []*kind{
		{name: "orders"},
		{name: "orders of two items", two: true},
		{name: "orders by the library", behind: handled(apply)},
		{name: "middleware passes a context of its own", behind: handled(apply),
			around: func(_ *server, h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
				})
			}},
		{name: "takes at the result", beforeAnswer: takesLate, check: (*server).affords, finish: once(func(s *server,
			o *booking, ok bool) {
			if o.mint && ok {
				s.move(o.player, o.items, -1)
			} else if ok {
				s.move(o.player, o.items, 1)
			}
		})},
		{name: "rejects a mint of more than there is", owns: assets{"item_gold": 10}},
		{name: "three orders are open at once", script: func(p *trial) {
			for _, step := range steps {
				p.order(step)
			}
			p.later(time.Hour)
		}},
		{name: "results out of order", script: func(p *trial) {
			p.order(step{fails: true}, ramptest.ResultLate(20*time.Minute))
			p.order(step{})
			p.order(step{burn: true}, ramptest.ResultTwice())
			p.later(2 * time.Hour)
		}},
		{name: "a row is saved whole, with a version", job: func(s *server, when moment) {
			if when == placed {
				s.balance["alice"] = maps.Clone(s.balance["alice"])
			}
		}},
		{name: "takes a tax at validate", check: func(s *server, o *booking) string {
			rejection := s.take(o)
			if rejection == "" && o.mint {
				s.balance[o.player]["item_gem"]--
			}
			return rejection
		}, closed: rewards, open: rewards},
	}
}

// rightIncome also move assets for no order.
func rightIncome() []*kind {
	earns := func(n int64) func(*trial, int) {
		return func(p *trial, _ int) { p.balance["alice"]["item_gold"] += n }
	}
	rewarded := func(asset string, n int64) func(*server, *booking, bool) int {
		return once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.move(o.player, o.items, 1)
			}
			if o.mint && ok {
				s.balance[o.player][asset] += n
			}
		})
	}
	return []*kind{
		{name: "income, told", script: outside(earns(17))},
		{name: "income of just an order, told", script: outside(earns(333))},
		{name: "income", script: between(earns(17)), earns: true},
		{name: "income of just an order", script: between(earns(333)), earns: true},
		{name: "a trade, told", script: outside(func(p *trial, _ int) {
			p.balance["alice"]["item_gold"] -= 50
			p.balance["bob"]["item_gold"] += 50
		})},
		{name: "support compensates, told", script: outside(func(p *trial, order int) {
			if order == 0 {
				p.balance["alice"]["item_gold"] += 100
			}
		})},
		{name: "an achievement gives gems with the result", finish: rewarded("item_gem", 5), closed: rewards,
			open: rewards},
		{name: "an achievement gives gold with the result", finish: rewarded("item_gold", 50), closed: rewards,
			open: rewards},
		{name: "an achievement gives a badge at the end", job: func(s *server, when moment) {
			if when == atEnd {
				s.balance["alice"]["badge"]++
			}
		}, closed: alsoMoves},
		{name: "a quest counter is reset", owns: assets{"item_gold": 1000, "quest": 5},
			job: func(s *server, when moment) {
				if when == advanced {
					s.balance["alice"]["quest"] = 0
				}
			}, closed: alsoMoves},
	}
}

// rightMailboxes deliver what orders give to a mailbox.
func rightMailboxes() []*kind {
	opens := func(s *server, when moment) {
		if when != advanced {
			return
		}
		for id, n := range s.mail["alice"] {
			s.balance["alice"][id] += n
		}
		delete(s.mail, "alice")
	}
	return []*kind{
		{name: "a mailbox", config: hasMailbox, finish: once(mails)},
		{name: "a mailbox, opened between orders", config: hasMailbox, finish: once(mails), job: opens},
		{name: "a mailbox for what does not fit", config: hasMailbox, finish: once(
			func(s *server, o *booking, ok bool) {
				if s.balance[o.player]["item_gold"] > 500 {
					mails(s, o, ok)
				} else if o.due(ok) {
					s.move(o.player, o.items, 1)
				}
			})},
		{name: "a mailbox that Config does not name", finish: once(mails), job: opens, closed: unlisted,
			open: unlisted},
	}
}

// rightLists list something else than balances.
func rightLists() []*kind {
	// held is a check that sets aside what a mint costs.
	held := func(s *server, o *booking) string {
		if o.mint && s.balance[o.player]["item_gold"]-s.count["held"] < o.amount() {
			return "INVALID_BALANCE"
		}
		if o.mint {
			s.count["held"] += o.amount()
		}
		return ""
	}
	settles := once(func(s *server, o *booking, ok bool) {
		if o.mint {
			s.count["held"] -= o.amount()
		}
		if o.mint && ok {
			s.move(o.player, o.items, -1)
		} else if ok {
			s.move(o.player, o.items, 1)
		}
	})
	without := func(s *server, player string) assets {
		owns := maps.Clone(s.balance[player])
		maps.DeleteFunc(owns, func(_ string, n int64) bool { return n == 0 })
		return owns
	}
	energy := func(s *server, player string) assets {
		s.count["energy"]++
		owns := maps.Clone(s.balance[player])
		owns["energy"] = s.count["energy"]
		return owns
	}
	regenerates := func(asset string) func(*server, *ramptest.Config) {
		return func(_ *server, c *ramptest.Config) { c.Regenerating = []string{asset} }
	}
	return []*kind{
		{name: "what is set aside is hidden", check: held, finish: settles,
			list: func(s *server, player string) assets {
				owns := maps.Clone(s.balance[player])
				if player == "alice" {
					owns["item_gold"] -= s.count["held"]
				}
				return owns
			}},
		{name: "what is set aside stays in the list", beforeAnswer: takesLate, check: held, finish: settles},
		{name: "what is set aside is an asset", check: func(s *server, o *booking) string {
			rejection := s.take(o)
			if rejection == "" && o.mint {
				s.balance[o.player]["held_gold"] += o.amount()
			}
			return rejection
		}, finish: once(func(s *server, o *booking, ok bool) {
			if o.mint {
				s.balance[o.player]["held_gold"] -= o.amount()
			}
			if o.due(ok) {
				s.move(o.player, o.items, 1)
			}
		}), closed: setAside, open: setAside},
		{name: "swords with IDs", owns: assets{"sword_17": 1, "item_gold": 1000}, list: without},
		{name: "a balance of zero is not listed", owns: assets{"item_gold": 333}, list: without},
		{name: "decimals are listed", answer: func(_ *server, _ string, a *written) {
			a.body = strings.ReplaceAll(a.body, `"balance":"1000"`, `"balance":"1000.00"`)
		}},
		{name: "energy regenerates", list: energy, config: regenerates("energy")},
		{name: "energy regenerates, and Config does not name it", list: energy, closed: byItself, open: byItself},
		{name: "gold regenerates", config: regenerates("item_gold"), list: func(s *server, player string) assets {
			s.balance[player]["item_gold"]++
			return s.balance[player]
		}},
		{name: "a debt is hidden", owns: assets{"item_gold": -500}, list: func(s *server, player string) assets {
			return assets{"item_gold": max(0, s.balance[player]["item_gold"])}
		}, config: func(s *server, c *ramptest.Config) {
			c.Mailbox = func(session ramp.Session) (debt []ramp.Asset) {
				s.does(func() {
					n := min(0, s.balance[s.players[session.ID]]["item_gold"])
					debt = []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(n)}}
				})
				return debt
			}
		}, script: func(p *trial) {
			for range 2 {
				p.order(step{burn: true})
				p.later(time.Hour)
			}
		}},
	}
}

// rightLate act after their answers.
func rightLate() []*kind {
	soon := func(d time.Duration) func(*server, *booking, bool) int {
		return once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.soon(d, func() { s.move(o.player, o.items, 1) })
			}
		})
	}
	return []*kind{
		{name: "gives 20 ms later", finish: soon(20 * time.Millisecond)},
		{name: "gives 70 ms later", finish: soon(70 * time.Millisecond)},
		{name: "takes 20 ms later", beforeAnswer: takesLate, check: func(s *server, o *booking) string {
			rejection := s.affords(o)
			if rejection == "" && o.mint {
				s.soon(20*time.Millisecond, func() { s.move(o.player, o.items, -1) })
			}
			return rejection
		}},
		{name: "a job works a queue", finish: queues, job: worksQueue(1), closed: tooLate, open: tooLate},
	}
}

// rightEarly end orders before their results come, which then repeat that.
func rightEarly() []*kind {
	endsAll := func(s *server, when moment) {
		for i, o := range s.all {
			if when == placed {
				s.end(o, i != 0)
			}
		}
	}
	return []*kind{
		{name: "a janitor gives back before the failure", job: func(s *server, when moment) {
			if when == placed && len(s.all) == 1 {
				s.end(s.all[0], false)
			}
		}},
		{name: "a watcher ends each order before its result", job: endsAll},
		{name: "a watcher ends each order before its result, which is HTTP 500", job: endsAll, finish: failsOnce,
			open: early},
		{name: "a watcher grants two burns before their results", job: func(s *server, when moment) {
			for _, o := range s.all {
				if when == placed {
					s.end(o, true)
				}
			}
		}, script: func(p *trial) {
			for range 2 {
				p.order(step{burn: true})
				p.later(time.Hour)
			}
		}},
	}
}

// rightSessions have sessions and players of all sorts.
func rightSessions() []*kind {
	bans := func(s *server, _, path string) string {
		if s.count["banned"] == 1 && path != ramp.PathResult {
			return "BANNED"
		}
		return ""
	}
	return []*kind{
		{name: "no player_id", noID: true, closed: noPlayer},
		{name: "two sessions of a player", script: func(p *trial) {
			p.asks("alice-2")
			p.placesOrders()
			p.asks("alice-2")
		}},
		{name: "a new session, and the result needs no token", script: func(p *trial) {
			for _, step := range steps {
				p.does(func() { p.players["alice-1"] = "alice" })
				p.order(step)
				p.does(func() { delete(p.players, "alice-1") })
				p.asks("alice-2")
				p.later(time.Hour)
			}
		}},
		{name: "a ban, with a mailbox, and its end", config: hasMailbox, admit: bans, finish: once(
			func(s *server, o *booking, ok bool) {
				if s.count["banned"] == 1 {
					mails(s, o, ok)
				} else if o.due(ok) {
					s.move(o.player, o.items, 1)
				}
			}), script: func(p *trial) {
			for _, step := range steps {
				p.order(step)
				p.does(func() { p.count["banned"] = 1 })
				p.later(time.Hour)
				p.does(func() { p.count["banned"] = 0 })
				p.asks("alice-1")
			}
		}},
		{name: "a ban for good", admit: bans, script: func(p *trial) {
			p.order(step{burn: true})
			p.does(func() { p.count["banned"] = 1 })
			p.later(time.Hour)
		}, closed: banned, open: banned},
		{name: "an account is deleted, and a mailbox is left", config: hasMailbox, finish: once(
			func(s *server, o *booking, ok bool) {
				if s.players[o.session] == "" {
					mails(s, o, ok)
				} else if o.due(ok) {
					s.move(o.player, o.items, 1)
				}
			}), script: func(p *trial) {
			p.order(step{burn: true})
			p.does(func() {
				delete(p.players, "alice-1")
				delete(p.balance, "alice")
			})
			p.later(time.Hour)
		}, closed: banned, open: banned},
	}
}

// rightAnswers fail, and are right when they are asked again.
func rightAnswers() []*kind {
	return []*kind{
		{name: "the first result is HTTP 500", finish: failsOnce},
		{name: "the first result is HTTP 500, and it has acted", finish: func(s *server, o *booking, ok bool) int {
			if s.end(o, ok); !o.marked {
				o.marked = true
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}},
		{name: "results are HTTP 500 for half an hour", finish: func(s *server, o *booking, ok bool) int {
			if s.service.Now().Sub(o.at) < 30*time.Minute {
				return http.StatusInternalServerError
			}
			return s.end(o, ok)
		}},
		{name: "every third assets call is HTTP 500", answer: func(s *server, path string, a *written) {
			if path == ramp.PathAssets {
				if s.count["asked"]++; s.count["asked"]%3 == 0 {
					*a = written{http.StatusInternalServerError, `{"success":false,"errorCode":"INTERNAL","data":null}`}
				}
			}
		}},
		{name: "the answer to a result has one more field", answer: func(_ *server, path string, a *written) {
			if path == ramp.PathResult {
				a.body = strings.Replace(a.body, `"success"`, `"trace":"abc","success"`, 1)
			}
		}},
	}
}

// wrongForms are games that lose nothing, and whose answers break the interface.
func wrongForms() []*kind {
	confirms := func(status int, body string) func(*server, string, *written) {
		return func(_ *server, path string, a *written) {
			if path == ramp.PathResult && a.status == http.StatusOK {
				*a = written{status, body}
			}
		}
	}
	return []*kind{
		{name: "a failure with HTTP 200", answer: confirms(200, `{"success":false,"errorCode":"X","data":null}`)},
		{name: "HTTP 204", answer: confirms(204, "")},
		{name: "HTTP 201", answer: confirms(201, envelope)},
		{name: "no body", answer: confirms(200, "")},
		{name: "a text", answer: confirms(200, "OK")},
		{name: "only success", answer: confirms(200, `{"success":true}`)},
		{name: "data is an object", answer: confirms(200, `{"success":true,"errorCode":null,"data":{"ok":true}}`)},
		{name: "errorCode is empty", answer: confirms(200, `{"success":true,"errorCode":"","data":null}`)},
		{name: "a repeat is HTTP 409", finish: func(s *server, o *booking, ok bool) int {
			if o.ended {
				return http.StatusConflict
			}
			return s.end(o, ok)
		}},
		{name: "only the first result has no body", answer: func(s *server, path string, a *written) {
			if path == ramp.PathResult {
				if s.count["results"]++; s.count["results"]%2 == 1 {
					a.body = ""
				}
			}
		}},
		{name: "balances are numbers", answer: func(_ *server, _ string, a *written) {
			a.body = strings.NewReplacer(`"balance":"1000"`, `"balance":1000`, `"balance":"667"`, `"balance":667`).
				Replace(a.body)
		}},
	}
}

// mails puts what an order gives into a mailbox.
func mails(s *server, o *booking, ok bool) {
	if !o.due(ok) {
		return
	}
	if s.mail[o.player] == nil {
		s.mail[o.player] = assets{}
	}
	for _, a := range o.items {
		s.mail[o.player][a.ID] += units(s.t, a)
	}
}

// hasMailbox tells the books what waits in the mailbox.
func hasMailbox(s *server, c *ramptest.Config) {
	c.Mailbox = func(session ramp.Session) (all []ramp.Asset) {
		s.does(func() {
			for id, n := range s.mail[s.players[session.ID]] {
				all = append(all, ramp.Asset{ID: id, Balance: ramp.NewAmount(n)})
			}
		})
		return all
	}
}
