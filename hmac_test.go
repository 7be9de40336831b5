package ramp_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

func TestHMACVectors(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  ramp.HMACKey
		want string
	}{
		{"a key as text", testKey(t), hmacTextSignature},
		{"a key as unpadded base64url", vectorBase64Key(t), hmacBase64Signature},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := []byte(hmacBody)
			assert.Equal(t, tt.want, tt.key.Sign(body))
			assert.Equal(t, tt.want, tt.key.Sign(body), "a state that was used once signs the same")
			require.NoError(t, tt.key.Verify(body, tt.want))
			require.NoError(t, tt.key.Verify(body, strings.ToUpper(tt.want)), "hex of either case")
			assert.False(t, tt.key.IsZero())
		})
	}
	assert.ErrorIs(t, testKey(t).Verify([]byte(hmacBody), hmacBase64Signature), ramp.ErrHMACInvalid)
	assert.ErrorIs(t, vectorBase64Key(t).Verify([]byte(hmacBody), hmacTextSignature), ramp.ErrHMACInvalid)
}

func TestTextKeyRejects(t *testing.T) {
	for name, text := range map[string]string{
		"an empty text":             "",
		"a blank":                   " ",
		"only white space":          "\t\r\n ",
		"the last newline of files": hmacText + "\n",
		"a wide blank":              hmacText + "\u3000",
	} {
		t.Run(name, func(t *testing.T) {
			key, err := ramp.TextKey(text)
			assertKeyRejected(t, key, err)
		})
	}
	inner, err := ramp.TextKey("two words")
	require.NoError(t, err, "white space inside belongs to the key")
	assert.Equal(t, reference([]byte("two words"), []byte("x")), inner.Sign([]byte("x")))
}

// What a file, an editor or a page adds to a key is named: nobody would see it.
func TestAKeyWithACharacterThatNobodySeesIsRefusedByName(t *testing.T) {
	const begin, end = "a1b2c3d4", "e5f6a7b8"
	for character, want := range map[string]string{
		"\ufeff":   "it has a byte order mark (U+FEFF)",
		"\u200b":   "it has a zero-width space (U+200B)",
		"\x00":     "it has a NUL, as in a file in UTF-16 (U+0000)",
		"\n":       "it has a line break (U+000A)",
		"\r\n":     "it has a line break (U+000D)",
		"\t":       "it has a character that nobody sees (U+0009)",
		"\u200d":   "it has a character that nobody sees (U+200D)",
		"\u00ad":   "it has a character that nobody sees (U+00AD)",
		"\u2028":   "it has a character that nobody sees (U+2028)",
		"\xff\x00": "it has a NUL, as in a file in UTF-16 (U+0000)",
	} {
		for name, text := range map[string]string{
			"inside": begin + character + end, "first": character + begin, "last": begin + character,
		} {
			_, text1 := ramp.TextKey(text)
			_, base64 := ramp.Base64URLKey(text)
			_, signer := ramp.NewKeySigner(text)
			for kind, err := range map[error]error{ramp.ErrHMACKey: base64, ramp.ErrValidatorKey: signer} {
				assert.EqualError(t, err, "ramp: "+kind.Error()+": "+want, name)
				assert.ErrorIs(t, err, kind)
			}
			assert.ErrorIs(t, text1, ramp.ErrHMACKey)
			named := strings.Contains(text1.Error(), want)
			assert.True(t, named || strings.Contains(text1.Error(), "white space surrounds it"), text1)
		}
	}
	for _, text := range []string{"p\u00e4ss w\u00f6rd", "\u73a9\u5bb6", "with \"quotes\" and ${NAME}"} {
		_, err := ramp.TextKey(text)
		assert.NoError(t, err, text)
	}
}

func TestBase64URLKeyIsStrict(t *testing.T) {
	for name, text := range map[string]string{
		"an empty text":                      "",
		"a character of no alphabet":         hmacText,
		"padding":                            base64.URLEncoding.EncodeToString([]byte("1234")),
		"the standard alphabet's plus":       "ab+d",
		"a last newline":                     hmacBase64 + "\n",
		"a newline inside":                   hmacBase64[:8] + "\n" + hmacBase64[8:],
		"a blank":                            hmacBase64 + " ",
		"a length that no bytes have":        "abcde",
		"bits that decoding would drop":      "_x", // _w is the byte, _x would be the same one
		"bits that decoding would drop of 2": "__9",
	} {
		t.Run(name, func(t *testing.T) {
			key, err := ramp.Base64URLKey(text)
			assertKeyRejected(t, key, err)
		})
	}
	key := must.Get(ramp.Base64URLKey("_w"))(t)
	assert.Equal(t, reference([]byte{0xff}, []byte("x")), key.Sign([]byte("x")))
}

func TestBytesKeyUsesTheBytes(t *testing.T) {
	padded, err := base64.StdEncoding.DecodeString("+/8Kc2FsdA==") // neither UTF-8 nor base64url
	require.NoError(t, err)
	key := must.Get(ramp.BytesKey(padded))(t)
	want := reference(padded, []byte("x"))
	padded[0] = 0
	assert.Equal(t, want, key.Sign([]byte("x")), "the bytes are copied")

	for _, none := range [][]byte{nil, {}} {
		key, err := ramp.BytesKey(none)
		assertKeyRejected(t, key, err)
	}
}

// A key that the mode of the program forbids is refused when it is made, not when it signs first.
func TestAKeyThatFIPSForbidsIsRefused(t *testing.T) {
	const mode = "GODEBUG=fips140=only"
	if os.Getenv("HMAC_TEST_FIPS") == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), mode, "HMAC_TEST_FIPS=1")
		out, err := again.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	const short = "salt-13-bytes"
	for name, made := range map[string]func(string) (ramp.HMACKey, error){
		"TextKey":  ramp.TextKey,
		"BytesKey": func(key string) (ramp.HMACKey, error) { return ramp.BytesKey([]byte(key)) },
		"Base64URLKey": func(key string) (ramp.HMACKey, error) {
			return ramp.Base64URLKey(base64.RawURLEncoding.EncodeToString([]byte(key)))
		},
	} {
		key, err := made(short)
		assertKeyRejected(t, key, err)
		assert.ErrorContains(t, err, "FIPS 140-only mode", name)
		key, err = made(short + "!")
		require.NoError(t, err, name)
		assert.Len(t, key.Sign(nil), 64)
	}
}

func assertKeyRejected(t *testing.T, key ramp.HMACKey, err error) {
	t.Helper()
	require.ErrorIs(t, err, ramp.ErrHMACKey)
	assert.NotContains(t, err.Error(), "salt", "no error holds a key")
	assert.True(t, key.IsZero())
}

// reference returns the signature of the standard library.
func reference(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func TestHMACKeysOfEveryLength(t *testing.T) {
	for n := 1; n <= 200; n++ { // 64 is the block of SHA-256: longer keys are hashed first
		raw := bytes.Repeat([]byte{byte(n)}, n)
		key := must.Get(ramp.Base64URLKey(base64.RawURLEncoding.EncodeToString(raw)))(t)
		body := bytes.Repeat([]byte("b"), n*7)
		assert.Equal(t, reference(raw, body), key.Sign(body), "%d bytes", n)
	}
}

func TestVerifyRejects(t *testing.T) {
	key, body := testKey(t), []byte(hmacBody)
	good := key.Sign(body)
	for _, tt := range []struct {
		name, signature string
		is              error
	}{
		{"no signature", "", ramp.ErrHMACMissing},
		{"a truncated one", good[:63], ramp.ErrHMACInvalid},
		{"one digit more", good + "0", ramp.ErrHMACInvalid},
		{"one with 0x of the right length", "0x" + good[2:], ramp.ErrHMACInvalid},
		{"one wrong digit that is no hex", good[:63] + "g", ramp.ErrHMACInvalid},
		{"letters beyond ASCII", strings.Repeat("é", 32), ramp.ErrHMACInvalid},
		{"that of an empty key", reference(nil, body), ramp.ErrHMACInvalid},
		{"the plain hash of the body", fmt.Sprintf("%x", sha256.Sum256(body)), ramp.ErrHMACInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := key.Verify(body, tt.signature)
			require.ErrorIs(t, err, tt.is)
			assert.NotContains(t, err.Error(), good[:16], "the right signature is not told")
			assert.NotContains(t, err.Error(), hmacText)
			assert.Less(t, len(err.Error()), 120)
		})
	}
	for i := range good { // every bit counts
		for bit := range 4 {
			digit := mustDigit(good[i]) ^ 1<<bit
			forged := good[:i] + fmt.Sprintf("%x", digit) + good[i+1:]
			assert.ErrorIs(t, key.Verify(body, forged), ramp.ErrHMACInvalid)
		}
	}
}

func mustDigit(c byte) int { return strings.IndexByte("0123456789abcdef", c) }

// Anyone has the empty key.
// Two programs compare their keys without showing them.
func TestAFingerprintTellsKeysApart(t *testing.T) {
	const text = "YW5vdGhlciBrZXk"
	asText, decoded := must.Get(ramp.TextKey(text))(t), must.Get(ramp.Base64URLKey(text))(t)
	assert.Regexp(t, "^[0-9a-f]{8}$", asText.Fingerprint())
	assert.Equal(t, asText.Fingerprint(), must.Get(ramp.BytesKey([]byte(text)))(t).Fingerprint())
	assert.NotEqual(t, asText.Fingerprint(), decoded.Fingerprint(), "the encoding counts")
	assert.Equal(t, asText.Fingerprint(), asText.WithPrevious(decoded).Fingerprint(), "it is that of the newest")
	assert.Empty(t, ramp.HMACKey{}.Fingerprint())
}

func TestAKeyIsRedactedFromATextOfOthers(t *testing.T) {
	key := must.Get(ramp.TextKey("a/key of+the console"))(t).WithPrevious(must.Get(ramp.Base64URLKey("cHJldmlvdXM"))(t))
	assert.Equal(t, "RAMP_HMAC_KEY=[redacted] [redacted] [redacted], then [redacted] or [redacted]",
		key.Redact("RAMP_HMAC_KEY=a/key of+the console a%2Fkey+of%2Bthe+console a\\/key of+the console, "+
			"then cHJldmlvdXM or previous"))
	assert.Equal(t, "text", ramp.HMACKey{}.Redact("text"))
}

func TestZeroHMACKeyFailsClosed(t *testing.T) {
	for name, zero := range map[string]ramp.HMACKey{
		"the zero value":       {},
		"a zero value rotated": ramp.HMACKey{}.WithPrevious(),
		"a zero value in front of a whole lot": ramp.HMACKey{}.WithPrevious(
			testKey(t).WithPrevious(vectorBase64Key(t))),
	} {
		t.Run(name, func(t *testing.T) {
			assert.True(t, zero.IsZero())
			assert.Empty(t, zero.Sign([]byte(hmacBody)))
			for _, body := range []string{"", hmacBody} {
				for _, signature := range []string{"", reference(nil, []byte(body)),
					reference([]byte(hmacText), []byte(body)), strings.Repeat("0", 64)} {
					assert.ErrorIs(t, zero.Verify([]byte(body), signature), ramp.ErrHMACKey)
				}
			}
		})
	}
}

func TestRotatedKeySignsWithTheNewestAndVerifiesWithAll(t *testing.T) {
	body := []byte(hmacBody)
	key := func(text string) ramp.HMACKey {
		return must.Get(ramp.TextKey(text))(t)
	}
	newest, older, oldest := key("key-3"), key("key-2"), key("key-1")
	ring := newest.WithPrevious(older, oldest)

	assert.Equal(t, newest.Sign(body), ring.Sign(body))
	for _, k := range []ramp.HMACKey{newest, older, oldest} {
		assert.NoError(t, ring.Verify(body, k.Sign(body)))
	}
	assert.ErrorIs(t, ring.Verify(body, key("key-0").Sign(body)), ramp.ErrHMACInvalid)
	assert.ErrorIs(t, newest.Verify(body, older.Sign(body)), ramp.ErrHMACInvalid,
		"WithPrevious leaves its receiver alone")

	again := newest.WithPrevious(older.WithPrevious(oldest))
	assert.NoError(t, again.Verify(body, oldest.Sign(body)), "a ring of rings")
	assert.NoError(t, newest.WithPrevious(ramp.HMACKey{}).Verify(body, newest.Sign(body)))
	assert.ErrorIs(t, newest.WithPrevious(ramp.HMACKey{}).Verify(body, reference(nil, body)), ramp.ErrHMACInvalid,
		"a zero value in a ring verifies nothing")

	// Two rings that grow from one do not write into each other.
	base := newest.WithPrevious(older, key("key-y")) // an append that leaves room behind it
	left, right := base.WithPrevious(oldest), base.WithPrevious(key("key-x"))
	assert.NoError(t, left.Verify(body, oldest.Sign(body)))
	assert.ErrorIs(t, right.Verify(body, oldest.Sign(body)), ramp.ErrHMACInvalid)
}

func TestHMACKeyIsSafeForConcurrentUse(t *testing.T) {
	key := testKey(t).WithPrevious(vectorBase64Key(t))
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for i := range 200 {
				body := fmt.Appendf(nil, "body %d of %d", i, n)
				assert.Equal(t, reference([]byte(hmacText), body), key.Sign(body))
				assert.NoError(t, key.Verify(body, key.Sign(body)))
			}
		})
	}
	group.Wait()
}

func TestVerifyDoesNotAllocate(t *testing.T) {
	if racedetector.On {
		t.Skip("allocations cannot be counted under the race detector")
	}
	body := bytes.Repeat([]byte("b"), 10<<10)
	key := testKey(t)
	ring := vectorBase64Key(t).WithPrevious(key)
	signature := key.Sign(body)
	var err error
	assert.Zero(t, testing.AllocsPerRun(1000, func() { err = key.Verify(body, signature) }))
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { err = ring.Verify(body, signature) }), "with an older key")
	require.NoError(t, err)
}
