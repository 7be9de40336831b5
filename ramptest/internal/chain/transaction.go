package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	ramp "github.com/token-ramp/ramp-go"
)

// signed holds what the chain reads of a signed transaction.
type signed struct {
	Nonce   uint64
	Gas     uint64
	To      []byte
	Value   *big.Int
	Data    []byte
	V, R, S *big.Int
	ChainID *big.Int `rlp:"optional"` // a legacy transaction has it in V
}

// sponsored is a transaction of type 0x7: the sender's transaction of type 0x2 and the fee
// payer.
type sponsored struct {
	Sender     rlp.RawValue
	FeePayer   common.Address
	FV, FR, FS *big.Int
}

const legacyType, accessListType, dynamicFeeType, feeDelegatedType = 0x0, 0x1, 0x2, 0x7

// encoded returns a value in its wire form.
func encoded(value any) rlp.RawValue { return ramp.Must(rlp.EncodeToBytes(value)) }

// hashList returns the hash of a transaction in its wire form: the type, unless it is
// legacy, followed by the list.
func hashList(kind byte, list any) common.Hash {
	raw := encoded(list)
	if kind != legacyType {
		raw = append([]byte{kind}, raw...)
	}
	return crypto.Keccak256Hash(raw)
}

// Sign returns a signed transaction from a wallet to a contract, or one that creates a
// contract if to is nil. The service pays for it if its type is 0x7. Whatever the type, the hash is
// that of type 0x2, because only a real node knows how other types are hashed.
func (c *Chain) Sign(ctx context.Context, wallet *ramp.Signer, to *common.Address, input []byte,
	kind uint64) (*Transaction, error) {
	c.mu.Lock()
	nonce := c.account(wallet.Address()).Nonce
	c.mu.Unlock()
	t := &Transaction{Kind: kind, From: wallet.Address(), To: to, Nonce: nonce, Value: new(big.Int),
		Gas: 2 * GasOfCall, Input: input, GasUsed: GasOfCall}
	var receiver []byte
	if to != nil {
		receiver = to[:]
	}
	const tip = 1_000_000_000 // wei
	list := []any{c.ID, nonce, uint64(tip), uint64(gasPrice), t.Gas, receiver, t.Value, input, []any{}}
	signature, err := wallet.Sign(ctx, ramp.Digest(hashList(dynamicFeeType, list)))
	if err != nil {
		return nil, fmt.Errorf("ramptest: the wallet signs no transaction: %w", err)
	}
	v, r, ss := signatureParts(signature)
	t.Hash, t.Signature = hashList(dynamicFeeType, append(list, v, r, ss)), signature
	if kind == feeDelegatedType {
		// a placeholder: only a real node knows what a fee payer signs
		t.FeePayer, t.Sponsor = c.Service, signature
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
		return c.decodeList(legacyType, raw)
	case raw[0] == accessListType, raw[0] == dynamicFeeType:
		return c.decodeList(raw[0], raw[1:])
	case raw[0] == feeDelegatedType:
		var both sponsored
		if err := rlp.DecodeBytes(raw[1:], &both); err != nil {
			return nil, err
		}
		t, err := c.decodeList(dynamicFeeType, both.Sender) // its hash is that of the whole transaction
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

// decodeList parses the list of a signed transaction: the chain ID, the nonce, one price of
// gas (type 0x1) or two (type 0x2), the gas, the receiver, the value, the data, the access
// list, v, r and s. A legacy one has no chain ID, one price and no access list; in what is
// signed, the chain ID and two zeros take the place of v, r and s.
func (c *Chain) decodeList(kind byte, raw []byte) (*Transaction, error) {
	var list []rlp.RawValue
	if err := rlp.DecodeBytes(raw, &list); err != nil {
		return nil, err
	}
	rest := len(list) - 3 // where the signature begins
	if rest != map[byte]int{legacyType: 6, accessListType: 8, dynamicFeeType: 9}[kind] {
		return nil, errors.New("the transaction is not signed")
	}
	unsigned, known := list[:rest:rest], slices.Concat(list[:1], list[2:])
	if kind != legacyType {
		known = slices.Concat(list[1:2], list[rest-5:rest-1], list[rest:], list[:1])
	}
	var s signed
	if err := rlp.DecodeBytes(encoded(known), &s); err != nil {
		return nil, err
	}
	if kind == legacyType {
		s.V.Sub(s.V, big.NewInt(35)) // twice the chain ID plus the recovery ID
		if s.V.Sign() < 0 {
			return nil, errors.New("only replay-protected (EIP-155) transactions allowed over RPC")
		}
		s.ChainID, s.V = new(big.Int).Rsh(s.V, 1), big.NewInt(int64(s.V.Bit(0)))
		unsigned = append(unsigned, encoded(s.ChainID), encoded(uint(0)), encoded(uint(0)))
	}
	if s.ChainID.Cmp(new(big.Int).SetUint64(c.ID)) != 0 {
		return nil, fmt.Errorf("invalid chain id for signer: have %s want %d", s.ChainID, c.ID)
	}
	t := &Transaction{Kind: uint64(kind), Nonce: s.Nonce, Value: s.Value, Gas: s.Gas, Input: s.Data,
		GasUsed: gasOfTransfer, Hash: hashList(kind, list)}
	var err error
	if t.Signature, err = joinSignature(s.V, s.R, s.S); err != nil {
		return nil, err
	}
	if t.From, err = ramp.Recover(ramp.Digest(hashList(kind, unsigned)), t.Signature); err != nil {
		return nil, errors.New("invalid sender")
	}
	if len(s.To) > 0 {
		to := common.BytesToAddress(s.To)
		t.To = &to
	}
	c.readCall(t)
	return t, nil
}

func joinSignature(v, r, s *big.Int) (ramp.Signature, error) {
	var joined ramp.Signature
	if v.BitLen() > 1 || r.BitLen() > 256 || s.BitLen() > 256 {
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
	m := Move{Token: *t.To, From: t.From, To: common.BytesToAddress(t.Input[4:36]),
		Amount: new(big.Int).SetBytes(t.Input[36:68])}
	switch [4]byte(t.Input) {
	case Selector("transfer(address,uint256)"):
	case Selector("approve(address,uint256)"):
		m.Approval = true
	default:
		return
	}
	t.Moves, t.GasUsed = []Move{m}, GasOfCall
}

// RunsCode reports whether the transaction needs code that this chain does not have: a creation, or a
// call of a function that readCall does not know. It reverts, as in a contract that lacks the function.
func (t *Transaction) RunsCode() bool {
	return len(t.Moves) == 0 && (t.To == nil || len(t.Input) >= 4)
}
