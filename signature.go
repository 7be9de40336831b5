package ramp

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	ethcrypto "github.com/ethereum/go-ethereum/crypto"
)

// Digest is the 32-byte hash that the validator key signs (interface 5.3). The
// interface does not say what it is a hash of.
type Digest [32]byte

// ParseDigest reads a digest: 0x and 64 hex digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if digits, ok := strings.CutPrefix(s, "0x"); ok && len(digits) == 2*len(d) {
		if _, err := hex.Decode(d[:], []byte(digits)); err == nil {
			return d, nil
		}
	}
	return Digest{}, invalid("digest", "must be 0x followed by 64 hex digits")
}

// String returns the digest as 0x and 64 hex digits.
func (d Digest) String() string { return "0x" + hex.EncodeToString(d[:]) }

// MarshalText writes what String returns.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(b []byte) error {
	got, err := ParseDigest(string(b))
	if err == nil {
		*d = got
	}
	return err
}

// UnmarshalJSON reads a string of 0x and 64 hex digits. The error is an
// [*InvalidError].
func (d *Digest) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "digest", d) }

func (d *Digest) read(x *reader) {
	value := x.raw()
	if value[0] != '"' {
		x.mismatch("0x followed by 64 hex digits", value)
		return
	}
	text := string(x.unquoted(value))
	digest, err := ParseDigest(text)
	if err != nil {
		x.fault("must be 0x followed by 64 hex digits, not a string of %d characters", utf8.RuneCountInString(text))
		return
	}
	*d = digest
}

// Signature is an ECDSA signature on secp256k1 (interface 5.3): r and s of 32 bytes
// each, and v, which is 27 or 28. A [Signer] makes signatures with a low s, as
// contracts require.
type Signature [65]byte

// ParseSignature reads a signature: 0x and 130 hex digits. It checks the form only;
// [Recover] checks the values. The error wraps [ErrSignature].
func ParseSignature(s string) (Signature, error) {
	var sig Signature
	if digits, ok := strings.CutPrefix(s, "0x"); ok && len(digits) == 2*len(sig) {
		if _, err := hex.Decode(sig[:], []byte(digits)); err == nil {
			return sig, nil
		}
	}
	return Signature{}, fmt.Errorf("ramp: %w: it must be 0x followed by 130 hex digits", ErrSignature)
}

// String returns the signature as 0x and 130 hex digits, the form of the wire.
func (s Signature) String() string { return "0x" + hex.EncodeToString(s[:]) }

// MarshalText writes what String returns.
func (s Signature) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Signature) UnmarshalText(b []byte) error {
	sig, err := ParseSignature(string(b))
	if err == nil {
		*s = sig
	}
	return err
}

// Recover returns the address whose key signed the digest. Like a contract, it
// requires v to be 27 or 28, r and s in range, and a low s. The error wraps
// [ErrSignature].
func Recover(d Digest, s Signature) (common.Address, error) {
	v := s[64] - 27
	if !ethcrypto.ValidateSignatureValues(v, new(big.Int).SetBytes(s[:32]), new(big.Int).SetBytes(s[32:64]), true) {
		return common.Address{}, fmt.Errorf("ramp: %w: r, s or v is out of range", ErrSignature)
	}
	s[64] = v
	key, err := ethcrypto.SigToPub(d[:], s[:])
	if err != nil {
		return common.Address{}, fmt.Errorf("ramp: %w: no key can have made it", ErrSignature)
	}
	return ethcrypto.PubkeyToAddress(*key), nil
}
