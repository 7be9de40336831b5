package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
)

// holding is a balance that the server reports.
type holding struct {
	id      string
	balance *big.Rat
	raw     json.RawMessage // the balance as the server wrote it
}

// decimal matches a decimal string (interface 2.4).
var decimal = regexp.MustCompile(`^-?[0-9]{1,100}(\.[0-9]{1,100})?$`)

// holdings gets a player's assets. It reads them leniently; the cases of section 2.4
// are strict.
func (t *trial) holdings(s ramp.Session) []holding { return t.held(s, t.assets(s)) }

// held reads the assets of a player from an answer.
func (t *trial) held(s ramp.Session, a answer) []holding {
	if !t.answered(a) {
		return nil
	}
	var data struct {
		V1 struct {
			Wallet any `json:"wallet_address"`
			Assets *[]struct {
				ID      json.RawMessage `json:"id"`
				Balance json.RawMessage `json:"balance"`
			} `json:"assets"`
		} `json:"v1"`
	}
	const want = "success true and the player's assets in data.v1.assets"
	if !a.succeeded && a.success() != "true" {
		t.mismatch(a, want)
		return nil
	}
	if !decode(a.envelope["data"], &data) || data.V1.Assets == nil {
		t.failAt(a, "assets: "+a.String()+", in which data.v1.assets is missing or not a list", want)
		return nil
	}
	if address, _ := data.V1.Wallet.(string); common.IsHexAddress(address) {
		t.wallets[s.ID] = address
	}
	all := make([]holding, 0, len(*data.V1.Assets))
	for _, asset := range *data.V1.Assets {
		var id string
		if json.Unmarshal(asset.ID, &id) != nil && len(asset.ID) > 0 {
			t.fail("assets: an id that is not a JSON string", "the asset ID of the console, as a string")
			return nil
		}
		text := strings.Trim(string(asset.Balance), `"`)
		if !decimal.MatchString(text) {
			t.failAt(a,
				fmt.Sprintf("assets: the balance %s of %s, which is not a decimal",
					t.said(string(asset.Balance[:min(len(asset.Balance), 40)])), t.said(id)),
				`a decimal string, such as "1000" or "0.5"`)
			return nil
		}
		balance, _ := new(big.Rat).SetString(text)
		all = append(all, holding{id, balance, asset.Balance})
	}
	if t.Unique && t.items[s.ID] == "" { // later, the player may not own it
		t.items[s.ID], _ = t.choose(all)
	}
	return all
}

// enough returns how much a player must own of an asset to move.
func (t *trial) enough() *big.Rat {
	if t.Unique {
		return t.amounts(1)
	}
	return t.amounts(reserve)
}

// choose returns the assets to move of a player who owns all: those that the target names,
// or the first ones of which there is enough. They are empty if there are none, but the second may
// be one of which there is not enough.
func (t *trial) choose(all []holding) (asset, second string) {
	asset, second = t.Asset, t.Second
	for _, h := range all {
		switch {
		case h.balance.Cmp(t.enough()) < 0, t.server.drifts(h.id):
		case asset == "" && h.id != second:
			asset = h.id
		case second == "" && h.id != asset:
			second = h.id
		}
	}
	for _, h := range all { // one of which the player owns too little still shows what is taken of the first
		if second == "" && h.id != asset && !t.server.drifts(h.id) {
			second = h.id
		}
	}
	return asset, second
}

// assetOf returns the asset to move of a player. Each unique item may have an ID of its
// own.
func (t *trial) assetOf(s ramp.Session) string { return cmp.Or(t.items[s.ID], t.asset) }

// listed describes what a player owns.
func (t *trial) listed(all []holding) string {
	if len(all) == 0 {
		return "no asset"
	}
	var texts []string
	for _, h := range all[:min(len(all), 10)] {
		texts = append(texts, show(h.balance)+" "+t.said(h.id))
	}
	return strings.Join(texts, ", ")
}

// look measures what a player owns.
func (t *trial) look(s ramp.Session) snapshot {
	events := t.ledger.count()
	return snapshot{s, sums(t.holdings(s)), events, time.Now()}
}

func sums(all []holding) map[string]*big.Rat {
	sums := make(difference)
	for _, h := range all {
		sums[h.id] = plus(sums.of(h.id), h.balance) // also 0
	}
	return sums
}

// now measures what the case's player owns after all effects have appeared.
func (t *trial) now() snapshot { return t.nowOf(t.player) }

func (t *trial) nowOf(s ramp.Session) snapshot {
	t.outwait()
	return t.look(s)
}

// moved requires that since the case began, the player's balance has changed by a
// number of order amounts, and no other balance has changed: moved(-1) after a mint,
// moved(0) for no change.
func (t *trial) moved(amounts int64) {
	t.movedSince(t.before, difference{t.asset: t.amounts(amounts)})
}

// movedAs requires that since the case began, an order has had its effect on what the
// case's player owns, which is none if it is another player's.
func (t *trial) movedAs(o order, status string) {
	if o.owner.ID != t.player.ID {
		status = failure
	}
	t.movedSince(t.before, o.effect(status))
}

// movedAbout requires what movedAs requires, as closely as a server can that computes with
// doubles.
func (t *trial) movedAbout(want difference) {
	near := func(now snapshot) bool {
		off := t.off(t.before, now, want).of(t.asset)
		return off.Abs(off).Cmp(tolerance(want.of(t.asset), t.before.of(t.asset))) <= 0
	}
	if t.settled(t.before, near) != nil {
		t.movedSince(t.before, want)
	}
}

// still requires that a player owns the same as in a snapshot.
func (t *trial) still(then snapshot) { t.movedSince(then, nil) }

// movedSince requires that a player's balances differ from a snapshot by exactly want, or
// by that and what the known faults of the opening account for.
func (t *trial) movedSince(then snapshot, want difference) {
	if now := t.reaches(then, want); now != nil {
		t.misplaced(then, *now, want)
	}
}

// predict returns the total effect of the known faults on what a player owns since a
// snapshot.
func (t *trial) predict(then snapshot) difference {
	d := make(difference)
	for _, f := range t.server.known.faults {
		for _, e := range t.ledger.since(then.owner, then.events) {
			d.addAll(f.predicts(e))
		}
	}
	return d
}

// reaches waits until a player's balances are as [trial.movedSince] requires. It returns
// the last snapshot if they still are not.
func (t *trial) reaches(then snapshot, want difference) (wrong *snapshot) {
	predicted := t.predict(then)
	return t.settled(then, func(now snapshot) bool {
		off := t.off(then, now, want)
		return len(off) == 0 || off.equal(predicted)
	})
}

// off returns how much more a player owns than wanted. It ignores assets that move
// without an order.
func (t *trial) off(then, now snapshot, want difference) difference {
	off := make(difference)
	for _, assets := range []map[string]*big.Rat{then.assets, now.assets, want} {
		for id := range assets {
			if off[id] != nil || t.server.drifts(id) {
				continue
			}
			by := new(big.Rat).Sub(now.of(id), then.of(id))
			off.add(id, by.Sub(by, want.of(id)))
		}
	}
	return off
}

// settled waits until a balance is right, for at most Config.Settle. It returns the last
// snapshot if the balance is still wrong, and nil otherwise. If effects are known to
// appear after their answers, the balance must still be right after one more effect
// could have appeared.
func (t *trial) settled(then snapshot, right func(snapshot) bool) (wrong *snapshot) {
	answered, polled := t.ledger.lastCall(), false
	now := t.look(then.owner)
	for ; t.err == nil && !right(now); now = t.look(then.owner) {
		waited := time.Since(answered)
		if waited >= t.Settle {
			return &now
		}
		// Often at first, so that the measured lag exceeds the real one by little.
		t.pause(min(max(waited/8, 5*time.Millisecond), 100*time.Millisecond))
		polled = true
	}
	if polled && !t.drifted(then, now) { // which may have become right because it does not count anymore
		t.server.measuredLag(time.Since(answered))
	}
	if t.server.lag() > 0 {
		now = t.nowOf(then.owner)
	}
	if t.err == nil && !right(now) {
		return &now
	}
	return nil
}

// drifted reports whether an asset that moves without an order has moved.
func (t *trial) drifted(then, now snapshot) bool {
	for id := range now.assets {
		if t.server.drifts(id) && now.of(id).Cmp(then.of(id)) != 0 {
			return true
		}
	}
	return false
}

// misplaced records a wrong balance.
func (t *trial) misplaced(then, now snapshot, want difference) {
	t.drifting(then, now, want, t.off(then, now, want))
	off := t.off(then, now, want)
	if t.err != nil || len(off) == 0 {
		return
	}
	f := &finding{off: off, asset: t.asset, grave: true, late: t.late(then, off)}
	id := t.asset
	if off[id] == nil {
		id = slices.Sorted(maps.Keys(off))[0]
	}
	balance := "a balance"
	if id != t.asset {
		balance += " of " + t.said(id)
	}
	by := new(big.Rat).Sub(now.of(id), then.of(id))
	f.saw = fmt.Sprintf("%s that moved by %s (%s before, %s after)", balance, show(by), show(then.of(id)),
		show(now.of(id)))
	f.want = balance + " that moved by " + show(want.of(id))
	f.side = off[t.asset] == nil && want[id] == nil
	f.predicted = t.predict(then)
	f.kind = t.ledger.lastKind(then.owner)
	t.err = f
}

// late reports whether a balance is wrong only by what open mints have taken since a
// snapshot that did not show it, and measures how late that is.
func (t *trial) late(then snapshot, off difference) bool {
	taken, approved := t.ledger.taking(then.owner)
	if len(taken) == 0 || !approved.Before(then.at) || !off.equal(taken) ||
		len(t.off(t.before, then, nil)) > 0 {
		return false
	}
	t.server.measuredLag(time.Since(approved))
	return true
}

// drifting finds out which assets with a wrong balance move without an order. It
// measures them again after a pause in which it sends nothing to the server.
func (t *trial) drifting(then, now snapshot, want, off difference) {
	for _, id := range slices.Sorted(maps.Keys(off)) {
		if !t.server.watches(id) {
			continue
		}
		watch := func() snapshot {
			t.pause(max(t.Settle, watchTime))
			return t.look(now.owner)
		}
		again := watch()
		if t.err != nil || t.server.drifts(id) || again.of(id).Cmp(now.of(id)) == 0 {
			continue
		}
		if len(t.off(then, again, want)) == 0 {
			t.untried("an effect appeared more than %s after its answer; allow more time (-settle)", t.Settle)
			return
		}
		if id == t.asset {
			still := watch().of(id).Cmp(again.of(id)) != 0
			t.untried("the player's %s moves without an order; name an asset that does not (-asset)",
				t.said(id))
			if still { // it is no late effect, and every other case would blame the server for it
				t.server.run.stop(t.err)
			}
			return
		}
		t.server.driftsAlone(id)
	}
}

// watchTime is the minimum time for which an asset is watched before an order is blamed
// for its movement. Each asset is watched once.
const watchTime = 250 * time.Millisecond

// outwait waits until the effect of the last call must have appeared: one and a half
// times as long after its answer as the slowest effect took so far, but at most
// Config.Settle.
func (t *trial) outwait() {
	lag := t.server.lag()
	t.pause(min(lag+lag/2, t.Settle) - time.Since(t.ledger.lastCall()))
}

func (t *trial) pause(d time.Duration) {
	if t.err == nil && d > 0 && !sleep(t.ctx, d) {
		t.untried("%w", t.ctx.Err())
	}
}

// amounts returns n times the amount of an order.
func (t *trial) amounts(n int64) *big.Rat { return big.NewRat(n*t.Amount, 1) }

// times returns n times the amount of an order as a JSON number.
func (t *trial) times(n int64) json.Number { return number(n * t.Amount) }

// beyond returns a quantity as a JSON number, rounded up to a multiple of an order's amount,
// because a game of whole tokens rejects others. It skips the case if the player owns that
// much.
func (t *trial) beyond(text string) json.Number {
	amount, err := ramp.ParseAmount(text)
	if err != nil || t.err != nil {
		return raw(text)
	}
	if amount.Rat().Cmp(t.before.of(t.asset)) <= 0 {
		t.lacks("the player owns "+text+" or more", "an asset of which the player owns less (-asset)")
	}
	if new(big.Rat).Quo(amount.Rat(), big.NewRat(t.Amount, 1)).IsInt() {
		return raw(text)
	}
	return t.multiple(amount.Rat(), 1)
}

// of returns an edit that sets the amount of the asset, and the amount of tokens to what
// that is worth. Otherwise, a game that checks its rate would reject the order for that
// alone. The tokens stay unchanged if their worth has no finite decimal form.
func (t *trial) of(amount json.Number) edit {
	return func(o object) object {
		tokens := t.Tokens
		if o.burns() {
			tokens = t.BurnTokens
		}
		asset, token := o.sides()
		o = o.with(asset+".0.amount", amount)
		if exact, err := ramp.ParseAmount(amount.String()); err == nil {
			worth := product(exact.Rat(), big.NewRat(tokens, t.Amount))
			if text := show(worth); rat(text).Cmp(worth) == 0 {
				o = o.with(token+".0.amount", raw(text))
			}
		}
		return o
	}
}

// oneMore returns the smallest multiple of an order's amount that exceeds what the
// player owned at the beginning.
func (t *trial) oneMore() json.Number { return t.multiple(t.before.of(t.asset), 1) }

// most returns about 3/5 of what the player owned at the beginning, as a multiple of an
// order's amount. It can be taken once, but not twice.
func (t *trial) most() json.Number {
	return t.multiple(product(t.before.of(t.asset), big.NewRat(3, 5)), 0)
}

// multiple returns the largest multiple of an order's amount that does not exceed a
// number, or a later multiple.
func (t *trial) multiple(of *big.Rat, later int64) json.Number {
	amount := big.NewInt(t.Amount)
	n := new(big.Int).Quo(of.Num(), new(big.Int).Mul(of.Denom(), amount))
	n.Add(n, big.NewInt(later)).Mul(n, amount)
	if t.Unique && n.Sign() == 0 {
		n.Set(amount)
	}
	return raw(n.String())
}

// all returns as much as the player owns, or almost: at the rate of the order, it is worth a
// whole number of tokens.
func (t *trial) all() json.Number {
	var step big.Int
	step.GCD(nil, nil, big.NewInt(t.Amount), big.NewInt(t.Tokens))
	step.Quo(big.NewInt(t.Amount), &step)
	n := t.before.of(t.asset)
	whole := new(big.Int).Quo(n.Num(), new(big.Int).Mul(n.Denom(), &step))
	return raw(whole.Mul(whole, &step).String())
}
