package ramptest

import (
	"encoding/binary"
	"encoding/json"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// What a transaction costs. A chain has its own numbers; these are fixed.
const (
	gasOfOrder    = 91_834
	gasOfTransfer = 21_000
	gasLimit      = 30_000_000      // of a block
	gasPrice      = 101_000_000_000 // wei
)

// chain is a scripted chain: transactions come out as they are told to. Empty
// blocks are not kept, so time costs nothing.
type chain struct {
	network   ramp.Network
	id        uint64
	blockTime time.Duration
	now       func() time.Time
	coins     *big.Int // what each account has at first, in wei
	tokens    *big.Int // and of each token, in its smallest units
	decimals  int

	mu       sync.Mutex
	spans    []span
	forks    []uint64 // the first block of each branch that replaced another
	filled   map[uint64][]*transaction
	known    map[common.Hash]*transaction
	nonces   map[common.Address]uint64   // of the next transaction
	done     map[common.Address]uint64   // transactions in blocks
	spent    map[common.Address]*big.Int // wei that is gone
	holdings map[holding]*big.Int        // tokens that came or went
}

// span is a run of blocks at equal distances. The last one has no end.
type span struct {
	first uint64
	at    time.Time
}

type holding struct{ token, owner common.Address }

// transaction is one of the chain. What is known of it in a block is found out
// when somebody asks, because a reorganisation changes it.
type transaction struct {
	hash     common.Hash
	kind     uint64
	from     common.Address
	to       *common.Address
	feePayer common.Address // of a type 0x7
	nonce    uint64
	value    *big.Int
	gas      uint64
	input    []byte

	signature ramp.Signature // of the sender
	sponsor   ramp.Signature // of the fee payer

	fails   bool
	moves   []move
	gasUsed uint64

	mined  bool
	block  uint64
	status uint64
}

// move is a transfer of tokens. The zero address makes and destroys them.
type move struct {
	token, from, to common.Address
	amount          *big.Int
}

func newChain(network ramp.Network, config *Config, now func() time.Time) *chain {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(config.Decimals)), nil)
	return &chain{
		network:   network,
		id:        config.ChainID(network),
		blockTime: config.BlockTime,
		now:       now,
		coins:     big.NewInt(1e18),
		tokens:    units(*config.Tokens, unit),
		decimals:  config.Decimals,
		spans:     []span{{0, now()}},
		filled:    make(map[uint64][]*transaction),
		known:     make(map[common.Hash]*transaction),
		nonces:    make(map[common.Address]uint64),
		done:      make(map[common.Address]uint64),
		spent:     make(map[common.Address]*big.Int),
		holdings:  make(map[holding]*big.Int),
	}
}

// units is an amount of tokens in their smallest units.
func units(a ramp.Amount, unit *big.Int) *big.Int {
	n := new(big.Rat).Mul(a.Rat(), new(big.Rat).SetInt(unit))
	return new(big.Int).Quo(n.Num(), n.Denom())
}

// inUnits is an amount of the chain's tokens in their smallest units.
func (c *chain) inUnits(a ramp.Amount) *big.Int {
	return units(a, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.decimals)), nil))
}

// height is the number of the newest block.
func (c *chain) height() uint64 {
	last := c.spans[len(c.spans)-1]
	return last.first + uint64(c.now().Sub(last.at)/c.blockTime)
}

// time is when a block was made.
func (c *chain) time(number uint64) time.Time {
	i, found := slices.BinarySearchFunc(c.spans, number, func(s span, n uint64) int {
		switch {
		case s.first < n:
			return -1
		case s.first > n:
			return 1
		default:
			return 0
		}
	})
	if !found {
		i--
	}
	return c.spans[i].at.Add(time.Duration(number-c.spans[i].first) * c.blockTime)
}

// hash is that of a block. It depends on the branch that the block is on.
func (c *chain) hash(number uint64) common.Hash {
	branch := 0
	for _, first := range c.forks {
		if first <= number {
			branch++
		}
	}
	seed := binary.BigEndian.AppendUint64([]byte(c.network), number)
	return crypto.Keccak256Hash([]byte("block"), binary.BigEndian.AppendUint64(seed, uint64(branch)))
}

// number finds a block by its hash. It looks at blocks with transactions first,
// and then at the newest ones.
func (c *chain) number(hash common.Hash) (uint64, bool) {
	for n := range c.filled {
		if c.hash(n) == hash {
			return n, true
		}
	}
	const most = 10_000
	height := c.height()
	for n := height; n+most > height; n-- {
		if c.hash(n) == hash {
			return n, true
		}
		if n == 0 {
			break
		}
	}
	return 0, false
}

// submit lets the chain know a transaction that waits for a block. It returns
// the one that it has, if it had it before.
func (c *chain) submit(t *transaction) *transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(t)
}

func (c *chain) add(t *transaction) *transaction {
	if known := c.known[t.hash]; known != nil {
		return known
	}
	c.known[t.hash] = t
	c.nonces[t.from] = max(c.nonces[t.from], t.nonce+1)
	return t
}

// nextBlock is when the chain makes its next block.
func (c *chain) nextBlock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time(c.height() + 1)
}

// mine puts a transaction into the newest block if that is of this moment, and
// else into one that it makes now. mined is false if it was in a block before.
func (c *chain) mine(t *transaction, fails bool) (block uint64, mined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.mined {
		return t.block, false
	}
	n := c.height()
	if !c.time(n).Equal(c.now()) || n == 0 {
		n++
		c.spans = append(c.spans, span{n, c.now()})
	}
	c.put(t, n)
	t.fails = fails
	c.execute(t)
	return n, true
}

func (c *chain) put(t *transaction, block uint64) {
	t.mined, t.block = true, block
	c.filled[block] = append(c.filled[block], t)
}

// execute does what a transaction is told to do. One that spends what is not
// there fails, whatever it is told.
func (c *chain) execute(t *transaction) {
	c.done[t.from]++
	payer := t.from
	if t.feePayer != (common.Address{}) {
		payer = t.feePayer
	}
	c.spend(payer, new(big.Int).Mul(big.NewInt(gasPrice), new(big.Int).SetUint64(t.gasUsed)))
	if t.fails || c.balance(t.from).Cmp(t.value) < 0 {
		return
	}
	for _, m := range t.moves {
		if m.from != (common.Address{}) && c.tokenBalance(m.token, m.from).Cmp(m.amount) < 0 {
			return
		}
	}
	t.status = 1
	c.spend(t.from, t.value)
	if t.to != nil {
		c.spend(*t.to, new(big.Int).Neg(t.value))
	}
	for _, m := range t.moves {
		c.hold(m.token, m.from, new(big.Int).Neg(m.amount))
		c.hold(m.token, m.to, m.amount)
	}
}

func (c *chain) spend(owner common.Address, wei *big.Int) {
	if c.spent[owner] == nil {
		c.spent[owner] = new(big.Int)
	}
	c.spent[owner].Add(c.spent[owner], wei)
}

// balance is what an address has, in wei. Gas is never refused, so that it may
// have come to nothing.
func (c *chain) balance(owner common.Address) *big.Int {
	has := new(big.Int).Set(c.coins)
	if spent := c.spent[owner]; spent != nil {
		has.Sub(has, spent)
	}
	if has.Sign() < 0 {
		has.SetUint64(0)
	}
	return has
}

func (c *chain) hold(token, owner common.Address, units *big.Int) {
	if owner == (common.Address{}) {
		return
	}
	h := holding{token, owner}
	if c.holdings[h] == nil {
		c.holdings[h] = new(big.Int)
	}
	c.holdings[h].Add(c.holdings[h], units)
}

// tokenBalance is what an address holds of a token, in its smallest units.
func (c *chain) tokenBalance(token, owner common.Address) *big.Int {
	has := new(big.Int).Set(c.tokens)
	if came := c.holdings[holding{token, owner}]; came != nil {
		has.Add(has, came)
	}
	return has
}

// reorganise replaces the block of a transaction, and all after it, by a branch
// that is longer by one. Their transactions are all in its last block.
func (c *chain) reorganise(t *transaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, height := t.block, c.height()
	c.forks = append(c.forks, from)
	last := height + 1
	c.spans = append(c.spans, span{last, c.now()})
	var moved []*transaction
	for n := from; n <= height; n++ {
		moved = append(moved, c.filled[n]...)
		delete(c.filled, n)
	}
	for _, t := range moved {
		c.put(t, last)
	}
}

// confirmedAt is when there is a number of blocks from the one of a transaction
// on.
func (c *chain) confirmedAt(t *transaction, confirmations int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time(t.block + uint64(confirmations) - 1)
}

// receipt is the outcome of a transaction in the shape of the result webhook
// (interface 6). The caller holds the lock.
func (c *chain) receipt(t *transaction) ramp.Receipt {
	r := ramp.Receipt{
		Type:              ramp.NewQuantity(t.kind),
		Root:              []byte{},
		Status:            ramp.NewQuantity(t.status),
		TransactionHash:   t.hash,
		GasUsed:           ramp.NewQuantity(t.gasUsed),
		EffectiveGasPrice: ramp.NewQuantity(gasPrice),
		BlockHash:         c.hash(t.block),
		BlockNumber:       ramp.NewQuantity(t.block),
	}
	gas, logs := uint64(0), 0
	for i, other := range c.filled[t.block] {
		gas += other.gasUsed
		if other.hash == t.hash {
			r.TransactionIndex = ramp.NewQuantity(uint64(i))
			break
		}
		logs += int(other.status) * len(other.moves)
	}
	r.CumulativeGasUsed = ramp.NewQuantity(gas)
	if t.status == 1 {
		r.Logs = transfers(t, &r, logs)
	}
	r.LogsBloom = bloom(r.Logs)
	return r
}

// transfers are the events of the tokens that were moved. index is that of the
// first in the block.
func transfers(t *transaction, r *ramp.Receipt, index int) []ramp.Log {
	var logs []ramp.Log
	for i, m := range t.moves {
		logs = append(logs, ramp.Log{
			Address:          m.token,
			Topics:           []common.Hash{transferEvent(), common.BytesToHash(m.from[:]), common.BytesToHash(m.to[:])},
			Data:             common.BigToHash(m.amount).Bytes(),
			BlockNumber:      r.BlockNumber,
			TransactionHash:  r.TransactionHash,
			TransactionIndex: r.TransactionIndex,
			BlockHash:        r.BlockHash,
			BlockTimestamp:   number("0"),
			LogIndex:         ramp.NewQuantity(uint64(index + i)),
		})
	}
	return logs
}

func transferEvent() common.Hash {
	return crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
}

// bloom is the filter of all addresses and topics: three bits of 2048 for each.
func bloom(logs []ramp.Log) []byte {
	filter := make([]byte, 256)
	add := func(data []byte) {
		hash := crypto.Keccak256(data)
		for i := 0; i < 6; i += 2 {
			bit := binary.BigEndian.Uint16(hash[i:]) % 2048
			filter[255-bit/8] |= 1 << (bit % 8)
		}
	}
	for _, log := range logs {
		add(log.Address[:])
		for _, topic := range log.Topics {
			add(topic[:])
		}
	}
	return filter
}

// number is a quantity that is written as a JSON number.
func number(text string) (q ramp.Quantity) {
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		panic(err) // no number was given
	}
	return q
}
