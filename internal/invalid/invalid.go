// Package invalid makes the errors of configs and calls for the packages that stand on package ramp.
package invalid

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	ramp "github.com/token-ramp/ramp-go"
)

// Fields collects what is wrong with a config or a call.
type Fields []ramp.FieldError

// Require adds a problem unless ok.
func (f *Fields) Require(ok bool, path, problem string) {
	if !ok {
		*f = append(*f, ramp.FieldError{Path: path, Problem: problem})
	}
}

// RequireNotNil adds a problem if a field holds a nil pointer.
func (f *Fields) RequireNotNil(value any, path string) {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer {
		f.Require(!v.IsNil(), path, fmt.Sprintf("must not be a nil %T", value))
	}
}

// maxReason is how many bytes of a reason every store can keep.
const maxReason = 4096

// Reason returns who decides and why as one text, which is what stores keep. It adds the problems of the
// fields Who and Reason of a type.
func (f *Fields) Reason(of, who, reason string) string {
	who, reason = strings.TrimSpace(who), strings.TrimSpace(reason)
	text := who + ": " + reason
	f.Require(who != "", of+".Who", "is required")
	f.Require(reason != "", of+".Reason", "is required")
	f.Require(len(text) <= maxReason && utf8.ValidString(text) && !strings.ContainsRune(text, 0),
		of+".Reason", fmt.Sprintf("must be UTF-8 without NUL, with Who in at most %d bytes", maxReason))
	return text
}

// Err returns a [*ramp.InvalidError], or nil if there are no problems.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &ramp.InvalidError{Fields: f}
}

// Field returns the error of one field.
func Field(path, problem string) error {
	return Fields{{Path: path, Problem: problem}}.Err()
}
