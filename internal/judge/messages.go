package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// object is a message that the judge edits by path, such as "intent.from.0.amount". It
// is never changed in place.
type object map[string]any

func literal(value any) string {
	if n, ok := value.(interface{ String() string }); ok {
		return strings.TrimSpace(n.String())
	}
	return ""
}

// literalText returns a string of a message, or "".
func literalText(value any) string {
	s, _ := value.(string)
	return s
}

// The paths of the amounts of an order.
const (
	fromAmount = "intent.from.0.amount"
	toAmount   = "intent.to.0.amount"
)

// list is an array in an object.
type list []any

func (o object) with(path string, value any) object {
	return change(o, strings.Split(path, "."), func(m object, name string) { m[name] = value }).(object)
}

func (o object) without(path string) object {
	return change(o, strings.Split(path, "."), func(m object, name string) { delete(m, name) }).(object)
}

// at returns the value at a path.
func (o object) at(path string) any {
	var value any = o
	for _, name := range strings.Split(path, ".") {
		switch parent := value.(type) {
		case object:
			value = parent[name]
		case list:
			value = parent[index(name)]
		}
	}
	return value
}

// change copies the values along a path and edits the copy.
func change(value any, path []string, edit func(object, string)) any {
	switch value := value.(type) {
	case object:
		value = maps.Clone(value)
		if len(path) == 1 {
			edit(value, path[0])
		} else {
			value[path[0]] = change(value[path[0]], path[1:], edit)
		}
		return value
	case list:
		value = slices.Clone(value)
		value[index(path[0])] = change(value[index(path[0])], path[1:], edit)
		return value
	default:
		panic("conformance: no such path: " + path[0]) // a bug in a case
	}
}

func index(name string) int {
	n, _ := strconv.Atoi(name)
	return n
}

// bytes returns the message as JSON with its keys in alphabetical order.
func (o object) bytes() []byte { return ramp.Must(json.Marshal(o)) }

// number returns n as a JSON number.
func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func entry(kind, id string, amount any) object {
	return object{"type": kind, "id": id, "amount": amount}
}

// two returns entries of two assets.
func two(id string, amount any, other string, more any) list {
	return list{entry("asset", id, amount), entry("asset", other, more)}
}

// edit changes a copy of a message.
type edit func(object) object

// order is a mint or a burn as the service requests it.
type order struct {
	owner         ramp.Session
	page          ramp.Session // what its page sends: the owner's session, perhaps with a token of its own
	token, wallet string       // the addresses of the contract and of the owner
	body          object       // of its validate call
	logs          int          // the form of the logs of its results that the server reads; see logForms
	tx            string       // the hash of its transaction, if it is not its own
}

// session returns the session of the calls about an order.
func (o order) session() ramp.Session {
	if o.page.ID == o.owner.ID {
		return o.page
	}
	return o.owner // in whose name somebody else's order is sent
}

// burns reports whether the order's type is that of a burn.
func (o order) burns() bool { return o.body.burns() }

// burns reports whether the type of a validate body is that of a burn.
func (o object) burns() bool { return o.at("intent.type") == "disassemble" }

// sides returns the paths of the game's assets and of the tokens in a validate body.
func (o object) sides() (assets, tokens string) {
	if o.burns() {
		return "intent.to", "intent.from"
	}
	return "intent.from", "intent.to"
}

// bent returns a changed copy of an order.
func (o order) bent(edits ...edit) order {
	o.body = o.body.bent(edits...)
	return o
}

func (o object) bent(edits ...edit) object {
	for _, e := range edits {
		o = e(o)
	}
	return o
}

// uuid returns the text of the uuid of an order, or "".
func (o order) uuid() string { return literalText(o.body.at("uuid")) }

// assets returns the sums of the game assets that an order is about.
func (o order) assets() map[string]*big.Rat {
	sums := make(difference)
	side, _ := o.body.sides()
	entries, _ := o.body.at(side).(list)
	for _, e := range entries {
		entry, _ := e.(object)
		id, _ := entry["id"].(string)
		amount, err := ramp.ParseAmount(literal(entry["amount"]))
		if entry["type"] == "asset" && err == nil {
			sums[id] = plus(sums.of(id), amount.Rat())
		}
	}
	return sums
}

// otherEnd returns a text with another digit at its end.
func otherEnd(text string) string {
	before, found := strings.CutSuffix(text, "0")
	if found {
		return before + "1"
	}
	return text[:len(text)-1] + "0"
}

// The statuses of a receipt (interface 3).
const (
	success = "0x1"
	failure = "0x0"
)

// opposite returns the other status.
func opposite(status string) string {
	if status == success {
		return failure
	}
	return success
}

// result returns the full body of the result call of an order (interface 6).
func (o order) result(status string) object {
	tx := hashOf(o)
	block := crypto.Keccak256Hash([]byte(tx)).Hex()
	zeros := "0x" + strings.Repeat("0", 40)
	tokens := o.tokens()
	logs := list{}
	if status == success {
		giver, taker := common.Hash{}, common.BytesToHash(common.FromHex(o.wallet))
		if o.burns() {
			giver, taker = taker, giver
		}
		wei := product(tokens, big.NewRat(1e18, 1))
		topics := list{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")).Hex(), giver.Hex(),
			taker.Hex()}
		logs = list{logOf(tx, block, o.token, topics,
			fmt.Sprintf("0x%064x", new(big.Int).Quo(wei.Num(), wei.Denom())))}
	}
	intent := object{"fee_rate": number(0), "actual": show(tokens)}
	sent, _ := o.body.at("intent").(object) // some orders have none
	maps.Copy(intent, sent)
	return o.readable(object{
		"session_id": o.owner.ID, "uuid": o.body.at("uuid"), "tx_hash": tx,
		"receipt": object{
			"type": "0x2", "root": "0x", "status": status, "cumulativeGasUsed": "0x16742",
			"logsBloom": "0x" + strings.Repeat("0", 512), "logs": logs, "transactionHash": tx,
			"contractAddress": zeros, "gasUsed": "0x16742", "effectiveGasPrice": "0x1784088b00",
			"blockHash": block, "blockNumber": "0x10", "transactionIndex": "0x0",
		},
		"intent": intent,
	})
}

// logOf returns a log of a transaction in a block.
func logOf(tx, block, address any, topics list, data string) object {
	return object{
		"address": address, "topics": topics, "data": data, "blockNumber": "0x10", "blockHash": block,
		"blockTimestamp":  number(0),
		"transactionHash": tx, "transactionIndex": "0x0", "logIndex": "0x0", "removed": false,
	}
}

// hashOf returns the hash of the transaction of an order. Each signed digest has its own.
func hashOf(o order) string {
	return cmp.Or(o.tx, crypto.Keccak256Hash(fmt.Append(nil, o.body.at("uuid"), o.body.at("digest"))).Hex())
}

// logForms are the forms in which a service or a node may send the logs of a receipt. The
// first one is that of section 6.
var logForms = []struct {
	name string
	log  func(log object) any // nil for no log
}{
	{"receipt.logs[].blockTimestamp as a number", func(log object) any { return log }},
	{"receipt.logs[].blockTimestamp as hex text",
		func(log object) any { return log.with("blockTimestamp", "0x0") }},
	{"no receipt.logs[].blockTimestamp", func(log object) any { return log.without("blockTimestamp") }},
	{"no logs in the receipt", func(object) any { return nil }},
}

// readable puts the logs of a result into the form that the server is known to read.
func (o order) readable(result object) object {
	logs, _ := result.at("receipt.logs").(list)
	if o.logs == 0 || len(logs) == 0 {
		return result
	}
	read := list{}
	for _, log := range logs {
		if plain, ok := log.(object); ok && plain["blockTimestamp"] == number(0) {
			log = logForms[o.logs].log(plain)
		}
		if log != nil {
			read = append(read, log)
		}
	}
	return result.with("receipt.logs", read)
}

// tokens returns how many tokens an order is about, or 1 if its intent does not say.
func (o order) tokens() *big.Rat {
	_, side := o.body.sides()
	if entries, _ := o.body.at(side).(list); len(entries) > 0 {
		text, _ := entries[0].(object)["amount"].(json.Number)
		if amount, err := ramp.ParseAmount(text.String()); err == nil {
			return amount.Rat()
		}
	}
	return big.NewRat(1, 1)
}
