package ramp

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	ethcrypto "github.com/ethereum/go-ethereum/crypto"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Digest is the 32-byte hash that the validator key signs (interface 5.3). The
// interface does not say what it is a hash of.
type Digest [32]byte

// ParseDigest reads a digest: 0x and 64 hex digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if !parseHex(d[:], s) {
		return Digest{}, invalid("digest", "must be 0x followed by 64 hex digits")
	}
	return d, nil
}

// String returns the digest as 0x and 64 hex digits.
func (d Digest) String() string { return hexutil.Encode(d[:]) }

// MarshalText writes what String returns.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDigest(string(b))
	return err
}

func (d *Digest) read(x *wire.Reader) {
	value := x.Raw()
	if value[0] != '"' || d.UnmarshalText(x.Unquoted(value)) != nil {
		x.Mismatch("0x followed by 64 hex digits", value)
	}
}

// Signature is an ECDSA signature on secp256k1 (interface 5.3): r and s of 32 bytes
// each, and v, which is 27 or 28. Those of a [Signer] have a low s.
type Signature [65]byte

// ParseSignature reads a signature: 0x and 130 hex digits. It checks the form only;
// [Recover] checks the values. The error wraps [ErrSignature].
func ParseSignature(s string) (Signature, error) {
	var parsed Signature
	if !parseHex(parsed[:], s) {
		return Signature{}, fmt.Errorf("ramp: %w: it must be 0x followed by 130 hex digits", ErrSignature)
	}
	return parsed, nil
}

// String returns the signature as 0x and 130 hex digits, the form of the wire.
func (s Signature) String() string { return hexutil.Encode(s[:]) }

// MarshalText writes what String returns.
func (s Signature) MarshalText() ([]byte, error) { return hexutil.Bytes(s[:]).MarshalText() }

// UnmarshalText reads what MarshalText writes.
func (s *Signature) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSignature(string(b))
	return err
}

// Recover returns the address whose key signed the digest. It requires v to be 27 or 28,
// r and s in range, and a low s. The error wraps [ErrSignature].
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

// parseHex decodes 0x and hex digits, which fill into.
func parseHex(into []byte, text string) bool {
	digits, ok := strings.CutPrefix(text, "0x")
	return ok && len(digits) == 2*len(into) && wire.DecodeHex(into, []byte(digits))
}
