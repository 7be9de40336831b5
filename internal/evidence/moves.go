package evidence

import (
	"context"
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

	LastTime time.Time // see Logs
	Unlisted string
}

// FindMoves makes a search. Its lists must have the witnesses of its direction and blocks. The others
// are asked for beside them, in the same requests.
func FindMoves(ctx context.Context, chain *ramp.RPC, s Search) (*Moves, error) {
	tokens, accounts := slices.Clone(s.Tokens), []common.Address{s.Account}
	var within, beside []*Witness
	for _, w := range s.Witnesses {
		token, user := parties(w.Order)
		if w.Order.Direction == s.Direction && s.First <= w.Block && w.Block <= s.Last {
			within, tokens, accounts = append(within, w), append(tokens, token), append(accounts, user)
		} else {
			beside = append(beside, w)
		}
	}
	slices.SortFunc(tokens, common.Address.Cmp)
	logs := &Logs{Chain: chain, Witnesses: beside,
		Filter: ramp.LogFilter{Addresses: slices.Compact(tokens), Topics: movesOf(s.Direction, accounts...)}}
	m, listed := new(Moves), map[common.Hash]bool{}
	for l, err := range logs.Between(ctx, s.First, s.Last) {
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
	m.LastTime, m.Unlisted = logs.LastTime, logs.Unlisted
	for _, w := range within {
		if !listed[w.Hash] {
			m.Unlisted = w.unlisted()
		}
	}
	return m, nil
}
