// Package conformance judges a game's server, written in any language, by what
// it does. It plays the service over HTTP, and measures what moved by asking
// the server's own assets endpoint; it needs no hook in the game.
//
// The judge is a table of cases: [Cases]. Each cites the section of the
// interface that it follows and says how to mend what it finds. Package
// ramptest runs it as a test (Conformance), and "ramp check" on a command line.
//
// Whatever the interface leaves open, a case leaves open: an order may be
// declined with any errorCode under any HTTP status, a fraction may be taken or
// refused, assets may be taken at validate or held until the result.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Level says why a case must hold.
type Level string

// The levels.
const (
	Must   Level = "MUST"   // the interface says so
	Should Level = "SHOULD" // it is safer so, though the interface does not say it
)

// Case is one thing that a right server does.
type Case struct {
	ID      string // stable, in lower case with hyphens
	Subject string // what it is about, in a word
	Title   string // what a right server does, in a sentence
	Level   Level
	Section string // of the interface, that it follows or guards
	Mend    string // what to do when it fails, in a sentence

	needs need
	run   func(*trial)
}

// need is what a case cannot do without and not every target has.
type need int

const (
	aSecondAsset need = 1 << iota
	aProject
	aRestart
)

// Target is the server to judge, and what the service console knows of it.
type Target struct {
	// URL is the base address of the server. Required. It must be a loopback
	// address unless AllowRemote is set: the judge moves assets. No call goes
	// to another host.
	URL         string
	AllowRemote bool

	// AssetsPath, ValidatePath and ResultPath are the endpoints below URL.
	// Empty stands for the paths of the interface's examples (4.3).
	AssetsPath, ValidatePath, ResultPath string

	// Key is the HMAC key of the console. Required.
	Key ramp.HMACKey

	// Secrets are texts of which no verdict may hold 8 bytes, or all of a
	// shorter one, such as the text of Key. Tokens and HMACs need not be among
	// them. They are taken out of what the server, Player, UUID and Restart
	// say; a text of fewer than 4 bytes is not.
	Secrets []string

	// Validator is the address of the validator key. Required.
	Validator common.Address

	// Player returns the session of a player who owns assets, best a new one
	// each time, under the name that is proposed. Required. [Pool] makes it of
	// sessions that exist already.
	Player func(ctx context.Context, name string) (ramp.Session, error)

	// ProjectID is the project of the console. When it is empty, a project of
	// no meaning is sent, and the case of a foreign project is skipped.
	ProjectID string

	// Asset is the ID of the game asset that is moved, and Second that of
	// another one. Empty stands for the first ones of which the player owns
	// enough. Where there is no second one, the cases that need it are skipped.
	Asset, Second string

	// Amount is how much of an asset an order moves, and Tokens how many tokens
	// it is worth, so that the game's own rate holds. 0 stands for 2 and 1. The
	// most that is accepted is 1000: this is a judge, not a load. A player
	// should own 20 times the Amount, and less than 2^31.
	Amount, Tokens int64

	// Token is the token contract's address. Empty stands for one of no
	// meaning.
	Token string

	// UUID returns the UUID of a new order, for a server that approves only
	// those that it got from its own initialize call. nil stands for random
	// ones.
	UUID func(ctx context.Context, s ramp.Session) (uuid.UUID, error)

	// Restart ends the server and starts it again, with what it has stored;
	// sessions must outlive it. nil skips the cases that need it.
	Restart func(ctx context.Context) error

	// Strict makes a failed SHOULD count as a failed MUST does.
	Strict bool

	// Timeout bounds each call. 0 stands for 10 seconds.
	Timeout time.Duration

	// Settle bounds the time from an answer to its effect on a balance: HTTP
	// 200 confirms that a result was received (interface 6), no more. 0 stands
	// for 2 seconds.
	Settle time.Duration
}

// Pool returns a Target.Player that hands out the sessions in turn, from the
// beginning again after the last. Cases with two players need two of them, of
// two users with tokens of their own.
func Pool(sessions ...ramp.Session) func(context.Context, string) (ramp.Session, error) {
	turn := make(chan int, 1)
	turn <- 0
	return func(ctx context.Context, _ string) (ramp.Session, error) {
		if len(sessions) == 0 {
			return ramp.Session{}, errors.New("the pool of sessions is empty")
		}
		select {
		case n := <-turn:
			turn <- (n + 1) % len(sessions)
			return sessions[n], nil
		case <-ctx.Done():
			return ramp.Session{}, ctx.Err()
		}
	}
}

// Judge tries cases on a target. Try one case at a time: a case may restart the
// server, and the judge remembers how long effects take.
type Judge struct {
	target Target
	client *http.Client
	lag    time.Duration   // the longest that an effect came after its answer, as far as is known
	met    map[string]bool // the players of earlier cases, by session ID
}

const mostAmount = 1000

// New returns a judge of the target. It makes no call.
func New(target Target) (*Judge, error) {
	base, err := url.Parse(target.URL)
	switch {
	case err != nil, base.Host == "", base.Scheme != "http" && base.Scheme != "https":
		return nil, errors.New("conformance: Target.URL must be the absolute http or https URL of a server")
	case strings.ContainsAny(target.URL, "?#"):
		return nil, errors.New("conformance: Target.URL must have no query and no fragment: paths are added to it")
	case base.User != nil:
		return nil, errors.New("conformance: Target.URL must not hold a user name or a password")
	case !target.AllowRemote && !IsLoopback(base.Hostname()):
		return nil, errors.New("conformance: Target.URL is not a loopback address, and AllowRemote is not set")
	case target.Key.IsZero():
		return nil, errors.New("conformance: Target.Key is missing")
	case target.Validator == common.Address{}:
		return nil, errors.New("conformance: Target.Validator is missing")
	case target.Player == nil:
		return nil, errors.New("conformance: Target.Player is missing")
	case target.Amount < 0, target.Amount > mostAmount, target.Tokens < 0, target.Tokens > mostAmount:
		return nil, fmt.Errorf("conformance: Target.Amount and Tokens must be 1 to %d", mostAmount)
	case target.Asset != "" && target.Asset == target.Second:
		return nil, errors.New("conformance: Target.Second must be another asset than Target.Asset")
	}
	target.URL = strings.TrimRight(target.URL, "/")
	target.AssetsPath = cmp.Or(target.AssetsPath, ramp.PathAssets)
	target.ValidatePath = cmp.Or(target.ValidatePath, ramp.PathValidate)
	target.ResultPath = cmp.Or(target.ResultPath, ramp.PathResult)
	for _, path := range []string{target.AssetsPath, target.ValidatePath, target.ResultPath} {
		full, err := url.Parse(target.URL + path)
		if err != nil || !strings.HasPrefix(path, "/") || full.Host != base.Host {
			return nil, errors.New("conformance: an endpoint is a path that begins with /, as /api/assets does; the server's address is Target.URL (-url)")
		}
	}
	target.Amount = cmp.Or(target.Amount, 2)
	target.Tokens = cmp.Or(target.Tokens, 1)
	target.Token = cmp.Or(target.Token, "0x00000000000000000000000000000000000070c3")
	target.Timeout = cmp.Or(target.Timeout, 10*time.Second)
	target.Settle = cmp.Or(target.Settle, 2*time.Second)
	if target.UUID == nil {
		target.UUID = func(context.Context, ramp.Session) (uuid.UUID, error) { return uuid.NewRandom() }
	}
	return &Judge{
		target: target,
		met:    make(map[string]bool),
		client: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: crowd, IdleConnTimeout: time.Minute},
			// A signed call must not reach an address that nobody named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// IsLoopback says whether a host is localhost or a loopback address. Any other
// name is not: what it stands for may change.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Close closes the connections that are idle.
func (j *Judge) Close() { j.client.CloseIdleConnections() }

// Ready says whether there is something to judge: a player can be had who owns
// enough, and a plain mint is approved. If not, every case would say the same,
// so the error says what was answered, and what the cause may be. Ready ends its
// mint with a failure; how that is answered is for the cases.
func (j *Judge) Ready(ctx context.Context) error {
	t := j.trial(ctx, Case{})
	t.begin()
	o := t.mint()
	if a := t.validate(o); t.answered(a) && !a.succeeded() {
		t.untried("a plain mint of %d %s for %d of the token was not approved: %s%s",
			t.target.Amount, t.said(t.asset), t.target.Tokens, a, whyNot)
	}
	if t.err != nil {
		return fmt.Errorf("conformance: nothing to judge: %w", t.err)
	}
	t.finish()
	return nil
}

const whyNot = `
The likely causes, the likeliest first:
  the HMAC key is another one (-key), or the server makes bytes of its text in another way (-key-encoding)
  the project is another one (-project)
  the token contract is another one (-token)
  the order is not at the rate of the game (-amount, -tokens), or is about an asset that cannot be minted (-asset)
  the server approves only UUIDs that it got itself (in Go, Target.UUID gets them from it)
  the server expects another wallet than the judge's, or verifies the wallet's signature`

// Outcome is what became of a case.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Noted   Outcome = "noted"   // a SHOULD that failed, and does not count
	Skipped Outcome = "skipped" // the target lacks what the case needs
	Untried Outcome = "untried" // the judge could not do its part: no login, no restart
)

// Verdict is what the judge found in a case. It holds no token and no key.
type Verdict struct {
	Case    Case
	Outcome Outcome
	Saw     string // what the server did, or why the case was skipped or not tried
	Want    string // what was expected instead
	Took    time.Duration
}

// String says in some lines what was found.
func (v Verdict) String() string {
	switch v.Outcome {
	case Passed:
		return "passed: " + v.Case.Title
	case Skipped, Untried:
		return string(v.Outcome) + ": " + v.Saw
	default:
		return fmt.Sprintf("%s (interface %s): %s\n  saw:  %s\n  want: %s\n  mend: %s",
			v.Case.Level, v.Case.Section, v.Case.Title, v.Saw, v.Want, v.Case.Mend)
	}
}

// Try tries one case, with a fresh player.
func (j *Judge) Try(ctx context.Context, c Case) Verdict {
	began := time.Now()
	t := j.trial(ctx, c)
	t.begin()
	if t.err == nil {
		c.run(t)
	}
	t.finish()
	v := Verdict{Case: c, Outcome: Passed, Took: time.Since(began)}
	var found *finding
	var why skip
	switch {
	case t.err == nil:
		return v
	case errors.As(t.err, &why):
		v.Outcome, v.Saw = Skipped, string(why)
		return v
	case errors.As(t.err, &found):
		v.Saw, v.Want = found.saw, found.want
	default:
		v.Outcome, v.Saw = Untried, t.err.Error()
		return v
	}
	v.Outcome = Failed
	if c.Level == Should && !j.target.Strict {
		v.Outcome = Noted
	}
	return v
}

// Cases returns every case, in the order in which to try them.
func Cases() []Case {
	var all []Case
	for _, subject := range []struct {
		name  string
		cases []Case
	}{
		{"assets", assetsCases()},
		{"sessions", sessionCases()},
		{"hmac", hmacCases()},
		{"form", formCases()},
		{"intents", intentCases()},
		{"amounts", amountCases()},
		{"signatures", signatureCases()},
		{"orders", orderCases()},
		{"results", resultCases()},
		{"receipts", receiptCases()},
		{"restart", restartCases()},
		{"transport", transportCases()}, // last, for it ends with a sign of life
	} {
		for _, c := range subject.cases {
			c.Subject = subject.name
			all = append(all, c)
		}
	}
	return all
}
