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

// call is one call of the service, and what the log and the observer say of it.
// It is the context that the game gets, so that an [OrderGame] below any game of
// the studio's can add the step that it took.
type call struct {
	context.Context
	op         Operation
	unreadable []FieldError
	stack      []byte // of a panic

	mu       sync.Mutex // a game may go on after it has answered
	stepped  bool       // an OrderGame found or took a step
	new      bool
	order    Direction // of the stored order
	conflict *ConflictError
}

type callKey struct{}

// Value also finds the call itself.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// noteStep adds a step to the call that ctx belongs to, if it is one about the
// same order.
func noteStep(ctx context.Context, step Step) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.op.UUID == step.Order.UUID {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stepped, c.new, c.order = true, step.New, step.Order.Direction
	}
}

// noteConflict adds a conflict to the call that ctx belongs to, if it is one about
// the same order.
func noteConflict(ctx context.Context, conflict *ConflictError) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.op.UUID == conflict.Order.UUID {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.order, c.conflict = conflict.Order.Direction, conflict
	}
}

// answer runs one call and turns its outcome into a reply and a log record. A
// panic is an internal error like any other.
func (h *Handler) answer(ctx context.Context, endpoint string, run func(*call) (any, error)) (reply Reply) {
	c := &call{op: Operation{Kind: OperationWebhook, Name: endpoint, Begun: time.Now()}}
	c.Context = h.config.Observer.start(ctx, c.op)
	response, err := func() (response any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				c.stack = debug.Stack()
				response, err = nil, fmt.Errorf("ramp: panic: %v", cause)
			}
		}()
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

// refuse answers with the envelope of a failure.
func (h *Handler) refuse(err error) Reply {
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Status < 200 || refusal.Status > 599 {
		refusal = &Refusal{Status: http.StatusInternalServerError, Code: CodeInternal, Err: err}
	}
	body, err := marshal(Response[struct{}]{ErrorCode: h.translate(refusal.Code)})
	if err != nil {
		panic(err) // a struct of a boolean and a string
	}
	return Reply{Status: refusal.Status, Body: body, Err: refusal}
}

// translate is the code as the wire has it. What the studio's function does, a
// failure must not become a success or a dead connection of it.
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

// record tells the observer and the log of one call. Without a logger of its own
// a handler logs what went wrong to the program's, which is looked up late
// because programs set it late.
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
			level = slog.LevelError // nothing was done, and somebody has to act
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
