package verdict

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

func assets(gold, gem int64) tally.Assets {
	a := tally.Assets{}
	a.Add("gold", big.NewRat(gold, 1))
	a.Add("gem", big.NewRat(gem, 1))
	return a
}

var later = time.Date(2026, 11, 21, 12, 9, 21, 0, time.UTC)

// mint returns a mint of 100 gold that failed on the chain, and was confirmed and given
// back; change makes it another order.
func mint(change func(*Facts)) Facts {
	o := Facts{Mint: true, Tokens: "3 tokens", Received: "2.94 tokens", Player: "alice",
		Chain: Chain{End: Reverted, Block: later},
		Calls: Calls{Progress: Confirmed, Attempts: 1, Status: 200},
		Books: Books{Sum: assets(-100, 0), Moved: tally.Assets{}, Took: assets(-100, 0)}}
	change(&o)
	return o
}

func burn(change func(*Facts)) Facts {
	return mint(func(o *Facts) {
		o.Mint, o.Books.Sum, o.Books.Took = false, assets(100, 0), nil
		change(o)
	})
}

func TestAnOrderIsDescribed(t *testing.T) {
	open := Calls{Next: later}
	failing := Calls{Attempts: 1, Status: 500, Next: later, Of: "2 of 20"}
	for _, test := range []struct {
		order Facts
		want  string // the sign, the state, "attention", "loss", and the sentence
	}{
		// What a mint moves.
		{mint(func(*Facts) {}), "✓ done: The transaction failed. The game gave back 100 gold."},
		{mint(func(o *Facts) { o.Books.Took = nil }),
			"✓ done: The transaction failed. The game had taken nothing, so nothing was due."},
		{mint(func(o *Facts) { o.Books.Took, o.Books.Vague = nil, true }),
			"✓ done: The transaction failed. The game keeps nothing of the player's."},
		{mint(func(o *Facts) { o.Books.Moved = assets(-100, 0) }),
			"✗ loss attention loss: The transaction failed. The game did not give back 100 gold. It answered HTTP " +
				"200: no further attempt."},
		{mint(func(o *Facts) { o.Books.Moved = assets(100, 0) }),
			"✗ loss attention loss: The transaction failed. The game gave back 100 gold too much. It answered " +
				"HTTP 200: no further attempt."},
		{mint(func(o *Facts) { o.Books.Moved, o.Books.Took = assets(100, 0), nil }),
			"✗ loss attention loss: The transaction failed. The game gave 100 gold, although it had taken " +
				"nothing. It answered HTTP 200: no further attempt."},
		{mint(func(o *Facts) { o.Chain.End, o.Books.Moved = Succeeded, assets(-100, 0) }),
			"✓ done: Done. The game took 100 gold; alice received 2.94 tokens."},
		{mint(func(o *Facts) { o.Chain.End, o.Books.Took = Succeeded, nil }),
			"✗ loss attention loss: The transaction succeeded. The game did not take 100 gold. It answered HTTP " +
				"200: no further attempt."},
		{mint(func(o *Facts) { o.Chain.End, o.Books.Moved = Succeeded, assets(-150, 1) }),
			"✗ loss attention loss: The transaction succeeded. The game gave 1 gem. The game took 50 gold too " +
				"much. It answered HTTP 200: no further attempt."},
		{mint(func(o *Facts) { o.Chain.End, o.Calls, o.Books.Moved = Pending, Calls{}, assets(-100, 0) }),
			"● waiting: The game approved and took 100 gold. The transaction waits for the next block. Next block " +
				"at 12:09:21."},
		{mint(func(o *Facts) { o.Chain.End, o.Calls, o.Books.Took = Pending, Calls{}, nil }),
			"● waiting: The game approved and has not taken 100 gold yet. The transaction waits for the next " +
				"block. Next block at 12:09:21."},
		{mint(func(o *Facts) { o.Chain.End, o.Calls, o.Books.Moved = Pending, Calls{}, assets(-50, 0) }),
			"✗ waiting attention loss: The game approved. The game gave back 50 gold that it must keep. " +
				"The transaction waits for the next block. Next block at 12:09:21."},
		{mint(func(o *Facts) { o.Calls, o.Books.Moved = failing, assets(-100, 0) }),
			"● waiting attention: The transaction failed. The game has not given back 100 gold yet. The game " +
				"answered HTTP 500. Next attempt at 12:09:21 (2 of 20)."},
		{mint(func(o *Facts) { o.Calls, o.Chain.End, o.Books.Took = failing, Succeeded, nil }),
			"● waiting attention: The transaction succeeded. The game has not taken 100 gold yet. The game " +
				"answered HTTP 500. Next attempt at 12:09:21 (2 of 20)."},

		// What a burn moves.
		{burn(func(o *Facts) { o.Chain.Short = "1" }),
			"✓ done: The burn failed: it needs 3 tokens, the wallet held 1. Nothing moved."},
		{burn(func(*Facts) {}), "✓ done: The burn failed on the chain. Nothing moved."},
		{burn(func(o *Facts) { o.Books.Moved = assets(100, 0) }),
			"✗ loss attention loss: The burn failed on the chain. The game granted 100 gold nevertheless. It " +
				"answered HTTP 200: no further attempt."},
		{burn(func(o *Facts) { o.Chain.End, o.Books.Moved = Succeeded, assets(100, 0) }),
			"✓ done: Done. The burn of 3 tokens succeeded; the game granted 100 gold."},
		{burn(func(o *Facts) { o.Chain.End = Succeeded }),
			"✗ loss attention loss: The transaction succeeded. The game did not grant 100 gold. It answered HTTP " +
				"200: no further attempt."},
		{burn(func(o *Facts) { o.Chain.End, o.Books.Moved = Succeeded, assets(200, 0) }),
			"✗ loss attention loss: The transaction succeeded. The game granted 100 gold too much. It answered " +
				"HTTP 200: no further attempt."},
		{burn(func(o *Facts) { o.Chain.End, o.Calls = Succeeded, open }),
			"● waiting: The transaction succeeded. The game has not granted 100 gold yet. The result is sent at " +
				"12:09:21."},
		{burn(func(o *Facts) { o.Chain.End, o.Calls, o.Books.Moved = Pending, Calls{}, assets(100, 0) }),
			"✗ waiting attention loss: The game approved. The game granted 100 gold before the tokens were " +
				"burned. The transaction waits for the next block. Next block at 12:09:21."},

		// How the game answers.
		{mint(func(o *Facts) { o.Calls.Progress, o.Calls.Status = TurnedDown, 400 }),
			"✗ unconfirmed attention: The transaction failed. The game gave back 100 gold. The game rejected the " +
				"result (HTTP 400). It will not be sent again."},
		{mint(func(o *Facts) { o.Calls = Calls{Progress: GivenUp, Attempts: 20, Status: 500} }),
			"✗ unconfirmed attention: The transaction failed. The game gave back 100 gold. Gave up after 20 " +
				"attempts. The game never confirmed."},
		{mint(func(o *Facts) { o.Calls = Calls{Progress: GivenUp, Attempts: 20, Lost: true} }),
			"✗ unconfirmed attention: The transaction failed. The game gave back 100 gold. Gave up after 20 " +
				"attempts. The game never confirmed."},
		{mint(func(o *Facts) { o.Calls.Status = 500 }),
			"! done attention: The transaction failed. The game gave back 100 gold. When the result was sent again, " +
				"the game answered HTTP 500."},
		{mint(func(o *Facts) { o.Calls.Status = 0 }),
			"! done attention: The transaction failed. The game gave back 100 gold. The game did not answer when " +
				"the result was sent again."},
		{mint(func(o *Facts) { o.Calls = Calls{Attempts: 1, Next: later, Of: "2 of 20"} }),
			"● waiting attention: The transaction failed. The game gave back 100 gold. The game did not answer. " +
				"Next attempt at 12:09:21 (2 of 20)."},
		{mint(func(o *Facts) { o.Calls = Calls{Attempts: 1, Lost: true, Next: later, Of: "2 of 20"} }),
			"● waiting: The transaction failed. The game gave back 100 gold. The answer was lost on purpose. Next " +
				"attempt at 12:09:21 (2 of 20)."},
		{mint(func(o *Facts) {
			o.Calls = Calls{Attempts: 1, Lost: true, Wrong: "HTTP 503", Next: later, Of: "2 of 20"}
		}), "● waiting attention: The transaction failed. The game gave back 100 gold. The answer was lost on " +
			"purpose, and it breaks the interface: HTTP 503. Next attempt at 12:09:21 (2 of 20)."},
		{mint(func(o *Facts) { o.Calls.Wrong = "HTTP 503" }),
			"! done attention: The transaction failed. The game gave back 100 gold. Confirmed, but its answer breaks " +
				"the interface: HTTP 503."},
		{mint(func(o *Facts) { o.Calls, o.Books.Moved = Calls{Never: true}, assets(-100, 0) }),
			"● waiting: The transaction failed. The game has not given back 100 gold yet. No result will come, as " +
				"you chose."},
		{mint(func(o *Facts) { o.Calls, o.Books.Moved = Calls{Held: true}, assets(-100, 0) }),
			"● waiting: The transaction failed. The game has not given back 100 gold yet. The result waits for " +
				"the result of another order, as you chose."},
		{mint(func(o *Facts) { o.Calls.Sending, o.Calls.Attempts = true, 2 }),
			"● waiting: Sending the result now (attempt 2)."},
		{mint(func(o *Facts) {
			o.Chain.End, o.Chain.Stays, o.Calls, o.Books.Moved = Pending, true, Calls{}, assets(-100, 0)
		}),
			"● waiting: The game approved and took 100 gold. The transaction stays pending, as you chose. No " +
				"result will come."},

		{mint(func(o *Facts) { o.Calls = Calls{Sending: true, Attempts: 2, Status: 500} }),
			"● waiting attention: Sending the result now (attempt 2)."},

		// What the books do not know, and what they found.
		{mint(func(o *Facts) { o.Books.Why = Off }),
			"? done: The transaction failed. The game confirmed. The books are off, so the game's assets were " +
				"not checked."},
		{mint(func(o *Facts) { o.Books.Why = Overlap }),
			"? unknown attention: The transaction failed. The game confirmed. What the game moved is unknown, " +
				"because it cannot be told apart from other movements of this player's assets."},
		{mint(func(o *Facts) { o.Books.Why = Twins }),
			"? unknown attention: The transaction failed. The game confirmed. What the game moved is unknown, " +
				"because it approved two orders under one UUID."},
		{mint(func(o *Facts) { o.Books.Why, o.Books.Problem = Unread, "HTTP 401." }),
			"? unknown attention: The transaction failed. The game confirmed. What the game moved is unknown, " +
				"because it did not report what the player owns. HTTP 401."},
		{mint(func(o *Facts) { o.Books.Findings = []string{"mint 58dbfbe4: approved, but costs 100 gold"} }),
			"✗ loss attention loss: The transaction failed. The game gave back 100 gold. Earlier, the books " +
				"found: mint 58dbfbe4: approved, but costs 100 gold."},

		// Two outcomes.
		{mint(func(o *Facts) {
			o.Calls.Status = 400
			o.Books.Dispute = &Dispute{First: Reverted, Stands: Reverted, Other: Statement{Made: true, Status: 400}}
		}),
			`✓ done: The game confirmed the outcome "failed", and rejected "succeeded". The game gave back 100 gold.`},
		{mint(func(o *Facts) {
			o.Books.Dispute = &Dispute{First: Succeeded, Stands: Reverted, Other: Statement{Made: true, Status: 500}}
		}),
			`✓ done: The game confirmed the outcome "failed", and did not confirm "succeeded". The game gave back ` +
				"100 gold."},
		{mint(func(o *Facts) {
			o.Books.Moved = assets(-100, 0)
			o.Books.Dispute = &Dispute{First: Reverted, Stands: Reverted,
				Other: Statement{Made: true, Confirmed: true, Status: 200}}
		}),
			"✗ disputed attention loss: Disputed. The game confirmed two outcomes, of which the first stands: " +
				"failed. The game did not give back 100 gold."},
		{mint(func(o *Facts) {
			o.Calls.Status, o.Books.Why = 400, Overlap
			o.Books.Dispute = &Dispute{First: Reverted, Stands: Reverted, Other: Statement{Made: true, Status: 400}}
		}), `? unknown attention: The game confirmed the outcome "failed", and rejected "succeeded". ` +
			"What the game moved is unknown, because it cannot be told apart from other movements of this " +
			"player's assets."},
		{mint(func(o *Facts) {
			o.Calls = failing
			o.Books.Dispute = &Dispute{First: Succeeded, Other: Statement{Made: true}}
		}),
			"● waiting attention: Results stated two outcomes, and the game has confirmed neither. The game " +
				"answered HTTP 500. Next attempt at 12:09:21 (2 of 20)."},
		{mint(func(o *Facts) {
			o.Calls = failing
			o.Books.Dispute = &Dispute{First: Succeeded}
		}),
			"● waiting attention: The result said succeeded, but the transaction failed. The game has not " +
				"confirmed it. The game answered HTTP 500. Next attempt at 12:09:21 (2 of 20)."},
		{mint(func(o *Facts) {
			o.Books.Moved = assets(-100, 0)
			o.Books.Dispute = &Dispute{First: Succeeded, Stands: Succeeded}
		}),
			"! done: The game confirmed a result that said succeeded, but the transaction failed. The game took " +
				"100 gold."},
	} {
		v := Of(test.order)
		assert.Equal(t, test.want, sketch(v.Tone, v.State, v.Attention, v.Loss, v.String()))
	}
}

func sketch(tone Tone, state State, attention, loss bool, text string) string {
	got := tone.Sign() + " " + string(state)
	if attention {
		got += " attention"
	}
	if loss {
		got += " loss"
	}
	return got + ": " + text
}

// everything calls try with every combination that a service can reach.
func everything(try func(Facts)) {
	everyCall := func(end End, try func(Calls)) {
		if end == Pending {
			try(Calls{})
			return
		}
		for _, c := range []Calls{{Next: later}, {Never: true}, {Held: true}, {}} {
			try(c)
		}
		for _, c := range []Calls{
			{Status: 500, Next: later, Of: "2 of 20"}, {Next: later, Of: "2 of 20"},
			{Lost: true, Next: later, Of: "2 of 20"}, {Status: 503},
			{Progress: Confirmed, Status: 200}, {Progress: Confirmed, Status: 500}, {Progress: Confirmed},
			{Progress: Confirmed, Lost: true},
			{Progress: TurnedDown, Status: 400}, {Progress: TurnedDown, Status: 503}, {Progress: GivenUp, Status: 500},
			{Progress: GivenUp},
			{Sending: true, Status: 500}, {Sending: true, Progress: Confirmed, Status: 200},
			{Sending: true, Progress: GivenUp},
		} {
			c.Attempts = 2
			try(c)
		}
	}
	everyBook := func(mint bool, try func(Books)) {
		sum := assets(100, 1)
		if mint {
			sum = assets(-100, -1)
		}
		for _, why := range []Why{Off, Unread, Overlap, Twins} {
			try(Books{Why: why, Sum: sum})
		}
		for _, moved := range []tally.Assets{{}, sum, sum.Plus(sum), assets(50, 0), assets(-50, 0),
			tally.Assets{}.Minus(sum), {"iron": big.NewRat(1, 1)}} {
			took := tally.Assets{}
			for id, n := range moved {
				if n.Sign() == sum["gold"].Sign() {
					took[id] = n
				}
			}
			for _, b := range []Books{{Took: took}, {Took: sum}, {Took: took, Vague: true},
				{Took: took, Findings: []string{"mint 1: something is wrong"}}} {
				b.Sum, b.Moved = sum, moved
				try(b)
			}
		}
	}
	everyDispute := func(end End, c Calls, b Books, try func(*Dispute)) {
		try(nil)
		if c.Attempts == 0 || b.Vague || b.Findings != nil { // which a dispute does not change
			return
		}
		other := map[End]End{Reverted: Succeeded, Succeeded: Reverted}
		if c.Progress != Confirmed {
			try(&Dispute{First: other[end]})
			for _, first := range []End{Reverted, Succeeded} {
				try(&Dispute{First: first, Other: Statement{Made: true, Status: c.Status}})
			}
			return
		}
		try(&Dispute{First: other[end], Stands: other[end]})
		for _, first := range []End{Reverted, Succeeded} {
			for _, stands := range []End{Reverted, Succeeded} {
				for _, s := range []Statement{{Status: 400}, {Status: 200, Confirmed: true}} {
					s.Made = true
					try(&Dispute{First: first, Stands: stands, Other: s})
				}
			}
		}
	}
	for _, mint := range []bool{true, false} {
		for _, chain := range []Chain{{}, {Stays: true}, {End: Succeeded}, {End: Reverted},
			{End: Reverted, Short: "1"}} {
			if mint && chain.Short != "" {
				continue
			}
			chain.Block = later
			everyCall(chain.End, func(calls Calls) {
				everyBook(mint, func(b Books) {
					everyDispute(chain.End, calls, b, func(d *Dispute) {
						b.Dispute = d
						try(Facts{Mint: mint, Tokens: "3 tokens", Received: "2.94 tokens", Player: "alice",
							Chain: chain, Calls: calls, Books: b})
					})
				})
			})
		}
	}
}

// No sentence may say what is not true, whatever has happened.
func TestEveryOrderGetsATrueSentence(t *testing.T) {
	whole := regexp.MustCompile(`^[A-Z][^%!]*\.$`)
	claims := regexp.MustCompile(
		`The game (approved and |took|gave|granted|did not (take|give|grant)|has not (taken|given|granted))`)
	tried, said := 0, map[string]bool{}
	everything(func(o Facts) {
		tried++
		v := Of(o)
		said[v.Said] = true
		holds := func(rule string, held bool) {
			if !held {
				t.Fatalf("%s: %+v: %+v", rule, o, v)
			}
		}
		b, d := o.Books, o.Books.Dispute
		end, decided := o.Chain.End, true
		if d != nil {
			end, decided = d.Stands, d.Stands != Pending
		}
		due := tally.Assets{}
		if end == Succeeded {
			due = b.Sum
		}
		known := b.Why == Known && decided
		settled := known && end != Pending && b.Moved.Equal(due)
		owed := known && end != Pending && o.Calls.Progress != Open && !settled
		says := func(text string) bool { return strings.Contains(v.Said, text) }

		holds("there is a sentence", whole.MatchString(v.Said) && !strings.Contains(v.String(), "  "))
		holds("a next step means that the order waits", v.Next.At.IsZero() || v.State == Waiting || v.State == Disputed)
		holds("green means that all is right", v.Tone != Good ||
			settled && o.Calls.Progress == Confirmed && (d == nil || !d.both()) && len(b.Findings) == 0 &&
				!v.Attention && !v.Loss)
		holds("a loss is said", !(owed || len(b.Findings) > 0) || v.Loss && v.Attention && v.Tone == Bad)
		holds("no loss is made up", !v.Loss || known && !settled || len(b.Findings) > 0)
		holds("HTTP 500 needs attention, unless an outcome stands", o.Calls.Status < 500 || v.Attention || d != nil &&
			d.Stands != Pending || o.Calls.Contrary)
		holds("an order is disputed if the game confirmed two outcomes", d == nil ||
			(v.State == Disputed) == d.both() && (!d.both() || v.Attention))
		holds("what is unknown in the end needs attention", b.Why == Known || b.Why == Off || v.State != Done)
		holds("what was done on purpose is nobody's failure",
			!(o.Calls.Lost && !o.Calls.Sending && settled && d == nil && len(b.Findings) == 0) || !v.Attention)
		holds("the game gives back only what it took", !says("gave back") || len(b.Took) > 0)
		holds("nothing is nothing", !says("taken nothing") && !says("Nothing moved") || known &&
			len(b.Took) == 0 && !b.Vague)
		holds("tokens come with a success", !says("received") && !says("Done.") || o.Chain.End == Succeeded)
		holds("what is unknown is not said", known || !claims.MatchString(v.Said))

		before := assets(1000, 1000)
		other := assets(7, 0) // moves outside of the order
		for _, r := range Rows(o, before, before.Plus(b.Moved).Plus(other)) {
			holds("a row is judged if the balances are known", known == (r.Tone != Unclear) &&
				known == (r.Due != "" && r.Moved != ""))
			holds("other movements are shown apart",
				(r.Aside == "outside of this order: +7") == (known && r.ID == "gold"))
			holds("a tick means that the order moved what is due", !known || (r.Tone == Good) == (r.Due == r.Moved))
			holds("what is due is that of the outcome", !known || end == Pending ||
				r.Due == tally.Signed(due.Of(r.ID)))
			holds("what an order moved is not what others moved", !known || r.Moved == tally.Signed(b.Moved.Of(r.ID)))
			holds("the balances are those of the game", r.Before == decimal(before, r.ID) &&
				r.Now == decimal(before.Plus(b.Moved).Plus(other), r.ID))
			holds("a loss is in the rows", !owed || b.Moved.Minus(due)[r.ID] == nil || r.Tone == Bad)
		}
		for _, r := range Rows(o, nil, nil) {
			holds("without balances, nothing is claimed", r.Tone == Unclear && r.Before+r.Now+r.Due+r.Moved == "")
		}
	})
	t.Logf("%d orders, %d sentences", tried, len(said))
	require.Greater(t, tried, 1000)
}

func TestTheTokensComeFromTheChain(t *testing.T) {
	n := func(text string) *big.Rat { r, _ := new(big.Rat).SetString(text); return r }
	for _, test := range []struct {
		end                End
		before, now, moved string
		fee                string
		want               Row
	}{
		{Succeeded, "1000", "1000.99", "0.99", "",
			Row{"tokens", "+0.99", "+0.99", Good, "", "1,000", "1,000.99", ""}},
		{Succeeded, "1000", "1000.99", "0.99", "1%",
			Row{"tokens", "+0.99", "+0.99", Good, "after the fee of 1%", "1,000", "1,000.99", ""}},
		{Succeeded, "1000", "999.99", "0.99", "",
			Row{"tokens", "+0.99", "+0.99", Good, "", "1,000", "999.99", "outside of this order: −1"}},
		{Reverted, "1000", "1000", "0", "1%", Row{"tokens", "0", "0", Good, "", "1,000", "1,000", ""}},
		{Pending, "1000", "1001", "0", "",
			Row{"tokens", "", "0", Wait, "not decided yet", "1,000", "1,001", "outside of this order: +1"}},
	} {
		assert.Equal(t, test.want, Tokens(test.end, n(test.before), n(test.now), n(test.moved), test.fee))
	}
	assert.Equal(t, Row{ID: "tokens", Now: "5", Tone: Unclear, Note: "unknown"},
		Tokens(Pending, nil, n("5"), n("0"), ""))
}

func TestAListOfAssetsIsShort(t *testing.T) {
	many := tally.Assets{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		many.Add(id, big.NewRat(-1, 2))
	}
	assert.Equal(t, "0.5 a, 0.5 b, 0.5 c, 2 other assets", amounts(many))
	assert.Equal(t, "nothing", amounts(nil))
}

func TestLacksNamesOnlyWhatIsKnownToBeTooLittle(t *testing.T) {
	takes, none := assets(100, 5), new(big.Rat)
	for _, test := range []struct {
		owned  tally.Assets
		listed []string
		want   string
	}{
		{nil, nil, ""},
		{assets(100, 5), nil, ""},
		{tally.Assets{"gold": none}, nil, "the order takes 100 gold; the player owned 0 gold"}, // gem is unknown
		{tally.Assets{"gold": none, "gem": big.NewRat(9, 2)}, []string{"gem", "gold"},
			"the order takes 5 gem, 100 gold; the player owned 4.5 gem, 0 gold"},
		{assets(1000, 4), []string{"gem", "gold"}, "the order takes 5 gem; the player owned 4 gem"},
		{tally.Assets{"gold": none}, []string{"item_gold", "gem"},
			"the order takes 100 gold; the game lists item_gold, gem, not gold"},
		{tally.Assets{"gold": none}, []string{"a", "b", "c", "d"},
			"the order takes 100 gold; the game lists a, b, c, …, not gold"},
	} {
		assert.Equal(t, test.want, Lacks(takes, test.owned, test.listed))
	}
}

func TestACallIsDescribed(t *testing.T) {
	for _, test := range []struct {
		call Call
		want string
	}{
		{Call{Kind: Initialize, Status: 200, Success: true}, "✓ done: A UUID was issued."},
		{Call{Kind: Initialize, Status: 500, Code: "invalid mac"},
			"✗ failed attention: No UUID was issued: invalid mac."},
		{Call{Kind: Initialize, Status: 503, Trap: Scripted, Fault: "unavailable"},
			"– failed: Failed on purpose: unavailable."},
		{Call{Kind: Assets, Status: 200, Success: true}, "✓ done: The game listed the assets."},
		{Call{Kind: Assets, Status: 401, Code: "INVALID_USER"},
			"✗ failed attention: The game rejected the call with HTTP 401 and INVALID_USER."},
		{Call{Kind: Assets, Problem: "connection refused"},
			"✗ failed attention: The game did not answer: connection refused."},
		{Call{Kind: Assets, Canceled: true, Problem: "canceled"}, "– failed: The caller did not wait for the answer."},
		{Call{Kind: Validate, Status: 200, Success: true}, "✓ done: Approved."},
		{Call{Kind: Validate, Status: 200, Code: "INVALID_BALANCE"},
			"– rejected: Rejected by the game: INVALID_BALANCE. No transaction was made."},
		{Call{Kind: Validate, Status: 200, Code: "INVALID_BALANCE",
			Lacks: "the order takes 9 gold; the player owned 1 gold"},
			"– rejected: Rejected by the game: INVALID_BALANCE. The order takes 9 gold; the player owned 1 gold. " +
				"No transaction was made."},
		{Call{Kind: Validate, Status: 500, Code: "INTERNAL"},
			"✗ failed attention: The game failed with HTTP 500 and INTERNAL."},
		{Call{Kind: Validate, Status: 200, Problem: "success is no boolean"},
			"✗ failed attention: The answer breaks the interface: success is no boolean."},
		{Call{Kind: Validate, Status: 404, Problem: "no JSON object"},
			"✗ failed attention: The game rejected the call with HTTP 404. No transaction was made."},
		{Call{Kind: Validate, Status: 200, Code: "BUSY", Trap: AtOnce},
			"– rejected: Rejected by the game: BUSY. Another of the calls at once must be approved."},
		{Call{Kind: Validate, Status: 200, Code: "BUSY", Trap: Repeated},
			"– rejected: Rejected by the game: BUSY. The service has the approval already, so nothing is lost."},
		{Call{Kind: Validate, Status: 200, Success: true, Lost: true},
			"● waiting: The answer was lost on purpose: HTTP 200."},
		{Call{Kind: Validate, Status: 200, Code: "INVALID_MESSAGE", Trap: Digest},
			"✓ rejected: Check passed: the game rejected an order with another digest under the same UUID."},
		{Call{Kind: Validate, Status: 200, Success: true, Trap: Amount},
			"✗ failed attention: The game approved an order with another amount under the same UUID."},
		{Call{Kind: Validate, Status: 200, Code: "INVALID_TOKEN", Trap: OffTerms},
			"✓ rejected: Check passed: the game rejected an order off the terms of its UUID."},
		{Call{Kind: Validate, Status: 500, Code: "INTERNAL", Trap: Digest},
			"✗ failed attention: The game failed with HTTP 500 and INTERNAL."},
		{Call{Kind: Validate, Status: 401, Code: "HMAC_INVALID", Trap: Forged, Fault: "tampered body"},
			"✓ rejected: Check passed: the game rejected a forged call: tampered body."},
		{Call{Kind: Result, Trap: Forged, Fault: "missing HMAC", Problem: "EOF"},
			"– rejected: The game did not accept a forged call: missing HMAC, but without an answer, as after a " +
				"crash."},
		{Call{Kind: Result, Status: 502, Trap: Forged, Fault: "wrong HMAC"},
			"– rejected: The game did not accept a forged call: wrong HMAC, but with HTTP 502, as a crash would."},
		{Call{Kind: Result, Status: 200, Success: true, Trap: Forged, Fault: "wrong HMAC"},
			"✗ failed attention: The game accepted a forged call: wrong HMAC."},
		{Call{Kind: Result, Status: 200, Success: true}, "✓ done: Confirmed."},
		{Call{Kind: Result, Status: 200, Wrong: "success is false (4.3)"},
			"✗ failed attention: Confirmed, but its answer breaks the interface: success is false (4.3)."},
		{Call{Kind: Result, Status: 503, Code: "BUSY", Lost: true, Wrong: `HTTP 503 and "BUSY"`},
			"✗ failed attention: The answer was lost on purpose, and it breaks the interface: HTTP 503 and \"BUSY\"."},
		{Call{Kind: Result, Status: 500, Code: "INTERNAL", Retried: true},
			"✗ failed attention: The game failed with HTTP 500 and INTERNAL. The result is sent again."},
		{Call{Kind: Result, Status: 400, Code: "REJECTED"},
			"✗ failed attention: The game rejected the result with HTTP 400 and REJECTED. It is not sent again."},
		{Call{Kind: Result, Status: 400, Code: "CONFLICT", Trap: Opposite},
			"✓ rejected: Check passed: the game rejected a result that contradicts the chain or an earlier one."},
		{Call{Kind: Result, Status: 500, Code: "INTERNAL", Trap: Opposite},
			"– rejected: The game did not confirm a result that contradicts the chain or an earlier one, but with " +
				"HTTP 500, as a crash would."},
		{Call{Kind: Result, Status: 200, Success: true, Trap: Opposite, Fits: true}, "✓ done: Confirmed."},
		{Call{Kind: Result, Status: 400, Code: "CONFLICT", Trap: Opposite, Fits: true},
			"– rejected: The game did not confirm what the chain says, after a result that said something else."},
		{Call{Kind: Result, Status: 200, Success: true, Trap: Opposite},
			"! disputed attention: The game confirmed a result that contradicts the chain or an earlier one."},
	} {
		v := OfCall(test.call)
		assert.Equal(t, test.want, sketch(v.Tone, v.State, v.Attention, false, v.String()))
	}
}

// Whatever is wrong is red and needs attention; whatever is right is not.
func TestEveryCallGetsATrueSentence(t *testing.T) {
	for kind, traps := range [][]Trap{{Genuine, Scripted}, {Genuine},
		{Genuine, Forged, Digest, Amount, OffTerms, AtOnce, Repeated}, {Genuine, Forged, Opposite}} {
		for _, trap := range traps {
			for _, status := range []int{0, 200, 400, 401, 500} {
				for i, answer := range []Call{{Success: true}, {Code: "NO"}, {Problem: "it breaks the interface"},
					{Code: "NO", Lost: true}} {
					c := answer
					c.Kind, c.Trap, c.Status, c.Fault = Kind(kind), trap, status, "wrong HMAC"
					if status != 200 && i == 0 || status == 0 && i != 2 {
						continue // a success has HTTP 200, and without an answer there is a problem
					}
					v := OfCall(c)
					name := fmt.Sprintf("%+v: %+v", c, v)
					require.NotEmpty(t, v.Said, name)
					require.NotContains(t, v.Said, "%!", name)
					require.Equal(t, v.Tone == Bad || v.Tone == Warn, v.Attention, name)
					if slices.Contains([]Trap{Forged, Digest, Amount, OffTerms, Opposite}, trap) && c.Success {
						require.True(t, v.Attention, "a trap worked: %s", name)
					}
					if status == 0 || status >= 500 {
						require.NotEqual(t, Good, v.Tone, "a crash passes no check: %s", name)
					}
					if v.Tone == Good {
						require.Equal(t, c.Success, trap < Forged || trap == AtOnce || trap == Repeated, name)
					}
				}
			}
		}
	}
}

// A game may reject a burn of too little. Whether it moved something, only the books know.
func TestARejectedBurnOfTooLittleIsUnknownIfNobodyLooked(t *testing.T) {
	for why, want := range map[Why]State{Known: Done, Off: Done, Unread: Unknown, Overlap: Unknown} {
		v := Of(burn(func(o *Facts) {
			o.Chain.End, o.Chain.Less, o.Books.Why = Succeeded, true, why
			o.Calls = Calls{Progress: TurnedDown, Attempts: 1, Status: 400}
		}))
		assert.Equal(t, want, v.State, v.Said)
		assert.Equal(t, want == Unknown, v.Attention, v.Said)
		assert.Equal(t, want == Unknown, strings.Contains(v.Said, "What the game moved is unknown"), v.Said)
	}
}
