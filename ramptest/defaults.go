package ramptest

import (
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// hashDigest is the default of [Config.Digest].
func hashDigest(r *ramp.ValidateRequest) ramp.Digest {
	return ramp.Digest(crypto.Keccak256([]byte("digest"), r.UUID[:], []byte(r.UserAddress),
		encoded(r.Intent)))
}

// oncePerSession returns a function that computes the wallet of a session once.
func oncePerSession(wallet func(ramp.Session) *ramp.Signer) func(ramp.Session) *ramp.Signer {
	var known sync.Map
	return func(session ramp.Session) *ramp.Signer {
		if signer, ok := known.Load(session.ID); ok {
			return signer.(*ramp.Signer)
		}
		signer := wallet(session)
		known.Store(session.ID, signer)
		return signer
	}
}

// sessionWallet is the default of [Config.Wallet].
func sessionWallet(session ramp.Session) *ramp.Signer {
	// only about one hash in 2^128 is none
	key := crypto.ToECDSAUnsafe(crypto.Keccak256([]byte("wallet"), []byte(session.ID)))
	return ramp.Must(ramp.NewCryptoSigner(key))
}

// serviceAccount is the service's own account. It receives the fees and pays the
// gas of transactions of type 0x7.
func serviceAccount() common.Address {
	return common.BytesToAddress(crypto.Keccak256([]byte("service")))
}
