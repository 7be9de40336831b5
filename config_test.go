package ramp_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
)

// A new field needs a test.
func TestEveryFieldOfAConfigIsSetInATest(t *testing.T) {
	var tests strings.Builder
	for _, file := range must.Get(filepath.Glob("*_test.go"))(t) {
		tests.Write(must.Get(os.ReadFile(file))(t))
	}
	for _, config := range []any{ramp.HandlerConfig{}, ramp.TermsConfig{}, ramp.ClientConfig{}, ramp.RPCConfig{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(config)) {
			assert.Regexp(t, `\b`+field.Name+`: |\.`+field.Name+`\b.* = `, tests.String(), "%T", config)
		}
	}
}

func TestACallIsTriedThreeTimesForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		network := roundTripper(func(r *http.Request) (*http.Response, error) { sent++; return hang(r) })
		for client, call := range bothClients(t, network) {
			sent = 0
			start := time.Now()
			assert.ErrorIs(t, call(), context.DeadlineExceeded)
			assert.Equal(t, 3, sent, client)
			assert.InDelta(t, 30.5, time.Since(start).Seconds(), 0.3, client)
		}
		start := time.Now()
		_, err := rpcOver(t, network, ramp.RPCConfig{Timeout: time.Second, Retries: -1}).BlockNumber(t.Context())
		assert.Error(t, err)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// Changing a config after it was used has no effect.
func TestConfigsAreCopied(t *testing.T) {
	wire := &overWire{Transport: &oneorder.Chain{Head: 7}}
	client := &http.Client{Transport: wire}
	header := http.Header{"X-Api-Key": {"k"}}
	rpc := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", Header: header, HTTPClient: client}))(t)
	api := must.Get(ramp.NewClient(ramp.ClientConfig{URL: "https://api.example.com", Key: testKey(t),
		HTTPClient: client}))(t)
	header["X-Api-Key"][0] = "another"
	header.Set("X-More", "more")
	client.Transport = &script{steps: steps{disconnect}}

	must.Get(rpc.BlockNumber(t.Context()))(t)
	assert.Equal(t, "k", wire.asked.Header.Get("X-Api-Key"))
	assert.Empty(t, wire.asked.Header.Get("X-More"))
	assert.Nil(t, client.CheckRedirect)
	wire.Transport = &script{steps: steps{status(200, nil, okAnswer)}}
	_, err := api.Initialize(t.Context(), testRequest())
	assert.NoError(t, err)
}

// overWire remembers the last request.
type overWire struct {
	Transport http.RoundTripper
	asked     *http.Request
}

func (w *overWire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked = r.Clone(context.Background())
	return w.Transport.RoundTrip(r)
}
