package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/frameworks/game"
	"github.com/token-ramp/ramp-go/examples/frameworks/game/gametest"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/conformance"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// on returns how to serve the app that build returns.
func on(build func(*game.Server) *fiber.App) func(context.Context, *game.Server, net.Listener) error {
	return func(ctx context.Context, s *game.Server, listener net.Listener) error {
		return run(ctx, build(s), listener)
	}
}

// A token that is as long as access tokens get: 5 KiB.
const longToken = 140 // UUIDs

// target is what the judge is told. Its players have tokens of so many UUIDs.
func target(s *gametest.Studio, token int) conformance.Server {
	return conformance.Server{URL: s.URL, Key: s.Key, Validator: s.Signer.Address(), ProjectID: "project-1",
		Token: game.Products[0].Token, Asset: "item_gold", OneAsset: true, Amount: 100, Tokens: 1,
		Strict: true, Settle: time.Millisecond, Late: time.Millisecond, // every effect comes before its answer
		Waive: regexp.MustCompile("^restart$"), // the orders are in the memory of this process
		Player: func(_ context.Context, name string) (ramp.Session, error) {
			return s.Player(name, 1_000_000, token), nil
		}}
}

func TestTheJudgeFindsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	s := gametest.New(t)
	s.Serve("http://127.0.0.1:1", serve)
	conformance.Test(t, target(s, longToken))
}

// wrong are apps that lose results, or worse. The judge fails the case on each, and says what it saw.
var wrong = map[string]struct {
	app        func(*game.Server) *fiber.App
	token      int    // of the players
	fails, saw string // no case fails if not even the first call is answered
}{
	"the default ErrorHandler": {func(s *game.Server) *fiber.App {
		config := settings()
		config.ErrorHandler = nil
		return app(s, config)
	}, 1, "result-not-lost", "with: too-large"},
	"the default ErrorHandler and ReadBufferSize": {func(s *game.Server) *fiber.App {
		config := settings()
		config.ErrorHandler, config.ReadBufferSize = nil, 0
		return app(s, config)
	}, 1, "result-not-lost", "too-large, large-header"},
	"the default ReadBufferSize": {func(s *game.Server) *fiber.App {
		config := settings()
		config.ReadBufferSize = 0
		return app(s, config)
	}, longToken, "", "nothing to judge"},
	"a BodyLimit below that of the handler": {func(s *game.Server) *fiber.App {
		config := settings()
		config.BodyLimit = 128 << 10
		return app(s, config)
	}, 1, "receipt-large", "many-logs"},
	"three routes, and the router's own 404": {func(s *game.Server) *fiber.App {
		config := settings()
		config.ErrorHandler = nil
		app := fiber.New(config)
		handler := func(c fiber.Ctx) error { return service(s, c) }
		app.Get(ramp.PathAssets, handler)
		app.Post(ramp.PathValidate, handler)
		app.Post(ramp.PathResult, handler)
		return app
	}, 1, "result-not-lost", "too-large, misspelled"},
	"Body instead of BodyRaw": {func(s *game.Server) *fiber.App {
		app := fiber.New(settings())
		app.All("/*", func(c fiber.Ctx) error {
			reply := s.Handler.Answer(c.Context(), c.Method(), c.Path(), c.GetReqHeaders(), c.Body())
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
	s := gametest.New(t)
	s.Serve("http://127.0.0.1:1", on(wrong[name].app))
	conformance.Test(t, target(s, wrong[name].token))
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
		s := gametest.New(t)
		s.Serve("http://127.0.0.1:1", on(func(*game.Server) *fiber.App {
			app := fiber.New(settings())
			mount(app, func(fiber.Ctx) error { got = true; return nil })
			return app
		}))
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "POST /api/result HTTP/1.1\r\nHost: game\r\nContent-Length: %d\r\n\r\n", 5<<20)
		answer, failed := http.ReadResponse(bufio.NewReader(conn), nil)
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(answer.Body.Close(), conn.Close()); err != nil {
			t.Error(err)
		}
		if answer.StatusCode != http.StatusInternalServerError || got != (name == "Use") {
			t.Errorf("%s: HTTP %d, and the handler was called: %t", name, answer.StatusCode, got)
		}
	}
}

func TestAPlayerTrades(t *testing.T) { gametest.Trade(t, ramptest.Config{}, serve, longToken) }
