package conformance_test

import (
	"context"
	"os"
	"regexp"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// A test server runs beside the test, and has a login for new players.
func ExampleTest() {
	TestServer := func(t *testing.T) {
		conformance.Test(t, conformance.Server{
			URL:       "http://127.0.0.1:8080",
			Key:       must.Get(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")))(t),
			Validator: common.HexToAddress("0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb"),
			ProjectID: "project-1",
			Player:    login,
			Token:     "0x00000000000000000000000000000000000070c3",
			Asset:     "item_gold",
			Amount:    100, // for 1 token, at the rate of the game
			Tokens:    1,
			Waive:     regexp.MustCompile("^restart$"), // or set Restart
		})
	}
	_ = TestServer
}

// login logs in as the players of the game do.
func login(_ context.Context, name string) (ramp.Session, error) {
	return ramp.Session{ID: name, Token: ramp.NewAccessToken("the token of " + name)}, nil
}
