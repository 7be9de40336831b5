package tally

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// Assets are amounts by asset ID. A missing asset is 0.
type Assets map[string]*big.Rat

// Add adds to the amount of an asset.
func (a Assets) Add(id string, amount *big.Rat) {
	if a[id] = new(big.Rat).Add(a.Of(id), amount); a[id].Sign() == 0 {
		delete(a, id)
	}
}

// Plus returns the sum of a and b.
func (a Assets) Plus(b Assets) Assets { return a.combine(b, (*big.Rat).Add) }

// Minus returns a minus b.
func (a Assets) Minus(b Assets) Assets { return a.combine(b, (*big.Rat).Sub) }

func (a Assets) combine(b Assets, op func(z, x, y *big.Rat) *big.Rat) Assets {
	c := Assets{}
	maps.Copy(c, a)
	for id, amount := range b {
		if c[id] = op(new(big.Rat), c.Of(id), amount); c[id].Sign() == 0 {
			delete(c, id)
		}
	}
	return c
}

// Equal reports whether all amounts are equal.
func (a Assets) Equal(b Assets) bool {
	return len(a) == len(b) && len(a.Minus(b)) == 0
}

// String lists the amounts: "-100 item_gold, +1 item_gem". It is "nothing" if there are
// none.
func (a Assets) String() string {
	if len(a) == 0 {
		return "nothing"
	}
	return strings.Join(a.list(Signed), ", ")
}

// list lists the amounts as format formats them.
func (a Assets) list(format func(*big.Rat) string) (parts []string) {
	for _, id := range a.IDs() {
		parts = append(parts, format(a[id])+" "+redact.Isolate(id))
	}
	return parts
}

// Amounts lists the amounts without signs.
func (a Assets) Amounts() []string {
	return a.list(func(n *big.Rat) string { return Grouped(new(big.Rat).Abs(n)) })
}

// Signed is Grouped, with a plus sign for an amount above 0 and a minus sign, not a hyphen, below.
func Signed(n *big.Rat) string {
	if n.Sign() > 0 {
		return "+" + Grouped(n)
	}
	return strings.Replace(Grouped(n), "-", "−", 1)
}

// Decimal formats an amount without an exponent and without trailing zeros.
func Decimal(n *big.Rat) string {
	if n.IsInt() {
		return n.Num().String()
	}
	return strings.TrimRight(n.FloatString(100), "0") // the most decimals that an amount may have
}

// Grouped is Decimal for a reader: thousands are separated.
func Grouped(n *big.Rat) string { return Group(Decimal(n)) }

// Group separates the thousands of a decimal.
func Group(decimal string) string {
	sign := decimal[:len(decimal)-len(strings.TrimLeft(decimal, "+-"))]
	whole, part, isPart := strings.Cut(decimal[len(sign):], ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if isPart {
		whole += "." + part
	}
	return sign + whole
}

// Of returns the amount of an asset, which the caller must not change.
func (a Assets) Of(id string) *big.Rat {
	if n := a[id]; n != nil {
		return n
	}
	return new(big.Rat)
}

// IDs returns the IDs of the assets, sorted.
func (a Assets) IDs() []string { return slices.Sorted(maps.Keys(a)) }

// sign returns the sign of all amounts, or 0 if there are none or their signs differ.
func (a Assets) sign() (sign int) {
	for _, n := range a {
		if sign != 0 && n.Sign() != sign {
			return 0
		}
		sign = n.Sign()
	}
	return sign
}

// only returns the amounts of the assets that b has.
func (a Assets) only(b Assets) Assets {
	c := Assets{}
	for id := range b {
		if n := a[id]; n != nil {
			c[id] = n
		}
	}
	return c
}

// Covers reports whether a has exactly the amounts of b, of the assets of b.
func (a Assets) Covers(b Assets) bool { return a.only(b).Equal(b) }

// Holds reports whether a has at least the amounts of b, with their signs.
func (a Assets) Holds(b Assets) bool {
	for id, n := range b {
		has := a.Of(id)
		if has.Sign() != n.Sign() || new(big.Rat).Abs(has).Cmp(new(big.Rat).Abs(n)) < 0 {
			return false
		}
	}
	return true
}

// key returns a string that is equal for equal amounts.
func (a Assets) key() string { return fmt.Sprintf("%q", map[string]*big.Rat(a)) }
