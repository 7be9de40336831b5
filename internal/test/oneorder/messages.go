// Package oneorder has what tests of one order have in common: the messages of the service about it, and a
// node whose chain has its transaction.
package oneorder

import "github.com/ethereum/go-ethereum/common"

// What the messages name.
const (
	UUID   = "7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10"
	Token  = "0x00000000000000000000000000000000000070c3"
	Wallet = "0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb"
	Digest = "0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85"

	TransferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
)

// BlockA and BlockB are the hashes of a block with the transaction, and of the one that replaces it.
var BlockA, BlockB = common.HexToHash("0xa").Hex(), common.HexToHash("0xb").Hex()

// Side is a side of an intent, with one asset.
func Side(kind, id string, amount any) []any {
	return []any{map[string]any{"type": kind, "id": id, "amount": amount}}
}

// Mint is the intent of a mint.
func Mint() map[string]any {
	return map[string]any{"method": "mint", "type": "assemble", "target_candidate": map[string]any{},
		"from": Side("asset", "item_gold", 100), "to": Side("ERC20", Token, 10)}
}

// Burn is the intent of a burn.
func Burn() map[string]any {
	return map[string]any{"method": "burn-permit", "type": "disassemble",
		"target_candidate": map[string]any{},
		"from":             Side("ERC20", Token, 10), "to": Side("asset", "item_gold", 100)}
}

// Validate is the validate call of an intent.
func Validate(intent map[string]any) Object {
	return Object{"user_sig": "0xaa55", "user_address": Wallet, "project_id": "project-1", "digest": Digest,
		"uuid": UUID, "intent": intent}
}

// OnChain is the receipt of the chain, as in JSON-RPC. The user of the order burned one unit.
func OnChain() Object {
	return Object{
		"type": "0x7", "status": "0x1", "transactionHash": common.MaxHash.Hex(), "transactionIndex": "0x2",
		"blockHash": BlockA, "blockNumber": "0xa", "gasUsed": "0x5208", "cumulativeGasUsed": "0x5209",
		"effectiveGasPrice": "0x1", "contractAddress": nil, "to": Token,
		"from":     "0x000000000000000000000000000000000000007a",
		"feePayer": "0x000000000000000000000000000000000000fee0",
		"logs": []any{map[string]any{"address": Token, "data": common.BigToHash(common.Big1).Hex(),
			"topics":   []any{TransferTopic, common.HexToHash(Wallet).Hex(), common.Hash{}.Hex()},
			"logIndex": "0x3", "removed": false, "blockTimestamp": "0x65", "blockNumber": "0xa",
			"blockHash": BlockA, "transactionHash": common.MaxHash.Hex(), "transactionIndex": "0x2"}},
	}
}
