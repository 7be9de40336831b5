package main

import (
	"cmp"
	"net/http"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The game trades these tokens on this network unless the flags name others. The
// emulated service accepts every token on both networks.
const (
	emulatedToken      = "0x00000000000000000000000000000000000070c3"
	emulatedSwordToken = "0x0000000000000000000000000000000000005b0d"
	emulatedNetwork    = ramp.Testnet
)

// startEmulator starts an emulated token ramp in this process, for trying the game
// without the service. Remove this file from a server that you deploy.
func startEmulator(key ramp.HMACKey, signer *ramp.Signer, game, project string) (*ramptest.Service, error) {
	return ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Game: game, ProjectID: project, Speed: 1,
		PerToken: true, // the recipe is for one token
		Books:    ramptest.BooksReport})
}

// play does in one link what a game's client does: it logs a player in, asks for a
// UUID and opens the exchange view.
func (a *api) play(w http.ResponseWriter, r *http.Request) {
	player := cmp.Or(r.FormValue("player"), "alice")
	// The emulated service gives each session a wallet. Reusing a player's session
	// keeps the wallet.
	kept, _ := a.played.Load(player)
	s, _ := kept.(ramp.Session)
	if a.game.Authenticate(r.Context(), s) != nil { // unknown, or expired
		var err error
		if s, err = a.game.login(r.Context(), player); err != nil {
			a.fail(w, r, http.StatusBadRequest, "login failed for this player name", err)
			return
		}
		a.played.Store(player, s)
	}
	opened, err := a.open(r.Context(), s, r.FormValue("product"))
	if err != nil {
		a.fail(w, r, http.StatusBadGateway, "the emulated service did not open an exchange", err)
		return
	}
	http.Redirect(w, r, opened.URL, http.StatusSeeOther)
}
