package ramp

import (
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// ClientOption sets something of a [Client] that has a default. It sets the
// same of an [RPC].
type ClientOption interface {
	applyClient(*transport) error
	RPCOption
}

type clientOption func(*transport) error

func (o clientOption) applyClient(t *transport) error { return o(t) }
func (o clientOption) applyRPC(r *RPC) error          { return o(r.transport) }

// LoggerOption is an option of a [Client], an [RPC] and a [Handler].
type LoggerOption struct{ log *slog.Logger }

func (o LoggerOption) applyClient(t *transport) error {
	t.log = o.log
	return o.check()
}

func (o LoggerOption) applyRPC(r *RPC) error { return o.applyClient(r.transport) }

func (o LoggerOption) check() error {
	if o.log == nil {
		return errors.New("ramp: WithLogger: the logger is nil")
	}
	return nil
}

// WithLogger sends one record a call to log: the endpoint, the outcome, the
// duration, and the cause of a failure; and one for each repetition. A call that
// an [RPC] made well is logged at Debug, a path or a method that a [Handler]
// does not serve not at all. No record holds a token, a key, a signature or a
// body. Without it nothing is logged.
func WithLogger(log *slog.Logger) LoggerOption { return LoggerOption{log: log} }

// ProjectOption is an option of a [Handler] and of a [SQLGame].
type ProjectOption struct{ id string }

func (o ProjectOption) applySQLGame(g *SQLGame) error {
	g.project = o.id
	return o.check()
}

func (o ProjectOption) check() error {
	if o.id == "" {
		return errors.New("ramp: WithProject: the project is empty")
	}
	return nil
}

// WithProject refuses validate calls for any other project_id than the one from
// the console. Without it, a game that serves several projects tells them apart
// in [Game.Validate].
//
// A result names no project (interface 6). Where projects with HMAC keys of
// their own share a database, give their [SQLGame] the option too: a result for
// an order of another project is then a conflict, whoever signed it.
func WithProject(id string) ProjectOption { return ProjectOption{id: id} }

// WithHTTPClient uses the transport, the cookies and the timeout of client. It
// is copied and never changed; redirects are not followed, because a signed
// call must not reach an address that nobody configured. The default is a
// client of its own on [http.DefaultTransport].
func WithHTTPClient(client *http.Client) ClientOption {
	return clientOption(func(t *transport) error {
		if client == nil {
			return errors.New("ramp: WithHTTPClient: the client is nil")
		}
		t.use(*client)
		return nil
	})
}

// WithTimeout bounds each attempt, from the connection to the last byte of the
// answer. The default is 10 seconds. The context of a call bounds all of its
// attempts together.
func WithTimeout(d time.Duration) ClientOption {
	return clientOption(func(t *transport) error {
		if d <= 0 {
			return errors.New("ramp: WithTimeout: the timeout must be above 0")
		}
		t.timeout = d
		return nil
	})
}

// WithRetries sets how often a call is repeated after a failure that may pass:
// a connection that failed, or HTTP 429, 502, 503 or 504; what it is for an
// [RPC] is said there. Between attempts it waits, with jitter, 0.2 seconds at
// first and twice as long each time up to 5 seconds, or as long as Retry-After
// says; if that is more than 30 seconds, or more than the context has left, the
// call fails at once. The default is 2 retries; 0 makes one attempt only.
func WithRetries(n int) ClientOption {
	return clientOption(func(t *transport) error {
		if n < 0 {
			return errors.New("ramp: WithRetries: the number must not be negative")
		}
		t.retries = n
		return nil
	})
}

// WithUserAgent sets the User-Agent header. The default is "ramp-go".
func WithUserAgent(name string) ClientOption {
	return clientOption(func(t *transport) error {
		t.userAgent = name
		return nil
	})
}

// WithClock sets the clock that [Initialization.ExpiresAt] is counted from, and
// durations and the dates of Retry-After. The default is [time.Now].
func WithClock(now func() time.Time) ClientOption {
	return clientOption(func(t *transport) error {
		if now == nil {
			return errors.New("ramp: WithClock: the clock is nil")
		}
		t.now = now
		return nil
	})
}
