package ramptest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

func (c *counter) page(t *testing.T, address string) string {
	t.Helper()
	return text(t, c.browse(t, http.MethodGet, address, nil))
}

func (c *counter) pageOf(t *testing.T, o *ramptest.PlacedOrder) string {
	t.Helper()
	return c.page(t, "/orders/"+o.UUID.String())
}

// What moved elsewhere is expected too, and shown apart.
func TestMovementsOutsideOfAnOrderAreShownApart(t *testing.T) {
	c := newCounter(t)
	minted := c.mint(t) // 8 tokens for 100 gold
	c.service.Advance(time.Minute)
	burned := must.Get(c.service.Burn(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10)))(t)
	c.service.Advance(time.Minute)
	said := c.pageOf(t, minted)
	assert.Contains(t, said, "✓ Done: the game took the assets, and the player received the tokens.")
	assert.Contains(t, said, "tokens ✓ after the fee of 20% +8 +8 item_gold ✓ −100 −100 ")
	assert.Contains(t, said, "tokens outside of this order: −10 1,000 998")
	assert.Contains(t, said, "item_gold outside of this order: +100 1,000 1,000")
	said = c.pageOf(t, burned)
	assert.Contains(t, said, "tokens ✓ −10 −10 item_gold ✓ +100 +100 ")
	assert.Contains(t, said, "tokens 1,008 998 item_gold 900 1,000")
	c.shop.gold += 7 // outside of every order
	c.browse(t, http.MethodPost, "/orders/"+burned.UUID.String()+"/read", url.Values{})
	assert.Contains(t, c.pageOf(t, burned), "item_gold outside of this order: +7 900 1,007")
}

// The chain has the last word on what a wallet received.
func TestTheTokensAreThoseOfTheChain(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Decimals = 1 })
	amount, err := ramp.ParseAmount("1.19") // 0.952 after the fee
	require.NoError(t, err)
	order := must.Get(c.service.Mint(t.Context(), c.initialize(t), c.session, amount))(t)
	c.service.Advance(time.Minute)
	assert.Contains(t, c.pageOf(t, order), "tokens ✓ after the fee of 20% +0.9 +0.9 ")
}

// A contradicted order says so, and which outcome stands. It is over if the game rejected one.
// Told two outcomes, a game may do anything; the books still see what it moved.
func TestAContradictedOrderIsDisputed(t *testing.T) {
	for _, test := range []struct {
		name   string
		game   func(*ramptest.Config)
		fails  bool
		second ramptest.Outcome
		moved  map[string]string
		want   string
	}{
		{"the game rejects the second result", rejectingTheSecond(), true, ramptest.Succeeded, map[string]string{},
			`✓ The game confirmed the outcome "failed", rejected "succeeded", and gave everything back.`},
		{"the game confirms both", nil, false, ramptest.Failed, map[string]string{"item_gold": "-100"},
			"! The game confirmed two outcomes, of which the first stands: succeeded; the game took the assets."},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := []func(*ramptest.Config){reporting}
			if test.game != nil {
				options = append(options, test.game)
			}
			c := newCounter(t, append(options, kept(t))...)
			var faults []ramptest.Fault
			if test.fails {
				faults = []ramptest.Fault{ramptest.TransactionFails()}
			}
			order := c.mint(t, faults...)
			c.service.Advance(time.Minute)
			c.restart(t, c.handler, options...)
			_, _ = c.control(t, "POST", "/control/orders/"+order.UUID.String()+"/send",
				`{"outcome":"`+test.second.String()+`"}`)
			assert.Contains(t, c.pageOf(t, order), test.want)
			mark, said, _ := strings.Cut(test.want, " ")
			list := map[string]string{"!": "attention", "✓": "done"}[mark]
			assert.Contains(t, c.page(t, "/?show="+list), said, "the list says the same")
			assert.NotContains(t, c.page(t, "/?show=done"), "two outcomes")
			_, shown := c.control(t, "GET", "/control/orders/"+order.UUID.String(), "")
			assert.Equal(t, test.moved, shown.Moved)
			assert.Equal(t, said, shown.Head)
			assert.EqualValues(t, map[string]string{"!": "disputed", "✓": "done"}[mark], shown.State)
			assert.Equal(t, mark == "!", shown.Attention)
			assert.False(t, shown.Loss)

			c.restart(t, c.handler, reporting)
			assert.Contains(t, c.pageOf(t, order), test.want, "after a restart too")
		})
	}
}

// rejectingTheSecond is a game that answers HTTP 400 to all but the first result.
func rejectingTheSecond() func(*ramptest.Config) {
	answered := false
	return before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
		if r.URL.Path == ramp.PathResult && answered {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"success":false,"errorCode":"CONFLICT","data":null}`)
			return
		}
		answered = answered || r.URL.Path == ramp.PathResult
		game.ServeHTTP(w, r)
	})
}

// If the game was right to reject a result, its page says what the result would move, and not what must.
func TestThePageOfARejectedResultSaysWhatItWouldMove(t *testing.T) {
	c := newCounter(t, reporting, rejectingTheSecond())
	order := c.mint(t)
	c.service.Advance(time.Minute)
	_, _ = c.control(t, "POST", "/control/orders/"+order.UUID.String()+"/send", `{"outcome":"failed"}`)
	newest := found(t, `href="(/calls/\d+)"`, c.html(t, "/calls"))
	said := c.page(t, newest)
	assert.Contains(t, said, "Check passed: the game rejected a result that contradicts")
	assert.Contains(t, said, "item_gold would give back 100")
}

// What a game took without a valid approval stands wherever the answer does: on the exchange
// page, the order's, the call's and the list, in the control API and in the error.
func TestALossStandsInEveryHeadline(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ramptest.Config)
		want   string
	}{
		"the game fails": {before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
			if r.URL.Path == ramp.PathValidate {
				game.ServeHTTP(httptest.NewRecorder(), r)
				http.Error(w, "database is down", 500)
				return
			}
			game.ServeHTTP(w, r)
		}), "The game failed with HTTP 500."},
		"the signature is of another key": {func(c *ramptest.Config) { c.Validator = common.HexToAddress("0x1") },
			"not by the registered 0x0000000000000000000000000000000000000001 (5.3)."},
	} {
		t.Run(name, func(t *testing.T) {
			forgetful := func(c *ramptest.Config) { c.Standalone.KeepOrders = 1 }
			c := newCounter(t, kept(t), reporting, test.change, forgetful)
			id := c.initialize(t)
			page := whole(t, c.browse(t, http.MethodPost, "/exchange", c.form(id, "mint", "1")))
			headline := html.UnescapeString(found(t, `<p><strong class="bad">(.*?)</strong>`, page))
			assert.Contains(t, headline, test.want+" The game took 100 item_gold nevertheless.")
			link := found(t, `<a href="(/orders/[^"]*/events/\d+)">Open call \d+</a>`, page)
			var shown [2]answer // before a day and a restart, and after them
			for i := range shown {
				assert.Contains(t, c.html(t, "/orders/"+id.String()),
					`<a href="`+link+`" id="culprit" class="button main">Open call `)
				for _, address := range []string{"/", "/?show=attention", "/orders/" + id.String()} {
					assert.Contains(t, c.page(t, address),
						"The game did not approve the order, and took assets nevertheless.", address)
				}
				assert.Contains(t, c.page(t, link), headline)
				_, shown[i] = c.control(t, "GET", "/control/orders/"+id.String(), "")
				c.service.Advance(25 * time.Hour)
				for range 10 { // with the last of which UUIDs are forgotten
					c.initialize(t)
				}
				c.restart(t, c.handler, reporting, test.change, forgetful)
			}
			assert.Equal(t, headline, shown[0].Said)
			assert.Equal(t, shown[0], shown[1])
			raw := whole(t, c.send(t, "GET", "/control/orders/"+id.String(), ""))
			assert.NotRegexp(t, `"(tx_hash|tx_status|delivery)"`, raw, "it has no transaction")
			assert.Contains(t, raw, `"over":true`)
			_, sent := c.control(t, "POST", "/control/orders/"+id.String()+"/send", `{"outcome":"failed"}`)
			assert.Equal(t, "invalid: the game did not approve the order, so there is no result to send",
				sent.problem())
			_, answer := c.control(t, "POST", "/control/orders",
				`{"do":"mint","uuid":"`+c.initialize(t).String()+`","session_id":"session-1","access_token":"token-1"}`)
			assert.Contains(t, answer.problem(), ": "+headline)
			_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
			assert.ErrorContains(t, err, headline)
		})
	}
}

// Of very many orders that the game did not approve, those are kept for which it took something.
func TestALossIsNotForgottenAmongRejections(t *testing.T) {
	racedetector.Skip(t)
	c := newCounter(t, reporting)
	c.shop.gold, c.shop.also = 150, map[string]int64{ramp.PathValidate: -100}
	for range 1_002 {
		_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
		require.ErrorContains(t, err, "INVALID_BALANCE")
		c.shop.also = nil
	}
	_, listed := c.control(t, "GET", "/control/orders?attention=true", "")
	require.Len(t, listed.Orders, 1)
	assert.Contains(t, listed.Orders[0].Said, "The game took 100 item_gold nevertheless.")
}

// A game that knows no such session takes nothing for it, although it does not list its assets.
func TestAnOrderOfAnUnknownSessionIsNoLoss(t *testing.T) {
	c := newCounter(t, kept(t), reporting)
	_, err := c.service.Mint(t.Context(), c.initialize(t),
		ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-2")}, ramp.NewAmount(1))
	require.ErrorContains(t, err, "INVALID_USER")
	for range 2 {
		_, listed := c.control(t, "GET", "/control/orders?attention=true", "")
		assert.Empty(t, listed.Orders)
		c.restart(t, c.handler, reporting)
	}
}

// What the order of a UUID took is not blamed on a second one, which the game rejects.
func TestASecondOrderOfAUUIDIsNotBlamedForTheFirst(t *testing.T) {
	c := newCounter(t, reporting,
		func(c *ramptest.Config) { c.Handler = instead(ramp.PathValidate, false, 0, 200)(c.Handler) })
	id := c.initialize(t)
	must.Get(c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(1)))(t)
	c.service.Advance(time.Minute)
	_, err := c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(1))
	require.ErrorContains(t, err, "NO")
	assert.NotContains(t, err.Error(), "nevertheless")
	_, answer := c.control(t, "POST", "/control/orders",
		`{"do":"mint","uuid":"`+id.String()+`","session_id":"session-1","access_token":"token-1","amount":"1"}`)
	assert.NotContains(t, answer.problem(), "nevertheless")
}

// The page of an order whose results contradict each other says one thing in its head, on its way and in its
// rows: what the game confirmed stands, also if it is said again after something else. A row says what its
// result claimed.
func TestContradictingResultsSayWhatTheyClaim(t *testing.T) {
	failed, succeeded, no := ramptest.Failed, ramptest.Succeeded, errors.New("no")
	const passed = "The game did not confirm a result that contradicts the chain or an earlier one, but with HTTP " +
		"500, as a crash would. (by hand)"
	for name, test := range map[string]struct {
		results []ramptest.Outcome
		answers []error // of the game to them, first; nil confirms
		way     string
		rows    []string
	}{
		"what stands comes again": {[]ramptest.Outcome{failed, succeeded, failed, succeeded, failed, succeeded},
			[]error{nil, no, nil, no, nil, no},
			"– Chain failed, as you chose – Result told the game: succeeded · HTTP 500",
			[]string{"result #1 told the game: failed · 200 Confirmed. (by hand) books:",
				"result #2 told the game: succeeded · " + passed,
				"result #5 told the game: failed · 200 Confirmed. (by hand) books: nothing moved"}},
		"the chain is right after the game failed": {[]ramptest.Outcome{succeeded, failed}, []error{no},
			"– Chain failed, as you chose ✓ Result told the game: failed · HTTP 200",
			[]string{"result #1 told the game: succeeded · " + passed,
				"result #2 told the game: failed · 200 Confirmed. (by hand)"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(t, reporting)
			order := c.mint(t, ramptest.TransactionFails(), ramptest.ResultNever())
			c.service.Advance(time.Minute)
			c.shop.answers = test.answers
			for _, outcome := range test.results {
				_ = c.service.Deliver(t.Context(), order, outcome)
			}
			said := c.pageOf(t, order)
			assert.Contains(t, said, `✓ The game confirmed the outcome "failed", did not confirm "succeeded", `+
				`and gave everything back.`)
			assert.Contains(t, said, test.way)
			for _, row := range test.rows {
				assert.Contains(t, said, row)
			}
			assert.NotContains(t, said, "The game confirmed a result that contradicts")
			assert.NotContains(t, said, "with the same answer", "what says something else is not folded away")
			assert.Contains(t, c.page(t, "/"), "Needs attention 0 ")
		})
	}
}

// Two answers that come again by turns are shown once, also if they are very many.
func TestAnswersThatComeAgainByTurnsTakeTwoRows(t *testing.T) {
	c := newCounter(t, reporting)
	order := c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute) // result #1 said failed
	for n := range 200 {
		if n%2 == 0 {
			c.shop.answers = []error{errors.New("no")}
		}
		_ = c.service.Deliver(t.Context(), order, []ramptest.Outcome{ramptest.Succeeded, ramptest.Failed}[n%2])
	}
	said := c.pageOf(t, order)
	assert.Equal(t, 4, strings.Count(said, " told the game: "), "#1, two rows, and the result on the way")
	assert.Contains(t, said, "and 198 more with the same two answers by turns , until result #201 at ")
	oneByOne := html.UnescapeString(found(t, `<p class="again"><a href="([^"]*)"`,
		c.html(t, "/orders/"+order.UUID.String())))
	assert.Contains(t, c.page(t, oneByOne), "result #201 told the game: failed · 200 Confirmed.")
	calls := c.page(t, "/calls")
	assert.Contains(t, calls, "and 198 more with the same two answers by turns , since POST /api/result #2 at ")
	assert.Equal(t, 2, strings.Count(calls, "POST /api/result #20"))
}

// With the books off, a contradiction is still seen.
func TestADisputeNeedsNoBooks(t *testing.T) {
	c := newCounter(t, auditOff, rejectingTheSecond())
	order := c.mint(t)
	c.service.Advance(time.Minute)
	assert.Contains(t, c.pageOf(t, order),
		"? The books are off, so the game's assets were not checked.")
	_ = c.service.Deliver(t.Context(), order, ramptest.Failed)
	assert.Contains(t, c.pageOf(t, order),
		`! The game confirmed the outcome "succeeded", and rejected "failed".`)
}

// A game that rejects what it must reject is right, and what the service did itself is
// nobody's failure.
func TestARejectionThatIsRightIsShownAsRight(t *testing.T) {
	c := newCounter(t)
	c.shop.gold = 100
	order := c.mint(t, ramptest.ValidateOtherDigest(), ramptest.ValidateOtherAmount(),
		ramptest.WrongHMAC(ramptest.OnValidate), ramptest.Perhaps(ramptest.LostAnswer(ramptest.OnResult)))
	c.service.Advance(time.Minute)
	said := c.pageOf(t, order)
	for _, want := range []string{
		"INVALID_MESSAGE Check passed: the game rejected an order with another digest under the same UUID. books:",
		"INVALID_MESSAGE Check passed: the game rejected an order with another amount under the same UUID. books:",
		"HMAC_INVALID Check passed: the game rejected a forged call: wrong HMAC. books:",
		"● The answer was lost on purpose. Next attempt at ",
		"✓ Initialize HTTP 200 ✓ Validate approved ✓ Chain succeeded ", // the approval, and no check
	} {
		assert.Contains(t, said, want)
	}
	assert.NotContains(t, said, "different HMAC key", "no cause is made up")
	assert.NotContains(t, said, "the player owned", "nor is it explained by a balance")
	for _, e := range c.service.Events() {
		assert.False(t, e.Failed, e.String())
	}
	assert.Contains(t, c.page(t, "/"), "Needs attention 0")
}

// A part of a UUID or of a hash finds its order, wherever it begins.
func TestPartsOfAUUIDAndOfAHashFindTheOrder(t *testing.T) {
	c := newCounter(t)
	o := c.mint(t)
	id, hash := o.UUID.String(), o.TxHash.Hex()
	queries := []string{id, strings.ReplaceAll(id, "-", ""), strings.ToUpper(id), hash, hash[2:], hash[:4],
		"0x" + id[:2]}
	for _, text := range []string{id, hash[2:20]} {
		for from := range text {
			for _, size := range []int{1, 2, 3, 7} {
				if part := text[from:min(from+size, len(text))]; strings.Trim(part, "-") != "" {
					queries = append(queries, part)
				}
			}
		}
	}
	for _, query := range queries {
		assert.Contains(t, c.page(t, "/?q="+query), "All 1 ", query)
	}
	for _, query := range []string{id[:35] + "x", hash[:65] + "g", strings.Repeat("0", 40)} {
		assert.Contains(t, c.page(t, "/?q="+query), "All 0 ", query)
	}
}

// Whatever happened can be found, with its reason, also if it led to no order.
func TestCallsWithoutAnOrderAreListed(t *testing.T) {
	c := newCounter(t, auditOff, kept(t))
	c.mint(t)
	c.service.Advance(time.Minute)
	wrong := must.Get(ramp.TextKey("no key of ours"))(t)
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: c.service.URL(), Key: wrong,
		HTTPClient: c.service.Client(), Retries: -1}))(t)
	_, err := client.Initialize(t.Context(), request())
	require.Error(t, err)
	c.shop.gold = 5
	rejected := c.initialize(t)
	_, err = c.service.Mint(t.Context(), rejected, c.session, ramp.NewAmount(1))
	require.Error(t, err)

	said := c.page(t, "/")
	assert.Contains(t, said, "– ")
	assert.Regexp(t,
		"Mint 1 token "+rejected.String()[:8]+` not approved call \d+ session-1 Rejected by the game: `+
			`INVALID_BALANCE\. The game says that the player does not own enough\.`, said, "why, in a few words")
	assert.Regexp(t, `POST /api/v2/initialize refused with HTTP 500 call \d+ No UUID was issued: invalid mac\.`, said)
	assert.Contains(t, said, "1 order, 2 not placed Calls Search Search All 3 Needs attention 1 Waiting 0 Done 1 "+
		"Rejected or canceled 1 ",
		"a call is no order")
	assert.Regexp(t, "INVALID_BALANCE.*invalid mac.*Mint 10 tokens", said, "the newest is the first")
	assert.Contains(t, c.page(t, "/?show=attention"), "0 orders, 1 not placed")
	assert.Contains(t, c.page(t, "/?show=done"), "1 order Calls Search")
	assert.Contains(t, c.page(t, "/?q=INVALID_BALANCE"), "0 orders, 1 not placed Calls Search Search All 1 ")
	for query, want := range map[string]string{rejected.String(): "INVALID_BALANCE",
		"invalid_balance": "INVALID_BALANCE", "mac": "invalid mac", "session-1": "INVALID_BALANCE"} {
		assert.Contains(t, c.page(t, "/?q="+query), want, query)
	}
	page := c.browse(t, http.MethodGet, "/", nil)
	body := whole(t, page)
	link := regexp.MustCompile(`href="(/calls/\d+)"`).FindAllStringSubmatch(body, -1)
	require.Len(t, link, 2)
	call := c.page(t, link[0][1])
	assert.Contains(t, call, "Rejected by the game: INVALID_BALANCE.")
	assert.Contains(t, call, "The game says that the player does not own enough. What the player owned is unknown.")
	assert.Contains(t, call, "asked: POST "+ramp.PathValidate)
	assert.NotContains(t, call, "token-1")
	assert.Contains(t, c.page(t, link[1][1]),
		"Compare RAMP_HMAC_KEY with the key of the emulator, whose fingerprint is "+
			c.key.Fingerprint()+" (those of the program that runs this emulator).")
	for _, wrong := range []string{"/calls/x", "/calls/0", "/calls/999"} {
		assert.Equal(t, 404, c.browse(t, http.MethodGet, wrong, nil).StatusCode, wrong)
	}

	c.restart(t, c.handler, auditOff)
	assert.Contains(t, c.page(t, "/"), "1 order, 2 not placed", "after a restart too")
	assert.Regexp(t, `not approved call \d+ session-1 Rejected by the game: INVALID_BALANCE. The game says`,
		c.page(t, "/calls?session=session-1"))
	assert.Contains(t, c.page(t, link[0][1]), "asked: POST "+ramp.PathValidate)
}

// The page of all calls has every call, newest first, in pieces.
func TestAllCallsAreListed(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t)
	c.service.Advance(time.Minute)
	for range 60 {
		require.NoError(t, c.service.Resend(t.Context(), order))
	}
	seen := map[string]bool{}
	older := regexp.MustCompile(`<a href="([^"]*)">Older</a>`)
	last := 1 << 30
	for next := "/calls?each=1"; next != ""; {
		body := c.html(t, next)
		for _, m := range regexp.MustCompile(`<li id="call-(\d+)"`).FindAllStringSubmatch(body, -1) {
			var n int
			must.Get(fmt.Sscan(m[1], &n))(t)
			require.Less(t, n, last, "newest first")
			last, seen[m[1]] = n, true
		}
		next = ""
		if found := older.FindStringSubmatch(body); found != nil {
			next = strings.ReplaceAll(found[1], "&amp;", "&")
		}
	}
	assert.Len(t, seen, 1+1+1+60, "initialize, validate, the result, and those again")
	assert.Contains(t, c.page(t, "/calls?session=session-1"), "POST /api/result #61")
	assert.Contains(t, c.page(t, "/calls?session=session-2"), "No calls match.")
	assert.Contains(t, c.page(t, "/calls?q=initialize&session=session-1"), "POST /api/v2/initialize",
		"those of its orders")
	routine := c.page(t, "/calls?routine=1&each=1")
	assert.Contains(t, routine, "GET /api/assets ")
	assert.Contains(t, routine, "Routine calls are listed, too. Hide them ")
	assert.NotContains(t, c.page(t, "/calls"), "GET /api/assets")
	assert.Regexp(t, "All calls Failures and rejections [0-9]+ routine calls are hidden: readings of balances and "+
		"calls to a chain that went well. Show them . What the chain did and the books found has numbers, too. ✓",
		c.page(t, "/calls"))
	assert.NotContains(t, c.page(t, "/calls?wrong=1"), "hidden", "of which none is routine")
	assert.Contains(t, c.page(t, "/calls?session=session-2"), "All calls Failures and rejections No calls match.")
	assert.Contains(t, c.page(t, "/calls?wrong=1"), "No calls match.")
	assert.Contains(t, c.html(t, "/calls"), "Failures and rejections</a>", "of which there are none")
	c.shop.answers = []error{errors.New("the database is unreachable")}
	_ = c.service.Resend(t.Context(), order)
	wrong := c.page(t, "/calls?wrong=1")
	require.NoError(t, c.service.Resend(t.Context(), order))
	assert.Regexp(t, "POST /api/result #62 "+order.UUID.String()[:8]+
		` told the game: succeeded · HTTP 500 call \d+ session-1 The game failed with HTTP 500`, wrong)
	assert.NotContains(t, wrong, "/api/validate")
	assert.Contains(t, c.page(t, "/calls"), "Failures and rejections 1 ")
}

// Everything that is kept can be reached.
func TestTheListHasPages(t *testing.T) {
	c := newCounter(t, auditOff)
	for range 120 {
		c.shop.gold = 1000
		c.mint(t)
	}
	c.service.Advance(time.Minute)
	seen := map[string]bool{}
	for n, address := range []string{"/", "/?page=2", "/?page=3"} {
		body := c.html(t, address)
		for _, m := range regexp.MustCompile(`<li id="order-([^"]*)"`).FindAllStringSubmatch(body, -1) {
			seen[m[1]] = true
		}
		assert.Equal(t, n > 0, strings.Contains(body, ">Newer</a>"))
		assert.Equal(t, n < 2, strings.Contains(body, ">Older</a>"))
	}
	assert.Len(t, seen, 120)
	assert.Contains(t, c.page(t, "/?page=3"), "101 to 120 of 120")
	assert.Contains(t, c.page(t, "/?page=9"), "This page is empty.")
	assert.Contains(t, c.page(t, "/?page=x"), "1 to 50 of 120")
}

// After a day, a time has a date.
func TestADayThatHasPassedIsShown(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) })
	order := c.mint(t, ramptest.Perhaps(ramptest.ResultLate(48*time.Hour)))
	clock, said, _ := strings.Cut(c.pageOf(t, order), " stopped until you pass time")
	assert.Contains(t, clock, "clock Nov 21 12:00:00")
	assert.NotContains(t, said, "Nov 21")
	c.service.Advance(time.Minute)
	assert.Contains(t, c.pageOf(t, order), "The result is sent at Nov 23 12:00:01")
	c.service.Advance(24 * time.Hour)
	assert.Contains(t, c.pageOf(t, order), "Nov 21 12:00:00")
	assert.Contains(t, c.page(t, "/"), "Nov 21 12:00:00 Mint 10 tokens")
}

func TestThePageOfAnOrderNamesEverything(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t, ramptest.Perhaps(ramptest.TransactionFails()),
		ramptest.Perhaps(ramptest.ResultLate(time.Minute)))
	said := c.pageOf(t, order)
	for _, want := range []string{"UUID " + order.UUID.String(), "Transaction " + order.TxHash.Hex(),
		"Session session-1", "Wallet " + order.Request.UserAddress,
		"Contract " + request().Intent.Token, "Faults transaction-fails, result-late=1m0s"} {
		assert.Contains(t, said, want)
	}
	assert.Contains(t, c.pageOf(t, c.mint(t)), "Faults none")
}

// The first button is what somebody wants next.
func TestTheMainButtonOfAFinishedOrderStartsAnother(t *testing.T) {
	main := regexp.MustCompile(`<button id="(\w+)" class="main"`)
	button := func(c *counter, o *ramptest.PlacedOrder) string {
		found := main.FindAllStringSubmatch(c.html(t, "/orders/"+o.UUID.String()), -1)
		require.Len(t, found, 1)
		return found[0][1]
	}
	c := newCounter(t, reporting, rejectingTheSecond())
	order := c.mint(t)
	assert.Equal(t, "mine", button(c, order))
	c.service.Advance(time.Minute)
	assert.Equal(t, "another", button(c, order))
	never := c.mint(t, ramptest.ResultNever())
	c.service.Advance(time.Minute)
	assert.Equal(t, "resend", button(c, never))
	rejected := c.mint(t)
	c.service.Advance(time.Minute)
	assert.Equal(t, "resend", button(c, rejected), "the game never confirmed it")
}

// An expired UUID offers the same order under a new one.
func TestAnExpiredUUIDLeadsToANewOne(t *testing.T) {
	c := newCounter(t)
	address, form := c.exchange(t)
	c.service.Advance(6 * time.Minute)
	form["fault"] = []string{"validate-twice", "reorganized"}
	form.Set("amount", "7")
	form.Set("chain", "transaction-fails")
	for _, expired := range []*http.Response{c.browse(t, http.MethodGet, address, nil),
		c.browse(t, http.MethodPost, "/exchange", form)} {
		assert.Equal(t, 410, expired.StatusCode)
		assert.Contains(t, whole(t, expired), `action="/exchange/again"`)
	}
	again := c.browse(t, http.MethodPost, "/exchange/again", form)
	require.Equal(t, 303, again.StatusCode)
	next := c.html(t, again.Header.Get("Location"))
	assert.NotContains(t, next, form.Get("uuid"))
	assert.Contains(t, next, `name="amount" inputmode="decimal" autocomplete="off" required value="7"`)
	assert.Equal(t, 5, strings.Count(next, " checked"), "mint, fail, once and two faults")
	form.Set("uuid", uuid.NewString())
	assert.Equal(t, 404, c.browse(t, http.MethodPost, "/exchange/again", form).StatusCode)
}

// A game that does not answer is said once, with its address. An order of which nothing was sent
// is judged as new when the game is back.
func TestAGameThatDoesNotAnswerIsSaidOnce(t *testing.T) {
	var game *httptest.Server
	c := newCounter(t, reporting, func(c *ramptest.Config) {
		game = httptest.NewServer(c.Handler)
		t.Cleanup(game.Close)
		c.Game, c.Handler = game.URL, nil
	})
	order := c.mint(t)
	_, form := c.exchange(t)
	form.Set("sessionId", "session-2") // of which nothing is known
	assert.NotContains(t, c.page(t, "/"), "does not answer")
	address, handler := game.Listener.Addr().String(), game.Config.Handler
	game.Close()
	c.service.Advance(time.Minute)
	c.browse(t, http.MethodPost, "/orders/"+order.UUID.String()+"/read", url.Values{})
	want := "The game does not answer at " + game.URL + "."
	for _, said := range []string{c.page(t, "/"), c.pageOf(t, order),
		text(t, c.browse(t, http.MethodPost, "/exchange", form))} {
		assert.Equal(t, 1, strings.Count(said, want), said)
		assert.NotContains(t, said, "Is it running, at", "nor its cause again")
		assert.NotContains(t, said, "no answer, the game did not answer")
	}
	assert.Contains(t, c.page(t, "/"), "Setup: ", "what was seen before still counts")
	assert.Contains(t, c.page(t, "/"), "Settings for the game export RAMP_API_URL=")
	problem, _, _ := strings.Cut(text(t, c.browse(t, http.MethodPost, "/exchange", form)), " Tokens ")
	assert.Contains(t, problem,
		"restart with its address in -game. The order was not placed. Nothing was sent, so nothing moved.")
	assert.NotContains(t, problem, "To the order")
	assert.Contains(t, c.page(t, "/"), " 1 order, 2 not placed ")
	assert.Contains(t, c.page(t, "/?show=attention"), "Mint 10 tokens, not approved")
	assert.Equal(t, 1, strings.Count(problem, "Nothing listens at "+address+"."))
	assert.Contains(t, c.pageOf(t, order), "The game did not answer. Next attempt at ")
	assert.Equal(t, 404, c.browse(t, http.MethodGet, "/orders/"+form.Get("uuid"), nil).StatusCode)

	back := &httptest.Server{Listener: must.Get(net.Listen("tcp", address))(t), Config: &http.Server{Handler: handler}}
	back.Start()
	t.Cleanup(back.Close)
	require.Equal(t, 303, c.browse(t, http.MethodPost, "/exchange", form).StatusCode)
	c.service.Advance(time.Minute)
	assert.Contains(t, c.page(t, "/orders/"+form.Get("uuid")),
		"✓ Done: the game took the assets, and the player received the tokens.")
}

// Against a correct game, no fault may be called a failure of the game at any time.
func TestNoFaultIsAFailureOfACorrectGame(t *testing.T) {
	racedetector.Skip(t)
	for _, fault := range everyFault(t) {
		text := fault.String()
		if text == "expired-uuid" || text == "burns-less" {
			continue // there is no order; this game has no Proof, so it can be cheated
		}
		for _, burn := range []bool{false, true} {
			for _, fails := range []bool{false, true} {
				c := newCounter(t)
				faults := []ramptest.Fault{ramptest.Perhaps(fault)}
				if fails {
					faults = append(faults, ramptest.Perhaps(ramptest.TransactionFails()))
				}
				play := c.service.Mint
				if burn {
					play = c.service.Burn
				}
				name := fmt.Sprintf("%s, burn %v, fails %v", text, burn, fails)
				order, err := play(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10), faults...)
				if errors.Is(err, ramptest.ErrLostAnswer) {
					assert.Contains(t, c.page(t, "/"), "0 orders, 1 not placed", name)
					continue
				}
				if errors.Is(err, ramptest.ErrOffTerms) { // this game offers everything
					assert.Contains(t, c.page(t, "/?show=attention"),
						"The game approved an order off the terms of its UUID.", name)
					continue
				}
				require.NoError(t, err, name)
				for _, pass := range []time.Duration{0, time.Second, time.Second, time.Minute, 5 * time.Minute,
					time.Hour, 24 * time.Hour} {
					c.service.Advance(pass)
					_, shown := c.control(t, "GET", "/control/orders/"+order.UUID.String(), "")
					require.False(t, shown.Attention || shown.Loss, "%s after %s: %s", name, pass, shown.Said)
					require.Contains(t, []string{"waiting", "done"}, string(shown.State), name)
					said := c.pageOf(t, order)
					require.Contains(t, said, shown.Head, "the page says the same")
					require.NotContains(t, said, "✗", name)
					require.Contains(t, c.page(t, "/"), "All 1 Needs attention 0", name)
				}
				for _, e := range c.service.Events() {
					require.False(t, e.Failed, "%s: %s", name, e)
				}
			}
		}
	}
}

// A clock that was moved is not called real, and the page says what passing time did.
func TestAMovedClockSaysHowFar(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Standalone.Speed = 1 })
	order := c.mint(t)
	assert.Contains(t, c.pageOf(t, order), " real time ")
	passed := c.browse(t, http.MethodPost, "/orders/"+order.UUID.String()+"/advance", url.Values{"minutes": {"65"}})
	assert.Contains(t, c.page(t, passed.Header.Get("Location")), "1 h 5 min passed; 1 result sent")
	assert.Contains(t, c.page(t, "/"), " 1 h 5 min ahead ")
	assert.NotContains(t, c.pageOf(t, order), "passed;")
}

// A filter counts what it shows, and a loss stands on top.
func TestAFilterCountsWhatItShows(t *testing.T) {
	c := newCounter(t, reporting, answering(ramp.PathResult, 200, confirmed))
	c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	assert.Contains(t, c.page(t, "/"), "✗ 1 order: The transaction failed, and the game keeps all that it took. "+
		"It began with call 9 . Connection works · last call")
	assert.Contains(t, c.html(t, "/"), `It began with <a href="/calls/9" id="first-lost">call 9</a>.`)
	assert.Equal(t, 1, strings.Count(c.html(t, "/calls"), `<li id="call-9" class="lost">`))
	_, err := c.client.Initialize(t.Context(), ramp.InitializeRequest{})
	require.Error(t, err)
	c.mint(t)
	c.service.Advance(time.Minute) // done
	c.mint(t)                      // waits
	c.shop.gold = 0
	_, err = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	require.ErrorContains(t, err, "INVALID_BALANCE")
	sum, seen := 0, map[string]string{}
	for _, show := range []string{"", "attention", "waiting", "done", "ended"} {
		page := c.html(t, "/?show="+show)
		counted := must.Get(strconv.Atoi(found(t, `aria-current="page">[^<]*? (\d+)</a>`, page)))(t)
		entries := regexp.MustCompile(`<li id="((?:order|call)-[^"]*)"`).FindAllStringSubmatch(page, -1)
		assert.Len(t, entries, counted, show)
		if show == "" {
			sum = counted
			continue
		}
		sum -= counted
		for _, e := range entries {
			assert.Empty(t, seen[e[1]], "%s is in %s, too", e[1], show)
			seen[e[1]] = show
		}
	}
	assert.Zero(t, sum, "the counts add up to that of all")
	assert.Len(t, seen, 4)
}

// An order that waits for another attempt because the game failed is counted once: it needs attention.
func TestAnOrderIsInOneFilter(t *testing.T) {
	c := newCounter(t, reporting, answering(ramp.PathResult, 500, ""))
	c.mint(t)
	c.service.Advance(time.Minute)
	assert.Contains(t, c.page(t, "/"), "All 1 Needs attention 1 Waiting 0 Done 0 Rejected or canceled 0 ")
	assert.Contains(t, c.page(t, "/?show=attention"), "The game did not confirm the result. Next attempt at ")
}

// Calls that failed alike and led to no order take one line of the list.
func TestCallsThatFailedAlikeAreOneLine(t *testing.T) {
	c := newCounter(t)
	other := clientOf(t, c.service, must.Get(ramp.TextKey("no key of ours"))(t))
	for range 20 {
		_, err := other.Initialize(t.Context(), request())
		require.ErrorIs(t, err, ramp.ErrHMACInvalid)
	}
	said := c.page(t, "/?show=attention")
	assert.Contains(t, said, "0 orders, 20 not placed")
	assert.Equal(t, 1, strings.Count(said, "No UUID was issued: invalid mac."))
	assert.Contains(t, said, "and 19 more with the same answer , since POST /api/v2/initialize at ")
	oneByOne := html.UnescapeString(found(t, `<p class="again"><a href="([^"]*)"`, c.html(t, "/?show=attention")))
	assert.Equal(t, 19, strings.Count(c.page(t, oneByOne), "No UUID was issued: invalid mac."))
}

// The call that broke an order first is named, whatever came after it.
func TestTheFirstCallThatWentWrongIsNamed(t *testing.T) {
	for _, test := range []struct {
		name    string
		answer  func(*ramptest.Config)
		resends int
		said    string
		mark    string
		list    string
	}{
		{"nothing is given back", answering(ramp.PathResult, 200, confirmed), 510, "Assets first went wrong with ",
			"✗ Assets first went wrong here.", "keeps all that it took. It began with result #1, call "},
		{"the game fails", answering(ramp.PathResult, 500, ""), 30, "First wrong answer: ",
			"✗ First wrong answer to a result.", "The game did not confirm the result."},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCounter(t, reporting, test.answer)
			order := c.mint(t, ramptest.TransactionFails())
			c.service.Advance(time.Minute)
			first := found(t, `href="/calls/(\d+)"`, c.html(t, "/calls"))
			for range test.resends {
				_ = c.service.Resend(t.Context(), order)
			}
			said := c.pageOf(t, order)
			assert.Contains(t, said, test.said+"result #1 (call "+first+", at ")
			assert.Equal(t, "/orders/"+order.UUID.String()+"/events/"+first, c.culprit(t, order))
			assert.Contains(t, c.page(t, "/calls/"+first), "result #1 at ")
			assert.Equal(t, 1, strings.Count(said, test.mark))
			assert.Contains(t, said, "result #1 "+test.mark)
			assert.Contains(t, said, "✓ Initialize HTTP 200 ✓ Validate approved", "however long ago")
			assert.Contains(t, c.page(t, "/"), test.list)
			assert.NotContains(t, said, "Show earlier entries", "repetitions do not push it away")
			assert.Contains(t, said, fmt.Sprintf("and %d more with the same answer , until result #%d at ",
				test.resends-1, test.resends+1), "#1 was not sent by hand")

			calls := c.page(t, "/calls")
			more := fmt.Sprintf("and %d more with the same answer , since POST /api/result #2 at ", test.resends-1)
			assert.Equal(t, 1, strings.Count(calls, more))
			_, before, _ := strings.Cut(calls, more)
			assert.Contains(t, before, " POST /api/result #1 ", "the first one is not folded away")
			loses := strings.Contains(test.mark, "Assets")
			assert.Equal(t, loses, strings.Contains(before, "Assets first went wrong here."))
			assert.Equal(t, loses, strings.Contains(calls, "Still wrong, as since call "+first+"."), "no other loss")
			assert.Equal(t, loses, strings.Contains(said, "✗ Still wrong, as since call "+first+"."))
			oneByOne := html.UnescapeString(found(t, `<p class="again"><a href="([^"]*)"`,
				c.html(t, "/calls?q=result")))
			assert.Regexp(t, `^/calls\?before=\d+&each=1&q=result$`, oneByOne)
			assert.NotContains(t, c.page(t, oneByOne), "with the same answer ,")

			next := html.UnescapeString(found(t, `<p class="again"><a href="([^"]*)"`,
				c.html(t, "/orders/"+order.UUID.String())))
			var listed int
			for next != "" {
				body := c.html(t, next)
				listed += strings.Count(body, `id="entry-`)
				assert.Contains(t, body, "Calls with the same answers")
				next = ""
				earlier := regexp.MustCompile(`class="earlier" href="([^"]*)"`).FindStringSubmatch(body)
				if earlier != nil {
					next = html.UnescapeString(earlier[1])
				}
			}
			assert.Equal(t, test.resends-1, listed)
		})
	}
}

// If the record has lost the beginning of an order, no call is said to be the first.
func TestNoCallIsTheFirstIfTheRecordHasLostTheBeginning(t *testing.T) {
	c := newCounter(t, reporting, answering(ramp.PathResult, 200, confirmed))
	order := c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	require.NoError(t, c.service.Resend(t.Context(), order))
	for _, address := range []string{"/", "/calls", "/orders/" + order.UUID.String()} {
		assert.Regexp(t, "It began with result #1|Assets first went wrong", c.page(t, address))
	}
	c.forgetEvents(t)
	require.NoError(t, c.service.Resend(t.Context(), order))
	for _, address := range []string{"/", "/calls", "/orders/" + order.UUID.String()} {
		assert.NotRegexp(t, "It began with|first went wrong", c.page(t, address))
	}
	assert.Contains(t, c.pageOf(t, order), "Assets went wrong with result #3 (call ")
	assert.Contains(t, c.pageOf(t, order), "✗ Assets went wrong here.")
	assert.Contains(t, c.pageOf(t, order), "– Initialize not in the record – Validate not in the record")
}

// forgetEvents makes more calls than the service keeps.
func (c *counter) forgetEvents(t *testing.T) {
	t.Helper()
	body := must.Get(json.Marshal(request()))(t)
	for range 10_001 {
		r := httptest.NewRequest(http.MethodPost, "/api/v2/initialize", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(ramp.HeaderHMAC, c.key.Sign(body))
		c.service.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// A result is said to be sent again only if it is.
func TestAResultIsSaidToComeAgainOnlyIfItDoes(t *testing.T) {
	unreachable := func(c *counter, n int) {
		c.shop.answers = slices.Repeat([]error{errors.New("the database is unreachable")}, n)
	}
	results := func(c *counter) (said []string) {
		for _, e := range c.service.Events() {
			if e.Kind == control.KindResult {
				said = append(said, e.Said)
			}
		}
		return said
	}
	const again, never = "The game failed with HTTP 500 and INTERNAL_ERROR. The result is sent again.",
		"The game failed with HTTP 500 and INTERNAL_ERROR."
	threeTimes := func(c *ramptest.Config) { c.Schedule = []time.Duration{time.Minute, time.Minute} }
	t.Run("until no attempt is left", func(t *testing.T) {
		c := newCounter(t, reporting, threeTimes)
		order := c.mint(t)
		unreachable(c, 9)
		c.service.Advance(time.Second)
		_ = c.service.Resend(t.Context(), order) // the next one is planned
		c.service.Advance(time.Hour)
		_ = c.service.Resend(t.Context(), order)
		assert.Equal(t, []string{again, again, again, never, never}, results(c))
	})
	t.Run("after it was confirmed", func(t *testing.T) {
		c := newCounter(t, reporting, threeTimes, answeringResults(0, 500))
		order := c.mint(t)
		c.service.Advance(time.Second)
		_ = c.service.Resend(t.Context(), order)
		assert.Equal(t, "Confirmed.", results(c)[0])
		assert.Equal(t, "The game failed with HTTP 500.", results(c)[1])
	})
	t.Run("after it was rejected, although one was planned", func(t *testing.T) {
		c := newCounter(t, reporting, threeTimes, answeringResults(500, 400, 500))
		order := c.mint(t)
		c.service.Advance(time.Second)
		for range 2 {
			_ = c.service.Resend(t.Context(), order)
		}
		c.service.Advance(time.Hour)
		assert.Equal(t, []string{"The game failed with HTTP 500. The result is sent again.",
			"The game rejected the result with HTTP 400. It is not sent again.", "The game failed with HTTP 500."},
			results(c))
	})
}

// answeringResults answers results with statuses, one after the other. For 0, and later, the game answers.
func answeringResults(statuses ...int) func(*ramptest.Config) {
	return before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
		status := 0
		if r.URL.Path == ramp.PathResult && len(statuses) > 0 {
			status, statuses = statuses[0], statuses[1:]
		}
		if status == 0 {
			game.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
	})
}

// A clock that stands still counts nothing down.
func TestAStoppedClockCountsNothingDown(t *testing.T) {
	for speed, counts := range map[float64]bool{0: false, 1: true} {
		c := newCounter(t, func(c *ramptest.Config) { c.Standalone.Speed = speed })
		order := c.mint(t, ramptest.Perhaps(ramptest.ResultLate(time.Hour)))
		c.service.Advance(time.Minute)
		page := c.html(t, "/orders/"+order.UUID.String())
		assert.Contains(t, page, "The result is sent <span class=\"due\"")
		assert.Equal(t, counts, strings.Contains(page, "data-due="))
	}
}

// An amount that is none has no price.
func TestAWrongAmountHasNoPrice(t *testing.T) {
	c := newCounter(t)
	_, form := c.exchange(t)
	for _, change := range []string{"", "price"} {
		form.Set("amount", "ten")
		form.Del("price")
		if change != "" {
			form.Set(change, "1")
		}
		page := whole(t, c.browse(t, http.MethodPost, "/exchange", form))
		assert.Contains(t, page, "The number of tokens must be a decimal number above 0.")
		assert.Equal(t, 2, strings.Count(page, `class="price" id="price-`))
		assert.Equal(t, 2, strings.Count(page, `" hidden>`+"\ntakes "), page)
	}
}

// A rejection that is the game's right looks alike wherever it is shown.
func TestARejectedOrderIsNoFailureAnywhere(t *testing.T) {
	for code, neutral := range map[string]bool{"CLOSED": true, "": false} {
		c := newCounter(t, reporting, rejects(code))
		_, form := c.exchange(t)
		page := whole(t, c.browse(t, http.MethodPost, "/exchange", form))
		assert.Equal(t, neutral, strings.Contains(page, `<section class="problem neutral"`))
		call := c.html(t, html.UnescapeString(found(t, `<a href="([^"]*)">Open call \d+</a>`, page)))
		for _, page := range []string{call, c.html(t, "/calls"), c.html(t, "/")} {
			assert.Equal(t, neutral, strings.Contains(page, `<span class="sign neutral"`))
			assert.Equal(t, !neutral, strings.Contains(page, `<span class="sign bad"`))
		}
	}
}

// A long message says how much of it is folded, and that the record has only its beginning.
func TestALongMessageIsNotCutWithoutASign(t *testing.T) {
	list := strings.TrimSuffix(strings.Repeat(`"item",`, 150), ",")
	for _, test := range []struct {
		name, body string
		want       []string
		not        string
	}{
		{"folded", `{"success":true,"errorCode":null,"data":{"list":[` + list + `]}}`, []string{" more lines"},
			"The body was longer."},
		{"cut", `{"success":true,"errorCode":null,"data":{"list":["` + strings.Repeat("x", desk64K) + `"]}}`,
			[]string{"The body was longer. The record keeps its first 64 KiB."}, " more lines"},
		{"short", confirmed, nil, " more lines"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCounter(t, reporting, answering(ramp.PathResult, 200, test.body))
			order := c.mint(t)
			c.service.Advance(time.Minute)
			said := c.page(t, found(t, `href="(/calls/\d+)"`, c.html(t, "/calls")))
			assert.Contains(t, said, order.UUID.String())
			_, answered, _ := strings.Cut(said, "answered: HTTP 200")
			for _, want := range test.want {
				assert.Contains(t, answered, want)
			}
			assert.NotContains(t, answered, test.not)
			if test.name == "folded" {
				assert.Equal(t, 150, strings.Count(said, `"item"`))
			}
		})
	}
}

const desk64K = 64 << 10

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
			want: "Rejected by the game: INVALID_BALANCE. The order takes 100 item_gold; the player owned 40 " +
				"item_gold. No transaction was made. about: Mint 1 token item_gold takes 100; owned 40 asked:"},
		{name: "too little, of another UUID and amount", owns: 40, amount: 3, own: true,
			want: "The order takes 100 item_gold; the player owned 40 item_gold. No transaction was made. about: " +
				"Mint 3 tokens item_gold takes 100; owned 40 asked:"},
		{name: "too little, with a code of its own", change: []func(*ramptest.Config){rejects("NO_SUCH_LUCK")},
			owns: 40, amount: 1,
			want: "Rejected by the game: NO_SUCH_LUCK. The order takes 100 item_gold; the player owned 40 item_gold. " +
				"No transaction was made. about: Mint 1 token"},
		{name: "too little, under another ID", owns: 40, amount: 1,
			change: []func(*ramptest.Config){answering(ramp.PathAssets, 200,
				`{"success":true,"errorCode":null,"data":{"v1":{"assets":[{"id":"gold","balance":"5"}]}}}`)},
			want: "The order takes 100 item_gold; the game lists gold, not item_gold. No transaction was made. about:"},
		{name: "another key", change: []func(*ramptest.Config){rejects("HMAC_INVALID")}, owns: 40, amount: 1,
			want: "Rejected by the game: HMAC_INVALID. No transaction was made. The game may have a different HMAC " +
				"key, read it in the other encoding (text or base64url), or verify a body that was parsed and " +
				"written again."},
		{name: "another project", change: []func(*ramptest.Config){rejects("INVALID_PROJECT_ID")}, owns: 40, amount: 1,
			want: `Rejected by the game: INVALID_PROJECT_ID. No transaction was made. The game expects its own ` +
				`project; this call has "project-1". about: Mint 1 token item_gold takes 100 asked:`},
		{name: "another state", change: []func(*ramptest.Config){rejects("ORDER_FINISHED")}, owns: 40, amount: 1,
			want: "Rejected by the game: ORDER_FINISHED. No transaction was made. The game rejected the order by its " +
				"own rules. Its log may say why. about:", guess: "by its own rules"},
		{name: "enough was listed", change: []func(*ramptest.Config){rejects("INVALID_BALANCE")}, owns: 100, amount: 1,
			want: "No transaction was made. The game says that the player does not own enough, but it had listed " +
				"enough. about: Mint 1 token item_gold takes 100; owned 100 asked:", guess: "does not own enough"},
		{name: "what moves by itself is not read",
			change: []func(*ramptest.Config){func(c *ramptest.Config) { c.Regenerating = []string{"item_gold"} }},
			owns:   40, amount: 1,
			want: "No transaction was made. The game says that the player does not own enough. What the player owned " +
				"is unknown. about: Mint 1 token item_gold takes 100 asked:", guess: "does not own enough"},
		{name: "nothing is known to be wrong", change: []func(*ramptest.Config){rejects("CLOSED")},
			owns: 1000, amount: 1,
			want: "Rejected by the game: CLOSED. No transaction was made. The game rejected the order by its own " +
				"rules. Its log may say why. about: Mint 1 token item_gold takes 100; owned 1,000 asked:",
			guess: "by its own rules"},
		{name: "a UUID of the emulator", change: []func(*ramptest.Config){rejects("CLOSED")}, owns: 1000,
			amount: 1, own: true,
			want: "No transaction was made. The record has no initialize call for this UUID. If the game accepts " +
				"only UUIDs that it asked for, start the order from the game. about:", guess: "initialize call for"},
		{name: "prices of an order", change: []func(*ramptest.Config){rejects("INVALID_MESSAGE")},
			owns: 1000, amount: 3,
			want: "The amounts are those of a whole order, because of -per-order. If the game's prices are for one " +
				"token, start without it. about: Mint 3 tokens item_gold takes 100 asked:", guess: "per-order"},
		{name: "prices of a token",
			change: []func(*ramptest.Config){rejects("INVALID_MESSAGE"),
				func(c *ramptest.Config) { c.PerOrder = false }}, owns: 1000, amount: 3,
			want: "The amounts are the prices times 3. If the game's prices are for a whole order, start with " +
				"-per-order. about: Mint 3 tokens item_gold takes 300 asked:", guess: "per-order"},
		{name: "one token costs the same in both", change: []func(*ramptest.Config){rejects("INVALID_MESSAGE")},
			owns: 1000, amount: 1,
			want: "The game rejected the order by its own rules.", guess: "by its own rules"},
		{name: "too little, without the envelope",
			change: []func(*ramptest.Config){answering(ramp.PathValidate, 403, "no")}, owns: 40, amount: 1,
			want: "The game rejected the call with HTTP 403. The order takes 100 item_gold; the player owned 40 " +
				"item_gold. No transaction was made. The answer must be JSON with success, errorCode and data " +
				"(interface 7.2). about: Mint 1 token item_gold takes 100; owned 40 asked:"},
		{name: "a burn", change: []func(*ramptest.Config){rejects("CLOSED")}, burn: true, amount: 2,
			want: "The game rejected the order by its own rules. Its log may say why. about: Burn 2 tokens " +
				"item_gold grants 100 asked:", guess: "by its own rules"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCounter(t, append(test.change, kept(t), reporting)...)
			c.shop.gold = test.owns
			id := c.initialize(t)
			if test.own {
				sent := c.browse(t, http.MethodPost, "/start",
					url.Values{"sessionId": {c.session.ID}, "accessToken": {"token-1"}})
				to := must.Get(url.Parse(sent.Header.Get("Location")))(t)
				id = uuid.MustParse(to.Query().Get("uuid"))
			}
			do := map[bool]string{true: "burn", false: "mint"}[test.burn]
			answer := c.browse(t, http.MethodPost, "/exchange", c.form(id, do, fmt.Sprint(test.amount)))
			require.Equal(t, 422, answer.StatusCode)
			body := whole(t, answer)
			call := c.callOf(t, id)
			assert.Contains(t, call, test.want)
			assert.Equal(t, test.guess, regexp.MustCompile(guesses).FindString(call), call)
			assert.Contains(t,
				c.page(t, found(t, `<a href="(/orders/[^"]*/events/\d+)">Open call \d+</a>`, body)), test.want)
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
	started := must.Get(c.client.Initialize(t.Context(), asked))(t)
	form := c.form(started.UUID, "mint", "1")
	assert.Contains(t, text(t, c.browse(t, http.MethodPost, "/exchange", form)),
		"Rejected by the game: INVALID_BALANCE.")
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
		assert.Contains(t, c.page(t, address), "✗ The books found: session \"session-1\"'s mint "+
			order.UUID.String()[:8]+" failed on chain: the game must give back 100 item_gold: "+
			"900 before the call, 900 after it, 1,000 expected. about: Mint 10 tokens item_gold must give back 100 "+
			"asked: POST /api/result")
	}
	check()
	assert.Contains(t, c.pageOf(t, order), "As reported by the game at ")
	c.restart(t, c.handler, reporting)
	check()
	said := c.pageOf(t, order)
	assert.Contains(t, said, "✗ The transaction failed, and the game keeps all that it took.")
	assert.Contains(t, said, "item_gold ✗ the player lacks 100 0 −100 ")
	assert.Contains(t, said, "tokens ✓ 0 0 ")
	assert.Contains(t, said, "item_gold 1,000 900 ")
	calls := c.page(t, "/calls")
	require.Equal(t, 1, strings.Count(calls, "The books found: "), "the call that lost them is marked, and no other")
	lost, _, _ := strings.Cut(calls, "The books found: ")
	number := found(t, `/events/(\d+)`, c.culprit(t, order))
	assert.Contains(t, lost[strings.LastIndex(lost, "✗"):],
		"POST /api/result #1 "+order.UUID.String()[:8]+" told the game: failed · HTTP 200 call "+number+" ")
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
	order := must.Get(c.service.Mint(t.Context(), id, c.session, ramp.NewAmount(10)))(t)
	c.service.Advance(time.Minute)
	page := c.pageOf(t, order)
	assert.Contains(t, page, "tokens outside of this order: +8 1,000 1,016 item_gold 900 800")
	assert.Contains(t, c.page(t, "/"), "2 orders Calls ", "the call whose answer was lost is one of an order")
}

// A setup with a problem is open from the start, also on a phone.
func TestASetupWithAProblemIsOpen(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.AssetsPath = "/players/assets" }, reporting)
	order := c.mint(t)
	c.service.Advance(time.Minute)
	page := c.html(t, "/")
	assert.Contains(t, page, `<details id="setup-problem" class="panel" open>`)
	assert.Contains(t, c.page(t, "/"), "Setup: 1 problem")
	assert.Contains(t, c.page(t, "/"), "The game has no such endpoint. Set its path with -assets.")

	// What is missing is named for those who use no Go, too, and nothing else is suspected.
	said := c.pageOf(t, order)
	assert.Contains(t, said,
		"the game has no GET /players/assets: set AssetsPath of ramptest.Config, or -assets of ramp emulate.")
	assert.NotContains(t, said, "log in again")
	assert.NotContains(t, said, "Balances unknown", "it is said once")
	assert.Regexp(t, `The game was asked at [0-9:]+, and reported nothing\.`, said)
}

// A server of this package says only what a result lacks.
func TestSwappedPathsAreNamed(t *testing.T) {
	c := newCounter(t,
		func(c *ramptest.Config) { c.ValidatePath, c.ResultPath = ramp.PathResult, ramp.PathValidate }, reporting)
	_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	require.ErrorContains(t, err, "the game takes it for a result: the paths of validate and result are swapped")
}

func TestAMissingEndpointIsNamedWithItsFlag(t *testing.T) {
	for path, want := range map[string]string{
		ramp.PathValidate: "set ValidatePath of ramptest.Config, or -validate of ramp emulate",
		ramp.PathResult:   "set ResultPath of ramptest.Config, or -result of ramp emulate"} {
		c := newCounter(t, reporting, answering(path, 404, "no such page"))
		order, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
		if path == ramp.PathResult {
			require.NoError(t, err)
			c.service.Advance(time.Minute)
			err = c.service.Resend(t.Context(), order)
		}
		require.ErrorContains(t, err, want)
		flag := want[strings.LastIndex(want, " -"):]
		assert.Contains(t, c.page(t, "/"),
			"The game has no such endpoint. Set its path with"+strings.TrimSuffix(flag, " of ramp emulate")+".")
	}
}

// What a list has of a call: its number, which the page of its order names, and the player, who has a name
// also if the order was not placed. The filter that is on is marked, and all times can be told apart: the clock
// has its date.
func TestAListNamesCallsPlayersAndDays(t *testing.T) {
	c := newCounter(t, reporting)
	c.shop.name = "Ada"
	placed := c.mint(t)
	c.shop.gold = 5
	_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	require.ErrorContains(t, err, "INVALID_BALANCE")
	c.service.Advance(26 * time.Hour)
	front := c.page(t, "/")
	assert.Regexp(t, `Mint 1 token [0-9a-f]{8} not approved call \d+ Ada Rejected by the game: INVALID_BALANCE\. `+
		`The order takes 100 item_gold; the player owned 5 item_gold\. `, front)
	assert.Regexp(t, `Mint 10 tokens `+placed.UUID.String()[:8]+` −100 item_gold Ada`, front)
	assert.Contains(t, front, "clock "+c.service.Now().Format("Jan 2 15:04:05")+" stopped until you pass time")
	assert.Contains(t, front, c.service.Now().Add(-26*time.Hour).Format("Jan 2 "), "it was another day")

	newest := found(t, `href="/calls/(\d+)"`, c.html(t, "/calls"))
	assert.Regexp(t, `HTTP 200[^/]* call `+newest+" session-1 ", c.page(t, "/calls"))
	assert.Contains(t, c.html(t, "/calls"), `aria-current="page">All calls</a>`)
	assert.Contains(t, c.html(t, "/calls?wrong=1"), `aria-current="page">Failures and rejections 1</a>`)
	assert.Contains(t, c.page(t, "/calls?wrong=1"), "INVALID_BALANCE")
}

// What fails in the setup says when that was seen, as what works does.
func TestASetupSaysWhenItFailed(t *testing.T) {
	c := newCounter(t, reporting, answering(ramp.PathResult, 500, ""))
	c.mint(t)
	c.service.Advance(time.Minute)
	assert.Regexp(t, `Result endpoint fails POST /api/result: HTTP 500, .*?, at \d\d:\d\d:\d\d `, c.page(t, "/"))
}

// What has worked works. A call that fails later is a matter of its order, unless every other one would fail,
// too: then the setup has a problem from the first of them on.
func TestASetupIsNotAboutOneOrder(t *testing.T) {
	const otherKey, noEndpoint = "The game may have a different HMAC key, ",
		"The game has no such endpoint. Set its path with -result."
	failure := func(code string) string { return `{"success":false,"errorCode":"` + code + `","data":null}` }
	for name, test := range map[string]struct {
		path    string // of the call that fails after one that worked
		status  int
		body    string
		problem string // what may be its cause; "" if it is no problem of the setup
	}{
		"a failure":                      {ramp.PathResult, 500, failure("INTERNAL_ERROR"), ""},
		"a crash":                        {ramp.PathResult, 500, "panic", ""},
		"a game that is too busy":        {ramp.PathValidate, 503, failure("BUSY"), ""},
		"a result that the game rejects": {ramp.PathResult, 400, failure("CONFLICT"), ""},
		"a result of an unknown order":   {ramp.PathResult, 404, failure("ORDER_NOT_FOUND"), ""},
		"a session that has ended":       {ramp.PathAssets, 401, failure("INVALID_USER"), ""},
		"another HMAC key":               {ramp.PathValidate, 401, failure("HMAC_INVALID"), otherKey},
		"another key, of a result":       {ramp.PathResult, 401, failure("HMAC_INVALID"), otherKey},
		"another key, in its own words":  {ramp.PathResult, 403, failure("DENIED"), "HTTP 403, DENIED"},
		"a page instead of the game":     {ramp.PathResult, 401, "log in", "The game may not accept the HMAC, "},
		"no such path":                   {ramp.PathResult, 404, "no such page", noEndpoint},
		"no such method":                 {ramp.PathResult, 405, "", noEndpoint},
		"a redirect":                     {ramp.PathResult, 302, "", "The game redirects."},
		"a gateway without a game":       {ramp.PathResult, 502, "bad gateway", "It answered: bad gateway"},
		"no envelope":                    {ramp.PathAssets, 200, "hello", "The answer must be JSON"},
		"another project":                {ramp.PathValidate, 403, failure("INVALID_PROJECT_ID"), "its own project"},
	} {
		t.Run(name, func(t *testing.T) {
			fails := false
			c := newCounter(t, reporting, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
				if !fails || r.URL.Path != test.path {
					game.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			c.mint(t)
			c.service.Advance(time.Minute)
			require.Contains(t, c.page(t, "/"), "Connection works")
			fails = true
			_, _ = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
			c.service.Advance(time.Second)
			said := c.page(t, "/")
			if test.problem != "" {
				assert.Contains(t, said, "Setup: 1 problem")
				assert.Contains(t, said, test.problem)
				return
			}
			assert.Contains(t, said, "Connection works")
			assert.NotContains(t, said, " fails ")
			assert.Regexp(t,
				`Connection works · last call [0-9:]+ · an? (result|(validate|assets) call) failed at [0-9:]+ `, said)
			assert.Regexp(t, `works success, at [0-9:]+ failed later, at [0-9:]+: call \d+ `, said)
			call := found(t, `failed later, at [0-9:]+: <a href="(/calls/\d+)">`, c.html(t, "/"))
			assert.Contains(t, c.page(t, call), fmt.Sprintf("answered: HTTP %d", test.status))
			fails = false
			must.Get(c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1)))(t)
			c.service.Advance(time.Minute)
			assert.NotContains(t, c.page(t, "/"), "failed later")
		})
	}
	t.Run("a result that is sent by hand", func(t *testing.T) {
		c := newCounter(t, reporting, answeringResults(0, 401))
		order := c.mint(t)
		c.service.Advance(time.Minute)
		_ = c.service.Resend(t.Context(), order)
		assert.Contains(t, c.page(t, "/"), "Setup: 1 problem")
	})
	t.Run("another validator key", func(t *testing.T) {
		c := newCounter(t, reporting, kept(t))
		c.mint(t)
		c.restart(t, c.handler, reporting, func(c *ramptest.Config) { c.Validator = common.HexToAddress("0x1") })
		require.Contains(t, c.page(t, "/"), "Validate endpoint and validator key works success")
		_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
		require.ErrorContains(t, err, "not by the registered")
		assert.Contains(t, c.page(t, "/"), "Setup: 1 problem")
		c.shop.gold = 0
		_, err = c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
		require.ErrorContains(t, err, "INVALID_BALANCE")
		assert.Contains(t, c.page(t, "/"), "Setup: 1 problem", "a rejection proves nothing about the key")
	})
	t.Run("another key of an initialize call", func(t *testing.T) {
		c := newCounter(t)
		c.mint(t)
		_, err := c.client.Initialize(t.Context(), ramp.InitializeRequest{})
		require.Error(t, err)
		assert.NotContains(t, c.page(t, "/"), "Setup: 1 problem", "which is a matter of that call")
		_, err = clientOf(t, c.service, must.Get(ramp.TextKey("no key of ours"))(t)).Initialize(t.Context(), request())
		require.ErrorIs(t, err, ramp.ErrHMACInvalid)
		assert.Contains(t, c.page(t, "/"), "Setup: 1 problem")
	})
}

// A row says at a glance that the game has rejected an order, and why. A check that passed says less.
func TestAListSaysAtAGlanceWhyAnOrderWasRejected(t *testing.T) {
	c := newCounter(t)
	c.mint(t, ramptest.ValidateOtherDigest())
	c.shop.gold = 40
	address, form := c.exchange(t)
	assert.NotEmpty(t, address)
	page := whole(t, c.browse(t, http.MethodPost, "/exchange", form))
	const lead, why = "<strong>Rejected by the game: INVALID_BALANCE.</strong> ",
		"The order takes 100 item_gold; the player owned 40 item_gold."
	assert.Contains(t, page, "<span>"+lead+why+" No transaction was made.</span>", "what happened, in full color")
	for _, list := range []string{"/", "/calls"} {
		assert.Equal(t, 1, strings.Count(c.html(t, list), ` class="rejected"><a `), list)
		assert.Contains(t, c.html(t, list), `<span class="said plain full">`+lead+why+"</span>", list)
		assert.Contains(t, c.html(t, list), `<span class="facts">not approved</span>`, list)
	}
	assert.Regexp(t, `<span class="facts quiet">[A-Z_]+</span>.*<span class="said good">Check passed: `,
		c.html(t, "/calls"), "the errorCode, and not HTTP 200")
}

// One color has one meaning: what waits is amber, and that somebody should look is red.
func TestAnOrderThatWaitsAndNeedsAttentionSaysSoInRed(t *testing.T) {
	c := newCounter(t, reporting, answering(ramp.PathResult, 500, ""))
	order := c.mint(t)
	c.service.Advance(time.Minute)
	for _, address := range []string{"/", "/orders/" + order.UUID.String()} {
		assert.Contains(t, c.html(t, address), ` <strong class="bad">Needs attention.</strong>`)
	}
}

// Orders with different losses are counted together, and no more is said of them than is true of each.
func TestTheFrontPageSaysWhatWasLost(t *testing.T) {
	c := newCounter(t, reporting, answering(ramp.PathResult, 200, confirmed))
	c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	assert.Contains(t, c.page(t, "/"), "✗ 2 orders: The transaction failed, and the game keeps all that it took. "+
		"Connection works", "and no call with which that began")
	must.Get(c.service.Burn(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1)))(t)
	c.service.Advance(time.Minute)
	assert.Contains(t, c.page(t, "/"), "✗ 3 orders: Assets went wrong in different ways. Connection works")
	_, err := clientOf(t, c.service, must.Get(ramp.TextKey("no key of ours"))(t)).Initialize(t.Context(), request())
	require.ErrorIs(t, err, ramp.ErrHMACInvalid)
	said := c.page(t, "/")
	assert.Contains(t, said, "✗ 3 orders: Assets went wrong in different ways. 1 more needs attention. ")
	assert.Contains(t, said, "The emulator refused POST /api/v2/initialize: HTTP 500, invalid mac, at ",
		"which is no answer of the game")
}
