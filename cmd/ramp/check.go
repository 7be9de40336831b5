package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/typed"
)

// The exit statuses of check.
const (
	statusRight = 0 // no case failed that counts
	statusWrong = 1 // a case failed
	// nothing could be judged, or a case could not be tried, proves nothing or lacks a setting
	statusUnknown = 2
)

const checkUsage = `usage: ramp check -url URL [flags]

Judges a game's server, written in any language. It plays the service over HTTP
and uses the server's own assets endpoint to measure what moved. It needs the HMAC key, its
encoding, the validator address and a login; after the lines that ramp emulate prints for the
environment, -url is enough for a server with the login /login.

Example: ramp check -url http://127.0.0.1:8080 -asset item_gold -amount 100 -tokens 1

Exit status: 0 if no case failed that counts, 1 if a case failed, 2 if nothing
could be judged, or a case could not be tried or proves nothing. A case that protects money
and lacks a setting is one that could not be tried; the last line says what to set. -skip
waives it.
`

// checkFlags holds the flags of check.
type checkFlags struct {
	judge.Config
	hmac                  keyFlags
	key, address          string
	login, uuids, restart string
	wallets               sync.Map // the wallet that the login named, by session ID
	logins                sync.Map // the token of the login, by session ID
	sessions              []ramp.Session
	run, junit            string
	parallel              int
	json, verbose, list   bool
	quiet                 bool
}

// check judges a server, writes the report, and returns the exit status.
func check(ctx context.Context, c *call) (int, error) {
	flags, err := parseCheck(c)
	if err != nil {
		return 0, err
	}
	cases, err := chosen(flags.run)
	switch {
	case err != nil:
		return 0, err
	case flags.list && flags.json:
		return statusRight, listJSON(c.out, cases)
	case flags.list:
		return statusRight, list(c.out, cases)
	}
	early := errors.New("interrupted before the first verdict")
	j, err := flags.judge(ctx)
	switch {
	case ctx.Err() != nil:
		return 0, early
	case err != nil:
		return 0, err
	}
	defer j.Close()

	progress := &progress{out: io.Discard, of: len(cases)}
	if isTerminal(c.errs) {
		progress.out = c.errs
	}
	verdicts := j.Run(ctx, cases, flags.parallel, progress.show)
	progress.clear()
	if ctx.Err() != nil && len(verdicts) == 0 {
		return 0, early
	}
	report := newReport(paint(c.out), flags.URL, j.Opening(), verdicts)
	report.again, report.interrupted = c.again(), ctx.Err() != nil
	if flags.junit != "" {
		if err := report.writeJUnit(flags.junit); err != nil {
			return 0, err
		}
	}
	switch {
	case flags.json:
		err = writeJSON(c.out, "  ", report)
	case flags.quiet:
		err = report.writeLine(c.out)
	default:
		err = report.writeText(c.out, flags.verbose)
	}
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("interrupted after %d of %d cases", len(verdicts), len(cases))
	case err != nil, j.Err() != nil:
		return 0, cmp.Or(err, j.Err())
	case report.Failed > 0:
		return statusWrong, nil
	case report.Untried > 0, report.Unproven > 0, report.Unasked > 0:
		return statusUnknown, nil
	default:
		return statusRight, nil
	}
}

func parseCheck(c *call) (*checkFlags, error) {
	var f checkFlags
	c.group("The server, its keys and its players")
	c.StringVar(&f.URL, "url", "", "base `URL` of the server (required)")
	c.keyFileFlag(&f.hmac, "")
	c.StringVar(&f.hmac.encoding, "key-encoding", "",
		"`encoding` of the HMAC key: text or base64url (required)")
	c.StringVar(&f.address, "validator", "",
		"the validator key's `address` (default that of $RAMP_VALIDATOR_KEY)")
	c.StringVar(&f.ProjectID, "project", "",
		"`project` ID of the console, which most servers check; without it, the case about another "+
			"project is skipped")
	c.StringVar(&f.login, "login", "",
		"`URL`, or path below -url, that answers {\"sessionId\":…,\"accessToken\":…}, "+
			"and the player's \"wallet\":\"0x…\" if the server checks it, to a POST of {\"player\":NAME};\n"+
			"with \"pageToken\":…, the token that the assets endpoint takes if it is not the login's\n"+
			"(default /login without -session)")
	c.StringVar(&f.uuids, "uuid", "",
		"`URL`, or path below -url, that answers {\"uuid\":…} of an initialize call "+
			"to a POST of {\"sessionId\":…,\"accessToken\":…}, those of -login; for a server that "+
			"approves only UUIDs of its own;\n"+
			"with \"accessToken\":…, the token of the page of that order if it has one")
	var sessions []string // parsed later, because an error of package flag would show the token
	c.repeated(&sessions, "session", "`ID=TOKEN` of a player, instead of -login")
	c.endpointFlags(&f.AssetsPath, &f.ValidatePath, &f.ResultPath)
	c.group("What the game sells")
	c.StringVar(&f.Only, "only", "", "the `direction` of the game's orders, mint or burn, if it has one only")
	c.BoolVar(&f.Unique, "unique", false,
		"the assets are unique items: a player owns 1 of each, and an order moves one")
	c.StringVar(&f.Asset, "asset", "",
		"`ID` of the game asset to move (default the first one of which the player owns enough)")
	c.StringVar(&f.Second, "second-asset", "", "`ID` of another game asset (default the next one)")
	c.BoolVar(&f.OneAsset, "one-asset", false,
		"the game has one asset only, so that the cases about a second one are skipped")
	c.Int64Var(&f.Amount, "amount", 0,
		"how much of the asset an order moves (default the largest up to 400 of which the player owns "+
			"20 times as much, of both assets, if the game approves it, or 2)")
	c.Int64Var(&f.Tokens, "tokens", 0,
		"how many tokens that amount is worth in the game (default half of -amount); with -token and "+
			"-amount, orders at other rates must be rejected")
	c.Int64Var(&f.BurnTokens, "burn-tokens", 0,
		"how many tokens must be burned for that amount, if burns have a rate of their own (default -tokens)")
	c.StringVar(&f.Token, "token", "",
		"`address` of the token contract (default a placeholder); orders about other contracts must "+
			"be rejected")
	c.group("What is tried")
	c.StringVar(&f.restart, "restart", "",
		"shell `command` that stops the server and starts it again in the background; without it, the "+
			"cases that need a restart are not tried")
	c.BoolVar(&f.AllowRemote, "allow-remote", false, "judge a server that is not on a loopback address")
	c.BoolVar(&f.Strict, "strict", false, "count a failed SHOULD as a failure")
	c.DurationVar(&f.Timeout, "timeout", 10*time.Second, "timeout of each call")
	c.DurationVar(&f.Settle, "settle", 2*time.Second, "how long after an answer its effect may appear")
	c.DurationVar(&f.Late, "late", 3*time.Second,
		"how long after its approval the last order is reported; 6m outlasts its UUID")
	c.StringVar(&f.run, "run", "",
		"try only the cases whose ID, or the inputs whose ID/NAME, matches the regular `expression`")
	skip := c.String("skip", "",
		"waive the cases whose ID, or the inputs whose ID/NAME, matches the regular `expression`; they "+
			"are counted")
	c.IntVar(&f.parallel, "parallel", 0,
		"`number` of cases to try at the same time (default 4 with -login, 1 with -session)")
	c.group("Output")
	c.StringVar(&f.junit, "junit", "", "also write a JUnit report to `FILE`")
	c.BoolVar(&f.json, "json", false, "write one JSON object; with -list, a JSON list of the cases")
	c.BoolVar(&f.quiet, "q", false, "write only the verdict, in one line")
	c.BoolVar(&f.verbose, "v", false, "write a line for every case")
	c.BoolVar(&f.list, "list", false, "list the cases and try none")
	c.group("How it calls")
	var headers []string // parsed later, as sessions are
	c.repeated(&headers, "header",
		"`'Name: value'` to send with every call, for a gateway in front of the server")
	if _, err := c.parse(0, 0); err != nil {
		return nil, err
	}
	if *skip != "" {
		var err error
		if f.Waive, err = regexp.Compile(*skip); err != nil {
			return nil, misuse{fmt.Errorf("-skip: %w", err)}
		}
	}
	if f.Only == "mint" && c.given["burn-tokens"] {
		return nil, misuse{errors.New("-burn-tokens means nothing with -only mint")}
	}
	if err := f.readTexts(sessions, headers); err != nil {
		return nil, err
	}
	f.choosePlayers(c.given)
	if err := f.chooseParallel(); err != nil {
		return nil, err
	}
	return &f, nil
}

// readTexts reads the sessions and the headers.
func (f *checkFlags) readTexts(sessions, headers []string) error {
	for _, text := range sessions {
		id, token, _ := strings.Cut(text, "=")
		if id == "" || token == "" {
			return errors.New("-session must be ID=TOKEN")
		}
		f.sessions = append(f.sessions, ramp.Session{ID: id, Token: ramp.NewAccessToken(token)})
	}
	f.Header = make(http.Header)
	for _, text := range headers {
		name, value, ok := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); !ok || !headerName.MatchString(name) {
			return errors.New("-header must be 'Name: value'")
		}
		f.Header.Add(name, strings.TrimSpace(value))
	}
	return nil
}

// choosePlayers lets what the arguments say about players win over the environment.
func (f *checkFlags) choosePlayers(given map[string]bool) {
	switch {
	case f.login == "" && len(f.sessions) == 0:
		f.login = "/login"
	case given["session"] && !given["login"]:
		f.login = ""
	case given["login"] && !given["session"]:
		f.sessions = nil
	}
}

// chooseParallel sets how many cases are tried at the same time.
func (f *checkFlags) chooseParallel() error {
	switch {
	case f.parallel < 0:
		return errors.New("-parallel must be 1 or more")
	case f.parallel > 1 && len(f.sessions) > 0:
		return errors.New(
			"-parallel must be 1 with -session, because concurrent cases need different players")
	case f.parallel == 0 && len(f.sessions) > 0:
		f.parallel = 1
	case f.parallel == 0:
		f.parallel = 4
	}
	return nil
}

// readKeys reads the text of the HMAC key, and the validator's address, and says what is missing, in the
// order in which one gives it.
func (f *checkFlags) readKeys() (err error) {
	if f.key, err = f.hmac.text(); err != nil {
		return err
	}
	if inHex := os.Getenv("RAMP_VALIDATOR_KEY"); f.address == "" && inHex != "" {
		signer, err := ramp.NewKeySigner(inHex)
		if err != nil {
			return misuse{fmt.Errorf("RAMP_VALIDATOR_KEY: %w", err)}
		}
		f.address = signer.Address().Hex()
	}
	return need([2]string{"-url", ifEmpty(f.URL, "the base URL of your server")},
		[2]string{"-key-file", ifEmpty(f.key, needKey)},
		[2]string{"-key-encoding", ifEmpty(f.hmac.encoding, "text or base64url: it cannot be detected")},
		[2]string{"-validator", ifEmpty(f.address, "an address, or set RAMP_VALIDATOR_KEY")})
}

// headerName matches an HTTP header name.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// again returns the command of a run without its output, its choice of cases and its
// secrets. The HMAC key comes from $RAMP_HMAC_KEY.
func (c *call) again() string {
	text := "ramp check"
	for i := 0; i < len(c.args) && c.args[i] != "--"; i++ {
		name, value, given := strings.Cut(strings.TrimLeft(c.args[i], "-"), "=")
		space := "=" // before the value
		if _, boolean := c.Lookup(name).Value.(interface{ IsBoolFlag() bool }); !boolean {
			space = " "
			if !given {
				i++
				value, given = c.args[i], true
			}
		}
		switch name {
		case "json", "v", "q", "list", "run", "junit", "parallel":
			continue
		case "session":
			id, _, _ := strings.Cut(value, "=")
			value = id + "=TOKEN"
		case "header":
			header, _, _ := strings.Cut(value, ":")
			value = header + ": VALUE"
		}
		if text += " -" + name; given {
			text += space + "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
	}
	return text
}

// chosen returns the cases whose ID matches the regular expression, and families with the
// inputs whose ID/NAME matches it.
func chosen(expression string) ([]judge.Case, error) {
	match, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	var cases []judge.Case
	for _, c := range judge.Cases() {
		if !match.MatchString(c.ID) {
			c.Inputs = slices.DeleteFunc(c.Inputs,
				func(in judge.Input) bool { return !match.MatchString(c.ID + "/" + in.Name) })
			if len(c.Inputs) == 0 {
				continue
			}
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("-run matches no case: %q; -list names them", expression)
	}
	return cases, nil
}

// judge returns a judge that is configured by the flags, after it has made sure that
// the server can be judged.
func (f *checkFlags) judge(ctx context.Context) (*judge.Judge, error) {
	err := f.readKeys()
	if err != nil {
		return nil, err
	}
	switch f.hmac.encoding {
	case "text":
		f.Key, err = ramp.TextKey(f.key)
	case "base64url":
		f.Key, err = ramp.Base64URLKey(f.key)
	default:
		err = errors.New("-key-encoding must be text or base64url")
	}
	switch {
	case err != nil:
		return nil, err
	case f.login != "" && len(f.sessions) > 0:
		return nil, errors.New("players come from -login or from -session; give one of the two")
	}
	if server, err := url.Parse(f.URL); err != nil || server.Host == "" {
		return nil,
			errors.New("-url must be an http or https URL with its scheme, such as http://127.0.0.1:8080")
	}
	if f.Validator, err = typed.ParseAddress(f.address); err != nil {
		return nil, fmt.Errorf("-validator %w", err)
	}
	if problem := typed.Address(f.Token); f.Token != "" && problem != "" {
		return nil, errors.New("-token " + problem)
	}
	f.Secrets = []string{f.key}
	f.Player = judge.Pool(f.sessions...)
	if f.login != "" {
		if f.Player, err = f.loginPlayer(); err != nil {
			return nil, err
		}
	}
	if f.uuids != "" {
		if f.UUID, err = f.ownUUID(); err != nil {
			return nil, err
		}
	}
	f.Wallet = func(s ramp.Session) string {
		wallet, _ := f.wallets.Load(s.ID)
		text, _ := wallet.(string)
		return text
	}
	if f.restart != "" {
		f.Restart = f.restartServer
	}
	j, err := judge.New(f.Config)
	if err != nil {
		return nil, err
	}
	return j, j.Ready(ctx)
}

// restartServer runs the -restart command. If it fails, the error has the end of its
// stderr.
func (f *checkFlags) restartServer(ctx context.Context) error {
	// stderr must be a file, not a pipe: the server inherits it, and Run would wait
	// until the server closes the pipe.
	file, err := os.CreateTemp("", "ramp-restart-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	command := exec.CommandContext(ctx, "sh", "-c", f.restart)
	command.Stderr = file
	if err := command.Run(); err != nil {
		said, _ := os.ReadFile(file.Name())
		text := string(bytes.TrimSpace(said[max(0, len(said)-2000):]))
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Exited() {
			return fmt.Errorf("exit status %d: %s", exit.ExitCode(), text)
		}
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// loginPlayer returns a function that gets players from the -login endpoint.
func (f *checkFlags) loginPlayer() (func(context.Context, string) (ramp.Session, error), error) {
	at, err := f.endpoint("-login", f.login)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string) (ramp.Session, error) {
		var session struct{ SessionID, AccessToken, PageToken, Wallet string }
		err := at.ask(ctx, map[string]string{"player": name}, &session, func() bool {
			return session.SessionID != "" && session.AccessToken != "" &&
				(session.Wallet == "" || common.IsHexAddress(session.Wallet))
		}, `{"sessionId":"…","accessToken":"…"}, both strings`)
		f.wallets.Store(session.SessionID, session.Wallet)
		f.logins.Store(session.SessionID, session.AccessToken)
		token := cmp.Or(session.PageToken, session.AccessToken)
		return ramp.Session{ID: session.SessionID, Token: ramp.NewAccessToken(token)}, err
	}, nil
}

// ownUUID returns a function that gets UUIDs from the -uuid endpoint.
func (f *checkFlags) ownUUID() (
	func(context.Context, ramp.Session) (uuid.UUID, ramp.AccessToken, error), error,
) {
	at, err := f.endpoint("-uuid", f.uuids)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s ramp.Session) (id uuid.UUID, token ramp.AccessToken, err error) {
		login := s.Token.Reveal()
		if other, ok := f.logins.Load(s.ID); ok {
			login = other.(string)
		}
		var answer struct{ UUID, AccessToken string }
		err = at.ask(ctx, map[string]string{"sessionId": s.ID, "accessToken": login}, &answer, func() bool {
			var err error
			id, err = uuid.Parse(answer.UUID)
			return err == nil
		}, `{"uuid":"…"}, a UUID`)
		return id, ramp.NewAccessToken(answer.AccessToken), err
	}, nil
}

// endpoint is an endpoint of the test server that takes and answers JSON. It repeats calls
// that the server rate-limits. From the first of these on it makes one call at a time: if all
// were repeated at once, one could lose every time.
type endpoint struct {
	name    string // of its flag
	url     *url.URL
	header  http.Header
	client  *http.Client
	turn    chan bool // holds a value during a turn
	limited atomic.Bool
}

func (f *checkFlags) endpoint(name, address string) (*endpoint, error) {
	if strings.HasPrefix(address, "/") {
		address = strings.TrimRight(f.URL, "/") + address
	}
	at, err := url.Parse(address)
	switch {
	case err != nil, at.Host == "", at.Scheme != "http" && at.Scheme != "https":
		return nil, fmt.Errorf("%s must be a URL, or a path that begins with / and lies below -url", name)
	case !f.AllowRemote && !judge.IsLoopback(at.Hostname()):
		return nil,
			fmt.Errorf("%s, of %s or -url, is not a loopback address, and -allow-remote is not set",
				at.Hostname(), name)
	}
	if _, problem := transport.ParseURL(address, true); problem != "" {
		return nil, fmt.Errorf("%s %s", name, problem)
	}
	header := make(http.Header)
	if server, err := url.Parse(f.URL); err == nil && at.Host == server.Host {
		header = f.Header.Clone()
	}
	header.Set("Content-Type", "application/json")
	client := &http.Client{
		Timeout: f.Timeout,
		// without the environment's proxy, so that local calls stay local
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: noRedirects,
	}
	return &endpoint{name: name, url: at, header: header, client: client, turn: make(chan bool, 1)}, nil
}

// post makes a call, and repeats it for at most the timeout of the client, in which the
// turns of others do not count.
func (e *endpoint) post(ctx context.Context, body []byte) (*http.Response, error) {
	var deadline time.Time // zero until it is our turn
	for {
		if e.limited.Load() && deadline.IsZero() {
			select {
			case e.turn <- true:
				defer func() { <-e.turn }()
				deadline = time.Now().Add(e.client.Timeout)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(),
			bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header = e.header.Clone()
		response, err := e.client.Do(request)
		if err != nil || response.StatusCode != http.StatusTooManyRequests {
			return response, err
		}
		wait := judge.RetryAfter(response.Header.Get("Retry-After"))
		if e.limited.Store(true); deadline.IsZero() {
			wait = 0 // its turn comes first
		} else if time.Until(deadline) < wait {
			return response, nil
		}
		_ = response.Body.Close()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask posts a question, and reads the answer, which must be good.
func (e *endpoint) ask(ctx context.Context, question map[string]string, answer any, good func() bool,
	want string) error {
	response, err := e.post(ctx, ramp.Must(json.Marshal(question)))
	if err != nil {
		var call *url.Error
		if errors.As(err, &call) {
			err = call.Err // without the URL, which the text names
		}
		return fmt.Errorf("%s (POST %s): %w", e.name, e.url.Redacted(), err)
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(answer)
	if err != nil || response.StatusCode/100 != 2 || !good() {
		return fmt.Errorf("%s (POST %s) answered HTTP %d; want HTTP 200 with the body %s", e.name,
			e.url.Redacted(), response.StatusCode, want)
	}
	return nil
}
