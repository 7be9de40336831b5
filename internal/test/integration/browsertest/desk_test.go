// Package browsertest tests the pages of package ramptest in a real browser. It is a
// module of its own, so that importing ramp does not require a browser driver.
package browsertest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/pages"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// browser is shared by all tests, because starting one takes seconds.
var browser struct {
	context.Context
	missing string
}

func TestMain(m *testing.M) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		options := []chromedp.ExecAllocatorOption{
			chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox,
			chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
			chromedp.WSURLReadTimeout(time.Minute),
		}
		for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update",
			"disable-sync", "disable-dev-shm-usage"} {
			options = append(options, chromedp.Flag(flag, true))
		}
		allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		if err := chromedp.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the browser does not start:", err)
			os.Exit(1)
		}
		browser.Context = ctx
		// More tests run at once than there are processors, because they often wait.
		if err := flag.Set("test.parallel", "8"); err != nil { // the command line overrides it
			panic(err)
		}
		status := m.Run()
		_ = chromedp.Cancel(ctx) // also deletes the browser's temporary directory
		cancel()
		end()
		os.Exit(status)
	}
	browser.missing = "SKIPPED, NOTHING WAS TESTED: there is no chromium on this machine (apt-get install chromium)"
	os.Exit(m.Run())
}

// desk is a game, its emulated service, and a tab that shows the service's pages.
type desk struct {
	*shop
	t       *testing.T
	service *ramptest.Service
	client  *ramp.Client
	session ramp.Session
	address string
	tab     context.Context
}

// shop has one player, who owns some of every asset.
type shop struct {
	mu     sync.Mutex
	name   string
	owns   map[string]ramp.Amount
	answer error // if not nil, returned for the end of an order instead of processing it
	keeps  bool  // whether it gives nothing back
	hold   chan bool
}

func (g *shop) Authenticate(_ context.Context, s ramp.Session) error {
	if s.Token.Reveal() != "token-1" {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g *shop) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &ramp.Player{PlayerID: "player-1", Name: g.name}
	for id, balance := range g.owns {
		p.Assets = append(p.Assets, ramp.Asset{ID: id, Balance: balance})
	}
	return p, nil
}

func (g *shop) Apply(_ context.Context, step ramp.Step) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answer != nil && step.Order.State != ramp.OrderAccepted || g.keeps && step.Effect.Kind == ramp.GiveBack {
		return g.answer
	}
	for _, asset := range step.Effect.Assets {
		balance, err := g.owns[asset.ID].Add(step.Effect.Delta(asset))
		if err != nil || balance.Sign() < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		g.owns[asset.ID] = balance
	}
	return nil
}

// waiting stands before a game, and holds a result back as long as somebody wants.
func (g *shop) waiting(game http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		hold := g.hold
		g.mu.Unlock()
		if hold != nil && r.URL.Path == ramp.PathResult {
			<-hold
		}
		game.ServeHTTP(w, r)
	})
}

// newDesk starts a service with a stopped clock, unless change sets another speed, and
// opens a tab.
func newDesk(t *testing.T, change ...func(*ramptest.Config)) *desk {
	t.Helper()
	if browser.missing != "" {
		t.Skip(browser.missing)
	}
	d := &desk{t: t, session: ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")},
		shop: &shop{name: "Ada", owns: map[string]ramp.Amount{"item_gold": ramp.NewAmount(1000)}}}
	key := must.Get(ramp.TextKey("key of the console"))(t)
	signer := must.Get(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))(t)
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: d.shop,
		Store: &ramp.MemoryStore{Apply: d.shop.Apply}, Key: key, Signer: signer}))(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	config := ramptest.Config{Key: key, Validator: signer.Address(),
		Game: d.serve(d.waiting(handler), "127.0.0.1:0").address, Audit: ramptest.AuditReport, Settle: -1,
		PerOrder: true, Standalone: ramptest.Standalone{Listener: listener, Pages: pages.New()}}
	for _, c := range change {
		c(&config)
	}
	d.service = must.Get(ramptest.New(config))(t)
	t.Cleanup(d.service.Close)
	d.address = d.service.URL()
	d.client = must.Get(ramp.NewClient(ramp.ClientConfig{URL: d.address, Key: key}))(t)
	d.tab = d.newTab()
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// newTab opens a tab. The test fails if the tab sends a request to another host or reports
// an error.
func (d *desk) newTab() context.Context {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(browser.Context, 4*time.Minute)
	d.t.Cleanup(cancel)
	ctx, closeTab := chromedp.NewContext(ctx)
	d.t.Cleanup(closeTab)
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, "http://127.0.0.1:") && !strings.HasPrefix(u, "data:") {
				d.t.Errorf("the page asks for %s", u)
			}
		case *runtime.EventExceptionThrown:
			d.t.Errorf("the page's script failed: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			// The browser also reports unsuccessful statuses, which tests often expect.
			if e.Entry.Level == log.LevelError && !strings.HasPrefix(e.Entry.Text, "Failed to load resource") {
				d.t.Errorf("the browser reports: %s", e.Entry.Text)
			}
		}
	})
	d.must(chromedp.Run(ctx, network.Enable(), runtime.Enable(), log.Enable(), emulation.SetFocusEmulationEnabled(true),
		chromedp.EmulateViewport(1280, 900)))
	return ctx
}

func item(t testing.TB, id string, amount string) ramp.Item {
	return ramp.Item{ID: id, Amount: must.Get(ramp.ParseAmount(amount))(t), IconURL: "https://example.com/icon.png"}
}

// begin gets a UUID, as the game does.
func (d *desk) begin(items ...ramp.Item) uuid.UUID {
	d.t.Helper()
	if items == nil {
		items = []ramp.Item{item(d.t, "item_gold", "100")}
	}
	return must.Get(d.client.Initialize(d.t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		MintFeeBps: 200, Materials: items, Outputs: items}}))(d.t).UUID
}

// exchange returns the path of the exchange page of a new order.
func (d *desk) exchange(items ...ramp.Item) string {
	d.t.Helper()
	return "/exchange?" + url.Values{"uuid": {d.begin(items...).String()}, "accessToken": {"token-1"},
		"sessionId": {d.session.ID}, "network": {"testnet"}}.Encode()
}

func (d *desk) mint(faults ...ramptest.Fault) *ramptest.PlacedOrder {
	d.t.Helper()
	return must.Get(d.service.Mint(d.t.Context(), d.begin(), d.session, ramp.NewAmount(3), faults...))(d.t)
}

func pageOf(o *ramptest.PlacedOrder) string { return "/orders/" + o.UUID.String() }

// do runs actions in the tab, one after another, with a generous timeout. The page or the
// next page may replace an element at the same time; do then tries again.
func (d *desk) do(actions ...chromedp.Action) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.tab, 30*time.Second)
	defer cancel()
	for _, action := range actions {
		err := chromedp.Run(ctx, action)
		for err != nil && replaced(err) {
			err = chromedp.Run(ctx, action)
		}
		d.must(err)
	}
}

// replaced reports whether an error means that an element no longer exists.
func replaced(err error) bool {
	for _, text := range []string{"No node with given id", "Could not find node", "Cannot find context",
		"context was destroyed"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func (d *desk) open(path string) {
	d.t.Helper()
	d.do(chromedp.Navigate(d.address + path))
}

func (d *desk) click(selector string) {
	d.t.Helper()
	d.do(chromedp.Click(selector, chromedp.ByQuery))
}

// holds waits until an expression is true in the page, without reloading it.
func (d *desk) holds(expression string) {
	d.t.Helper()
	d.holdsIn(d.tab, expression)
}

func (d *desk) holdsIn(tab context.Context, expression string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(tab, 20*time.Second)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		var holds bool
		// Between two pages, the expression cannot be evaluated.
		if err = chromedp.Run(ctx, chromedp.Evaluate("!!("+expression+")", &holds)); err == nil && holds {
			return
		}
		time.Sleep(100 * time.Millisecond) // poll: the browser does not notify the test
	}
	var text string
	_ = chromedp.Run(tab, chromedp.Evaluate(`document.body.innerText`, &text))
	d.t.Fatalf("it never holds that %s (%v); the page says:\n%s", expression, err, text)
}

// sees waits until an element of the page shows a text.
func (d *desk) sees(selector, want string) {
	d.t.Helper()
	d.holds(fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '').includes(%q)", selector, want))
}

var (
	widths  = []int64{320, 375, 1280}
	schemes = []string{"light", "dark"}
)

// axe is axe-core. It is empty if it is not installed.
var axe = sync.OnceValue(func() string {
	b, _ := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
	return string(b)
})

// tooWide lists the elements that make a page scroll sideways.
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] :
	[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
		.map((e) => e.outerHTML.slice(0, 100)).concat("the page")`

// tooNarrow lists the texts that are broken into lines of fewer than 6 characters on
// average, as a column does that is squeezed by its neighbors.
const tooNarrow = `(() => {
	const found = [], range = document.createRange();
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const length = texts.currentNode.data.trim().replace(/\s+/g, " ").length;
		if (length < 8) continue;
		range.selectNodeContents(texts.currentNode);
		const rows = [...range.getClientRects()].filter((r) => r.width > 1).map((r) => Math.round(r.top));
		const lines = new Set(rows).size;
		if (lines > 2 && length / lines < 6)
			found.push(lines + " lines: " + texts.currentNode.data.trim().slice(0, 100));
	}
	return found;
})()`

// judge checks the requirements for every page, at each width, in each color scheme, with
// text of the usual size and of twice that.
// It also saves screenshots, if a directory for them is set.
func (d *desk) judge(name string) {
	d.t.Helper()
	d.do(chromedp.Evaluate(axe(), nil))
	d.look(name, axe() != "")
	if axe() == "" {
		d.t.Log("ACCESSIBILITY NOT TESTED: there is no axe-core: run npm install in " +
			"internal/test/integration/browsertest")
	}
}

// look is like judge. It checks accessibility only if asked.
func (d *desk) look(name string, accessible bool) {
	d.t.Helper()
	folder := os.Getenv("RAMP_SCREENSHOTS")
	for _, width := range widths {
		viewport := chromedp.EmulateViewport(width, map[int64]int64{320: 568, 375: 667, 1280: 900}[width])
		for _, scheme := range schemes {
			d.do(viewport,
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
					Value: scheme}}))
			for _, percent := range []int64{200, 100} {
				d.do(text(percent))
				where := fmt.Sprintf("%s at %d px, %s, with text at %d%%", name, width, scheme, percent)
				if scheme == "light" { // the other changes only colors
					d.fits(where)
				}
				if accessible {
					d.axe(where)
				}
			}
			if folder != "" {
				var picture []byte
				d.do(chromedp.FullScreenshot(&picture, 100))
				d.must(os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)),
					picture, 0o600))
				d.do(viewport)
			}
		}
	}
	d.do(chromedp.EmulateViewport(1280, 900))
}

// text sets the size of the text, as a user does in the browser's settings.
func text(percent int64) chromedp.Action {
	return page.SetFontSizes(&page.FontSizes{Standard: 16 * percent / 100, Fixed: 13 * percent / 100})
}

// fits checks that a page neither scrolls sideways nor breaks words into letters.
func (d *desk) fits(where string) {
	d.t.Helper()
	for what, expression := range map[string]string{"scrolls sideways": tooWide,
		"has letters below one another": tooNarrow} {
		var found []string
		if d.do(chromedp.Evaluate(expression, &found)); len(found) > 0 {
			d.t.Errorf("%s %s:\n%s", where, what, strings.Join(found, "\n"))
		}
	}
}

// axe checks all rules of axe-core.
func (d *desk) axe(where string) {
	d.t.Helper()
	var violations []string
	d.do(chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"], preload: false}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) =>
			v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`, &violations,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, v := range violations {
		d.t.Errorf("%s: %s", where, v)
	}
}

// door is an address of the service or the game that can be closed.
type door struct {
	address string
	server  *http.Server
}

// serve serves the game, or the service at an additional address.
func (d *desk) serve(handler http.Handler, at string) *door {
	d.t.Helper()
	listener := must.Get(net.Listen("tcp", at))(d.t)
	p := &door{address: "http://" + listener.Addr().String(), server: &http.Server{Handler: handler}}
	go func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			_, _ = io.WriteString(os.Stderr, err.Error())
		}
	}()
	d.t.Cleanup(func() { _ = p.server.Close() })
	return p
}
