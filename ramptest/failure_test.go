package ramptest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Who reads a log in a CI system sees its end, and not 3,000 lines above it.
func TestOneLossAmong500OrdersIsReadInOneBreath(t *testing.T) {
	const orders, lost = 500, 321
	v := newVault()
	v.result = func(v *vault, s ramp.Session, r *ramp.Result) error {
		if v.orders[r.UUID].request.Intent.From[0].Amount.String() == fmt.Sprint(lost) {
			return nil // never given back
		}
		return v.finish(s, r)
	}
	p := play(t, v, func(c *ramptest.Config) { c.Settle = -1 })
	p.test.panics = true
	var id string
	for i := range orders {
		v.owns[fmt.Sprint("player-", i)] = map[string]int64{"item_gold": 1000}
		o := p.goldOrder(t, fmt.Sprint("player-", i), false, int64(i+1), ramptest.TransactionFails())
		if i+1 == lost {
			id = o.UUID.String()[:8]
		}
	}
	p.service.Advance(time.Minute)
	failed, said := p.test.end()
	require.True(t, failed)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	want := "ramptest: player of player-320's mint " + id + " failed on chain: the game must give back 321 item_gold: "
	assert.Less(t, len(lines), 30, said)
	assert.True(t, strings.HasPrefix(lines[0], want), lines[0])
	assert.Equal(t, lines[0], lines[len(lines)-1], "what was found is last, too")
	assert.Contains(t, said, "took 321 item_gold")
	assert.NotContains(t, said, "took 320 item_gold")
	assert.Regexp(t,
		`\nand [0-9]{4} other events; t.Log\(service.Timeline\(\)\) at the end of the test shows all\n`, said)
}

// A test that fails by itself also shows how its last order went, and no more.
func TestATestThatFailsByItselfShowsTheLastEvents(t *testing.T) {
	v := newVault()
	p := play(t, v)
	v.owns["alice"] = map[string]int64{"item_gold": 1_000_000}
	var last string
	for range 20 {
		last = p.goldOrder(t, "alice", false, 7, ramptest.TransactionFails()).UUID.String()[:8]
		p.service.Advance(time.Minute)
	}
	p.test.Error("it asserts something else")
	failed, said := p.test.end()
	require.True(t, failed)
	assert.Less(t, len(strings.Split(said, "\n")), 20, said)
	assert.Regexp(t, `result +`+last+`.* 200 `, said)
	assert.Contains(t, said, "other events; t.Log(service.Timeline())")
}
