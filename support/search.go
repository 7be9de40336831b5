package support

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Report is an order, and the transactions that may be its own. Its JSON has units as
// numbers of any size.
type Report struct {
	Order ramp.Order `json:"order"` // as it is stored

	// Candidates are the transactions in the blocks from FirstBlock to LastBlock that moved
	// the order's token from or to the user, best first. The blocks begin 15 minutes before
	// the order was accepted, because clocks differ, and end with the node's newest one,
	// which is of LastTime. A transaction that failed moved nothing, and is not among them.
	Candidates []Candidate `json:"candidates"`
	FirstBlock uint64      `json:"first_block,omitempty"`
	LastBlock  uint64      `json:"last_block,omitempty"`
	LastTime   time.Time   `json:"last_time,omitzero"`

	// Unread is why the chain was not read, or empty. The candidates are then unknown.
	Unread string `json:"unread,omitempty"`
}

// Candidate is a transaction that may be the order's own.
type Candidate struct {
	Hash     common.Hash   `json:"hash"`     // of the transaction
	Block    uint64        `json:"block"`    // number of its block
	Time     time.Time     `json:"time"`     // of its block
	Evidence ramp.Evidence `json:"evidence"` // who sent and paid it, where it went, and what it moved

	// Transfers are the transfers of the order's token in the transaction, of anybody.
	Transfers []ramp.Transfer `json:"transfers"`

	// Unproven is what Proof misses, or empty if the transaction proves the end of the
	// order.
	Unproven string `json:"unproven,omitempty"`

	// OtherAmount reports whether it moved another amount than the order is about, less the fee
	// of a mint, as far as that is known.
	OtherAmount bool `json:"other_amount,omitempty"`

	// AlsoProves are the user's other orders that wait and whose end it proves, too, if the
	// store is a [Ledger].
	AlsoProves []uuid.UUID `json:"also_proves,omitempty"`

	// EndedOther is another order that has ended by the transaction, if the store is a
	// [Ledger].
	EndedOther *uuid.UUID `json:"ended_other,omitempty"`

	// Objection is why [Orders.Abandon] refuses because of the transaction, or empty if it
	// does not.
	Objection string `json:"objection,omitempty"`
}

// Show returns an order and the transactions that may be its own, best first. It changes
// nothing. If there is no such order, the error wraps [ramp.ErrOrderUnknown]. If the
// chain cannot be read, Show returns the order together with the error.
func (o *Orders) Show(ctx context.Context, id uuid.UUID) (*Report, error) {
	order, err := o.order(ctx, id)
	if err != nil {
		return nil, err
	}
	report := &Report{Order: order}
	if o.chain == nil {
		report.Unread = "no node is configured"
	} else if err := o.search(ctx, report); err != nil {
		return &Report{Order: order, Unread: err.Error()}, fmt.Errorf("ramp: order %s: read the chain: %w", id, err)
	}
	return report, nil
}

// maxCandidates is how many transactions are read for one order.
const maxCandidates = 10_000

// search fills in the candidates of a report.
func (o *Orders) search(ctx context.Context, report *Report) error {
	order := &report.Order
	tokens := evidence.ContractsOf(order)
	if !common.IsHexAddress(order.UserAddress) || len(tokens) == 0 {
		return invalid("order", "has no user address or no token contract, so no transaction can be its own")
	}
	newest, err := o.chain.BlockByNumber(ctx, "latest", false)
	if err != nil {
		return err
	}
	report.LastBlock, _ = newest.Number.Uint64()
	report.LastTime = timeOf(newest.Timestamp)
	if report.FirstBlock, err = o.lastBefore(ctx, order.AcceptedAt.Add(-skew), report.LastBlock); err != nil {
		return err
	}
	logs, err := o.moves(ctx, common.HexToAddress(order.UserAddress), tokens, report.FirstBlock, report.LastBlock)
	if err != nil {
		return err
	}
	found := make([]struct {
		sent    ramp.Transaction
		receipt ramp.Receipt
		block   ramp.Block
	}, len(logs))
	var after ramp.Block // of the node that read the logs, which may be the fallback, and leave out what it has not seen
	calls := []ramp.BatchCall{ask(&after, "eth_getBlockByNumber", "latest", false)}
	for i, log := range logs {
		calls = append(calls, ask(&found[i].sent, "eth_getTransactionByHash", log.TransactionHash),
			ask(&found[i].receipt, "eth_getTransactionReceipt", log.TransactionHash),
			ask(&found[i].block, "eth_getBlockByNumber", log.BlockNumber, false))
	}
	if err := o.batch(ctx, calls); err != nil {
		return err
	}
	report.LastTime = slices.MinFunc([]time.Time{report.LastTime, timeOf(after.Timestamp)}, time.Time.Compare)
	o.prover.LearnDecimals(ctx, evidence.ContractsOf(order)...)
	others, err := o.waitingOf(ctx, order)
	if err != nil {
		return err
	}
	this := o.traded(order)
	far := map[common.Hash]*big.Int{} // from the amount of the order
	for i := range found {
		c, err := o.judge(ctx, order, &found[i].sent, &found[i].receipt)
		if err != nil {
			return err
		}
		c.Time = timeOf(found[i].block.Timestamp)
		far[c.Hash] = new(big.Int)
		if moved := movedBy(&c.Evidence); moved != nil && this.units != nil {
			far[c.Hash].Sub(this.units, moved)
			c.OtherAmount = !this.fits(moved)
		}
		for _, other := range others {
			if _, unproven := o.prover.Check(&other, &found[i].sent, &found[i].receipt); unproven == nil {
				c.AlsoProves = append(c.AlsoProves, other.UUID)
			}
		}
		report.Candidates = append(report.Candidates, *c)
	}
	slices.SortStableFunc(report.Candidates, func(a, b Candidate) int { // those with an objection first
		order := cmp.Compare(min(1, len(b.Objection)), min(1, len(a.Objection)))
		return cmp.Or(order, cmp.Compare(min(1, len(a.Unproven)), min(1, len(b.Unproven))),
			far[a.Hash].CmpAbs(far[b.Hash]), cmp.Compare(a.Block, b.Block))
	})
	return nil
}

// judge returns what is known of a transaction.
func (o *Orders) judge(ctx context.Context, order *ramp.Order, sent *ramp.Transaction, receipt *ramp.Receipt) (*Candidate, error) {
	c := &Candidate{Hash: sent.Hash}
	c.Block, _ = receipt.BlockNumber.Uint64()
	var unproven error
	if c.Evidence, unproven = o.prover.Check(order, sent, receipt); unproven != nil {
		c.Unproven = unproven.Error()
	}
	tokens := evidence.ContractsOf(order)
	for _, transfer := range receipt.Transfers() {
		if slices.Contains(tokens, transfer.Token) {
			c.Transfers = append(c.Transfers, transfer)
		}
	}
	c.Objection = c.objection(order, o.prover)
	other, err := o.endedOther(ctx, order.UUID, sent.Hash)
	if other != nil {
		c.EndedOther = &other.UUID
		if o.rightly(order, other, sent, receipt) {
			c.Objection = ""
		}
	}
	return c, err
}

// objection returns why a transaction may be the order's own, whatever Proof misses.
func (c *Candidate) objection(order *ramp.Order, proof *evidence.Prover) string {
	ofRamp := func(a common.Address) bool { return a == common.Address{} || slices.Contains(proof.Contracts, a) }
	moves := func(may func(t *ramp.Transfer) bool) bool {
		return slices.ContainsFunc(c.Transfers, func(t ramp.Transfer) bool { return !isDust(&t) && may(&t) })
	}
	user := common.HexToAddress(order.UserAddress)
	switch e := &c.Evidence; {
	case c.Unproven == "":
		return "it proves that the order has ended so"
	case slices.Contains(proof.Payers, e.From), slices.Contains(proof.Payers, e.FeePayer),
		e.To != nil && slices.Contains(proof.Contracts, *e.To) && !slices.Contains(evidence.ContractsOf(order), *e.To): // where every transfer goes
		return "the ramp sent it, paid for it or received it"
	case moves(func(t *ramp.Transfer) bool { return ofRamp(t.From) || ofRamp(t.To) }):
		return "it moved the token from or to the zero address or a contract of the ramp"
	case len(proof.Payers) == 0 && moves(func(t *ramp.Transfer) bool {
		return (order.Direction == ramp.Mint && t.To == user) || (order.Direction == ramp.Burn && t.From == user)
	}):
		return "it moved the token as the order does, and without Proof.Payers nobody knows whether it is the ramp's"
	default:
		return ""
	}
}

// rightly reports whether a transaction is that of another order: it proves its end, and
// its amount does not fit this order better.
func (o *Orders) rightly(order, other *ramp.Order, sent *ramp.Transaction, receipt *ramp.Receipt) bool {
	if other.State != ramp.OrderSucceeded {
		return false
	}
	e, err := o.prover.Check(other, sent, receipt)
	if err != nil {
		return false
	}
	moved, this, that := movedBy(&e), o.traded(order), o.traded(other)
	same := this.user == that.user && this.token == that.token && this.Direction == that.Direction
	return that.fits(moved) && !(same && this.fits(moved) && this.units.Cmp(that.units) < 0)
}

// traded returns what an order trades, in pieces if nobody knows the decimals of its token.
func (o *Orders) traded(order *ramp.Order) *traded {
	game := newAssets(&o.config)
	for _, token := range evidence.ContractsOf(order) {
		game.decimals[token], _ = o.prover.DecimalsOf(token)
	}
	return game.traded(*order)
}

// movedBy returns how much of the order's token moved, in units or pieces, or nil.
func movedBy(e *ramp.Evidence) *big.Int {
	if len(e.TokenIDs) > 0 {
		return big.NewInt(int64(len(e.TokenIDs)))
	}
	return e.Units
}

// waitingOf returns the other orders of an order's user that wait, if the store can list them.
func (o *Orders) waitingOf(ctx context.Context, order *ramp.Order) ([]ramp.Order, error) {
	ledger, ok := o.config.Store.(Ledger)
	if !ok {
		return nil, nil
	}
	all, err := o.all(of(ctx, ledger.UserOrders, order.UserAddress))
	return slices.DeleteFunc(all, func(other ramp.Order) bool {
		return other.UUID == order.UUID || other.State != ramp.OrderAccepted || isDamaged(&other)
	}), err
}

// moves returns a log of each transaction that transferred one of the tokens from or to the
// user.
func (o *Orders) moves(ctx context.Context, user common.Address, tokens []common.Address, first, last uint64) (logs []ramp.Log, err error) {
	found := map[common.Hash]bool{}
	is := []common.Hash{common.BytesToHash(user[:])}
	for _, topics := range [][][]common.Hash{{{transferTopic}, is}, {{transferTopic}, nil, is}} { // from, and then to the user
		for log, err := range evidence.Logs(ctx, o.chain, ramp.LogFilter{Addresses: tokens, Topics: topics}, first, last) {
			if err != nil {
				return nil, err
			}
			if t, ok := log.Transfer(); !ok || isDust(&t) || found[log.TransactionHash] {
				continue
			}
			if len(logs) == maxCandidates {
				return nil, fmt.Errorf("more than %d transactions moved the token for the user %s since the order: look at them in a block explorer", maxCandidates, user)
			}
			found[log.TransactionHash], logs = true, append(logs, log)
		}
	}
	return logs, nil
}
