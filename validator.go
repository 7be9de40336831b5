package ramp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ethcrypto "github.com/ethereum/go-ethereum/crypto"

	"github.com/token-ramp/ramp-go/internal/typed"
)

// Signer signs digests with the validator key (interface 5.3). Every signature that
// it returns recovers to its address. It is safe for concurrent use if the key or
// function that it was made from is.
type Signer struct {
	address common.Address

	// sign signs within a time, if the key is elsewhere.
	sign func(context.Context, time.Duration, Digest) (Signature, error)
}

// NewKeySigner returns a signer for a private key in hex, 64 digits with or
// without 0x. Its signatures are deterministic (RFC 6979). The error wraps
// [ErrValidatorKey] and does not hold the key.
func NewKeySigner(hexKey string) (*Signer, error) {
	if what := typed.Unseen(hexKey); what != "" {
		return nil, fmt.Errorf("ramp: %w: it has %s", ErrValidatorKey, what)
	}
	if problem := typed.Problem(hexKey); problem != "" {
		return nil, fmt.Errorf("ramp: %w: it %s", ErrValidatorKey, problem)
	}
	if strings.HasPrefix(hexKey, "0X") {
		return nil, fmt.Errorf("ramp: %w: it begins with 0X instead of 0x", ErrValidatorKey)
	}
	key, err := ethcrypto.HexToECDSA(strings.TrimPrefix(hexKey, "0x"))
	if err != nil {
		return nil, fmt.Errorf("ramp: %w: it must be a secp256k1 private key, 32 bytes in hex",
			ErrValidatorKey)
	}
	return keySigner(key), nil
}

func keySigner(key *ecdsa.PrivateKey) *Signer {
	order := ethcrypto.S256().Params().N
	sign := func(_ context.Context, _ time.Duration, d Digest) (Signature, error) {
		var s Signature
		// RFC 6979 reduces the digest modulo the order. go-ethereum does so with
		// cgo only, so do it here to get the same bytes without cgo.
		if z := new(big.Int).SetBytes(d[:]); z.Cmp(order) >= 0 {
			z.Sub(z, order).FillBytes(d[:])
		}
		raw, err := ethcrypto.Sign(d[:], key)
		if err != nil {
			return s, fmt.Errorf("ramp: sign: %w", err)
		}
		copy(s[:], raw)
		s[64] += 27
		return s, nil
	}
	return &Signer{address: ethcrypto.PubkeyToAddress(key.PublicKey), sign: sign}
}

// NewCryptoSigner returns a signer for any [crypto.Signer] whose public key is an
// [*ecdsa.PublicKey] on secp256k1, such as a library for a key service. It is called with
// the digest itself, and with [crypto.SHA256] to name the length. The signature may be DER
// or r||s, with any s. An [*ecdsa.PrivateKey] is copied, and signs as with [NewKeySigner].
// The error wraps [ErrValidatorKey]. If a call takes too long, the signer no longer waits
// for it, but cannot stop it: a crypto.Signer gets no context, unlike the function of
// [NewFuncSigner].
func NewCryptoSigner(signer crypto.Signer) (*Signer, error) {
	key, local := signer.(*ecdsa.PrivateKey)
	if signer == nil || local && (key == nil || key.D == nil) {
		return nil, fmt.Errorf("ramp: %w: the crypto.Signer has no key", ErrValidatorKey)
	}
	public, _ := signer.Public().(*ecdsa.PublicKey)
	if !onSecp256k1(public) {
		return nil, fmt.Errorf("ramp: %w: the crypto.Signer must be on secp256k1", ErrValidatorKey)
	}
	if local {
		own, err := ethcrypto.ToECDSA(common.LeftPadBytes(key.D.Bytes(), 32))
		if err != nil || own.X.Cmp(key.X) != 0 || own.Y.Cmp(key.Y) != 0 {
			return nil, fmt.Errorf("ramp: %w: it is not that of its public half", ErrValidatorKey)
		}
		return keySigner(own), nil
	}
	address := ethcrypto.PubkeyToAddress(ecdsa.PublicKey{Curve: ethcrypto.S256(), X: public.X, Y: public.Y})
	return NewFuncSigner(address, func(ctx context.Context, digest []byte) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return signer.Sign(rand.Reader, digest, crypto.SHA256)
	})
}

// NewFuncSigner returns a signer that calls a function, for a key in a key service or an
// HSM. It must sign the 32 bytes of the digest without hashing them again, and return DER
// or r||s, with any s. It may leave out leading zeros of r and s, and the sign byte of a
// DER integer. The address is that of the key, from [PublicKeyAddress] or the console.
//
// For AWS KMS, with a key of spec ECC_SECG_P256K1, return the Signature of
//
//	client.Sign(ctx, &kms.SignInput{KeyId: &keyID, Message: digest,
//		MessageType: types.MessageTypeDigest, SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256})
//
// and for Google Cloud KMS, with a key of algorithm EC_SIGN_SECP256K1_SHA256, that of
//
//	client.AsymmetricSign(ctx, &kmspb.AsymmetricSignRequest{Name: keyVersion,
//		Digest: &kmspb.Digest{Digest: &kmspb.Digest_Sha256{Sha256: digest}}})
//
// Both choose a random nonce, so two signatures of a digest differ. The folder examples/keys
// has a file to copy for AWS KMS, and one for HSMs that speak PKCS #11.
func NewFuncSigner(address common.Address,
	sign func(ctx context.Context, digest []byte) ([]byte, error)) (*Signer, error) {
	switch {
	case sign == nil:
		return nil, fmt.Errorf("ramp: %w: the function is nil", ErrValidatorKey)
	case typed.HasNoKey(address):
		return nil, fmt.Errorf("ramp: %w: nobody can have the key of %s", ErrValidatorKey, address)
	}
	return &Signer{address: address,
		sign: func(ctx context.Context, limit time.Duration, d Digest) (Signature, error) {
			theirs := d // a copy, so that sign cannot change what is checked
			begun := time.Now()
			raw, err := untilDone(ctx, limit, func(ctx context.Context) ([]byte, error) {
				return sign(ctx, theirs[:])
			})
			if errors.Is(err, context.DeadlineExceeded) && time.Since(begun) >= limit {
				err = fmt.Errorf("no signature within %v, which is HandlerConfig.SignTimeout: %w", limit, err)
			}
			if err != nil {
				return Signature{}, fmt.Errorf("ramp: sign: %w", err)
			}
			return normalize(raw, d, address)
		}}, nil
}

// untilDone returns what call returns, or the error of ctx if that ends first or the time
// is over, because the client of a key may ignore its context. A panic of call is logged.
func untilDone(ctx context.Context, limit time.Duration,
	call func(context.Context) ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var raw []byte
	err := errors.New("it panicked") // unless call returns
	done := make(chan struct{})
	go func() {
		defer close(done)
		runHook(ctx, "sign", func() { raw, err = call(ctx) })
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-done:
		return raw, err
	}
}

// Address returns the address of the validator key, for the console.
func (s *Signer) Address() common.Address { return s.address }

// Sign returns the signature of the digest (interface 5.3), which is not hashed again. The error wraps
// [ErrValidatorKey] or [ErrSignature], or is that of the key service. Sign waits as long as ctx: only a
// [Handler] has a [HandlerConfig].SignTimeout.
func (s *Signer) Sign(ctx context.Context, d Digest) (Signature, error) {
	if s.sign == nil {
		return Signature{}, fmt.Errorf("ramp: %w: the Signer was not made by a constructor", ErrValidatorKey)
	}
	return s.sign(ctx, 1<<63-1, d)
}

// PublicKeyAddress returns the address of a secp256k1 public key in each form that key
// services and hardware tokens return: a SubjectPublicKeyInfo in DER or PEM, which
// crypto/x509 does not read for this curve, and the CKA_EC_POINT of PKCS #11, which is a
// point in a DER OCTET STRING or, from some tokens, the point alone. The error wraps
// [ErrValidatorKey], and says if the key is on another curve.
func PublicKeyAddress(public []byte) (common.Address, error) {
	point, err := publicPoint(public)
	if err != nil {
		return common.Address{}, fmt.Errorf("ramp: %w: %w", ErrValidatorKey, err)
	}
	key, err := ethcrypto.UnmarshalPubkey(point)
	if err != nil {
		key, err = ethcrypto.DecompressPubkey(point)
	}
	if err != nil {
		return common.Address{}, fmt.Errorf("ramp: %w: it is not a point on secp256k1: "+
			"the key must be on this curve", ErrValidatorKey)
	}
	return ethcrypto.PubkeyToAddress(*key), nil
}

// Lengths of a point with both coordinates, and of one with x and the sign of y.
const (
	longPoint  = 65
	shortPoint = 33
)

// publicPoint returns the point of a public key.
func publicPoint(public []byte) ([]byte, error) {
	// A point begins with 4, as an OCTET STRING does, and its second byte may be what the
	// length would be. So the length decides.
	if len(public) == longPoint || len(public) == shortPoint {
		return public, nil
	}
	if block, _ := pem.Decode(public); block != nil {
		public = block.Bytes
	}
	var point []byte
	if rest, err := asn1.Unmarshal(public, &point); err == nil && len(rest) == 0 {
		return point, nil
	}
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	var curve asn1.ObjectIdentifier
	rest, err := asn1.Unmarshal(public, &info)
	if err == nil {
		_, err = asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &curve)
	}
	switch {
	case err != nil || len(rest) != 0 || !info.Algorithm.Algorithm.Equal(oidECPublicKey):
		return nil, errors.New("it must be a secp256k1 public key, DER, PEM or CKA_EC_POINT")
	case !curve.Equal(oidSecp256k1):
		return nil, fmt.Errorf("it is on the curve %v, and must be on secp256k1, which is %v",
			curve, oidSecp256k1)
	}
	return info.Key.RightAlign(), nil
}

var (
	oidECPublicKey = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	oidSecp256k1   = asn1.ObjectIdentifier{1, 3, 132, 0, 10}
)

// normalize converts the signature of a key service to the form of the interface: s
// is low, and v is the one that recovers to the address.
func normalize(raw []byte, d Digest, address common.Address) (Signature, error) {
	readings := readSignature(raw)
	if sig, ok := signedBy(address, d, readings); ok {
		return sig, nil
	}
	for _, form := range otherForms {
		if _, ok := signedBy(address, d, readSignature(form.read(raw))); ok {
			return Signature{}, fmt.Errorf("ramp: %w: its %d bytes are neither DER nor r||s, but %s",
				ErrSignature, len(raw), form.name)
		}
	}
	if len(readings) == 0 {
		return Signature{}, fmt.Errorf("ramp: %w: its %d bytes are neither DER nor r||s, "+
			"or r or s is out of range", ErrSignature, len(raw))
	}
	for name, again := range map[string]Digest{
		"SHA-256":    sha256.Sum256(d[:]),
		"Keccak-256": Digest(ethcrypto.Keccak256(d[:])),
		"the prefix of an Ethereum message": Digest(ethcrypto.Keccak256(
			[]byte("\x19Ethereum Signed Message:\n32"), d[:])),
	} {
		if _, ok := signedBy(address, again, readings); ok {
			return Signature{}, fmt.Errorf("ramp: %w: the signer hashed the digest again, with %s: "+
				"it must sign the 32 bytes as they are", ErrSignature, name)
		}
	}
	return Signature{}, fmt.Errorf("ramp: %w: its %d bytes are not of this digest by the key of %s: "+
		"the signer has another key, or hashed the digest again%s", ErrSignature, len(raw), address,
		signers(d, readings))
}

// signers says which keys would have made a signature of the digest, if there is one way to read it: v is not
// known, so they are two.
func signers(d Digest, readings []Signature) string {
	var are []string
	for _, v := range []byte{27, 28} {
		sig := readings[0]
		sig[64] = v
		if address, err := Recover(d, sig); err == nil {
			are = append(are, address.Hex())
		}
	}
	if len(readings) > 1 || len(are) == 0 {
		return ""
	}
	return "; of this digest, they would be by the key of " + strings.Join(are, " or ")
}

// otherForms are what signers return that is neither DER nor r||s, with their names. read returns the
// signature, or nil.
var otherForms = []struct {
	name string
	read func(raw []byte) []byte
}{
	{"hex text: decode it", func(raw []byte) []byte {
		decoded, _ := hex.DecodeString(strings.TrimPrefix(unquoted(raw), "0x"))
		return decoded
	}},
	{"base64 text: decode it", func(raw []byte) []byte {
		decoded, err := base64.StdEncoding.DecodeString(unquoted(raw))
		if err != nil {
			decoded, _ = base64.RawURLEncoding.DecodeString(strings.TrimRight(unquoted(raw), "="))
		}
		return decoded
	}},
	{"v||r||s: leave out v, the first byte", func(raw []byte) []byte {
		if len(raw) != 65 {
			return nil
		}
		return raw[1:]
	}},
	{"s||r: exchange them", func(raw []byte) []byte {
		if len(raw) < 64 || len(raw) > 65 {
			return nil
		}
		return append(bytes.Clone(raw[32:64]), raw[:32]...)
	}},
	{"r||s with v in the first bit of s, as in EIP-2098: clear this bit", func(raw []byte) []byte {
		if len(raw) != 64 {
			return nil
		}
		without := bytes.Clone(raw)
		without[32] &= 0x7f
		return without
	}},
}

// unquoted returns text without what is around it.
func unquoted(raw []byte) string { return strings.Trim(string(raw), "\" \r\n") }

// signedBy returns the reading that the key of the address made of the digest, with its v.
func signedBy(address common.Address, d Digest, readings []Signature) (Signature, bool) {
	for _, sig := range readings {
		for _, v := range []byte{27, 28} {
			sig[64] = v
			if got, err := Recover(d, sig); err == nil && got == address {
				return sig, true
			}
		}
	}
	return Signature{}, false
}

// readSignature returns each way to read DER, r||s or r||s||v, with a low s and without
// v. Some services omit the sign byte of DER or the leading zeros of r and s. In DER the
// lengths of r and s are known even so. Without it they are not, so there are several ways.
func readSignature(raw []byte) (readings []Signature) {
	add := func(r, s []byte) {
		if sig, ok := withLowS(new(big.Int).SetBytes(r), new(big.Int).SetBytes(s)); ok {
			readings = append(readings, sig)
		}
	}
	var der struct{ R, S asn1.RawValue }
	rest, err := asn1.Unmarshal(raw, &der)
	switch {
	case len(raw) == 65:
		raw = raw[:64] // without v
	case len(raw) != 64 && err == nil && len(rest) == 0 && isInteger(der.R) && isInteger(der.S):
		// DER of 64 bytes would need an r or s so small that none will ever occur.
		add(der.R.Bytes, der.S.Bytes)
		return readings
	}
	for n := max(shortNumber, len(raw)-32); n <= min(32, len(raw)-shortNumber); n++ {
		add(raw[:n], raw[n:])
	}
	return readings
}

// shortNumber is the length of the shortest r or s without leading zeros: one in 2⁴⁰ is
// shorter.
const shortNumber = 28

func isInteger(v asn1.RawValue) bool {
	return v.Class == asn1.ClassUniversal && v.Tag == asn1.TagInteger && !v.IsCompound
}

// withLowS returns r||s with s in the lower half, and whether both were in range.
func withLowS(r, s *big.Int) (sig Signature, ok bool) {
	order := ethcrypto.S256().Params().N
	if r.Sign() == 0 || s.Sign() == 0 || r.Cmp(order) >= 0 || s.Cmp(order) >= 0 {
		return sig, false
	}
	if other := new(big.Int).Sub(order, s); other.Cmp(s) < 0 {
		s = other
	}
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:64])
	return sig, true
}

// onSecp256k1 reports whether a key lies on the curve, whichever package implements
// it.
func onSecp256k1(key *ecdsa.PublicKey) bool {
	return key != nil && key.Curve != nil && key.X != nil && key.Y != nil &&
		ethcrypto.S256().IsOnCurve(key.X, key.Y)
}

// Recover returns the address whose key signed the digest. It requires v to be 27 or 28,
// r and s in range, and a low s. The error wraps [ErrSignature].
func Recover(d Digest, s Signature) (common.Address, error) {
	v := s[64] - 27
	if !ethcrypto.ValidateSignatureValues(v, new(big.Int).SetBytes(s[:32]),
		new(big.Int).SetBytes(s[32:64]), true) {
		return common.Address{}, fmt.Errorf("ramp: %w: r, s or v is out of range", ErrSignature)
	}
	s[64] = v
	key, err := ethcrypto.SigToPub(d[:], s[:])
	if err != nil {
		return common.Address{}, fmt.Errorf("ramp: %w: no key can have made it", ErrSignature)
	}
	return ethcrypto.PubkeyToAddress(*key), nil
}
