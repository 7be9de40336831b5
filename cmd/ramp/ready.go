package main

import (
	"context"
	"errors"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/control"
)

const readyUsage = `usage: ramp ready [flags]

Waits until an emulator answers, for a container's health check or before a test.

Example: ramp ready -at http://127.0.0.1:8090 -timeout 1m

Exit status: 0 if an emulator answers, 2 if none has answered in time.
`

// ready waits until an emulator answers.
func ready(ctx context.Context, of *call) (int, error) {
	c := newCaller(of)
	timeout := c.Duration("timeout", 30*time.Second, "how long to wait; 0 asks once")
	if _, err := c.parse(0, 0); err != nil {
		return 0, err
	}
	for end := time.Now().Add(*timeout); ; {
		err := c.connect(ctx)
		var reported *control.Error // such as one that asks for a token
		if err == nil || errors.As(err, &reported) {
			return statusDone, nil
		}
		if time.Now().After(end) {
			return 0, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, err
		}
	}
}
