package ramptest_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// rejects is a game that rejects every validate call with a code.
func rejects(code string) func(*ramptest.Config) {
	return answering(ramp.PathValidate, 200, `{"success":false,"errorCode":"`+code+`","data":null}`)
}

// callOf returns the page of the validate call about a UUID.
func (c *counter) callOf(t *testing.T, id uuid.UUID) string {
	t.Helper()
	list := c.html(t, "/calls?q="+id.String()) // newest first
	return c.page(t, found(t, `href="(/calls/\d+)"`, list))
}

// The page of a rejected call says what the order is about and what the player owned, and
// guesses nothing beyond what was seen.
func TestThePageOfARejectedCallSaysWhy(t *testing.T) {
	const guesses = "by its own rules|initialize call for|per-order|does not own enough"
	for _, test := range []struct {
		name   string
		change []func(*ramptest.Config)
		owns   int64
		amount int64
		own    bool // the UUID is one of the emulator
		burn   bool
		want   string
		guess  string // the only one
	}{
		{name: "too little", owns: 40, amount: 1,
			want: "Rejected by the game: INVALID_BALANCE. Nothing was signed. The order takes 100 item_gold; the player owned 40 item_gold. about: Mint 1 token item_gold takes 100; owned 40 asked:"},
		{name: "too little, of another UUID and amount", owns: 40, amount: 3, own: true,
			want: "The order takes 100 item_gold; the player owned 40 item_gold. about: Mint 3 tokens item_gold takes 100; owned 40 asked:"},
		{name: "too little, with a code of its own", change: []func(*ramptest.Config){rejects("NO_SUCH_LUCK")}, owns: 40, amount: 1,
			want: "Rejected by the game: NO_SUCH_LUCK. Nothing was signed. The order takes 100 item_gold; the player owned 40 item_gold. about: Mint 1 token"},
		{name: "enough was listed", change: []func(*ramptest.Config){rejects("INVALID_BALANCE")}, owns: 100, amount: 1,
			want: "Nothing was signed. The game says that the player does not own enough, but it had listed enough. about: Mint 1 token item_gold takes 100; owned 100 asked:", guess: "does not own enough"},
		{name: "what moves by itself is not read", change: []func(*ramptest.Config){func(c *ramptest.Config) { c.Regenerating = []string{"item_gold"} }}, owns: 40, amount: 1,
			want: "Nothing was signed. The game says that the player does not own enough. What the player owned is unknown. about: Mint 1 token item_gold takes 100 asked:", guess: "does not own enough"},
		{name: "nothing is known to be wrong", change: []func(*ramptest.Config){rejects("CLOSED")}, owns: 1000, amount: 1,
			want: "Rejected by the game: CLOSED. Nothing was signed. The game rejected the order by its own rules. Its log may say why. about: Mint 1 token item_gold takes 100; owned 1,000 asked:", guess: "by its own rules"},
		{name: "a UUID of the emulator", change: []func(*ramptest.Config){rejects("CLOSED")}, owns: 1000, amount: 1, own: true,
			want: "Nothing was signed. The record has no initialize call for this UUID. If the game accepts only UUIDs that it asked for, start the order from the game. about:", guess: "initialize call for"},
		{name: "prices of an order", change: []func(*ramptest.Config){rejects("INVALID_MESSAGE")}, owns: 1000, amount: 3,
			want: "The amounts are those of a whole order, because of -per-order. If the game's prices are for one token, start without it. about: Mint 3 tokens item_gold takes 100 asked:", guess: "per-order"},
		{name: "prices of a token", change: []func(*ramptest.Config){rejects("INVALID_MESSAGE"), func(c *ramptest.Config) { c.PerOrder = false }}, owns: 1000, amount: 3,
			want: "The amounts are the prices times 3. If the game's prices are for a whole order, start with -per-order. about: Mint 3 tokens item_gold takes 300 asked:", guess: "per-order"},
		{name: "one token costs the same in both", change: []func(*ramptest.Config){rejects("INVALID_MESSAGE")}, owns: 1000, amount: 1,
			want: "The game rejected the order by its own rules.", guess: "by its own rules"},
		{name: "too little, without the envelope", change: []func(*ramptest.Config){answering(ramp.PathValidate, 403, "no")}, owns: 40, amount: 1,
			want: "The game rejected the call with HTTP 403. Nothing was signed. The order takes 100 item_gold; the player owned 40 item_gold. The answer must be JSON with success, errorCode and data (interface 7.2). about: Mint 1 token item_gold takes 100; owned 40 asked:"},
		{name: "a burn", change: []func(*ramptest.Config){rejects("CLOSED")}, burn: true, amount: 2,
			want: "The game rejected the order by its own rules. Its log may say why. about: Burn 2 tokens item_gold grants 100 asked:", guess: "by its own rules"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCounter(t, append(test.change, kept(t), reporting)...)
			c.shop.gold = test.owns
			id := c.initialize(t)
			if test.own {
				sent := c.browse(t, http.MethodPost, "/start", url.Values{"sessionId": {c.session.ID}, "accessToken": {"token-1"}})
				to := ramp.Must(url.Parse(sent.Header.Get("Location")))
				id = uuid.MustParse(to.Query().Get("uuid"))
			}
			form := url.Values{"uuid": {id.String()}, "accessToken": {"token-1"}, "sessionId": {c.session.ID}, "network": {"testnet"},
				"amount": {ramp.NewAmount(test.amount).String()}, "do": {"mint"}}
			if test.burn {
				form.Set("do", "burn")
			}
			answer := c.browse(t, http.MethodPost, "/exchange", form)
			require.Equal(t, 422, answer.StatusCode)
			body := whole(t, answer)
			call := c.callOf(t, id)
			assert.Contains(t, call, test.want)
			assert.Equal(t, test.guess, regexp.MustCompile(guesses).FindString(call), call)
			assert.Contains(t, c.page(t, found(t, `<a href="(/orders/[^"]*/events/\d+)">Open the call</a>`, body)), test.want)
			c.restart(t, c.handler, append(test.change, reporting)...)
			assert.Contains(t, c.callOf(t, id), test.want, "after a restart")
		})
	}
}

// What the form itself gets wrong is not blamed on an earlier call.
func TestAnEarlierRejectionIsNotSaidAgain(t *testing.T) {
	c := newCounter(t, reporting)
	c.shop.gold = 40
	asked := request()
	asked.Intent.Outputs = nil
	started := ramp.Must(c.client.Initialize(t.Context(), asked))
	form := url.Values{"uuid": {started.UUID.String()}, "accessToken": {"token-1"}, "sessionId": {c.session.ID}, "network": {"testnet"}, "amount": {"1"}}
	assert.Contains(t, text(t, c.browse(t, http.MethodPost, "/exchange", form)), "Rejected by the game: INVALID_BALANCE.")
	form.Set("do", "burn")
	said, _, _ := strings.Cut(text(t, c.browse(t, http.MethodPost, "/exchange", form)), " Tokens ")
	assert.Contains(t, said, "The terms have nothing for a burn")
	assert.NotContains(t, said, "INVALID_BALANCE")
}

// The page of the call that lost assets says what was lost, and leads to the order, also after a
// restart.
func TestThePageOfACallThatLostAssetsSaysWhat(t *testing.T) {
	c := newCounter(t, kept(t), reporting, answering(ramp.PathResult, 200, confirmed))
	order := c.mint(t, ramptest.TransactionFails())
	c.restart(t, c.handler, reporting, answering(ramp.PathResult, 200, confirmed))
	c.service.Advance(time.Minute)
	check := func() {
		lost := c.service.Imbalances()
		require.Len(t, lost, 1)
		assert.Contains(t, lost[0].Problem, "must give back 100 item_gold")
		assert.Equal(t, order.UUID, lost[0].Orders[0])
		address := c.culprit(t, order)
		assert.Contains(t, c.page(t, address), "✗ Confirmed. The books found: mint "+order.UUID.String()[:8]+
			" failed on chain: the game must give back 100 item_gold: 900 before the call, 900 after it, 1,000 expected. about: Mint 10 tokens item_gold must give back 100 asked: POST /api/result")
	}
	check()
	assert.Contains(t, c.pageOf(t, order), "Before: just before the order. Now: as reported by the game at ")
	c.restart(t, c.handler, reporting)
	check()
	said := c.pageOf(t, order)
	assert.Contains(t, said, "✗ The transaction failed. The game did not give back 100 item_gold.")
	assert.Contains(t, said, "item_gold ✗ 100 missing 1,000 900 1,000")
	assert.Contains(t, said, "tokens ✓ nothing moved 1,000 1,000 1,000")
	calls := c.page(t, "/calls")
	require.Equal(t, 1, strings.Count(calls, "The books found: "), "the call that lost them is marked, and no other")
	lost, _, _ := strings.Cut(calls, "The books found: ")
	assert.Contains(t, lost[strings.LastIndex(lost, "✗"):], "POST /api/result #1 "+order.UUID.String()[:8])
	assert.Contains(t, c.page(t, "/calls?wrong=1"), "The books found: ")
}

// Both balances before an order are those before its first validate call, also if it is sent
// again later.
func TestBothBalancesBeforeAnOrderAreOfOneMoment(t *testing.T) {
	c := newCounter(t)
	id := c.initialize(t)
	earlier := c.mint(t) // its 8 tokens come with the next block
	_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10), ramptest.LostAnswer(ramptest.OnValidate))
	require.ErrorIs(t, err, ramptest.ErrLostAnswer)
	c.service.Advance(time.Minute)
	require.Equal(t, ramptest.Confirmed, c.service.State(earlier))
	order := ramp.Must(c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10)))
	c.service.Advance(time.Minute)
	page := c.pageOf(t, order)
	assert.Contains(t, page, "tokens ✓ moved +8 outside of this order: +8 1,000 1,016 1,016")
	assert.Contains(t, page, "item_gold ✓ 900 800 800")
	assert.Contains(t, c.page(t, "/"), "2 orders Calls ", "the call whose answer was lost is one of an order")
}

// The list counts orders as every other place does, and says how many calls it holds beside.
func TestCallsAreNotCountedAsOrders(t *testing.T) {
	c := newCounter(t, reporting)
	c.mint(t)
	c.service.Advance(time.Minute)
	c.shop.gold = 5
	_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	require.Error(t, err)
	list := c.page(t, "/")
	assert.Contains(t, list, "1 order, 1 not placed Calls Search Search All 2 Needs attention 0 Waiting 0 Done 1 ")
	assert.Regexp(t, "INVALID_BALANCE.*Mint 10 tokens", list, "the newest is the first")
	assert.Contains(t, c.page(t, "/?show=done"), "1 order Calls Search")
	assert.Contains(t, c.page(t, "/?q=INVALID_BALANCE"), "0 orders, 1 not placed Calls Search Search All 1 ")
	for range 60 {
		_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
		require.Error(t, err)
	}
	assert.Contains(t, c.page(t, "/"), "1 to 50 of 62 Older", "the pages have all of them")
	assert.Contains(t, c.page(t, "/?page=2"), "51 to 62 of 62")
}

// A setup with a problem is open from the start, also on a phone.
func TestASetupWithAProblemIsOpen(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.AssetsPath = "/players/assets" }, reporting)
	closed := c.html(t, "/")
	assert.Contains(t, closed, `<details id="setup-panel" class="panel">`)
	order := c.mint(t)
	c.service.Advance(time.Minute)
	page := c.html(t, "/")
	assert.Contains(t, page, `<details id="setup-problem" class="panel" open>`)
	assert.Contains(t, c.page(t, "/"), "Setup: 1 problem")
	assert.Contains(t, c.page(t, "/"), "The game has no such endpoint. Set its path with -assets.")

	// What is missing is named for those who use no Go, too, and nothing else is suspected.
	said := c.pageOf(t, order)
	assert.Contains(t, said, "the game has no GET /players/assets: set AssetsPath of ramptest.Config, or -assets of ramp emulate.")
	assert.NotContains(t, said, "log in again")
	assert.NotContains(t, said, "Balances unknown", "it is said once")
	assert.Regexp(t, `The game was asked at [0-9:]+, and reported nothing\.`, said)
}

// A server of this package says only what a result lacks.
func TestSwappedPathsAreNamed(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.ValidatePath, c.ResultPath = ramp.PathResult, ramp.PathValidate }, reporting)
	_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	require.ErrorContains(t, err, "the game takes it for a result: the paths of validate and result are swapped")
}

func TestAMissingEndpointIsNamedWithItsFlag(t *testing.T) {
	for path, want := range map[string]string{ramp.PathValidate: "set ValidatePath of ramptest.Config, or -validate of ramp emulate",
		ramp.PathResult: "set ResultPath of ramptest.Config, or -result of ramp emulate"} {
		c := newCounter(t, reporting, answering(path, 404, "no such page"))
		order, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
		if path == ramp.PathResult {
			require.NoError(t, err)
			c.service.Advance(time.Minute)
			err = c.service.Resend(t.Context(), order)
		}
		require.ErrorContains(t, err, want)
		flag := want[strings.LastIndex(want, " -"):]
		assert.Contains(t, c.page(t, "/"), "The game has no such endpoint. Set its path with"+strings.TrimSuffix(flag, " of ramp emulate")+".")
	}
}
