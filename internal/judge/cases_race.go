package judge

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// raceCases returns the cases about different calls at the same time: of several players,
// and of one player (interface 2.5, 3, 5).
func raceCases() []Case {
	return []Case{
		{ID: "players-at-once", first: true,
			Fix: "Keep nothing of a call where a call of another player sees it, such as in a global " +
				"variable, " +
				"confirm a result only when its own effect is stored, " + lockedOut,
			Inputs: []Input{
				must("approvals", "their mints are approved at once", approvesAtOnce, "mint-succeeds",
					"mint-fails"),
				must("results", "their orders end at once, with both outcomes", endsAtOnce, "mint-succeeds",
					"mint-fails", "burn-succeeds", "burn-fails"),
				must("assets", "they ask for their assets at once", listsAtOnce, "mint-succeeds"),
			},
			Title: "The calls of several players at once do not mix: each order gets its own answer, and " +
				"each player's balance moves by what they ordered."},
		{ID: "orders-at-once", alone: true, Section: "3",
			Fix: "Change balances in one statement, or under one lock for all calls of a player and all " +
				"their assets: two calls that read the same " +
				"balances lose one of their changes. Where there are several locks, every call must take " +
				"them in the same order; " + lockedOut,
			Inputs: []Input{
				must("one-asset", "mints that fail, and new mints of the same asset",
					func(t *trial) { t.failsAndMints(t.asset, t.unequal(crowd/2)) }, "mint-succeeds",
					"mint-fails"),
				must("two-assets", "mints that fail, and new mints of a second asset",
					func(t *trial) { t.failsAndMints(t.second, 1) }, "mint-succeeds",
					"mint-fails").with(aSecondAsset),
				must("same-order", "the failed result of a mint, and its validate call again", endsAndRepeats,
					"mint-fails", "repeats"),
				must("crossed", "mints of two assets, which half of them list in the other order",
					mintsCrossed, "mint-fails").with(aSecondAsset),
			},
			Title: "Validate and result calls of one player at once are all answered, and lose no change " +
				"of a balance."},
	}
}

// party returns several players, with what they own. There are fewer than a crowd if
// Config.Player returns them again.
func (t *trial) party() []snapshot {
	all := []snapshot{t.look(t.player)}
	for len(all) < crowd && t.err == nil {
		s := t.newPlayer()
		if slices.ContainsFunc(all, func(p snapshot) bool { return p.owner.ID == s.ID }) {
			break
		}
		all = append(all, t.look(s))
	}
	if len(all) == 1 {
		t.lacks("there is only one player", twoPlayers)
	}
	return all
}

// due is by how much the balances of a player must have moved since a snapshot.
type due struct {
	then snapshot
	want difference
}

// dues are the balances of several players. They are judged at the end, because an effect
// may be late.
type dues []due

// add adds what a player's balances must move. A player who comes again keeps the first
// snapshot.
func (d *dues) add(then snapshot, moved difference) {
	i := slices.IndexFunc(*d, func(of due) bool { return of.then.owner.ID == then.owner.ID })
	if i < 0 {
		i = len(*d)
		*d = append(*d, due{then, make(difference)})
	}
	(*d)[i].want.addAll(moved)
}

// settle requires that all balances have moved as they must.
func (t *trial) settle(all dues) {
	for _, d := range all {
		t.movedSince(d.then, d.want)
	}
}

// parties repeats a race of several players, with the same ones while that is quick and
// something is approved, because a window may be as narrow as a few instructions. If the
// server is slow, its windows are wide, and one party is enough.
func (t *trial) parties(race func(round int, players []snapshot) (approved int)) {
	const (
		most  = 8
		quick = 200 * time.Millisecond
		slow  = 3 * time.Second
	)
	first := time.Now()
	t.rounds(func() {
		if time.Since(first) > slow {
			return
		}
		players, began := t.party(), time.Now()
		for round := range most {
			if race(round, players) == 0 || t.err != nil || time.Since(began) > quick {
				return
			}
		}
	})
}

func approvesAtOnce(t *trial) {
	var all dues
	t.parties(func(round int, players []snapshot) (count int) {
		orders := make([]order, len(players))
		for i, p := range players {
			orders[i] = t.mintOf(p.owner)
		}
		answers := t.together(len(orders), func(i int) answer { return t.validate(orders[i]) })
		for i, a := range answers {
			if mixed := t.mixed(orders[i], a.approval(), false); a.succeeded && mixed != "" {
				t.failAt(a, mixed, "the userSig and the validatorSig of this order")
			}
		}
		for i, o := range orders {
			status := []string{success, failure}[(i+round)%2]
			if t.approvedAtOnce(o, answers[i]) {
				count++
				t.confirm(o, status)
			} else {
				status = failure // nothing was to move
			}
			all.add(players[i], o.effect(status))
		}
		return count
	})
	t.settle(all)
}

func endsAtOnce(t *trial) {
	ways := []ending{mintFails, burnEnds, mintEnds, burnFails}
	if t.Unique { // a burn begins with a mint, which cannot be repeated
		ways[1], ways[3] = ways[0], ways[2]
	}
	var all dues
	t.parties(func(round int, players []snapshot) int {
		var orders []order
		var ends []string
		for i, p := range players {
			way, moved := ways[(i+round)%len(ways)], difference(nil)
			if o := way.of(t, p.owner); t.offer(o) {
				orders, ends, moved = append(orders, o), append(ends, way.status), o.effect(way.status)
			}
			all.add(p, moved)
		}
		answers := t.together(len(orders), func(i int) answer { return t.report(orders[i], ends[i]) })
		for i, o := range orders {
			t.confirmedAtOnce(o, ends[i], answers[i])
		}
		return len(orders)
	})
	t.settle(all)
}

func listsAtOnce(t *trial) {
	players := t.party()
	for i, p := range players { // who would all own the same otherwise
		if i%2 == 0 {
			if o := t.mintOf(p.owner); t.offer(o) {
				t.confirm(o, success)
			}
		}
	}
	t.outwait()
	for i, p := range players {
		players[i] = t.look(p.owner)
	}
	for range 3 {
		for i, a := range t.together(len(players), func(i int) answer { return t.assets(players[i].owner) }) {
			asset := t.assetOf(players[i].owner)
			then, now := players[i].of(asset), difference(sums(t.held(players[i].owner, a))).of(asset)
			if now.Cmp(then) != 0 {
				t.failAt(a, fmt.Sprintf("a balance of %s, asked at once with other players", show(now)),
					fmt.Sprintf("%s, as when asked alone", show(then)))
			}
		}
	}
}

// unequal returns how many times the amount of an order a mint is about, so that changes
// by n such mints and by n of the usual amount never cancel each other when they are lost.
// It is 1 if the player owns too little or the server rejects it.
func (t *trial) unequal(n int64) (times int64) {
	times = n + 1
	if t.before.of(t.asset).Cmp(t.amounts(n+n*times)) < 0 {
		return 1
	}
	o := t.mint(t.of(t.times(times)))
	if !t.offer(o) {
		return 1
	}
	t.confirm(o, failure)
	t.renew()
	return times
}

// failsAndMints reports open mints as failed while new ones are requested, of an asset and
// so many times the amount of an order. A game may reject all but one open order of a
// player, so only the sums are judged.
func (t *trial) failsAndMints(asset string, times int64) {
	const most = crowd / 2
	var all dues
	t.rounds(func() {
		var open []order
		for len(open) < most {
			o := t.mint()
			if !t.offer(o) {
				break
			}
			open = append(open, o)
		}
		orders := make([]order, most)
		for i := range orders {
			orders[i] = t.mint(t.of(t.times(times)), set("intent.from.0.id", asset))
		}
		answers := t.together(len(open)+most, func(i int) answer {
			if i < len(open) {
				return t.report(open[i], failure)
			}
			return t.validate(orders[i-len(open)])
		})
		for i, o := range open {
			t.confirmedAtOnce(o, failure, answers[i])
		}
		all.add(t.before, nil)
		for i, o := range orders {
			if t.approvedAtOnce(o, answers[len(open)+i]) {
				t.confirm(o, success)
				all.add(t.before, o.effect(success))
			}
		}
	})
	t.settle(all)
}

// endsAndRepeats reports a mint as failed while its validate call is repeated. Locks that
// the two take in different order never become free.
func endsAndRepeats(t *trial) {
	var all dues
	t.rounds(func() {
		o := t.approve(t.mint())
		answers := t.together(crowd, func(i int) answer {
			if i == 0 {
				return t.report(o, failure)
			}
			return t.validate(o)
		})
		t.confirmedAtOnce(o, failure, answers[0])
		for i, a := range answers {
			if i > 0 && t.err == nil && a.err != nil && !errors.Is(a.err, errBusy) {
				t.answered(t.validate(o))
				break
			}
		}
		all.add(t.before, nil)
	})
	t.settle(all)
}

// mintsCrossed requests mints of two assets at the same time. The locks of two assets that
// are taken in the order of the intent never become free. A game may want the tokens that
// both assets are worth together, or those of each.
func mintsCrossed(t *trial) {
	both := func(worth edit, ids ...string) order {
		from := two(ids[0], t.times(1), ids[1], t.times(1))
		return t.mint(worth, set("intent.from", from))
	}
	var worth edit
	for _, amounts := range []int64{2, 1} {
		of := t.of(t.times(amounts))
		if o := both(of, t.asset, t.second); worth == nil && t.offer(o) {
			t.confirm(o, failure)
			worth = of
		}
	}
	if worth == nil {
		t.skip("the server rejects a mint of two assets")
		return
	}
	t.renew()
	var all dues
	t.rounds(func() {
		orders := make([]order, crowd)
		for i := range orders {
			ids := []string{t.asset, t.second}
			if i%2 == 1 {
				slices.Reverse(ids)
			}
			orders[i] = both(worth, ids...)
		}
		for _, o := range t.atOnce(orders) {
			t.confirm(o, failure)
		}
		all.add(t.before, nil)
	})
	t.settle(all)
}
