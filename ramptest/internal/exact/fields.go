package exact

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
)

// Fields returns the fields of a struct by their JSON names.
func Fields(t reflect.Type) map[string]reflect.StructField {
	known := map[string]reflect.StructField{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = t.Field(i)
	}
	return known
}

// Query returns the fields of a struct that are not zero as a query, by their JSON names.
func Query(from any) url.Values {
	values, object := url.Values{}, reflect.ValueOf(from)
	for name, f := range Fields(object.Type()) {
		if value := object.FieldByIndex(f.Index); !value.IsZero() {
			values.Set(name, fmt.Sprint(value))
		}
	}
	return values
}
