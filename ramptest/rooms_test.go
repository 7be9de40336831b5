package ramptest_test

import (
	"go/build"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest/internal/api"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
)

// The pages are a client: few methods cross, those of the control API are the same there,
// and the pages do not see the engine.
func TestFewMethodsCross(t *testing.T) {
	service, api := reflect.TypeFor[frontend.Service](), reflect.TypeFor[api.Emulator]()
	assert.LessOrEqual(t, service.NumMethod(), 15)
	shared := 0
	for i := range service.NumMethod() {
		if m, ok := api.MethodByName(service.Method(i).Name); ok {
			assert.Equal(t, m.Type, service.Method(i).Type, m.Name)
			shared++
		}
	}
	assert.Equal(t, 5, shared)
}

// The service, the control API, the pages and the books of a test are rooms: who reads one needs no other.
// Whoever does not set Pages of ramptest.Standalone does not link package pages.
func TestRoomsAreReadAlone(t *testing.T) {
	const below = "github.com/token-ramp/ramp-go/ramptest/"
	rooms := map[string][]string{
		"the service":     {"emulator", "delivery", "game", "order", "chain", "trade", "fault", "clock", "history"},
		"the books":       {"audit", "tally"},
		"the control API": {"api"},
		"the pages":       {"../pages", "frontend", "view"},
	}
	// What serves a service imports it, and the service tells the books, which are plain values, what it calls.
	needs := map[string][]string{"the service": {"the books"},
		"the control API": {"the service"}, "the pages": {"the service", "the books"}}
	roomOf := map[string]string{}
	for room, packages := range rooms {
		for _, name := range packages {
			roomOf[path.Join(below+"internal", name)] = room
		}
	}
	for room, packages := range rooms {
		for _, name := range packages {
			for _, imported := range importsOf(t, filepath.Join("internal", name)) {
				other := roomOf[imported]
				assert.True(t, other == "" || other == room || slices.Contains(needs[room], other),
					"%s, %s, imports %s, %s", name, room, imported, other)
			}
		}
	}
	for _, imported := range importsOf(t, ".") {
		for _, heavy := range []string{"html/template", "/ramptest/pages", "/internal/judge"} {
			assert.False(t, strings.HasSuffix(imported, heavy), imported)
		}
	}
	for _, imported := range importsOf(t, "pages") {
		assert.NotContains(t, []string{below + "internal/emulator", strings.TrimSuffix(below, "/")}, imported)
	}
}

func importsOf(t *testing.T, dir string) []string {
	t.Helper()
	p, err := build.ImportDir(dir, 0)
	require.NoError(t, err)
	return p.Imports
}
