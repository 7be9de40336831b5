package ramp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Bounds of what a message may hold. They are far above what a game or a
// contract produces, and keep a small message from becoming a large value.
const (
	maxIntentAssets = 1_000   // entries on each side of an intent
	maxReceiptLogs  = 4_096   // logs of one receipt
	maxLogTopics    = 16      // topics of one log, of which the EVM knows 4
	maxListEntries  = 100_000 // transactions of a block, logs of eth_getLogs, answers of a batch
)

// reader walks one JSON text that [json.Valid] has accepted, and converts its
// values. The standard library decides what JSON is, so the reader meets no
// broken syntax; it collects what is wrong with the values, each with its path.
//
// Every wire type has a read method that sets its zero value. It takes a reader
// standing at the first byte of a value and leaves it behind the last. A Raw
// field is a slice of the text, so whoever makes a reader decides who owns the
// text.
type reader struct {
	text  []byte
	at    int    // the next byte of text
	plain bool   // there is no escape in text
	root  string // what the whole text is, in an error
	depth int    // how many steps lead to the value
	steps [8]step
	wrong problems

	faults int // how many there were; wrong may hold fewer
	arrays int // how many of the steps lead into an array
	listed int // the faults that wrong holds of the outermost array
}

// step leads from an object or an array to one of its values.
type step struct {
	name  string // of a member; empty for an entry
	index int    // of an entry
}

// readable is a wire type.
type readable interface{ read(*reader) }

// newReader returns a reader that stands at the value of a text, which
// json.Valid has accepted. root names the text in errors.
func newReader(text []byte, root string) reader {
	x := reader{text: text, plain: bytes.IndexByte(text, '\\') < 0, root: root}
	x.space()
	return x
}

// readWire reads the whole of a text that json.Valid has accepted, into a value
// that may have been used before. Raw fields are slices of a copy, so the caller
// may reuse the text.
func readWire(text []byte, root string, into readable) error {
	reflect.ValueOf(into).Elem().SetZero()
	x := newReader(bytes.Clone(text), root)
	into.read(&x)
	return x.wrong.err()
}

// unmarshalWire is the UnmarshalJSON of every wire type. Anyone may call that
// method directly, so it validates first.
func unmarshalWire(text []byte, root string, into readable) error {
	if !json.Valid(text) {
		return invalid(root, "must be valid JSON")
	}
	return readWire(text, root, into)
}

// checkObject checks that a body is one JSON object and nothing more.
func checkObject(body []byte) error {
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); {
	case len(trimmed) == 0:
		return invalid("body", "must be one JSON object, but is empty")
	case trimmed[0] != '{', !json.Valid(body):
		return invalid("body", "must be one JSON object")
	}
	return nil
}

// fault records what is wrong with the value at the current path. Each array
// that is in no other has a bound of its own, so that none hides what is wrong
// outside of it; the members there are few.
func (x *reader) fault(format string, args ...any) {
	x.faults++
	if x.arrays > 0 {
		if x.listed == maxProblems {
			return
		}
		x.listed++
	}
	x.wrong.add(x.path(), format, args...)
}

// mismatch records that the value is not of the wanted kind. It describes the
// value instead of quoting it.
func (x *reader) mismatch(want string, value []byte) {
	x.fault("must be %s, not %s", want, describe(value))
}

// path returns where the reader stands, as the interface writes it:
// intent.from[0].amount.
func (x *reader) path() string {
	var b strings.Builder
	for _, s := range x.steps[:x.depth] {
		switch {
		case s.name == "":
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() == 0:
			b.WriteString(s.name)
		default:
			b.WriteString("." + s.name)
		}
	}
	if b.Len() == 0 {
		return x.root
	}
	return b.String()
}

// members returns the members of an object that have one of the names, and
// leaves the reader at each value. The loop over it must run to its end. Other
// members are skipped; a name that occurs again is a fault, and its value is
// skipped. null has no members, and any other value is a fault.
func (x *reader) members(names ...string) iter.Seq[string] {
	return func(yield func(string) bool) { x.eachMember(names, yield) }
}

func (x *reader) eachMember(names []string, yield func(string) bool) {
	if !x.enter('{', "an object") {
		return
	}
	here := &x.steps[x.depth]
	x.depth++
	var seen, repeated uint64 // bit n is names[n]
	for next := 0; x.more(); {
		n := x.name(names, next)
		if n < 0 {
			x.skip()
			continue
		}
		next = n + 1
		*here = step{name: names[n]}
		bit := uint64(1) << n
		if seen&bit == 0 {
			seen |= bit
			if before := x.at; yield(names[n]) && x.at == before {
				x.skip()
			}
			continue
		}
		if repeated&bit == 0 {
			repeated |= bit
			x.fault("occurs more than once")
		}
		x.skip()
	}
	x.depth--
}

// elements returns the indexes of an array, and leaves the reader at each
// entry. The loop over it must read each entry, and run to its end. More than
// limit entries are a fault, and are skipped. null has no entries, and any other
// value is a fault.
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
	here := &x.steps[x.depth]
	x.depth++
	x.arrays++
	n := 0
	for ; x.more(); n++ {
		if n >= limit {
			x.skip()
			continue
		}
		*here = step{index: n}
		yield(n)
	}
	x.depth--
	x.arrays--
	if n > limit {
		x.fault("must not have more than %d entries", limit)
	}
}

// readList reads an array of at most limit entries. It makes room for the usual
// number first. null is nil, and an empty array is not.
func readList[T any](x *reader, usual, limit int, read func(*T, *reader)) []T {
	var list []T
	if x.kind() == '[' {
		list = []T{}
	}
	start := x.at
	for n := range x.elements(limit) {
		if n == cap(list) {
			room := max(usual, n)
			if n == usual { // as many as fit the text, within reason
				room = min(n*(len(x.text)-x.at)/(x.at-start)+1, 64)
			}
			list = slices.Grow(list, min(room, limit-n))
		}
		list = list[:n+1] // which is zero: nothing was there before
		read(&list[n], x)
	}
	return list
}

// enter goes into an object or an array. It reports whether there is one.
func (x *reader) enter(bracket byte, want string) bool {
	if x.text[x.at] == bracket {
		x.at++
		return true
	}
	if value := x.raw(); value[0] != 'n' {
		x.mismatch(want, value)
	}
	return false
}

// more goes to the next member or entry, or out of the object or array behind
// the last. It reports whether there was another.
func (x *reader) more() bool {
	x.space()
	if x.text[x.at] == ',' {
		x.at++
		x.space()
	}
	if c := x.text[x.at]; c == '}' || c == ']' {
		x.at++
		return false
	}
	return true
}

// name reads the name of a member, goes to its value, and returns which of
// names it is, or -1. It looks at likely first, because members usually come in
// the order of names.
func (x *reader) name(names []string, likely int) int {
	n := -1
	if likely < len(names) && x.isName(names[likely]) {
		n = likely
		x.at += len(names[n]) + len(`""`)
	} else {
		var buffer [32]byte // longer than any name
		n = slices.Index(names, string(plainName(x.raw(), buffer[:0])))
	}
	x.space()
	x.at++ // the colon
	x.space()
	return n
}

// isName reports whether the reader stands at a name, written without escapes.
func (x *reader) isName(name string) bool {
	rest := x.text[x.at+1:]
	return len(rest) > len(name) && rest[len(name)] == '"' && string(rest[:len(name)]) == name
}

// plainName returns a name without quotes and escapes, or nil if it is none of
// ours. Those fit the buffer and are of ASCII letters, for which there is one
// escape. The standard library would take four times as long for a body of
// escaped names.
func plainName(quoted, buffer []byte) []byte {
	written := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(written, '\\') < 0 {
		return written
	}
	name := buffer
	for len(written) > 0 && len(name) < cap(name) {
		c, length := written[0], 1
		if c == '\\' {
			if written[1] != 'u' || string(written[2:4]) != "00" {
				return nil
			}
			var char [1]byte
			_, _ = hex.Decode(char[:], written[4:6]) // valid JSON
			c, length = char[0], 6
		}
		name, written = append(name, c), written[length:]
	}
	return name
}

func (x *reader) space() {
	for isSpace(x.text[x.at]) {
		x.at++
	}
}

// isSpace reports whether a byte outside of strings is white space. Nothing
// else that is this low occurs there.
func isSpace(c byte) bool { return c <= ' ' }

// kind returns the first byte of the value that the reader stands at.
func (x *reader) kind() byte { return x.text[x.at] }

// raw reads any value and returns its bytes.
func (x *reader) raw() []byte {
	start := x.at
	x.skip()
	return x.since(start)
}

// since returns the bytes from start to where the reader stands.
func (x *reader) since(start int) []byte { return x.text[start:x.at:x.at] }

// skip goes behind the value.
func (x *reader) skip() {
	for depth := 0; ; {
		switch c := x.text[x.at]; {
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
			for x.at < len(x.text) && !isDelimiter(x.text[x.at]) {
				x.at++
			}
		}
		if depth == 0 {
			return
		}
	}
}

func isDelimiter(c byte) bool { return c == ',' || c == '}' || c == ']' || isSpace(c) }

// skipString goes behind a string: to the first quote that an even number of
// backslashes precedes.
func (x *reader) skipString() {
	for end := x.at + 1; ; end++ {
		end += bytes.IndexByte(x.text[end:], '"')
		before := end
		for x.text[before-1] == '\\' { // the quote at the beginning ends this
			before--
		}
		if (end-before)%2 == 0 {
			x.at = end + 1
			return
		}
	}
}

// unquoted returns the bytes of a JSON string. The standard library decodes
// what has an escape in it.
func (x *reader) unquoted(value []byte) []byte {
	inner := value[1 : len(value)-1]
	if x.plain || bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	_ = json.Unmarshal(value, &s) // valid JSON
	return []byte(s)
}

// The methods below convert one value. null is the zero value, unless they say
// otherwise; a value of another kind is a fault.

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

// word returns text as a string, and needs no memory for the words of the
// interface.
func word(text []byte) string {
	switch string(text) {
	case string(TypeAsset):
		return string(TypeAsset)
	case string(TypeERC20):
		return string(TypeERC20)
	case string(MethodMint):
		return string(MethodMint)
	case string(MethodBurnPermit):
		return string(MethodBurnPermit)
	case string(Assemble):
		return string(Assemble)
	case string(Disassemble):
		return string(Disassemble)
	default:
		return string(text)
	}
}

// loose reads text that decides nothing: a string or a number, and "" for
// everything else.
func (x *reader) loose() string {
	switch value := x.raw(); {
	case value[0] == '"' && utf8.Valid(value):
		return string(x.unquoted(value))
	case isNumber(value):
		return string(value)
	}
	return ""
}

// keep reads any value and keeps its bytes, which must be valid UTF-8.
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

// uuid reads a UUID of 36 characters, and, if any is true, of every other
// notation that [uuid.Validate] knows.
func (x *reader) uuid(any bool) uuid.UUID {
	value := x.raw()
	if value[0] != '"' {
		if value[0] != 'n' {
			x.mismatch("a UUID", value)
		}
		return uuid.Nil
	}
	text := x.unquoted(value)
	id, err := uuid.ParseBytes(text)
	if err != nil || len(text) != 36 && (!any || uuid.Validate(string(text)) != nil) {
		x.fault("must be a UUID, not a string of %d characters", utf8.RuneCount(text))
		return uuid.Nil
	}
	return id
}

// fixed reads hex with 0x into all of the bytes. null and "" leave them alone.
func (x *reader) fixed(into []byte) {
	if value := x.raw(); !isNothing(value) {
		x.decodeFixed(value, into)
	}
}

func (x *reader) decodeFixed(value, into []byte) {
	if digits := x.hexDigits(value); len(digits) == 2*len(into) {
		if _, err := hex.Decode(into, digits); err == nil {
			return
		}
	}
	x.fault("must be %d bytes in hex with 0x, not %s", len(into), describe(value))
}

// blob reads hex with 0x of any length. null and "" are nil.
func (x *reader) blob() []byte {
	value := x.raw()
	if isNothing(value) {
		return nil
	}
	if digits := x.hexDigits(value); digits != nil {
		b := make([]byte, hex.DecodedLen(len(digits)))
		if _, err := hex.Decode(b, digits); err == nil {
			return b
		}
	}
	x.mismatch("hex with 0x", value)
	return nil
}

// hexDigits returns what follows the 0x of a string, nil if there is no 0x.
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

// isNothing reports whether a value is null or the empty string, with which
// nodes say that there is none.
func isNothing(value []byte) bool { return value[0] == 'n' || string(value) == `""` }

// isNumber reports whether a value is a number.
func isNumber(value []byte) bool { return value[0] == '-' || '0' <= value[0] && value[0] <= '9' }

// describe names the kind of a JSON value that has the wrong type or range.
func describe(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// wireOrder lists the names of 2.5 and 6 in an order that holds in every object
// of the interface in which a wrong field gets a code.
var wireOrder = []string{
	"body", "session_id", "user_sig", "user_address", "project_id", "digest", "uuid", "tx_hash", "receipt",
	"intent", "method", "type", "root", "status", "cumulativeGasUsed", "logsBloom", "logs",
	"address", "topics", "data", "from", "to", "id", "amount", "target_candidate", "fee_rate", "actual",
}

// comparePaths orders two paths by the fields of the interface, and the entries
// of an array by their indexes.
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		var first, second string
		first, a = cutStep(a)
		second, b = cutStep(b)
		if first == second {
			continue
		}
		if n, err := strconv.Atoi(first); err == nil {
			m, _ := strconv.Atoi(second) // an index too, of the same array
			return n - m
		}
		return slices.Index(wireOrder, first) - slices.Index(wireOrder, second)
	}
	return len(a) - len(b)
}

// cutStep cuts the first name or index off a path.
func cutStep(path string) (first, rest string) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return strings.TrimSuffix(path, "]"), ""
	}
	return strings.TrimSuffix(path[:end], "]"), path[end+1:]
}

// isHex reports whether s is one hex digit or more.
func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
