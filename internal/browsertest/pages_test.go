// Package browsertest clicks through the pages of package ramptest in a real
// browser. It is a module of its own, so that nobody who imports ramp pays for
// what drives the browser.
package browsertest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// desk is the game server of the examples, with the service that it emulates,
// and what a browser shows of them.
type desk struct {
	t       *testing.T
	game    string // its address
	browser context.Context
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, browser: openBrowser(t)}
	folder := t.TempDir()
	program := filepath.Join(folder, "gameserver")
	if out, err := exec.Command("go", "-C", "../../examples/gameserver", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := exec.CommandContext(t.Context(), program, "-addr", "127.0.0.1:0", "-db", "sqlite:"+filepath.Join(folder, "game.db"))
	server.Env = append(os.Environ(), "RAMP_HMAC_KEY=") // so that it emulates the service
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	out, err := server.StdoutPipe()
	d.must(err)
	d.must(server.Start())
	t.Cleanup(func() { _ = server.Wait() }) // which the end of the test's context has ended
	ready, err := bufio.NewReader(out).ReadString('\n')
	d.must(err)
	d.game = strings.Fields(ready)[2]
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// openBrowser starts a browser of its own for the test. Without one on this
// machine the test is skipped, and says so.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("SKIPPED, NOTHING WAS TESTED: there is no chromium on this machine (apt-get install chromium)")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.WSURLReadTimeout(time.Minute),
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // its folder, which was made for it, goes too
		cancel()
	})
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, "http://127.0.0.1:") && !strings.HasPrefix(u, "data:") {
				t.Errorf("the page asks for %s", u)
			}
		case *runtime.EventExceptionThrown:
			t.Errorf("the page's script failed: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				t.Errorf("the browser reports: %s", e.Entry.Text)
			}
		}
	})
	if err := chromedp.Run(ctx, network.Enable(), runtime.Enable(), log.Enable()); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// do makes the browser do things, one after the other, within a time that no
// page should need. What it reaches for may be replaced in that moment, by the
// page or by the next one; then it reaches again.
func (d *desk) do(actions ...chromedp.Action) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.browser, 30*time.Second)
	defer cancel()
	for _, action := range actions {
		err := chromedp.Run(ctx, action)
		for err != nil && replaced(err) {
			err = chromedp.Run(ctx, action)
		}
		d.must(err)
	}
}

// replaced says whether an error is the browser's way to say that what was there
// is there no more.
func replaced(err error) bool {
	for _, text := range []string{"No node with given id", "Could not find node", "Cannot find context", "context was destroyed"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// sees waits until the page shows a text at a place, without being reloaded.
func (d *desk) sees(selector, want string) {
	d.t.Helper()
	says := fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '').trim()", selector)
	got := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		// Between two pages there is nothing to ask.
		if err := chromedp.Run(d.browser, chromedp.Evaluate(says, &got)); err == nil && got == want {
			return
		}
		time.Sleep(50 * time.Millisecond) // of the browser, which has no other clock
	}
	d.t.Fatalf("%s says %q instead of %q", selector, got, want)
}

// shoot keeps a picture of the page for a person to look at, if there is a
// folder for it.
func (d *desk) shoot(name string) {
	d.t.Helper()
	folder := os.Getenv("RAMP_SCREENSHOTS")
	if folder == "" {
		return
	}
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1280, 900}, {"narrow", 360, 740}} {
		for _, scheme := range []string{"light", "dark"} {
			var picture []byte
			d.do(chromedp.EmulateViewport(size.width, size.height),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.FullScreenshot(&picture, 100))
			d.must(os.WriteFile(filepath.Join(folder, name+"-"+size.name+"-"+scheme+".png"), picture, 0o600))
		}
	}
	d.do(chromedp.EmulateViewport(1280, 900))
}

// exchange opens the exchange page of a new order, as the game does.
func (d *desk) exchange() {
	d.t.Helper()
	d.do(chromedp.Navigate(d.game + "/play?player=Ada"))
}

// order fills the form in and sends it.
func (d *desk) order(do, chain, result, amount string) {
	d.t.Helper()
	d.do(
		chromedp.Click(`input[name="do"][value="`+do+`"]`, chromedp.ByQuery),
		chromedp.SetValue(`#amount`, amount, chromedp.ByQuery),
		chromedp.Click(`input[name="chain"][value="`+chain+`"]`, chromedp.ByQuery),
		chromedp.Click(`input[name="result"][value="`+result+`"]`, chromedp.ByQuery),
		chromedp.Click(`#send`, chromedp.ByQuery),
		chromedp.WaitVisible(`[data-state]`, chromedp.ByQuery),
	)
}

const (
	gold   = `[data-asset="item_gold"]`
	tokens = `[data-asset="tokens"]`
	state  = `[data-state]`
)

func TestAPlayerClicksThroughTheOrders(t *testing.T) {
	d := newDesk(t)

	d.exchange()
	d.sees(gold, "1000000")
	d.sees(tokens, "1000")
	d.shoot("exchange")
	d.order("mint", "succeed", "once", "10")
	d.sees(state, "confirmed") // by itself: the clock runs
	d.sees(gold, "999000")
	d.sees(tokens, "1009.9")
	d.do(chromedp.Click(`[data-kind="validate"] summary`, chromedp.ByQuery), chromedp.WaitVisible(`[data-kind="validate"] details[open] pre`, chromedp.ByQuery))
	d.do(chromedp.Click(`#resend`, chromedp.ByQuery), chromedp.WaitVisible(`[data-kind="result"] ~ [data-kind="result"]`, chromedp.ByQuery))
	d.sees(gold, "999000")
	d.do(chromedp.Click(`[data-kind="result"] summary`, chromedp.ByQuery))
	d.shoot("mint")

	d.exchange()
	d.order("mint", "fail", "late", "10")
	d.sees(gold, "998000")
	d.shoot("pending")
	d.do(chromedp.Click(`#pass-15`, chromedp.ByQuery))
	d.sees(state, "confirmed")
	d.sees(gold, "999000")
	d.sees(tokens, "1009.9")

	d.exchange()
	d.order("burn", "succeed", "twice", "9")
	d.sees(state, "confirmed")
	d.sees(gold, "999900")
	d.sees(tokens, "1000.9")

	// A transaction that stays pending has no result that could be sent.
	d.exchange()
	d.order("mint", "never", "once", "10")
	d.do(chromedp.WaitVisible(`#resend:disabled`, chromedp.ByQuery))
	d.sees(gold, "998900")

	// The catalog is beside the exchange page, for the same session.
	d.exchange()
	d.do(chromedp.Evaluate(`{
		const page = new URLSearchParams(location.search)
		location.assign("/catalog?" + new URLSearchParams({projectId: "gameserver", sessionId: page.get("sessionId"),
			accessToken: page.get("accessToken"), platform: "web", network: "testnet"}))
	}`, nil), chromedp.WaitVisible(`ul.orders li`, chromedp.ByQuery))
	d.sees(gold, "998900")
	d.shoot("catalog")
}

// A page must work without a mouse, and fit the narrowest phone.
func TestAPlayerHasAKeyboardAndAPhone(t *testing.T) {
	d := newDesk(t)
	d.exchange()
	d.do(chromedp.EmulateViewport(320, 640))
	var wide bool
	d.do(chromedp.Evaluate(`document.documentElement.scrollWidth > window.innerWidth`, &wide))
	if wide {
		t.Error("the exchange page is wider than a phone")
	}
	d.do(chromedp.Focus(`#amount`, chromedp.ByQuery), chromedp.KeyEvent("\r"), chromedp.WaitVisible(`[data-state]`, chromedp.ByQuery))
	d.sees(state, "confirmed")
	d.do(chromedp.Focus(`[data-kind="result"] summary`, chromedp.ByQuery), chromedp.KeyEvent("\r"), chromedp.WaitVisible(`[data-kind="result"] details[open] pre`, chromedp.ByQuery))
	d.do(chromedp.Evaluate(`document.documentElement.scrollWidth > window.innerWidth`, &wide))
	if wide {
		t.Error("the page of an order is wider than a phone")
	}

	// What was opened stays open when something happens, and the focus stays.
	d.do(chromedp.Focus(`#resend`, chromedp.ByQuery), chromedp.Evaluate(`window.stayed = true`, nil))
	d.do(chromedp.Evaluate(`fetch(location.pathname + "/resend", {method: "POST"}).then(() => true)`, nil,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	d.do(chromedp.WaitVisible(`[data-kind="result"] ~ [data-kind="result"]`, chromedp.ByQuery))
	var open, focused bool
	d.do(chromedp.Evaluate(`window.stayed && document.querySelector('[data-kind="result"] details').open`, &open),
		chromedp.Evaluate(`document.activeElement.id === "resend"`, &focused))
	if !open || !focused {
		t.Errorf("after a change: open is %v, focus stayed is %v", open, focused)
	}
}
