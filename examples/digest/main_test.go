package main

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

func assets(t *testing.T, kind ramp.AssetType, id string, amount string) []ramp.IntentAsset {
	return []ramp.IntentAsset{{Type: kind, ID: id, Amount: must(ramp.ParseAmount(amount))(t)}}
}

// request is a mint of one token, without a digest.
func request(t *testing.T) *ramp.ValidateRequest {
	return &ramp.ValidateRequest{UserSig: "0xaa", UserAddress: "0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb",
		ProjectID: "project-1", UUID: uuid.MustParse("7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10"),
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			From: assets(t, ramp.TypeAsset, "item_gold", "100"), To: assets(t, ramp.TypeERC20, token, "1")}}
}

// The thief has the HMAC key, and chooses the order and what its digest means.
func TestAThiefWithTheHMACKeyGetsNoSignatureOfAnotherDigest(t *testing.T) {
	key := must(ramp.TextKey("key of the console"))(t)
	signer := must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))(t)
	terms := must(ramp.NewTerms(ramp.TermsConfig{
		ProjectID: "project-1", Network: ramp.Testnet, Products: products}))(t)
	thief := ramp.Session{ID: "thief", Token: ramp.NewAccessToken("token of the thief")}
	type change = func(*ramp.ValidateRequest)
	nothing := func(*ramp.ValidateRequest) {}
	burn := func(r *ramp.ValidateRequest) {
		r.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble,
			From: assets(t, ramp.TypeERC20, token, "1"), To: assets(t, ramp.TypeAsset, "item_gold", "100")}
	}
	for name, tt := range map[string]struct {
		means change // how the order that the digest means differs from a mint of one token
		order change // how the order does
		want  ramp.Code
	}{
		"an honest mint": {nothing, nothing, ""},
		"an honest burn": {burn, burn, ""},
		"more tokens": {func(r *ramp.ValidateRequest) {
			r.Intent.To = assets(t, ramp.TypeERC20, token, "1000000")
		}, nothing, "INVALID_DIGEST"},
		"a fraction of a token more": {func(r *ramp.ValidateRequest) {
			r.Intent.To = assets(t, ramp.TypeERC20, token, "1.000000000000000001")
		}, nothing, "INVALID_DIGEST"},
		"another token": {func(r *ramp.ValidateRequest) {
			r.Intent.To = assets(t, ramp.TypeERC20, "0x0000000000000000000000000000000000000bad", "1")
		}, nothing, "INVALID_DIGEST"},
		"another user": {func(r *ramp.ValidateRequest) {
			r.UserAddress = common.HexToAddress("0xbad").Hex()
		}, nothing, "INVALID_DIGEST"},
		"another order": {func(r *ramp.ValidateRequest) {
			r.UUID = uuid.New()
		}, nothing, "INVALID_DIGEST"},
		"a mint, for the price of a burn": {nothing, burn, "INVALID_DIGEST"},
	} {
		t.Run(name, func(t *testing.T) {
			handler := newHandler(key, signer, terms)
			meant, ordered := request(t), request(t)
			tt.means(meant)
			tt.order(ordered)
			contract := *contract
			contract.Decimals = map[common.Address]int{common.HexToAddress(token): 18,
				common.HexToAddress("0xbad"): 18}
			ordered.Digest = must(contract.Digest(meant))(t)
			answer := validate(t.Context(), handler, key, thief, ordered)
			assert.Equal(t, tt.want, answer.ErrorCode)
			require.Equal(t, tt.want == "", answer.Data != nil)
			if tt.want == "" {
				by := must(ramp.Recover(ordered.Digest, answer.Data.ValidatorSig))(t)
				assert.Equal(t, signer.Address(), by)
			}
		})
	}
	answer := validate(t.Context(), newHandler(key, signer, terms), key, thief, func() *ramp.ValidateRequest {
		r := request(t)
		r.Digest = ramp.Digest(common.HexToHash("0xbad"))
		return r
	}())
	assert.Equal(t, ramp.Code("INVALID_DIGEST"), answer.ErrorCode, "32 bytes that mean nothing")
}

// The digest is that of EIP-712: go-ethereum's package apitypes returns the same for this typed data.
func TestTheDigestIsThatOfEIP712(t *testing.T) {
	assert.Equal(t, "0xc8ca3ad8bff151928fe1ec74da91e49589b3db7b352fed9ec12075213e9aafe5",
		must(contract.Digest(request(t)))(t).String())
}

// An order for which no digest can be computed is rejected.
func TestAnOrderWithoutADigest(t *testing.T) {
	for name, change := range map[string]func(*ramp.ValidateRequest){
		"no direction":         func(r *ramp.ValidateRequest) { r.Intent.Type = "" },
		"two tokens":           func(r *ramp.ValidateRequest) { r.Intent.To = append(r.Intent.To, r.Intent.To...) },
		"no address of a user": func(r *ramp.ValidateRequest) { r.UserAddress = "alice" },
		"a token without known decimals": func(r *ramp.ValidateRequest) {
			r.Intent.To = assets(t, ramp.TypeERC20, "0x0000000000000000000000000000000000000bad", "1")
		},
		"less than a unit": func(r *ramp.ValidateRequest) {
			r.Intent.To = assets(t, ramp.TypeERC20, token, "1e-19")
		},
		"more units than 256 bits hold": func(r *ramp.ValidateRequest) {
			r.Intent.To = assets(t, ramp.TypeERC20, token, "1e60")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t)
			change(r)
			var rejection *ramp.Rejection
			require.ErrorAs(t, contract.Policy(t.Context(), ramp.Session{}, r), &rejection)
			assert.Equal(t, ramp.Code("INVALID_DIGEST"), rejection.Code)
		})
	}
}

func TestTheExampleSucceeds(*testing.T) { main() }

// must returns what a function returned, and ends the test if it returned an error: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
