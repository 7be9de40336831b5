package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The server and the command compare the same books: those of the day until now, and
// later those since the last ones.
func TestTheBooksAreComparedWithTheChain(t *testing.T) {
	i := newIncident(t)
	position := filepath.Join(t.TempDir(), "position")
	s := login(t, i.server.url, "alice")
	i.mustMint(s)
	printed := ramp.Must(i.desk("reconcile", "-position", position, "-format", "totals"))
	rows := ramp.Must(csv.NewReader(strings.NewReader(printed)).ReadAll())
	if !strings.Contains(printed, "orders,gems,mint,taken,item_gem,10\n") || !strings.Contains(printed, "chain,"+token+",mint,moved,tokens,1\n") {
		t.Errorf("the totals are\n%v", rows)
	}
	if _, err := i.desk("reconcile", "-to", "2100-01-01"); err != nil || !strings.Contains(i.logged, "the books end before -to") {
		t.Errorf("books of a time that is not over: %v, logged\n%s", err, i.logged)
	}
	if _, err := i.desk("reconcile", "-to", rows[1][1]); err != nil || i.logged != "" {
		t.Errorf("books of a time that is over: %v, logged\n%s", err, i.logged)
	}

	if _, err := i.desk("reconcile", "-network", "mainnet", "-token", "0x00000000000000000000000000000000000000aa"); err == nil ||
		!strings.Contains(err.Error(), "nothing was compared") {
		t.Errorf("books of the other network: %v", err)
	}

	i.mustMint(s, ramptest.MintedByStranger())
	for _, format := range []string{"text", "json"} {
		printed, err := i.desk("reconcile", "-format", format)
		if err == nil || err.Error() != "orders and chain disagree; findings: 1" || !strings.Contains(printed, "event_without_order") {
			t.Errorf("as %s: %v\n%s", format, err, printed)
		}
	}
	var last struct{ To time.Time }
	check(t, json.Unmarshal(ramp.Must(os.ReadFile(position)), &last))
	if _, err := i.desk("reconcile", "-position", position); err == nil || !strings.Contains(err.Error(), "findings: 1") {
		t.Errorf("since the last books: %v", err)
	}
	i.more = append(i.more, "-books", position)
	i.deploy(hmacKey, validatorKey)
	i.server.log.find(t, `"(ramp: the books do not close)","kind":"event_without_order"`)
}
