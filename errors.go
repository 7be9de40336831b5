package ramp

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Sentinels, for [errors.Is]; docs/security.md says what errors show. A [Handler] rejects
// a call for the first two, and a [Client] returns them, [ErrUnknownProject] and
// [ErrUnknownNetwork] if the service reports them.
var (
	// ErrHMACMissing means that a call has no X-HMAC-SIGNATURE header (interface 7.1, 5.2).
	ErrHMACMissing = errors.New("X-HMAC-SIGNATURE is missing")
	// ErrHMACInvalid means that it does not match the body and the key (interface 7.1, "invalid mac").
	ErrHMACInvalid = errors.New("X-HMAC-SIGNATURE is not valid")
	// ErrHMACKey means that an HMAC key is empty, blank, or not in the expected encoding.
	ErrHMACKey = errors.New("HMAC key is unusable")
	// ErrUnknownProject means that the project is missing, or that the service does not know it
	// (interface 7.1: "ramp not found").
	ErrUnknownProject = errors.New("the service does not know the project")
	// ErrUnknownNetwork means that the service does not serve the network (interface 7.1: "ramp not exists").
	ErrUnknownNetwork = errors.New("the service does not serve the network")
	// ErrValidatorKey means that a validator key, public key or address is unusable (interface 5.3).
	ErrValidatorKey = errors.New("validator key is unusable")
	// ErrSignature means that bytes are no signature, or not one by the expected key over the digest.
	ErrSignature = errors.New("signature is not valid")

	// ErrOrderUnknown means that no order has the UUID. Let the service redeliver a result for one: if
	// a database is being restored, the order may come back with it.
	ErrOrderUnknown = errors.New("unknown order")
	// ErrOrderConflict means that a call contradicts the stored order; see [*ConflictError].
	ErrOrderConflict = errors.New("the call contradicts the stored order")
	// ErrOrderForeign means that an order is of another project or network than the call; see [OnlyOf].
	ErrOrderForeign = errors.New("the order is of another project or network")
	// ErrOrderFinished means that an order has ended: it can be neither accepted nor abandoned.
	ErrOrderFinished = errors.New("the order is finished")

	// ErrNotFound means that the node answered null: it does not know the block, transaction or
	// receipt (yet). If it never does, it may be on another network; see [RPCConfig].ChainID.
	ErrNotFound = errors.New("the node does not know it (yet)")
	// ErrAnswerTooLarge means that an answer was not read to its end. Ask for less, such as for the
	// logs of fewer blocks.
	ErrAnswerTooLarge = errors.New("the answer is too large")
	// ErrWrongChain means that the node is not on the chain of [RPCConfig].ChainID.
	ErrWrongChain = errors.New("the node is on another chain")
)

// Must returns value, and panics if err is not nil. It is for what a program cannot start
// without, such as ramp.Must(ramp.NewTerms(config)).
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// InvalidError lists every missing or wrong field of a message or a config, but no
// values, except of [Terms.Match], which says what it expected and what came.
// Constructors with a config and UnmarshalJSON return it.
type InvalidError struct {
	Fields []FieldError // at least one, in the order of the message or config
}

// FieldError describes one wrong field of an [InvalidError].
type FieldError struct {
	// Path names the field as the interface does, with the index of an array element if it is known:
	// "intent.materials[1].icon_url". A config field has its Go name: "HandlerConfig.Store".
	Path    string
	Problem string // completes the sentence that Path begins, such as "is required"

	sentinel error // for errors.Is, or nil
}

// Unwrap returns [ErrHMACKey] and [ErrValidatorKey] for missing keys of a config.
func (e *InvalidError) Unwrap() []error {
	var sentinels []error
	for _, f := range e.Fields {
		if f.sentinel != nil {
			sentinels = append(sentinels, f.sentinel)
		}
	}
	return sentinels
}

// Error describes the first twenty fields.
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

// maxProblems bounds the work for a message with thousands of wrong elements.
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

// requireFilled requires text, as requireText does.
func (p *problems) requireFilled(text, path string) {
	p.require(text != "", path)
	p.requireText(text, path)
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

// addAll adds the fields of another check's error, which must not be wrapped.
func (p *problems) addAll(err error) {
	if wrong, ok := err.(*InvalidError); ok { // errors.As would allocate without an error too
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

// readable is a type that a reader fills. It is zero before.
type readable interface{ read(*wire.Reader) }

// readValue reads a value of this package.
func readValue(x *wire.Reader, into any) { into.(readable).read(x) }

func newReader(text []byte, root string) wire.Reader { return wire.New(text, root, readValue) }

// wrongFields are what a reader found.
func wrongFields(found []wire.Problem) (p problems) {
	for _, f := range found {
		p = append(p, FieldError{Path: f.Path, Problem: f.Text})
	}
	return p
}

// readWire reads valid JSON into a value, which is zeroed first. Raw fields are slices of
// a copy, so the caller may reuse the text.
func readWire(text []byte, root string, into readable) error {
	return readFrom(newReader(bytes.Clone(text), root), into)
}

// readOfNode reads valid JSON of a node like readWire, and forgives.
func readOfNode(text []byte, root string, into readable) error {
	return readFrom(wire.NewOfNode(bytes.Clone(text), root, readValue), into)
}

func readFrom(x wire.Reader, into readable) error {
	reflect.ValueOf(into).Elem().SetZero()
	into.read(&x)
	return wrongFields(x.Wrong).err()
}

// unmarshalWire is UnmarshalJSON of every wire type, with any text.
func unmarshalWire(text []byte, root string, into readable) error {
	if !wire.IsJSON(text) {
		return invalid(root, "must be valid JSON")
	}
	return readWire(text, root, into)
}
