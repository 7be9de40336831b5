package support

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Report is an order, and the transactions that may be its own.
type Report struct {
	Order ramp.Order // as it is stored

	// Candidates are the transactions in the blocks from FirstBlock to LastBlock that
	// moved the order's token from or to the user, that the user sent, or that the
	// ramp's accounts sent to its contracts and that failed; best first. The blocks
	// after those, up to NewestBlock, were not read. All are zero without a chain.
	Candidates                         []Candidate
	FirstBlock, LastBlock, NewestBlock uint64
}

// Candidate is a transaction that may be the order's own.
type Candidate struct {
	Hash     common.Hash   // of the transaction
	Block    uint64        // number of its block
	Time     time.Time     // of its block
	Evidence ramp.Evidence // who sent and paid it, where it went, and what it moved

	// Transfers are the transfers of the order's token in the transaction, of anybody.
	Transfers []ramp.Transfer

	// Unproven is what Proof misses, or nil if the transaction proves the end of the
	// order.
	Unproven error

	// Signed reports whether the input holds a signature of the order's digest by one
	// of the validators. It is a hint, not proof: anybody can put one there.
	Signed bool

	// EndedOther is another order that has ended by the transaction, if the store can
	// tell.
	EndedOther *uuid.UUID
}

// search fills in the candidates of a report.
func (o *Orders) search(ctx context.Context, report *Report) error {
	chain, order := o.config.Chain, &report.Order
	newest, err := chain.BlockNumber(ctx)
	if err != nil {
		return err
	}
	report.NewestBlock = newest
	if !common.IsHexAddress(order.UserAddress) {
		return invalid("user_address", "must be 40 hex digits")
	}
	if report.FirstBlock, err = o.lastBefore(ctx, order.AcceptedAt.Add(-o.config.Before), newest); err != nil {
		return err
	}
	if report.LastBlock, err = o.lastBefore(ctx, order.AcceptedAt.Add(o.config.After), newest); err != nil {
		return err
	}
	report.LastBlock = max(report.FirstBlock, report.LastBlock)
	moved, err := o.moves(ctx, order, report.FirstBlock, report.LastBlock)
	if err != nil {
		return err
	}
	found, err := o.transactions(ctx, order, moved, report.FirstBlock, report.LastBlock)
	if err != nil {
		return err
	}
	proof := o.proof(ctx, order)
	for i := range found {
		candidate, err := o.judge(ctx, order, proof, &found[i], moved)
		if err != nil {
			return err
		}
		if candidate != nil {
			report.Candidates = append(report.Candidates, *candidate)
		}
	}
	slices.SortStableFunc(report.Candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.Block, b.Block))
	})
	return nil
}

// rank is how well a candidate fits.
func (c *Candidate) rank() (n int) {
	for i, fits := range []bool{c.Signed, c.Unproven == nil, c.EndedOther == nil} { // the last weighs most
		if fits {
			n += 1 << i
		}
	}
	return n
}

// sent is a transaction and its block.
type sent struct {
	ramp.Transaction
	time time.Time
}

// judge returns what is known of a transaction, or nil if it cannot be the order's own.
func (o *Orders) judge(ctx context.Context, order *ramp.Order, proof *ramp.Proof, t *sent, moved map[common.Hash]bool) (*Candidate, error) {
	receipt, err := o.config.Chain.Receipt(ctx, t.Hash)
	if err != nil {
		return nil, err
	}
	user := common.HexToAddress(order.UserAddress)
	if receipt.Succeeded() && !moved[t.Hash] && t.From != user {
		return nil, nil // an order of somebody else
	}
	c := &Candidate{Hash: t.Hash, Time: t.time, Signed: signedBy(o.config.Validators, order.Digest, t.Input)}
	c.Block, _ = t.BlockNumber.Uint64()
	c.Evidence, c.Unproven = proof.Check(order, &t.Transaction, receipt)
	tokens := tokensOf(order)
	for _, transfer := range receipt.Transfers() {
		if slices.Contains(tokens, transfer.Token) {
			c.Transfers = append(c.Transfers, transfer)
		}
	}
	c.EndedOther, err = o.endedOther(ctx, order.UUID, t.Hash)
	return c, err
}

// transactions reads the blocks for transactions that may be the order's own.
func (o *Orders) transactions(ctx context.Context, order *ramp.Order, moved map[common.Hash]bool, first, last uint64) (found []sent, err error) {
	const maxBlocks = 100 // per batch
	user, proof := common.HexToAddress(order.UserAddress), o.config.Proof
	ofRamp := func(t *ramp.Transaction) bool {
		return (slices.Contains(proof.Payers, t.From) || slices.Contains(proof.Payers, t.FeePayer)) &&
			(len(proof.Contracts) == 0 || t.To != nil && slices.Contains(proof.Contracts, *t.To))
	}
	for from := first; from <= last; from += maxBlocks {
		blocks := make([]ramp.Block, min(maxBlocks, last-from+1))
		calls := make([]ramp.BatchCall, len(blocks))
		for i := range blocks {
			calls[i] = ramp.BatchCall{Method: "eth_getBlockByNumber", Params: []any{ramp.AtBlock(from + uint64(i)), true}, Into: &blocks[i]}
		}
		if err := o.config.Chain.Batch(ctx, calls); err != nil {
			return nil, err
		}
		for i := range blocks {
			if calls[i].Err != nil {
				return nil, calls[i].Err
			}
			for _, t := range blocks[i].Transactions {
				if t.From == user || moved[t.Hash] || ofRamp(&t) {
					found = append(found, sent{t, timeOf(&blocks[i])})
				}
			}
		}
	}
	return found, nil
}

// moves returns the transactions that transferred one of the order's tokens from or to
// the user.
func (o *Orders) moves(ctx context.Context, order *ramp.Order, first, last uint64) (map[common.Hash]bool, error) {
	moved := map[common.Hash]bool{}
	tokens, user := tokensOf(order), []common.Hash{common.BytesToHash(common.HexToAddress(order.UserAddress).Bytes())}
	if len(tokens) == 0 {
		return moved, nil
	}
	for _, topics := range [][][]common.Hash{{nil, user}, {nil, nil, user}} { // from, and then to the user
		for log, err := range o.config.Chain.LogsBetween(ctx, ramp.LogFilter{Addresses: tokens, Topics: topics}, first, last) {
			if err != nil {
				return nil, err
			}
			if _, ok := log.Transfer(); ok {
				moved[log.TransactionHash] = true
			}
		}
	}
	return moved, nil
}

// lastBefore returns the number of the last block before a time. A block that the node
// no longer has counts as earlier.
func (o *Orders) lastBefore(ctx context.Context, at time.Time, newest uint64) (uint64, error) {
	var failed error
	after := sort.Search(int(newest)+1, func(n int) bool { // the first block that is not before at
		if failed != nil {
			return true
		}
		block, err := o.config.Chain.BlockByNumber(ctx, ramp.AtBlock(uint64(n)), false)
		if errors.Is(err, ramp.ErrNotFound) {
			return false
		}
		if err != nil {
			failed = err
			return true
		}
		return !timeOf(block).Before(at)
	})
	return uint64(max(after, 1) - 1), failed
}

// tokensOf returns the token contracts of an order.
func tokensOf(order *ramp.Order) []common.Address {
	side := order.Intent.To
	if order.Direction == ramp.Burn {
		side = order.Intent.From
	}
	contracts := map[common.Address]bool{}
	for _, token := range side {
		if common.IsHexAddress(token.ID) {
			contracts[common.HexToAddress(token.ID)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(contracts), func(a, b common.Address) int { return a.Cmp(b) })
}

// timeOf returns the time of a block.
func timeOf(b *ramp.Block) time.Time {
	seconds, err := b.Timestamp.Uint64()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(min(seconds, 1<<40)), 0).UTC()
}

// MarshalJSON writes the report for people and their tools: amounts and units as
// decimal strings, and times in RFC 3339.
func (r *Report) MarshalJSON() ([]byte, error) {
	type amount struct {
		ID     string `json:"id"`
		Amount string `json:"amount"`
	}
	type transfer struct {
		Token   common.Address `json:"token"`
		From    common.Address `json:"from"`
		To      common.Address `json:"to"`
		Units   string         `json:"units,omitempty"`
		TokenID string         `json:"token_id,omitempty"`
	}
	type candidate struct {
		Hash       common.Hash     `json:"hash"`
		Block      uint64          `json:"block"`
		Time       time.Time       `json:"time"`
		From       common.Address  `json:"from"`
		FeePayer   common.Address  `json:"fee_payer,omitzero"`
		To         *common.Address `json:"to"`
		Succeeded  bool            `json:"succeeded"`
		Transfers  []transfer      `json:"transfers"`
		Signed     bool            `json:"signed"`
		Proven     bool            `json:"proven"`
		Missing    string          `json:"missing,omitempty"`
		EndedOther *uuid.UUID      `json:"ended_other,omitempty"`
	}
	o := &r.Order
	shown := struct {
		UUID        uuid.UUID       `json:"uuid"`
		State       ramp.OrderState `json:"state"`
		Direction   string          `json:"direction"`
		Assets      []amount        `json:"assets"`
		SessionID   string          `json:"session_id"`
		UserAddress string          `json:"user_address"`
		ProjectID   string          `json:"project_id"`
		TxHash      string          `json:"tx_hash,omitempty"`
		Reason      string          `json:"reason,omitempty"`
		AcceptedAt  time.Time       `json:"accepted_at"`
		FinishedAt  time.Time       `json:"finished_at,omitzero"`
		Candidates  []candidate     `json:"candidates"`
		FirstBlock  uint64          `json:"first_block,omitempty"`
		LastBlock   uint64          `json:"last_block,omitempty"`
		NewestBlock uint64          `json:"newest_block,omitempty"`
	}{o.UUID, o.State, string(o.Direction), []amount{}, o.SessionID, o.UserAddress, o.ProjectID, o.TxHash, o.Reason,
		o.AcceptedAt, o.FinishedAt, []candidate{}, r.FirstBlock, r.LastBlock, r.NewestBlock}
	for _, a := range o.Assets {
		shown.Assets = append(shown.Assets, amount{a.ID, a.Amount.String()})
	}
	for _, c := range r.Candidates {
		s := candidate{Hash: c.Hash, Block: c.Block, Time: c.Time, From: c.Evidence.From, FeePayer: c.Evidence.FeePayer, To: c.Evidence.To,
			Succeeded: c.Evidence.Succeeded, Transfers: []transfer{}, Signed: c.Signed, Proven: c.Unproven == nil, EndedOther: c.EndedOther}
		if c.Unproven != nil {
			s.Missing = c.Unproven.Error()
		}
		for _, t := range c.Transfers {
			moved := transfer{Token: t.Token, From: t.From, To: t.To}
			if t.Value != nil {
				moved.Units = t.Value.String()
			}
			if t.TokenID != nil {
				moved.TokenID = t.TokenID.String()
			}
			s.Transfers = append(s.Transfers, moved)
		}
		shown.Candidates = append(shown.Candidates, s)
	}
	b, err := json.Marshal(shown)
	if err != nil {
		return nil, fmt.Errorf("ramp: report: %w", err)
	}
	return b, nil
}
