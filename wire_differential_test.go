package ramp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

// node is a JSON value as encoding/json reads it, token by token, so that a name
// that occurs twice is seen twice.
type node struct {
	kind   string // as our errors describe it
	text   string // of a string or a number
	raw    []byte // the value as written
	names  []string
	values []*node // members or entries

	member, start, end int // where the value is in the text, and where its name is
}

// tokens reads a text that json.Valid accepts.
func tokens(t testing.TB, text []byte) *node {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	begin := func() int { // of the next token
		at := int(d.InputOffset())
		return at + len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n,:"))
	}
	var read func() *node
	read = func() *node {
		n := &node{start: begin()}
		token := must.Get(d.Token())(t)
		switch token := token.(type) {
		case json.Delim:
			n.kind = map[json.Delim]string{'{': "an object", '[': "an array"}[token]
			for d.More() {
				member := begin()
				if token == '{' {
					name := must.Get(d.Token())(t)
					n.names = append(n.names, name.(string))
				}
				value := read()
				value.member = member
				n.values = append(n.values, value)
			}
			_, err := d.Token()
			require.NoError(t, err)
		case string:
			n.kind, n.text = "a string", token
		case json.Number:
			n.kind, n.text = "a number", token.String()
		case bool:
			n.kind, n.text = "a boolean", strconv.FormatBool(token)
		case nil:
			n.kind = "null"
		}
		n.end = int(d.InputOffset())
		n.raw = text[n.start:n.end]
		return n
	}
	return read()
}

// missing is the node of a missing value.
var missing = &node{kind: "null"}

// get returns the first member of a name, and how many there are.
func (n *node) get(name string) (first *node, count int) {
	first = missing
	for i, other := range n.names {
		if other == name {
			if count++; count == 1 {
				first = n.values[i]
			}
		}
	}
	return first, count
}

// find returns the value at a path such as intent.from[0].amount, and how often
// it is there.
func (n *node) find(path string) (*node, int) {
	count := 1
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		if index, err := strconv.Atoi(step); err == nil {
			n = n.values[index]
			continue
		}
		n, count = n.get(step)
	}
	return n, count
}

// all returns the node and everything in it.
func (n *node) all() (list []*node) {
	var add func(n *node)
	add = func(n *node) {
		list = append(list, n)
		for _, value := range n.values {
			add(value)
		}
	}
	add(n)
	return list
}

func (n *node) validText() bool { return utf8.Valid(n.raw) }

// blank reports whether there is no value.
func (n *node) blank() bool { return n.kind == "null" || n.kind == "a string" && n.text == "" }

const uuidText = `[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	hexForm    = regexp.MustCompile(`^0[xX]([0-9a-fA-F]{2})*$`)
	uuidForm   = regexp.MustCompile(`^` + uuidText + `$`)
	uuidForms  = regexp.MustCompile(`^((?i:urn:uuid:)?` + uuidText + `|\{` + uuidText + `\}|[0-9a-fA-F]{32})$`)
)

// decimal is the value of a number that is short enough for an amount.
func decimal(text string) (*big.Rat, bool) {
	if !jsonNumber.MatchString(text) || len(text) > 256 {
		return nil, false
	}
	mantissa, exponent := text, "0"
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	value, _ := new(big.Rat).SetString(mantissa)
	if value.Sign() == 0 {
		return value, true
	}
	e, err := strconv.Atoi(exponent)
	if err != nil || e < -1000 || e > 1000 {
		return nil, false
	}
	value, _ = value.SetString(mantissa + "e" + exponent)
	// 100 digits before the point, 100 behind
	most := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(100), nil))
	return value, new(big.Rat).Abs(value).Cmp(most) < 0 && new(big.Rat).Mul(value, most).IsInt()
}

// whole is the number of a quantity, nil if it is absent.
func (n *node) whole() (number *big.Int, ok bool) {
	digits, hex := strings.CutPrefix(n.text, "0x")
	switch {
	case n.blank(), hex && digits == "" && n.kind == "a string":
		return nil, true
	case hex && n.kind == "a string":
		number, ok = new(big.Int).SetString(digits, 16)
		ok = ok && !strings.ContainsAny(digits, "+-_")
	case n.kind == "a string", n.kind == "a number":
		value, fits := decimal(n.text)
		if ok = fits && value.IsInt(); ok {
			number = value.Num()
		}
	}
	return number, ok && number.Sign() >= 0 && number.BitLen() <= 256
}

// loose returns the text of a field that decides nothing.
func (n *node) loose() string {
	if n.kind == "a number" || n.kind == "a string" && n.validText() {
		return n.text
	}
	return ""
}

// same checks that every known field of a decoded value equals what encoding/json
// decodes.
func (n *node) same(t *testing.T, path string, got reflect.Value) {
	t.Helper()
	switch value := got.Interface().(type) {
	case ramp.Amount:
		if n != missing { // required elsewhere
			want, ok := decimal(n.text)
			require.True(t, ok && n.kind == "a number", path)
			require.Zero(t, want.Cmp(value.Rat()), path)
		} else {
			require.Zero(t, value, path)
		}
	case ramp.Quantity:
		want, ok := n.whole()
		require.True(t, ok, path)
		require.Equal(t, want == nil, value.Big() == nil, path)
		if want != nil {
			require.Zero(t, want.Cmp(value.Big()), path)
		}
	case common.Hash:
		n.sameBytes(t, path, value[:])
	case common.Address:
		n.sameBytes(t, path, value[:])
	case ramp.Digest:
		n.sameBytes(t, path, value[:])
	case *common.Address:
		require.Equal(t, n.blank(), value == nil, path)
		if value != nil {
			n.sameBytes(t, path, value[:])
		}
	case hexutil.Bytes:
		require.Equal(t, n.blank(), value == nil, path)
		if value != nil {
			n.sameBytes(t, path, value)
		}
	case uuid.UUID:
		if n.kind == "null" {
			require.Zero(t, value, path)
			return
		}
		require.Equal(t, "a string", n.kind, path)
		require.Regexp(t, uuidForms, n.text, path)
		digits := strings.NewReplacer("-", "", "{", "", "}", "").Replace(n.text)
		require.Equal(t, strings.ToLower(digits[len(digits)-32:]), strings.ReplaceAll(value.String(), "-", ""), path)
	case json.Number:
		if want := n.loose(); jsonNumber.MatchString(want) {
			require.True(t, value == "" || string(value) == want, path)
			return
		}
		require.Empty(t, value, path)
	case json.RawMessage:
		require.Equal(t, string(n.raw), string(value), path)
	default:
		n.sameKind(t, path, got)
	}
}

func (n *node) sameKind(t *testing.T, path string, got reflect.Value) {
	t.Helper()
	switch got.Kind() {
	case reflect.String:
		want := n.text
		if path == "tx_hash" || strings.HasSuffix(path, "actual") {
			want = n.loose()
		} else {
			require.Contains(t, []string{"a string", "null"}, n.kind, path)
			require.True(t, n.validText(), path)
		}
		require.Equal(t, want, got.String(), path)
	case reflect.Bool:
		require.Contains(t, []string{"a boolean", "null"}, n.kind, path)
		require.Equal(t, n.text == "true", got.Bool(), path)
	case reflect.Slice:
		require.Contains(t, []string{"an array", "null"}, n.kind, path)
		require.Equal(t, n.kind == "null", got.IsNil(), path)
		require.Len(t, n.values, got.Len(), path)
		for i := range got.Len() {
			n.values[i].same(t, fmt.Sprintf("%s[%d]", path, i), got.Index(i))
		}
	case reflect.Struct:
		n.sameStruct(t, path, got, func(string) bool { return false })
	default:
		t.Fatalf("%s is of a type that this test does not know: %s", path, got.Type())
	}
}

// sameStruct compares an object; zero says which of its members must be zero.
func (n *node) sameStruct(t *testing.T, path string, got reflect.Value, zero func(path string) bool) {
	t.Helper()
	require.Contains(t, []string{"an object", "null"}, n.kind, path)
	for _, field := range reflect.VisibleFields(got.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" || name == "transactions" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		value := got.FieldByIndex(field.Index)
		if zero(at) {
			require.True(t, value.IsZero(), at)
			continue
		}
		member, count := n.get(name)
		require.LessOrEqual(t, count, 1, at)
		if name == "receipt" || name == "intent" {
			member.sameStruct(t, at, value, zero)
			continue
		}
		member.same(t, at, value)
	}
	if raw := got.FieldByName("Raw"); raw.IsValid() {
		require.Equal(t, string(n.raw), strings.Trim(string(raw.Bytes()), " \t\r\n"), path)
	}
	if block, ok := got.Interface().(ramp.Block); ok {
		n.sameTransactions(t, block)
	}
}

// sameTransactions compares a list of hashes or of objects.
func (n *node) sameTransactions(t *testing.T, block ramp.Block) {
	t.Helper()
	list, count := n.get("transactions")
	require.LessOrEqual(t, count, 1)
	require.Len(t, block.TransactionHashes, len(list.values))
	full := block.Transactions
	for i, entry := range list.values {
		if entry.kind == "an object" {
			require.Equal(t, full[0].Hash, block.TransactionHashes[i])
			entry.same(t, "transactions", reflect.ValueOf(full[0]))
			full = full[1:]
			continue
		}
		require.False(t, entry.blank())
		entry.same(t, "transactions", reflect.ValueOf(block.TransactionHashes[i]))
	}
	require.Empty(t, full)
}

func (n *node) sameBytes(t *testing.T, path string, got []byte) {
	t.Helper()
	if n.blank() {
		require.Zero(t, new(big.Int).SetBytes(got).Sign(), path)
		return
	}
	require.Equal(t, "a string", n.kind, path)
	require.Regexp(t, hexForm, n.text, path)
	require.Equal(t, strings.ToLower(n.text[2:]), common.Bytes2Hex(got), path)
}

var (
	wantKind    = regexp.MustCompile(`^must be (a string|an object|an array|a boolean|a UUID|a number), not (.+)$`)
	wantDigits  = regexp.MustCompile(`^must be 0x followed by (\d+) hex digits, not (.+)$`)
	wantEntries = regexp.MustCompile(`^must not have more than (\d+) entries$`)
)

// requireWrong checks that a value has the reported error.
func (n *node) requireWrong(t *testing.T, w wire, f ramp.FieldError) {
	t.Helper()
	path := f.Path
	if path == w.root {
		path = ""
	}
	value, _ := n.find(path)
	require.True(t, n.wrong(w, path, f.Problem), "%s %s: %.100q", f.Path, f.Problem, value.raw)
}

// wrong reports whether the value at a path has a problem.
func (n *node) wrong(w wire, path, problem string) bool {
	value, count := n.find(path)
	text, isText := value.text, value.kind == "a string"
	shown := value.kind
	if isText {
		shown = fmt.Sprintf("a string of %d characters", utf8.RuneCountInString(text))
	}
	switch problem {
	case "occurs more than once":
		return count > 1
	case "is required":
		number, ok := value.whole()
		return value.blank() || strings.HasSuffix(path, "status") && ok && number == nil
	case "is required and must be greater than 0":
		amount, ok := decimal(text)
		return count == 0 || ok && amount.Sign() <= 0
	case "is required and must not be zero":
		return value.blank() || strings.Trim(text, "{}urnidURNIDx:-0") == ""
	case "is required and must be 0x followed by 40 hex digits, not zero":
		return value.blank() || strings.Trim(text, "0x") == "" || !hexForm.MatchString(text) ||
			strings.HasPrefix(text, "0X") || len(text) != 42
	case "must be a wallet that somebody can have, not a precompiled contract, a burn address or the token":
		return len(strings.TrimLeft(text, "0x")) <= len("dead")
	case "is required and must not be empty":
		return len(value.values) == 0
	case "must be one JSON object":
		return value.kind != "an object"
	case "must be valid UTF-8":
		return !value.validText()
	case "must be hex":
		digits := strings.TrimPrefix(text, "0x")
		return digits == "" || !hexForm.MatchString("0x"+digits)
	case "must be asset on this side":
		return text != string(ramp.TypeAsset)
	case "must be a token type on this side":
		return strings.EqualFold(text, string(ramp.TypeAsset))
	case "must be a number of at most 100 digits on either side of the point":
		_, ok := decimal(text)
		return value.kind == "a number" && !ok
	case "must be hex with 0x, not " + shown:
		return !isText || !hexForm.MatchString(text)
	case "must be a whole number of at most 256 bits, not " + shown:
		_, ok := value.whole()
		return !ok
	}
	if strings.HasPrefix(problem, "and intent.type must be mint and assemble") {
		kind, _ := n.find("intent.type")
		return !slices.Contains([]string{"mint assemble", "burn disassemble", "burn-permit disassemble"},
			text+" "+kind.text)
	}
	if m := wantEntries.FindStringSubmatch(problem); m != nil {
		most, _ := strconv.Atoi(m[1])
		return len(value.values) > most
	}
	if m := wantDigits.FindStringSubmatch(problem); m != nil {
		digits, _ := strconv.Atoi(m[1])
		// a digest is exact
		return m[2] == shown &&
			(!isText || !hexForm.MatchString(text) || len(text) != 2+digits || strings.HasPrefix(text, "0X"))
	}
	if isText && problem == "must be a UUID, not "+shown {
		return !uuidForm.MatchString(text) && (!w.anyUUID || !uuidForms.MatchString(text))
	}
	m := wantKind.FindStringSubmatch(problem)
	return m != nil && m[2] == shown && m[1] != value.kind &&
		(value.kind != "null" || m[1] == "a number") // elsewhere it is no value
}

// wire is a way to read a text. root is what its errors call the text as a
// whole.
type wire struct {
	root    string
	parses  bool // and checks what a game acts on
	anyUUID bool // a UUID in any notation is one
	read    func(text []byte) (any, error)
}

func unmarshal[T any](root string, anyUUID bool) wire {
	return wire{root, false, anyUUID, func(text []byte) (any, error) {
		into := new(T)
		err := json.Unmarshal(text, into)
		return into, err
	}}
}

var wires = []wire{
	{"body", true, false, func(text []byte) (any, error) { return ramp.ParseValidate(text) }},
	{"body", true, true, func(text []byte) (any, error) { return ramp.ParseResult(text) }},
	unmarshal[ramp.ValidateRequest]("body", false), unmarshal[ramp.Result]("body", true),
	unmarshal[ramp.Intent]("intent", false), unmarshal[ramp.Receipt]("receipt", false),
	unmarshal[ramp.Log]("log", false),
	unmarshal[ramp.Transaction]("transaction", false), unmarshal[ramp.Block]("block", false),
}

// sameAsEncodingJSON reads a text in every way that the package has. It checks that
// accepted values equal those of encoding/json, can be written and read again, and acted on, and
// that rejected ones have the reported errors.
func sameAsEncodingJSON(t *testing.T, text []byte) {
	t.Helper()
	valid := json.Valid(text)
	require.Equal(t, valid, ramp.IsJSON(text))
	var n *node
	if valid {
		n = tokens(t, text)
	}
	for _, w := range wires {
		got, err := w.read(text)
		if !valid {
			require.Error(t, err)
			continue
		}
		if err != nil {
			requireInvalid(t, err)
			for _, f := range as[*ramp.InvalidError](t, err).Fields {
				n.requireWrong(t, w, f)
			}
			continue
		}
		switch v := got.(type) {
		case *ramp.ValidateRequest:
			if w.parses {
				require.True(t, v.UUID != uuid.Nil && v.Digest != ramp.Digest{} && v.ProjectID != "" &&
					v.UserAddress != "")
				require.Regexp(t, `^(0x)?([0-9a-fA-F]{2})+$`, v.UserSig)
				requireMoved(t, &v.Intent, ramp.OrderAccepted)
			}
		case *ramp.Result:
			require.True(t, !w.parses || v.UUID != uuid.Nil && v.Receipt.Status.Present())
			require.Equal(t, v.Receipt.Status.String() == "1", v.Succeeded())
			// else the intent is incomplete, which rejects no result
			if _, err := v.Intent.Effect(v.Outcome()); err == nil {
				requireMoved(t, &v.Intent, v.Outcome())
			}
		}
		n.sameStruct(t, "", reflect.ValueOf(got).Elem(), n.unreadable(t, w, got))
		written := must.Get(json.Marshal(got))(t)
		again, err := w.read(written)
		require.NoError(t, err, "what was read is not accepted when it is written: %s", written)
		require.Equal(t, string(written), string(must.Get(json.Marshal(again))(t)))
	}
}

// unreadable checks what a result lists as unreadable, and says what must be
// zero for it.
func (n *node) unreadable(t *testing.T, w wire, got any) (zero func(path string) bool) {
	t.Helper()
	r, isResult := got.(*ramp.Result)
	if !isResult {
		return func(string) bool { return false }
	}
	cleared := map[string]bool{}
	for _, f := range r.Unreadable {
		n.requireWrong(t, w, f)
		require.NotContains(t, []string{"body", "uuid", "receipt", "receipt.status"}, f.Path)
		scope, _, _ := strings.Cut(f.Path, "[")
		cleared[scope] = true
	}
	return func(path string) bool { return cleared[path] }
}

// awkward are values that some field could mistake for its own.
var awkward = []string{
	`null`, `""`, `"0x"`, `"0X"`, `"0x0"`, `"0x00"`, `"0X00"`, `0`, `-0`, `-1`, `1`, `1.5`, `1.0`, `10e-1`, `1e30`,
	`1e999999999`, `0e999999999`,
	`1e-100`, `1E+99`, `-1e9223372036854775807`, `"1"`, `"01"`, `"1e3"`, `" 1"`, `"+1"`, `"-1"`, `true`, `false`, `[]`,
	`{}`, `[null]`, `[{}]`, `[[]]`, `[0,""]`,
	`"` + goldenMint + `"`, `"{` + goldenMint + `}"`, `"(` + goldenMint + `)"`, `"urn:uuid:` + goldenMint + `"`,
	`"URN:UUID:` + goldenMint + `"`,
	`"` + strings.ToUpper(goldenMint) + `"`, `"` + strings.ReplaceAll(goldenMint, "-", "") + `"`,
	`"00000000-0000-0000-0000-000000000000"`,
	`"0x` + strings.Repeat("0", 64) + `"`, `"0x` + strings.Repeat("aB", 32) + `"`,
	`"0X` + strings.Repeat("ab", 32) + `"`, `"0x` + strings.Repeat("f", 65) + `"`,
	`"0x` + strings.Repeat("zz", 20) + `"`, `"\u0030x` + strings.Repeat("ab", 20) + `"`,
	`"0x` + strings.Repeat("ab", 20) + `"`, `"0x\u0031"`, `"\u0031"`,
	`"0x1` + strings.Repeat("0", 64) + `"`, `"0x` + strings.Repeat("0", 300) + `1"`, strings.Repeat("9", 100),
	strings.Repeat("9", 101), strings.Repeat("9", 300),
	`"` + strings.Repeat("9", 300) + `"`, `[` + strings.Repeat("9", 300) + `]`, `0.` + strings.Repeat("0", 99) + `1`,
	`0.` + strings.Repeat("0", 100) + `1`,
	"\"\xff\"", "\"0x\xff\"", `"\ud83d"`, `"\ud83d\ude00"`, `"\\\"\/\b\f\n\r\t"`, `"\\"`, `"\\\\"`, `"]}\\\""`,
	`"\u0000"`, "\"\x1f\"", "\"\x7f\"", `"\x"`, `"a"b"`, `{"a":"\"}`, "[\"\xff\"]", "{\"\xff\":0}", `{"id":1,"id":2}`,
	`"asset"`, `"ASSET"`, `"erc20"`, `"mint"`, `"burn"`, `"burn-permit"`, `"assemble"`, `"disassemble"`,
	`"\u006dint"`, `"Mint"`,
	`[{"type":"asset","id":"gold","amount":1,"amount":2}]`,
	`[{"type":"asset","id":"a","amount":"1"},{"type":"ERC20","id":"b","amount":-1},{"type":3}]`,
	`[{"type":"asset","id":"gold","amount":1e-95},{"id":"gold","type":"asset","amount":1.10}]`,
	`[{"type":"ERC20","id":"0x1","amount":5}]`,
	`{"status":"0x1"}`, `{"status":1,"logs":[{"topics":["0x"],"removed":0},{"data":"0x0"}]}`,
	`{"status":"1","status":0}`, `{"\u0073tatus":"0x0","Status":1}`,
	`{"status":0,"logs":[null,{}],"root":"","gasUsed":"0x","unknown":"` + "\xff" + `"}`,
	`{"status":1,"gasUsed":1,"gasUsed":1,"logs":[],"logs":7}`,
	`{"transactions":["0x` + strings.Repeat("ab", 32) + `",{"hash":"","to":"","to":""}]}`,
	`{"transactions":[{"hash":null,"to":""},{"to":null,"value":1}]}`,
	strings.Repeat("[", 9000) + strings.Repeat("]", 9000), `[` + strings.Repeat(`{},`, 1000) + `{}]`,
	`{"":0,"` + strings.Repeat("a", 100) + `":0}`, `[` + strings.Repeat(`{"amount":"","id":"","id":7},`, 400) + `{}]`,
}

// alter replaces a value by an awkward one, or adds it under the same name,
// possibly escaped.
func alter(t *testing.T, text []byte, where, what, how byte) []byte {
	if !json.Valid(text) {
		return text
	}
	all := tokens(t, text).all()
	at := all[int(where)%len(all)]
	value := awkward[int(what)%len(awkward)]
	name, isMember := bytes.CutPrefix(text[at.member:at.start], []byte(`"`))
	switch {
	case how%4 == 0 || !isMember || len(name) == 0:
		return slices.Concat(text[:at.start], []byte(value), text[at.end:])
	case how%4 == 1: // before
		return slices.Concat(text[:at.member], text[at.member:at.start], []byte(value+","), text[at.member:])
	case how%4 == 2: // behind
		return slices.Concat(text[:at.end], []byte(" , "), text[at.member:at.start], []byte(value), text[at.end:])
	default:
		escaped := fmt.Sprintf("\"\\u%04x", name[0])
		if name[0] >= utf8.RuneSelf || name[0] == '\\' || name[0] == '"' {
			escaped = `"x` + string(name[:1])
		}
		return slices.Concat(text[:at.member], []byte(escaped), name[1:], []byte(value), text[at.end:])
	}
}

func addDifferentialSeeds(add func(text []byte)) {
	for _, text := range awkward {
		add([]byte(" \t\r\n" + text + " \n"))
	}
	for _, text := range []string{
		"", "{", "nul", `"`, `["a`, `{"uuid":"` + goldenMint + `","receipt":{"status":"0x1"}}`,
		`{"uuid":1,"uuid":2,"receipt":1,"receipt":{}}`,
		`{"unknown":"\\","status":"0x1","unknown2":["\\\"]","\\\\"],"gasUsed":1}`,
		`{"number":"0x1","transactions":[{"hash":"0x` + strings.Repeat("ab", 32) +
			`","type":"0x7","to":null,"fv":"0x1"}],"extraData":"0x"}`,
		`{"address":null,"topics":null,"data":null,"blockNumber":null,"blockHash":null,"removed":null}`,
		`{"uuid":"{` + goldenMint + `}","receipt":{"status":1}}`,
		`{"uuid":"urn:uuid:` + goldenMint + `","receipt":{"status":1}}`,
		`{"uuid":"` + strings.ReplaceAll(goldenMint, "-", "") + `","receipt":{"status":1}}`,
		`{"address":"","topics":["0x` + strings.Repeat("ab", 32) +
			`"],"data":"0x","logIndex":0,"removed":false,"blockTimestamp":"5"}`,
	} {
		add([]byte(text))
	}
}

func FuzzAgainstEncodingJSON(f *testing.F) {
	racedetector.Skip(f)
	// Each awkward value is put into some places of each message.
	n := 0
	seed(f, "*.json", func(text []byte) {
		for range 12 {
			f.Add(text, byte(7*n), byte(n), byte(n/3))
			n++
		}
	})
	f.Add([]byte(feeDelegated), byte(0), byte(0), byte(3))
	f.Add([]byte(unknownType), byte(0), byte(0), byte(3))
	addDifferentialSeeds(func(text []byte) { f.Add(text, byte(0), byte(0), byte(3)) })
	f.Fuzz(func(t *testing.T, text []byte, where, what, how byte) {
		sameAsEncodingJSON(t, text)
		sameAsEncodingJSON(t, alter(t, text, where, what, how))
	})
}
