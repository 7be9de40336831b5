// To make it yours: replace the items.

package main

// The items. Gold and gems are counted, and swords are kept in a table of their own.
const (
	itemGold  = "item_gold"
	itemGem   = "item_gem"
	itemSword = "item_sword"
)

// starting is how many of each counted item a new player owns.
var starting = map[string]int64{itemGold: 1_000_000, itemGem: 10_000}

const maxAmount = 1_000_000_000_000_000 // of an item in one order
