package dbtest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// Property 5: whatever is interrupted, every effect happens exactly once.

// served says where a store is that storetest starts in a process of its own.
type served struct {
	Driver, DSN string
	Dialect     rampsql.Dialect
	Claims      bool // whether the database has claims
}

func (s served) open() (ramp.Store, error) {
	db, err := sql.Open(s.Driver, s.DSN)
	if err != nil {
		return nil, err
	}
	k := kitHoldings{&place{database: database{dialect: s.Dialect}, db: db}}
	config := rampsql.Config{DB: db, Dialect: s.Dialect, Apply: k.move}
	if s.Claims {
		config.Claims, err = rampsql.NewClaims(rampsql.ClaimsConfig{DB: db, Dialect: s.Dialect, Network: ramp.Testnet})
		if err != nil {
			return nil, err
		}
	}
	return rampsql.New(config)
}

// testKill kills processes that run the programs, this test binary if one is "".
func testKill(t *testing.T, p *place, programs ...string) {
	t.Helper()
	testKillOf(t, p, served{Driver: p.driver, DSN: p.dsn, Dialect: p.dialect}, programs...)
}

func testKillOf(t *testing.T, p *place, of served, programs ...string) {
	t.Helper()
	setting := must.Get(json.Marshal(of))(t)
	var processes []*storetest.Process
	for _, program := range programs {
		processes = append(processes, storetest.Start(t, program, string(setting)))
	}
	k := kitHoldings{p}
	storetest.TestKill(t, storetest.Fixture{Give: k.give, Balance: k.balance}, processes...)
}

func TestKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	eachDatabase(t, func(t *testing.T, p *place) { testKill(t, p, "") })
}

// A process is also killed between a claim and the end of its order.
func TestKillWithClaims(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, p *place) {
		testKillOf(t, p, served{Driver: p.driver, DSN: p.dsn, Dialect: p.dialect, Claims: true}, "")
	})
}

// A primary whose commits wait for a standby is killed, and the standby takes over. Then
// that one crashes and recovers. Everything that was answered is stored.
func TestCrashesOfPostgreSQL(t *testing.T) {
	primary, standby := newCluster(t)
	p := &place{database: databaseOf(t, rampsql.PostgreSQL), // whichever of them is writable
		dsn: fmt.Sprintf(
			"postgres://ramp@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
			primary.port, standby.port)}
	p.db = open(t, p.driver, p.dsn)
	run(t, p.db, p.dialect.Schema()+tables)
	took := false
	testKit(t, p, func() error {
		if took {
			standby.kill()
			standby.start()
			return nil
		}
		took = true
		primary.kill()
		standby.ctl("promote", "-w")
		return nil
	})
}

// The database commits, but its answer is lost, so the step may be stored. By default the
// call fails; a studio may have it retried. A repeat finds the step, also by the retry.
func TestLostAnswerOfACommit(t *testing.T) {
	for name, retryable := range map[string]func(error) bool{"by default": nil,
		"retried": func(error) bool { return true }} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, p *place) {
				faults := lossy(t, p)
				w := newWorld(t, p, nil)
				w.give("alice", "gold", 5)
				store := must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Retryable: retryable,
					Logger: ramptest.Logger(t),
					Apply:  studio{db: p.db, dialect: p.dialect}.Apply}))(t)
				o := newOrder("alice", mint("gold", 5))
				for _, next := range []ramp.Transition{o.accept(), o.finish(failure)} {
					faults.lost.Store(1)
					_, err := store.Update(t.Context(), o.id, next)
					if retryable != nil {
						check(t, err)
					} else {
						expectText(t, err, "commit: "+errLost.Error())
					}
					equal(t, "answers that were not lost", faults.lost.Load(), 0)
					step := must.Get(store.Update(t.Context(), o.id, next))(t)
					if step.New {
						t.Error("the step was not stored")
					}
				}
				w.assertMoves(moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}})
			})
		})
	}
}
