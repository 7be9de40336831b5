package ramp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// countingServer is a server that counts the connections it accepts.
func countingServer(t *testing.T, answer http.HandlerFunc) (url string, accepted *atomic.Int64) {
	t.Helper()
	accepted = new(atomic.Int64)
	server := httptest.NewUnstartedServer(answer)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, accepted
}

// answerAny answers a call of an RPC or of a Client.
func answerAny(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/initialize") {
		_, _ = io.WriteString(w, okAnswer)
		return
	}
	var request chainRequest
	_ = json.NewDecoder(r.Body).Decode(&request)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":"0x1"}`, request.ID)
}

// The default transport keeps two idle connections per host and closes the
// others after each call.
func TestConnectionsAreReusedUnderLoad(t *testing.T) {
	const goroutines, calls = 64, 50
	for name, makeCaller := range map[string]func(url string) func() error{
		"RPC": func(url string) func() error {
			client := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: url}))
			return func() error { _, err := client.BlockNumber(t.Context()); return err }
		},
		"Client": func(url string) func() error {
			client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: url, Key: testKey()}))
			return func() error { _, err := client.Initialize(t.Context(), testRequest()); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, accepted := countingServer(t, answerAny)
			call := makeCaller(url)
			var all sync.WaitGroup
			for range goroutines {
				all.Go(func() {
					for range calls {
						assert.NoError(t, call())
					}
				})
			}
			all.Wait()
			t.Logf("%d connections for %d calls", accepted.Load(), goroutines*calls)
			// A call that finds no idle connection dials, and may be handed one
			// that another call returns first, so a few more than the callers.
			assert.LessOrEqual(t, accepted.Load(), int64(2*goroutines))
		})
	}
}

// More callers than connections wait for one.
func TestManyCallersOpenNoMoreConnectionsThanThePoolHas(t *testing.T) {
	const goroutines = 2_000
	url, _ := countingServer(t, answerAny)
	var open, most atomic.Int64
	pool := ramp.NewPool().(*http.Transport)
	pool.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		now := open.Add(1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { open.Add(-1) })}, nil
	}
	client := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: url, Timeout: time.Minute, HTTPClient: &http.Client{Transport: pool}}))
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			_, err := client.BlockNumber(t.Context())
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most.Load(), int64(100))
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error { c.closed(); return c.Conn.Close() }

// freezer forwards connections until it freezes them: it then swallows what they
// send, as a NAT does that has forgotten them.
type freezer struct {
	net.Listener
	mu     sync.Mutex
	frozen []*atomic.Bool
}

func newFreezer(t *testing.T, to string) *freezer {
	t.Helper()
	listener := ramp.Must(net.Listen("tcp", "127.0.0.1:0"))
	f := &freezer{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				return
			}
			frozen := new(atomic.Bool)
			f.mu.Lock()
			f.frozen = append(f.frozen, frozen)
			f.mu.Unlock()
			forward := func(from, to net.Conn) {
				buffer := make([]byte, 32<<10)
				for {
					n, err := from.Read(buffer)
					if err != nil {
						_ = to.Close()
						return
					}
					if !frozen.Load() {
						_, _ = to.Write(buffer[:n])
					}
				}
			}
			go forward(client, server)
			go forward(server, client)
		}
	}()
	return f
}

// freeze freezes all connections that exist, and returns how many.
func (f *freezer) freeze() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, frozen := range f.frozen {
		frozen.Store(true)
	}
	return len(f.frozen)
}

// An HTTP/2 connection that dies without a word must not be used for every later
// call.
func TestAFrozenConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 2, r.ProtoMajor)
		answerAny(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	for name, makeCaller := range map[string]func(url string, h *http.Client) func() error{
		"RPC": func(url string, h *http.Client) func() error {
			client := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: url, HTTPClient: h, Timeout: 3 * time.Second, Retries: -1}))
			return func() error { _, err := client.BlockNumber(t.Context()); return err }
		},
		"Client": func(url string, h *http.Client) func() error {
			client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: url, Key: testKey(), HTTPClient: h, Timeout: 3 * time.Second, Retries: -1}))
			return func() error { _, err := client.Initialize(t.Context(), testRequest()); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := newFreezer(t, server.Listener.Addr().String())
			pool := ramp.NewPool().(*http.Transport)
			pool.HTTP2.SendPingTimeout /= 4 // what is not set stays so
			pool.HTTP2.PingTimeout /= 4
			pool.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			call := makeCaller("https://"+proxy.Addr().String(), &http.Client{Transport: pool})
			require.NoError(t, call())
			require.NoError(t, call())
			require.Equal(t, 1, proxy.freeze())
			assert.Error(t, call(), "the call that finds it frozen")
			assert.NoError(t, call(), "the next one")
		})
	}
}

// withDefaultTransport replaces http.DefaultTransport for a test.
func withDefaultTransport(t *testing.T, transport http.RoundTripper) {
	t.Helper()
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	http.DefaultTransport = transport
}

func TestThePoolHasTheSettingsOfTheDefaultTransport(t *testing.T) {
	proxy := newNode(t, says(200, result(`"0x10"`)))
	address := ramp.Must(url.Parse(proxy.URL))
	settings := http.DefaultTransport.(*http.Transport).Clone()
	settings.Proxy = http.ProxyURL(address)
	withDefaultTransport(t, settings)

	client := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: "http://node.internal:8545", Retries: -1}))
	ramp.Must(client.BlockNumber(t.Context()))
	assert.Equal(t, "node.internal:8545", proxy.request().Host)
	assert.Zero(t, settings.MaxIdleConnsPerHost, "the program's transport is not changed")
}

// The text of an error fits into one line of a log, and shows as much as fits.
func TestAnErrorIsOneLineOfLimitedLength(t *testing.T) {
	for body, want := range map[string]string{
		"<h1>\r\n\tBad\u00a0gateway\u2028</h1>\n": "<h1> Bad gateway </h1>",
		"\x1b[31mred\x1b[0m\u200b\x00":            "[31mred [0m",
		"not \xff text":                           "not text",
		strings.Repeat("x", 400):                  strings.Repeat("x", 400),
		strings.Repeat("x", 300_000):              strings.Repeat("x", 397) + "…",
		strings.Repeat("영", 200):                  strings.Repeat("영", 132) + "…",
	} {
		n := newNode(t, says(404, body))
		_, err := n.client().BlockNumber(t.Context())
		failure := as[*ramp.HTTPError](t, err)
		assert.Equal(t, want, failure.Excerpt)
		assert.EqualError(t, err, `ramp: eth_blockNumber: HTTP 404, not JSON-RPC: "`+want+`"`)

		rejected := ramp.Must(json.Marshal(map[string]any{"id": nil, "error": map[string]any{"code": 1, "message": body}}))
		n = newNode(t, says(200, string(rejected)))
		_, err = n.client().BlockNumber(t.Context())
		assert.EqualError(t, err, "ramp: eth_blockNumber: JSON-RPC error 1: "+want)
	}
}

// net/http quotes what is not HTTP.
func TestThePeerCannotMakeAnErrorLong(t *testing.T) {
	listener := ramp.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for requests := 1; ; requests++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			if requests == 2 {
				cancel() // the wait has read the first answer
			}
			_, _ = io.WriteString(conn, strings.Repeat("\t\x1b\"x ", 60_000)+"\r\n\r\n")
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	address := "http://" + listener.Addr().String()
	node := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: address, Retries: -1, PollInterval: time.Millisecond}))
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: address, Key: testKey(), Retries: -1}))
	_, wait := node.WaitReceipt(ctx, common.MaxHash, 1)
	_, read := node.BlockNumber(t.Context())
	calls := []ramp.BatchCall{{Method: "eth_blockNumber"}, {Method: "eth_blockNumber"}}
	batch := node.Batch(t.Context(), calls)
	_, initialize := client.Initialize(t.Context(), testRequest())
	for _, err := range []error{read, batch, calls[1].Err, wait, initialize} {
		require.Error(t, err)
		assert.LessOrEqual(t, len(err.Error()), 500)
		assert.NotContains(t, err.Error(), "\t")
		assert.ErrorContains(t, err, "malformed HTTP")
	}
	assert.ErrorIs(t, wait, context.Canceled)
}

// A program may trace all of its calls by replacing the default transport.
func TestAReplacedDefaultTransportIsUsed(t *testing.T) {
	s := &script{steps: steps{status(200, nil, `{"id":1,"result":"0x10"}`)}}
	withDefaultTransport(t, s)
	client := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com"}))
	ramp.Must(client.BlockNumber(t.Context()))
	assert.Len(t, s.sent, 1)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closeFunc is a body that calls a function when it is closed.
type closeFunc struct {
	io.Reader
	closed func()
}

func (c closeFunc) Close() error { c.closed(); return nil }

// bothClients are calls of an RPC and of a Client over a transport.
func bothClients(t *testing.T, transport http.RoundTripper, answerBytes int64) map[string]func() error {
	t.Helper()
	node := rpcOver(transport, ramp.RPCConfig{})
	node.SetLimit(answerBytes)
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(), HTTPClient: &http.Client{Transport: transport}}))
	return map[string]func() error{
		"RPC":    func() error { _, err := node.BlockNumber(t.Context()); return err },
		"Batch":  func() error { return node.Batch(t.Context(), []ramp.BatchCall{{Method: "eth_blockNumber"}}) },
		"Client": func() error { _, err := client.Initialize(t.Context(), testRequest()); return err },
	}
}

// A body that is not closed keeps its connection.
func TestEveryBodyIsClosed(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		body   io.Reader
	}{
		"a success":   {200, strings.NewReader(`{"id":1,"result":"0x10"}`)},
		"a failure":   {404, strings.NewReader("nothing here")},
		"too large":   {200, strings.NewReader(strings.Repeat(" ", 2<<20))},
		"broken off":  {200, iotest.ErrReader(io.ErrUnexpectedEOF)},
		"no JSON-RPC": {200, strings.NewReader("<html>")},
	} {
		inBubble(t, name, func(t *testing.T) {
			sent, closed := 0, 0
			transport := roundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				return &http.Response{StatusCode: answer.status, Header: http.Header{}, Body: closeFunc{answer.body, func() { closed++ }}}, nil
			})
			for client, call := range bothClients(t, transport, 1<<20) {
				_ = call()
				assert.NotZero(t, sent)
				assert.Equal(t, sent, closed, client)
			}
		})
	}
}

// The answer would be as large the next time.
func TestAnAnswerThatIsTooLargeIsNotAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		transport := roundTripper(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.Repeat(" ", 2<<20)))}, nil
		})
		for client, call := range bothClients(t, transport, 1<<20) {
			sent = 0
			assert.ErrorContains(t, call(), "the answer is too large", client)
			assert.Equal(t, 1, sent, client)
		}
	})
}
