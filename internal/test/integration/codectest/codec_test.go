package codectest

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"go.mongodb.org/mongo-driver/v2/bson"
	"gopkg.in/yaml.v3"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// codec is one that a studio may keep or send values in.
type codec struct {
	name    string
	write   func(any) ([]byte, error)
	read    func([]byte, any) error
	refuses bool // amounts and quantities, by name
}

var codecs = []codec{
	{name: "json", write: json.Marshal, read: json.Unmarshal},
	{name: "json v2",
		write: func(v any) ([]byte, error) { return jsonv2.Marshal(v) },
		read:  func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) }},
	{name: "yaml", write: yaml.Marshal, read: yaml.Unmarshal},
	{name: "msgpack", write: msgpack.Marshal, read: msgpack.Unmarshal},
	{name: "cbor", write: cbor.Marshal, read: cbor.Unmarshal},
	{name: "xml", write: xml.Marshal, read: xml.Unmarshal},
	{name: "gob",
		write: func(v any) ([]byte, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.Bytes(), err
		},
		read: func(b []byte, v any) error { return gob.NewDecoder(bytes.NewReader(b)).Decode(v) }},
	{name: "bson", write: bson.Marshal, read: bson.Unmarshal, refuses: true},
}

// kept is what a studio may keep of an order.
type kept struct {
	Price     ramp.Amount
	Value     ramp.Quantity
	Digest    ramp.Digest
	Signature ramp.Signature
	Network   ramp.Network
	Item      ramp.Item
	Asset     ramp.Asset
}

// edges are the smallest, largest and absent values.
func edges(t *testing.T) (all []kept) {
	t.Helper()
	amounts := []string{
		"0", "1", "-1", "99.5", "-0.5", "9007199254740993", "18446744073709551616",
		"0." + strings.Repeat("0", 99) + "1", strings.Repeat("9", 100) + "." + strings.Repeat("9", 100),
	}
	quantities := []string{"", "0x0", "0x1f", "7", "18446744073709551616", "0x" + strings.Repeat("f", 64)}
	for i, text := range amounts {
		amount := must.Get(ramp.ParseAmount(text))(t)
		k := kept{Price: amount, Network: ramp.Testnet,
			Item: ramp.Item{ID: "金", Amount: amount}, Asset: ramp.Asset{ID: "gem", Balance: amount}}
		require.NoError(t, k.Value.UnmarshalText([]byte(quantities[i%len(quantities)])))
		k.Digest[0], k.Digest[31], k.Signature[64] = 1, 255, 27
		all = append(all, k)
	}
	return append(all, kept{})
}

// Every codec keeps a value exactly, or refuses it by name: none writes {}.
func TestEveryCodecKeepsValuesOrRefusesThem(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			for _, want := range edges(t) {
				written, err := c.write(want)
				if c.refuses {
					assert.ErrorContains(t, err, "cannot hold this exactly")
					continue
				}
				require.NoError(t, err)
				var read kept
				require.NoError(t, c.read(written, &read), "%s", written)
				assert.True(t, read.Value.Equal(want.Value), "%s: %s and %s", written, read.Value, want.Value)
				read.Value = want.Value // its form may differ
				assert.Equal(t, want, read)
			}
		})
	}
}

func request(t *testing.T, from, to string) *ramp.ValidateRequest {
	t.Helper()
	r, err := ramp.ParseValidate(fmt.Appendf(nil, `{"user_sig": "0x%s", "user_address": "0x%s", "project_id": "p",
		"digest": "0x%s", "uuid": %q, "intent": {"method": "mint", "type": "assemble",
		"from": [{"type": "asset", "id": "gold", "amount": %s}],
		"to": [{"type": "ERC20", "id": "0x%s", "amount": %s}], "fee_rate": 100, "actual": "9.9"}}`,
		strings.Repeat("ab", 65), strings.Repeat("12", 20), strings.Repeat("cd", 32), uuid.NewString(),
		from, strings.Repeat("34", 20), to))
	require.NoError(t, err)
	return r
}

// A studio's own store keeps an order in the codec: what the codec cannot keep is refused when the
// order is accepted, before anything is signed. Otherwise it ends exactly as it began.
func TestAnOrderInACodecEndsAsItBegan(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			for _, amount := range []string{"300", "0.5", strings.Repeat("9", 100)} {
				r := request(t, amount, "1e-18")
				accept := ramp.Accept(ramp.Session{ID: "alice"}, r, now)
				accepted, err := accept(nil)
				require.NoError(t, err)
				written, err := c.write(accepted.Order)
				if c.refuses {
					assert.ErrorContains(t, err, "cannot hold this exactly")
					continue
				}
				require.NoError(t, err)
				var stored ramp.Order
				require.NoError(t, c.read(written, &stored), "%s", written)

				repeat, err := accept(&stored)
				require.NoError(t, err, "the same call is a repeat")
				assert.False(t, repeat.New)
				end := ramp.Abandon("bob: the result never came", now.Add(time.Hour))
				want, err := end(&accepted.Order)
				require.NoError(t, err)
				ended, err := end(&stored)
				require.NoError(t, err)
				assert.Equal(t, want.Effect, ended.Effect)
				assert.Equal(t, amount, ended.Effect.Assets[0].Amount.String())
				before, after := must.Get(json.Marshal(want.Order))(t), must.Get(json.Marshal(ended.Order))(t)
				assert.JSONEq(t, string(before), string(after))
			}
		})
	}
}

// encoding/json/v2 omits and keeps the same fields as encoding/json.
func TestBothVersionsOfJSONWriteTheSame(t *testing.T) {
	r := request(t, "300", "9")
	bare := r.Intent
	bare.FeeRate, bare.Actual, bare.TargetCandidate = "", "", nil
	empty, zero := r.Intent, r.Intent
	empty.TargetCandidate, zero.FeeRate = json.RawMessage("{}"), "0"
	step := must.Get(ramp.Accept(ramp.Session{ID: "alice"}, r, time.UnixMilli(1_700_000_000_123))(nil))(t)
	for what, value := range map[string]any{
		"intent": r.Intent, "no fee": bare, "{}": empty, "a fee of 0": zero, "order": step.Order, "step": step,
		"nothing": kept{}, "player": ramp.Player{PlayerID: "p"}, "receipt": ramp.Receipt{},
		"approval": ramp.Response[ramp.Approval]{}, "refusal": ramp.Refusal{}, "transfer": ramp.Transfer{},
		"initialize": ramp.InitializeRequest{}, "filter": ramp.LogFilter{}, "transaction": ramp.TransactionRequest{},
	} {
		v1, err := json.Marshal(value)
		require.NoError(t, err, what)
		v2, err := jsonv2.Marshal(value)
		require.NoError(t, err, what)
		assert.JSONEq(t, string(v1), string(v2), what)
	}
}

// As with time.Time: what is embedded lends its methods.
func TestAStructThatEmbedsAValueLosesItsOwnFields(t *testing.T) {
	type embedding struct {
		ramp.Order
		Note string
	}
	type naming struct {
		Order ramp.Order
		Note  string
	}
	order := must.Get(ramp.Accept(ramp.Session{ID: "alice"}, request(t, "300", "9"), time.Now())(nil))(t).Order
	for name, test := range map[string]struct {
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		"encoding/json": {json.Marshal, json.Unmarshal},
		"YAML":          {yaml.Marshal, yaml.Unmarshal},
	} {
		var embedded embedding
		require.NoError(t, test.unmarshal(must.Get(test.marshal(embedding{order, "mine"}))(t), &embedded), name)
		assert.Equal(t, order.UUID, embedded.UUID, name)
		assert.Empty(t, embedded.Note, name)
		var named naming
		require.NoError(t, test.unmarshal(must.Get(test.marshal(naming{order, "mine"}))(t), &named), name)
		assert.Equal(t, order.UUID, named.Order.UUID, name)
		assert.Equal(t, "mine", named.Note, name)
	}
}

// Of a type with both methods, encoding/json writes a key with MarshalText, and reads it with UnmarshalJSON.
func TestAnAmountIsNoKeyOfAJSONObject(t *testing.T) {
	text := must.Get(json.Marshal(map[ramp.Amount]string{ramp.NewAmount(2): "two"}))(t)
	assert.Equal(t, `{"2":"two"}`, string(text))
	assert.Error(t, json.Unmarshal(text, new(map[ramp.Amount]string)))
}
