package redisstore

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

const (
	// envRelease is the path of the test binary of this package that the release before
	// has built, with go test -c. By default the release before is this one.
	envRelease = "RAMP_TEST_RELEASE"

	nextRelease = "the next release"
)

func TestMain(m *testing.M) {
	storetest.Serve(func(release string) (ramp.Store, error) {
		options, err := redis.ParseURL(os.Getenv("RAMP_TEST_REDIS"))
		if err != nil {
			return nil, err
		}
		options.ContextTimeoutEnabled = true
		store := &Store{Client: redis.NewClient(options)}
		if release == nextRelease {
			return next{store}, nil
		}
		return store, nil
	})
	os.Exit(m.Run())
}

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
		return step,
			json.Unmarshal([]byte(strings.Replace(string(text), "{", `{"of_the_next_release":7,`, 1)), &step.Order)
	})
}

func TestKill(t *testing.T) {
	store := &Store{Client: connect(t)}
	storetest.TestKill(t, storetest.Fixture{Give: store.SetBalance, Balance: store.Balance}, storetest.Start(t, "", ""))
}

// During a deployment, orders are begun by either release and ended by the other, while the
// servers restart.
func TestADeployment(t *testing.T) {
	store := &Store{Client: connect(t)}
	storetest.TestKill(t, storetest.Fixture{Give: store.SetBalance, Balance: store.Balance},
		storetest.Start(t, os.Getenv(envRelease), ""), storetest.Start(t, "", nextRelease))
}
