package ramp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// echoPlaces are where an answer may quote the call.
var echoPlaces = map[string]func(status int, e string) (*http.Response, error){
	"message": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":`+quoted(e)+`,"data":"invalid mac"}`)
	},
	"data": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":"Internal Server Error","data":`+quoted(e)+`}`)
	},
	"data of an object": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":"OK","data":{"text":`+quoted(e)+`}}`)
	},
	"JSON that is cut": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"data":`+quoted(e))
	},
	"text": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, "cannot read "+e+"\n"+e)
	},
	"text across the cut": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, strings.Repeat("x", 390)+e)
	},
	"the content type": func(status int, e string) (*http.Response, error) {
		return respond(status, http.Header{"Content-Type": {"text/" + e}}, "x")
	},
	"a redirect to no URL": func(_ int, e string) (*http.Response, error) {
		return respond(302, http.Header{"Location": {"http://[::1]:x/" + e}}, e)
	},
	"an error of the transport": func(_ int, e string) (*http.Response, error) {
		return nil, fmt.Errorf("malformed HTTP response %q", e)
	},
	"an error while reading": func(status int, e string) (*http.Response, error) {
		response, err := respond(status, nil, "")
		response.Body = io.NopCloser(iotest.ErrReader(fmt.Errorf("malformed trailer %s", e)))
		return response, err
	},
}

func respond(status int, header http.Header, body string) (*http.Response, error) {
	if header == nil {
		header = http.Header{"Content-Type": {"application/json"}}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// everythingShown returns everything that a failed call shows: its error and each
// wrapped one, as text and as fields, and the log.
func everythingShown(t testing.TB, transport http.RoundTripper, c ramp.ClientConfig) string {
	var log bytes.Buffer
	c.Retries, c.HTTPClient = 1, &http.Client{Transport: transport}
	c.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client, err := ramp.NewClient(c)
	require.NoError(t, err)
	_, err = client.Initialize(t.Context(), testRequest())
	require.Error(t, err)
	assert.LessOrEqual(t, len(err.Error()), 500)
	assert.NotContains(t, err.Error(), "\n")

	var b strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&b, "%v|%+v|%q\n", e, e, e)
	}
	fmt.Fprintf(&b, "%+v|%#v\n", client, client)
	var failure *ramp.APIError
	if errors.As(err, &failure) {
		asJSON, err := json.Marshal(failure)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%+v|%#v|%s\n", *failure, *failure, asJSON)
	}
	return b.String() + log.String()
}

// Wherever an answer quotes the call, the text is shown without the secrets that
// we hold: the key, the signature of the call, and a key in the path.
func TestAnAnswerThatQuotesTheCallIsShownWithoutSecrets(t *testing.T) {
	const text, pathKey = `dGhl/a2V5"&LW9mLXRoZS1jb25zb2xl`, "key-of-the-gateway"
	textKey, err := ramp.TextKey(text)
	require.NoError(t, err)
	previous, err := ramp.TextKey("the-previous-key")
	require.NoError(t, err)
	binaryKey, err := ramp.Base64URLKey("dGhlLWtleS1vZi10aGUtY29uc29sZQ")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		for place, answer := range echoPlaces {
			for _, status := range []int{200, 503} {
				for secret, key := range map[string]ramp.HMACKey{
					text: textKey, "the-previous-key": textKey.WithPrevious(previous), "dGhlLWtleS1vZi10aGUtY29uc29sZQ": binaryKey, "the-key-of-the-console": binaryKey,
				} {
					var signature string
					shown := everythingShown(t, roundTripper(func(r *http.Request) (*http.Response, error) {
						signature = r.Header.Get("X-Hmac-Signature")
						return answer(status, strings.Join([]string{signature, secret, url.QueryEscape(secret), pathKey}, " "))
					}), ramp.ClientConfig{URL: "https://api.example.com/" + pathKey, Key: key})
					for _, hidden := range []string{signature, secret, url.QueryEscape(secret), pathKey} {
						assert.NotContains(t, shown, hidden, "%s under HTTP %d", place, status)
						assert.NotContains(t, shown, strings.Trim(quoted(hidden), `"`), "%s under HTTP %d", place, status)
					}
					assert.Contains(t, shown, "[reda", "%s under HTTP %d", place, status)
				}
			}
		}
	})
}

// The interface names four failures. Any other text is what a developer needs.
func TestAReasonThatTheInterfaceDoesNotListIsShown(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	client := newClient(t, &answering{status: 200, body: `{"code":500,"message":"Internal Server Error","data":"token not registered"}`})
	_, err := client.Initialize(t.Context(), testRequest())
	assert.EqualError(t, err, "ramp: initialize: the service answered HTTP 200, code 500: Internal Server Error: token not registered")

	client = newClient(t, &answering{status: 400, body: `{"code":400,"message":` + quoted("two\nlines") + `,"data":` + quoted(long) + `}`})
	_, err = client.Initialize(t.Context(), testRequest())
	var failure *ramp.APIError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, "two\nlines", failure.Message)
	assert.Equal(t, long[:64<<10], failure.Data)
	assert.Contains(t, err.Error(), "two lines: xxx")
	assert.LessOrEqual(t, len(err.Error()), 500)
}

func TestWhyTheServiceWasNotReachedIsShown(t *testing.T) {
	shown := func(transport http.RoundTripper, address string) string {
		return everythingShown(t, transport, ramp.ClientConfig{URL: address, Key: testKey(t)})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	assert.Contains(t, shown(nil, "http://"+listener.Addr().String()), "connection refused")

	private := httptest.NewUnstartedServer(http.NotFoundHandler())
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	private.StartTLS()
	defer private.Close()
	assert.Contains(t, shown(nil, private.URL), "ramp: initialize: tls: failed to verify certificate: x509: ")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	assert.Contains(t, shown(nil, strings.Replace(plain.URL, "http:", "https:", 1)), "ramp: initialize: http: server gave HTTP response to HTTPS client")
	late := roundTripper(func(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded })
	assert.Contains(t, shown(late, "https://api.example.com"), "ramp: initialize: context deadline exceeded")

	own := errors.New("the breaker is open")
	client, err := ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(t), Retries: -1,
		HTTPClient: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, own })}})
	require.NoError(t, err)
	_, err = client.Initialize(t.Context(), testRequest())
	assert.ErrorIs(t, err, own, "the errors of the caller's own transport are found")
	assert.EqualError(t, err, "ramp: initialize: the breaker is open")
}
