// Kms shows a validator key that never leaves a key service. The SDK uses a
// crypto.Signer: it derives the address from the public key and converts the
// signatures into the format of the interface.
//
// The key service here is an in-memory stand-in that behaves like a real one: it
// returns DER, with a random nonce, and with s in either half of the curve order. With
// AWS or Google Cloud KMS, use ramp.NewFuncSigner; its documentation has both calls.
//
// The example has no game and no players, so its digest is fixed. A handler signs
// only what the Validate method of its game approved.
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"log"

	ethcrypto "github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// HSM is a crypto.Signer whose private key cannot be read.
type HSM struct{ key *ecdsa.PrivateKey }

// Public returns the public half of the key.
func (h *HSM) Public() crypto.PublicKey { return &h.key.PublicKey }

// Sign signs a digest of 32 bytes without hashing it and returns DER.
func (h *HSM) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	if options.HashFunc() != crypto.SHA256 || len(digest) != 32 {
		return nil, errors.New("hsm: digest must be 32 bytes")
	}
	return ecdsa.SignASN1(random, h.key, digest)
}

func main() {
	key := ramp.Must(ethcrypto.GenerateKey())
	signer := ramp.Must(ramp.NewCryptoSigner(&HSM{key: key}))
	fmt.Println("register in the console:", signer.Address())

	digest := ramp.Must(ramp.ParseDigest("0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85"))
	// A handler does this for every order that it validates:
	// ramp.NewHandler(ramp.HandlerConfig{Signer: signer, …}).
	signature := ramp.Must(signer.Sign(context.Background(), digest))
	by := ramp.Must(ramp.Recover(digest, signature))
	fmt.Println("validatorSig:         ", signature)
	fmt.Println("signed by:            ", by)
	if by != signer.Address() {
		log.Fatal("the signature is from another key")
	}
}
