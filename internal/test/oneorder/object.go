package oneorder

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/token-ramp/ramp-go/internal/test/must"
)

// Object is a JSON object that a test changes by path, such as "intent.from.0.amount".
type Object map[string]any

// With returns a copy of an object with another value at a path.
func (o Object) With(path string, value any) Object {
	return o.change(path, func(parent map[string]any, name string) { parent[name] = value })
}

// Without returns a copy of an object without what is at a path.
func (o Object) Without(path string) Object {
	return o.change(path, func(parent map[string]any, name string) { delete(parent, name) })
}

// Bytes returns the object as it is sent.
func (o Object) Bytes(t testing.TB) []byte { return must.Get(json.Marshal(o))(t) }

func (o Object) change(path string, change func(map[string]any, string)) Object {
	copied := clone(map[string]any(o)).(map[string]any)
	var at any = copied
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		switch parent := at.(type) {
		case map[string]any:
			at = parent[name]
		case []any:
			at = parent[name[0]-'0']
		}
	}
	change(at.(map[string]any), names[len(names)-1])
	return copied
}

// clone copies what a path may lead through.
func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for name, field := range value {
			copied[name] = clone(field)
		}
		return copied
	case []any:
		copied := slices.Clone(value)
		for i, element := range copied {
			copied[i] = clone(element)
		}
		return copied
	}
	return value
}
