package redisstore

import (
	"context"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// connect returns a new client, like that of another machine.
func connect(t *testing.T) *redis.Client {
	t.Helper()
	address := os.Getenv("RAMP_TEST_REDIS")
	if address == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_REDIS is not set: run internal/dbtest/databases go test ***")
	}
	options := ramp.Must(redis.ParseURL(address))
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

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true, ProjectID: "project-1"})

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Target {
		approve := func(_ context.Context, step ramp.Step) error { return check(step) }
		one, two := &Store{connect(t), approve}, &Store{connect(t), approve}
		s := storetest.Target{Stores: []ramp.Store{one, two}, Give: one.SetBalance, Balance: one.Balance}
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
	check(t, store.SetBalance(t.Context(), session, "gem", math.MaxInt64))
	burn := &ramp.ValidateRequest{UserAddress: "0xaa", ProjectID: "project-1", UUID: uuid.New(),
		Intent: ramp.Intent{Method: ramp.MethodBurn, Type: ramp.Disassemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x70c3", Amount: ramp.NewAmount(1)}},
			To: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(1)},
				{Type: ramp.TypeAsset, ID: "gem", Amount: ramp.NewAmount(1)}}}}
	ramp.Must(store.Update(t.Context(), burn.UUID, ramp.Accept(ramp.Session{ID: session}, burn, time.Now())))
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
	ramp.Must(store.Update(t.Context(), burn.UUID, ramp.Finish(succeeded, time.Now())))
}

// players authenticates players by the tokens that it issued.
type players struct {
	store  *Store
	tokens *sync.Map
}

func (p players) Authenticate(_ context.Context, s ramp.Session) error {
	if token, ok := p.tokens.Load(s.ID); !ok || !s.Token.Equal(token.(ramp.AccessToken)) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (p players) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	var player ramp.Player
	for _, asset := range []string{"gold", "gem"} {
		n, err := p.store.Balance(ctx, s.ID, asset)
		if err != nil {
			return nil, err
		}
		player.Assets = append(player.Assets, ramp.Asset{ID: asset, Balance: ramp.NewAmount(n)})
	}
	return &player, nil
}

func TestTheJudgeFindsNothing(t *testing.T) {
	client := connect(t)
	key := ramp.Must(ramp.TextKey("a key of these tests"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	tokens := &sync.Map{}
	address, server := "127.0.0.1:0", &http.Server{}
	restart := func(context.Context) error { // another server on the same address, with empty memory
		if err := server.Close(); err != nil {
			return err
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		address = listener.Addr().String()
		store := &Store{Client: client}
		handler, err := ramp.NewHandler(ramp.HandlerConfig{
			Terms: anyTerms, Players: players{store, tokens}, Store: store, Key: key, Signer: signer,
			OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil },
			Logger:     slog.New(slog.DiscardHandler),
		})
		server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		go func(s *http.Server) { _ = s.Serve(listener) }(server)
		return err
	}
	t.Cleanup(func() { check(t, server.Close()) })
	check(t, restart(t.Context()))
	conformance.Test(t, conformance.Target{
		URL: "http://" + address, Key: key, Validator: signer.Address(), ProjectID: "project-1", Restart: restart, Strict: true,
		Player: func(ctx context.Context, name string) (ramp.Session, error) {
			s := ramp.Session{ID: name + uuid.NewString(), Token: ramp.NewAccessToken(uuid.NewString() + uuid.NewString())}
			tokens.Store(s.ID, s.Token)
			for asset, n := range map[string]int64{"gold": 1_000_000, "gem": 10_000} {
				if err := (&Store{Client: client}).SetBalance(ctx, s.ID, asset, n); err != nil {
					return ramp.Session{}, err
				}
			}
			return s, nil
		},
	})
}

// During a deployment, this program ends orders that a program of the next release has
// opened. It must not drop what that one has written.
func TestWhatANewerProgramHasWrittenIsKept(t *testing.T) {
	store := &Store{Client: connect(t)}
	session := uuid.NewString()
	check(t, store.SetBalance(t.Context(), session, "gold", 10))
	mint := &ramp.ValidateRequest{UserAddress: "0xaa", ProjectID: "project-1", UUID: uuid.New(),
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(1)}},
			To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x70c3", Amount: ramp.NewAmount(1)}}}}
	ramp.Must(store.Update(t.Context(), mint.UUID, ramp.Accept(ramp.Session{ID: session}, mint, time.Now())))
	key := orderKey(mint.UUID)
	document := ramp.Must(store.Client.Get(t.Context(), key).Result())
	newer := strings.NewReplacer(`{"version":1`, `{"version":1,"tags":["a"]`, `"intent":{`, `"intent":{"rate":0.10,`).Replace(document)
	check(t, store.Client.Set(t.Context(), key, newer, 0).Err())
	ramp.Must(store.Update(t.Context(), mint.UUID, ramp.Finish(&ramp.Result{UUID: mint.UUID, Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}}, time.Now())))
	document = ramp.Must(store.Client.Get(t.Context(), key).Result())
	for _, kept := range []string{`"state":"failed"`, `"tags":["a"]`, `"rate":0.10`} {
		if !strings.Contains(document, kept) {
			t.Errorf("%s is not in %s", kept, document)
		}
	}
}
