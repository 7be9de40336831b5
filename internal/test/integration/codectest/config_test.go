package codectest

import (
	"strings"
	"testing"

	"github.com/go-viper/mapstructure/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/viper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

type shop struct {
	Price ramp.Amount
}

// Configurations read a price from a text. A number, which they have read as a float64, is an error.
func TestConfigurationsReadTexts(t *testing.T) {
	readers := map[string]func(text string, into *shop) error{
		"viper": func(text string, into *shop) error {
			v := viper.New()
			v.SetConfigType("yaml")
			require.NoError(t, v.ReadConfig(strings.NewReader(text)))
			return v.Unmarshal(into, viper.DecodeHook(mapstructure.TextUnmarshallerHookFunc()))
		},
		"koanf": func(text string, into *shop) error {
			k := koanf.New(".")
			require.NoError(t, k.Load(source(text), yamlParser{}))
			return k.Unmarshal("", into)
		},
	}
	for name, read := range readers {
		for _, text := range []string{"0", "99.5", "9007199254740993", "0.000000000000000001"} {
			var s shop
			require.NoError(t, read("price: \""+text+"\"", &s), name)
			assert.Equal(t, text, s.Price.String(), name)
		}
		for _, text := range []string{"price: 99.5", "price: true", "price: \"99,5\"", "price: \"\""} {
			s := shop{ramp.NewAmount(7)}
			assert.Error(t, read(text, &s), "%s: %s", name, text)
			assert.Equal(t, ramp.NewAmount(7), s.Price, "%s: %s is not read as 0", name, text)
		}
	}
}

// Comparers call Equal instead of looking at hidden fields, which panics in go-cmp.
func TestComparersCompareValues(t *testing.T) {
	token := func(text string) ramp.Session { return ramp.Session{ID: "s", Token: ramp.NewAccessToken(text)} }
	read := func(text string) (q ramp.Quantity) {
		require.NoError(t, q.UnmarshalText([]byte(text)))
		return q
	}
	r, other := request(t, "1", "1"), request(t, "2", "1")
	order := func(r *ramp.ValidateRequest) ramp.Order {
		return must.Get(ramp.Accept(ramp.Session{ID: "s"}, r, r0)(nil))(t).Order
	}
	step := func(r *ramp.ValidateRequest) ramp.Step {
		return must.Get(ramp.Accept(ramp.Session{ID: "s"}, r, r0)(nil))(t)
	}
	for name, values := range map[string][3]any{ // equal, equal, another
		"amount":   {ramp.NewAmount(1), must.Get(ramp.ParseAmount("1.0"))(t), ramp.NewAmount(2)},
		"quantity": {read("0x1f"), read("31"), read("")},
		"session":  {token("a"), token("a"), token("b")},
		"request":  {*r, *r, *other},
		"order":    {order(r), order(r), order(other)},
		"step":     {step(r), step(r), step(other)},
		"receipt": {ramp.Receipt{Status: read("0x1")}, ramp.Receipt{Status: read("1")},
			ramp.Receipt{Status: read("0x0")}},
		"product": {ramp.Product{Tokens: ramp.NewAmount(1)}, ramp.Product{Tokens: ramp.NewAmount(1)}, ramp.Product{}},
	} {
		assert.Empty(t, cmp.Diff(values[0], values[1]), name)
		assert.NotEmpty(t, cmp.Diff(values[0], values[2]), name)
		assert.False(t, assert.ObjectsAreEqual(values[0], values[2]), name)
		if name != "quantity" && name != "receipt" { // whose forms differ
			assert.Equal(t, values[0], values[1], name)
		}
	}
}
