package ramp_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
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
	var request jsonrpc.Call
	_ = json.NewDecoder(r.Body).Decode(&request)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x1"}`, request.ID)
}

// The default transport keeps two idle connections per host and closes the
// others after each call.
func TestConnectionsAreReusedUnderLoad(t *testing.T) {
	const goroutines, calls = 64, 50
	for _, name := range []string{"RPC", "Client"} {
		t.Run(name, func(t *testing.T) {
			url, accepted := countingServer(t, answerAny)
			call := clientsOf(t, url, ramp.ClientConfig{})[name]
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
	client := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: url, Timeout: time.Minute,
		HTTPClient: &http.Client{Transport: pool}}))(t)
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
	listener := must.Get(loopback.Listen())(t)
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
	for _, name := range []string{"RPC", "Client"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := newFreezer(t, server.Listener.Addr().String())
			pool := ramp.NewPool().(*http.Transport)
			pool.HTTP2.SendPingTimeout /= 4 // what is not set stays so
			pool.HTTP2.PingTimeout /= 4
			pool.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			call := clientsOf(t, "https://"+proxy.Addr().String(),
				ramp.ClientConfig{HTTPClient: &http.Client{Transport: pool}, Timeout: 3 * time.Second,
					Retries: -1})[name]
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
	address := must.Get(url.Parse(proxy.URL))(t)
	settings := http.DefaultTransport.(*http.Transport).Clone()
	settings.Proxy = http.ProxyURL(address)
	withDefaultTransport(t, settings)

	client := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "http://node.internal:8545", Retries: -1}))(t)
	must.Get(client.BlockNumber(t.Context()))(t)
	assert.Equal(t, "node.internal:8545", proxy.request().Host)
	assert.Zero(t, settings.MaxIdleConnsPerHost, "the program's transport is not changed")
}

// net/http quotes what is not HTTP.
func TestThePeerCannotMakeAnErrorLong(t *testing.T) {
	listener := must.Get(loopback.Listen())(t)
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
	node := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: address, Retries: -1, PollInterval: time.Millisecond}))(t)
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: address, Key: testKey(t), Retries: -1}))(t)
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
	client := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com"}))(t)
	must.Get(client.BlockNumber(t.Context()))(t)
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

// clientsOf are calls of an RPC and of a Client with the same settings.
func clientsOf(t *testing.T, address string, c ramp.ClientConfig) map[string]func() error {
	t.Helper()
	node := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: address, HTTPClient: c.HTTPClient, Timeout: c.Timeout,
		Retries: c.Retries}))(t)
	node.SetLimit(1 << 20) // as the other has
	c.URL, c.Key = address, testKey(t)
	client := must.Get(ramp.NewClient(c))(t)
	return map[string]func() error{
		"RPC":    func() error { _, err := node.BlockNumber(t.Context()); return err },
		"Batch":  func() error { return node.Batch(t.Context(), []ramp.BatchCall{{Method: "eth_blockNumber"}}) },
		"Client": func() error { _, err := client.Initialize(t.Context(), testRequest()); return err },
	}
}

// bothClients are the calls of clients on a network in memory.
func bothClients(t *testing.T, network http.RoundTripper) map[string]func() error {
	t.Helper()
	return clientsOf(t, "https://api.example.com", ramp.ClientConfig{HTTPClient: &http.Client{Transport: network}})
}

// A body that is not closed keeps its connection.
func TestEveryBodyIsClosed(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		body   string
		ends   error // io.EOF by default
	}{
		"a success":   {200, `{"id":1,"result":"0x10"}`, nil},
		"a failure":   {404, "nothing here", nil},
		"too large":   {200, strings.Repeat(" ", 2<<20), nil},
		"broken off":  {200, "", io.ErrUnexpectedEOF},
		"no JSON-RPC": {200, "<html>", nil},
	} {
		inBubble(t, name, func(t *testing.T) {
			sent, closed := 0, 0
			transport := roundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				body := io.MultiReader(strings.NewReader(answer.body), iotest.ErrReader(cmp.Or(answer.ends, io.EOF)))
				return &http.Response{StatusCode: answer.status, Header: http.Header{},
					Body: closeFunc{body, func() { closed++ }}}, nil
			})
			for client, call := range bothClients(t, transport) {
				sent, closed = 0, 0
				err := call()
				assert.NotZero(t, sent)
				assert.Equal(t, sent, closed, client)
				if name == "too large" {
					assert.ErrorContains(t, err, "the answer is too large", client)
					assert.Equal(t, 1, sent, "it would be as large the next time")
				}
			}
		})
	}
}

// echoes are answers of a service, of a node and of proxies that quote the call.
func echoes(t testing.TB) map[string]func(code int, e string) (*http.Response, error) {
	saying := func(template string) func(int, string) (*http.Response, error) {
		return func(code int, e string) (*http.Response, error) {
			body := strings.NewReplacer("QUOTED", quoted(e), "TEXT", e, "REASON",
				encoded(t, "0x08c379a0", "string", e)).Replace(template)
			return status(code, nil, body)(nil)
		}
	}
	redirect := func(to string) func(int, string) (*http.Response, error) {
		return func(_ int, e string) (*http.Response, error) {
			return status(302, map[string]string{"Location": to + e}, e)(nil)
		}
	}
	return map[string]func(code int, e string) (*http.Response, error){
		"the message":                 saying(`{"code":500,"message":QUOTED,"data":"invalid mac"}`),
		"the data":                    saying(`{"code":500,"message":"Internal Server Error","data":QUOTED}`),
		"the data of an object":       saying(`{"code":500,"message":"OK","data":{"text":QUOTED}}`),
		"a result":                    saying(`{"id":1,"result":QUOTED}`),
		"an error":                    saying(`{"id":null,"error":{"code":1,"message":QUOTED,"data":QUOTED}}`),
		"a message that is an object": saying(`{"id":null,"error":{"code":1,"message":{"text":QUOTED}}}`),
		"an error that is text":       saying(`{"id":null,"error":QUOTED}`),
		"a reason": saying(
			`{"id":null,"error":{"code":3,"message":"execution reverted","data":"REASON"}}`),
		"JSON of a proxy":      saying(`{"error_description":QUOTED}`),
		"JSON that is cut":     saying(`{"data":QUOTED`),
		"text":                 saying("cannot read TEXT\nTEXT"),
		"text across the cut":  saying(strings.Repeat("x", 390) + "TEXT"),
		"a redirect":           redirect("/"),
		"a redirect to no URL": redirect("http://[::1]:x/"),
		"the content type": func(code int, e string) (*http.Response, error) {
			return status(code, map[string]string{"Content-Type": "text/" + e}, "x")(nil)
		},
		"an error of the transport": func(_ int, e string) (*http.Response, error) {
			return nil, fmt.Errorf("malformed HTTP response %q", e)
		},
		"an error while reading": func(code int, e string) (*http.Response, error) {
			body := iotest.ErrReader(fmt.Errorf("malformed trailer %s", e))
			return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(body)}, nil
		},
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a string can always be written
	return string(text)
}

// quoting is a result whose error quotes what it cannot read.
type quoting struct{}

func (*quoting) UnmarshalJSON(b []byte) error { return fmt.Errorf("cannot read %s", b) }

// inJSON returns what is written of a value, and why it is not.
func inJSON(v any) string {
	text, err := json.Marshal(v)
	return fmt.Sprint(string(text), err)
}

// shown returns what an error shows: itself and each wrapped one, as text and as fields.
func shown(err error) string {
	var b strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&b, "%v|%+v|%#v|%q\n", e, e, e, e)
		switch failure := e.(type) {
		case *ramp.APIError:
			fmt.Fprintf(&b, "%+v|%#v|%s\n", *failure, *failure, inJSON(failure))
		case *ramp.HTTPError:
			fmt.Fprintf(&b, "%s|%s\n", failure.Excerpt, inJSON(failure))
		case *ramp.RPCError:
			b.WriteString(failure.Message) // and not its data, which are for programs
		}
	}
	return b.String()
}

// Wherever an answer quotes the call, the text is shown without the secrets that we hold: the
// key, the signature of the call, and what is secret of a URL and of headers.
func TestAnAnswerThatQuotesTheCallIsShownWithoutSecrets(t *testing.T) {
	const text, binary = `dGhl/a2V5"&LW9mLXRoZS1jb25zb2xl`, "dGhlLWtleS1vZi10aGUtY29uc29sZQ"
	const user, password, pathKey, queryKey, headerKey = "studio-user", "pass/word=", "v3-path&key-of-<studio>",
		"query+key", "header/key"
	textKey, binaryKey := must.Get(ramp.TextKey(text))(t), must.Get(ramp.Base64URLKey(binary))(t)
	type calls func(*testing.T, *http.Client, *slog.Logger) (client any, errs []error)
	service := func(key ramp.HMACKey) calls {
		return func(t *testing.T, network *http.Client, log *slog.Logger) (any, []error) {
			client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com/key-of-the-gateway",
				Key: key, HTTPClient: network, Retries: 1, Logger: log}))(t)
			_, err := client.Initialize(t.Context(), testRequest())
			return client, []error{err}
		}
	}
	node := func(t *testing.T, network *http.Client, log *slog.Logger) (any, []error) {
		client := must.Get(
			ramp.NewRPC(ramp.RPCConfig{URL: "https://studio-user:pass%2Fword=@node.example.com/api/" +
				url.PathEscape(pathKey) + "?apikey=query%2Bkey&v=2",
				Header: http.Header{"X-Api-Key": {headerKey}}, HTTPClient: network, Retries: 1, Logger: log}))(t)
		custom := client.Call(t.Context(), new(quoting), "eth_chainId")
		_, read := client.BlockNumber(t.Context())
		batch := []ramp.BatchCall{{Method: "eth_blockNumber"}}
		whole := client.Batch(t.Context(), batch)
		assert.Equal(t, "https://node.example.com", client.String())
		return client, []error{custom, read, whole, batch[0].Err}
	}
	for name, c := range map[string]struct {
		secrets []string
		calls   calls
	}{
		"a text key": {[]string{text, "key-of-the-gateway"}, service(textKey)},
		"a previous key": {[]string{"the-previous-key"},
			service(textKey.WithPrevious(must.Get(ramp.TextKey("the-previous-key"))(t)))},
		"a binary key": {[]string{binary, "the-key-of-the-console"}, service(binaryKey)},
		"a node": {[]string{user, password, pathKey, queryKey, headerKey,
			"c3R1ZGlvLXVzZXI6cGFzcy93b3JkPQ=="}, node},
	} {
		for place, echo := range echoes(t) {
			for _, code := range []int{200, 404, 503} {
				inBubble(t, fmt.Sprintf("%s/%s/%d", name, place, code), func(t *testing.T) {
					var hidden []string
					var log strings.Builder
					network := roundTripper(func(r *http.Request) (*http.Response, error) {
						if name == "a node" {
							gotUser, gotPassword, _ := r.BasicAuth()
							assert.Equal(t, []string{user, password, "/api/" + pathKey, queryKey, headerKey},
								[]string{gotUser, gotPassword, r.URL.Path, r.URL.Query().Get("apikey"),
									r.Header.Get("X-Api-Key")})
						}
						hidden = nil
						for _, secret := range append([]string{r.Header.Get(ramp.HeaderHMAC)}, c.secrets...) {
							if secret != "" {
								hidden = append(hidden, secret, url.QueryEscape(secret))
							}
						}
						return echo(code, strings.Join(hidden, " "))
					})
					client, errs := c.calls(t, &http.Client{Transport: network},
						slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
					require.Error(t, errs[0])
					all := log.String() + fmt.Sprintf("%v|%+v|%#v", client, client, client)
					for _, err := range errs {
						if err != nil {
							assert.LessOrEqual(t, len(err.Error()), 500)
							assert.NotContains(t, err.Error(), "\n")
							all += shown(err)
						}
					}
					for _, secret := range hidden {
						assert.NotContains(t, all, secret)
						assert.NotContains(t, all, strings.Trim(quoted(secret), `"`))
					}
					assert.True(t, place != "text" || strings.Contains(errs[0].Error(), "[redacted]"),
						"the rest is shown")
				})
			}
		}
	}
}

// Whatever is answered, there is a value or an error, and no panic.
func FuzzAnswers(f *testing.F) {
	seed(f, "[27].*.json", func(body []byte) { f.Add(200, string(body)) })
	for _, body := range []string{
		okAnswer, "", "null", "{}", "[]", "<html>", `{"code":200,"data":{"uuid":7}}`, `{"id":1,"result":"0x10"}`,
		`{"id":1,"result":null}`, `{"id":1,"error":"x"}`,
		`{"id":1,"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}`, `[{"id":1,"result":"0x1"}]`,
		`{"id":null,"error":{"code":1e9,"message":{},"data":{"data":{"data":"0x4e487b71"}}}}`,
		`[{"id":18446744073709551615}]`,
	} {
		for _, code := range []int{200, 413, 429, 500} {
			f.Add(code, body)
		}
	}
	f.Fuzz(func(t *testing.T, code int, body string) {
		network := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		check := func(err error) {
			if err != nil {
				assert.LessOrEqual(t, len(err.Error()), 500)
				assert.NotContains(t, err.Error(), "\n")
				assert.NotContains(t, err.Error(), "secret-key-of-16")
			}
		}
		service := must.Get(ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com/secret-key-of-16",
			Key: testKey(t), HTTPClient: &http.Client{Transport: network}, Retries: -1}))(t)
		got, err := service.Initialize(t.Context(), testRequest())
		check(err)
		assert.Equal(t, err == nil, got != nil && got.UUID != uuid.Nil && code/100 == 2)

		node := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com/secret-key-of-16",
			HTTPClient: &http.Client{Transport: network}, Retries: -1}))(t)
		_, err = node.BlockNumber(t.Context())
		check(err)
		calls := []ramp.BatchCall{{Method: "eth_call", Into: new(hexutil.Bytes)},
			{Method: "eth_getLogs", Into: new([]ramp.Log)}}
		err = node.Batch(t.Context(), calls)
		check(err)
		for _, call := range calls {
			check(call.Err)
			assert.True(t, err == nil || call.Err != nil)
		}
	})
}

// A name moves to another address, and the old one answers 503 on a connection that is kept: the
// next attempt dials anew. Connections of the caller stay.
func TestAnAttemptAfterAFailureDialsAnew(t *testing.T) {
	for name, status := range map[string]int{"unavailable": 503, "rate-limited": 429} {
		t.Run(name, func(t *testing.T) {
			var moved atomic.Bool
			left, dials := countingServer(t, func(w http.ResponseWriter, r *http.Request) {
				if moved.Load() {
					w.WriteHeader(status)
					return
				}
				answerAny(w, r)
			})
			reached, _ := countingServer(t, answerAny)
			settings := http.DefaultTransport.(*http.Transport).Clone()
			settings.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				at := left
				if moved.Load() {
					at = reached
				}
				return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(at, "http://"))
			}
			for _, own := range []bool{true, false} {
				var client *http.Client
				if withDefaultTransport(t, settings.Clone()); !own {
					client = &http.Client{Transport: settings.Clone()}
				}
				rpc := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "http://node", HTTPClient: client, Retries: 1}))(t)
				service := must.Get(ramp.NewClient(ramp.ClientConfig{
					URL: "http://service", Key: testKey(t), HTTPClient: client, Retries: 1}))(t)
				for what, call := range map[string]func() error{
					"RPC":        func() error { _, err := rpc.BlockNumber(t.Context()); return err },
					"Initialize": func() error { _, err := service.Initialize(t.Context(), testRequest()); return err },
				} {
					moved.Store(false)
					require.NoError(t, call(), what)
					moved.Store(true)
					if err := call(); own && status == 503 {
						assert.NoError(t, err, what)
					} else {
						assert.Error(t, err, "%s keeps its connections", what)
					}
				}
			}
			assert.NotZero(t, dials.Load())
		})
	}
}
