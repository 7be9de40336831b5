// To make it yours: change the flags. A game with a configuration of its own fills in the same fields
// from it. Remove warn once nothing in it applies.

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// settings are the flags that every command has: where the orders are, which tokens are
// sold, and what a transaction must show before it ends an order.
type settings struct {
	database               string
	project                string
	network                ramp.Network
	token, swordToken      common.Address
	chainID, confirmations uint64
	payers, contracts      []common.Address
	anyRate, anyFailure    bool
	anyPage                bool
	noEmptyBlocks          bool
	former                 []rampbooks.Offer
	formerProjects         []string
	connections, decimals  int
	caps                   caps
	looks                  bool              // and needs no right but SELECT
	says                   func(text string) // what a migration waits for
}

func newSettings(flags *flag.FlagSet) *settings {
	s := &settings{says: func(text string) { fmt.Fprintln(flags.Output(), "gameserver migrate: "+text) }}
	flags.StringVar(&s.database, "db", "sqlite:gameserver.db",
		"`database`: "+forms())
	flags.IntVar(&s.connections, "connections", 20,
		"`number` of connections to PostgreSQL or MySQL, of which the database allows a limited number to "+
			"all servers")
	flags.StringVar(&s.project, "project", "",
		"`ID` of the project in the console; required unless the service is emulated")
	flags.Func("former-projects", "`IDs` of projects that the game had before, separated by commas: "+
		"what was\naccepted for them ends", func(text string) error {
		for project := range strings.SplitSeq(text, ",") {
			s.formerProjects = append(s.formerProjects, strings.TrimSpace(project))
		}
		return nil
	})
	flags.StringVar((*string)(&s.network), "network", "",
		"`network` of the token, mainnet or testnet; required unless the service is emulated")
	flags.TextVar(&s.token, "token", common.Address{},
		"contract `address` of the token; required unless the service is emulated")
	flags.TextVar(&s.swordToken, "sword-token", common.Address{},
		"contract `address` of the token of swords; without it, swords are not sold unless\nthe service "+
			"is emulated")
	flags.Func("sold", "`file` of what was sold before, for the books: a JSON list of objects\n"+
		"with product, from and to", s.readFormer)
	flags.BoolVar(&s.anyRate, "any-rate", false,
		"approve orders at every rate, for the judge and for load tests")
	flags.BoolVar(&s.anyPage, "any-page", false,
		"accept the token of the login for any order, for the judge and for load tests")
	flags.Uint64Var(&s.chainID, "chain-id", 0, "chain `ID` that the node at RAMP_RPC_URL must have")
	flags.Uint64Var(&s.confirmations, "confirmations", 1,
		"`number` of confirmations of a transaction that ends an order")
	flags.Func("payers",
		"`addresses` with which the ramp sends or pays for transactions, separated by commas",
		addresses(&s.payers))
	flags.Func("contracts", "`addresses` of the ramp's contracts, separated by commas",
		addresses(&s.contracts))
	flags.BoolVar(&s.anyFailure, "any-failure", false,
		"accept any failed transaction, if the ramp's addresses are not known")
	flags.BoolVar(&s.noEmptyBlocks, "no-empty-blocks", false,
		"the chain makes no block without a transaction: an hour without a block does not keep an order\n"+
			"from being abandoned")
	s.caps = newCaps(flags)
	flags.IntVar(&s.decimals, "decimals", -1,
		"decimals of the token, a `number`, which is compared with its contract; without it, the "+
			"contract is asked")
	return s
}

// readFormer reads what was sold before: former tokens, fees, prices and names, each until a time.
func (s *settings) readFormer(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s.former); err != nil {
		return err
	}
	for _, sold := range s.former {
		if sold.To.IsZero() || !common.IsHexAddress(sold.Product.Token) {
			return fmt.Errorf("product %q needs its token, and the time to which it was sold",
				sold.Product.Name)
		}
	}
	return nil
}

// warn logs which settings are unsafe. The server starts despite them, but should not be
// used by players.
func warn(log *slog.Logger, s *settings, emulated, previousKey bool) {
	for _, setting := range []struct {
		unsafe bool
		text   string
	}{
		{emulated, "the service is emulated with generated keys: set RAMP_HMAC_KEY and RAMP_VALIDATOR_KEY"},
		{!emulated, "anyone can log in as any player, without a password: replace login"},
		{!emulated && s.chainID == 0,
			"results are not confirmed on the chain: set RAMP_RPC_URL, -chain-id and -payers"},
		{s.anyFailure, "-any-failure lets any failed transaction give back a mint: set -payers"},
		{s.noEmptyBlocks,
			"-no-empty-blocks: what is abandoned while the chain stands still can be minted later"},
		{!emulated && len(s.caps) == 0, "nothing limits what leaves the game in an hour: set -cap"},
		{s.anyRate, "-any-rate approves every rate"},
		{s.anyPage, "-any-page accepts the token of the login for any order"},
		{previousKey,
			"the key in RAMP_HMAC_KEY_PREVIOUS is accepted too: remove it when the rotation is over"},
	} {
		if setting.unsafe {
			log.Warn("unsafe: " + setting.text)
		}
	}
}
