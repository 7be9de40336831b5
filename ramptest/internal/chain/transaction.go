package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	ramp "github.com/token-ramp/ramp-go"
)

// dynamicFee is a transaction of type 0x2 as it is signed and hashed.
type dynamicFee struct {
	ChainID        *big.Int
	Nonce          uint64
	TipCap, FeeCap *big.Int
	Gas            uint64
	To             []byte
	Value          *big.Int
	Data           []byte
	AccessList     []rlp.RawValue
	V, R, S        *big.Int `rlp:"optional"`
}

// accessListed is a transaction of type 0x1.
type accessListed struct {
	ChainID    *big.Int
	Nonce      uint64
	GasPrice   *big.Int
	Gas        uint64
	To         []byte
	Value      *big.Int
	Data       []byte
	AccessList []rlp.RawValue
	V, R, S    *big.Int `rlp:"optional"`
}

// legacy is a transaction without a type. Its v includes the chain ID. In the form that
// is signed, the chain ID and two zeros take the place of v, r and s.
type legacy struct {
	Nonce    uint64
	GasPrice *big.Int
	Gas      uint64
	To       []byte
	Value    *big.Int
	Data     []byte
	V, R, S  *big.Int
}

// sponsored is a transaction of type 0x7: the sender's transaction and the fee payer.
type sponsored struct {
	Sender     dynamicFee
	FeePayer   common.Address
	FV, FR, FS *big.Int
}

const legacyType, accessListType, dynamicFeeType, feeDelegatedType = 0x0, 0x1, 0x2, 0x7

// hashList returns the hash of a transaction in its wire form: the type, unless it is
// legacy, followed by the list.
func hashList(kind byte, list any) common.Hash {
	raw, err := rlp.EncodeToBytes(list)
	if err != nil {
		panic(err) // cannot happen: no number in it is negative
	}
	if kind != legacyType {
		raw = append([]byte{kind}, raw...)
	}
	return crypto.Keccak256Hash(raw)
}

// Sign returns a signed transaction from a wallet to a contract, or one that creates a
// contract if to is nil. The service pays for it if its type is 0x7. Whatever the type, the hash is that of type 0x2, because only
// a real node knows how other types are hashed.
func (c *Chain) Sign(ctx context.Context, wallet *ramp.Signer, to *common.Address, input []byte, kind uint64) (*Transaction, error) {
	c.mu.Lock()
	nonce := c.account(wallet.Address()).Nonce
	c.mu.Unlock()
	d := dynamicFee{ChainID: new(big.Int).SetUint64(c.ID), Nonce: nonce, TipCap: big.NewInt(1e9), FeeCap: big.NewInt(gasPrice),
		Gas: 2 * GasOfCall, Value: new(big.Int), Data: input}
	if to != nil {
		d.To = to[:]
	}
	signature, err := wallet.Sign(ctx, ramp.Digest(hashList(dynamicFeeType, d)))
	if err != nil {
		return nil, fmt.Errorf("ramptest: the wallet signs no transaction: %w", err)
	}
	d.V, d.R, d.S = signatureParts(signature)
	t := &Transaction{Hash: hashList(dynamicFeeType, d), Kind: kind, From: wallet.Address(), To: to, Nonce: nonce, Value: new(big.Int),
		Gas: d.Gas, Input: input, Signature: signature, GasUsed: GasOfCall}
	if kind == feeDelegatedType {
		t.FeePayer, t.Sponsor = c.Service, signature // a placeholder: only a real node knows what a fee payer signs
	}
	c.readCall(t)
	return t, nil
}

// signatureParts returns v, as 0 or 1, r and s.
func signatureParts(s ramp.Signature) (v, r, ss *big.Int) {
	return big.NewInt(int64(s[64]) - 27), new(big.Int).SetBytes(s[:32]), new(big.Int).SetBytes(s[32:64])
}

// decode parses a signed transaction.
func (c *Chain) decode(raw []byte) (*Transaction, error) {
	switch {
	case len(raw) == 0:
		return nil, errors.New("the transaction is empty")
	case raw[0] >= 0xc0: // a list
		return c.decodeLegacy(raw)
	case raw[0] == accessListType:
		var a accessListed
		if err := rlp.DecodeBytes(raw[1:], &a); err != nil {
			return nil, err
		}
		d := dynamicFee{ChainID: a.ChainID, Nonce: a.Nonce, Gas: a.Gas, To: a.To, Value: a.Value, Data: a.Data, V: a.V, R: a.R, S: a.S}
		unsigned := a
		unsigned.V, unsigned.R, unsigned.S = nil, nil, nil
		return c.recover(accessListType, &d, a, unsigned)
	case raw[0] == dynamicFeeType:
		var d dynamicFee
		if err := rlp.DecodeBytes(raw[1:], &d); err != nil {
			return nil, err
		}
		return c.recoverDynamicFee(&d)
	case raw[0] == feeDelegatedType:
		var both sponsored
		if err := rlp.DecodeBytes(raw[1:], &both); err != nil {
			return nil, err
		}
		t, err := c.recoverDynamicFee(&both.Sender) // its hash is that of the whole transaction
		if err != nil {
			return nil, err
		}
		t.Kind, t.FeePayer = feeDelegatedType, both.FeePayer
		t.Sponsor, err = joinSignature(both.FV, both.FR, both.FS)
		return t, err
	default:
		return nil, errors.New("transaction type not supported")
	}
}

func (c *Chain) decodeLegacy(raw []byte) (*Transaction, error) {
	var l legacy
	if err := rlp.DecodeBytes(raw, &l); err != nil {
		return nil, err
	}
	protected := new(big.Int).Sub(l.V, big.NewInt(35)) // twice the chain ID plus the recovery ID
	if protected.Sign() < 0 {
		return nil, errors.New("only replay-protected (EIP-155) transactions allowed over RPC")
	}
	d := dynamicFee{ChainID: new(big.Int).Rsh(protected, 1), Nonce: l.Nonce, Gas: l.Gas, To: l.To, Value: l.Value, Data: l.Data,
		V: big.NewInt(int64(protected.Bit(0))), R: l.R, S: l.S}
	unsigned := l
	unsigned.V, unsigned.R, unsigned.S = d.ChainID, new(big.Int), new(big.Int)
	return c.recover(legacyType, &d, l, unsigned)
}

func (c *Chain) recoverDynamicFee(d *dynamicFee) (*Transaction, error) {
	unsigned := *d
	unsigned.V, unsigned.R, unsigned.S = nil, nil, nil
	return c.recover(dynamicFeeType, d, d, unsigned)
}

// recover returns a transaction with its sender, which it recovers from the signature.
// whole is the transaction's list, and unsigned the list that the sender signed.
func (c *Chain) recover(kind byte, d *dynamicFee, whole, unsigned any) (*Transaction, error) {
	if d.ChainID.Cmp(new(big.Int).SetUint64(c.ID)) != 0 {
		return nil, fmt.Errorf("invalid chain id for signer: have %s want %d", d.ChainID, c.ID)
	}
	t := &Transaction{Kind: uint64(kind), Nonce: d.Nonce, Value: d.Value, Gas: d.Gas, Input: d.Data, GasUsed: gasOfTransfer}
	var err error
	if t.Signature, err = joinSignature(d.V, d.R, d.S); err != nil {
		return nil, err
	}
	t.Hash = hashList(kind, whole)
	if t.From, err = ramp.Recover(ramp.Digest(hashList(kind, unsigned)), t.Signature); err != nil {
		return nil, errors.New("invalid sender")
	}
	if len(d.To) > 0 {
		to := common.BytesToAddress(d.To)
		t.To = &to
	}
	c.readCall(t)
	return t, nil
}

func joinSignature(v, r, s *big.Int) (ramp.Signature, error) {
	var joined ramp.Signature
	if v == nil || r == nil || s == nil || v.BitLen() > 1 || r.BitLen() > 256 || s.BitLen() > 256 {
		return joined, errors.New("the transaction is not signed")
	}
	r.FillBytes(joined[:32])
	s.FillBytes(joined[32:64])
	joined[64] = byte(v.Uint64()) + 27
	return joined, nil
}

// readCall sets the moves of a transaction that calls transfer or approve of a token. As
// in a real contract, what follows the arguments is ignored.
func (c *Chain) readCall(t *Transaction) {
	if t.To == nil || len(t.Input) < 68 {
		return
	}
	m := Move{Token: *t.To, From: t.From, To: common.BytesToAddress(t.Input[4:36]), Amount: new(big.Int).SetBytes(t.Input[36:68])}
	switch [4]byte(t.Input) {
	case Selector("transfer(address,uint256)"):
	case Selector("approve(address,uint256)"):
		m.Approval = true
	default:
		return
	}
	t.Moves, t.GasUsed = []Move{m}, GasOfCall
}

// Selector returns the selector of a contract function.
func Selector(signature string) [4]byte { return [4]byte(crypto.Keccak256([]byte(signature))) }

// Arguments returns the input of a call: a selector, one word, and any number of bytes
// arguments in the ABI.
func Arguments(selector, word []byte, values ...[]byte) []byte {
	const size = 32
	number := func(n int) []byte { return common.LeftPadBytes(big.NewInt(int64(n)).Bytes(), size) }
	head, tail := append(selector, word...), []byte(nil)
	for _, value := range values {
		head = append(head, number(size*(1+len(values))+len(tail))...)
		tail = append(append(tail, number(len(value))...), value...)
		tail = append(tail, make([]byte, (size-len(value)%size)%size)...)
	}
	return append(head, tail...)
}
