package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Code is an errorCode of the envelope that answers the service (interface 7.2).
// The interface does not list the codes, so these are this package's own; set
// [HandlerConfig].TranslateCode to send others. For a wrong field of a body, the
// code is INVALID_ and the path of the field in capitals, such as INVALID_DIGEST or
// INVALID_INTENT_FROM_AMOUNT. For a body that is not a JSON object it is
// INVALID_BODY. [Reject] takes a code of your own.
type Code string

// The codes that a [Handler] answers with by itself.
const (
	CodeHMACMissing      Code = "HMAC_MISSING"         // 401, of a result 500: no X-HMAC-SIGNATURE
	CodeHMACInvalid      Code = "HMAC_INVALID"         // 401, of a result 500: the signature does not match the body
	CodeSessionMissing   Code = "SESSION_MISSING"      // 401: no usable X-Dapp-SessionID
	CodeTokenMissing     Code = "ACCESS_TOKEN_MISSING" // 401: no usable bearer token in X-Dapp-Authorization
	CodeNotFound         Code = "NOT_FOUND"            // 404, of a result 500: unknown path, from [Handler.ServeHTTP]
	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED"   // 405: not GET for assets, not POST for the others
	CodeBodyTooLarge     Code = "BODY_TOO_LARGE"       // 413, of a result 500: larger than [HandlerConfig].MaxBody
	CodeTerms            Code = "INVALID_MESSAGE"      // a validate call is for no product of [HandlerConfig].Terms; the public guide's word for it
	CodeOrderConflict    Code = "ORDER_CONFLICT"       // a validate call contradicts the order stored under its UUID
	CodeOrderFinished    Code = "ORDER_FINISHED"       // a validate call is for an order that has ended
	CodePermanent        Code = "PERMANENT"            // 400: a result that must not be delivered again; see [Permanent]
	CodeInternal         Code = "INTERNAL_ERROR"       // 500: internal error; the cause is logged
)

// MarshalJSON writes the empty code, which means success, as null.
func (c Code) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return marshal(strings.ToValidUTF8(string(c), "\ufffd"))
}

// Rejection is an answer other than success: the status and code that the service
// sees, and the cause, which is only logged.
type Rejection struct {
	Status int   // HTTP status; zero means that of [Reject]
	Code   Code  // errorCode of the envelope
	Err    error // the cause, or nil
}

// Error returns the code and the cause.
func (r *Rejection) Error() string {
	if r.Err == nil {
		return "ramp: rejected: " + string(r.Code)
	}
	return "ramp: rejected: " + string(r.Code) + ": " + strings.TrimPrefix(r.Err.Error(), "ramp: ")
}

// Unwrap returns the cause.
func (r *Rejection) Unwrap() error { return r.Err }

// Reject returns an error with which the game says no: the service gets success
// false with code as its errorCode. The HTTP status is 401 from
// [Players.Authenticate], and [HandlerConfig].RejectStatus from [Players.Assets],
// [HandlerConfig].Policy, the Apply of a store, and [Game.Validate]. To set the status
// or a cause, return a [*Rejection]. A result cannot be rejected: there, it counts as
// any other error.
//
// The public guide uses INVALID_USER, INVALID_BALANCE, INVALID_MESSAGE.
func Reject(code Code) error { return &Rejection{Code: code} }

// Permanent returns an error with which the Apply of a store, or [Game.Result], says
// that delivering a result again cannot help. The service gets HTTP 400, after which
// it does not retry, and err is logged. Let a person look at it.
func Permanent(err error) error {
	return &Rejection{Status: http.StatusBadRequest, Code: CodePermanent, Err: err}
}

// rejectionOf returns the answer to an error of this package's own checks. Errors of
// the game go to [gameRejection] instead, whatever they wrap.
func rejectionOf(err error) *Rejection {
	var rejection *Rejection
	var wrong *InvalidError
	switch {
	case errors.As(err, &rejection):
		return rejection
	case errors.Is(err, ErrHMACMissing):
		return unauthorized(CodeHMACMissing, err)
	case errors.Is(err, ErrHMACInvalid):
		return unauthorized(CodeHMACInvalid, err)
	case errors.As(err, &wrong):
		return &Rejection{Status: http.StatusBadRequest, Code: invalidCode(wrong), Err: err}
	default:
		return internalError(err)
	}
}

// gameRejection returns the answer to an error of the game or its store: the
// [Rejection] that it wraps, with status as the default, or else an internal error.
func gameRejection(err error, status int) *Rejection {
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		return internalError(err)
	}
	answer := &Rejection{Status: rejection.Status, Code: rejection.Code, Err: err}
	if answer.Status == 0 {
		answer.Status = status
	}
	if answer.Code == "" {
		answer.Code = CodeInternal
	}
	return answer
}

func internalError(err error) *Rejection {
	return &Rejection{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err}
}

func unauthorized(code Code, err error) *Rejection {
	return &Rejection{Status: http.StatusUnauthorized, Code: code, Err: err}
}

// invalidCode names the first wrong field. For intent.from[0].amount it is
// INVALID_INTENT_FROM_AMOUNT.
func invalidCode(e *InvalidError) Code {
	path := "body"
	if len(e.Fields) > 0 {
		path = e.Fields[0].Path
	}
	code := "INVALID"
	for _, step := range pathSteps(path) {
		if !isDigits(step) { // not an index
			code += "_" + strings.ToUpper(step)
		}
	}
	return Code(code)
}

// call is one call of the service, and what is logged and observed of it.
type call struct {
	op          Operation
	session     Session
	unsigned    string // the session of a result's header, if it contradicts the signed body
	previousKey int    // which older key verified the call; 0 is none
	unreadable  []FieldError
	options     bool   // a validate call has a target_candidate that is not empty
	stack       []byte // of a panic; nil without one
}

// answer makes the reply to a call and logs it. read checks the call; its errors
// are answered by [rejectionOf]. run does the work; its errors are internal unless
// they are a [Rejection], and a panic is an internal error too.
func (h *Handler) answer(ctx context.Context, endpoint string, read func(*call) error, run func(context.Context, *call) (any, error)) (reply Reply) {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	ctx = h.config.Observer.start(ctx, c.op)
	c.op.Unverified = endpoint != "assets" || run == nil // of a wrong path
	data, err := func() (data any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				c.stack = debug.Stack()
				data, err = nil, fmt.Errorf("ramp: panic: %v", cause)
			}
		}()
		if err := read(c); err != nil {
			return nil, rejectionOf(err)
		}
		return run(ctx, c)
	}()
	body := []byte("null") // of a result
	if data != nil {
		body, err = marshal(data)
	}
	if err != nil {
		reply = h.reject(endpoint, err)
	} else {
		body = append([]byte(`{"success":true,"errorCode":null,"data":`), body...)
		reply = Reply{http.StatusOK, append(body, '}'), nil}
	}
	h.record(ctx, c, reply)
	return reply
}

// authentic checks the size and the HMAC of a body before anything reads it.
func (h *Handler) authentic(c *call, header http.Header, body []byte) error {
	signature, err := hmacHeader(header)
	if err != nil {
		return err
	}
	if int64(len(body)) > h.config.MaxBody {
		return h.bodyTooLarge(h.config.MaxBody)
	}
	c.previousKey, err = h.config.Key.verify(body, signature)
	c.op.Unverified = err != nil
	if err == nil {
		return nil
	}
	switch encoding, _ := singleHeader(header, "Content-Encoding"); {
	case len(body) == 0, !slices.Contains([]string{"", fmt.Sprint(len(body))}, header.Get("Content-Length")):
		return fmt.Errorf("%w (the body has %d bytes, and Content-Length is %.20q: middleware may have read or changed it)", err, len(body), header.Get("Content-Length"))
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Errorf("%w (the body has a Content-Encoding, but the HMAC covers the body that the service sent)", err)
	}
	return err
}

// hmacHeader returns a well-formed signature.
func hmacHeader(header http.Header) (string, error) {
	signature, err := singleHeader(header, HeaderHMAC)
	if err != nil {
		return "", fmt.Errorf("ramp: %w: it occurs more than once", ErrHMACInvalid)
	}
	_, err = decodeHMAC(signature)
	return signature, err
}

func (h *Handler) bodyTooLarge(limit int64) error {
	return &Rejection{Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
		Err: fmt.Errorf("ramp: the body is larger than %d bytes: raise that limit (HandlerConfig.MaxBody is %d)", limit, h.config.MaxBody)}
}

// setSession takes the session of a result from its body, which is signed. The headers
// are not, and may be missing, because a result can arrive 12 hours after its validate
// call.
func (c *call) setSession(header http.Header, r *Result) {
	signed := strings.TrimSpace(r.SessionID)
	unsigned, _ := sessionID(header)
	c.session.ID = cmp.Or(signed, unsigned)
	c.session.Token, _ = bearerToken(header)
	if unsigned != c.session.ID {
		c.unsigned = unsigned
	}
}

// take records the step that a store returned, or the conflict that it met.
func (c *call) take(step Step, err error) error {
	if err == nil {
		c.op.Step = &step
	} else {
		errors.As(err, &c.op.Conflict)
	}
	return err
}

// reject returns the reply to a failure. The service delivers a result again only after
// HTTP 500, so nothing but [Permanent] ends its deliveries.
func (h *Handler) reject(endpoint string, err error) Reply {
	var rejection *Rejection
	if !errors.As(err, &rejection) || rejection.Status < 200 || rejection.Status > 599 {
		rejection = internalError(err)
	}
	decided := rejection.Status == http.StatusBadRequest && rejection.Code == CodePermanent
	if endpoint == "result" && !decided {
		rejection = &Rejection{Status: http.StatusInternalServerError, Code: rejection.Code, Err: rejection.Err}
	}
	body := Must(marshal(Response[struct{}]{ErrorCode: h.translate(rejection.Code)}))
	return Reply{Status: rejection.Status, Body: body, Err: rejection}
}

// translate returns the code to send. A failure of TranslateCode must not turn into
// a success or a broken connection.
func (h *Handler) translate(c Code) (translated Code) {
	defer func() {
		if recover() != nil || translated == "" {
			translated = c
		}
	}()
	if h.config.TranslateCode == nil {
		return c
	}
	return h.config.TranslateCode(c)
}

// sample is when a record of a code was last logged, in Unix seconds, and how many were
// not logged since.
type sample struct{ second, suppressed atomic.Int64 }

// record observes and logs a call. slog.Default is looked up for each call, because
// programs often set it after they made the handler.
func (h *Handler) record(ctx context.Context, c *call, reply Reply) {
	op := &c.op
	op.Duration, op.Status = time.Since(op.Begun), reply.Status
	order := c.order()
	if order != nil {
		op.Direction = order.Direction
	}
	level, outcome := slog.LevelInfo, "success"
	var rejection *Rejection
	switch {
	case errors.As(reply.Err, &rejection):
		op.Err, op.Code = reply.Err, rejection.Code
		level, outcome = slog.LevelWarn, string(rejection.Code)
		if reply.Status >= 500 && !op.Unverified { // which anybody can cause
			level = slog.LevelError
		}
	case c.unreadable != nil, c.unsigned != "", c.options, op.Conflict != nil:
		level = slog.LevelWarn
	}
	h.config.Observer.end(ctx, *op)
	var suppressed int64
	if op.Unverified { // which anybody can cause, and must not fill the log with
		known, _ := h.unverified.LoadOrStore(op.Code, new(sample))
		last, now := known.(*sample), time.Now().Unix()
		if last.second.Swap(now) == now {
			last.suppressed.Add(1)
			return
		}
		suppressed = last.suppressed.Swap(0)
	}
	defer recoverHook(ctx, "Logger") // so that it costs nobody the signature of a stored order

	log := cmp.Or(h.config.Logger, slog.Default())
	if h.config.Logger == nil && level == slog.LevelInfo || !log.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 20), slog.String("endpoint", op.Name), slog.Int("status", op.Status), slog.Duration("duration", op.Duration))
	add := func(known bool, attr slog.Attr) {
		if known {
			attrs = append(attrs, attr)
		}
	}
	session := c.session.ID
	if order != nil {
		session = order.SessionID
	}
	add(session != "", slog.String("session_id", session))
	add(op.UUID != uuid.Nil, slog.String("uuid", op.UUID.String()))
	add(op.Direction != "", slog.String("direction", string(op.Direction)))
	if order != nil {
		attrs = append(attrs, slog.String("state", string(order.State)))
	}
	if op.Step != nil {
		attrs = append(attrs, slog.Bool("new", op.Step.New), slog.String("effect", op.Step.Effect.String()))
		add(op.Step.Product != "", slog.String("product", op.Step.Product))
	}
	add(op.TxHash != "", slog.String("tx_hash", op.TxHash))
	add(c.options, slog.Bool("target_candidate", true))
	add(c.unsigned != "", slog.String("header_session_id", c.unsigned))
	add(c.previousKey > 0, slog.Int("previous_key", c.previousKey))
	add(op.Unverified, slog.Bool("unverified", true))
	add(suppressed > 0, slog.Int64("suppressed", suppressed))
	if op.Conflict != nil {
		attrs = append(attrs, slog.String("conflict", op.Conflict.Field))
	}
	if rejection != nil {
		attrs = append(attrs, slog.Any("error", rejection.Err))
	}
	if c.unreadable != nil {
		attrs = append(attrs, slog.Any("unreadable", &InvalidError{Fields: c.unreadable}))
	}
	add(c.stack != nil, slog.String("stack", string(c.stack)))
	log.LogAttrs(ctx, level, "ramp: call", append(attrs, slog.String("outcome", outcome))...)
}

// order returns the stored order that the call is about, or nil if it is unknown.
func (c *call) order() *Order {
	switch {
	case c.op.Step != nil:
		return &c.op.Step.Order
	case c.op.Conflict != nil:
		return &c.op.Conflict.Order
	default:
		return nil
	}
}
