package verdict

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// account is what moved of one asset, what was due, and what had moved at some time.
type account struct{ moved, due, took int64 }

// sentences are those about what a game did, each with what must hold of its figure n.
var sentences = map[string]func(n int64, a account) bool{
	"approved and took %s":           func(n int64, a account) bool { return a.moved == -n },
	"took %s":                        func(n int64, a account) bool { return a.moved == -n },
	"took %s nevertheless":           func(n int64, a account) bool { return a.moved == -n },
	"took %s too much":               func(n int64, a account) bool { return a.due < 0 && n == a.due-a.moved },
	"took %s, and has given it back": func(n int64, a account) bool { return a.moved == 0 && a.took == -n },
	"did not take %s": func(n int64, a account) bool {
		return a.due < 0 && n == -a.due-max(0, -a.moved)
	},
	"gave back %s that it must keep": func(n int64, a account) bool {
		return a.due < 0 && a.took <= a.due && n == a.moved-a.due
	},
	"has not taken %s yet":              func(n int64, a account) bool { return a.moved == 0 && a.due == -n },
	"approved and has not taken %s yet": func(n int64, a account) bool { return a.moved == 0 && a.due == -n },

	"gave %s":                   func(n int64, a account) bool { return a.moved == n },
	"gave %s nevertheless":      func(n int64, a account) bool { return a.moved == n },
	"gave back %s":              func(n int64, a account) bool { return a.moved == 0 && a.took == -n },
	"gave back %s too much":     func(n int64, a account) bool { return a.due == 0 && a.moved == n && a.took < 0 },
	"did not give back %s":      func(n int64, a account) bool { return a.due == 0 && a.moved == -n && a.took <= -n },
	"has not given back %s yet": func(n int64, a account) bool { return a.due == 0 && a.moved == -n },
	"gave %s, although it had taken nothing": func(n int64, a account) bool {
		return a.moved == n && a.took == 0
	},

	"granted %s":                               func(n int64, a account) bool { return a.moved == n },
	"granted %s nevertheless":                  func(n int64, a account) bool { return a.moved == n },
	"granted %s before the tokens were burned": func(n int64, a account) bool { return a.moved == n },
	"granted %s too much": func(n int64, a account) bool {
		return a.due >= 0 && n == a.moved-a.due
	},
	"did not grant %s": func(n int64, a account) bool {
		return a.due > 0 && n == a.due-max(0, a.moved)
	},
	"has not granted %s yet": func(n int64, a account) bool { return a.moved == 0 && a.due == n },
	"granted %s, and has not taken it back yet": func(n int64, a account) bool {
		return a.due == 0 && a.moved == n
	},
}

// Every sentence about every order is read back: its verb and its figure are those of what
// moved, of what was due, and of what the game had taken.
func TestEveryFigureIsTrue(t *testing.T) {
	orders, figures, used := 0, 0, map[string]bool{}
	for o, accounts := range everyOrder {
		orders++
		said := Of(o).Said
		for form, amounts := range read(said) {
			holds := sentences[form]
			require.NotNil(t, holds, "%q in %q", form, said)
			used[form] = true
			for id, n := range amounts {
				figures++
				require.True(t, holds(n, accounts[id]), "%q: %d %s: %+v; %+v", said, n, id, accounts[id], o)
			}
		}
	}
	for form := range sentences {
		assert.True(t, used[form], "no order is described with %q", form)
	}
	assert.Equal(t, 2160, orders)
	assert.Greater(t, figures, 2000)
}

var (
	deed   = regexp.MustCompile(`[Tt]he game ([^.;]*\d (?:gold|xp)[^.;]*)`)
	listed = regexp.MustCompile(`\d+ (?:gold|xp)(?:, \d+ (?:gold|xp))*`)
	figure = regexp.MustCompile(`(\d+) (gold|xp)`)
)

// read reads the sentences about what the game did: their form, with the amounts of each asset.
func read(said string) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for _, clause := range deed.FindAllStringSubmatch(said, -1) {
		form, amounts := listed.ReplaceAllString(clause[1], "%s"), map[string]int64{}
		for _, found := range figure.FindAllStringSubmatch(clause[1], -1) {
			amounts[found[2]], _ = strconv.ParseInt(found[1], 10, 64)
		}
		all[form] = amounts
	}
	return all
}

// everyOrder yields orders of 100 gold: both directions, each end, each progress, and amounts of
// gold and of an asset that is no part of the order.
func everyOrder(yield func(Facts, map[string]account) bool) {
	calls := []struct {
		ends []End
		Calls
	}{
		{[]End{Pending}, Calls{}},
		{[]End{Pending}, Calls{Refused: "It rejected."}},
		{[]End{Succeeded, Reverted}, Calls{Attempts: 1, Status: 500}},
		{[]End{Succeeded, Reverted}, Calls{Attempts: 1, Status: 200, Progress: Confirmed}},
		{[]End{Succeeded, Reverted}, Calls{Attempts: 1, Status: 400, Progress: TurnedDown}},
		{[]End{Succeeded, Reverted}, Calls{Attempts: 20, Status: 500, Progress: GivenUp}},
	}
	for _, mint := range []bool{true, false} {
		for _, c := range calls {
			for _, end := range c.ends {
				for _, gold := range []int64{-200, -150, -100, -50, 0, 50, 100, 150, 200} {
					for _, xp := range []int64{-7, 0, 7} {
						for _, earlier := range []int64{0, 50, 100, 150} {
							o, accounts := orderOf(mint, end, c.Calls, gold, xp, earlier)
							if !yield(o, accounts) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// orderOf returns an order of 100 gold for which gold and xp have moved, and for which the game
// had moved up to earlier gold before, in the direction of the order.
func orderOf(mint bool, end End, calls Calls, gold, xp, earlier int64) (Facts, map[string]account) {
	sign := int64(1)
	if mint {
		sign = -1
	}
	is := func(gold, xp int64) tally.Assets {
		return tally.Assets{}.Plus(tally.Assets{"gold": big.NewRat(gold, 1), "xp": big.NewRat(xp, 1)})
	}
	o := Facts{Mint: mint, Tokens: "1 token", Received: "1 token", Player: "alice",
		Chain: Chain{End: end}, Calls: calls}
	o.Books.Sum, o.Books.Moved = is(sign*100, 0), is(gold, xp)
	most := account{moved: gold, took: sign * max(earlier, sign*gold)}
	other := account{moved: xp, took: sign * max(0, sign*xp)}
	if end == Succeeded || end == Pending && mint && calls.Refused == "" {
		most.due = sign * 100
	}
	if o.Books.Took = is(most.took, other.took); len(o.Books.Took) == 0 {
		o.Books.Took = nil
	}
	return o, map[string]account{"gold": most, "xp": other}
}

// A game that took the price of a mint, and gave it back, took it.
func TestWhoGaveAPriceBackHasTakenIt(t *testing.T) {
	for _, test := range []struct {
		moved, took int64
		want        string
	}{
		{0, 0, "did not take 100 gold"}, {0, -50, "did not take 100 gold"},
		{0, -100, "gave back 100 gold that it must keep"}, {-60, -100, "gave back 40 gold that it must keep"},
	} {
		o := mint(func(o *Facts) {
			o.Chain.End, o.Books.Moved, o.Books.Took = Succeeded, assets(test.moved, 0), assets(test.took, 0)
		})
		assert.Contains(t, Of(o).Said, "The transaction succeeded. The game "+test.want+". It answered")
	}
}

func TestWhatAGameDidIsSaidForEachAsset(t *testing.T) {
	for _, test := range []struct {
		moved tally.Assets
		want  string
	}{
		{assets(100, 0), "The game did not take 100 gold. The game gave 100 gold."},
		{assets(-40, -1), "The game took 1 gem. The game did not take 60 gold."},
		{assets(-150, 2), "The game gave 2 gem. The game took 50 gold too much."},
	} {
		t.Run(fmt.Sprint(test.moved), func(t *testing.T) {
			o := mint(func(o *Facts) { o.Chain.End, o.Books.Moved, o.Books.Took = Succeeded, test.moved, nil })
			assert.Contains(t, Of(o).Said, "The transaction succeeded. "+test.want+" It answered")
		})
	}
}
