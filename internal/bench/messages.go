package main

import (
	"fmt"
	"strings"
)

const (
	transactionHash = "0xab059a62e22e230fe0f56d8555340a29b2e9532360368f810595453f6fdd213b"
	blockHash       = "0x5d9a2f5f3e30f5d7ca3ee30bdcbf18d3ae6e0d8d3bb8ec0a7e7b0c1f7e5d9a2f"
	playerAddress   = "0x1be31a94361a391bbafb2a4ccd704f57dc04d4bb"
	tokenAddress    = "0x13345c94929a47a35a4dcd36e2574b8123fe190d"

	mintIntent = `{"method":"mint","type":"assemble","from":[{"type":"asset","id":"gold","amount":100}],` +
		`"to":[{"type":"ERC20","id":"` + tokenAddress + `","amount":10}],"target_candidate":{},"fee_rate":2000,"actual":"8"}`

	validateBody = `{"user_sig":"0xa9c5cc5e7b594f1b1e82f7907303e007adb6f05573e984e7fc8baa80995d90b72bbf5b4297ea75d36ba5672b3e49f305edaea0c2bb6d02e1babc67e1340554561b",` +
		`"user_address":"` + playerAddress + `","project_id":"project-1",` +
		`"digest":"0xd91c81e564e4f69229a9224943fa9a79ff21b60fcef5096bfb79e1ce28591a85",` +
		`"uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","intent":` + mintIntent + `}`
)

// bloom is a Bloom filter of 256 bytes.
var bloom = "0x" + strings.Repeat("00", 256)

// transferLogs returns events of token transfers, each with three topics and one word
// of data. The webhook sends the timestamp as a number, and a node sends it as hex.
func transferLogs(count int, timestamp string) string {
	logs := make([]string, count)
	for i := range logs {
		logs[i] = fmt.Sprintf(`{"address":"%s","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",`+
			`"0x0000000000000000000000001be31a94361a391bbafb2a4ccd704f57dc04d4bb","0x0000000000000000000000008f2a55949038a9610f50fb23b5883af3b4ecb3c3"],`+
			`"data":"0x0000000000000000000000000000000000000000000000000de0b6b3a7640000","blockNumber":"0x12d687","transactionHash":"%s",`+
			`"transactionIndex":"0x3","blockHash":"%s","blockTimestamp":%s,"logIndex":"%#x","removed":false}`,
			tokenAddress, transactionHash, blockHash, timestamp, i)
	}
	return "[" + strings.Join(logs, ",") + "]"
}

// resultBody is a successful mint as the result webhook reports it (interface 6).
func resultBody(logs int) []byte {
	return fmt.Appendf(nil, `{"session_id":"hero-4821","uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","tx_hash":"%[1]s",`+
		`"receipt":{"type":"0x7","root":"0x","status":"0x1","cumulativeGasUsed":"0x5b8d80","logsBloom":"%[2]s","logs":%[3]s,`+
		`"transactionHash":"%[1]s","contractAddress":"0x0000000000000000000000000000000000000000","gasUsed":"0x1e8480",`+
		`"effectiveGasPrice":"0x3b9aca00","blockHash":"%[4]s","blockNumber":"0x12d687","transactionIndex":"0x3"},"intent":%[5]s}`,
		transactionHash, bloom, transferLogs(logs, "0"), blockHash, mintIntent)
}

// nodeReceipt is the receipt of a token transfer as a node reports it.
func nodeReceipt() string {
	return fmt.Sprintf(`{"blockHash":"%[1]s","blockNumber":"0x12d687","contractAddress":null,"cumulativeGasUsed":"0x33bc",`+
		`"effectiveGasPrice":"0x4a817c800","from":"%[2]s","gasUsed":"0x4dc","logs":%[3]s,"logsBloom":"%[4]s","status":"0x1",`+
		`"to":"%[5]s","transactionHash":"%[6]s","transactionIndex":"0x3","type":"0x2"}`,
		blockHash, playerAddress, transferLogs(1, nodeTimestamp), bloom, tokenAddress, transactionHash)
}

const nodeTimestamp = `"0x55ba467c"`
