package redisstore

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

const (
	// envRelease is the path of the test binary of this package that the release before
	// has built, with go test -c. By default the release before is this one.
	envRelease = "RAMP_TEST_RELEASE"

	envNext = "RAMP_TEST_SERVE_NEXT" // if set, the game server is of the next release
	member  = "of_the_next_release"
)

// next is the store of a release that adds a member to every order it writes.
type next struct{ store *Store }

func (n next) Update(ctx context.Context, id uuid.UUID, transition ramp.Transition) (ramp.Step, error) {
	return n.store.Update(ctx, id, func(stored *ramp.Order) (ramp.Step, error) {
		step, err := transition(stored)
		if err != nil || !step.New {
			return step, err
		}
		text, err := json.Marshal(step.Order)
		if err != nil {
			return step, err
		}
		return step, json.Unmarshal([]byte(strings.Replace(string(text), "{", `{"`+member+`":7,`, 1)), &step.Order)
	})
}

// A deployment: a canary, half of the servers, all of them, and the way back. Calls go to
// servers of both releases, so orders are begun by either and ended by the other. What the
// newer one adds to an order, the older one keeps.
func TestADeploymentAndTheWayBack(t *testing.T) {
	connect(t) // or skip
	before, after := newServer(t, os.Getenv(envRelease)), newServer(t, "", envNext+"=1")
	var share atomic.Int64 // of the calls, in percent, that go to the newer release
	l := start(t, &http.Transport{}, func(l *load) {
		l.route = func() *server {
			if rand.Int64N(100) < share.Load() {
				return after
			}
			return before
		}
	})
	for _, percent := range []int64{0, 10, 50, 100, 50, 0} {
		share.Store(percent)
		l.wait(100)
	}
	share.Store(50)
	l.finish()
	if n := l.cut.Load(); n != 0 {
		t.Errorf("%d calls failed", n)
	}
	var counts [2][2]int // of the orders, by the release that began and by the one that ended them
	for _, o := range l.orders {
		document, _, err := l.store.read(t.Context(), o.request.UUID)
		check(t, err)
		begun, ended := 0, 0
		if o.begun == after {
			begun = 1
		}
		if o.ended == after {
			ended = 1
		}
		counts[begun][ended]++
		if kept := strings.Contains(document, `"`+member+`":7`); kept != (begun+ended > 0) {
			t.Errorf("order %s, begun by %d and ended by %d: is the member there? %t", o.request.UUID, begun, ended, kept)
		}
	}
	t.Logf("begun by the older release and ended by either: %v; begun by the newer one: %v", counts[0], counts[1])
	for _, n := range []int{counts[0][0], counts[0][1], counts[1][0], counts[1][1]} {
		if n == 0 {
			t.Error("a pair of releases began and ended nothing")
		}
	}
}
