package ramptest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// This file has what an order says: what the player asks for and signs, which
// tokens its transaction moves, and the body of its result.

var errNoItems = errors.New("ramptest: the terms have nothing")

// intent returns what the player asks for (interface 2.5).
func (c *Config) intent(t *trade, asked ramp.InitializeIntent, tokens ramp.Amount) (ramp.Intent, error) {
	intent := ramp.Intent{Method: ramp.MethodMint, Type: t.kind, TargetCandidate: json.RawMessage("{}")}
	if !t.mint {
		intent.Method = c.BurnMethod
	}
	items := t.items(&asked)
	assets, token := t.sides(&intent)
	*token = []ramp.IntentAsset{{Type: c.tokenType(items), ID: asked.Token, Amount: tokens}}
	if len(items) == 0 {
		return ramp.Intent{}, fmt.Errorf("%w for a %s: a mint needs materials, a burn needs outputs", errNoItems, t.direction)
	}
	*assets = make([]ramp.IntentAsset, len(items))
	for i, item := range items {
		amount := item.Amount
		if !c.PerOrder {
			var err error
			if amount, err = ramp.ParseAmount(books.Decimal(new(big.Rat).Mul(amount.Rat(), tokens.Rat()))); err != nil {
				return ramp.Intent{}, fmt.Errorf("ramptest: %w", err)
			}
		}
		(*assets)[i] = ramp.IntentAsset{Type: ramp.TypeAsset, ID: item.ID, Amount: amount}
	}
	return intent, nil
}

// tokenType returns the type of the token that is traded for items.
func (c *Config) tokenType(items []ramp.Item) ramp.AssetType {
	switch {
	case c.TokenType != "":
		return c.TokenType
	case slices.ContainsFunc(items, func(item ramp.Item) bool { return item.IsNonFungible }):
		return ramp.TypeNFT
	default:
		return ramp.TypeERC20
	}
}

// afterFee subtracts a fee in basis points from an amount.
func afterFee(amount, fee ramp.Amount) ramp.Amount {
	rest := new(big.Rat).Sub(big.NewRat(10_000, 1), fee.Rat())
	return amountOf(rest.Mul(rest, amount.Rat()).Quo(rest, big.NewRat(10_000, 1)))
}

// seal sets the digest of a request, unless it has one, and the user's signature.
// The user signs a different hash than the validator does.
func (s *orders) seal(ctx context.Context, o *Order, r *ramp.ValidateRequest) error {
	if r.Digest == (ramp.Digest{}) {
		r.Digest = s.config.Digest(r)
	}
	signature, err := o.wallet.Sign(ctx, ramp.Digest(crypto.Keccak256([]byte("user"), r.Digest[:])))
	r.UserSig = signature.String()
	return err
}

// hashDigest is the default of [Config.Digest].
func hashDigest(r *ramp.ValidateRequest) ramp.Digest {
	return ramp.Digest(crypto.Keccak256([]byte("digest"), r.UUID[:], []byte(r.UserAddress), encoded(r.Intent)))
}

// encoded returns the JSON of a message that the service has composed.
func encoded(message any) []byte { return ramp.Must(json.Marshal(message)) }

func (c *Config) wallet(session ramp.Session) (*ramp.Signer, error) {
	signer := c.Wallet(session)
	if signer == nil {
		return nil, errors.New("ramptest: Config.Wallet returned nil for the session")
	}
	return signer, nil
}

// oncePerSession returns a function that computes the wallet of a session once.
func oncePerSession(wallet func(ramp.Session) *ramp.Signer) func(ramp.Session) *ramp.Signer {
	var known sync.Map
	return func(session ramp.Session) *ramp.Signer {
		if signer, ok := known.Load(session.ID); ok {
			return signer.(*ramp.Signer)
		}
		signer := wallet(session)
		known.Store(session.ID, signer)
		return signer
	}
}

// sessionWallet is the default of [Config.Wallet].
func sessionWallet(session ramp.Session) *ramp.Signer {
	key := crypto.ToECDSAUnsafe(crypto.Keccak256([]byte("wallet"), []byte(session.ID))) // only about one hash in 2^128 is none
	return ramp.Must(ramp.NewCryptoSigner(key))
}

// serviceAccount is the service's own account. It receives the fees and pays the
// gas of transactions of type 0x7.
func serviceAccount() common.Address {
	return common.BytesToAddress(crypto.Keccak256([]byte("service")))
}

// orderToken is the token of an order.
type orderToken ramp.IntentAsset

func (t orderToken) contract() common.Address { return common.HexToAddress(t.ID) }

func (o *Order) token() orderToken {
	_, tokens := o.trade().sides(&o.Request.Intent)
	return orderToken((*tokens)[0])
}

// burnsLess reports whether the transaction of a burn burns less than the order is about.
func (o *Order) burnsLess() bool { return o.script.less && !o.trade().mint }

// moves returns the token transfers of an order: mints, burns and fees.
func (c *Config) moves(o *Order, player common.Address) []chain.Move {
	token := o.token()
	contract := token.contract()
	amount, net := chain.Units(token.Amount, c.Decimals), chain.Units(afterFee(token.Amount, o.fee), c.Decimals)
	if !o.trade().mint {
		if o.burnsLess() {
			amount.Sub(amount, big.NewInt(1))
		}
		return []chain.Move{{Token: contract, From: player, Amount: amount}}
	}
	made := []chain.Move{{Token: contract, To: player, Amount: net}}
	if fee := new(big.Int).Sub(amount, net); fee.Sign() > 0 {
		made = append(made, chain.Move{Token: contract, To: serviceAccount(), Amount: fee})
	}
	return made
}

// unique returns the moves of an order of non-fungible tokens, one for each, or moves
// if the tokens have no IDs. A mint makes new IDs. A burn takes those that earlier mints
// gave to the wallet, oldest first; the wallet holds others from the beginning. The
// caller must hold the lock.
func (s *orders) unique(o *Order, moves []chain.Move) (single []chain.Move) {
	token := o.token()
	n, err := token.Amount.Int64()
	if err != nil || n > 1000 || !strings.EqualFold(string(token.Type), string(ramp.TypeNFT)) {
		return moves
	}
	wallet := o.wallet.Address()
	var held []*big.Int
	for _, other := range s.queue {
		if outcome, mined := s.outcome(other); !mined || outcome != Succeeded {
			continue
		}
		for _, m := range other.tx.Moves {
			switch {
			case m.ID == nil || m.Token != token.contract():
			case m.To == wallet:
				held = append(held, m.ID)
			case m.From == wallet:
				held = slices.DeleteFunc(held, func(id *big.Int) bool { return id.Cmp(m.ID) == 0 })
			}
		}
	}
	for i := range n {
		m := moves[0]
		m.Amount = chain.Units(ramp.NewAmount(1), s.config.Decimals)
		m.ID = new(big.Int).SetBytes(crypto.Keccak256([]byte("token"), o.UUID[:], big.NewInt(i).Bytes())[:8])
		if m.From == wallet && len(held) > 0 {
			m.ID, held = held[0], held[1:]
		}
		single = append(single, m)
	}
	return single
}

// result returns the call that tells the game an outcome (interface 6). Its body
// is always the same bytes for the same outcome on the same branch of the chain.
func (s *orders) result(o *Order, stated Outcome) (call, error) {
	intent := o.Request.Intent
	if !o.script.withoutFee {
		intent.FeeRate, intent.Actual = json.Number(o.fee.String()), afterFee(intent.To[0].Amount, o.fee).String()
	}
	onChain, _ := s.outcome(o)
	if stated == asOnChain {
		stated = onChain
	}
	receipt := s.receipt(o, stated)
	body, err := json.Marshal(ramp.Result{
		SessionID: o.Session.ID,
		UUID:      o.UUID,
		TxHash:    receipt.TransactionHash.Hex(),
		Receipt:   receipt,
		Intent:    intent,
	})
	if err != nil { // of an order that was made by hand
		return call{}, fmt.Errorf("ramptest: %w", err)
	}
	tx := receiptEvent(o.Network, &receipt, stated)
	return call{kind: KindResult, order: o, body: body, tx: tx, stated: stated, onChain: onChain}, nil
}

// outcome returns the outcome on the chain; ok reports whether there is one.
func (s *orders) outcome(o *Order) (outcome Outcome, ok bool) {
	if o.tx == nil {
		return 0, false
	}
	succeeded, mined := s.chains[o.Network].Outcome(o.tx)
	if succeeded {
		return Succeeded, mined
	}
	return Failed, mined
}

// onChain returns an event with what the chain knows about an order's transaction.
func (s *orders) onChain(o *Order) Event {
	outcome, mined := s.outcome(o)
	if !mined {
		return Event{Network: o.Network, TxHash: o.TxHash, Status: TxSubmitted}
	}
	receipt := s.chains[o.Network].Receipt(o.tx, outcome == Succeeded)
	return receiptEvent(o.Network, &receipt, outcome)
}

// receipt returns the receipt of an order's transaction with an outcome, which may
// differ from the one on the chain. For an order that was made by hand, it makes up
// a transaction that is not on the chain.
func (s *orders) receipt(o *Order, outcome Outcome) ramp.Receipt {
	if o.tx != nil {
		return s.chains[o.Network].Receipt(o.tx, outcome == Succeeded)
	}
	tx := chain.Transaction{GasUsed: chain.GasOfCall, Kind: 2, Moves: s.config.moves(o, o.address()),
		Hash: crypto.Keccak256Hash([]byte("transaction"), o.UUID[:], o.Request.Digest[:])}
	return s.chains[slices.Min(slices.Collect(maps.Keys(s.chains)))].Receipt(&tx, outcome == Succeeded)
}

// receiptEvent returns an event with what a receipt says about a transaction.
func receiptEvent(network ramp.Network, r *ramp.Receipt, outcome Outcome) Event {
	e := Event{Network: network, TxHash: r.TransactionHash, Status: TxFailed}
	if outcome == Succeeded {
		e.Status = TxSucceeded
	}
	e.Block, _ = r.BlockNumber.Uint64()
	return e
}

// input returns the input of an order's transaction: a call with the digest and both
// signatures. The interface does not say what it holds.
func input(o *Order) []byte {
	user, err := hex.DecodeString(strings.TrimPrefix(o.Approval.UserSig, "0x"))
	if err != nil { // the game returned something else, which the record says
		user = nil
	}
	selector := chain.Selector(string(o.Request.Intent.Method) + "(bytes32,bytes,bytes)")
	return chain.Arguments(selector[:], o.Request.Digest[:], user, o.Approval.ValidatorSig[:])
}
