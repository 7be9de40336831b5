// To make it yours: change nothing, as long as the time limits stay a chain. If you have a server of
// your own, take withDeadline, the limits and the way it stops from here.

package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Time limits. They are links of a chain, which docs/hosting.md has as a whole: whoever
// waits must wait longer than what it waits for, or it answers for it.
const (
	readTimeout  = 8 * time.Second  // for reading a call
	callDeadline = 8 * time.Second  // for handling a call, without its commit
	writeTimeout = 12 * time.Second // from the end of the request header to the end of the answer
	endTimeout   = 15 * time.Second // for the calls in progress when the server stops
)

// serve answers calls until ctx is done, and then stops without interrupting a call:
// it calls stopping, which makes /readyz fail, keeps serving for drain, so that a load
// balancer notices, and lets the calls in progress finish.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger,
	drain time.Duration, stopping func()) error {
	server := &http.Server{
		Handler:           withFewLargeBodies(withDeadline(handler, callDeadline)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute, // longer than a proxy keeps its connections
		MaxHeaderBytes:    64 << 10,        // an access token can be long
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping", "drain", drain)
	stopping()
	select {
	case err := <-failed:
		return err
	case <-time.After(drain):
	}
	ending, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	return server.Shutdown(ending)
}

// withDeadline ends the context of each call after a time, so that the database
// and the chain stop and the handler answers 500. http.TimeoutHandler would answer
// 503, and the service would not repeat the result.
func withDeadline(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
