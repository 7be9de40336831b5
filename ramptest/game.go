package ramptest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
	"github.com/token-ramp/ramp-go/internal/reach"
	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/exact"
	"github.com/token-ramp/ramp-go/ramptest/internal/memory"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

var (
	// ErrLostAnswer means that the game has answered, but a fault lost its answer: see
	// [LostAnswer] and [SlowAnswer]. It is not a failure of the game. If the answer was wrong, that is
	// said, too.
	ErrLostAnswer = errors.New("ramptest: the answer was lost on purpose")

	// ErrStoreFailed means that the game's store failed because [StoreFails] says so, and that the
	// game has answered as it must. It is not a failure of the game.
	ErrStoreFailed = errors.New("ramptest: the game's store failed on purpose")

	// ErrForged means that the game accepted a call that the service has not
	// signed (interface 5.2). For a validate call, [Service.Mint] and
	// [Service.Burn] return it. For a result, it is in the [Delivery].Err of the
	// first delivery, and the genuine call is made nevertheless.
	ErrForged = errors.New("ramptest: the game accepted a call whose HMAC is not that of its body")
)

// errCanceled means that the caller has stopped waiting for the answer, as a browser
// does when the user leaves a page. It is not a failure of the game.
var errCanceled = fmt.Errorf("ramptest: the call was canceled before the game answered: %w", context.Canceled)

// errUnsent means that the game's address accepts no connections.
var errUnsent = errors.New("nothing was sent, so nothing moved")

// errNoFailure means that a store did not fail on purpose.
var errNoFailure = errors.New("ramptest: StoreFails had no effect: the result reached no ramp.Handler " +
	"with the context of its request")

var errNoGame = errors.New(
	"ramptest: the game's server is not set: set Config.Game or Config.Handler, or call Service.SetHandler")

// game is the game's server, as the service reaches it.
type game struct {
	shared
	to atomic.Pointer[destination] // nil until set

	readings readings
	failing  failures[AssetsFailure]
}

// AssetsFailure is a scripted failure of an assets call. The error is [ErrLostAnswer].
type AssetsFailure string

// The failures.
const (
	AssetsLost     AssetsFailure = "lost answer" // the answer is lost at once
	AssetsNoAnswer AssetsFailure = "no answer"   // until the service gives up; see [Config.Timeout]
	AssetsCutOff   AssetsFailure = "cut off"     // half of the answer arrives
)

// destination is where the calls go.
type destination struct {
	address string // without a slash at its end
	client  *http.Client
}

// reach sets the address of the game's server.
func (s *game) reach(address string, client http.Client) {
	client.CheckRedirect = gamecall.SameAddress
	s.to.Store(&destination{strings.TrimRight(address, "/"), &client})
}

// isInMemory reports whether the calls go to a handler in memory.
func (s *game) isInMemory() bool {
	to := s.to.Load()
	if to == nil {
		return false
	}
	_, is := to.client.Transport.(memory.Transport)
	return is
}

// assets asks for a user's assets (interface 2.4). status is that of the answer, or 0.
func (s *game) assets(ctx context.Context, session ramp.Session, id uuid.UUID) (player *ramp.Player,
	status int, err error) {
	c := call{kind: control.KindAssets, id: id,
		method: http.MethodGet, path: s.config.AssetsPath, session: session}
	failure, _ := s.failing.take()
	c.lost, c.fault = failure != "", string(failure)
	if failure == AssetsNoAnswer {
		c.slow = s.config.Timeout
	}
	enter := s.audit.Reading(session)
	a, err := s.exchange(ctx, c, func(a *answer) (err error) {
		player, err = checkAssets(a)
		return err
	})
	if err != nil { // also if the answer was lost
		player = nil
	}
	if a != nil {
		status = a.status
	}
	s.readings.keep(session, reading{player, err, s.clock.Now()})
	if err == nil {
		enter(s.withMail(session, player))
	}
	return player, status, err
}

// owned is assets, with what waits for the player outside of the list.
func (s *game) owned(ctx context.Context, session ramp.Session, id uuid.UUID) (*ramp.Player, int, error) {
	player, status, err := s.assets(ctx, session, id)
	return s.withMail(session, player), status, err
}

// withMail returns a player with what waits outside of the list of assets.
func (s *game) withMail(session ramp.Session, player *ramp.Player) *ramp.Player {
	if player == nil || s.config.Mailbox == nil {
		return player
	}
	all := *player
	all.Assets = slices.Concat(player.Assets, s.config.Mailbox(session))
	return &all
}

// play makes a call about an order, as its script says, after the forged versions of
// it. A validate call is not made if the game accepts a forged one.
func (s *game) play(ctx context.Context, c call, script callScript,
	judge func(*answer) error) (*answer, error) {
	c.id, c.session, c.method, c.path = c.order.UUID, c.order.Session, http.MethodPost, s.config.ValidatePath
	if c.kind == control.KindResult {
		c.path = s.config.ResultPath
	}
	if script.unknown {
		c.body = withUnknownFields(c.body)
	}
	if s.config.UUIDDigits {
		c.body = bytes.Replace(c.body, inJSON(c.id.String()), inJSON(s.config.uuidText(c.id)), 1)
	}
	c.hmac = s.config.Key.Sign(c.body)
	forged := s.forged(ctx, c, script.forged)
	if forged != nil && c.kind == control.KindValidate {
		return nil, forged
	}
	c.slow = script.slow
	if script.fails > 0 {
		ctx, c.failure = rollback.WithFailure(ctx)
	}
	a, err := s.exchange(ctx, c, judge)
	if c.failure.Happened() {
		c.order.delivery.note(func(d *delivery) { d.failed = true })
	} else if c.failure != nil && a != nil {
		err = errors.Join(errNoFailure, err)
	}
	if forged != nil {
		err = errors.Join(forged, err)
	}
	return a, err
}

// failedAs returns the error of an answer to a result for which the store has failed on purpose:
// only an answer after which the result is sent again is right.
func (s *game) failedAs(a *answer, err error) error {
	if s.config.Retry(a.status) {
		return ErrStoreFailed
	}
	what := fmt.Sprintf("the game's store failed on purpose, which must be answered with HTTP 500, "+
		"because the result is not sent again after HTTP %d (6)", a.status)
	if a.status == http.StatusOK {
		return &wrongAnswer{confirmed: true, what: what, cause: err}
	}
	return errors.Join(errors.New("ramptest: "+what), err)
}

// inJSON returns the member of a body that has the UUID.
func inJSON(text string) []byte { return []byte(`"uuid":"` + text + `"`) }

// uuidText returns a UUID as the service writes it.
func (c *Config) uuidText(id uuid.UUID) string {
	if c.UUIDDigits {
		return hex.EncodeToString(id[:])
	}
	return id.String()
}

// withUnknownFields adds fields to the objects of a body.
func withUnknownFields(body []byte) []byte {
	const field = `"unknown_field":{"list":[1,null,"text"]},`
	for _, object := range []string{`{"type":"asset",`, `"intent":{`, `"receipt":{`, `"logs":[{`} {
		body = bytes.ReplaceAll(body, []byte(object), []byte(object+field))
	}
	return append([]byte("{"+field), body[1:]...)
}

// forged makes forged versions of c, which the game must reject. The error is
// [ErrForged] if it does not.
func (s *game) forged(ctx context.Context, c call, forgeries []forgery) (err error) {
	for _, forge := range forgeries {
		c, made := c, claim{body: c.body, hmac: c.hmac}
		forge(&made)
		c.forged, c.lost, c.body, c.hmac, c.fault = true, false, made.body, made.hmac, made.fault
		_, accepted := s.exchange(ctx, c, func(a *answer) error {
			if a.status == http.StatusOK && outcome(a) == "success" {
				return ErrForged
			}
			return nil
		})
		err = cmp.Or(err, accepted)
	}
	return err
}

// call is one request of the service to the game.
type call struct {
	kind    control.Kind
	id      uuid.UUID
	order   *Order        // nil for an assets call
	tx      control.Event // of a result: its transaction
	stated  Outcome       // of a result: the outcome that it states
	onChain Outcome       // of a result: the outcome on the chain
	attempt int
	method  string
	path    string
	session ramp.Session
	hmac    string // of the body; none for an assets call
	body    []byte

	anonymous bool // it has no session

	fault    string        // the scripted fault, for the record
	forged   bool          // the game must reject it, even by not answering
	opposite bool          // a result of which nothing is required; see [books.Tally.Deliver]
	fits     bool          // the game may confirm it all the same
	again    bool          // a result that the game has confirmed before
	retried  bool          // the result is sent again after a status of Config.Retry
	lost     bool          // the answer is lost
	slow     time.Duration // the minimum time that the answer takes
	// what the player owned before a validate call, of what a mint takes; nil if unknown
	owned    books.Assets
	lacks    string // what the player owned too little of, in words; "" if of nothing that is known
	admitted bool   // of a validate call: the game listed assets for its token just before

	failure *rollback.Failure // of the game's store, on purpose; nil if there is none
}

// settings name the path of each endpoint, in a test and in the command.
var settings = map[control.Kind]string{
	control.KindAssets:   "AssetsPath of ramptest.Config, or -assets of ramp emulate",
	control.KindValidate: "ValidatePath of ramptest.Config, or -validate of ramp emulate",
	control.KindResult:   "ResultPath of ramptest.Config, or -result of ramp emulate",
}

// header returns the headers of a call (interface 4.3).
func (c *call) header() (header http.Header) {
	switch {
	case c.anonymous:
		header = gamecall.Anonymous()
	case c.kind == control.KindAssets:
		header = gamecall.AssetsHeader(c.session)
	default:
		header = gamecall.Header(c.session)
	}
	if c.hmac != "" {
		header[gamecall.Signature] = []string{c.hmac}
	}
	return header
}

// exchange makes a call, passes the answer to judge, records both, and lets the
// books compare the player's assets before and after. If there was an answer, the
// error is that of judge. A lost answer is returned too, with [ErrLostAnswer].
func (s *game) exchange(ctx context.Context, c call, judge func(*answer) error) (*answer, error) {
	o := c.order
	if o == nil || !o.composed {
		return s.send(ctx, c, judge)
	}
	entry := s.audit.Open(ctx,
		audit.Call{Order: o.entered(), Result: c.kind == control.KindResult, Forged: c.forged,
			Stated: c.stated == Succeeded, OnChain: c.onChain == Succeeded})
	c.opposite, c.fits = entry.Opposite, entry.Fits
	if c.kind == control.KindValidate {
		read, asked := s.readings.of(c.session)
		c.owned, c.lacks = entry.Owned(read.player)
		c.admitted = asked && read.err == nil && s.config.Books != BooksOff
	}
	a, err := s.send(ctx, c, judge)
	status := 0
	if a != nil && !errors.Is(err, ErrLostAnswer) {
		status = a.status
	}
	sent := !errors.Is(err, errUnsent)
	if sent {
		o.reached.Store(true)
	}
	entry.Close(ctx, c.meaning(a, err, s.config.Retry), status, sent)
	return a, err
}

// meaning returns what an answer means for the books.
func (c *call) meaning(a *answer, err error, retry func(int) bool) books.Answer {
	switch {
	case c.forged:
		return books.No
	case a == nil, a.status >= 500:
		return books.Open
	case c.kind == control.KindResult: // the game does not know that its answer is lost
		if a.status != http.StatusOK && retry(a.status) {
			return books.Open
		}
		return books.Yes
	case errors.Is(err, ErrLostAnswer):
		return books.Open
	case err == nil:
		return books.Yes
	case isRejection(err), a.status >= 400:
		return books.No
	default: // an answer that breaks the interface may be meant as an approval
		return books.Open
	}
}

// confirmed reports whether the service takes a result for confirmed after an answer. A result
// that contradicts the chain, or an earlier one, may be rejected, and a game may fail at any time.
func (c *call) confirmed(a *answer, retry func(int) bool) bool {
	again := c.again && !retry(a.status)
	return c.kind == control.KindResult && !c.forged && !c.opposite && (again || a.status == http.StatusOK)
}

// unheard returns the error of an answer that was lost on purpose, of which judge has returned err.
// The game does not know that, so the answer is as wrong as one that arrives. A game may fail at any
// time, and may reject what contradicts the chain.
func (c *call) unheard(a *answer, err error, retry func(int) bool) error {
	switch {
	case err == nil:
	case c.kind == control.KindResult && wrongOf(err) != "":
		return errors.Join(ErrLostAnswer, err)
	case c.kind == control.KindResult && !c.opposite && !retry(a.status):
		return errors.Join(ErrLostAnswer, turnedDown(err))
	case c.kind == control.KindValidate && a.status < 500 && !isRejection(err):
		return errors.Join(ErrLostAnswer, &wrongAnswer{what: wrongly(err), cause: err})
	}
	return ErrLostAnswer
}

// send makes a call, passes the answer to judge, and records both.
func (s *game) send(ctx context.Context, c call, judge func(*answer) error) (*answer, error) {
	event := c.tx
	event.Time, event.Kind, event.UUID, event.Attempt, event.Fault = s.clock.Now(), c.kind, c.id,
		c.attempt, c.fault
	event.Session = c.session.ID
	event.Request = &control.Message{Method: c.method, Path: c.path, Header: c.header(), Body: string(c.body)}

	a, header, err := s.do(ctx, c)
	if c.slow > 0 {
		s.clock.Pass(ctx, min(c.slow, s.config.Timeout))
	}
	switch event.Took = control.Duration(s.clock.Now().Sub(event.Time)); {
	case err != nil:
		event.Outcome = err.Error()
		if c.forged {
			err = nil
		}
	default:
		event.Answer = &control.Message{Status: a.status, Header: header, Body: string(a.body)}
		event.Outcome = outcome(a)
		lost := c.lost || c.slow > s.config.Timeout
		if err = judge(a); err != nil {
			if isMissing(a.status, err) {
				err = fmt.Errorf("%w: the game has no %s %s: set %s", err, c.method, c.path, settings[c.kind])
			}
			if c.kind == control.KindValidate && outcome(a) == "INVALID_RECEIPT_STATUS" { // of package ramp
				err = fmt.Errorf(
					"%w: the game takes it for a result: the paths of validate and result are swapped", err)
			}
			if !isRejection(err) && !lost {
				event.Outcome = err.Error()
			}
			if c.confirmed(a, s.config.Retry) {
				err = wronglyConfirmed(a, err)
			}
		}
		switch {
		case lost:
			err = c.unheard(a, err, s.config.Retry)
			if c.fault == string(AssetsCutOff) {
				event.Answer.Body = event.Answer.Body[:len(a.body)/2]
			}
			event.Outcome += ", but the answer was lost on purpose"
		case c.failure.Happened():
			err = s.failedAs(a, err)
		}
	}
	if a != nil && !mayLack(a.status, event.Outcome) {
		c.owned, c.lacks = nil, ""
	}
	if c.admitted && !c.forged && isRejection(err) && a.status == http.StatusUnauthorized &&
		!strings.HasPrefix(event.Outcome, "HMAC_") {
		c.lacks = "just before, the game listed assets for this token"
		if namesSession(ramp.Code(event.Outcome)) {
			c.lacks += ": if one call uses a token up, no page works"
		} else {
			c.lacks += ", so it is the HMAC key that it does not accept: " + s.ownKey()
		}
	}
	v := c.verdictOn(a, err, s.config.Retry)
	event.Said, event.Tone, event.Failed = v.Said, v.Tone, v.Attention
	known := s.secrets.With(append(s.readings.tokens(), c.session.Token.Reveal(), c.hmac)...)
	if err != nil && a != nil {
		for _, id := range slices.Sorted(maps.Keys(c.owned)) {
			event.Owned = append(event.Owned,
				control.AssetAmount{ID: known.Text(id), Amount: books.Decimal(c.owned[id])})
		}
		if c.lacks != "" && isRejection(err) {
			err = fmt.Errorf("%w: %s", err, known.Text(c.lacks))
		} else if rejected := rejectionOf(err); rejected != nil && rejected.Code == ramp.CodeHMACInvalid {
			err = fmt.Errorf("%w: %s", err, s.ownKey()) // the pages say it where they say what to compare
		}
	}
	s.history.Exchange(event, known)
	return a, redactError(err, known)
}

// ownKey says which HMAC key the service has, to compare it with that of the game.
func (s *game) ownKey() string {
	return fmt.Sprintf(
		"the service's HMAC key has the fingerprint %s; a ramp.Handler logs that of the game's "+
			"as hmac_key", s.config.Key.Fingerprint())
}

// do makes a call and reads the whole answer.
func (s *game) do(caller context.Context, c call) (*answer, http.Header, error) {
	to := s.to.Load()
	if to == nil {
		return nil, nil, errNoGame
	}
	ctx, cancel := context.WithTimeout(caller, s.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.method, to.address+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, nil, fmt.Errorf("ramptest: %w", err)
	}
	request.Header = c.header()
	unsent := false
	failed := func(how string, err error) (*answer, http.Header, error) {
		if errors.Is(caller.Err(), context.Canceled) {
			return nil, nil, errCanceled
		}
		if ctx.Err() != nil && caller.Err() == nil {
			text := fmt.Sprintf(
				"not within %v, which is Timeout of ramptest.Config, or -timeout of ramp emulate",
				s.config.Timeout)
			if c.method == http.MethodPost { // an order, which moves assets
				text += "; if an Apply uses the database instead of tx, and tx holds the only connection, " +
					"then it waits for itself"
			}
			err = &reach.Explained{Cause: err, Text: text}
		} else if why := reach.Why(ctx, withoutUser(to.address), err); why != "" {
			err = &reach.Explained{Cause: err, Text: why}
		}
		if unsent {
			err = fmt.Errorf("%w: %w", errUnsent, err)
		}
		return nil, nil, fmt.Errorf("ramptest: the game%s: %w", how, err)
	}
	got, err := gamecall.Do(to.client, request, s.config.MaxBody)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			unsent = true
		}
		return failed(" did not answer", err)
	}
	if got.Cut != nil {
		return failed("'s answer was cut off", got.Cut)
	}
	is := reach.Body(got.Header, got.Body)
	if got.Longer {
		is = fmt.Sprintf("it has more than %d bytes, and the service reads no more", s.config.MaxBody)
	}
	exactly := func() (json.RawMessage, error) { return exact.JSON(got.Body, fieldNames()...) }
	return &answer{status: got.Status, body: got.Body, exact: sync.OnceValues(exactly), is: is},
		got.Header, nil
}

// verdictOn returns what there is to say about a call to the game.
func (c *call) verdictOn(a *answer, err error, retry func(int) bool) verdict.Verdict {
	v := verdict.Call{Kind: map[control.Kind]verdict.Kind{
		control.KindAssets: verdict.Assets, control.KindValidate: verdict.Validate,
		control.KindResult: verdict.Result}[c.kind], Fault: c.fault, Lacks: c.lacks}
	switch {
	case c.forged:
		v.Trap = verdict.Forged
	case c.opposite:
		v.Trap, v.Fits = verdict.Opposite, c.fits
	case c.kind == control.KindValidate:
		v.Trap = map[string]verdict.Trap{askedAtOnce: verdict.AtOnce, withOtherDigest: verdict.Digest,
			withOtherAmount: verdict.Amount, offTheTerms: verdict.OffTerms}[c.fault]
	}
	if a != nil {
		v.Status = a.status
		v.Retried = c.retried && retry(a.status)
	}
	switch rejected := rejectionOf(err); {
	case errors.Is(err, errCanceled):
		v.Canceled = true
	case errors.Is(err, ErrLostAnswer):
		v.Lost, v.Wrong = true, wrongOf(err)
	case errors.Is(err, ErrStoreFailed):
		v.Failing = true
	case wrongOf(err) != "":
		v.Wrong = wrongOf(err)
	case rejected != nil:
		v.Code = string(rejected.Code)
	case c.forged:
		v.Success = errors.Is(err, ErrForged)
	case err != nil:
		v.Problem = said(err)
		for _, prefix := range []string{"the game did not answer: ",
			"the game's answer breaks the interface: "} {
			v.Problem = strings.TrimPrefix(v.Problem, prefix)
		}
	default:
		v.Success = true
	}
	return verdict.OfCall(v)
}
