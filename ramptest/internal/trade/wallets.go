package trade

import (
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
)

// HashDigest is the default of Config.Digest of package ramptest.
func HashDigest(r *ramp.ValidateRequest) ramp.Digest {
	return ramp.Digest(crypto.Keccak256([]byte("digest"), r.UUID[:], []byte(r.UserAddress),
		text.JSON(r.Intent)))
}

// OncePerSession returns a function that computes the wallet of a session once.
func OncePerSession(wallet func(ramp.Session) *ramp.Signer) func(ramp.Session) *ramp.Signer {
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

// SessionWallet is the default of Config.Wallet of package ramptest.
func SessionWallet(session ramp.Session) *ramp.Signer {
	// only about one hash in 2^128 is none
	key := crypto.ToECDSAUnsafe(crypto.Keccak256([]byte("wallet"), []byte(session.ID)))
	return ramp.Must(ramp.NewCryptoSigner(key))
}

// Received returns a session as a game receives it: white space around the value of a header has no
// meaning, and a handler leaves it out.
func Received(s ramp.Session) ramp.Session {
	s.ID = strings.TrimSpace(s.ID)
	if token := strings.TrimSpace(s.Token.Reveal()); token != s.Token.Reveal() {
		s.Token = ramp.NewAccessToken(token)
	}
	return s
}

// ServiceAccount is the service's own account. It receives the fees and pays the
// gas of transactions of type 0x7.
func ServiceAccount() common.Address {
	return common.BytesToAddress(crypto.Keccak256([]byte("service")))
}
