package judge

import (
	"encoding/json"
	"maps"
	"math/big"
	"strings"
)

// difference is how much more a player owns than expected, by asset. It has no entry for
// an asset that is as expected.
type difference map[string]*big.Rat

func (d difference) add(id string, by *big.Rat) {
	sum := plus(d.of(id), by)
	if d[id] = sum; sum.Sign() == 0 {
		delete(d, id)
	}
}

func (d difference) addAll(other difference) {
	for id, by := range other {
		d.add(id, by)
	}
}

func (d difference) of(id string) *big.Rat {
	if r := d[id]; r != nil {
		return r
	}
	return new(big.Rat)
}

func (d difference) equal(other difference) bool {
	return maps.EqualFunc(d, other, func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
}

// show formats a number in decimal.
func show(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(30), "0")
}

// raw returns a JSON number with exactly this text.
func raw(text string) json.Number { return json.Number(text) }

func plus(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

func product(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func rat(text string) *big.Rat {
	r, _ := new(big.Rat).SetString(text)
	return r
}

// scaled returns a multiple of a JSON number.
func scaled(n json.Number, by int64) json.Number {
	return raw(show(product(rat(n.String()), big.NewRat(by, 1))))
}

// tolerance returns how far an amount may be off if the server computes with doubles.
func tolerance(amount, balance *big.Rat) *big.Rat {
	part := product(amount, big.NewRat(1, 1e9))
	return plus(part.Abs(part), product(balance, big.NewRat(1, 1e15)))
}

// power returns 2 to the power of bits, and more.
func power(bits uint, more int64) string {
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	return n.Add(n, big.NewInt(more)).String()
}
