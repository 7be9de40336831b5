package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
)

// call is one call of the service, and what is logged and observed of it. It is
// also the context of the game, so that an [OrderGame] inside any other game can
// add the step that it took.
type call struct {
	context.Context
	op         Operation
	unreadable []FieldError
	stack      []byte // of a panic; nil without one

	mu       sync.Mutex // a game may keep running after it has answered
	stepped  bool       // an OrderGame took a step or found it taken
	new      bool
	order    Direction // of the stored order
	conflict *ConflictError
}

type callKey struct{}

// Value also returns the call itself, for callKey.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// noteStep records a step in the call of ctx, if that is about the same order.
func noteStep(ctx context.Context, step Step) {
	note(ctx, step.Order, func(c *call) { c.stepped, c.new = true, step.New })
}

// noteConflict records a conflict in the call of ctx, if that is about the same
// order.
func noteConflict(ctx context.Context, conflict *ConflictError) {
	note(ctx, conflict.Order, func(c *call) { c.conflict = conflict })
}

func note(ctx context.Context, order Order, record func(*call)) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.op.UUID == order.UUID {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.order = order.Direction
		record(c)
	}
}

// answer makes the reply to a call and logs it. read checks the call; its errors
// are answered by [refusalOf]. run does the work; its errors are internal unless
// they are a [Refusal], and a panic is an internal error too.
func (h *Handler) answer(ctx context.Context, endpoint string, read func(*call) error, run func(*call) (any, error)) (reply Reply) {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	c.Context = h.config.Observer.start(ctx, c.op)
	response, err := func() (response any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				c.stack = debug.Stack()
				response, err = nil, fmt.Errorf("ramp: panic: %v", cause)
			}
		}()
		if err := read(c); err != nil {
			return nil, refusalOf(err)
		}
		return run(c)
	}()
	if err == nil {
		var written bool
		reply = Reply{Status: http.StatusOK}
		if reply.Body, written = response.([]byte); !written {
			reply.Body, err = marshal(response)
		}
	}
	if err != nil {
		reply = h.refuse(err)
	}
	h.record(c, reply)
	return reply
}

// refuse returns the reply to a failure.
func (h *Handler) refuse(err error) Reply {
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Status < 200 || refusal.Status > 599 {
		refusal = &Refusal{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err}
	}
	body, err := marshal(Response[struct{}]{ErrorCode: h.translate(refusal.Code)})
	if err != nil {
		panic(err) // impossible for a boolean and a string
	}
	return Reply{Status: refusal.Status, Body: body, Err: refusal}
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
func (h *Handler) record(c *call, reply Reply) {
	c.mu.Lock()
	op, stepped, isNew := c.op, c.stepped, c.new
	op.Direction, op.Conflict = cmp.Or(c.order, op.Direction), c.conflict
	c.mu.Unlock()
	op.Duration, op.Status = time.Since(op.Begun), reply.Status

	level, outcome := slog.LevelInfo, "success"
	var refusal *Refusal
	switch {
	case errors.As(reply.Err, &refusal):
		op.Err, op.Code = reply.Err, refusal.Code
		level, outcome = slog.LevelWarn, string(refusal.Code)
		if reply.Status >= 500 || reply.Status == http.StatusRequestEntityTooLarge {
			level = slog.LevelError // the call had no effect, and somebody must act
		}
	case c.unreadable != nil, op.Conflict != nil:
		level = slog.LevelWarn
	}
	h.config.Observer.end(c.Context, op)

	log := h.config.Logger
	if log == nil {
		if level == slog.LevelInfo {
			return
		}
		log = slog.Default()
	}
	if !log.Enabled(c.Context, level) {
		return
	}
	attrs := []slog.Attr{slog.String("endpoint", op.Name), slog.Int("status", op.Status), slog.Duration("duration", op.Duration)}
	if op.UUID != uuid.Nil {
		attrs = append(attrs, slog.String("uuid", op.UUID.String()))
	}
	if op.Direction != 0 {
		attrs = append(attrs, slog.String("direction", op.Direction.String()))
	}
	if stepped {
		attrs = append(attrs, slog.Bool("new", isNew))
	}
	if op.TxHash != "" {
		attrs = append(attrs, slog.String("tx_hash", op.TxHash))
	}
	if op.Conflict != nil {
		attrs = append(attrs, slog.String("conflict", op.Conflict.Field))
	}
	if refusal != nil {
		attrs = append(attrs, slog.Any("error", refusal.Err))
	}
	if c.unreadable != nil {
		attrs = append(attrs, slog.Any("unreadable", &InvalidError{Fields: c.unreadable}))
	}
	if c.stack != nil {
		attrs = append(attrs, slog.String("stack", string(c.stack)))
	}
	log.LogAttrs(c.Context, level, "ramp: call", append(attrs, slog.String("outcome", outcome))...)
}
