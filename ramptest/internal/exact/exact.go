// Package exact reads JSON whose field names match exactly.
package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
)

// JSON returns b without the fields whose name equals one of names only if case is
// ignored, such as UserSig for userSig. Unlike other decoders, encoding/json would
// accept them as that field. It fails if b is not exactly one JSON value.
func JSON(b []byte, names ...string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // keeps the text of a number
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one value")
	}
	if !dropMisnamed(value, names) {
		return b, nil
	}
	return json.Marshal(value)
}

// dropMisnamed drops these fields and reports whether there were any.
func dropMisnamed(value any, names []string) (dropped bool) {
	switch value := value.(type) {
	case map[string]any:
		before := len(value)
		maps.DeleteFunc(value, func(field string, _ any) bool {
			return slices.ContainsFunc(names,
				func(name string) bool { return name != field && strings.EqualFold(name, field) })
		})
		dropped = len(value) < before
		for _, inner := range value {
			dropped = dropMisnamed(inner, names) || dropped
		}
	case []any:
		for _, inner := range value {
			dropped = dropMisnamed(inner, names) || dropped
		}
	}
	return dropped
}
