package typed

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// IsNobodys reports whether nobody has the key of an address: it is zero or that of a precompiled contract,
// or tokens are sent there so that nobody has them.
func IsNobodys(a common.Address) bool {
	const bits = 9 // of the highest precompiled contract, 0x100
	return new(big.Int).SetBytes(a[:]).BitLen() <= bits || a == dead
}

var dead = common.HexToAddress("0x000000000000000000000000000000000000dEaD")
