package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// cloud imitates Lambda and API Gateway. It runs this test binary as the function, each copy as a process of
// its own, and speaks the runtime API with it. It freezes a copy (SIGSTOP) as soon as it has answered, and
// kills one that does not answer in time.
type cloud struct {
	t      *testing.T
	env    []string
	limit  time.Duration // of a call
	copies chan struct{} // the reserved concurrency
	kill   func(path string) time.Duration
	own    int       // the status of the gateway's own answers
	log    io.Writer // of the functions

	mu      sync.Mutex
	idle    []*instance
	cold    int
	killed  int
	gateway []string // why it answered itself
}

// instance is a copy of the function.
type instance struct {
	command *exec.Cmd
	api     *httptest.Server
	calls   chan call
	answers chan []byte // of a call; nil is an error
	dead    chan struct{}
	n       int
}

type call struct {
	payload  []byte
	deadline time.Time
}

func newCloud(t *testing.T, copies int, env ...string) *cloud {
	c := &cloud{t: t, env: env, limit: 5 * time.Second, copies: make(chan struct{}, copies), own: 500,
		log: t.Output()}
	t.Cleanup(c.stop)
	return c
}

// start starts a copy.
func (c *cloud) start() (*instance, error) {
	i := &instance{calls: make(chan call), answers: make(chan []byte, 1), dead: make(chan struct{})}
	i.api = httptest.NewServer(i)
	i.command = exec.Command(os.Args[0])
	i.command.Env = append(append(os.Environ(), c.env...),
		"AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(i.api.URL, "http://"))
	i.command.Stdout, i.command.Stderr = c.log, c.log
	if err := i.command.Start(); err != nil {
		return nil, err
	}
	go func() { _ = i.command.Wait(); close(i.dead) }()
	return i, nil
}

// ServeHTTP is the runtime API.
func (i *instance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/invocation/next") {
		select {
		case in := <-i.calls:
			i.n++
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", strconv.Itoa(i.n))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(in.deadline.UnixMilli(), 10))
			_, _ = w.Write(in.payload)
		case <-r.Context().Done():
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	w.WriteHeader(http.StatusAccepted)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/response") { // it is /error
		body = nil
	}
	i.answers <- body
}

func (i *instance) end() {
	_ = i.command.Process.Kill()
	<-i.dead
	i.api.CloseClientConnections()
	i.api.Close()
}

var (
	errThrottled = errors.New("throttled")
	errTimeout   = errors.New("the function was killed at its time limit")
	errFailed    = errors.New("the function failed")
)

// invoke calls the function.
func (c *cloud) invoke(path string, payload []byte) ([]byte, error) {
	select {
	case c.copies <- struct{}{}:
		defer func() { <-c.copies }()
	default:
		return nil, errThrottled
	}
	c.mu.Lock()
	var i *instance
	if n := len(c.idle); n > 0 {
		i, c.idle = c.idle[n-1], c.idle[:n-1]
	} else {
		c.cold++
	}
	c.mu.Unlock()
	if i == nil {
		var err error
		if i, err = c.start(); err != nil {
			return nil, err
		}
	} else if err := i.command.Process.Signal(syscall.SIGCONT); err != nil {
		return nil, err
	}
	limit := time.NewTimer(c.limit + 20*time.Second) // it may start first
	defer limit.Stop()
	select {
	case i.calls <- call{payload, time.Now().Add(c.limit)}:
	case <-i.dead:
		i.end()
		return nil, errFailed
	case <-limit.C:
		i.end()
		return nil, errTimeout
	}
	limit.Reset(c.limit)
	var kill <-chan time.Time
	if c.kill != nil {
		if after := c.kill(path); after > 0 {
			kill = time.After(after)
		}
	}
	select {
	case out := <-i.answers:
		if out == nil {
			i.end()
			return nil, errFailed
		}
		if err := i.command.Process.Signal(syscall.SIGSTOP); err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.idle = append(c.idle, i)
		return out, nil
	case <-i.dead:
	case <-kill:
		c.mu.Lock()
		c.killed++
		c.mu.Unlock()
	case <-limit.C:
		i.end()
		return nil, errTimeout
	}
	i.end()
	return nil, errFailed
}

// stop ends the copies that are idle.
func (c *cloud) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.idle {
		i.end()
	}
	c.idle = nil
}

// ServeHTTP is API Gateway: a REST API with a custom domain, which adds a path, and binary media types */*.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	e := request{Resource: "/{proxy+}", Path: "/ramp" + r.URL.Path, HTTPMethod: r.Method,
		MultiValueHeaders: map[string][]string{}, Headers: map[string]string{}, IsBase64Encoded: true,
		PathParameters: map[string]string{"proxy": strings.TrimPrefix(r.URL.Path, "/")},
		Body:           base64.StdEncoding.EncodeToString(body)}
	e.RequestContext.Stage, e.RequestContext.Path = "live", e.Path
	for name, values := range r.Header {
		e.MultiValueHeaders[strings.ToLower(name)] = values
		e.Headers[strings.ToLower(name)] = values[len(values)-1]
	}
	payload, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	out, err := c.invoke(r.URL.Path, payload)
	var reply response
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(out)).Decode(&reply)
	}
	if err != nil {
		c.mu.Lock()
		c.gateway = append(c.gateway, err.Error())
		c.mu.Unlock()
		http.Error(w, `{"message": "Internal server error"}`, c.own)
		return
	}
	for name, values := range reply.MultiValueHeaders {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	for name, value := range reply.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.StatusCode)
	_, _ = io.WriteString(w, reply.Body)
}

// answeredItself returns why the gateway has answered in place of the function.
func (c *cloud) answeredItself() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.gateway...)
}
