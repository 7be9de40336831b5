package conformance_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// Test must fail the test of a wrong server. That test runs in a separate
// process, so that this one does not fail.
func TestItFailsTheTestOfAWrongServer(t *testing.T) {
	const flag = "RAMPTEST_WRONG_SERVER"
	if os.Getenv(flag) == "" {
		command := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		command.Env = append(os.Environ(), flag+"=1")
		out, err := command.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Contains(t, string(out), "--- PASS: "+t.Name()+"/assets")
		assert.Contains(t, string(out), "--- FAIL: "+t.Name()+"/mint-succeeds", "the game approves, and takes nothing")
		assert.Contains(t, string(out), "cases depend on it: mint-succeeds: MUST (interface 1)")
		assert.Contains(t, string(out), "--- SKIP: "+t.Name()+"/validate-at-once", "which proves nothing before a mint takes its assets")
		assert.Contains(t, string(out), "--- PASS: "+t.Name()+"/result-unknown-again", "a SHOULD is only logged")
		assert.Contains(t, string(out), "SHOULD (interface 6): A result for an unknown order is answered with HTTP 500.")
		assert.Contains(t, string(out), "--- SKIP: "+t.Name()+"/restart")
		return
	}
	key, err := ramp.TextKey("key of the console")
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Game: rich{}, Key: key, Signer: signer})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	conformance.Test(t, conformance.Target{URL: server.URL, Key: key, Validator: signer.Address(), ProjectID: "project-1", Settle: time.Millisecond,
		Player: func(_ context.Context, name string) (ramp.Session, error) {
			return ramp.Session{ID: name, Token: ramp.NewAccessToken("token")}, nil
		}})
}

// rich is a game that approves everything and moves nothing.
type rich struct{}

func (rich) Authenticate(_ context.Context, s ramp.Session) error {
	if s.Token.Reveal() != "token" {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (rich) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(1000)}}}, nil
}

func (rich) Validate(context.Context, ramp.Session, *ramp.ValidateRequest) error { return nil }

func (rich) Result(context.Context, ramp.Session, *ramp.Result) error {
	return nil // and nothing was ever taken
}
