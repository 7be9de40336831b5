package support

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// found is a transaction that may be an order's own, as the node shows it.
type found struct {
	logs    []ramp.Log // of what it moved for the user
	sent    ramp.Transaction
	receipt ramp.Receipt
	block   ramp.Block
	unread  error // why the node does not return it, or nil
}

// addCandidates makes candidates of transactions, best first.
func (o *Orders) addCandidates(ctx context.Context, report *Report, transactions []found) error {
	order := &report.Order
	others, err := o.othersOf(ctx, order)
	if err != nil {
		return err
	}
	this := o.tradeOf(order)
	far := map[common.Hash]*big.Int{} // from the amount of the order
	for i := range transactions {
		tx := &transactions[i]
		if tx.unread != nil {
			c := tx.hidden()
			far[c.Hash], report.Candidates = new(big.Int), append(report.Candidates, c)
			continue
		}
		c, err := o.candidateOf(ctx, order, &tx.sent, &tx.receipt)
		if err != nil {
			return err
		}
		c.Time = evidence.TimeOf(tx.block.Timestamp)
		far[c.Hash] = new(big.Int)
		if moved := movedBy(&c.Evidence); moved != nil && this.Units != nil {
			far[c.Hash].Sub(this.Units, moved)
			c.OtherAmount = !this.Fits(moved, len(c.Evidence.TokenIDs) > 0)
		}
		isTimely := func(order *ramp.Order) bool { return !c.Time.Before(order.AcceptedAt.Add(-skew)) }
		explained := false // by an older order that waits
		for _, other := range others {
			covers := !c.Batch || o.prover.Covers(&other, c.ended, &tx.receipt) == nil &&
				o.prover.Covers(&other, append(slices.Clip(c.ended), order), &tx.receipt) != nil
			_, unproven := o.prover.Check(&other, &tx.sent, &tx.receipt)
			if unproven == nil && covers && mayBeOf(&other, c.Hash, c.Time) {
				c.AlsoProves = append(c.AlsoProves, other.UUID)
				explained = explained || isTimely(&other)
			}
		}
		if !isTimely(order) {
			if c.Objection == "" || explained {
				continue
			}
			age := order.AcceptedAt.Sub(c.Time).Round(time.Minute)
			c.Objection += fmt.Sprintf(", and is %s older than the order: %s", age, evidence.ClocksDiffer)
		}
		if c.Unproven == "" && c.EndedOther == nil {
			if c.OtherDeleted, err = o.endedDeleted(ctx, order.Direction, c.Time); err != nil {
				return err
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

// hidden returns the candidate that the node lists, and does not return.
func (tx *found) hidden() Candidate {
	const problem = "the node lists its events, and does not return it"
	c := Candidate{Hash: tx.logs[0].TransactionHash, Time: evidence.TimeOf(tx.logs[0].BlockTimestamp),
		Hidden: tx.unread.Error(), Unproven: problem + ": " + tx.unread.Error(), Objection: problem}
	c.Block, _ = tx.logs[0].BlockNumber.Uint64()
	for i := range tx.logs {
		if t, ok := tx.logs[i].Transfer(); ok {
			c.Transfers = append(c.Transfers, t)
		}
	}
	return c
}

// candidateOf returns what is known of a transaction.
func (o *Orders) candidateOf(ctx context.Context, order *ramp.Order, sent *ramp.Transaction,
	receipt *ramp.Receipt) (*Candidate, error) {
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
	if err != nil {
		return nil, err
	}
	claimed, err := o.claimed(ctx, sent.Hash)
	if err != nil {
		return nil, err
	}
	if other == nil && len(claimed) > 0 && !slices.Contains(claimed, order.UUID) {
		c.EndedOther, c.Claimed = &claimed[0], true
	}
	if other != nil {
		c.EndedOther = &other.UUID
		var added []uuid.UUID
		if o.config.Books != nil {
			if added, err = o.config.Books.BatchOf(ctx, sent.Hash); err != nil {
				return nil, err
			}
		}
		ended, whole, err := o.batchOf(ctx, order, other, slices.Concat(added, claimed))
		if err != nil {
			return nil, err
		}
		c.ended = ended
		c.Batch = order.State == ramp.OrderAccepted && other.State == ramp.OrderSucceeded && whole &&
			o.prover.Covers(order, c.ended, receipt) == nil
		if o.endedRightly(order, c.ended, sent, receipt) {
			c.Objection = objectionToOther(order, other)
			if len(c.ended) == 1 && areEqual(order, other) {
				until := other.AcceptedAt.Add(maxDelay)
				if c.Equal = !until.After(o.config.Now()); !c.Equal && other.Reason != "" {
					c.Objection = fmt.Sprintf("it has ended order %s by hand, which is equal to this one, "+
						"and whose own transaction may come until %s", other.UUID, until.Format(time.RFC3339))
				}
			}
		}
	}
	return c, nil
}

// objection returns why a transaction may be the order's own, whatever Proof misses.
func (c *Candidate) objection(order *ramp.Order, proof *evidence.Prover) string {
	ofRamp := func(a common.Address) bool {
		return a == common.Address{} ||
			slices.Contains(proof.Contracts, a)
	}
	moves := func(may func(t *ramp.Transfer) bool) bool {
		return slices.ContainsFunc(c.Transfers, func(t ramp.Transfer) bool {
			return !evidence.IsDust(&t) && may(&t)
		})
	}
	user := common.HexToAddress(order.UserAddress)
	switch e := &c.Evidence; {
	case c.Unproven == "":
		return "it proves that the order has ended so"
	case slices.Contains(proof.Payers, e.From), slices.Contains(proof.Payers, e.FeePayer),
		e.To != nil && slices.Contains(proof.Contracts, *e.To) &&
			!slices.Contains(evidence.ContractsOf(order), *e.To): // where every transfer goes
		return "the ramp sent it, paid for it or received it"
	case moves(func(t *ramp.Transfer) bool { return ofRamp(t.From) || ofRamp(t.To) }):
		return "it moved the token from or to the zero address or a contract of the ramp"
	case len(proof.Payers) == 0 && moves(func(t *ramp.Transfer) bool {
		return (order.Direction == ramp.Mint && t.To == user) ||
			(order.Direction == ramp.Burn && t.From == user)
	}):
		return "it moved the token as the order does, and without Proof.Payers nobody knows whether it is " +
			"the ramp's"
	default:
		return ""
	}
}

// objectionToOther returns why a transaction may be an order's own although it proves the end of another one:
// whoever has the HMAC key can name the wallet of another player, and be paid for what that player burned.
func objectionToOther(order, other *ramp.Order) string {
	if other.SessionID == order.SessionID || !strings.EqualFold(other.UserAddress, order.UserAddress) {
		return ""
	}
	return fmt.Sprintf("it has ended order %s, which names the same wallet and is of another session",
		other.UUID)
}

// areEqual reports whether two orders are for the same assets and tokens, of the same session and wallet: the
// player is right if either ends as the other should have ended.
func areEqual(a, b *ramp.Order) bool {
	return a.SessionID == b.SessionID && a.ProjectID == b.ProjectID && a.Network == b.Network &&
		strings.EqualFold(a.UserAddress, b.UserAddress) && a.Direction == b.Direction &&
		reflect.DeepEqual([]any{a.Assets, a.Intent.From, a.Intent.To},
			[]any{b.Assets, b.Intent.From, b.Intent.To})
}

// endedRightly reports whether a transaction is that of another order: it proves its end, moved nothing more
// for the user of this order, and its amount does not fit this order better.
func (o *Orders) endedRightly(
	order *ramp.Order, ended []*ramp.Order, sent *ramp.Transaction, receipt *ramp.Receipt,
) bool {
	other := ended[0]
	if other.State != ramp.OrderSucceeded {
		return false
	}
	e, err := o.prover.Check(other, sent, receipt)
	if err != nil {
		return false
	}
	if rest, err := o.prover.Unexplained(order, receipt, ended...); err != nil || rest != nil {
		return false
	}
	if len(ended) > 1 { // and all of it is explained
		return true
	}
	moved, pieces := movedBy(&e), len(e.TokenIDs) > 0
	this, that := o.tradeOf(order), o.tradeOf(other)
	same := this.User == that.User && this.Token == that.Token && this.Direction == that.Direction
	return that.Fits(moved, pieces) && !(same && this.Fits(moved, pieces) && this.Units.Cmp(that.Units) < 0)
}

// tradeOf returns what an order trades, in pieces if nobody knows the decimals of its token.
func (o *Orders) tradeOf(order *ramp.Order) *catalog.Order {
	offers := make([]catalog.Offer, len(o.config.Products))
	for i, offer := range o.config.Products {
		offers[i] = catalog.Offer(offer)
	}
	game := catalog.New(nil, offers)
	for _, token := range evidence.ContractsOf(order) {
		game.Decimals[token], _ = o.prover.DecimalsOf(token)
	}
	return game.Order(*order)
}

// movedBy returns how much of the order's token moved, in units or pieces, or nil.
func movedBy(e *ramp.Evidence) *big.Int {
	if len(e.TokenIDs) > 0 {
		return big.NewInt(int64(len(e.TokenIDs)))
	}
	return e.Units
}

// othersOf returns the other orders of an order's user to which a transaction may belong, if the store can
// list them. Those that have succeeded have theirs.
func (o *Orders) othersOf(ctx context.Context, order *ramp.Order) ([]ramp.Order, error) {
	lister, ok := o.config.Store.(rampbooks.OrderLister)
	if !ok {
		return nil, nil
	}
	all, err := o.scope.All(orderlist.Of(ctx, lister.UserOrders, order.UserAddress))
	return slices.DeleteFunc(all, func(other ramp.Order) bool {
		return other.UUID == order.UUID || other.State == ramp.OrderSucceeded || orderlist.IsDamaged(&other)
	}), err
}

// mayBeOf reports whether a transaction at a time may be that of an order of othersOf: it waits, or has ended
// without this transaction. The wallet may then have sent another one with the same signature, for as long as
// results come.
func mayBeOf(other *ramp.Order, hash common.Hash, at time.Time) bool {
	return other.State == ramp.OrderAccepted ||
		common.HexToHash(other.TxHash) != hash && at.Before(other.AcceptedAt.Add(maxDelay)) &&
			!at.Before(other.AcceptedAt.Add(-skew))
}
