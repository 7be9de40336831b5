package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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

// begin runs emulate until the test ends or stop is called, and returns the lines that it prints.
func begin(t *testing.T, args ...string) (lines *bufio.Scanner, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"emulate", "-listen", "127.0.0.1:0"}, args...), write, write)
		write.Close()
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		_, _ = io.Copy(io.Discard, read)
		assert.Equal(t, 0, <-ended)
	})
	t.Cleanup(stop)
	return bufio.NewScanner(read), stop
}

// beginJSON runs emulate, and returns what it prints first and the lines that follow.
func beginJSON(t *testing.T, args ...string) (s started, lines *bufio.Scanner, stop func()) {
	t.Helper()
	lines, stop = begin(t, append([]string{"-json"}, args...)...)
	require.True(t, lines.Scan())
	require.NoError(t, json.Unmarshal(lines.Bytes(), &s), lines.Text())
	return s, lines, stop
}

// drain reads the other lines.
func drain(lines *bufio.Scanner) {
	go func() {
		for lines.Scan() {
		}
	}()
}

// meanwhile makes a call whose event the emulator prints. Await its error after reading that.
func meanwhile(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// initialize returns a call of the game with a key of the console.
func initialize(t *testing.T, api string, key ramp.HMACKey) func() error {
	t.Helper()
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: api, Key: key}))(t)
	return func() error { _, err := client.Initialize(context.Background(), request()); return err }
}

// get reads a page.
func get(address string) error {
	answer, err := http.Get(address)
	if err == nil {
		err = answer.Body.Close()
	}
	return err
}

func request() ramp.InitializeRequest {
	item := ramp.Item{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}
	return ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3",
		Materials: []ramp.Item{item}, Outputs: []ramp.Item{item},
	}}
}

func TestEmulatePrintsWhatAGameNeeds(t *testing.T) {
	game := httptest.NewServer(http.NotFoundHandler())
	defer game.Close()
	for encoding, read := range map[string]func(string) (ramp.HMACKey, error){"text": ramp.TextKey,
		"base64url": ramp.Base64URLKey} {
		t.Setenv("RAMP_HMAC_KEY", "")
		t.Setenv("RAMP_VALIDATOR_KEY", "")
		s, lines, _ := beginJSON(t, "-game", game.URL, "-key-encoding", encoding)
		signer := must.Get(ramp.NewKeySigner(s.ValidatorKey))(t)
		assert.Equal(t, s.Validator, signer.Address())
		assert.Equal(t, s.API+"/rpc/testnet", s.Testnet)

		key := must.Get(read(s.HMACKey))(t)
		initialized := meanwhile(initialize(t, s.API, key))
		require.True(t, lines.Scan())
		var e control.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		assert.Equal(t, control.KindInitialize, e.Kind)
		assert.Equal(t, "OK", e.Outcome)
		assert.NoError(t, <-initialized)

		// The player opens the page, whose address has the token.
		page := must.Get(ramp.ExchangeURL(s.Front, ramp.ExchangeParams{UUID: e.UUID, SessionID: "session-1",
			AccessToken: ramp.NewAccessToken("token-of-the-player"), Network: ramp.Testnet}))(t)
		opened := meanwhile(func() error { return get(page) })
		require.True(t, lines.Scan())
		assert.Contains(t, lines.Text(), `"assets"`)
		assert.NotContains(t, lines.Text(), "token-of-the-player")
		assert.NoError(t, <-opened)
	}
}

func TestEmulateTakesKeys(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "my_secret_salt_value")
	lines, _ := begin(t, "-game", "http://127.0.0.1:1", "-key-encoding", "base64url",
		"-validator", "0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb", "-retry-5xx", "-project", "project-1",
		"-speed", "0")
	var printed, address string
	for paragraphs := 0; paragraphs < 3 && lines.Scan(); {
		printed += lines.Text() + "\n"
		if at, ok := strings.CutPrefix(lines.Text(), "Open "); ok {
			address = strings.TrimSuffix(at, " (Ctrl+C stops)")
		}
		if lines.Text() == "" {
			paragraphs++
		}
	}
	assert.Contains(t, printed, "0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb")
	assert.Contains(t, printed,
		"Calls GET /api/assets, POST /api/validate, POST /api/result at http://127.0.0.1:1\n")
	assert.Contains(t, printed, "export RAMP_API_URL="+address+" RAMP_FRONTEND_URL="+address+"\n")
	assert.Contains(t, printed, "\n# RAMP_ACCESS_TOKEN, for ramp trigger -session, is the token of the page")
	assert.Contains(t, printed,
		"\nexport RAMP_PROJECT=project-1 RAMP_NETWORK=testnet "+
			"RAMP_TOKEN=0x00000000000000000000000000000000000070c3\n")
	assert.Contains(t, printed, "\nexport RAMP_HMAC_KEY_ENCODING=base64url #")
	assert.Contains(t, printed, "\nexport RAMP_VALIDATOR=0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb #")
	assert.Regexp(t, `\nexport RAMP_RPC_URL=`+address+`/rpc/testnet RAMP_CHAIN_ID=7002 `+
		`RAMP_PAYERS=0x[0-9a-fA-F]{40} RAMP_CONTRACTS=0x00000000000000000000000000000000000070c3\n`, printed)
	assert.NotContains(t, printed, "my_secret", "a key that was given is not printed")
	key := must.Get(ramp.Base64URLKey("my_secret_salt_value"))(t)
	initialized := meanwhile(initialize(t, address, key))
	require.True(t, lines.Scan())
	assert.Regexp(t, `^\d\d:\d\d:\d\d initialize +[0-9a-f]{8} +200  OK$`, lines.Text())
	assert.NoError(t, <-initialized)

	called := meanwhile(func() (err error) {
		for _, method := range []string{"eth_blockNumber", "eth_mine"} {
			answer, failed := http.Post(address+"/rpc/testnet", "application/json",
				strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
			if failed == nil {
				failed = answer.Body.Close()
			}
			err = errors.Join(err, failed)
		}
		return err
	})
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), "-32601 Method not found: eth_mine",
		"what the chain rejects is shown, what it answers is not")
	assert.NoError(t, <-called)
}

func TestEmulateTakesTheKeysOfTheEnvironmentAndPrintsWhereOthersReachIt(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "my_secret_salt_value")
	t.Setenv("RAMP_VALIDATOR_KEY", validatorKey)
	for want, args := range map[string][]string{
		"http://127.0.0.1:":    {"-public", "-listen", "0.0.0.0:0"},
		"https://desk.example": {"-url", "https://desk.example/"},
	} {
		s, _, _ := beginJSON(t, append([]string{"-game", "http://127.0.0.1:1"}, args...)...)
		assert.True(t, strings.HasPrefix(s.API, want), s.API)
		assert.Equal(t, s.API+"/rpc/mainnet", s.Mainnet)
		assert.Equal(t, testValidator, s.Validator.Hex())
		assert.NotZero(t, s.Payer, "for the -payers of a game")
		assert.Empty(t, s.HMACKey+s.ValidatorKey, "what was given is not shown")
	}
}

func TestEmulatePrintsTheTokenOfAPublicDesk(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "my_secret_salt_value")
	t.Setenv("RAMP_CONTROL_TOKEN", "")
	lines, _ := begin(t, "-game", "http://127.0.0.1:1", "-public")
	require.True(t, lines.Scan())
	opens := regexp.MustCompile(`^Open (http://127\.0\.0\.1:\d+)/\?token=([A-Z0-9]{26}) \(Ctrl\+C stops\)$`)
	open := opens.FindStringSubmatch(lines.Text())
	require.NotNil(t, open, lines.Text())
	drain(lines)
	for token, want := range map[string]int{"": 401, open[2]: 200} {
		answer := must.Get(http.Get(open[1] + "/control?token=" + token))(t)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, want, answer.StatusCode)
	}
}

// The interface says 20 in 12 hours, and lists 19.
func TestEmulateDeliversAsOftenAsTheInterfaceListsOrSays(t *testing.T) {
	listed := must.Get(parseEmulate(newCall(stdio{}, "emulate", "",
		[]string{"-game", "http://127.0.0.1:1"})))(t)
	assert.Nil(t, listed.Config.Schedule, "the default, of 19")
	assert.Equal(t, 10_000, listed.Config.Standalone.KeepOrders)
	said := must.Get(parseEmulate(newCall(stdio{}, "emulate", "",
		[]string{"-game", "http://127.0.0.1:1", "-retry-20"})))(t)
	var sum time.Duration
	for _, wait := range said.Config.Schedule {
		sum += wait
	}
	assert.Len(t, said.Config.Schedule, 20)
	assert.Equal(t, 12*time.Hour, sum)
}

// A company's container has a proxy in its environment, which knows nothing of the game beside it.
func TestEmulateUsesAProxyOnlyIfAsked(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "")
	}
	for _, proxy := range []string{"", "http://proxy:3128"} {
		t.Setenv("HTTPS_PROXY", proxy)
		_, err := parseEmulate(newCall(stdio{}, "emulate", "", []string{"-game", "http://game:8080", "-proxy"}))
		assert.Equal(t, proxy == "", err != nil, err)
	}
	for _, asked := range []bool{false, true} {
		args := []string{"-game", "http://game:8080", "-proxy=" + strconv.FormatBool(asked)}
		d := must.Get(parseEmulate(newCall(stdio{}, "emulate", "", args)))(t)
		assert.Equal(t, asked, d.Config.Client != nil)
	}
}

// A new switch of the emulator has a flag, or a reason to have none.
func TestEverySwitchHasAFlag(t *testing.T) {
	d, err := parseEmulate(newCall(stdio{}, "emulate", "", []string{
		"-game", "http://127.0.0.1:1", "-assets", "/a", "-validate", "/v", "-result", "/r", "-project", "p",
		"-url", "http://127.0.0.1:2", "-public", "-speed", "2", "-retry-5xx", "-retry-20", "-accept-expired",
		"-per-order", "-net", "-uuid-digits", "-result-type", "none", "-failure-status", "400",
		"-regenerating", "energy", "-no-thief", "-incomplete", "-timeout", "1m",
	}))
	require.NoError(t, err)
	without := []string{
		// set by the command, some from flags
		"Key", "OtherKey", "Validator", "Listener", "ControlToken", "State", "OnEvent", "Pages", "Secrets",
		"Handler", "Client", "Wallet", "Digest", "AuthorizeRPC", // Go values
		"Networks", "Epoch", "Settle", "MaxBody", "BurnMethod", "TokenType", // for tests in Go
		"Confirmations", "BlockTime", "Decimals", "Tokens", "Closed", "Mailbox", "UUID",
	}
	for _, config := range []reflect.Value{reflect.ValueOf(d.Config), reflect.ValueOf(d.Config.Standalone)} {
		for _, field := range reflect.VisibleFields(config.Type()) {
			set := !config.FieldByIndex(field.Index).IsZero()
			assert.NotEqual(t, set, slices.Contains(without, field.Name),
				"%s.%s needs either a flag in parseEmulate, set above, or a place in this list", config.Type(),
				field.Name)
		}
	}
}

func TestEmulateRejectsWhatMakesNoSense(t *testing.T) {
	t.Setenv("RAMP_HMAC_KEY", "")
	game, busy := "http://127.0.0.1:1", must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer busy.Close()
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 2, "usage"},
		{[]string{"help"}, 0, "usage"},
		{[]string{"mine"}, 2, `there is no command "mine"`},
		{[]string{"help", "mine"}, 2, `there is no command "mine"`},
		{[]string{"help", "emulate"}, 0, "-retry-5xx"},
		{[]string{"help", "check"}, 0, "usage: ramp check"},
		{[]string{"emulate"}, 2,
			"ramp emulate: -game (the base URL of your server) is required (see: ramp help emulate)\n"},
		{[]string{"emulat"}, 2, `there is no command "emulat"; did you mean ramp emulate? (see: ramp help)`},
		{[]string{"emulate", "-help"}, 0, "-retry-5xx"},
		{[]string{"emulate", "-what"}, 2, "ramp emulate: there is no flag -what (see: ramp help emulate)\n"},
		{[]string{"emulate", "-game", game, "more"}, 2, "it takes flags only"},
		{[]string{"emulate", "-game", game, "-listen", "127.0.0.1:0", "-key-encoding", "hex"}, 2, "text or base64url"},
		{[]string{"emulate", "-game", game, "-listen", "127.0.0.1:0", "-key-file", keyFile(t, " ")}, 2, "HMAC key"},
		{[]string{"emulate", "-game", game, "-listen", "127.0.0.1:0", "-validator", "0x1"}, 2, "-validator must be"},
		{[]string{"emulate", "-game", game, "-listen", "0.0.0.0:0"}, 2, "add -public"},
		{[]string{"emulate", "-game", game, "-listen", "127.0.0.1:x"}, 2, "listen"},
		{[]string{"emulate", "-game", game, "-json", "-listen", busy.Addr().String()}, 2, "address already in use"},
		{[]string{"emulate", "-game", game, "-listen", "127.0.0.1:0", "-url", "desk", "-speed", "-1"}, 2,
			"ramp emulate: -url must be an absolute URL, such as http://127.0.0.1:8080; -speed must be from 0 to " +
				"100000 (see: ramp help emulate)\n"},
		{[]string{"emulate", "-game", "127.0.0.1", "-listen", "127.0.0.1:0"}, 2, "-game must be an absolute URL"},
		{[]string{"emulate", "-game", game + "/?a=1", "-listen", "127.0.0.1:0"}, 2,
			"-game must have no query and no fragment"},
		{[]string{"emulate", "-game", game + "/#top", "-listen", "127.0.0.1:0"}, 2,
			"-game must have no query and no fragment"},
		{[]string{"emulate", "-game", game, "-listen", "127.0.0.1:0", "-url", "https://desk.example/ramp"}, 2,
			"-url must be an address without a path"},
		{[]string{"emulate", "-game", game, "-listen", "127.0.0.1:0", "-result", "/result#1"}, 2,
			"-result must begin with a slash, and have no fragment"},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, test.status, run(t.Context(), test.args, &out, &errs), test.args)
		assert.Contains(t, out.String()+errs.String(), test.want)
		assert.Equal(t, test.status != 0, out.Len() == 0, "a program reads that")
	}
}

func TestThePrintedLogNeverRunsBackwards(t *testing.T) {
	var out bytes.Buffer
	p := printer{out: &out}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p.event(control.Event{Time: at.Add(2 * time.Second), Kind: control.KindChain, Outcome: "submitted"})
	p.event(control.Event{Time: at, Took: control.Duration(3 * time.Second), Kind: control.KindValidate,
		Outcome: "slow"})
	p.event(control.Event{Time: at, Kind: control.KindResult, Outcome: "late\x1b[2J"})
	var times []string
	for line := range strings.Lines(out.String()) {
		times = append(times, line[:8])
	}
	assert.Equal(t, []string{"12:00:02", "12:00:03", "12:00:03"}, times)
	assert.NotContains(t, out.String(), "\x1b", "a game does not move the cursor")

	out.Reset()
	p.quiet = true
	p.event(control.Event{Outcome: "success"})
	assert.Empty(t, out.String())
	p.event(control.Event{Outcome: "trouble", Failed: true})
	assert.Contains(t, out.String(), "trouble")
}
