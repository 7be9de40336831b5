package fields

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type word string

// every has a field of each kind.
type every struct {
	Text   string
	Word   word
	Int    int
	Long   int64
	Uint   uint64
	Bool   bool
	Fixed  [3]byte
	Data   []byte
	Big    *big.Int
	Absent *big.Int
	Time   time.Time
}

func (e *every) Fields(f *Fields) {
	f.Values(&e.Text, (*string)(&e.Word), &e.Int, &e.Long, &e.Uint, &e.Bool, e.Fixed[:], &e.Data, &e.Big, &e.Absent, &e.Time)
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, text := range []string{"", "plain", "a|b\\c\td\ne", `\`, `\p\\t\n`, "|", "한글", "\xff\x00"} {
		big, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
		want := every{text, word(text), -5, math.MinInt64, math.MaxUint64, true, [3]byte{1, 0, 255}, []byte{7, 8, 9, 10}, big, nil,
			time.Date(2026, 11, 22, 16, 0, 0, 123456789, time.UTC)}
		line := Write(&want)
		assert.NotContains(t, string(line), "\n")
		assert.NotContains(t, string(line), "\t")
		var got every
		require.NoError(t, Read(line, &got), text)
		assert.Equal(t, want, got)
	}
}

// A line of another form is no value.
func TestAnotherLineIsRejected(t *testing.T) {
	line := string(Write(&every{}))
	require.NoError(t, Read([]byte(line), &every{}))
	for name, wrong := range map[string]string{
		"empty":     "",
		"JSON":      `{"Text":"a"}`,
		"more":      line + "1|",
		"fewer":     line[:strings.LastIndex(line[:len(line)-1], separator)+1],
		"cut":       line[:len(line)-1],
		"no number": strings.Replace(line, "0|", "x|", 1),
		"no bytes":  strings.Replace(line, "AAAA", "A*AA", 1),
		"too few":   strings.Replace(line, "AAAA", "AA", 1),
		"too many":  strings.Replace(line, "AAAA", "AAAAAAAA", 1),
		"no time":   strings.Replace(line, "T00:", "t", 1),
	} {
		assert.Error(t, Read([]byte(wrong), &every{}), name)
	}
}
