package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/exact"
	"github.com/token-ramp/ramp-go/ramptest/internal/report"
)

// A request that is not understood exactly is an error, so that a typo cannot change
// what is tested. encoding/json alone accepts a member twice, and in another case.

// readBody reads a JSON object into the struct to which into points. No body is an object without members.
func readBody(text []byte, into any) error {
	if len(text) == 0 {
		return nil
	}
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) || !json.Valid(text) {
		return report.Errorf(control.CodeInvalid, "the body must be a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := checkValue(d, "", reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return report.Errorf(control.CodeInvalid, "the body cannot be read: %v", err)
	}
	return nil
}

// readQuery reads a query into the struct to which into points. Its fields are strings,
// booleans and whole numbers. The token is for whoever decides about access.
func readQuery(given url.Values, into any) error {
	object := reflect.ValueOf(into).Elem()
	known := exact.Fields(object.Type())
	for name, texts := range given {
		f, ok := known[name]
		switch {
		case name == "token" || ok && texts[0] == "": // an empty parameter is none
			continue
		case !ok:
			return report.Errorf(control.CodeInvalid,
				"there is no parameter %q; there are %s", name, names(known))
		case len(texts) > 1:
			return report.Errorf(control.CodeInvalid, "the parameter %s is given twice", name)
		}
		switch value := object.FieldByIndex(f.Index); value.Kind() {
		case reflect.Bool:
			if texts[0] != "true" && texts[0] != "false" {
				return report.Errorf(control.CodeInvalid, "%s must be true or false", name)
			}
			value.SetBool(texts[0] == "true")
		case reflect.Int:
			n, err := strconv.Atoi(texts[0])
			if err != nil {
				return report.Errorf(control.CodeInvalid, "%s must be a whole number", name)
			}
			value.SetInt(int64(n))
		default:
			value.SetString(texts[0])
		}
	}
	return nil
}

// checkValue reads one value of a valid JSON text and compares it with its type. A
// value of null is the same as none.
func checkValue(d *json.Decoder, path string, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	wanted := ""
	switch _, isText := token.(string); {
	case token == nil:
	case t == reflect.TypeFor[json.Number]():
		_, isNumber := token.(json.Number) // of any size
		if _, err := strconv.ParseFloat(fmt.Sprint(token), 64); err != nil && !isNumber {
			wanted = "a number"
		}
	case t.Kind() == reflect.String && !isText:
		wanted = "a string"
	case t.Kind() == reflect.Int:
		number, _ := token.(json.Number)
		if _, err := strconv.Atoi(number.String()); err != nil {
			wanted = "a whole number"
		}
	case t.Kind() == reflect.Slice && token != json.Delim('['):
		wanted = "a list"
	case t.Kind() == reflect.Slice:
		return checkList(d, path, t.Elem())
	case t.Kind() == reflect.Struct && token != json.Delim('{'):
		wanted = "an object"
	case t.Kind() == reflect.Struct:
		return checkObject(d, path, exact.Fields(t))
	}
	if wanted != "" {
		return report.Errorf(control.CodeInvalid, "%s must be %s", path, wanted)
	}
	return nil
}

func checkList(d *json.Decoder, path string, t reflect.Type) error {
	for i := 0; d.More(); i++ {
		if err := checkValue(d, path+"["+strconv.Itoa(i)+"]", t); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func checkObject(d *json.Decoder, path string, known map[string]reflect.StructField) error {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		member := strings.TrimPrefix(path+"."+name, ".")
		f, ok := known[name]
		switch {
		case !ok:
			return report.Errorf(control.CodeInvalid,
				"there is no member %q; there are %s", member, names(known))
		case seen[name]:
			return report.Errorf(control.CodeInvalid, "the member %s is given twice", member)
		}
		seen[name] = true
		if err := checkValue(d, member, f.Type); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// names lists what a request may have.
func names(known map[string]reflect.StructField) string {
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(known)), ", "), "none")
}
