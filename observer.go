package ramp

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Observer observes what the package does, for metrics and traces: see
// examples/gameserver for Prometheus, and examples/observability for OpenTelemetry. Every
// field may be nil. The functions are called concurrently and synchronously, so they must
// be fast. A panic in one is logged to [slog.Default] and otherwise ignored. Nothing that
// they get is secret.
type Observer struct {
	// Start is called before an operation, with its Kind, Name and Begun. It can start a span: the
	// context that it returns is used for the operation and everything inside it, and must be derived
	// from ctx. If it returns nil, ctx is used.
	Start func(ctx context.Context, op Operation) context.Context

	// End is called after an operation; for a webhook call, this is before the answer is written. ctx is
	// what Start returned, and may be canceled by then. End is not called for a client's operation that
	// panics.
	End func(ctx context.Context, op Operation)
}

// OperationKind is the kind of an [Operation].
type OperationKind string

// The kinds of operations.
const (
	// a call that a [Handler] answers: assets, validate or result
	OperationWebhook    OperationKind = "webhook"
	OperationInitialize OperationKind = "initialize" // a [Client.Initialize], with its attempts inside
	// an operation of an [RPC], named after the JSON-RPC method, or "batch", "check" or
	// "wait"
	OperationRPC     OperationKind = "rpc"
	OperationAttempt OperationKind = "attempt" // an HTTP request inside an initialize or rpc operation
)

// Operation is passed to an [Observer]. At its start, only Kind, Name and Begun are set.
type Operation struct {
	Kind     OperationKind // what it is
	Name     string        // endpoint or JSON-RPC method
	Begun    time.Time     // when it started
	Duration time.Duration // how long it took
	Err      error         // why it failed; nil for success
	UUID     uuid.UUID     // of a webhook or initialize operation; zero if unknown

	// The rest is for webhook operations only.

	// Unverified reports that a validate or result call had no valid HMAC, or that a call had a
	// wrong path or method. Anybody can make such calls, so count them apart; see docs/on-call.md.
	Unverified bool

	Status    int       // HTTP status of the answer
	Code      Code      // errorCode of the answer before translation; empty for success
	Direction Direction // mint or burn; empty if unknown
	TxHash    string    // of a result; empty unless it is 0x and 64 hex digits
	// whether the validator key was asked for a signature. The signature is released unless Err is set
	Signed   bool
	Step     *Step          // of a [Store], or nil; do not modify it. If New, it is stored and applied
	Conflict *ConflictError // also set for a repeat with a different tx_hash, which succeeds
}

// start calls Start, and returns the context of the operation.
func (o *Observer) start(ctx context.Context, op Operation) context.Context {
	if o.Start == nil {
		return ctx
	}
	var inner context.Context
	runHook(ctx, "Start", func() { inner = o.Start(ctx, op) })
	if inner == nil {
		return ctx
	}
	return inner
}

// end calls End.
func (o *Observer) end(ctx context.Context, op Operation) {
	if o.End != nil {
		runHook(ctx, "End", func() { o.End(ctx, op) })
	}
}

// watch lets the observer of a client know of its operations.
type watch struct {
	observer Observer
	now      func() time.Time
}

// begin starts an operation and returns its context.
func (w *watch) begin(ctx context.Context, kind OperationKind, name string) (context.Context, Operation) {
	op := Operation{Kind: kind, Name: name, Begun: w.now()}
	return w.observer.start(ctx, op), op
}

// end ends an operation and returns its duration.
func (w *watch) end(ctx context.Context, op Operation, err error) time.Duration {
	op.Duration, op.Err = w.now().Sub(op.Begun), err
	w.observer.end(ctx, op)
	return op.Duration
}

// runHook calls an observer's function, a logger, or a key's function in a goroutine of its own, and logs
// that it panicked. Whether it did is not asked of recover, which returns nil for panic(nil) with
// GODEBUG=panicnil=1.
func runHook(ctx context.Context, name string, hook func()) {
	var cause any
	returned := false
	func() {
		defer func() { cause = recover() }()
		hook()
		returned = true
	}()
	if !returned {
		defer func() { _ = recover() }() // the default logger may be what panicked
		slog.ErrorContext(ctx, "ramp: hook panicked", "function", name, "panic", cause)
	}
}
