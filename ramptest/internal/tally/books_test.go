package tally

import (
	"math/big"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gold is so much of one asset; 0 is nothing.
func gold(n int64) Assets {
	a := Assets{}
	a.Add("gold", big.NewRat(n, 1))
	return a
}

func mint() *Tally {
	return NewTally(uuid.MustParse("58dbfbe4-0000-4000-8000-000000000000"), true, gold(-100))
}
func burn() *Tally {
	return NewTally(uuid.MustParse("6a2415eb-0000-4000-8000-000000000000"), false, gold(100))
}

// unread is a reading that failed.
const unread = -1

func read(n int64) Assets {
	if n == unread {
		return nil
	}
	return gold(n)
}

// windows returns a function that plays a window with one call.
func windows(p *Player) func(c Call, before, after int64) Judgment {
	return func(c Call, before, after int64) Judgment {
		p.Look(read(before))
		v := p.Judge([]Call{c}, read(before), read(after), true)
		p.End(v)
		return v
	}
}

// step is a window with one call: of an order, with what the player owns before
// and after it.
type step struct {
	call          string // validate or result, and what it says
	answer        Answer
	before, after int64
	want          string // the problem, without the order
}

// TestAWindowIsJudged plays one order through windows with one call each.
func TestAWindowIsJudged(t *testing.T) {
	const approved, failed, succeeded, forged = "validate", "result failed", "result succeeded", "forged result"
	for _, test := range []struct {
		name  string
		order *Tally
		steps []step
	}{
		{"taken at once", mint(), []step{{approved, Yes, 900, 800, ""}, {succeeded, Yes, 800, 800, ""}}},
		{"held until the result", mint(), []step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 900, 800, ""}}},
		{"given back", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {failed, Yes, 800, 900, ""}, {failed, Yes, 900, 900, ""}}},
		{"held and failed", mint(), []step{{approved, Yes, 900, 900, ""}, {failed, Yes, 900, 900, ""}}},
		{"not given back", mint(), []step{{approved, Yes, 1000, 900, ""}, {failed, Yes, 900, 900,
			"failed on chain: the game must give back 100 gold: 900 before the call, 900 after it, 1,000 expected"}}},
		{"given back twice", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {failed, Yes, 800, 900, ""}, {failed, Yes, 900, 1000,
				"failed on chain: the game must move nothing: gold: 900 before the call, 1,000 after it, " +
					"900 expected"}}},
		{"given back with HTTP 500", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {failed, Open, 800, 900, ""}, {failed, Yes, 900, 900, ""}}},
		{"given back after HTTP 500", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {failed, Open, 800, 800, ""}, {failed, Yes, 800, 900, ""}}},
		{"given back late after HTTP 500", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {failed, Open, 800, 800, ""}, {failed, Yes, 900, 900, ""}}},
		{"given back late after HTTP 500, and again", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {failed, Open, 800, 800, ""}, {failed, Yes, 900, 1000,
				"failed on chain: the game must move nothing: gold: 900 before the call, 1,000 after it, " +
					"900 expected"}}},
		{"taken late", mint(), []step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 800, 800, ""}}},
		{"taken late, and again", mint(), []step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 800, 700,
			"succeeded on chain: the game must move nothing: gold: 800 before the call, 700 after it, 800 expected"}}},
		{"taken late, not given back", mint(), []step{{approved, Yes, 900, 900, ""}, {failed, Yes, 800, 800,
			"failed on chain: the game must give back 100 gold: 800 before the call, 800 after it, 900 expected"}}},
		{"taken late with other income", mint(), []step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 850, 850, ""}}},
		{"held with other income", mint(), []step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 950, 850, ""}}},
		{"taken during a later call", mint(),
			[]step{{approved, Yes, 900, 900, ""}, {approved, No, 900, 800, ""}, {succeeded, Yes, 800, 800, ""}}},
		{"other income", mint(), []step{{approved, Yes, 900, 800, ""}, {failed, Yes, 5000, 5100, ""}}},
		{"given back before the result", mint(), []step{{approved, Yes, 900, 800, ""}, {failed, Yes, 900, 900, ""}}},
		{"given back after an income of the same size", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {failed, Yes, 900, 1000, ""}}},
		{"given back in part before the result", mint(), []step{{approved, Yes, 900, 800, ""}, {failed, Yes, 850, 850,
			"failed on chain: the game must give back 100 gold: 850 before the call, 850 after it, 950 expected"}}},
		{"a burn that is granted before the result", burn(),
			[]step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 1000, 1000, ""}}},
		{"never taken", mint(), []step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 900, 900,
			"succeeded on chain: the game must take 100 gold: 900 before the call, 900 after it, 800 expected"}}},
		{"taken twice", mint(),
			[]step{{approved, Yes, 900, 700,
				"was approved: the game must take 100 gold: 900 before the call, 700 after it, 800 expected"}}},
		{"approved twice", mint(), []step{{approved, Yes, 900, 800, ""}, {approved, Yes, 800, 800, ""}}},
		{"approved twice, taken twice", mint(), []step{{approved, Yes, 900, 800, ""}, {approved, Yes, 800, 700,
			"was approved more than once: the game must move nothing: gold: 800 before the call, 700 after it, " +
				"800 expected"}}},
		{"approved and taken after its end", mint(),
			[]step{{approved, Yes, 900, 900, ""}, {failed, Yes, 900, 900, ""}, {approved, Yes, 900, 800,
				"was approved more than once: the game must move nothing: gold: 900 before the call, 800 after it, " +
					"900 expected"}}},
		{"taken with an answer that was lost", mint(),
			[]step{{approved, Open, 900, 800, ""}, {approved, Yes, 800, 800, ""}, {succeeded, Yes, 800, 800, ""}}},
		{"taken though rejected", mint(),
			[]step{{approved, No, 900, 800,
				"was rejected: the game must move nothing: gold: 900 before the call, 800 after it, 900 expected"}}},
		{"more than there is", mint(),
			[]step{{approved, Yes, 99, 99, "approved, but costs 100 gold and the player has 99"}}},
		{"more than there is, and unknown after", mint(),
			[]step{{approved, Yes, 99, unread, "approved, but costs 100 gold and the player has 99"}}},
		{"all there is", mint(), []step{{approved, Yes, 100, 0, ""}}},
		{"a burn", burn(),
			[]step{{approved, Yes, 900, 900, ""}, {succeeded, Yes, 900, 1000, ""}, {succeeded, Yes, 1000, 1000, ""}}},
		{"a burn that failed", burn(), []step{{approved, Yes, 900, 900, ""}, {failed, Yes, 900, 900, ""}}},
		{"a burn that is not granted", burn(), []step{{approved, Yes, 0, 0, ""}, {succeeded, Yes, 0, 0,
			"succeeded on chain: the game must grant 100 gold: 0 before the call, 0 after it, 100 expected"}}},
		{"a burn that is granted too early", burn(),
			[]step{{approved, Yes, 0, 100,
				"was approved: the game must move nothing: gold: 0 before the call, 100 after it, 0 expected"}}},
		{"a forged result", mint(), []step{{approved, Yes, 900, 800, ""}, {forged, No, 800, 900,
			"got a forged result: the game must move nothing: gold: 800 before the call, 900 after it, 800 expected"}}},
		{"told two outcomes", mint(),
			[]step{{approved, Yes, 900, 800, ""}, {succeeded, Yes, 800, 800, ""}, {failed, Yes, 800, 900, ""},
				{succeeded, Yes, 900, 0, ""}}},
		{"unknown before", mint(), []step{{approved, Yes, unread, 800, ""}, {failed, Yes, 800, 800, ""}}},
		{"unknown after", mint(),
			[]step{{approved, Yes, 900, unread, ""}, {failed, Yes, 800, 900, ""}, {failed, Yes, 900, 1000,
				"failed on chain: the game must move nothing: gold: 900 before the call, 1,000 after it, " +
					"900 expected"}}},
		{"never taken, given back, and the answer is lost", mint(),
			[]step{{approved, Yes, 900, 900, ""}, {failed, Open, 900, 1000, "failed on chain: " +
				"the game must move nothing: gold: 900 before the call, 1,000 after it, 900 expected"}}},
		{"taken at the result from a player who has spent it", mint(),
			[]step{{approved, Yes, 900, 900, ""}, {succeeded, Open, 40, 0,
				"succeeded on chain: the game must take 100 gold: 40 before the call, 0 after it, -60 expected"},
				{succeeded, Yes, 0, 0,
					"succeeded on chain: the game must take 60 gold: 0 before the call, 0 after it, -60 expected"}}},
		{"said once", mint(),
			[]step{{approved, Yes, 900, 700,
				"was approved: the game must take 100 gold: 900 before the call, 700 after it, 800 expected"},
				{failed, Yes, 700, 900, ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &Player{}
			for _, s := range test.steps {
				c := Call{Order: test.order, Result: s.call != approved, Forged: s.call == forged, Answer: s.answer}
				p.Look(read(s.before))
				if c.Result && !c.Forged {
					test.order.Deliver(s.call == succeeded, s.call == succeeded)
				}
				got := windows(p)(c, s.before, s.after).Problem
				for _, name := range []string{"mint 58dbfbe4: ", "mint 58dbfbe4 ", "burn 6a2415eb "} {
					got = strings.TrimPrefix(got, name)
				}
				require.Equal(t, s.want, got, s.call)
			}
		})
	}
}

// The books keep the first outcome that the game confirmed, whatever comes after it.
func TestTheFirstConfirmedOutcomeStands(t *testing.T) {
	type result struct {
		said, onChain bool
		status        int
		after         int64
	}
	const failed, succeeded = false, true
	for _, test := range []struct {
		name      string
		results   []result
		disputed  bool
		stands    bool
		confirmed bool // the outcome that stands
		moved     Assets
	}{
		{"one outcome", []result{{failed, failed, 200, 900}, {failed, failed, 200, 900}}, false, failed, true, gold(0)},
		{"one outcome after a failure", []result{{failed, failed, 500, 800}, {failed, failed, 200, 900}}, false, failed,
			true, gold(0)},
		{"the second is rejected", []result{{failed, failed, 200, 900}, {succeeded, failed, 400, 900}}, true, failed,
			true, gold(0)},
		{"the second is confirmed too", []result{{failed, failed, 200, 900}, {succeeded, failed, 200, 800}}, true,
			failed, true, gold(-100)},
		{"only the second is confirmed", []result{{failed, succeeded, 500, 800}, {succeeded, succeeded, 200, 800}},
			true, succeeded, true, gold(-100)},
		{"neither is confirmed", []result{{failed, succeeded, 500, 800}, {succeeded, succeeded, 500, 800}}, true,
			failed, false, gold(-100)},
		{"one that is not that of the chain", []result{{failed, succeeded, 200, 900}}, true, failed, true, gold(0)},
		{"the first comes again after the second", []result{{failed, failed, 200, 900}, {succeeded, failed, 400, 900},
			{failed, failed, 200, 900}}, true, failed, true, gold(0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, o := &Player{}, mint()
			window := windows(p)
			window(Call{Order: o, Answer: Yes}, 900, 800)
			now := int64(800)
			for _, r := range test.results {
				o.Deliver(r.said, r.onChain)
				o.Answered(r.said, r.status)
				answer := Yes
				if r.status == 500 {
					answer = Open
				}
				window(Call{Order: o, Result: true, Answer: answer}, now, r.after)
				now = r.after
			}
			assert.Equal(t, test.disputed, o.Disputed)
			assert.Equal(t, test.stands, o.Succeeded)
			assert.Equal(t, test.confirmed, o.of(o.Succeeded).Confirmed)
			require.Len(t, o.Totals, 1)
			assert.Equal(t, test.moved.String(), o.Totals[0].String(), "what moved is known")
			assert.Equal(t, gold(-100), o.Took)
		})
	}
}

// A game gives back only what it took, so the books keep what that was.
func TestWhatWasTakenIsKept(t *testing.T) {
	for _, test := range []struct {
		name    string
		first   int64    // the balance before the approval
		between [3]int64 // that after the approval, before and after the result
		took    Assets
		vague   bool
		unread  bool
	}{
		{"taken and given back", 900, [3]int64{800, 800, 900}, gold(-100), false, false},
		{"taken late", 900, [3]int64{900, 800, 900}, gold(-100), false, false},
		{"never taken", 900, [3]int64{900, 900, 900}, nil, false, false},
		{"unknown, and then right", 900, [3]int64{unread, unread, 900}, nil, true, false},
		{"unknown", 900, [3]int64{unread, unread, unread}, nil, true, true},
		{"given back what nobody saw taken", unread, [3]int64{unread, 800, 900}, gold(-100), true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, o := &Player{}, mint()
			windows(p)(Call{Order: o, Answer: Yes}, test.first, test.between[0])
			o.Deliver(false, false)
			windows(p)(Call{Order: o, Result: true, Answer: Yes}, test.between[1], test.between[2])
			assert.Equal(t, test.took, o.Took)
			assert.Equal(t, test.vague, o.Vague)
			assert.Equal(t, test.unread, o.Unread)
		})
	}
}

// A result may come while a validate call of its order is not answered. What moved is known if there is one
// way to explain it.
func TestAResultBesideAValidateIsJudged(t *testing.T) {
	for _, test := range []struct {
		name      string
		order     *Tally
		taken     int64 // when it was approved
		succeeded bool
		answer    Answer // to the result
		moved     int64
		unknown   bool
		want      string
	}{
		{name: "a mint that was taken succeeds", order: mint(), taken: 100, succeeded: true, answer: Yes},
		{name: "a mint that was taken fails", order: mint(), taken: 100, answer: Yes, moved: 100},
		{name: "a mint that was taken fails at the next result", order: mint(), taken: 100, answer: Open},
		{name: "taken again", order: mint(), taken: 100, succeeded: true, answer: Yes, moved: -100,
			want: "succeeded on chain: the game must move nothing: gold: " +
				"800 before the call, 700 after it, 800 expected"},
		{name: "taken again, and given back once", order: mint(), taken: 100, answer: Yes,
			want: "failed on chain: the game must give back 100 gold: 800 before the call, 800 after it, 900 expected"},
		{name: "given back twice", order: mint(), taken: 100, answer: Yes, moved: 200,
			want: "failed on chain: the game must give back 100 gold: " +
				"800 before the call, 1,000 after it, 900 expected"},
		{name: "a mint is taken by either call", order: mint(), succeeded: true, answer: Yes, moved: -100},
		{name: "a mint is taken by none", order: mint(), succeeded: true, answer: Yes,
			want: "succeeded on chain: the game must take 100 gold: 900 before the call, 900 after it, 800 expected"},
		{name: "a mint is taken by one and given back by the other, or moved by none", order: mint(), answer: Yes,
			unknown: true},
		{name: "the same, and the result will come again", order: mint(), answer: Open, unknown: true},
		{name: "a burn succeeds", order: burn(), succeeded: true, answer: Yes, moved: 100},
		{name: "a burn fails", order: burn(), answer: Yes},
		{name: "a burn is granted twice", order: burn(), succeeded: true, answer: Yes, moved: 200,
			want: "succeeded on chain: the game must grant 100 gold: " +
				"900 before the call, 1,100 after it, 1,000 expected"},
		{name: "a burn that failed is granted", order: burn(), answer: Yes, moved: 100,
			want: "failed on chain: the game must move nothing: gold: " +
				"900 before the call, 1,000 after it, 900 expected"},
	} {
		for _, resultFirst := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				p, o := &Player{}, *test.order
				windows(p)(Call{Order: &o, Answer: Yes}, 900, 900-test.taken)
				o.Deliver(test.succeeded, test.succeeded)
				calls := []Call{{Order: &o, Result: true, Answer: test.answer}, {Order: &o, Answer: Yes}}
				if !resultFirst {
					calls[0], calls[1] = calls[1], calls[0]
				}
				had := 900 - test.taken
				v := p.Judge(calls, read(had), read(had+test.moved), true)
				p.End(v)
				want := test.want
				if want != "" {
					want = names(v.candidates) + " " + want
				}
				assert.Equal(t, want, v.Problem)
				assert.Equal(t, test.unknown, o.Mixed)
			})
		}
	}
}

// Calls that overlap are one window, whose orders must explain what moved
// together.
func TestOrdersOfOneWindowAreJudgedTogether(t *testing.T) {
	order := func(n byte, mint bool, amount int64) *Tally { return NewTally(uuid.UUID{n}, mint, gold(amount)) }
	for _, test := range []struct {
		name  string
		calls []Call
		moved int64
		want  string
	}{
		{"both are taken",
			[]Call{{Order: order(1, true, -100), Answer: Yes}, {Order: order(2, true, -30), Answer: Yes}}, -130, ""},
		{"one is held",
			[]Call{{Order: order(1, true, -100), Answer: Yes}, {Order: order(2, true, -30), Answer: Yes}}, -30, ""},
		{"one is taken twice",
			[]Call{{Order: order(1, true, -100), Answer: Yes}, {Order: order(2, true, -30), Answer: Yes}}, -160,
			"mint 01000000 and mint 02000000 at the same time: the game must take 130 gold: 1,000 before the call, " +
				"840 after it, 870 expected"},
		{"a rejected one is taken",
			[]Call{{Order: order(1, true, -100), Answer: Yes}, {Order: order(2, true, -30), Answer: No}}, -130,
			"mint 01000000 and mint 02000000 at the same time: the game must take 100 gold: 1,000 before the call, " +
				"870 after it, 900 expected"},
		{"together more than there is",
			[]Call{{Order: order(1, true, -600), Answer: Yes}, {Order: order(2, true, -600), Answer: Yes}}, -600,
			"mint 01000000 and mint 02000000: approved, but costs 1,200 gold and the player has 1,000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &Player{}
			before := gold(1000)
			p.Look(before)
			v := p.Judge(test.calls, before, gold(1000+test.moved), true)
			p.End(v)
			assert.Equal(t, test.want, v.Problem)
		})
	}
}

// Which of two equal orders was taken cannot be told, so either may be.
func TestWhatCannotBeToldIsNotDemanded(t *testing.T) {
	p, a, b := &Player{}, NewTally(uuid.UUID{1}, true, gold(-100)), NewTally(uuid.UUID{2}, true, gold(-100))
	p.Look(gold(1000))
	p.End(p.Judge([]Call{{Order: a, Answer: Open}, {Order: b, Answer: Open}}, gold(1000), gold(900), true))
	for _, o := range []*Tally{a, b} {
		for _, after := range []int64{900, 800} {
			p := *p
			p.Look(gold(900))
			assert.Empty(t, p.Judge([]Call{{Order: o, Answer: Yes}}, gold(900), gold(after), true).Problem)
		}
	}
}

// What another order did late is the last explanation: the effect of the call
// itself may still come.
func TestALateEffectOfAnotherOrderExplainsADifferenceInTheEnd(t *testing.T) {
	p, late, o := &Player{}, mint(), burn()
	p.Look(gold(1000))
	p.End(p.Judge([]Call{{Order: late, Answer: Yes}}, gold(1000), gold(1000), true)) // held, or late
	p.Look(gold(1000))
	calls := []Call{{Order: o, Answer: Yes}}
	assert.NotEmpty(t, p.Judge(calls, gold(1000), gold(900), false).Problem)
	assert.Empty(t, p.Judge(calls, gold(1000), gold(900), true).Problem)
	assert.NotEmpty(t, p.Judge(calls, gold(1000), gold(800), true).Problem)
	p.End(p.Judge(calls, gold(1000), gold(900), true))
	assert.Equal(t, []Assets{gold(-100)}, late.Totals)
}

// A result that states what the chain says, and what the game has confirmed, contradicts nothing, whatever
// other results said: the game must confirm it again.
func TestAResultContradictsTheChainOrWhatStands(t *testing.T) {
	const failed, succeeded = false, true
	type result struct {
		said, onChain bool
		status        int
		opposite      bool
	}
	for name, results := range map[string][]result{
		"what stands comes again": {{failed, failed, 200, false}, {succeeded, failed, 500, true},
			{failed, failed, 200, false}, {succeeded, failed, 400, true}, {failed, failed, 200, false}},
		"both are confirmed": {{failed, failed, 200, false}, {succeeded, failed, 200, true},
			{failed, failed, 200, false}},
		"the game confirmed what the chain contradicts": {{failed, succeeded, 200, true},
			{failed, succeeded, 200, true}, {succeeded, succeeded, 400, true}, {succeeded, succeeded, 200, true}},
		"nothing is confirmed": {{failed, failed, 500, false}, {succeeded, failed, 500, true},
			{failed, failed, 500, true}},
		"the later one is confirmed": {{succeeded, failed, 500, true}, {failed, failed, 200, true},
			{failed, failed, 200, false}},
	} {
		o := mint()
		for i, r := range results {
			assert.Equal(t, r.opposite, o.Deliver(r.said, r.onChain), "%s: result #%d", name, i+1)
			o.Answered(r.said, r.status)
		}
	}
}

// What may still come for an order whose results stated two outcomes hides nothing of another.
func TestADisputedOrderExplainsNoOther(t *testing.T) {
	p, disputed, granted := &Player{}, mint(), burn()
	play := windows(p)
	play(Call{Order: disputed, Answer: Yes}, 1000, 900)
	for _, succeeded := range []bool{false, true} {
		disputed.Deliver(succeeded, true)
		play(Call{Order: disputed, Result: true, Answer: Open}, 900, 900)
	}
	granted.Deliver(true, true)
	assert.NotEmpty(t, play(Call{Order: granted, Result: true, Answer: Yes}, 900, 1100).Problem)
}

// An effect may also come late when the window of its call could not be read.
func TestALateEffectOfAnUnreadCallIsNotDemandedAgain(t *testing.T) {
	for _, before := range []int64{900, 1000} { // between the windows, or with the repeat
		p, o := &Player{}, mint()
		windows(p)(Call{Order: o, Answer: Yes}, 1000, 900)
		o.Deliver(false, false)
		windows(p)(Call{Order: o, Result: true, Answer: Open}, unread, 900)
		p.Look(gold(before))
		v := p.Judge([]Call{{Order: o, Result: true, Answer: Yes}}, gold(before), gold(1000), true)
		assert.Empty(t, v.Problem)
		p.End(v)
		assert.Equal(t, []Assets{gold(0)}, o.Totals)
		assert.False(t, o.Guess)
	}
}

// Of two orders at once, the one that explains the difference is blamed, and the other known.
func TestOnlyTheOrderThatMovedWronglyIsBlamed(t *testing.T) {
	p, wrong, right := &Player{}, mint(), NewTally(uuid.New(), true, gold(-7))
	p.Look(gold(1000))
	// taken twice
	v := p.Judge([]Call{{Order: wrong, Answer: Yes}, {Order: right, Answer: Yes}}, gold(1000), gold(793), true)
	p.End(v)
	assert.Equal(t, []uuid.UUID{wrong.UUID}, v.Orders)
	assert.Equal(t, []Assets{gold(-7)}, right.Totals)
	assert.Equal(t, []Assets{gold(-200)}, wrong.Totals)
}

// What two orders did while nobody could look may have canceled, or not have come at all.
func TestUnreadMovementsThatCancelAreAGuess(t *testing.T) {
	p, taken, granted := &Player{}, mint(), burn()
	p.Look(gold(1000))
	windows(p)(Call{Order: taken, Answer: Yes}, unread, unread)
	granted.Deliver(true, true)
	windows(p)(Call{Order: granted, Result: true, Answer: Yes}, unread, unread)
	p.Look(gold(1000))
	assert.True(t, taken.Guess && granted.Guess)
}

// What may still come for an order is a movement of the player that it turns out to be of.
func TestWhatMayStillComeIsHandedOver(t *testing.T) {
	p, stranger, late := &Player{}, &Player{}, burn()
	late.Deliver(true, true)
	windows(stranger)(Call{Order: late, Result: true, Answer: Open}, unread, unread)
	p.Adopt(stranger)
	assert.Empty(t, windows(p)(Call{Order: mint(), Answer: No}, 1000, 1100).Problem)
	assert.Empty(t, stranger.Late)
}

// It may also have come before the player turned out to be that one.
func TestWhatHasComeIsNotDemandedOfTheOtherPlayer(t *testing.T) {
	p, q, late := &Player{}, &Player{}, mint()
	windows(p)(Call{Order: late, Answer: Yes}, 1000, 1000)
	q.Look(gold(900))
	q.Adopt(p)
	late.Deliver(true, true)
	assert.Empty(t, windows(q)(Call{Order: late, Result: true, Answer: Yes}, 900, 900).Problem)
}

// An order of a player who turns out to be another is judged there only.
func TestAnOrderOfAnotherPlayerIsForgotten(t *testing.T) {
	p, q, o := &Player{}, &Player{}, mint()
	windows(p)(Call{Order: o, Answer: Yes}, 900, unread)
	q.Adopt(p)
	windows(q)(Call{Order: o, Answer: Yes}, 900, 800)
	p.Look(gold(900))
	assert.Equal(t, []Assets{gold(-100)}, o.Totals)
	assert.Empty(t, p.Late)
}

// So may the effect of a result come after its order was judged again, or before the first
// reading, with a call about another order.
func TestALateEffectOfAnUnreadResultIsNobodyElses(t *testing.T) {
	for _, first := range []Assets{nil, gold(900), gold(910)} { // unknown; taken since; taken beside other income
		p, o := &Player{}, mint()
		p.Look(first)
		p.End(p.Judge([]Call{{Order: o, Answer: Yes}}, first, nil, true))
		o.Deliver(false, false)
		windows(p)(Call{Order: o, Result: true, Answer: Open}, unread, unread)
		assert.Empty(t, windows(p)(Call{Order: burn(), Answer: Yes}, 800, 900).Problem) // given back
	}
}

// A late effect may also hide in what another order moved wrongly.
func TestALateEffectBesideAWrongOneIsUnknown(t *testing.T) {
	p, late, wrong := &Player{}, mint(), burn()
	window := windows(p)
	window(Call{Order: late, Answer: Yes}, 1000, 900)
	late.Deliver(false, false)
	window(Call{Order: late, Result: true, Answer: Open}, 900, 900)
	wrong.Deliver(true, true)
	// 100 given back, 107 granted
	assert.NotEmpty(t, window(Call{Order: wrong, Result: true, Answer: Yes}, 900, 1107).Problem)
	assert.Empty(t, window(Call{Order: late, Result: true, Answer: Yes}, 1107, 1107).Problem)
	assert.True(t, late.Guess)
}

// A window that could not be read is judged at the next reading: a match proves, and a
// mismatch proves nothing.
func TestAnUnreadWindowIsJudgedAtTheNextReading(t *testing.T) {
	for now, known := range map[int64]bool{1000: true, 900: false, 950: false} {
		p, o := &Player{}, mint()
		windows(p)(Call{Order: o, Answer: Yes}, 1000, 900)
		o.Deliver(false, false)
		windows(p)(Call{Order: o, Result: true, Answer: Yes}, unread, unread)
		assert.True(t, o.Unread)
		p.Look(gold(now))
		assert.Equal(t, known, !o.Unread && !o.Mixed, "%d gold now", now)
	}
}

// What a call moved before the first reading stays unknown, whatever later calls show.
func TestACallBeforeTheFirstReadingStaysUnknown(t *testing.T) {
	p, o := &Player{}, mint()
	windows(p)(Call{Order: o, Answer: Yes}, unread, unread)
	p.Look(gold(1000))
	windows(p)(Call{Order: o, Answer: Yes}, unread, unread)
	p.Look(gold(1000))
	assert.Equal(t, []Assets{gold(0), gold(-100)}, o.Totals)
	o.Deliver(true, true)
	assert.Empty(t, p.Judge([]Call{{Order: o, Result: true, Answer: Yes}}, gold(1000), gold(1000), true).Problem)
}

// What moves of another asset is no reason to doubt whether a late effect has come.
func TestALateEffectIsKnownBesideOtherAssets(t *testing.T) {
	p, o := &Player{}, mint()
	gems := func(n, m int64) Assets { return gold(n).Plus(Assets{"gem": big.NewRat(m, 1)}) }
	p.Look(gems(900, 1))
	p.End(p.Judge([]Call{{Order: o, Answer: Yes}}, gems(900, 1), gems(900, 1), true))
	p.Look(gems(900, 3))
	assert.False(t, o.Came)
	p.Look(gems(800, 7))
	assert.Equal(t, []Assets{gold(-100)}, o.Totals)
	assert.Equal(t, Assets{"gem": big.NewRat(6, 1)}, p.Outside)
}

// Two late effects may hide each other: nothing has moved, though both have come.
func TestLateEffectsThatMakeUpForEachOtherAreNotDemandedAgain(t *testing.T) {
	p, taken, granted := &Player{}, mint(), burn()
	window := windows(p)
	window(Call{Order: taken, Answer: Yes}, 1000, 1000)
	granted.Deliver(true, true)
	window(Call{Order: granted, Result: true, Answer: Open}, 1000, 1000)
	taken.Deliver(true, true)
	assert.Empty(t, window(Call{Order: taken, Result: true, Answer: Yes}, 1000, 1000).Problem)
	assert.Empty(t, window(Call{Order: granted, Result: true, Answer: Yes}, 1000, 1000).Problem)
}

// The books forget what a player owned if it cannot be read for very long. What is late may have
// come meanwhile.
func TestWhatIsLateMayComeWhileNothingCanBeRead(t *testing.T) {
	p, late := &Player{}, mint()
	windows(p)(Call{Order: late, Answer: Yes}, 1000, 1000)
	for range maxPending + 1 {
		windows(p)(Call{Order: burn(), Answer: Yes}, unread, unread)
	}
	late.Deliver(true, true)
	assert.Empty(t, windows(p)(Call{Order: late, Result: true, Answer: Yes}, 900, 900).Problem)
}

// Of very many late orders, the oldest explain nothing for others, and are not demanded again.
func TestTheOldestOfManyLateOrdersIsNotDemandedAgain(t *testing.T) {
	p, oldest := &Player{}, mint()
	window := windows(p)
	window(Call{Order: oldest, Answer: Yes}, 1<<40, 1<<40)
	for i := range maxLate {
		window(Call{Order: NewTally(uuid.UUID{byte(i)}, true, gold(-1000)), Answer: Yes}, 1<<40, 1<<40)
	}
	assert.NotContains(t, p.Late, oldest)
	oldest.Deliver(true, true)
	// beside other income
	assert.Empty(t, window(Call{Order: oldest, Result: true, Answer: Yes}, 1<<40-93, 1<<40-93).Problem)
}

// Windows of very many orders are believed, within bounds of time and memory.
func TestTheWorkOfAWindowIsBounded(t *testing.T) {
	p := &Player{}
	p.Look(gold(1 << 40))
	var calls []Call
	for i := range 64 {
		calls = append(calls, Call{Order: NewTally(uuid.UUID{byte(i)}, true, gold(-1<<(i%32))), Answer: Yes})
	}
	v := p.Judge(calls, gold(1<<40), gold(1<<40-12345), true)
	assert.Empty(t, v.Problem)
	p.End(v)
	assert.Len(t, p.Late, maxLate)
}

// The ID of the assets answer is not that of the order.
func TestAnAssetUnderAnotherNameIsSaid(t *testing.T) {
	named := func(n int64) Assets { return Assets{"Gold": big.NewRat(n, 1)} }
	judge := func(before, after Assets) string {
		var p Player
		p.Look(before)
		return p.Judge([]Call{{Order: mint(), Answer: Yes}}, before, after, true).Problem
	}
	const moved = "mint 58dbfbe4 was approved: the game must move nothing or take 100 gold: " +
		"Gold: 900 before the call, 800 after it, 900 expected"
	assert.Equal(t, moved+" (the order is about gold, which the player's assets do not have)",
		judge(named(900), named(800)))
	both := func(n int64) Assets { return named(n).Plus(gold(5)) }
	assert.NotContains(t, judge(both(900), both(800)), "the order is about")
}

// A watcher of the chain grants each of three burns before its result comes. No grant is taken for a late
// one of the burn before, and a burn that is never granted is still found.
func TestEachEarlyEndIsSeen(t *testing.T) {
	for _, first := range []Answer{Yes, Open} {
		p := new(Player)
		play := windows(p)
		end := func(owns, granted int64) (said []string) {
			o := NewTally(uuid.New(), false, gold(100))
			said = append(said, play(Call{Order: o, Answer: Yes}, owns, owns).Problem)
			o.Deliver(true, true)
			owns += granted
			said = append(said, play(Call{Order: o, Result: true, Answer: first}, owns, owns).Problem)
			return append(said, play(Call{Order: o, Result: true, Answer: Yes}, owns, owns).Problem)
		}
		for owns := int64(900); owns < 1200; owns += 100 {
			assert.Equal(t, []string{"", "", ""}, end(owns, 100), owns)
		}
		assert.Contains(t, end(1200, 0)[2], "the game must grant 100 gold: 1,200 before the call")
	}
}

// What is due may still come if the answer was lost, so nothing is as right as that, but never another asset.
func TestAnotherAssetDoesNotHideWhatIsDue(t *testing.T) {
	p, o := new(Player), mint()
	owns := gold(900)
	p.Look(owns)
	p.End(p.Judge([]Call{{Order: o, Answer: Yes}}, owns, gold(800), true))
	o.Deliver(false, false)
	lost := []Call{{Order: o, Result: true, Answer: Open}}
	v := p.Judge(lost, gold(800), gold(800).Plus(Assets{"old": big.NewRat(100, 1)}), true)
	assert.Equal(t, "mint 58dbfbe4 failed on chain: the game must move nothing or give back 100 gold: "+
		"old: 0 before the call, 100 after it, 0 expected (it is no part of the order)", v.Problem)
}

func TestAmountsAreExact(t *testing.T) {
	a := Assets{}
	third, _ := new(big.Rat).SetString("0.0000000000000000000000000000000000000000000001")
	a.Add("gold", third)
	assert.Equal(t, "+0.0000000000000000000000000000000000000000000001 gold", a.String())
	a.Add("gold", new(big.Rat).Neg(third))
	assert.Empty(t, a)
	assert.Equal(t, "nothing", a.String())
	assert.Equal(t, "+1 a, −2 b", Assets{"b": big.NewRat(-2, 1), "a": big.NewRat(1, 1)}.String())
}

func TestOnlyWhatWasTakenIsGivenBack(t *testing.T) {
	p, o := new(Player), mint()
	play := windows(p)
	assert.Equal(t, "took 100 gold", play(Call{Order: o, Answer: Yes}, 1000, 900).Said)
	o.Deliver(false, false)
	assert.Equal(t, "gave back 100 gold", play(Call{Order: o, Result: true, Answer: Yes}, 900, 1000).Said)
	assert.Equal(t, "gave 200 gold", play(Call{Order: o, Result: true, Answer: Yes}, 1000, 1200).Said,
		"it had taken only 100")
}
