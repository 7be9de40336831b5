package ramp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// BlockNumber returns the number of the most recent block: eth_blockNumber
// (interface 4.4).
func (r *RPC) BlockNumber(ctx context.Context) (uint64, error) {
	return r.callUint64(ctx, "eth_blockNumber")
}

// ChainID returns the chain ID for which transactions are signed: eth_chainId, of
// the Ethereum specification.
func (r *RPC) ChainID(ctx context.Context) (*big.Int, error) {
	return r.callBig(ctx, "eth_chainId")
}

// NetVersion returns the network ID, usually a decimal number: net_version
// (interface 4.4).
func (r *RPC) NetVersion(ctx context.Context) (string, error) {
	var id looseText // some nodes send a number
	err := r.Call(ctx, &id, "net_version")
	if err == nil && id == "" {
		err = errors.New("ramp: net_version: the result is neither a string nor a number")
	}
	return string(id), err
}

// Balance returns the balance of an address in wei: eth_getBalance (interface 4.4).
func (r *RPC) Balance(ctx context.Context, address common.Address, at BlockRef) (*big.Int, error) {
	return r.callBig(ctx, "eth_getBalance", address, at)
}

// TransactionCount returns the number of transactions from an address, which is its
// next nonce: eth_getTransactionCount (interface 4.4).
func (r *RPC) TransactionCount(ctx context.Context, address common.Address, at BlockRef) (uint64, error) {
	return r.callUint64(ctx, "eth_getTransactionCount", address, at)
}

// BlockByNumber returns a block, with its transactions if full, and otherwise with
// their hashes only: eth_getBlockByNumber (interface 4.4). The error wraps
// [ErrNotFound] if there is no such block.
func (r *RPC) BlockByNumber(ctx context.Context, at BlockRef, full bool) (*Block, error) {
	return fetch[Block](ctx, r, "eth_getBlockByNumber", at, full)
}

// BlockByHash is like [RPC.BlockByNumber] with a hash: eth_getBlockByHash
// (interface 4.4).
func (r *RPC) BlockByHash(ctx context.Context, hash common.Hash, full bool) (*Block, error) {
	return fetch[Block](ctx, r, "eth_getBlockByHash", hash, full)
}

// Transaction returns a transaction, whether or not it is in a block:
// eth_getTransactionByHash (interface 4.4). The error wraps [ErrNotFound] if the
// node does not know the hash.
func (r *RPC) Transaction(ctx context.Context, hash common.Hash) (*Transaction, error) {
	return fetch[Transaction](ctx, r, "eth_getTransactionByHash", hash)
}

// Receipt returns the outcome of a transaction: eth_getTransactionReceipt
// (interface 4.4). The error wraps [ErrNotFound] until the transaction is in a
// block; see [RPC.WaitReceipt].
func (r *RPC) Receipt(ctx context.Context, hash common.Hash) (*Receipt, error) {
	return fetch[Receipt](ctx, r, "eth_getTransactionReceipt", hash)
}

// SendRawTransaction submits a signed transaction and returns its hash from the
// node: eth_sendRawTransaction (interface 4.4). It is never retried. After an error
// other than an [*RPCError] or [ErrWrongChain], the transaction may or may not have
// arrived: check with [RPC.Transaction].
func (r *RPC) SendRawTransaction(ctx context.Context, raw []byte) (common.Hash, error) {
	var hash common.Hash
	err := r.Call(ctx, &hash, "eth_sendRawTransaction", hexutil.Bytes(raw))
	return hash, err
}

// SendTransaction makes the node sign and submit a transaction from one of its own
// accounts, and returns the hash: eth_sendTransaction (interface 4.4). It is never
// retried. After an error other than an [*RPCError] or [ErrWrongChain], the
// transaction may or may not have arrived.
func (r *RPC) SendTransaction(ctx context.Context, t TransactionRequest) (common.Hash, error) {
	var hash common.Hash
	err := r.Call(ctx, &hash, "eth_sendTransaction", t)
	return hash, err
}

// CallContract calls a function of a contract without a transaction, and returns
// its result: eth_call (interface 4.4). If the contract reverts, the error is an
// [*RPCError].
func (r *RPC) CallContract(ctx context.Context, t TransactionRequest, at BlockRef) ([]byte, error) {
	var returned hexutil.Bytes
	err := r.Call(ctx, &returned, "eth_call", t, at)
	return returned, err
}

// EstimateGas returns how much gas a transaction would need on top of a block:
// eth_estimateGas (interface 4.4). If the contract would revert, the error is an
// [*RPCError].
func (r *RPC) EstimateGas(ctx context.Context, t TransactionRequest, at BlockRef) (uint64, error) {
	return r.callUint64(ctx, "eth_estimateGas", t, at)
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
		return nil, fmt.Errorf("ramp: eth_call: %s answered with %d bytes instead of a number; "+
			"it may be no token contract on this chain", token, len(returned))
	}
	return new(big.Int).SetBytes(returned), nil
}

// fetch calls a method whose result may be null.
func fetch[T Block | Transaction | Receipt](ctx context.Context, r *RPC, method string, params ...any) (*T, error) {
	result := new(T)
	if err := r.Call(ctx, result, method, params...); err != nil {
		return nil, err
	}
	return result, nil
}

func (r *RPC) callBig(ctx context.Context, method string, params ...any) (*big.Int, error) {
	q, err := r.requireQuantity(ctx, method, params)
	return q.Big(), err
}

func (r *RPC) callUint64(ctx context.Context, method string, params ...any) (uint64, error) {
	q, err := r.requireQuantity(ctx, method, params)
	if err != nil {
		return 0, err
	}
	n, err := q.Uint64()
	if err != nil {
		return 0, fmt.Errorf("ramp: %s: the result needs more than 64 bits", method)
	}
	return n, nil
}

func (r *RPC) requireQuantity(ctx context.Context, method string, params []any) (q Quantity, err error) {
	err = r.Call(ctx, &q, method, params...)
	if err == nil && !q.Present() {
		err = withMethod(method, errNullResult)
	}
	return q, err
}
