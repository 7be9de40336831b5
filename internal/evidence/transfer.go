package evidence

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// TransferTopic is the hash of Transfer(address,address,uint256), which ERC-20 and ERC-721
// share.
var TransferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// The events of ERC-1155, of which nobody here knows what they move.
var (
	// TransferSingle(address,address,address,uint256,uint256)
	transferSingle = common.HexToHash("0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62")
	// TransferBatch(address,address,address,uint256[],uint256[])
	transferBatch = common.HexToHash("0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb")
)

// Distinct returns logs without exact doubles, which some nodes list. Two events of one
// transaction may share an index on some chains, so whole logs are compared. A log without an
// index, as of a service, is never a double.
func Distinct(logs []ramp.Log) []ramp.Log {
	type place struct {
		transaction common.Hash
		index       uint64
	}
	seen := make(map[place][]int, len(logs))
	kept := make([]ramp.Log, 0, len(logs))
	for _, l := range logs {
		index, err := l.LogIndex.Uint64()
		at := place{l.TransactionHash, index}
		double := func(n int) bool { return same(&kept[n], &l) }
		if err == nil && slices.ContainsFunc(seen[at], double) {
			continue
		}
		if err == nil {
			seen[at] = append(seen[at], len(kept))
		}
		kept = append(kept, l)
	}
	return kept
}

func same(a, b *ramp.Log) bool {
	return a.TransactionHash == b.TransactionHash && a.BlockHash == b.BlockHash && a.Address == b.Address &&
		a.Removed == b.Removed && slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}

// CheckReadable returns an error if an event of one of the tokens, or of a contract that the
// node names in a form of its own, could not be read: it may be the one that decides.
func CheckReadable(tokens []common.Address, logs []ramp.Log) error {
	for n, l := range logs {
		if l.Unreadable && (l.Address == common.Address{} || slices.Contains(tokens, l.Address)) {
			return fmt.Errorf("event %d of its receipt, of the contract %s, could not be read", n, l.Address)
		}
	}
	return nil
}

// transfersOf returns the transfers of a token, each once, in their order.
func transfersOf(token common.Address, logs []ramp.Log) (transfers []ramp.Transfer) {
	for _, l := range Distinct(logs) {
		if t, ok := l.Transfer(); ok && t.Token == token {
			transfers = append(transfers, t)
		}
	}
	return transfers
}

// unitsOf returns how much moved: a piece is one, whatever its ID.
func unitsOf(t *ramp.Transfer) *big.Int { return cmp.Or(t.Value, common.Big1) }

// accountOf returns whose tokens a transfer moves: from whom for a burn, and to whom for a mint.
func accountOf(d ramp.Direction, t *ramp.Transfer) common.Address {
	if d == ramp.Burn {
		return t.From
	}
	return t.To
}

// movedFor reports whether a transfer of more than nothing is from the user of a burn, or to the
// user of a mint.
func movedFor(user common.Address, d ramp.Direction, transfers []ramp.Transfer) bool {
	return slices.ContainsFunc(transfers, func(t ramp.Transfer) bool {
		return accountOf(d, &t) == user && !IsDust(&t)
	})
}

// IsDust reports whether a transfer moves nothing. Anybody can make one between any two
// accounts.
func IsDust(t *ramp.Transfer) bool {
	return t.From == t.To || t.TokenID == nil && t.Value.Sign() == 0
}
