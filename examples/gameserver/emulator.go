// To make it yours: remove this file from a server that you deploy, and what program.go uses of
// it: it is for trying the game without the service.

package main

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

// usage explains what to do with the emulated service.
const usage = `
RAMP_HMAC_KEY is not set, so a token ramp is emulated at %[2]s. Open

  http://%[1]s/play?player=alice

to mint and burn as a player. One token is worth 100 item_gold and 1 item_gem, with
&product=gems 10 item_gem, and with &product=sword a sword, for a token of its own.
`

// emulate sets what is not set, and returns an environment with generated keys. The
// emulated service accepts every token on both networks.
func (s *settings) emulate(getenv func(string) string) func(string) string {
	s.project, s.network = cmp.Or(s.project, "gameserver"), cmp.Or(s.network, ramp.Testnet)
	s.token = cmp.Or(s.token, common.HexToAddress("0x70c3"))
	s.swordToken = cmp.Or(s.swordToken, common.HexToAddress("0x5b0d"))
	var validator [32]byte
	_, _ = rand.Read(validator[:]) // never fails
	generated := map[string]string{"RAMP_HMAC_KEY": rand.Text(), "RAMP_HMAC_KEY_ENCODING": "text",
		"RAMP_HMAC_KEY_PREVIOUS": "",
		"RAMP_VALIDATOR_KEY":     cmp.Or(getenv("RAMP_VALIDATOR_KEY"), hex.EncodeToString(validator[:]))}
	return func(name string) string {
		if value, ok := generated[name]; ok {
			return value
		}
		return getenv(name)
	}
}

// startEmulator starts an emulated token ramp in this process.
func startEmulator(key ramp.HMACKey, signer *ramp.Signer, game, project string) (*ramptest.Service, error) {
	return ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Game: game, ProjectID: project,
		Audit: ramptest.AuditReport,
		Standalone: ramptest.Standalone{Speed: 1, Pages: pages.New(),
			Keys: "gameserver has them, because it runs this emulator"}})
}

// withPlay adds GET /play to what a server answers.
func withPlay(a *api, next http.Handler) http.Handler {
	var sessions sync.Map // the ramp.Session of each player
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/play" || r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		page, err := openPlay(a, &sessions, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		http.Redirect(w, r, page, http.StatusSeeOther)
	})
}

// openPlay does in one link what a game's client does: it logs a player in, asks for a
// UUID and opens the exchange view.
func openPlay(a *api, sessions *sync.Map, r *http.Request) (page string, err error) {
	player := cmp.Or(r.FormValue("player"), "alice")
	// The emulated service gives each session a wallet. Reusing a player's session
	// keeps the wallet.
	kept, _ := sessions.Load(player)
	s, _ := kept.(ramp.Session)
	if a.game.loggedIn(r.Context(), s) != nil { // unknown, or expired
		if s, err = a.game.login(r.Context(), player); err != nil {
			return "", err
		}
		sessions.Store(player, s)
	}
	_, _, page, err = a.open(r.Context(), s.ID, r.FormValue("product"))
	return page, err
}
