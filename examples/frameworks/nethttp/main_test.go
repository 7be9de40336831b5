package main

import (
	"net/http"
	"testing"

	"github.com/token-ramp/ramp-go/examples/frameworks/game"
	"github.com/token-ramp/ramp-go/examples/frameworks/game/gametest"
)

func TestAPlayerTrades(t *testing.T) { gametest.Trade(t, gametest.Own, serve, 1) }

func TestNoResultIsLost(t *testing.T) {
	gametest.LosesNoResult(t, func(s *game.Server) http.Handler { return routes(s) })
}
