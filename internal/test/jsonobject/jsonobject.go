// Package jsonobject changes JSON objects of tests by path, such as "intent.from.0.amount".
package jsonobject

import (
	"slices"
	"strings"
)

// With returns a copy of an object with another value at a path.
func With(o map[string]any, path string, value any) map[string]any {
	return change(o, path, func(parent map[string]any, name string) { parent[name] = value })
}

// Without returns a copy of an object without what is at a path.
func Without(o map[string]any, path string) map[string]any {
	return change(o, path, func(parent map[string]any, name string) { delete(parent, name) })
}

func change(o map[string]any, path string, change func(map[string]any, string)) map[string]any {
	copied := clone(o).(map[string]any)
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
