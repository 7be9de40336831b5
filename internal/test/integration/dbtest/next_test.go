package dbtest

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/nextrelease"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

const (
	// envRelease is the path of the test binary of this package that the release before has built, with
	// go test -c. By default the release before is this one, and the newer one is made from it.
	envRelease = "RAMP_TEST_RELEASE"

	envCheck = "RAMP_TEST_CHECK" // lets the test binary check a database and print the error
)

// serveCheck checks a database instead of running tests, if the environment says so.
func serveCheck() {
	setting, asked := os.LookupEnv(envCheck)
	if !asked {
		return
	}
	store, err := openServed(setting)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("checked:", store.(*rampsql.Store).Check(context.Background(), ""))
	os.Exit(0)
}

// During a deployment, servers of two releases run on one table. The newer release has one field, one
// column and one index more. Its program migrate adds them while orders come and go, and each release
// ends the orders of the other.
func TestBesideTheNextRelease(t *testing.T) {
	racedetector.Skip(t)
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	t.Parallel()
	copied := nextrelease.Copy(t, "../../../..")
	tests, migrate := filepath.Join(t.TempDir(), "tests"), filepath.Join(t.TempDir(), "gameserver")
	output(t, copied+"/internal/test/integration", nil, "go", "test", "-c", "-o", tests, "./dbtest")
	output(t, copied+"/examples/gameserver", nil, "go", "build", "-o", migrate, ".")

	t.Run("it ends the orders of every release", func(t *testing.T) {
		said := output(t, copied+"/internal/test/integration/dbtest", nil, tests, "-test.v", "-test.run",
			"^TestThisRelease")
		if !strings.Contains(said, `does not have ["OfNextRelease"]`) {
			t.Errorf("the field that was added was not tried:\n%s", said)
		}
	})
	t.Run("it needs nothing that the guide does not name", func(t *testing.T) {
		output(t, copied, nil, "go", "test", "-short", "./rampsql")
		output(t, copied, nil, "go", "test", "-short", "-run", "Order|Release", ".")
	})
	for _, d := range databases {
		for _, format := range must.Get(os.ReadDir(formats))(t) {
			t.Run(d.name+"/"+format.Name(), func(t *testing.T) {
				text := must.Get(os.ReadFile(filepath.Join(formats, format.Name(), strings.ToLower(d.name)+".sql")))(t)
				p := newPlace(t, d, d.modes[0], "DROP TABLE ramp_orders; DROP TABLE ramp_refusals;", string(text))
				if release := os.Getenv(envRelease); release == "" { // this one is the release before
					p.migrate(t)
				}
				deploy(t, p, tests, migrate)
				testKill(t, p, os.Getenv(envRelease), tests)
			})
		}
	}
}

// deploy runs this release, migrates, and runs the next one beside it.
func deploy(t *testing.T, p *place, next, migrate string) {
	t.Helper()
	const gold = 1_000_000
	k := kitHoldings{p}
	check(t, k.give(t.Context(), "alice", "gold", gold))
	before := newStore(t, p, k.move)
	setting := string(must.Get(json.Marshal(served{Driver: p.driver, DSN: p.dsn, Dialect: p.dialect}))(t))
	checked := func() string { // without its warnings
		_, result, _ := strings.Cut(output(t, ".", []string{envCheck + "=" + setting}, next), "checked: ")
		return strings.TrimSpace(result)
	}

	expectText(t, fmt.Errorf("%s", checked()), "table ramp_orders has version ", ", but this release needs version ",
		": run the statements of Dialect.Migrations(")
	var wins, losses atomic.Int64 // of gold pieces
	trade := func(begin, end ramp.Store) {
		minted, burned := newOrder("alice", mint("gold", 3)), newOrder("alice", burn("gold", 5))
		for _, o := range []order{minted, burned} {
			take(t, begin, o.id, remembering(o.accept()))
			step := must.Get(end.Update(t.Context(), o.id, o.accept()))(t)
			equal(t, "whether a repeat is new to the other release", step.New, false)
			take(t, end, o.id, o.finish(success))
			step = must.Get(begin.Update(t.Context(), o.id, o.finish(success)))(t)
			equal(t, "whether a repeat of the end is new to the other release", step.New, false)
		}
		losses.Add(3)
		wins.Add(5)
	}
	stop := during(t, func() { trade(before, before) })
	output(t, ".", nil, migrate, "migrate", "-db", p.shop(t, p))
	equal(t, "what Check of the next release says", checked(), "<nil>")
	check(t, before.Check(t.Context(), ""))
	after := storetest.Start(t, next, setting)
	remembered := newOrder("alice", mint("gold", 1))
	take(t, after, remembered.id, remembering(remembered.accept()))
	for range 10 {
		trade(before, after)
		trade(after, before)
		trade(after, after)
	}
	t.Logf("%d orders beside the migration", stop()*2)

	// What the next release has stored with an order is there when this one has ended it.
	take(t, before, remembered.id, remembered.finish(success))
	_ = must.Get(after.Update(t.Context(), remembered.id, func(stored *ramp.Order) (ramp.Step, error) {
		text := string(must.Get(json.Marshal(stored))(t))
		if stored != nil && !strings.Contains(text, `"of_next_release":"for alice"`) {
			t.Errorf("the next release reads %s, without what the next release has stored", text)
		}
		return remembered.finish(success)(stored)
	}))(t)
	equal(t, "gold", must.Get(k.balance(t.Context(), "alice", "gold"))(t), gold+wins.Load()-losses.Load()-1)
}

// remembering lets a new order have the field of the next release, which this one keeps.
func remembering(next ramp.Transition) ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		if step.New {
			text, failed := json.Marshal(step.Order)
			if failed != nil {
				return ramp.Step{}, failed
			}
			err = json.Unmarshal(append([]byte(`{"of_next_release":"for alice",`), text[1:]...), &step.Order)
		}
		return step, err
	}
}

// during repeats something in three goroutines until the function that it returns is called, which returns
// how often it was done, or until the test ends.
func during(t *testing.T, do func()) (stop func() int64) {
	t.Helper()
	var done atomic.Bool
	var times atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for !done.Load() {
				do()
				times.Add(1)
			}
		})
	}
	stop = func() int64 { done.Store(true); all.Wait(); return times.Load() }
	t.Cleanup(func() { stop() }) // or what fails after the test would hide why it has ended
	return stop
}

// output runs a program and returns what it prints.
func output(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	command := exec.Command(program, args...)
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}
