package ramp

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sentinels, for [errors.Is]; docs/errors.md lists every error and code, and
// docs/security.md says what errors show.
var (
	// ErrHMACMissing means that a call had no X-HMAC-SIGNATURE header. A handler
	// rejects such a call (interface 5.2). A [Client] returns it if the service
	// reports it (interface 7.1).
	ErrHMACMissing = errors.New("X-HMAC-SIGNATURE is missing")

	// ErrHMACInvalid means that an X-HMAC-SIGNATURE does not match the body and
	// key. A handler rejects such a call (interface 5.2). A [Client] returns it if
	// the service answers "invalid mac" (interface 7.1).
	ErrHMACInvalid = errors.New("X-HMAC-SIGNATURE is not valid")

	// ErrHMACKey means that an HMAC key is unusable: it is empty, blank, or not in
	// the expected encoding.
	ErrHMACKey = errors.New("HMAC key is unusable")

	// ErrRampNotFound means that the service does not know the project of an
	// initialize call (interface 7.1, "ramp not found").
	ErrRampNotFound = errors.New("the service does not know the project")

	// ErrRampNotExists means that the service does not serve the network of an
	// initialize call (interface 7.1, "ramp not exists").
	ErrRampNotExists = errors.New("the service does not serve the network")

	// ErrValidatorKey means that a validator key, public key or address is unusable
	// (interface 5.3).
	ErrValidatorKey = errors.New("validator key is unusable")

	// ErrSignature means that bytes are not a valid signature, or not one by the
	// expected key over the expected digest.
	ErrSignature = errors.New("signature is not valid")
)

// Must returns value, and panics if err is not nil. It is for what a program cannot start
// without, such as ramp.Must(ramp.NewTerms(config)).
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// InvalidError lists every wrong field of a message or a config. It holds no field
// values.
type InvalidError struct {
	Fields []FieldError // at least one, in the order of the message or config
}

// FieldError describes one wrong field of an [InvalidError].
type FieldError struct {
	// Path names the field as the interface does, with the index of an array
	// element if it is known: "intent.materials[1].icon_url". A config field has
	// its Go name: "HandlerConfig.Store".
	Path string

	// Problem completes the sentence that Path begins, such as "is required".
	Problem string

	sentinel error // for errors.Is, or nil
}

// Unwrap returns the sentinels of the fields: [ErrHMACKey] and [ErrValidatorKey]
// for missing keys of a config.
func (e *InvalidError) Unwrap() []error {
	var sentinels []error
	for _, f := range e.Fields {
		if f.sentinel != nil {
			sentinels = append(sentinels, f.sentinel)
		}
	}
	return sentinels
}

// Error describes the first twenty fields, so that a body with thousands of errors
// does not fill a log.
func (e *InvalidError) Error() string {
	const maxFields = 20
	var problems []string
	for _, f := range e.Fields[:min(maxFields, len(e.Fields))] {
		problems = append(problems, f.Path+" "+f.Problem)
	}
	if more := len(e.Fields) - maxFields; more > 0 {
		problems = append(problems, fmt.Sprintf("and %d more", more))
	}
	return "ramp: " + strings.Join(problems, "; ")
}

// maxProblems bounds the work for a body with thousands of wrong elements.
const maxProblems = 1000

// problems collects the errors of a message or a config.
type problems []FieldError

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, FieldError{Path: path, Problem: fmt.Sprintf(format, args...)})
}

func (p *problems) require(ok bool, path string) {
	if !ok {
		p.add(path, "is required")
	}
}

// requireText rejects text that the versions of encoding/json write differently.
func (p *problems) requireText(text, path string) {
	if !utf8.ValidString(text) {
		p.add(path, "must be valid UTF-8")
	}
}

// requireKey requires a key of a config, and lets errors.Is find sentinel.
func (p *problems) requireKey(ok bool, path string, sentinel error) {
	if !ok {
		*p = append(*p, FieldError{Path: path, Problem: "is required", sentinel: sentinel})
	}
}

func (p *problems) requireNonZero(ok bool, path string) {
	if !ok {
		p.add(path, "is required and must not be zero")
	}
}

// addAll adds the fields of another check's error.
func (p *problems) addAll(err error) {
	var wrong *InvalidError
	if errors.As(err, &wrong) {
		*p = append(*p, wrong.Fields...)
	}
}

// err returns nil, and not a nil *InvalidError, if there are no problems.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{Fields: p}
}

func invalid(path, format string, args ...any) error {
	var p problems
	p.add(path, format, args...)
	return p.err()
}
