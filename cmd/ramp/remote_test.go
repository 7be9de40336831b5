package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// shop is a game of one player who has gold. It moves each order once, unless it
// keeps what it must give back.
type shop struct {
	mu      sync.Mutex
	session string // the ID; "session-1" if it is empty
	asset   string // the ID; "item_gold" if it is empty
	gold    int64
	keeps   bool
}

func (s *shop) Authenticate(_ context.Context, who ramp.Session) error {
	if who.ID != cmp.Or(s.session, "session-1") || who.Token.Reveal() != testToken {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (s *shop) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &ramp.Player{PlayerID: "alice",
		Assets: []ramp.Asset{{ID: cmp.Or(s.asset, "item_gold"), Balance: ramp.NewAmount(s.gold)}}}, nil
}

func (s *shop) apply(_ context.Context, step ramp.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil || s.gold+delta < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		if !s.keeps || step.Effect.Kind != ramp.GiveBack {
			s.gold += delta
		}
	}
	return nil
}

// desktop is an emulator beside the game of a shop.
type desktop struct {
	started
	shop *shop
}

// console are the flags for the keys of the game.
func console() []string {
	return []string{"-key-file", testKeyFile, "-key-encoding", "text", "-validator", testValidator}
}

func newDesktop(t *testing.T, args ...string) *desktop {
	t.Helper()
	d := &desktop{shop: &shop{gold: 1000}}
	var lines *bufio.Scanner
	d.started, lines, _ = beginJSON(t,
		slices.Concat(console(), []string{"-game", newShop(t, d.shop), "-speed", "50"}, args)...)
	drain(lines)
	return d
}

// newShop serves a shop that moves each order once.
func newShop(t *testing.T, s *shop) string {
	t.Helper()
	store := &ramp.MemoryStore{Apply: s.apply}
	return serve(t, ramp.HandlerConfig{Terms: anyTerms, Players: s, Store: store})
}

// ramp runs a command with the emulator.
func (d *desktop) ramp(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	return command(t, append([]string{args[0], "-at", d.API}, args[1:]...)...)
}

// command runs a command.
func command(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(t.Context(), args, &o, &e)
	assert.NotContains(t, o.String()+e.String(), testToken, "no access token is shown")
	assert.NotContains(t, o.String()+e.String(), "\x1b", "colors are for a terminal")
	return status, o.String(), e.String()
}

// ends runs a command that must end with a status, and returns what it wrote. What it wrote
// to stderr begins with "stderr: ".
func ends(t *testing.T, want int, args ...string) string {
	t.Helper()
	status, out, errs := command(t, args...)
	require.Equal(t, want, status, out+errs)
	if errs != "" {
		out += "stderr: " + errs
	}
	return out
}

func (d *desktop) ends(t *testing.T, want int, args ...string) string {
	t.Helper()
	return ends(t, want, append([]string{args[0], "-at", d.API}, args[1:]...)...)
}

// onTerms are the flags of an order on terms of its own.
func onTerms(args ...string) []string {
	return append([]string{"trigger", args[0], "-session", "session-1=" + testToken, "-token",
		"0x00000000000000000000000000000000000070c3",
		"-project", "project-1", "-material", "item_gold=100", "-output", "item_gold=50"}, args[1:]...)
}

func TestTriggerTellsHowAnOrderEnded(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, "-per-order")
	out := d.ends(t, 0, onTerms("mint", "-amount", "3", "-wait")...)
	assert.Regexp(t, `^[0-9a-f-]{36}  DONE  .*The game took 100 item_gold; alice received 3 tokens\.\n$`, out)
	id := out[:36]

	out = d.ends(t, 0, "trigger", "burn", "-like", id[:8], "-wait", "-json")
	var burned control.OrderReport
	require.NoError(t, json.Unmarshal([]byte(out), &burned))
	assert.Equal(t, map[string]string{"item_gold": "50"}, burned.Moved)
	assert.Equal(t, "3", burned.Amount)

	out = d.ends(t, 0, "trigger", "mint", "-like", id, "-fault", "transaction-fails", "-fault",
		"lost-answer=result", "-q")
	require.Len(t, out, 37, "-q prints the UUID only")
	lost := out[:8]
	d.ends(t, 0, "advance", "6m")
	out = d.ends(t, 0, "orders", lost, "-wait")
	assert.Contains(t, out, "mint 3 tokens of alice, transaction 0x")
	assert.Contains(t, out, "result      "+lost+"  #2   200  success\n")
	assert.Contains(t, out, "DONE  The transaction failed. The game gave back 100 item_gold.\n")

	out = d.ends(t, 0, "orders")
	assert.Regexp(t, `(?m)^UUID +TIME +ORDER +PLAYER +BOOKS +STATE$`, out)
	assert.Regexp(t,
		`(?m)^`+id[:8]+` +\d\d:\d\d:\d\d +mint 3 +alice +-100 item_gold +DONE  .*alice received 3 tokens\.$`, out)
	assert.Contains(t, d.ends(t, 0, "orders", "-n", "1", "-json"), `"total":3`)

	assert.Contains(t, d.ends(t, 0, "resend", id), "DONE")
}

func TestTriggerReportsALossAndARejection(t *testing.T) {
	t.Parallel()
	d := newDesktop(t)
	d.shop.keeps = true
	out := d.ends(t, 1, onTerms("mint", "-fault", "transaction-fails", "-wait")...)
	assert.Regexp(t, `^[0-9a-f-]{36}  LOSS  .*did not give back 100 item_gold`, out)
	assert.Contains(t, d.ends(t, 1, "orders"), "-100 item_gold")
	assert.Contains(t, d.ends(t, 1, onTerms("mint", "-material", "item_gold=5000")...),
		`stderr: REJECTED the game rejected the call with HTTP 200 and "INVALID_BALANCE": the order takes`)
}

// What the emulator does on purpose is nobody's failure, and has a way on.
func TestALostAnswerIsNoFailure(t *testing.T) {
	t.Parallel()
	d := newDesktop(t)
	for _, format := range []string{"-q", "-json"} {
		out := d.ends(t, 0, onTerms("mint", "-fault", "lost-answer=validate", format)...)
		assert.Contains(t, out, "stderr: WAITING the answer was lost on purpose: start the same order again")
		id := regexp.MustCompile("[0-9a-f-]{36}").FindString(out)
		assert.Contains(t, d.ends(t, 0, "trigger", "mint", "-uuid", id, "-session", "session-1="+testToken, format), id)
	}
}

func TestTriggerTakesThePageOfTheGame(t *testing.T) {
	d := newDesktop(t, "-speed", "5")              // a UUID holds for a minute
	t.Setenv("RAMP_API_URL", "http://127.0.0.1:1") // the page says where its emulator is
	key := must.Get(ramp.TextKey(testKey))(t)
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: d.API, Key: key}))(t)
	issued := must.Get(client.Initialize(t.Context(), request()))(t)
	page := must.Get(ramp.ExchangeURL(d.Front, ramp.ExchangeParams{UUID: issued.UUID, SessionID: "session-1",
		AccessToken: ramp.NewAccessToken(testToken), Network: ramp.Testnet}))(t)
	body := must.Get(json.Marshal(map[string]string{"url": page}))(t)
	var out, errs bytes.Buffer
	status := stdio{bytes.NewReader(body), &out, &errs}.run(t.Context(), "trigger",
		[]string{"mint", "-page", "-", "-wait"})
	assert.Equal(t, 0, status, errs.String())
	assert.Contains(t, out.String(), issued.UUID.String()+"  DONE")
	t.Setenv("RAMP_ACCESS_TOKEN", testToken)
	issued = must.Get(client.Initialize(t.Context(), request()))(t)
	assert.Contains(t, d.ends(t, 0, "trigger", "mint", "-uuid", issued.UUID.String(), "-session", "session-1"),
		issued.UUID.String())
}

func TestAdvanceLetsTimePass(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, "-speed", "0")
	// it is not done: the clock stands still
	out := d.ends(t, 1, onTerms("mint", "-fault", "lost-answer=result", "-wait")...)
	assert.Contains(t, out, "The transaction waits for the next block. Next block at ")
	assert.Regexp(t, `(?s)^It is .*  result #1  the answer was lost on purpose\n$`, d.ends(t, 0, "advance", "1m"))
	assert.Regexp(t, `WAITING  .* lost.* Next attempt at [0-9:]+ \(2 of 20\)\.`, d.ends(t, 0, "orders"))
	assert.Contains(t, d.ends(t, 0, "advance", "5m", "-json"), `"status":200`)
	d.ends(t, 2, "resend", "0000")
}

func TestCommandsFindTheEmulator(t *testing.T) {
	d := newDesktop(t, "-public")
	require.NotEmpty(t, d.ControlToken)
	t.Setenv("RAMP_API_URL", d.API)
	t.Setenv("RAMP_CONTROL_TOKEN", "")
	assert.Contains(t, ends(t, 2, "orders"), "token")
	assert.Contains(t, ends(t, 0, "orders", "-at", d.API+"/?token="+url.QueryEscape(d.ControlToken)), "No orders yet")
	t.Setenv("RAMP_CONTROL_TOKEN", d.ControlToken)
	ends(t, 0, "orders")
	for at, want := range map[string]string{"127.0.0.1:8090": "must be the address of an emulator",
		d.API + "/ramp": "without a path", d.API + "/?a=1": "no other parameter", d.API + "/#top": "without a path"} {
		assert.Contains(t, ends(t, 2, "orders", "-at", at), want)
	}

	asked := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r.URL.Path + string(body)
		_, _ = io.WriteString(w, `{}`)
	}))
	defer other.Close()
	assert.Equal(t,
		"stderr: ramp trigger: there is no emulator at "+other.URL+
			" (another server answers there): start one with ramp emulate, or name it with -at\n",
		ends(t, 2, append(onTerms("mint"), "-at", other.URL)...))
	assert.Equal(t, "/control", <-asked)
	assert.Empty(t, asked, "what is no emulator is sent no access token")
	other.Close()
	assert.Contains(t, ends(t, 2, "advance", "1m", "-at", other.URL),
		"there is no emulator at "+other.URL+" (nothing listens at "+other.Listener.Addr().String()+"): start one")
}

func TestCommandsRejectWhatMakesNoSense(t *testing.T) {
	t.Setenv("RAMP_API_URL", "http://127.0.0.1:1")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"trigger"}, "ramp trigger: an argument is missing (see: ramp help trigger)\n"},
		{[]string{"trigger", "steal"}, "must be mint or burn"},
		{[]string{"trigger", "mint"}, "one of -page, -uuid, -like and -token"},
		{[]string{"trigger", "mint", "-uuid", "u", "-like", "u"}, "one of -page, -uuid, -like and -token"},
		{[]string{"trigger", "mint", "-like", "u", "-fault", "bad-luck"},
			"there is no such fault; there are transaction-fails, "},
		{[]string{"trigger", "mint", "-page", "http://x/"}, "must have a uuid"},
		{[]string{"trigger", "mint", "-page", "http://x/exchange?uuid=u"}, "put the address in quotes"},
		{[]string{"trigger", "mint", "-page", "http://x/ramp/exchange?uuid=u&sessionId=s&accessToken=t"},
			"that of the emulator, followed by /exchange"},
		{[]string{"trigger", "mint", "-token", "0x1", "-material", "gold"}, "ITEM=AMOUNT"},
		{[]string{"trigger", "mint", "-token", "0x1", "-material", "gold=null"}, "ITEM=AMOUNT"},
		{[]string{"trigger", "mint", "-wiat"},
			"ramp trigger: there is no flag -wiat; did you mean -wait? (see: ramp help trigger)\n"},
		{[]string{"trigger", "mint", "-like", "u"}, "there is no emulator at http://127.0.0.1:1"},
		{[]string{"orders", "a", "b"}, "too many arguments"},
		{[]string{"resend"}, "an argument is missing"},
		{[]string{"advance", "soon"}, "is not a duration; write 90s, 15m or 12h"},
		{[]string{"version", "now"}, "it takes flags only"},
		{[]string{"sign", "-key-encoding", "hex"}, "text or base64url"},
	} {
		t.Setenv("RAMP_HMAC_KEY", testKey)
		var out, errs bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), test.args, &out, &errs), test.args)
		assert.Contains(t, errs.String(), test.want)
		assert.Equal(t, 1, strings.Count(errs.String(), "\n"), "it is one line")
		assert.Empty(t, out.String(), "an error goes to stderr")
	}
	for command := range commands {
		var out, errs bytes.Buffer
		assert.Equal(t, 0, run(t.Context(), []string{"help", command}, &out, &errs))
		assert.Contains(t, out.String(), "usage: ramp "+command)
		assert.Empty(t, errs.String())
	}
}

func TestSignPrintsTheHMACOfItsInput(t *testing.T) {
	key := must.Get(ramp.Base64URLKey("a2V5"))(t)
	t.Setenv("RAMP_HMAC_KEY", "a2V5")
	t.Setenv("RAMP_HMAC_KEY_ENCODING", "base64url")
	var out bytes.Buffer
	assert.Equal(t, 0, stdio{strings.NewReader("{\"a\":1}\n"), &out, io.Discard}.run(t.Context(), "sign", nil))
	assert.Equal(t, key.Sign([]byte("{\"a\":1}\n"))+"\n", out.String())
	t.Setenv("RAMP_HMAC_KEY", "")
	assert.Equal(t, 2, stdio{strings.NewReader(""), &out, io.Discard}.run(t.Context(), "sign", nil))
}

func TestVersionNamesWhatWasBuilt(t *testing.T) {
	var out bytes.Buffer
	assert.Equal(t, 0, run(t.Context(), []string{"version"}, &out, io.Discard))
	assert.Regexp(t, `^ramp \S+ go1\.\S+`, out.String())
}

// A test of a studio need not be in Go: this one is a program of Node.
func TestAProgramInAnotherLanguageDrivesTheEmulator(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED, NOTHING WAS TESTED: there is no node on this machine (apt-get install nodejs)")
	}
	d := newDesktop(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, node, "testdata/control.mjs", d.API, testToken)
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t,
		"mint: confirmed, moved -300\nfailed mint: confirmed, moved 0\nburn: confirmed, moved 50\nstreamed: chain "+
			"result books\n", string(out))
	assert.Equal(t, int64(1000-300+50), d.shop.gold)
}

// Right-to-left names do not reorder the columns around them.
func TestRightToLeftNamesAreIsolated(t *testing.T) {
	var out bytes.Buffer
	o := control.OrderReport{Do: "mint", Amount: "3", PlayerID: "דנה", Moved: map[string]string{"זהב": "-100"}}
	o.Said = "The game took 100 \u2068זהב\u2069 too much."
	table(control.OrderList{Orders: []control.OrderReport{o}}, control.OrdersQuery{}, &out)
	assert.Contains(t, out.String(), "\u2068דנה\u2069 ")
	assert.Contains(t, out.String(), " -100 \u2068זהב\u2069 ")
	assert.Contains(t, out.String(), o.Said)
}

// Whoever waits for an emulator whose clock stands still learns why nothing happens.
func TestAClockThatStandsStillIsSaid(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, "-speed", "0")
	assert.Contains(t, d.ends(t, 1, onTerms("mint", "-wait")...),
		"stderr: The emulator's clock stands still: ramp advance 15m lets what is due happen.\n")
	d.ends(t, 0, "advance", "15m")
}
