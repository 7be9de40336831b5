package pgxstore

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// place returns two pools of connections to an empty schema, like those of two
// machines.
func place(t *testing.T) (one, two *pgxpool.Pool) {
	t.Helper()
	address := os.Getenv("RAMP_TEST_POSTGRESQL")
	if address == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set: run internal/dbtest/databases go test ***")
	}
	name := "pgxstore_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u, err := url.Parse(address)
	check(t, err)
	query := u.Query()
	query.Set("search_path", name)
	query.Set("pool_max_conns", "20")
	u.RawQuery = query.Encode()
	one, two = connect(t, u.String()), connect(t, u.String())
	_, err = one.Exec(t.Context(), "CREATE SCHEMA "+name+";"+Schema)
	check(t, err)
	t.Cleanup(func() {
		_, err := one.Exec(context.Background(), "DROP SCHEMA "+name+" CASCADE")
		check(t, err)
	})
	return one, two
}

func connect(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), address)
	check(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func give(ctx context.Context, pool *pgxpool.Pool, session, asset string, amount int64) error {
	_, err := pool.Exec(ctx, `INSERT INTO balances (session_id, asset, amount) VALUES ($1, $2, $3)
		ON CONFLICT (session_id, asset) DO UPDATE SET amount = $3`, session, asset, amount)
	return err
}

func balance(ctx context.Context, pool *pgxpool.Pool, session, asset string) (n int64, err error) {
	err = pool.QueryRow(ctx, "SELECT amount FROM balances WHERE session_id = $1 AND asset = $2", session, asset).Scan(&n)
	return n, err
}

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, check func(ramp.Step) error) storetest.Target {
		one, two := place(t)
		approve := func(_ context.Context, _ pgx.Tx, step ramp.Step) error { return check(step) }
		s := storetest.Target{
			Stores: []ramp.Store{&Store{one, approve}, &Store{two, approve}},
			Give: func(ctx context.Context, session, asset string, n int64) error {
				return give(ctx, one, session, asset, n)
			},
			Balance: func(ctx context.Context, session, asset string) (int64, error) {
				return balance(ctx, one, session, asset)
			},
		}
		if crash := os.Getenv("RAMP_TEST_POSTGRESQL_CRASH"); crash != "" {
			s.Crash = func() error { return exec.Command("sh", "-c", crash).Run() }
		}
		return s
	})
}

// players authenticates players by the tokens that it issued.
type players struct {
	pool   *pgxpool.Pool
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
		n, err := balance(ctx, p.pool, s.ID, asset)
		if err != nil {
			return nil, err
		}
		player.Assets = append(player.Assets, ramp.Asset{ID: asset, Balance: ramp.NewAmount(n)})
	}
	return &player, nil
}

func TestTheJudgeFindsNothing(t *testing.T) {
	one, two := place(t)
	key, err := ramp.TextKey("a key of these tests")
	check(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	check(t, err)
	tokens := &sync.Map{}
	address, server, pools := "127.0.0.1:0", &http.Server{}, []*pgxpool.Pool{one, two}
	restart := func(context.Context) error { // another server on the same address, with its own connections
		if err := server.Close(); err != nil {
			return err
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		address = listener.Addr().String()
		pools[0], pools[1] = pools[1], pools[0]
		handler, err := ramp.NewHandler(ramp.HandlerConfig{
			Terms: ramp.AnyTerms, Players: players{pools[0], tokens}, Store: &Store{Pool: pools[0]}, Key: key, Signer: signer, ProjectID: "project-1",
			OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil },
			Logger:     slog.New(slog.DiscardHandler),
		})
		server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		go func(s *http.Server) { _ = s.Serve(listener) }(server)
		return err
	}
	t.Cleanup(func() { check(t, server.Close()) })
	check(t, restart(t.Context()))
	ramptest.Conformance(t, conformance.Target{
		URL: "http://" + address, Key: key, Validator: signer.Address(), ProjectID: "project-1", Restart: restart, Strict: true,
		Player: func(ctx context.Context, name string) (ramp.Session, error) {
			s := ramp.Session{ID: name + uuid.NewString(), Token: ramp.NewAccessToken(uuid.NewString() + uuid.NewString())}
			tokens.Store(s.ID, s.Token)
			for asset, n := range map[string]int64{"gold": 1_000_000, "gem": 10_000} {
				if err := give(ctx, one, s.ID, asset, n); err != nil {
					return ramp.Session{}, err
				}
			}
			return s, nil
		},
	})
}
