package ramp_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

// seed adds the golden files that match a pattern.
func seed(f *testing.F, pattern string, add func([]byte)) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		add(golden(f, filepath.Base(file)))
	}
}

// requireInvalid checks that an error lists fields by path, and that its text is
// short and quotes nothing of the body.
func requireInvalid(t *testing.T, err error) {
	t.Helper()
	var wrong *ramp.InvalidError
	require.ErrorAs(t, err, &wrong)
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
	direction, err := i.Direction()
	require.NoError(t, err)
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

// requireMoved checks that an effect moves all of the game's assets, and each
// of them once.
func requireMoved(t *testing.T, effect ramp.Effect, err error, kind ramp.EffectKind, game []ramp.IntentAsset) {
	t.Helper()
	if err != nil {
		requireInvalid(t, err) // a sum beyond every quantity
		require.Equal(t, ramp.Effect{}, effect)
		return
	}
	require.Equal(t, kind, effect.Kind)
	if kind == ramp.Nothing {
		require.Empty(t, effect.Assets)
		return
	}
	want, got := map[string]*big.Rat{}, map[string]*big.Rat{}
	for _, asset := range game {
		if want[asset.ID] == nil {
			want[asset.ID] = new(big.Rat)
		}
		want[asset.ID].Add(want[asset.ID], asset.Amount.Rat())
	}
	for _, asset := range effect.Assets {
		require.Nil(t, got[asset.ID], "an asset comes twice")
		got[asset.ID] = asset.Amount.Rat()
	}
	require.Len(t, got, len(want))
	for id, sum := range want {
		require.NotNil(t, got[id])
		require.Zero(t, sum.Cmp(got[id]), "%q", id)
	}
}

func FuzzParseValidate(f *testing.F) {
	seed(f, "*.json", func(b []byte) { f.Add(b) })
	f.Add([]byte(`{"intent":{"from":[{"amount":1e9223372036854775807}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ramp.ParseValidate(body)
		if err != nil {
			require.Nil(t, r)
			requireInvalid(t, err)
			return
		}
		require.True(t, json.Valid(body))
		require.Equal(t, body, []byte(r.Raw))
		require.NotEqual(t, uuid.Nil, r.UUID)
		require.NotEqual(t, ramp.Digest{}, r.Digest)
		require.NotEmpty(t, r.ProjectID)
		require.NotEmpty(t, r.UserAddress)
		digits := strings.TrimPrefix(r.UserSig, "0x")
		require.True(t, digits != "" && len(digits)%2 == 0 && strings.Trim(strings.ToLower(digits), "0123456789abcdef") == "")
		direction := requireSound(t, &r.Intent)

		effect, err := r.Intent.Effect(ramp.OrderAccepted)
		kind := map[ramp.Direction]ramp.EffectKind{ramp.Mint: ramp.Take, ramp.Burn: ramp.Nothing}[direction]
		requireMoved(t, effect, err, kind, r.Intent.From)

		written, err := json.Marshal(r)
		require.NoError(t, err)
		again, err := ramp.ParseValidate(written)
		require.NoError(t, err, "what was read is not accepted when it is written: %s", written)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}

func FuzzParseResult(f *testing.F) {
	seed(f, "*.json", func(b []byte) { f.Add(b) })
	f.Add(resultWith(`{"status":1,"logs":[null,{"topics":null,"blockTimestamp":"0x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ramp.ParseResult(body)
		if err != nil {
			require.Nil(t, r)
			requireInvalid(t, err)
			return
		}
		require.True(t, json.Valid(body))
		require.Equal(t, body, []byte(r.Raw))
		require.NotEqual(t, uuid.Nil, r.UUID)
		require.True(t, r.Receipt.Status.Present())
		succeeded := r.Receipt.Status.Big().Cmp(big.NewInt(1)) == 0
		require.Equal(t, succeeded, r.Succeeded())
		if effect, err := r.Intent.Effect(r.Outcome()); err == nil { // else the intent is incomplete, which rejects no result
			kind, list := ramp.Nothing, r.Intent.From
			switch direction := requireSound(t, &r.Intent); {
			case direction == ramp.Mint && !succeeded:
				kind = ramp.GiveBack
			case direction == ramp.Burn && succeeded:
				kind, list = ramp.Grant, r.Intent.To
			}
			requireMoved(t, effect, nil, kind, list)
		}

		written, err := json.Marshal(r)
		require.NoError(t, err)
		again, err := ramp.ParseResult(written)
		require.NoError(t, err, "what was read is not accepted when it is written: %s", written)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}

func FuzzReceipt(f *testing.F) {
	seed(f, "6-*.json", func(b []byte) {
		var result struct{ Receipt json.RawMessage }
		require.NoError(f, json.Unmarshal(b, &result))
		f.Add([]byte(result.Receipt))
	})
	seed(f, "4.4-receipt.json", func(b []byte) { f.Add(b) })
	for _, text := range []string{`{}`, `null`, `{"status":"0x"}`, `{"status":1e0,"logs":[{"blockTimestamp":0}]}`, `{"root":"","contractAddress":null}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r ramp.Receipt
		if json.Unmarshal(text, &r) != nil {
			return
		}
		if r.Succeeded() {
			require.True(t, r.Status.Present())
			require.Equal(t, "1", r.Status.String())
		}
		written, err := json.Marshal(r)
		require.NoError(t, err)
		var again ramp.Receipt
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		require.Equal(t, r.Status, again.Status)
		require.Equal(t, r.Succeeded(), again.Succeeded())
		require.Len(t, again.Logs, len(r.Logs))
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(rewritten))
	})
}

// number matches JSON numbers, with a different implementation than the tested one.
func number(text string) bool {
	return json.Valid([]byte(text)) && text != "" && strings.ContainsRune("-0123456789", rune(text[0])) && strings.TrimSpace(text) == text
}

func FuzzAmount(f *testing.F) {
	for _, text := range []string{"0", "-0", "5", "0.5", "1e30", "1E-100", "9007199254740993", "1000000000000000000001", "1e999999999",
		"1e9223372036854775807", "-1.5e+3", "05", "+5", "0e9", "12000e-3", "٥", "1.", ".1", "1e",
		"0 ", "0e9227000000000000000"} {
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
		again, err := ramp.ParseAmount(written)
		require.NoError(t, err)
		require.Equal(t, a, again, "one value has one form")

		b, err := json.Marshal(a)
		require.NoError(t, err)
		require.Equal(t, written, string(b))

		n, err := a.Int64()
		require.Equal(t, exact.IsInt() && exact.Num().IsInt64(), err == nil)
		if err == nil {
			require.Equal(t, a, ramp.NewAmount(n))
		}
		_, err = a.Int()
		require.Equal(t, exact.IsInt(), err == nil)

		if twice, err := a.Add(a); err == nil {
			require.Zero(t, new(big.Rat).Add(exact, exact).Cmp(twice.Rat()))
		} else {
			require.Greater(t, len(written), 99, "only the largest amounts have no double")
		}
	})
}

func FuzzQuantity(f *testing.F) {
	for _, text := range []string{`"0x1"`, `"0x"`, `""`, `null`, `0`, `1700000000`, `"1700000000"`, `-1`, `0.5`, `1e3`, `"1e3"`, `"0x00ff"`, `1e78`,
		`"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"`, `"null"`, `true`, `"\u0030x1"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var q ramp.Quantity
		if json.Unmarshal(text, &q) != nil {
			require.False(t, q.Present())
			return
		}
		written, err := json.Marshal(q)
		require.NoError(t, err)
		require.Equal(t, !q.Present(), q.IsZero())
		if !q.Present() {
			require.Nil(t, q.Big())
			require.Equal(t, "null", string(written))
			return
		}
		n := q.Big()
		require.GreaterOrEqual(t, n.Sign(), 0)
		require.LessOrEqual(t, n.BitLen(), 256)
		require.Equal(t, n.String(), q.String())
		small, err := q.Uint64()
		require.Equal(t, n.IsUint64(), err == nil)
		if err == nil {
			require.Equal(t, n.Uint64(), small)
		}

		// The same number by another reading.
		var plain any
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		require.NoError(t, d.Decode(&plain))
		s, ok := plain.(string)
		if !ok {
			s = plain.(json.Number).String()
		}
		want := new(big.Rat)
		if digits, hex := strings.CutPrefix(s, "0x"); hex {
			whole, ok := new(big.Int).SetString(digits, 16)
			require.True(t, ok)
			want.SetInt(whole)
		} else {
			if _, ok := want.SetString(s); !ok { // a zero with an exponent that big.Rat does not take
				require.Zero(t, n.Sign())
				want.SetInt64(0)
			}
		}
		require.Zero(t, want.Cmp(new(big.Rat).SetInt(n)), "%s was read as %s", text, q)

		var again ramp.Quantity
		require.NoError(t, json.Unmarshal(written, &again))
		require.Equal(t, q, again, "the form and the number survive")
	})
}

func FuzzVerify(f *testing.F) {
	text, base64 := vectorTextKey(f), vectorBase64Key(f)
	f.Add([]byte(hmacBody), hmacTextSignature)
	f.Add([]byte(hmacBody), strings.ToUpper(hmacTextSignature))
	f.Add([]byte(hmacBody), hmacBase64Signature)
	f.Add([]byte(hmacBody), reference(nil, []byte(hmacBody)))
	f.Add([]byte(nil), "")
	f.Add([]byte(nil), reference(nil, nil))
	seed(f, "*.json", func(b []byte) { f.Add(b, text.Sign(b)) })
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		for _, key := range []ramp.HMACKey{{}, ramp.HMACKey{}.WithPrevious(text)} {
			require.ErrorIs(t, key.Verify(body, signature), ramp.ErrHMACKey, "an empty key verifies nothing")
		}
		right := text.Sign(body)
		require.NoError(t, text.Verify(body, right))
		ring := base64.WithPrevious(text)
		require.NoError(t, ring.Verify(body, right))

		err := text.Verify(body, signature)
		if err == nil {
			require.Len(t, signature, 64)
			require.Equal(t, right, strings.ToLower(signature))
			require.NoError(t, ring.Verify(body, signature))
			return
		}
		require.NotEqual(t, right, strings.ToLower(signature))
		require.Equal(t, signature == "", errors.Is(err, ramp.ErrHMACMissing))
		require.Equal(t, signature != "", errors.Is(err, ramp.ErrHMACInvalid))
		require.NotContains(t, err.Error(), right)
		require.Less(t, len(err.Error()), 150)
	})
}
