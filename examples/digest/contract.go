package main

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// Contract is a contract of a ramp that mints and burns what the validator key has signed, as
// EIP-712 typed data:
//
//	Order(bytes32 uuid,address user,address token,uint256 units,bool mint)
//
// Copy this file, and change it until it makes the digests of your ramp's contract: its source is
// where to look. A hash that leaves out the user, the token, the number of tokens or the direction
// must not be signed, because it means any of them.
type Contract struct {
	Name, Version string // of its EIP-712 domain
	ChainID       uint64
	Address       common.Address
	Decimals      map[common.Address]int // of the tokens that it mints and burns
}

// Policy is a HandlerConfig.Policy. It rejects every request whose digest means something else than
// its intent says. Whoever has the HMAC key can write both, and only one of them decides what the
// player pays, and only the other one what the contract mints.
func (c *Contract) Policy(_ context.Context, _ ramp.Session, r *ramp.ValidateRequest) error {
	expected, err := c.Digest(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ramp.Reject("INVALID_DIGEST"), err)
	}
	if r.Digest != expected {
		return fmt.Errorf("%w: the digest of order %s is not that of its intent",
			ramp.Reject("INVALID_DIGEST"), r.UUID)
	}
	return nil
}

var (
	domainType = []byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
	orderType  = []byte("Order(bytes32 uuid,address user,address token,uint256 units,bool mint)")
)

// Digest returns what the contract demands a signature of, to carry out the intent of a request.
func (c *Contract) Digest(r *ramp.ValidateRequest) (digest ramp.Digest, err error) {
	direction, err := r.Intent.Direction()
	if err != nil {
		return digest, err
	}
	tokens := r.Intent.To
	if direction == ramp.Burn {
		tokens = r.Intent.From
	}
	if len(tokens) != 1 || !common.IsHexAddress(tokens[0].ID) || !common.IsHexAddress(r.UserAddress) {
		return digest, fmt.Errorf("order %s: it must have a user and one token", r.UUID)
	}
	user, token := common.HexToAddress(r.UserAddress), common.HexToAddress(tokens[0].ID)
	decimals, known := c.Decimals[token]
	if !known {
		return digest, fmt.Errorf("order %s: the decimals of the token %s are not known", r.UUID, token)
	}
	units, err := tokens[0].Amount.Units(decimals)
	if err != nil {
		return digest, err
	}
	if units.BitLen() > 256 {
		return digest, fmt.Errorf("order %s: its number of tokens has more than 256 bits", r.UUID)
	}
	mint := new(big.Int)
	if direction == ramp.Mint {
		mint.SetInt64(1)
	}
	domain := crypto.Keccak256(crypto.Keccak256(domainType), crypto.Keccak256([]byte(c.Name)),
		crypto.Keccak256([]byte(c.Version)), word(new(big.Int).SetUint64(c.ChainID)), padded(c.Address[:]))
	order := crypto.Keccak256(crypto.Keccak256(orderType), padded(r.UUID[:]), padded(user[:]),
		padded(token[:]), word(units), word(mint))
	return ramp.Digest(crypto.Keccak256([]byte{0x19, 0x01}, domain, order)), nil
}

// word is a number as the contract hashes it: 32 bytes.
func word(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

// padded fills up a shorter value with zeros on its left.
func padded(b []byte) []byte { return common.LeftPadBytes(b, 32) }
