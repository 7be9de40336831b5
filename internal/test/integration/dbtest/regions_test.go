package dbtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/examples/regions"
)

// The players of two regions are in two databases. Each call reaches the one of its
// player, also a result whose header names nobody or somebody else.
func TestRegionsKeepTheirPlayersApart(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		east, west := newWorld(t, p, nil), newWorld(t, newPlace(t, p.database, p.mode), nil)
		server := httptest.NewServer(&regions.Router{
			Handlers: []http.Handler{east.handler, west.handler},
			Region: func(session string) int {
				region, _, _ := strings.Cut(session, "-")
				return map[string]int{"east": 1, "west": 2}[region] - 1
			},
		})
		t.Cleanup(server.Close)
		address := func() string { return server.URL }
		east.address, west.address = address, address
		inEast, inWest := moves{}, moves{}

		for name, header := range map[string]string{"own": "west-bob-own", "missing": "", "wrong": "east-alice",
			"unknown": "nowhere-eve"} {
			t.Run(name, func(t *testing.T) {
				east.t, west.t = t, t
				alice, bob := "east-alice-"+name, "west-bob-"+name
				east.give(alice, "gold", 100)
				west.give(bob, "gold", 100)
				a, b := newOrder(alice, mint("gold", 5)), newOrder(bob, mint("gold", 7))
				east.expect(east.validate(a), "200")
				west.expect(west.validate(b), "200")
				east.expect(east.result(a, success), "200")
				west.expect(west.post(ramp.PathResult, header, b.report(failure)), "200")
				inEast[a.id] = []string{"take " + alice + " -5 gold"}
				inWest[b.id] = []string{"take " + bob + " -7 gold", "give back " + bob + " +7 gold"}
			})
		}
		east.t, west.t = t, t
		east.books(inEast)
		west.books(inWest)
		west.expect(west.validate(newOrder("nowhere-eve", mint("gold", 1))), "200 INVALID_BALANCE") // of the first
		west.expect(west.result(newOrder("nowhere-eve", mint("gold", 1)), success), "500 INTERNAL_ERROR")
	})
}
