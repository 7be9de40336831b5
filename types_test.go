package ramp_test

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
)

// replaced is a golden file, compact, in which old is replaced by new.
func replaced(t testing.TB, file, old, new string) []byte {
	t.Helper()
	var body bytes.Buffer
	require.NoError(t, json.Compact(&body, golden(t, file)))
	require.Contains(t, body.String(), old)
	return []byte(strings.Replace(body.String(), old, new, 1))
}

// validateBody is a mint of 2.5, and resultBody one of 6, in which old is replaced by new.
func validateBody(t testing.TB, old, new string) []byte {
	return replaced(t, "2.5-validate-mint.json", old, new)
}

func resultBody(t testing.TB, old, new string) []byte {
	return replaced(t, "6-result-mint.json", old, new)
}

func TestBodyMustBeOneJSONObject(t *testing.T) {
	whole := string(validateBody(t, "", ""))
	for _, tt := range []struct{ name, body string }{
		{"nothing", ""},
		{"null", "null"},
		{"text", `"mint"`},
		{"an array", "[" + whole + "]"},
		{"a truncated object", whole[:len(whole)-1]},
		{"an object and more", whole + "x"},
		{"an object twice", whole + whole},
		{"single quotes", strings.ReplaceAll(whole, `"`, `'`)},
		{"a byte order mark alone", "\ufeff"},
		{"two byte order marks", "\ufeff\ufeff" + whole},
		{"a byte order mark at the end", whole + "\ufeff"},
		{"an endless nesting", strings.Repeat(`{"intent":`, 100_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ramp.ParseValidate([]byte(tt.body))
			assertFields(t, err, "body must be one JSON object")
			assert.Nil(t, v)
			r, err := ramp.ParseResult([]byte(tt.body))
			assertFields(t, err, "body must be one JSON object")
			assert.Nil(t, r)
		})
	}
}

// Some senders write one, and the HMAC covers it too.
func TestAByteOrderMarkBeforeABodySaysNothing(t *testing.T) {
	validate, result := validateBody(t, "", ""), resultBody(t, "", "")
	marked := []byte("\ufeff")
	assert.Equal(t, must.Get(ramp.ParseValidate(validate))(t),
		must.Get(ramp.ParseValidate(append(marked, validate...)))(t))
	assert.Equal(t, must.Get(ramp.ParseResult(result))(t), must.Get(ramp.ParseResult(append(marked, result...)))(t))
}

// JSON can write a name in many ways, and a number with more digits than a float64 has.
func TestNoSpellingOfAnAmountGetsPast(t *testing.T) {
	whole := validateCall()
	for written, want := range map[string]string{
		`"amo\u0075nt":100`:                  "100",
		`"\u0061\u006dount":-1000000`:        "",
		`"amount":100,"amo\u0075nt":-1`:      "", // a name that occurs twice
		`"amo\u0075nt":100.0000000000000001`: "100.0000000000000001",
		`"amo\u0075nt":"100"`:                "",
	} {
		body := strings.Replace(string(whole.Bytes(t)), `"amount":100`, written, 1)
		r, err := ramp.ParseValidate([]byte(body))
		if want == "" {
			assertFields(t, err, "intent.from[0].amount ")
			continue
		}
		require.NoError(t, err, written)
		assert.Equal(t, want, r.Intent.From[0].Amount.String())
	}
}

func TestParseRejects(t *testing.T) {
	begins := func(t *testing.T, err error, want string) {
		as[*ramp.InvalidError](t, err)
		assert.True(t, strings.HasPrefix(err.Error(), "ramp: "+want), "%v", err)
	}
	const (
		digest = `"digest":"0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85"`
		bytes1 = "d91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85"
		sig    = `"user_sig":"` + goldenMintSig + `"`
		id     = `"uuid":"` + goldenMint + `"`
		user   = `"user_address":"` + goldenUser + `"`
		proj   = `"project_id":"` + goldenProject + `"`
	)
	for _, tt := range []struct{ name, old, new, want string }{
		{"user_sig missing", sig + ",", "", "user_sig is required"},
		{"user_sig 0x alone", sig, `"user_sig":"0x"`, "user_sig must be hex"},
		{"user_sig of half a byte", sig, `"user_sig":"0xabc"`, "user_sig must be hex"},
		{"user_sig a number", sig, `"user_sig":1`, "user_sig must be a string, not a number"},

		{"user_address without 0x", user, `"user_address":"` + goldenUser[2:] + `"`,
			"user_address is required and must be 0x followed by 40 hex digits, not zero"},
		{"user_address zero", user, `"user_address":"0x` + strings.Repeat("0", 40) + `"`,
			"user_address is required and must be 0x followed by 40 hex digits, not zero"},
		{"user_address of a precompiled contract", user, `"user_address":"0x` + strings.Repeat("0", 37) + `100"`,
			"user_address must be a wallet that somebody can have"},
		{"user_address where tokens die", user, `"user_address":"0x` + strings.Repeat("0", 36) + `dEaD"`,
			"user_address must be a wallet that somebody can have"},
		{"user_address of the token", user, `"user_address":"` + strings.ToLower(goldenToken) + `"`,
			"user_address must be a wallet that somebody can have"},

		{"project_id null", proj, `"project_id":null`, "project_id is required"},

		{"digest missing", digest + ",", "", "digest is required"},
		{"digest null", digest, `"digest":null`, "digest must be 0x followed by 64 hex digits, not null"},
		{"digest of 31 bytes", digest, `"digest":"0x` + bytes1[:62] + `"`,
			"digest must be 0x followed by 64 hex digits, not a string of 64 characters"},
		{"digest without 0x", digest, `"digest":"` + bytes1 + `"`,
			"digest must be 0x followed by 64 hex digits, not a string of 64 characters"},
		{"digest of zeros, which is nothing's hash", digest, `"digest":"0x` + strings.Repeat("0", 64) + `"`, "digest "},

		{"uuid null", id, `"uuid":null`, "uuid is required"},
		{"uuid of zeros", id, `"uuid":"00000000-0000-0000-0000-000000000000"`, "uuid is required"},

		{"intent null", `"intent":{`, `"intent":null,"was":{`, "intent.method is required"},
		{"intent text", `"intent":{`, `"intent":"mint","was":{`, "intent must be an object, not a string"},
		{"from an object", `"from":[`, `"from":{},"was":[`, "intent.from must be an array, not an object"},
		{"from null", `"from":[`, `"from":null,"was":[`, "intent.from is required"},
		{"to absent", `"to":[`, `"was":[`, "intent.to is required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ramp.ParseValidate(validateBody(t, tt.old, tt.new))
			assert.Nil(t, r)
			begins(t, err, tt.want)
		})
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"uuid missing", id + ",", "", "uuid is required"},
		{"uuid in letters", id, `"uuid":"x` + goldenMint + `y"`, "uuid must be a UUID, not a string of 38 characters"},
		{"uuid no UUID", id, `"uuid":"order-1"`, "uuid must be a UUID, not a string of 7 characters"},
		{"receipt null", `"receipt":{`, `"receipt":null,"was":{`, "receipt.status is required"},
		{"receipt text", `"receipt":{`, `"receipt":"0x1","was":{`, "receipt must be an object, not a string"},
		{"uuid twice", id, id + "," + id, "uuid occurs more than once"},
		{"receipt twice", `"receipt":{`, `"receipt":{"status":"0x1"},"receipt":{`, "receipt occurs more than once"},
		{"status twice", `"status":"0x1"`, `"status":"0x1","status":"0x0"`, "receipt.status occurs more than once"},
	} {
		t.Run("result/"+tt.name, func(t *testing.T) {
			r, err := ramp.ParseResult(resultBody(t, tt.old, tt.new))
			assert.Nil(t, r)
			begins(t, err, tt.want)
		})
	}
}

func TestParseRejectsEveryFaultOfAnIntent(t *testing.T) {
	for n, tt := range intentRejections {
		t.Run(tt.name, func(t *testing.T) {
			intent := rejected(t, n)
			v, err := ramp.ParseValidate([]byte(`{"user_sig":"0xab","user_address":"` + goldenUser +
				`","project_id":"p",
				"digest":"` + vectors[0].digestText + `","uuid":"` + goldenMint + `","intent":` + intent + `}`))
			assertFields(t, err, tt.want...)
			assert.Nil(t, v)

			r, err := ramp.ParseResult([]byte(`{"uuid":"` + goldenMint + `","receipt":{"status":"0x1"},"intent":` +
				intent + `}`))
			if !json.Valid([]byte(intent)) {
				assertFields(t, err, tt.want...)
				return
			}
			require.NoError(t, err, "an authentic result is not rejected for its intent")
			_, err = r.Intent.Effect(r.Outcome())
			require.Error(t, err, "but its intent moves nothing")
		})
	}
}

func TestParseValidateReportsAllThatIsWrong(t *testing.T) {
	_, err := ramp.ParseValidate([]byte(`{}`))
	assertFields(t, err, "user_sig is required", "user_address is required", "project_id is required",
		"digest is required",
		"uuid is required", "intent.method is required", "intent.type is required", "intent.from is required",
		"intent.to is required")

	_, err = ramp.ParseResult([]byte(`{}`))
	assertFields(t, err, "uuid is required", "receipt.status is required")
}

// A rejected result is not redelivered, so a malformed field that decides nothing
// does not reject it. The field is left out and listed.
func TestParseResultLeavesOutWhatItCannotRead(t *testing.T) {
	whole := must.Get(ramp.ParseResult(resultBody(t, "", "")))(t)
	assert.Empty(t, whole.Unreadable)
	for _, tt := range []struct {
		name, old, new, unreadable string
		left                       func(*ramp.Result) any // is zero
	}{
		{"session_id a number", `"session_id":"hero-4821"`, `"session_id":4821`,
			"session_id must be a string, not a number",
			func(r *ramp.Result) any { return r.SessionID }},
		{"session_id not UTF-8", `hero-4821`, "hero-\xff", "session_id must be valid UTF-8",
			func(r *ramp.Result) any { return r.SessionID }},
		{"an amount of text", `"amount":100`, `"amount":"100"`, "intent.from[0].amount must be a number, not a string",
			func(r *ramp.Result) any { return r.Intent.From }},
		{"too many entries", `"to":[`, `"to":[` + strings.Repeat("{},", 1000),
			"intent.to must not have more than 1000 entries",
			func(r *ramp.Result) any { return r.Intent.To }},
		{"a hash with a wrong last digit",
			`"effectiveGasPrice":"0x3b9aca00",` +
				`"blockHash":"0x496aca80e4d8f29fb8e8cd816c3afb48d3f103970b3a2ee1600c08ca67326dee"`,
			`"blockHash":"0x496aca80e4d8f29fb8e8cd816c3afb48d3f103970b3a2ee1600c08ca67326dez"`,
			"receipt.blockHash must be 0x followed by 64 hex digits, not a string",
			func(r *ramp.Result) any { return r.Receipt.BlockHash }},
		{"too many logs", `"logs":[`, `"logs":[` + strings.Repeat("{},", 4096),
			"receipt.logs must not have more than 4096 entries",
			func(r *ramp.Result) any { return r.Receipt.Logs }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := resultBody(t, tt.old, tt.new)
			r := must.Get(ramp.ParseResult(body))(t)
			assert.Equal(t, whole.UUID, r.UUID)
			assert.True(t, r.Succeeded())
			assertFields(t, &ramp.InvalidError{Fields: r.Unreadable}, tt.unreadable)
			assert.Zero(t, tt.left(r), "it is not half read")
			assert.Equal(t, body, []byte(r.Raw))

			var read ramp.Result
			require.NoError(t, json.Unmarshal(body, &read), "UnmarshalJSON agrees")
			assert.Equal(t, r, &read)
		})
	}
}

func TestParseAccepts(t *testing.T) {
	token := func(r *ramp.ValidateRequest) any { return string(r.Intent.To[0].Type) }
	options := func(r *ramp.ValidateRequest) any { return string(r.Intent.TargetCandidate) }
	for _, tt := range []struct {
		name, old, new string
		see            func(*ramp.ValidateRequest) any
		want           string
	}{
		{"user_sig without 0x, and returns it unchanged", `"user_sig":"0x`, `"user_sig":"`,
			func(r *ramp.ValidateRequest) any { return r.UserSig }, goldenMintSig[2:]},
		{"user_sig in capitals, of any length", `"user_sig":"`, `"user_sig":"ABCD","was":"`,
			func(r *ramp.ValidateRequest) any { return r.UserSig }, "ABCD"},
		{"a digest in capitals", `"0xd91c81e564`, `"0xD91C81E564`,
			func(r *ramp.ValidateRequest) any { return r.Digest.String() }, vectors[0].digestText},
		{"a uuid in capitals", goldenMint, strings.ToUpper(goldenMint),
			func(r *ramp.ValidateRequest) any { return r.UUID.String() }, goldenMint},
		{"a uuid of 32 digits", goldenMint, strings.ReplaceAll(goldenMint, "-", ""),
			func(r *ramp.ValidateRequest) any { return r.UUID.String() }, goldenMint},
		{"erc20 in lower case", `"ERC20"`, `"erc20"`, token, "erc20"},
		{"an NFT as the target", `"ERC20"`, `"NFT"`, token, "NFT"},
		{"a token type that is new", `"ERC20"`, `"ERC1155"`, token, "ERC1155"},
		{"target_candidate absent", `,"target_candidate":{}`, ``, options, ""},
		{"target_candidate of any kind", `"target_candidate":{}`, `"target_candidate":[1,"b"]`, options, `[1,"b"]`},
		{"fields that nobody knows", `{"user_sig"`, `{"trace":{"id":[1e400]},"user_sig"`, options, "{}"},
		{"an amount beyond every float", `"amount":100`, `"amount":1000000000000000000001`,
			func(r *ramp.ValidateRequest) any { return r.Intent.From[0].Amount.String() }, "1000000000000000000001"},
		{"blanks around the body", `{"user_sig"`, " \r\n\t{\"user_sig\"", options, "{}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := validateBody(t, tt.old, tt.new)
			r := must.Get(ramp.ParseValidate(body))(t)
			assert.Equal(t, body, []byte(r.Raw), "Raw is the body, byte for byte")
			assert.Equal(t, tt.want, tt.see(r))
		})
	}
}

func TestRawOutlivesTheBody(t *testing.T) {
	body := validateBody(t, "", "")
	r := must.Get(ramp.ParseValidate(body))(t)
	result := resultBody(t, "", "")
	s := must.Get(ramp.ParseResult(result))(t)
	for _, used := range [][]byte{body, result} {
		copy(used, bytes.Repeat([]byte("x"), len(used))) // a server may use its buffer again
	}
	assert.Equal(t, validateBody(t, "", ""), []byte(r.Raw))
	assert.Equal(t, resultBody(t, "", ""), []byte(s.Raw))
	assert.NotContains(t, string(s.Receipt.Raw), "xx")
	assert.Equal(t, "{}", string(r.Intent.TargetCandidate))
}

// A hostile body must not be repeated in an error, which goes to a log.
func TestParseErrorsHoldNoValue(t *testing.T) {
	const secret = "c0ffee5ec2e7"
	for _, body := range [][]byte{
		validateBody(t, `"digest":"0x`, `"digest":"`+secret),
		validateBody(t, `"uuid":"`, `"uuid":"`+secret),
		validateBody(t, `"user_sig":"0x`, `"user_sig":"-`+secret),
		validateBody(t, `"method":"mint"`, `"method":"`+secret+`"`),
		validateBody(t, `"amount":100`, `"amount":"`+secret+`"`),
		validateBody(t, `"ERC20"`, `"asset","`+secret+`":1`),
		[]byte(secret),
		[]byte(`{"` + secret),
	} {
		_, err := ramp.ParseValidate(body)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), secret)
	}
}

func TestDigest(t *testing.T) {
	assertHex(t, vectors[0].digestText, ramp.ParseDigest,
		func(err error) { assertFields(t, err, "digest must be 0x followed by 64 hex digits") })
}

// assertHex checks that a type has exactly one text, which may be read in capitals.
func assertHex[T fmt.Stringer](t *testing.T, text string, parse func(string) (T, error), isWrong func(error)) {
	t.Helper()
	v := must.Get(parse(text))(t)
	assert.Equal(t, text, v.String())
	assert.Equal(t, v, must.Get(parse("0x"+strings.ToUpper(text[2:])))(t))
	written := must.Get(json.Marshal(v))(t)
	assert.Equal(t, `"`+text+`"`, string(written))
	var read T
	require.NoError(t, json.Unmarshal(written, &read))
	assert.Equal(t, v, read)

	for _, wrong := range []string{"", "0x", text[2:], text[:len(text)-1], text[:len(text)-2], text + "0", text + "00",
		"0X" + text[2:], " " + text,
		"0x" + text, "0x" + strings.Repeat("g", len(text)-2)} {
		got, err := parse(wrong)
		isWrong(err)
		assert.Zero(t, got)
		kept := v
		isWrong(any(&kept).(encoding.TextUnmarshaler).UnmarshalText([]byte(wrong)))
		assert.Zero(t, kept, "a failed read leaves nothing of before")
	}
}

func TestAssetBalanceIsADecimalString(t *testing.T) {
	for _, wrong := range []string{
		`{"id":"gold","balance":5}`, `{"id":"gold","balance":null}`, `{"id":"gold"}`, `{"id":"gold","balance":""}`,
		`{"id":"gold","balance":"0x5"}`, `{"id":"gold","balance":"five"}`, `{"id":5,"balance":"5"}`, `[]`,
	} {
		var a ramp.Asset
		require.Error(t, json.Unmarshal([]byte(wrong), &a), wrong)
	}
	var response ramp.Response[ramp.AssetsData]
	err := json.Unmarshal([]byte(`{"data":{"v1":{"assets":[{"id":"gold","balance":"five"}]}}}`), &response)
	assertFields(t, err, "asset must have a balance that is a decimal string")
}

func TestAccessTokensAreEqualByTheirText(t *testing.T) {
	token := ramp.NewAccessToken("a")
	assert.True(t, token.Equal(ramp.NewAccessToken("a")))
	assert.False(t, token.Equal(ramp.NewAccessToken("b")))
	assert.False(t, token.Equal(ramp.AccessToken{}))
	assert.Equal(t, ramp.AccessToken{}, ramp.NewAccessToken(""))
	assert.Equal(t, "a", token.Reveal())
	assert.False(t, reflect.TypeFor[ramp.Session]().Comparable(), "== would never hold")
}

// Printing, logging or storing a value that holds a secret must not show its text.
func TestSecretsDoNotShow(t *testing.T) {
	const secret = "Sup3rS3cr3tT3xt"
	textKey := must.Get(ramp.TextKey(secret))(t)
	base64Key := must.Get(ramp.Base64URLKey(secret + "AAA"))(t)
	token := ramp.NewAccessToken(secret)
	signer := must.Get(ramp.NewKeySigner(fmt.Sprintf("%x%034d", secret, 1)))(t)
	address := "https://" + secret + ":" + secret + "@node.example.com:8545/" + secret + "?key=" + secret
	node := ramp.RPCConfig{URL: address, Header: http.Header{"X-Secret": {secret}},
		FallbackURL: address, FallbackHeader: http.Header{"X-Secret": {secret}}}

	type hidden struct {
		secret  any
		token   ramp.AccessToken
		key     ramp.HMACKey
		pointer *ramp.AccessToken
		list    []ramp.AccessToken
		keys    map[string]ramp.HMACKey
		session ramp.Session
	}
	type shown struct {
		Secret any
		Token  ramp.AccessToken
		Key    ramp.HMACKey
		List   []ramp.AccessToken
		Keys   map[string]ramp.HMACKey
		Inside *shown
	}
	for name, v := range map[string]any{
		"a token":              token,
		"a pointer to a token": &token,
		"a text key":           textKey,
		"a base64url key":      base64Key,
		"a pointer to a key":   &textKey,
		"a rotated key":        base64Key.WithPrevious(textKey),
		"a session":            ramp.Session{ID: "hero-1", Token: token},
		"a pointer to one":     &ramp.Session{ID: "hero-1", Token: token},
		"catalog parameters":   ramp.CatalogParams{AccessToken: token},
		"exchange parameters":  &ramp.ExchangeParams{AccessToken: token},
		"a handler's config": ramp.HandlerConfig{Key: textKey, Signer: signer,
			Confirm: rampproof.Confirmed(must.Get(ramp.NewRPC(node))(t), 1)},
		"a client's config":     ramp.ClientConfig{Key: textKey},
		"an RPC's config":       node,
		"a pointer to an RPC's": &node,
		"configs of RPCs":       []ramp.RPCConfig{node},
		"an RPC's config in":    struct{ Chain ramp.RPCConfig }{node},
		"a slice":               []any{token, textKey},
		"a map":                 map[string]any{"token": token, "key": textKey, "node": node},
		"exported fields": shown{Secret: token, Token: token, Key: textKey, List: []ramp.AccessToken{token},
			Keys: map[string]ramp.HMACKey{"a": base64Key}, Inside: &shown{Key: textKey}},
		"unexported fields": hidden{secret: textKey, token: token, key: textKey, pointer: &token,
			list: []ramp.AccessToken{token}, keys: map[string]ramp.HMACKey{"a": textKey},
			session: ramp.Session{Token: token}},
		"a pointer to a struct": &hidden{secret: token, token: token, key: base64Key},
	} {
		t.Run(name, func(t *testing.T) {
			var all strings.Builder
			for _, verb := range "vsqxXdtboOcUeEfFgG" {
				for _, flag := range []string{"", "+", "#", "-", " ", "0", "100", ".3"} {
					fmt.Fprintf(&all, "%"+flag+string(verb)+"\n", v)
				}
			}
			fmt.Fprintln(&all, v, fmt.Errorf("failed with %v", v))
			slog.New(slog.NewTextHandler(&all, nil)).Info("call", "value", v, slog.Group("in", "value", v))
			slog.New(slog.NewJSONHandler(&all, nil)).Info("call", "value", v, slog.Group("in", "value", v))
			asJSON, _ := json.Marshal(v)
			asXML, _ := xml.Marshal(v)
			assertHidden(t, secret, all.String(), string(asJSON), string(asXML))
			if strings.Contains(name, "RPC") || name == "an endpoint" {
				assert.Contains(t, all.String(), "https://node.example.com:8545")
				assert.Contains(t, string(asJSON), "https://node.example.com:8545")
			} else {
				assertHidden(t, secret, fmt.Sprintf("%p", v)) // for which fmt asks no Format of ours
			}
		})
	}

	// Where there is room for a word, it is this one.
	for _, address := range []string{"", secret, secret + "://node.example.com",
		"https://node.example.com/%zz" + secret} {
		assert.Equal(t, "[redacted]", ramp.RPCConfig{URL: address}.String())
	}
	for _, v := range []fmt.Stringer{token, textKey} {
		assert.Equal(t, "[redacted]", v.String())
		b := must.Get(json.Marshal(v))(t)
		assert.Equal(t, `"[redacted]"`, string(b))
		assert.Equal(t, "[redacted]", fmt.Sprintf("%#v", v))
	}
}

// assertHidden looks for a secret and for its bytes in the ways that fmt writes
// bytes.
func assertHidden(t *testing.T, secret string, texts ...string) {
	t.Helper()
	forms := []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("% x", secret),
		strings.Trim(fmt.Sprint([]byte(secret)), "[]"), strings.TrimSuffix(fmt.Sprintf("%#v", []byte(secret))[7:], "}"),
		secret[:3]}
	for _, text := range texts {
		for _, form := range forms {
			assert.NotContains(t, text, form)
		}
	}
}

// newestFormat returns the directory of what this release stores. The directories are numbered.
func newestFormat(t *testing.T) string {
	all := must.Get(filepath.Glob("testdata/formats/*"))(t)
	require.NotEmpty(t, all)
	number := func(directory string) int { return must.Get(strconv.Atoi(filepath.Base(directory)))(t) }
	return slices.MaxFunc(all, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
}

// Or the tests that read the newest format would try nothing of what was added since.
func TestTheNewestFormatHasEveryField(t *testing.T) {
	newest := newestFormat(t)
	var all string
	for _, file := range must.Get(filepath.Glob(newest + "/order-*.json"))(t) {
		all += string(must.Get(os.ReadFile(file))(t))
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ramp.Order]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			assert.True(t, strings.Contains(all, `"`+name+`":`),
				"no order of %s has %s, so it needs another directory: %s", newest, name, storeAField)
		}
	}
}

// testdata/formats has what each release stored, in a directory for each format. This
// release reads all of them, and writes the newest. internal/test/integration/dbtest does the same with
// the tables. A release that writes something else adds a directory; the files of the
// others never change.
func TestThisReleaseReadsWhatEveryReleaseHasStored(t *testing.T) {
	newest := newestFormat(t)
	files := must.Get(filepath.Glob("testdata/formats/*/order-*.json"))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			text := must.Get(os.ReadFile(file))(t)
			var order ramp.Order
			require.NoError(t, json.Unmarshal(text, &order))
			assert.True(t,
				strings.HasPrefix(filepath.Base(file), "order-"+string(order.State)+"-"+string(order.Direction)), file)
			if filepath.Dir(file) == newest {
				written := must.Get(json.Marshal(order))(t)
				assert.Equal(t, strings.TrimSpace(string(text)), string(written),
					"a new format needs a directory of its own: %s", storeAField)
			}
			step, err := ramp.Finish(reported(order, 0), atResult)(&order)
			switch order.State {
			case ramp.OrderAccepted:
				require.NoError(t, err)
				assert.True(t, step.New)
			case ramp.OrderSucceeded:
				assert.ErrorIs(t, err, ramp.ErrOrderConflict)
			default:
				require.NoError(t, err)
				assert.False(t, step.New)
			}
		})
	}
}

func TestDirectionTakesMethodAndTypeTogether(t *testing.T) {
	methods := []ramp.Method{"", ramp.MethodMint, ramp.MethodBurnPermit, ramp.MethodBurn, "Mint", "MINT", "burn_permit",
		"Burn", "swap"}
	types := []ramp.IntentType{"", ramp.Assemble, ramp.Disassemble, "Assemble", "DISASSEMBLE", "mint"}
	want := map[ramp.Method]map[ramp.IntentType]ramp.Direction{
		ramp.MethodMint:       {ramp.Assemble: ramp.Mint},
		ramp.MethodBurnPermit: {ramp.Disassemble: ramp.Burn},
		ramp.MethodBurn:       {ramp.Disassemble: ramp.Burn},
	}
	for _, method := range methods {
		for _, kind := range types {
			t.Run(fmt.Sprintf("%q and %q", method, kind), func(t *testing.T) {
				intent := ramp.Intent{Method: method, Type: kind}
				direction, err := intent.Direction()
				assert.Equal(t, want[method][kind], direction)
				if want[method][kind] == "" {
					assertFields(t, err, "intent.method and intent.type must be")
				} else {
					require.NoError(t, err)
				}
			})
		}
	}
}

func effectOf(t testing.TB, intent ramp.Intent, status string) (ramp.Effect, error) {
	if status == "" {
		return intent.Effect(ramp.OrderAccepted)
	}
	r := ramp.Result{UUID: uuid.New(), Intent: intent}
	r.Receipt.Status = quantity(t, status)
	return r.Intent.Effect(r.Outcome())
}

// assets makes one side of an intent: "gold 5" is five of the asset gold.
func assets(t testing.TB, kind ramp.AssetType, list ...string) []ramp.IntentAsset {
	var side []ramp.IntentAsset
	for _, entry := range list {
		id, count, _ := strings.Cut(entry, " ")
		side = append(side, ramp.IntentAsset{Type: kind, ID: id, Amount: amount(t, count)})
	}
	return side
}

func TestEffectSumsEachAsset(t *testing.T) {
	intent := mintIntent(t)
	intent.From = assets(t, ramp.TypeAsset, "gold 9007199254740993", "dust 0.1", "gold 1", "egg 1", "dust 0.2",
		"gold 1000000000000000000000")
	effect := must.Get(effectOf(t, intent, ""))(t)
	assert.Equal(t, []ramp.AssetAmount{
		{ID: "dust", Amount: amount(t, "0.3")},
		{ID: "egg", Amount: amount(t, "1")},
		{ID: "gold", Amount: amount(t, "1000009007199254740994")},
	}, effect.Assets, "one entry an asset, sorted, so that two orders lock rows in the same order")

	assert.Equal(t, amount(t, "9007199254740993"), intent.From[0].Amount, "the intent is left alone")
}

func TestEffectFailsWhenAnAssetAddsUpToMoreThanAnyQuantity(t *testing.T) {
	nines := strings.Repeat("9", 100)
	mint := mintIntent(t)
	mint.From = assets(t, ramp.TypeAsset, "gold "+nines, "egg 1", "gold 1")
	effect, err := effectOf(t, mint, "")
	assertFields(t, err, "intent.from adds up to more")
	assert.Equal(t, ramp.Effect{}, effect)

	burn := burnIntent(t)
	burn.To = assets(t, ramp.TypeAsset, "gold "+nines, "gold 1")
	_, err = effectOf(t, burn, `"0x1"`)
	assertFields(t, err, "intent.to adds up to more")
}

// intentRejections lists everything that can be wrong with an intent of 2.5 and 6.
// change makes an Intent wrong; json does so in the text, for errors that only text
// can have.
var intentRejections = []struct {
	name   string
	burn   bool
	change func(*ramp.Intent)
	json   [2]string // old, new
	want   []string
}{
	{name: "method missing", change: func(i *ramp.Intent) { i.Method = "" },
		want: []string{"intent.method is required"}},
	{name: "type missing", change: func(i *ramp.Intent) { i.Type = "" },
		want: []string{"intent.type is required"}},
	{name: "mint and disassemble contradict each other", change: func(i *ramp.Intent) { i.Type = ramp.Disassemble },
		want: []string{"intent.method and intent.type"}},
	{name: "burn-permit and assemble contradict each other", burn: true,
		change: func(i *ramp.Intent) { i.Type = ramp.Assemble },
		want:   []string{"intent.method and intent.type"}},
	{name: "a method that nobody knows", change: func(i *ramp.Intent) { i.Method = "swap" },
		want: []string{"intent.method and intent.type"}},
	{name: "from missing", change: func(i *ramp.Intent) { i.From = nil },
		want: []string{"intent.from is required"}},
	{name: "to missing", change: func(i *ramp.Intent) { i.To = nil },
		want: []string{"intent.to is required"}},
	{name: "to empty", burn: true, change: func(i *ramp.Intent) { i.To = []ramp.IntentAsset{} },
		want: []string{"intent.to is required"}},
	{name: "mint from a token", change: func(i *ramp.Intent) { i.From[1].Type = ramp.TypeERC20 },
		want: []string{"intent.from[1].type must be asset"}},
	{name: "mint to an asset", change: func(i *ramp.Intent) { i.To[0].Type = ramp.TypeAsset },
		want: []string{"intent.to[0].type must be a token"}},
	{name: "burn from an asset", burn: true, change: func(i *ramp.Intent) { i.From[0].Type = ramp.TypeAsset },
		want: []string{"intent.from[0].type must be a token"}},
	{name: "burn to a token", burn: true, change: func(i *ramp.Intent) { i.To[1].Type = "erc20" },
		want: []string{"intent.to[1].type must be asset"}},
	{name: "a token without an id", change: func(i *ramp.Intent) { i.To[0].ID = "" },
		want: []string{"intent.to[0].id is required"}},
	{name: "an amount of zero", change: func(i *ramp.Intent) { i.From[0].Amount = ramp.Amount{} },
		want: []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "a token amount below zero", burn: true,
		change: func(i *ramp.Intent) { i.From[0].Amount = ramp.NewAmount(-1) },
		want:   []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "everything at once", change: func(i *ramp.Intent) { *i = ramp.Intent{From: []ramp.IntentAsset{{}}} },
		want: []string{"intent.method is required", "intent.type is required", "intent.from[0].type is required",
			"intent.from[0].id is required", "intent.from[0].amount is required", "intent.to is required"}},

	{name: "method a number", json: [2]string{`"method":"mint"`, `"method":1`},
		want: []string{"intent.method must be a string, not a number"}},
	{name: "an element null", json: [2]string{`"to":[`, `"to":[null,`},
		want: []string{"intent.to[0].type is required", "intent.to[0].id is required",
			"intent.to[0].amount is required"}},
	{name: "an element that is text", json: [2]string{`"to":[`, `"to":["gold",`},
		want: []string{"intent.to[0] must be an object, not a string"}},
	{name: "amount missing", json: [2]string{`,"amount":100`, ``}, want: []string{"intent.from[0].amount is required"}},
	{name: "amount null", json: [2]string{`"amount":100`, `"amount":null`},
		want: []string{"intent.from[0].amount must be a number, not null"}},
	{name: "amount text", json: [2]string{`"amount":100`, `"amount":"100"`},
		want: []string{"intent.from[0].amount must be a number, not a string"}},
	{name: "amount NaN", json: [2]string{`"amount":100`, `"amount":NaN`},
		want: []string{"body must be one JSON object"}},
	{name: "amount -0", json: [2]string{`"amount":100`, `"amount":-0`},
		want: []string{"intent.from[0].amount is required and must be greater than 0"}},
	{name: "amount endless", json: [2]string{`"amount":100`, `"amount":1e999999999`},
		want: []string{"intent.from[0].amount must be a number of at most 100 digits"}},
}

// rejected returns the text of an intent with one error of intentRejections.
func rejected(t testing.TB, n int) string {
	tt := intentRejections[n]
	intent := mintIntent(t)
	if tt.burn {
		intent = burnIntent(t)
	}
	if tt.change != nil {
		tt.change(&intent)
	}
	b := must.Get(json.Marshal(intent))(t)
	if tt.json[0] != "" {
		require.Contains(t, string(b), tt.json[0])
	}
	return strings.Replace(string(b), tt.json[0], tt.json[1], 1)
}

func TestDelta(t *testing.T) {
	five := ramp.AssetAmount{ID: "gold", Amount: amount(t, "5.5")}
	for kind, want := range map[ramp.EffectKind]string{ramp.Nothing: "0", ramp.Take: "-5.5", ramp.GiveBack: "5.5",
		ramp.Grant: "5.5"} {
		assert.Equal(t, want, ramp.Effect{Kind: kind}.Delta(five).String(), "%s", kind)
	}
	// Taking and giving back cancel out.
	sum := must.Get(ramp.Effect{Kind: ramp.Take}.Delta(five).Add(ramp.Effect{Kind: ramp.GiveBack}.Delta(five)))(t)
	assert.Equal(t, ramp.Amount{}, sum)

	assert.Equal(t, ramp.Amount{}, ramp.Effect{Kind: ramp.Take}.Delta(ramp.AssetAmount{}))
	assert.Equal(t, "5", ramp.Effect{Kind: ramp.Take}.Delta(ramp.AssetAmount{Amount: ramp.NewAmount(-5)}).String())
}

func TestEffectsAreText(t *testing.T) {
	gold := []ramp.AssetAmount{{ID: "gold", Amount: ramp.NewAmount(5)}}
	for _, tt := range []struct {
		effect     ramp.Effect
		text, json string
	}{
		{ramp.Effect{}, "nothing", `{}`},
		{ramp.Effect{Kind: ramp.Take, Assets: gold}, "take -5 gold",
			`{"kind":"take","assets":[{"id":"gold","amount":5}]}`},
		{ramp.Effect{Kind: ramp.GiveBack, Assets: gold}, "give back +5 gold",
			`{"kind":"give back","assets":[{"id":"gold","amount":5}]}`},
		{ramp.Effect{Kind: ramp.Grant, Assets: gold}, "grant +5 gold",
			`{"kind":"grant","assets":[{"id":"gold","amount":5}]}`},
	} {
		assert.Equal(t, tt.text, tt.effect.String())
		written := must.Get(json.Marshal(tt.effect))(t)
		assert.JSONEq(t, tt.json, string(written))
		var read ramp.Effect
		require.NoError(t, json.Unmarshal(written, &read))
		assert.Equal(t, tt.effect, read)
	}
}

// A fee and a net amount decide nothing, so an unknown form of them does not reject
// an order.
func TestWhatDecidesNothingIsReadLeniently(t *testing.T) {
	for _, tt := range []struct {
		fields          string
		feeRate, actual string
	}{
		{`"fee_rate":2000,"actual":"0.8"`, "2000", "0.8"},
		{`"fee_rate":"2000","actual":0.8`, "2000", "0.8"},
		{`"fee_rate":"many","actual":true`, "", ""},
		{`"fee_rate":[1],"actual":["1"]`, "", ""},
		{`"fee_rate":1e9999`, "", ""},
	} {
		t.Run(tt.fields, func(t *testing.T) {
			r := must.Get(ramp.ParseValidate(validateBody(t, `"target_candidate":{}`, tt.fields)))(t)
			assert.Equal(t, tt.feeRate, r.Intent.FeeRate.String())
			assert.Equal(t, tt.actual, r.Intent.Actual)
			_, err := json.Marshal(r.Intent)
			assert.NoError(t, err, "and it can be stored")
		})
	}
}
