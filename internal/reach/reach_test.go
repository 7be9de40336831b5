package reach_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go/internal/reach"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// Each error is that of a real call.
func TestWhyACallDidNotArrive(t *testing.T) {
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	plain, secure := httptest.NewServer(answers), httptest.NewUnstartedServer(answers)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // that a client trusts no certificate
	secure.StartTLS()
	cuts := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "{}")
	}))
	resets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil && c.(*net.TCPConn).SetLinger(0) == nil { // the peer is told by a reset
			c.Close()
		}
	}))
	closed := httptest.NewServer(answers)
	closed.Close()
	for _, server := range []*httptest.Server{plain, secure, cuts, half, resets} {
		t.Cleanup(server.Close)
	}
	direct, trusting := &http.Client{Transport: &http.Transport{}}, secure.Client()
	trusting.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", secure.Listener.Addr().String())
	}
	proxied := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(must.Get(url.Parse(closed.URL))(t))}}
	_, port, err := net.SplitHostPort(plain.Listener.Addr().String())
	require.NoError(t, err)
	for _, test := range []struct {
		client        *http.Client
		address, want string
	}{
		{direct, closed.URL, "nothing listens at " + closed.Listener.Addr().String()},
		{proxied, plain.URL, "the proxy that $HTTP_PROXY or $HTTPS_PROXY names cannot be reached"},
		{direct, secure.URL,
			"its certificate is from an authority that is not known here: on Linux, $SSL_CERT_FILE names " +
				"a file with the certificate of yours"},
		{trusting, "https://game.example", "its certificate is not for game.example"},
		{direct, strings.Replace(plain.URL, "http:", "https:", 1),
			"it does not speak TLS: the address must begin with http://"},
		{direct, cuts.URL, "the connection was closed before an answer"},
		{direct, half.URL, ""}, // the error says as much
		{direct, resets.URL, "the connection was closed before an answer"},
	} {
		answer, err := test.client.Get(test.address)
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		require.Error(t, err, test.address)
		assert.Equal(t, test.want, reach.Why(t.Context(), test.address, err), err)
		assert.Equal(t, test.address == closed.URL || test.client == proxied, reach.Refused(err), err)
		assert.Equal(t, slices.Contains([]string{cuts.URL, half.URL, resets.URL}, test.address),
			reach.Closed(err), err)
	}
	if _, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6")
	}
	_, err = direct.Get("http://[::1]:" + port)
	require.Error(t, err)
	assert.Equal(t, "nothing listens at [::1]:"+port+", but something does at 127.0.0.1:"+port,
		reach.Why(t.Context(), "http://[::1]:"+port, err))
	unknown := &url.Error{Op: "Get", URL: "http://game", Err: &net.OpError{Op: "dial",
		Err: &net.DNSError{Name: "game", IsNotFound: true}}}
	assert.Equal(t,
		"no address is known here for the name game; inside of a container, other names are known than outside",
		reach.Why(t.Context(), "http://game", unknown))
	assert.Empty(t, reach.Why(t.Context(), plain.URL, context.Canceled), "the error says as much")
}

func TestWhatABodyIsInstead(t *testing.T) {
	for body, want := range map[string]string{
		"":                         "",
		"{":                        "",
		"\ufeff{}":                 "it begins with a byte order mark",
		"\xff\xfe{\x00":            "it is in UTF-16",
		"\n <!DOCTYPE HTML><p>502": "it is an HTML page",
		"<html>":                   "it is an HTML page",
		"Client sent an HTTP request to an HTTPS server.\n": "the server speaks TLS, so its address must begin " +
			"with https://",
	} {
		assert.Equal(t, want, reach.Body(http.Header{}, []byte(body)))
	}
	assert.Equal(t, `it is encoded as "br", for which nobody asked`,
		reach.Body(http.Header{"Content-Encoding": {"br"}}, []byte("x")))
}
