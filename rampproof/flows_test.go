package rampproof_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

// table returns the rows of the table of docs/security.md whose first heading is this.
func table(t *testing.T, heading string, columns int) (rows [][]string) {
	t.Helper()
	guide := must.Get(os.ReadFile("../docs/security.md"))(t)
	found := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(heading) +
		` \|.*\n\|[-|]+\|\n((?:\|.*\n)+)`).FindSubmatch(guide)
	require.NotNil(t, found, heading)
	for line := range strings.Lines(string(found[1])) {
		row := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|\n"), "|")
		require.Len(t, row, columns, line)
		for n := range row {
			row[n] = strings.TrimSpace(row[n])
		}
		rows = append(rows, row)
	}
	return rows
}

// knowledge is what a studio may know about its ramp.
var knowledge = []struct {
	name string
	of   func(*rampproof.Config)
}{
	{"Payers", func(c *rampproof.Config) { c.Contracts = nil }},
	{"and the contract", func(c *rampproof.Config) { c.Contracts = []common.Address{rampBridge} }},
	{"and the token", func(*rampproof.Config) {}},
	{"Contracts and AnyFailure", func(c *rampproof.Config) {
		c.Payers, c.Contracts, c.AnyFailure = nil, []common.Address{rampBridge}, true
	}},
	{"AnyFailure", func(c *rampproof.Config) { c.Payers, c.Contracts, c.AnyFailure = nil, nil, true }},
}

// parties are those who send, pay for and receive transactions in docs/security.md.
var parties = map[string]string{"the ramp": "account", "the ramp's contract": "ramp", "the token": "token",
	"the player": "honest", "a bundler": "friend", "a relayer": "friend",
	"the entry point": "0xe4337", "a forwarder": "0x2771"}

// Who sends a transaction, who pays for it and where it goes decide whether it ends its order
// without a person. Each cell of the table is played with a mint that succeeds, with one that
// fails, and with a burn.
func TestWhichHonestTransactionsWaitForAPerson(t *testing.T) {
	for _, row := range table(t, "sent by", 3+len(knowledge)) {
		for n, cell := range row[3:] {
			inBubble(t, strings.Join(row[:3], ", ")+", "+knowledge[n].name, func(t *testing.T) {
				ends := func(place func(*heist) placer, list string, status uint64) string {
					h := newHeist(t, setting{set: func(h *heist, c *ramp.HandlerConfig) {
						c.Confirm, c.Wallet = h.proof(knowledge[n].of), h.bind
					}})
					address := func(name string) common.Address {
						if a, known := h.named()[parties[name]]; known {
							return a
						}
						return common.HexToAddress(parties[name])
					}
					order := h.order(place(h), "honest", ramptest.StaysPending())
					transaction := h.mined(list)
					fields := h.node.edited[transaction].fields
					fields["from"], fields["feePayer"], fields["to"] = address(row[0]), address(row[1]), address(row[2])
					fields["status"] = ramp.NewQuantity(status)
					return word(h.forge(&order.Request, transaction, status))
				}
				minting := func(h *heist) placer { return h.service.Mint }
				burning := func(h *heist) placer { return h.service.Burn }
				got := map[string]string{"ends ends": "ends", "ends waits": "failure waits", "waits waits": "waits",
					"waits ends": "success waits"}[ends(minting, "zero>honest 1", 1)+" "+ends(minting, "", 0)]
				assert.Equal(t, cell, got)
				assert.Equal(t, ends(minting, "zero>honest 1", 1), ends(burning, "honest>zero 1", 1), "a burn")
			})
		}
	}
}

// word says what the status of an answer to a result means.
func word(status int) string { return map[int]string{200: "ends", 500: "waits"}[status] }

// What a transaction moves, and what else the chain shows, may need a person under every setting.
func TestWhichHonestMovesWaitForAPerson(t *testing.T) {
	burns := func(list string) func(*heist) string {
		return func(h *heist) string {
			order := h.order(h.service.Burn, "honest", ramptest.StaysPending())
			return word(h.forge(&order.Request, h.mined(list), 1))
		}
	}
	mints := func(list string) func(*heist) string {
		return func(h *heist) string {
			order := h.order(h.service.Mint, "honest", ramptest.StaysPending())
			return word(h.forge(&order.Request, h.mined(list), 1))
		}
	}
	// fails lets a mint fail, while another transaction moves something.
	fails := func(list string, change ...func(h *heist, newest *ramptest.PlacedOrder)) func(*heist) string {
		return func(h *heist) string {
			newest := h.order(h.service.Mint, "honest")
			order := h.order(h.service.Mint, "honest", ramptest.StaysPending())
			if list != "" {
				h.mined(list)
			}
			for _, c := range change {
				c(h, newest)
			}
			_ = h.service.Deliver(h.t.Context(), order, ramptest.Failed)
			return map[int64]string{900: "ends", 800: "waits"}[h.vault.Gold["honest"]]
		}
	}
	settled := func(place func(*heist) placer, list string) func(*heist) string {
		return func(h *heist) string {
			one := h.order(place(h), "honest", ramptest.StaysPending())
			other := h.order(place(h), "thief", ramptest.StaysPending())
			transaction := h.mined(list)
			return word(h.forge(&one.Request, transaction, 1)) + ", " + word(h.forge(&other.Request, transaction, 1))
		}
	}
	minting := func(h *heist) placer { return h.service.Mint }
	burning := func(h *heist) placer { return h.service.Burn }
	plays := map[string][]func(*heist) string{
		"mints from the zero address or from `Contracts`": {mints("zero>honest 1"), mints("ramp>honest 1")},
		"mints from a treasury that `Contracts` lacks":    {mints("friend>honest 1")},
		"mints, and takes a fee that `MintFeeBps` allows": {mints("zero>honest 0.99, zero>friend 0.01"),
			mints("zero>honest 1, honest>friend 0.01")},
		"mints less than the order minus its fee, or the player passes on more than the fee in the same " +
			"transaction": {mints("zero>honest 0.98"),
			mints("zero>honest 1, honest>friend 1")},
		"burns, to the zero address or to `Contracts`":                {burns("honest>zero 1"), burns("honest>ramp 1")},
		"burns to another address, which is said to belong to nobody": {burns("honest>friend 1")},
		"burns less than was ordered":                                 {burns("honest>zero 0.99")},
		"burns the tokens of a smart account, and the order names the owner of the account": {
			burns("friend>zero 1")},
		"pays a part of a burn to somebody else": {burns("honest>zero 0.9, honest>friend 0.1")},
		"mints for two players, or burns the tokens of two": {settled(minting, "zero>honest 1, zero>thief 1"),
			settled(burning, "honest>zero 1, thief>zero 1")},
		"mints for a player and burns tokens of the same one": {mints("zero>honest 1, honest>zero 1"),
			burns("honest>zero 1, zero>honest 1")},
		"burns the tokens of one player, and mints for another": {settled(burning, "honest>zero 1, zero>thief 1")},
		"moves tokens by events of ERC-1155, or by events whose arguments are not indexed": {mints(
			"zero>honest 1 single"), burns("honest>zero 1 batch"),
			burns("honest>zero 1 unindexed")},
		"fails, and the player got nothing else":       {fails("")},
		"fails, and somebody sent the player tokens":   {fails("friend>honest 1")},
		"fails, and the player was issued dust":        {fails("zero>honest 0.009")},
		"fails, and the player got tokens by a bridge": {fails("zero>honest 1")},
		"fails, and an order in another database, of the same token, minted for the " +
			"player": {fails("zero>honest 0.5")},
		"fails, and the node does not list the transaction of the order that succeeded last": {fails("",
			func(h *heist, newest *ramptest.PlacedOrder) {
				h.node.hides = newest.TxHash
			})},
	}
	words := map[string]string{"ends, waits": "the first ends, the other waits", "waits, waits": "waits"}
	played := 0
	for _, row := range table(t, "the transaction", 3) {
		require.Contains(t, plays, row[0])
		for _, play := range plays[row[0]] {
			inBubble(t, row[0], func(t *testing.T) {
				h := newHeist(t, settings[len(settings)-1])
				h.service.Advance(time.Hour)
				got := play(h)
				if long, ok := words[got]; ok {
					got = long
				}
				assert.Equal(t, row[1], got)
			})
		}
		played++
	}
	assert.Len(t, plays, played, "rows that the table lacks")
}
