package evidence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// errNoContract means that an address returned nothing: it has no code on this chain.
var errNoContract = errors.New("it is no token contract on this chain")

// Decimals asks a token contract for its decimals.
func Decimals(ctx context.Context, chain *ramp.RPC, token common.Address) (int, error) {
	decimals := []byte{0x31, 0x3c, 0xe5, 0x67} // the selector of decimals()
	returned, err := chain.CallContract(ctx, ramp.TransactionRequest{To: &token, Data: decimals}, ramp.Latest)
	if err != nil {
		return 0, err
	}
	if len(returned) == 0 {
		return 0, fmt.Errorf("ramp: eth_call: %s answered with 0 bytes instead of a number: %w", token,
			errNoContract)
	}
	if len(returned) != 32 {
		return 0, fmt.Errorf("ramp: eth_call: %s answered with %d bytes instead of a number", token,
			len(returned))
	}
	n := new(big.Int).SetBytes(returned)
	if !n.IsInt64() || n.Int64() > math.MaxUint8 {
		return 0, fmt.Errorf("ramp: eth_call: %s is not the number of decimals of a token", token)
	}
	return int(n.Int64()), nil
}

// tokens are the decimals of tokens.
type tokens struct {
	chain      *ramp.RPC
	configured map[common.Address]int
	loaded     sync.Map // what contracts have said
}

// DecimalsOf returns the decimals of a token as configured, or as its contract has said.
func (t *tokens) DecimalsOf(token common.Address) (decimals int, known bool) {
	if decimals, known = t.configured[token]; known {
		return decimals, true
	}
	loaded, known := t.loaded.Load(token)
	if known {
		decimals = loaded.(int)
	}
	return decimals, known
}

// LoadDecimals asks for the decimals of contracts that are not known yet. That of a piece
// may have none, and what cannot be read now is asked for again: without decimals, only
// pieces count.
func (t *tokens) LoadDecimals(ctx context.Context, contracts ...common.Address) {
	for _, token := range contracts {
		if _, known := t.DecimalsOf(token); known {
			continue
		}
		if decimals, err := Decimals(ctx, t.chain, token); err == nil {
			t.loaded.Store(token, decimals)
		}
	}
}

// ForgetDecimals lets what contracts have said be asked again: what is behind a proxy may change.
func (t *tokens) ForgetDecimals(contracts ...common.Address) {
	for _, token := range contracts {
		t.loaded.Delete(token)
	}
}

// CheckTokens returns an error for each product whose token is no contract on the chain, or has too few
// decimals for what the product sells.
func (t *tokens) CheckTokens(ctx context.Context, products []ramp.Product) error {
	var found []error
	for _, product := range products {
		token := common.HexToAddress(product.Token)
		decimals, known := t.configured[token]
		if !known {
			var rejected *ramp.RPCError
			asked, err := Decimals(ctx, t.chain, token)
			if err != nil && !errors.As(err, &rejected) { // a contract of pieces may have no decimals
				found = append(found,
					fmt.Errorf("ramp: check the token of product %q: %w", product.Name, err))
				continue
			}
			decimals = asked
		}
		if _, err := product.Tokens.Units(decimals); err != nil {
			found = append(found, fmt.Errorf("ramp: product %q sells %s tokens of the contract %s, "+
				"which has %d decimals", product.Name, product.Tokens, token, decimals))
		}
	}
	return errors.Join(found...)
}

// CheckDecimals compares the decimals that are configured with the token contracts. That
// of an NFT may have none.
func (t *tokens) CheckDecimals(ctx context.Context) error {
	var found []error
	for _, token := range slices.SortedFunc(maps.Keys(t.configured), common.Address.Cmp) {
		expected := t.configured[token]
		actual, err := Decimals(ctx, t.chain, token)
		switch {
		case err != nil && (expected > 0 || errors.Is(err, errNoContract)):
			found = append(found, fmt.Errorf("ramp: check the decimals of token %s: %w", token, err))
		case err == nil && actual != expected:
			found = append(found,
				fmt.Errorf("ramp: Config.Decimals is %d for token %s, but its contract says %d",
					expected, token, actual))
		}
	}
	return errors.Join(found...)
}
