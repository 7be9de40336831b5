package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/token-ramp/ramp-go/ramptest"
)

// The server and the command compare the same books: those of the day until now, and
// later those since the last ones.
func TestTheBooksAreComparedWithTheChain(t *testing.T) {
	i := newIncident(t)
	position := filepath.Join(t.TempDir(), "position")
	s := login(t, i.server.url, "alice")
	i.mustMint(s)
	printed := must(i.desk("reconcile", "-position", position, "-format", "totals"))(t)
	rows := must(csv.NewReader(strings.NewReader(printed)).ReadAll())(t)
	says(t, printed, `"gems","`+token+`","mint","items_taken","item_gem",,10,,,`,
		`"chain","","`+token+`","mint","tokens_on_chain","",,,1,1000000000000000000,18`)
	_, err := i.desk("reconcile", "-to", "2100-01-01")
	says(t, fmt.Sprint(err), "the period is not final: it ends at 2100-01-01T00:00:00Z")
	must(i.desk("reconcile", "-to", rows[1][4]))(t)
	equal(t, "the log of books of a time that is over", i.logged, "")

	_, err = i.desk("reconcile", "-network", "mainnet", "-token", "0x00000000000000000000000000000000000000aa")
	says(t, fmt.Sprint(err), "nothing was compared")

	i.mustMint(s, ramptest.MintedByStranger())
	for _, format := range []string{"text", "json"} {
		printed, err := i.desk("reconcile", "-format", format)
		equal(t, "as "+format, fmt.Sprint(err), "orders and chain disagree; findings: 1")
		says(t, printed, "event_without_order")
	}
	var last struct{ To time.Time }
	check(t, json.Unmarshal(must(os.ReadFile(position))(t), &last))
	_, err = i.desk("reconcile", "-position", position) // since the last books
	says(t, fmt.Sprint(err), "findings: 1")

	// A person decides about the stolen mint.
	printed, _ = i.desk("reconcile")
	stolen := regexp.MustCompile("tx_hash (0x[0-9a-f]{64})").FindStringSubmatch(printed)[1]
	why := []string{"orders", "decide", "-finding", "event_without_order", "-tx", stolen,
		"-who", "alice", "-reason", "case 7"}
	must(i.desk(append(why, "-moved", "item_gem=-10")...))(t)
	says(t, i.logged, "finding decided", "case 7")
	printed = must(i.desk("reconcile", "-format", "totals"))(t)
	says(t, printed, `"decisions","","","","items_decided","item_gem",,-10,,,`)
	_, err = i.desk(why...)
	says(t, fmt.Sprint(err), "alice decided this at ")
	says(t, must(i.desk("orders", "entries"))(t), "case 7", "-10 item_gem")
	books := &game{database: database{db: handle(t, i.address), dialect: dialects["sqlite"]}}
	entry := must(books.Entries(t.Context(), time.Time{}))(t)[0]
	equal(t, "an entry twice", books.Add(t.Context(), entry) != nil, true)
	must(i.desk("orders", "decide", "-reverse", entry.ID.String(), "-who", "alice", "-reason", "case 8"))(t)
	_, err = i.desk("reconcile")
	says(t, fmt.Sprint(err), "findings: 1")

	i.more = append(i.more, "-books", position)
	i.deploy(hmacKey, validatorKey)
	i.server.log.find(t, `"(ramp: the books do not close)","kind":"event_without_order"`)
}

// A token moves to a new contract: the former one is in the file of what was sold before.
func TestTheBooksKnowWhatWasSoldBefore(t *testing.T) {
	i := newIncident(t)
	i.mustMint(login(t, i.server.url, "alice"))
	moved := []string{"reconcile", "-token", "0x00000000000000000000000000000000000070c4"}
	printed, err := i.desk(moved...)
	equal(t, "without the former contract", fmt.Sprint(err), "orders and chain disagree; findings: 1")
	says(t, printed, "not_compared: no setting knows its token "+token)
	file := filepath.Join(t.TempDir(), "sold.json")
	gems := `"product": {"name": "gems", "token": "` + token + `"}`
	for text, want := range map[string]string{
		`[{` + gems + `}]`: "needs its token, and the time to which",
		`[{"product": {"name": "gems", "price": 1}}]`:       "is no field of the price list",
		`[{` + gems + `, "until": "2026-11-14T09:00:00Z"}]`: "unknown field",
	} {
		check(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := i.desk("reconcile", "-sold", file)
		says(t, fmt.Sprint(err), want)
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	check(t, os.WriteFile(file, []byte(`[{"product": {"name": "former gems", "token": "`+token+`", "mint_fee_bps": 100,
		"materials": [{"id": "item_gem", "amount": 10}]}, "to": "`+later+`"}]`), 0o600))
	printed = must(i.desk(append(moved, "-sold", file, "-format", "totals")...))(t)
	says(t, printed, `"`+token+`","mint","tokens_moved","",,,0.99,990000000000000000,18`)
}
