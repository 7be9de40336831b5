package ramp_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// BenchmarkHandler compares the handler with the smallest one that a studio could
// write by hand, which reads, verifies, decodes and signs, and checks nothing else.
// Compare the times of one run only.
func BenchmarkHandler(b *testing.B) {
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Game: playerGame{}, Key: testKey(b), Signer: testSigner(b)})
	require.NoError(b, err)
	validate, result := validateCall().bytes(), resultCall().bytes()
	for name, run := range map[string]struct {
		handler http.HandlerFunc
		body    []byte
	}{
		"validate/ramp":    {handler.Validate, validate},
		"validate/by-hand": {validateByHand(b), validate},
		"result/ramp":      {handler.Result, result},
		"result/by-hand":   {resultByHand(b), result},
	} {
		b.Run(name, func(b *testing.B) {
			header := (&studio{key: testKey(b)}).signed(run.body)
			canonical := http.Header{}
			for name, values := range header {
				canonical[http.CanonicalHeaderKey(name)] = values
			}
			b.ReportAllocs()
			for b.Loop() {
				request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(run.body))
				request.Header = canonical
				answer := httptest.NewRecorder()
				run.handler(answer, request)
				if answer.Code != http.StatusOK {
					b.Fatal(answer.Body)
				}
			}
		})
	}
}

func verifyByHand(b *testing.B, w http.ResponseWriter, r *http.Request) []byte {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		b.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte("my_secret_salt_value_!@#$%^&*"))
	mac.Write(body)
	got, err := hex.DecodeString(r.Header.Get("X-HMAC-SIGNATURE"))
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		b.Fatal("not authentic")
	}
	return body
}

type intentByHand struct {
	Method, Type string
	From, To     []struct {
		Type, ID string
		Amount   json.Number
	}
}

func validateByHand(b *testing.B) http.HandlerFunc {
	key, err := crypto.HexToECDSA("1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(b, err)
	return func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			UserSig     string `json:"user_sig"`
			UserAddress string `json:"user_address"`
			ProjectID   string `json:"project_id"`
			Digest      string
			UUID        string
			Intent      intentByHand
		}
		if err := json.Unmarshal(verifyByHand(b, w, r), &request); err != nil {
			b.Fatal(err)
		}
		signature, err := crypto.Sign(hexutil.MustDecode(request.Digest), key)
		if err != nil {
			b.Fatal(err)
		}
		signature[64] += 27
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "errorCode": nil,
			"data": map[string]any{"userSig": request.UserSig, "validatorSig": hexutil.Encode(signature)}})
	}
}

func resultByHand(b *testing.B) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var result struct {
			SessionID string `json:"session_id"`
			UUID      string
			TxHash    string `json:"tx_hash"`
			Receipt   struct{ Status string }
			Intent    intentByHand
		}
		if err := json.Unmarshal(verifyByHand(b, w, r), &result); err != nil {
			b.Fatal(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "errorCode": nil, "data": nil})
	}
}
