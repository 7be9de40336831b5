package ramp

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Observer is told what the package does, for metrics and traces. Set one as
// [HandlerConfig].Observer, [ClientConfig].Observer, [RPCConfig].Observer and
// [OrderGameConfig].Observer. Every field may be nil; the zero Observer costs no
// allocation. examples/observability has one for Prometheus and one for
// OpenTelemetry.
//
// The functions are called by many goroutines at once, and the package waits for
// them, so they must be fast. A panic of one is logged to [slog.Default] and has
// no other effect: no metric may keep a player from what was paid for.
//
// Nothing that they get holds a key, an access token, a signature or a body.
type Observer struct {
	// Start is called before an operation, with its Kind, Name and Begun. The
	// context that it returns is that of the operation and of everything within
	// it, and must be derived from ctx: it is the place for a span. nil leaves
	// ctx as it is.
	Start func(ctx context.Context, op Operation) context.Context

	// End is called after an operation, with the context of Start, which may be
	// canceled. That of a webhook call comes before its answer is written. There
	// is none for a client's operation that panics.
	End func(ctx context.Context, op Operation)

	// Step is called by [OrderGame] after every step that the store returned:
	// those of Validate and Result, repeats among them, and of Abandon. A step
	// that is New is stored and its effect applied. It must not be changed.
	Step func(ctx context.Context, step Step)
}

// OperationKind says what an [Operation] is.
type OperationKind string

// The kinds of operations.
const (
	// OperationWebhook is a call that a [Handler] answers. Its names are assets,
	// validate and result.
	OperationWebhook OperationKind = "webhook"

	// OperationInitialize is one [Client.Initialize], named initialize. Its
	// attempts are within it.
	OperationInitialize OperationKind = "initialize"

	// OperationRPC is one call of an [RPC], named after the JSON-RPC method, or
	// batch for [RPC.Batch] and wait for [RPC.WaitReceipt]. Its attempts are
	// within it.
	OperationRPC OperationKind = "rpc"

	// OperationAttempt is one HTTP request of a [Client] or an [RPC], named
	// initialize, batch, or after the JSON-RPC method.
	OperationAttempt OperationKind = "attempt"
)

// Operation is what an [Observer] is told about. Kind, Name and Begun are known
// from its start, the rest at its end.
type Operation struct {
	Kind  OperationKind
	Name  string
	Begun time.Time

	Duration time.Duration
	Err      error // why it failed; nil for success

	UUID uuid.UUID // of a webhook or initialize operation, as far as it was read

	// The rest is of a webhook operation.

	Status    int            // HTTP status of the answer
	Code      Code           // errorCode of the answer before translation; empty for success
	Direction Direction      // mint or burn; 0 if unknown
	TxHash    string         // of a result; empty unless 0x and 64 hex digits
	Conflict  *ConflictError // how the call contradicts its order; also of a repeat with another tx_hash, which is a success
}

// start calls Start, and returns the context of the operation.
func (o *Observer) start(ctx context.Context, op Operation) (inner context.Context) {
	if o.Start == nil {
		return ctx
	}
	defer func() {
		if inner == nil {
			inner = ctx
		}
	}()
	defer recoverHook(ctx, "Start")
	return o.Start(ctx, op)
}

// end calls End.
func (o *Observer) end(ctx context.Context, op Operation) {
	if o.End == nil {
		return
	}
	defer recoverHook(ctx, "End")
	o.End(ctx, op)
}

// step calls Step.
func (o *Observer) step(ctx context.Context, step Step) {
	if o.Step == nil {
		return
	}
	defer recoverHook(ctx, "Step")
	o.Step(ctx, step)
}

// recoverHook is deferred around a function of the studio's.
func recoverHook(ctx context.Context, name string) {
	if cause := recover(); cause != nil {
		slog.Default().LogAttrs(ctx, slog.LevelError, "ramp: observer panicked", slog.String("function", name), slog.Any("panic", cause))
	}
}
