package evidence

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// Prover judges transactions by a [Config].
type Prover struct {
	Config
	*tokens
}

// NewProver returns a prover.
func NewProver(c Config) *Prover {
	return &Prover{c, &tokens{chain: c.Chain, configured: c.Decimals}}
}

// Check returns what a transaction shows about an order, and an error that wraps
// [ErrNotProven] unless it proves that the order has ended as the transaction did.
// Both must be in a block that has its confirmations.
func (p *Prover) Check(
	order *ramp.Order, transaction *ramp.Transaction, receipt *ramp.Receipt,
) (ramp.Evidence, error) {
	e, others := p.shown(order, transaction, receipt)
	missing := func(format string, args ...any) (ramp.Evidence, error) {
		return e, fmt.Errorf("ramp: order %s: %w: %s", order.UUID, ErrNotProven, fmt.Sprintf(format, args...))
	}
	token, user := parties(order)
	doubtful := !e.Succeeded && !p.AnyFailure
	switch {
	case !receipt.Status.Present():
		return missing("the receipt has no status")
	case user == token || p.outside(user) || slices.Contains(p.Payers, user):
		return missing("the order must have one token contract, " +
			"and a user that is not the token, the ramp or the zero address")
	case doubtful && !p.paid(&e):
		return missing("neither its sender %s nor its fee payer %s is one of Config.Payers", e.From, e.FeePayer)
	case doubtful && len(p.Contracts) > 0 && (e.To == nil || !slices.Contains(p.Contracts, *e.To)):
		return missing("it went to none of Config.Contracts")
	case e.Succeeded && order.Direction == ramp.Mint && e.Units.Sign() <= 0:
		return missing("it transfers no token %s to the user %s", token, user)
	case !e.Succeeded || order.Direction == ramp.Mint:
		return e, nil
	}
	decimals, counted := p.DecimalsOf(token)
	amount, err := TokensOf(order)[0].Amount.Units(decimals)
	burned, unit := e.Units, "units"
	if pieces := big.NewInt(int64(len(e.TokenIDs))); !counted && pieces.Cmp(burned) <= 0 {
		burned, unit = pieces, "pieces (the decimals of the token are not known)"
	}
	switch {
	case err != nil:
		return missing("%v", err)
	case burned.Cmp(amount) >= 0:
		return e, nil
	case len(others) > 0:
		return missing("it burns %s of %s %s of the token %s of the user %s: tokens were passed on to %s",
			burned, amount, unit, token, user, others[0])
	default:
		return missing("it burns %s of %s %s of the token %s of the user %s",
			burned, amount, unit, token, user)
	}
}

// paid reports whether the ramp sent a transaction or paid for it.
func (c *Config) paid(e *ramp.Evidence) bool {
	return slices.Contains(c.Payers, e.From) ||
		e.FeePayer != common.Address{} && slices.Contains(c.Payers, e.FeePayer)
}

// Shown returns what a transaction shows about an order.
func (c *Config) Shown(
	order *ramp.Order, transaction *ramp.Transaction, receipt *ramp.Receipt,
) ramp.Evidence {
	e, _ := c.shown(order, transaction, receipt)
	return e
}

// shown returns what a transaction shows about an order, and who else gained tokens.
func (c *Config) shown(
	order *ramp.Order, transaction *ramp.Transaction, receipt *ramp.Receipt,
) (e ramp.Evidence, others []common.Address) {
	e = ramp.Evidence{Succeeded: receipt.Succeeded(), From: transaction.From,
		FeePayer: transaction.FeePayer, To: transaction.To}
	token, user := parties(order)
	if !e.Succeeded || user == token {
		return e, nil
	}
	foreign := func(t ramp.Transfer) bool { return t.Token != token }
	transfers := slices.DeleteFunc(receipt.Transfers(), foreign)
	gained, holder := map[common.Address]*big.Int{user: {}}, map[string]common.Address{}
	for _, t := range transfers {
		units := cmp.Or(t.Value, common.Big1) // a piece is one, whatever its ID
		gained[t.From] = new(big.Int).Sub(cmp.Or(gained[t.From], common.Big0), units)
		gained[t.To] = new(big.Int).Add(cmp.Or(gained[t.To], common.Big0), units)
		holder[t.TokenID.String()] = t.To // in the end, of each piece; units have no ID
	}
	for _, t := range transfers {
		last, first := holder[t.TokenID.String()]
		delete(holder, t.TokenID.String())
		minted, burned := last == user && c.outside(t.From), t.From == user && c.outside(last)
		if first && t.TokenID != nil &&
			(order.Direction == ramp.Mint && minted || order.Direction == ramp.Burn && burned) {
			e.TokenIDs = append(e.TokenIDs, t.TokenID)
		}
	}
	e.Units = gained[user]
	if order.Direction == ramp.Burn {
		e.Units.Neg(e.Units)
		for other, units := range gained {
			if units.Sign() > 0 && other != user && !c.outside(other) {
				e.Units.Sub(e.Units, units)
				others = append(others, other)
			}
		}
	}
	return e, others
}
