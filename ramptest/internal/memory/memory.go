// Package memory carries requests to a handler without a network.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/debug"

	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/ramptest/internal/life"
)

// Transport carries requests to a handler.
type Transport struct {
	Handler http.Handler
	Running *life.Group // counts the calls of the handler
}

// RoundTrip calls the handler with the request that a server would pass to it.
func (m Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	// A store of the game rolls back its first attempt at each step.
	served := httptest.NewRequestWithContext(rollback.Ask(r.Context()), r.Method, r.URL.RequestURI(), r.Body)
	served.ContentLength = r.ContentLength
	served.Host = cmp.Or(r.Host, r.URL.Host)
	for name, values := range r.Header {
		for _, value := range values {
			served.Header.Add(name, value) // canonicalizes names, as a server does
		}
	}
	recorder := httptest.NewRecorder()
	done := make(chan error, 1)
	m.Running.Run(func() {
		err := errors.New("the handler ended its goroutine")
		defer func() { // runs after runtime.Goexit too, such as by t.FailNow
			_ = served.Body.Close() // nobody reads it any more
			done <- err
		}()
		err = serve(m.Handler, recorder, served)
	})
	var err error
	select {
	case err = <-done:
	case <-r.Context().Done():
	}
	if err := cmp.Or(r.Context().Err(), err); err != nil {
		return nil, err
	}
	response := recorder.Result()
	response.Request = r
	return response, nil
}

// serve calls a handler. It returns an error where a server would drop the
// connection. The error of an unexpected panic has the stack, which a server logs. Whether it
// panicked is not asked of recover, which returns nil for panic(nil) with GODEBUG=panicnil=1.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		switch cause := recover(); cause {
		case http.ErrAbortHandler:
			err = fmt.Errorf("the handler panicked: %v", cause)
		default:
			err = fmt.Errorf("the handler panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	h.ServeHTTP(w, r)
	returned = true
	return nil
}
