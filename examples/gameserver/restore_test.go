package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// backup has the two commands of docs/restore.md for a database, and where they run.
type backup struct {
	back, restore string
	env           []string
	dir           string
	restored      string // the value of -db for the new database
}

// backupOf creates a new, empty database and returns the commands that copy another one
// into it.
func backupOf(t *testing.T, address string) backup {
	t.Helper()
	b := backup{dir: t.TempDir()}
	name := "restored_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	path, program := os.Getenv("PATH"), ""
	var database, restored string
	switch kind, rest, _ := strings.Cut(address, ":"); kind {
	case "sqlite":
		program = "sqlite3"
		database, restored = rest, filepath.Join(b.dir, "restored.db")
		b.restored = "sqlite:" + restored
	case "postgres":
		program = "pg_dump"
		if bin := os.Getenv("RAMP_TEST_POSTGRESQL_BIN"); bin != "" { // programs of the server's version
			path = bin + ":" + path
		}
		create(t, "pgx", os.Getenv("RAMP_TEST_POSTGRESQL"), name)
		u := must(url.Parse(address))(t)
		database, u.Path = address, "/"+name
		restored, b.restored = u.String(), u.String()
	case "mysql":
		program = "mariadb-dump"
		create(t, "mysql", os.Getenv("RAMP_TEST_MYSQL"), name)
		config := must(mysql.ParseDSN(rest))(t)
		host, port, _ := strings.Cut(config.Addr, ":")
		options := fmt.Sprintf("[client]\nhost=%s\nport=%s\nuser=%s\npassword=%s\n", host, port, config.User,
			config.Passwd)
		check(t, os.WriteFile(filepath.Join(b.dir, ".my.cnf"), []byte(options), 0o600))
		database, config.DBName = config.DBName, name
		restored, b.restored = name, "mysql:"+config.FormatDSN()
	}
	b.env = append(os.Environ(), "PATH="+path, "HOME="+b.dir, "DATABASE="+database, "RESTORED="+restored)
	find := exec.Command("sh", "-c", "command -v "+program)
	find.Env = b.env
	if find.Run() != nil {
		t.Skip("*** NOT TESTED: " + program + " is not installed ***")
	}
	commands := regexp.MustCompile("```sh\n(" + program + " .+)\n(.+)\n```").FindStringSubmatch(document(t,
		"restore.md"))
	if commands == nil {
		t.Fatalf("docs/restore.md does not say how to back up with %s", program)
	}
	b.back, b.restore = commands[1], commands[2]
	return b
}

func (b backup) run(t *testing.T, line string) {
	t.Helper()
	command := exec.Command("sh", "-ec", line)
	command.Dir, command.Env = b.dir, b.env
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// What docs/restore.md says about a restore is true, and its steps repair it. The
// amounts are chosen so that the balance tells which orders have moved gold.
func TestARestoreIsRepaired(t *testing.T) {
	eachDatabase(t, func(t *testing.T, address string) {
		copies := backupOf(t, address)
		p := deploy(t, address, "-any-rate")
		var current atomic.Pointer[httputil.ReverseProxy]
		point := func(p *process) {
			current.Store(httputil.NewSingleHostReverseProxy(must(url.Parse(p.url))(t)))
		}
		point(p)
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			current.Load().ServeHTTP(w, r)
		}))
		t.Cleanup(proxy.Close)
		service, client := serviceOf(t, proxy.URL, ramptest.AuditOff) // a restore does lose what they would report
		s := login(t, p.url, "alice")
		type placer = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount,
			...ramptest.Fault) (*ramptest.PlacedOrder, error)
		again := func(place placer, id uuid.UUID) *ramptest.PlacedOrder {
			t.Helper()
			return must(place(t.Context(), id, s, ramp.NewAmount(1)))(t)
		}
		place := func(place placer, gold string) *ramptest.PlacedOrder {
			t.Helper()
			return again(place, initialize(t, client, item(t, "item_gold", gold)))
		}
		end := func(o *ramptest.PlacedOrder, outcome ramptest.Outcome) {
			t.Helper()
			check(t, service.Deliver(t.Context(), o, outcome))
		}
		abandon := func(address string, o *ramptest.PlacedOrder) {
			t.Helper()
			said(t, "abandon", "-db", address, "-without-evidence", "-early", "-who", "bob", "-reason", "case 17",
				o.UUID.String())
		}
		want := func(when, balance string) {
			t.Helper()
			equal(t, "what the player owns "+when, owned(t, service, s), balance+"/10000")
		}

		done := place(service.Mint, "1")
		end(done, ramptest.Succeeded)
		mint, failed, burn := place(service.Mint, "10"), place(service.Mint, "100"), place(service.Burn, "1000")
		abandoned, unresent := place(service.Mint, "10000"), place(service.Burn, "400000")
		copies.run(t, copies.back) // while the server runs

		end(mint, ramptest.Succeeded)
		end(failed, ramptest.Failed)
		end(burn, ramptest.Succeeded)
		end(unresent, ramptest.Succeeded)
		abandon(address, abandoned)
		newMint, newFailed, newBurn := place(service.Mint, "20"), place(service.Mint, "200"),
			place(service.Burn, "2000")
		end(newMint, ramptest.Succeeded)
		end(newFailed, ramptest.Failed)
		end(newBurn, ramptest.Succeeded)
		signed := place(service.Mint, "40")
		late := login(t, p.url, "alice")
		want("before the restore", "1402929") // 1000000 - 1 - 10 + 1000 + 400000 - 20 + 2000 - 40
		p.kill()
		file := filepath.Join(t.TempDir(), "game.log")
		check(t,
			os.WriteFile(file,
				[]byte("a line of another program\ngame-1  | "+strings.ReplaceAll(p.log.String(), "\n",
					"\npanic: {not JSON}\n")), 0o600))

		copies.run(t, copies.restore)
		p = deploy(t, copies.restored, "-any-rate")
		point(p)
		want("after the restore", "989889") // 1000000 - 1 - 10 - 100 - 10000
		_, store := open(t, copies.restored)
		orders := must(store.SessionOrders(t.Context(), s.ID, ramp.OrderPage{}))(t)
		states := map[uuid.UUID]ramp.OrderState{}
		for _, o := range orders {
			states[o.UUID] = o.State
		}
		if len(states) != 6 || states[done.UUID] != ramp.OrderSucceeded {
			t.Errorf("the restored orders are %v", states)
		}
		// The log of the server says what the restored database lacks, except that a
		// person abandoned an order, which is in the log of the person's command.
		printed := said(t, "missing", "-db", copies.restored, file)
		for o, want := range map[*ramptest.PlacedOrder]string{
			mint:      "waits again; it was succeeded\t" + s.ID + "\ttake -10 item_gold, then nothing",
			failed:    "waits again; it was failed\t" + s.ID + "\ttake -100 item_gold, then give back +100 item_gold",
			burn:      "waits again; it was succeeded\t" + s.ID + "\tnothing, then grant +1000 item_gold",
			unresent:  "waits again; it was succeeded\t" + s.ID + "\tnothing, then grant +400000 item_gold",
			newMint:   "is missing; it was succeeded\t" + s.ID + "\ttake -20 item_gold, then nothing",
			newFailed: "is missing; it was failed\t" + s.ID + "\ttake -200 item_gold, then give back +200 item_gold",
			newBurn:   "is missing; it was succeeded\t" + s.ID + "\tnothing, then grant +2000 item_gold",
			signed:    "is missing; it was accepted\t" + s.ID + "\ttake -40 item_gold",
		} {
			says(t, printed, o.UUID.String()+" "+want)
		}
		equal(t, "orders that are listed", strings.Count(printed, "\n"), 8)
		var rejected *ramptest.Rejection
		if _, err := service.Assets(t.Context(), late); !errors.As(err, &rejected) ||
			rejected.Status != http.StatusUnauthorized {
			t.Errorf("a session that began after the backup: %v", err)
		}
		printed = said(t, "list", "-db", copies.restored, "-older", "-1s")
		for _, o := range []*ramptest.PlacedOrder{mint, failed, burn, abandoned, unresent} {
			says(t, printed, o.UUID.String())
		}

		// Results of missing orders are answered with 500, and move nothing.
		for o, outcome := range map[*ramptest.PlacedOrder]ramptest.Outcome{
			newMint: ramptest.Succeeded, newFailed: ramptest.Failed, newBurn: ramptest.Succeeded,
			signed: ramptest.Succeeded} {
			if err := service.Deliver(t.Context(), o, outcome); err == nil {
				t.Errorf("the result of %s was accepted, but its order is missing", o.UUID)
			}
		}
		want("after results of missing orders", "989889")
		p.kill()
		equal(t, "unknown orders in the log", strings.Count(p.log.String(), "unknown order"), 4)
		p.start()
		point(p)

		// Restored orders end if the service delivers their results again.
		for _, o := range []*ramptest.PlacedOrder{mint, failed, burn, done} {
			check(t, service.Resend(t.Context(), o))
		}
		abandon(copies.restored, abandoned)
		want("after the results of restored orders", "1000989") // 1000000 - 1 - 10 + 1000

		// A person ends an order by the transaction that the log has, and a late result
		// moves nothing more.
		node := map[string]string{"RAMP_RPC_URL": service.RPCURL(ramp.Testnet)}
		printed, _, err := desk(t, node, "finish", "-db", copies.restored, "-chain-id", "7002", "-payers",
			service.Payer().Hex(), "-contracts", token, "-network", "testnet", "-who", "bob", "-reason", "case 18",
			"-tx", unresent.TxHash.Hex(), unresent.UUID.String())
		check(t, err)
		says(t, printed, "is succeeded; the game has moved: grant +400000 item_gold")
		check(t, service.Resend(t.Context(), unresent))
		want("after a burn was finished", "1400989")

		// Missing orders are opened again by a repeated validate, and end like any other.
		for _, o := range []*ramptest.PlacedOrder{again(service.Mint, newMint.UUID), again(service.Mint, signed.UUID)} {
			check(t, service.Resend(t.Context(), o))
		}

		// What the service does not repeat, a person restores from the log, once.
		want("before the rest was restored", "1400929")
		for _, last := range []string{"orders that were lost: 2\n", "orders that were lost: 0\n"} {
			printed, _, err = desk(t, node, "restore", "-db", copies.restored, "-chain-id", "7002", "-payers",
				service.Payer().Hex(), "-contracts", token, "-network", "testnet", "-who", "bob", "-reason", "case 19",
				"-against-evidence", file) // the player paid for the mint that failed
			check(t, err)
			if !strings.HasSuffix(printed, last) {
				t.Errorf("it printed\n%s", printed)
			}
			want("at the end", "1402929") // as before the restore
		}
	})
}
