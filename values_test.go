package ramp_test

import (
	"encoding"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// The edges of an amount: zero, fractions, more than a float or an int64 holds, and the most digits.
var amountEdges = []string{
	"0", "1", "-1", "99.5", "-0.5", "9007199254740993", "9223372036854775807", "18446744073709551615",
	"0." + strings.Repeat("0", 99) + "1", strings.Repeat("9", 100) + "." + strings.Repeat("9", 100),
}

func TestAmountsAreTheSameAsTextBytesAndColumns(t *testing.T) {
	for _, text := range amountEdges {
		want := amount(t, text)
		for form, write := range map[string]func() ([]byte, error){
			"text": want.MarshalText, "bytes": want.MarshalBinary,
		} {
			written, err := write()
			require.NoError(t, err)
			assert.Equal(t, text, string(written), form)
		}
		read := ramp.NewAmount(7)
		require.NoError(t, read.UnmarshalText([]byte(text)))
		assert.True(t, read.Equal(want) && !read.Equal(ramp.NewAmount(7)), text)
		require.NoError(t, read.UnmarshalBinary([]byte(text)))
		assert.Equal(t, want, read)
		padded := text + ".00" // as a DECIMAL with more decimals is read
		if strings.Contains(text, ".") {
			padded = text + "00"
		}
		for _, column := range []any{text, []byte(text), padded} {
			read = ramp.NewAmount(7)
			require.NoError(t, read.Scan(column), "%T", column)
			assert.Equal(t, want, read)
		}
	}
	var a ramp.Amount
	require.NoError(t, a.Scan(int64(math.MinInt64)))
	assert.Equal(t, "-9223372036854775808", a.String())
	require.NoError(t, a.Scan(uint64(math.MaxUint64)))
	assert.Equal(t, "18446744073709551615", a.String())

	for want, column := range map[string]any{
		"from a float64, which may have been rounded": 99.5,
		"from a float32, which may have been rounded": float32(1),
		"from a column of type <nil>":                 nil,
		"from a column of type bool":                  true,
		"the amount is not a decimal number":          "NaN",
		"the amount has too many digits":              strings.Repeat("9", 101),
		"from a column of type time.Time":             time.Now(),
		"the amount is not a decimal number ":         "",
		"the amount is not a decimal number  ":        []byte(" 1"),
	} {
		a := ramp.NewAmount(7)
		assert.ErrorContains(t, a.Scan(column), strings.TrimSpace(want))
		assert.NotZero(t, a, "nothing is read as 0")
	}
}

func TestQuantitiesAreTheSameAsText(t *testing.T) {
	largest := "0x" + strings.Repeat("f", 64)
	for _, text := range []string{"", "0x0", "0", "31", "0x1f", "18446744073709551616", largest} {
		var want, read ramp.Quantity
		require.NoError(t, want.UnmarshalText([]byte(text)))
		written := must.Get(want.MarshalText())(t)
		assert.Equal(t, text, string(written))
		require.NoError(t, read.UnmarshalBinary(must.Get(want.MarshalBinary())(t)))
		assert.True(t, read.Equal(want))
		assert.Equal(t, text == "", read.IsZero())
	}
	hex, decimal := ramp.NewQuantity(31), ramp.Quantity{}
	require.NoError(t, decimal.UnmarshalJSON([]byte("31")))
	assert.True(t, hex.Equal(decimal), "whatever the form")
	assert.False(t, ramp.NewQuantity(0).Equal(ramp.Quantity{}), "absent is not 0")
	assert.Error(t, decimal.UnmarshalText([]byte("1.5")))
	assert.False(t, reflect.TypeFor[ramp.Quantity]().Comparable(), "== would compare addresses")
}

// BSON knows neither MarshalText nor MarshalBinary, and would write {}.
func TestBSONIsRefused(t *testing.T) {
	for _, value := range []interface{ MarshalBSON() ([]byte, error) }{ramp.NewAmount(1), ramp.NewQuantity(1)} {
		_, err := value.MarshalBSON()
		assert.ErrorContains(t, err, "JSON text")
		assert.Implements(t, (*encoding.TextMarshaler)(nil), value)
	}
}

func TestOrdersAreEqualInEveryTimeZone(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	order := ramp.Order{UUID: uuid.New(), State: ramp.OrderFailed, AcceptedAt: at, FinishedAt: at.Add(time.Hour)}
	other := order
	other.AcceptedAt, other.FinishedAt = at.UTC(), at.Add(time.Hour).In(time.FixedZone("", 3600))
	assert.True(t, order.Equal(other))
	other.Intent.From = []ramp.IntentAsset{{Amount: ramp.NewAmount(1)}}
	assert.False(t, order.Equal(other))
}

// failures is a test that notes what its assertions print.
type failures struct{ strings.Builder }

func (f *failures) Errorf(format string, args ...any) { fmt.Fprintf(f, format, args...) }

func TestAFailedAssertionPrintsNoSecret(t *testing.T) {
	const secret = "s3cret-s3cret-s3cret"
	node := func(secret string) *ramp.RPC {
		return must.Get(ramp.NewRPC(ramp.RPCConfig{
			URL: "https://user:" + secret + "@node.example.com/v1/" + secret + "?key=" + secret,
		}))(t)
	}
	withHeader := func(secret string) *ramp.RPC {
		header := http.Header{"Authorization": {"Bearer " + secret}}
		return must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", Header: header}))(t)
	}
	client := func(secret string) *ramp.Client {
		return must.Get(ramp.NewClient(ramp.ClientConfig{
			URL: "https://service.example.com/" + secret, Key: must.Get(ramp.TextKey(secret))(t),
		}))(t)
	}
	session := func(secret string) ramp.Session { return ramp.Session{ID: "s", Token: ramp.NewAccessToken(secret)} }
	for what, pair := range map[string][2]any{
		"sessions": {session(secret), session("another")},
		"keys":     {must.Get(ramp.TextKey(secret))(t), must.Get(ramp.TextKey("another-another"))(t)},
		"nodes":    {node(secret), node("another")},
		"headers":  {withHeader(secret), withHeader("another")},
		"clients":  {client(secret), client("another-another")},
	} {
		var printed failures
		assert.False(t, assert.Equal(&printed, pair[0], pair[1]), what)
		assert.NotEmpty(t, printed.String())
		assert.NotContains(t, printed.String(), secret, what)
	}
	assert.Equal(t, session(secret), session(secret), "so that the expectations of a mock match")
	assert.Equal(t, secret, session(secret).Token.Reveal())
	assert.Equal(t, "ключ\x00", ramp.NewAccessToken("ключ\x00").Reveal())
}

// Dependency injection supplies nil pointers and zero values.
func TestWhatNoConstructorHasMadeIsRefusedInWords(t *testing.T) {
	good := inMemory(ramp.HandlerConfig{Terms: anyTerms, Key: testKey(t), Signer: testSigner(t)})
	for want, change := range map[string]func(*ramp.HandlerConfig){
		"HandlerConfig.Players must not be a nil *ramp_test.nobody": func(c *ramp.HandlerConfig) {
			c.Players = (*nobody)(nil)
		},
		"HandlerConfig.Store must not be a nil *ramp.MemoryStore": func(c *ramp.HandlerConfig) {
			c.Store = (*ramp.MemoryStore)(nil)
		},
		"HandlerConfig.Confirm must not be a nil *ramp_test.nothingSeen": func(c *ramp.HandlerConfig) {
			c.Confirm = (*nothingSeen)(nil)
		},
		"HandlerConfig.Terms must be made by NewTerms": func(c *ramp.HandlerConfig) {
			c.Terms = new(ramp.Terms)
		},
		"HandlerConfig.Signer is required": func(c *ramp.HandlerConfig) {
			c.Signer = new(ramp.Signer)
		},
		"MemoryStore.Apply is required": func(c *ramp.HandlerConfig) {
			c.Store = new(ramp.MemoryStore)
		},
	} {
		config := good
		change(&config)
		_, err := ramp.NewHandler(config)
		assertFields(t, err, want)
	}
	_, err := ramp.NewClient(ramp.ClientConfig{
		URL: "https://service.example.com", Key: testKey(t), Terms: new(ramp.Terms),
	})
	assertFields(t, err, "ClientConfig.Terms must be made by NewTerms")

	ctx, node := t.Context(), new(ramp.RPC)
	_, balance := node.Balance(ctx, common.Address{}, ramp.Latest)
	_, logs := node.Logs(ctx, ramp.LogFilter{})
	_, receipt := node.WaitReceipt(ctx, common.Hash{}, 1)
	_, sent := node.SendRawTransaction(ctx, []byte{1})
	batch := node.Batch(ctx, make([]ramp.BatchCall, 1))
	for _, err := range []error{balance, logs, receipt, sent, batch, node.Check(ctx)} {
		assert.EqualError(t, err, "ramp: the RPC was not made by NewRPC")
	}
	assert.Empty(t, node.String())
	_, err = new(ramp.Client).Initialize(ctx, testRequest())
	assert.ErrorContains(t, err, "not made by NewClient")
	_, err = new(ramp.Signer).Sign(ctx, ramp.Digest{})
	assert.ErrorIs(t, err, ramp.ErrValidatorKey)
	assert.ErrorContains(t, new(ramp.Handler).Check(ctx), "not made by NewHandler")
}

type nobody struct{ ramp.Players }

type nothingSeen struct{ ramp.Confirmer }
