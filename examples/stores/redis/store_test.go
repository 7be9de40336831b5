package redisstore

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// connect returns a new client, like that of another machine.
func connect(t *testing.T) *redis.Client {
	t.Helper()
	address := os.Getenv("RAMP_TEST_REDIS")
	if address == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_REDIS is not set: run internal/test/databases go test ***")
	}
	options := must(redis.ParseURL(address))(t)
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	t.Cleanup(func() { check(t, client.Close()) })
	return client
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Fixture {
		approve := func(_ context.Context, step ramp.Step) error { return check(step) }
		one, two := &Store{connect(t), approve}, &Store{connect(t), approve}
		s := storetest.Fixture{Stores: []ramp.Store{one, two}, Give: one.SetBalance, Balance: one.Balance}
		if crash := os.Getenv("RAMP_TEST_REDIS_CRASH"); crash != "" {
			s.Crash = func() error { return exec.Command("sh", "-c", crash).Run() }
		}
		return s
	})
}

// A script that fails halfway moves nothing.
func TestAFailingScriptMovesNothing(t *testing.T) {
	store := &Store{Client: connect(t)}
	session := uuid.NewString()
	check(t, store.SetBalance(t.Context(), session, "gold", 10))
	check(t, store.SetBalance(t.Context(), session, "gem", 0))
	burn := request(burn(one("gold")))
	burn.Intent.To = append(burn.Intent.To, one("gem"))
	must(store.Update(t.Context(), burn.UUID, ramp.Accept(ramp.Session{ID: session}, burn, time.Now())))(t)
	check(t, store.SetBalance(t.Context(), session, "gem", math.MaxInt64))
	succeeded := &ramp.Result{UUID: burn.UUID, Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)}}
	for range 2 {
		if _, err := store.Update(t.Context(), burn.UUID, ramp.Finish(succeeded, time.Now())); err == nil {
			t.Error("a balance above the largest number was accepted")
		}
		if n, err := store.Balance(t.Context(), session, "gold"); err != nil || n != 10 {
			t.Errorf("the other balance is %d instead of 10, %v", n, err)
		}
	}
	check(t, store.SetBalance(t.Context(), session, "gem", 0)) // as an administrator would
	must(store.Update(t.Context(), burn.UUID, ramp.Finish(succeeded, time.Now())))(t)
}

// While an order waits, a chargeback leaves a debt, and a player is deleted. Neither keeps a
// grant or a give-back from being applied.
func TestAGrantNeverFails(t *testing.T) {
	store := &Store{Client: connect(t)}
	for _, c := range []struct {
		what   string
		intent ramp.Intent
		status uint64
		before func(session string) error
		want   int64
	}{
		{"a failed mint of a player with a debt", mint(one("gold")), 0,
			func(s string) error { return store.SetBalance(t.Context(), s, "gold", -500) }, -499},
		{"a burn of a player with a debt", burn(one("gold")), 1,
			func(s string) error { return store.SetBalance(t.Context(), s, "gold", -500) }, -499},
		{"a failed mint of a player who is gone", mint(one("gold")), 0,
			func(s string) error { return store.Client.Del(t.Context(), balancesKey(s)).Err() }, 1},
		{"a burn of a player who is gone", burn(one("gold")), 1,
			func(s string) error { return store.Client.Del(t.Context(), balancesKey(s)).Err() }, 1},
	} {
		session := uuid.NewString()
		check(t, store.SetBalance(t.Context(), session, "gold", 10))
		r := request(c.intent)
		must(store.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: session}, r, time.Now())))(t)
		check(t, c.before(session))
		result := &ramp.Result{UUID: r.UUID, Receipt: ramp.Receipt{Status: ramp.NewQuantity(c.status)}}
		_, err := store.Update(t.Context(), r.UUID, ramp.Finish(result, time.Now()))
		if n, unread := store.Balance(t.Context(), session, "gold"); err != nil || unread != nil || n != c.want {
			t.Errorf("%s: %d gold instead of %d, %v, %v", c.what, n, c.want, err, unread)
		}
	}
}

// What the script could not move exactly, or could not grant, is rejected.
func TestAnOrderThatCannotBeMovedIsRejected(t *testing.T) {
	store := &Store{Client: connect(t)}
	session := uuid.NewString()
	check(t, store.SetBalance(t.Context(), session, "gold", 10))
	check(t, store.SetBalance(t.Context(), session, "gem", math.MaxInt64))
	for _, c := range []struct {
		intent func(ramp.IntentAsset) ramp.Intent
		asset  string
		amount ramp.Amount
		want   ramp.Code
	}{
		{mint, "gold", must(ramp.ParseAmount("0.5"))(t), "INVALID_AMOUNT"},
		{mint, "gold", ramp.NewAmount(11), "INVALID_BALANCE"},
		{burn, "gold", ramp.NewAmount(maxAmount + 1), "INVALID_AMOUNT"},
		{mint, "shield", ramp.NewAmount(1), "INVALID_BALANCE"},
		{burn, "gem", ramp.NewAmount(1), "INVALID_BALANCE"}, // which would overflow
	} {
		r := request(c.intent(ramp.IntentAsset{Type: ramp.TypeAsset, ID: c.asset, Amount: c.amount}))
		_, err := store.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: session}, r, time.Now()))
		var rejected *ramp.Rejection
		if !errors.As(err, &rejected) || rejected.Code != c.want {
			t.Errorf("%s %s: %v, not %s", c.amount, c.asset, err, c.want)
		}
	}
	for asset, want := range map[string]int64{"gold": 10, "gem": math.MaxInt64} {
		if n, err := store.Balance(t.Context(), session, asset); err != nil || n != want {
			t.Errorf("%d %s, %v", n, asset, err)
		}
	}
}

func request(intent ramp.Intent) *ramp.ValidateRequest {
	return &ramp.ValidateRequest{UserAddress: "0xaa", ProjectID: "project-1", UUID: uuid.New(), Intent: intent}
}

var tokens = []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x70c3", Amount: ramp.NewAmount(1)}}

func mint(asset ramp.IntentAsset) ramp.Intent {
	return ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: []ramp.IntentAsset{asset}, To: tokens}
}

func burn(asset ramp.IntentAsset) ramp.Intent {
	return ramp.Intent{Method: ramp.MethodBurn, Type: ramp.Disassemble, From: tokens, To: []ramp.IntentAsset{asset}}
}

func one(id string) ramp.IntentAsset {
	return ramp.IntentAsset{Type: ramp.TypeAsset, ID: id, Amount: ramp.NewAmount(1)}
}

// During a deployment, this program ends orders that a program of the next release has
// opened. It must not drop what that one has written.
func TestWhatANewerProgramHasWrittenIsKept(t *testing.T) {
	store := &Store{Client: connect(t)}
	session := uuid.NewString()
	check(t, store.SetBalance(t.Context(), session, "gold", 10))
	mint := request(mint(one("gold")))
	must(store.Update(t.Context(), mint.UUID, ramp.Accept(ramp.Session{ID: session}, mint, time.Now())))(t)
	key := orderKey(mint.UUID)
	document := must(store.Client.Get(t.Context(), key).Result())(t)
	newer := strings.NewReplacer(`{"version":1`, `{"version":1,"tags":["a"]`, `"intent":{`,
		`"intent":{"rate":0.10,`).Replace(document)
	check(t, store.Client.Set(t.Context(), key, newer, 0).Err())
	must(store.Update(t.Context(), mint.UUID,
		ramp.Finish(&ramp.Result{UUID: mint.UUID, Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}}, time.Now())))(t)
	document = must(store.Client.Get(t.Context(), key).Result())(t)
	for _, kept := range []string{`"state":"failed"`, `"tags":["a"]`, `"rate":0.10`} {
		if !strings.Contains(document, kept) {
			t.Errorf("%s is not in %s", kept, document)
		}
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
