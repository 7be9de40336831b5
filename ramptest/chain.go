package ramptest

import (
	"encoding/json"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// receipt makes the receipt of an order's transaction in the shape of the
// result webhook (interface 6). The same order and outcome have the same
// transaction, in the same block, however often they are delivered.
func receipt(o *Order, outcome Outcome) ramp.Receipt {
	tx := crypto.Keccak256Hash([]byte("transaction"), o.UUID[:], o.Request.Digest[:])
	r := ramp.Receipt{
		Type:              ramp.NewQuantity(2),
		Root:              []byte{},
		Status:            ramp.NewQuantity(0),
		CumulativeGasUsed: ramp.NewQuantity(91_834),
		LogsBloom:         make([]byte, 256),
		TransactionHash:   tx,
		GasUsed:           ramp.NewQuantity(91_834),
		EffectiveGasPrice: ramp.NewQuantity(101_000_000_000),
		BlockHash:         crypto.Keccak256Hash([]byte("block"), tx[:]),
		BlockNumber:       ramp.NewQuantity(o.block),
		TransactionIndex:  ramp.NewQuantity(0),
	}
	if outcome != Succeeded {
		return r
	}
	r.Status = ramp.NewQuantity(1)
	r.Logs = []ramp.Log{transfer(o, &r)}
	return r
}

// transfer is the event of the token that was minted or burned.
func transfer(o *Order, r *ramp.Receipt) ramp.Log {
	player := common.HexToHash(o.Request.UserAddress)
	from, to, token := common.Hash{}, player, o.Request.Intent.To[0]
	if o.Request.Intent.Type == ramp.Disassemble {
		from, to, token = player, common.Hash{}, o.Request.Intent.From[0]
	}
	// 18 decimals, as most tokens have them.
	wei := new(big.Rat).Mul(token.Amount.Rat(), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)))
	return ramp.Log{
		Address:          common.HexToAddress(token.ID),
		Topics:           []common.Hash{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")), from, to},
		Data:             common.BigToHash(new(big.Int).Quo(wei.Num(), wei.Denom())).Bytes(),
		BlockNumber:      r.BlockNumber,
		TransactionHash:  r.TransactionHash,
		TransactionIndex: r.TransactionIndex,
		BlockHash:        r.BlockHash,
		BlockTimestamp:   number("0"),
		LogIndex:         ramp.NewQuantity(0),
	}
}

// number is a quantity that is written as a JSON number.
func number(text string) (q ramp.Quantity) {
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		panic(err) // no number was given
	}
	return q
}
