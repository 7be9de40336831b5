// Package chain is a scripted blockchain behind JSON-RPC: transactions succeed or
// fail as they are scripted to, and blocks come with a clock. It knows nothing of
// orders. A Chain is safe for concurrent use.
package chain

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// The gas of transactions. A real chain computes these; here they are fixed.
const (
	GasOfCall     = 91_834
	gasOfTransfer = 21_000
	gasLimit      = 30_000_000      // of a block
	gasPrice      = 101_000_000_000 // wei
)

// Config configures a [Chain]. Every field but Tracked and Submitted is required.
type Config struct {
	Name      string           // makes the block hashes of two chains differ
	ID        uint64           // chain ID and net_version
	BlockTime time.Duration    // time between two blocks
	Now       func() time.Time // the clock
	Tokens    *big.Int         // what every account holds of every token at first, in the smallest units
	Decimals  int              // of every token
	Service   common.Address   // the account that mines, and that pays the gas of type 0x7

	Tracked bool // whether [Chain.Changes] is called

	// Submitted, if not nil, is called with each transaction that comes through
	// JSON-RPC. The transaction is pending until [Chain.Mine] is called.
	Submitted func(*Transaction)
}

// Chain is a scripted chain. Empty blocks are not kept, so time costs nothing.
type Chain struct {
	Config

	mu locks.Mutex
	blocks
	view
}

// blocks are all that has happened on a chain.
type blocks struct {
	spans    []Span
	forks    []uint64 // the first block of each branch that replaced another
	filled   map[uint64][]*Transaction
	known    map[common.Hash]*Transaction
	accounts map[common.Address]*Account
	single   map[common.Address]bool // the contracts of non-fungible tokens
	changed  changes                 // unless nothing is tracked
}

func newBlocks(begin time.Time) blocks {
	return blocks{
		spans:    []Span{{0, begin}},
		filled:   make(map[uint64][]*Transaction),
		known:    make(map[common.Hash]*Transaction),
		accounts: make(map[common.Address]*Account),
		single:   make(map[common.Address]bool),
		changed:  newChanges(0, 0),
	}
}

// Span is a run of blocks at equal intervals. The last span has no end.
type Span struct {
	First uint64
	At    time.Time
}

// Account is the state of an account.
type Account struct {
	Owner    common.Address
	Nonce    uint64                      // of the next transaction
	Done     uint64                      // how many transactions are in blocks
	Spent    *big.Int                    `json:",omitempty"` // wei; nil if none
	Holdings map[common.Address]*big.Int `json:",omitempty"` // changes of the initial balances, by token
}

// Transaction is one transaction. Its position in a block is looked up on demand,
// because a reorganization changes it.
type Transaction struct {
	Hash     common.Hash
	Kind     uint64 // type
	From     common.Address
	To       *common.Address // nil creates a contract
	FeePayer common.Address  // for type 0x7
	Nonce    uint64
	Value    *big.Int // wei
	Gas      uint64
	Input    []byte

	Signature ramp.Signature // of the sender
	Sponsor   ramp.Signature // of the fee payer

	Moves   []Move // its effects on tokens, if it succeeds
	GasUsed uint64

	Mined  bool
	Block  uint64
	Index  int // in the block
	Status uint64
	Gone   bool // Forget was called
}

// New returns a chain whose block 0 is mined now.
func New(config Config) *Chain {
	return &Chain{Config: config, mu: locks.At(locks.Chain), blocks: newBlocks(config.Now()), view: newView()}
}

// SetNonFungible makes a contract one of non-fungible tokens (ERC-721): it counts them, and
// has no decimals. It is not part of the state.
func (c *Chain) SetNonFungible(token common.Address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.single[token] = true
}

// Reset makes the chain as New returns it.
func (c *Chain) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks, c.view = newBlocks(c.Now()), newView()
}

// Units converts an amount of the chain's tokens to their smallest units, rounded down.
func (c *Chain) Units(a ramp.Amount) *big.Int { return Units(a, c.Decimals) }

// height returns the number of the newest block.
func (c *Chain) height() uint64 {
	last, now := c.spans[len(c.spans)-1], c.Now()
	if c.node.Stands {
		now = c.stopped
	}
	return last.First + uint64(now.Sub(last.At)/c.BlockTime)
}

// time returns when a block was mined.
func (c *Chain) time(number uint64) time.Time {
	i, found := slices.BinarySearchFunc(c.spans, number,
		func(s Span, n uint64) int { return cmp.Compare(s.First, n) })
	if !found {
		i--
	}
	return c.spans[i].At.Add(time.Duration(number-c.spans[i].First) * c.BlockTime)
}

// hash returns the hash of a block. It depends on the branch of the block.
func (c *Chain) hash(number uint64) common.Hash {
	branch := 0
	for _, first := range c.forks {
		if first <= number {
			branch++
		}
	}
	seed := binary.BigEndian.AppendUint64([]byte(c.Name), number)
	return crypto.Keccak256Hash([]byte("block"), binary.BigEndian.AppendUint64(seed, uint64(branch)))
}

// number finds a block by its hash. It searches blocks with transactions first, and
// then the newest ones.
func (c *Chain) number(hash common.Hash) (uint64, bool) {
	for n := range c.filled {
		if c.hash(n) == hash {
			return n, true
		}
	}
	const most = 10_000
	height := c.height()
	for below := range min(height+1, most) {
		if n := height - below; c.hash(n) == hash {
			return n, true
		}
	}
	return 0, false
}

// Submit adds a pending transaction to the chain. If the chain already has it, Submit
// returns the existing one.
func (c *Chain) Submit(t *Transaction) *Transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(t)
}

func (c *Chain) add(t *Transaction) *Transaction {
	if known := c.known[t.Hash]; known != nil {
		return known
	}
	c.known[t.Hash] = t
	c.touch(t)
	sender := c.changing(t.From)
	sender.Nonce = max(sender.Nonce, t.Nonce+1)
	return t
}

// Join adds moves to a pending transaction.
func (c *Chain) Join(t *Transaction, moves []Move) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Moves = append(slices.Clip(t.Moves), moves...)
	c.touch(t)
}

// NextBlock returns when the next block is mined.
func (c *Chain) NextBlock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time(c.height() + 1)
}

// Mine puts a transaction into the newest block if that was mined at this moment, and
// otherwise into a new block. mined is false if the transaction was already in a
// block, or if the chain stands still. A failed transaction moves nothing. A transaction
// that spends more than the sender has fails, whatever fail is.
func (c *Chain) Mine(t *Transaction, fails bool) (block uint64, mined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Mined || c.node.Stands {
		return t.Block, false
	}
	n := c.height()
	if !c.time(n).Equal(c.Now()) || n == 0 {
		n++
		c.spans = append(c.spans, Span{n, c.Now()})
	}
	c.put(t, n)
	c.execute(t, fails)
	return n, true
}

// Forget drops a transaction once all transactions of its block are forgotten. Until
// then it stays, because the positions in a block must not change.
func (c *Chain) Forget(t *Transaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Gone = true
	c.touch(t)
	block := c.filled[t.Block]
	if slices.ContainsFunc(block, func(other *Transaction) bool { return !other.Gone }) {
		return
	}
	for _, other := range block {
		delete(c.known, other.Hash)
		c.touch(other)
	}
	delete(c.filled, t.Block)
}

// Outcome reports whether a transaction is in a block, and whether it succeeded.
func (c *Chain) Outcome(t *Transaction) (succeeded, mined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Status == 1, t.Mined
}

func (c *Chain) put(t *Transaction, block uint64) {
	t.Mined, t.Block, t.Index = true, block, len(c.filled[block])
	c.filled[block] = append(c.filled[block], t)
	c.touch(t)
}

func (c *Chain) execute(t *Transaction, fails bool) {
	c.changing(t.From).Done++
	c.spend(cmp.Or(t.FeePayer, t.From),
		new(big.Int).Mul(big.NewInt(gasPrice), new(big.Int).SetUint64(t.GasUsed)))
	if fails || c.balance(t.From).Cmp(t.Value) < 0 {
		return
	}
	needs := make(map[[2]common.Address]*big.Int) // by token and account
	for _, m := range t.Moves {
		if m.Approval || m.From == (common.Address{}) {
			continue
		}
		need := [2]common.Address{m.Token, m.From}
		if needs[need] = plus(needs[need], m.Amount); c.tokenBalance(m.Token, m.From).Cmp(needs[need]) < 0 {
			return
		}
	}
	t.Status = 1
	c.spend(t.From, t.Value)
	if t.To != nil {
		c.spend(*t.To, new(big.Int).Neg(t.Value))
	}
	for _, m := range t.Moves {
		if m.Approval {
			continue
		}
		c.hold(m.Token, m.From, new(big.Int).Neg(m.Amount))
		c.hold(m.Token, m.To, m.Amount)
	}
}

// account returns the state of an account, for reading.
func (c *Chain) account(owner common.Address) *Account {
	if a := c.accounts[owner]; a != nil {
		return a
	}
	return &Account{Owner: owner}
}

// touch notes a change of a transaction, if any is tracked. The caller must hold the lock.
func (c *Chain) touch(t *Transaction) {
	if c.Tracked {
		c.changed.transactions[t.Hash] = true
	}
}

// changing returns the state of an account that changes.
func (c *Chain) changing(owner common.Address) *Account {
	if c.Tracked {
		c.changed.accounts[owner] = true
	}
	if c.accounts[owner] == nil {
		c.accounts[owner] = &Account{Owner: owner}
	}
	return c.accounts[owner]
}

// plus returns a+b, where nil is 0. It changes neither, because [Chain.Changes] returns both.
func plus(a, b *big.Int) *big.Int { return new(big.Int).Add(cmp.Or(a, new(big.Int)), b) }

func (c *Chain) spend(owner common.Address, wei *big.Int) {
	a := c.changing(owner)
	a.Spent = plus(a.Spent, wei)
}

// balance returns the balance of an address in wei. It is never negative, although gas
// is charged even if the balance does not cover it.
func (c *Chain) balance(owner common.Address) *big.Int {
	has := big.NewInt(1e18) // at first
	if spent := c.account(owner).Spent; spent != nil {
		has.Sub(has, spent)
	}
	if has.Sign() < 0 {
		has.SetUint64(0)
	}
	return has
}

func (c *Chain) hold(token, owner common.Address, units *big.Int) {
	if owner == (common.Address{}) {
		return
	}
	a := c.changing(owner)
	if a.Holdings == nil {
		a.Holdings = make(map[common.Address]*big.Int)
	}
	a.Holdings[token] = plus(a.Holdings[token], units)
}

// TokenBalance returns how much of a token an address holds.
func (c *Chain) TokenBalance(token, owner common.Address) *big.Rat {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Tokens(c.tokenBalance(token, owner), c.Decimals)
}

// tokenBalance returns how much of a token an address holds, in its smallest units.
func (c *Chain) tokenBalance(token, owner common.Address) *big.Int {
	return plus(c.account(owner).Holdings[token], c.Tokens)
}

// Reorganize replaces the block of a transaction, and all blocks after it, with a
// branch that is one block longer. All their transactions move to its last block.
func (c *Chain) Reorganize(t *Transaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, height := t.Block, c.height()
	c.forks = append(c.forks, from)
	last := height + 1
	c.spans = append(c.spans, Span{last, c.Now()})
	c.stopped = c.Now() // a chain that stands still stands there
	var moved []*Transaction
	for n := from; n <= height; n++ {
		moved = append(moved, c.filled[n]...)
		delete(c.filled, n)
	}
	for _, t := range moved {
		c.put(t, last)
	}
}

// ConfirmedAt returns when a transaction has a number of confirmations. Its own block
// is the first.
func (c *Chain) ConfirmedAt(t *Transaction, confirmations int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time(t.Block + uint64(confirmations) - 1)
}

// Confirmed reports whether a transaction has a number of confirmations.
func (c *Chain) Confirmed(t *Transaction, confirmations int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Mined && c.height() >= t.Block+uint64(confirmations)-1
}

// Receipt returns the receipt of a transaction in the form of the result webhook
// (interface 6). The outcome may differ from that on the chain, and the chain need
// not know the transaction.
func (c *Chain) Receipt(t *Transaction, succeeded bool) ramp.Receipt {
	c.mu.Lock()
	defer c.mu.Unlock()
	stated := *t
	stated.Status = 0
	if succeeded {
		stated.Status = 1
	}
	return c.receipt(&stated)
}

func (c *Chain) receipt(t *Transaction) ramp.Receipt {
	r := ramp.Receipt{
		Type:              ramp.NewQuantity(t.Kind),
		Root:              []byte{},
		Status:            ramp.NewQuantity(t.Status),
		TransactionHash:   t.Hash,
		GasUsed:           ramp.NewQuantity(t.GasUsed),
		EffectiveGasPrice: ramp.NewQuantity(gasPrice),
		BlockHash:         c.hash(t.Block),
		BlockNumber:       ramp.NewQuantity(t.Block),
	}
	gas, logs := uint64(0), 0
	for i, other := range c.filled[t.Block] {
		gas += other.GasUsed
		if other.Hash == t.Hash {
			r.TransactionIndex = ramp.NewQuantity(uint64(i))
			break
		}
		logs += int(other.Status) * len(other.Moves)
	}
	r.CumulativeGasUsed = ramp.NewQuantity(gas)
	if t.Status == 1 {
		r.Logs = transfers(t, &r, logs)
	}
	r.LogsBloom = bloom(r.Logs)
	return r
}

// transfers returns the events of token transfers and approvals. index is the position of the first
// one in the block.
func transfers(t *Transaction, r *ramp.Receipt, index int) []ramp.Log {
	var logs []ramp.Log
	for i, m := range t.Moves {
		event := "Transfer(address,address,uint256)"
		if m.Approval {
			event = "Approval(address,address,uint256)"
		}
		topics := []common.Hash{crypto.Keccak256Hash([]byte(event)), common.BytesToHash(m.From[:]),
			common.BytesToHash(m.To[:])}
		data := common.BigToHash(m.Amount).Bytes()
		if m.ID != nil {
			topics, data = append(topics, common.BigToHash(m.ID)), nil
		}
		logs = append(logs, ramp.Log{
			Address:          m.Token,
			Topics:           topics,
			Data:             data,
			BlockNumber:      r.BlockNumber,
			TransactionHash:  r.TransactionHash,
			TransactionIndex: r.TransactionIndex,
			BlockHash:        r.BlockHash,
			BlockTimestamp:   numberZero(),
			LogIndex:         ramp.NewQuantity(uint64(index + i)),
		})
	}
	return logs
}

// bloom returns the filter of all addresses and topics: three bits of 2048 for each.
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

// numberZero is 0 as a JSON number; all other quantities are strings.
func numberZero() (q ramp.Quantity) {
	if err := json.Unmarshal([]byte("0"), &q); err != nil {
		panic(err) // cannot happen: it is a number
	}
	return q
}
