package support

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// shapes are the ways in which contracts take a signature.
var shapes = map[string]func(s ramp.Signature) []byte{
	"bytes":                       func(s ramp.Signature) []byte { return call(words(1, 64), length(65), pad(s[:])) },
	"bytes after other arguments": func(s ramp.Signature) []byte { return call(words(9, 8, 7, 160), words(3), length(65), pad(s[:])) },
	"bytes with v 0 or 1":         func(s ramp.Signature) []byte { s[64] -= 27; return call(words(32), length(65), pad(s[:])) },
	"bytes without a selector":    func(s ramp.Signature) []byte { return slices.Concat(words(32), length(65), pad(s[:])) },
	"a second bytes": func(s ramp.Signature) []byte {
		return call(length(65), pad(bytes.Repeat([]byte{0xab}, 65)), length(65), pad(s[:]))
	},
	"v, r, s":                        func(s ramp.Signature) []byte { return call(words(5), length(int(s[64])), s[:64]) },
	"r, s, v":                        func(s ramp.Signature) []byte { return call(s[:64], length(int(s[64])), words(5)) },
	"v, r, s with v 0 or 1":          func(s ramp.Signature) []byte { return call(length(int(s[64]-27)), s[:64], words(5)) },
	"EIP-2098, bytes of 64":          func(s ramp.Signature) []byte { c := compact(s); return call(words(32), length(64), c[:]) },
	"packed at an odd offset":        func(s ramp.Signature) []byte { return append([]byte("0123456"), s[:]...) },
	"packed behind a plain transfer": func(s ramp.Signature) []byte { return append(call(words(1, 2)), s[:]...) },
	"bytes inside of bytes":          func(s ramp.Signature) []byte { return call(words(32), length(160), words(32), length(65), pad(s[:])) },
	"bytes with the user's before it": func(s ramp.Signature) []byte {
		return call(words(64, 192), length(65), pad(other[:]), length(65), pad(s[:]))
	},
	"bytes with the user's behind it": func(s ramp.Signature) []byte {
		return call(words(64, 192), length(65), pad(s[:]), length(65), pad(other[:]))
	},
	"v, r, s among numbers like a v": func(s ramp.Signature) []byte {
		return call(words(27, 28, 1, 0, 27), length(int(s[64])), s[:64], words(28))
	},
	"r, s, v, twice, the second by us": func(s ramp.Signature) []byte {
		return call(other[:64], length(int(other[64])), s[:64], length(int(s[64])))
	},
}

var other ramp.Signature // of somebody else

func TestASignatureInTheInputIsFound(t *testing.T) {
	validator, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	user, err := ramp.NewKeySigner("0x2234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	for n := range byte(8) {
		digest := ramp.Digest(bytes.Repeat([]byte{n + 1}, 32))
		other, err = user.Sign(t.Context(), digest)
		require.NoError(t, err)
		s, err := validator.Sign(t.Context(), digest)
		require.NoError(t, err)
		for name, shape := range shapes {
			input := shape(s)
			assert.True(t, signedBy([]common.Address{{}, validator.Address()}, digest, input), name)
			assert.False(t, signedBy([]common.Address{user.Address()}, ramp.Digest{1}, input), "%s, of another order", name)
			assert.False(t, signedBy(nil, digest, input), name)
		}
	}
}

// A player chooses the input of a transaction.
func TestAHostileInputCostsLittle(t *testing.T) {
	validator, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	random := make([]byte, 100_000)
	_, _ = rand.Read(random)
	for name, input := range map[string][]byte{
		"nothing": nil, "a selector": {1, 2, 3, 4}, "zeros": make([]byte, 100_000), "random": random,
		"only v":       bytes.Repeat([]byte{27}, 100_000),
		"lengths":      bytes.Repeat(length(65), 3125),
		"almost right": bytes.Repeat(append(bytes.Repeat([]byte{0x5a}, 64), 27), 1538),
		"signatures":   foreign(t),
	} {
		begun := time.Now()
		assert.False(t, signedBy([]common.Address{validator.Address()}, ramp.Digest{1}, input), name)
		if took := time.Since(begun); took > time.Second { // 5 ms on a machine that does nothing else
			t.Errorf("%s took %s", name, took)
		}
	}
}

// foreign returns 100 kB of signatures by somebody else, each of which must be recovered.
func foreign(t testing.TB) []byte {
	key, err := ramp.NewKeySigner("0x" + strings.Repeat("17", 32))
	require.NoError(t, err)
	var all []byte
	for n := range 1538 {
		s, err := key.Sign(t.Context(), ramp.Digest{byte(n), byte(n >> 8)})
		require.NoError(t, err)
		all = append(all, s[:]...)
	}
	return all
}

func BenchmarkHostileInput(b *testing.B) {
	input := foreign(b)
	for b.Loop() {
		signedBy([]common.Address{{1}}, ramp.Digest{1}, input)
	}
}

func FuzzSignedBy(f *testing.F) {
	f.Add(call(length(65), pad(make([]byte, 65))))
	f.Fuzz(func(t *testing.T, input []byte) {
		if signedBy([]common.Address{{1}}, ramp.Digest{1}, input) {
			t.Error("nobody has the key of this address")
		}
	})
}

func call(parts ...[]byte) []byte {
	return append([]byte{0xde, 0xad, 0xbe, 0xef}, slices.Concat(parts...)...)
}

func length(n int) []byte { return common.LeftPadBytes([]byte{byte(n >> 8), byte(n)}, word) }

func words(numbers ...int) (b []byte) {
	for _, n := range numbers {
		b = append(b, length(n)...)
	}
	return b
}

func pad(b []byte) []byte { return append(slices.Clone(b), make([]byte, (word-len(b)%word)%word)...) }

// compact returns the form of EIP-2098.
func compact(s ramp.Signature) (c [64]byte) {
	copy(c[:], s[:64])
	c[32] |= (s[64] - 27) << 7
	return c
}
