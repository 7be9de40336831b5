package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/storetest"

	"github.com/token-ramp/ramp-go/examples/stores/dynamodb/imitation"
)

func TestMain(m *testing.M) {
	// in a process that is killed
	storetest.Serve(func(url string) (ramp.Store, error) { return open(url, nil), nil })
	os.Exit(m.Run())
}

// open returns a store, like that of another machine.
func open(url string, transport http.RoundTripper) *Store {
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
		HTTPClient: &http.Client{Timeout: 5 * time.Second, Transport: transport},
		Retryer:    retry.AddWithMaxBackoffDelay(retry.NewStandard(), 10*time.Millisecond),
	})
	return &Store{Client: client, Orders: "orders", Balances: "balances"}
}

// start starts an imitation with the tables.
func start(t *testing.T, settings ...func(*imitation.Server)) *imitation.Server {
	t.Helper()
	server, stop := imitation.Start()
	t.Cleanup(stop)
	s := open(server.URL, nil)
	for _, table := range s.Tables() {
		must(s.Client.CreateTable(t.Context(), table))(t)
	}
	for _, set := range settings {
		set(server)
	}
	return server
}

func TestStore(t *testing.T) {
	const lag = 50 * time.Millisecond
	storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Fixture {
		server := start(t, func(s *imitation.Server) { s.Lag = lag })
		late := &storetest.Late{}
		one, two := open(server.URL, late), open(server.URL, late)
		one.Approve = func(_ context.Context, step ramp.Step) error { return check(step) }
		two.Approve = one.Approve
		return storetest.Fixture{Stores: []ramp.Store{one, two}, Give: one.SetBalance, Balance: one.Balance,
			Late: late, Lag: 100 * lag}
	})
}

// Every second request fails, and the client of DynamoDB, or the store, sends it again.
func TestStoreWithFaults(t *testing.T) {
	for _, fault := range []imitation.Fault{
		imitation.LostAnswer, imitation.Throttled, imitation.Internal, imitation.Conflict,
	} {
		t.Run(string(fault), func(t *testing.T) {
			storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Fixture {
				var requests atomic.Int64
				server := start(t, func(s *imitation.Server) {
					s.Fault = func(operation string) imitation.Fault {
						if operation == "TransactWriteItems" && requests.Add(1)%2 == 1 {
							return fault
						}
						return ""
					}
				})
				store := open(server.URL, nil)
				// Of calls that race, one can meet the fault at each of its attempts: it has more than three here.
				store.Client = dynamodb.New(store.Client.Options(), func(o *dynamodb.Options) {
					o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
						o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 20, 10*time.Millisecond, ratelimit.None
					})
				})
				store.Approve = func(_ context.Context, step ramp.Step) error { return check(step) }
				return storetest.Fixture{Stores: []ramp.Store{store},
					Give: store.SetBalance, Balance: store.Balance}
			})
		})
	}
}

func TestKill(t *testing.T) {
	server := start(t)
	store := open(server.URL, nil)
	storetest.TestKill(t, storetest.Fixture{Give: store.SetBalance, Balance: store.Balance},
		storetest.Start(t, "", server.URL), storetest.Start(t, "", server.URL))
}

// Check stores nothing, and finds what is missing.
func TestCheck(t *testing.T) {
	server := start(t)
	s := open(server.URL, nil)
	if err := s.Check(t.Context(), ramp.Testnet); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string]*Store{
		"a table": {Client: s.Client, Orders: "orders", Balances: "misspelled"},
		"a key":   {Client: s.Client, Orders: "balances", Balances: "orders"},
	} {
		if err := wrong.Check(t.Context(), ramp.Testnet); err == nil {
			t.Errorf("Check has not found that %s is wrong", name)
		}
	}
	bare := *s
	bare.Orders = "without indexes"
	table := s.Tables()[0]
	table.TableName, table.GlobalSecondaryIndexes = &bare.Orders, nil
	must(s.Client.CreateTable(t.Context(), table))(t)
	err := bare.Check(t.Context(), ramp.Testnet)
	if err == nil || !strings.Contains(err.Error(), `index "waits"`) {
		t.Errorf("Check has not found that the indexes are missing: %v", err)
	}
}

// What one transaction could not end is rejected before anything is signed.
func TestAnOrderThatCannotEndIsRejected(t *testing.T) {
	server := start(t)
	s := open(server.URL, nil)
	asset := func(id, amount string) ramp.IntentAsset {
		return ramp.IntentAsset{Type: ramp.TypeAsset, ID: id, Amount: must(ramp.ParseAmount(amount))(t)}
	}
	var many []ramp.IntentAsset
	for i := range MaxAssets + 1 {
		many = append(many, asset(fmt.Sprint("asset", i), "1"))
	}
	burn := func(assets ...ramp.IntentAsset) *ramp.ValidateRequest {
		r := &ramp.ValidateRequest{UserAddress: "0xaa", ProjectID: "project-1", UUID: uuid.New()}
		r.Intent = ramp.Intent{Method: ramp.MethodBurn, Type: ramp.Disassemble, To: assets,
			From: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x70c3", Amount: ramp.NewAmount(1)}}}
		return r
	}
	if err := s.SetBalance(t.Context(), "alice", "gem", math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		assets []ramp.IntentAsset
		want   ramp.Code
	}{
		{many, "TOO_MANY_ASSETS"},
		{[]ramp.IntentAsset{asset("gold", "0.5")}, "INVALID_AMOUNT"},
		{[]ramp.IntentAsset{asset("gem", "1")}, "INVALID_BALANCE"},
	} {
		r := burn(c.assets...)
		_, err := s.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: "alice"}, r, time.Now()))
		var rejected *ramp.Rejection
		if !errors.As(err, &rejected) || rejected.Code != c.want {
			t.Errorf("%v, not %s", err, c.want)
		}
	}
	r := burn(many[1:]...)
	must(s.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: "alice"}, r, time.Now())))(t)
	result := &ramp.Result{UUID: r.UUID, TxHash: fmt.Sprintf("0x%064x", 1)}
	result.Receipt.Status = ramp.NewQuantity(1)
	must(s.Update(t.Context(), r.UUID, ramp.Finish(result, time.Now())))(t)
	if n := must(s.Balance(t.Context(), "alice", "asset98"))(t); n != 1 {
		t.Errorf("%d of the last asset", n)
	}
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
