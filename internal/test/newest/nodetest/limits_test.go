package nodetest

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// echo answers with as many bytes as it is asked for.
type echo struct{ calls atomic.Int64 }

func (e *echo) GetBytes(_ context.Context, n int) string {
	e.calls.Add(1)
	return strings.Repeat("x", n)
}

// Batches against the limits of go-ethereum's own server: on the number of calls, and
// on the size of the answer, after which it rejects the rest.
func TestBatchesFitTheLimitsOfAServer(t *testing.T) {
	for name, test := range map[string]struct{ items, bytes, size int }{
		"the number of calls":    {10, 1 << 20, 10},
		"the size of the answer": {1000, 5000, 1000},
		"both":                   {7, 2500, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			server, service := rpc.NewServer(), new(echo)
			defer server.Stop()
			server.SetBatchLimits(test.items, test.bytes)
			require.NoError(t, server.RegisterName("eth", service))
			listening := httptest.NewServer(server)
			defer listening.Close()
			client := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: listening.URL, Retries: -1}))(t)

			for range 2 {
				got := make([]string, 60)
				calls := make([]ramp.BatchCall, len(got))
				for i := range calls {
					calls[i] = ramp.BatchCall{Method: "eth_getBytes", Params: []any{test.size}, Into: &got[i]}
				}
				require.NoError(t, client.Batch(t.Context(), calls))
				for i := range calls {
					assert.NoError(t, calls[i].Err)
					assert.Len(t, got[i], test.size)
				}
			}
			t.Logf("%d calls for 120 answers", service.calls.Load())
			assert.LessOrEqual(t, service.calls.Load(), int64(200))
		})
	}
}
