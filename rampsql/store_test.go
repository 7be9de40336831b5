package rampsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// What needs a database is tested in internal/test/integration/dbtest, on real ones.

var (
	player      = ramp.Session{ID: "session-1"}
	errRecorded = errors.New("recorded")
)

func applyNothing(context.Context, *sql.Tx, ramp.Step) error { return nil }

func mintRequest() *ramp.ValidateRequest {
	return &ramp.ValidateRequest{UUID: uuid.New(), ProjectID: "project-1", UserAddress: "0xuser", Intent: ramp.Intent{
		Method: ramp.MethodMint, Type: ramp.Assemble,
		From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}},
		To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: tokenContract, Amount: ramp.NewAmount(1)}},
	}}
}

// assertFields checks that err is an InvalidError about exactly these fields.
// Each is a path and the beginning of the problem: "uuid is required".
func assertFields(t *testing.T, err error, want ...string) {
	t.Helper()
	var wrong *ramp.InvalidError
	require.ErrorAs(t, err, &wrong)
	require.Len(t, wrong.Fields, len(want))
	for i, f := range wrong.Fields {
		assert.True(t, strings.HasPrefix(f.Path+" "+f.Problem, want[i]), "got %v, want %q…", f, want[i])
	}
}

// requireRepository skips a test that reads other modules, which the zip of this one does not have.
func requireRepository(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../internal/test/integration/dbtest"); err != nil {
		t.Skip("not a clone of the repository")
	}
}

// A new field needs a test, here or on databases.
func TestEveryFieldOfAConfigIsSetInATest(t *testing.T) {
	requireRepository(t)
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "../internal/test/integration/dbtest/*_test.go"} {
		for _, file := range must.Get(filepath.Glob(pattern))(t) {
			tests.Write(must.Get(os.ReadFile(file))(t))
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[rampsql.Config]()) {
		assert.True(t, strings.Contains(tests.String(), "\t"+field.Name+": ") ||
			strings.Contains(tests.String(), " "+field.Name+": "), field.Name)
	}
}

// internal/test/integration/dbtest does so on databases.
func TestAStoreTriesAgain(t *testing.T) {
	for _, tt := range []struct {
		retries   int
		retryable func(error) bool
		begins    int
	}{
		{0, nil, 1},
		{0, func(err error) bool { return errors.Is(err, errRecorded) }, 4},
		{2, func(error) bool { return true }, 3},
		{2, func(error) bool { return false }, 1}, {-1, func(error) bool { return true }, 1},
	} {
		db := breaking(errRecorded)
		store := must.Get(rampsql.New(rampsql.Config{
			DB: sql.OpenDB(db), Dialect: rampsql.PostgreSQL, Apply: applyNothing,
			Retries: tt.retries, Retryable: tt.retryable,
		}))(t)
		r := mintRequest()
		_, err := store.Update(t.Context(), r.UUID, ramp.Accept(player, r, time.Now()))
		assert.ErrorIs(t, err, errRecorded)
		assert.Equal(t, tt.begins, db.begins)
		assert.Contains(t, db.statements, "DEFAULT) ON CONFLICT")
	}
}

// Changing a config after it was used has no effect.
func TestAConfigIsCopied(t *testing.T) {
	db := breaking(errRecorded)
	begin := sql.TxOptions{Isolation: sql.LevelSerializable}
	store := must.Get(rampsql.New(rampsql.Config{
		DB: sql.OpenDB(db), Dialect: rampsql.SQLite, Apply: applyNothing, TxOptions: &begin,
	}))(t)
	begin.Isolation = sql.LevelReadCommitted
	r := mintRequest()
	_, err := store.Update(t.Context(), r.UUID, ramp.Accept(ramp.Session{ID: "session-1"}, r, time.Now()))
	assert.ErrorIs(t, err, errRecorded)
	assert.Equal(t, sql.LevelSerializable, sql.IsolationLevel(db.options.Isolation))
}

// dialects returns the dialects by the names of their constants.
func dialects(t *testing.T) map[string]rampsql.Dialect {
	t.Helper()
	all := map[string]rampsql.Dialect{}
	constant := regexp.MustCompile(`(?m)^\t(\w+) +Dialect += "(\w+)"`)
	for _, m := range constant.FindAllStringSubmatch(string(must.Get(os.ReadFile("dialect.go"))(t)), -1) {
		all[m[1]] = rampsql.Dialect(m[2])
	}
	require.GreaterOrEqual(t, len(all), 3)
	return all
}

func TestSchemaIsTheFileForMigrationTools(t *testing.T) {
	for _, dialect := range dialects(t) {
		text := must.Get(os.ReadFile("schema/" + string(dialect) + ".sql"))(t)
		assert.Equal(t, string(text), dialect.Schema(), dialect)
	}
	assert.Empty(t, rampsql.Dialect("").Schema())
}

// A new dialect needs more than the compiler asks for.
func TestEveryDialectHasAllItNeeds(t *testing.T) {
	requireRepository(t)
	const addADialect = `see "Add a dialect" in CONTRIBUTING.md`
	_, none := rampsql.New(rampsql.Config{})
	for name := range dialects(t) {
		assert.Contains(t, none.Error(), name, "dialectRequired in dialect.go does not name it: "+addADialect)
		for file, needs := range map[string]string{
			"store.go": "[" + name + "]", // of Config.Dialect

			// What the tests of every database and the walk of storetest know of it.
			"../internal/test/integration/dbtest/dialects_test.go": "dialect: rampsql." + name + ",",
			"../ramptest/internal/interleaving/dialect.go":         "rampsql." + name + ": {",

			"../docs/stores.md": name,
			"../docs/orders.md": "\n| " + name, // what its transactions do
		} {
			text := must.Get(os.ReadFile(file))(t)
			assert.True(t, strings.Contains(string(text), needs), "%s needs %q: "+addADialect, file, needs)
		}
		var gameserver string // one file for each
		for _, file := range must.Get(filepath.Glob("../examples/gameserver/*.go"))(t) {
			gameserver += string(must.Get(os.ReadFile(file))(t))
		}
		assert.True(t, strings.Contains(gameserver, "dialect{sql: rampsql."+name+","),
			"examples/gameserver needs a file for %s: "+addADialect, name)
	}
}

func TestConfigsOfStoresNameAllThatIsMissing(t *testing.T) {
	_, err := rampsql.New(rampsql.Config{})
	assertFields(t, err, "Config.DB is required",
		"Config.Dialect is required and must be ", "Config.Apply is required")
	_, err = rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: "oracle", Apply: applyNothing})
	assertFields(t, err, "Config.Dialect is required")
	_, err = rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite, Apply: applyNothing, Retries: -2})
	assertFields(t, err, "Config.Retries must be at least -1")
	_, err = rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite, Apply: applyNothing,
		Projects: []string{"red", ""}, Network: "goerli"})
	assertFields(t, err, "Config.Projects must not have an empty one", "Config.Network must be mainnet or testnet")
	_, err = rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite, Apply: applyNothing,
		UntouchedTables: []string{"chat", " ", "ramp_orders"}})
	assertFields(t, err, "Config.UntouchedTables[1] must be the name of a table",
		"Config.UntouchedTables[2] must not be a table of the store")
}

func TestShardsNameAllThatIsMissing(t *testing.T) {
	_, err := rampsql.NewClaims(rampsql.ClaimsConfig{})
	assertFields(t, err, "ClaimsConfig.DB is required",
		"ClaimsConfig.Dialect is required and must be ",
		"ClaimsConfig.Network is required and must be mainnet or testnet")
	_, err = new(rampsql.Claims).Claimed(t.Context(), common.Hash{})
	assert.EqualError(t, err, "ramp: the rampsql.Claims were not made by rampsql.NewClaims")
	assert.EqualError(t, new(rampsql.Claims).Check(t.Context()), err.Error())
	_, failed := new(rampsql.Claims).Claim(t.Context(), common.Hash{}, 0, uuid.New())
	assert.EqualError(t, failed, err.Error())
	claims := func() *rampsql.Claims {
		return must.Get(rampsql.NewClaims(rampsql.ClaimsConfig{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite,
			Network: ramp.Testnet}))(t)
	}
	_, err = rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite, Apply: applyNothing,
		Claims: new(rampsql.Claims)})
	assertFields(t, err, "Config.Claims must be made by NewClaims")
	_, err = rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite, Apply: applyNothing,
		Claims: claims(), Network: ramp.Mainnet})
	assertFields(t, err, "Config.Claims must be of the same network")
	_, err = rampsql.NewShards(rampsql.ShardsConfig{})
	assertFields(t, err, "ShardsConfig.Stores is required", "ShardsConfig.Place is required")
	open := func(claims *rampsql.Claims) *rampsql.Store {
		return must.Get(rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite, Apply: applyNothing,
			Claims: claims}))(t)
	}
	store := open(claims())
	assert.Nil(t, open(nil).Claims())
	assert.NotNil(t, store.Claims())
	place := func(context.Context, string) (rampsql.Place, error) { return rampsql.Place{Shard: 7}, nil }
	_, err = rampsql.NewShards(rampsql.ShardsConfig{Stores: []*rampsql.Store{store, nil, store}, Place: place})
	assertFields(t, err, "ShardsConfig.Stores[1] must be made by New",
		"ShardsConfig.Stores[2] must have a database of its own")
	_, err = rampsql.NewShards(rampsql.ShardsConfig{Stores: []*rampsql.Store{store, open(nil), open(claims())},
		Place: place})
	assertFields(t, err, "ShardsConfig.Stores[1] must have Config.Claims: a player who moves, and somebody with the "+
		"HMAC key, could be paid in each database for one transaction",
		"ShardsConfig.Stores[2] must have the Claims of the first store")
	shards := must.Get(rampsql.NewShards(rampsql.ShardsConfig{Stores: []*rampsql.Store{store}, Place: place}))(t)
	r := mintRequest()
	_, err = shards.Update(t.Context(), r.UUID, ramp.Accept(player, r, time.Now()))
	assert.EqualError(t, err, `ramp: the place of session "session-1": there is no shard 7`)
	_, err = new(rampsql.Shards).Update(t.Context(), r.UUID, ramp.Accept(player, r, time.Now()))
	assert.EqualError(t, err, "ramp: the rampsql.Shards was not made by rampsql.NewShards")
}

// A handler has one game. Stores of different games would decline a part of its players, and list and erase a
// part of its orders.
func TestShardsAreOfOneGame(t *testing.T) {
	place := func(context.Context, string) (rampsql.Place, error) { return rampsql.Place{}, nil }
	claims := must.Get(rampsql.NewClaims(rampsql.ClaimsConfig{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite,
		Network: ramp.Mainnet}))(t)
	of := func(network ramp.Network, projects ...string) *rampsql.Store {
		return must.Get(rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: rampsql.SQLite, Apply: applyNothing,
			Network: network, Projects: projects, Claims: claims}))(t)
	}
	first := of(ramp.Mainnet, "new", "old")
	for _, c := range []struct {
		second *rampsql.Store
		want   string
	}{
		{of(ramp.Mainnet, "new", "old"), ""},
		{of(ramp.Mainnet, "old", "new"), ""},
		{of(ramp.Mainnet, "old", "new", "old"), ""},
		{of(ramp.Mainnet, "new"), "Projects"},
		{of(ramp.Mainnet), "Projects"},
		{of(ramp.Mainnet, "new", "other"), "Projects"},
		{of("", "new", "old"), "Network"},
	} {
		_, err := rampsql.NewShards(rampsql.ShardsConfig{Stores: []*rampsql.Store{first, c.second}, Place: place})
		if c.want == "" {
			assert.NoError(t, err)
			continue
		}
		assertFields(t, err, "ShardsConfig.Stores[1] must have the "+c.want+" of the first store")
	}
}

// Errors of a call are found before the database is used: there is none here.
func TestAStoreRejectsACallBeforeItAsksTheDatabase(t *testing.T) {
	for _, dialect := range dialects(t) {
		store := must.Get(rampsql.New(rampsql.Config{DB: sql.OpenDB(nil), Dialect: dialect, Apply: applyNothing,
			Projects: []string{"project-1"}, Network: ramp.Testnet}))(t)
		for _, text := range []string{"", strings.Repeat("x", 1025), "quoted\xff", "quoted\x00"} {
			next := ramp.Accept(ramp.Session{ID: text}, mintRequest(), time.Now())
			step, err := store.Update(t.Context(), uuid.New(), next)
			require.Error(t, err)
			assert.Zero(t, step)
			assert.NotContains(t, err.Error(), "quoted")
		}
		_, err := store.Update(t.Context(), uuid.New(), ramp.Abandon(" ", time.Now()))
		assertFields(t, err, "reason is required")
		_, err = store.Waiting(t.Context(), ramp.Mint, time.Now(), ramp.OrderPage{Limit: -1})
		assertFields(t, err, "OrderPage.Limit must not be negative")
		for _, text := range []string{strings.Repeat("x", 1025), "quoted\xff", "quoted\x00"} {
			_, err = store.SessionOrders(t.Context(), text, ramp.OrderPage{})
			assertFields(t, err, "session_id must")
			assert.NotContains(t, err.Error(), "quoted")
		}
		for _, d := range []ramp.Direction{"", "Mint"} {
			_, err = store.Waiting(t.Context(), d, time.Now(), ramp.OrderPage{})
			assertFields(t, err, "direction must be Mint or Burn")
			_, _, err = store.CountWaiting(t.Context(), d, time.Now())
			assertFields(t, err, "direction must be Mint or Burn")
			_, err = store.DeleteFinished(t.Context(), d, time.Unix(0, 0))
			assertFields(t, err, "direction must be Mint or Burn")
		}
		_, err = store.DeleteFinished(t.Context(), ramp.Mint, time.Now().Add(-7*24*time.Hour+time.Minute))
		assertFields(t, err, "before must be at least 7 days ago")
	}
}

func ExampleDialect_Schema() {
	statement, _, _ := strings.Cut(rampsql.SQLite.Schema()[strings.Index(rampsql.SQLite.Schema(), "CREATE"):], " (")
	fmt.Println(statement)
	// Output: CREATE TABLE IF NOT EXISTS ramp_orders
}

// internal/test/integration/dbtest tests Check on real databases.
func TestCheckRejectsAServerThatIsTooOld(t *testing.T) {
	for _, c := range []struct {
		dialect rampsql.Dialect
		version string
		want    string // "" if it is new enough
	}{
		{rampsql.PostgreSQL, "9.4.26", "the database is PostgreSQL 9.4, but must be 9.5 or newer"},
		{rampsql.PostgreSQL, "9.5.0", ""},
		{rampsql.PostgreSQL, "15.18 (Debian 15.18-0+deb12u1)", ""},
		{rampsql.PostgreSQL, "19devel", ""},
		{rampsql.MySQL, "5.7.44-log", "the database is MySQL 5.7, but must be 8.0 or newer"},
		{rampsql.MySQL, "8.0.46", ""},
		{rampsql.MySQL, "8.0.mysql_aurora.3.08.0", ""},
		{rampsql.MySQL, "9.5.0", ""},
		{rampsql.MySQL, "10.4.34-MariaDB", "the database is MariaDB 10.4, but must be 10.5 or newer"},
		{rampsql.MySQL, "10.11.19-MariaDB-0+deb12u1", ""},
		{rampsql.MySQL, "unknown", ""},
		{rampsql.SQLite, "3.36.0", "the database is SQLite 3.36, but must be 3.37 or newer"},
		{rampsql.SQLite, "3.50.4", ""},
	} {
		db := sql.OpenDB(&fakeDB{answer: func(statement string) (string, error) {
			if strings.Contains(statement, "ramp_orders") { // the next question
				return "", errRecorded
			}
			return c.version, nil
		}})
		defer db.Close()
		store := must.Get(rampsql.New(rampsql.Config{DB: db, Dialect: c.dialect, Apply: applyNothing}))(t)
		err := store.Check(t.Context(), "")
		if c.want == "" {
			assert.ErrorIs(t, err, errRecorded, c.version)
		} else {
			assert.EqualError(t, err, "ramp: check: "+c.want)
		}
	}
}

// A list that was cut short must not pass for a short one.
func TestAListThatBreaksOffIsAnError(t *testing.T) {
	db := sql.OpenDB(breaking(io.ErrUnexpectedEOF))
	defer db.Close()
	store := must.Get(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite, Apply: applyNothing,
		Projects: []string{"project-1"}, Network: ramp.Testnet}))(t)
	waiting, failed := store.Waiting(t.Context(), ramp.Mint, time.Now(), ramp.OrderPage{})
	ofSession, failed2 := store.SessionOrders(t.Context(), "session-1", ramp.OrderPage{})
	ended, failed3 := store.Ended(t.Context(), time.Time{}, time.Now(), ramp.OrderPage{})
	n, failed4 := store.DeleteFinished(t.Context(), ramp.Mint, time.Now().AddDate(0, -1, 0))
	for _, err := range []error{failed, failed2, failed3, failed4} {
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	assert.Empty(t, slices.Concat(waiting, ofSession, ended))
	assert.Zero(t, n)
}
