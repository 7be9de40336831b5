package ramp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Response is the envelope of an answer to the service (interface 2.4, 2.6, 6 and
// 7.2). On success Data is set, on failure ErrorCode; the other is null.
type Response[T any] struct {
	Success   bool `json:"success"`   // whether the call succeeded
	ErrorCode Code `json:"errorCode"` // why it failed
	Data      *T   `json:"data"`      // the answer
}

// assetsData is the data of an answer to an assets call (interface 2.4, 9).
type assetsData struct {
	V1 Player `json:"v1"` // version 1 data
}

// Approval is the data of the answer to a validate call (interface 2.6).
type Approval struct {
	UserSig      string    `json:"userSig"`      // user_sig of the request, unchanged
	ValidatorSig Signature `json:"validatorSig"` // the signature of the digest
}

// Reply is the answer to a call of the service. Write sends it; with another framework,
// send Status, Header and Body, also if Err is set.
type Reply struct {
	Status int    // HTTP status
	Body   []byte // JSON, the envelope of the interface
	Err    error  // nil for success, otherwise a [*Rejection]

	allowed string // the method of the path, after another one
}

// allowing returns the reply to a call with another method than that of its path.
func (r Reply) allowing(method string) Reply {
	r.allowed = method
	return r
}

// Header returns the headers of the reply, one value each.
func (r Reply) Header() http.Header {
	header := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}}
	if r.allowed != "" {
		header.Set("Allow", r.allowed)
	}
	return header
}

// Write writes the reply to w.
func (r Reply) Write(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.Header())
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // an error means that the caller is gone
}

// call is one call of the service, and what is logged and observed of it.
type call struct {
	op          Operation
	session     Session
	unsigned    string // the session of a result's header, if it contradicts the signed body
	previousKey int    // which older key verified the call; 0 is none
	unreadable  []FieldError
	options     bool   // a validate call has a target_candidate that is not empty
	handedOver  bool   // OnConflict took the contradicting outcome of a result
	stack       []byte // of a panic; nil without one
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

// answer makes the reply to a call and logs it. read checks the call; its errors
// are answered by [rejectionOf]. run does the work; its errors are internal unless
// they are a [Rejection], and a panic is an internal error too. run is nil for what is none of the
// three calls, or was not read.
func (h *Handler) answer(ctx context.Context, endpoint string, read func(*call) error,
	run func(context.Context, *call) (any, error)) Reply {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	ctx = h.config.Observer.start(ctx, c.op)
	c.op.Unverified = endpoint != "assets" || run == nil // of a wrong path
	data, err := c.work(ctx, h.config.RejectStatus, read, run)
	body := []byte("null") // of a result
	if data != nil {
		body, err = wire.Marshal(data)
	}
	var reply Reply
	if err != nil {
		reply = h.reject(c.rejection(err))
	} else {
		body = append([]byte(`{"success":true,"errorCode":null,"data":`), body...)
		reply = Reply{Status: http.StatusOK, Body: append(body, '}')}
	}
	h.record(ctx, c, reply)
	return reply
}

// work reads and runs a call. Whether it panicked is not asked of recover, which returns nil for
// panic(nil) with GODEBUG=panicnil=1.
func (c *call) work(ctx context.Context, rejectStatus int, read func(*call) error,
	run func(context.Context, *call) (any, error)) (data any, err error) {
	returned := false
	defer func() {
		if !returned {
			cause := recover()
			c.stack = debug.Stack()
			data, err = nil, fmt.Errorf("ramp: panic: %v", cause)
		}
	}()
	if err = read(c); err != nil {
		err = rejectionOf(err, rejectStatus)
	} else {
		data, err = run(ctx, c)
	}
	returned = true
	return data, err
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

func (h *Handler) bodyTooLarge(limit int64) error {
	return &Rejection{Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
		Err: fmt.Errorf("ramp: the body is larger than %d bytes: raise that limit (HandlerConfig.MaxBody is %d)", limit, h.config.MaxBody)}
}

// rejection returns the answer to an error. The service delivers a result again only after HTTP
// 500, so nothing ends its deliveries but OnConflict.
func (c *call) rejection(err error) *Rejection {
	var found *Rejection
	if !errors.As(err, &found) || found.Status < 200 || found.Status > 599 {
		found = internalError(err)
	}
	if c.op.Name == "result" && !c.handedOver {
		return &Rejection{Status: http.StatusInternalServerError, Code: found.Code, Err: found.Err}
	}
	return found
}

// reject returns the reply to a rejection.
func (h *Handler) reject(rejection *Rejection) Reply {
	body := Must(wire.Marshal(Response[struct{}]{ErrorCode: h.translate(rejection.Code)}))
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
	if order := c.order(); order != nil {
		op.Direction = order.Direction
	}
	level := c.level(reply)
	h.config.Observer.end(ctx, *op)
	suppressed, logged := h.sampled(op)
	if !logged {
		return
	}
	defer recoverHook(ctx, "Logger") // so that it costs nobody the signature of a stored order

	log := h.log()
	if h.config.Logger == nil && level == slog.LevelInfo || !log.Enabled(ctx, level) {
		return
	}
	log.LogAttrs(ctx, level, "ramp: call", c.attrs(suppressed)...)
}

// level sets what the operation failed with, and returns the level of the record.
func (c *call) level(reply Reply) slog.Level {
	op := &c.op
	var rejection *Rejection
	switch {
	case errors.As(reply.Err, &rejection):
		op.Err, op.Code = reply.Err, rejection.Code
		if reply.Status >= 500 && !op.Unverified { // which anybody can cause
			return slog.LevelError
		}
		return slog.LevelWarn
	case c.unreadable != nil, c.unsigned != "", c.options, op.Conflict != nil:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// sampled reports whether a call is logged, and how many of its code were not before it. Calls
// without a valid HMAC, which anybody can make, must not fill the log.
func (h *Handler) sampled(op *Operation) (suppressed int64, logged bool) {
	if !op.Unverified {
		return 0, true
	}
	known, _ := h.unverified.LoadOrStore(op.Code, new(sample))
	last, now := known.(*sample), time.Now().Unix()
	if last.second.Swap(now) == now {
		last.suppressed.Add(1)
		return 0, false
	}
	return last.suppressed.Swap(0), true
}

// attrs returns what the record of a call says.
func (c *call) attrs(suppressed int64) []slog.Attr {
	op, order := &c.op, c.order()
	attrs := append(make([]slog.Attr, 0, 20), slog.String("endpoint", op.Name),
		slog.Int("status", op.Status), slog.Duration("duration", op.Duration))
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
	outcome := "success"
	var rejection *Rejection
	if errors.As(op.Err, &rejection) {
		outcome = string(rejection.Code)
		attrs = append(attrs, slog.Any("error", rejection.Err))
	}
	if c.unreadable != nil {
		attrs = append(attrs, slog.Any("unreadable", &InvalidError{Fields: c.unreadable}))
	}
	add(c.stack != nil, slog.String("stack", string(c.stack)))
	return append(attrs, slog.String("outcome", outcome))
}
