// Package thief puts transactions of a dishonest player onto the chain of an emulator. Our tests
// try with them to cheat games that believe what a chain shows.
package thief

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A Trick is a transaction with which a dishonest player pretends that an order has ended. The
// ramp neither sends it nor pays for it.
type Trick string

// The tricks. "Signed" ones hold the user's and the validator's signature of the order, which
// anybody can copy.
const (
	FailedCall      Trick = "signed call that fails"      // the order's own call, sent by the player
	FailedCreation  Trick = "signed creation that fails"  // of a contract, with the signatures in its code
	SignedTransfer  Trick = "signed transfer"             // of the order's tokens to a friend
	FriendsTransfer Trick = "signed transfer by a friend" // of the token's smallest unit to the player
	SelfTransfer    Trick = "transfer to oneself"         // of the order's tokens
	Approval        Trick = "approval"                    // a friend may spend the order's tokens
)

// Tricks returns all tricks.
func Tricks() []Trick {
	return []Trick{FailedCall, FailedCreation, SignedTransfer, FriendsTransfer, SelfTransfer, Approval}
}

// Friend is the session of the friend of a player.
func Friend(player ramp.Session) ramp.Session {
	return ramp.Session{ID: "friend of " + player.ID, Token: player.Token}
}

// Play plays a trick about an order on its chain, and returns the hash of the transaction, which
// is in a block.
func Play(ctx context.Context, s *ramptest.Service, o *ramptest.PlacedOrder, trick Trick) (common.Hash,
	error) {
	player, friend := s.Wallet(o.Session), s.Wallet(Friend(o.Session))
	tokens := o.Request.Intent.To
	if o.Request.Intent.Type == ramp.Disassemble {
		tokens = o.Request.Intent.From
	}
	contract, signed := common.HexToAddress(tokens[0].ID), call(o)
	units, err := tokens[0].Amount.Units(18)
	if err != nil {
		return common.Hash{}, err
	}
	t := ramp.TransactionRequest{From: player, To: &contract}
	switch trick {
	case FailedCall:
		t.Data = signed
	case FailedCreation:
		t.To, t.Data = nil, signed
	case SignedTransfer:
		t.Data = append(callToken("transfer", friend, units), signed[4:]...)
	case FriendsTransfer:
		t.From, t.Data = friend, append(callToken("transfer", player, big.NewInt(1)), signed[4:]...)
	case SelfTransfer:
		t.Data = callToken("transfer", player, units)
	case Approval:
		t.Data = callToken("approve", friend, units)
	default:
		return common.Hash{}, fmt.Errorf("thief: there is no trick %q", string(trick))
	}
	node, err := ramp.NewRPC(ramp.RPCConfig{URL: s.RPCURL(o.Network), HTTPClient: s.Client(), Retries: -1})
	if err != nil {
		return common.Hash{}, err
	}
	hash, err := node.SendTransaction(ctx, t)
	if err != nil {
		return common.Hash{}, err
	}
	for range 60 {
		if _, err = node.Receipt(ctx, hash); err == nil {
			return hash, nil
		}
		s.Advance(time.Second)
	}
	return hash, err
}

// call returns the input of the order's own transaction.
func call(o *ramptest.PlacedOrder) []byte {
	user, err := hex.DecodeString(strings.TrimPrefix(o.Approval.UserSig, "0x"))
	if err != nil {
		user = nil // the game returned something else
	}
	input := crypto.Keccak256([]byte(string(o.Request.Intent.Method) + "(bytes32,bytes,bytes)"))[:4]
	return slices.Concat(input, o.Request.Digest[:], user, o.Approval.ValidatorSig[:])
}

// callToken returns the input of a call of a token, with an account and an amount.
func callToken(method string, account common.Address, units *big.Int) []byte {
	selector := crypto.Keccak256([]byte(method + "(address,uint256)"))[:4]
	return slices.Concat(selector, common.LeftPadBytes(account[:], 32), common.BigToHash(units).Bytes())
}
