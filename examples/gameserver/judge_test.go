package main

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// The judge plays the service over HTTP and kills the server with kill -9 between
// validate and result. Violating a SHOULD fails the test too.
func TestTheJudgeFindsNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		// The judge does not know a rate of two items.
		p := deploy(t, address, "-any-rate", "-project", "project", "-addr", freeAddress(t))
		restart := func(context.Context) error {
			p.kill()
			p.start() // on the same port
			return nil
		}
		target := targetOf(t, p)
		target.Restart, target.Waive = restart, regexp.MustCompile("rate") // it has none
		conformance.Test(t, target)
	})
}

func TestTheJudgeFindsNothingAtARate(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector has watched the judge on each database")
	}
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	p := deploy(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), "-project", "project")
	target := targetOf(t, p)
	target.Asset, target.Amount, target.Tokens = "item_gem", 20, 2
	target.Waive = regexp.MustCompile("^restart$") // TestTheJudgeFindsNothing restarts it
	conformance.Test(t, target)
}

func targetOf(t *testing.T, p *process) conformance.Server {
	t.Helper()
	key := must(ramp.TextKey(hmacKey))(t)
	signer := must(ramp.NewKeySigner(validatorKey))(t)
	return conformance.Server{
		URL:       p.url,
		Key:       key,
		Validator: signer.Address(),
		ProjectID: "project",
		Token:     token,
		Player: func(_ context.Context, name string) (ramp.Session, error) {
			return login(t, p.url, name), nil
		},
		Strict:  true,
		Timeout: time.Minute, // a busy machine is not a server that hangs
	}
}
