package record

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// witness gets the calls that pass.
type witness interface {
	begin(kind) *call // nil if the call is not to be recorded
	end(*call)
	now() time.Time
}

// proxy returns a handler that passes calls on to a server, and records those that have a kind. If
// foreign, the server knows itself by the name of its address, and a proxy of the environment may
// lead to it.
func proxy(by witness, to *url.URL, foreign bool, kindOf func(*http.Request) kind) http.Handler {
	transport := &http.Transport{
		DisableCompression: true, // the transport would ask for it
		// A kept connection may be closed at the moment at which a call is sent. The service would
		// have to repeat a call that it need not repeat without the recorder.
		DisableKeepAlives: true,
	}
	if foreign {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		var c *call
		if k := kindOf(in); k != "" {
			c = by.begin(k)
		}
		asked, answered := copied{request: true}, copied{}
		if c != nil {
			c.method, c.path, c.query = in.Method, in.URL.Path, in.URL.RawQuery != ""
			c.header, c.transfer = in.Header.Clone(), in.TransferEncoding
			if in.Body != nil && in.Body != http.NoBody {
				in.Body = asked.of(in.Body)
			}
			defer func() { // also if the call is aborted
				c.body, c.size = asked.bytes()
				c.answer, c.answerSize = answered.bytes()
				by.end(c)
			}()
		}
		(&httputil.ReverseProxy{
			Transport:     transport,
			FlushInterval: -1, // pass on at once
			ErrorLog:      log.New(io.Discard, "", 0),
			Rewrite: func(p *httputil.ProxyRequest) {
				p.Out.URL.Scheme, p.Out.URL.Host = to.Scheme, to.Host
				p.Out.URL.RawQuery = p.In.URL.RawQuery // also what cannot be parsed
				if p.Out.Host = p.In.Host; foreign {
					p.Out.Host = to.Host
				}
				for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
					"X-Forwarded-Proto"} {
					if values, ok := p.In.Header[name]; ok {
						p.Out.Header[name] = values
					}
				}
			},
			ModifyResponse: func(answer *http.Response) error {
				if c != nil && answer.StatusCode != http.StatusSwitchingProtocols {
					c.ended, c.status, c.answerHeader = by.now(), answer.StatusCode, answer.Header.Clone()
					asked.drain(w)
					answer.Body = answered.of(answer.Body)
				}
				return nil
			},
			// An answer of ours would be taken for one of the server, and a result that gets any but 500
			// is not repeated.
			ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
				if c != nil {
					c.failure = "no answer"
					if in.Context().Err() != nil {
						c.failure = "the caller closed the connection before there was an answer"
					}
				}
				panic(http.ErrAbortHandler)
			},
		}).ServeHTTP(w, in)
	})
}

// copied keeps the beginning of a body that passes.
type copied struct {
	request bool

	mu    sync.Mutex
	body  io.ReadCloser
	kept  bytes.Buffer
	total int64
}

func (c *copied) of(body io.ReadCloser) io.ReadCloser {
	c.body = body
	return copying{c}
}

// bytes returns the body, which is empty if it is too long to be recorded.
func (c *copied) bytes() ([]byte, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total > maxBody {
		return nil, c.total
	}
	return bytes.Clone(c.kept.Bytes()), c.total
}

// drain reads what a server did not read that answers early. The server of package http would
// discard it before it writes the answer.
func (c *copied) drain(w http.ResponseWriter) {
	connection := http.NewResponseController(w)
	if c.body == nil || connection.SetReadDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(copying{c}, maxBody)) // what is missing shows in the body
	_ = connection.SetReadDeadline(time.Time{})                     // it was possible before
}

// copying reads a body for both. The transport may read a request's body longer than its call lasts.
type copying struct{ *copied }

func (c copying) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.body.Read(b)
	c.total += int64(n)
	if c.total <= maxBody {
		c.kept.Write(b[:n])
	}
	return n, err
}

// Close closes an answer. The body of a request stays open until its server closes it.
func (c copying) Close() error {
	if c.request {
		return nil
	}
	return c.body.Close()
}
