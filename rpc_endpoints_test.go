package ramp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// twoNodes is a network of a first node and a fallback.
type twoNodes struct {
	first, fallback http.RoundTripper
	asked           []string // which, and for which method
	seen            []*http.Request
}

func (n *twoNodes) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var request struct{ Method string }
	_ = json.Unmarshal(body, &request)
	n.seen = append(n.seen, r.Clone(r.Context()))
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	name, _, _ := strings.Cut(r.URL.Host, ".")
	n.asked = append(n.asked, strings.TrimSuffix(name+" "+strings.TrimPrefix(request.Method, "eth_"), " "))
	if name == "first" {
		return n.first.RoundTrip(r)
	}
	return n.fallback.RoundTrip(r)
}

func (n *twoNodes) client(t *testing.T, c ramp.RPCConfig) *ramp.RPC {
	t.Helper()
	c.URL = "https://first-user:first-password@first.example.com/first-path-key-16"
	c.Header = http.Header{"X-First": {"first-header"}}
	c.Fallback = ramp.RPCEndpoint{URL: "https://fallback.example.com?key=fallback-query", Header: http.Header{"X-Fallback": {"fallback-header"}}}
	c.HTTPClient, c.Retries = &http.Client{Transport: n}, -1
	client, err := ramp.NewRPC(c)
	require.NoError(t, err)
	return client
}

func alwaysAnswering(code int, body string) http.RoundTripper {
	return roundTripper(status(code, nil, body))
}

func TestTheFallbackIsAskedWhenTheFirstNodeFailsAsANode(t *testing.T) {
	for name, test := range map[string]struct {
		first http.RoundTripper
		asked bool
	}{
		"a failed connection":     {roundTripper(disconnect), true},
		"no answer":               {roundTripper(hang), true},
		"408":                     {alwaysAnswering(408, ""), true},
		"429":                     {alwaysAnswering(429, ""), true},
		"429 with an error in it": {alwaysAnswering(429, `{"id":1,"error":{"code":-32005,"message":"slow down"}}`), true},
		"500":                     {alwaysAnswering(500, ""), true},
		"503":                     {alwaysAnswering(503, "<html>"), true},
		"a page":                  {alwaysAnswering(200, "<html>"), true},
		"an empty answer":         {alwaysAnswering(200, ""), true},
		"a login":                 {alwaysAnswering(401, "who?"), true},
		"no such method":          {alwaysAnswering(200, `{"id":1,"error":{"code":-32601,"message":"m"}}`), false},
		"a revert":                {alwaysAnswering(200, `{"id":1,"error":{"code":3,"message":"execution reverted"}}`), false},
		"a revert in a 500":       {alwaysAnswering(500, `{"id":1,"error":{"code":3,"message":"execution reverted"}}`), false},
		"a success":               {&chain{head: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &twoNodes{first: test.first, fallback: &chain{head: 2}}
				number, err := n.client(t, ramp.RPCConfig{}).BlockNumber(t.Context())
				if test.asked {
					require.NoError(t, err)
					assert.EqualValues(t, 2, number)
					assert.Equal(t, []string{"first blockNumber", "fallback blockNumber"}, n.asked)
				} else {
					assert.Equal(t, []string{"first blockNumber"}, n.asked)
				}
			})
		})
	}
}

func TestTheFirstNodeIsTriedAgainAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(disconnect), fallback: &chain{head: 2}}
		client := n.client(t, ramp.RPCConfig{})
		ask := func() []string {
			n.asked = nil
			_, err := client.BlockNumber(t.Context())
			require.NoError(t, err)
			return n.asked
		}
		assert.Equal(t, []string{"first blockNumber", "fallback blockNumber"}, ask())
		time.Sleep(29 * time.Second)
		assert.Equal(t, []string{"fallback blockNumber"}, ask())
		time.Sleep(time.Second)
		assert.Equal(t, []string{"first blockNumber", "fallback blockNumber"}, ask())
		n.fallback = roundTripper(disconnect)
		n.first = &chain{head: 1}
		assert.Equal(t, []string{"fallback blockNumber", "first blockNumber"}, ask(), "a node that rests is better than none")
		assert.Equal(t, []string{"first blockNumber"}, ask(), "and back at work")
	})
}

func TestEachNodesChainIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(disconnect), fallback: &chain{say: map[string]string{"eth_chainId": `"result":"0x1"`}}}
		client := n.client(t, ramp.RPCConfig{ChainID: 1112})
		_, err := client.BlockNumber(t.Context())
		assert.ErrorIs(t, err, ramp.ErrWrongChain)
		assert.Equal(t, []string{"first chainId", "fallback chainId"}, n.asked)
		n.first = &chain{}
		assert.ErrorContains(t, client.Check(t.Context()), "ramp: check https://fallback.example.com: ramp: eth_chainId: the node is on another chain")
	})
}

func TestASendGoesToOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(disconnect), fallback: &chain{say: map[string]string{"eth_sendRawTransaction": `"result":"` + hash32 + `"`}}}
		client := n.client(t, ramp.RPCConfig{})
		_, err := client.SendRawTransaction(t.Context(), []byte{2, 1})
		assert.ErrorContains(t, err, "connection reset")
		assert.Equal(t, []string{"first sendRawTransaction"}, n.asked)
		_, err = client.SendRawTransaction(t.Context(), []byte{2, 1})
		assert.NoError(t, err, "the first rests")
		assert.Equal(t, []string{"first sendRawTransaction", "fallback sendRawTransaction"}, n.asked)
	})
}

// A call that the caller cancels says nothing about the node.
func TestACanceledCallDoesNotMakeANodeRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(hang), fallback: &chain{}}
		client := n.client(t, ramp.RPCConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.BlockNumber(ctx)
		assert.Error(t, err)
		n.first = &chain{}
		_, err = client.BlockNumber(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, []string{"first blockNumber", "first blockNumber"}, n.asked)
	})
}

func TestConfirmAsksTheFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result, err := ramp.ParseResult(told().bytes())
		require.NoError(t, err)
		n := &twoNodes{first: roundTripper(hang), fallback: &chain{receipt: string(onChain().bytes())}}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, _, err = n.client(t, ramp.RPCConfig{ChainID: 1112}).Confirm(ctx, result, 1)
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, time.Since(start))
		assert.Equal(t, []string{"first", "fallback"}, n.asked)
	})
}

// Credentials of one node go to that node only, and no text shows those of either.
func TestEachNodeGetsItsOwnCredentials(t *testing.T) {
	secrets := "first-user first-password first-path-key-16 first-header fallback-query fallback-header"
	n := &twoNodes{first: alwaysAnswering(503, secrets), fallback: alwaysAnswering(503, secrets)}
	var log strings.Builder
	client := n.client(t, ramp.RPCConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	_, err := client.BlockNumber(t.Context())
	require.Error(t, err)
	require.Len(t, n.seen, 2)
	for i, r := range n.seen {
		text := fmt.Sprint(r.URL, r.Header)
		_, _, basic := r.BasicAuth()
		assert.Equal(t, i == 0, basic)
		assert.Equal(t, i == 0, strings.Contains(text, "first-"))
		assert.Equal(t, i == 1, strings.Contains(text, "fallback-"))
	}
	var failure *ramp.HTTPError
	require.True(t, errors.As(err, &failure))
	shown := fmt.Sprintf("%v|%+v|%#v|%s|%s", err, client, client, failure.Excerpt, log.String())
	for _, secret := range strings.Fields(secrets) {
		assert.NotContains(t, shown, secret)
	}
	assert.Contains(t, log.String(), `msg="ramp: asking the other node" failed=https://first.example.com`)

	endpoint := ramp.RPCEndpoint{URL: "https://secret-user:secret-password@node.example.com/secret-path", Header: http.Header{"X": {"secret"}}}
	text, err := json.Marshal(map[string]any{"endpoint": endpoint})
	require.NoError(t, err)
	all := fmt.Sprintf("%v %+v %#v %s", endpoint, endpoint, ramp.RPCConfig{URL: "https://a.example", Fallback: endpoint}, text)
	assert.NotContains(t, all, "secret")
	assert.Contains(t, all, "https://node.example.com")
}
