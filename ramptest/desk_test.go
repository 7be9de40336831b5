package ramptest_test

import (
	"go/build"
	"reflect"
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

// Whoever does not set Pages of ramptest.Standalone does not link package pages, and the pages import
// nothing of the engine.
func TestEngineAndPagesDoNotImportEachOther(t *testing.T) {
	imports := func(dir string) []string {
		p, err := build.ImportDir(dir, 0)
		require.NoError(t, err)
		return p.Imports
	}
	engine, pages := imports("."), imports("pages")
	for _, path := range engine {
		for _, heavy := range []string{"html/template", "/ramptest/pages", "/internal/judge"} {
			assert.False(t, strings.HasSuffix(path, heavy), path)
		}
	}
	assert.NotContains(t, pages, "github.com/token-ramp/ramp-go/ramptest")
}
