// This file bounds the memory that bodies need, because anybody can begin one. To make it yours: change
// nothing. Keep it, unless a proxy in front of your server reads each body as a whole before it passes
// it on.

package main

import (
	"errors"
	"io"
	"net/http"
)

const (
	smallBody   = 64 << 10 // what a call may send without further ado; calls of the service are smaller
	largeBodies = 16       // calls at a time that may send more, up to MaxBody of the handler
)

var errBodies = errors.New("too many large bodies at a time: this one comes again")

// withFewLargeBodies lets only some calls at a time send a large body. It is an error to read more of
// the others, which the handler answers with 500, so that a result comes again. The small calls of the
// service are never kept waiting.
func withFewLargeBodies(next http.Handler) http.Handler {
	places := make(chan struct{}, largeBodies)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &limitedBody{ReadCloser: r.Body, places: places}
		defer body.leave()
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// limitedBody is a body that needs a place once it is large.
type limitedBody struct {
	io.ReadCloser
	places chan struct{}
	read   int
	placed bool
}

func (b *limitedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.read += n; b.read > smallBody && !b.placed {
		select {
		case b.places <- struct{}{}:
			b.placed = true
		default:
			return 0, errBodies
		}
	}
	return n, err
}

func (b *limitedBody) leave() {
	if b.placed {
		<-b.places
	}
}
