package ramptest_test

import (
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// browse gets a page, or sends a form to it, as a browser does.
func (c *counter) browse(t testing.TB, method, address string, form url.Values, headers ...string) *http.Response {
	t.Helper()
	if method == http.MethodPost {
		headers = append([]string{"Content-Type", "application/x-www-form-urlencoded", "Origin", c.service.URL()},
			headers...)
	}
	return c.send(t, method, address, form.Encode(), headers...)
}

// culprit returns the address of the call that lost assets.
func (c *counter) culprit(t *testing.T, o *ramptest.PlacedOrder) string {
	t.Helper()
	return found(t, `<a href="([^"]*)" id="culprit"`, c.html(t, "/orders/"+o.UUID.String()))
}

// html returns a page, and found what a pattern finds in it.
func (c *counter) html(t *testing.T, address string) string {
	t.Helper()
	return whole(t, c.browse(t, http.MethodGet, address, nil))
}

func found(t *testing.T, pattern, page string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(page)
	require.Len(t, match, 2, page)
	return match[1]
}

// text returns the text of a page, without its tags.
func text(t *testing.T, answer *http.Response) string {
	t.Helper()
	plain := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(whole(t, answer), " ")
	return strings.Join(strings.Fields(html.UnescapeString(plain)), " ")
}

const here, away = "127.0.0.1:5000", "203.0.113.9:4711"

func (c *counter) exchange(t *testing.T) (address string, form url.Values) {
	t.Helper()
	id := c.initialize(t)
	// The client's address stands in for one that ExchangeURL accepts.
	address, err := ramp.ExchangeURL(c.service.URL(),
		ramp.ExchangeParams{UUID: id, AccessToken: c.session.Token, SessionID: c.session.ID, Network: ramp.Testnet})
	require.NoError(t, err)
	return address, c.form(id, "mint", "10")
}

// form is that of the exchange page of a UUID.
func (c *counter) form(id uuid.UUID, do, amount string) url.Values {
	return url.Values{"uuid": {id.String()}, "accessToken": {"token-1"}, "sessionId": {c.session.ID},
		"network": {"testnet"}, "amount": {amount}, "do": {do}, "chain": {""}, "result": {""}}
}

// A test without pages still sees whether the game's URL is right.
func TestWithoutPagesTheURLIsChecked(t *testing.T) {
	c := newCounter(t)
	id := c.initialize(t)
	service := ramptest.Start(t, ramptest.Config{Key: c.key, Validator: c.validator})
	c.service = service
	assert.Contains(t, c.page(t, "/"), "This service has no pages: set Config.Standalone.Pages")
	known := url.Values{"sessionId": {"s"}, "accessToken": {"a"}, "network": {"testnet"}, "projectId": {"p"}}
	status := func(path string, change ...string) int {
		q := maps.Clone(known)
		for i := 0; i < len(change); i += 2 {
			q.Set(change[i], change[i+1])
		}
		return c.browse(t, http.MethodGet, path+"?"+q.Encode(), nil).StatusCode
	}
	assert.Equal(t, 404, status("/exchange", "uuid", id.String()), "of another service")
	c.client = clientOf(t, service, c.key)
	own := c.initialize(t).String()
	assert.Equal(t, 200, status("/exchange", "uuid", own))
	assert.Equal(t, 400, status("/exchange", "uuid", own, "network", "mainnet"))
	assert.Equal(t, 400, status("/exchange", "uuid", own, "accessToken", ""))
	assert.Equal(t, 400, status("/exchange"))
	assert.Equal(t, 200, status("/catalog"))
	assert.Equal(t, 400, status("/catalog", "projectId", ""))
	assert.Equal(t, 400, status("/catalog", "network", "moonnet"))
	service.Advance(6 * time.Minute)
	assert.Equal(t, 410, status("/exchange", "uuid", own))
}

func TestAnOrderIsPlacedOnThePage(t *testing.T) {
	const (
		taken, restored, still = "✓ −100 −100/1,000 900", "✓ 0 0/1,000 1,000", "✓ 0 0/1,000 1,000"
		minted, gaveBack       = "✓ Done: the game took the assets, and the player received the tokens.",
			"✓ The transaction failed, and the game gave everything back."
		owed = "● No result will come, as you chose."
		got  = "✓ after the fee of 20% +8 +8/1,000 1,008"
	)
	for _, test := range []struct {
		do, chain, result string
		end               string // how the transaction is ended by hand
		owns, holds       string // at the end: the mark, what must move and what moved / what was before and is now
		said              string
		attempts          int
	}{
		{"mint", "", "", "", taken, got, minted, 1},
		{"mint", "", "", "failed", restored, still, gaveBack, 1},
		{"mint", "transaction-fails", "", "", restored, still, gaveBack, 1},
		{"mint", "transaction-fails", "result-twice", "", restored, still, gaveBack, 2},
		{"mint", "transaction-fails", "lost-answer=result", "", restored, still, gaveBack, 2},
		{"mint", "transaction-fails", "result-late=10m", "", restored, still, gaveBack, 1},
		{"mint", "transaction-fails", "result-never", "", "● +100 to come 0 −100/1,000 900", still, owed, 0},
		{"mint", "stays-pending", "", "", taken, "● not decided yet ? 0/1,000 1,000",
			"● The transaction stays pending, as you chose.", 0},
		{"mint", "stays-pending", "", "succeeded", taken, got, minted, 1},
		{"mint", "stays-pending", "", "failed", restored, still, gaveBack, 1},
		{"mint", "stays-pending", "result-never", "failed", "● +100 to come 0 −100/1,000 900", still, owed, 0},
		{"burn", "", "", "", "✓ +100 +100/1,000 1,100", "✓ −10 −10/1,000 990",
			"✓ Done: the tokens were burned, and the game granted the assets.", 1},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			c := newCounter(t)
			address, form := c.exchange(t)
			page := c.browse(t, http.MethodGet, address, nil)
			require.Equal(t, 200, page.StatusCode)
			said := text(t, page)
			assert.Contains(t, said, "tokens in the wallet 1,000 item_gold 1,000")
			assert.Contains(t, said, "a mint takes item_gold 100")
			assert.Contains(t, said, "fee of a mint 20%")

			form.Set("do", test.do)
			form.Set("chain", test.chain)
			form.Set("result", test.result)
			sent := c.browse(t, http.MethodPost, "/exchange", form)
			require.Equal(t, 303, sent.StatusCode, text(t, sent))
			order := sent.Header.Get("Location")
			assert.NotContains(t, order, "token-1")
			twice := c.browse(t, http.MethodPost, "/exchange", form)
			assert.Equal(t, order, twice.Header.Get("Location"), "a click too many")
			form.Set("amount", "11")
			other := c.browse(t, http.MethodPost, "/exchange", form)
			assert.Contains(t, whole(t, other), `<a href="`+order+`">To the order of this UUID</a>`)
			said = c.page(t, order)
			if test.chain != "stays-pending" {
				assert.Contains(t, said, "● The transaction waits for the next block. Next block at ")
			}

			end := func(outcome string) int {
				return c.browse(t, http.MethodPost, order+"/end", url.Values{"outcome": {outcome}}).StatusCode
			}
			if test.end != "" {
				assert.Contains(t, said, "Mine the transaction Let it fail")
				assert.Equal(t, 400, end("x"))
				assert.Equal(t, 303, end(test.end))
			}
			passed := c.browse(t, http.MethodPost, order+"/advance", url.Values{"minutes": {"15"}})
			assert.Equal(t, 303, passed.StatusCode)
			said = c.page(t, order)
			assert.Contains(t, said, test.said)
			for id, want := range map[string]string{"item_gold ": test.owns, "tokens ": test.holds} {
				moved, has, _ := strings.Cut(want, "/")
				assert.Contains(t, said, id+moved)
				assert.Contains(t, said, id+has)
			}
			assert.Len(t, c.shop.results, test.attempts)

			again := c.browse(t, http.MethodGet, address, nil)
			assert.Equal(t, order, again.Header.Get("Location"), "a UUID is one order")
			resent := c.browse(t, http.MethodPost, order+"/resend", nil)
			if test.chain == "stays-pending" && test.end == "" {
				assert.Equal(t, 409, resent.StatusCode)
				assert.Contains(t, text(t, resent), "in no block yet")
				return
			}
			assert.NotContains(t, said, "Mine the transaction")
			assert.Equal(t, 409, end("failed"))
			assert.Equal(t, 303, resent.StatusCode)
			assert.Len(t, c.shop.results, test.attempts+1)

			catalog := must.Get(ramp.CatalogURL(c.service.URL(),
				ramp.CatalogParams{ProjectID: "project-1", SessionID: c.session.ID,
					AccessToken: c.session.Token, Network: ramp.Testnet, Lang: ramp.LangEnglish}))(t)
			assert.Contains(t, c.page(t, catalog), "10 tokens")
		})
	}
}

// reporting is for a game that is wrong on purpose.
func reporting(c *ramptest.Config) { c.Audit, c.Settle = ramptest.AuditReport, -1 }

// answering stands before the result endpoint, and may answer instead of the game.
func answering(path string, status int, body string) func(*ramptest.Config) {
	return before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
		if r.URL.Path != path {
			game.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

const confirmed = `{"success":true,"errorCode":null,"data":null}`

func TestThePageOfAnOrderSaysWhatHappened(t *testing.T) {
	const mint, burn, takeNothing = "mint", "burn", "take nothing"
	for _, test := range []struct {
		name   string
		game   func(*ramptest.Config)
		do     string
		amount int64
		faults []ramptest.Fault
		pass   time.Duration
		want   []string
	}{
		{"nothing is taken yet", nil, takeNothing, 10, nil, 0, []string{
			"● The transaction waits for the next block.",
			"item_gold ● −100 to come −100 0"}},
		{"nothing is taken", answering(ramp.PathResult, 200, confirmed), takeNothing, 10, nil, time.Minute, []string{
			"✗ The transaction succeeded, and the game did not take all that was due.",
			"item_gold ✗ the player has 100 too many −100 0"}},
		{"nothing was taken and nothing is due", answering(ramp.PathResult, 200, confirmed), takeNothing, 10,
			[]ramptest.Fault{ramptest.TransactionFails()}, time.Minute, []string{
				"✓ The transaction failed, and the game had taken nothing.",
				"item_gold ✓ 0 0"}},
		{"nothing is granted", answering(ramp.PathResult, 200, confirmed), burn, 10, nil, time.Minute, []string{
			"✗ The transaction succeeded, and the game did not grant all that was due.",
			"item_gold ✗ the player lacks 100 +100 0"}},
		{"a burn is above the balance", nil, burn, 2000, nil, time.Minute, []string{
			"✓ Nothing is lost: the burn failed, because the wallet held too few tokens.",
			"item_gold ✓ 0 0", "item_gold 1,000 1,000"}},
		{"the game fails", answering(ramp.PathResult, 500, ""), mint, 10, nil, time.Minute, []string{
			"● The game did not confirm the result. Next attempt at ",
			"(2 of 20).", "The game's log may say why."}},
		{"the game rejects", answering(ramp.PathResult, 400, `{"success":false,"errorCode":"REJECTED","data":null}`),
			mint, 10, nil, time.Minute, []string{
				"✗ The game rejected the result, which is not sent again.",
				"✗ Result told the game: succeeded · HTTP 400"}},
		{"the result is late", nil, mint, 10, []ramptest.Fault{ramptest.ResultLate(time.Hour)}, time.Minute, []string{
			"● The transaction succeeded. The result is sent at "}},
		{"the result waits for another", nil, mint, 10, []ramptest.Fault{ramptest.ResultAfterNext()},
			time.Minute, []string{
				"● The result waits for that of another order, as you chose."}},
		{"the balances are unknown",
			answering(ramp.PathAssets, 401, `{"success":false,"errorCode":"INVALID_USER","data":null}`), mint, 10, nil,
			time.Minute, []string{
				"? What the game moved is unknown, because it did not report what the player owns.",
				"item_gold ? unknown ? ?",
				`and reported nothing. The game rejected the call with HTTP 401 and "INVALID_USER".`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := []func(*ramptest.Config){reporting}
			if test.game != nil {
				options = append(options, test.game)
			}
			c := newCounter(t, options...)
			if test.do == takeNothing {
				c.shop.also = map[string]int64{ramp.PathValidate: 100}
			}
			play := c.service.Mint
			if test.do == burn {
				play = c.service.Burn
			}
			order := must.Get(play(t.Context(), c.initialize(t), c.session, ramp.NewAmount(test.amount),
				test.faults...))(t)
			c.service.Advance(test.pass)
			said := c.pageOf(t, order)
			for _, want := range test.want {
				assert.Contains(t, said, want)
			}
			_, first, _ := strings.Cut(test.want[0], " ") // the sign
			first, _, _ = strings.Cut(first, ".")
			if strings.HasPrefix(test.want[0], "✗") && strings.Contains(test.want[0], "did not") {
				assert.Contains(t, c.page(t, c.culprit(t, order)), "asked: POST /api/result", "the call that lost them")
			}
			assert.Contains(t, c.page(t, "/"), first, "the list says the same")
		})
	}
}

// Four places lead through an order. The one where the assets went wrong is red, and no other.
func TestTheWayOfAnOrderShowsWhereAssetsWentWrong(t *testing.T) {
	for _, test := range []struct {
		name   string
		game   func(*ramptest.Config)
		also   map[string]int64
		faults []ramptest.Fault
		pass   time.Duration
		want   string
	}{
		{"it waits", nil, nil, nil, 0, "✓ Initialize HTTP 200 ✓ Validate approved ● Chain submitted – Result not yet"},
		{"it is done", nil, nil, nil, time.Minute,
			"✓ Initialize HTTP 200 ✓ Validate approved ✓ Chain succeeded ✓ Result told the game: succeeded · HTTP 200"},
		{"it failed", nil, nil, []ramptest.Fault{ramptest.TransactionFails()}, time.Minute,
			"✓ Initialize HTTP 200 ✓ Validate approved – Chain failed, as you chose " +
				"✓ Result told the game: failed · HTTP 200"},
		{"nothing is given back", answering(ramp.PathResult, 200, confirmed), nil,
			[]ramptest.Fault{ramptest.TransactionFails()}, time.Minute,
			"✓ Initialize HTTP 200 ✓ Validate approved – Chain failed, as you chose ✗ Result assets went wrong here"},
		{"too much is taken", nil, map[string]int64{ramp.PathValidate: -50}, nil, 0,
			"✓ Initialize HTTP 200 ✗ Validate assets went wrong here ● Chain submitted – Result not yet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := []func(*ramptest.Config){reporting}
			if test.game != nil {
				options = append(options, test.game)
			}
			c := newCounter(t, options...)
			c.shop.also = test.also
			order := must.Get(c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(10),
				test.faults...))(t)
			c.service.Advance(test.pass)
			assert.Contains(t, c.pageOf(t, order), test.want)
			page := c.html(t, "/orders/"+order.UUID.String())
			assert.Equal(t, strings.Count(test.want, "✗"), strings.Count(page, `<li class="lost"><strong>`))
		})
	}
}

// Products that differ only in their token do not look alike.
func TestAListWithSeveralTokensNamesThem(t *testing.T) {
	c := newCounter(t)
	c.mint(t)
	c.service.Advance(time.Minute)
	assert.NotContains(t, c.page(t, "/"), "0x…")
	asked := request()
	asked.Intent.Token = swordToken
	started := must.Get(c.client.Initialize(t.Context(), asked))(t)
	must.Get(c.service.Mint(t.Context(), started.UUID, c.session, ramp.NewAmount(10)))(t)
	c.service.Advance(time.Minute)
	list := c.page(t, "/")
	for _, token := range []string{request().Intent.Token, swordToken} {
		assert.Contains(t, list, "Mint 10 tokens "+"0x…"+strings.ToLower(token[38:]))
	}
}

func TestAResultThatIsUnderWayIsShown(t *testing.T) {
	asked, answer := make(chan bool), make(chan bool)
	c := newCounter(t, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
		if r.URL.Path == ramp.PathResult {
			asked <- true
			<-answer
		}
		game.ServeHTTP(w, r)
	}))
	order := c.mint(t)
	done := make(chan bool)
	go func() {
		defer close(done)
		c.service.Advance(time.Minute)
	}()
	<-asked
	assert.Contains(t, c.pageOf(t, order), "● The result is being sent.")
	answer <- true
	<-done
}

func TestTheFirstPageShowsTheSetupAndTheOrders(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Standalone.OtherKey, _ = ramp.Base64URLKey("YW5vdGhlcg") })
	said := func(address string) string { return c.page(t, address) }
	settings := func(page string) { // every variable, and no key
		for _, want := range []string{"export RAMP_API_URL=" + c.service.URL() + " export RAMP_FRONTEND_URL=" +
			c.service.URL(),
			"# RAMP_HMAC_KEY, whose fingerprint is " + c.key.Fingerprint() +
				", and RAMP_VALIDATOR_KEY, whose address is " + c.validator.Hex() +
				": those of the program that runs this emulator",
			"those of RAMP_HMAC_KEY and RAMP_VALIDATOR_KEY. The settings say where the keys are.",
			"# RAMP_RPC_URL for testnet: " + c.service.RPCURL(ramp.Testnet) + " (chain ID 7002)"} {
			assert.Contains(t, page, want)
		}
		assert.NotContains(t, page, "key of the console")
	}
	first := said("/")
	assert.Contains(t, first, "Settings for the game export RAMP_API_URL=")
	assert.Equal(t, 1, strings.Count(first, "not seen yet"), "what the emulator cannot try by itself")
	settings(first)

	initialize := func(key ramp.HMACKey) {
		_, err := clientOf(t, c.service, key).Initialize(t.Context(), request())
		require.ErrorIs(t, err, ramp.ErrHMACInvalid)
	}
	other := must.Get(ramp.Base64URLKey("YW5vdGhlcg"))(t)
	initialize(other)
	assert.Contains(t, said("/"), "It matches if the key is read in the other encoding.")
	wrong := must.Get(ramp.TextKey("no key of ours"))(t)
	initialize(wrong)
	assert.Contains(t, said("/"), "The game may have a different HMAC key")
	assert.Contains(t, said("/"), "Setup: 1 problem")
	c.initialize(t)
	assert.Contains(t, said("/"), "Setup: 1 of 4 work, 3 not seen yet")

	gold := c.shop.gold
	c.shop.gold = 0
	_, err := c.service.Mint(t.Context(), c.initialize(t), c.session, ramp.NewAmount(1))
	require.Error(t, err)
	assert.Contains(t, said("/"),
		"POST /api/validate: HTTP 200, INVALID_BALANCE. No signature of the validator key was seen yet.")
	c.shop.gold = gold

	good := c.mint(t)
	c.service.Advance(time.Minute)
	late := c.mint(t, ramptest.Perhaps(ramptest.ResultLate(time.Hour)), ramptest.WrongHMAC(ramptest.OnValidate))
	c.service.Advance(time.Minute)
	page := said("/")
	settings(page)
	assert.Contains(t, page, "Connection works")
	assert.Equal(t, 5, strings.Count(page, " works "), "what was forged on purpose is no problem: %s", page)
	list := func(query string) (found []string) {
		body := c.html(t, "/?"+query)
		for _, m := range regexp.MustCompile(`<li id="order-([^"]*)"`).FindAllStringSubmatch(body, -1) {
			found = append(found, m[1])
		}
		return found
	}
	both := []string{late.UUID.String(), good.UUID.String()}
	assert.Equal(t, both, list(""), "the newest first")
	assert.Equal(t, both[1:], list("show=done"))
	assert.Equal(t, both[:1], list("show=waiting"))
	assert.Empty(t, list("show=attention"))
	assert.Equal(t, both[:1], list("q="+both[0][:8]))
	assert.Equal(t, both[1:], list("q="+strings.ToUpper(good.TxHash.Hex())))
	assert.Equal(t, both, list("q=session-1"))
	assert.Contains(t, said("/?q=zzz"), "No order matches.")

	c.mint(t, ramptest.Perhaps(ramptest.LostAnswer(ramptest.OnResult)))
	c.service.Advance(2 * time.Second)
	assert.Contains(t, said("/"), "Connection works", "an answer that is lost on purpose is no problem")
}

func TestATestOrderIsStartedFromTheFirstPage(t *testing.T) {
	c := newCounter(t)
	terms := url.Values{"sessionId": {c.session.ID}, "accessToken": {"token-1"}, "network": {"testnet"},
		"token":   {request().Intent.Token},
		"project": {"mine"}, "materials": {"item_gold=7\r\ngem=1"}, "outputs": {"item_gold=7"}, "fee": {"0"}}
	start := func(form url.Values) string {
		started := c.browse(t, http.MethodPost, "/start", form)
		require.Equal(t, 303, started.StatusCode, text(t, started))
		return started.Header.Get("Location")
	}
	assert.Contains(t, c.page(t, start(terms)), "a mint takes item_gold 7 a mint takes gem 1")
	assert.Contains(t, c.page(t, "/"), "so these terms are samples:", "the form's own terms are not the game's")

	// The player of an order needs no token.
	order := c.mint(t)
	address := start(url.Values{"player": {order.UUID.String()}})
	assert.NotContains(t, address, "token-1")
	body := c.html(t, address)
	assert.Contains(t, body, "item_gold")
	assert.NotContains(t, body, "token-1")
	another := c.browse(t, http.MethodPost, "/orders/"+order.UUID.String()+"/another", nil)
	assert.Contains(t, c.page(t, another.Header.Get("Location")), "a mint takes item_gold 100")

	for name, value := range map[string]string{"sessionId": "", "materials": "item_gold=x", "outputs": "item_gold=-1",
		"fee": "10001", "network": "moon", "token": "0x1", "project": ""} {
		wrong := url.Values{}
		maps.Copy(wrong, terms)
		wrong.Set(name, value)
		rejected := c.browse(t, http.MethodPost, "/start", wrong)
		assert.Equal(t, 422, rejected.StatusCode, name)
		assert.Contains(t, text(t, rejected), "Start a test order", "the form is still there")
	}

	// The form has the terms of the game's last successful call, whatever came after it.
	start(terms)
	_, err := c.client.Initialize(t.Context(), ramp.InitializeRequest{})
	require.Error(t, err)
	page := c.html(t, "/")
	assert.Contains(t, page, "The terms are those of the game’s last initialize call.")
	for _, want := range []string{`name="project" value="project-1"`,
		`name="token" value="` + request().Intent.Token + `"`, `rows="2" autocomplete="off">item_gold=100</textarea>`} {
		assert.Contains(t, page, want)
	}
}

// Viewing a page changes nothing: it shows the last reading.
func TestAPageIsReadWithoutTheGame(t *testing.T) {
	calls := 0
	c := newCounter(t, before(func(w http.ResponseWriter, r *http.Request, game http.Handler) {
		calls++
		game.ServeHTTP(w, r)
	}))
	address, _ := c.exchange(t)
	look := func(address string, form url.Values) int {
		calls = 0
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		page := c.browse(t, method, address, form)
		assert.Less(t, page.StatusCode, 400)
		return calls
	}
	assert.Equal(t, 1, look(address, nil), "who opens it wants to know")
	assert.Equal(t, 0, look(address, nil), "a refresh")
	next, form := c.exchange(t)
	assert.Equal(t, 1, look(next, nil), "a new order is a new opening")
	form.Set("read", "1")
	assert.Equal(t, 1, look("/exchange", form), "read again")
	order := "/orders/" + c.mint(t).UUID.String()
	for _, page := range []string{order, "/",
		"/catalog?projectId=p&sessionId=session-1&accessToken=token-1&network=testnet"} {
		assert.Equal(t, 0, look(page, nil), page)
	}
	assert.Equal(t, 1, look(order+"/read", url.Values{}))
	assert.Equal(t, 1, look("/catalog?projectId=p&sessionId=session-1&accessToken=token-2&network=testnet", nil),
		"another token has seen nothing")
}

// An unchanged page is not sent again.
func TestALivePageIsSentWhenItHasChanged(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t)
	for _, address := range []string{"/", "/orders/" + order.UUID.String()} {
		page := c.browse(t, http.MethodGet, address, nil)
		tag := page.Header.Get("ETag")
		require.NotEmpty(t, tag)
		again := c.browse(t, http.MethodGet, address, nil, "If-None-Match", tag)
		assert.Equal(t, 304, again.StatusCode)
		assert.NotEmpty(t, again.Header.Get("Ramp-Clock"), "the clock runs all the same")
	}
	tag := c.browse(t, http.MethodGet, "/", nil).Header.Get("ETag")
	c.service.Advance(time.Minute)
	assert.Equal(t, 200, c.browse(t, http.MethodGet, "/", nil, "If-None-Match", tag).StatusCode)
}

// served lets the game listen.
func served(t *testing.T) func(*ramptest.Config) {
	return func(c *ramptest.Config) {
		game := httptest.NewServer(c.Handler)
		t.Cleanup(game.Close)
		c.Game, c.Handler = game.URL+"/", nil // as people write it
	}
}

func TestATimelineComesInPieces(t *testing.T) {
	c := newCounter(t, served(t))
	order := c.mint(t)
	c.service.Advance(time.Minute)
	for n := range 200 {
		c.shop.answers = nil
		if bits.OnesCount(uint(n))%2 == 0 { // the sequence of Thue and Morse: nothing comes three times in a row
			c.shop.answers = []error{errors.New("the database is unreachable")}
		}
		_ = c.service.Resend(t.Context(), order)
	}
	address := "/orders/" + order.UUID.String()
	link := regexp.MustCompile(`class="earlier" href="([^"]*)"`)
	seen := map[string]bool{}
	for next := address; next != ""; {
		body := c.html(t, next)
		assert.Less(t, len(body), 50<<10)
		entries := regexp.MustCompile(`id="(entry-\d+)`).FindAllStringSubmatch(body, -1)
		assert.LessOrEqual(t, len(entries), 50)
		for _, e := range entries {
			require.False(t, seen[e[1]])
			seen[e[1]] = true
		}
		next = ""
		if found := link.FindStringSubmatch(body); found != nil {
			next = html.UnescapeString(found[1])
		}
	}
	assert.Len(t, seen, 1+1+2+1+200,
		"initialize, validate, the chain, the result, and that again, each with what the books found after it")
	assert.Contains(t, c.pageOf(t, order), "200 Confirmed. (by hand) books: ")

	body := c.html(t, address)
	event := found(t, `data-body="([^"]*)"`, body)
	whole := c.page(t, event)
	assert.Contains(t, whole, "asked: POST "+ramp.PathResult)
	assert.Contains(t, whole, `$(printf %s "$BODY" | ramp sign)`)
	assert.Contains(t, whole, "Bearer $RAMP_ACCESS_TOKEN")
	assert.NotContains(t, whole, "token-1")
	nobody := "/orders/" + uuid.Nil.String()
	for _, wrong := range []string{nobody + "/events", nobody + "/events/1", address + "/events/x",
		address + "/events/999999", "/orders/" + uuid.NewString() + strings.TrimPrefix(event, address)} {
		assert.Equal(t, 404, c.browse(t, http.MethodGet, wrong, nil).StatusCode, wrong)
	}
}

// What curl cannot reach is not offered.
func TestAGameInMemoryHasNoCurlCommand(t *testing.T) {
	c := newCounter(t)
	_, form := c.exchange(t)
	form.Set("accessToken", "token-2")
	said := text(t, c.browse(t, http.MethodPost, "/exchange", form))
	assert.Contains(t, said, "POST /api/validate: HTTP 401")
	assert.NotContains(t, said, "curl")
}

func TestEveryFaultCanBeChosen(t *testing.T) {
	c := newCounter(t)
	address, _ := c.exchange(t)
	body := c.html(t, address)
	faults := regexp.MustCompile(`name="fault" value="([^"]*)"`).FindAllStringSubmatch(body, -1)
	for _, form := range ramptest.FaultForms() {
		name, _, _ := strings.Cut(form[0], "=")
		if name == "store-fails" {
			continue // the game of a page has a URL
		}
		option := regexp.MustCompile(`name="(chain|result|fault)" value="` + name + `["=]`)
		assert.True(t, option.MatchString(body), "pages/exchange.html has no option for %s", name)
	}
	offTerms := []string{"validate-other-token", "validate-other-rate", "validate-extra-item"} // this game has no terms
	for i, fault := range faults {
		if slices.Contains(offTerms, fault[1]) || strings.HasSuffix(fault[1], "=validate:15s") ||
			fault[1] == "lost-answer=validate" || fault[1] == "expired-uuid" {
			continue // which end before the order does
		}
		_, form := c.exchange(t)
		form["fault"] = []string{fault[1]}
		form.Set("do", []string{"mint", "burn"}[i%2]) // so that nothing runs out
		sent := c.browse(t, http.MethodPost, "/exchange", form)
		assert.Equal(t, 303, sent.StatusCode, fault[1])
		c.service.Advance(time.Minute)
	}
	_, form := c.exchange(t)
	form["fault"] = []string{"lost-answer=validate"}
	form.Set("chain", "transaction-fails")
	lost := c.browse(t, http.MethodPost, "/exchange", form)
	assert.Equal(t, 422, lost.StatusCode)
	page := whole(t, lost)
	assert.Contains(t, page, "Send the same order again")
	assert.Equal(t,
		[]string{`"mint" checked`, `"transaction-fails" checked`, `"" checked`, `"lost-answer=validate" checked`},
		regexp.MustCompile(`"[^"]*" checked`).FindAllString(page, -1), "what was chosen stays so")
	assert.Equal(t, 303, c.browse(t, http.MethodPost, "/exchange", form).StatusCode)
}

func TestAPageSaysWhatIsWrong(t *testing.T) {
	c := newCounter(t, served(t), func(c *ramptest.Config) { c.ProjectID = "project-1" })
	address, form := c.exchange(t)
	with := func(name, value string) url.Values {
		changed := url.Values{}
		maps.Copy(changed, form)
		changed.Set(name, value)
		return changed
	}
	for _, test := range []struct {
		form   url.Values
		status int
		want   string
	}{
		{with("amount", "ten"), 422, "above 0"},
		{with("amount", "-1"), 422, "above 0"},
		{with("amount", strings.Repeat("1", 1<<20)), 400, "The form was cut off. Please send it again."},
		{with("accessToken", "token-2"), 422,
			`The game rejected the call with HTTP 401 and INVALID_USER. No transaction was made.`},
		{with("uuid", "x"), 400, "no UUID"},
		{with("uuid", "7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10"), 404, "no such UUID"},
	} {
		answer := c.browse(t, http.MethodPost, "/exchange", test.form)
		assert.Equal(t, test.status, answer.StatusCode)
		assert.Contains(t, text(t, answer), test.want)
	}
	// A rejection names the endpoint, the status, the body and the cause, and how to repeat it.
	rejected := text(t, c.browse(t, http.MethodPost, "/exchange", with("accessToken", "token-2")))
	for _, want := range []string{"POST /api/validate: HTTP 401, INVALID_USER",
		`{"success":false,"errorCode":"INVALID_USER","data":null}`,
		"The game may not accept the HMAC, the access token or the session.", "Bearer $RAMP_ACCESS_TOKEN",
		"| ramp sign)"} {
		assert.Contains(t, rejected, want)
	}
	assert.NotContains(t, rejected, "token-2")

	for address, want := range map[string]int{
		"/exchange?uuid=x":  400,
		"/catalog?network=": 400,
		"/catalog?projectId=project-2&sessionId=s&accessToken=t&network=testnet": 404,
		"/catalog?projectId=project-1&sessionId=s&accessToken=t&network=moon":    404,
		"/orders/x": 404,
		"/orders/7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10":    404,
		strings.Replace(address, "testnet", "mainnet", 1): 400,
		"/pages/":           404,
		"/pages/order.html": 404,
	} {
		assert.Equal(t, want, c.browse(t, http.MethodGet, address, nil).StatusCode, address)
	}
	onward := func(method, address string, form url.Values, status int, want string) {
		page := c.browse(t, method, address, form)
		assert.Equal(t, status, page.StatusCode)
		body := whole(t, page)
		assert.Contains(t, body, want)
		assert.Contains(t, body, "Open the exchange page from your game again: it asks for a new UUID each time.")
		assert.Contains(t, body, `<a href="/">All orders`)
	}
	unknown := regexp.MustCompile(`uuid=[^&]*`).ReplaceAllString(address, "uuid="+uuid.NewString())
	onward(http.MethodGet, unknown, nil, 404, "The service knows no such UUID.")
	c.service.Advance(5 * time.Minute)
	onward(http.MethodGet, address, nil, 410, "The UUID has expired")
	onward(http.MethodPost, "/exchange", form, 410, "The UUID has expired")

	c = newCounter(t)
	order := c.mint(t)
	for path, want := range map[string]int{"/events": 405, "/advance": 400, "/resend": 409} {
		assert.Equal(t, want, c.browse(t, http.MethodPost, "/orders/"+order.UUID.String()+path, nil).StatusCode)
	}
}

func TestAPageKeepsToItself(t *testing.T) {
	c := newCounter(t)
	address, form := c.exchange(t)
	page := c.browse(t, http.MethodGet, address, nil)
	assert.Contains(t, page.Header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.Equal(t, "no-store", page.Header.Get("Cache-Control"))
	body := whole(t, page)
	for _, address := range regexp.MustCompile(`\s(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		assert.Regexp(t, `^(/[a-z]|/$|#|data:,)`, address[1], "nothing from anywhere else")
	}
	assert.NotContains(t, body, "<img", "an icon would come from elsewhere")
	assert.NotContains(t, c.html(t, strings.Replace(address, "session-1", "%22%3E%3Cscript%3E", 1)), `"><script>`,
		"it is no markup")

	for _, origin := range []string{"https://evil.example", "null", ""} {
		assert.Equal(t, 403, c.browse(t, http.MethodPost, "/exchange", form, "Origin", origin).StatusCode, origin)
	}
	assert.Equal(t, int64(1000), c.shop.owns())

	evil := c.direct("GET", address, "", here, "Host", "evil.example")
	assert.Equal(t, 403, evil.Code, "a name that was made to point here")
	assert.Contains(t, evil.Body.String(), "start it with -public", "it says what helps")
	for _, open := range []func(*ramptest.Config){
		func(c *ramptest.Config) { c.Standalone.ControlToken = "a token" },
		func(c *ramptest.Config) { c.Standalone.PublicURL = "https://evil.example" },
	} {
		assert.Equal(t, 404, newCounter(t, open).direct("GET", address, "", here, "Host", "evil.example").Code)
	}
}

// A reader who has not started the service must not act for its players.
func TestTheOrdersOfAllPlayersAreForTheOperator(t *testing.T) {
	ask := func(c *counter, method, address, host, from string, headers ...string) *httptest.ResponseRecorder {
		return c.direct(method, address, "", from, append(headers, "Host", host, "Origin", "http://"+host)...)
	}
	c := newCounter(t, func(c *ramptest.Config) { c.Standalone.PublicURL = "https://phone.example" })
	order := c.mint(t)
	player := "/catalog?projectId=p&network=testnet&player=" + order.UUID.String()
	another := "/orders/" + order.UUID.String() + "/another"
	assert.Equal(t, 200, ask(c, "GET", "/", "localhost:8090", here).Code)
	assert.Equal(t, 200, ask(c, "GET", player, "localhost:8090", here).Code)
	assert.Equal(t, 303, ask(c, "POST", another, "localhost:8090", here).Code)
	for _, from := range [][2]string{{"localhost:8090", away}, {"phone.example", here}, {"phone.example", away}} {
		assert.Equal(t, 403, ask(c, "GET", "/", from[0], from[1]).Code, from)
		assert.Equal(t, 403, ask(c, "POST", "/start", from[0], from[1]).Code, from)
		assert.Equal(t, 403, ask(c, "POST", another, from[0], from[1]).Code, from)
		assert.Equal(t, 400, ask(c, "GET", player, from[0], from[1]).Code, from)
		page := ask(c, "GET", "/orders/"+order.UUID.String(), from[0], from[1])
		assert.Equal(t, 200, page.Code, "its UUID is enough for an order")
		assert.NotContains(t, page.Body.String(), "/another")
	}

	const token = `a token; with "all"`
	c = newCounter(t, func(c *ramptest.Config) { c.Standalone.ControlToken = token })
	assert.Equal(t, 403, ask(c, "GET", "/", "phone.example", away).Code)
	assert.Equal(t, 403, ask(c, "GET", "/", "localhost", here).Code)
	assert.Equal(t, 403, ask(c, "GET", "/?token=wrong", "phone.example", away).Code)
	opened := ask(c, "GET", "/?show=done&token="+url.QueryEscape(token), "phone.example", away)
	assert.Equal(t, 303, opened.Code)
	assert.Equal(t, "/?show=done", opened.Header().Get("Location"), "the address has it no more")
	cookie := opened.Result().Cookies()[0]
	assert.True(t, cookie.HttpOnly && cookie.SameSite == http.SameSiteStrictMode)
	assert.Equal(t, 200, ask(c, "GET", "/", "phone.example", away, "Cookie", cookie.Name+"="+cookie.Value).Code)
	assert.Equal(t, 403, ask(c, "GET", "/", "phone.example", away, "Cookie", cookie.Name+"=wrong").Code)
}

// The setup says what was seen, however long ago that was.
func TestTheSetupRemembersWhatWorked(t *testing.T) {
	c := newCounter(t)
	c.mint(t)
	c.service.Advance(time.Minute)
	c.forgetEvents(t)
	for _, e := range c.service.Events() {
		require.NotEqual(t, control.KindValidate, e.Kind)
	}
	assert.Contains(t, c.page(t, "/"), "Connection works")
}
