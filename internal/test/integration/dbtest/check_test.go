package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Check finds the problems of a database at startup, before the first order.

func TestCheckOfAGoodDatabase(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		check(t, newStore(t, p, applyNothing).Check(t.Context(), ""))
	})
}

// These show at the first order otherwise, or at its end. Without its unique index, one
// transaction ends two orders, and another index does not help.
func TestCheckNamesWhatIsWrongWithTheTable(t *testing.T) {
	const (
		unusable   = "ramp: check: table ramp_orders, which Dialect.Schema creates, is unusable"
		noIndex    = "ramp: check: table ramp_orders has no unique index of tx_hash alone"
		drop       = "DROP INDEX ramp_orders_tx_hash;"
		twoColumns = "CREATE UNIQUE INDEX other ON ramp_orders (tx_hash, state);"
	)
	column := func(name, kind string) string {
		return "ramp: check: column " + name + " of table ramp_orders is of type " + kind +
			", or narrower than Dialect.Schema creates it"
	}
	for _, c := range []struct {
		dialect   rampsql.Dialect // or "" for all
		migration string
		want      string // "" if nothing is wrong
		part      string // of the database's own message
	}{
		{"", "DROP TABLE ramp_orders;", unusable, "ramp_orders"},
		{"", "ALTER TABLE ramp_orders RENAME COLUMN reason TO why;", unusable, "reason"},
		{"", drop, noIndex, ""},
		{"", drop + twoColumns, noIndex, ""},
		{"", drop + "CREATE INDEX other ON ramp_orders (tx_hash);", noIndex, ""},
		{"", drop + twoColumns + "CREATE UNIQUE INDEX third ON ramp_orders (tx_hash);", "", ""},
		{"", drop + "CREATE UNIQUE INDEX ours ON ramp_orders (tx_hash);", "", ""},
		{"", "CREATE UNIQUE INDEX twice ON ramp_orders (tx_hash);", "", ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER accepted_at TYPE timestamptz USING now();",
			column("accepted_at", "timestamp with time zone"), ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER finished_at TYPE integer;",
			column("finished_at", "integer"), ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER intent TYPE jsonb USING intent::jsonb;",
			column("intent", "jsonb"), ""},
		{rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER claim TYPE varchar(25);",
			column("claim", "character varying"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY accepted_at DATETIME NOT NULL;",
			column("accepted_at", "datetime"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY finished_at INT NULL;", column("finished_at", "int"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY uuid BINARY(36) NOT NULL;", column("uuid", "binary"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY claim VARCHAR(25) NOT NULL;", column("claim", "varchar"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY session_id VARCHAR(255) NOT NULL;",
			column("session_id", "varchar"), ""},
		{rampsql.MySQL, "ALTER TABLE ramp_orders MODIFY intent VARCHAR(4000) NOT NULL;",
			column("intent", "varchar"), ""},
		{rampsql.SQLite,
			strings.ReplaceAll("DROP TABLE ramp_orders; "+strings.ReplaceAll(rampsql.SQLite.Schema(), ") STRICT", ")"),
				"accepted_at  INTEGER", "accepted_at TIMESTAMP"), column("accepted_at", "TIMESTAMP"), ""},
	} {
		for _, d := range databases {
			if c.dialect != "" && c.dialect != d.dialect {
				continue
			}
			t.Run(d.name+"/"+c.migration, func(t *testing.T) {
				migration := strings.Replace(c.migration, drop, fmt.Sprintf(d.dropIndex, "ramp_orders_tx_hash"), 1)
				err := newStore(t, newPlace(t, d, d.modes[0], migration), applyNothing).Check(t.Context(), "")
				if c.want == "" {
					check(t, err)
					return
				}
				expectText(t, err, c.want, c.part)
			})
		}
	}
}

// Each right that the store needs is missing once. SQLite has none.
func TestCheckNamesAMissingRight(t *testing.T) {
	for _, right := range []string{"SELECT", "INSERT", "UPDATE"} {
		eachServer(t, func(t *testing.T, d database) {
			p := newPlace(t, d, d.modes[0])
			run(t, p.admin, fmt.Sprintf(d.revoke, p.schema, right))
			err := newStore(t, p, applyNothing).Check(t.Context(), "")
			expectText(t, err,
				"ramp: check: table ramp_orders, which Dialect.Schema creates, is unusable for "+right,
				map[bool]string{false: "denied", true: "privilege check"}[p.tidb && right == "UPDATE"])
		})
	}
}

// A read-only user and a read-only replica cannot store orders.
func TestCheckOfADatabaseThatIsReadOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		if p.tidb {
			t.Skip("TiDB has no read-only transactions: error 1235")
		}
		p.db.SetMaxOpenConns(1)
		run(t, p.db, p.readOnly)
		err := newStore(t, p, applyNothing).Check(t.Context(), "")
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "read") {
			t.Errorf("of a database that is read-only: %v", err)
		}
	})
}

// A database that is not strict truncates what a narrow column cannot hold. The claim
// of a new order would then look like that of another call, and a mint would be signed
// as a repeat, but neither stored nor taken.
func TestAClaimThatIsTruncatedIsNoRepeat(t *testing.T) {
	eachServer(t, func(t *testing.T, d database) {
		w := newWorld(t, newPlace(t, d, mode{params: d.lax}, d.narrowClaim), nil)
		w.give("alice", "gold", 100)
		o := newOrder("alice", mint("gold", 5))
		for range 2 {
			w.expect(w.validate(o), "500 INTERNAL_ERROR")
		}
		w.assertMoves(moves{})
	})
}

// What a trial order or the catalog shows. Each of these was silent, and then cost an order,
// all orders, or a player's assets.
func TestCheckRehearses(t *testing.T) {
	const (
		trial     = "ramp: check: a trial order, which is rolled back, fails as every order would: "
		oneForTwo = trial + "the collation of session_id takes one session for another"
		rls       = "ALTER TABLE ramp_orders ENABLE ROW LEVEL SECURITY;"
		policy    = "CREATE POLICY p ON ramp_orders "
	)
	sqlite := func(from, to string) string {
		return "DROP TABLE ramp_orders; " + strings.Replace(rampsql.SQLite.Schema(), from, to, 1) + ";"
	}
	pg, mysql, lite := rampsql.PostgreSQL, rampsql.MySQL, rampsql.SQLite
	for _, c := range []struct {
		name      string
		dialect   rampsql.Dialect
		migration string
		params    string // of the connection
		options   sql.TxOptions
		want      string
		only      string // part of the only version that can be so
	}{
		{name: "UNLOGGED", dialect: pg, migration: "ALTER TABLE ramp_orders SET UNLOGGED;",
			want: "ramp: check: table ramp_orders is UNLOGGED"},
		{name: "MyISAM", dialect: mysql, migration: "ALTER TABLE ramp_orders ENGINE = MyISAM;",
			want: "ramp: check: table ramp_orders is of the engine MyISAM", only: "MariaDB"},
		{name: "Aria", dialect: mysql, migration: "ALTER TABLE ramp_orders ENGINE = Aria;",
			want: "ramp: check: table ramp_orders is of the engine Aria", only: "MariaDB"},

		{name: "no primary key", dialect: pg, migration: "ALTER TABLE ramp_orders DROP CONSTRAINT ramp_orders_pkey;",
			want: trial},
		{name: "no primary key", dialect: mysql, migration: "ALTER TABLE ramp_orders DROP PRIMARY KEY;",
			want: trial + "its UUID has two rows: the table has no primary key", only: "MariaDB"},
		{name: "no primary key", dialect: lite, migration: sqlite("NOT NULL PRIMARY KEY", "NOT NULL"),
			want: "PRIMARY KEY"},

		{name: "no such level", dialect: pg, options: sql.TxOptions{Isolation: sql.LevelLinearizable},
			want: trial + "begin, with Config.TxOptions: "},
		{name: "no such level", dialect: mysql, options: sql.TxOptions{Isolation: sql.LevelLinearizable},
			want: trial + "begin, with Config.TxOptions: "},

		{name: "no case", dialect: pg,
			migration: "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);" +
				"ALTER TABLE ramp_orders ALTER session_id TYPE text COLLATE nocase;", want: oneForTwo},
		{name: "no accents", dialect: pg,
			migration: "CREATE COLLATION noaccents (provider = icu, locale = 'und-u-ks-level1-kc-true', " +
				"deterministic = false);" +
				"ALTER TABLE ramp_orders ALTER session_id TYPE text COLLATE noaccents;", want: oneForTwo},
		{name: "no case", dialect: mysql,
			migration: "ALTER TABLE ramp_orders MODIFY session_id TEXT COLLATE utf8mb4_general_ci NOT NULL;",
			want:      oneForTwo},
		{name: "no case", dialect: lite,
			migration: sqlite("session_id   TEXT    NOT NULL", "session_id TEXT NOT NULL COLLATE NOCASE"),
			want:      oneForTwo},

		{name: "empty is NULL", dialect: mysql, params: "&sql_mode=EMPTY_STRING_IS_NULL", want: "null",
			only: "MariaDB"},
		{name: "no autocommit", dialect: mysql, params: "&autocommit=0", want: "autocommit is off"},
		{name: "no policy", dialect: pg, migration: rls, want: "row-level security"},
		{name: "a policy that hides", dialect: pg, migration: rls + policy + "USING (false) WITH CHECK (true);",
			want: "row-level security"},
		{name: "a policy for inserts", dialect: pg, migration: rls + policy + "FOR INSERT WITH CHECK (true);",
			want: "row-level security"},
		{name: "a policy for what waits", dialect: pg, migration: rls + policy + "USING (state = 'accepted');",
			want: "row-level security"},
		{name: "a policy by player", dialect: pg,
			migration: rls + policy + "USING (session_id = current_setting('game.session', true));",
			want:      "row-level security"},
	} {
		t.Run(string(c.dialect)+"/"+c.name, func(t *testing.T) {
			p := newPlace(t, databaseOf(t, c.dialect), mode{params: c.params, only: c.only}, c.migration)
			store := must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: c.dialect, Apply: applyNothing,
				TxOptions: &c.options, Logger: ramptest.Logger(t)}))(t)
			err := store.Check(t.Context(), ramp.Testnet)
			t.Log(err)
			expectText(t, err, "ramp: check: ", c.want)
		})
	}
}

// A rollback that keeps the row would keep an order whose effect it took back.
func TestCheckFindsARollbackThatIsNone(t *testing.T) {
	p := placeOn(t, rampsql.SQLite)
	p.through(t, func(conn driver.Conn) driver.Conn { return committing{conn.(sqliteConn)} })
	err := newStore(t, p, applyNothing).Check(t.Context(), "")
	expectText(t, err, "its row stays: the database, or a proxy, has committed each statement")
}

// committing is a connection that commits when it should roll back, and has no commit hook.
type committing struct{ sqliteConn }

func (c committing) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return commitsOnly{tx}, err
}

type commitsOnly struct{ driver.Tx }

func (t commitsOnly) Rollback() error { return t.Commit() }

// warnings returns what Check logs, without the settings of the server, which the tests make
// faster and not durable.
func warnings(t *testing.T, p *place) (log string) {
	t.Helper()
	for line := range strings.Lines(checkLog(t, p)) {
		if !strings.Contains(line, notDurable) {
			log += line
		}
	}
	return log
}

const notDurable = `warning="a crash or a failover can lose orders that were answered"`

// checkLog returns what Check logs. It must find no error, and leave no row.
func checkLog(t *testing.T, p *place) string {
	t.Helper()
	var log strings.Builder
	store := must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: applyNothing,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	check(t, store.Check(t.Context(), ramp.Mainnet))
	var rows int
	check(t, p.db.QueryRow("SELECT COUNT(*) FROM ramp_orders").Scan(&rows))
	equal(t, "rows", rows, 0)
	t.Log(log.String())
	return log.String()
}

// A clock that is wrong makes orders older or younger than their transactions. A database that
// is not strict clips a balance.
func TestCheckWarnsOfTheServer(t *testing.T) {
	t.Run("clock", func(t *testing.T) {
		for ahead, want := range map[string]string{"0": "", "30": "", "1200": "that of this computer is 20m0s behind",
			"-1200": "that of this computer is 20m0s ahead"} {
			p := placeOn(t, rampsql.PostgreSQL)
			run(t, p.admin, "CREATE FUNCTION "+p.schema+".clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "+
				"'SELECT pg_catalog.clock_timestamp() + "+ahead+" * interval ''1 second'''")
			p.db = open(t, p.driver,
				strings.Replace(p.dsn, "search_path="+p.schema, "search_path="+p.schema+",pg_catalog", 1))
			log := warnings(t, p)
			if want == "" {
				equal(t, "what was logged", log, "")
			} else {
				expectText(t, errors.New(log),
					`level=WARN msg="ramp: check" warning="one of two clocks is wrong"`, want)
			}
		}
	})
	t.Run("sql_mode", func(t *testing.T) {
		for params, want := range map[string]string{
			"": "", "&sql_mode=STRICT_ALL_TABLES": "", "&sql_mode=''": "sql_mode= is not strict",
			"&sql_mode=ANSI": "is not strict",
		} {
			log := warnings(t, newPlace(t, databaseOf(t, rampsql.MySQL), mode{params: params}))
			if want == "" {
				equal(t, "what was logged", log, "")
			} else {
				expectText(t, errors.New(log), `level=WARN msg="ramp: check" warning="what does not fit a column`, want)
			}
		}
	})
}

// A commit that was confirmed may be lost all the same, by a setting.
func TestCheckWarnsOfWhatIsNotDurable(t *testing.T) {
	for _, c := range []struct {
		dialect      rampsql.Dialect
		params, want string // "" if nothing is to be said
	}{
		{rampsql.PostgreSQL, "", ""},
		{rampsql.PostgreSQL, "&synchronous_commit=off", "synchronous_commit=off: a commit may not be on disk"},
		{rampsql.PostgreSQL, "&synchronous_commit=local", ""},                                // there is no standby
		{rampsql.MySQL, "", "innodb_flush_log_at_trx_commit=2: a commit may not be on disk"}, // see databases
		{rampsql.SQLite, "", "synchronous=normal: with WAL, the last commits are lost when the power fails"},
		{rampsql.SQLite, "off", "synchronous=off: a commit may not be on disk"},
		{rampsql.SQLite, "full", ""},
	} {
		t.Run(string(c.dialect)+" "+c.params, func(t *testing.T) {
			d, m := databaseOf(t, c.dialect), mode{params: c.params}
			if d.file {
				m = mode{}
			}
			p := newPlace(t, d, m)
			if d.file && c.params != "" {
				p.db = open(t, p.driver, strings.Replace(p.dsn, "normal", c.params, 1))
			}
			if p.tidb {
				t.Skip("TiDB has a log of its own")
			}
			said := ""
			for line := range strings.Lines(checkLog(t, p)) {
				if strings.Contains(line, notDurable) && !strings.Contains(line, "fsync=off") { // of these tests
					said += line
				}
			}
			if c.want == "" {
				equal(t, "what was logged", said, "")
			} else {
				expectText(t, errors.New(said), `level=WARN msg="ramp: check"`, c.want)
			}
		})
	}
}

// What a character set lacks costs the players who need it their orders, or pays a row that nobody owns: an
// upsert in Apply grants to "????". So it is an error, unless the game says that it has no such sessions, which
// the store enforces.
func TestCheckFindsCharactersThatAreLacking(t *testing.T) {
	for _, c := range []struct{ name, params, migration, want string }{
		{"utf8mb4", "", "", ""},
		{"a table in utf8", "", "ALTER TABLE ramp_orders CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8mb3_bin;",
			"Incorrect string value"},
		{"a table in utf8, not strict", "&sql_mode=''",
			"ALTER TABLE ramp_orders CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8mb3_bin;",
			"has another character set"},
		{"a connection in utf8", "&charset=utf8", "", "\U0001f642"},
		{"a connection in latin1", "&charset=latin1", "", "\U0001f642"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mode{params: c.params}
			if c.want != "" {
				m.only = "MariaDB" // TiDB converts no table, and its texts are UTF-8 on every connection
			}
			p := newPlace(t, databaseOf(t, rampsql.MySQL), m, c.migration)
			s := studio{db: p.db, dialect: p.dialect}
			of := func(ascii bool) *rampsql.Store {
				return must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: s.Apply,
					ASCIISessions: ascii}))(t)
			}
			if err := of(false).Check(t.Context(), ""); c.want == "" {
				check(t, err)
			} else {
				expectText(t, err, c.want, "Config.ASCIISessions")
			}
			check(t, of(true).Check(t.Context(), ""))
			for session, right := range map[string]bool{"alice-1": true, "~ |": true, "Álice": false, "玩": false,
				"\U0001f642": false} {
				o := newOrder(session, burn("gold", 5))
				_, err := of(true).Update(t.Context(), o.id, o.accept())
				if right {
					check(t, err)
					take(t, of(true), o.id, o.finish(success))
					continue
				}
				var invalid *ramp.InvalidError
				if !errors.As(err, &invalid) || invalid.Fields[0].Path != "session_id" {
					t.Errorf("session %q: %v", session, err)
				}
			}
			var rows int // that somebody owns
			check(t, p.db.QueryRow("SELECT COUNT(*) FROM holdings WHERE session_id LIKE '%?%'").Scan(&rows))
			equal(t, "rows that nobody owns", rows, 0)
		})
	}
}

// Tokens of testnet cost nothing.
func TestCheckKeepsTestnetAndMainnetApart(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		var trial order
		for _, network := range []ramp.Network{ramp.Testnet, "", ramp.Mainnet} {
			if network == ramp.Mainnet { // it goes live
				expectText(t, store.Check(t.Context(), network), "ramp: check: table ramp_orders has orders of "+
					"testnet that wait, such as "+trial.id.String())
				take(t, store, trial.id, ramp.Abandon("bob: we go live", time.Now()))
			}
			check(t, store.Check(t.Context(), network))
			o := newOrder("alice", burn("gold", 5))
			if network == ramp.Testnet {
				trial = o
			}
			take(t, store, o.id, func(stored *ramp.Order) (ramp.Step, error) {
				step, err := o.accept()(stored)
				step.Order.Network = network
				return step, err
			})
		}
		check(t, store.Check(t.Context(), ramp.Mainnet))
		check(t, store.Check(t.Context(), ""))
		expectText(t, store.Check(t.Context(), ramp.Testnet),
			"ramp: check: table ramp_orders has orders of mainnet, such as ")
		testnet := newStoreOf(t, p, applyNothing, ramp.Testnet)
		expectText(t, testnet.Check(t.Context(), ""), "ramp: check: table ramp_orders has orders of mainnet, such as ")
		expectText(t, testnet.Check(t.Context(), ramp.Mainnet),
			"ramp: check: ramp: Config.Network must be that of the terms, mainnet, not testnet")

		terms := must.Get(ramp.NewTerms(ramp.TermsConfig{Any: true, ProjectID: "project", Network: ramp.Testnet}))(t)
		handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: terms, Logger: ramptest.Logger(t),
			Players: studio{db: p.db, dialect: p.dialect}, Store: store,
			Key: must.Get(ramp.TextKey(hmacText))(t), Signer: must.Get(ramp.NewKeySigner(validatorKey))(t)}))(t)
		expectText(t, handler.Check(t.Context()), "orders of mainnet")
	})
}

var checks = flag.Int("checks", 10, "`number` of checks in each mode of TestCheckBesideOrders")

// A trial order hinders no order, none hinders it, and nobody sees it.
func TestCheckBesideOrders(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, p *place) {
		if p.mode.name == "deferred" {
			t.Skip("there, orders fail beside each other")
		}
		w := newWorld(t, p, nil)
		approved := func(call func() answer) {
			got := call()
			// lost to another order, more often than it is retried
			for n := 0; p.mode.races && got.status == 500 && n < 20; n++ {
				got = call()
			}
			w.expect(got, "200")
		}
		var wg sync.WaitGroup
		done := make(chan struct{})
		for n := range 4 {
			player := fmt.Sprint("player", n)
			w.give(player, "gold", 1_000_000)
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					o := newOrder(player, mint("gold", 5))
					approved(func() answer { return w.validate(o) })
					approved(func() answer { return w.result(o, failure) })
				}
			})
		}
		longest := time.Duration(0)
		for range *checks {
			start := time.Now()
			if err := w.store.Check(t.Context(), ramp.Testnet); err != nil {
				t.Error(err)
			}
			longest = max(longest, time.Since(start))
		}
		close(done)
		wg.Wait()
		var orders, trials int
		check(t,
			p.db.QueryRow(
				"SELECT COUNT(*), COUNT(CASE WHEN project_id = 'ramp check' THEN 1 END) FROM ramp_orders").Scan(
				&orders, &trials))
		equal(t, "trial orders that stay", trials, 0)
		t.Logf("%d checks beside %d orders, longest %v", *checks, orders, longest)
	})
}

// A lock on the table holds Check up no longer than its context.
func TestCheckWaitsAsUpdateDoes(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, d database) {
		p := newPlace(t, d, d.modes[0])
		if p.tidb {
			t.Skip("TiDB does not lock tables")
		}
		conn := must.Get(p.admin.Conn(t.Context()))(t)
		defer conn.Close()
		tx := must.Get(conn.BeginTx(t.Context(), nil))(t)
		must.Get(tx.Exec(fmt.Sprintf(d.lock, p.schema)))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := newStore(t, p, applyNothing).Check(ctx, ""); err == nil || time.Since(start) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		check(t, tx.Rollback())
		if d.unlock != "" {
			must.Get(conn.ExecContext(t.Context(), d.unlock))(t)
		}
	})
}

// The table is where the search path finds it, not in its first schema.
func TestCheckOfATableInTheSecondSchema(t *testing.T) {
	p := placeOn(t, rampsql.PostgreSQL, "ALTER TABLE ramp_orders ALTER tx_hash TYPE varchar(40);")
	second := p.schema + "_second"
	run(t, p.admin, "CREATE SCHEMA "+second+"; GRANT USAGE ON SCHEMA "+second+" TO "+p.schema+
		"; ALTER TABLE "+p.schema+".ramp_orders SET SCHEMA "+second)
	t.Cleanup(func() { run(t, p.admin, "DROP SCHEMA "+second+" CASCADE") })
	p.db = open(t, p.driver, strings.Replace(p.dsn, "search_path="+p.schema, "search_path="+p.schema+","+second, 1))
	err := newStore(t, p, applyNothing).Check(t.Context(), "")
	expectText(t, err, "ramp: check: column tx_hash of table ramp_orders is of type character varying")
	run(t, p.admin, "ALTER TABLE "+second+".ramp_orders ALTER tx_hash TYPE text")
	check(t, newStore(t, p, applyNothing).Check(t.Context(), ""))
}
