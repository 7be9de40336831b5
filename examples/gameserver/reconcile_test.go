package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
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
	says(t, printed, "orders,gems,mint,taken,item_gem,10\n", "chain,"+token+",mint,moved,tokens,1\n")
	ramp.Must(i.desk("reconcile", "-to", "2100-01-01"))
	says(t, i.logged, "the books end before -to")
	ramp.Must(i.desk("reconcile", "-to", rows[1][1]))
	equal(t, "the log of books of a time that is over", i.logged, "")

	_, err := i.desk("reconcile", "-network", "mainnet", "-token", "0x00000000000000000000000000000000000000aa")
	says(t, fmt.Sprint(err), "nothing was compared")

	i.mustMint(s, ramptest.MintedByStranger())
	for _, format := range []string{"text", "json"} {
		printed, err := i.desk("reconcile", "-format", format)
		equal(t, "as "+format, fmt.Sprint(err), "orders and chain disagree; findings: 1")
		says(t, printed, "event_without_order")
	}
	var last struct{ To time.Time }
	check(t, json.Unmarshal(ramp.Must(os.ReadFile(position)), &last))
	_, err = i.desk("reconcile", "-position", position) // since the last books
	says(t, fmt.Sprint(err), "findings: 1")
	i.more = append(i.more, "-books", position)
	i.deploy(hmacKey, validatorKey)
	i.server.log.find(t, `"(ramp: the books do not close)","kind":"event_without_order"`)
}
