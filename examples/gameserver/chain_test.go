package main

import (
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

func TestAResultCountsOnlyIfTheChainSaysTheSame(t *testing.T) {
	i := newIncident(t)
	s := login(t, i.server.url, "alice")
	owns := func(when, want string) {
		t.Helper()
		equal(t, "what the player owns "+when, owned(t, i.service, s), want)
	}
	sponsored := ramptest.TransactionType(7)
	must(i.mint(s, ramptest.TransactionFails(), sponsored))(t)
	owns("after validate", "1000000/9990")
	i.service.FailRPC(-32601)
	i.service.Advance(time.Minute)
	owns("after a result that was not confirmed", "1000000/9990")
	i.service.Advance(time.Hour)
	owns("after the result", "1000000/10000")

	// A failure that the ramp did not pay for waits for a person, and a burn is paid.
	must(i.mint(s, ramptest.TransactionFails()))(t)
	must(i.service.Burn(t.Context(), i.initialize(), s, ramp.NewAmount(2), sponsored))(t)
	i.service.Advance(time.Hour)
	owns("after a failure without proof and a burn", "1000000/10010")
	i.server.log.find(t, "("+rampproof.ErrNotProven.Error()+")")
	if strings.Contains(i.server.log.String(), "unreachable") {
		t.Error(i.server.log)
	}
}
