package ramptest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
)

// memory carries requests to a handler without a network.
type memory struct {
	handler http.Handler
	running *group // has each call of the handler
}

// RoundTrip gives the handler what a server would have given it.
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close() // it was read whole, or failed
		if err != nil {
			return nil, err
		}
	}
	served := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), bytes.NewReader(body))
	served.Host = cmp.Or(r.Host, r.URL.Host)
	for name, values := range r.Header {
		for _, value := range values {
			served.Header.Add(name, value) // a server, too, gives names their one form
		}
	}
	recorder := httptest.NewRecorder()
	done := make(chan error, 1)
	m.running.run(func() {
		err := errors.New("the handler ended its goroutine")
		defer func() { done <- err }() // after runtime.Goexit too, as of a test that fails
		err = serve(m.handler, recorder, served)
	})
	var err error
	select {
	case err = <-done:
	case <-r.Context().Done():
	}
	if err := cmp.Or(r.Context().Err(), err); err != nil {
		return nil, err // nobody waits for it any more
	}
	response := recorder.Result()
	response.Request = r
	return response, nil
}

// serve calls a handler. Where a server would drop the connection, it fails. A
// server logs the stack of a panic that was not meant, so the error has it.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			err = fmt.Errorf("the handler panicked: %v", cause)
		default:
			err = fmt.Errorf("the handler panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}
