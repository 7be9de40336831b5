// Kms shows a validator key that never leaves a key service: the SDK sees a
// crypto.Signer, learns the address from its public key, and brings whatever
// signature comes back into the form of the interface.
//
// The key service here is a stand-in in memory that behaves as real ones do: it
// returns DER, with a random nonce and with an s of either half. With AWS or
// Google Cloud KMS, use ramp.NewFuncSigner; its documentation has both calls.
//
// There is no game here and no player: the digest is fixed, and a handler signs
// only what the Validate of its game has approved.
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

// HSM is a crypto.Signer whose private key nobody can read.
type HSM struct{ key *ecdsa.PrivateKey }

// Public returns the public half of the key.
func (h *HSM) Public() crypto.PublicKey { return &h.key.PublicKey }

// Sign signs 32 bytes as they are and returns DER.
func (h *HSM) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	if options.HashFunc() != crypto.SHA256 || len(digest) != 32 {
		return nil, errors.New("hsm: want a digest of 32 bytes")
	}
	return ecdsa.SignASN1(random, h.key, digest)
}

func main() {
	key, err := ethcrypto.GenerateKey()
	if err != nil {
		log.Fatal(err)
	}
	signer, err := ramp.NewCryptoSigner(&HSM{key: key})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("register in the console:", signer.Address())

	digest, err := ramp.ParseDigest("0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85")
	if err != nil {
		log.Fatal(err)
	}
	// A handler does this for every order that it validates:
	// ramp.NewHandler(ramp.HandlerConfig{Game: game, Key: hmacKey, Signer: signer}).
	signature, err := signer.Sign(context.Background(), digest)
	if err != nil {
		log.Fatal(err)
	}
	by, err := ramp.Recover(digest, signature)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("validatorSig:         ", signature)
	fmt.Println("made by:              ", by)
	if by != signer.Address() {
		log.Fatal("another key made it")
	}
}
