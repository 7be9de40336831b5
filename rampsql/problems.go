package rampsql

import (
	"fmt"
	"strings"
	"unicode/utf8"

	ramp "github.com/token-ramp/ramp-go"
)

// problems collects what is wrong with a config or a call.
type problems []ramp.FieldError

func (p *problems) require(ok bool, path, problem string) {
	if !ok {
		*p = append(*p, ramp.FieldError{Path: path, Problem: problem})
	}
}

// requireStorable rejects text that no order has, because the error of a driver could quote
// it.
func (p *problems) requireStorable(text, path string) {
	const limit = 1024 // as ramp.Accept says
	switch {
	case len(text) > limit:
		p.require(false, path, fmt.Sprintf("must be at most %d bytes", limit))
	case !utf8.ValidString(text):
		p.require(false, path, "must be valid UTF-8")
	case strings.ContainsRune(text, 0):
		p.require(false, path, "must not contain a NUL character")
	}
}

// err returns nil, and not a nil *ramp.InvalidError, if there are no problems.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &ramp.InvalidError{Fields: p}
}

func invalid(path, problem string) error {
	var p problems
	p.require(false, path, problem)
	return p.err()
}
