package chain

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
)

// Move is a transfer of tokens, in their smallest units. A transfer from the zero
// address mints them; a transfer to it burns them.
type Move struct {
	Token, From, To common.Address
	Amount          *big.Int
	ID              *big.Int // of a non-fungible token (ERC-721), whose Amount is 1 token; otherwise nil
	Approval        bool     // To may spend the tokens, and nothing moves
}

// Units converts an amount of tokens to their smallest units, rounded down.
func Units(a ramp.Amount, decimals int) *big.Int {
	n := new(big.Rat).Mul(a.Rat(), new(big.Rat).SetInt(unit(decimals)))
	return new(big.Int).Quo(n.Num(), n.Denom())
}

// Tokens converts smallest units to an amount of tokens.
func Tokens(units *big.Int, decimals int) *big.Rat {
	return new(big.Rat).SetFrac(units, unit(decimals))
}

func unit(decimals int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
}
