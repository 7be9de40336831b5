package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	ramp "github.com/token-ramp/ramp-go"
)

// function answers the calls that a REST API of API Gateway passes on.
type function struct {
	// open makes the handler at the first call, and again after an error. If it was made while the function
	// starts, an error would end the function, and the gateway would answer in its place.
	open func(context.Context) (*ramp.Handler, error)

	mu      sync.Mutex
	handler *ramp.Handler
}

// sendTime is how long before the deadline the function answers, like HandlerConfig.SendTime.
const sendTime = 200 * time.Millisecond

type (
	request  = events.APIGatewayProxyRequest
	response = events.APIGatewayProxyResponse
)

// answer answers a call. It returns no error: Lambda would answer in its place.
func (f *function) answer(ctx context.Context, e request) (response, error) {
	handler, err := f.opened(ctx)
	if err != nil {
		return unavailable(ctx, err), nil
	}
	body := []byte(e.Body)
	if e.IsBase64Encoded { // the HMAC covers the bytes that were sent
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return unavailable(ctx, fmt.Errorf("the body is not base64: %w", err)), nil
		}
	}
	header := http.Header{}
	for name, values := range e.MultiValueHeaders {
		for _, value := range values {
			header.Add(name, value) // which also gives the name the usual case
		}
	}
	reply := handler.Answer(ctx, e.HTTPMethod, path(e), header, body)
	return response{StatusCode: reply.Status, MultiValueHeaders: reply.Header(),
		Body: string(reply.Body)}, nil
}

// path is the path behind what the gateway adds to it: a stage, or the path of a custom domain.
func path(e request) string {
	if rest, ok := e.PathParameters["proxy"]; ok {
		return strings.TrimSuffix(e.Resource, "{proxy+}") + rest
	}
	return e.Path
}

// opened returns the handler. If it is not there in time, the next call goes on waiting for it.
func (f *function) opened(ctx context.Context) (*ramp.Handler, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-sendTime))
		defer cancel()
	}
	type opening struct {
		handler *ramp.Handler
		err     error
	}
	done := make(chan opening, 1)
	go func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		var err error
		if f.handler == nil {
			f.handler, err = f.open(ctx)
		}
		done <- opening{f.handler, err}
	}()
	select {
	case o := <-done:
		return o.handler, o.err
	case <-ctx.Done():
		return nil, errors.New("the handler was not made in time")
	}
}

// unavailable lets the service send a result again.
func unavailable(ctx context.Context, err error) response {
	slog.ErrorContext(ctx, "the function cannot answer", "error", err)
	return response{StatusCode: http.StatusInternalServerError,
		Headers: map[string]string{"Content-Type": "application/json"},
		Body:    `{"success":false,"errorCode":"INTERNAL_ERROR","data":null}`}
}
