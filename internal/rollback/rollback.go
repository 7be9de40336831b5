// Package rollback lets the emulator of ramptest ask a rampsql.Store in the same process
// to roll back its first attempt at each step, as a database may do at any time. What
// Apply did outside of its transaction is then done twice, and the books show it. It also lets
// the store of a ramp.Handler fail once, so that what stands before the handler is tested, and learns
// from a ramp.Handler that it has accepted a session that is not the caller's: the answer alone may be
// that of a server that takes the player from the token, which is wrong only with a Store.
//
// A value in a context is a channel that a reader does not expect. It is here because the
// emulator gets any http.Handler, and only the context passes through a mux, a framework
// and middleware to the store. A setting would be one that everybody forgets, and nothing
// outside of this module can set the value.
package rollback

import "context"

type key struct{}

// Ask returns a context that asks a store to roll back its first attempt at a step.
func Ask(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Asked reports whether ctx asks for it.
func Asked(ctx context.Context) bool { return ctx.Value(key{}) != nil }
