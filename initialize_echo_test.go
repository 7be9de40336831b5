package ramp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// echoRequest is a request full of text that must not be logged.
func echoRequest() ramp.InitializeRequest {
	request := testRequest()
	request.PlayerID = "player-10042/홍길동"
	request.Name = `Alice "A&B" <alice@example.com>`
	request.WalletAddress = "0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb"
	request.Server = "asia-server-7"
	return request
}

// echoParts are the parts of a call that an answer may quote.
func echoParts(t testing.TB) []string {
	var body []byte
	capture := func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		return nil, errors.New("that was all")
	}
	client, err := ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(t), Retries: -1,
		HTTPClient: &http.Client{Transport: roundTripper(capture)}})
	require.NoError(t, err)
	_, err = client.Initialize(t.Context(), echoRequest())
	require.Error(t, err)

	request, signature, text := echoRequest(), testKey(t).Sign(body), string(body)
	parts := []string{request.PlayerID, request.Name, request.WalletAddress, request.Server, request.Intent.ProjectID,
		request.Intent.Token, request.Intent.Materials[0].IconURL, signature, signature[:24], signature[30:], hmacText, text, text[:24]}
	for at := 5; at < len(text)-40; at += len(text) / 12 {
		parts = append(parts, text[at:at+40], text[at:])
	}
	return parts
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// echoForms are the forms in which an answer may quote.
var echoForms = map[string]func(string) string{
	"as it is":    func(s string) string { return s },
	"upper case":  strings.ToUpper,
	"JSON":        func(s string) string { return strings.Trim(quoted(s), `"`) },
	"JSON of PHP": func(s string) string { return strings.ReplaceAll(strings.Trim(quoted(s), `"`), "/", `\/`) },
	"Go":          strconv.Quote,
	"HTML":        html.EscapeString,
	"a query":     url.QueryEscape,
	"a path":      url.PathEscape,
	"base64":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64url":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"hex":         func(s string) string { return hex.EncodeToString([]byte(s)) },
}

// echoPlaces are where an answer may quote.
var echoPlaces = map[string]func(status int, e string) (*http.Response, error){
	"message": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":`+quoted(e)+`,"data":"invalid mac"}`)
	},
	"message after a known text": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":400,"message":`+quoted("Bad Request: "+e)+`,"data":"x"}`)
	},
	"data": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":"Internal Server Error","data":`+quoted(e)+`}`)
	},
	"data after a known text": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":"Internal Server Error","data":`+quoted("invalid mac: "+e)+`}`)
	},
	"data before a known text": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":"Internal Server Error","data":`+quoted(e+": ramp not found")+`}`)
	},
	"data of an object": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":500,"message":"OK","data":{"uuid":`+quoted(e)+`,"text":`+quoted(e)+`}}`)
	},
	"data of a list": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":200,"message":"OK","data":[`+quoted(e)+`]}`)
	},
	"another field": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":400,"detail":`+quoted(e)+`}`)
	},
	"the name of a field": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":400,`+quoted(e)+`:1,`+quoted(e)+`:2}`)
	},
	"code": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"code":`+quoted(e)+`}`)
	},
	"a JSON string": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, quoted(e))
	},
	"JSON that is cut": func(status int, e string) (*http.Response, error) {
		return respond(status, nil, `{"data":"`+e)
	},
	"text": func(status int, e string) (*http.Response, error) {
		return respond(status, http.Header{"Content-Type": {"text/plain"}}, "cannot read "+e+"\n"+e)
	},
	"a page": func(status int, e string) (*http.Response, error) {
		return respond(status, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, "<html><pre>"+e+"</pre></html>")
	},
	"the content type": func(status int, e string) (*http.Response, error) {
		return respond(status, http.Header{"Content-Type": {"text/" + e}}, "x")
	},
	"a whole content type": func(status int, e string) (*http.Response, error) {
		return respond(status, http.Header{"Content-Type": {e}}, "x")
	},
	"a parameter of the content type": func(status int, e string) (*http.Response, error) {
		return respond(status, http.Header{"Content-Type": {`text/html; charset="` + e + `"`}}, "x")
	},
	"headers": func(status int, e string) (*http.Response, error) {
		return respond(status, http.Header{"Retry-After": {e}, "Server": {e}, "Www-Authenticate": {e}, "Set-Cookie": {e}, e: {e}}, "x")
	},
	"a redirect": func(_ int, e string) (*http.Response, error) {
		return respond(307, http.Header{"Location": {"/?" + url.QueryEscape(e)}}, e)
	},
	"a redirect to no URL": func(_ int, e string) (*http.Response, error) {
		return respond(302, http.Header{"Location": {"http://[::1]:x/" + e}}, e)
	},
	"the status": func(status int, e string) (*http.Response, error) {
		response, err := respond(status, nil, "x")
		response.Status = strconv.Itoa(status) + " " + e
		return response, err
	},
	"an error of the transport": func(_ int, e string) (*http.Response, error) {
		return nil, fmt.Errorf("malformed HTTP response %q", e)
	},
	"an error of a time limit": func(_ int, e string) (*http.Response, error) {
		return nil, fmt.Errorf("sent %s: %w", e, context.DeadlineExceeded)
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
func everythingShown(t testing.TB, transport http.RoundTripper, address string) string {
	var log bytes.Buffer
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "duration" || a.Key == "wait" {
			return slog.Attr{} // the same call takes another time
		}
		return a
	}}
	client, err := ramp.NewClient(ramp.ClientConfig{URL: address, Key: testKey(t), Retries: 1,
		HTTPClient: &http.Client{Transport: transport}, Logger: slog.New(slog.NewJSONHandler(&log, options))})
	require.NoError(t, err)
	_, err = client.Initialize(t.Context(), echoRequest())
	require.Error(t, err)

	var b strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&b, "%v|%+v|%q\n", e, e, e)
	}
	var failure *ramp.APIError
	if errors.As(err, &failure) {
		asJSON, err := json.Marshal(failure)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%+v|%#v|%s\n", *failure, *failure, asJSON)
	}
	return b.String() + log.String()
}

// Whatever an answer quotes, in any form and place, the shown text is the same as
// for a different quote.
func TestNothingOfAForeignAnswerIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := echoParts(t)
		variants, leaks := 0, 0
		for place, answer := range echoPlaces {
			for _, status := range []int{200, 503} {
				shownFor := func(e string) string {
					return everythingShown(t, roundTripper(func(*http.Request) (*http.Response, error) { return answer(status, e) }), "https://api.example.com")
				}
				want := shownFor("x")
				for _, part := range parts {
					for form, write := range echoForms {
						variants++
						e := write(part)
						got := shownFor(e)
						if got == want && !strings.Contains(strings.ToLower(got), strings.ToLower(part)) {
							continue
						}
						if leaks++; leaks <= 3 { // each of thousands would say the same
							assert.Equal(t, want, got, "%s under HTTP %d quotes %q as %s", place, status, part, form)
						}
					}
				}
			}
		}
		t.Logf("%d of %d variants show what they quote", leaks, variants)
		assert.Zero(t, leaks)
		assert.Greater(t, variants, 10_000)
	})
}

// net/http quotes answers that are not HTTP.
func TestNothingOfAMalformedAnswerIsShown(t *testing.T) {
	for name, answer := range map[string]string{
		"the first line":          "%s\r\n\r\n",
		"the status":              "HTTP/1.1 %s OK\r\n\r\n",
		"the version":             "HTTP/%s 200 OK\r\n\r\n",
		"a line of the header":    "HTTP/1.1 500 No\r\n%s\r\n\r\n",
		"the transfer encoding":   "HTTP/1.1 500 No\r\nTransfer-Encoding: %s\r\n\r\n",
		"the length":              "HTTP/1.1 500 No\r\nContent-Length: %s\r\n\r\n",
		"the size of a chunk":     "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
		"a trailer":               "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n%s\r\n\r\n",
		"the content encoding":    "HTTP/1.1 500 No\r\nContent-Encoding: gzip\r\nContent-Length: 600\r\n\r\n%s",
		"a redirect that is none": "HTTP/1.1 302 Found\r\nLocation: http://%%zz%s\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, part := range []string{"player-10042", "홍길동", testKey(t).Sign([]byte("x")), strings.Repeat("item_gold ", 100)} {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				defer listener.Close()
				go func() {
					for {
						conn, err := listener.Accept()
						if err != nil {
							return
						}
						_, _ = http.ReadRequest(bufio.NewReader(conn))
						fmt.Fprintf(conn, answer, part)
						_ = conn.(*net.TCPConn).CloseWrite()
						_, _ = io.Copy(io.Discard, conn)
						_ = conn.Close()
					}
				}()
				shown := everythingShown(t, &http.Transport{DisableKeepAlives: true}, "http://"+listener.Addr().String())
				assert.NotContains(t, shown, part)
				assert.NotContains(t, shown, strings.Trim(strconv.QuoteToASCII(part), `"`))
				assert.NotContains(t, shown, "item_gold")
			}
		})
	}
}

// The cause of a call that could not be made is shown, because it is not part of an
// answer.
func TestWhyTheServiceWasNotReachedIsShown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	assert.Contains(t, everythingShown(t, nil, "http://"+listener.Addr().String()), "connection refused")

	private := httptest.NewUnstartedServer(http.NotFoundHandler())
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	private.StartTLS()
	defer private.Close()
	assert.Contains(t, everythingShown(t, nil, private.URL), "ramp: initialize: tls: failed to verify certificate: x509: ")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	assert.Contains(t, everythingShown(t, nil, strings.Replace(plain.URL, "http:", "https:", 1)), "ramp: initialize: http: server gave HTTP response to HTTPS client")
	greeting, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer greeting.Close()
	go func() {
		for {
			conn, err := greeting.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 mail.example.com\r\n")
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	assert.Contains(t, everythingShown(t, nil, "https://"+greeting.Addr().String()), "ramp: initialize: tls: first record does not look like a TLS handshake")
	late := roundTripper(func(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded })
	assert.Contains(t, everythingShown(t, late, "https://api.example.com"), "ramp: initialize: context deadline exceeded")

	own := errors.New("the breaker is open")
	client, err := ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(t), Retries: -1,
		HTTPClient: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, own })}})
	require.NoError(t, err)
	_, err = client.Initialize(t.Context(), echoRequest())
	assert.ErrorIs(t, err, own, "the errors of the caller's own transport are found")
	assert.EqualError(t, err, "ramp: initialize: the call failed, or the answer is not HTTP; the cause is hidden because it may quote the request")
}
