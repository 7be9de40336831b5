package ramptest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// What a handler sees must be the same over a network and in memory.
func TestAHandlerInMemorySeesWhatAServerSees(t *testing.T) {
	type seen struct {
		method, path, host, body string
		header                   http.Header
		length                   int64
	}
	var got []seen
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header := r.Header.Clone()
		for _, own := range []string{"Accept-Encoding", "User-Agent", "Content-Length"} { // of the transport
			header.Del(own)
		}
		header.Del("X-Hmac-Signature") // of another UUID
		got = append(got, seen{r.Method, r.URL.Path, "", "", header, min(r.ContentLength, 1)})
		assert.EqualValues(t, r.ContentLength, len(body))
		w.WriteHeader(http.StatusTeapot)
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	key, err := ramp.TextKey("key of the console")
	require.NoError(t, err)
	for _, config := range []ramptest.Config{{Game: server.URL}, {Handler: handler}} {
		config.Key, config.Validator = key, [20]byte{1}
		service := ramptest.Start(t, config)
		client, err := ramp.NewClient(service.URL(), key, ramp.WithHTTPClient(service.Client()))
		require.NoError(t, err)
		started, err := client.Initialize(t.Context(), request())
		require.NoError(t, err)
		session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
		_, err = service.Assets(t.Context(), session)
		assert.ErrorContains(t, err, "HTTP 418")
		_, err = service.Mint(t.Context(), started.UUID, session, ramp.NewAmount(1))
		assert.ErrorContains(t, err, "HTTP 418")
	}
	require.Len(t, got, 4)
	assert.Equal(t, got[:2], got[2:])
}

func TestAStudioThatTakesTooLongIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(t, before(func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == ramp.PathResult {
					<-r.Context().Done()
				}
				inner.ServeHTTP(w, r)
			})
		}), func(c *ramptest.Config) { c.Timeout = time.Minute })
		c.mint(t)
		begun := time.Now()
		sent := c.service.Advance(time.Second)
		assert.Equal(t, time.Minute, time.Since(begun))
		require.Len(t, sent, 1)
		assert.ErrorIs(t, sent[0].Err, context.DeadlineExceeded)
		assert.False(t, sent[0].Next.IsZero())
	})
}

func TestEitherAURLOrAHandler(t *testing.T) {
	key, err := ramp.TextKey("key of the console")
	require.NoError(t, err)
	_, err = ramptest.New(ramptest.Config{Key: key, Validator: [20]byte{1}, Game: "http://127.0.0.1:1", Handler: http.NotFoundHandler()})
	assert.ErrorContains(t, err, "exclude each other")
	_, err = ramptest.New(ramptest.Config{Key: key, Validator: [20]byte{1}, Handler: http.NotFoundHandler(), Speed: -1})
	assert.ErrorContains(t, err, "Speed")
}

// A service in memory can be put behind a server of one's own.
func TestAServiceIsAHandler(t *testing.T) {
	c := newCounter(t)
	server := httptest.NewServer(c.service)
	defer server.Close()
	client, err := ramp.NewClient(server.URL, c.key)
	require.NoError(t, err)
	_, err = client.Initialize(t.Context(), request())
	assert.NoError(t, err)
}

func TestSwitchesOfTheIntent(t *testing.T) {
	half, err := ramp.ParseAmount("0.5")
	require.NoError(t, err)
	c := newCounter(t, func(c *ramptest.Config) {
		c.PerToken, c.BurnMethod, c.TokenType = true, ramp.MethodBurn, "erc20"
		c.Digest = func(*ramp.ValidateRequest) ramp.Digest { return ramp.Digest{31: 1} }
	})
	order, err := c.service.Burn(t.Context(), c.initialize(t), c.session, half)
	require.NoError(t, err)
	assert.Equal(t, ramp.Intent{
		Method: "burn", Type: "disassemble", TargetCandidate: []byte("{}"),
		From: []ramp.IntentAsset{{Type: "erc20", ID: token, Amount: half}},
		To:   []ramp.IntentAsset{{Type: "asset", ID: "item_gold", Amount: ramp.NewAmount(50)}},
	}, order.Request.Intent)
	assert.Equal(t, ramp.Digest{31: 1}, order.Request.Digest)
}

func TestAnOrderOfNothingIsNotAsked(t *testing.T) {
	c := newCounter(t)
	nothing := request()
	nothing.Intent.Outputs = []ramp.Item{}
	started, err := c.client.Initialize(t.Context(), nothing)
	require.NoError(t, err)
	_, err = c.service.Burn(t.Context(), started.UUID, c.session, ramp.NewAmount(1))
	assert.ErrorContains(t, err, "nothing for a burn")
}
