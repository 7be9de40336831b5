package ramptest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Why a losing game is green, as docs/testing.md says it.
const (
	neverAsked  = "moves assets of a player whose assets the test never asked for"
	equalOrders = "confuses two equal orders"
)

// losingGames are games that lose assets, or move them twice or wrongly.
func losingGames() []*kind {
	var all []*kind
	for _, some := range [][]*kind{losingTwice(), losingNever(), losingAmounts(), losingPlayers(), losingItems(),
		losingOrders(), losingStatuses(), losingBetween(), losingByLibrary()} {
		all = append(all, some...)
	}
	return all
}

// losingTwice take or give each time that they are asked.
func losingTwice() []*kind {
	return []*kind{
		{name: "each delivery gives", finish: func(s *server, o *booking, ok bool) int {
			o.ended = false
			return s.end(o, ok)
		}},
		{name: "each validate takes", repeat: (*server).take},
		{name: "each result takes", check: approves, finish: func(s *server, o *booking, ok bool) int {
			if o.mint {
				s.move(o.player, o.items, -1)
			} else if ok {
				s.move(o.player, o.items, 1)
			}
			return http.StatusOK
		}},
		{name: "grants at validate and at the result", check: grantsEarly},
		{name: "the first repeat of a validate takes", repeat: func(s *server, o *booking) string {
			if o.mint && !o.marked {
				o.marked = true
				s.move(o.player, o.items, -1)
			}
			return ""
		}},
		{name: "what is reserved is counted at each validate", repeat: func(s *server, o *booking) string {
			if o.mint {
				s.count[o.id] += o.amount()
			}
			return ""
		}, finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.move(o.player, o.items, 1)
				s.balance[o.player]["item_gold"] += s.count[o.id]
			}
		})},
		{name: "two workers work a queue", finish: once(func(s *server, o *booking, ok bool) {
			for range 2 {
				s.soon(10*time.Millisecond, func() {
					if o.due(ok) {
						s.move(o.player, o.items, 1)
					}
				})
			}
		})},
		{name: "a queue is worked late, and twice", finish: queues, job: worksQueue(2)},
	}
}

// losingNever leave out what they must do.
func losingNever() []*kind {
	return []*kind{
		{name: "never takes", check: approves},
		{name: "never gives back", finish: once(func(s *server, o *booking, ok bool) {
			if !o.mint && ok {
				s.move(o.player, o.items, 1)
			}
		})},
		{name: "never grants", finish: once(func(s *server, o *booking, ok bool) {
			if o.mint && !ok {
				s.move(o.player, o.items, 1)
			}
		})},
		{name: "grants at validate only", check: grantsEarly, finish: once(func(s *server, o *booking, ok bool) {
			if o.mint && !ok {
				s.move(o.player, o.items, 1)
			}
		})},
		{name: "a queue of effects is lost", finish: queues},
		{name: "marks, and fails before it moves", finish: func(s *server, o *booking, ok bool) int {
			if !o.ended {
				o.ended = true
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}},
		{name: "moves, and fails before it marks", finish: func(s *server, o *booking, ok bool) int {
			if !o.marked {
				if o.marked = true; o.due(ok) {
					s.move(o.player, o.items, 1)
				}
				return http.StatusInternalServerError
			}
			return s.end(o, ok)
		}},
		{name: "the sign is wrong", finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.move(o.player, o.items, -1)
			}
		})},
	}
}

// losingAmounts move another amount.
func losingAmounts() []*kind {
	ofMint := func(change func(int64) int64) func(*server, *booking, bool) int {
		return gives(func(o *booking) []ramp.AssetAmount {
			if !o.mint {
				return o.items
			}
			return o.scaled(change)
		})
	}
	return []*kind{
		{name: "gives back on success, too", finish: once(func(s *server, o *booking, ok bool) {
			s.move(o.player, o.items, 1)
		})},
		{name: "gives back less its fee", finish: ofMint(eightTenths)},
		{name: "grants less the mint fee", finish: gives(func(o *booking) []ramp.AssetAmount {
			if o.mint {
				return o.items
			}
			return o.scaled(eightTenths)
		})},
		{name: "gives the price of one token", finish: gives(func(o *booking) []ramp.AssetAmount {
			return o.scaled(func(n int64) int64 { return n / 3 })
		})},
		{name: "gives tokens instead of assets", finish: gives(func(o *booking) []ramp.AssetAmount {
			return o.scaled(func(int64) int64 { return 3 })
		})},
		{name: "an amount in eight bits", finish: gives(func(o *booking) []ramp.AssetAmount {
			return o.scaled(func(n int64) int64 { return int64(uint8(n)) })
		})},
		{name: "rounds to tens", check: func(s *server, o *booking) string {
			o.items = o.scaled(func(n int64) int64 { return n / 10 * 10 })
			return s.take(o)
		}},
		{name: "balances in float32", owns: assets{"item_gold": 20_000_000}, check: func(s *server, o *booking) string {
			if o.mint {
				s.add32(o.player, -o.amount())
			}
			return ""
		}, finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.add32(o.player, o.amount())
			}
		})},
		{name: "a full purse clips the grant", finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.balance[o.player]["item_gold"] = min(700, s.balance[o.player]["item_gold"]+o.amount())
			}
		})},
		{name: "takes at the result what is left", check: (*server).affords, finish: once(
			func(s *server, o *booking, ok bool) {
				if o.mint && ok {
					s.balance[o.player]["item_gold"] = max(0, s.balance[o.player]["item_gold"]-o.amount())
				} else if o.due(ok) && !o.mint {
					s.move(o.player, o.items, 1)
				}
			}), script: func(p *trial) {
			p.order(step{})
			p.service.Outside(func() { p.does(func() { p.balance["alice"]["item_gold"] = 100 }) })
			p.later(time.Hour)
		}},
		{name: "gives back the balance of before", finish: once(func(s *server, o *booking, ok bool) {
			if o.mint && !ok {
				s.balance[o.player] = maps.Clone(o.before)
			} else if o.due(ok) {
				s.move(o.player, o.items, 1)
			}
		}), script: outside(func(p *trial, _ int) { p.balance["alice"]["item_gold"] += 17 })},
	}
}

// losingPlayers give to somebody else.
func losingPlayers() []*kind {
	return []*kind{
		{name: "grants to the wallet's player, too", finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.move(o.player, o.items, 1)
				s.move("bob", o.items, 1)
			}
		}), green: neverAsked, seesSecond: true},
		{name: "a repair grants a burn to another player", job: func(s *server, when moment) {
			if when == atEnd {
				s.move("bob", s.all[2].items, 1)
			}
		}, green: neverAsked, seesSecond: true},
		{name: "grants to the wallet's player only", finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.move("bob", o.items, 1)
			}
		})},
		{name: "grants to who asked for assets last", admit: func(s *server, session, path string) string {
			if path == ramp.PathAssets {
				s.last = s.players[session]
			}
			return ""
		}, finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.move(s.last, o.items, 1)
			}
		}), script: func(p *trial) {
			for _, step := range steps {
				p.order(step)
				p.asks("bob-1")
				p.later(time.Hour)
			}
		}},
		{name: "grants to an account named by the session", finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) {
				s.move(o.session, o.items, 1)
			}
		})},
		{name: "ignores the result of a session that has expired", finish: func(s *server, o *booking, ok bool) int {
			if s.players[o.session] == "" {
				return http.StatusOK
			}
			return s.end(o, ok)
		}, script: func(p *trial) {
			for _, step := range steps {
				p.players["alice-1"] = "alice"
				p.order(step)
				p.does(func() { delete(p.players, "alice-1") })
				p.later(time.Hour)
			}
			p.players["alice-1"] = "alice"
			p.asks("alice-1")
		}},
	}
}

// losingItems err about one of two assets.
func losingItems() []*kind {
	oneOf := func(mint bool, items func([]ramp.AssetAmount) []ramp.AssetAmount) func(*server, *booking, bool) int {
		return gives(func(o *booking) []ramp.AssetAmount {
			if o.mint != mint {
				return o.items
			}
			return items(o.items)
		})
	}
	return []*kind{
		{name: "two items: takes gold, lacks gems, rejects", two: true, owns: assets{"item_gold": 1000, "item_gem": 1},
			check: func(s *server, o *booking) string {
				for i := range o.items {
					one := *o
					one.items = o.items[i : i+1]
					if rejection := s.take(&one); rejection != "" {
						return rejection
					}
				}
				return ""
			}},
		{name: "two items: gives back the first", two: true,
			finish: oneOf(true, func(items []ramp.AssetAmount) []ramp.AssetAmount { return items[:1] })},
		{name: "two items: grants the last", two: true,
			finish: oneOf(false, func(items []ramp.AssetAmount) []ramp.AssetAmount { return items[1:] })},
		{name: "two items: amounts are swapped", two: true, finish: gives(func(o *booking) []ramp.AssetAmount {
			return []ramp.AssetAmount{{ID: o.items[0].ID, Amount: o.items[1].Amount},
				{ID: o.items[1].ID, Amount: o.items[0].Amount}}
		})},
		{name: "grants another item", finish: gives(func(o *booking) []ramp.AssetAmount {
			return []ramp.AssetAmount{{ID: "item_gold_old", Amount: o.items[0].Amount}}
		})},
	}
}

// losingOrders take one order or result for another.
func losingOrders() []*kind {
	firstOf := func(key func(o *booking) string) func(*server, *booking, bool) int {
		return func(s *server, o *booking, ok bool) int {
			if s.count[key(o)] == 0 {
				s.count[key(o)], o.ended = 1, false
				s.end(o, ok)
			}
			return http.StatusOK
		}
	}
	newest := func(s *server, _ *booking, ok bool) int { return s.end(s.all[len(s.all)-1], ok) }
	forgets := func(s *server, when moment) {
		if when == placed {
			clear(s.orders)
		}
	}
	return []*kind{
		{name: "idempotent by session", finish: firstOf(func(o *booking) string { return o.session })},
		{name: "idempotent by wallet and amount", finish: firstOf(func(o *booking) string {
			return o.wallet + o.items[0].Amount.String()
		})},
		{name: "idempotent by the block", finish: firstOf(func(o *booking) string { return o.id + o.block }),
			script: func(p *trial) {
				p.order(step{fails: true}, ramptest.Reorganized())
				p.later(time.Hour)
			}},
		{name: "ends are in memory, and each second delivery comes after a restart",
			finish: func(s *server, o *booking, ok bool) int {
				if s.count["deliveries"]++; s.count["deliveries"]%2 == 0 {
					o.ended = false
				}
				return s.end(o, ok)
			}},
		{name: "orders are in memory, and an unknown one is HTTP 200", status: 200, job: forgets},
		{name: "orders are in memory, and an unknown one is HTTP 404", status: 404, job: forgets},
		{name: "the newest order is ended", finish: newest, script: func(p *trial) {
			p.orderOf(step{fails: true}, 111)
			p.orderOf(step{}, 50)
			p.later(time.Hour)
		}},
		{name: "the newest order is ended, and all are equal", finish: newest, script: func(p *trial) {
			p.order(step{fails: true})
			p.order(step{})
			p.later(time.Hour)
		}, green: equalOrders},
		{name: "every status is a failure", finish: func(s *server, o *booking, _ bool) int { return s.end(o, false) }},
		{name: "every status is a success", finish: func(s *server, o *booking, _ bool) int { return s.end(o, true) }},
	}
}

// losingStatuses answer with a status after which a result is not sent again, or is sent for ever.
func losingStatuses() []*kind {
	return []*kind{
		{name: "500 becomes 200", finish: failsOnce, answer: instead500(200, "")},
		{name: "500 becomes a success", finish: failsOnce, answer: instead500(200, envelope)},
		{name: "500 becomes 503", finish: failsOnce, answer: instead500(503, "")},
		{name: "a refused grant is answered with HTTP 200", finish: once(func(s *server, o *booking, ok bool) {
			if o.due(ok) && o.mint {
				s.move(o.player, o.items, 1)
			}
		})},
		{name: "every success is HTTP 500", finish: func(s *server, o *booking, ok bool) int {
			if ok {
				return http.StatusInternalServerError
			}
			return s.end(o, ok)
		}},
	}
}

// losingBetween move assets between the calls.
func losingBetween() []*kind {
	each := func(whens []moment, do func(s *server, o *booking)) func(*server, moment) {
		return func(s *server, when moment) {
			for _, w := range whens {
				for _, o := range s.all {
					if when == w && !o.marked {
						do(s, o)
					}
				}
			}
		}
	}
	givesBack := func(s *server, o *booking) {
		if o.mint && !o.ended {
			o.marked = true
			s.move(o.player, o.items, 1)
		}
	}
	grants := func(s *server, o *booking) {
		if !o.mint {
			o.marked = true
			s.move(o.player, o.items, 1)
		}
	}
	repairs := func(do func(s *server)) func(*server, moment) {
		return func(s *server, when moment) {
			if when == atEnd {
				do(s)
			}
		}
	}
	// restores saves what alice owned before an order, once that is so many.
	restores := func(when moment, orders int, earned int64) func(*server, moment) {
		return func(s *server, now moment) {
			if now == when && len(s.all) == orders {
				s.balance["alice"] = maps.Clone(s.all[orders-1].before)
				s.balance["alice"]["item_gold"] += earned
			}
		}
	}
	return []*kind{
		{name: "a janitor gives back, and then success", job: each([]moment{placed}, givesBack),
			finish: func(s *server, o *booking, ok bool) int {
				if o.marked {
					return http.StatusOK
				}
				return s.end(o, ok)
			}},
		{name: "a janitor gives back, and the result, too", job: each([]moment{placed}, givesBack)},
		{name: "a watcher grants, and then the result", job: each([]moment{placed, advanced}, grants)},
		{name: "the result grants, and then a watcher", job: each([]moment{advanced}, grants)},
		{name: "a repair gives back once more", job: repairs(func(s *server) { s.move("alice", s.all[0].items, 1) })},
		{name: "support gives back the net amount once more", job: repairs(func(s *server) {
			s.move("alice", s.all[0].scaled(eightTenths), 1)
		})},
		{name: "a job claws back a burn as expired",
			job: repairs(func(s *server) { s.move("alice", s.all[2].items, -1) })},
		{name: "a job takes a mint twice", job: repairs(func(s *server) { s.move("alice", s.all[1].items, -1) })},
		{name: "a repair of two mints in one sum",
			job: repairs(func(s *server) { s.balance["alice"]["item_gold"] += 666 }), script: func(p *trial) {
				for range 2 {
					p.order(step{fails: true})
					p.later(time.Hour)
				}
				p.ends()
			}},
		{name: "a row loaded at login is saved at logout", job: restores(placed, 2, 0)},
		{name: "a row loaded before is saved with 17 earned", job: restores(placed, 2, 17)},
		{name: "a cache is written back after the result", job: restores(advanced, 3, 0)},
		{name: "a backup is restored", job: restores(advanced, 2, 0)},
		{name: "one side of a trade is saved",
			job: repairs(func(s *server) { s.balance["bob"]["item_gold"] += 333 }), script: func(p *trial) {
				p.order(step{})
				p.later(time.Hour)
				p.does(func() { p.balance["alice"]["item_gold"] += 333 })
				p.later(time.Hour)
			}},
	}
}

// losingByLibrary use a ramp.Handler wrongly, or stand before it.
func losingByLibrary() []*kind {
	return []*kind{
		{name: "ramp.Handler: 500 becomes 200", behind: handled(apply), around: changes500(200, "")},
		{name: "ramp.Handler: 500 becomes 503", behind: handled(apply), around: changes500(503, "")},
		{name: "ramp.Handler: a cache answers each second result", behind: handled(apply), around: cachesResults},
		{name: "ramp.Handler: Apply grants when an order is accepted", behind: handled(
			func(s *server, step ramp.Step) error {
				if step.Order.State == ramp.OrderAccepted && step.Order.Direction == ramp.Burn {
					s.move(s.players[step.Order.SessionID], step.Order.Assets, 1)
				}
				return apply(s, step)
			})},
		{name: "ramp.Handler: Apply grants to the wallet's player", behind: handled(
			func(s *server, step ramp.Step) error {
				if step.Effect.Kind == ramp.Grant {
					s.move("bob", step.Effect.Assets, 1)
					return nil
				}
				return apply(s, step)
			})},
		{name: "ramp.Handler: Apply moves half, then fails once", two: true, behind: handled(
			func(s *server, step ramp.Step) error {
				half := "half of " + step.Order.UUID.String()
				if step.Effect.Kind != ramp.Take && len(step.Effect.Assets) > 1 && s.count[half] == 0 {
					s.count[half] = 1
					s.move(s.players[step.Order.SessionID], step.Effect.Assets[:1], 1)
					return errors.New("the connection is lost")
				}
				return apply(s, step)
			})},
		{name: "ramp.Handler: a store applies each third step twice", behind: stored(
			func(s *server, inner ramp.Store) update {
				steps := 0
				return func(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
					step, err := inner.Update(ctx, id, next)
					if err != nil || !step.New {
						return step, err
					}
					if steps++; steps%3 == 0 {
						s.does(func() { err = apply(s, step) })
					}
					return step, err
				}
			})},
		{name: "ramp.Handler: a store takes again at each repeat", behind: stored(
			func(s *server, inner ramp.Store) update {
				return func(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
					step, err := inner.Update(ctx, id, next)
					o := step.Order
					if err == nil && !step.New && o.State == ramp.OrderAccepted && o.Direction == ramp.Mint {
						s.does(func() { s.move(s.players[o.SessionID], o.Assets, -1) })
					}
					return step, err
				}
			})},
	}
}

func approves(*server, *booking) string { return "" }

func grantsEarly(s *server, o *booking) string {
	if !o.mint {
		s.move(o.player, o.items, 1)
	}
	return s.take(o)
}

// failsOnce fails at the first result, and has done nothing.
func failsOnce(s *server, o *booking, ok bool) int {
	if !o.marked {
		o.marked = true
		return http.StatusInternalServerError
	}
	return s.end(o, ok)
}

// queues leaves the end of an order to a job.
func queues(_ *server, o *booking, ok bool) int {
	if !o.ended {
		o.ended, o.marked = true, o.due(ok)
	}
	return http.StatusOK
}

// worksQueue gives what is in the queue, so often.
func worksQueue(times int64) func(*server, moment) {
	return func(s *server, when moment) {
		for _, o := range s.all {
			if when == advanced && o.marked {
				o.marked = false
				s.move(o.player, o.items, times)
			}
		}
	}
}

// soon does something after a time.
func (s *server) soon(d time.Duration, act func()) {
	time.AfterFunc(d, func() { s.does(act) })
}

// does does something between the calls.
func (s *server) does(act func()) {
	s.Lock()
	defer s.Unlock()
	act()
}

func (s *server) add32(player string, n int64) {
	s.balance[player]["item_gold"] = int64(float32(s.balance[player]["item_gold"]) + float32(n))
}

// instead500 answers with something else instead of an HTTP 500.
func instead500(status int, body string) func(*server, string, *written) {
	return func(_ *server, _ string, a *written) {
		if a.status != http.StatusInternalServerError {
			return
		}
		if a.status = status; body != "" {
			a.body = body
		}
	}
}

// changes500 is instead500 as middleware.
func changes500(status int, body string) func(*server, http.Handler) http.Handler {
	return func(_ *server, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			h.ServeHTTP(recorded, r)
			a := &written{recorded.Code, recorded.Body.String()}
			instead500(status, body)(nil, "", a)
			answersWith(a.status, a.body)(w)
		})
	}
}

// cachesResults is middleware that lets only the first result of an order through.
func cachesResults(s *server, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != ramp.PathResult {
			h.ServeHTTP(w, r)
			return
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Errorf("a result is not read: %v", err)
		}
		body := string(text)
		r.Body = io.NopCloser(strings.NewReader(body))
		seen := false
		s.does(func() { seen, s.count[body] = s.count[body] > 0, 1 })
		if seen {
			answersWith(http.StatusOK, envelope)(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// handled puts a ramp.Handler with this Apply in the place of the server.
func handled(apply func(*server, ramp.Step) error) func(*server) http.Handler {
	return func(s *server) http.Handler { return s.handler(s.store(apply)) }
}

type update = func(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error)

// stored is handled, with an Update around that of the store.
func stored(around func(s *server, inner ramp.Store) update) func(*server) http.Handler {
	return func(s *server) http.Handler {
		inner := s.store(apply)
		return s.handler(changedStore{inner, around(s, inner)})
	}
}

type changedStore struct {
	ramp.Store
	update update
}

func (s changedStore) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	return s.update(ctx, id, next)
}

func (s *server) store(apply func(*server, ramp.Step) error) ramp.Store {
	return &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) (err error) {
		s.does(func() { err = apply(s, step) })
		return err
	}}
}

func (s *server) handler(store ramp.Store) http.Handler {
	return must.Get(ramp.NewHandler(ramp.HandlerConfig{Players: playersOf{s}, Store: store, Key: s.key,
		Signer: s.signer, Terms: anyTerms, Logger: slog.New(slog.DiscardHandler)}))(s.t)
}

// apply does what a right Apply does.
func apply(s *server, step ramp.Step) error {
	o := &booking{t: s.t, player: s.players[step.Order.SessionID], items: step.Effect.Assets,
		mint: step.Effect.Kind == ramp.Take}
	if rejection := s.take(o); rejection != "" {
		return ramp.Reject(ramp.Code(rejection))
	}
	if !o.mint {
		s.move(o.player, o.items, 1)
	}
	return nil
}

type playersOf struct{ s *server }

func (p playersOf) Authenticate(_ context.Context, session ramp.Session) error {
	if p.s.players[session.ID] == "" || session.Token.Reveal() != "token-"+session.ID {
		return ramp.Reject("INVALID_TOKEN")
	}
	return nil
}

func (p playersOf) Assets(_ context.Context, session ramp.Session) (player *ramp.Player, err error) {
	p.s.does(func() {
		listed := p.s.listed(p.s.players[session.ID])
		player = &listed
	})
	return player, nil
}
