package route_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go/ramptest/internal/route"
)

func TestTable(t *testing.T) {
	var table route.Table
	for _, pattern := range []string{"GET /", "GET /orders/{uuid}", "POST /orders/{uuid}",
		"GET /orders/{uuid}/events/{number}", "/any/{uuid}"} {
		table.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s: %s %s", pattern, r.PathValue("uuid"), r.PathValue("number"))
		}))
	}
	for request, want := range map[string]string{
		"GET /":                      "200 GET /:",
		"HEAD /":                     "200 GET /:",
		"GET /?a=/orders/7":          "200 GET /:",
		"GET /orders/7":              "200 GET /orders/{uuid}: 7",
		"POST /orders/7":             "200 POST /orders/{uuid}: 7",
		"GET /orders/a%2Fb":          "200 GET /orders/{uuid}: a/b",
		"GET /orders/{uuid}":         "200 GET /orders/{uuid}: {uuid}",
		"GET /orders/7/events/8":     "200 GET /orders/{uuid}/events/{number}: 7 8",
		"DELETE /any/7":              "200 /any/{uuid}: 7",
		"DELETE /orders/7":           "405 GET, POST Method Not Allowed",
		"POST /orders/7/events/8":    "405 GET Method Not Allowed",
		"GET /orders/":               "404 404 page not found",
		"GET /orders":                "404 404 page not found",
		"GET /orders/7/":             "404 404 page not found",
		"GET /orders/7/events":       "404 404 page not found",
		"GET /orders//events/8":      "404 404 page not found",
		"GET //orders/7":             "404 404 page not found",
		"GET /elsewhere/../orders/7": "404 404 page not found",
	} {
		method, target, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		table.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		got := fmt.Sprintf("%d %s %s", w.Code, w.Header().Get("Allow"), w.Body)
		assert.Equal(t, want, strings.Join(strings.Fields(got), " "), request)
	}

	table.NotFound = http.RedirectHandler("/", http.StatusSeeOther)
	w := httptest.NewRecorder()
	table.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orders", nil))
	assert.Equal(t, http.StatusSeeOther, w.Code)
}
