package chain

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// object is a JSON object.
type object map[string]any

func (c *Chain) blockJSON(n uint64, full bool) object {
	hash, gas := c.hash(n), uint64(0)
	transactions := make([]any, len(c.filled[n]))
	var logs []ramp.Log
	for i, t := range c.filled[n] {
		transactions[i] = t.Hash
		if full {
			transactions[i] = c.transactionJSON(t)
		}
		gas += t.GasUsed
		logs = append(logs, c.receipt(t).Logs...)
	}
	parent := common.Hash{}
	if n > 0 {
		parent = c.hash(n - 1)
	}
	root := func(of string) common.Hash { return crypto.Keccak256Hash([]byte(of), hash[:]) }
	return object{
		"number": hexutil.Uint64(n), "hash": hash, "parentHash": parent, "timestamp": c.timestamp(n),
		"miner": c.Service, "gasLimit": hexutil.Uint64(gasLimit), "gasUsed": hexutil.Uint64(gas),
		"baseFeePerGas": hexutil.Uint64(gasPrice - 1e9), "size": hexutil.Uint64(540 + 300*len(transactions)),
		"stateRoot": root("state"), "transactionsRoot": root("transactions"),
		"receiptsRoot": root("receipts"),
		"logsBloom":    hexutil.Bytes(bloom(logs)), "extraData": "0x", "difficulty": "0x0",
		"totalDifficulty": "0x0",
		"nonce":           "0x0000000000000000", "mixHash": common.Hash{}, "sha3Uncles": root("uncles"),
		"uncles": []any{}, "transactions": transactions,
	}
}

func (c *Chain) timestamp(n uint64) hexutil.Uint64 { return hexutil.Uint64(c.time(n).Unix()) }

func (c *Chain) transactionJSON(t *Transaction) object {
	v, r, s := signatureParts(t.Signature)
	o := object{
		"type": hexutil.Uint64(t.Kind), "hash": t.Hash, "chainId": hexutil.Uint64(c.ID),
		"nonce": hexutil.Uint64(t.Nonce),
		"from":  t.From, "to": t.To, "value": (*hexutil.Big)(t.Value), "gas": hexutil.Uint64(t.Gas),
		"gasPrice": hexutil.Uint64(gasPrice), "input": hexutil.Bytes(t.Input),
		"v": (*hexutil.Big)(v), "r": (*hexutil.Big)(r), "s": (*hexutil.Big)(s),
		"blockHash": nil, "blockNumber": nil, "transactionIndex": nil,
	}
	switch {
	case t.Kind == legacyType:
		o["v"] = hexutil.Uint64(35 + 2*c.ID + v.Uint64())
	case t.Kind == accessListType:
		o["accessList"] = []any{}
	default:
		o["accessList"], o["maxFeePerGas"], o["maxPriorityFeePerGas"] = []any{}, hexutil.Uint64(gasPrice),
			hexutil.Uint64(1e9)
	}
	if t.Kind == accessListType || t.Kind == dynamicFeeType {
		o["yParity"] = (*hexutil.Big)(v)
	}
	if t.Kind == feeDelegatedType {
		fv, fr, fs := signatureParts(t.Sponsor)
		o["feePayer"] = t.FeePayer
		o["fv"], o["fr"], o["fs"] = (*hexutil.Big)(fv), (*hexutil.Big)(fr), (*hexutil.Big)(fs)
	}
	if t.Mined {
		o["blockHash"], o["blockNumber"] = c.hash(t.Block), hexutil.Uint64(t.Block)
		o["transactionIndex"] = hexutil.Uint64(t.Index)
	}
	return o
}

// receiptJSON returns a receipt in the form of JSON-RPC, which differs from that of the
// result webhook.
func (c *Chain) receiptJSON(t *Transaction) object {
	r := c.receipt(t)
	r.Root, r.Logs, r.From, r.FeePayer = nil, c.logsJSON(t, r.Logs), t.From, t.FeePayer
	var o object
	_ = json.Unmarshal(ramp.Must(json.Marshal(r)), &o) // it is an object
	o["to"], o["contractAddress"] = t.To, nil
	if t.To == nil {
		o["contractAddress"] = crypto.CreateAddress(t.From, t.Nonce)
	}
	return o
}

// logsJSON returns logs in the form of JSON-RPC, with the time of the block in hex.
func (c *Chain) logsJSON(t *Transaction, logs []ramp.Log) []ramp.Log {
	shown := make([]ramp.Log, len(logs))
	for i, log := range logs {
		shown[i] = log
		shown[i].BlockTimestamp = ramp.NewQuantity(uint64(c.timestamp(t.Block)))
	}
	return shown
}
