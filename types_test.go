package ramp_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// validateBody is a mint of 2.5 in which old is replaced by new.
func validateBody(t testing.TB, old, new string) []byte {
	t.Helper()
	var body bytes.Buffer
	require.NoError(t, json.Compact(&body, golden(t, "2.5-validate-mint.json")))
	if old != "" {
		require.Contains(t, body.String(), old)
	}
	return []byte(strings.Replace(body.String(), old, new, 1))
}

// resultBody is a mint of 6 in which old is replaced by new.
func resultBody(t testing.TB, old, new string) []byte {
	t.Helper()
	var body bytes.Buffer
	require.NoError(t, json.Compact(&body, golden(t, "6-result-mint.json")))
	if old != "" {
		require.Contains(t, body.String(), old)
	}
	return []byte(strings.Replace(body.String(), old, new, 1))
}

func TestBodyMustBeOneJSONObject(t *testing.T) {
	whole := string(validateBody(t, "", ""))
	for _, tt := range []struct{ name, body string }{
		{"nothing", ""},
		{"blanks", " \n\t "},
		{"null", "null"},
		{"a number", "5"},
		{"text", `"mint"`},
		{"a boolean", "true"},
		{"an array", "[" + whole + "]"},
		{"no JSON", "user_sig=0x01"},
		{"a truncated object", whole[:len(whole)-1]},
		{"half an object", whole[:len(whole)/2]},
		{"an object and more", whole + "x"},
		{"an object twice", whole + whole},
		{"an object and a comma", whole + ","},
		{"single quotes", strings.ReplaceAll(whole, `"`, `'`)},
		{"a comment", "/* mint */" + whole},
		{"a byte order mark", "\ufeff" + whole},
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

func TestParseValidateRejects(t *testing.T) {
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
		{"user_sig null", sig, `"user_sig":null`, "user_sig is required"},
		{"user_sig empty", sig, `"user_sig":""`, "user_sig is required"},
		{"user_sig 0x alone", sig, `"user_sig":"0x"`, "user_sig must be hex"},
		{"user_sig not hex", sig, `"user_sig":"0xzz"`, "user_sig must be hex"},
		{"user_sig of half a byte", sig, `"user_sig":"0xabc"`, "user_sig must be hex"},
		{"user_sig with 0x twice", sig, `"user_sig":"0x0xab"`, "user_sig must be hex"},
		{"user_sig base64", sig, `"user_sig":"q83vEjRW+A=="`, "user_sig must be hex"},
		{"user_sig with a blank", sig, `"user_sig":" 0xab"`, "user_sig must be hex"},
		{"user_sig a number", sig, `"user_sig":1`, "user_sig must be a string, not a number"},
		{"user_sig an array", sig, `"user_sig":[]`, "user_sig must be a string, not an array"},

		{"user_address missing", user + ",", "", "user_address is required"},
		{"user_address null", user, `"user_address":null`, "user_address is required"},
		{"user_address empty", user, `"user_address":""`, "user_address is required"},
		{"user_address without 0x", user, `"user_address":"` + goldenUser[2:] + `"`, "user_address is required and must be 0x followed by 40 hex digits, not zero"},
		{"user_address with 0X", user, `"user_address":"0X` + goldenUser[2:] + `"`, "user_address is required and must be 0x followed by 40 hex digits"},
		{"user_address too short", user, `"user_address":"` + goldenUser[:41] + `"`, "user_address is required and must be 0x followed by 40 hex digits"},
		{"user_address too long", user, `"user_address":"` + goldenUser + `0"`, "user_address is required and must be 0x followed by 40 hex digits"},
		{"user_address with a blank", user, `"user_address":" ` + goldenUser + `"`, "user_address is required and must be 0x followed by 40 hex digits"},
		{"user_address not hex", user, `"user_address":"0x` + strings.Repeat("g", 40) + `"`, "user_address is required and must be 0x followed by 40 hex digits"},
		{"user_address a name", user, `"user_address":"alice.eth"`, "user_address is required and must be 0x followed by 40 hex digits"},
		{"user_address zero", user, `"user_address":"0x` + strings.Repeat("0", 40) + `"`, "user_address is required and must be 0x followed by 40 hex digits, not zero"},
		{"user_address a number", user, `"user_address":5`, "user_address must be a string, not a number"},

		{"project_id missing", proj + ",", "", "project_id is required"},
		{"project_id null", proj, `"project_id":null`, "project_id is required"},
		{"project_id empty", proj, `"project_id":""`, "project_id is required"},
		{"project_id a number", proj, `"project_id":7`, "project_id must be a string, not a number"},

		{"digest missing", digest + ",", "", "digest is required"},
		{"digest null", digest, `"digest":null`, "digest must be 0x followed by 64 hex digits, not null"},
		{"digest a number", digest, `"digest":1`, "digest must be 0x followed by 64 hex digits, not a number"},
		{"digest a boolean", digest, `"digest":true`, "digest must be 0x followed by 64 hex digits, not a boolean"},
		{"digest an array", digest, `"digest":[1,2]`, "digest must be 0x followed by 64 hex digits, not an array"},
		{"digest an object", digest, `"digest":{}`, "digest must be 0x followed by 64 hex digits, not an object"},
		{"digest empty", digest, `"digest":""`, "digest must be 0x followed by 64 hex digits, not a string of 0 characters"},
		{"digest of 0 bytes", digest, `"digest":"0x"`, "digest must be 0x followed by 64 hex digits, not a string of 2 characters"},
		{"digest of 31 bytes", digest, `"digest":"0x` + bytes1[:62] + `"`, "digest must be 0x followed by 64 hex digits, not a string of 64 characters"},
		{"digest of 33 bytes", digest, `"digest":"0x` + bytes1 + `00"`, "digest must be 0x followed by 64 hex digits, not a string of 68 characters"},
		{"digest of 64 bytes", digest, `"digest":"0x` + bytes1 + bytes1 + `"`, "digest must be 0x followed by 64 hex digits, not a string of 130 characters"},
		{"digest without 0x", digest, `"digest":"` + bytes1 + `"`, "digest must be 0x followed by 64 hex digits, not a string of 64 characters"},
		{"digest with 0X", digest, `"digest":"0X` + bytes1 + `"`, "digest must be 0x followed by 64 hex digits, not a string of 66 characters"},
		{"digest not hex", digest, `"digest":"0x` + strings.Repeat("z", 64) + `"`, "digest must be 0x followed by 64 hex digits, not a string of 66 characters"},
		{"digest of zeros, which is nothing's hash", digest, `"digest":"0x` + strings.Repeat("0", 64) + `"`, "digest "},

		{"uuid missing", id + ",", "", "uuid is required"},
		{"uuid null", id, `"uuid":null`, "uuid is required"},
		{"uuid empty", id, `"uuid":""`, "uuid must be a UUID, not a string of 0 characters"},
		{"uuid of zeros", id, `"uuid":"00000000-0000-0000-0000-000000000000"`, "uuid is required"},
		{"uuid no UUID", id, `"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a7"`, "uuid must be a UUID, not a string of 35 characters"},
		{"uuid in braces", id, `"uuid":"{` + goldenMint + `}"`, "uuid must be a UUID, not a string of 38 characters"},
		{"uuid in letters", id, `"uuid":"x` + goldenMint + `y"`, "uuid must be a UUID, not a string of 38 characters"},
		{"uuid as a URN", id, `"uuid":"urn:uuid:` + goldenMint + `"`, "uuid must be a UUID, not a string of 45 characters"},
		{"uuid a number", id, `"uuid":12`, "uuid must be a UUID, not a number"},
		{"uuid an array", id, `"uuid":["` + goldenMint + `"]`, "uuid must be a UUID, not an array"},

		{"intent null", `"intent":{`, `"intent":null,"was":{`, "intent.method is required"},
		{"intent missing", `"intent":{`, `"intend":{`, "intent.method is required"},
		{"intent text", `"intent":{`, `"intent":"mint","was":{`, "intent must be an object, not a string"},
		{"intent an array", `"intent":{`, `"intent":[],"was":{`, "intent must be an object, not an array"},
		{"from an object", `"from":[`, `"from":{},"was":[`, "intent.from must be an array, not an object"},
		{"from text", `"from":[`, `"from":"gold","was":[`, "intent.from must be an array, not a string"},
		{"from null", `"from":[`, `"from":null,"was":[`, "intent.from is required"},
		{"from absent", `"from":[`, `"was":[`, "intent.from is required"},
		{"to null", `"to":[`, `"to":null,"was":[`, "intent.to is required"},
		{"to absent", `"to":[`, `"was":[`, "intent.to is required"},
		{"to a boolean", `"to":[`, `"to":false,"was":[`, "intent.to must be an array, not a boolean"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ramp.ParseValidate(validateBody(t, tt.old, tt.new))
			assert.Nil(t, r)
			var wrong *ramp.InvalidError
			require.ErrorAs(t, err, &wrong)
			assert.True(t, strings.HasPrefix(err.Error(), "ramp: "+tt.want), "%v", err)
		})
	}
}

func TestParseRejectsEveryFaultOfAnIntent(t *testing.T) {
	for n, tt := range intentRejections {
		t.Run(tt.name, func(t *testing.T) {
			intent := rejected(t, n)
			v, err := ramp.ParseValidate([]byte(`{"user_sig":"0xab","user_address":"` + goldenUser + `","project_id":"p",
				"digest":"` + vectors[0].digestText + `","uuid":"` + goldenMint + `","intent":` + intent + `}`))
			assertFields(t, err, tt.want...)
			assert.Nil(t, v)

			r, err := ramp.ParseResult([]byte(`{"uuid":"` + goldenMint + `","receipt":{"status":"0x1"},"intent":` + intent + `}`))
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
	assertFields(t, err, "user_sig is required", "user_address is required", "project_id is required", "digest is required",
		"uuid is required", "intent.method is required", "intent.type is required", "intent.from is required", "intent.to is required")

	_, err = ramp.ParseResult([]byte(`{}`))
	assertFields(t, err, "uuid is required", "receipt.status is required")
}

func TestParseResultRejects(t *testing.T) {
	const id = `"uuid":"` + goldenMint + `"`
	for _, tt := range []struct{ name, old, new, want string }{
		{"uuid missing", id + ",", "", "uuid is required"},
		{"uuid null", id, `"uuid":null`, "uuid is required"},
		{"uuid no UUID", id, `"uuid":"order-1"`, "uuid must be a UUID, not a string of 7 characters"},
		{"uuid in letters", id, `"uuid":"x` + goldenMint + `y"`, "uuid must be a UUID, not a string of 38 characters"},
		{"receipt missing", `"receipt":{`, `"was":{`, "receipt.status is required"},
		{"receipt null", `"receipt":{`, `"receipt":null,"was":{`, "receipt.status is required"},
		{"receipt text", `"receipt":{`, `"receipt":"0x1","was":{`, "receipt must be an object, not a string"},
		{"receipt an array", `"receipt":{`, `"receipt":[],"was":{`, "receipt must be an object, not an array"},
		{"uuid twice", id, id + "," + id, "uuid occurs more than once"},
		{"receipt twice", `"receipt":{`, `"receipt":{"status":"0x1"},"receipt":{`, "receipt occurs more than once"},
		{"status twice", `"status":"0x1"`, `"status":"0x1","status":"0x0"`, "receipt.status occurs more than once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ramp.ParseResult(resultBody(t, tt.old, tt.new))
			assert.Nil(t, r)
			require.Error(t, err)
			assert.True(t, strings.HasPrefix(err.Error(), "ramp: "+tt.want), "%v", err)
		})
	}
}

// A rejected result is not redelivered, so a malformed field that decides nothing
// does not reject it. The field is left out and listed.
func TestParseResultLeavesOutWhatItCannotRead(t *testing.T) {
	whole, err := ramp.ParseResult(resultBody(t, "", ""))
	require.NoError(t, err)
	assert.Empty(t, whole.Unreadable)
	for _, tt := range []struct {
		name, old, new, unreadable string
		left                       func(*ramp.Result) any // is zero
	}{
		{"session_id a number", `"session_id":"hero-4821"`, `"session_id":4821`, "session_id must be a string, not a number",
			func(r *ramp.Result) any { return r.SessionID }},
		{"session_id twice", `"session_id":"hero-4821"`, `"session_id":"hero-4821","session_id":"hero-4821"`, "session_id occurs more than once",
			func(r *ramp.Result) any { return r.SessionID }},
		{"session_id not UTF-8", `hero-4821`, "hero-\xff", "session_id must be valid UTF-8",
			func(r *ramp.Result) any { return r.SessionID }},
		{"tx_hash twice", `"tx_hash":`, `"tx_hash":"0x1","tx_hash":`, "tx_hash occurs more than once",
			func(r *ramp.Result) any { return r.TxHash }},
		{"intent twice", `"intent":{`, `"intent":{"from":[]},"intent":{`, "intent occurs more than once",
			func(r *ramp.Result) any { return r.Intent }},
		{"intent text", `"intent":{`, `"intent":"mint","was":{`, "intent must be an object, not a string",
			func(r *ramp.Result) any { return r.Intent }},
		{"method twice", `"method":"mint"`, `"method":"mint","method":"mint"`, "intent.method occurs more than once",
			func(r *ramp.Result) any { return r.Intent.Method }},
		{"type a number", `"type":"assemble"`, `"type":1`, "intent.type must be a string, not a number",
			func(r *ramp.Result) any { return r.Intent.Type }},
		{"from twice", `"from":[`, `"from":[],"from":[`, "intent.from occurs more than once",
			func(r *ramp.Result) any { return r.Intent.From }},
		{"an amount of text", `"amount":100`, `"amount":"100"`, "intent.from[0].amount must be a number, not a string",
			func(r *ramp.Result) any { return r.Intent.From }},
		{"an amount twice", `"amount":10}`, `"amount":10,"amount":11}`, "intent.to[0].amount occurs more than once",
			func(r *ramp.Result) any { return r.Intent.To }},
		{"an endless amount", `"amount":10}`, `"amount":1e999}`, "intent.to[0].amount must be a number of at most 100 digits on either side of the point",
			func(r *ramp.Result) any { return r.Intent.To }},
		{"too many entries", `"to":[`, `"to":[` + strings.Repeat("{},", 1000), "intent.to must not have more than 1000 entries",
			func(r *ramp.Result) any { return r.Intent.To }},
		{"a hash with a wrong last digit", `"effectiveGasPrice":"0x3b9aca00","blockHash":"0x496aca80e4d8f29fb8e8cd816c3afb48d3f103970b3a2ee1600c08ca67326dee"`,
			`"blockHash":"0x496aca80e4d8f29fb8e8cd816c3afb48d3f103970b3a2ee1600c08ca67326dez"`,
			"receipt.blockHash must be 0x followed by 64 hex digits, not a string",
			func(r *ramp.Result) any { return r.Receipt.BlockHash }},
		{"a log twice", `"logs":[`, `"logs":[],"logs":[`, "receipt.logs occurs more than once",
			func(r *ramp.Result) any { return r.Receipt.Logs }},
		{"too many logs", `"logs":[`, `"logs":[` + strings.Repeat("{},", 4096), "receipt.logs must not have more than 4096 entries",
			func(r *ramp.Result) any { return r.Receipt.Logs }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := resultBody(t, tt.old, tt.new)
			r, err := ramp.ParseResult(body)
			require.NoError(t, err)
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

func TestParseResultReadsAUUIDInEveryNotation(t *testing.T) {
	for _, notation := range []string{
		strings.ToUpper(goldenMint), strings.ReplaceAll(goldenMint, "-", ""), "{" + goldenMint + "}", "urn:uuid:" + goldenMint,
	} {
		r, err := ramp.ParseResult(resultBody(t, goldenMint, notation))
		require.NoError(t, err, notation)
		assert.Equal(t, goldenMint, r.UUID.String())
	}
}

func TestParseResultNeedsNeitherSessionNorHash(t *testing.T) {
	for _, old := range []string{`"session_id":"hero-4821",`, `"tx_hash":"0x42654d7aaf5e9b4369a730fb6eb2774ab6b484b9c448c43b2bc2bd91c3e3146f",`} {
		_, err := ramp.ParseResult(resultBody(t, old, ""))
		require.NoError(t, err, old)
	}
}

func TestParseAccepts(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		check          func(*testing.T, *ramp.ValidateRequest)
	}{
		{"user_sig without 0x, and returns it unchanged", `"user_sig":"0x`, `"user_sig":"`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, goldenMintSig[2:], r.UserSig)
		}},
		{"user_sig in capitals, of any length", `"user_sig":"`, `"user_sig":"ABCD","was":"`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, "ABCD", r.UserSig)
		}},
		{"a digest in capitals", `"0xd91c81e564`, `"0xD91C81E564`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, vectors[0].digest(t), r.Digest)
		}},
		{"a uuid in capitals", goldenMint, strings.ToUpper(goldenMint), func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, goldenMint, r.UUID.String())
		}},
		{"erc20 in lower case", `"ERC20"`, `"erc20"`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.EqualValues(t, "erc20", r.Intent.To[0].Type)
		}},
		{"an NFT as the target", `"ERC20"`, `"NFT"`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, ramp.TypeNFT, r.Intent.To[0].Type)
		}},
		{"a token type that is new", `"ERC20"`, `"ERC1155"`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.EqualValues(t, "ERC1155", r.Intent.To[0].Type)
		}},
		{"target_candidate absent", `,"target_candidate":{}`, ``, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Empty(t, r.Intent.TargetCandidate)
		}},
		{"target_candidate of any kind", `"target_candidate":{}`, `"target_candidate":[1,"b"]`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.JSONEq(t, `[1,"b"]`, string(r.Intent.TargetCandidate))
		}},
		{"fields that nobody knows", `{"user_sig"`, `{"trace":{"id":[1e400]},"user_sig"`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Contains(t, string(r.Raw), `{"id":[1e400]}`)
		}},
		{"an amount beyond every float", `"amount":100`, `"amount":1000000000000000000001`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, "1000000000000000000001", r.Intent.From[0].Amount.String())
		}},
		{"an amount with an exponent", `"amount":100`, `"amount":1.5E3`, func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, "1500", r.Intent.From[0].Amount.String())
		}},
		{"blanks around the body", `{"user_sig"`, " \r\n\t{\"user_sig\"", func(t *testing.T, r *ramp.ValidateRequest) {
			assert.Equal(t, byte(' '), r.Raw[0])
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := validateBody(t, tt.old, tt.new)
			r, err := ramp.ParseValidate(body)
			require.NoError(t, err)
			assert.Equal(t, body, []byte(r.Raw), "Raw is the body, byte for byte")
			tt.check(t, r)
		})
	}
}

func TestRawOutlivesTheBody(t *testing.T) {
	body := validateBody(t, "", "")
	r, err := ramp.ParseValidate(body)
	require.NoError(t, err)
	result := resultBody(t, "", "")
	s, err := ramp.ParseResult(result)
	require.NoError(t, err)
	for i := range body {
		body[i] = 'x' // a server may use its buffer again
	}
	for i := range result {
		result[i] = 'x'
	}
	assert.Equal(t, validateBody(t, "", ""), []byte(r.Raw))
	assert.Equal(t, resultBody(t, "", ""), []byte(s.Raw))
	assert.NotContains(t, string(s.Receipt.Raw), "xx")
	assert.Equal(t, "{}", string(r.Intent.TargetCandidate))
}

// A hostile body must not be repeated in an error, which goes to a log.
func TestParseErrorsHoldNoValueAndNoMoreThanALine(t *testing.T) {
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

	many := validateBody(t, `"from":[`, `"from":[`+strings.Repeat("{},", 100_000))
	_, err := ramp.ParseValidate(many)
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 2_000)
}

func TestDigest(t *testing.T) {
	text := vectors[0].digestText
	d, err := ramp.ParseDigest(text)
	require.NoError(t, err)
	assert.Equal(t, text, d.String())
	assert.Equal(t, text, fmt.Sprint(d))

	upper, err := ramp.ParseDigest("0x" + strings.ToUpper(text[2:]))
	require.NoError(t, err)
	assert.Equal(t, d, upper)

	b, err := json.Marshal(d)
	require.NoError(t, err)
	assert.Equal(t, `"`+text+`"`, string(b))
	var read ramp.Digest
	require.NoError(t, json.Unmarshal(b, &read))
	assert.Equal(t, d, read)
	read = ramp.Digest{}
	require.NoError(t, read.UnmarshalText([]byte(text)))
	assert.Equal(t, d, read)
	assertFields(t, read.UnmarshalText([]byte(text[2:])), "digest must be 0x followed by 64 hex digits")
	assert.Zero(t, read, "a failed read leaves nothing of before")

	for _, wrong := range []string{"", "0x", text[2:], text[:65], text + "0", text[:64], "0X" + text[2:], " " + text, "0x" + text, "0x" + strings.Repeat("g", 64)} {
		got, err := ramp.ParseDigest(wrong)
		assertFields(t, err, "digest must be 0x followed by 64 hex digits")
		assert.Equal(t, ramp.Digest{}, got)
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
	var response ramp.Response[assetsData]
	err := json.Unmarshal([]byte(`{"data":{"v1":{"assets":[{"id":"gold","balance":"five"}]}}}`), &response)
	assertFields(t, err, "asset must have a balance that is a decimal string")
}

// A decoder reuses its buffer.
func TestUnmarshalJSONKeepsNothingOfItsText(t *testing.T) {
	text := []byte(`{"method":"mint","type":"assemble","from":[],"to":[],"target_candidate":{"a":1}}`)
	var intent ramp.Intent
	require.NoError(t, intent.UnmarshalJSON(text))
	clear(text)
	assert.Equal(t, `{"a":1}`, string(intent.TargetCandidate))
}

func TestAccessTokensAreEqualByTheirText(t *testing.T) {
	token := ramp.NewAccessToken("a")
	assert.True(t, token.Equal(ramp.NewAccessToken("a")))
	assert.False(t, token.Equal(ramp.NewAccessToken("b")))
	assert.False(t, token.Equal(ramp.AccessToken{}))
	assert.True(t, ramp.AccessToken{}.Equal(ramp.NewAccessToken("")))
	assert.False(t, reflect.TypeFor[ramp.Session]().Comparable(), "== would never hold")
}

func TestAccessTokenRevealsItselfOnlyWhenAsked(t *testing.T) {
	token := ramp.NewAccessToken("t0k3n-of-a-player")
	assert.Equal(t, "t0k3n-of-a-player", token.Reveal())
	assert.Empty(t, ramp.AccessToken{}.Reveal())
	assert.Equal(t, ramp.AccessToken{}, ramp.NewAccessToken(""))
	assert.Equal(t, "[redacted]", token.String())
}

// Printing, logging or storing a value that holds a secret must not show its text.
func TestSecretsDoNotShow(t *testing.T) {
	const secret = "Sup3rS3cr3tT3xt"
	textKey, err := ramp.TextKey(secret)
	require.NoError(t, err)
	base64Key, err := ramp.Base64URLKey(secret + "AAA")
	require.NoError(t, err)
	token := ramp.NewAccessToken(secret)

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
		"a token":               token,
		"a pointer to a token":  &token,
		"a text key":            textKey,
		"a base64url key":       base64Key,
		"a pointer to a key":    &textKey,
		"a rotated key":         base64Key.WithPrevious(textKey),
		"a session":             ramp.Session{ID: "hero-1", Token: token},
		"a pointer to one":      &ramp.Session{ID: "hero-1", Token: token},
		"catalog parameters":    ramp.CatalogParams{AccessToken: token},
		"exchange parameters":   &ramp.ExchangeParams{AccessToken: token},
		"a slice":               []any{token, textKey},
		"a map":                 map[string]any{"token": token, "key": textKey},
		"exported fields":       shown{Secret: token, Token: token, Key: textKey, List: []ramp.AccessToken{token}, Keys: map[string]ramp.HMACKey{"a": base64Key}, Inside: &shown{Key: textKey}},
		"unexported fields":     hidden{secret: textKey, token: token, key: textKey, pointer: &token, list: []ramp.AccessToken{token}, keys: map[string]ramp.HMACKey{"a": textKey}, session: ramp.Session{Token: token}},
		"a pointer to a struct": &hidden{secret: token, token: token, key: base64Key},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%#x", "%d", "%t", "%b", "%o", "%O", "%c", "%U", "%e", "%g", "%p", "%T", "%100s", "%.3s"} {
				assertHidden(t, secret, fmt.Sprintf(verb, v))
			}
			assertHidden(t, secret, fmt.Sprint(v), fmt.Sprintln(v), fmt.Errorf("failed with %v", v).Error())

			for _, handler := range []func(*bytes.Buffer) slog.Handler{
				func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
				func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
			} {
				var out bytes.Buffer
				slog.New(handler(&out)).Info("call", "value", v, slog.Group("in", "value", v))
				require.NotEmpty(t, out.String())
				assertHidden(t, secret, out.String())
			}

			if b, err := json.Marshal(v); err == nil {
				assertHidden(t, secret, string(b))
			}
			if b, err := xml.Marshal(v); err == nil {
				assertHidden(t, secret, string(b))
			}
		})
	}

	// Where there is room for a word, it is this one.
	for _, v := range []fmt.Stringer{token, textKey} {
		assert.Equal(t, "[redacted]", v.String())
		b, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Equal(t, `"[redacted]"`, string(b))
		assert.Equal(t, "[redacted]", fmt.Sprintf("%#v", v))
	}
}

// assertHidden looks for a secret and for its bytes in the ways that fmt writes
// bytes.
func assertHidden(t *testing.T, secret string, texts ...string) {
	t.Helper()
	forms := []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("% x", secret),
		strings.Trim(fmt.Sprint([]byte(secret)), "[]"), strings.TrimSuffix(fmt.Sprintf("%#v", []byte(secret))[7:], "}"), secret[:3]}
	for _, text := range texts {
		for _, form := range forms {
			assert.NotContains(t, text, form)
		}
	}
}
