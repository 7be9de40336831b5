package ramp

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// BlockNumber returns the number of the most recent block: eth_blockNumber
// (interface 4.4).
func (r *RPC) BlockNumber(ctx context.Context) (uint64, error) {
	return r.number(ctx, "eth_blockNumber")
}

// ChainID returns the number that transactions of this chain are signed for:
// eth_chainId, of the Ethereum specification.
func (r *RPC) ChainID(ctx context.Context) (*big.Int, error) {
	return r.quantity(ctx, "eth_chainId")
}

// NetVersion returns the current network ID, as a rule a decimal number:
// net_version (interface 4.4).
func (r *RPC) NetVersion(ctx context.Context) (string, error) {
	var id any
	if err := r.Call(ctx, &id, "net_version"); err != nil {
		return "", err
	}
	switch id := id.(type) {
	case string:
		return id, nil
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64), nil
	default:
		return "", errors.New("ramp: net_version: the result is neither a string nor a number")
	}
}

// Balance returns what an address has, in wei: eth_getBalance (interface 4.4).
func (r *RPC) Balance(ctx context.Context, address common.Address, at BlockRef) (*big.Int, error) {
	return r.quantity(ctx, "eth_getBalance", address, at)
}

// TransactionCount returns the number of transactions from an address, which
// is the nonce of its next one: eth_getTransactionCount (interface 4.4).
func (r *RPC) TransactionCount(ctx context.Context, address common.Address, at BlockRef) (uint64, error) {
	return r.number(ctx, "eth_getTransactionCount", address, at)
}

// BlockByNumber returns a block, with its transactions if full, else with their
// hashes alone: eth_getBlockByNumber (interface 4.4). The error wraps
// [ErrNotFound] if there is no such block.
func (r *RPC) BlockByNumber(ctx context.Context, at BlockRef, full bool) (*Block, error) {
	return found[Block](ctx, r, "eth_getBlockByNumber", at, full)
}

// BlockByHash is [RPC.BlockByNumber] for a hash: eth_getBlockByHash (interface
// 4.4).
func (r *RPC) BlockByHash(ctx context.Context, hash common.Hash, full bool) (*Block, error) {
	return found[Block](ctx, r, "eth_getBlockByHash", hash, full)
}

// Transaction returns a transaction, in a block or not:
// eth_getTransactionByHash (interface 4.4). The error wraps [ErrNotFound] if the
// node knows none of that hash.
func (r *RPC) Transaction(ctx context.Context, hash common.Hash) (*Transaction, error) {
	return found[Transaction](ctx, r, "eth_getTransactionByHash", hash)
}

// Receipt returns the outcome of a transaction: eth_getTransactionReceipt
// (interface 4.4). The error wraps [ErrNotFound] as long as it is in no block;
// see [RPC.WaitReceipt].
func (r *RPC) Receipt(ctx context.Context, hash common.Hash) (*Receipt, error) {
	return found[Receipt](ctx, r, "eth_getTransactionReceipt", hash)
}

// SendRawTransaction submits a signed transaction and returns its hash as the
// node has it: eth_sendRawTransaction (interface 4.4). It is sent once, see
// [RPCConfig].Resend. After an error other than an [*RPCError] or
// [ErrWrongChain] nobody knows whether it arrived: ask for [RPC.Transaction].
func (r *RPC) SendRawTransaction(ctx context.Context, raw []byte) (common.Hash, error) {
	const method = "eth_sendRawTransaction"
	var hash common.Hash
	if !r.resend {
		err := r.Call(ctx, &hash, method, hexutil.Bytes(raw))
		return hash, err
	}
	ctx, op := r.transport.begin(ctx, OperationRPC, method)
	err := r.attempts(ctx, true, func() error { return r.once(ctx, &hash, method, []any{hexutil.Bytes(raw)}) })
	var refused *RPCError
	if errors.As(err, &refused) {
		// Perhaps for the transaction itself, that came with an earlier attempt.
		var known Transaction
		if r.Call(ctx, &known, "eth_getTransactionByHash", transactionHash(raw)) == nil {
			hash, err = known.Hash, nil
		}
	}
	r.record(ctx, op, err)
	return hash, err
}

// transactionHash is where a node should have a raw transaction. It serves for
// asking only; what counts is the hash that the node answers with.
func transactionHash(raw []byte) common.Hash {
	const feeDelegated, dynamicFee = 0x7, 0x2
	if len(raw) > 0 && raw[0] == feeDelegated {
		// The sender signed a transaction of type 2, the first thing in the list,
		// and its hash is that of both.
		list, _, _ := rlp.SplitList(raw[1:]) // nothing, if it is no list
		if _, rest, err := rlp.SplitList(list); err == nil {
			return crypto.Keccak256Hash([]byte{dynamicFee}, list[:len(list)-len(rest)])
		}
	}
	return crypto.Keccak256Hash(raw)
}

// SendTransaction has the node sign and submit a transaction from one of its
// own accounts, and returns the hash: eth_sendTransaction (interface 4.4). It is
// never sent twice. After an error other than an [*RPCError] or [ErrWrongChain]
// nobody knows whether it arrived.
func (r *RPC) SendTransaction(ctx context.Context, t TransactionRequest) (common.Hash, error) {
	var hash common.Hash
	err := r.Call(ctx, &hash, "eth_sendTransaction", t)
	return hash, err
}

// CallContract calls a function of a contract without changing anything, and
// returns the bytes that it returns: eth_call (interface 4.4). When the contract
// refuses, the error is an [*RPCError] with a [RPCError.Revert].
func (r *RPC) CallContract(ctx context.Context, t TransactionRequest, at BlockRef) ([]byte, error) {
	var returned hexutil.Bytes
	err := r.Call(ctx, &returned, "eth_call", t, at)
	return returned, err
}

// EstimateGas returns how much gas a transaction would need on top of a block:
// eth_estimateGas (interface 4.4). When a contract would refuse it, the error is
// an [*RPCError] with a [RPCError.Revert].
func (r *RPC) EstimateGas(ctx context.Context, t TransactionRequest, at BlockRef) (uint64, error) {
	return r.number(ctx, "eth_estimateGas", t, at)
}

// Logs returns the logs that match a filter, oldest first: eth_getLogs
// (interface 4.4). No matching logs are an empty slice; an answer of null is an
// error, because it says nothing about the logs.
func (r *RPC) Logs(ctx context.Context, f LogFilter) ([]Log, error) {
	var logs []Log
	err := r.Call(ctx, &logs, "eth_getLogs", f)
	return logs, err
}

// found calls a method whose result may be null.
func found[T Block | Transaction | Receipt](ctx context.Context, r *RPC, method string, params ...any) (*T, error) {
	result := new(T)
	if err := r.Call(ctx, result, method, params...); err != nil {
		return nil, err
	}
	return result, nil
}

func (r *RPC) quantity(ctx context.Context, method string, params ...any) (*big.Int, error) {
	q, err := r.present(ctx, method, params)
	return q.Big(), err
}

func (r *RPC) number(ctx context.Context, method string, params ...any) (uint64, error) {
	q, err := r.present(ctx, method, params)
	if err != nil {
		return 0, err
	}
	n, err := q.Uint64()
	if err != nil {
		return 0, fmt.Errorf("ramp: %s: the result needs more than 64 bits", method)
	}
	return n, nil
}

func (r *RPC) present(ctx context.Context, method string, params []any) (q Quantity, err error) {
	err = r.Call(ctx, &q, method, params...)
	if err == nil && !q.Present() {
		err = within(method, errNullResult)
	}
	return q, err
}
