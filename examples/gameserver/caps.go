// This file limits what leaves the game in an hour and in a day, because no bug of the game is mended as
// fast as somebody cashes it out. To make it yours: choose the numbers of -cap, as docs/operations.md says.

package main

import (
	"errors"
	"flag"
	"strconv"
	"strings"
)

// limits are how many of an item may become tokens, in an hour and in a day of the clock, each with the
// one before it. So no 60 minutes, and no 24 hours, have more.
type limits struct{ playerHour, playerDay, allHour, allDay int64 }

// caps are the limits of items.
type caps map[string]limits

// newCaps defines the flag.
func newCaps(flags *flag.FlagSet) caps {
	c := caps{}
	flags.Func("cap",
		"`limits` of what becomes tokens, such as item_gold=5000/20000/200000/1000000: by a player\n"+
			"in an hour and in a day, and by all players; may be repeated", c.set)
	return c
}

func (c caps) set(text string) error {
	item, numbers, _ := strings.Cut(text, "=")
	var list []int64
	for number := range strings.SplitSeq(numbers, "/") {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n <= 0 {
			return errors.New("must be an item, =, and four positive numbers with / between them")
		}
		list = append(list, n)
	}
	if len(list) != 4 || starting[item] == 0 && item != itemSword {
		return errors.New("must be an item of the game, =, and four positive numbers with / between them")
	}
	c[item] = limits{list[0], list[1], list[2], list[3]}
	return nil
}
