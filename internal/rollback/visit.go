package rollback

import (
	"context"
	"sync/atomic"
)

// Visit is an assets call with a session that is not the caller's.
type Visit struct{ admitted atomic.Bool }

type visitKey struct{}

// WithVisit returns a context of a call with a session that is not the caller's.
func WithVisit(ctx context.Context) (context.Context, *Visit) {
	v := new(Visit)
	return context.WithValue(ctx, visitKey{}, v), v
}

// Admitted reports whether a ramp.Handler has accepted the session.
func (v *Visit) Admitted() bool { return v.admitted.Load() }

// Admit tells whoever made the context that the session of the call was accepted.
func Admit(ctx context.Context) {
	if v, _ := ctx.Value(visitKey{}).(*Visit); v != nil {
		v.admitted.Store(true)
	}
}
