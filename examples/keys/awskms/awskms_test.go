package awskms

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

const (
	alias  = "alias/ramp-validator"
	arn    = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	secret = "the secret access key"
)

// service speaks the protocol of KMS, awsJson1_1, and holds one key.
type service struct {
	*testing.T
	key      *ecdsa.PrivateKey
	public   []byte
	sign     func(key *ecdsa.PrivateKey, digest []byte) ([]byte, error)
	disturb  func(w http.ResponseWriter, r *http.Request, attempt int64) bool // answers instead, if true
	attempts atomic.Int64                                                     // of Sign
}

func newService(t *testing.T) *service {
	key := must(crypto.GenerateKey())(t)
	return &service{T: t, key: key, public: spki(t, key),
		sign: func(key *ecdsa.PrivateKey, digest []byte) ([]byte, error) { // DER, any s
			return ecdsa.SignASN1(rand.Reader, key, digest)
		}}
}

// spki is what GetPublicKey returns. crypto/x509 knows no secp256k1.
func spki(t *testing.T, key *ecdsa.PrivateKey) []byte {
	curve := must(asn1.Marshal(asn1.ObjectIdentifier{1, 3, 132, 0, 10}))(t)
	return must(asn1.Marshal(struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}{pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1},
		Parameters: asn1.RawValue{FullBytes: curve}},
		asn1.BitString{Bytes: crypto.FromECDSAPub(&key.PublicKey), BitLength: 65 * 8}}))(t)
}

// signed is the header of a call that is signed with SigV4.
var signed = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-central-1/kms/aws4_request, ` +
	`SignedHeaders=\S*\bhost;\S*x-amz-date\S*, Signature=[0-9a-f]{64}$`)

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !signed.MatchString(r.Header.Get("Authorization")) || r.Header.Get("X-Amz-Date") == "" ||
		r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		s.Errorf("the call is not one to KMS: %v", r.Header)
	}
	var call struct {
		KeyID                         string `json:"KeyId"`
		Message                       []byte
		MessageType, SigningAlgorithm string
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		s.Error(err)
	}
	switch target := r.Header.Get("X-Amz-Target"); target {
	case "TrentService.GetPublicKey":
		if call.KeyID != alias {
			fail(w, http.StatusBadRequest, "NotFoundException")
			return
		}
		spec := "ECC_SECG_P256K1"
		if len(s.public) != 88 {
			spec = "ECC_NIST_P256"
		}
		answer(w, map[string]any{"KeyId": arn, "PublicKey": s.public, "KeySpec": spec, "KeyUsage": "SIGN_VERIFY",
			"SigningAlgorithms": []string{"ECDSA_SHA_256"}})
	case "TrentService.Sign":
		attempt := s.attempts.Add(1)
		if s.disturb != nil && s.disturb(w, r, attempt) {
			return
		}
		if call.KeyID != arn || call.MessageType != "DIGEST" || call.SigningAlgorithm != "ECDSA_SHA_256" ||
			len(call.Message) != 32 {
			s.Errorf("the call is %+v", call)
		}
		signature, err := s.sign(s.key, call.Message)
		if err != nil {
			s.Error(err)
		}
		answer(w, map[string]any{"KeyId": arn, "Signature": signature, "SigningAlgorithm": call.SigningAlgorithm})
	default:
		s.Errorf("a call to %q", target)
	}
}

func answer(w http.ResponseWriter, body map[string]any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"__type": kind, "message": "it says why"})
}

// signer returns the signer of the key in the service.
func (s *service) signer(keyID string) (*ramp.Signer, error) {
	s.Helper()
	server := httptest.NewServer(s)
	s.Cleanup(server.Close)
	account, err := config.LoadDefaultConfig(s.Context(), config.WithRegion("eu-central-1"),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", secret, "")))
	if err != nil {
		s.Fatal(err)
	}
	account.BaseEndpoint = &server.URL
	return NewSigner(s.Context(), account, keyID)
}

func digest(n int64) ramp.Digest { return ramp.Digest(crypto.Keccak256(big.NewInt(n).Bytes())) }

func TestAKeyInKMSSigns(t *testing.T) {
	t.Parallel()
	s := newService(t)
	signer := must(s.signer(alias))(t)
	if want := crypto.PubkeyToAddress(s.key.PublicKey); signer.Address() != want {
		t.Fatalf("the address is %s, and must be %s", signer.Address(), want)
	}
	for n := range int64(100) { // half of them have a high s
		signature, err := signer.Sign(t.Context(), digest(n))
		if err != nil {
			t.Fatal(err)
		}
		if by := must(ramp.Recover(digest(n), signature))(t); by != signer.Address() {
			t.Fatalf("%s signed", by)
		}
	}
	if got := s.attempts.Load(); got != 100 {
		t.Errorf("%d calls for 100 signatures", got)
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	_, err := s.signer("alias/other")
	if err == nil || !strings.HasPrefix(err.Error(), "awskms: public key of alias/other: ") ||
		!strings.Contains(err.Error(), "NotFoundException") {
		t.Errorf("no key: %v", err)
	}
	p256 := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	s.public = must(x509.MarshalPKIXPublicKey(&p256.PublicKey))(t)
	_, err = s.signer(alias)
	if !errors.Is(err, ramp.ErrValidatorKey) || err.Error() != "awskms: alias/ramp-validator has the key spec "+
		"ECC_NIST_P256: ramp: validator key is unusable: it is on the curve 1.2.840.10045.3.1.7, and must be on "+
		"secp256k1, which is 1.3.132.0.10" {
		t.Errorf("a key of P-256: %v", err)
	}
}

// No signature leaves that the key did not make of the digest.
func TestSignaturesOfSomethingElse(t *testing.T) {
	t.Parallel()
	other := must(crypto.GenerateKey())(t)
	for name, tt := range map[string]struct {
		sign func(key *ecdsa.PrivateKey, digest []byte) ([]byte, error)
		want string
	}{
		"a service that hashes the digest again": {func(key *ecdsa.PrivateKey, digest []byte) ([]byte, error) {
			again := sha256.Sum256(digest)
			return ecdsa.SignASN1(rand.Reader, key, again[:])
		}, "the signer hashed the digest again, with SHA-256: it must sign the 32 bytes as they are"},
		"another key": {func(_ *ecdsa.PrivateKey, digest []byte) ([]byte, error) {
			return ecdsa.SignASN1(rand.Reader, other, digest)
		}, "the signer has another key"},
		"no signature": {func(*ecdsa.PrivateKey, []byte) ([]byte, error) { return nil, nil },
			"its 0 bytes are neither DER nor r||s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.sign = tt.sign
			signature, err := must(s.signer(alias))(t).Sign(t.Context(), digest(1))
			if !errors.Is(err, ramp.ErrSignature) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v", err)
			}
			if signature != (ramp.Signature{}) {
				t.Error("a signature left")
			}
		})
	}
}

// What passes costs no order: the handler waits for 3 seconds.
func TestAServiceThatFailsOrIsSlow(t *testing.T) {
	t.Parallel()
	hang := func(r *http.Request) bool { <-r.Context().Done(); return true }
	for name, tt := range map[string]struct {
		disturb  func(w http.ResponseWriter, r *http.Request, attempt int64) bool
		want     string // part of the error; "" for a signature
		attempts int64  // of Sign; 0 for any number
	}{
		"it is overloaded twice": {func(w http.ResponseWriter, _ *http.Request, attempt int64) bool {
			if attempt <= 2 {
				fail(w, http.StatusBadRequest, "ThrottlingException")
			}
			return attempt <= 2
		}, "", 3},
		"it hangs once": {func(_ http.ResponseWriter, r *http.Request, attempt int64) bool {
			return attempt == 1 && hang(r)
		}, "", 2},
		"it fails": {func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
			fail(w, http.StatusInternalServerError, "KMSInternalException")
			return true
		}, "KMSInternalException: it says why", 3},
		"the server has no right": {func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
			fail(w, http.StatusBadRequest, "AccessDeniedException")
			return true
		}, "AccessDeniedException: it says why", 1},
		"it hangs": {func(_ http.ResponseWriter, r *http.Request, _ int64) bool { return hang(r) },
			"deadline exceeded", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.disturb = tt.disturb
			signer := must(s.signer(alias))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // HandlerConfig.SignTimeout
			defer cancel()
			_, err := signer.Sign(ctx, digest(1))
			switch {
			case (err != nil) != (tt.want != ""), err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("the error is %v", err)
			case err != nil && strings.Contains(err.Error(), secret):
				t.Error("the error holds a secret")
			}
			if got := s.attempts.Load(); tt.attempts != 0 && got != tt.attempts {
				t.Errorf("%d calls, and not %d", got, tt.attempts)
			}
		})
	}
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
