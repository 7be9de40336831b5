package evidence

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// Witness is an order that has ended by a transaction: what it moved is known to have happened.
type Witness struct {
	Order *ramp.Order
	Hash  common.Hash
	Block uint64
}

// WitnessOf returns an order as a witness if the receipt of its transaction shows that something
// moved for its user, or else nil.
func WitnessOf(order *ramp.Order, receipt *ramp.Receipt) *Witness {
	block, err := receipt.BlockNumber.Uint64()
	token, user := parties(order)
	if err != nil || !movedFor(user, order.Direction, transfersOf(token, receipt.Logs)) {
		return nil
	}
	return &Witness{order, common.HexToHash(order.TxHash), block}
}

// filter returns the filter that lists the witness.
func (w *Witness) filter() ramp.LogFilter {
	token, user := parties(w.Order)
	at := ramp.AtBlock(w.Block)
	return ramp.LogFilter{FromBlock: at, ToBlock: at, Addresses: []common.Address{token},
		Topics: movesOf(w.Order.Direction, user)}
}

// in reports whether a list has an event of the witness.
func (w *Witness) in(logs []ramp.Log) bool {
	return slices.ContainsFunc(logs, func(l ramp.Log) bool {
		return l.TransactionHash == w.Hash && !l.Removed
	})
}

// unlisted says that a node does not list the witness.
func (w *Witness) unlisted() string {
	return fmt.Sprintf("the node shows transaction %s of order %s in block %d, and lists none of its "+
		"events: its index is broken, pruned or not built yet", w.Hash, w.Order.UUID, w.Block)
}

// movesOf returns the topics of transfers to the users of mints, or from those of burns.
func movesOf(d ramp.Direction, accounts ...common.Address) [][]common.Hash {
	var are []common.Hash
	for _, account := range accounts {
		are = append(are, common.BytesToHash(account[:]))
	}
	if d == ramp.Burn {
		return [][]common.Hash{{TransferTopic}, are}
	}
	return [][]common.Hash{{TransferTopic}, nil, are}
}
