package evidence

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// Search says which events to look for.
type Search struct {
	Direction ramp.Direction   // by which the account gained tokens, or lost some
	Tokens    []common.Address // their contracts
	Account   common.Address

	First, Last uint64 // blocks

	// Witnesses are what a node must list: that it lists nothing else counts only then.
	Witnesses []*Witness
}

// Moves are the events that a [Search] found.
type Moves struct {
	Logs []ramp.Log // one for each transfer of more than nothing

	// Of the newest block that each request knew: another node behind the same address may
	// list less than the one before has seen.
	LastBlock uint64
	LastTime  time.Time

	Unlisted string // why an empty list says nothing, if a witness is not listed
}

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

// FindMoves makes a search. The queries that list what it looks for also list the witnesses of its
// direction and blocks. The others are asked for beside them, in the same requests.
func FindMoves(ctx context.Context, chain *ramp.RPC, s Search) (*Moves, error) {
	tokens, accounts := slices.Clone(s.Tokens), []common.Address{s.Account}
	var beside []*Witness
	for _, w := range s.Witnesses {
		token, user := parties(w.Order)
		if w.Order.Direction == s.Direction && s.First <= w.Block && w.Block <= s.Last {
			tokens, accounts = append(tokens, token), append(accounts, user)
		} else {
			beside = append(beside, w)
		}
	}
	slices.SortFunc(tokens, common.Address.Cmp)
	filter := ramp.LogFilter{Addresses: slices.Compact(tokens), Topics: movesOf(s.Direction, accounts...)}
	m, listed := &Moves{LastBlock: math.MaxUint64}, map[common.Hash]bool{}
	ask := func(f ramp.LogFilter) ([]ramp.Log, error) { return m.ask(ctx, chain, f, beside) }
	for l, err := range logsBy(ctx, filter, s.First, s.Last, ask) {
		if err != nil {
			return nil, err
		}
		t, ok := l.Transfer()
		listed[l.TransactionHash] = listed[l.TransactionHash] || ok
		ok = ok && !IsDust(&t) && accountOf(s.Direction, &t) == s.Account
		if ok && slices.Contains(s.Tokens, t.Token) {
			m.Logs = append(m.Logs, l)
		}
	}
	for _, w := range s.Witnesses {
		if !listed[w.Hash] && !slices.Contains(beside, w) {
			m.unlisted(w)
		}
	}
	return m, nil
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

// ask asks for logs and, in the same request, for the newest block and for some witnesses.
func (m *Moves) ask(
	ctx context.Context, chain *ramp.RPC, f ramp.LogFilter, witnesses []*Witness,
) (logs []ramp.Log, err error) {
	newest, known := new(ramp.Block), make([][]ramp.Log, len(witnesses))
	calls := []ramp.BatchCall{Call(&logs, "eth_getLogs", f),
		Call(newest, "eth_getBlockByNumber", ramp.Latest, false)}
	for n, w := range witnesses {
		calls = append(calls, Call(&known[n], "eth_getLogs", w.filter()))
	}
	if _, err := Ask(ctx, chain, calls...); err != nil {
		return nil, err
	}
	head, err := newest.Number.Uint64()
	if err != nil {
		return nil, err
	}
	if head < m.LastBlock {
		m.LastBlock, m.LastTime = head, TimeOf(newest.Timestamp)
	}
	for n, w := range witnesses {
		if !slices.ContainsFunc(known[n], func(l ramp.Log) bool {
			return l.TransactionHash == w.Hash && !l.Removed
		}) {
			m.unlisted(w)
		}
	}
	return logs, nil
}

// unlisted notes that the node does not list a witness.
func (m *Moves) unlisted(w *Witness) {
	m.Unlisted = fmt.Sprintf(
		"the node shows transaction %s of order %s in block %d, and lists none of its events: "+
			"its index is broken, pruned or not built yet", w.Hash, w.Order.UUID, w.Block)
}
