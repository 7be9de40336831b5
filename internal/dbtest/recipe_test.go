package dbtest

import (
	"os"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
)

// onePays lets a transaction of the chain settle only one order, as in docs/orders.md.
func onePays(d ramp.Dialect) string {
	if d == ramp.MySQL {
		return "ALTER TABLE ramp_orders ADD COLUMN tx_once CHAR(64) AS (IF(tx_hash = '', NULL, SHA2(LOWER(tx_hash), 256))) UNIQUE;"
	}
	return "CREATE UNIQUE INDEX ramp_orders_tx ON ramp_orders (lower(tx_hash)) WHERE tx_hash <> '';"
}

// With this option, a caller who has the HMAC key and a successful transaction cannot be
// paid for it twice.
func TestOneTransactionPaysOneOrder(t *testing.T) {
	docs, err := os.ReadFile("../../docs/orders.md")
	check(t, err)
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			if !strings.Contains(string(docs), onePays(d.dialect)) {
				t.Errorf("docs/orders.md has another index than %s", onePays(d.dialect))
			}
			w := newWorld(t, newPlace(t, d, d.modes[0], onePays(d.dialect)), nil)
			w.give("alice", "gold", 100)
			first, second := newOrder("alice", burn("gold", 5)), newOrder("alice", burn("gold", 7))
			w.expect(w.validate(first), "200")
			w.expect(w.validate(second), "200")

			paidBy := func(o order, txHash string) answer {
				result := o.report(success)
				result.TxHash = txHash
				return w.post(ramp.PathResult, o.session, result)
			}
			w.expect(paidBy(first, txHash("ab")), "200")
			w.expect(paidBy(second, "0x"+strings.ToUpper(txHash("ab")[2:])), "500 INTERNAL_ERROR")
			w.books(moves{first.id: {"grant alice +5 gold"}, second.id: nil})
			w.expect(paidBy(first, txHash("ab")), "200")
			w.expect(paidBy(second, txHash("cd")), "200")
			w.books(moves{first.id: {"grant alice +5 gold"}, second.id: {"grant alice +7 gold"}})
		})
	}
}
