package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The limits of one call. A proxy in front must wait longer than writeTimeout.
const (
	callDeadline = 20 * time.Second // of the work on a call
	writeTimeout = 30 * time.Second // from the end of the header to the end of the answer
	endTimeout   = 40 * time.Second // for the calls that are under way when the server stops
)

// serve answers calls until ctx is done. Then it stops without cutting off a
// call: it first calls stopping, so that /readyz fails, goes on for the time that
// a load balancer needs to notice, and then lets the calls under way end.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, drain time.Duration, stopping func()) error {
	server := &http.Server{
		Handler:           withDeadline(handler, callDeadline),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
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
