// Package movetest writes the events of transfers for tests.
package movetest

import (
	"bytes"
	"cmp"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/token-ramp/ramp-go"
)

var (
	transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
	approvalTopic = common.HexToHash("0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925")

	// Those of ERC-1155.
	transferSingle = crypto.Keccak256Hash([]byte("TransferSingle(address,address,address,uint256,uint256)"))
	transferBatch  = crypto.Keccak256Hash([]byte(
		"TransferBatch(address,address,address,uint256[],uint256[])"))
)

// Logs returns the events of transfers of a token. "user>ramp 9, ramp>zero 7u, user>friend
// #3" moves nine tokens of 18 decimals, seven of the smallest units, and the piece with ID
// 3; #0-9 are ten pieces. A word after that says that it is an approval, of another token,
// in the form of ERC-1155 (single, batch), without indexed arguments, or removed by a
// reorganization. who has the address of each name, except zero.
func Logs(token common.Address, list string, who map[string]common.Address) (logs []ramp.Log) {
	address := func(name string) common.Address {
		a, known := who[name]
		if !known && name != "zero" {
			panic("nobody is called " + name)
		}
		return a
	}
	for entry := range strings.SplitSeq(list, ", ") {
		parts := append(strings.Fields(entry), "")
		if entry == "" {
			break
		}
		from, to, _ := strings.Cut(parts[0], ">")
		event := Transfer(token, address(from), address(to))
		switch parts[2] {
		case "approval":
			event.Topics[0] = approvalTopic
		case "single":
			event.Topics[0] = transferSingle
		case "batch":
			event.Topics[0] = transferBatch
		case "unindexed":
			event.Data = bytes.Join([][]byte{event.Topics[1][:], event.Topics[2][:], make([]byte, 32)}, nil)
			logs = append(logs, ramp.Log{Address: event.Address, Topics: event.Topics[:1], Data: event.Data})
			continue
		case "other":
			event.Address = common.HexToAddress("0x07e4")
		case "removed":
			event.Removed = true
		}
		ids, pieces := strings.CutPrefix(parts[1], "#")
		if !pieces {
			units, exact := strings.CutSuffix(parts[1], "u")
			if !exact {
				units += "e18"
			}
			event.Data = common.BigToHash(ramp.Must(ramp.Must(ramp.ParseAmount(units)).Int())).Bytes()
			logs = append(logs, event)
			continue
		}
		first, last, _ := strings.Cut(ids, "-")
		end := number(cmp.Or(last, first))
		for id := number(first); id <= end; id++ {
			piece := event
			piece.Data = nil
			piece.Topics = append(event.Topics[:3:3], common.BigToHash(big.NewInt(id)))
			logs = append(logs, piece)
		}
	}
	return logs
}

// Transfer returns the event of a transfer of no units.
func Transfer(token, from, to common.Address) ramp.Log {
	return ramp.Log{Address: token, Data: make([]byte, 32),
		Topics: []common.Hash{transferTopic, common.BytesToHash(from[:]), common.BytesToHash(to[:])}}
}

func number(text string) int64 { return ramp.Must(ramp.Must(ramp.ParseAmount(text)).Int64()) }
