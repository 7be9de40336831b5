package main

import (
	"cmp"
	"net/http"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The emulated service accepts every token on both networks. The game trades
// these unless the flags name others.
const (
	emulatedToken   = "0x00000000000000000000000000000000000070c3"
	emulatedNetwork = ramp.Testnet
)

// startEmulator starts a token ramp in this process, for trying the game without
// one. Take this file out of a server that you deploy.
func startEmulator(key ramp.HMACKey, signer *ramp.Signer, game, project string) (*ramptest.Service, error) {
	return ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Game: game, ProjectID: project, Speed: 1,
		PerToken: true, // the recipe is per token
		Books:    ramptest.BooksReport})
}

// play does what a game's client does, in one link: it logs a player in, asks
// for a UUID and opens the exchange view.
func (a *api) play(w http.ResponseWriter, r *http.Request) {
	player := cmp.Or(r.FormValue("player"), "alice")
	// The emulated service gives every session a wallet, so a player keeps both.
	kept, _ := a.played.Load(player)
	s, _ := kept.(ramp.Session)
	if a.game.Authenticate(r.Context(), s) != nil { // unknown, or expired
		var err error
		if s, err = a.game.login(r.Context(), player); err != nil {
			a.fail(w, r, http.StatusBadRequest, "nobody can play under this name", err)
			return
		}
		a.played.Store(player, s)
	}
	opened, err := a.open(r.Context(), s)
	if err != nil {
		a.fail(w, r, http.StatusBadGateway, "the emulated service gave no page", err)
		return
	}
	http.Redirect(w, r, opened.URL, http.StatusSeeOther)
}
