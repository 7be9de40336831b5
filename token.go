package ramp

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// Transfer is a transfer of tokens, of ERC-20 or ERC-721. A mint comes from the zero
// address, and a burn usually goes to it.
type Transfer struct {
	Token    common.Address // the token contract
	From, To common.Address // the zero address for a mint or a burn
	Value    *big.Int       // ERC-20: the amount in the token's smallest units; nil for ERC-721
	TokenID  *big.Int       // ERC-721: which piece; nil for ERC-20
	LogIndex Quantity       // position of the event in the block
}

// Transfers returns the transfers of tokens among the logs, in their order. Logs of
// other events, and those that a reorganization removed, are left out.
func (r *Receipt) Transfers() []Transfer {
	var transfers []Transfer
	for i := range r.Logs {
		if t, ok := r.Logs[i].Transfer(); ok {
			transfers = append(transfers, t)
		}
	}
	return transfers
}

// transferTopic is the hash of Transfer(address,address,uint256), which ERC-20 and
// ERC-721 share.
var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// Transfer returns the transfer of tokens that the log is, and whether it is one. An
// ERC-721 transfer has the token ID as its fourth topic.
func (l *Log) Transfer() (t Transfer, ok bool) {
	if l.Removed || len(l.Topics) < 3 || l.Topics[0] != transferTopic {
		return Transfer{}, false
	}
	t = Transfer{Token: l.Address, From: common.BytesToAddress(l.Topics[1][:]), To: common.BytesToAddress(l.Topics[2][:]), LogIndex: l.LogIndex}
	switch {
	case len(l.Topics) == 3 && len(l.Data) == 32:
		t.Value = new(big.Int).SetBytes(l.Data)
	case len(l.Topics) == 4 && len(l.Data) == 0:
		t.TokenID = l.Topics[3].Big()
	default:
		return Transfer{}, false
	}
	return t, true
}

// TokenBalance returns how much an account has of an ERC-20 token, in its smallest
// units, or how many pieces of an ERC-721 token: eth_call of balanceOf. See
// [AmountOfUnits].
func (r *RPC) TokenBalance(ctx context.Context, token, account common.Address, at BlockRef) (*big.Int, error) {
	return r.callToken(ctx, token, at, []byte{0x70, 0xa0, 0x82, 0x31}, account)
}

// TokenDecimals returns the number of decimals of an ERC-20 token: eth_call of
// decimals. It never changes.
func (r *RPC) TokenDecimals(ctx context.Context, token common.Address) (int, error) {
	n, err := r.callToken(ctx, token, Latest, []byte{0x31, 0x3c, 0xe5, 0x67})
	if err != nil {
		return 0, err
	}
	if !n.IsInt64() || n.Int64() > math.MaxUint8 {
		return 0, fmt.Errorf("ramp: eth_call: %s is not the number of decimals of a token", token)
	}
	return int(n.Int64()), nil
}

// callToken calls a function that returns one number.
func (r *RPC) callToken(ctx context.Context, token common.Address, at BlockRef, selector []byte, account ...common.Address) (*big.Int, error) {
	for _, a := range account {
		selector = append(selector, common.LeftPadBytes(a[:], 32)...)
	}
	returned, err := r.CallContract(ctx, TransactionRequest{To: &token, Data: selector}, at)
	if err != nil {
		return nil, err
	}
	if len(returned) != 32 { // an address without a contract returns nothing
		return nil, fmt.Errorf("ramp: eth_call: %s answered with %d bytes instead of a number; it may be no token contract on this chain", token, len(returned))
	}
	return new(big.Int).SetBytes(returned), nil
}
