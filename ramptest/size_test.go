package ramptest_test

import (
	"net/http"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest"
)

// BenchmarkTenThousandOrders measures a service that keeps 10,000 orders in a file: its
// memory, how long it takes to start from the file, and its pages.
func BenchmarkTenThousandOrders(b *testing.B) {
	const orders = 10_000
	path := filepath.Join(b.TempDir(), "state")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	file := openState(b, path)
	c := newCounter(b, func(c *ramptest.Config) { c.State, c.KeepOrders = file, orders })
	c.shop.gold = 100 * orders
	var order *ramptest.Order
	for range orders {
		order = c.mint(b)
		c.service.Advance(2 * time.Second)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Run("memory", func(b *testing.B) {
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
		b.ReportMetric(0, "ns/op")
	})
	for name, path := range map[string]string{
		"front": "/", "search": "/?q=" + order.UUID.String(), "attention": "/?show=attention", "order": "/orders/" + order.UUID.String(),
		"calls": "/calls", "API": "/control/orders", "catalog": "/catalog?projectId=p&sessionId=session-1&accessToken=token-1&network=testnet",
	} {
		b.Run("page="+name, func(b *testing.B) {
			for b.Loop() {
				require.Equal(b, 200, c.browse(b, http.MethodGet, path, nil).StatusCode)
			}
		})
	}
	b.Run("page=front after an event", func(b *testing.B) {
		for b.Loop() {
			_, err := c.service.Assets(b.Context(), c.session)
			require.NoError(b, err)
			require.Equal(b, 200, c.browse(b, http.MethodGet, "/", nil).StatusCode)
		}
	})
	b.Run("restart", func(b *testing.B) {
		c.service.Close()
		require.NoError(b, file.Close())
		for b.Loop() {
			again, err := ramptest.OpenState(path)
			require.NoError(b, err)
			service, err := ramptest.New(ramptest.Config{Key: c.key, Validator: c.validator, Handler: c.handler, State: again, KeepOrders: orders})
			require.NoError(b, err)
			b.StopTimer()
			require.GreaterOrEqual(b, len(service.Events()), orders)
			service.Close()
			require.NoError(b, again.Close())
			b.StartTimer()
		}
	})
}
