package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
)

// call is one call of the service, and what is logged and observed of it.
type call struct {
	op         Operation
	session    Session
	unsigned   string // the session of a result's header, if it contradicts the signed body
	unreadable []FieldError
	stack      []byte // of a panic; nil without one
}

// answer makes the reply to a call and logs it. read checks the call; its errors
// are answered by [rejectionOf]. run does the work; its errors are internal unless
// they are a [Rejection], and a panic is an internal error too.
func (h *Handler) answer(ctx context.Context, endpoint string, read func(*call) error, run func(context.Context, *call) (any, error)) (reply Reply) {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	ctx = h.config.Observer.start(ctx, c.op)
	response, err := func() (response any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				c.stack = debug.Stack()
				response, err = nil, fmt.Errorf("ramp: panic: %v", cause)
			}
		}()
		if err := read(c); err != nil {
			return nil, rejectionOf(err)
		}
		return run(ctx, c)
	}()
	if err == nil {
		var written bool
		reply = Reply{Status: http.StatusOK}
		if reply.Body, written = response.([]byte); !written {
			reply.Body, err = marshal(response)
		}
	}
	if err != nil {
		reply = h.reject(err)
	}
	h.record(ctx, c, reply)
	return reply
}

// reject returns the reply to a failure.
func (h *Handler) reject(err error) Reply {
	var rejection *Rejection
	if !errors.As(err, &rejection) || rejection.Status < 200 || rejection.Status > 599 {
		rejection = internalError(err)
	}
	body, err := marshal(Response[struct{}]{ErrorCode: h.translate(rejection.Code)})
	if err != nil {
		panic(err) // impossible for a boolean and a string
	}
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
		if reply.Status >= 500 || reply.Status == http.StatusRequestEntityTooLarge {
			level = slog.LevelError // the call had no effect, and somebody must act
		}
	case c.unreadable != nil, c.unsigned != "", op.Conflict != nil:
		level = slog.LevelWarn
	}
	h.config.Observer.end(ctx, *op)
	if now := time.Now().Unix(); op.Code == CodeBodyTooLarge && h.tooLarge.Swap(now) == now {
		return // nobody has authenticated it, so anybody could fill the log
	}
	defer recoverHook(ctx, "Logger") // so that it costs nobody the signature of a stored order

	log := cmp.Or(h.config.Logger, slog.Default())
	if h.config.Logger == nil && level == slog.LevelInfo || !log.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 17), slog.String("endpoint", op.Name), slog.Int("status", op.Status), slog.Duration("duration", op.Duration))
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
	add(op.Direction != 0, slog.String("direction", op.Direction.String()))
	if order != nil {
		attrs = append(attrs, slog.String("state", string(order.State)))
	}
	if op.Step != nil {
		attrs = append(attrs, slog.Bool("new", op.Step.New), slog.String("effect", op.Step.Effect.String()))
		add(op.Step.Product != "", slog.String("product", op.Step.Product))
	}
	add(op.TxHash != "", slog.String("tx_hash", op.TxHash))
	add(c.unsigned != "", slog.String("header_session_id", c.unsigned))
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
