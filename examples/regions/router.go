// Package regions serves players whose data is in several databases, such as one for each
// region. An order must be in the database of its player, so each database has a store and
// a handler of its own, and a [Router] finds the handler by the session. Copy it.
//
// A UUID and a transaction are then unique within a database only. So give a player one
// region, and sessions of that region.
package regions

import (
	"bytes"
	"io"
	"net/http"

	ramp "github.com/token-ramp/ramp-go"
)

// Router passes each call of the service to the handler of its session.
type Router struct {
	// Handlers are the handlers, each with the store of one database. All need the same
	// Key. The first one answers calls whose session has no region: it knows neither
	// their session nor their order, so it rejects them, or answers results with 500.
	Handlers []http.Handler

	// Region returns the index in Handlers of the database that has a session, or -1. It
	// must know sessions for 13 hours after their last order, as Authenticate must. The
	// simplest is to write the region into the session ID at login.
	Region func(sessionID string) int
}

// ServeHTTP implements [http.Handler]. The session of a result is that of its body, which
// the HMAC covers, and only otherwise that of its header. The handler verifies the HMAC.
func (r *Router) ServeHTTP(w http.ResponseWriter, call *http.Request) {
	session := call.Header.Get(ramp.HeaderSession)
	if call.URL.Path == ramp.PathResult {
		// MaxBody of the handlers, which reject a longer body
		const max = 1 << 20
		body, _ := io.ReadAll(io.LimitReader(call.Body, max+1)) // the handler meets the same error
		if result, unread := ramp.ParseResult(body); unread == nil && result.SessionID != "" {
			session = result.SessionID
		}
		call.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), call.Body), call.Body}
	}
	region := r.Region(session)
	if region < 0 || region >= len(r.Handlers) {
		region = 0
	}
	r.Handlers[region].ServeHTTP(w, call)
}
