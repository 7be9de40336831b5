package support

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

const (
	word          = 32 // bytes of an ABI word
	maxRecoveries = 24 // each costs up to 0.6 ms without cgo
)

// signedBy reports whether the input of a transaction holds a signature of the digest by
// one of the validators. It is a hint for a person, never proof: input is public, and
// trailing bytes are ignored, so a player can put a signature behind a plain transfer or
// into a failing creation.
//
// It looks where contracts expect a signature: in ABI bytes of 65 or 64 bytes, and in
// three words r, s, v in either order. Then it looks elsewhere as far as the limit of
// recoveries allows.
func signedBy(validators []common.Address, digest ramp.Digest, input []byte) bool {
	left := maxRecoveries
	found := func(r, s []byte, v byte) bool {
		if left == 0 || !plausible(r, s) {
			return false
		}
		left--
		var signature ramp.Signature
		copy(signature[:], r)
		copy(signature[32:], s)
		signature[64] = v
		if v < 27 {
			signature[64] = v + 27
		}
		signer, err := ramp.Recover(digest, signature)
		for _, validator := range validators {
			if err == nil && signer == validator {
				return true
			}
		}
		return false
	}
	if len(validators) == 0 {
		return false
	}
	for _, start := range []int{4, 0} { // after the selector of a function, and without one
		for at := start; at+3*word <= len(input); at += word {
			a, b, c := input[at:at+word], input[at+word:at+2*word], input[at+2*word:at+3*word]
			switch length, small := number(a); {
			case small && length == 65 && len(input) >= at+4*word && isV(input[at+3*word]): // bytes: r, s, v
				if found(b, c, input[at+3*word]) {
					return true
				}
			case small && length == 64 && found(b, withoutParity(c), c[0]>>7): // EIP-2098: r, parity and s
				return true
			case small && length <= 28 && isV(byte(length)) && found(b, c, byte(length)): // v, r, s
				return true
			}
			if v, small := number(c); small && v <= 28 && isV(byte(v)) && found(a, b, byte(v)) { // r, s, v
				return true
			}
		}
	}
	for at := 0; at+65 <= len(input) && left > 0; at++ { // packed: r, s, v at any offset
		if v := input[at+64]; (v == 27 || v == 28) && found(input[at:at+word], input[at+word:at+2*word], v) {
			return true
		}
	}
	return false
}

// isV reports whether a byte can be the v of a signature.
func isV(b byte) bool { return b <= 1 || b == 27 || b == 28 }

// plausible reports whether r and s can belong to a signature with a low s. Random bytes
// rarely fail for r, but half of them do for s, and text and small numbers always do.
func plausible(r, s []byte) bool {
	leading := func(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
	return leading(r)>>32 != 0 && leading(r) != ^uint64(0) && leading(s)>>32 != 0 && leading(s)>>63 == 0
}

// withoutParity returns the s of EIP-2098, whose highest bit is the parity.
func withoutParity(s []byte) []byte {
	s = append([]byte(nil), s...)
	s[0] &= 0x7f
	return s
}

// number returns a word as a number, and whether it is below 2^32.
func number(w []byte) (n uint64, small bool) {
	for _, b := range w[:word-4] {
		if b != 0 {
			return 0, false
		}
	}
	return uint64(binary.BigEndian.Uint32(w[word-4:])), true
}
