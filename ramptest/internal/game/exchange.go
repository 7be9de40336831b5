package game

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

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
	"github.com/token-ramp/ramp-go/internal/reach"
	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/exact"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Play makes a call about an order, as its script says, after the forged versions of
// it. A validate call is not made if the game accepts a forged one.
func (s *Game) Play(ctx context.Context, c Call, script fault.Call,
	judge func(*Answer) error) (*Answer, error) {
	c.id, c.session, c.method, c.path = c.Order.UUID, c.Order.Session, http.MethodPost, s.config.ValidatePath
	if c.Kind == control.KindResult {
		c.path, c.media = s.config.ResultPath, s.config.ResultType
	}
	if script.Unknown {
		c.Body = withUnknownFields(c.Body)
	}
	if s.config.UUIDDigits {
		c.Body = bytes.Replace(c.Body, inJSON(c.id.String()), inJSON(s.uuidText(c.id)), 1)
	}
	c.hmac = s.config.Key.Sign(c.Body)
	forged := s.forged(ctx, c, script.Forged)
	if forged != nil && c.Kind == control.KindValidate {
		return nil, forged
	}
	c.slow = script.Slow
	if script.Fails > 0 {
		ctx, c.failure = rollback.WithFailure(ctx)
	}
	a, err := s.exchange(ctx, c, judge)
	if c.failure.Happened() {
		c.Order.Delivery.Note(func(d *order.Delivery) { d.Failed = true })
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
func (s *Game) failedAs(a *Answer, err error) error {
	if s.config.Retry(a.Status) {
		return ErrStoreFailed
	}
	what := fmt.Sprintf("the game's store failed on purpose, which must be answered with HTTP 500, "+
		"because the result is not sent again after HTTP %d (6)", a.Status)
	if a.Status == http.StatusOK {
		return &wrongAnswer{confirmed: true, what: what, cause: err}
	}
	return errors.Join(errors.New("ramptest: "+what), err)
}

// inJSON returns the member of a body that has the UUID.
func inJSON(text string) []byte { return []byte(`"uuid":"` + text + `"`) }

// uuidText returns a UUID as the service writes it.
func (s *Game) uuidText(id uuid.UUID) string { return UUIDText(id, s.config.UUIDDigits) }

// UUIDText returns a UUID as text, with hyphens or as digits only.
func UUIDText(id uuid.UUID, digits bool) string {
	if digits {
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
func (s *Game) forged(ctx context.Context, c Call, forgeries []fault.Forgery) (err error) {
	for _, forge := range forgeries {
		c, made := c, fault.Claim{Body: c.Body, HMAC: c.hmac}
		forge(&made)
		c.forged, c.Lost, c.Body, c.hmac, c.Fault = true, false, made.Body, made.HMAC, made.Name
		_, accepted := s.exchange(ctx, c, func(a *Answer) error {
			if a.Status == http.StatusOK && Outcome(a) == "success" {
				return ErrForged
			}
			return nil
		})
		err = cmp.Or(err, accepted)
	}
	return err
}

// exchange makes a call, passes the answer to judge, records both, and lets the
// books compare the player's assets before and after. If there was an answer, the
// error is that of judge. A lost answer is returned too, with [ErrLostAnswer].
func (s *Game) exchange(ctx context.Context, c Call, judge func(*Answer) error) (*Answer, error) {
	o := c.Order
	if o == nil || !o.Composed {
		return s.send(ctx, c, judge)
	}
	watch := s.config.Watch(ctx,
		audit.Call{Order: o.Entered(), Result: c.Kind == control.KindResult, Forged: c.forged,
			Alone:  c.Fault == fault.BeforeAnswer,
			Stated: c.Stated == order.Succeeded, OnChain: c.OnChain == order.Succeeded})
	c.opposite, c.fits = watch.Opposite, watch.Fits
	if c.Kind == control.KindValidate {
		read, asked := s.readings.of(c.session)
		c.owned, c.lacks = watch.Owned(read.Player)
		c.admitted = asked && read.Err == nil && s.config.Audited
	}
	a, err := s.send(ctx, c, judge)
	status := 0
	if a != nil && !errors.Is(err, ErrLostAnswer) {
		status = a.Status
	}
	sent := !errors.Is(err, ErrUnsent)
	if sent {
		o.Reached.Store(true)
	}
	watch.Close(ctx, c.meaning(a, err, s.config.Retry), status, sent)
	return a, err
}

// send makes a call, passes the answer to judge, and records both.
func (s *Game) send(ctx context.Context, c Call, judge func(*Answer) error) (*Answer, error) {
	event := c.Tx
	event.Time, event.Kind, event.UUID, event.Attempt, event.Fault = s.config.Now(), c.Kind, c.id,
		c.Attempt, c.Fault
	event.Session = c.session.ID
	event.Request = &control.Message{Method: c.method, Path: c.path, Header: c.header(), Body: string(c.Body)}

	a, header, err := s.do(ctx, c)
	if c.slow > 0 {
		s.config.Pass(ctx, min(c.slow, s.config.Timeout))
	}
	switch event.Took = control.Duration(s.config.Now().Sub(event.Time)); {
	case err != nil:
		event.Outcome = err.Error()
		if c.forged {
			err = nil
		}
	default:
		event.Answer = &control.Message{Status: a.Status, Header: header, Body: string(a.body)}
		event.Outcome = Outcome(a)
		lost := c.Lost || c.slow > s.config.Timeout
		if err = judge(a); err != nil {
			if isMissing(a.Status, err) {
				err = fmt.Errorf("%w: the game has no %s %s: set %s", err, c.method, c.path, settings[c.Kind])
			}
			if c.Kind == control.KindValidate && Outcome(a) == "INVALID_RECEIPT_STATUS" { // of package ramp
				err = fmt.Errorf(
					"%w: the game takes it for a result: the paths of validate and result are swapped", err)
			}
			if !IsRejection(err) && !lost {
				event.Outcome = err.Error()
			}
			if c.confirmed(a, s.config.Retry) {
				err = wronglyConfirmed(a, err)
			}
		}
		switch {
		case lost:
			err = c.unheard(a, err, s.config.Retry)
			if c.Fault == AssetsCutOff {
				event.Answer.Body = event.Answer.Body[:len(a.body)/2]
			}
			event.Outcome += ", but the answer was lost on purpose"
		case c.failure.Happened():
			err = s.failedAs(a, err)
		}
	}
	if a != nil && !mayLack(a.Status, event.Outcome) {
		c.owned, c.lacks = nil, ""
	}
	if c.admitted && !c.forged && IsRejection(err) && a.Status == http.StatusUnauthorized &&
		!strings.HasPrefix(event.Outcome, "HMAC_") {
		c.lacks = "just before, the game listed assets for this token"
		if NamesSession(ramp.Code(event.Outcome)) {
			c.lacks += ": if one call uses a token up, no page works"
		} else {
			c.lacks += ", so it is the HMAC key that it does not accept: " + s.ownKey()
		}
	}
	v := c.verdictOn(a, err, s.config.Retry)
	event.Said, event.Tone, event.Failed = v.Said, v.Tone, v.Attention
	known := s.config.Secrets.With(append(s.readings.tokens(), c.session.Token.Reveal(), c.hmac)...)
	if err != nil && a != nil {
		for _, id := range slices.Sorted(maps.Keys(c.owned)) {
			event.Owned = append(event.Owned,
				control.AssetAmount{ID: known.Text(id), Amount: tally.Decimal(c.owned[id])})
		}
		if c.lacks != "" && IsRejection(err) {
			err = fmt.Errorf("%w: %s", err, known.Text(c.lacks))
		} else if rejected := RejectionOf(err); rejected != nil && rejected.Code == ramp.CodeHMACInvalid {
			err = fmt.Errorf("%w: %s", err, s.ownKey()) // the pages say it where they say what to compare
		}
	}
	s.config.Record(event, known)
	return a, redactError(err, known)
}

// ownKey says which HMAC key the service has, to compare it with that of the game.
func (s *Game) ownKey() string {
	return fmt.Sprintf(
		"the service's HMAC key has the fingerprint %s; a ramp.Handler logs that of the game's "+
			"as hmac_key", s.config.Key.Fingerprint())
}

// do makes a call and reads the whole answer.
func (s *Game) do(caller context.Context, c Call) (*Answer, http.Header, error) {
	to := s.to.Load()
	if to == nil {
		return nil, nil, errNoGame
	}
	ctx, cancel := context.WithTimeout(caller, s.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.method, to.address+c.path, bytes.NewReader(c.Body))
	if err != nil {
		return nil, nil, fmt.Errorf("ramptest: %w", err)
	}
	request.Header = c.header()
	unsent := false
	failed := func(how string, err error) (*Answer, http.Header, error) {
		if errors.Is(caller.Err(), context.Canceled) {
			return nil, nil, ErrCanceled
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
		} else if why := reach.Why(ctx, history.WithoutUser(to.address), err); why != "" {
			err = &reach.Explained{Cause: err, Text: why}
		}
		if unsent {
			unsent := ErrUnsent
			if c.Order != nil && c.Order.Reached.Load() {
				unsent = unsentLater{}
			}
			err = fmt.Errorf("%w: %w", unsent, err)
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
	exactly := func() (json.RawMessage, error) { return exact.JSON(got.Body, FieldNames()...) }
	return &Answer{Status: got.Status, body: got.Body, exact: sync.OnceValues(exactly), is: is},
		got.Header, nil
}
