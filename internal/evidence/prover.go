package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

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
	missing := p.tookPart(order, &e, receipt)
	if missing == nil && e.Succeeded {
		missing = p.crossed(order, &e, others, receipt)
	}
	if missing != nil {
		return e, fmt.Errorf("ramp: order %s: %w: %w", order.UUID, ErrNotProven, missing)
	}
	return e, nil
}

// CheckUser returns an error that wraps [ErrNotProven] unless a transaction that succeeded moved
// more than nothing of each token of an order, from the user of a burn or to the user of a mint.
// Otherwise the order may be one of several that a transaction settles, and have failed in it.
func (p *Prover) CheckUser(order *ramp.Order, receipt *ramp.Receipt) error {
	if err := CheckReadable(ContractsOf(order), receipt.Logs); err != nil || !receipt.Succeeded() {
		return err
	}
	user := common.HexToAddress(order.UserAddress)
	for _, token := range TokensOf(order) {
		if !common.IsHexAddress(token.ID) {
			return fmt.Errorf("%w: the token of the order is no contract address", ErrNotProven)
		}
		contract := common.HexToAddress(token.ID)
		transfers := transfersOf(contract, receipt.Logs)
		if movedFor(user, order.Direction, transfers) {
			continue
		}
		amount := func(units *big.Int) string { return units.String() + " units" }
		if decimals, known := p.DecimalsOf(contract); known {
			amount = func(units *big.Int) string { return inTokens(units, decimals) }
		}
		text := cmp.Or(p.bystanders(order, transfers, amount),
			fmt.Sprintf("it moved nothing of the token %s", contract))
		if unread := unreadEvents(contract, receipt.Logs); unread != "" {
			text += "; " + unread
		}
		return fmt.Errorf("%w: %s; the order's user is %s", ErrNotProven, text, user)
	}
	return nil
}

// tookPart returns an error unless the ramp made or received a transaction. One that failed
// must be of the ramp on both sides, because anybody can make a transaction fail.
func (p *Prover) tookPart(order *ramp.Order, e *ramp.Evidence, receipt *ramp.Receipt) error {
	token, user := parties(order)
	received := e.To != nil && slices.Contains(p.Contracts, *e.To)
	switch {
	case !receipt.Status.Present():
		return errors.New("the receipt has no status")
	case user == token || p.outside(user) || slices.Contains(p.Payers, user):
		return errors.New("the order must have one token contract, " +
			"and a user that is not the token, the ramp or the zero address")
	case !e.Succeeded && p.AnyFailure:
		return nil
	case !e.Succeeded && !p.paid(e):
		return fmt.Errorf("it failed, and the ramp did not pay for it: Config.Payers has neither its sender "+
			"nor its fee payer; %s", route(e))
	case !e.Succeeded && len(p.Contracts) > 0 && !received:
		return fmt.Errorf("it failed, and Config.Contracts does not have where it went; %s", route(e))
	case e.Succeeded && len(p.Payers)+len(p.Contracts) > 0 && !p.paid(e) && !received:
		return fmt.Errorf("the ramp took no part: Config.Payers has neither its sender nor its fee payer, "+
			"and Config.Contracts does not have where it went; %s", route(e))
	default:
		return nil
	}
}

// route says who sent and paid a transaction, and where it went.
func route(e *ramp.Evidence) string {
	to := "a new contract"
	if e.To != nil {
		to = e.To.Hex()
	}
	payer := cmp.Or(e.FeePayer, e.From)
	return fmt.Sprintf("it was sent by %s, paid for by %s, and went to %s", e.From, payer, to)
}

// paid reports whether the ramp sent a transaction or paid for it.
func (c *Config) paid(e *ramp.Evidence) bool {
	return slices.Contains(c.Payers, cmp.Or(e.FeePayer, e.From)) || slices.Contains(c.Payers, e.From)
}

// crossed returns an error unless enough tokens came from outside and stayed with the user of
// a mint, or went outside and were those of the user of a burn.
func (p *Prover) crossed(
	order *ramp.Order, e *ramp.Evidence, others []common.Address, receipt *ramp.Receipt,
) error {
	token, user := parties(order)
	if err := CheckReadable([]common.Address{token}, receipt.Logs); err != nil {
		return err
	}
	moved, unit := e.Units, "units"
	decimals, counted := p.DecimalsOf(token)
	if pieces := big.NewInt(int64(len(e.TokenIDs))); !counted && pieces.Cmp(moved) <= 0 {
		moved, unit = pieces, "pieces (the decimals of the token are not known)"
	}
	least, err := p.least(order, decimals, len(e.TokenIDs) > 0)
	anyFee := order.Direction == ramp.Mint && p.MintFeeBps[token] < 0
	if anyFee {
		moved, unit, least, err = e.Units, "units", common.Big1, nil // any amount
	}
	if err != nil || moved.Cmp(least) >= 0 {
		return err
	}
	amount := (*big.Int).String
	if counted && unit == "units" {
		unit = "tokens"
		amount = func(units *big.Int) string { return inTokens(units, decimals) }
	}
	text, other := "it burns %s of %s %s of the contract %s of the user %s", "gains"
	if order.Direction == ramp.Mint {
		text, other = "it mints %s of %s %s of the contract %s for the user %s", "loses"
	}
	some := moved
	if moved.Sign() < 0 {
		some = new(big.Int)
	}
	text = fmt.Sprintf(text, amount(some), amount(least), unit, token, user)
	if anyFee {
		text = fmt.Sprintf("it mints none of the token %s for the user %s", token, user)
	}
	if moved.Sign() < 0 {
		text += fmt.Sprintf(", who %s %s", other, amount(new(big.Int).Neg(moved)))
	}
	if len(others) > 0 {
		text += fmt.Sprintf(": tokens were passed on to %s", others[0])
	}
	if !movedFor(user, order.Direction, transfersOf(token, receipt.Logs)) {
		if others := p.bystanders(order, transfersOf(token, receipt.Logs), amount); others != "" {
			text += ": " + others
		}
	}
	if unread := unreadEvents(token, receipt.Logs); unread != "" {
		text += "; " + unread
	}
	return errors.New(text)
}

// inTokens writes units as tokens.
func inTokens(units *big.Int, decimals int) string {
	tokens, _ := ramp.AmountOfUnits(units, decimals) // 256 bits have few enough digits
	return tokens.String()
}

// allBps is the whole, in basis points.
const allBps = 10_000

// least returns how much the transaction of an order must move: its amount, and for a mint that less
// the fee of its token, but one unit at least. Pieces are whole: no part of one can be a fee.
func (p *Prover) least(order *ramp.Order, decimals int, pieces bool) (*big.Int, error) {
	token, _ := parties(order)
	units, err := TokensOf(order)[0].Amount.Units(decimals)
	if err != nil {
		return nil, err
	}
	if order.Direction == ramp.Mint && !pieces {
		units.Mul(units, big.NewInt(int64(allBps-max(0, p.MintFeeBps[token])))).Div(units, big.NewInt(allBps))
	}
	return atLeastOne(units), nil
}

// atLeastOne returns units, or one if they are none: nothing proves nothing.
func atLeastOne(units *big.Int) *big.Int {
	if units.Sign() <= 0 {
		return big.NewInt(1)
	}
	return units
}

// Shown returns what a transaction shows about an order.
func (c *Config) Shown(
	order *ramp.Order, transaction *ramp.Transaction, receipt *ramp.Receipt,
) ramp.Evidence {
	e, _ := c.shown(order, transaction, receipt)
	return e
}

// shown returns what a transaction shows about an order, and who else gained tokens of a
// burn.
func (c *Config) shown(
	order *ramp.Order, transaction *ramp.Transaction, receipt *ramp.Receipt,
) (e ramp.Evidence, others []common.Address) {
	e = ramp.Evidence{Succeeded: receipt.Succeeded(), From: transaction.From,
		FeePayer: cmp.Or(transaction.FeePayer, receipt.FeePayer), To: transaction.To}
	token, user := parties(order)
	if !e.Succeeded || user == token {
		return e, nil
	}
	transfers := transfersOf(token, receipt.Logs)
	gained, holder := map[common.Address]*big.Int{user: {}}, map[string]common.Address{}
	for _, t := range transfers {
		gained[t.From] = new(big.Int).Sub(cmp.Or(gained[t.From], common.Big0), unitsOf(&t))
		gained[t.To] = new(big.Int).Add(cmp.Or(gained[t.To], common.Big0), unitsOf(&t))
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
	if order.Direction == ramp.Mint {
		if issued := c.issued(transfers); e.Units.Cmp(issued) > 0 {
			e.Units = issued // the rest came from somebody else
		}
		return e, nil
	}
	e.Units.Neg(e.Units)
	for other, units := range gained {
		if units.Sign() > 0 && other != user && !c.outside(other) {
			e.Units.Sub(e.Units, units)
			others = append(others, other)
		}
	}
	return e, others
}

// issued adds up what came from outside.
func (c *Config) issued(transfers []ramp.Transfer) *big.Int {
	sum := new(big.Int)
	for _, t := range transfers {
		if c.outside(t.From) && !c.outside(t.To) {
			sum.Add(sum, unitsOf(&t))
		}
	}
	return sum
}

// unreadEvents describes the events of a token that are no transfer which counts, or returns "".
func unreadEvents(token common.Address, logs []ramp.Log) string {
	found := map[string]int{}
	for _, l := range Distinct(logs) {
		_, counts := l.Transfer()
		switch {
		case l.Address != token || l.Removed || counts || len(l.Topics) == 0:
		case l.Topics[0] == TransferTopic:
			found["transfers whose arguments are not indexed"]++
		case l.Topics[0] == transferSingle, l.Topics[0] == transferBatch:
			found["transfers of ERC-1155"]++
		}
	}
	var forms []string
	for form, n := range found {
		forms = append(forms, fmt.Sprintf("%s: %d", form, n))
	}
	if len(forms) == 0 {
		return ""
	}
	slices.Sort(forms)
	return "not supported, and not counted, are " + strings.Join(forms, "; ")
}
