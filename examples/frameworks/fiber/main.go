// Fiber mounts the game on Fiber, which does not use net/http.
//
// The service repeats a result only after HTTP 500. By default, Fiber answers 431, 413 and 404
// to calls that reach no route, and such a result never comes again. settings and app change that.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… RAMP_API_URL=… RAMP_FRONTEND_URL=… go run ./fiber
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/frameworks/game"
)

func main() { game.Main(serve) }

func serve(ctx context.Context, s *game.Server, listener net.Listener) error {
	return run(ctx, app(s, settings()), listener)
}

// settings are those with which no result is lost.
func settings() fiber.Config {
	return fiber.Config{
		// All headers of a call must fit. The default of 4 KiB is too little for a long access token.
		ReadBufferSize: 32 << 10,
		// The handler accepts 1 MiB and logs what is larger. This bounds the memory of a connection.
		BodyLimit:    2 << 20,
		ErrorHandler: unserved,
		ReadTimeout:  15 * time.Second,
		WriteTimeout: 30 * time.Second,
		IdleTimeout:  20 * time.Second, // a shutdown waits for idle connections
	}
}

// unserved answers 500 to what reaches no route, such as headers or a body above a limit: it may be a
// result. The routes of the game therefore write their own 4xx, and return no error. The error is not
// logged, because it can quote the headers of the call, which hold an access token.
func unserved(c fiber.Ctx, err error) error {
	var failed *fiber.Error
	if errors.As(err, &failed) {
		slog.Warn("call not served", "usually", failed.Code)
	} else {
		slog.Error("call failed", "error", err)
	}
	return c.SendStatus(http.StatusInternalServerError)
}

// app serves the routes of the game. The handler gets every other call: what comes to a wrong path may
// be a result whose address is misspelled, which the handler answers with 500.
func app(s *game.Server, config fiber.Config) *fiber.App {
	a := fiber.New(config)
	a.Post("/exchange/:product", recover.New(), func(c fiber.Ctx) error { return exchange(s, c) })
	// Use would also pass it what Fiber could not read.
	a.All("/*", func(c fiber.Ctx) error { return service(s, c) })
	return a
}

// service passes a call to the handler. Its deadline is shorter than WriteTimeout, so that the handler
// still answers 500. BodyRaw is what the HMAC covers; Body would unpack it, for anybody and without a limit.
func service(s *game.Server, c fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	reply := s.Handler.Answer(ctx, c.Method(), c.Path(), c.GetReqHeaders(), c.BodyRaw())
	for name := range reply.Header() {
		c.Set(name, reply.Header().Get(name))
	}
	return c.Status(reply.Status).Send(reply.Body)
}

// exchange starts an order of the player who is logged in. Fiber reuses the memory of its texts for the next
// call, so they are copied.
func exchange(s *game.Server, c fiber.Ctx) error {
	session := ramp.Session{
		ID:    strings.Clone(c.Get("X-Session")),
		Token: ramp.NewAccessToken(strings.Clone(c.Get("X-Token"))),
	}
	page, status := s.Exchange(c.Context(), session, strings.Clone(c.Params("product")))
	if status != http.StatusOK {
		return c.SendStatus(status)
	}
	return c.JSON(fiber.Map{"url": page})
}

// run serves until ctx is done.
func run(ctx context.Context, app *fiber.App, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Let the calls in progress finish: each may be moving a player's assets.
	return errors.Join(app.ShutdownWithTimeout(30*time.Second), <-ended)
}
