package ramp

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
)

// Bounds of a message, far above what a game or a contract produces. They keep a
// small message from becoming a large value.
const (
	maxIntentAssets = 1_000   // entries on each side of an intent
	maxReceiptLogs  = 4_096   // logs of the receipt in a result
	maxLogTopics    = 16      // topics of one log; the EVM allows 4
	maxListEntries  = 100_000 // over JSON-RPC: transactions of a block, logs, answers of a batch
)

// reader walks over valid JSON and converts its values. So it only collects errors in
// the values, each with its path.
//
// Every wire type has a read method that fills its zero value. The reader stands at
// the first byte of the value before, and behind the last byte after. A Raw field
// is a slice of the text, so the maker of the reader decides who owns the text.
type reader struct {
	text    []byte
	plain   bool   // text has no escapes
	ofNode  bool   // what decides nothing may be malformed, see forgive
	at      int    // the next byte of text
	root    string // the name of the whole text in errors
	depth   int    // of objects and arrays around the current value
	wrong   problems
	zeroing bool // a field with an error is zeroed, see object

	faults int // number of errors found; wrong may hold fewer
	arrays int // number of steps into an array
	listed int // errors in wrong about the outermost array
}

// isJSON is json.Valid in a third of the time: it leaves out what is inside of simple
// strings. Go 1.27 does not need it.
func isJSON(text []byte) bool {
	outer := make([]byte, 0, 1024)
	for n := 0; n < len(text); n++ {
		outer = append(outer, text[n])
		if text[n] != '"' {
			continue
		}
		for n++; n < len(text) && text[n] >= ' ' && text[n] != '\\' && text[n] != '"'; n++ {
		}
		if n == len(text) || text[n] != '"' {
			return json.Valid(text)
		}
		outer = append(outer, '"')
	}
	return json.Valid(outer)
}

// readable is a wire type.
type readable interface{ read(*reader) }

// newReader returns a reader at the value of valid JSON. root names the text in errors.
func newReader(text []byte, root string) reader {
	x := reader{text: text, plain: bytes.IndexByte(text, '\\') < 0, root: root}
	x.space()
	return x
}

// readWire reads valid JSON into a value, which is zeroed first. Raw fields are slices of
// a copy, so the caller may reuse the text.
func readWire(text []byte, root string, into readable) error {
	reflect.ValueOf(into).Elem().SetZero()
	x := newReader(bytes.Clone(text), root)
	into.read(&x)
	return x.wrong.err()
}

// readOfNode reads valid JSON of a node like readWire, and forgives.
func readOfNode(text []byte, root string, into readable) error {
	reflect.ValueOf(into).Elem().SetZero()
	x := newReader(bytes.Clone(text), root)
	x.ofNode, x.zeroing = true, true
	into.read(&x)
	return x.wrong.err()
}

// unmarshalWire is UnmarshalJSON of every wire type, with any text.
func unmarshalWire(text []byte, root string, into readable) error {
	if !isJSON(text) {
		return invalid(root, "must be valid JSON")
	}
	return readWire(text, root, into)
}

// bodyReader returns a reader of a body, which must be exactly one JSON object. A byte order mark
// before it says nothing (RFC 8259, 8.1), and must not cost a result.
func bodyReader(body []byte) (reader, error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	switch trimmed := bytes.TrimSpace(body); {
	case len(trimmed) > 0 && trimmed[0] == '{' && isJSON(body):
		return newReader(body, "body"), nil
	case len(trimmed) == 0:
		return reader{}, invalid("body", "must be one JSON object, but is empty")
	default:
		return reader{}, invalid("body", "must be one JSON object")
	}
}

// fault records an error in the value at the current path. Each outermost array has
// its own limit, so that none hides the errors outside of it.
func (x *reader) fault(format string, args ...any) {
	x.faults++
	if x.arrays > 0 {
		if x.listed == maxProblems {
			return
		}
		x.listed++
	}
	path := "" // object and eachElement write it
	if x.depth == 0 {
		path = x.root
	}
	x.wrong.add(path, format, args...)
}

// mismatch records that the value is not of the wanted kind. It describes the
// value, but does not quote it.
func (x *reader) mismatch(want string, value []byte) {
	x.fault("must be %s, not %s", want, x.describe(value))
}

// inside puts a step before the paths of the errors that were found since, as the
// interface writes them, such as intent.from[0].amount.
func (x *reader) inside(step string, since int) {
	for n := since; n < len(x.wrong); n++ {
		path := &x.wrong[n].Path
		if *path != "" && (*path)[0] != '[' {
			*path = "." + *path
		}
		*path = step + *path
	}
}

// members reads the members of an object. Its arguments are their names, each followed by
// a pointer to where it is read, of a type that reader.value knows.
func (x *reader) members(pairs ...any) {
	names, into := make([]string, 0, 8), make([]any, 0, 8)
	for n := 0; n < len(pairs); n += 2 {
		names, into = append(names, pairs[n].(string)), append(into, pairs[n+1])
	}
	x.object(names, into...)
}

// structure reads the members of an object into the fields of a struct, whose names
// memberNames returned. last replaces the last fields. Receipt and Log, which are read most
// often, list their fields instead, which takes less time than reflection.
func (x *reader) structure(names []string, into any, last ...any) []byte {
	fields, all := reflect.ValueOf(into).Elem(), make([]any, 0, 24)
	for n := range len(names) - len(last) {
		all = append(all, fields.Field(n).Addr().Interface())
	}
	return x.object(names, append(all, last...)...)
}

// memberNames returns the JSON names of the fields of a struct, up to the first field
// that is not JSON.
func memberNames[T any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			break
		}
		names = append(names, name)
	}
	return names
}

// mark is a position among the errors of a reader.
type mark struct{ wrong, faults, listed int }

func (x *reader) mark() mark { return mark{len(x.wrong), x.faults, x.listed} }

// forgive drops the errors since m of an object that a node sent, except in the fields that
// decide: nodes write what nobody reads in many ways. The others are zero.
func (x *reader) forgive(m mark, decisive ...string) {
	if !x.ofNode || x.faults == m.faults {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(x.wrong[m.wrong:]), func(f FieldError) bool {
		field, _, _ := strings.Cut(f.Path, ".")
		field, _, _ = strings.Cut(field, "[")
		return f.Path != x.root && field != "" && !slices.Contains(decisive, field)
	})
	x.wrong = append(x.wrong[:m.wrong], kept...)
	x.faults, x.listed = m.faults+len(kept), min(x.listed, m.listed+len(kept))
}

// object reads the members of an object that names lists, and skips the others. into has
// a pointer for each name. A duplicate name is an error. null has no members. Any other
// value is an error. object returns the bytes of the value.
//
// With zeroing, a field with an error is zero afterwards, so that nothing is half
// read. So is a list if one of its entries has an error, but in an object only the
// field that has it.
func (x *reader) object(names []string, into ...any) []byte {
	start := x.at
	if !x.enter('{', "an object") {
		return x.since(start)
	}
	x.depth++
	var seen, repeated uint64 // bit n is names[n]
	for next := 0; x.more(); {
		n := x.name(names, next)
		if n < 0 {
			x.skip()
			continue
		}
		next = n + 1
		into := into[n]
		found, faults, whole := len(x.wrong), x.faults, x.kind() != '{'
		switch bit := uint64(1) << n; {
		case seen&bit == 0:
			seen |= bit
			x.value(into)
		case repeated&bit == 0:
			repeated |= bit
			whole = true
			x.fault("occurs more than once")
			x.skip()
		default:
			x.skip()
		}
		x.inside(names[n], found)
		if x.zeroing && whole && x.faults > faults {
			reflect.ValueOf(into).Elem().SetZero()
		}
	}
	x.depth--
	return x.since(start)
}

// elements iterates over the indexes of an array, with the reader at each entry.
// The loop must read each entry and run to its end. More than limit entries are an
// error, and the rest is skipped. null has no entries. Any other value is an error.
func (x *reader) elements(limit int) iter.Seq[int] {
	return func(yield func(int) bool) { x.eachElement(limit, yield) }
}

func (x *reader) eachElement(limit int, yield func(int) bool) {
	if !x.enter('[', "an array") {
		return
	}
	if x.arrays == 0 {
		x.listed = 0
	}
	x.depth++
	x.arrays++
	n := 0
	for ; x.more(); n++ {
		if n >= limit {
			x.skip()
			continue
		}
		if found := len(x.wrong); yield(n) && found < len(x.wrong) {
			x.inside("["+strconv.Itoa(n)+"]", found)
		}
	}
	x.depth--
	x.arrays--
	if n > limit {
		x.fault("must not have more than %d entries", limit)
	}
}

// readList reads an array of up to limit entries. It first allocates room for the
// usual number. null is read as nil, and an empty array as an empty slice.
func readList[T any](x *reader, usual, limit int, read func(*T, *reader)) (list []T) {
	start := x.at
	if x.kind() == '[' {
		list = make([]T, 0, usual)
	}
	for n := range x.elements(limit) {
		room := 1
		if n == usual { // the others are probably as long
			room = min(n*(len(x.text)-x.at)/(x.at-start)+1, 64)
		}
		list = slices.Grow(list, room)[:n+1] // zero, because it was never used
		read(&list[n], x)
	}
	return list
}

// enter steps into an object or an array, and reports whether there is one.
func (x *reader) enter(bracket byte, want string) bool {
	if x.kind() == bracket {
		x.at++
		return true
	}
	if value := x.raw(); value[0] != 'n' {
		x.mismatch(want, value)
	}
	return false
}

// more moves to the next member or entry, and reports whether there is one.
// Otherwise it moves out of the object or array.
func (x *reader) more() bool {
	x.space()
	if x.kind() == ',' {
		x.at++
		x.space()
	}
	if c := x.kind(); c == '}' || c == ']' {
		x.at++
		return false
	}
	return true
}

// name reads the name of a member, moves to its value, and returns the index of its
// name, or -1. It tries likely first, because members usually come in the order of
// names.
func (x *reader) name(names []string, likely int) int {
	n := -1
	if likely < len(names) && x.isName(names[likely]) {
		n = likely
		x.at += len(names[n]) + len(`""`)
	} else if quoted := x.raw(); bytes.IndexByte(quoted, '\\') < 0 {
		n = slices.Index(names, string(quoted[1:len(quoted)-1]))
	} else if name, err := strconv.Unquote(string(quoted)); err == nil { // as in Go, for ours
		n = slices.Index(names, name)
	}
	x.space()
	x.at++ // the colon
	x.space()
	return n
}

// isName reports whether the reader is at a name, written without escapes.
func (x *reader) isName(name string) bool {
	rest := x.text[x.at+1:]
	return len(rest) > len(name) && rest[len(name)] == '"' && string(rest[:len(name)]) == name
}

func (x *reader) space() {
	for isSpace(x.kind()) {
		x.at++
	}
}

// isSpace reports whether a byte outside of strings is white space. No other byte
// there is as low.
func isSpace(c byte) bool { return c <= ' ' }

// kind returns the next byte, which says what the current value is.
func (x *reader) kind() byte { return x.text[x.at] }

// raw skips any value and returns its bytes.
func (x *reader) raw() []byte {
	start := x.at
	x.skip()
	return x.since(start)
}

// since returns the bytes from start to the current position.
func (x *reader) since(start int) []byte { return x.text[start:x.at:x.at] }

// skip moves behind the value.
func (x *reader) skip() {
	for depth := 0; ; {
		switch c := x.kind(); {
		case c == '"':
			x.skipString()
		case c == '{' || c == '[':
			depth++
			x.at++
		case c == '}' || c == ']':
			depth--
			x.at++
		case c == ',' || c == ':' || isSpace(c):
			x.at++
		default: // a number, a boolean or null
			for ; x.at < len(x.text); x.at++ {
				if c := x.kind(); c == ',' || c == '}' || c == ']' || isSpace(c) {
					break
				}
			}
		}
		if depth == 0 {
			return
		}
	}
}

// skipString moves behind a string: to the first quote that is preceded by an even
// number of backslashes.
func (x *reader) skipString() {
	for end := x.at + 1; ; end++ {
		end += bytes.IndexByte(x.text[end:], '"')
		before := end
		for x.text[before-1] == '\\' { // stops at the opening quote at the latest
			before--
		}
		if (end-before)%2 == 0 {
			x.at = end + 1
			return
		}
	}
}

// unquoted returns the bytes of a JSON string. The standard library decodes strings
// with escapes.
func (x *reader) unquoted(value []byte) []byte {
	inner := value[1 : len(value)-1]
	if x.plain || bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	_ = json.Unmarshal(value, &s) // valid JSON
	return []byte(s)
}

// value reads any value into a pointer.
func (x *reader) value(into any) {
	switch into := into.(type) {
	case *string:
		*into = x.string()
	case *bool:
		*into = x.bool()
	case *hexutil.Bytes:
		*into = x.blob()
	case *json.RawMessage:
		*into = x.keep()
	case *uuid.UUID:
		*into = x.uuid(false)
	case *common.Hash:
		x.fixed(into[:])
	case *[]common.Hash:
		*into = readList(x, 3, maxLogTopics, readHash)
	case *common.Address:
		if value := x.raw(); !isNoAddress(value) {
			x.decodeFixed(value, into[:])
		}
	case **common.Address:
		if value := x.raw(); !isNoAddress(value) {
			*into = new(common.Address)
			x.decodeFixed(value, (*into)[:])
		}
	default:
		into.(readable).read(x)
	}
}

// The methods below convert one value. Unless they say otherwise, null is read as
// the zero value, and a value of another kind is an error.

// string reads a string. It must be valid UTF-8, because it may be stored.
func (x *reader) string() string {
	switch value := x.raw(); {
	case value[0] == '"' && utf8.Valid(value):
		return word(x.unquoted(value))
	case value[0] == '"':
		x.fault("must be valid UTF-8")
	case value[0] != 'n':
		x.mismatch("a string", value)
	}
	return ""
}

// word returns text as a string, without an allocation for frequent words of the
// interface.
func word(text []byte) string {
	for _, w := range [...]string{"asset", "ERC20", "mint", "assemble", "disassemble", "burn-permit"} {
		if string(text) == w {
			return w
		}
	}
	return string(text)
}

// looseText is text that decides nothing: a string or a number. Anything else is
// read as "".
type looseText string

func (l *looseText) read(x *reader) { *l = looseText(x.loose()) }

func (x *reader) loose() string {
	switch value := x.raw(); {
	case value[0] == '"' && utf8.Valid(value):
		return string(x.unquoted(value))
	case isNumber(value):
		return string(value)
	}
	return ""
}

// unread is the text of any value, which may not be valid UTF-8.
type unread []byte

func (u *unread) read(x *reader) { *u = x.raw() }

// absent reports whether the value is missing or null.
func (u unread) absent() bool { return len(u) == 0 || u[0] == 'n' }

// keep returns the bytes of any value, which must be valid UTF-8.
func (x *reader) keep() json.RawMessage {
	value := x.raw()
	if !utf8.Valid(value) {
		x.fault("must be valid UTF-8")
		return nil
	}
	return value
}

func (x *reader) bool() bool {
	value := x.raw()
	if c := value[0]; c != 't' && c != 'f' && c != 'n' {
		x.mismatch("a boolean", value)
	}
	return value[0] == 't'
}

// anyUUID is a UUID in any notation.
type anyUUID uuid.UUID

func (id *anyUUID) read(x *reader) { *id = anyUUID(x.uuid(true)) }

// uuid reads a UUID of 36 characters, and if any is true, every other notation that
// [uuid.Validate] accepts.
func (x *reader) uuid(any bool) uuid.UUID {
	value := x.raw()
	if value[0] == 'n' {
		return uuid.Nil
	}
	if value[0] == '"' {
		text := x.unquoted(value)
		id, err := uuid.ParseBytes(text)
		if err == nil && (len(text) == 36 || any && uuid.Validate(string(text)) == nil) {
			return id
		}
	}
	x.mismatch("a UUID", value)
	return uuid.Nil
}

// fixed reads hex with 0x that fills into. null and "" leave it unchanged.
func (x *reader) fixed(into []byte) {
	if value := x.raw(); !isNothing(value) {
		x.decodeFixed(value, into)
	}
}

func (x *reader) decodeFixed(value, into []byte) {
	if digits := x.hexDigits(value); len(digits) == 2*len(into) && decodeHex(into, digits) {
		return
	}
	x.fault("must be 0x followed by %d hex digits, not %s", 2*len(into), x.describe(value))
}

// blob reads hex with 0x of any length. null and "" are read as nil.
func (x *reader) blob() []byte {
	value := x.raw()
	if isNothing(value) {
		return nil
	}
	if digits := x.hexDigits(value); digits != nil {
		if b := make([]byte, len(digits)/2); decodeHex(b, digits) {
			return b
		}
	}
	x.mismatch("hex with 0x", value)
	return nil
}

// decodeHex reports whether it could decode digits.
func decodeHex(into, digits []byte) bool {
	_, err := hex.Decode(into, digits)
	return err == nil
}

// hexDigits returns the part of a string after 0x, or nil without 0x.
func (x *reader) hexDigits(value []byte) []byte {
	if value[0] != '"' {
		return nil
	}
	text := x.unquoted(value)
	if len(text) < len("0x") || text[0] != '0' || text[1] != 'x' && text[1] != 'X' {
		return nil
	}
	return text[2:]
}

// isNothing reports whether a value is null or "", which nodes use for a missing
// value.
func isNothing(value []byte) bool { return value[0] == 'n' || string(value) == `""` }

// isNoAddress also knows what some nodes write for the receiver of a creation.
func isNoAddress(value []byte) bool { return isNothing(value) || string(value) == `"0x"` }

// isNumber reports whether a value is a number.
func isNumber(value []byte) bool { return value[0] == '-' || '0' <= value[0] && value[0] <= '9' }

// describe names the kind of a JSON value.
func (x *reader) describe(value []byte) string {
	if value[0] == '"' {
		return fmt.Sprintf("a string of %d characters", utf8.RuneCount(x.unquoted(value)))
	}
	return cmp.Or(kinds[value[0]], "a number")
}

var kinds = map[byte]string{'{': "an object", '[': "an array", 't': "a boolean", 'f': "a boolean", 'n': "null"}

// wireOrder lists the names of 2.5 and 6 in an order that is right for every object
// in which a wrong field gets a code.
var wireOrder = []string{
	"body", "session_id", "user_sig", "user_address", "project_id", "digest", "uuid",
	"tx_hash", "receipt", "intent", "method", "type", "root", "status", "cumulativeGasUsed", "logsBloom", "logs",
	"address", "topics", "data", "from", "to", "id", "amount",
	"target_candidate", "fee_rate", "actual",
}

// complete adds what a check found to what reading found, in the order of the
// interface and once per field. A field that could not be read, or whose object
// could not be, is not reported as missing too.
func (p problems) complete(found problems) problems {
	for _, f := range found {
		if !slices.ContainsFunc(p, func(read FieldError) bool { return covers(read.Path, f.Path) }) {
			p = append(p, f)
		}
	}
	slices.SortStableFunc(p, func(a, b FieldError) int {
		return slices.Compare(wirePosition(a.Path), wirePosition(b.Path))
	})
	return p
}

// wirePosition returns where a path is in the message.
func wirePosition(path string) (position []int) {
	for _, step := range pathSteps(path) {
		n, err := strconv.Atoi(step)
		if err != nil {
			n = slices.Index(wireOrder, step)
		}
		position = append(position, n)
	}
	return position
}

// pathSteps splits a path into its names and indexes.
func pathSteps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
}

// covers reports whether path is outer or lies inside it.
func covers(outer, path string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// isHex reports whether s consists of one or more hex digits.
func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// readHash reads a hash of a list. null and "" are errors there.
func readHash(h *common.Hash, x *reader) { x.decodeFixed(x.raw(), h[:]) }
