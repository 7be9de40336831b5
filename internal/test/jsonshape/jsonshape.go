// Package jsonshape tells whether a typed language, and a parser with floating point, read JSON without
// loss.
package jsonshape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Shapes are the members that documents of one kind have had, by their path, such as
// "[].intent.from[].amount", each with the type of its value.
type Shapes map[string]string

// Add reads a document and returns what such a reader would lose: a member that is null, or that has another
// type than in a document before, and a number that is no whole one, or that float64 rounds.
func (s Shapes) Add(document []byte) (problems []string) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return []string{err.Error()}
	}
	s.add("", value, func(path, problem string) { problems = append(problems, path+" "+problem) })
	return problems
}

func (s Shapes) add(path string, value any, report func(path, problem string)) {
	kind := fmt.Sprintf("%T", value)
	if before, known := s[path]; known && before != kind {
		report(path, "is a "+before+" and a "+kind)
	}
	s[path] = kind
	switch value := value.(type) {
	case nil:
		report(path, "is null")
	case json.Number:
		const exact = 1 << 53
		if n, err := strconv.ParseInt(value.String(), 10, 64); err != nil || n > exact || n < -exact {
			report(path, "is the number "+value.String())
		}
	case []any:
		for _, element := range value {
			s.add(path+"[]", element, report)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			s.add(path+"."+name, value[name], report)
		}
	}
}
