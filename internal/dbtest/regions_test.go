package dbtest

import (
	"bytes"
	"encoding/json"
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
			Handlers: []http.Handler{newHandler(t, east.game), newHandler(t, west.game)},
			Region: func(session string) int {
				region, _, _ := strings.Cut(session, "-")
				return map[string]int{"east": 1, "west": 2}[region] - 1
			},
		})
		t.Cleanup(server.Close)
		address := func() string { return server.URL }
		east.address, west.address = address, address
		inEast, inWest := moves{}, moves{}

		for name, header := range map[string]string{"own": "", "missing": "-", "wrong": "east-alice", "unknown": "nowhere-eve"} {
			t.Run(name, func(t *testing.T) {
				east.t, west.t = t, t
				alice, bob := "east-alice-"+name, "west-bob-"+name
				east.give(alice, "gold", 100)
				west.give(bob, "gold", 100)
				a, b := newOrder(alice, mint("gold", 5)), newOrder(bob, mint("gold", 7))
				east.expect(east.validate(a), "200")
				west.expect(west.validate(b), "200")
				east.expect(east.result(a, success), "200")
				if header == "" {
					west.expect(west.result(b, failure), "200")
				} else if status := resultFrom(t, west, b, header); status != 200 {
					t.Errorf("the result was answered with %d", status)
				}
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

// resultFrom delivers a result with another session in its header; "-" is none.
func resultFrom(t *testing.T, w *world, o order, session string) int {
	t.Helper()
	body, err := json.Marshal(o.report(failure))
	check(t, err)
	request, err := http.NewRequest(http.MethodPost, w.address()+ramp.PathResult, bytes.NewReader(body))
	check(t, err)
	request.Header.Set(ramp.HeaderHMAC, w.key.Sign(body))
	if session != "-" {
		request.Header.Set(ramp.HeaderSession, session)
	}
	response, err := w.client.Do(request)
	check(t, err)
	check(t, response.Body.Close())
	return response.StatusCode
}
