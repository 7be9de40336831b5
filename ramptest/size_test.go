package ramptest_test

import (
	"net/http"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// BenchmarkTenThousandOrders measures a service that keeps 10,000 orders in a file: its
// memory, how long it takes to start from the file, and its pages.
func BenchmarkTenThousandOrders(b *testing.B) {
	const orders = 10_000
	path := filepath.Join(b.TempDir(), "state")
	empty := heap()
	file := openState(b, path)
	keeping := func(c *ramptest.Config) { c.Desk.State, c.Desk.KeepOrders = file, orders }
	c := newCounter(b, keeping)
	c.shop.gold = 100 * orders
	var order *ramptest.Order
	for range orders {
		order = c.mint(b)
		c.service.Advance(2 * time.Second)
	}
	clear(c.shop.orders) // only what the service keeps counts
	c.shop.results = nil
	minted := heap() - empty
	open := func(b *testing.B, when string) {
		for name, path := range map[string]string{
			"front": "/", "search": "/?q=" + order.UUID.String(), "attention": "/?show=attention", "order": "/orders/" + order.UUID.String(),
			"calls": "/calls", "calls of a session": "/calls?session=session-1&q=success", "API": "/control/orders",
			"catalog": "/catalog?projectId=p&sessionId=session-1&accessToken=token-1&network=testnet",
		} {
			b.Run(when+"page="+name, func(b *testing.B) {
				for b.Loop() {
					require.Equal(b, 200, c.browse(b, http.MethodGet, path, nil).StatusCode)
				}
			})
			b.Run(when+"page="+name+" after an event", func(b *testing.B) {
				for b.Loop() {
					ramp.Must(c.service.Assets(b.Context(), c.session))
					require.Equal(b, 200, c.browse(b, http.MethodGet, path, nil).StatusCode)
				}
			})
		}
	}
	open(b, "")
	restart := func() {
		file = ramp.Must(ramptest.OpenState(path))
		config := c.config
		keeping(&config)
		c.service = ramp.Must(ramptest.New(config))
	}
	end := func() {
		c.service.Close()
		require.NoError(b, file.Close())
		c.service, file = nil, nil
		runtime.GC()
	}
	end()
	b.Run("restart", func(b *testing.B) {
		for b.Loop() {
			restart()
			b.StopTimer()
			require.GreaterOrEqual(b, len(c.service.Events()), orders)
			end()
			b.StartTimer()
		}
	})
	for name, path := range map[string]string{"front": "/", "search": "/?q=" + order.UUID.String()} {
		b.Run("first page after a restart="+name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				restart()
				b.StartTimer()
				require.Equal(b, 200, c.browse(b, http.MethodGet, path, nil).StatusCode)
				b.StopTimer()
				end()
				b.StartTimer()
			}
		})
	}
	ended := heap()
	restart()
	b.Cleanup(end)
	restarted := heap() - ended
	b.Run("memory", func(b *testing.B) {
		b.ReportMetric(minted, "MiB")
		b.ReportMetric(restarted, "MiB-after-restart")
		b.ReportMetric(0, "ns/op")
	})
	open(b, "after a restart, ")
}

// heap returns how much memory is in use, in MiB.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
