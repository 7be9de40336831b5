package ramp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sentinels, for [errors.Is]. The error that carries one says more; none holds
// a key, a token, a signature or a body.
var (
	// ErrHMACMissing says that a call carried no X-HMAC-SIGNATURE header. A
	// handler meets it on calls from the service (interface 5.2), a [Client] as
	// the service's answer to its own call (interface 7.1).
	ErrHMACMissing = errors.New("X-HMAC-SIGNATURE is missing")

	// ErrHMACInvalid says that an X-HMAC-SIGNATURE does not belong to the body
	// and key. A handler meets it on calls from the service (interface 5.2), a
	// [Client] as the service's answer "invalid mac" (interface 7.1).
	ErrHMACInvalid = errors.New("X-HMAC-SIGNATURE is not valid")

	// ErrHMACKey says that an HMAC key cannot be used: it is empty, blank, or
	// not in the encoding that it was said to be in.
	ErrHMACKey = errors.New("HMAC key cannot be used")

	// ErrRampNotFound is the service's answer to an initialize call without a
	// project that it knows (interface 7.1, "ramp not found").
	ErrRampNotFound = errors.New("the service knows no such project")

	// ErrRampNotExists is the service's answer to an initialize call for a
	// network that it does not serve (interface 7.1, "ramp not exists").
	ErrRampNotExists = errors.New("the service serves no such network")

	// ErrSessionMissing says that a call carried no usable X-Dapp-SessionID
	// header (interface 5.1).
	ErrSessionMissing = errors.New("X-Dapp-SessionID is missing")

	// ErrTokenMissing says that a call carried no usable
	// "X-Dapp-Authorization: Bearer <access_token>" header (interface 5.1).
	ErrTokenMissing = errors.New("X-Dapp-Authorization with a bearer token is missing")

	// ErrSessionMismatch says that the X-Dapp-SessionID header of a result is
	// not the session_id of its signed body.
	ErrSessionMismatch = errors.New("X-Dapp-SessionID contradicts the signed body")

	// ErrBodyTooLarge says that a body is above the handler's limit.
	ErrBodyTooLarge = errors.New("the body is too large")

	// ErrValidatorKey says that a validator key, public key or address cannot
	// be used (interface 5.3).
	ErrValidatorKey = errors.New("validator key cannot be used")

	// ErrSignature says that bytes are not a signature, or not the one that was
	// asked for: made by another key, or over another digest.
	ErrSignature = errors.New("signature is not valid")
)

// InvalidError lists every field that is wrong in a message or a config, each by
// its path. It holds no value of them, only what is wrong with it.
type InvalidError struct {
	Fields []FieldError
}

// FieldError is one wrong field of an [InvalidError].
type FieldError struct {
	// Path is the field as the interface writes it, with the index of an
	// element where it is known: "intent.materials[1].icon_url". A field of a
	// config is named as in Go: "HandlerConfig.Game".
	Path string

	// Problem completes the sentence that Path begins: "is required".
	Problem string

	sentinel error // for errors.Is, or nil
}

// Unwrap returns the sentinels of the fields: [ErrHMACKey] and [ErrValidatorKey]
// for the keys of a config.
func (e *InvalidError) Unwrap() []error {
	var sentinels []error
	for _, f := range e.Fields {
		if f.sentinel != nil {
			sentinels = append(sentinels, f.sentinel)
		}
	}
	return sentinels
}

// Error names the first twenty fields, so that a body of thousands of wrong ones
// does not fill a log.
func (e *InvalidError) Error() string {
	const most = 20
	var problems []string
	for i, f := range e.Fields {
		if i == most {
			problems = append(problems, fmt.Sprintf("and %d more", len(e.Fields)-most))
			break
		}
		problems = append(problems, f.Path+" "+f.Problem)
	}
	return "ramp: " + strings.Join(problems, "; ")
}

// code names the first wrong field: intent.from[0].amount is
// INVALID_INTENT_FROM_AMOUNT.
func (e *InvalidError) code() Code {
	if len(e.Fields) == 0 {
		return codeInvalidBody
	}
	var b strings.Builder
	b.WriteString("INVALID_")
	index := false
	for _, r := range e.Fields[0].Path {
		switch {
		case r == '[':
			index = true
		case r == ']':
			index = false
		case index:
		case r == '.':
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
	}
	return Code(strings.ToUpper(b.String()))
}

// maxProblems bounds the work that a body of thousands of wrong elements makes.
const maxProblems = 1000

// problems collects what is wrong with a message while it is checked.
type problems []FieldError

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, FieldError{Path: path, Problem: fmt.Sprintf(format, args...)})
}

func (p *problems) require(ok bool, path string) {
	if !ok {
		p.add(path, "is required")
	}
}

// requireText refuses text that encoding/json writes differently under each of
// its versions.
func (p *problems) requireText(text, path string) {
	if !utf8.ValidString(text) {
		p.add(path, "must be valid UTF-8")
	}
}

// requireKey requires a key of a config, and has errors.Is find sentinel.
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

// complete adds what a check found to what reading found, in the order of the
// interface and each field once: a field that could not be read, or is in an
// object that could not be, is not also missing.
func (p problems) complete(found problems) problems {
	for _, f := range found {
		if !slices.ContainsFunc(p, func(read FieldError) bool { return covers(read.Path, f.Path) }) {
			p = append(p, f)
		}
	}
	slices.SortStableFunc(p, func(a, b FieldError) int { return comparePaths(a.Path, b.Path) })
	return p
}

// covers reports whether path is outer or leads into it.
func covers(outer, path string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// addAll takes over what another check found.
func (p *problems) addAll(err error) {
	var wrong *InvalidError
	if errors.As(err, &wrong) {
		*p = append(*p, wrong.Fields...)
	}
}

// err is nil, and not a nil *InvalidError, when nothing is wrong.
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
