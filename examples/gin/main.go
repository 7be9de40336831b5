// Gin shows the three endpoints in a web framework. The HMAC covers the raw bytes
// of a body, so the body is read once, with a limit, and passed on unchanged.
// Nothing may bind or decode it first.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… go run .
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
	ramp "github.com/token-ramp/ramp-go"
)

// Game is where your code goes; see examples/quickstart for one that works.
type Game struct{}

// Authenticate rejects every player.
func (Game) Authenticate(context.Context, ramp.Session) error { return ramp.Reject("INVALID_USER") }

// Assets is never called, because Authenticate rejects every player.
func (Game) Assets(context.Context, ramp.Session) (*ramp.Player, error) { return &ramp.Player{}, nil }

// Validate declines every order. Yours must first check the token contract and the
// rate, as in examples/quickstart, because players must not choose them.
func (Game) Validate(context.Context, ramp.Session, *ramp.ValidateRequest) error {
	return ramp.Reject("INVALID_BALANCE")
}

// Result returns an error, because no order was approved.
func (Game) Result(context.Context, ramp.Session, *ramp.Result) error {
	return errors.New("no order was ever approved")
}

const maxBody = 1 << 20

// routes mounts the endpoints. With Gin, gin.WrapF(handler.Assets) would also work;
// this way also works in frameworks that are not built on net/http.
func routes(handler *ramp.Handler) *gin.Engine {
	engine := gin.New()
	engine.GET("/api/assets", func(c *gin.Context) {
		send(c, handler.AnswerAssets(c.Request.Context(), c.Request.Header))
	})
	engine.POST("/api/validate", func(c *gin.Context) {
		if body, ok := rawBody(c); ok {
			send(c, handler.AnswerValidate(c.Request.Context(), c.Request.Header, body))
		}
	})
	engine.POST("/api/result", func(c *gin.Context) {
		if body, ok := rawBody(c); ok {
			send(c, handler.AnswerResult(c.Request.Context(), c.Request.Header, body))
		}
	})
	return engine
}

func rawBody(c *gin.Context) ([]byte, bool) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
	body, err := c.GetRawData()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		c.JSON(http.StatusRequestEntityTooLarge, ramp.Response[struct{}]{ErrorCode: ramp.CodeBodyTooLarge})
	case err != nil:
		c.JSON(http.StatusBadRequest, ramp.Response[struct{}]{ErrorCode: "INVALID_BODY"})
	}
	return body, err == nil
}

func send(c *gin.Context, reply ramp.Reply) {
	c.Data(reply.Status, "application/json", reply.Body)
}

func main() {
	key, err := ramp.TextKey(os.Getenv("RAMP_HMAC_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	signer, err := ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Game: Game{}, Key: key, Signer: signer})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(routes(handler).Run("127.0.0.1:8080"))
}
