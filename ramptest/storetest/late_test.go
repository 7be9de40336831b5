package storetest

import (
	"context"
	"encoding/json"
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

// document is an order in a database behind HTTP.
type document struct {
	Version int
	Order   *ramp.Order
}

// documentStore reads orders with GET, and replaces them with PUT.
type documentStore struct {
	purse
	check    func(ramp.Step) error
	compares bool // a write with the version that was read
	client   *http.Client
	url      string

	mu     sync.Mutex
	orders map[string]document
	writes map[string]func() error
	failed error // of the last write
}

func documents(check func(ramp.Step) error, compares bool) (_ Fixture, end func()) {
	s := &documentStore{purse: purse{gold: map[[2]string]int64{}}, check: check, compares: compares,
		orders: map[string]document{}, writes: map[string]func() error{}}
	server := httptest.NewServer(s)
	f := Fixture{Stores: []ramp.Store{s}, Give: s.give, Balance: s.balance, Late: &Late{}}
	s.client, s.url = &http.Client{Transport: f.Late}, server.URL+"/"
	return f, server.Close
}

var errChanged = errors.New("the order has changed")

func (s *documentStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(s.orders[r.URL.Path])
		return
	}
	s.failed = s.writes[r.URL.RawQuery]()
}

func (s *documentStore) send(method, url string, answer any) error {
	r, err := http.NewRequest(method, s.url+url, nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer != nil {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	return err
}

func (s *documentStore) Update(_ context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	for {
		var read document
		if err := s.send(http.MethodGet, id.String(), &read); err != nil {
			return ramp.Step{}, err
		}
		step, err := next(read.Order)
		if err != nil || !step.New {
			return step, err
		}
		path, token := "/"+id.String(), uuid.NewString()
		s.mu.Lock()
		s.writes[token] = func() error {
			if s.compares && s.orders[path].Version != read.Version {
				return errChanged
			}
			if err := s.check(step); err != nil {
				return err
			}
			if err := s.apply(step); err != nil {
				return err
			}
			s.orders[path] = document{read.Version + 1, &step.Order}
			return nil
		}
		s.mu.Unlock()
		if err := s.send(http.MethodPut, id.String()+"?"+token, nil); err != nil {
			return ramp.Step{}, err
		}
		s.mu.Lock()
		err = s.failed
		s.mu.Unlock()
		if !errors.Is(err, errChanged) {
			return step, err
		}
	}
}

// A store whose reads do not come through the transport is skipped, and not called tested.
func TestAStaleReadThatIsNotPlayedIsSkipped(t *testing.T) {
	k := newTrial(t.Context())
	store := newFlawed("", k.check)
	k.Fixture = Fixture{Stores: []ramp.Store{store}, Give: store.give, Balance: store.balance, Late: &Late{}}
	assert.Empty(t, k.try((*trial).staleReads))
	assert.Contains(t, k.untested, "has not sent the same request twice")
}
