package ramptest

import (
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest/internal/emulator"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
)

// A switch has a field in Config, with its comment, and one in the Config of the emulator. If both embedded
// one internal struct, the documentation of Config would lack it, and nobody could set it in a literal.
func TestEverySwitchReachesTheEmulator(t *testing.T) {
	examples := map[reflect.Type]any{
		reflect.TypeFor[ramp.HMACKey](): must.Get(ramp.TextKey("key"))(t),
		reflect.TypeFor[*ramp.Amount](): amount(1),
		reflect.TypeFor[time.Time]():    time.Unix(1, 0),
		reflect.TypeFor[*StateFile]():   &StateFile{new(statefile.File)},
		reflect.TypeFor[net.Listener](): new(net.TCPListener),
		reflect.TypeFor[http.Handler](): http.NotFoundHandler(),
		reflect.TypeFor[Pages]():        frontend.NewPages(nil),
		reflect.TypeFor[*http.Client](): new(http.Client),
	}
	renamed := map[string]string{"Audit": "Mode", "PerOrder": "Rules.PerOrder", "NetAmounts": "Rules.NetAmounts",
		"BurnMethod": "Rules.BurnMethod", "TokenType": "Rules.TokenType", "Decimals": "Rules.Decimals",
		"Handler": "", "Standalone.Pages": ""} // which this package serves
	// of this package, or of several fields
	own := []string{"Finding", "Faults", "IsUnitTest"}
	reached := slices.Clone(own)
	for _, name := range fieldsOf(reflect.TypeFor[Config]()) {
		config := Config{Tokens: amount(0)}
		field := fieldOf(reflect.ValueOf(&config).Elem(), name)
		if example, ok := examples[field.Type()]; ok {
			field.Set(reflect.ValueOf(example))
		} else {
			field.Set(something(t, field.Type()))
		}
		emulated := config.emulator()
		var set []string
		for _, to := range fieldsOf(reflect.TypeFor[emulator.Config]()) {
			if !slices.Contains(own, to) && !fieldOf(reflect.ValueOf(emulated), to).IsZero() {
				set = append(set, to)
			}
		}
		want, ok := renamed[name]
		if !ok {
			want = strings.TrimPrefix(name, "Standalone.")
		}
		assert.Equal(t, want, strings.Join(set, " "), "what Config.%s sets of emulator.Config", name)
		reached = append(reached, set...)
	}
	for _, name := range fieldsOf(reflect.TypeFor[emulator.Config]()) {
		assert.True(t, slices.Contains(reached, name), "no field of Config sets emulator.Config.%s", name)
	}
}

func amount(n int64) *ramp.Amount {
	a := ramp.NewAmount(n)
	return &a
}

// fieldsOf returns the names of the fields of a struct, and with a dot those of its fields Standalone and Rules.
func fieldsOf(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Name != "Standalone" && f.Name != "Rules" {
			names = append(names, f.Name)
			continue
		}
		for _, name := range fieldsOf(f.Type) {
			names = append(names, f.Name+"."+name)
		}
	}
	return names
}

func fieldOf(v reflect.Value, name string) reflect.Value {
	for part := range strings.SplitSeq(name, ".") {
		v = v.FieldByName(part)
	}
	return v
}

// something returns a value of a type that is not zero.
func something(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("text")
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(of, 1, 1))
	case reflect.Array:
		v.Index(0).SetUint(1)
	case reflect.Func:
		v.Set(reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value { return nil }))
	default:
		t.Fatalf("no example of %v", of)
	}
	return v
}
