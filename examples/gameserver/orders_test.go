package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// desk runs gameserver orders and returns its standard output and its log.
func desk(t *testing.T, env map[string]string, args ...string) (printed, logged string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	err = run(t.Context(), append([]string{"orders"}, args...), func(name string) string { return env[name] }, &out, &log)
	return out.String(), log.String(), err
}

func TestAPersonDecidesAboutAnOrderThatNeverEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := deploy(t, address, "-any-rate")
		service, client := serviceOf(t, p.url)
		alice := login(t, p.url, "alice")
		gold := item(t, "item_gold", "100")
		mint := func(faults ...ramptest.Fault) uuid.UUID {
			id := initialize(t, client, gold)
			_, err := service.Mint(t.Context(), id, alice, ramp.NewAmount(1), faults...)
			check(t, err)
			return id
		}
		lost, silent := mint(ramptest.StaysPending()), mint(ramptest.ResultNever())
		burn := initialize(t, client, gold)
		_, err := service.Burn(t.Context(), burn, alice, ramp.NewAmount(1), ramptest.ResultNever())
		check(t, err)
		done := mint()
		service.Advance(2 * time.Second)

		// List the waiting orders while the server is running.
		printed, _, err := desk(t, nil, "list", "-db", address, "-older", "-1s")
		check(t, err)
		lines := strings.Split(strings.TrimSpace(printed), "\n")
		if len(lines) != 4 || !strings.HasPrefix(lines[1], lost.String()) || !strings.HasPrefix(lines[2], silent.String()) ||
			!strings.HasPrefix(lines[3], burn.String()) || !strings.Contains(lines[1], "100 item_gold") {
			t.Errorf("it listed\n%s", printed)
		}
		printed, _, err = desk(t, nil, "list", "-db", address, "-older", "-1s", "-direction", "burn")
		check(t, err)
		if !strings.Contains(printed, burn.String()) || strings.Contains(printed, lost.String()) {
			t.Errorf("of the burns it listed\n%s", printed)
		}
		printed, _, err = desk(t, nil, "list", "-db", address)
		check(t, err)
		if strings.Count(printed, "\n") != 1 {
			t.Errorf("of those that have waited for 13 hours it listed\n%s", printed)
		}

		// Show the transactions on the chain.
		node := map[string]string{"RAMP_RPC_URL": service.RPCURL(ramp.Testnet)}
		chain := []string{"-db", address, "-chain-id", "7002", "-payers", service.Payer().Hex()}
		printed, _, err = desk(t, node, slices.Concat([]string{"show"}, chain, []string{silent.String()})...)
		check(t, err)
		if !strings.Contains(printed, "accepted") || !strings.Contains(printed, "sent by") || !strings.Contains(printed, "proves that") {
			t.Errorf("it showed\n%s", printed)
		}
		own := regexp.MustCompile(`(0x[0-9a-f]{64})  block`).FindStringSubmatch(printed)[1]
		printed, logged, err := desk(t, map[string]string{"RAMP_RPC_URL": "http://127.0.0.1:1"}, slices.Concat([]string{"show"}, chain, []string{silent.String()})...)
		if err == nil || !strings.Contains(printed, "accepted") || !strings.Contains(printed, "unreachable") {
			t.Errorf("without the node: %v; it showed\n%s\nand logged\n%s", err, printed, logged)
		}
		printed, _, err = desk(t, node, slices.Concat([]string{"show", "-json"}, chain, []string{silent.String()})...)
		check(t, err)
		if !json.Valid([]byte(printed)) || !strings.Contains(printed, `"candidates":[{"hash":"`+own) {
			t.Errorf("as JSON it showed\n%s", printed)
		}
		_, _, err = desk(t, node, slices.Concat([]string{"abandon"}, chain, []string{"-who", "bob", "-reason", "case 14", silent.String()})...)
		if err == nil || !strings.Contains(err.Error(), own) {
			t.Errorf("abandoned although its transaction is on the chain: %v", err)
		}
		printed, _, err = desk(t, nil, "show", "-db", address, lost.String())
		check(t, err)
		if !strings.Contains(printed, "100 item_gold") || !strings.Contains(printed, "not asked") {
			t.Errorf("without a node it showed\n%s", printed)
		}

		// Finish an order by its transaction, and by no other.
		used, _, err := desk(t, nil, "show", "-db", address, done.String())
		check(t, err)
		hash := regexp.MustCompile(`0x[0-9a-f]{64}`)
		_, logged, err = desk(t, node, slices.Concat([]string{"finish"}, chain, []string{"-who", "bob", "-reason", "case 15", "-tx", hash.FindString(used), silent.String()})...)
		if err == nil || !strings.Contains(err.Error(), "tx_hash has ended order ") || !strings.Contains(logged, "ramp: order not finished") {
			t.Errorf("by the transaction of another order: %v", err)
		}
		printed, logged, err = desk(t, node, slices.Concat([]string{"finish"}, chain, []string{"-who", "bob", "-reason", "case 16", "-tx", own, silent.String()})...)
		check(t, err)
		if !strings.Contains(printed, "is succeeded; the game has moved: nothing") || !strings.Contains(logged, `"who":"bob","reason":"case 16"`) {
			t.Errorf("it printed %q and logged %q", printed, logged)
		}

		// Abandon the order.
		if got := owned(t, service, alice); got != "999700/10000" {
			t.Errorf("before, the player owns %s", got)
		}
		printed, logged, err = desk(t, nil, "abandon", "-db", address, "-who", "bob", "-reason", "case 17", lost.String())
		check(t, err)
		if !strings.Contains(printed, "give back +100 item_gold") || !strings.Contains(logged, `"who":"bob","reason":"case 17"`) {
			t.Errorf("it printed %q and logged %q", printed, logged)
		}
		printed, _, err = desk(t, nil, "abandon", "-db", address, "-who", "bob", "-reason", "case 17", lost.String())
		if err != nil || !strings.Contains(printed, "nothing was moved") {
			t.Errorf("again: %q, %v", printed, err)
		}
		if got := owned(t, service, alice); got != "999800/10000" {
			t.Errorf("after, the player owns %s", got)
		}
		printed, _, err = desk(t, nil, "show", "-db", address, lost.String())
		check(t, err)
		if !strings.Contains(printed, "abandoned") || !strings.Contains(printed, "reason    bob: case 17") {
			t.Errorf("it showed\n%s", printed)
		}
		if _, _, err := desk(t, nil, "abandon", "-db", address, "-who", "bob", "-reason", "x", done.String()); err == nil || !strings.Contains(err.Error(), "is finished") {
			t.Errorf("a finished order: %v", err)
		}
	})
}

// Support finds the orders of a player who complains, and those of an incident, whether
// they have ended or not.
func TestADeskFindsTheOrdersOfAPlayerAndOfATime(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := deploy(t, address, "-any-rate")
		service, client := serviceOf(t, p.url)
		begun := time.Now().Add(-time.Second)
		mint := func(s ramp.Session) string {
			id := initialize(t, client, item(t, "item_gold", "1"))
			_, err := service.Mint(t.Context(), id, s, ramp.NewAmount(1))
			check(t, err)
			return id.String()
		}
		alice, again, bob := login(t, p.url, "alice"), login(t, p.url, "alice"), login(t, p.url, "bob")
		first, other := mint(alice), mint(bob)
		service.Advance(time.Minute)
		second := mint(again) // waits
		now := time.Now().Add(time.Second)
		between := func(from, to time.Time) []string {
			return []string{"-from", from.UTC().Format(time.RFC3339), "-to", to.UTC().Format(time.RFC3339)}
		}
		for name, c := range map[string]struct {
			args []string
			want []string
		}{
			"player":  {[]string{"-player", "alice"}, []string{first, second}},
			"session": {[]string{"-session", again.ID}, []string{second}},
			"wallet":  {[]string{"-address", service.Wallet(bob).Hex()}, []string{other}},
			"ended":   {between(begun, now), []string{first, other}},
			"before":  {between(begun.Add(-time.Hour), begun), nil},
			"waiting": {[]string{"-older", "-1s"}, []string{second}},
			"nobody":  {[]string{"-player", "carol"}, nil},
			"network": {[]string{"-player", "alice", "-network", "testnet"}, []string{first, second}},
			"other":   {[]string{"-player", "alice", "-network", "mainnet"}, nil},
		} {
			printed, _, err := desk(t, nil, append([]string{"list", "-db", address}, c.args...)...)
			check(t, err)
			if strings.Count(printed, "\n") != 1+len(c.want) {
				t.Errorf("%s: it listed\n%s", name, printed)
			}
			for _, id := range c.want {
				if !strings.Contains(printed, id) {
					t.Errorf("%s: %s is not in\n%s", name, id, printed)
				}
			}
		}
	})
}

// A conflict is stored once, however often the result is delivered, and listed.
func TestADeskListsTheConflicts(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := deploy(t, address, "-any-rate")
		service, client := serviceOf(t, p.url)
		alice := login(t, p.url, "alice")
		order, err := service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "1")), alice, ramp.NewAmount(1), ramptest.ResultNever())
		check(t, err)
		service.Advance(time.Minute)
		check(t, service.Deliver(t.Context(), order, ramptest.Succeeded))
		for range 2 {
			if err := service.Deliver(t.Context(), order, ramptest.Failed); err == nil {
				t.Fatal("the second outcome was accepted")
			}
		}
		printed, _, err := desk(t, nil, "conflicts", "-db", address)
		check(t, err)
		if strings.Count(printed, "\n") != 2 || !strings.Contains(printed, order.UUID.String()) || !strings.Contains(printed, order.TxHash.Hex()) ||
			!strings.Contains(printed, "succeeded") {
			t.Errorf("it listed\n%s", printed)
		}
	})
}

func TestADeskThatIsUsedWronglyChangesNothing(t *testing.T) {
	mistyped := filepath.Join(t.TempDir(), "mistyped.db")
	empty := "sqlite:" + mistyped
	id := uuid.NewString()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":             {nil, "there is no command"},
		"an unknown command":  {[]string{"forget"}, "there is no command"},
		"a second word":       {[]string{"conflicts", "-db", ready(t), "again"}, `unexpected argument "again"`},
		"no UUID":             {[]string{"show", "-db", ready(t)}, "one argument is required"},
		"a mistyped database": {[]string{"list", "-db", empty}, "no such file"},
		"no node":             {[]string{"finish", "-db", ready(t), "-who", "bob", "-reason", "x", "-tx", "0x" + strings.Repeat("1", 64), id}, "RAMP_RPC_URL and -chain-id are required"},
		"an unknown order":    {[]string{"abandon", "-db", ready(t), "-who", "bob", "-reason", "x", id}, "unknown order"},
		"books without node":  {[]string{"reconcile", "-db", ready(t), "-token", token}, "RAMP_RPC_URL and -chain-id are required"},
		"books of no token":   {[]string{"reconcile", "-db", ready(t)}, "-token is required"},
	} {
		t.Run(name, func(t *testing.T) {
			printed, _, err := desk(t, nil, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(printed, "\n\n") {
				t.Errorf("%v, having printed %q", err, printed)
			}
		})
	}
	if _, err := os.Stat(mistyped); err == nil {
		t.Error("a database was created")
	}
}

// ready returns the address of a database that has the tables of a server.
func ready(t *testing.T) string {
	t.Helper()
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	game, _, err := (&settings{database: address}).open(t.Context(), true)
	check(t, err)
	check(t, game.db.Close())
	return address
}

// Nothing else in this program may end an order without a result.
func TestOnlyTheDeskDecides(t *testing.T) {
	files, err := filepath.Glob("*.go")
	check(t, err)
	uses := regexp.MustCompile(`.*\.(?:Abandon|Finish)\b.*|.*(?:INTO|UPDATE|DELETE FROM|TABLE) ramp_orders\b.*`) // or writes to the table
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		check(t, err)
		for _, line := range uses.FindAllString(string(text), -1) {
			found = append(found, file+": "+strings.TrimSpace(line))
		}
	}
	if len(found) > 0 { // the commands are in package support
		t.Errorf("these lines may end an order: %q", found)
	}
}
