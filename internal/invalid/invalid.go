// Package invalid makes the errors of configs and calls for the packages that stand on package ramp.
package invalid

import ramp "github.com/token-ramp/ramp-go"

// Fields collects what is wrong with a config or a call.
type Fields []ramp.FieldError

// Require adds a problem unless ok.
func (f *Fields) Require(ok bool, path, problem string) {
	if !ok {
		*f = append(*f, ramp.FieldError{Path: path, Problem: problem})
	}
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
