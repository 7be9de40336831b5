package support_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/support"
)

// Each row of the table in docs/on-call.md, and each order that needs none of them.
func TestTheNextStep(t *testing.T) {
	accepted := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	later := accepted.Add(14 * time.Hour)
	other := uuid.MustParse("0b9b1a68-6c6c-4a4c-9b4c-0f2b4f0a1111")
	one := func(n byte, change ...func(*support.Candidate)) support.Candidate {
		c := support.Candidate{Hash: common.Hash{31: n}, Time: accepted.Add(time.Minute)}
		for _, change := range change {
			change(&c)
		}
		return c
	}
	unproven := func(c *support.Candidate) { c.Unproven = "somebody else paid for it" }
	objects := func(c *support.Candidate) { unproven(c); c.Objection = "it minted as much" }
	endedOther := func(c *support.Candidate) { c.EndedOther = &other }
	claimed := func(c *support.Candidate) { c.EndedOther, c.Claimed = &other, true }
	equal := func(c *support.Candidate) { c.EndedOther, c.Equal = &other, true }
	batch := func(c *support.Candidate) { c.Batch = true }
	hidden := func(c *support.Candidate) { c.Hidden = "the node answers null" }
	before := func(c *support.Candidate) { c.Time = accepted.Add(-20 * time.Minute) }
	otherAmount := func(c *support.Candidate) { c.OtherAmount = true }
	alsoProves := func(c *support.Candidate) { c.AlsoProves = []uuid.UUID{other} }
	waits := ramp.Order{State: ramp.OrderAccepted, Direction: ramp.Mint, AcceptedAt: accepted}
	with := func(candidates ...support.Candidate) support.Report {
		return support.Report{Order: waits, Candidates: candidates}
	}
	refused := func(r support.Report) support.Report {
		r.Refusal = &ramp.Refusal{Count: 3, Reason: "the purse is full"}
		return r
	}
	rows := 0
	table, err := os.ReadFile("../docs/on-call.md")
	require.NoError(t, err)
	const several = "several prove it, or one proves it with another amount"
	for _, c := range []struct {
		row    string // of the document, or "" if it has none
		report support.Report
		at     time.Time
		next   support.NextStep
		tx     byte // of Tx
	}{
		{`one "proves that the order has ended so"`, with(one(1), one(2, unproven)), later, support.NextFinish, 1},
		{several, with(one(1), one(2)), later, support.NextAskService, 1},
		{several, with(one(1, otherAmount)), later, support.NextAskService, 1},
		{several, with(one(1, alsoProves)), later, support.NextAskService, 1},
		{"one has ended another order, and moved enough for both", with(one(1, endedOther, batch)), later,
			support.NextBatch, 1},
		{"", with(one(1, endedOther, batch, alsoProves)), later, support.NextAskService, 1},
		{"", with(one(1, endedOther, batch, unproven)), later, support.NextAskService, 1},
		{"one has ended another order", with(one(1, endedOther)), later, support.NextOtherOrder, 1},
		{"one has ended another order, which is equal", with(one(1, equal)), later, support.NextAbandon, 1},
		{"", with(one(1, equal), one(2, endedOther)), later, support.NextOtherOrder, 2},
		{"", with(one(1, equal), one(2)), later, support.NextFinish, 2},
		{"another order has claimed one", with(one(1, claimed)), later, support.NextOtherOrder, 1},
		{"one has ended another order", with(one(1, endedOther), one(2)), later, support.NextFinish, 2},
		{`one "does not prove", but abandoning fails because of it`, with(one(1, objects)), later,
			support.NextAskService, 1},
		{`one "does not prove", and abandoning does not fail because of it`, with(one(1, unproven)), later,
			support.NextAskService, 1},
		{"there is none", with(), later, support.NextAbandon, 0},
		{"there is none, and the chain stood still", support.Report{Order: waits, ChainHours: new(int)}, later,
			support.NextWait, 0},
		{`"there may be others"`, support.Report{Order: waits, Incomplete: "the node is behind"}, later,
			support.NextAskNode, 0},
		{`one that the node "does not return"`, with(one(1), one(2, hidden)), later, support.NextAskNode, 2},
		{"one is older than the order", with(one(1, before)), later, support.NextCompareClocks, 1},
		{"the chain cannot be read", support.Report{Order: waits, Unread: "connection refused"}, later,
			support.NextAskNode, 0},

		{"", with(one(1)), accepted.Add(time.Hour), support.NextWait, 0},
		{"", support.Report{Order: waits, Refusal: &ramp.Refusal{Count: 3, Reason: "the purse is full"}},
			accepted.Add(time.Hour), support.NextCorrect, 0},
		{"", refused(with(one(1))), later, support.NextCorrect, 1},
		{"there is none", refused(with()), later, support.NextAbandon, 0}, // of which an abandon was refused once
		{"one has ended another order", refused(with(one(1, endedOther))), later, support.NextOtherOrder, 1},
		{"the chain cannot be read", refused(support.Report{Order: waits, Unread: "connection refused"}), later,
			support.NextAskNode, 0},
		{"", support.Report{Order: ramp.Order{State: ramp.OrderAbandoned}}, later, support.NextNothing, 0},
	} {
		advice := support.Advise(&c.report, c.at)
		assert.Equal(t, c.next, advice.Next, c.row)
		if c.report.Refusal != nil {
			assert.Contains(t, advice.Do, "the purse is full", c.row)
		}
		if c.row != "" {
			rows++
			assert.Contains(t, string(table), "\n| "+c.row+" | ")
		}
		if c.tx == 0 {
			assert.Nil(t, advice.Tx, c.row)
		} else if assert.NotNil(t, advice.Tx, c.row) {
			assert.Equal(t, common.Hash{31: c.tx}, *advice.Tx, c.row)
		}
		assert.NotEmpty(t, advice.Do)
		assert.NotEmpty(t, advice.Tell)
	}
	_, list, _ := strings.Cut(string(table), "\n| the candidates | what to do | what happens |\n|---|---|---|\n")
	list, _, _ = strings.Cut(list, "\n\n")
	assert.Equal(t, strings.Count(list, "\n")+1, rows-6, "rows of the document; six are tried otherwise, too")
}

// What a player is told is true of the order, and names no other.
func TestWhatAPlayerIsTold(t *testing.T) {
	hash := common.Hash{31: 7}.Hex()
	for _, c := range []struct {
		order ramp.Order
		tell  string
	}{
		{ramp.Order{Direction: ramp.Mint, State: ramp.OrderAccepted}, "its assets are kept until it is known"},
		{ramp.Order{Direction: ramp.Burn, State: ramp.OrderAccepted}, "has not moved anything in the game yet"},
		{ramp.Order{Direction: ramp.Mint, State: ramp.OrderSucceeded, UserAddress: "0xA1", TxHash: hash},
			"Your tokens were sent to 0xA1, by transaction " + hash},
		{ramp.Order{Direction: ramp.Mint, State: ramp.OrderFailed, TxHash: hash}, "what it had taken is back"},
		{ramp.Order{Direction: ramp.Mint, State: ramp.OrderAbandoned}, "what it had taken is back"},
		{ramp.Order{Direction: ramp.Burn, State: ramp.OrderSucceeded, TxHash: hash},
			"you have what they are worth in the game"},
		{ramp.Order{Direction: ramp.Burn, State: ramp.OrderFailed, TxHash: hash}, "Your tokens were not taken"},
		{ramp.Order{Direction: ramp.Mint, State: ramp.OrderFailed, Settled: "by mail, ticket 17"},
			"in another way: by mail, ticket 17"},
	} {
		assert.Contains(t, support.Advise(&support.Report{Order: c.order}, time.Time{}).Tell, c.tell)
	}
}
