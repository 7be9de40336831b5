package typed

import "github.com/ethereum/go-ethereum/common"

// HasNoKey reports whether nobody has the key of an address: it is zero or that of a precompiled contract, or
// tokens are sent there so that nobody has them.
func HasNoKey(a common.Address) bool {
	const last = len(a) - 2
	low := common.Address{last: a[last], last + 1: a[last+1]}
	return a == low && a[last] <= 1 || a == dead // the highest precompiled contract is 0x100
}

var dead = common.HexToAddress("0x000000000000000000000000000000000000dEaD")
