// To make it yours: replace it by what your game is. The other files say what of it they need.

package main

// game is the part that a studio writes: its players and their items, on its own tables. It is a
// [ramp.Players], and a [rampbooks.Journal]. Each file has what it does for one subject.
type game struct {
	database
	anyPage bool  // calls may have the login's token, and any UUID
	purse   int64 // how many of each counted item a player can own; more waits in the mailbox
	caps    caps  // of what becomes tokens
}
