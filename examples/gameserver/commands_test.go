package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// command runs gameserver in this process and returns its standard output and its log.
func command(t *testing.T, env map[string]string, args ...string) (printed, logged string, err error) {
	var out, log bytes.Buffer
	err = run(t.Context(), args, func(name string) string { return env[name] }, &out, &log)
	return out.String(), log.String(), err
}

func desk(t *testing.T, env map[string]string, args ...string) (printed, logged string, err error) {
	return command(t, env, append([]string{"orders"}, args...)...)
}

// said returns what a command prints that succeeds.
func said(t *testing.T, args ...string) string {
	t.Helper()
	printed, _, err := desk(t, nil, args...)
	check(t, err)
	return printed
}

func TestAPersonDecidesAboutAnOrderThatNeverEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		p := deploy(t, address, "-any-rate")
		service, client := serviceOf(t, p.url)
		alice := login(t, p.url, "alice")
		gold := item(t, "item_gold", "100")
		mint := func(faults ...ramptest.Fault) uuid.UUID {
			id := initialize(t, client, gold)
			must(service.Mint(t.Context(), id, alice, ramp.NewAmount(1), faults...))(t)
			return id
		}
		lost, silent := mint(ramptest.StaysPending()), mint(ramptest.ResultNever())
		burn := initialize(t, client, gold)
		must(service.Burn(t.Context(), burn, alice, ramp.NewAmount(1), ramptest.ResultNever()))(t)
		done := mint()
		service.Advance(2 * time.Second)

		// List the waiting orders while the server is running.
		printed := said(t, "list", "-db", address, "-older", "-1s")
		lines := strings.Split(strings.TrimSpace(printed), "\n")
		if len(lines) != 4 || !strings.HasPrefix(lines[1], lost.String()) ||
			!strings.HasPrefix(lines[2], silent.String()) ||
			!strings.HasPrefix(lines[3], burn.String()) || !strings.Contains(lines[1], "100 item_gold") {
			t.Errorf("it listed\n%s", printed)
		}
		equal(t, "lines of alice's list", strings.Count(said(t, "list", "-db", address, "-player", "alice"), "\n"), 5)

		// Show the transactions on the chain.
		node := map[string]string{"RAMP_RPC_URL": service.RPCURL(ramp.Testnet)}
		chain := []string{"-db", address, "-chain-id", "7002", "-payers", service.Payer().Hex(), "-contracts", token,
			"-network", "testnet"}
		printed, _, err := desk(t, node, slices.Concat([]string{"show"}, chain, []string{silent.String()})...)
		check(t, err)
		says(t, printed, "accepted", "sent by", "proves that")
		own := regexp.MustCompile(`(0x[0-9a-f]{64})  block`).FindStringSubmatch(printed)[1]
		printed, _, err = desk(t, map[string]string{"RAMP_RPC_URL": "http://127.0.0.1:1"},
			slices.Concat([]string{"show"}, chain, []string{silent.String()})...)
		says(t, printed, "accepted", "chain     not read: ramp: eth_chainId: dial tcp")
		if err == nil {
			t.Error("no error without the node")
		}
		printed, _, err = desk(t, node, slices.Concat([]string{"show", "-json"}, chain, []string{silent.String()})...)
		check(t, err)
		if !json.Valid([]byte(printed)) || !strings.Contains(printed, `"candidates":[{"hash":"`+own) {
			t.Errorf("as JSON it showed\n%s", printed)
		}
		says(t, said(t, "show", "-db", address, lost.String()), "100 item_gold",
			"chain     not read: no node is configured")
		for want, args := range map[string][]string{"-payers is required": chain[:4],
			"RAMP_RPC_URL and -chain-id need each other": chain[:2]} {
			_, _, err := desk(t, node, slices.Concat([]string{"show"}, args, []string{lost.String()})...)
			says(t, fmt.Sprint(err), want)
		}

		// Finish an order by its transaction, and by no other.
		used := said(t, "show", "-db", address, done.String())
		hash := regexp.MustCompile(`0x[0-9a-f]{64}`)
		_, logged, err := desk(t, node,
			slices.Concat([]string{"finish"}, chain,
				[]string{"-who", "bob", "-reason", "case 15", "-tx", hash.FindString(used), silent.String()})...)
		says(t, fmt.Sprint(err), "tx_hash has ended order ")
		says(t, logged, "ramp: order not finished")
		says(t, said(t, "list", "-db", address, "-older", "0s"), "REFUSED", "1 times since ",
			"tx_hash has ended order ")
		says(t, said(t, "count", "-db", address), "and were refused     1      0\n")
		decision := []string{"-who", "bob", "-reason", "case 16", "-tx", own, silent.String()}
		_, _, err = desk(t, node, slices.Concat([]string{"finish"}, chain[:6], decision)...)
		says(t, fmt.Sprint(err), "Config.Network must be mainnet or testnet")
		_, _, err = desk(t, node, slices.Concat([]string{"finish"}, chain, decision)...)
		says(t, fmt.Sprint(err), ", too, which waits: ask the service whose it is")
		printed, logged, err = desk(t, node, slices.Concat([]string{"finish", "-against-evidence"}, chain, decision)...)
		check(t, err)
		says(t, printed, "is succeeded; the game has moved: nothing")
		says(t, logged, `"who":"bob","reason":"case 16"`)
		says(t, said(t, "list", "-db", address, "-player", "alice", "-by-hand"), silent.String(), "bob: case 16")

		// What the service forgot is listed in one step, once it has waited for 13 hours.
		printed, _, err = desk(t, node, slices.Concat([]string{"finish", "-fitting", "-token", token}, chain)...)
		check(t, err)
		equal(t, "what fits", printed, "orders that fit: 0; end them with -yes\n")

		// Abandon the order.
		owns(t, service, alice, "999700/10000")
		abandon := []string{"abandon", "-db", address, "-who", "bob", "-reason", "case 17", "-without-evidence",
			"-early", lost.String()}
		for without, want := range map[string]string{"-without-evidence": "no node is configured",
			"-early": "its result may come until 2"} {
			flags := slices.DeleteFunc(slices.Clone(abandon), func(arg string) bool { return arg == without })
			_, _, err = desk(t, nil, flags...)
			says(t, fmt.Sprint(err), want)
		}
		printed, logged, err = desk(t, nil, abandon...)
		check(t, err)
		says(t, printed, "give back +100 item_gold")
		says(t, logged, `"who":"bob","reason":"case 17"`)
		says(t, said(t, abandon...), "nothing was moved")
		owns(t, service, alice, "999800/10000")
		says(t, said(t, "show", "-db", address, lost.String()), "abandoned", "by hand   bob: case 17")
		settled := slices.Concat(abandon[:len(abandon)-1], []string{"-settled", "by mail", burn.String()})
		_, _, err = desk(t, nil, settled...)
		says(t, fmt.Sprint(err), "Decision.AgainstEvidence is required with Settled")
		says(t, said(t, slices.Concat([]string{"abandon", "-against-evidence"}, settled[1:])...),
			"the game has moved nothing, because it was settled in another way: by mail")
		_, _, err = desk(t, nil, "abandon", "-db", address, "-who", "bob", "-reason", "x", done.String())
		says(t, fmt.Sprint(err), "is finished")
	})
}

// A person deletes what ended long ago, and nothing else.
func TestPruneDeletesWhatEndedLongAgo(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	p := deploy(t, address, "-any-rate")
	service, client := serviceOf(t, p.url)
	alice := login(t, p.url, "alice")
	for _, fault := range [][]ramptest.Fault{nil, {ramptest.StaysPending()}} {
		must(service.Mint(t.Context(), initialize(t, client, item(t, "item_gold", "1")), alice,
			ramp.NewAmount(1), fault...))(t)
		service.Advance(time.Minute)
	}
	db := handle(t, address)
	must(db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001)
		INSERT INTO ramp_orders (uuid, claim, state, direction, network, project_id, session_id, user_address,
		digest, intent, tx_hash, reason, settled, accepted_at, finished_at)
		SELECT printf('00000000-0000-4000-8000-%012d', i), claim, state, direction, network,
		project_id, session_id, user_address,
		digest, intent, NULL, reason, settled, accepted_at - 2592000000, finished_at - 2592000000
		FROM ramp_orders, n WHERE state = 'succeeded'`))(t)
	const pruned = "00000000-0000-4000-8000-000000000007"
	must(db.Exec("INSERT INTO findings (id, kind, uuid, tx_hash, about, mint, detail, at) VALUES ('1', " +
		"'order_without_event', '" + pruned + "', '', '" + pruned + "', 0, '', '2020-01-01T00:00:00Z')"))(t)
	check(t, db.Close())
	prune := func() (string, string, error) {
		before := time.Now().AddDate(0, 0, -10).Format(time.DateOnly)
		return desk(t, nil, "prune", "-db", address, "-project", "project", "-network", "testnet",
			"-direction", "mint", "-before", before, "-who", "bob", "-reason", "case 19")
	}
	_, _, err := prune()
	says(t, fmt.Sprint(err), "the first about order "+pruned+": decide them first")
	said(t, "decide", "-db", address, "-finding", "order_without_event", "-who", "bob", "-reason", "case 18", pruned)
	printed, logged, err := prune()
	check(t, err)
	if printed != "1001 orders were deleted.\n" || !strings.Contains(logged, `"who":"bob","reason":"case 19"`) ||
		countOrders(t, address) != 2 {
		t.Errorf("it printed %q and logged %q; %d orders are left", printed, logged, countOrders(t, address))
	}
	before := time.Now().AddDate(0, 0, -10).Format(time.DateOnly)
	says(t, said(t, "decisions", "-db", address), "prune  mint before "+before+": 1001 orders  bob: case 19")
}

// ready returns the address of a database that has the tables of a server.
func ready(t *testing.T) string {
	t.Helper()
	address := "sqlite:" + filepath.Join(t.TempDir(), "game.db")
	open(t, address)
	return address
}

// Nothing else in this program may end an order without a result.
func TestOnlyTheDeskDecides(t *testing.T) {
	files := must(filepath.Glob("*.go"))(t)
	// or writes to the table
	uses := regexp.MustCompile(`.*\.(?:Abandon|Finish)\b.*|.*(?:INTO|UPDATE|DELETE FROM|TABLE) ramp_orders\b.*`)
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, line := range uses.FindAllString(string(must(os.ReadFile(file))(t)), -1) {
			found = append(found, file+": "+strings.TrimSpace(line))
		}
	}
	if len(found) > 0 { // the commands are in package support
		t.Errorf("these lines may end an order: %q", found)
	}
}
