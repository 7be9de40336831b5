package main

import (
	"context"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

// The judge plays the service over HTTP, with kill -9 between validate and
// result. A SHOULD counts too.
func TestTheJudgeFindsNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		key, err := ramp.TextKey(hmacKey)
		check(t, err)
		signer, err := ramp.NewKeySigner(validatorKey)
		check(t, err)
		// The judge knows no rate.
		p := deploy(t, address, "-recipe", "any", "-project", "project")
		p.args = append(p.args, "-addr", strings.TrimPrefix(p.url, "http://"))
		restart := func(context.Context) error {
			p.kill()
			p.start() // on the port that it had
			return nil
		}
		check(t, restart(t.Context()))
		ramptest.Conformance(t, conformance.Target{
			URL:       p.url,
			Key:       key,
			Validator: signer.Address(),
			ProjectID: "project",
			Token:     token,
			Player: func(_ context.Context, name string) (ramp.Session, error) {
				return login(t, p.url, name), nil
			},
			Restart: restart,
			Strict:  true,
		})
	})
}
