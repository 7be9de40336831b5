// Package wire reads the JSON of messages: one pass, which checks the syntax, converts values and knows
// the path of each error. Package ramp reads all of its types with it.
package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"math/bits"
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
	MaxIntentAssets = 1_000   // entries on each side of an intent
	MaxReceiptLogs  = 4_096   // logs of the receipt in a result
	maxLogTopics    = 16      // topics of one log; the EVM allows 4
	MaxListEntries  = 100_000 // over JSON-RPC: transactions of a block, logs, answers of a batch
)

// Reader walks once over a text, from value to value. It checks that the text is JSON, and converts
// the values on its way.
//
// There are two kinds of errors. A wrong value, such as a string for a number, is recorded in Wrong
// with its path, and reading goes on behind it. What is no JSON ends the walk: the reader jumps to the
// end of the text, where there are no more members or entries, and every value is null. So a method
// that reads a value need not know of syntax. But whoever made the reader must ask [Reader.Whole]
// at the end, and throw everything away that was read if it says no.
//
// Every wire type has a read method that fills its zero value. The reader stands at
// the first byte of the value before, and behind the last byte after. A Raw field
// is a slice of the text, so the maker of the reader decides who owns the text.
type Reader struct {
	text    []byte
	broken  bool   // text is no JSON
	ofNode  bool   // what decides nothing may be malformed, see forgive
	at      int    // the next byte of text
	root    string // the name of the whole text in errors
	depth   int    // of objects and arrays around the current value
	zeroing bool   // a field with an error is zeroed, see Object

	// Wrong are the errors that were found; about an array, only the first ones.
	Wrong []Problem

	// value reads a value into a pointer of a type that the reader does not know.
	value func(x *Reader, into any)

	faults int // number of errors found; Wrong may hold fewer
	arrays int // number of steps into an array
	listed int // errors in Wrong about the outermost array
}

// Problem is an error in a value.
type Problem struct {
	Path string // such as intent.from[0].amount
	Text string // such as "must be a number"
}

// maxListed bounds the work for a body with thousands of wrong elements.
const maxListed = 1000

// IsJSON reports whether a text is one valid JSON value, as json.Valid does.
func IsJSON(text []byte) bool {
	x := New(text, "", nil)
	x.Skip()
	return x.Whole()
}

// New returns a reader at the value of a text. root names the text in errors. value reads
// what the reader does not know.
func New(text []byte, root string, value func(x *Reader, into any)) Reader {
	x := Reader{text: text, root: root, value: value}
	x.space()
	return x
}

// OfBody returns a reader like New of a body. A byte order mark before it says nothing (RFC 8259,
// 8.1), and must not cost a result.
func OfBody(body []byte, value func(x *Reader, into any)) Reader {
	return New(bytes.TrimPrefix(body, []byte("\ufeff")), "body", value)
}

// NewOfNode returns a reader like New of what a node sent, which forgives and zeroes.
func NewOfNode(text []byte, root string, value func(x *Reader, into any)) Reader {
	x := New(text, root, value)
	x.ofNode, x.zeroing = true, true
	return x
}

// Whole reports whether the text was exactly one JSON value, once it was read.
func (x *Reader) Whole() bool {
	x.space()
	return !x.broken && x.at == len(x.text)
}

// WholeObject says what a body was instead of exactly one JSON object, or "".
func (x *Reader) WholeObject() (problem string) {
	switch text := bytes.TrimSpace(x.text); {
	case len(text) == 0:
		return "must be one JSON object, but is empty"
	case text[0] != '{' || !x.Whole():
		return "must be one JSON object"
	default:
		return ""
	}
}

// fail ends the walk at what is no JSON.
func (x *Reader) fail() { x.broken, x.at = true, len(x.text) }

// Text returns the whole text.
func (x *Reader) Text() []byte { return x.text }

// Root returns the name of the whole text.
func (x *Reader) Root() string { return x.root }

// Pos returns where the reader is in the text.
func (x *Reader) Pos() int { return x.at }

// Faults returns how many errors were found.
func (x *Reader) Faults() int { return x.faults }

// Zero lets each field with an error be zero.
func (x *Reader) Zero() { x.zeroing = true }

// Fault records an error in the value at the current path. Each outermost array has
// its own limit, so that none hides the errors outside of it.
func (x *Reader) Fault(format string, args ...any) {
	x.faults++
	if x.arrays > 0 {
		if x.listed == maxListed {
			return
		}
		x.listed++
	}
	path := "" // object and eachElement write it
	if x.depth == 0 {
		path = x.root
	}
	x.Wrong = append(x.Wrong, Problem{path, fmt.Sprintf(format, args...)})
}

// Mismatch records that the value is not of the wanted kind. It describes the
// value, but does not quote it.
func (x *Reader) Mismatch(want string, value []byte) {
	x.Fault("must be %s, not %s", want, x.describe(value))
}

// inside puts a step before the paths of the errors that were found since, as the
// interface writes them, such as intent.from[0].amount.
func (x *Reader) inside(step string, since int) {
	for n := since; n < len(x.Wrong); n++ {
		path := &x.Wrong[n].Path
		if *path != "" && (*path)[0] != '[' {
			*path = "." + *path
		}
		*path = step + *path
	}
}

// Members reads the members of an object. Its arguments are their names, each followed by
// a pointer to where it is read, of a type that reader.value knows.
func (x *Reader) Members(pairs ...any) {
	names, into := make([]string, 0, 8), make([]any, 0, 8)
	for n := 0; n < len(pairs); n += 2 {
		names, into = append(names, pairs[n].(string)), append(into, pairs[n+1])
	}
	x.Object(names, into...)
}

// Structure reads the members of an object into the fields of a struct, whose names
// MemberNames returned. last replaces the last fields. Receipt and Log, which are read most
// often, list their fields instead, which takes less time than reflection.
func (x *Reader) Structure(names []string, into any, last ...any) []byte {
	fields, all := reflect.ValueOf(into).Elem(), make([]any, 0, 24)
	for n := range len(names) - len(last) {
		all = append(all, fields.Field(n).Addr().Interface())
	}
	return x.Object(names, append(all, last...)...)
}

// MemberNames returns the JSON names of the fields of a struct, up to the first field
// that is not JSON.
func MemberNames[T any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			break
		}
		names = append(names, name)
	}
	return names
}

// Mark is a position among the errors of a reader.
type Mark struct{ wrong, faults, listed int }

func (x *Reader) Mark() Mark { return Mark{len(x.Wrong), x.faults, x.listed} }

// Forgive drops the errors since m of an object that a node sent, except in the fields that
// decide: nodes write what nobody reads in many ways. The others are zero.
func (x *Reader) Forgive(m Mark, decisive ...string) {
	if !x.ofNode || x.faults == m.faults {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(x.Wrong[m.wrong:]), func(f Problem) bool {
		field, _, _ := strings.Cut(f.Path, ".")
		field, _, _ = strings.Cut(field, "[")
		return f.Path != x.root && field != "" && !slices.Contains(decisive, field)
	})
	x.Wrong = append(x.Wrong[:m.wrong], kept...)
	x.faults, x.listed = m.faults+len(kept), min(x.listed, m.listed+len(kept))
}

// Overlook drops the errors since m in what a node sent, and reports whether there were any.
func (x *Reader) Overlook(m Mark) bool {
	if !x.ofNode || x.faults == m.faults {
		return false
	}
	x.Wrong, x.faults, x.listed = x.Wrong[:m.wrong], m.faults, m.listed
	return true
}

// Object reads the members of an object that names lists, and skips the others. into has
// a pointer for each name. A duplicate name is an error. null has no members. Any other
// value is an error. object returns the bytes of the value.
//
// With zeroing, a field with an error is zero afterwards, so that nothing is half
// read. So is a list if one of its entries has an error, but in an object only the
// field that has it.
func (x *Reader) Object(names []string, into ...any) []byte {
	start := x.at
	if !x.enter('{', "an object") {
		return x.Since(start)
	}
	x.depth++
	var seen, repeated uint64 // bit n is names[n]
	for next, first := 0, true; x.more(first, '}'); first = false {
		n := x.name(names, next)
		if n < 0 {
			x.Skip()
			continue
		}
		next = n + 1
		into := into[n]
		found, faults, whole := len(x.Wrong), x.faults, x.Kind() != '{'
		switch bit := uint64(1) << n; {
		case seen&bit == 0:
			seen |= bit
			x.read(into)
		case repeated&bit == 0:
			repeated |= bit
			whole = true
			x.Fault("occurs more than once")
			x.Skip()
		default:
			x.Skip()
		}
		x.inside(names[n], found)
		if x.zeroing && whole && x.faults > faults {
			reflect.ValueOf(into).Elem().SetZero()
		}
	}
	x.depth--
	return x.Since(start)
}

// Elements iterates over the indexes of an array, with the reader at each entry.
// The loop must read each entry and run to its end. More than limit entries are an
// error, and the rest is skipped. null has no entries. Any other value is an error.
func (x *Reader) Elements(limit int) iter.Seq[int] {
	return func(yield func(int) bool) { x.eachElement(limit, yield) }
}

func (x *Reader) eachElement(limit int, yield func(int) bool) {
	if !x.enter('[', "an array") {
		return
	}
	if x.arrays == 0 {
		x.listed = 0
	}
	x.depth++
	x.arrays++
	n := 0
	for ; x.more(n == 0, ']'); n++ {
		if n >= limit {
			x.Skip()
			continue
		}
		if found := len(x.Wrong); yield(n) && found < len(x.Wrong) {
			x.inside("["+strconv.Itoa(n)+"]", found)
		}
	}
	x.depth--
	x.arrays--
	if n > limit {
		x.Fault("must not have more than %d entries", limit)
	}
}

// ReadList reads an array of up to limit entries. It first allocates room for the
// usual number. null is read as nil, and an empty array as an empty slice.
func ReadList[T any](x *Reader, usual, limit int, read func(*T, *Reader)) (list []T) {
	start := x.at
	if x.Kind() == '[' {
		list = make([]T, 0, usual)
	}
	for n := range x.Elements(limit) {
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
func (x *Reader) enter(bracket byte, want string) bool {
	if x.Kind() == bracket {
		x.at++
		return true
	}
	if value := x.Raw(); value[0] != 'n' {
		x.Mismatch(want, value)
	}
	return false
}

// more moves to the first or next member or entry, and reports whether there is one.
// Otherwise it moves behind the closing bracket.
func (x *Reader) more(first bool, bracket byte) bool {
	x.space()
	switch c := x.Kind(); {
	case c == bracket:
		x.at++
		return false
	case first:
	case c == ',':
		x.at++
		x.space()
	default:
		x.fail()
	}
	return !x.broken
}

// name reads the name of a member, moves to its value, and returns the index of its
// name, or -1. It tries likely first, because members usually come in the order of
// names.
func (x *Reader) name(names []string, likely int) int {
	n := -1
	if likely < len(names) && x.isName(names[likely]) {
		n = likely
		x.at += len(names[n]) + len(`""`)
	} else if x.Kind() != '"' {
		x.fail()
	} else if quoted := x.Raw(); bytes.IndexByte(quoted, '\\') < 0 {
		n = slices.Index(names, string(quoted[1:len(quoted)-1]))
	} else if name, err := strconv.Unquote(string(quoted)); err == nil { // as in Go, for ours
		n = slices.Index(names, name)
	}
	if x.space(); x.Kind() != ':' {
		x.fail()
		return -1
	}
	x.at++
	x.space()
	return n
}

// isName reports whether the reader is at a name, written without escapes.
func (x *Reader) isName(name string) bool {
	rest, end := x.text[x.at:], len(name)+1
	return len(rest) > end && rest[0] == '"' && rest[end] == '"' && string(rest[1:end]) == name
}

func (x *Reader) space() {
	for c := x.Kind(); c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = x.Kind() {
		x.at++
	}
}

// Kind returns the next byte, which says what the current value is, or 0 at the end.
func (x *Reader) Kind() byte {
	if x.at < len(x.text) {
		return x.text[x.at]
	}
	return 0
}

// Raw skips any value and returns its bytes: null, if it is no JSON.
func (x *Reader) Raw() []byte {
	start := x.at
	x.Skip()
	if x.broken {
		return null
	}
	return x.Since(start)
}

var null = []byte("null")

// Since returns the bytes from start to the current position.
func (x *Reader) Since(start int) []byte { return x.text[start:x.at:x.at] }

// Skip moves behind the value.
func (x *Reader) Skip() {
	switch c := x.Kind(); c {
	case '"':
		x.skipString()
	case '{', '[':
		x.skipNested(c + 2) // the closing bracket, in ASCII
	case 't':
		x.skipText("true")
	case 'f':
		x.skipText("false")
	case 'n':
		x.skipText("null")
	default:
		x.skipNumber()
	}
}

// maxDepth is how deep encoding/json lets objects and arrays be.
const maxDepth = 10_000

// skipNested moves behind an object or an array.
func (x *Reader) skipNested(bracket byte) {
	x.at++
	if x.depth++; x.depth > maxDepth {
		x.fail()
	}
	for first := true; x.more(first, bracket); first = false {
		if bracket == '}' {
			x.name(nil, 0)
		}
		x.Skip()
	}
	x.depth--
}

func (x *Reader) skipText(text string) {
	if !bytes.HasPrefix(x.text[x.at:], []byte(text)) {
		x.fail()
		return
	}
	x.at += len(text)
}

func (x *Reader) skipNumber() {
	if x.Kind() == '-' {
		x.at++
	}
	if x.Kind() == '0' { // nothing follows but a point or an exponent
		x.at++
	} else {
		x.skipDigits()
	}
	if x.Kind() == '.' {
		x.at++
		x.skipDigits()
	}
	if c := x.Kind(); c == 'e' || c == 'E' {
		x.at++
		if c := x.Kind(); c == '+' || c == '-' {
			x.at++
		}
		x.skipDigits()
	}
}

// skipDigits moves behind one or more digits.
func (x *Reader) skipDigits() {
	start := x.at
	for c := x.Kind(); '0' <= c && c <= '9'; c = x.Kind() {
		x.at++
	}
	if x.at == start {
		x.fail()
	}
}

// skipString moves behind a string.
func (x *Reader) skipString() {
	for x.at++; ; {
		x.at += plainLength(x.text[x.at:])
		rest := x.text[x.at:]
		switch {
		case len(rest) > 0 && rest[0] == '"':
			x.at++
			return
		case len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' && IsHex(string(rest[2:6])):
			x.at += 6
		case len(rest) >= 2 && rest[0] == '\\' && strings.IndexByte(`"\/bfnrt`, rest[1]) >= 0:
			x.at += 2
		default: // a control character, another escape, or the end
			x.fail()
			return
		}
	}
}

// plainLength returns how many bytes of a string come before a quote, a backslash or a control
// character. It looks at 8 bytes at once: a subtraction borrows into the highest bit of a byte that is
// lower than the other.
func plainLength(text []byte) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		w := binary.LittleEndian.Uint64(text[n:])
		quote, backslash := w^each*'"', w^each*'\\' // 0 where it is one
		if found := ((w-each*' ')&^w | (quote-each)&^quote | (backslash-each)&^backslash) & high; found != 0 {
			return n + bits.TrailingZeros64(found)/8 // below a borrow, no byte is wrong
		}
	}
	for ; n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\'; n++ {
	}
	return n
}

// Unquoted returns the bytes of a JSON string. The standard library decodes strings
// with escapes.
func (x *Reader) Unquoted(value []byte) []byte {
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	_ = json.Unmarshal(value, &s) // valid JSON
	return []byte(s)
}

// value reads any value into a pointer.
func (x *Reader) read(into any) {
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
		*into = x.uuid()
	case *common.Hash:
		x.fixed(into[:])
	case *[]common.Hash:
		*into = ReadList(x, 3, maxLogTopics, ReadHash)
	case *common.Address:
		if value := x.Raw(); !isNoAddress(value) {
			x.decodeFixed(value, into[:])
		}
	case **common.Address:
		if value := x.Raw(); !isNoAddress(value) {
			*into = new(common.Address)
			x.decodeFixed(value, (*into)[:])
		}
	case *LooseText:
		*into = LooseText(x.Loose())
	case *Unread:
		*into = x.Raw()
	default:
		x.value(x, into)
	}
}

// The methods below convert one value. Unless they say otherwise, null is read as
// the zero value, and a value of another kind is an error.

// string reads a string. It must be valid UTF-8, because it may be stored.
func (x *Reader) string() string {
	switch value := x.Raw(); {
	case value[0] == '"' && utf8.Valid(value):
		return word(x.Unquoted(value))
	case value[0] == '"':
		x.Fault("must be valid UTF-8")
	case value[0] != 'n':
		x.Mismatch("a string", value)
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

// LooseText is text that decides nothing: a string or a number. Anything else is
// read as "".
type LooseText string

func (x *Reader) Loose() string {
	switch value := x.Raw(); {
	case value[0] == '"' && utf8.Valid(value):
		return string(x.Unquoted(value))
	case IsNumber(value):
		return string(value)
	}
	return ""
}

// Unread is the text of any value, which may not be valid UTF-8.
type Unread []byte

// Absent reports whether the value is missing or null.
func (u Unread) Absent() bool { return len(u) == 0 || u[0] == 'n' }

// keep returns the bytes of any value, which must be valid UTF-8.
func (x *Reader) keep() json.RawMessage {
	value := x.Raw()
	if !utf8.Valid(value) {
		x.Fault("must be valid UTF-8")
		return nil
	}
	return value
}

func (x *Reader) bool() bool {
	value := x.Raw()
	if c := value[0]; c != 't' && c != 'f' && c != 'n' {
		x.Mismatch("a boolean", value)
	}
	return value[0] == 't'
}

// uuid reads a UUID in every notation that [uuid.Validate] accepts: the interface does not say
// which one the service writes.
func (x *Reader) uuid() uuid.UUID {
	value := x.Raw()
	if value[0] == 'n' {
		return uuid.Nil
	}
	if value[0] == '"' {
		text := x.Unquoted(value)
		id, err := uuid.ParseBytes(text)
		if err == nil && uuid.Validate(string(text)) == nil {
			return id
		}
	}
	x.Mismatch("a UUID", value)
	return uuid.Nil
}

// fixed reads hex with 0x that fills into. null and "" leave it unchanged.
func (x *Reader) fixed(into []byte) {
	if value := x.Raw(); !IsNothing(value) {
		x.decodeFixed(value, into)
	}
}

func (x *Reader) decodeFixed(value, into []byte) {
	if digits := x.hexDigits(value); len(digits) == 2*len(into) && DecodeHex(into, digits) {
		return
	}
	x.Fault("must be 0x followed by %d hex digits, not %s", 2*len(into), x.describe(value))
}

// blob reads hex with 0x of any length. null and "" are read as nil.
func (x *Reader) blob() []byte {
	value := x.Raw()
	if IsNothing(value) {
		return nil
	}
	if digits := x.hexDigits(value); digits != nil {
		if b := make([]byte, len(digits)/2); DecodeHex(b, digits) {
			return b
		}
	}
	x.Mismatch("hex with 0x", value)
	return nil
}

// DecodeHex reports whether it could decode digits.
func DecodeHex(into, digits []byte) bool {
	_, err := hex.Decode(into, digits)
	return err == nil
}

// hexDigits returns the part of a string after 0x, or nil without 0x.
func (x *Reader) hexDigits(value []byte) []byte {
	if value[0] != '"' {
		return nil
	}
	text := x.Unquoted(value)
	if len(text) < len("0x") || text[0] != '0' || text[1] != 'x' && text[1] != 'X' {
		return nil
	}
	return text[2:]
}

// IsNothing reports whether a value is null or "", which nodes use for a missing
// value.
func IsNothing(value []byte) bool { return value[0] == 'n' || string(value) == `""` }

// isNoAddress also knows what some nodes write for the receiver of a creation.
func isNoAddress(value []byte) bool { return IsNothing(value) || string(value) == `"0x"` }

// IsNumber reports whether a value is a number.
func IsNumber(value []byte) bool { return value[0] == '-' || '0' <= value[0] && value[0] <= '9' }

// describe names the kind of a JSON value.
func (x *Reader) describe(value []byte) string {
	if value[0] == '"' {
		return fmt.Sprintf("a string of %d characters", utf8.RuneCount(x.Unquoted(value)))
	}
	return cmp.Or(kinds[value[0]], "a number")
}

var kinds = map[byte]string{
	'{': "an object", '[': "an array", 't': "a boolean", 'f': "a boolean", 'n': "null",
}

// PathSteps splits a path into its names and indexes.
func PathSteps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
}

// IsHex reports whether s consists of one or more hex digits.
func IsHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// IsDigits reports whether s consists of one or more decimal digits.
func IsDigits[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0
}

// Marshal is json.Marshal without HTML escapes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ReadHash reads a hash of a list. null and "" are errors there.
func ReadHash(h *common.Hash, x *Reader) { x.decodeFixed(x.Raw(), h[:]) }
