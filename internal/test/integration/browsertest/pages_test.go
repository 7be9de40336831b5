package browsertest

import (
	"fmt"
	"io"
	"math/bits"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

const (
	gold   = `td[data-asset="item_gold"]`
	tokens = `td[data-asset="tokens"]`
	said   = `#said`
)

func running(c *ramptest.Config) { c.Standalone.Speed = 5 }

func perToken(c *ramptest.Config) { c.PerOrder = false }

func TestAPlayerClicksThroughTheOrders(t *testing.T) {
	t.Parallel()
	d := newDesk(t, running)
	d.open(d.exchange())
	d.sees(`[data-asset="item_gold"]`, "1,000")
	d.do(chromedp.SetValue(`#amount`, "10", chromedp.ByQuery))
	d.click(`#send`)
	// happens by itself, because the clock runs
	d.sees(said, "Done: the game took the assets, and the player received the tokens.")
	d.sees(".balances", "after the fee of 2%")
	d.sees(`td[data-moved="tokens"]`, "+9.8")
	d.sees(gold, "900")
	d.sees(tokens, "1,009.8")

	// A result that is sent again changes nothing and is shown at once.
	d.click(`#resend`)
	d.holds(`document.querySelectorAll('[data-kind="result"]').length === 2`)
	d.sees(gold, "900")

	d.click(`#another`)
	d.click(`input[name="chain"][value="transaction-fails"]`)
	d.click(`input[name="result"][value="result-late=10m"]`)
	d.click(`#send`)
	d.sees(said, "The transaction failed.")
	d.holds(`window.wasDue = document.querySelector(".banner").innerText
		.match(/The result is sent in (9:\d\d)/)?.[1]`)
	// counts down
	d.holds(`document.querySelector(".banner").innerText.match(/The result is sent in (9:\d\d)/)[1] < wasDue`)
	d.sees(gold, "800")
	d.click(`#pass-15`)
	d.sees(said, "The transaction failed, and the game gave everything back.")
	d.sees(gold, "900")

	d.click(`#another`)
	d.click(`input[name="do"][value="burn"]`)
	d.do(chromedp.SetValue(`#amount`, "2000", chromedp.ByQuery))
	d.click(`#send`)
	d.sees(said, "Nothing is lost: the burn failed, because the wallet held too few tokens.")

	// A pending transaction has no result that could be sent.
	d.click(`#another`)
	d.click(`input[name="chain"][value="stays-pending"]`)
	d.click(`#send`)
	d.sees(said, "stays pending, as you chose")
	d.holds(`!document.querySelector("#resend")`)

	// It is ended from the page.
	d.click(`#fail`)
	d.sees(said, "The transaction failed, and the game gave everything back.")
	d.click(`#another`)
	d.click(`input[name="chain"][value="stays-pending"]`)
	d.click(`#send`)
	d.sees(said, "stays pending, as you chose")

	d.click(`.ways a[href^="/catalog"]`)
	d.sees("h1", "Catalog · Ada")
	d.holds(`document.querySelectorAll("ul.orders > li").length === 5`)
	d.click(`.brand a`)
	d.sees("h1", "Orders")
	d.holds(`document.querySelectorAll("ul.orders > li").length === 5`)
	d.service.Advance(24 * time.Hour)
	// a time has a date now, and is not cut
	d.holds(`/^[A-Z][a-z]+ \d+\s\d\d:\d\d:\d\d$/.test(document.querySelector("ul.orders .number").innerText)`)
	d.holds(`[...document.querySelectorAll("ul.orders .number")]
		.every((n) => n.scrollWidth <= n.clientWidth + 1)`)
	d.click(`.filters a[href*="show=waiting"]`)
	d.holds(`document.querySelectorAll("ul.orders > li").length === 1`)
	d.do(chromedp.SendKeys(`#q`, "zzz"+kb.Enter, chromedp.ByQuery))
	d.sees(`#none`, "No order matches")
}

// Every page must fit each width and be accessible.
func TestEveryPageIsForEverybody(t *testing.T) {
	t.Parallel()
	d := newDesk(t, perToken)
	d.owns["item_gold"] = ramp.NewAmount(2000)
	d.open("/")
	d.judge("front-empty")
	d.open("/orders/x")
	d.judge("failure")
	expired := d.exchange()
	d.service.Advance(6 * time.Minute)
	d.open(expired)
	d.sees(".problem", "The UUID has expired")
	d.judge("exchange-expired")
	d.click(`#again`)
	d.sees("h1", "Exchange · Ada")
	d.open(d.exchange())
	d.judge("exchange")
	d.open(d.exchange() + "&amount=1000")
	d.click(`#send`)
	d.sees(`.problem`, `Rejected by the game: INVALID_BALANCE. The order takes `)
	d.do(chromedp.EmulateViewport(375, 667))
	d.holds(uncut(`[data-kind="validate"] .what`)) // why, without a click
	d.do(chromedp.EmulateViewport(1280, 900))
	d.click(`#faults summary`)
	d.judge("exchange-rejected")
	d.do(chromedp.Click(`//a[starts-with(text(), "Open call ")]`, chromedp.BySearch))
	d.sees("#body", "takes 100,000; owned 2,000")
	d.judge("call-rejected")

	done := d.mint()
	d.service.Advance(time.Minute)
	d.keeps = true
	lost := d.mint(ramptest.TransactionFails())
	d.service.Advance(time.Minute)
	d.keeps, d.answer = false, fmt.Errorf("the database is unavailable")
	retried := d.mint(ramptest.WrongHMAC(ramptest.OnResult))
	d.service.Advance(time.Minute)
	d.answer = nil
	purpose := d.mint(ramptest.LostAnswer(ramptest.OnResult), ramptest.ValidateOtherDigest())
	disputed := d.mint()
	d.service.Advance(time.Minute)
	pending := d.mint()
	_ = d.service.Deliver(t.Context(), disputed, ramptest.Failed) // which the game rejects
	for name, order := range map[string]*ramptest.PlacedOrder{"done": done, "lost": lost, "retried": retried,
		"pending": pending, "purpose": purpose, "disputed": disputed} {
		d.open(pageOf(order))
		d.sees("h1", "Mint 3 tokens · Ada · "+order.UUID.String()[:8])
		d.holds(`document.title.startsWith(document.querySelector("h1").innerText)`)
		if name == "lost" { // in red
			d.holds(
				`getComputedStyle(document.querySelector('td.bad[data-moved="item_gold"]')).color === ` +
					`getComputedStyle(document.querySelector(".note.bad")).color`)
			d.sees(`#blame`, "Assets first went wrong with result #1 (call ")
			d.click(`#culprit`)
			d.sees("#body", "the game must give back 300 item_gold")
			d.judge("call-lost")
			d.do(chromedp.Click(`//a[text()="← To the order"]`, chromedp.BySearch))
			d.sees("h1", "Mint 3 tokens · Ada")
		}
		if name == "retried" {
			d.click(`[data-kind="result"] details summary`)
			d.holds(`document.querySelector(".bytes pre")`)
			d.click(`.bytes .curl summary`)
		}
		if name == "purpose" { // on the next day, a time has its date
			d.do(chromedp.Evaluate(`document.querySelector(".due").textContent = "at Nov 27 00:04:58"`, nil))
		}
		d.judge("order-" + name)
	}
	d.open("/")
	d.holds(`!document.querySelector("#check-0").checkVisibility()`) // all works, which is one line
	d.click(`#setup-panel > summary`)
	d.click(`#settings summary`)
	d.answer = fmt.Errorf("the database is unavailable")
	_ = d.service.Resend(t.Context(), retried)
	d.answer = nil
	d.sees("#check-3", "failed later")
	d.judge("front")
	d.open("/?show=attention")
	d.judge("front-attention")
	d.open("/calls")
	d.judge("calls")
	d.click(`ul.orders > li > a`)
	d.sees("#body", "asked: POST")
	d.judge("call")
	d.open("/catalog?projectId=p&sessionId=session-1&accessToken=token-1&network=testnet")
	d.judge("catalog")
	d.open("/catalog?projectId=p&sessionId=session-2&accessToken=token-2&network=testnet")
	d.sees(".problem", "Log in to the game again")
	d.sees("main", "Unknown. The game was asked at ")
	d.judge("catalog-rejected")
}

// Large numbers, long texts and many elements fit too.
func TestAPageBearsAnything(t *testing.T) {
	t.Parallel()
	d := newDesk(t, perToken)
	long, huge := strings.Repeat("item_of_a_hundred_characters_", 4)[:100], strings.Repeat("1234567890", 4)
	d.name = strings.Repeat("Name of the player without end ", 8)[:240]
	items := []ramp.Item{item(d.t, long, huge[:20])}
	d.owns[long] = items[0].Amount
	for i := range 40 {
		id := fmt.Sprintf("item_%d_%s", i, strings.Repeat("x", 90))
		d.owns[id], _ = ramp.ParseAmount(huge)
		items = append(items, item(d.t, id, huge[:20+i/2]))
	}
	d.open(d.exchange(items...))
	d.judge("exchange-anything")
	order := must.Get(d.service.Mint(t.Context(), d.begin(items...), d.session, ramp.NewAmount(1),
		ramptest.TransactionFails()))(t)
	d.keeps = true
	d.service.Advance(time.Minute)
	for range 200 {
		d.must(d.service.Resend(t.Context(), order))
	}
	d.open(pageOf(order))
	d.sees(said, "the game keeps all that it took")
	d.sees(".again", "and 199 more with the same answer, until result #201")
	d.judge("order-anything")
	d.must(d.service.Resend(t.Context(), order))
	d.sees(".again", "and 200 more with the same answer, until result #202")
	d.click(`.again a`)
	d.sees("h1", "Calls with the same answers")
	d.holds(`document.querySelectorAll("#timeline > li").length === 50`)
	d.judge("order-again")
	d.open("/")
	d.judge("front-anything")

	// The checks find what they look for.
	for style, check := range map[string]string{"width: 2ch": tooNarrow, "width: 200vw": tooWide} {
		var found []string
		widen := `document.querySelectorAll("ul.orders .said")
			.forEach((said) => { said.style = "` + style + `" });`
		d.do(chromedp.Evaluate(widen+check, &found)) // at once, because the page replaces what has changed
		if len(found) == 0 {
			t.Errorf("nothing is wrong with %s", style)
		}
	}
}

// The JSON of an answer without a space in it is wrapped, wherever it is shown.
func TestAWideAnswerFits(t *testing.T) {
	t.Parallel()
	trace := strings.Repeat("0123456789abcdef", 500)
	wide := `{"success":false,"errorCode":"NO","data":null,"trace":["` + trace + `"` +
		strings.Repeat(`,"a finding in a line of its own"`, 150) + `]}`
	d := newDesk(t, func(c *ramptest.Config) {
		listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		game := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, wide)
		})}
		go func() { _ = game.Serve(listener) }()
		t.Cleanup(func() { _ = game.Close() })
		c.Game = "http://" + listener.Addr().String()
	})
	d.open(d.exchange())
	d.click(`#send`)
	d.sees(`.problem`, "Rejected by the game: NO.")
	d.click(`[data-kind="validate"] summary`)
	d.sees(`.bytes .rest`, " more lines")
	d.judge("exchange-wide")
	d.do(chromedp.Click(`//a[starts-with(text(), "Open call ")]`, chromedp.BySearch))
	d.click(`.rest summary`)
	d.judge("call-wide")
}

// Many different calls come in pieces. On a phone, each takes three lines at most until it is opened, and shows its
// outcome.
func TestAnOrderOfManyCallsIsShortOnAPhone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order := d.mint(ramptest.TransactionFails())
	d.service.Advance(time.Minute)
	resend := func(n int) { // in the sequence of Thue and Morse, in which nothing comes three times in a row
		_ = d.service.Deliver(t.Context(), order,
			[]ramptest.Outcome{ramptest.Succeeded, ramptest.Failed}[bits.OnesCount(uint(n))%2])
	}
	for n := range 120 {
		resend(n)
	}
	d.do(chromedp.EmulateViewport(375, 667))
	d.open(pageOf(order))
	const rows = `document.querySelectorAll("#timeline > li").length`
	d.holds(rows + ` === 50`)
	d.holds(`document.querySelector("#timeline").offsetHeight < 50 * 75`)
	d.holds(`[...document.querySelectorAll("#timeline .what > :is(.good, .neutral, .bad)")].every((outcome) => {
		const words = document.createRange(), all = outcome.firstChild;
		words.setStart(all, 0);
		words.setEnd(all, Math.min(all.length, "The game did not confirm".length));
		return words.getBoundingClientRect().bottom <= outcome.parentElement.getBoundingClientRect().bottom + 1
	})`)
	d.look("order-many", false)
	d.do(chromedp.EmulateViewport(375, 667))
	for _, want := range []int{100, 125} { // initialize, validate, twice the chain, the result, and that again
		d.click(`a.earlier`)
		d.holds(fmt.Sprintf(rows+` === %d`, want))
	}
	resend(120)
	d.holds(rows + ` === 126`) // the fetched ones stay
	d.holds(`document.documentElement.scrollHeight < 11000`)
	d.click(`[data-kind="result"] summary`)
	d.holds(`document.querySelector('[data-kind="result"] .what').offsetHeight > 75`)

	_, err := d.service.Mint(t.Context(), d.begin(item(d.t, "item_gold", "5000")), d.session, ramp.NewAmount(1))
	if err == nil {
		t.Fatal("the game approved more than the player owns")
	}
	d.open("/")
	d.sees("ul.orders", "The order takes 5,000 item_gold; the player owned 1,000 item_gold.")
	d.holds(`[...document.querySelectorAll("ul.orders .facts")].find((f) =>
		f.innerText === "not approved").offsetHeight < 34`)
}

// On a phone, the form can be sent without scrolling.
func TestTheOrderIsSentFromTheFirstScreenOfAPhone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.do(chromedp.EmulateViewport(375, 667))
	d.open(d.exchange())
	for _, selector := range []string{"#amount", "#send"} {
		d.holds(`(() => { const r = document.querySelector("` + selector +
			`").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight })()`)
	}
}

func TestThePriceFollowsTheAmount(t *testing.T) {
	t.Parallel()
	d := newDesk(t, perToken)
	d.open(d.exchange(item(d.t, "item_gold", "0.1"), item(d.t, "item_gem", "12345678901234567890")))
	d.do(chromedp.Evaluate(`document.querySelector("#amount").select()`, nil),
		chromedp.SendKeys(`#amount`, "3000000000000.5", chromedp.ByQuery))
	d.sees("#price-mint", "takes 300,000,000,000.05 item_gold, 37,037,036,703,709,876,509,450,617,283,945 item_gem")
	d.sees("#price-mint", "gives 2,940,000,000,000.49 tokens")
	d.sees("#price-burn", "takes 3,000,000,000,000.5 tokens, gives 300,000,000,000.05 item_gold")
	plain := newDesk(t)
	plain.open(plain.exchange())
	plain.sees("#pricing", "The price is for the whole order, however many tokens")
}

// The page and the service both mark an invalid amount and focus it.
func TestAWrongAmountIsMarked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open(d.exchange())
	marked := `document.querySelector("#amount").getAttribute("aria-invalid") === "true" && ` +
		`document.activeElement.id === "amount" && ` +
		`document.querySelector("#amount-error").innerText.includes("above 0")`
	d.do(chromedp.SetValue(`#amount`, "ten", chromedp.ByQuery))
	d.click(`#send`)
	d.holds(marked)
	d.holds(`!document.querySelector("#price-mint").checkVisibility()`) // it would be that of another amount
	d.judge("exchange-amount")
	d.do(chromedp.Evaluate(`document.querySelector("#amount").select()`, nil),
		chromedp.SendKeys(`#amount`, "1", chromedp.ByQuery))
	d.holds(`!document.querySelector("#amount").hasAttribute("aria-invalid")`)
	d.sees("#price-mint", "takes 100 item_gold")
	// bypasses the script
	d.do(chromedp.Evaluate(`{ const a = document.querySelector("#amount"); a.value = "ten"; a.form.submit() }`, nil))
	d.holds(marked)
}

// Updates of a page must not disturb its user.
func TestAPageChangesInPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order := d.mint()
	d.service.Advance(time.Minute)
	d.open(pageOf(order))
	d.click(`[data-kind="validate"] summary`)
	d.holds(`document.querySelector('[data-kind="validate"] .bytes pre')`)
	d.do(chromedp.Focus(`#resend`, chromedp.ByQuery),
		chromedp.Evaluate(
			`window.region = document.querySelector("#said"); window.read = document.querySelector(".bytes pre")`, nil))
	d.must(d.service.Resend(t.Context(), order))
	d.holds(`document.querySelectorAll('[data-kind="result"]').length === 2`)
	d.holds(`region.isConnected && region === document.querySelector("#said") && read.isConnected`)
	d.holds(`document.querySelector('[data-kind="validate"] details').open && document.activeElement.id === "resend"`)

	d.click(`.bytes .curl summary`)
	// which the browser may deny
	d.do(chromedp.Evaluate(`{ navigator.clipboard.writeText = async (text) => { window.copied = text } }`, nil))
	d.click(`.bytes [data-copy]`)
	d.holds(`copied === document.querySelector(".bytes .curl pre").textContent && copied.includes("ramp sign")`)
	d.click(`[data-copy="hash"]`)
	d.holds(`copied === "` + order.TxHash.Hex() + `"`)

	// The live region announces news, but no countdown.
	d.holds(`!region.querySelector("[data-due]")`)

	// The same with the keyboard.
	d.do(chromedp.Focus(`[data-kind="result"] summary`, chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	d.holds(`document.querySelector('[data-kind="result"] details').open`)

	// A button reacts at once.
	d.mu.Lock()
	d.hold = make(chan bool)
	d.mu.Unlock()
	d.click(`#resend`)
	d.holds(
		`document.querySelector("#resend").innerText === "Sending…" && ` +
			`document.querySelector("#resend").getAttribute("aria-busy")`)
	d.sees(said, "The result is being sent.")
	close(d.hold)
	d.holds(
		`document.querySelector("#resend").innerText === "Send the result again" && ` +
			`!document.querySelector("#resend").getAttribute("aria-busy")`)
}

func TestAListChangesInPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open("/")
	d.sees("h1", "Connect your game")
	d.sees("#checks", "It rejected a wrong signature")
	d.begin()
	d.holds(`document.querySelectorAll("#checks > .good").length === 3`)
	d.mint()
	d.sees("h1", "Orders") // which the page becomes by itself
	d.do(chromedp.SendKeys(`#q`, "half a wor", chromedp.ByQuery))
	d.click(`#settings summary`)
	d.do(chromedp.Focus(`#q`, chromedp.ByQuery))
	order := d.mint()
	d.sees(`ul.orders`, "next block")
	d.service.Advance(time.Minute)
	d.sees(`ul.orders`, "−100 item_gold")
	d.sees(`#setup`, "works")
	d.holds(
		`document.querySelector("#q").value === "half a wor" && document.activeElement.id === "q" && ` +
			`document.querySelector("#settings").open`)
	d.click(`[id="order-` + order.UUID.String() + `"] a`)
	d.sees("h1", order.UUID.String()[:8])
}

// On a phone, the setup takes one line after the first steps, until somebody opens it.
func TestAPhoneShowsTheSetupInOneLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.mint()
	const summary, works = `#setup-panel > summary`, `!!document.querySelector("#check-0").checkVisibility()`
	d.open("/")
	d.holds(works) // a wide page shows it all, and has nothing to open
	d.holds(`(() => { const s = document.querySelector("` + summary +
		`"); s.focus(); return document.activeElement !== s })()`)
	d.do(chromedp.EmulateViewport(375, 667))
	d.sees(summary, "Setup: 3 of 4 work, 1 not seen yet")
	d.holds(`!` + works + ` && document.querySelector("section.setup").offsetHeight < 100`)
	d.click(summary)
	d.holds(works)
	d.service.Advance(time.Minute)
	d.sees(summary, "Connection works")
	d.holds(works) // it stays open
	d.do(chromedp.Focus(summary, chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	d.holds(`!` + works)
	d.do(emulation.SetScriptExecutionDisabled(true))
	d.open("/")
	d.holds(`!` + works)
	d.click(summary)
	d.holds(works)
}

// On a phone, a problem opens the setup, also on a page that is open already, until somebody
// closes it.
func TestAPhoneShowsAProblemOfTheSetup(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const problem = `document.querySelector("#checks .bad")?.checkVisibility()`
	d.do(chromedp.EmulateViewport(390, 844))
	d.mint()
	d.open("/")
	d.holds(`!document.querySelector("#setup-panel").open`)
	ours := d.client
	key := must.Get(ramp.TextKey("another key"))(t)
	d.client = must.Get(ramp.NewClient(ramp.ClientConfig{URL: d.address, Key: key}))(t)
	_, err := d.client.Initialize(t.Context(),
		ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project-1",
			Token:     "0x00000000000000000000000000000000000070c3",
			Materials: []ramp.Item{item(d.t, "item_gold", "100")}}})
	if err == nil {
		t.Fatal("a UUID was issued")
	}
	d.sees("#setup-problem", "The game asks for UUIDs")
	const weight = `getComputedStyle(document.querySelector("#check-0 %s")).fontWeight === "%s"`
	d.holds(fmt.Sprintf(weight, ".said", "600") + " && " + fmt.Sprintf(weight, ".fix", "400")) // a guess is not bold
	d.holds(problem)
	d.sees("#check-0", "The game may have a different HMAC key, or sign a different body than it sends.")
	d.judge("front-problem")
	d.do(chromedp.EmulateViewport(390, 844))
	d.click(`#setup-problem > summary`)
	d.holds(`!` + problem)
	d.client = ours
	d.mint()
	d.sees("#setup-panel", "3 of 4 work")
	d.holds(`!document.querySelector("#check-0").checkVisibility()`)
}

// A browser allows only six connections to one host.
func TestManyTabsAreOpen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order := d.mint()
	for range 6 {
		tab := d.newTab()
		d.must(chromedp.Run(tab, chromedp.Navigate(d.address+pageOf(order))))
		d.holdsIn(tab, `document.querySelector("#said").innerText.includes("next block")`)
	}
	d.open(pageOf(order)) // the seventh
	d.service.Advance(time.Minute)
	d.sees(said, "Done:")
}

func TestAPageSaysThatTheServiceIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order := d.mint()
	first := d.serve(d.service, "127.0.0.1:0")
	d.do(chromedp.Navigate(first.address + pageOf(order)))
	d.sees(said, "next block")
	d.must(first.server.Close())
	d.sees("#connection", "Connection lost; this page may be stale. Retrying…")
	d.judge("order-stale")
	d.service.Advance(time.Minute)
	d.serve(d.service, strings.TrimPrefix(first.address, "http://"))
	d.sees(said, "Done:")
	d.holds(`document.querySelector("#connection").innerText === ""`)
}

// A page with a form that somebody is filling in says so too, and keeps what it has.
func TestAFormSaysThatTheServiceIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.serve(d.service, "127.0.0.1:0")
	d.do(chromedp.Navigate(first.address+d.exchange()), chromedp.SetValue(`#amount`, "7", chromedp.ByQuery))
	d.must(first.server.Close())
	d.sees("#connection", "Connection lost")
	d.serve(d.service, strings.TrimPrefix(first.address, "http://"))
	d.holds(`document.querySelector("#connection").innerText === "" && document.querySelector("#amount").value === "7"`)
	d.click(`#send`)
	d.sees("h1", "Mint 7 tokens")
}

// uncut is true if all of the text of an element is shown, and there is more of it than a line has.
func uncut(selector string) string {
	return fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e.offsetHeight > 34 &&
		e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1 })()`, selector)
}

// On a phone, the call that first went wrong says all that the books found, and a player has a whole name.
func TestAPhoneCutsNoReason(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.keeps, d.name = true, "Ada of the long name"
	d.owns["item_gem"] = ramp.NewAmount(50)
	lost := must.Get(d.service.Mint(t.Context(), d.begin(item(d.t, "item_gold", "100"), item(d.t, "item_gem", "7")),
		d.session,
		ramp.NewAmount(2), ramptest.TransactionFails()))(t)
	d.service.Advance(time.Minute)
	d.do(chromedp.EmulateViewport(375, 667))
	d.open(pageOf(lost))
	d.holds(uncut(`.what.full`))
	d.open("/calls")
	d.holds(uncut(`.said.full`))
	_, err := d.service.Mint(t.Context(), d.begin(item(d.t, "item_gold", "5000")), d.session, ramp.NewAmount(1))
	if err == nil {
		t.Fatal("the game approved more than the player owns")
	}
	d.open("/")
	d.holds(`[...document.querySelectorAll("ul.orders .who")].every((who) =>
		who.innerText === "Ada of the long name" && who.scrollWidth <= who.clientWidth + 1)`)
}

// The page shows the service's clock, whatever advances it.
func TestAPageShowsTheClock(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *ramptest.Config) { c.Epoch = time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC) })
	d.open("/")
	d.sees("#clock", "Nov 21 23:59:00")
	d.service.Advance(90 * time.Second)
	d.sees("#clock", "Nov 22 00:00:30")
}

// Every page also works without scripts.
func TestAPageNeedsNoScript(t *testing.T) {
	t.Parallel()
	d := newDesk(t, perToken)
	d.do(emulation.SetScriptExecutionDisabled(true))
	d.open(d.exchange())
	d.do(chromedp.SetValue(`#amount`, "3", chromedp.ByQuery))
	d.click(`button[name="price"]`)
	d.sees("#price-mint", "takes 300 item_gold")
	d.do(chromedp.SetValue(`#amount`, "x", chromedp.ByQuery))
	d.click(`#send`)
	d.sees("#amount-error", "above 0")
	d.do(chromedp.SetValue(`#amount`, "1", chromedp.ByQuery))
	d.click(`input[name="chain"][value="transaction-fails"]`)
	d.click(`#send`)
	d.sees(".banner", "Next block at ")
	d.click(`#fail`)
	d.click(`#pass-5`)
	d.sees(said, "The transaction failed, and the game gave everything back.")
	d.click(`#resend`)
	d.holds(`document.querySelectorAll('[data-kind="result"]').length === 2`)
	d.click(`[data-kind="result"] summary`)
	d.click(`[data-kind="result"] .bytes a`)
	d.sees("#body", "asked: POST")
	d.click(`a[href^="/orders/"]`)
	d.click(`#read`)
	d.click(`#another`)
	d.sees("#price-mint", "takes 100 item_gold")
	d.click(`a[href="/"]`)
	d.do(chromedp.SendKeys(`#q`, "zzz"+kb.Enter, chromedp.ByQuery))
	d.sees(`#none`, "No order matches")
	d.click(`.filters a[href*="show=done"]`)
	d.click(`#none a`)
	d.sees("ul.orders", "Mint 1 token")
	d.click(`#all-calls`)
	d.sees("ul.orders", "POST /api/result #2")
	d.click(`ul.orders > li > a`)
	d.sees("#body", "asked: ")
	d.click(`a[href="/"]`)
	d.click(`#start-form > summary`)
	d.click(`form.start button.main`)
	d.sees("#price-mint", "takes 100 item_gold")
}
