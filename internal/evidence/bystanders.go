package evidence

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// bystanders says who other than the user of an order burned or got tokens, such as "0x…acc0
// burned 5", or returns "". Perhaps one of them is the account of the order's player. amount writes
// units.
func (c *Config) bystanders(
	order *ramp.Order, transfers []ramp.Transfer, amount func(units *big.Int) string,
) string {
	verb := "got"
	if order.Direction == ramp.Burn {
		verb = "burned"
	}
	var accounts []common.Address
	units := map[common.Address]*big.Int{}
	for _, t := range transfers {
		account := accountOf(order.Direction, &t)
		crossed := c.outside(t.From) != c.outside(t.To) && !c.outside(account)
		if !crossed || IsDust(&t) || account == common.HexToAddress(order.UserAddress) {
			continue
		}
		if units[account] == nil {
			units[account] = new(big.Int)
			accounts = append(accounts, account)
		}
		units[account].Add(units[account], unitsOf(&t))
	}
	const most = 3 // fit into one line of a log
	var texts []string
	for _, account := range accounts[:min(most, len(accounts))] {
		texts = append(texts, fmt.Sprintf("%s %s %s", account, verb, amount(units[account])))
	}
	if more := len(accounts) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more accounts did", more))
	}
	return strings.Join(texts, ", ")
}
