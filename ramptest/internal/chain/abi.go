package chain

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Selector returns the selector of a contract function.
func Selector(signature string) [4]byte { return [4]byte(crypto.Keccak256([]byte(signature))) }

// Arguments returns the input of a call: a selector, one word, and any number of bytes
// arguments in the ABI.
func Arguments(selector, word []byte, values ...[]byte) []byte {
	const size = 32
	number := func(n int) []byte { return common.LeftPadBytes(big.NewInt(int64(n)).Bytes(), size) }
	head, tail := append(selector, word...), []byte(nil)
	for _, value := range values {
		head = append(head, number(size*(1+len(values))+len(tail))...)
		tail = append(append(tail, number(len(value))...), value...)
		tail = append(tail, make([]byte, (size-len(value)%size)%size)...)
	}
	return append(head, tail...)
}
