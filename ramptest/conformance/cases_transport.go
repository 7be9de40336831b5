package conformance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// transportCases returns the cases about HTTP itself: methods, headers, and bodies that
// are large, slow or truncated (interface 4.3, 8).
func transportCases() []Case {
	return slices.Concat(atValidate.transportCases(), atResult.transportCases(), []Case{
		{ID: "assets-long-header", alone: true, Level: Should, Section: "8",
			Fix:   "Limit the size of headers, and make sure that a long header cannot crash the process.",
			Title: "An assets call with a session ID of 64 KiB is rejected, and the next one is answered.",
			run: func(t *trial) {
				header := t.headers(t.player)
				header[sessionID] = []string{strings.Repeat("x", 64<<10)}
				t.rejected(readable(t.try(call{method: http.MethodGet, path: t.target.AssetsPath, header: header, alone: true})))
				t.moved(0)
			}},
		{ID: "others-while-stalled", alone: true, Level: Should, Section: "8",
			Fix:   "Serve calls concurrently, and read a body before you take a lock or a database connection.",
			Title: "Calls are answered while the bodies of other calls stall.",
			run: func(t *trial) {
				o := t.mint()
				body := o.body.bytes()
				ctx, cancel := context.WithCancel(t.ctx)
				// The bodies must stall for longer than the other calls may take.
				stalled, patient := *t, *t.target
				patient.Timeout *= 3
				stalled.ctx, stalled.target = ctx, &patient
				begun := make(chan struct{}, crowd)
				done := make(chan struct{})
				go func() {
					defer close(done)
					stalled.crowd(func(int) answer {
						return stalled.try(call{method: http.MethodPost, path: t.target.ValidatePath, header: t.signed(t.player, body),
							arriving: func() io.Reader { return &stall{first: bytes.Repeat([]byte(" "), 64<<10), begun: begun, ctx: ctx} },
							length:   1 << 20})
					})
				}()
				for range crowd {
					select {
					case <-begun:
					case <-done: // the server did not read the bodies
					}
				}
				t.moved(0)
				cancel()
				<-done
				t.confirm(t.approve(o), failure)
				t.moved(0)
			}},
		{ID: "answers-after-all", alone: true, Level: Must, Section: "4.3", Fix: "Find out which call crashed the server or left a lock held.",
			Title: "After all of that, the server still answers.",
			run:   func(t *trial) { t.ends(t.mint(), failure, 0) }},
	})
}

func (e endpoint) transportCases() []Case {
	const (
		method = "Answer 405 to other methods than POST."
		pieces = "Read the whole body, however it arrives."
		bound  = "Limit the size of the body before you read it, and answer a validate call with 413, and a result with 500, so that none is lost."
	)
	answers := func(send func(t *trial, header http.Header, body []byte) answer) func(*trial) {
		return func(t *trial) {
			e.answers(t, func(o order, right object) answer {
				body := right.bytes()
				return e.noted(t, o, right, send(t, t.signed(t.player, body), body))
			})
		}
	}
	posted := func(t *trial, header http.Header, arriving func() io.Reader, length int) answer {
		return t.try(call{method: http.MethodPost, path: e.path(t.target), header: header, arriving: arriving, length: int64(length)})
	}
	title := "A " + e.name + " call "
	methods := rows[string]{
		{"get", "GET", Should, http.MethodGet},
		{"put", "PUT", Should, http.MethodPut},
		{"delete", "DELETE", Should, http.MethodDelete},
	}.inputs(func(t *trial, method string) {
		e.rejects(t, func(_ order, right object) answer {
			body := right.bytes()
			return t.try(call{method: method, path: e.path(t.target), header: t.signed(t.player, body),
				body: body, hmac: t.target.Key.Sign(body), alone: true})
		})
	})
	return []Case{
		{ID: e.name + "-method", Section: "4.3", Fix: method, Inputs: methods,
			Title: "The " + e.name + " endpoint rejects other methods than POST."},
		{ID: e.name + "-charset", Level: Should, Section: "4.3", Fix: "Compare the media type of Content-Type without its parameters.",
			Title: title + "with application/json; charset=utf-8 is answered.",
			run: answers(func(t *trial, header http.Header, body []byte) answer {
				header.Set("Content-Type", "application/json; charset=utf-8")
				return t.post(e.path(t.target), header, body)
			})},
		{ID: e.name + "-chunked", Level: Should, Section: "4.3", Fix: pieces,
			Title: title + "whose body comes in chunks, without Content-Length, is answered.",
			run: answers(func(t *trial, header http.Header, body []byte) answer {
				return posted(t, header, func() io.Reader {
					return io.MultiReader(bytes.NewReader(body[:10]), bytes.NewReader(body[10:]))
				}, -1)
			})},
		{ID: e.name + "-slow", Level: Should, Section: "4.3", Fix: pieces,
			Title: title + "whose body comes in pieces, over a quarter of a second, is answered.",
			run: answers(func(t *trial, header http.Header, body []byte) answer {
				return posted(t, header, func() io.Reader {
					return &slow{rest: body, pause: 50 * time.Millisecond, pieces: 5}
				}, len(body))
			})},
		{ID: e.name + "-cut-off", Level: Should, Section: "4.3", Fix: "Reject an incomplete body.",
			Title: title + "that is cut off within its body moves nothing.",
			run: func(t *trial) {
				o, right := e.body(t)
				then := t.now()
				t.lenient = true // the call is authentic, so nothing is given away
				t.breakOff(e.path(t.target), right.bytes())
				t.still(then)
				t.lenient = false
				e.over(t, o)
				t.moved(0)
			}},
		{ID: e.name + "-large", alone: true, Level: Should, Section: "8", Fix: bound,
			Title: title + "of 8 MiB that is not authentic is rejected, and the next one is answered.",
			run: answers(func(t *trial, header http.Header, body []byte) answer {
				// A server may hang up before it has read everything.
				large := append(bytes.Repeat([]byte(" "), 8<<20), body...)
				t.rejected(readable(t.try(call{method: http.MethodPost, path: e.path(t.target), header: header,
					body: large, alone: true})))
				return t.post(e.path(t.target), t.signed(t.player, body), body)
			})},
		{ID: e.name + "-deep", alone: true, Level: Should, Section: "8", Fix: "Limit the nesting depth of JSON, or use a parser that does.",
			Title: title + "of 200,000 nested lists is rejected or answered, and so is the next one.",
			run: answers(func(t *trial, header http.Header, body []byte) answer {
				const depth = 200_000
				deep := []byte(`{"deep":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "," + string(body[1:]))
				if a := t.post(e.path(t.target), t.signed(t.player, deep), deep); t.answered(a) && a.succeeded() {
					return a
				}
				return t.post(e.path(t.target), header, body)
			})},
	}
}

// readable turns a closed connection into a rejection, because a server may hang up on a
// body or a header that it will not read.
func readable(a answer) answer {
	if a.err != nil && !errors.Is(a.err, context.DeadlineExceeded) && !errors.Is(a.err, errBusy) {
		return answer{status: http.StatusRequestEntityTooLarge}
	}
	return a
}

// breakOff makes a call whose body stays incomplete, and waits until the server answers
// or hangs up. Only blanks after the JSON object are missing.
func (t *trial) breakOff(path string, body []byte) {
	if t.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.target.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.target.URL+path, http.NoBody)
	if err != nil {
		t.untried("%s", t.failure(err))
		return
	}
	defer t.ledger.called()
	conn, err := t.dial(ctx, request.URL)
	if err != nil {
		t.fail("no connection: "+t.noAnswer(err), "an answer")
		return
	}
	defer conn.Close()
	header := t.withTargetHeader(t.signed(t.player, body))
	header.Set("Content-Length", strconv.Itoa(len(body)+100))
	header.Set("Connection", "close")
	var call bytes.Buffer
	fmt.Fprintf(&call, "POST %s HTTP/1.1\r\nHost: %s\r\n", request.URL.RequestURI(), request.URL.Host)
	_ = header.Write(&call)
	fmt.Fprintf(&call, "\r\n%s", body)
	if _, err := conn.Write(call.Bytes()); err != nil {
		return // a server may hang up before it has read everything
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, conn)
}

// dial connects to the server of a URL. The connection has the deadline of ctx.
func (t *trial) dial(ctx context.Context, server *url.URL) (net.Conn, error) {
	port := "80"
	if server.Scheme == "https" {
		port = "443"
	}
	conn, err := t.judge.dial(ctx, "tcp", net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), port)))
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if server.Scheme == "https" {
		return tls.Client(conn, &tls.Config{ServerName: server.Hostname()}), nil
	}
	return conn, nil
}

// slow is a body that arrives in pieces.
type slow struct {
	rest   []byte
	pause  time.Duration
	pieces int
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	time.Sleep(s.pause)
	n := len(s.rest)
	if s.pieces > 1 {
		n = n/s.pieces + 1
		s.pieces--
	}
	n = copy(p, s.rest[:min(n, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

// stall is a body that begins and then stalls until ctx is done.
type stall struct {
	first []byte
	begun chan<- struct{}
	ctx   context.Context
}

func (s *stall) Read(p []byte) (int, error) {
	if len(s.first) > 0 {
		n := copy(p, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	s.begun <- struct{}{}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
