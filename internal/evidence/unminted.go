package evidence

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// orderFinder is what rampproof.OrderFinder demands of a store.
type orderFinder interface {
	OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error)
	NewestSuccess(ctx context.Context, network ramp.Network) (ramp.Order, error)
}

// maxMints is how many transactions are read for one order.
const maxMints = 1000

// Unminted returns nil if the chain shows no mint that ended no order, so that an order whose
// transaction failed may be given back. Anybody who sees the call of the ramp in public can
// send it first, and then the ramp's own transaction fails. A mint that it finds, of at least
// a hundredth of the order, is an error that wraps [ErrNotProven]: dust, which anybody can
// send, must freeze nothing. A mint that ended another order explains as much as that order was
// about. witnessed is true if an empty list could be believed.
func (p *Prover) Unminted(
	ctx context.Context, finder orderFinder, order *ramp.Order, failed *ramp.Receipt,
) (witnessed bool, err error) {
	token, user := parties(order)
	search := Search{Direction: ramp.Mint, Tokens: []common.Address{token}, Account: user}
	if err := p.begin(ctx, finder, order, failed, &search); err != nil {
		return false, err
	}
	moves, err := FindMoves(ctx, p.Chain, search)
	switch {
	case err != nil:
		return false, err
	case moves.Unlisted != "":
		return false, fmt.Errorf("ramp: %s: use another node", moves.Unlisted)
	}
	least, err := p.hundredth(order)
	if err != nil {
		return false, err
	}
	minted, err := p.minted(ctx, token, atLeast(moves.Logs, least), least)
	if err != nil {
		return false, err
	}
	for _, m := range minted {
		other, err := finder.OrderByTransaction(ctx, m.hash)
		none := errors.Is(err, ramp.ErrOrderUnknown) || err == nil && other.UUID == order.UUID
		if err != nil && !none {
			return false, err
		}
		var ended []*ramp.Order
		which := "has ended no order"
		if none {
			if claimed, err := claimedBy(ctx, finder, order.UUID, m.hash); err != nil {
				return false, err
			} else if claimed != uuid.Nil {
				which = fmt.Sprintf("is claimed by order %s, which may be in another database", claimed)
			}
		}
		if !none {
			ended = []*ramp.Order{&other}
			which = fmt.Sprintf("has ended order %s, which explains less", other.UUID)
		}
		rest, err := p.Unexplained(order, m.receipt, ended...)
		if err != nil {
			return false, err
		}
		if rest != nil {
			return false,
				fmt.Errorf("%w: transaction %s minted %s units of the token %s for the user %s, and %s",
					ErrNotProven, m.hash, m.units, token, user, which)
		}
	}
	return len(search.Witnesses) > 0, nil
}

// claimedBy returns which other order has claimed a transaction, if the store has claims, or zero. How much
// it explains is not known here, so it only names where to look.
func claimedBy(
	ctx context.Context, store any, order uuid.UUID, transaction common.Hash,
) (other uuid.UUID, err error) {
	claims := orderlist.ClaimsOf(store)
	if claims == nil {
		return uuid.Nil, nil
	}
	claimed, err := claims.Claimed(ctx, transaction)
	if err != nil || len(claimed) == 0 || claimed[0] == order {
		return uuid.Nil, err
	}
	return claimed[0], nil
}

// Unexplained returns how much a transaction moved for the user of an order beyond what the orders of that
// user were about that have ended by it, or nil if this is less than a hundredth of the order. An order
// explains no more than it ordered: a thief with the HMAC key could otherwise end a tiny order with the mint
// of a large one.
func (p *Prover) Unexplained(
	order *ramp.Order, receipt *ramp.Receipt, ended ...*ramp.Order,
) (rest *big.Int, err error) {
	least, err := p.hundredth(order)
	if err != nil {
		return nil, err
	}
	token, user := parties(order)
	decimals, _ := p.DecimalsOf(token)
	transfers, rest := transfersOf(token, receipt.Logs), new(big.Int)
	for _, t := range transfers {
		account := t.To
		if order.Direction == ramp.Burn {
			account = t.From
		}
		if account == user && !IsDust(&t) {
			rest.Add(rest, unitsOf(&t))
		}
	}
	if issued := p.issued(transfers); order.Direction == ramp.Mint && rest.Cmp(issued) > 0 {
		rest = issued // the rest came from somebody else
	}
	for _, o := range ended {
		itsToken, itsUser := parties(o)
		if o.State != ramp.OrderSucceeded || o.Direction != order.Direction ||
			itsToken != token || itsUser != user {
			continue
		}
		if units, err := TokensOf(o)[0].Amount.Units(decimals); err == nil {
			rest.Sub(rest, units)
		}
	}
	if rest.Cmp(least) < 0 {
		return nil, nil
	}
	return rest, nil
}

// newestSuccess returns the order that ended last by a transaction that succeeded, or nil.
func newestSuccess(ctx context.Context, finder orderFinder, network ramp.Network) (*ramp.Order, error) {
	order, err := finder.NewestSuccess(ctx, network)
	if errors.Is(err, ramp.ErrOrderUnknown) {
		return nil, nil
	}
	return &order, err
}

// begin fills in the blocks and the witness of a search. The clock of the game may be ahead: then
// the order seems younger than the transaction that failed for it, so the block of that one counts.
func (p *Prover) begin(
	ctx context.Context, finder orderFinder, order *ramp.Order, failed *ramp.Receipt, s *Search,
) error {
	success, err := newestSuccess(ctx, finder, p.Network)
	if err != nil {
		return err
	}
	newest, block, known := new(ramp.Block), new(ramp.Block), new(ramp.Receipt)
	calls := []ramp.BatchCall{Call(newest, "eth_getBlockByNumber", ramp.Latest, false),
		Call(block, "eth_getBlockByNumber", failed.BlockNumber, false)}
	if success != nil {
		calls = append(calls, Call(known, "eth_getTransactionReceipt", common.HexToHash(success.TxHash)))
	}
	calls, err = Ask(ctx, p.Chain, calls...)
	switch {
	case err != nil:
		return err
	case calls[0].Err != nil:
		return calls[0].Err
	case calls[1].Err != nil:
		return fmt.Errorf("ramp: the node is behind: it does not know the block of the transaction: %w",
			calls[1].Err)
	case success != nil && calls[2].Err != nil:
		return fmt.Errorf("ramp: the node does not return transaction %s, by which order %s has ended: "+
			"it has pruned or not indexed it, a reorganization removed it, or its result was invented; "+
			"ask another node first: %w", success.TxHash, success.UUID, calls[2].Err)
	case success != nil:
		if w := WitnessOf(success, known); w != nil {
			s.Witnesses = []*Witness{w}
		}
	}
	since := order.AcceptedAt
	if made := TimeOf(block.Timestamp); made.Before(since) {
		since = made
	}
	if s.Last, err = newest.Number.Uint64(); err != nil {
		return err
	}
	s.First, err = BlockBefore(ctx, p.Chain, since.Add(-Skew), newest)
	return err
}

// Covers returns an error that wraps [ErrNotProven] unless a transaction moved enough for an order and for
// those that have ended by it before. One transaction can settle several orders, such as a wallet's batch of
// two burns. Without a known fee, it must have moved the whole amounts. What it moved for the user in the
// other direction counts against the order, unless an order of that direction has ended by it and explains
// that.
func (p *Prover) Covers(order *ramp.Order, ended []*ramp.Order, receipt *ramp.Receipt) error {
	token, user := parties(order)
	decimals, counted := p.DecimalsOf(token)
	e := p.Shown(order, new(ramp.Transaction), receipt)
	if !e.Succeeded { // it moved nothing, for nobody
		return nil
	}
	crossed, crossedUser := new(big.Int), new(big.Int)
	for _, t := range transfersOf(token, receipt.Logs) {
		from, to := t.From, t.To
		if order.Direction == ramp.Burn {
			from, to = to, from
		}
		if p.outside(from) && !p.outside(to) {
			crossed.Add(crossed, unitsOf(&t))
			if to == user {
				crossedUser.Add(crossedUser, unitsOf(&t))
			}
		}
	}
	moved, ofUser, ofAll := new(big.Int).Set(e.Units), new(big.Int), new(big.Int)
	for _, o := range append([]*ramp.Order{order}, ended...) {
		itsToken, itsUser := parties(o)
		if itsToken != token {
			continue
		}
		if o.Direction != order.Direction {
			if units, err := TokensOf(o)[0].Amount.Units(decimals); err == nil && itsUser == user {
				moved.Add(moved, units)
				moved = smaller(moved, crossedUser) // it moved less than that, if there was a fee
			}
			continue
		}
		least, err := p.least(o, decimals, len(e.TokenIDs) > 0)
		if err != nil {
			return err
		}
		if ofAll.Add(ofAll, least); itsUser == user {
			ofUser.Add(ofUser, least)
		}
	}
	if pieces := big.NewInt(int64(len(e.TokenIDs))); !counted {
		moved = smaller(moved, pieces)
	}
	if moved.Cmp(ofUser) < 0 || crossed.Cmp(ofAll) < 0 {
		return fmt.Errorf("ramp: order %s: %w: it moved %s units for the user, of %s for all users, "+
			"and the orders that it would have ended need %s, and %s",
			order.UUID, ErrNotProven, moved, crossed, ofUser, ofAll)
	}
	return nil
}

func smaller(a, b *big.Int) *big.Int {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}

// hundredth returns a hundredth of the units of a mint, or 1 if they are not known.
func (p *Prover) hundredth(order *ramp.Order) (*big.Int, error) {
	token, _ := parties(order)
	decimals, known := p.DecimalsOf(token)
	if !known {
		return common.Big1, nil
	}
	units, err := TokensOf(order)[0].Amount.Units(decimals)
	if err != nil {
		return nil, err
	}
	return atLeastOne(units.Div(units, big.NewInt(100))), nil
}

// atLeast returns the transactions whose events move that much or more.
func atLeast(logs []ramp.Log, least *big.Int) (hashes []common.Hash) {
	sums := map[common.Hash]*big.Int{}
	for _, l := range logs {
		t, _ := l.Transfer()
		if sums[l.TransactionHash] == nil {
			sums[l.TransactionHash] = new(big.Int)
			hashes = append(hashes, l.TransactionHash)
		}
		sums[l.TransactionHash].Add(sums[l.TransactionHash], unitsOf(&t))
	}
	enough := hashes[:0]
	for _, hash := range hashes {
		if sums[hash].Cmp(least) >= 0 {
			enough = append(enough, hash)
		}
	}
	return enough
}

// mint is a transaction by which tokens came from outside.
type mint struct {
	hash    common.Hash
	units   *big.Int
	receipt *ramp.Receipt
}

// minted returns which of some transactions brought at least that much from outside.
func (p *Prover) minted(
	ctx context.Context, token common.Address, hashes []common.Hash, least *big.Int,
) (found []mint, err error) {
	if len(hashes) > maxMints {
		return nil,
			fmt.Errorf("%w: more than %d transactions moved the token to its user", ErrNotProven, maxMints)
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	receipts, calls := make([]ramp.Receipt, len(hashes)), make([]ramp.BatchCall, len(hashes))
	for i, hash := range hashes {
		calls[i] = Call(&receipts[i], "eth_getTransactionReceipt", hash)
	}
	if calls, err = Ask(ctx, p.Chain, calls...); err != nil {
		return nil, err
	}
	for i, hash := range hashes {
		if calls[i].Err != nil {
			return nil,
				fmt.Errorf(
					"%w: the node lists that transaction %s moved the token to its user, and does not "+
						"return it: %w",
					ErrNotProven, hash, calls[i].Err)
		}
		if err := CheckReadable([]common.Address{token}, receipts[i].Logs); err != nil {
			return nil, fmt.Errorf("%w: transaction %s: %w", ErrNotProven, hash, err)
		}
		if units := p.issued(transfersOf(token, receipts[i].Logs)); units.Cmp(least) >= 0 {
			found = append(found, mint{hash, units, &receipts[i]})
		}
	}
	return found, nil
}
