package storetest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
)

// remote is a store behind HTTP. Its client sends a request again if no answer comes.
type remote struct {
	store  ramp.Store
	once   bool // the server carries each call out once, and tells who asks again what came of it
	client *http.Client
	url    string

	mu    sync.Mutex
	calls map[string]func() (ramp.Step, error)
	step  map[string]ramp.Step
	err   map[string]error
}

func throughHTTP(f Fixture, once bool) (_ Fixture, end func()) {
	f.Late = &Late{}
	r := &remote{store: f.Stores[0], once: once, client: &http.Client{Transport: f.Late},
		calls: map[string]func() (ramp.Step, error){}, step: map[string]ramp.Step{}, err: map[string]error{}}
	server := httptest.NewServer(r)
	r.url = server.URL
	f.Stores = []ramp.Store{r}
	return f, server.Close
}

func (r *remote) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := request.URL.RawQuery
	if call := r.calls[id]; call != nil {
		r.step[id], r.err[id] = call()
		if r.once {
			delete(r.calls, id)
		}
	}
}

func (r *remote) Update(ctx context.Context, order uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	id := uuid.NewString()
	r.mu.Lock()
	r.calls[id] = func() (ramp.Step, error) { return r.store.Update(ctx, order, next) }
	r.mu.Unlock()
	for {
		answer, err := r.client.Post(r.url+"?"+id, "text/plain", nil)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			continue
		}
		if err != nil {
			return ramp.Step{}, err
		}
		_ = answer.Body.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.step[id], r.err[id]
	}
}

// A store whose client does not use the transport is not called tested.
func TestALateThatIsNotUsedFails(t *testing.T) {
	k := newTrial(t.Context())
	k.timeout = 5 * time.Second
	store := newFlawed("", k.check)
	k.Fixture = Fixture{Stores: []ramp.Store{store}, Give: store.give, Balance: store.balance, Late: &Late{}}
	assert.Contains(t, k.try((*trial).lateRequests), "no request of the store came through the Late")
}
