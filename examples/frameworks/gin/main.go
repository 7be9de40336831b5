// Gin mounts the game on Gin, with paths of its own for the service's three calls.
//
// The HMAC covers the raw bytes of a body. So the service's calls are in a group of their
// own: no middleware that binds a body, limits rates, demands a CSRF token or a login of the
// game may run there.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… RAMP_API_URL=… RAMP_FRONTEND_URL=… go run ./gin
package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/frameworks/game"
)

func main() { game.Main(serve) }

func serve(ctx context.Context, s *game.Server, listener net.Listener) error {
	return game.ServeHTTP(ctx, routes(s), listener)
}

// routes mounts the three calls on the paths that are registered in the service console,
// and the route of the game.
func routes(s *game.Server) *gin.Engine {
	engine := gin.New()
	// What comes to another path may be a result whose address is misspelled: the handler answers it
	// with HTTP 500, so that it comes again, and every other call with 404.
	engine.RedirectTrailingSlash = false
	engine.NoRoute(gin.WrapH(s.Handler))
	service := engine.Group("/ramp", deadline)
	service.GET("/assets", gin.WrapF(s.Handler.Assets))
	service.POST("/validate", gin.WrapF(s.Handler.Validate))
	service.POST("/result", gin.WrapF(s.Handler.Result))

	players := engine.Group("/", gin.Recovery())
	players.POST("/exchange/:product", func(c *gin.Context) { exchange(s, c) })
	return engine
}

// deadline ends the context of a call, so that the handler answers 500, which the service
// repeats. A middleware that answers 503 would end the deliveries of a result for good.
func deadline(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), 20*time.Second)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// exchange starts an order of the player who is logged in.
func exchange(s *game.Server, c *gin.Context) {
	session := ramp.Session{ID: c.GetHeader("X-Session"), Token: ramp.NewAccessToken(c.GetHeader("X-Token"))}
	page, status := s.Exchange(c.Request.Context(), session, c.Param("product"))
	if status != http.StatusOK {
		c.AbortWithStatus(status)
		return
	}
	c.JSON(http.StatusOK, gin.H{"url": page})
}
