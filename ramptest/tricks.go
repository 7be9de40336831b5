package ramptest

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// A Trick is a transaction with which a dishonest player pretends that an order has
// ended. The ramp neither sends it nor pays for it. See [Service.Cheat].
type Trick string

// The tricks. "Signed" ones hold the user's and the validator's signature of the order,
// which anybody can copy.
const (
	FailedCall      Trick = "signed call that fails"      // the order's own call, sent by the player
	FailedCreation  Trick = "signed creation that fails"  // of a contract, with the signatures in its code
	SignedTransfer  Trick = "signed transfer"             // the order's tokens go to a friend, and the signatures follow the arguments
	FriendsTransfer Trick = "signed transfer by a friend" // of the token's smallest unit to the player
	SelfTransfer    Trick = "transfer to oneself"         // of the order's tokens
	Approval        Trick = "approval"                    // a friend may spend the order's tokens
)

// Tricks returns all tricks.
func Tricks() []Trick {
	return []Trick{FailedCall, FailedCreation, SignedTransfer, FriendsTransfer, SelfTransfer, Approval}
}

// Cheat plays a trick about an order on its chain, and returns the hash of the
// transaction, which is in a block at once. The service sends no result for it. A game
// that ends the order by it can be cheated: set a rampproof.Proof.
func (s *Service) Cheat(ctx context.Context, o *Order, trick Trick) (hash common.Hash, err error) {
	leave, err := s.life.enter()
	if err != nil {
		return hash, err
	}
	defer leave()
	player, err := s.config.wallet(o.Session)
	friend, failed := s.config.wallet(ramp.Session{ID: "friend of " + o.Session.ID})
	if err = cmp.Or(err, failed); err != nil {
		return hash, err
	}
	c, token, signed := s.orders.chains[o.Network], o.token().contract(), input(o)
	units := c.Units(o.token().Amount)
	sender, to, input, fails := player, &token, signed, false
	switch trick {
	case FailedCall:
		fails = true
	case FailedCreation:
		to, fails = nil, true
	case SignedTransfer:
		input = append(callToken("transfer", friend, units), signed[4:]...)
	case FriendsTransfer:
		sender, input = friend, append(callToken("transfer", player, big.NewInt(1)), signed[4:]...)
	case SelfTransfer:
		input = callToken("transfer", player, units)
	case Approval:
		input = callToken("approve", friend, units)
	default:
		return hash, fmt.Errorf("ramptest: there is no trick %q", string(trick))
	}
	tx, err := c.Sign(ctx, sender, to, input, 2)
	if err != nil {
		return hash, err
	}
	block, _ := c.Mine(c.Submit(tx), fails)
	s.recordChain(uuid.Nil, Event{Network: o.Network, TxHash: tx.Hash, Block: block, Status: TxMined},
		"%s in block %d, about order %s: transaction %s", trick, block, o.UUID, tx.Hash)
	s.changes.note()
	return tx.Hash, nil
}

// callToken returns the input of a call of a token, with an account and an amount.
func callToken(method string, account *ramp.Signer, units *big.Int) []byte {
	selector, address := chain.Selector(method+"(address,uint256)"), account.Address()
	return slices.Concat(selector[:], common.LeftPadBytes(address[:], 32), common.BigToHash(units).Bytes())
}
