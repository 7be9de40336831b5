package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// studio is the game on Fiber, on a listener of its own.
type studio struct {
	*testing.T
	db       *sql.DB
	key      ramp.HMACKey
	signer   *ramp.Signer
	listener net.Listener
	url      string
	ctx      context.Context // of what serves
	ended    chan error
}

func newStudio(t *testing.T) *studio {
	t.Helper()
	s := &studio{T: t, db: ramp.Must(open(t.Context(), filepath.Join(t.TempDir(), "game.db"))),
		key:      ramp.Must(ramp.TextKey("key of the console")),
		signer:   ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")),
		listener: ramp.Must(net.Listen("tcp", "127.0.0.1:0")), ended: make(chan error)}
	s.url = "http://" + s.listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background()) // t.Context ends before the service's last calls
	s.ctx = ctx
	t.Cleanup(func() {
		stop()
		check(t, <-s.ended)
		check(t, s.db.Close())
	})
	return s
}

// serve serves the app that build returns, until the test ends. service is the URL of the ramp.
func (s *studio) serve(service string, build func(*server) *fiber.App) {
	app := build(newServer(s.db, s.key, s.signer, service, service))
	go func() { s.ended <- run(s.ctx, app, s.listener) }()
}

func asInProduction(s *server) *fiber.App { return s.app(settings()) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A token that is as long as access tokens get: 5 KiB.
const longToken = 140 // UUIDs

// player returns a new player with so much gold, and an access token of so many UUIDs.
func (s *studio) player(id string, gold int64, token int) ramp.Session {
	session := ramp.Session{ID: id, Token: ramp.NewAccessToken(strings.Repeat(uuid.NewString(), token))}
	hash := sha256.Sum256([]byte(session.Token.Reveal()))
	ramp.Must(s.db.Exec("INSERT INTO characters VALUES ($1, $2, $3)", id, hash[:], gold))
	return session
}

// target is what the judge is told. Its players have tokens of so many UUIDs.
func (s *studio) target(token int) conformance.Target {
	return conformance.Target{URL: s.url, Key: s.key, Validator: s.signer.Address(), ProjectID: "project-1",
		Token: products[0].Token, Asset: "item_gold", Amount: 100, Tokens: 1,
		Strict: true, Settle: time.Millisecond, Late: time.Millisecond, // every effect comes before its answer
		Player: func(_ context.Context, name string) (ramp.Session, error) {
			return s.player(name, 1_000_000, token), nil
		}}
}

func TestTheJudgeFindsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	s := newStudio(t)
	s.serve("http://127.0.0.1:1", asInProduction)
	conformance.Test(t, s.target(longToken))
}

// wrong are apps that lose results, or worse. The judge fails the case on each, and says what it saw.
var wrong = map[string]struct {
	app        func(*server) *fiber.App
	token      int    // of the players
	fails, saw string // no case fails if not even the first call is answered
}{
	"the default ErrorHandler": {func(s *server) *fiber.App {
		config := settings()
		config.ErrorHandler = nil
		return s.app(config)
	}, 1, "result-not-lost", "with: too-large"},
	"the default ErrorHandler and ReadBufferSize": {func(s *server) *fiber.App {
		config := settings()
		config.ErrorHandler, config.ReadBufferSize = nil, 0
		return s.app(config)
	}, 1, "result-not-lost", "too-large, large-header"},
	"the default ReadBufferSize": {func(s *server) *fiber.App {
		config := settings()
		config.ReadBufferSize = 0
		return s.app(config)
	}, longToken, "", "nothing to judge"},
	"a BodyLimit below that of the handler": {func(s *server) *fiber.App {
		config := settings()
		config.BodyLimit = 128 << 10
		return s.app(config)
	}, 1, "receipt-large", "many-logs"},
	"three routes, and the router's own 404": {func(s *server) *fiber.App {
		config := settings()
		config.ErrorHandler = nil
		app := fiber.New(config)
		app.Get(ramp.PathAssets, s.service)
		app.Post(ramp.PathValidate, s.service)
		app.Post(ramp.PathResult, s.service)
		return app
	}, 1, "result-not-lost", "too-large, misspelled"},
	"Body instead of BodyRaw": {func(s *server) *fiber.App {
		app := fiber.New(settings())
		app.All("/*", func(c fiber.Ctx) error {
			reply := s.handler.Answer(c.Context(), c.Method(), c.Path(), c.GetReqHeaders(), c.Body())
			return c.Status(reply.Status).Send(reply.Body)
		})
		return app
	}, 1, "validate-hmac-wrong", "with: packed"},
}

const asWrong = "FIBER_TEST_WRONG"

// TestTheJudgeOfAWrongApp is run by the next test, in processes of their own, because it fails.
func TestTheJudgeOfAWrongApp(t *testing.T) {
	name := os.Getenv(asWrong)
	if name == "" {
		t.Skip("TestTheJudgeFindsEachWrongSetting runs it")
	}
	s := newStudio(t)
	s.serve("http://127.0.0.1:1", wrong[name].app)
	conformance.Test(t, s.target(wrong[name].token))
}

func TestTheJudgeFindsEachWrongSetting(t *testing.T) {
	for name, app := range wrong {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judged := exec.CommandContext(t.Context(), os.Args[0],
				"-test.run", "^TestTheJudgeOfAWrongApp$/^"+app.fails+"$", "-test.v")
			judged.Env = append(os.Environ(), asWrong+"="+name)
			out, err := judged.Output() // without the log
			failed := "--- FAIL: " + strings.TrimRight("TestTheJudgeOfAWrongApp/"+app.fails, "/") + " "
			if err == nil || !strings.Contains(string(out), failed) || !strings.Contains(string(out), app.saw) {
				t.Errorf("want %q and %q: %s", failed, app.saw, out)
			}
		})
	}
}

// Use, unlike All, also gets a call whose body is too large, without the body.
func TestUseGetsWhatFiberCouldNotRead(t *testing.T) {
	mounts := map[string]func(*fiber.App, fiber.Handler){
		"Use": func(app *fiber.App, h fiber.Handler) { app.Use(h) },
		"All": func(app *fiber.App, h fiber.Handler) { app.All("/*", h) },
	}
	for name, mount := range mounts {
		got := false
		s := newStudio(t)
		s.serve("http://127.0.0.1:1", func(*server) *fiber.App {
			app := fiber.New(settings())
			mount(app, func(fiber.Ctx) error { got = true; return nil })
			return app
		})
		conn := ramp.Must(net.Dial("tcp", s.listener.Addr().String()))
		ramp.Must(fmt.Fprintf(conn, "POST /api/result HTTP/1.1\r\nHost: game\r\nContent-Length: %d\r\n\r\n", 5<<20))
		answer := ramp.Must(http.ReadResponse(bufio.NewReader(conn), nil))
		check(t, errors.Join(answer.Body.Close(), conn.Close()))
		if answer.StatusCode != http.StatusInternalServerError || got != (name == "Use") {
			t.Errorf("%s: HTTP %d, and the handler was called: %t", name, answer.StatusCode, got)
		}
	}
}

func TestAPlayerTradesThroughFiber(t *testing.T) {
	s := newStudio(t)
	service := ramptest.Start(t, ramptest.Config{Key: s.key, Validator: s.signer.Address(), Game: s.url})
	s.serve(service.URL(), asInProduction)
	session := s.player("character-1", 1000, longToken)
	for _, step := range []struct {
		order func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)
		fault ramptest.Fault
		gold  int64
	}{
		{service.Mint, ramptest.ResultTwice(), 800},
		{service.Mint, ramptest.TransactionFails(), 800},
		{service.Burn, ramptest.ResultTwice(), 1000},
	} {
		page, status := s.exchange(session.ID, session.Token.Reveal())
		if status != http.StatusOK {
			t.Fatalf("HTTP %d", status)
		}
		id := ramp.Must(uuid.Parse(page.Query().Get("uuid")))
		ramp.Must(step.order(t.Context(), id, session, ramp.NewAmount(2), step.fault,
			ramptest.ValidateOtherToken(), ramptest.ValidateOtherRate(), ramptest.ValidateExtraItem()))
		service.Advance(time.Minute)
		var gold int64
		check(t, s.db.QueryRow("SELECT gold FROM characters").Scan(&gold))
		if gold != step.gold {
			t.Errorf("after %s, the player owns %d gold instead of %d", step.fault, gold, step.gold)
		}
	}
	if _, status := s.exchange(session.ID, "another token"); status != http.StatusUnauthorized {
		t.Errorf("another token: HTTP %d", status)
	}
}

// exchange asks the game for the page of a new order.
func (s *studio) exchange(session, token string) (page *url.URL, status int) {
	s.Helper()
	request := ramp.Must(http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+"/exchange/gold", nil))
	request.Header = http.Header{"X-Session": {session}, "X-Token": {token}}
	request.Close = true
	response := ramp.Must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	var answer struct{ URL string }
	if response.StatusCode == http.StatusOK {
		check(s.T, json.NewDecoder(response.Body).Decode(&answer))
	}
	return ramp.Must(url.Parse(answer.URL)), response.StatusCode
}
