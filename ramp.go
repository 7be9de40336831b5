// Package ramp joins a game to a token ramp: a service that turns in-game
// assets into on-chain tokens (mint) and tokens back into assets (burn). It is
// the studio's side of the interface; section numbers in this documentation
// are those of the interface document.
package ramp
