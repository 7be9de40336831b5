package ramp_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

// A signed body can have a duplicate name, or one in another case. Readers disagree
// about which one counts, so it is an error.
func TestANameThatOccursTwiceIsRejected(t *testing.T) {
	for old, tt := range map[string]struct{ new, want string }{
		`"user_sig":"`:       {`"user_sig":"0xab","user_sig":"`, "user_sig"},
		`"digest":"`:         {`"digest":"` + vectors[1].digestText + `","digest":"`, "digest"},
		`"uuid":"`:           {`"uuid":"` + goldenMint + `","uuid":"`, "uuid"},
		`"intent":{`:         {`"intent":{},"intent":{`, "intent"},
		`"type":"assemble"`:  {`"type":"assemble","type":"assemble"`, "intent.type"},
		`"to":[`:             {`"to":null,"to":[`, "intent.to"},
		`"amount":10}`:       {`"amount":10,"\u0061mount":1}`, "intent.to[0].amount"},
		`"target_candidate"`: {`"target_candidate":1,"target_candidate"`, "intent.target_candidate"},
		`{"user_sig"`:        {`{"uuid":1,"uuid":2,"uuid":3,"uuid":4,"user_sig"`, "uuid"},
	} {
		t.Run(old, func(t *testing.T) {
			_, err := ramp.ParseValidate(validateBody(t, old, tt.new))
			wrong := as[*ramp.InvalidError](t, err)
			require.Contains(t, wrong.Fields, ramp.FieldError{Path: tt.want, Problem: "occurs more than once"})
			reported := map[string]int{}
			for _, f := range wrong.Fields {
				reported[f.Path+f.Problem]++
				assert.Equal(t, 1, reported[f.Path+f.Problem], "each fault is reported once")
			}
		})
	}
	for _, body := range []string{
		`"trace":1,"trace":2,`,                          // nobody acts on it
		`"Uuid":1,"UUID":2,"uu\u0131d":3,"uuid ":4,`,    // none of these is uuid
		`"\u0175uid":1,"\n0075uid":2,"\u0075uid\n":3,`,  // nor of these
		`"user_sig2":1,"user_sigs":2,`,                  // nor user_sig, which is next
		`"extra":{"uuid":1,"uuid":2,"intent":[{},{}]},`, // nor is what is inside
	} {
		_, err := ramp.ParseValidate(validateBody(t, `{"user_sig"`, "{"+body+`"user_sig"`))
		assert.NoError(t, err, body)
	}
}

func TestNamesMatchExactly(t *testing.T) {
	for old, misnamed := range map[string]string{
		`"user_sig"`: `"User_Sig"`, `"user_address"`: `"USER_ADDRESS"`, `"project_id"`: `"projectId"`,
		`"digest"`: `"Digest"`, `"uuid"`: `"UUID"`, `"intent"`: `"Intent"`, `"method"`: `"Method"`,
		`"from"`: `"From"`, `"to"`: `"To"`, `"amount"`: `"Amount"`,
	} {
		_, err := ramp.ParseValidate(validateBody(t, old, misnamed))
		assert.Error(t, err, misnamed)
	}
	// Under Unicode case folding, the first letter of this name is an s.
	_, err := ramp.ParseResult(resultBody(t, `"status"`, `"ſtatus"`))
	assertFields(t, err, "receipt.status is required")
	// An escape is another way to write the same name.
	r := must.Get(ramp.ParseResult(resultBody(t, `"status"`, `"\u0073tatus"`)))(t)
	assert.True(t, r.Succeeded())
}

// The first fault names the code on the wire, so it must not depend on how the
// service orders its members.
func TestFaultsAreInTheOrderOfTheInterface(t *testing.T) {
	asset := []string{`"type":7`, `"id":{}`, `"amount":"1"`}
	intent := func(side string) []string {
		return []string{`"method":false`, `"type":[]`,
			`"from":[` + side + `,{"type":"asset","id":"x","amount":null}]`, `"to":{}`,
			`"target_candidate":1,"target_candidate":2`, `"fee_rate":1,"fee_rate":2`, `"actual":1,"actual":2`}
	}
	want := []string{"user_sig must be a string, not a number", "user_address is required",
		"project_id must be a string, not null",
		"digest must be 0x followed by 64 hex digits, not an array", "uuid must be a UUID, not a boolean",
		"intent.method must be a string, not a boolean", "intent.type must be a string, not an array",
		"intent.from[0].type must be a string, not a number", "intent.from[0].id must be a string, not an object",
		"intent.from[0].amount must be a number, not a string", "intent.from[1].amount must be a number, not null",
		"intent.to must be an array, not an object", "intent.target_candidate occurs more than once",
		"intent.fee_rate occurs more than once", "intent.actual occurs more than once"}
	want[2] = "project_id is required" // null is no value
	shuffled := func(members []string) string {
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, ",") + "}"
	}
	for range 50 {
		body := shuffled([]string{`"user_sig":5`, `"project_id":null`, `"digest":[]`, `"uuid":true`,
			`"intent":` + shuffled(intent(shuffled(asset)))})
		_, err := ramp.ParseValidate([]byte(body))
		assertFields(t, err, want...)
	}

	// more than ten entries, to tell numbers from text
	many := strings.Repeat(`{"type":"asset","id":"x","amount":1},`, 11)
	for _, tt := range []struct {
		old, new string
		want     []string
	}{
		{`"from":[`, `"from":[` + many + `{"type":"asset"},`,
			[]string{"intent.from[11].id is required", "intent.from[11].amount is required"}},
		{`"from":[`, `"from":[{"type":"asset"},{"type":"asset"},` + many + `{"type":"asset"},`,
			[]string{"intent.from[0].id", "intent.from[0].amount",
				"intent.from[1].id", "intent.from[1].amount", "intent.from[13].id", "intent.from[13].amount"}},
		// Errors of reading and of checking are one list, and an unreadable field is not also missing.
		{`"from":[`,
			`"from":[{"type":"asset","amount":1},{"type":"asset","id":"x","amount":"1"},{"type":"asset","amount":1},`,
			[]string{"intent.from[0].id is required", "intent.from[1].amount must be a number",
				"intent.from[2].id is required"}},
		{`"intent":{`, `"intent":7,"was":{`, []string{"intent must be an object, not a number"}},
		{`"from":[`, `"from":["gold",`, []string{"intent.from[0] must be an object, not a string"}},
		{`"uuid":"`, `"uuid":7,"was":"`, []string{"uuid must be a UUID, not a number"}},
		{`"digest":"`, `"digest":"영웅","was":"`,
			[]string{"digest must be 0x followed by 64 hex digits, not a string of 2 characters"}},
	} {
		_, err := ramp.ParseValidate(validateBody(t, tt.old, tt.new))
		assertFields(t, err, tt.want...)
	}
}

func TestASideOfAnIntentIsBounded(t *testing.T) {
	entry := `{"type":"asset","id":"gold","amount":1},`
	side := func(n int) []byte {
		return validateBody(t, `"from":[`, `"from":[`+strings.Repeat(entry, n-2)) // the mint has two
	}
	r := must.Get(ramp.ParseValidate(side(1000)))(t)
	assert.Len(t, r.Intent.From, 1000)
	_, err := ramp.ParseValidate(side(1001))
	assertFields(t, err, "intent.from must not have more than 1000 entries")
	_, err = ramp.ParseValidate(bytes.Replace(side(1001), []byte(`"amount":1}`), []byte(`"amount":"1"}`), 1))
	assertFields(t, err, "intent.from must not have more than 1000 entries",
		"intent.from[0].amount must be a number, not a string")

	// Checking is bounded as reading is.
	intent := mintIntent(t)
	intent.From = slices.Repeat(assets(t, ramp.TypeAsset, "gold 0"), 1000)
	intent.To = slices.Repeat(assets(t, ramp.TypeERC20, testToken+" 0"), 1000)
	_, err = effectOf(t, intent, "")
	assert.Len(t, as[*ramp.InvalidError](t, err).Fields, 1000)
}

func TestReceiptLogsAreBounded(t *testing.T) {
	receipt := func(n int) []byte {
		return []byte(`{"status":"0x1","logs":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}`)
	}
	result := func(n int) []byte {
		return bytes.Replace(resultBody(t, `"logs":[`, `"logs":[`), []byte(`"receipt":{`),
			[]byte(`"receipt":`+string(receipt(n))+`,"rest":{`), 1)
	}
	r := must.Get(ramp.ParseResult(result(4096)))(t)
	assert.Len(t, r.Receipt.Logs, 4096)
	r = must.Get(ramp.ParseResult(result(4097)))(t)
	assertFields(t, &ramp.InvalidError{Fields: r.Unreadable}, "receipt.logs must not have more than 4096 entries")

	// A node is trusted with more.
	var own ramp.Receipt
	require.NoError(t, json.Unmarshal(receipt(100_000), &own))
	assert.Len(t, own.Logs, 100_000)
	assertFields(t, json.Unmarshal(receipt(100_001), &own), "logs must not have more than 100000 entries")

	topics := func(n int) []byte {
		return []byte(`{"topics":[` + strings.Repeat(`"`+hash32+`",`, n-1) + `"` + hash32 + `"]}`)
	}
	var log ramp.Log
	require.NoError(t, json.Unmarshal(topics(16), &log))
	assert.Len(t, log.Topics, 16)
	assertFields(t, json.Unmarshal(topics(17), &log), "topics must not have more than 16 entries")
}

// Stored text must be valid UTF-8: databases reject anything else, and
// encoding/json writes it differently under each of its versions.
func TestInvalidUTF8IsRejected(t *testing.T) {
	for field, old := range map[string]string{
		"user_address":            `"user_address":"`,
		"project_id":              `"project_id":"`,
		"intent.method":           `"method":"`,
		"intent.type":             `"type":"`, // the first is the intent's
		"intent.from[0].id":       `"id":"`,
		"intent.target_candidate": `"target_candidate":`,
	} {
		broken := "\xff"
		if field == "intent.target_candidate" {
			broken = "\"\xff\",\"was\":"
		}
		body := validateBody(t, old, old+broken)
		_, err := ramp.ParseValidate(body)
		var wrong *ramp.InvalidError
		require.ErrorAs(t, err, &wrong, field)
		assert.Contains(t, wrong.Fields, ramp.FieldError{Path: field, Problem: "must be valid UTF-8"}, field)
	}
	r, err := ramp.ParseResult(resultBody(t, `"tx_hash":"`, "\"tx_hash\":\"\xff\",\"was\":\""))
	require.NoError(t, err, "what decides nothing is left out")
	assert.Empty(t, r.TxHash)
	_, err = ramp.ParseValidate(validateBody(t, `{"user_sig"`, "{\"note\":\"\xff\",\"\xfe\":1,\"user_sig\""))
	assert.NoError(t, err, "what is not stored may be anything")
}

// UnmarshalJSON can be called without encoding/json.
func TestUnmarshalJSONRejectsWhatIsNoJSON(t *testing.T) {
	for _, into := range []json.Unmarshaler{
		new(ramp.Amount), new(ramp.Quantity), new(ramp.Asset), new(ramp.Intent), new(ramp.ValidateRequest),
		new(ramp.Result), new(ramp.Receipt), new(ramp.Log), new(ramp.Transaction), new(ramp.Block),
	} {
		for _, text := range []string{"", " ", "{", `"`, `"\`, "[", "nul", "-", `{"a"`, `{"a":`, "1 2"} {
			var wrong *ramp.InvalidError
			require.ErrorAs(t, into.UnmarshalJSON([]byte(text)), &wrong, "%T reads %q", into, text)
			assert.Equal(t, "must be valid JSON", wrong.Fields[0].Problem)
		}
		_ = into.UnmarshalJSON([]byte(" null ")) // must not panic
	}
}

// A value is read while its text is checked. So the text may break off behind any of its bytes.
func TestATextThatIsNoJSONLeavesTheOldValue(t *testing.T) {
	racedetector.Skip(t)
	result, validate := golden(t, "6-result-mint.json"), golden(t, "2.5-validate-mint.json")
	receipt, intent := must.Get(ramp.ParseResult(result))(t).Receipt.Raw, must.Get(json.Marshal(mintIntent(t)))(t)
	block := `{"number":"0x1","transactions":[` + feeDelegated + `]}`
	for into, text := range map[json.Unmarshaler]string{
		new(ramp.Amount): "12.5", new(ramp.Quantity): `"0x12"`, new(ramp.Asset): `{"id":"gold","balance":"1"}`,
		new(ramp.Intent): string(intent), new(ramp.ValidateRequest): string(validate), new(ramp.Result): string(result),
		new(ramp.Receipt): string(receipt), new(ramp.Log): `{"data":"0x01","topics":[]}`,
		new(ramp.Transaction): feeDelegated, new(ramp.Block): block,
	} {
		text := strings.TrimSpace(text)
		require.NoError(t, into.UnmarshalJSON([]byte(text)))
		was := reflect.ValueOf(into).Elem().Interface()
		for n := range text {
			for _, broken := range []string{text[:n], text[:n] + "\x01" + text[n:], text + " " + text[:n+1]} {
				if ramp.IsJSON([]byte(broken)) { // of a number
					continue
				}
				require.Error(t, into.UnmarshalJSON([]byte(broken)), "%T reads %q", into, broken)
				require.Equal(t, was, reflect.ValueOf(into).Elem().Interface(), "%T after %q", into, broken)
			}
		}
	}
}

// Old contents of a value must not show through.
func TestReadingReplacesTheWholeValue(t *testing.T) {
	used := func(into json.Unmarshaler, text []byte) json.Unmarshaler {
		require.NoError(t, json.Unmarshal(text, into))
		return into
	}
	result := golden(t, "6-result-mint.json")
	receipt, intent := must.Get(ramp.ParseResult(result))(t).Receipt.Raw, must.Get(json.Marshal(mintIntent(t)))(t)
	for _, into := range []json.Unmarshaler{
		used(&ramp.Receipt{From: common.Address{1}}, receipt),
		used(&ramp.Log{Removed: true}, []byte(`{"data":"0x01"}`)), used(new(ramp.Intent), intent),
		used(new(ramp.Result), result), used(new(ramp.Transaction), []byte(feeDelegated)),
		used(new(ramp.Block), []byte(`{"number":"0x1","transactions":[`+feeDelegated+`]}`)),
	} {
		fresh := reflect.New(reflect.TypeOf(into).Elem()).Interface()
		const text = `{"uuid":"` + goldenMint + `","receipt":{"status":"0x1"},"status":"0x1","logs":[{}],"from":[]}`
		err := json.Unmarshal([]byte(text), fresh)
		assert.Equal(t, err, json.Unmarshal([]byte(text), into))
		assert.Equal(t, fresh, into)
	}
}

// An error that UnmarshalJSON returns passes through encoding/json on both of
// its versions.
func TestInvalidErrorPassesThroughEncodingJSON(t *testing.T) {
	var inside struct{ Receipts []ramp.Receipt }
	err := json.Unmarshal([]byte(`{"Receipts":[{"logs":[{"topics":["0x1"]}]}]}`), &inside)
	assertFields(t, err, "logs[0].topics[0] must be 0x followed by 64 hex digits, not a string")
}

// A hostile body must not cost more to check than to send.
func TestFaultsAreBounded(t *testing.T) {
	entries := strings.Repeat(`{"type":1,"id":2,"amount":"3"},`, 990)
	_, err := ramp.ParseValidate(validateBody(t, `"from":[`, fmt.Sprintf(`"to":[%s{}],"from":[%s`, entries, entries)))
	wrong := as[*ramp.InvalidError](t, err)
	assert.Less(t, len(wrong.Fields), 2100)

	// An error that decides is not hidden by a thousand that do not.
	logs := strings.Repeat(`{"data":1},`, 2000)
	must.Get(ramp.ParseResult(resultBody(t, `"logs":[`, `"logs":[`+logs)))(t)
	_, err = ramp.ParseResult(resultBody(t, `"logs":[`, `"status":"0x0","logs":[`+logs))
	assertFields(t, err, "receipt.status occurs more than once")
}

// A result whose logs are wrong must not be read with half of its intent.
func TestNoArrayHidesTheFaultsOfAnother(t *testing.T) {
	logs := strings.Repeat(`{"data":1},`, 2000)
	body := bytes.Replace(resultBody(t, `"logs":[`, `"logs":[`+logs), []byte(`"id":"gold"`),
		[]byte(`"id":"gold","id":"silver"`), 1)
	r := must.Get(ramp.ParseResult(body))(t)
	assert.Contains(t, r.Unreadable, ramp.FieldError{Path: "intent.from[0].id", Problem: "occurs more than once"})
	assert.Nil(t, r.Intent.From)
	_, err := r.Intent.Effect(r.Outcome())
	assert.Error(t, err)

	// Nor are errors outside of arrays, whatever comes first.
	body = []byte(`{"receipt":{"status":"0x1","logs":[` + logs + `{}],"gasUsed":-1},"session_id":7,` +
		`"intent":{"from":[{"id":1}],"actual":"1","actual":"2"},"uuid":"` + goldenMint + `"}`)
	r = must.Get(ramp.ParseResult(body))(t)
	for _, path := range []string{"receipt.gasUsed", "session_id", "intent.from[0].id", "intent.actual"} {
		assert.True(t, slices.ContainsFunc(r.Unreadable, func(f ramp.FieldError) bool { return f.Path == path }), path)
	}
	assert.Len(t, r.Unreadable, 1004)

	// Nested arrays share the limit of the outermost one.
	r = must.Get(ramp.ParseResult(resultBody(t, `"logs":[`, `"logs":[`+strings.Repeat(`{"topics":[1,2,3]},`, 2000))))(t)
	assert.Len(t, r.Unreadable, 1000)
}

// Over JSON-RPC the array is the whole text, and as long as an answer may be.
func TestFaultsOfLogsAreBounded(t *testing.T) {
	log := `{"address":0,"topics":0,"data":0,"blockNumber":{},"logIndex":{},"removed":0}`
	node := newNode(t, says(200, result("["+log+strings.Repeat(","+log, 9_999)+"]")))
	_, err := node.client(t).Logs(t.Context(), ramp.LogFilter{})
	wrong := as[*ramp.InvalidError](t, err)
	assert.Len(t, wrong.Fields, 1000)
}

// An error beyond the limit still counts.
func TestAnAnswerWithTwoIDsHasNoKeyBehindAThousandFaults(t *testing.T) {
	node := newNode(t, says(200, "["+strings.Repeat("0,", 2000)+`{"id":1,"id":1,"result":"0x1"}]`))
	var number ramp.Quantity
	_ = node.client(t).Batch(t.Context(),
		[]ramp.BatchCall{{Method: "eth_blockNumber", Into: &number}, {Method: "eth_blockNumber", Into: &number}})
	assert.False(t, number.Present())
}

// Every unreadable field of a result is zero, even one that decides nothing.
func TestWhatOccursTwiceInAResultIsZero(t *testing.T) {
	for path, members := range map[string]string{
		"session_id":              `"session_id":"a",`,
		"tx_hash":                 `"tx_hash":"0x01",`,
		"intent":                  `"intent":{},`,
		"intent.method":           `"method":"mint",`,
		"intent.type":             `"type":"assemble",`,
		"intent.to":               `"to":[],`,
		"intent.from":             `"from":[],`,
		"intent.target_candidate": `"target_candidate":{},`,
		"intent.fee_rate":         `"fee_rate":2000,`,
		"intent.actual":           `"actual":"5",`,
	} {
		body := `{"uuid":"` + goldenMint + `","receipt":{"status":"0x1"},` + members + members + `"x":0}`
		if strings.HasPrefix(path, "intent.") {
			body = `{"uuid":"` + goldenMint + `","receipt":{"status":"0x1"},"intent":{` + members + members + `"x":0}}`
		}
		r := must.Get(ramp.ParseResult([]byte(body)))(t)
		assert.Equal(t, []ramp.FieldError{{Path: path, Problem: "occurs more than once"}}, r.Unreadable)
		assert.Zero(t, r.SessionID+r.TxHash)
		assert.Zero(t, r.Intent, path)
	}
}

// seed adds the golden files that match a pattern.
func seed(f *testing.F, pattern string, add func([]byte)) {
	f.Helper()
	files := must.Get(filepath.Glob(filepath.Join("testdata", pattern)))(f)
	require.NotEmpty(f, files)
	for _, file := range files {
		add(golden(f, filepath.Base(file)))
	}
}

// requireInvalid checks that an error lists fields by path, and that its text is
// short and quotes nothing of the body.
func requireInvalid(t *testing.T, err error) {
	t.Helper()
	wrong := as[*ramp.InvalidError](t, err)
	require.NotEmpty(t, wrong.Fields)
	for _, f := range wrong.Fields {
		require.NotEmpty(t, f.Path)
		require.NotEmpty(t, f.Problem)
	}
	text := err.Error()
	require.Less(t, len(text), 2_000)
	require.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }), "%q", text)
}

// requireSound checks an intent that was accepted.
func requireSound(t *testing.T, i *ramp.Intent) ramp.Direction {
	t.Helper()
	direction := must.Get(i.Direction())(t)
	require.True(t, direction == ramp.Mint || direction == ramp.Burn)
	game, chain := i.From, i.To
	if direction == ramp.Burn {
		game, chain = i.To, i.From
	}
	require.NotEmpty(t, game)
	require.NotEmpty(t, chain)
	for _, asset := range game {
		require.Equal(t, ramp.TypeAsset, asset.Type)
	}
	for _, asset := range chain {
		require.NotEqual(t, "asset", strings.ToLower(string(asset.Type)))
		require.NotEmpty(t, asset.Type)
	}
	for _, asset := range append(append([]ramp.IntentAsset{}, game...), chain...) {
		require.NotEmpty(t, asset.ID)
		require.Equal(t, 1, asset.Amount.Sign())
		require.LessOrEqual(t, len(asset.Amount.String()), 202)
	}
	return direction
}

// requireMoved checks that an intent that can be acted on moves all of the game's assets in a
// state, and each of them once.
func requireMoved(t *testing.T, i *ramp.Intent, state ramp.OrderState) {
	t.Helper()
	direction := requireSound(t, i)
	effect, err := i.Effect(state)
	if err != nil {
		requireInvalid(t, err) // a sum beyond every quantity
		require.Equal(t, ramp.Effect{}, effect)
		return
	}
	kind := map[ramp.Direction]map[ramp.OrderState]ramp.EffectKind{
		ramp.Mint: {ramp.OrderAccepted: ramp.Take, ramp.OrderFailed: ramp.GiveBack},
		ramp.Burn: {ramp.OrderSucceeded: ramp.Grant}}[direction][state]
	require.Equal(t, kind, effect.Kind)
	sums := map[string]ramp.Amount{}
	if kind != ramp.Nothing {
		for _, asset := range slices.Concat(i.From, i.To) {
			if asset.Type == ramp.TypeAsset {
				sums[asset.ID] = must.Get(sums[asset.ID].Add(asset.Amount))(t)
			}
		}
	}
	for _, asset := range effect.Assets {
		require.Equal(t, sums[asset.ID], asset.Amount)
		delete(sums, asset.ID)
	}
	require.Empty(t, sums)
}

// Zeros, of which a Bloom filter mostly consists, are skipped where they fill a whole step.
func TestHexIsDecodedWhereverItsZerosAre(t *testing.T) {
	for length := range 70 {
		for at := range length {
			for _, digit := range "0f7gG" {
				digits := []byte(strings.Repeat("0", length))
				digits[at] = byte(digit)
				want, invalid := hex.DecodeString(string(digits))
				var receipt ramp.Receipt
				err := receipt.UnmarshalJSON([]byte(`{"logsBloom":"0x` + string(digits) + `"}`))
				require.Equal(t, invalid != nil, err != nil, "%s", digits)
				if err == nil {
					require.Equal(t, want, []byte(receipt.LogsBloom), "%s", digits)
				}
			}
		}
	}
}

// number matches JSON numbers, with a different implementation than the tested one.
func number(text string) bool {
	return json.Valid([]byte(text)) && text != "" && strings.ContainsRune("-0123456789", rune(text[0])) &&
		strings.TrimSpace(text) == text
}

func FuzzAmount(f *testing.F) {
	for _, text := range []string{"0", "-0", "5", "0.5", "1e30", "1E-100", "9007199254740993", "1000000000000000000001",
		"1e999999999",
		"1e9223372036854775807", "-1.5e+3", "05", "+5", "0e9", "12000e-3", "٥", "1.", ".1", "1e", "9223372036854775807",
		"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "-0.5", "0 ", "0e9227000000000000000",
		"", " ", "-", "--5", ".5", "5.", "-.5", "-05", "00", "1,5", "1 000", " 5", "5 ", "5\n", "1e+", "1e-", "1e+-5",
		"1e++5", "1e-+5", "1e--5", "1e5.5", "e5", "1e5e5", "1.2.3",
		"0x10", "1_000", "NaN", "Infinity", "-Inf", "null", "true", "five", "1/2", `"5"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ramp.ParseAmount(text)
		if err != nil {
			require.Equal(t, ramp.Amount{}, a)
			require.Less(t, len(err.Error()), 100)
			small := len(text) <= 100 && !strings.ContainsAny(text, "eE")
			require.False(t, small && number(text), "%q is a number of a game", text)
			if text == strings.Trim(text, " \t\r\n") { // JSON allows blanks around a number
				var read ramp.Amount
				require.Error(t, json.Unmarshal([]byte(text), &read), "JSON accepts what ParseAmount rejects")
			}
			return
		}
		require.True(t, number(text), "%q is no JSON number", text)

		exact, ok := new(big.Rat).SetString(text)
		if !ok { // an exponent that big.Rat does not take: all that has one is 0
			exact, ok = new(big.Rat).SetString(text[:strings.IndexAny(text, "eE")])
			require.True(t, ok)
			require.Zero(t, exact.Sign(), "%q was read as %s", text, a)
		}
		require.Zero(t, exact.Cmp(a.Rat()), "%q was read as %s", text, a)
		require.Equal(t, exact.Sign(), a.Sign())

		written := a.String()
		require.LessOrEqual(t, len(written), 202)
		require.NotContains(t, strings.ToLower(written), "e")
		again := must.Get(ramp.ParseAmount(written))(t)
		require.Equal(t, a, again, "one value has one form")

		b := must.Get(json.Marshal(a))(t)
		require.Equal(t, written, string(b))

		n, err := a.Int64()
		require.Equal(t, exact.IsInt() && exact.Num().IsInt64(), err == nil)
		if err == nil {
			require.Equal(t, a, ramp.NewAmount(n))
		}
		whole, err := a.Int()
		require.Equal(t, exact.IsInt(), err == nil)
		if err == nil {
			require.Zero(t, exact.Num().Cmp(whole))
		}

		if twice, err := a.Add(a); err == nil {
			require.Zero(t, new(big.Rat).Add(exact, exact).Cmp(twice.Rat()))
		} else {
			require.Greater(t, len(written), 99, "only the largest amounts have no double")
		}
	})
}

func FuzzVerify(f *testing.F) {
	key := testKey(f)
	ring := vectorBase64Key(f).WithPrevious(key)
	f.Add([]byte(hmacBody), strings.ToUpper(hmacTextSignature))
	f.Add([]byte(hmacBody), hmacBase64Signature)
	f.Add([]byte(hmacBody), reference(nil, []byte(hmacBody)))
	f.Add([]byte(nil), "")
	seed(f, "*.json", func(b []byte) { f.Add(b, key.Sign(b)) })
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		for _, empty := range []ramp.HMACKey{{}, ramp.HMACKey{}.WithPrevious(key)} {
			require.ErrorIs(t, empty.Verify(body, signature), ramp.ErrHMACKey, "an empty key verifies nothing")
		}
		right := key.Sign(body)
		require.NoError(t, ring.Verify(body, right))
		err := key.Verify(body, signature)
		require.Equal(t, strings.ToLower(signature) == right, err == nil)
		if err != nil {
			require.Equal(t, signature == "", errors.Is(err, ramp.ErrHMACMissing))
			require.Equal(t, signature != "", errors.Is(err, ramp.ErrHMACInvalid))
			require.NotContains(t, err.Error(), right)
			require.Less(t, len(err.Error()), 150)
		}
	})
}
