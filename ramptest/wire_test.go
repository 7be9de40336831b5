package ramptest_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/loopback"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// What a handler sees must be the same over a network and in memory.
func TestAHandlerInMemorySeesWhatAServerSees(t *testing.T) {
	type seen struct {
		method, uri, address, proto string
		host, secure                bool // whether there is one, and whether it came over TLS
		header                      http.Header
		length                      int64
	}
	var got []seen
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header := r.Header.Clone()
		for _, own := range []string{"Accept-Encoding", "User-Agent", "Content-Length"} { // of the transport
			header.Del(own)
		}
		header.Del("X-Hmac-Signature") // of another UUID
		got = append(got,
			seen{r.Method, r.RequestURI, r.URL.String(), r.Proto, r.Host != "", r.TLS != nil, header,
				min(r.ContentLength, 1)})
		assert.EqualValues(t, r.ContentLength, len(body))
		w.WriteHeader(http.StatusTeapot)
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	key, _ := console(t)
	for _, config := range []ramptest.Config{{Game: server.URL}, {Handler: handler}} {
		config.Key, config.Validator, config.Audit = key, [20]byte{1}, ramptest.AuditOff
		service := ramptest.Start(t, config)
		started := must.Get(clientOf(t, service, key).Initialize(t.Context(), request()))(t)
		_, err := service.Assets(t.Context(), session1)
		assert.ErrorContains(t, err, "HTTP 418")
		_, err = service.Mint(t.Context(), started.UUID, session1, ramp.NewAmount(1))
		assert.ErrorContains(t, err, "HTTP 418")
	}
	require.Len(t, got, 4)
	assert.Equal(t, got[:2], got[2:])
}

// In memory, a panic is an error, and the record has the stack, as the log of a server.
func TestAPanicOfAHandlerIsAnError(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1") // as in a program that is built without a go.mod
	for _, test := range []struct {
		name   string
		handle func()
		want   string
		stack  bool
	}{
		{"a panic", func() { panic("no such table") }, "the handler panicked: no such table", true},
		{"a connection that is dropped on purpose", func() { panic(http.ErrAbortHandler) }, "abort Handler", false},
		{"panic(nil), which recover does not tell", func() { panic(nil) }, "the handler panicked: <nil>", true},
		{"a test that fails", runtime.Goexit, "the handler ended its goroutine", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCounter(t, before(func(_ http.ResponseWriter, _ *http.Request, _ http.Handler) {
				test.handle()
			}))
			_, err := c.service.Assets(t.Context(), c.session)
			assert.ErrorContains(t, err, test.want)
			assert.Equal(t, test.stack, strings.Contains(c.service.Timeline(), "wire_test.go"))
		})
	}
}

func TestAPlayerHasAWallet(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t)
	assert.Equal(t, order.Request.UserAddress, c.service.Wallet(c.session).Hex())
	assert.NotEqual(t, c.service.Wallet(c.session), c.service.Wallet(ramp.Session{ID: "session-2"}))

	own := must.Get(ramp.NewKeySigner("0x" + strings.Repeat("42", 32)))(t)
	c = newCounter(t, func(c *ramptest.Config) {
		c.Wallet = func(s ramp.Session) *ramp.Signer {
			if s.ID == "session-1" {
				return own
			}
			return nil
		}
	})
	assert.Equal(t, own.Address().Hex(), c.mint(t).Request.UserAddress)
	assert.Equal(t, own.Address(), c.service.Wallet(c.session))
	assert.Zero(t, c.service.Wallet(ramp.Session{ID: "session-2"}))
	_, err := c.service.Mint(t.Context(), c.initialize(t), ramp.Session{ID: "session-2"}, ramp.NewAmount(10))
	assert.ErrorContains(t, err, "Config.Wallet returned nil")
}

func TestTheAddressOfAService(t *testing.T) {
	everywhere := func() net.Listener {
		here := must.Get(loopback.Listen())(t)
		defer here.Close()
		if here.Addr().(*net.TCPAddr).IP.To4() != nil {
			return must.Get(net.Listen("tcp4", "0.0.0.0:0"))(t)
		}
		return must.Get(net.Listen("tcp6", "[::]:0"))(t)
	}
	for _, test := range []struct {
		name   string
		config func(*ramptest.Config)
		want   string
	}{
		{"in memory", func(*ramptest.Config) {}, `^https://memory\.invalid$`},
		{"on every address of it", func(c *ramptest.Config) { c.Standalone.Listener = everywhere() },
			`^http://(127\.0\.0\.1|\[::1\]):\d+$`},
		{"on this machine", func(c *ramptest.Config) { c.Standalone.Listener = must.Get(loopback.Listen())(t) },
			`^http://(127\.0\.0\.1|\[::1\]):\d+$`},
		{"as others reach it", func(c *ramptest.Config) { c.Standalone.PublicURL = "https://desk.example/" },
			`^https://desk\.example$`},
		{"as others reach it over a network", func(c *ramptest.Config) {
			c.Standalone.Listener, c.Standalone.PublicURL = everywhere(), "https://desk.example"
		}, `^https://desk\.example$`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCounter(t, test.config)
			assert.Regexp(t, test.want, c.service.URL())
			assert.Equal(t, c.service.URL()+"/rpc/testnet", c.service.RPCURL(ramp.Testnet))
		})
	}
}

// A proxy of the program, or a double of its network, does not lead to the service.
func TestTheClientOfAServiceUsesNoTransportOfTheProgram(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	for name, config := range map[string]func(*ramptest.Config){
		"in memory":     func(*ramptest.Config) {},
		"on a listener": func(c *ramptest.Config) { c.Standalone.Listener = must.Get(loopback.Listen())(t) },
	} {
		http.DefaultTransport = broken{}
		c := newCounter(t, config)
		_, err := c.client.Initialize(t.Context(), request())
		assert.NoError(t, err, name)
		_, err = nodeOf(t, c.service).BlockNumber(t.Context())
		assert.NoError(t, err, name)
	}
}

// broken is a transport of the program.
type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no network") }

func TestAServiceOfItsOwnClientLeavesNoConnection(t *testing.T) {
	closed := make(chan struct{})
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	server.Start()
	defer server.Close()
	key, _ := console(t)
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: [20]byte{1}, Game: server.URL})
	_, err := service.Assets(t.Context(), ramp.Session{ID: "session-1"})
	assert.ErrorContains(t, err, "HTTP 404")
	service.Close()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection stayed open")
	}
}

// Each direction has a row of trades. No code of the service may take anything else for a
// mint or a burn.
func TestEveryDirectionCanBeOrdered(t *testing.T) {
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		c := newCounter(t)
		status, order := c.control(t, "POST", "/control/orders", `{"do":"`+string(d)+`",`+player+`,`+trading+`}`)
		require.Equal(t, 200, status, "trade.go has no row for a %s: %s", d, order.problem())
		assert.Equal(t, string(d), order.Do)
		c.service.Advance(time.Minute)
		_, order = c.control(t, "GET", "/control/orders/"+order.UUID.String(), "")
		assert.EqualValues(t, "done", order.State, string(d))
		assert.Len(t, order.Moved, 1, string(d))
	}
	c := newCounter(t)
	order := c.mint(t)
	order.Request.Intent.Type = "swap"
	assert.EqualError(t, c.service.Resend(t.Context(), order), "ramptest: the order has no intent of a mint or burn")
	assert.Equal(t, "an order without an intent", order.String())
	order.Request.Intent.Type = ramp.Assemble // for Start, which judges it
}

func TestSwitchesOfTheIntent(t *testing.T) {
	half := must.Get(ramp.ParseAmount("0.5"))(t)
	c := newCounter(t, func(c *ramptest.Config) {
		c.PerOrder, c.BurnMethod, c.TokenType = false, ramp.MethodBurn, "erc20"
		c.Digest = func(*ramp.ValidateRequest) ramp.Digest { return ramp.Digest{31: 1} }
	})
	order := must.Get(c.service.Burn(t.Context(), c.initialize(t), c.session, half))(t)
	assert.Equal(t, ramp.Intent{
		Method: "burn", Type: "disassemble", TargetCandidate: []byte("{}"),
		From: []ramp.IntentAsset{{Type: "erc20", ID: token, Amount: half}},
		To:   []ramp.IntentAsset{{Type: "asset", ID: "item_gold", Amount: ramp.NewAmount(50)}},
	}, order.Request.Intent)
	assert.Equal(t, ramp.Digest{31: 1}, order.Request.Digest)
}
