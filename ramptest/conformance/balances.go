package conformance

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
)

// holding is a balance that the server reports.
type holding struct {
	id      string
	balance *big.Rat
	raw     json.RawMessage // of the balance
}

// decimal is what the interface calls a decimal string (2.4).
var decimal = regexp.MustCompile(`^-?[0-9]{1,100}(\.[0-9]{1,100})?$`)

// holdings asks for a player's assets. It reads what it can: the cases of
// section 2.4 look closer.
func (t *trial) holdings(s ramp.Session) []holding {
	a := t.assets(s)
	if !t.answered(a) {
		return nil
	}
	var data struct {
		V1 struct {
			Wallet any `json:"wallet_address"`
			Assets []struct {
				ID      json.RawMessage `json:"id"`
				Balance json.RawMessage `json:"balance"`
			} `json:"assets"`
		} `json:"v1"`
	}
	if !a.succeeded() || json.Unmarshal(a.envelope["data"], &data) != nil {
		t.fail("assets: "+a.String(), "success true and the player's assets in data.v1.assets")
		return nil
	}
	if address, _ := data.V1.Wallet.(string); common.IsHexAddress(address) {
		t.wallets[s.ID] = address
	}
	all := make([]holding, 0, len(data.V1.Assets))
	for _, asset := range data.V1.Assets {
		var id string
		if json.Unmarshal(asset.ID, &id) != nil && len(asset.ID) > 0 {
			t.fail("assets: an id that is no JSON string", "the asset ID of the console, as a string")
			return nil
		}
		text := strings.Trim(string(asset.Balance), `"`)
		if !decimal.MatchString(text) {
			t.fail("assets: a balance that is no decimal", "a decimal string")
			return nil
		}
		balance, _ := new(big.Rat).SetString(text)
		all = append(all, holding{id, balance, asset.Balance})
	}
	return all
}

// owned is the balance of an asset, 0 when it is not listed.
func owned(all []holding, id string) *big.Rat {
	sum := new(big.Rat)
	for _, h := range all {
		if h.id == id {
			sum.Add(sum, h.balance)
		}
	}
	return sum
}

func (t *trial) balance(s ramp.Session) *big.Rat { return t.balanceOf(s, t.asset) }

func (t *trial) balanceOf(s ramp.Session, asset string) *big.Rat { return owned(t.holdings(s), asset) }

// moved wants the player's balance to have changed by so many amounts of an
// order since the case began: moved(-1) after a mint, moved(0) for nothing.
func (t *trial) moved(amounts int64) {
	t.movedBy(new(big.Rat).SetInt64(amounts * t.target.Amount))
}

func (t *trial) movedBy(want *big.Rat) { t.movedFor(t.player, t.before, want) }

// movedFor wants a player to own so much more than before.
func (t *trial) movedFor(s ramp.Session, before, want *big.Rat) {
	t.movedOf(s, t.asset, before, want)
}

// movedOf wants a player to own so much more of an asset than before.
func (t *trial) movedOf(s ramp.Session, asset string, before, want *big.Rat) {
	after, right := t.settled(s, asset, func(now *big.Rat) bool { return new(big.Rat).Sub(now, before).Cmp(want) == 0 })
	if t.err == nil && !right {
		t.fail(fmt.Sprintf("a balance that moved by %s (%s before, %s after)", show(new(big.Rat).Sub(after, before)), show(before), show(after)),
			"a balance that moved by "+show(want))
	}
}

// settled waits until a balance is right, for as long as Target.Settle. Where
// effects are known to follow their answers, what is right must be so still
// when one more effect could have come.
func (t *trial) settled(s ramp.Session, asset string, right func(*big.Rat) bool) (now *big.Rat, ok bool) {
	const first, most = 5 * time.Millisecond, 100 * time.Millisecond
	began, wait := time.Now(), first
	for now = t.balanceOf(s, asset); t.err == nil && !right(now); now = t.balanceOf(s, asset) {
		if time.Since(began) >= t.target.Settle {
			return now, false
		}
		t.pause(wait)
		wait = min(2*wait, most)
	}
	if wait > first {
		t.judge.lag = max(t.judge.lag, time.Since(began))
	}
	if t.judge.lag > 0 {
		t.outwait()
		now = t.balanceOf(s, asset)
	}
	return now, right(now)
}

// outwait lets pass what effects have needed so far, and half of that again.
func (t *trial) outwait() { t.pause(min(t.judge.lag+t.judge.lag/2, t.target.Settle)) }

func (t *trial) pause(d time.Duration) {
	if t.err == nil && d > 0 && !sleep(t.ctx, d) {
		t.untried("%w", t.ctx.Err())
	}
}

// still wants the player to own what they owned at a moment of the case.
func (t *trial) still(then *big.Rat) { t.movedFor(t.player, then, new(big.Rat)) }

// now measures what the player owns, when everything has had its effect.
func (t *trial) now() *big.Rat {
	t.outwait()
	return t.balance(t.player)
}

// show writes a number in decimal.
func show(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(30), "0")
}

// times is n amounts of an order.
func (t *trial) times(n int64) json.Number { return number(n * t.target.Amount) }

// raw is a JSON number as it is written.
func raw(text string) json.Number { return json.Number(text) }

// beyond is a quantity that must not be owned, or the case cannot be tried.
func (t *trial) beyond(text string) json.Number {
	if amount, err := ramp.ParseAmount(text); err == nil && t.err == nil && amount.Rat().Cmp(t.before) <= 0 {
		t.skip("the player owns " + text + " and more")
	}
	return raw(text)
}

// of lets an order be about so much of the asset, and about as many tokens as
// that is worth: a game that checks its rate looks at the rest only then. Where
// no decimal says what it is worth, the tokens stay as they are.
func (t *trial) of(amount json.Number) edit {
	asset, token := "intent.from.0.amount", "intent.to.0.amount"
	return func(o order) order {
		if o.body.at("intent.type") == "disassemble" {
			asset, token = token, asset
		}
		o = o.bent(set(asset, amount))
		if exact, err := ramp.ParseAmount(amount.String()); err == nil {
			worth := new(big.Rat).Mul(exact.Rat(), big.NewRat(t.target.Tokens, t.target.Amount))
			if text := show(worth); rat(text).Cmp(worth) == 0 {
				o = o.bent(set(token, raw(text)))
			}
		}
		return o
	}
}

// oneMore is the first whole multiple of an order's amount that is above what
// the player owned at first.
func (t *trial) oneMore() json.Number { return t.multiple(t.before, 1) }

// most is about 3/5 of what the player owned at first, as a whole multiple of
// an order's amount: once it can be taken, twice it cannot.
func (t *trial) most() json.Number {
	return t.multiple(new(big.Rat).Mul(t.before, big.NewRat(3, 5)), 0)
}

// multiple is the multiple of an order's amount that a number reaches, or some
// later one.
func (t *trial) multiple(of *big.Rat, later int64) json.Number {
	amount := big.NewInt(t.target.Amount)
	n := new(big.Int).Quo(of.Num(), new(big.Int).Mul(of.Denom(), amount))
	return raw(n.Add(n, big.NewInt(later)).Mul(n, amount).String())
}

func twice(n json.Number) json.Number {
	r := rat(n.String())
	return raw(show(r.Add(r, r)))
}

func zero() *big.Rat { return new(big.Rat) }
